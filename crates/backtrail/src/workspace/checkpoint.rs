//! A checkpoint.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

use super::Workspace;
use super::about::About;
use super::agent_place::{AgentPlace, prompt_hash};
use super::checkpoint_record::CheckpointRecord;
use super::dropped::Dropped;
use super::git_head::GitHead;
use super::left_running::{LeftProcess, without_name};
use super::unprotected::{Included, Protection, UnprotectedChanges};
use crate::error::{ErrorKind, Result};
use crate::ids::{CheckpointId, SessionId};
use crate::objects::ObjectId;
use crate::session::{Ending, Program, Run};
use crate::snapshot::damage::{DamagedPart, name_damage};
use crate::snapshot::{Diff, SkippedEntry, Snapshot};
use crate::time::Timestamp;

/// How many records may be between a run's last checkpoint and its own.
const MAX_NOTES: u64 = 16;

/// The state of a workspace at a moment, and the reason for saving it.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    pub(crate) workspace: Workspace,
    pub(super) seq: u64,
    pub(crate) record: CheckpointRecord,
    /// Known only to the handle that made it.
    pub(super) protection: Option<Arc<Protection>>,
}

/// The reason for a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CheckpointReason {
    /// It was requested.
    #[default]
    Manual,
    /// The first state of a workspace, saved before an agent begins to work.
    First,
    /// A turn began.
    TurnStart,
    /// A turn ended.
    TurnEnd,
    /// A tool call of a turn is about to begin.
    ToolStart,
    /// A tool call of a turn ended.
    ToolEnd,
    /// A command began.
    RunStart,
    /// A command ended.
    RunEnd,
    /// A turn or run was interrupted.
    Interrupted,
    /// A turn that was interrupted continued.
    TurnResume,
    /// A rewind, restore, undo or redo was about to change files.
    BeforeRewind,
    /// Files were rewound to a point.
    Rewind,
    /// Some paths were restored from a point.
    Restore,
    /// A step was undone.
    Undo,
    /// A step was redone.
    Redo,
    /// A reason that only a newer version knows.
    #[serde(untagged)]
    Other(String),
}

impl CheckpointReason {
    /// Returns the reason as it is stored.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Manual => "manual",
            Self::First => "first",
            Self::TurnStart => "turn-start",
            Self::TurnEnd => "turn-end",
            Self::ToolStart => "tool-start",
            Self::ToolEnd => "tool-end",
            Self::RunStart => "run-start",
            Self::RunEnd => "run-end",
            Self::Interrupted => "interrupted",
            Self::TurnResume => "turn-resume",
            Self::BeforeRewind => "before-rewind",
            Self::Rewind => "rewind",
            Self::Restore => "restore",
            Self::Undo => "undo",
            Self::Redo => "redo",
            Self::Other(name) => name,
        }
    }

    /// Returns whether it begins a turn or run.
    pub(crate) fn begins(&self) -> bool {
        matches!(self, Self::TurnStart | Self::RunStart)
    }

    /// Returns whether Backtrail itself changed files.
    pub(crate) fn moved(&self) -> bool {
        matches!(self, Self::Rewind | Self::Restore | Self::Undo | Self::Redo)
    }

    /// Returns whether it ends a turn or run.
    pub(crate) fn ends(&self) -> bool {
        matches!(self, Self::TurnEnd | Self::RunEnd | Self::Interrupted)
    }
}

impl fmt::Display for CheckpointReason {
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
    /// Its newest trail.
    pub trail: u32,
    /// Its last record; 0 if there was none.
    pub seq: u64,
}

/// What a snapshot skipped.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SkippedFiles {
    /// How many entries were skipped.
    pub count: u64,
    /// The first few of them.
    pub first: Vec<SkippedEntry>,
}

impl Checkpoint {
    /// Returns the checkpoint's id.
    pub fn id(&self) -> CheckpointId {
        self.record.id
    }

    /// Returns the seq of its record on the workspace's trail.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Returns when it was made.
    pub fn at(&self) -> Timestamp {
        self.record.at
    }

    /// Returns the reason for it.
    pub fn reason(&self) -> &CheckpointReason {
        &self.record.reason
    }

    /// Returns whether the user asked for it: no session, no run and no rewind did.
    pub(crate) fn is_users(&self) -> bool {
        *self.reason() == CheckpointReason::Manual && self.session().is_none()
    }

    /// Returns when a process that died was last alive, if this ends its turn or run. What
    /// changed since may be the user's.
    pub fn last_seen(&self) -> Option<Timestamp> {
        self.record.last_seen
    }

