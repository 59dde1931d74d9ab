//! What a rewind, restore, undo or redo does: the same value for a plan, for what was
//! done, and for what conflicts stopped.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use crate::hex::lossy_path;
use crate::ids::{CheckpointId, SessionId};
use crate::session::{Program, Step};
use crate::time::Timestamp;
#[cfg(feature = "snapshots")]
use crate::workspace::{Activity, SessionPlace, SkippedFiles};

/// What a rewind, restore, undo or redo does, did, or would do.
///
/// [`stage`](Self::stage) says which. As JSON, paths and lines that are not UTF-8 are
/// lossy.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Outcome {
    /// What was asked for.
    pub verb: Verb,
    /// How far it went.
    pub stage: Stage,
    /// The step that is undone or redone. After [`Session::rewind_chat`], the step
    /// that it made.
    ///
    /// [`Session::rewind_chat`]: crate::Session::rewind_chat
    pub step: Option<Step>,
    /// The session that the point or step belongs to.
    pub session: Option<SessionId>,
    /// The checkpoint of the files before it.
    pub from: Option<CheckpointId>,
    /// The point that the files go to; `None` if only the conversation moves.
    #[cfg(feature = "snapshots")]
    pub to: Option<TargetPoint>,
    /// The checkpoint of the files after it; `None` if no file moved.
    pub now: Option<CheckpointId>,
    /// What happens to which paths.
    pub changes: Vec<PathOutcome>,
    /// Paths that stay as they are although they differ from the point.
    pub kept: Vec<Kept>,
    /// Paths that cannot be restored.
    pub not_restored: Vec<NotRestored>,
    /// Paths with changes by others, whatever happens to them.
    pub conflicts: Vec<Conflict>,
    /// How conflicts are treated.
    pub on_conflict: OnConflict,
    /// Whether [`OnConflict::Merge`] would go through and change something in the files that
    /// stop it; `false` if nothing does.
    pub can_merge: bool,
    /// The number of files and links that need no change.
    pub unchanged: u64,
    /// What the point's snapshot skipped.
    #[cfg(feature = "snapshots")]
    pub skipped: SkippedFiles,
    /// The names of the tool calls between the checkpoint and the point. The checkpoint
    /// does not have what they did to files.
    pub tool_calls: Vec<String>,
    /// The names of the tool calls that ran while the call to undo changed files: what is undone
    /// may be theirs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<String>,
    /// Other sessions whose file changes are undone, while their conversations stay.
    pub other_sessions: Vec<SessionId>,
    /// How the conversation moves.
    pub chat: Option<ChatMove>,
    /// The agent that keeps the session, if its conversation stays for that reason.
    pub belongs_to: Option<String>,
    /// The session whose conversation stays because another process is writing to it.
    pub chat_in_use: Option<SessionId>,
    /// The turns and runs in progress in the workspace.
    #[cfg(feature = "snapshots")]
    pub active: Vec<Activity>,
}

/// What happens to a path that others changed too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnConflict {
    /// It stops everything before anything is touched.
    #[default]
    Stop,
    /// It stays as it is, and the rest goes back.
    Keep,
    /// It gets its earlier content; undo restores what it has now.
    Overwrite,
    /// Only the lines to undo go back, and those of others stay. If lines overlap, or
    /// it is not text, it stops everything before anything is touched.
    Merge,
}

/// How far a rewind, restore, undo or redo went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Stage {
    /// It is a plan. Nothing was touched.
    #[default]
    Planned,
    /// Conflicts stopped it. Nothing was touched.
    Stopped,
    /// It is done.
    Done,
}

/// The kind of a step that moves files or the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Verb {
    /// Back to a point.
    #[default]
    Rewind,
    /// Some paths back to a point.
    Restore,
    /// Undoes a step.
    Undo,
    /// Redoes a step that was undone.
    Redo,
}

