//! `backtrail setup`: installs and removes the hooks by which agents call `backtrail hook`.
//!
//! `agents.rs` lists the agents, `plan.rs` finds out what would change in their files, `merge.rs`
//! adds hooks to settings and removes them, `status_line.rs` does so with a status line, `own_files.rs` has the files that are ours alone,
//! `hook_line.rs` is the command line that agents run, `first_import.rs` imports what agents have, `report.rs` shows and makes the changes, and
//! `status.rs` shows what is installed. A file is changed whole or not at all, by `user_file.rs`.

mod agents;
mod first_import;
mod hook_line;
mod merge;
mod own_files;
mod plan;
mod report;
mod status;
mod status_line;

use std::path::{Path, PathBuf};

use backtrail_formats::Environment;

use self::agents::{AGENTS, HookAgent};
use self::first_import::FirstImport;
use self::hook_line::HookProgram;
use self::plan::{AgentPlan, StatusLine};
use self::report::SetupReport;
use super::Answer;
use super::agent_arg::AgentArg;
use crate::error::{CommandError, Result};
use crate::files;
use crate::home::in_path;
use crate::text::one_line;
use crate::ui::Ui;

/// Install hooks, so that every prompt and tool call can be undone
///
/// Finds the agents on this machine, shows what it would change in their settings, and asks. With
/// hooks, agents call Backtrail at each prompt and before and after each tool call; `backtrail
/// run` is not needed then. Everything else in the files stays as it is, byte for byte, and a
/// copy of each file is saved beside it. If Backtrail is missing or fails, the hooks do
/// nothing: they never stop or refuse the agent's work.
///
/// Claude Code also gets a status line (see statusline). One that is there already stays: its
/// output comes first.
///
/// Sessions of agents that were never imported are counted, and imported if you agree. From then on
/// `list`, `search`, `stats` and `show` import what is new.
///
/// Agents: claude, codex, gemini, qwen, copilot, cline, opencode and pi. Codex runs new hooks only
/// once you trust them: start codex and type /hooks.
#[derive(Debug, clap::Args)]
pub(crate) struct SetupArgs {
    /// The agents to set up [default: all that are found]
    #[arg(value_name = "AGENT", value_parser = agent_names(), hide_possible_values = true)]
    agents: Vec<String>,

    /// Show what is installed, and when each agent last called a hook
    #[arg(long, conflicts_with_all = ["remove", "dry_run", "yes"])]
    status: bool,

    /// Remove the hooks; each file becomes what it would be without them
    #[arg(long)]
    remove: bool,

    /// Only show what would be changed
    #[arg(long)]
    dry_run: bool,

    /// Leave Claude Code's status line as it is
    #[arg(long, conflicts_with_all = ["remove", "status"])]
    no_statusline: bool,

    /// Do not import sessions
    #[arg(long, conflicts_with_all = ["remove", "status"])]
    no_import: bool,

    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

impl SetupArgs {
    fn status_line(&self) -> StatusLine {
        match self.no_statusline {
            true => StatusLine::AsItIs,
            false => StatusLine::Install,
        }
    }
}

fn agent_names() -> AgentArg {
    AgentArg::new(AGENTS.iter().map(|agent| agent.program))
}

/// Returns the file that `backtrail hook` touches each time an agent calls it. Without it, only
/// the time of the last call is unknown.
pub(crate) fn fired_file(store: &Path, agent: &str) -> PathBuf {
    store.join("derived").join("hooks").join(agent)
}

/// Returns why an agent's last hook failed, if it did.
pub(crate) fn last_failure(store: &Path, agent: &str) -> Option<String> {
    let reason = files::read(&failure_file(store, agent)).ok()?;
    let reason = one_line(&reason, 300);
    (!reason.is_empty()).then_some(reason)
}

/// Returns the file with the reason why an agent's last hook failed, if it did.
pub(crate) fn failure_file(store: &Path, agent: &str) -> PathBuf {
    store
        .join("derived")
        .join("hooks")
        .join(format!("{agent}.failed"))
}

pub(crate) fn run(args: &SetupArgs, ui: &Ui) -> Result<Answer> {
    let environment = Environment::from_variables(std::env::vars_os());
    let program = hook_program(ui)?;
    let agents = agents::named(&args.agents);
    if args.status {
        return status::print(&agents, &environment, &program, ui);
    }
    let mut report = SetupReport::new(args.remove);
    for agent in agents {
        // An agent that was named is set up even if it is not found.
        let is_wanted = args.remove || !args.agents.is_empty() || is_found(agent, &environment);
        let plan = || match args.remove {
            true => AgentPlan::remove(agent, &environment),
            false => AgentPlan::install(agent, &environment, &program, args.status_line()),
        };
        report.add(agent, is_wanted.then(plan));
    }
    report.show(ui)?;
    let import = first_import(args, ui);
    let has_question = report.has_changes() || import.as_ref().is_some_and(|_| ui.can_ask());
    if args.dry_run || !has_question && !args.yes {
        return report.finish(args.dry_run, ui);
    }
    if !args.yes && !ui.confirm(&question(&report, import.as_ref()))? {
        ui.status("nothing was changed");
        return Ok(Answer::No);
    }
    if report.has_changes() {
        report.apply(ui);
    }
    let answer = report.finish(args.dry_run, ui)?;
    if let Some(import) = import {
        import.import(ui)?;
    }
    Ok(answer)
}

/// Finds the sessions to import, and says what there is.
fn first_import(args: &SetupArgs, ui: &Ui) -> Option<FirstImport> {
    if args.remove || args.no_import {
        return None;
    }
    let names = match args.agents.is_empty() {
        true => Vec::new(),
        false => agents::named(&args.agents),
    };
    let names: Vec<&str> = names.iter().map(|agent| agent.name).collect();
    let import = FirstImport::find(&names, ui)?;
    ui.status(&import.describe());
    Some(import)
}

/// Returns the one question about everything that would be done.
fn question(report: &SetupReport, import: Option<&FirstImport>) -> String {
    match (report.has_changes(), import) {
        (true, Some(import)) => format!("{} and import {}?", report.question(), import.what()),
        (false, Some(import)) => format!("Import {}?", import.what()),
        (_, None) => format!("{}?", report.question()),
    }
}

/// Returns whether an agent is on this machine: it has been used, or its program can be found.
fn is_found(agent: &HookAgent, environment: &Environment) -> bool {
    // Many programs are called pi.
    let by_name = || agent.program != "pi" && in_path(Path::new(agent.program)).is_some();
    let home = agent.home(environment);
    home.is_some_and(|home| home.is_dir()) || by_name()
}

/// Returns the program that hooks will call: by its name in PATH if that is this one, as such a
/// name outlives an update.
fn hook_program(ui: &Ui) -> Result<HookProgram> {
    let this = std::env::current_exe()
        .map_err(|error| CommandError::io("cannot find this program", None, &error))?;
    let is_this = |path: &PathBuf| {
        let same = path.canonicalize().ok() == this.canonicalize().ok();
        same && path.is_absolute()
    };
    let path = in_path(Path::new("backtrail")).filter(is_this);
    HookProgram::new(
        path.as_deref().unwrap_or(&this),
        ui.named_store()?.as_deref(),
    )
}
