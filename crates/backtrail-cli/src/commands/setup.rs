//! `backtrail setup`: installs and removes the hooks by which agents call `backtrail hook`.
//!
//! `agents.rs` lists the agents, `plan.rs` finds out what would change in their files, `merge.rs`
//! adds hooks to settings and removes them, `hook_line.rs` is the command line that agents run, and
//! `status.rs` shows what is installed. A file is changed whole or not at all, by `user_file.rs`.

mod agents;
mod hook_line;
mod merge;
mod plan;
mod status;

use std::path::{Path, PathBuf};

use backtrail_formats::Environment;
use clap::builder::{PossibleValue, PossibleValuesParser};
use serde_json::{Value, json};

use self::agents::{AGENTS, HookAgent};
use self::hook_line::HookProgram;
use self::plan::{AgentPlan, ChangeKind, FileChange};
use super::Answer;
use crate::error::{CommandError, Result};
use crate::home::{in_path, tilde};
use crate::layout::{Column, Table};
use crate::text::{count, path_json};
use crate::ui::Ui;

/// Install hooks, so that every prompt and tool call can be undone
///
/// Finds the agents on this machine, shows what it would change in their settings, and asks. With
/// hooks, agents call Backtrail at each prompt and before and after each tool call; `backtrail
/// run` is not needed then. Everything else in the files stays as it is, byte for byte, and a
/// copy of each file is saved beside it. If Backtrail is missing or fails, the hooks do
/// nothing: they never stop or refuse the agent's work.
///
/// Agents: claude, codex, gemini, qwen, copilot, cline, opencode and pi. Codex runs new hooks only once you trust
/// them: start codex and type /hooks.
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

    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

fn agent_names() -> PossibleValuesParser {
    let name = |agent: &HookAgent| match agent.name == agent.program {
        true => PossibleValue::new(agent.name),
        false => PossibleValue::new(agent.program).alias(agent.name),
    };
    PossibleValuesParser::new(AGENTS.iter().map(name))
}

/// Returns the file that `backtrail hook` touches each time an agent calls it.
pub(crate) fn fired_file(store: &Path, agent: &str) -> PathBuf {
    store.join("derived").join("hooks").join(agent)
}

/// Returns the file with the reason why an agent's last hook failed, if it did.
pub(crate) fn failure_file(store: &Path, agent: &str) -> PathBuf {
    store.join("derived").join("hooks").join(format!("{agent}.failed"))
}

pub(crate) fn run(args: &SetupArgs, ui: &Ui) -> Result<Answer> {
    let environment = Environment::from_variables(std::env::vars_os());
    let program = hook_program(ui)?;
    let agents = agents::named(&args.agents);
    if args.status {
        return status::print(&agents, &environment, &program, ui);
    }
    // An agent that was named is set up even if it is not found.
    let is_wanted = |agent: &&'static HookAgent| {
        args.remove || !args.agents.is_empty() || is_found(agent, &environment)
    };
    let (wanted, absent): (Vec<_>, Vec<_>) = agents.into_iter().partition(is_wanted);
    let plan = |agent: &'static HookAgent| match args.remove {
        true => AgentPlan::remove(agent, &environment),
        false => AgentPlan::install(agent, &environment, &program),
    };
    let (mut plans, mut errors) = (Vec::new(), Vec::new());
    for agent in wanted {
        match plan(agent) {
            Ok(plan) => plans.push(plan),
            Err(error) => errors.push((agent.name, error)),
        }
    }
    let mut report = SetupReport {
        plans,
        errors,
        absent,
        is_removal: args.remove,
        done: false,
    };
    report.show(ui)?;
    if report.has_changes() && !args.dry_run {
        let confirmed = args.yes || ui.confirm(&report.question())?;
        if !confirmed {
            ui.status("nothing was changed");
            return Ok(Answer::No);
        }
        report.apply(ui);
    }
    report.finish(args.dry_run, ui)
}

/// Returns whether an agent is on this machine: it has been used, or its program can be found.
fn is_found(agent: &HookAgent, environment: &Environment) -> bool {
    // Many programs are called pi.
    let by_name = || agent.program != "pi" && in_path(Path::new(agent.program)).is_some();
    let home = agent.home(environment);
    home.is_some_and(|home| home.is_dir()) || by_name()
}

/// Returns the program that hooks will call: by the name in PATH if that is this one, as it outlives an update.
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

