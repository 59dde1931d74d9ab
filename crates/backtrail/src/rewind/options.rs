//! What goes back, and how conflicts are treated.

use std::path::PathBuf;
use std::sync::Arc;

use super::choose_parts::Pick;
use super::outcome::OnConflict;
use crate::ids::SessionId;
use crate::snapshot::Progress;

/// What goes back, and how conflicts are treated.
#[derive(Debug, Clone)]
pub struct Rewind {
    pub(super) files: bool,
    pub(super) chat: bool,
    pub(super) on_conflict: OnConflict,
    pub(super) paths: Vec<PathBuf>,
    pub(super) session: Option<SessionId>,
    pub(super) last_call: bool,
    pub(super) pick: Option<Pick>,
    pub(super) skip_damaged: bool,
    pub(super) progress: Option<Arc<dyn Progress>>,
}

impl Rewind {
    fn new(files: bool, chat: bool) -> Self {
        Self {
            files,
            chat,
            on_conflict: OnConflict::Stop,
            paths: Vec::new(),
            session: None,
            last_call: false,
            pick: None,
            skip_damaged: false,
            progress: None,
        }
    }

    /// Moves the files, and the conversation if the point has one.
    pub fn files_and_chat() -> Self {
        Self::new(true, true)
    }

    /// Moves the files alone.
    pub fn files() -> Self {
        Self::new(true, false)
    }

    /// Moves the conversation alone.
    pub fn chat() -> Self {
        Self::new(false, true)
    }

    /// Undoes the last tool call that changed files, instead of the last step. Only calls of
    /// other programs' turns are known one by one. The conversation stays.
    #[must_use]
    pub fn last_call(mut self) -> Self {
        self.last_call = true;
        self.chat = false;
        self
    }

    /// Sets what happens to paths that others changed too.
    #[must_use]
    pub fn on_conflict(mut self, on_conflict: OnConflict) -> Self {
        self.on_conflict = on_conflict;
        self
    }

    /// Leaves paths that others changed too as they are.
    #[must_use]
    pub fn keep(self) -> Self {
        self.on_conflict(OnConflict::Keep)
    }

    /// Restores the exact state of the point, no matter who changed what.
    #[must_use]
    pub fn overwrite(self) -> Self {
        self.on_conflict(OnConflict::Overwrite)
    }

    /// Undoes only the lines in question, and keeps those of others in the same files.
    #[must_use]
    pub fn merge(self) -> Self {
        self.on_conflict(OnConflict::Merge)
    }

    /// Moves these files and directories alone, relative to the workspace; the
    /// conversation stays.
    #[must_use]
    pub fn paths<P: Into<PathBuf>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.paths = paths.into_iter().map(Into::into).collect();
        self
    }

    /// Undoes or redoes a step of this session; without it, of any session that works
    /// in the workspace.
    #[must_use]
    pub fn session(mut self, session: &SessionId) -> Self {
        self.session = Some(session.clone());
        self
    }

    /// Lets the caller choose which parts of the files to restore: see
    /// [`RewindPlan::parts`](super::RewindPlan::parts) and
    /// [`RewindPlan::choose`](super::RewindPlan::choose). The chosen parts are restored, no
    /// matter who changed them; nothing is until something is chosen.
    #[must_use]
    pub fn in_parts(mut self) -> Self {
        self.pick = Some(Pick::default());
        self.chat = false;
        self.overwrite()
    }

    /// Leaves files and directories alone that the store's copies of are damaged, and
    /// restores the rest. The outcome names them as [not
    /// restored](super::Outcome::not_restored). Without it, they stop everything before
    /// anything is touched; see [`Error::damaged`](crate::Error::damaged).
    #[must_use]
    pub fn skip_damaged(mut self) -> Self {
        self.skip_damaged = true;
        self
    }

    /// Sets the receiver of progress reports.
    #[must_use]
    pub fn progress(mut self, progress: Arc<dyn Progress>) -> Self {
        self.progress = Some(progress);
        self
    }
}
