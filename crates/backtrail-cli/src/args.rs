//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ColorChoice, CommandFactory, Parser, Subcommand};

use crate::commands::{self, Answer, help};
use crate::error::Result;
use crate::examples;
use crate::ui::Ui;

/// Keep what AI agents say and do, and undo what they did to your files
#[derive(Debug, Parser)]
#[command(name = "backtrail", version)]
#[command(disable_help_subcommand = true, subcommand_value_name = "VERB")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// The options of every verb
#[derive(Debug, clap::Args)]
pub(crate) struct Global {
    /// Use the store in this directory [default: $BACKTRAIL_HOME, else the platform's data directory]
    #[arg(
        long,
        value_name = "DIR",
        global = true,
        help_heading = "Global options"
    )]
    pub(crate) store: Option<PathBuf>,

    /// Print data as JSON, and errors and warnings as JSON lines on stderr
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) json: bool,

    /// Use colours
    #[arg(
        long,
        value_name = "WHEN",
        global = true,
        help_heading = "Global options"
    )]
    #[arg(default_value = "auto")]
    pub(crate) color: ColorChoice,
}

/// Declares the verbs: each is a module of `commands` with its arguments and a `run`.
macro_rules! verbs {
    ($($(#[$attribute:meta])* $verb:ident($module:ident::$args:ident),)*) => {
        #[derive(Debug, Subcommand)]
        pub(crate) enum Command {
            $($(#[$attribute])* $verb(commands::$module::$args),)*
        }

        impl Command {
            /// Runs the verb.
            pub(crate) fn run(&self, ui: &Ui) -> Result<Answer> {
                match self {
                    $(Self::$verb(args) => commands::$module::run(args, ui),)*
                }
            }
        }
    };
}

verbs! {
    Run(run::RunArgs),
    Checkpoint(checkpoint::CheckpointArgs),
    Log(log::LogArgs),
    Diff(diff::DiffArgs),
    Cat(cat::CatArgs),
    Blame(blame::BlameArgs),
    Status(status::StatusArgs),
    Record(record::RecordArgs),
    #[command(visible_alias = "ls")]
    List(list::ListArgs),
    Search(search::SearchArgs),
    Show(show::ShowArgs),
    Fork(fork::ForkArgs),
    Rewind(rewind::RewindArgs),
    Restore(restore::RestoreArgs),
    Resume(resume::ResumeArgs),
    Undo(undo::UndoArgs),
    Redo(redo::RedoArgs),
    Compact(compact::CompactArgs),
    Context(context::ContextArgs),
    Title(title::TitleArgs),
    Tag(tag::TagArgs),
    Pin(pin::PinArgs),
    Stats(stats::StatsArgs),
    Ui(ui::UiArgs),
    Web(web::WebArgs),
    Watch(watch::WatchArgs),
    Hook(hook::HookArgs),
    Statusline(statusline::StatuslineArgs),
    Import(import::ImportArgs),
    Setup(setup::SetupArgs),
    Export(export::ExportArgs),
    Remote(remote::RemoteArgs),
    Push(push::PushArgs),
    Pull(pull::PullArgs),
    Verify(verify::VerifyArgs),
    Repair(repair::RepairArgs),
    Gc(gc::GcArgs),
    Delete(delete::DeleteArgs),
    Trash(trash::TrashArgs),
    Config(config::ConfigArgs),
    Relink(relink::RelinkArgs),
    Doctor(doctor::DoctorArgs),
    Rebuild(rebuild::RebuildArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
    Help(help::HelpArgs),
    Version(version::VersionArgs),
}

/// The verbs that agents run again and again, with the global options. To describe all verbs
/// takes longer than what these do.
#[derive(Debug, Parser)]
struct OftenArgs {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: OftenCommand,
}

#[derive(Debug, Subcommand)]
enum OftenCommand {
    Hook(commands::hook::HookArgs),
    Statusline(commands::statusline::StatuslineArgs),
}

/// Parses the command line of a verb that agents run again and again. `None` if only the whole
/// command understands it: another verb, help, or something that is wrong.
pub(crate) fn often(words: impl IntoIterator<Item = OsString>) -> Option<Args> {
    let args = OftenArgs::try_parse_from(words).ok()?;
    Some(Args {
        global: args.global,
        command: Some(match args.command {
            OftenCommand::Hook(args) => Command::Hook(args),
            OftenCommand::Statusline(args) => Command::Statusline(args),
        }),
    })
}

/// Returns the command with its whole help: the verbs in groups, and examples of each.
pub(crate) fn command() -> clap::Command {
    let mut command = Args::command();
    let verbs = command
        .get_subcommands()
        .map(|verb| verb.get_name().to_owned());
    for verb in verbs.collect::<Vec<_>>() {
        if let Some(examples) = examples::of(&verb) {
            command = command.mut_subcommand(verb, |verb| verb.after_help(examples));
        }
    }
    let template = help::template(&command, help::Shown::Usual);
    command.help_template(template).term_width(help::width())
}

#[cfg(test)]
#[path = "args_tests.rs"]
mod tests;
