//! The command line.

use std::path::PathBuf;

use clap::{ColorChoice, CommandFactory, Parser, Subcommand};

use crate::commands::{
    cat, checkpoint, compact, completions, config, context, delete, diff, doctor, export, fork, gc,
    help, import, list, log, man, pin, rebuild, record, redo, relink, repair, restore, rewind, run,
    search, show, stats, status, steps, tag, title, trash, undo, verify, version,
};
use crate::examples;

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

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(run::Args),
    Checkpoint(checkpoint::Args),
    Log(log::Args),
    Diff(diff::Args),
    Cat(cat::Args),
    Status(status::Args),
    Record(record::Args),
    #[command(visible_alias = "ls")]
    List(list::Args),
    Search(search::Args),
    Show(show::Args),
    Fork(fork::Args),
    Rewind(rewind::Args),
    Restore(restore::Args),
    Undo(undo::Args),
    Redo(redo::Args),
    Steps(steps::Args),
    Compact(compact::Args),
    Context(context::Args),
    Title(title::Args),
    Tag(tag::Args),
    Pin(pin::Args),
    Stats(stats::Args),
    Import(import::Args),
    Export(export::Args),
    Verify(verify::Args),
    Repair(repair::Args),
    Gc(gc::Args),
    Delete(delete::Args),
    Trash(trash::Args),
    Config(config::Args),
    Relink(relink::Args),
    Doctor(doctor::Args),
    Rebuild(rebuild::Args),
    Completions(completions::Args),
    Man(man::Args),
    Help(help::Args),
    Version(version::Args),
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
