//! What is taken back, and what becomes of conflicts.

use std::path::PathBuf;
use std::sync::Arc;

use crate::snapshot::Progress;

/// What is taken back, and what becomes of conflicts.
#[derive(Debug, Clone)]
pub struct Rewind {
    pub(super) files: bool,
    pub(super) chat: bool,
    pub(super) on_conflict: OnConflict,
    pub(super) paths: Vec<PathBuf>,
    pub(super) progress: Option<Arc<dyn Progress>>,
}

/// What becomes of a path that somebody else changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OnConflict {
    /// It stops everything before anything is touched.
    #[default]
    Stop,
    /// It is left as it is, and the rest is taken back.
    Keep,
    /// It becomes what it was; undo brings back what it is now.
    Overwrite,
}

impl Rewind {
    fn new(files: bool, chat: bool) -> Self {
        Self {
            files,
            chat,
            on_conflict: OnConflict::Stop,
            paths: Vec::new(),
            progress: None,
        }
    }

    /// Takes back the files, and the conversation where the point has one.
    pub fn files_and_chat() -> Self {
        Self::new(true, true)
    }

    /// Takes back the files alone.
    pub fn files() -> Self {
        Self::new(true, false)
    }

    /// Takes back the conversation alone.
    pub fn chat() -> Self {
        Self::new(false, true)
    }

    /// Sets what becomes of paths that somebody else changed.
    #[must_use]
    pub fn on_conflict(mut self, on_conflict: OnConflict) -> Self {
        self.on_conflict = on_conflict;
        self
    }

    /// Leaves paths that somebody else changed as they are.
    #[must_use]
    pub fn keep(self) -> Self {
        self.on_conflict(OnConflict::Keep)
    }

    /// Takes the exact state of the point, whoever changed what.
    #[must_use]
    pub fn overwrite(self) -> Self {
        self.on_conflict(OnConflict::Overwrite)
    }

    /// Takes back these files and directories alone, relative to the workspace.
    #[must_use]
    pub fn paths<P: Into<PathBuf>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.paths = paths.into_iter().map(Into::into).collect();
        self
    }

    /// Sets who is told how far the look at the files is.
    #[must_use]
    pub fn progress(mut self, progress: Arc<dyn Progress>) -> Self {
        self.progress = Some(progress);
        self
    }
}
