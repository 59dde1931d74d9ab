//! What is taken back, and what becomes of conflicts.

use std::path::PathBuf;
use std::sync::Arc;

use super::parts::Pick;
use crate::snapshot::Progress;

/// What is taken back, and what becomes of conflicts.
#[derive(Debug, Clone)]
pub struct Rewind {
    pub(super) files: bool,
    pub(super) chat: bool,
    pub(super) on_conflict: OnConflict,
    pub(super) paths: Vec<PathBuf>,
    pub(super) pick: Option<Pick>,
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
    /// What is taken back goes, line by line, and what others did stays. Where that
    /// overlaps, or is no text, it stops everything before anything is touched.
    Merge,
}

impl Rewind {
    fn new(files: bool, chat: bool) -> Self {
        Self {
            files,
            chat,
            on_conflict: OnConflict::Stop,
            paths: Vec::new(),
            pick: None,
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

    /// Takes back what is to be taken back, and keeps what others did to the same
    /// files.
    #[must_use]
    pub fn merge(self) -> Self {
        self.on_conflict(OnConflict::Merge)
    }

    /// Takes back these files and directories alone, relative to the workspace; the
    /// conversation stays.
    #[must_use]
    pub fn paths<P: Into<PathBuf>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.paths = paths.into_iter().map(Into::into).collect();
        self
    }

    /// Lets somebody choose what is taken back, of the files alone: see
    /// [`RewindPlan::parts`](super::RewindPlan::parts) and
    /// [`RewindPlan::choose`](super::RewindPlan::choose). What is chosen is taken
    /// back, whoever changed it; until something is, nothing is.
    #[must_use]
    pub fn in_parts(mut self) -> Self {
        self.pick = Some(Pick::default());
        self.chat = false;
        self.overwrite()
    }

    /// Sets who is told how far the look at the files is.
    #[must_use]
    pub fn progress(mut self, progress: Arc<dyn Progress>) -> Self {
        self.progress = Some(progress);
        self
    }
}