/// A point that files go to.
#[cfg(feature = "snapshots")]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TargetPoint {
    /// Its checkpoint.
    pub checkpoint: CheckpointId,
    /// When the checkpoint was made.
    pub at: Timestamp,
    /// Where its session was.
    pub session: Option<SessionPlace>,
    /// What it is, after "back to": `before the turn "fix the bug"`.
    pub text: String,
}

/// What happens to one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PathOutcome {
    /// The path, relative to the workspace; the workspace itself is `.`.
    #[serde(serialize_with = "lossy_path")]
    pub path: PathBuf,
    /// What happens to it.
    #[serde(flatten)]
    pub kind: PathOutcomeKind,
    /// Whether it is a directory itself.
    pub is_dir: bool,
}

/// What happens to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum PathOutcomeKind {
    /// It exists and gets its earlier content.
    Restore,
    /// It does not exist and is created again.
    Create,
    /// It is deleted.
    Delete,
    /// Only its mode changes.
    Mode,
    /// Some of its lines change; those of others stay.
    Merge {
        /// How many lines are removed.
        removed: u64,
        /// How many lines return.
        returned: u64,
    },
}

/// A path that others changed too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Conflict {
    /// The path.
    #[serde(serialize_with = "lossy_path")]
    pub path: PathBuf,
    /// The last of the others who changed it.
    pub changed_by: ChangedBy,
    /// The program that may have changed it instead of the user, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub or: Option<Program>,
    /// When that was seen. For a change that no checkpoint has, the file's own time.
    pub at: Timestamp,
    /// Whether no checkpoint has the change yet.
    pub unsaved: bool,
    /// The turn or run to undo that changed it as well, as text.
    pub also: Option<String>,
    /// Whether it was changed while the work to undo was in progress as well, so that it may
    /// be either's.
    pub overlapped: bool,
    /// Whether the file itself was named, which is consent: it is replaced.
    pub named: bool,
    /// What a merge comes to, if one was asked for or conflicts stop it.
    pub merge: Option<Merge>,
}

/// Who changed something.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChangedBy {
    /// The user, or a program that is not recorded.
    Person,
    /// A session.
    Session(SessionId),
    /// A turn or run without a session.
    Run,
}

/// What a merge of one path came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Merge {
    /// The lines are undone, and the lines of others stay.
    Merged,
    /// It has nothing to undo and stays as it is.
    Kept,
    /// It cannot be merged, which stops everything.
    Stopped(Unmerged),
}

/// A path that cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Unmerged {
    /// The reason, in a few words.
    pub reason: String,
    /// The overlapping lines, if they are the reason.
    pub overlaps: Vec<Overlap>,
}

/// Lines to undo that others changed as well, or that are next to such lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Overlap {
    /// The number of the first of these lines once everything later is undone, counted
    /// from 1.
    pub line: u64,
    /// The lines as they are now.
    #[serde(serialize_with = "bytes_text")]
    pub now: Vec<u8>,
    /// The lines as the work to undo left them.
    #[serde(serialize_with = "bytes_text")]
    pub left: Vec<u8>,
    /// The lines as they were before that work.
    #[serde(serialize_with = "bytes_text")]
    pub was: Vec<u8>,
    /// The last turn or run to undo that changed them, as text.
    pub by: Option<String>,
}

/// A path that stays as it is although it differs from the point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Kept {
    /// The path.
    #[serde(serialize_with = "lossy_path")]
    pub path: PathBuf,
    /// The reason.
    pub reason: KeptReason,
}

/// The reason why a path stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum KeptReason {
    /// Others changed it, and conflicts are kept.
    Conflict,
    /// Ignore rules matched it when it was created.
    BornIgnored,
}

/// A path that cannot be restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NotRestored {
    /// The path.
    #[serde(serialize_with = "lossy_path")]
    pub path: PathBuf,
    /// The reason, in a few words.
    pub reason: String,
}

