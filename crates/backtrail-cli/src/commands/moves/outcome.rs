//! What a move does, or would do: plans and reports as one plain value.

use std::path::PathBuf;

use backtrail::{
    About, ChangedBy, ChatMove, Checkpoint, CheckpointId, CheckpointReason, Conflict, Kept,
    KeptBecause, Merge, Move, NotRestored, PlannedChange, PlannedKind, RewindPlan, RewindReport,
    SessionId, Step, Timestamp, ToolUse, Verb, Workspace,
};
use serde_json::Value;

use super::data::step_json;
use super::running::{Running, running};
use crate::commands::checkpoint::skipped;
use crate::text::{one_line, visible};

/// How far it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// It is done.
    Done,
    /// Somebody only wanted to know.
    Planned,
    /// Somebody else changed some of it: nothing was touched.
    InConflict,
}

/// What a move does, or would do.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    pub(super) verb: Verb,
    pub(super) stage: Stage,
    pub(super) step: Option<ToldStep>,
    pub(super) session: Option<SessionId>,
    pub(super) from: Option<CheckpointId>,
    pub(super) to: Option<Target>,
    pub(super) now: Option<CheckpointId>,
    pub(super) restored: Vec<PathBuf>,
    pub(super) merged: Vec<Merged>,
    pub(super) deleted: Vec<PathBuf>,
    pub(super) kept: Vec<Left>,
    pub(super) not_restored: Vec<Left>,
    pub(super) conflicts: Vec<Contested>,
    /// Whether conflicts stop it.
    pub(super) is_stopped: bool,
    pub(super) unchanged: u64,
    pub(super) tool_calls: Vec<String>,
    /// Other sessions whose work goes back, and whose conversations stay.
    pub(super) others: Vec<SessionId>,
    pub(super) chat: Option<Chat>,
    pub(super) belongs_to: Option<String>,
    pub(super) running: Vec<Running>,
    /// What the point's snapshot did not capture, in words.
    pub(super) skipped: Option<String>,
}

/// A step that undo or redo is about.
#[derive(Debug, Clone)]
pub(super) struct ToldStep {
    pub(super) words: String,
    pub(super) at: Option<Timestamp>,
    pub(super) json: Value,
}

/// The checkpoint that files go to.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) id: CheckpointId,
    pub(super) at: Timestamp,
    /// What it is: `before the turn "fix the bug"`.
    pub(super) words: String,
    /// Its session, and the last record of that then.
    pub(super) place: Option<(SessionId, u64)>,
}

/// A path that stays as it is, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Left {
    pub(super) path: PathBuf,
    pub(super) why: String,
}

/// A file of which some lines go and others come back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Merged {
    pub(super) path: PathBuf,
    pub(super) removed: u64,
    pub(super) returned: u64,
}

/// A path that somebody else changed.
#[derive(Debug, Clone)]
pub(super) struct Contested {
    pub(super) path: PathBuf,
    /// A session; `None` is the person.
    pub(super) by: Option<SessionId>,
    pub(super) at: Timestamp,
    pub(super) unsaved: bool,
    pub(super) also: Option<String>,
    pub(super) merge: Option<Merge>,
}

/// How a conversation moves.
#[derive(Debug, Clone)]
pub(super) struct Chat {
    pub(super) session: SessionId,
    pub(super) from: u64,
    /// The last record after; `None` where that cannot be foretold.
    pub(super) to: Option<u64>,
    pub(super) prompt: Option<String>,
}

impl Outcome {
    /// Returns an outcome in which nothing moves.
    pub(super) fn nothing(verb: Verb, stage: Stage) -> Self {
        Self {
            verb,
            stage,
            step: None,
            session: None,
            from: None,
            to: None,
            now: None,
            restored: Vec::new(),
            merged: Vec::new(),
            deleted: Vec::new(),
            kept: Vec::new(),
            not_restored: Vec::new(),
            conflicts: Vec::new(),
            is_stopped: false,
            unchanged: 0,
            tool_calls: Vec::new(),
            others: Vec::new(),
            chat: None,
            belongs_to: None,
            running: Vec::new(),
            skipped: None,
        }
    }