/// What would be done, and whether it was.
struct SetupReport {
    plans: Vec<AgentPlan>,
    errors: Vec<(&'static str, CommandError)>,
    absent: Vec<&'static HookAgent>,
    is_removal: bool,
    done: bool,
}

impl SetupReport {
    fn has_changes(&self) -> bool {
        self.plans.iter().any(AgentPlan::has_changes)
    }

    fn changes(&self) -> impl Iterator<Item = (&AgentPlan, &FileChange)> {
        let of_plan = |plan| AgentPlan::changes(plan).map(move |change| (plan, change));
        self.plans.iter().flat_map(of_plan)
    }

    /// Shows the plan to people.
    fn show(&self, ui: &Ui) -> Result<()> {
        if ui.json() {
            return Ok(());
        }
        let mut table = Table::new([
            Column::text("AGENT"),
            Column::text("FILE"),
            Column::text("CHANGE"),
        ]);
        for (plan, change) in self.changes() {
            let path = tilde(change.file.path());
            let what = plan.describe(change);
            table.push([plan.agent.title.into(), path.into(), what.into()]);
        }
        if self.changes().next().is_some() {
            ui.print_table(&table, ui.width())?;
        }
        for plan in &self.plans {
            for warning in &plan.warnings {
                ui.warning(
                    &warning.to_string(),
                    warning.hints.first().map(String::as_str),
                );
            }
        }
        for (_, error) in &self.errors {
            ui.error(error);
        }
        if !self.absent.is_empty() {
            let names: Vec<&str> = self.absent.iter().map(|agent| agent.title).collect();
            ui.status(&format!("not found: {}", names.join(", ")));
        }
        Ok(())
    }

    fn question(&self) -> String {
        let changes = self.changes().map(|(_, change)| change.kind());
        let changed = changes.filter(|kind| *kind != ChangeKind::Unchanged);
        format!("Change {}?", count(changed.count(), "file"))
    }

    /// Changes the files. An agent that fails does not stop the others.
    fn apply(&mut self, ui: &Ui) {
        for plan in &self.plans {
            for change in plan.changes() {
                if let Err(error) = change.apply(self.is_removal) {
                    if !ui.json() {
                        ui.error(&error);
                    }
                    self.errors.push((plan.agent.name, error));
                    break;
                }
            }
        }
        self.done = true;
    }

    fn finish(&self, dry_run: bool, ui: &Ui) -> Result<Answer> {
        if ui.json() {
            ui.print_json(&self.as_json())?;
        } else if dry_run {
            ui.status("nothing was changed: --dry-run");
        } else if self.done && self.errors.is_empty() {
            self.print_done(ui);
        } else if self.plans.is_empty() && self.errors.is_empty() {
            ui.status("no agents to set up");
        } else if self.is_removal && !self.done {
            ui.status("no hooks to remove");
        }
        let warned = self.plans.iter().any(|plan| !plan.warnings.is_empty());
        Ok(Answer::no_if(warned || !self.errors.is_empty()))
    }

    fn print_done(&self, ui: &Ui) {
        let program = ui.program();
        if self.is_removal {
            ui.status("hooks removed");
            return;
        }
        ui.status("hooks installed; agents that are running have to be restarted");
        if self.plans.iter().any(|plan| plan.agent.name == "codex") {
            ui.status(&format!("Codex: {}", status::HOW_TO_TRUST));
        }
        ui.to_reverse("setup --remove");
        ui.remark(&format!("see what is installed: {program} setup --status"));
    }

    fn as_json(&self) -> Value {
        let change = |change: &FileChange| {
            json!({
                "path": path_json(change.file.path()),
                "change": change.kind().as_str(),
            })
        };
        let plan = |plan: &AgentPlan| {
            let warnings: Vec<String> = plan
                .warnings
                .iter()
                .map(CommandError::with_causes)
                .collect();
            json!({
                "agent": plan.agent.name,
                "files": plan.changes().map(change).collect::<Vec<_>>(),
                "warnings": warnings,
            })
        };
        let error = |(agent, error): &(&str, CommandError)| json!({"agent": agent, "message": error.with_causes(), "hints": error.hints});
        json!({
            "agents": self.plans.iter().map(plan).collect::<Vec<_>>(),
            "errors": self.errors.iter().map(error).collect::<Vec<_>>(),
            "not_found": self.absent.iter().map(|agent| agent.name).collect::<Vec<_>>(),
            "done": self.done,
        })
    }
}