    /// Returns the place in a session that it belongs to.
    pub fn session(&self) -> Option<&SessionPlace> {
        self.record.session.as_ref()
    }

    /// Returns the place in the session of another program that it was made for.
    pub fn agent(&self) -> Option<&AgentPlace> {
        self.record.agent.as_ref()
    }

    /// Returns what the tool call is called that it is for.
    pub(crate) fn tool_name(&self) -> String {
        let tool = self.agent().and_then(|agent| agent.tool.as_deref());
        tool.unwrap_or("a tool call").to_owned()
    }

    /// Returns what began with it.
    pub(crate) fn program(&self) -> Program {
        match (self.agent(), self.reason()) {
            (Some(agent), _) => Program::Agent(agent.name.clone()),
            (None, CheckpointReason::RunStart) => Program::Run,
            (None, _) => Program::Turn,
        }
    }

    /// Returns whether the files may have changed between its record and the snapshot. Then it
    /// is not the state of the files at that record.
    pub fn is_late(&self) -> bool {
        self.record.late
    }

    /// Returns whether a text is the prompt that its turn began with; `None` if that is not
    /// known.
    pub fn is_prompted_by(&self, text: &str) -> Option<bool> {
        let hash = self.agent()?.prompt.as_ref()?;
        Some(*hash == prompt_hash(self.id(), text))
    }

    /// Returns the checkpoint that its turn or run began with, unless it is that one; for the
    /// first checkpoint of a nested run, that of the outer one.
    pub fn begun_by(&self) -> Option<CheckpointId> {
        self.record.of
    }

    /// Returns the label.
    pub fn label(&self) -> Option<&str> {
        self.record.label.as_deref()
    }

    /// Returns the label, or the beginning of the id if there is none.
    pub(super) fn name(&self) -> String {
        let label = self.label().map(ToOwned::to_owned);
        label.unwrap_or_else(|| self.id().prefix(8))
    }

    /// Returns the name of the snapshot.
    pub fn snapshot_id(&self) -> ObjectId {
        self.record.snapshot
    }

    /// Returns how many files and links the snapshot has.
    pub fn files(&self) -> u64 {
        self.record.files
    }

    /// Returns the total size of the files in bytes.
    pub fn bytes(&self) -> u64 {
        self.record.bytes
    }

    /// Returns how many paths changed since the checkpoint before it.
    pub fn changed(&self) -> u64 {
        self.record.changed
    }

    /// Returns the files that were skipped.
    pub fn skipped(&self) -> &SkippedFiles {
        &self.record.skipped
    }

    /// Returns the ignored paths that it includes, and later ones do.
    pub fn included(&self) -> &[Included] {
        &self.record.included
    }

    /// Returns what happened to unprotected files in the turn or run that it ends. That
    /// cannot be undone.
    pub fn unprotected(&self) -> &UnprotectedChanges {
        &self.record.unprotected
    }

    /// Returns what it protects and what not, with sizes; `None` if this process did not
    /// make it.
    pub fn protection(&self) -> Option<&Protection> {
        self.protection.as_deref()
    }

    /// Returns git's HEAD when it was made; `None` if there was no repository, or it is not
    /// known.
    pub fn git_head(&self) -> Option<&GitHead> {
        self.record.git.as_ref()
    }

    /// Returns the processes that outlived their run and may have been alive when it was made.
    pub fn left_running(&self) -> &[LeftProcess] {
        &self.record.left
    }

    /// Returns the same as the next checkpoint repeats it, if nobody looks whether they ended.
    pub(crate) fn still_left(&self) -> Vec<LeftProcess> {
        self.record.left.iter().map(without_name).collect()
    }

    /// Returns how the turn or run ended that it is the end of, if that is known.
    pub fn ending(&self) -> Option<Ending> {
        let CheckpointRecord {
            exit_code, signal, ..
        } = self.record;
        match self.reason() {
            CheckpointReason::Interrupted => Some(Ending::Interrupted),
            CheckpointReason::RunEnd if exit_code.is_some() || signal.is_some() => {
                Some(Ending::of_command(exit_code, signal))
            }
            CheckpointReason::RunEnd => self
                .run()
                .map(|run| Ending::of_command(run.exit_code, run.signal)),
            CheckpointReason::TurnEnd => Some(Ending::Done),
            _ => None,
        }
    }

