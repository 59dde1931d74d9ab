//! What a checkpoint says.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Workspace;
use super::let_go::LetGo;
use crate::error::Result;
use crate::ids::{CheckpointId, SessionId};
use crate::objects::ObjectId;
use crate::snapshot::{Diff, SkippedEntry, Snapshot};
use crate::time::Timestamp;

/// The state of a workspace at a moment, and why it was kept.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    pub(crate) workspace: Workspace,
    pub(super) seq: u64,
    pub(super) id: CheckpointId,
    pub(super) at: Timestamp,
    pub(super) why: Why,
    pub(super) session: Option<SessionPlace>,
    pub(super) of: Option<CheckpointId>,
    pub(super) label: Option<String>,
    /// A command, or what a step did; in a turn of an earlier version the prompt.
    pub(super) about: Option<String>,
    /// The message that a turn began with, or that the text ends with.
    pub(super) prompt: Option<SessionPlace>,
    pub(super) snapshot: ObjectId,
    pub(super) files: u64,
    pub(super) bytes: u64,
    pub(super) changed: u64,
    pub(super) not_captured: NotCaptured,
}

/// Why a checkpoint was made.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Why {
    /// Somebody asked for it.
    Manual,
    /// A turn began.
    TurnStart,
    /// A turn ended.
    TurnEnd,
    /// A tool call of a turn ended.
    ToolEnd,
    /// A command began.
    RunStart,
    /// A command ended.
    RunEnd,
    /// A turn was given up before it ended.
    Interrupted,
    /// Files were about to be taken back, or brought forward again.
    BeforeRewind,
    /// Files were taken back to a point.
    Rewind,
    /// Some paths were taken back to a point.
    Restore,
    /// A step was taken back.
    Undo,
    /// A step was brought forward again.
    Redo,
    /// Another reason, from a newer version.
    #[serde(untagged)]
    Other(String),
}

impl Why {
    /// Returns the reason as it is written.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Manual => "manual",
            Self::TurnStart => "turn-start",
            Self::TurnEnd => "turn-end",
            Self::ToolEnd => "tool-end",
            Self::RunStart => "run-start",
            Self::RunEnd => "run-end",
            Self::Interrupted => "interrupted",
            Self::BeforeRewind => "before-rewind",
            Self::Rewind => "rewind",
            Self::Restore => "restore",
            Self::Undo => "undo",
            Self::Redo => "redo",
            Self::Other(name) => name,
        }
    }

    /// Returns whether a turn or run begins with it.
    pub(crate) fn begins(&self) -> bool {
        matches!(self, Self::TurnStart | Self::RunStart)
    }

    /// Returns whether Backtrail itself had moved files.
    pub(crate) fn moved(&self) -> bool {
        matches!(self, Self::Rewind | Self::Restore | Self::Undo | Self::Redo)
    }

    /// Returns whether a turn or run ends with it.
    pub(crate) fn ends(&self) -> bool {
        matches!(self, Self::TurnEnd | Self::RunEnd | Self::Interrupted)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A place in a session: its last record when the checkpoint was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SessionPlace {
    /// The session.
    pub id: SessionId,
    /// The trail that was its head.
    pub trail: u32,
    /// The record that was its last; 0 where there was none.
    pub seq: u64,
}

/// What a snapshot saw and did not capture.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NotCaptured {
    /// How many entries.
    pub count: u64,
    /// The first few of them.
    pub first: Vec<SkippedEntry>,
}

impl Checkpoint {
    /// Returns the checkpoint's id.
    pub fn id(&self) -> CheckpointId {
        self.id
    }

    /// Returns its number on the workspace's trail.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Returns when it was made.
    pub fn at(&self) -> Timestamp {
        self.at
    }

    /// Returns why it was made.
    pub fn why(&self) -> &Why {
        &self.why
    }

    /// Returns the place in a session that it belongs to.
    pub fn session(&self) -> Option<&SessionPlace> {
        self.session.as_ref()
    }

    /// Returns the checkpoint that the same turn or run began with, where this is
    /// a later one of it, or where another begins within it.
    pub fn begun_by(&self) -> Option<CheckpointId> {
        self.of
    }

    /// Returns the name that the caller gave it.
    pub fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// Returns the name of the snapshot.
    pub fn snapshot_id(&self) -> ObjectId {
        self.snapshot
    }

    /// Returns how many files and links were captured.
    pub fn files(&self) -> u64 {
        self.files
    }

    /// Returns how many bytes those files have.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns how many paths changed since the checkpoint before it.
    pub fn changed(&self) -> u64 {
        self.changed
    }

    /// Returns what was seen and not captured.
    pub fn not_captured(&self) -> &NotCaptured {
        &self.not_captured
    }

    /// Opens the snapshot. Fails with [`LetGo`](crate::ErrorKind::LetGo) where its
    /// files were let go.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.workspace.must_be_kept(self.id)?;
        self.workspace.open_snapshot(&self.snapshot)
    }

    /// Returns when and why its files were let go, if they were.
    pub fn let_go(&self) -> Result<Option<LetGo>> {
        self.workspace.let_go_of(self.id)
    }

    /// Returns what changed since the checkpoint before it; nothing for the first.
    pub fn changes_before(&self) -> Result<Diff> {
        self.changes_from(self.workspace.checkpoint_before(self.seq)?)
    }

    /// Returns what changed: since its turn or run began, else since the
    /// checkpoint before it.
    pub fn changes(&self) -> Result<Diff> {
        match self.of.filter(|_| !self.why.begins()) {
            Some(start) => self.changes_from(self.workspace.checkpoint_by_id(start)?),
            None => self.changes_before(),
        }
    }

    fn changes_from(&self, before: Option<Self>) -> Result<Diff> {
        let after = self.snapshot()?;
        match before {
            Some(before) => before.snapshot()?.diff(&after),
            None => after.diff(&after),
        }
    }
}
