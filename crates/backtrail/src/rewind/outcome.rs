//! What would be done, and what was done.

use std::fmt;
use std::path::PathBuf;

use super::options::Rewind;
use super::plan::PlannedWork;
use super::target::RewindTarget;
use crate::error::Result;
use crate::ids::{CheckpointId, SessionId};
use crate::message::ToolUse;
use crate::objects::ObjectId;
use crate::session::{Session, Step};
use crate::time::Timestamp;
use crate::workspace::{Activity, Checkpoint, SkippedFiles, Workspace};

/// What kind of step it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verb {
    /// Back to a point.
    Rewind,
    /// Some paths as they were at a point.
    Restore,
    /// A step is taken back.
    Undo,
    /// A step is brought forward again.
    Redo,
}

/// What would become of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedChange {
    /// Where, relative to the workspace; the workspace itself is `.`.
    pub path: PathBuf,
    /// What.
    pub kind: PlannedKind,
    /// Whether it is about a directory itself.
    pub is_dir: bool,
}

/// What would become of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PlannedKind {
    /// It is there, and becomes what it was.
    Restore,
    /// It is not there, and comes back.
    Create,
    /// It goes.
    Delete,
    /// Its mode alone becomes what it was.
    Mode,
    /// Some of its lines become what they were; what others did to it stays.
    Merge {
        /// How many lines go.
        removed: u64,
        /// How many lines come back.
        returned: u64,
    },
}

/// A path that somebody else changed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Conflict {
    /// Where.
    pub path: PathBuf,
    /// Who changed it last, apart from those whose work is taken back.
    pub changed_by: ChangedBy,
    /// When that was seen; for what no checkpoint has, when the file says it changed.
    pub at: Timestamp,
    /// Whether no checkpoint has it yet.
    pub unsaved: bool,
    /// What those whose work is taken back did to it as well: the turn or run.
    pub also: Option<String>,
    /// What a merge came to; `None` where none was asked for.
    pub merge: Option<Merge>,
}

impl Conflict {
    /// Returns the places where lines of both sides overlap.
    pub fn overlaps(&self) -> &[Overlap] {
        match &self.merge {
            Some(Merge::Stopped(unmerged)) => &unmerged.overlaps,
            _ => &[],
        }
    }

    /// Returns whether a merge was asked for, and could not be made.
    pub fn is_unmerged(&self) -> bool {
        matches!(self.merge, Some(Merge::Stopped(_)))
    }
}

/// What a merge of one path came to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Merge {
    /// What is taken back goes, and what others did stays.
    Merged,
    /// There is nothing in it to take back: it stays as it is.
    Kept,
    /// It cannot be done, and stops everything.
    Stopped(Unmerged),
}

/// Why a path cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unmerged {
    /// Why, in a few words.
    pub why: String,
    /// Where lines overlap, if that is why.
    pub overlaps: Vec<Overlap>,
}

/// Lines that would be taken back, and that somebody else changed as well, or lines
/// beside them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Overlap {
    /// The number of the first of these lines, in what is there once all that came
    /// later is taken back: counted from 1.
    pub line: u64,
    /// The lines as they are now.
    pub now: Vec<u8>,
    /// The lines as those whose work is taken back left them.
    pub left: Vec<u8>,
    /// The lines as they were before that.
    pub was: Vec<u8>,
    /// The turn or run that changed them last, in words, of those that are taken back.
    pub by: Option<String>,
}

/// Who changed something.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChangedBy {
    /// The person, or a program that nobody told us of.
    Person,
    /// A session.
    Session(SessionId),
}

/// A path that stays as it is although the point has it otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kept {
    /// Where.
    pub path: PathBuf,
    /// Why.
    pub because: KeptBecause,
}

/// Why a path stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeptBecause {
    /// Somebody else changed it, and it was asked to keep that.
    Conflict,
    /// It came into being while ignore rules named it.
    BornIgnored,
}

/// A path that could not be made what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotRestored {
    /// Where.
    pub path: PathBuf,
    /// Why, in a few words.
    pub why: String,
}

/// How a conversation moves.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChatMove {
    /// The session.
    pub session: SessionId,
    /// The last record before.
    pub from: u64,
    /// The last record after.
    pub to: u64,
    /// The first prompt that is taken back.
    pub prompt: Option<String>,
}

impl fmt::Display for ChangedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Person => f.write_str("person"),
            Self::Session(id) => f.write_str(id.as_str()),
        }
    }
}

/// What would be done. Nothing is touched before it is applied.
#[derive(Debug)]
pub struct RewindPlan {
    pub(super) workspace: Workspace,
    pub(super) target: RewindTarget,
    pub(super) options: Rewind,
    pub(super) planned: PlannedWork,
    pub(super) changes: Vec<PlannedChange>,
    pub(super) skipped: SkippedFiles,
    pub(super) active: Vec<Activity>,
    /// The state of the files that it was made for.
    pub(super) present: Option<ObjectId>,
    /// Who speaks in the session, if this process does.
    pub(super) writer: Option<Session>,
}

impl RewindPlan {
    /// Returns what kind of step it is.
    pub fn verb(&self) -> Verb {
        self.target.verb
    }

    /// Returns the step that is taken back or brought forward again, by undo and
    /// redo.
    pub fn step(&self) -> Option<&Step> {
        self.target.step.as_ref()
    }