/// How a conversation moves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ChatMove {
    /// The session.
    pub session: SessionId,
    /// The last record before the move.
    pub from: u64,
    /// The last record after it.
    pub to: u64,
    /// The trail that the move began; `None` before it.
    pub trail: Option<u32>,
    /// The first prompt that is undone.
    pub prompt: Option<String>,
}

/// A step that a crash interrupted, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Recovered {
    /// The kind of step.
    pub verb: Verb,
    /// When it began.
    pub begun_at: Timestamp,
    /// The checkpoint of the files now; `None` if the step was given up.
    pub now: Option<CheckpointId>,
    /// Paths that changed since the crash, or cannot be restored, and were left alone.
    pub not_restored: Vec<NotRestored>,
    /// Whether the conversation stayed where it was because it had continued.
    pub chat_continued: bool,
    /// The reason why the step was given up with the files as the crash left them: the
    /// state to go to cannot be read.
    pub abandoned: Option<String>,
}

/// A step that is half done because files could not be changed, path by path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Unfinished {
    /// The kind of step.
    pub verb: Verb,
    /// When it began.
    pub begun_at: Timestamp,
    /// Paths in their new state.
    pub moved: Vec<PathBuf>,
    /// Paths that are as they were before it.
    pub waiting: Vec<PathBuf>,
    /// Paths in neither state: they changed since, or were moved out of the way.
    pub other: Vec<NotRestored>,
}

impl Outcome {
    /// Makes an outcome in which nothing changes.
    pub fn new(verb: Verb, stage: Stage) -> Self {
        Self {
            verb,
            stage,
            ..Self::default()
        }
    }

    /// Returns the paths that are restored or created, or whose mode is restored.
    pub fn restored(&self) -> Vec<&Path> {
        use PathOutcomeKind::{Delete, Merge};
        self.paths(|kind| !matches!(kind, Delete | Merge { .. }))
    }

    /// Returns the paths that are deleted.
    pub fn deleted(&self) -> Vec<&Path> {
        self.paths(|kind| kind == PathOutcomeKind::Delete)
    }

    /// Returns the paths of which only some lines change.
    pub fn merged(&self) -> Vec<&PathOutcome> {
        let is_merge = |one: &&PathOutcome| matches!(one.kind, PathOutcomeKind::Merge { .. });
        self.changes.iter().filter(is_merge).collect()
    }

    fn paths(&self, is_wanted: impl Fn(PathOutcomeKind) -> bool) -> Vec<&Path> {
        let changes = self.changes.iter();
        let wanted = changes.filter(|one| is_wanted(one.kind));
        wanted.map(|one| one.path.as_path()).collect()
    }

    /// Returns whether conflicts stop it: it cannot be done with these options.
    pub fn is_stopped(&self) -> bool {
        self.stopping().next().is_some()
    }

    /// Returns the conflicts that stop it.
    pub fn stopping(&self) -> impl Iterator<Item = &Conflict> {
        let on_conflict = self.on_conflict;
        self.conflicts.iter().filter(move |one| match on_conflict {
            OnConflict::Stop => !one.named,
            OnConflict::Merge => one.is_unmerged(),
            OnConflict::Keep | OnConflict::Overwrite => false,
        })
    }

    /// Returns the conflicts whose changes are replaced because the files were named.
    pub fn replaced(&self) -> impl Iterator<Item = &Conflict> {
        let on_conflict = self.on_conflict;
        let conflicts = self.conflicts.iter();
        conflicts.filter(move |one| one.named && on_conflict == OnConflict::Stop)
    }

    /// Returns whether something that was asked for is not restored.
    pub fn is_partial(&self) -> bool {
        !self.not_restored.is_empty()
    }

