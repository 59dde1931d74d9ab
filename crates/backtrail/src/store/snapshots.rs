//! The store's part in workspaces: their directory, their objects, and the entry points.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{OBJECTS, Store, StoreOptions, WORKSPACES};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{SessionId, WorkspaceId};
use crate::log::{LogDir, end_of_line};
use crate::objects::Objects;
use crate::rewind::TouchHook;
use crate::session::SessionInfo;
use crate::workspace::repair::{SnapshotsRepairOptions, SnapshotsRepairPlan};
use crate::workspace::verify::{SnapshotsReport, VerifyOptions};
use crate::workspace::{self, SessionPlace, SessionsHere, Workspace, moved_home};

/// The settings of snapshots.
#[derive(Debug, Clone)]
pub(super) struct SnapshotSettings {
    pack_size: u64,
    cap: u64,
    include_cap: u64,
    global_excludes: Option<PathBuf>,
    pub(super) touch_hook: Option<Arc<dyn TouchHook>>,
}

impl Default for SnapshotSettings {
    fn default() -> Self {
        Self {
            pack_size: Objects::DEFAULT_PACK,
            cap: StoreOptions::DEFAULT_SNAPSHOT_CAP,
            include_cap: StoreOptions::DEFAULT_INCLUDE_CAP,
            global_excludes: None,
            touch_hook: None,
        }
    }
}

/// The directories of workspaces and objects.
#[derive(Debug)]
pub(super) struct SnapshotFiles {
    workspaces: PathBuf,
    objects: Objects,
}

impl SnapshotFiles {
    pub(super) fn new(options: &StoreOptions, root: &Path) -> Self {
        let objects = Objects::with_packs_of(
            options.snapshots.pack_size,
            Arc::clone(&options.storage),
            Arc::clone(&options.random),
            &root.join(OBJECTS),
        );
        Self {
            workspaces: root.join(WORKSPACES),
            objects,
        }
    }
}

impl StoreOptions {
    /// The size above which a file is skipped: 256 MiB.
    pub const DEFAULT_SNAPSHOT_CAP: u64 = 256 << 20;

    /// The size above which an included directory is not included: 1 GiB.
    pub const DEFAULT_INCLUDE_CAP: u64 = 1 << 30;

    /// Sets the size at which a pack of objects continues in a new file; 64 MiB by
    /// default.
    #[must_use]
    pub fn pack_size(mut self, bytes: u64) -> Self {
        self.snapshots.pack_size = bytes.clamp(1 << 10, 1 << 29);
        self
    }

    /// Sets the size above which snapshots skip a file.
    #[must_use]
    pub fn snapshot_cap(mut self, bytes: u64) -> Self {
        self.snapshots.cap = bytes;
        self
    }

    /// Sets the size above which an ignored directory is skipped although it is
    /// [included](crate::CheckpointOptions::include_ignored).
    #[must_use]
    pub fn include_cap(mut self, bytes: u64) -> Self {
        self.snapshots.include_cap = bytes;
        self
    }

    /// Sets a file of ignore rules for all workspaces, such as git's `core.excludesFile`.
    #[must_use]
    pub fn global_excludes(mut self, path: impl Into<PathBuf>) -> Self {
        self.snapshots.global_excludes = Some(path.into());
        self
    }

    /// Sets a hook that is called before each change to the files of a workspace. For tests.
    #[must_use]
    pub fn touch_hook(mut self, hook: impl TouchHook + 'static) -> Self {
        self.snapshots.touch_hook = Some(Arc::new(hook));
        self
    }
}

impl Store {
    /// Returns where the directory of a session is now, if it was moved.
    #[doc(hidden)]
    pub fn moved_root(&self, info: &SessionInfo) -> Option<PathBuf> {
        moved_home(self, info).map(|workspace| workspace.root().to_owned())
    }

    /// Returns the [latest](SessionInfo::latest) session of a workspace among those that are
    /// wanted.
    ///
    /// # Errors
    ///
    /// Fails if the sessions cannot be listed.
    #[doc(hidden)]
    pub fn latest_in(
        &self,
        workspace_root: &Path,
        is_wanted: impl Fn(&SessionInfo) -> bool,
    ) -> Result<Option<SessionId>> {
        let here = SessionsHere::at(self, workspace_root);
        let all = self.infos()?;
        // One unreadable session must not hide the others.
        let readable = all.iter().filter_map(|(_, info)| info.as_ref().ok());
        let wanted = readable.filter(|info| here.has(info) && is_wanted(info));
        Ok(SessionInfo::latest(wanted).map(|info| info.id.clone()))
    }