    pub(super) fn of_plan(plan: &RewindPlan, stage: Stage, workspace: &Workspace) -> Self {
        let (mut restored, mut deleted, mut merged) = (Vec::new(), Vec::new(), Vec::new());
        for change in plan.changes() {
            match change.kind {
                PlannedKind::Delete => deleted.push(change.path.clone()),
                PlannedKind::Merge { .. } => merged.extend(Merged::of(change)),
                _ => restored.push(change.path.clone()),
            }
        }
        Self {
            step: plan.step().map(ToldStep::from),
            session: plan.session().cloned(),
            to: plan.to().map(|to| Target::new(to, workspace)),
            restored,
            merged,
            deleted,
            kept: plan.kept().iter().map(Left::from).collect(),
            not_restored: plan.not_restored().iter().map(Left::from).collect(),
            conflicts: plan.conflicts().iter().map(Contested::from).collect(),
            is_stopped: plan.is_stopped(),
            unchanged: plan.unchanged(),
            tool_calls: names(plan.tool_calls()),
            others: plan.other_sessions().to_vec(),
            chat: plan.chat().map(Chat::from),
            belongs_to: plan.belongs_to().map(ToOwned::to_owned),
            running: running(plan.active(), workspace),
            skipped: skipped(plan.skipped()),
            ..Self::nothing(plan.verb(), stage)
        }
    }

    pub(super) fn of_report(report: RewindReport, workspace: &Workspace) -> Self {
        Self {
            step: report.step.as_ref().map(ToldStep::from),
            from: report.from,
            to: report.to.as_ref().map(|to| Target::new(to, workspace)),
            now: report.now,
            kept: report.kept.iter().map(Left::from).collect(),
            not_restored: report.not_restored.iter().map(Left::from).collect(),
            conflicts: report.conflicts.iter().map(Contested::from).collect(),
            unchanged: report.unchanged,
            tool_calls: names(&report.tool_calls),
            others: report.other_sessions,
            chat: report.chat.as_ref().map(Chat::from),
            running: running(&report.active, workspace),
            session: report.session,
            merged: report.merged.iter().filter_map(Merged::of).collect(),
            restored: report.restored,
            deleted: report.deleted,
            belongs_to: report.belongs_to,
            ..Self::nothing(report.verb, Stage::Done)
        }
    }

    /// Returns what became of a conversation that has no files beside it.
    pub(super) fn of_move(
        verb: Verb,
        session: &SessionId,
        moved: &Move,
        prompt: Option<String>,
    ) -> Self {
        Self {
            step: Some(ToldStep::from(&moved.step)),
            session: Some(session.clone()),
            chat: Some(Chat {
                session: session.clone(),
                from: moved.from,
                to: Some(moved.to),
                prompt,
            }),
            ..Self::nothing(verb, Stage::Done)
        }
    }

    /// Returns whether any path changes, or would.
    pub(super) fn moves_files(&self) -> bool {
        !self.restored.is_empty() || !self.deleted.is_empty() || !self.merged.is_empty()
    }

    /// Returns whether anything moves, or would.
    pub(super) fn moves(&self) -> bool {
        self.moves_files() || self.chat.is_some()
    }

    /// Returns whether nothing of what was asked for could be done.
    pub(super) fn is_futile(&self) -> bool {
        !self.moves() && !self.not_restored.is_empty()
    }

    /// Returns whether there is nothing to tell but that all is as it shall be.
    pub(super) fn is_empty(&self) -> bool {
        !self.moves()
            && self.kept.is_empty()
            && self.not_restored.is_empty()
            && self.belongs_to.is_none()
    }
}

impl Merged {
    fn of(change: &PlannedChange) -> Option<Self> {
        match change.kind {
            PlannedKind::Merge { removed, returned } => Some(Self {
                path: change.path.clone(),
                removed,
                returned,
            }),
            _ => None,
        }
    }
}

fn names(calls: &[ToolUse]) -> Vec<String> {
    calls.iter().map(|call| call.name.to_string()).collect()
}

impl From<&Step> for ToldStep {
    fn from(step: &Step) -> Self {
        Self {
            words: step.to_string(),
            at: step.at,
            json: step_json(step),
        }
    }
}

impl From<&ChatMove> for Chat {
    fn from(chat: &ChatMove) -> Self {
        Self {
            session: chat.session.clone(),
            from: chat.from,
            to: Some(chat.to),
            prompt: chat.prompt.clone(),
        }
    }
}

impl From<&Kept> for Left {
    fn from(kept: &Kept) -> Self {
        Self {
            path: kept.path.clone(),
            why: match kept.because {
                KeptBecause::Conflict => "changed by someone else".to_owned(),
                KeptBecause::BornIgnored => "made while ignore rules named it".to_owned(),
                _ => "kept".to_owned(),
            },
        }
    }
}

