//! What is asked of a clean-up, and what it did.

use std::path::PathBuf;
use std::time::Duration;

use crate::ids::WorkspaceId;
use crate::objects::ObjectId;
use crate::time::Timestamp;
use crate::workspace::LetGoBecause;

/// How a store is cleaned up.
///
/// Without a limit no file state is let go: only objects that no snapshot reaches are
/// removed.
#[derive(Debug, Clone, Default)]
pub struct GcOptions {
    pub(super) older_than: Option<Duration>,
    pub(super) max_size: Option<u64>,
    pub(super) dry_run: bool,
}

impl GcOptions {
    /// Makes options that let go of no file state.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns whether file states may be let go.
    pub(super) fn lets_go(&self) -> bool {
        self.older_than.is_some() || self.max_size.is_some()
    }

    /// Lets go of the files of checkpoints that are older than this.
    #[must_use]
    pub fn older_than(mut self, age: Duration) -> Self {
        self.older_than = Some(age);
        self
    }

    /// Lets go of the files of checkpoints until the store has at most so many bytes:
    /// those around tool calls first, the oldest first.
    #[must_use]
    pub fn max_size(mut self, bytes: u64) -> Self {
        self.max_size = Some(bytes);
        self
    }

    /// Only finds out what would be done.
    #[must_use]
    pub fn dry_run(mut self, dry_run: bool) -> Self {
        self.dry_run = dry_run;
        self
    }
}

/// What a clean-up did, or would do.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct GcReport {
    /// Whether nothing was done.
    pub dry_run: bool,
    /// The file states that were let go, by workspace and reason.
    pub let_go: Vec<LetGoStates>,
    /// How many file states are kept.
    pub kept: KeptStates,
    /// How many packs went of which nothing was needed.
    pub packs_removed: u64,
    /// How many packs were written anew without what nothing needs.
    pub packs_rewritten: u64,
    /// How many copies of objects went.
    pub objects: u64,
    /// How many bytes the packs have less.
    pub freed: u64,
    /// How many bytes the store has then.
    pub store_bytes: u64,
    /// How many bytes more that is than was asked for.
    pub over: u64,
    /// How many contents of kept states are not stored; `verify` names them.
    pub missing: u64,
    /// Packs that were left as they are.
    pub left: Vec<LeftBehind>,
    /// Workspaces of which nothing was let go, and why.
    pub skipped: Vec<(PathBuf, String)>,
}

/// File states of a workspace that were let go.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LetGoStates {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// Its directory.
    pub root: PathBuf,
    /// Why.
    pub because: LetGoBecause,
    /// How many states.
    pub states: u64,
    /// How many checkpoints have them.
    pub checkpoints: u64,
    /// When the oldest of those was made.
    pub oldest: Timestamp,
    /// When the newest of those was made.
    pub newest: Timestamp,
}

/// How many file states are kept, and how many of them are never let go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeptStates {
    /// All that are kept.
    pub states: u64,
    /// Those with a label.
    pub labelled: u64,
    /// The newest of a session or a workspace.
    pub newest: u64,
    /// Those that something under way needs, or that a newer version made.
    pub in_use: u64,
}

/// A pack that was left as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftBehind {
    /// The pack.
    pub file: PathBuf,
    /// An object in it that is damaged and needed, and of which there is no other
    /// copy. `None` where somebody used the pack at that moment.
    pub damaged: Option<ObjectId>,
}

impl GcReport {
    /// Returns whether there was nothing to do.
    pub fn is_empty(&self) -> bool {
        let packs = self.packs_removed + self.packs_rewritten;
        self.let_go.is_empty() && packs == 0 && self.freed == 0
    }
}
