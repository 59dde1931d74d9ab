//! `backtrail resume`: a session, continued from any record by its own agent or another one.

mod copy;
mod files;
mod handed_over;
mod made;
mod session;

use std::path::PathBuf;
use std::time::SystemTime;

use backtrail::context::HandOverExtent;
use backtrail::{OsRandomness, Randomness as _, Timestamp};
use backtrail_formats::{Environment, Launcher, NewSession, formats, launcher};

use self::session::Found;
use super::agent_arg::AgentArg;
use super::run::can_start;
use super::{Answer, open_or_create_store, require_files_store};
use crate::error::{CommandError, Result};
use crate::ui::Ui;

/// Continue a session from any record, in its agent or another one
///
/// The agent starts on a new session that ends at that record, in the session's directory, and
/// protected as by run. In its own agent that is a copy of its file. With --agent, any session
/// continues in another agent: tool calls stay calls, under the names that its tools have there.
/// What has no place there, such as the model's reasoning, is listed. The original is not changed,
/// and what the agent adds is imported as a fork of it.
///
/// The files stay as they are, unless --with-files or --into says otherwise. A conversation cannot
/// end between a tool call and its result; it then ends before the call.
#[derive(Debug, clap::Args)]
pub(crate) struct ResumeArgs {
    /// A session and its last record, as REF:SEQ; without :SEQ, all of it [default: the newest
    /// session here]
    #[arg(value_name = "REF")]
    reference: Option<String>,

    /// The agent that continues [default: the session's own]
    #[arg(long, value_name = "NAME", value_parser = agents(), hide_possible_values = true)]
    agent: Option<String>,

    /// Hand over all messages, not only those since the last summary
    #[arg(long)]
    whole: bool,

    /// First put the files to their state at that record
    #[arg(long, conflicts_with = "into")]
    with_files: bool,

    /// Write the files as they were to this empty or new directory, and continue there
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,

    /// Make the session, and print the command instead of running it
    #[arg(long)]
    print: bool,
}

/// Returns the names that `--agent` takes.
fn agents() -> AgentArg {
    let names = formats().map(|format| format.name());
    AgentArg::new(names.filter(|name| launcher(name).is_some()))
}

pub(crate) fn run(args: &ResumeArgs, ui: &Ui) -> Result<Answer> {
    if ui.json() && !args.print {
        let what = "resume runs the agent, whose output is not JSON";
        return Err(CommandError::invalid(what).hint("print the command instead: add --print"));
    }
    let store = match args.reference {
        Some(_) => require_files_store(ui)?,
        None => open_or_create_store(ui)?,
    };
    let environment = Environment::from_variables(std::env::vars_os());
    let wanted = session::Wanted {
        place: args.reference.as_deref(),
        agent: args.agent.as_deref(),
        has_directory: args.into.is_some(),
    };
    let mut found = Found::find(&store, &wanted, &environment, ui)?;
    // Its own program writes to the database of such an agent, also for --print.
    let is_needed = !args.print || found.needs_program();
    if is_needed && !can_start(found.agent.program()) {
        return Err(not_installed(&found, args, ui));
    }
    found.report_cut(ui);
    let files = match args.with_files {
        true => Some(found.files_back(&store, ui)?),
        false => None,
    };
    if let Some(dir) = &args.into {
        found.move_into(&store, dir, ui)?;
    }
    let at = Timestamp::from(SystemTime::now());
    let new = NewSession {
        id: new_id(&found.agent, at)?,
        at,
        directory: found.directory.clone(),
        environment: &environment,
    };
    let copied = match found.copies.filter(|_| !args.whole) {
        Some(agent) => copy::make(&store, &found, agent, &new, ui)?,
        None => None,
    };
    let staged = match copied {
        Some(staged) => staged,
        None => {
            let extent = match args.whole {
                true => HandOverExtent::Whole,
                false => HandOverExtent::Context,
            };
            handed_over::make(&store, &found, extent, &new, ui)?
        }
    };
    // The files move when the session is written, and before an agent finds it: either can still
    // be given up.
    if let Some(files) = files
        && let Err(error) = files.apply(ui)
    {
        return Err(staged.give_up(error, &store, ui));
    }
    let made = staged.finish(&store, ui)?;
    match args.print {
        true => made.print(ui),
        false => made.start(&store, ui),
    }
}

fn new_id(agent: &Launcher, at: Timestamp) -> Result<String> {
    let mut random = [0; 16];
    let filled = OsRandomness.fill(&mut random);
    filled.map_err(|error| CommandError::io("cannot make an id", None, &error))?;
    Ok(agent.new_id(at, random))
}

fn not_installed(found: &Found, args: &ResumeArgs, ui: &Ui) -> CommandError {
    let program = found.agent.program();
    let what = format!(
        "cannot start {}: {program} is not in PATH",
        found.agent.title()
    );
    let (command, place) = (ui.program(), found.place());
    let error = CommandError::not_found(what);
    if args.print {
        return error.hint(format!(
            "continue in another agent: {command} resume {place} --agent NAME"
        ));
    }
    let agent = match &args.agent {
        Some(agent) => format!(" --agent {agent}"),
        None => String::new(),
    };
    error.hint(format!(
        "make the session and see the command: {command} resume {place}{agent} --print"
    ))
}
