//! Creates many sessions at once: in a staging store, synced together, then moved into place.
//!
//! Creating each session in place would wait for the disk several times. Here all of them
//! are written to a separate store in `derived/`, made durable by one sync, and moved into
//! place one by one, each in one atomic step. A crash leaves complete sessions, and a
//! directory that the next import removes.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::{SESSIONS, Store, StoreOptions};
use crate::error::{Error, Result};
use crate::ids::SessionId;
use crate::log::{Durability, HeldLock, LockFile};
use crate::storage::{Unsynced, is_absent, make_dir};
use crate::sync::lock;

/// The directory in which an import stages sessions.
const IMPORT: &str = "import";

/// Sessions that are staged. Other processes that stage sessions wait.
#[derive(Debug)]
pub struct Staging {
    /// The store that the sessions are moved to.
    home: Store,
    root: PathBuf,
    /// The store to create sessions in, once one is created.
    staged: Mutex<Option<Store>>,
    /// Whether sessions were moved into place that are not durable there yet.
    unsynced: AtomicBool,
    _lock: HeldLock,
}

impl Store {
    /// Begins to stage sessions, after waiting for another process that does.
    #[doc(hidden)]
    pub fn stage(&self) -> Result<Staging> {
        self.stage_as(IMPORT)
    }

    /// Begins to stage sessions, after waiting for another process that does the same work. An
    /// import must not wait for what comes over a network.
    pub(crate) fn stage_as(&self, work: &str) -> Result<Staging> {
        let lock = self.staging_lock(work)?.hold()?;
        self.stage_under(work, lock)
    }

    /// Begins to stage sessions, unless another process does: then it returns `None`.
    #[doc(hidden)]
    pub fn try_stage(&self) -> Result<Option<Staging>> {
        let held = self.staging_lock(IMPORT)?.try_hold()?;
        held.map(|lock| self.stage_under(IMPORT, lock)).transpose()
    }

    fn staging_lock(&self, work: &str) -> Result<LockFile> {
        let derived = self.root().join("derived");
        let failed = |error| Error::io("cannot stage sessions", &derived, error);
        make_dir(self.storage(), &derived).map_err(failed)?;
        LockFile::open(self.storage(), &derived, &format!("{work}.lock"))
    }

    fn stage_under(&self, work: &str, lock: HeldLock) -> Result<Staging> {
        let storage = self.storage();
        let root = self.root().join("derived").join(work);
        let failed = |error| Error::io("cannot stage sessions", &root, error);
        // Left by an interrupted process. The sessions that it moved into place may not be
        // durable yet; the others are removed.
        if storage.exists(&root).map_err(failed)? {
            storage.sync_dir(self.sessions_dir()).map_err(failed)?;
            self.remove_derived(&root)?;
        }
        Ok(Staging {
            home: self.clone(),
            root,
            staged: Mutex::default(),
            unsynced: AtomicBool::new(false),
            _lock: lock,
        })
    }
}

impl Staging {
    /// Returns the store to create sessions in. Nothing there is durable or visible to others.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be created.
    pub fn aside(&self) -> Result<Store> {
        let mut staged = lock(&self.staged);
        if let Some(staged) = &*staged {
            return Ok(staged.clone());
        }
        let home = &self.home;
        let options = StoreOptions {
            storage: Arc::new(Unsynced(home.shared_storage())),
            durability: Durability::Os,
            keep_trails: None,
            ..home.0.options.clone()
        };
        #[cfg(feature = "snapshots")]
        let options = {
            let mut options = options;
            options.snapshots.touch_hook = None;
            options
        };
        Ok(staged.insert(options.open_or_create(&self.root)?).clone())
    }

    /// Returns the store that sessions were created in, if any were.
    pub fn created(&self) -> Option<Store> {
        lock(&self.staged).clone()
    }

    /// Returns a directory for temporary files.
    pub fn scratch_dir(&self) -> &Path {
        self.root.parent().unwrap_or(&self.root)
    }

    /// Removes a session that was created and is not complete.
    pub(crate) fn discard(&self, id: &SessionId) -> Result<()> {
        let dir = self.root.join(SESSIONS).join(id.as_str());
        self.home.remove_derived(&dir)
    }

    /// Moves the sessions created so far into place; all of them must be closed. Returns
    /// those that other processes created meanwhile: theirs are kept.
    ///
    /// # Errors
    ///
    /// Fails if the sessions cannot be synced or moved.
    pub fn publish(&self) -> Result<Vec<SessionId>> {
        let ids = match self.created() {
            Some(staged) => staged.sessions()?,
            None => Vec::new(),
        };
        self.publish_in_order(ids)
    }

    /// As [`publish`](Self::publish), where these are all sessions that were created, each after
    /// those that it continues.
    pub(crate) fn publish_in_order(&self, ids: Vec<SessionId>) -> Result<Vec<SessionId>> {
        let storage = self.home.storage();
        let sessions = self.root.join(SESSIONS);
        if ids.is_empty() && !self.unsynced.load(Ordering::Relaxed) {
            return Ok(Vec::new());
        }
        let failed = |error| Error::io("cannot put staged sessions in place", &sessions, error);
        storage.sync_tree(&self.root).map_err(failed)?;
        let mut taken = Vec::new();
        self.unsynced.store(true, Ordering::Relaxed);
        for id in ids {
            let to = self.home.sessions_dir().join(id.as_str());
            match storage.rename_new(&sessions.join(id.as_str()), &to) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => taken.push(id),
                Err(error) => return Err(failed(error)),
            }
        }
        storage.sync_dir(self.home.sessions_dir()).map_err(failed)?;
        self.unsynced.store(false, Ordering::Relaxed);
        for id in &taken {
            self.home.remove_derived(&sessions.join(id.as_str()))?;
        }
        Ok(taken)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // The next process that stages sessions removes the rest. It must find the directory to
        // know that there are sessions to sync.
        let is_synced = !self.unsynced.load(Ordering::Relaxed);
        if is_synced && self.created().is_some() && !is_gone(self) {
            self.home.remove_derived(&self.root).ok();
        }
    }
}

fn is_gone(staging: &Staging) -> bool {
    let listed = staging.home.storage().list(&staging.root);
    listed.is_err_and(|error| is_absent(&error))
}