    /// Returns the command that ended with it, if its session has the record.
    fn run(&self) -> Option<Run> {
        let place = self.session()?;
        let reader = self.workspace.store().read_session(&place.id).ok()?;
        // Notes may come first.
        let next = place.seq + 1..=place.seq + MAX_NOTES;
        let runs = next.map_while(|seq| reader.record_at(place.trail, seq).ok().flatten());
        let mut runs = runs.filter_map(|record| record.as_ref().run().ok().flatten());
        runs.find(|run| run.before == self.begun_by())
    }

    /// Opens the snapshot.
    ///
    /// # Errors
    ///
    /// Fails with [`Dropped`](crate::ErrorKind::Dropped) if its files were dropped, and
    /// if the snapshot cannot be read.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.workspace.must_be_kept(self.record.id)?;
        let name = self.name_for_errors();
        match self.workspace.open_snapshot(&self.record.snapshot) {
            Ok(snapshot) => Ok(snapshot.of_checkpoint(&name)),
            Err(error) => {
                let part = DamagedPart::AllNames;
                Err(name_damage(Path::new(""), part, Some(&name), error))
            }
        }
    }

    pub(crate) fn name_for_errors(&self) -> Arc<str> {
        format!("checkpoint {}", self.id().prefix(8)).into()
    }

    /// Returns the mode of the workspace's directory; the usual one if the snapshot is
    /// damaged.
    pub(crate) fn root_mode(&self) -> Result<u32> {
        match self.snapshot() {
            Ok(snapshot) => Ok(snapshot.root().mode),
            Err(error) if error.kind() == ErrorKind::Corrupt => Ok(0o755),
            Err(error) => Err(error),
        }
    }

    /// Returns when and why its files were dropped, if they were.
    ///
    /// # Errors
    ///
    /// Fails if the workspace's trail cannot be read.
    pub fn dropped(&self) -> Result<Option<Dropped>> {
        self.workspace.drop_of(self.record.id)
    }

    /// Returns the changes since the checkpoint before it; none for the first.
    ///
    /// # Errors
    ///
    /// Fails as [`snapshot`](Self::snapshot) does.
    pub fn changes_before(&self) -> Result<Diff> {
        self.changes_from(self.workspace.checkpoint_before(self.seq)?)
    }

    /// Returns the changes since its turn or run began, or else since the checkpoint before
    /// it.
    ///
    /// # Errors
    ///
    /// Fails as [`snapshot`](Self::snapshot) does.
    pub fn changes(&self) -> Result<Diff> {
        match self.begun_by().filter(|_| !self.reason().begins()) {
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

impl Serialize for Checkpoint {
    /// Includes the description, and whether its files were dropped.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Shown<'a> {
            id: CheckpointId,
            at: Timestamp,
            reason: &'a CheckpointReason,
            snapshot: ObjectId,
            session: Option<&'a SessionId>,
            seq: Option<u64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            agent: Option<&'a AgentPlace>,
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            late: bool,
            label: Option<&'a str>,
            files: u64,
            bytes: u64,
            changed: u64,
            skipped: &'a SkippedFiles,
            included: &'a [Included],
            #[serde(skip_serializing_if = "UnprotectedChanges::is_empty")]
            unprotected: &'a UnprotectedChanges,
            #[serde(skip_serializing_if = "Option::is_none")]
            protection: Option<&'a Protection>,
            #[serde(skip_serializing_if = "Option::is_none")]
            about: Option<&'a str>,
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            session_deleted: bool,
            #[serde(skip_serializing_if = "Option::is_none")]
            begun_by: Option<CheckpointId>,
            #[serde(skip_serializing_if = "Option::is_none")]
            dropped: Option<Dropped>,
            #[serde(flatten)]
            ending: Option<Ending>,
            #[serde(skip_serializing_if = "Option::is_none")]
            git: Option<&'a GitHead>,
        }
        let (place, about) = (self.session(), self.about());
        let shown = Shown {
            id: self.id(),
            at: self.at(),
            reason: self.reason(),
            snapshot: self.snapshot_id(),
            session: place.map(|place| &place.id),
            seq: place.map(|place| place.seq),
            agent: self.agent(),
            late: self.is_late(),
            label: self.label(),
            files: self.files(),
            bytes: self.bytes(),
            changed: self.changed(),
            skipped: self.skipped(),
            included: self.included(),
            unprotected: self.unprotected(),
            protection: self.protection(),
            about: about.as_ref().and_then(About::text),
            session_deleted: about == Some(About::SessionDeleted),
            begun_by: self.begun_by(),
            dropped: self.dropped().ok().flatten(),
            ending: self.ending(),
            git: self.git_head(),
        };
        shown.serialize(serializer)
    }
}