    /// Opens the workspace of a directory, and creates it if there is none. A directory that
    /// was moved is recognised.
    ///
    /// # Errors
    ///
    /// Fails if the directory does not exist or is in the store.
    pub fn workspace(&self, root: &Path) -> Result<Workspace> {
        workspace::register(self, root)
    }

    /// Opens the workspace of a directory, if it has checkpoints.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be read.
    pub fn find_workspace(&self, root: &Path) -> Result<Option<Workspace>> {
        workspace::find(self, root)
    }

    /// Opens the workspace with this id.
    ///
    /// # Errors
    ///
    /// Fails with [`NotFound`](ErrorKind::NotFound) if it does not exist.
    pub fn workspace_by_id(&self, id: &WorkspaceId) -> Result<Workspace> {
        workspace::by_id(self, id)
    }

    /// Returns all workspaces whose trail can be read.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be listed.
    pub fn workspaces(&self) -> Result<Vec<Workspace>> {
        let known = workspace::known(self)?.into_iter();
        Ok(known.map(|known| known.open(self)).collect())
    }

    /// Returns the root of the workspace that a directory belongs to: the nearest known
    /// workspace that contains it, else the nearest directory with a `.git`, else itself.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be read.
    pub fn workspace_root(&self, dir: &Path) -> Result<PathBuf> {
        workspace::root_around(self, dir)
    }

    /// Returns the nearest workspace around a directory, at once: by what was noted when it was
    /// last used, without looking at the others. `None` if there is none with checkpoints.
    ///
    /// # Errors
    ///
    /// Fails with [`NotFound`](ErrorKind::NotFound) if the directory does not exist, or if the
    /// notes are gone and there are workspaces.
    pub fn noted_workspace(&self, dir: &Path) -> Result<Option<Workspace>> {
        workspace::noted_around(self, dir)
    }

    /// Checks every workspace's trail, every snapshot that it names and every object. It
    /// only reads.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read; damage is in the report.
    pub fn verify_snapshots(&self) -> Result<SnapshotsReport> {
        self.verify_snapshots_with(&VerifyOptions::new())
    }

    /// Checks the workspaces with options. It only reads.
    ///
    /// # Errors
    ///
    /// Fails as [`verify_snapshots`](Self::verify_snapshots) does.
    pub fn verify_snapshots_with(&self, options: &VerifyOptions) -> Result<SnapshotsReport> {
        workspace::verify(self, options)
    }

    /// Plans a repair of the workspaces: damaged objects are captured again if the same
    /// content is still in a workspace, and damaged trails are repaired. It only reads.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read.
    pub fn repair_snapshots_plan(
        &self,
        options: SnapshotsRepairOptions,
    ) -> Result<SnapshotsRepairPlan> {
        workspace::repair_snapshots_plan(self, options)
    }

    pub(crate) fn workspace_files(&self, id: &WorkspaceId) -> LogDir {
        LogDir::of_workspace(self.shared_storage(), &self.0.snapshots.workspaces, id)
    }

    /// Creates the directory of the workspaces, which older stores do not have.
    pub(crate) fn make_workspaces_dir(&self) -> Result<()> {
        let doing = "cannot create the directory of the workspaces";
        self.make_part(doing, self.workspaces_dir())
    }

    pub(crate) fn workspaces_dir(&self) -> &Path {
        &self.0.snapshots.workspaces
    }

    pub(crate) fn objects(&self) -> &Objects {
        &self.0.snapshots.objects
    }

    /// Returns the place of a session's last record.
    pub(crate) fn session_place(&self, id: &SessionId) -> Result<SessionPlace> {
        let files = self.files(id);
        let head = files.head()?;
        let end = end_of_line(self, &files, head)?;
        Ok(SessionPlace {
            id: id.clone(),
            trail: head,
            seq: end.position.seq,
        })
    }

    /// Returns the place of a record of a session.
    pub(crate) fn record_place(&self, id: &SessionId, seq: u64) -> Result<SessionPlace> {
        let end = self.session_place(id)?;
        if seq > end.seq {
            let last = end.seq;
            let what = format!("session {id} has no record {seq}; its last is {last}");
            return Err(Error::new(ErrorKind::NotFound, what));
        }
        Ok(SessionPlace { seq, ..end })
    }

    pub(crate) fn touch_hook(&self) -> Option<&dyn TouchHook> {
        self.0.options.snapshots.touch_hook.as_deref()
    }

    pub(crate) fn snapshot_cap(&self) -> u64 {
        self.0.options.snapshots.cap
    }

    pub(crate) fn include_cap(&self) -> u64 {
        self.0.options.snapshots.include_cap
    }

    pub(crate) fn global_excludes(&self) -> Option<&Path> {
        self.0.options.snapshots.global_excludes.as_deref()
    }
}
