//! A move as JSON.

use std::path::{Path, PathBuf};

use backtrail::{Merge, Step, StepKind, Verb};
use serde_json::{Value, json};

use super::outcome::{Contested, Left, Outcome, Stage};

impl Outcome {
    /// Writes it as data. Where a conflict stopped it, nothing was restored and
    /// nothing deleted.
    pub(super) fn to_json(&self) -> Value {
        let stopped = self.stage == Stage::InConflict;
        let touched = |paths: &[PathBuf]| match stopped {
            true => Vec::new(),
            false => paths.iter().map(|path| text(path)).collect::<Vec<_>>(),
        };
        let left = |left: &[Left]| left.iter().map(|one| text(&one.path)).collect::<Vec<_>>();
        let reasons = self.kept.iter().chain(&self.not_restored);
        json!({
            "session": self.session,
            "from": self.from,
            "to": self.to.as_ref().map(|to| to.id),
            "restored": touched(&self.restored),
            "merged": self.merged.iter().filter(|_| !stopped).map(|one| json!({
                "path": text(&one.path),
                "removed": one.removed,
                "returned": one.returned,
            })).collect::<Vec<_>>(),
            "deleted": touched(&self.deleted),
            "kept": left(&self.kept),
            "conflicts": self.conflicts.iter().map(Contested::to_json).collect::<Vec<_>>(),
            "not_restored": left(&self.not_restored),
            "verb": verb_name(self.verb),
            "dry_run": self.stage == Stage::Planned,
            "moved": self.stage == Stage::Done && self.moves(),
            "now": self.now,
            "unchanged": self.unchanged,
            "chat": self.chat.as_ref().filter(|_| !stopped).map(|chat| json!({
                "session": chat.session,
                "from": chat.from,
                "to": chat.to,
                "prompt": chat.prompt,
            })),
            "step": self.step.as_ref().map(|step| &step.json),
            "reasons": reasons.map(|one| json!({
                "path": text(&one.path),
                "why": one.why,
            })).collect::<Vec<_>>(),
            "tool_calls": self.tool_calls,
            "belongs_to": self.belongs_to,
            "other_sessions": self.others,
        })
    }
}

impl Contested {
    fn to_json(&self) -> Value {
        json!({
            "path": text(&self.path),
            "changed_by": self.by.as_ref().map_or("person", |id| id.as_str()),
            "at": self.at,
            "unsaved": self.unsaved,
            "also": self.also,
            "merge": self.merge.as_ref().map(merge_json),
        })
    }
}

/// Writes what a merge of one path came to; lines are plain text, lossy where they are
/// not UTF-8.
fn merge_json(merge: &Merge) -> Value {
    let (outcome, unmerged) = match merge {
        Merge::Merged => ("merged", None),
        Merge::Stopped(unmerged) => ("stopped", Some(unmerged)),
        _ => ("kept", None),
    };
    let lines = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let overlaps = unmerged.into_iter().flat_map(|unmerged| &unmerged.overlaps);
    json!({
        "outcome": outcome,
        "why": unmerged.map(|unmerged| &unmerged.why),
        "overlaps": overlaps.map(|overlap| json!({
            "line": overlap.line,
            "now": lines(&overlap.now),
            "left": lines(&overlap.left),
            "was": lines(&overlap.was),
            "by": overlap.by,
        })).collect::<Vec<_>>(),
    })
}

/// Writes a path as plain text; what is not UTF-8 in it is lost.
fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Writes a kind of step as one word.
pub(in crate::commands) fn verb_name(verb: Verb) -> &'static str {
    match verb {
        Verb::Rewind => "rewind",
        Verb::Restore => "restore",
        Verb::Undo => "undo",
        Verb::Redo => "redo",
        _ => "move",
    }
}

pub(in crate::commands) fn step_json(step: &Step) -> Value {
    let mut value = json!({
        "kind": step.kind.as_str(),
        "words": step.to_string(),
        "at": step.at,
    });
    match &step.kind {
        StepKind::Rewind { from, to } => {
            value["from"] = (*from).into();
            value["to"] = (*to).into();
        }
        StepKind::Compaction {
            seq,
            count,
            removed_message_count,
        } => {
            value["seq"] = (*seq).into();
            value["count"] = (*count).into();
            value["removed_message_count"] = (*removed_message_count).into();
        }
        _ => {}
    }
    value
}