    /// Returns the checkpoint whose files shall be there; `None` where only the
    /// conversation moves.
    pub fn to(&self) -> Option<&Checkpoint> {
        self.target
            .to
            .as_ref()
            .filter(|_| self.planned.files.is_some())
    }

    /// Returns the session whose point it is, or whose step.
    pub fn session(&self) -> Option<&SessionId> {
        self.target.session.as_ref()
    }

    /// Returns what would become of which paths.
    pub fn changes(&self) -> &[PlannedChange] {
        &self.changes
    }

    /// Returns the paths that somebody else changed, whatever becomes of them.
    pub fn conflicts(&self) -> &[Conflict] {
        self.planned.conflicts()
    }

    /// Returns whether a conflict stops it: nothing can be done as it is asked for.
    pub fn is_stopped(&self) -> bool {
        self.planned.is_stopped(self.options.on_conflict)
    }

    /// Returns what stays as it is although the point has it otherwise.
    pub fn kept(&self) -> &[Kept] {
        let files = self.planned.files.as_ref();
        files.map_or(&[], |files| &files.actions.kept)
    }

    /// Returns what cannot be made what it was, and why.
    pub fn not_restored(&self) -> &[NotRestored] {
        let files = self.planned.files.as_ref();
        files.map_or(&[], |files| &files.actions.not_restored)
    }

    /// Returns how many files and links are as they shall be already.
    pub fn unchanged(&self) -> u64 {
        self.planned
            .files
            .as_ref()
            .map_or(0, |files| files.unchanged)
    }

    /// Returns what the point's snapshot saw and did not capture.
    pub fn skipped(&self) -> &SkippedFiles {
        &self.skipped
    }

    /// Returns the tool calls between the checkpoint and the point: what they did to
    /// files is not in the checkpoint.
    pub fn tool_calls(&self) -> &[ToolUse] {
        &self.target.tool_calls
    }

    /// Returns the other sessions whose work would be taken back, and whose
    /// conversations would stay.
    pub fn other_sessions(&self) -> &[SessionId] {
        let files = self.planned.files.as_ref();
        files.map_or(&[], |files| &files.others)
    }

    /// Returns how the conversation would move.
    pub fn chat(&self) -> Option<&ChatMove> {
        self.planned.chat.as_ref()
    }

    /// Returns the agent that the session belongs to, where its conversation stays
    /// for that reason.
    pub fn belongs_to(&self) -> Option<&str> {
        self.target.belongs_to.as_deref()
    }

    /// Returns the turns and runs that are under way here now.
    pub fn active(&self) -> &[Activity] {
        &self.active
    }

    /// Returns whether there is nothing to do: all is as it shall be.
    pub fn is_empty(&self) -> bool {
        self.planned.is_empty()
    }

    /// Does it. Refuses, with [`Conflict`](crate::ErrorKind::Conflict), where a
    /// conflict stops it, and where files or conversation moved since the plan was
    /// made; nothing is touched then.
    pub fn apply(self) -> Result<RewindReport> {
        super::api::apply(self)
    }
}

/// What became of an attempt to do it at once.
#[derive(Debug)]
pub enum Attempt {
    /// It is done.
    Done(Box<RewindReport>),
    /// Somebody else changed some of it: nothing was touched.
    InConflict(Box<RewindPlan>),
}

/// What was done.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RewindReport {
    /// What kind of step it was.
    pub verb: Verb,
    /// The step that was taken back or brought forward again.
    pub step: Option<Step>,
    /// The session whose point or step it was.
    pub session: Option<SessionId>,
    /// The checkpoint of the files as they were before.
    pub from: Option<CheckpointId>,
    /// The checkpoint that the files went to.
    pub to: Option<Checkpoint>,
    /// The checkpoint of the files as they are now; `None` where none moved.
    pub now: Option<CheckpointId>,
    /// What was restored, came back, or got its mode back.
    pub restored: Vec<PathBuf>,
    /// What was merged: some lines went or came back, and what others did stayed.
    pub merged: Vec<PlannedChange>,
    /// What went.
    pub deleted: Vec<PathBuf>,
    /// What stayed as it is although the point has it otherwise.
    pub kept: Vec<Kept>,
    /// What could not be made what it was.
    pub not_restored: Vec<NotRestored>,
    /// The paths that somebody else had changed, whatever became of them.
    pub conflicts: Vec<Conflict>,
    /// How many files and links were as they should be already.
    pub unchanged: u64,
    /// The tool calls between the checkpoint and the point.
    pub tool_calls: Vec<ToolUse>,
    /// Other sessions whose work was taken back, and whose conversations stayed.
    pub other_sessions: Vec<SessionId>,
    /// How the conversation moved.
    pub chat: Option<ChatMove>,
    /// The agent that the session belongs to, where its conversation stayed for that
    /// reason.
    pub belongs_to: Option<String>,
    /// The turns and runs that were under way.
    pub active: Vec<Activity>,
}

/// A step that a crash had interrupted, and what became of it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Recovered {
    /// What kind of step it was.
    pub verb: Verb,
    /// When it had begun.
    pub begun_at: Timestamp,
    /// The checkpoint of the files as they are now; `None` where it was given up.
    pub now: Option<CheckpointId>,
    /// What was changed since the interruption, or could not be restored: left alone.
    pub left: Vec<NotRestored>,
    /// Whether the conversation stayed where it was, because it had gone on.
    pub chat_went_on: bool,
    /// Why it was given up with the files as the crash left them: what they were to
    /// become cannot be read any more.
    pub abandoned: Option<String>,
}