    /// Returns whether any path changes.
    pub fn moves_files(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Returns whether any path or the conversation changes.
    pub fn moves(&self) -> bool {
        self.moves_files() || self.chat.is_some()
    }
}

#[cfg(feature = "snapshots")]
impl TargetPoint {
    /// Makes a point without a session.
    pub fn new(checkpoint: CheckpointId, at: Timestamp, text: impl Into<String>) -> Self {
        Self {
            checkpoint,
            at,
            session: None,
            text: text.into(),
        }
    }
}

impl PathOutcome {
    /// Makes the outcome of a file or link.
    pub fn new(path: impl Into<PathBuf>, kind: PathOutcomeKind) -> Self {
        Self {
            path: path.into(),
            kind,
            is_dir: false,
        }
    }
}

impl Kept {
    /// Makes a path that stays as it is.
    pub fn new(path: impl Into<PathBuf>, reason: KeptReason) -> Self {
        Self {
            path: path.into(),
            reason,
        }
    }
}

impl NotRestored {
    const DAMAGED: &str = "damaged";

    /// Makes a path of which the store's copy is damaged.
    pub(super) fn damaged(path: impl Into<PathBuf>) -> Self {
        Self::new(path, Self::DAMAGED)
    }

    /// Returns whether it was not restored because the store's copy is damaged.
    pub fn is_damaged(&self) -> bool {
        self.reason == Self::DAMAGED
    }

    /// Makes a path that cannot be restored.
    pub fn new(path: impl Into<PathBuf>, reason: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            reason: reason.into(),
        }
    }
}

impl ChatMove {
    /// Makes a move that has not begun a trail.
    pub fn new(session: &SessionId, from: u64, to: u64) -> Self {
        Self {
            session: session.clone(),
            from,
            to,
            trail: None,
            prompt: None,
        }
    }
}

impl Unmerged {
    /// Makes a path that cannot be merged.
    pub fn new(reason: impl Into<String>, overlaps: Vec<Overlap>) -> Self {
        Self {
            reason: reason.into(),
            overlaps,
        }
    }
}

impl Overlap {
    /// Makes an overlap at a line: the lines now, as the work to undo left them, and as they
    /// were.
    pub fn new(
        line: u64,
        now: impl Into<Vec<u8>>,
        left: impl Into<Vec<u8>>,
        was: impl Into<Vec<u8>>,
    ) -> Self {
        Self {
            line,
            now: now.into(),
            left: left.into(),
            was: was.into(),
            by: None,
        }
    }
}

impl Recovered {
    /// Makes a step that was given up.
    pub fn new(verb: Verb, begun_at: Timestamp) -> Self {
        Self {
            verb,
            begun_at,
            now: None,
            not_restored: Vec::new(),
            chat_continued: false,
            abandoned: None,
        }
    }
}

impl Verb {
    /// Returns the verb as one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rewind => "rewind",
            Self::Restore => "restore",
            Self::Undo => "undo",
            Self::Redo => "redo",
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Conflict {
    /// Makes a conflict with a change that a checkpoint has.
    pub fn new(path: impl Into<PathBuf>, changed_by: ChangedBy, at: Timestamp) -> Self {
        Self {
            path: path.into(),
            changed_by,
            or: None,
            at,
            unsaved: false,
            also: None,
            overlapped: false,
            named: false,
            merge: None,
        }
    }

    /// Returns the places where the lines of both sides overlap.
    pub fn overlaps(&self) -> &[Overlap] {
        self.unmerged().map_or(&[], |unmerged| &unmerged.overlaps)
    }

    /// Returns whether a merge was asked for and is not possible.
    pub fn is_unmerged(&self) -> bool {
        self.unmerged().is_some()
    }

    /// Returns what kept it from being merged.
    pub fn unmerged(&self) -> Option<&Unmerged> {
        match &self.merge {
            Some(Merge::Stopped(unmerged)) => Some(unmerged),
            _ => None,
        }
    }
}

impl fmt::Display for ChangedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Person => f.write_str("person"),
            Self::Session(id) => f.write_str(id.as_str()),
            Self::Run => f.write_str("run"),
        }
    }
}

impl Serialize for ChangedBy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn bytes_text<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&String::from_utf8_lossy(bytes))
}
