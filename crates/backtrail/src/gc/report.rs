//! Options and reports of a clean-up.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::hex::lossy_path;
use crate::ids::WorkspaceId;
use crate::objects::ObjectId;
use crate::time::Timestamp;
use crate::workspace::DropReason;

/// Options of a clean-up.
///
/// Without a limit no file state is dropped: only objects that no snapshot names are
/// removed.
#[derive(Clone, Default)]
pub struct GcOptions {
    pub(super) older_than: Option<Duration>,
    pub(super) max_size: Option<u64>,
    pub(super) progress: Option<Arc<GcProgress>>,
}

/// Called with how many snapshots were checked, and how many there are.
pub(super) type GcProgress = dyn Fn(u64, u64) + Send + Sync;

impl fmt::Debug for GcOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GcOptions")
            .field("older_than", &self.older_than)
            .field("max_size", &self.max_size)
            .finish_non_exhaustive()
    }
}

impl GcOptions {
    /// Returns options that drop no file state.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns whether file states may be dropped.
    pub(super) fn drops(&self) -> bool {
        self.older_than.is_some() || self.max_size.is_some()
    }

    /// Drops the files of checkpoints that are older than this.
    #[must_use]
    pub fn older_than(mut self, age: Duration) -> Self {
        self.older_than = Some(age);
        self
    }

    /// Sets a function that is called with how many snapshots were checked, and how many there
    /// are. They are checked once or twice.
    #[must_use]
    pub fn progress(mut self, progress: impl Fn(u64, u64) + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(progress));
        self
    }

    /// Drops the files of checkpoints until the store has at most this many bytes: those
    /// around tool calls first, then oldest first.
    #[must_use]
    pub fn max_size(mut self, bytes: u64) -> Self {
        self.max_size = Some(bytes);
        self
    }
}

/// What a clean-up did, or would do.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct GcReport {
    /// Whether this is a plan, and nothing was done.
    pub dry_run: bool,
    /// The dropped file states, by workspace and reason.
    pub dropped: Vec<DroppedStates>,
    /// How many file states are kept.
    pub kept: KeptStates,
    /// How many packs were removed, since nothing in them was needed.
    pub packs_removed: u64,
    /// How many packs were rewritten without what nothing needs.
    pub packs_rewritten: u64,
    /// How many copies of objects were removed.
    pub objects: u64,
    /// How many bytes smaller the packs are.
    pub freed: u64,
    /// How many bytes the store has after it.
    pub store_bytes: u64,
    /// How many bytes the store is over the limit.
    pub over: u64,
    /// How many contents of kept states are not stored; `verify` names them.
    pub missing: u64,
    /// Packs that were not cleaned up.
    pub skipped_packs: Vec<SkippedPack>,
    /// Workspaces in which nothing was dropped.
    pub skipped_workspaces: Vec<SkippedWorkspace>,
}

/// File states of a workspace that were dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DroppedStates {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// Its directory.
    #[serde(serialize_with = "lossy_path")]
    pub root: PathBuf,
    /// Why they were dropped.
    pub reason: DropReason,
    /// How many states there are.
    pub states: u64,
    /// How many checkpoints have them.
    pub checkpoints: u64,
    /// When the oldest of those was made.
    pub oldest: Timestamp,
    /// When the newest of those was made.
    pub newest: Timestamp,
}

/// How many file states are kept, and how many of them are never dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct KeptStates {
    /// How many are kept.
    pub states: u64,
    /// Those of labelled checkpoints.
    pub labelled: u64,
    /// The newest of a session or a workspace.
    pub newest: u64,
    /// Those that a turn, run or step needs now, or that a newer version made.
    pub in_use: u64,
}

/// A pack that was not cleaned up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SkippedPack {
    /// The pack.
    #[serde(serialize_with = "lossy_path")]
    pub file: PathBuf,
    /// An object in it that is damaged and needed, and of which there is no other copy.
    /// `None` where another process was using the pack.
    pub damaged: Option<ObjectId>,
}

/// A workspace in which nothing was dropped, since an interrupted step in it could not be
/// finished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SkippedWorkspace {
    /// The workspace's directory.
    #[serde(serialize_with = "lossy_path")]
    pub root: PathBuf,
    /// What is wrong.
    pub error: String,
}

impl GcReport {
    /// Returns whether there was nothing to do.
    pub fn is_empty(&self) -> bool {
        let packs = self.packs_removed + self.packs_rewritten;
        self.dropped.is_empty() && packs == 0 && self.freed == 0
    }
}
