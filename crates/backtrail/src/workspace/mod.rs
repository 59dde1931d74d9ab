//! A directory that an agent works in, and its checkpoints.
//!
//! A workspace has a log, like a session: its checkpoints, in the order in which they
//! were made. A checkpoint names a snapshot, the reason for it, and the place in a session
//! that it belongs to, if any. Objects are durable before the checkpoint that names them,
//! so a checkpoint that can be read is complete.
//!
//! Two locks order the work of processes: the snapshot lock, held from the scan of the
//! directory to the checkpoint's record, and the short lock of the log. Neither is held
//! while an agent or a command runs.

mod about;
mod active;
mod agent_place;
pub(crate) mod agent_rewinds;
mod agent_turn;
mod bind_session;
pub(crate) mod bindings;
mod cache;
pub(crate) mod calls;
mod checkpoint;
pub(crate) mod checkpoint_record;
mod checkpoints;
mod dead;
pub(crate) mod dropped;
pub(crate) mod git_dir;
pub(crate) mod git_head;
pub(crate) mod git_log;
mod identity;
pub(crate) mod left_running;
mod log_entries;
mod marks;
pub(crate) mod new_checkpoint;
pub(crate) mod new_directory;
pub(crate) mod path_lookup;
mod point;
mod process;
mod purge;
mod relink;
pub(crate) mod remaining_files;
pub(crate) mod remote;
pub(crate) mod repair;
pub(crate) mod resolve;
mod roots;
mod scan;
mod sign_of_life;
pub(crate) mod spans;
pub(crate) mod step_record;
pub(crate) mod timeline;
mod undo_ready;
pub(crate) mod unprotected;
pub(crate) mod verify;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::error::{Error, Result};
use crate::ids::{SessionId, WorkspaceId};
use crate::log::{LogDir, LogReader, TrailRecords};
use crate::objects::Objects;
use crate::session::SessionInfo;
use crate::snapshot::node_cache::CachedNodes;
use crate::store::Store;
use crate::trail::present::WorkspaceRef;

pub use crate::blame::{
    Blame, BlamedLine, CommitAuthor, LineAuthor, LineOrigin, LoggedCommit, OriginKind,
};
pub use about::About;
pub use active::{Active, Activity};
pub use agent_place::AgentPlace;
pub use agent_turn::AgentTurn;
pub use bindings::Binding;
pub use checkpoint::{Checkpoint, CheckpointReason, SessionPlace, SkippedFiles};
pub use checkpoints::Checkpoints;
pub use dropped::{DropReason, Dropped};
pub use git_head::GitHead;
pub use left_running::LeftProcess;
pub use log_entries::{LogEntry, LogKind};
pub use marks::FileChange;
pub use new_checkpoint::CheckpointOptions;
pub use point::Point;
pub use process::Process;
pub use relink::{FormerRoot, RelinkOptions, Relinked, RelinkedWhat};
pub use undo_ready::UndoReady;
pub use unprotected::{
    ChangedPath, Included, Lost, Protection, UnprotectedChanges, UnprotectedEntry,
};

pub(crate) use about::Description;
pub(crate) use identity::{
    all, by_id, find, known, must_be_new, noted_around, register, root_around,
};
pub(crate) use relink::{SessionHomes, SessionsHere, moved_home};
pub(crate) use remaining_files::remaining_files;
pub(crate) use repair::repair_snapshots_plan;
pub(crate) use scan::Look;
pub(crate) use verify::verify;

/// A directory that an agent works in. Cheap to clone and to share between threads.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let (home, project) = (dir.path().join("store"), dir.path().join("project"));
/// # std::fs::create_dir(&project)?;
/// use backtrail::{CheckpointOptions, Point, Store};
///
/// let store = Store::open_or_create(home)?;
/// let workspace = store.workspace(&project)?;
/// workspace.checkpoint(CheckpointOptions::new().label("before"))?;
/// std::fs::write(project.join("notes.txt"), "buy milk\n")?;
///
/// let before = workspace.snapshot(&Point::label("before"))?;
/// let changes = workspace.changes_since(&before)?;
/// assert_eq!(changes.changes()[0].to_string(), "new notes.txt");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Workspace(Arc<WorkspaceInner>);

/// Serializes the id and the directory.
impl Serialize for Workspace {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("id", self.id())?;
        map.serialize_entry("root", &self.root().to_string_lossy())?;
        map.end()
    }
}

