//! The changes to all agents: shown, made, and reported.

use serde_json::{Value, json};

use super::agents::HookAgent;
use super::plan::{AgentPlan, ChangeKind, FileChange};
use super::{Answer, status};
use crate::error::{CommandError, Result};
use crate::home::tilde;
use crate::layout::{Column, Table};
use crate::text::{count, path_json};
use crate::ui::Ui;

/// What would be done, and whether it was.
pub(super) struct SetupReport {
    plans: Vec<AgentPlan>,
    errors: Vec<(&'static str, CommandError)>,
    absent: Vec<&'static HookAgent>,
    is_removal: bool,
    /// Whether files were changed.
    done: bool,
}

impl SetupReport {
    pub(super) fn new(is_removal: bool) -> Self {
        Self {
            plans: Vec::new(),
            errors: Vec::new(),
            absent: Vec::new(),
            is_removal,
            done: false,
        }
    }

    /// Adds an agent, with its plan if it is wanted.
    pub(super) fn add(&mut self, agent: &'static HookAgent, plan: Option<Result<AgentPlan>>) {
        match plan {
            Some(Ok(plan)) => self.plans.push(plan),
            Some(Err(error)) => self.errors.push((agent.name, error)),
            None => self.absent.push(agent),
        }
    }

    pub(super) fn has_changes(&self) -> bool {
        self.plans.iter().any(AgentPlan::has_changes)
    }

    fn changes(&self) -> impl Iterator<Item = (&AgentPlan, &FileChange)> {
        let of_plan = |plan| AgentPlan::changes(plan).map(move |change| (plan, change));
        self.plans.iter().flat_map(of_plan)
    }

    /// Shows the plan to people.
    pub(super) fn show(&self, ui: &Ui) -> Result<()> {
        if ui.json() {
            return Ok(());
        }
        let mut table = Table::new([
            Column::text("AGENT"),
            Column::text("CHANGE"),
            Column::text("FILE").between(16, 200),
        ]);
        for plan in &self.plans {
            for (what, path) in plan.rows() {
                table.push([plan.agent.title.into(), what.into(), tilde(&path).into()]);
            }
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

    pub(super) fn question(&self) -> String {
        let changes = self.changes().map(|(_, change)| change.kind());
        let changed = changes.filter(|kind| *kind != ChangeKind::Unchanged);
        format!("Change {}", count(changed.count(), "file"))
    }

    /// Changes the files. An agent that fails does not stop the others.
    pub(super) fn apply(&mut self, ui: &Ui) {
        for plan in &self.plans {
            let mut changes = plan.changes();
            match changes.try_for_each(|change| change.apply(self.is_removal)) {
                Ok(()) => self.done |= plan.has_changes(),
                Err(error) => {
                    if !ui.json() {
                        ui.error(&error);
                    }
                    self.errors.push((plan.agent.name, error));
                }
            }
        }
    }

    pub(super) fn finish(&self, dry_run: bool, ui: &Ui) -> Result<Answer> {
        if ui.json() {
            ui.print_json(&self.as_json())?;
        } else if dry_run {
            ui.status("nothing was changed: --dry-run");
        } else if self.done {
            self.print_done(ui);
        } else if self.plans.is_empty() && self.errors.is_empty() {
            ui.status("no agents to set up");
        } else if self.is_removal && self.errors.is_empty() {
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
        ui.status("hooks installed; restart the agents that are running");
        for copy in self.changes().filter_map(|(_, change)| change.copy()) {
            ui.status(&format!("saved a copy: {}", tilde(&copy)));
        }
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
                "copy": change.copy().as_deref().map(path_json),
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
        let error = |(agent, error): &(&str, CommandError)| {
            let message = error.with_causes();
            json!({"agent": agent, "message": message, "hints": error.hints})
        };
        json!({
            "agents": self.plans.iter().map(plan).collect::<Vec<_>>(),
            "errors": self.errors.iter().map(error).collect::<Vec<_>>(),
            "not_found": self.absent.iter().map(|agent| agent.name).collect::<Vec<_>>(),
            "done": self.done,
        })
    }
}
