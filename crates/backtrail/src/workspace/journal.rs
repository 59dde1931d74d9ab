//! How a step that moves files stands on its workspace's trail.
//!
//! `rewind` is there before anything is touched and says all that is needed to carry
//! the step forward; `done` ends it, and is the checkpoint of the files as they are
//! then; `given_up` ends it where everything is as it was. Whoever does it holds the
//! snapshot lock from before the first of them to the last, so a `rewind` without an
//! end is one that a crash interrupted.

use serde::{Deserialize, Serialize};

use super::Workspace;
use super::about::Description;
use super::checkpoint::{NotCaptured, SessionPlace, Why};
use super::stored::{CHECKPOINT, Stored};
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

/// A step that moves files, as it was begun.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Begun {
    pub(crate) at: Timestamp,
    /// The id of the step, and of the checkpoint that it ends with.
    pub(crate) id: CheckpointId,
    pub(crate) why: Why,
    /// The step that it takes back or brings forward again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) step: Option<CheckpointId>,
    /// The session whose work it takes back, where it is one's alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) of_session: Option<SessionId>,
    /// The checkpoint of the files before it.
    pub(crate) from: CheckpointId,
    /// The checkpoint that they go to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<CheckpointId>,
    /// The snapshot of the files before it.
    pub(crate) before: ObjectId,
    /// The snapshot of what they become.
    pub(crate) after: ObjectId,
    /// Whether the workspace's own directory is gone, and is made again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) makes_root: bool,
    /// How the conversation moves with them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) chat: Option<BegunChat>,
    /// What it does, in a few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) about: Option<String>,
    /// The message that those words end with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) prompt: Option<SessionPlace>,
    /// What it took back where it kept what others did to the same paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) merge: Option<BegunMerge>,
}

/// What a merge took back: what some did after one checkpoint and up to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BegunMerge {
    #[serde(rename = "whose")]
    pub(crate) authors: MergedWork,
    pub(crate) since: CheckpointId,
    /// Up to the end where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<CheckpointId>,
}

/// Whose work a merge took back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MergedWork {
    /// That of the step's session, with its sub-agents.
    Session,
    /// That of every session.
    Sessions,
    /// Everything that was saved.
    Everyone,
    /// What the move that ended with `since` did.
    Move,
    /// A newer version's.
    #[serde(other)]
    Other,
}

/// How a conversation moves with the files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BegunChat {
    pub(crate) session: SessionId,
    /// Where it stood.
    pub(crate) from: TrailPlace,
    /// Where it goes on from.
    pub(crate) to: TrailPlace,
    /// The trail that it goes on in.
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

/// The record that a step was given up.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct GivenUp {
    at: Timestamp,
    pub(crate) of: CheckpointId,
}

/// What ends a step.
#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) snapshot: ObjectId,
    pub(crate) totals: Totals,
    pub(crate) not_captured: NotCaptured,
    pub(crate) changed: u64,
    /// Where the conversation stands, if it moved with the files.
    pub(crate) session: Option<SessionPlace>,
}

impl Begun {
    /// Returns the session that the step belongs to.
    pub(crate) fn session(&self) -> Option<&SessionId> {
        let moved = self.chat.as_ref().map(|chat| &chat.session);
        self.of_session.as_ref().or(moved)
    }

    /// Returns what it does, as it is said on the trail.
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
    /// Says that a step begins, behind the checkpoint of the files before it, if
    /// that is not on the trail yet. Durable when it returns.
    pub(crate) fn begin_step(&self, before: Option<&Stored>, begun: &Begun) -> Result<()> {
        let before = before.map(Stored::body).transpose()?;
        let begun = body(begun)?;
        let entry = |kind, body| Entry { kind, body };
        let mut entries = Vec::new();
        entries.extend(before.as_ref().map(|before| entry(CHECKPOINT, before)));
        entries.push(entry(REWIND, &begun));
        append_entries(self.store(), self.files(), &entries).map(drop)
    }

    /// Says that a step is done.
    pub(crate) fn end_step(&self, begun: &Begun, ending: Ending) -> Result<()> {
        let stored = Stored {
            at: self.store().now(),
            id: begun.id,
            why: begun.why.clone(),
            session: ending.session,
            of: None,
            label: None,
            about: begun.about.clone(),
            prompt: begun.prompt.clone(),
            snapshot: ending.snapshot,
            files: ending.totals.files,
            bytes: ending.totals.bytes,
            changed: ending.changed,
            not_captured: ending.not_captured,
        };
        let body = stored.body()?;
        let entry = Entry {
            kind: DONE,
            body: &body,
        };
        append_entries(self.store(), self.files(), &[entry]).map(drop)
    }

    /// Says that a step was given up, and everything is as it was.
    pub(crate) fn give_up_step(&self, begun: &Begun) -> Result<()> {
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

    /// Returns the step that was begun last and did not end. One that is under way
    /// looks the same: only who holds the snapshot lock knows.
    pub(crate) fn open_step(&self) -> Result<Option<Begun>> {
        let mut back = match self.trail().records_back() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            back => back?,
        };
        while let Some(record) = back.next()? {
            match record.kind() {
                RecordKind::Rewind => {
                    return match Begun::read(&record) {
                        Ok(begun) => Ok(Some(begun)),
                        Err(reason) => Err(self.unreadable_step(record.seq(), reason)),
                    };
                }
                // Nothing else is appended while a step is under way.
                RecordKind::Note
                | RecordKind::LetGo
                | RecordKind::Mark
                | RecordKind::MarksCleared => {}
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    fn unreadable_step(&self, seq: u64, reason: Reason) -> Error {
        let what = format!(
            "record {seq} of the workspace says that files were being moved, and cannot be read"
        );
        Error::new(ErrorKind::Corrupt, what)
            .with_reason(reason)
            .at_path(self.files().path())
    }
}