impl From<&NotRestored> for Left {
    fn from(left: &NotRestored) -> Self {
        Self {
            path: left.path.clone(),
            why: left.why.clone(),
        }
    }
}

impl From<&Conflict> for Contested {
    fn from(conflict: &Conflict) -> Self {
        Self {
            path: conflict.path.clone(),
            by: match &conflict.changed_by {
                ChangedBy::Session(id) => Some(id.clone()),
                _ => None,
            },
            at: conflict.at,
            unsaved: conflict.unsaved,
            also: conflict.also.clone(),
            merge: conflict.merge.clone(),
        }
    }
}

impl Target {
    fn new(checkpoint: &Checkpoint, workspace: &Workspace) -> Self {
        // The last checkpoint of a turn need not repeat what the turn is about.
        let start = || {
            let start = workspace.checkpoint_by_id(checkpoint.begun_by()?);
            start.ok()??.about()
        };
        let about = checkpoint.about().or_else(start);
        let about = about.as_ref().and_then(About::text);
        let id = checkpoint.id();
        let place = checkpoint.session();
        Self {
            id,
            at: checkpoint.at(),
            words: target_words(
                checkpoint.reason(),
                checkpoint.label(),
                about,
                &id.prefix(8),
            ),
            place: place.map(|place| (place.id.clone(), place.seq)),
        }
    }

    /// Writes it behind `as it was`.
    pub(super) fn when(&self) -> String {
        match self.words.strip_prefix("checkpoint ") {
            Some(name) => format!("at checkpoint {name}"),
            None => self.words.clone(),
        }
    }
}

/// Writes what a checkpoint is, behind `as they were`.
pub(in crate::commands) fn moment_words(checkpoint: &Checkpoint, workspace: &Workspace) -> String {
    Target::new(checkpoint, workspace).when()
}

/// Writes what a checkpoint is, behind `back to`.
fn target_words(
    why: &CheckpointReason,
    label: Option<&str>,
    about: Option<&str>,
    id: &str,
) -> String {
    let brief = |text: &str| one_line(&visible(text), 50);
    if let Some(label) = label {
        return format!("checkpoint \"{}\"", brief(label));
    }
    let about = about.map(brief).filter(|about| !about.is_empty());
    let turn = match &about {
        Some(about) => format!("the turn \"{about}\""),
        None => "a turn".to_owned(),
    };
    let run = match &about {
        Some(about) => format!("the run `{about}`"),
        None => "a run".to_owned(),
    };
    match (why, &about) {
        (CheckpointReason::TurnStart, _) => format!("before {turn}"),
        (CheckpointReason::RunStart, _) => format!("before {run}"),
        (CheckpointReason::TurnEnd, _) => format!("after {turn}"),
        (CheckpointReason::RunEnd, _) => format!("after {run}"),
        (CheckpointReason::ToolEnd, _) => format!("within {turn}"),
        (CheckpointReason::Interrupted, _) => format!("where {turn} broke off"),
        (CheckpointReason::Rewind, Some(about)) => format!("after the rewind {about}"),
        (CheckpointReason::Restore, Some(about)) => format!("after the restore of {about}"),
        (CheckpointReason::Undo | CheckpointReason::Redo, Some(about)) => {
            format!("after the {why} of {about}")
        }
        _ => format!("checkpoint {id}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_called_by_what_happened_there() {
        let words = |reason: CheckpointReason, label, about| {
            target_words(&reason, label, about, "c81f0000")
        };
        let prompt = Some("fix the\nbug");
        assert_eq!(
            words(CheckpointReason::TurnStart, None, prompt),
            "before the turn \"fix the bug\""
        );
        assert_eq!(
            words(CheckpointReason::RunStart, None, Some("make")),
            "before the run `make`"
        );
        assert_eq!(words(CheckpointReason::RunEnd, None, None), "after a run");
        assert_eq!(
            words(CheckpointReason::RunEnd, Some("good"), prompt),
            "checkpoint \"good\""
        );
        assert_eq!(
            words(CheckpointReason::Manual, None, None),
            "checkpoint c81f0000"
        );
        let escape = Some("\u{1b}]0;x\u{7}");
        assert_eq!(
            words(CheckpointReason::TurnEnd, None, escape),
            "after the turn \"^[]0;x^G\""
        );
        assert_eq!(
            words(CheckpointReason::Rewind, None, Some("to before turn 5")),
            "after the rewind to before turn 5"
        );
    }
}
