//! The records of a step that moves files.
//!
//! `rewind` is durable before any file is touched, and has all that is needed to finish the
//! step; `done` ends it, and is the checkpoint of the files after it; `given_up` ends it
//! where nothing was changed. The process holds the snapshot lock from before the first of
//! them to the last, so a `rewind` without an end was interrupted by a crash.

use serde::{Deserialize, Serialize};

use super::Workspace;
use super::about::Description;
use super::checkpoint::{CheckpointReason, SessionPlace, SkippedFiles};
use super::checkpoint_record::{CHECKPOINT, CheckpointRecord};
use crate::error::{Error, ErrorKind, Reason, Result};
use crate::ids::{CheckpointId, SessionId};
use crate::json::write_fields;
use crate::log::{Entry, append_entries};
use crate::objects::ObjectId;
use crate::snapshot::Totals;
use crate::time::Timestamp;
use crate::trail::opener::Spot;
use crate::trail::{RecordKind, RecordRef};

const REWIND: &str = "rewind";
const DONE: &str = "done";
const GIVEN_UP: &str = "given_up";

/// The `rewind` record: a step that moves files, as it was begun.
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
    /// The session whose work it undoes, where it is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) of_session: Option<SessionId>,
    /// The checkpoint of the files before it.
    pub(crate) from: CheckpointId,
    /// The checkpoint that the files go to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<CheckpointId>,
    /// The snapshot of the files before it.
    pub(crate) before: ObjectId,
    /// The snapshot of the files after it.
    pub(crate) after: ObjectId,
    /// Whether the workspace's own directory is gone, and is created again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) makes_root: bool,
    /// How the conversation moves with the files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) chat: Option<ChatMoveRecord>,
    /// What it does, in a few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) about: Option<String>,
    /// The message whose first line follows `about`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) prompt: Option<SessionPlace>,
    /// What it undid, where it kept other changes to the same paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) merge: Option<MergeRecord>,
}

/// What a merge undid: the work of some after one checkpoint and up to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MergeRecord {
    #[serde(rename = "whose")]
    pub(crate) authors: MergedWork,
    pub(crate) since: CheckpointId,
    /// `None` for up to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<CheckpointId>,
}

/// Whose work a merge undid.
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

/// How a conversation moves with the files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChatMoveRecord {
    pub(crate) session: SessionId,
    /// Its last record before.
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

/// The end of a step.
#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) snapshot: ObjectId,
    pub(crate) totals: Totals,
    pub(crate) skipped: SkippedFiles,
    pub(crate) changed: u64,
    /// The last record of the conversation, if it moved with the files.
    pub(crate) session: Option<SessionPlace>,
}

impl StepRecord {
    /// Returns the session that the step belongs to.
    pub(crate) fn session(&self) -> Option<&SessionId> {
        let moved = self.chat.as_ref().map(|chat| &chat.session);
        self.of_session.as_ref().or(moved)
    }

    /// Returns what it does, as the record describes it.
    pub(crate) fn description(&self) -> Description {
        Description {
            text: self.about.clone(),
            prompt: self.prompt.clone(),
        }
    }

    /// Reads the record of a step.
    pub(crate) fn read(record: &RecordRef<'_>) -> Result<Self, Reason> {
        serde_json::from_slice(record.bytes()).map_err(|error| Reason::Syntax(error.to_string()))
    }
}

pub(super) fn body(value: &impl Serialize) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    write_fields(&mut body, value).map_err(|error| {
        let reason = Reason::Syntax(error.to_string());
        Error::invalid("cannot write the record").with_reason(reason)
    })?;
    Ok(body)
}

impl Workspace {
    /// Records that a step begins, after the checkpoint of the files before it where that is
    /// not on the trail yet. Durable when it returns.
    pub(crate) fn begin_step(
        &self,
        before: Option<&CheckpointRecord>,
        begun: &StepRecord,
    ) -> Result<()> {
        let before = before.map(CheckpointRecord::body).transpose()?;
        let begun = body(begun)?;
        let entry = |kind, body| Entry { kind, body };
        let mut entries = Vec::new();
        entries.extend(before.as_ref().map(|before| entry(CHECKPOINT, before)));
        entries.push(entry(REWIND, &begun));
        append_entries(self.store(), self.files(), &entries).map(drop)
    }

    /// Records that a step is done.
    pub(crate) fn end_step(&self, begun: &StepRecord, ending: Ending) -> Result<()> {
        let stored = CheckpointRecord {
            at: self.store().now(),
            id: begun.id,
            reason: begun.reason.clone(),
            session: ending.session,
            of: None,
            label: None,
            about: begun.about.clone(),
            prompt: begun.prompt.clone(),
            snapshot: ending.snapshot,
            files: ending.totals.files,
            bytes: ending.totals.bytes,
            changed: ending.changed,
            skipped: ending.skipped,
        };
        let body = stored.body()?;
        let entry = Entry {
            kind: DONE,
            body: &body,
        };
        append_entries(self.store(), self.files(), &[entry]).map(drop)
    }

    /// Records that a step was given up and nothing was changed.
    pub(crate) fn give_up_step(&self, begun: &StepRecord) -> Result<()> {
        let body = body(&GivenUp {
            at: self.store().now(),
            of: begun.id,
        })?;
        let entry = Entry {
            kind: GIVEN_UP,
            body: &body,
        };
        append_entries(self.store(), self.files(), &[entry]).map(drop)
    }

    /// Returns the last step, if it did not end. A running one looks the same: only the
    /// holder of the snapshot lock knows.
    pub(crate) fn open_step(&self) -> Result<Option<StepRecord>> {
        let mut back = match self.trail().records_back() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            back => back?,
        };
        while let Some(record) = back.next()? {
            match record.kind() {
                RecordKind::Rewind => {
                    return match StepRecord::read(&record) {
                        Ok(begun) => Ok(Some(begun)),
                        Err(reason) => Err(self.unreadable_step(record.seq(), reason)),
                    };
                }
                // Nothing else is appended during a step.
                RecordKind::Note
                | RecordKind::Dropped
                | RecordKind::Mark
                | RecordKind::MarksCleared => {}
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    fn unreadable_step(&self, seq: u64, reason: Reason) -> Error {
        let what = format!(
            "record {seq} of the workspace, of a step that was moving files, cannot be read"
        );
        Error::new(ErrorKind::Corrupt, what)
            .with_reason(reason)
            .at_path(self.files().path())
    }
}