#[derive(Debug)]
struct WorkspaceInner {
    store: Store,
    files: LogDir,
    id: WorkspaceId,
    root: PathBuf,
    /// A cache of snapshot nodes, for a handle that has one.
    read: Option<Arc<CachedNodes>>,
    dropped: Mutex<dropped::DroppedCache>,
    /// What turns and runs of this process found unprotected when they began.
    surveys: Mutex<unprotected::Surveys>,
}

impl Workspace {
    pub(crate) fn new(store: &Store, id: WorkspaceId, root: PathBuf) -> Self {
        Self(Arc::new(WorkspaceInner {
            files: store.workspace_files(&id),
            store: store.clone(),
            id,
            root,
            read: None,
            dropped: Mutex::default(),
            surveys: Mutex::default(),
        }))
    }

    /// Returns a handle that caches the nodes of snapshots in memory: for one operation, not
    /// for long.
    pub(crate) fn remembering(&self) -> Self {
        let WorkspaceInner {
            store, id, root, ..
        } = &*self.0;
        Self(Arc::new(WorkspaceInner {
            files: self.0.files.clone(),
            store: store.clone(),
            id: id.clone(),
            root: root.clone(),
            read: Some(Arc::new(CachedNodes::new(Arc::new(
                store.objects().clone(),
            )))),
            dropped: Mutex::default(),
            surveys: Mutex::default(),
        }))
    }

    /// Returns the workspace's id.
    pub fn id(&self) -> &WorkspaceId {
        &self.0.id
    }

    /// Returns the directory.
    pub fn root(&self) -> &Path {
        &self.0.root
    }

    /// Returns its store.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// Returns the [latest](SessionInfo::latest) session that works here.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be listed.
    pub fn latest_session(&self) -> Result<Option<SessionId>> {
        let infos = self.session_infos()?;
        Ok(SessionInfo::latest(&infos).map(|info| info.id.clone()))
    }

    /// Returns the sessions that work here, in no particular order.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be listed.
    pub fn sessions(&self) -> Result<Vec<SessionId>> {
        let infos = self.session_infos()?.into_iter();
        Ok(infos.map(|info| info.id).collect())
    }

    /// Returns the sessions that work here. An unreadable session must not hide the
    /// others.
    pub(crate) fn session_infos(&self) -> Result<Vec<SessionInfo>> {
        let homes = SessionHomes::of(&self.0.store)?;
        let is_here = |info: &SessionInfo| match homes.home(info) {
            Some(id) => id == self.id(),
            // It may have been moved, and the move not recorded yet.
            None => {
                info.workspace_id.is_none() && info.workspace_root.as_deref() == Some(self.root())
            }
        };
        let infos = self.0.store.infos()?.into_iter();
        let infos = infos.filter_map(|(_, info)| info.ok());
        Ok(infos.filter(is_here).collect())
    }

    /// Returns the reference that sessions store.
    pub(crate) fn reference(&self) -> WorkspaceRef {
        WorkspaceRef {
            id: Some(self.0.id.clone()),
            ..WorkspaceRef::new(&self.0.root)
        }
    }

    pub(crate) fn files(&self) -> &LogDir {
        &self.0.files
    }

    pub(crate) fn objects(&self) -> &Objects {
        self.0.store.objects()
    }

    /// Returns a reader of its trail.
    fn trail(&self) -> LogReader {
        LogReader::new(&self.0.store, self.0.files.clone())
    }

    /// Returns the error of a failed operation in its directory in the store.
    fn failed(&self, doing: &str, error: std::io::Error) -> Error {
        Error::io(doing, self.0.files.path(), error)
    }
}

impl Workspace {
    /// Reads the records of one of the workspace's trails, from byte `from` on; see
    /// [`SessionReader::trail_records`](crate::SessionReader::trail_records).
    ///
    /// # Errors
    ///
    /// Fails if the trail cannot be opened.
    pub fn trail_records(&self, trail: u32, from: u64) -> Result<TrailRecords> {
        TrailRecords::open(self.files(), trail, from)
    }

    /// Returns whether the last record before byte `end` of a trail has this sum.
    ///
    /// # Errors
    ///
    /// Fails if the trail cannot be read.
    pub fn trail_has(&self, trail: u32, end: u64, sum: [u8; 8]) -> Result<bool> {
        TrailRecords::is_there(self.files(), trail, end, sum)
    }
}
