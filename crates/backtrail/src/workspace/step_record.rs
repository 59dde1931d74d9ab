//! The records of a step that changes files.
//!
//! `rewind` is durable before any file is touched, and has everything needed to finish the
//! step; `done` ends it, and is the checkpoint of the files after it; `given_up` ends it if
//! nothing was changed. The process holds the snapshot lock from before the first record
//! until after the last, so a `rewind` without an end was interrupted by a crash.

use serde::{Deserialize, Serialize};

use super::Workspace;
use super::about::Description;
use super::checkpoint::{CheckpointReason, SessionPlace};
use super::checkpoint_record::{CHECKPOINT, CheckpointRecord};
use super::git_head::GitHead;
use crate::error::{Error, ErrorKind, Reason, Result};
use crate::ids::{CheckpointId, SessionId};
use crate::json::body;
use crate::log::{Entry, append_entries};
use crate::objects::ObjectId;
use crate::snapshot::Totals;
use crate::time::Timestamp;
use crate::trail::RecordKind;
use crate::trail::opener::Spot;

const REWIND: &str = "rewind";
const DONE: &str = "done";
const GIVEN_UP: &str = "given_up";

/// The `rewind` record: the beginning of a step that changes files.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StepRecord {
    pub(crate) at: Timestamp,
    /// The id of the step, and of the checkpoint that it ends with.
    pub(crate) id: CheckpointId,
    #[serde(rename = "why")]
    pub(crate) reason: CheckpointReason,
    /// The step that it undoes or redoes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) step: Option<CheckpointId>,
    /// The session whose work it undoes, if it is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) of_session: Option<SessionId>,
    /// The checkpoint of the files before it.
    pub(crate) from: CheckpointId,
    /// The checkpoint that the files are restored to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<CheckpointId>,
    /// The snapshot of the files before it.
    pub(crate) before: ObjectId,
    /// The snapshot of the files after it.
    pub(crate) after: ObjectId,
    /// Whether the workspace's own directory was missing, and is created again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) makes_root: bool,
    /// The move of the conversation, if it moves with the files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) chat: Option<ChatMoveRecord>,
    /// A short description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) about: Option<String>,
    /// The message whose first line follows `about`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) prompt: Option<SessionPlace>,
    /// What it undid, if it kept other changes to the same paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) merge: Option<MergeRecord>,
}

/// What a merge undid: the work of some authors after one checkpoint and up to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MergeRecord {
    #[serde(rename = "whose")]
    pub(crate) authors: MergedWork,
    pub(crate) since: CheckpointId,
    /// `None` for up to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<CheckpointId>,
}

/// The authors whose work a merge undid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MergedWork {
    /// The step's session, with its sub-agents.
    Session,
    /// Every session.
    Sessions,
    /// Everything in checkpoints.
    Everyone,
    /// The move that ended with `since`.
    Move,
    /// A value that only a newer version knows.
    #[serde(other)]
    Other,
}

/// The move of a conversation together with the files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChatMoveRecord {
    pub(crate) session: SessionId,
    /// The last record before the move.
    pub(crate) from: TrailPlace,
    /// The record that it continues from.
    pub(crate) to: TrailPlace,
    /// The trail that it continues in.
    pub(crate) trail: u32,
}

/// A place on a session's trail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TrailPlace {
    pub(crate) trail: u32,
    pub(crate) seq: u64,
}

impl TrailPlace {
    pub(crate) fn of(self, session: &SessionId) -> SessionPlace {
        SessionPlace {
            id: session.clone(),
            trail: self.trail,
            seq: self.seq,
        }
    }
}

impl ChatMoveRecord {
    /// Returns where the conversation was before the move.
    pub(crate) fn place_before(&self) -> SessionPlace {
        self.from.of(&self.session)
    }

    /// Returns where the conversation is after the move.
    pub(crate) fn place_after(&self) -> SessionPlace {
        SessionPlace {
            trail: self.trail,
            ..self.to.of(&self.session)
        }
    }
}

impl From<Spot> for TrailPlace {
    fn from(spot: Spot) -> Self {
        Self {
            trail: spot.trail,
            seq: spot.seq,
        }
    }
}

/// The `given_up` record: the step changed nothing.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct GivenUp {
    at: Timestamp,
    pub(crate) of: CheckpointId,
}

impl StepRecord {
    /// Returns the session that the step belongs to.
    pub(crate) fn session(&self) -> Option<&SessionId> {
        let moved = self.chat.as_ref().map(|chat| &chat.session);
        self.of_session.as_ref().or(moved)
    }

    /// Returns the checkpoint that it ends with.
    pub(crate) fn end(&self, after: (ObjectId, Totals)) -> CheckpointRecord {
        CheckpointRecord {
            about: self.about.clone(),
            prompt: self.prompt.clone(),
            ..CheckpointRecord::new((self.at, self.id), self.reason.clone(), after)
        }
    }

    /// Returns the description in the record.
    pub(crate) fn description(&self) -> Description {
        Description {
            text: self.about.clone(),
            prompt: self.prompt.clone(),
        }
    }
}

impl Workspace {
    /// Records that a step begins, after the checkpoint of the files before it if that is not on
    /// the trail yet. It is durable when this returns.
    pub(crate) fn begin_step(
        &self,
        before: Option<&CheckpointRecord>,
        begun: &StepRecord,
    ) -> Result<()> {
        let before = before.map(body).transpose()?;
        let begun = body(begun)?;
        let entry = |kind, body| Entry { kind, body };
        let mut entries = Vec::new();
        entries.extend(before.as_ref().map(|before| entry(CHECKPOINT, before)));
        entries.push(entry(REWIND, &begun));
        append_entries(self.store(), self.files(), &entries).map(drop)
    }

    /// Records that a step is complete.
    pub(crate) fn end_step(&self, ended: &CheckpointRecord) -> Result<()> {
        let ended = CheckpointRecord {
            at: self.store().now(),
            git: GitHead::read(self.root()),
            ..ended.clone()
        };
        self.append(DONE, &ended).map(drop)
    }

    /// Records that a step was abandoned and nothing was changed.
    pub(crate) fn give_up_step(&self, begun: &StepRecord) -> Result<()> {
        let given_up = GivenUp {
            at: self.store().now(),
            of: begun.id,
        };
        self.append(GIVEN_UP, &given_up).map(drop)
    }

    /// Returns the last step, if it did not end. A running one looks the same: only the
    /// holder of the snapshot lock can tell.
    pub(crate) fn open_step(&self) -> Result<Option<StepRecord>> {
        let Some(mut back) = self.records_back()? else {
            return Ok(None);
        };
        while let Some(record) = back.next()? {
            match record.kind() {
                RecordKind::Rewind => {
                    let begun = record.parse().map(Some);
                    return begun.map_err(|reason| self.unreadable_step(record.seq(), reason));
                }
                // Nothing else is appended during a step.
                RecordKind::Note
                | RecordKind::Dropped
                | RecordKind::Mark
                | RecordKind::MarksCleared
                | RecordKind::Bound
                | RecordKind::Missed => {}
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    fn unreadable_step(&self, seq: u64, reason: Reason) -> Error {
        let what = format!("record {seq} of the workspace, of an interrupted step, cannot be read");
        Error::new(ErrorKind::Corrupt, what)
            .with_reason(reason)
            .at_path(self.files().path())
    }
}
