//! A move that is shown first and done later.

use std::sync::Arc;

use backtrail::rewind::{OnConflict, Verb};
use backtrail::snapshot::Progress;
use backtrail::{ErrorKind, Outcome, Rewind, RewindPlan, Workspace};

use super::Move;
use super::outcome_text::{OutcomeText, running_warnings};
use crate::error::{CommandError, Result};

/// How wide the lines are: they fit a narrow terminal.
const WIDTH: usize = 56;

/// A rewind, restore, undo or redo that is planned. Nothing is touched before it is applied.
pub(in crate::commands) struct PlannedMove {
    plan: RewindPlan,
    /// Where it moves files.
    workspace: Option<Workspace>,
    /// What commands in the text begin with.
    program: String,
}

impl PlannedMove {
    /// Plans a move; `None` if there is nothing to undo or redo.
    pub(in crate::commands) fn new(
        movement: Move<'_>,
        options: Rewind,
        program: &str,
    ) -> Result<Option<Self>> {
        let plan = movement.plan(options)?;
        Ok(plan.map(|plan| Self {
            plan,
            workspace: movement.workspace().cloned(),
            program: program.to_owned(),
        }))
    }

    /// Plans to restore only a part of what was planned in parts.
    pub(in crate::commands) fn choose(
        self,
        choose: impl FnOnce(RewindPlan) -> Result<RewindPlan>,
    ) -> Result<Self> {
        Ok(Self {
            plan: choose(self.plan)?,
            ..self
        })
    }

    /// Returns what it does, in a few words.
    pub(in crate::commands) fn title(&self) -> String {
        self.text(self.plan.outcome()).title()
    }

    /// Returns whether it does anything, and can be done unless conflicts stop it.
    pub(in crate::commands) fn is_possible(&self) -> bool {
        let outcome = self.plan.outcome();
        let text = self.text(outcome);
        match outcome.verb {
            Verb::Undo | Verb::Redo => !text.is_futile(),
            _ => outcome.moves() || outcome.is_stopped(),
        }
    }

    /// Returns what happens to each file and to the conversation, who else changed files, and
    /// which agents will not notice.
    pub(in crate::commands) fn lines(&self) -> Vec<String> {
        let outcome = self.plan.outcome();
        let text = self.text(outcome);
        let is_to_point = matches!(outcome.verb, Verb::Rewind | Verb::Restore);
        if is_to_point && text.is_empty() && !outcome.is_stopped() {
            return vec![text.already()];
        }
        let mut lines = text.details();
        if outcome.is_stopped() {
            let refusal = text.refusal();
            let refusal = refusal.strip_suffix("; nothing was touched");
            lines.extend((!lines.is_empty()).then(String::new));
            lines.push(refusal.unwrap_or_default().to_owned());
            lines.extend(text.changed_by_others(Some(WIDTH)));
            lines.extend(text.unmergeable());
        }
        if let Some(workspace) = self.workspace.as_ref().filter(|_| outcome.moves_files()) {
            lines.extend(running_warnings(&outcome.active, workspace));
        }
        lines
    }

    /// Returns what can be done about files with other changes; nothing if there are none.
    pub(in crate::commands) fn choices(&self) -> Vec<(OnConflict, String)> {
        let outcome = self.plan.outcome();
        match outcome.is_stopped() {
            true => self.text(outcome).choices(),
            false => Vec::new(),
        }
    }

    /// Returns the refusal of a move that conflicts stop.
    pub(in crate::commands) fn refusal(&self) -> Option<String> {
        let outcome = self.plan.outcome();
        let is_stopped = outcome.is_stopped();
        is_stopped.then(|| self.text(outcome).refusal())
    }

    /// Does it, if the files are as they were when it was planned. Returns what was done in a
    /// line, and the verb that reverses it.
    pub(in crate::commands) fn apply(
        self,
        on_conflict: OnConflict,
        progress: Arc<dyn Progress>,
    ) -> Result<Applied> {
        let outcome = self.apply_plan(on_conflict, progress);
        let (outcome, text) = outcome.map_err(explained)?;
        Ok(Applied {
            reverse: outcome.moves().then_some(match outcome.verb {
                Verb::Undo => Verb::Redo,
                _ => Verb::Undo,
            }),
            message: text,
        })
    }

    fn apply_plan(
        self,
        on_conflict: OnConflict,
        progress: Arc<dyn Progress>,
    ) -> backtrail::Result<(Outcome, String)> {
        let program = self.program;
        let plan = match self.plan.is_stopped() {
            true => self.plan.on_conflict(on_conflict)?,
            false => self.plan,
        };
        let outcome = plan.progress(progress).apply()?;
        let message = text_of(&outcome, &program).message();
        Ok((outcome, message))
    }

    fn text<'o>(&'o self, outcome: &'o Outcome) -> OutcomeText<'o> {
        text_of(outcome, &self.program)
    }
}

/// What was done.
pub(in crate::commands) struct Applied {
    /// In a line.
    pub(in crate::commands) message: String,
    /// The verb that reverses it, if anything moved.
    pub(in crate::commands) reverse: Option<Verb>,
}

fn text_of<'o>(outcome: &'o Outcome, program: &'o str) -> OutcomeText<'o> {
    OutcomeText {
        outcome,
        program,
        place: None,
        width: Some(WIDTH),
    }
}

/// Says what to do about a plan that does not fit any more.
fn explained(error: backtrail::Error) -> CommandError {
    let kind = error.kind();
    let command = CommandError::from(error);
    match kind {
        ErrorKind::Conflict => command.without_hints().hint("look again, then decide"),
        _ => command,
    }
}
