//! Creating many sessions at once: aside, synced together, then moved into place.
//!
//! Each session by itself would wait for the disk several times. Here all of them are
//! written to a store of their own below `derived/`, made durable by one sync, and moved
//! to their place one by one; each move is one step. A crash leaves sessions that are
//! whole, and a directory that the next one removes.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{SESSIONS, Store, StoreOptions};
use crate::error::{Error, Result};
use crate::ids::SessionId;
use crate::log::{Durability, HeldLock, LockFile};
use crate::storage::{Unsynced, is_absent, make_dir};

/// Sessions that are created aside. Another process that stages sessions waits.
#[derive(Debug)]
pub struct Staging {
    /// Where the sessions go.
    home: Store,
    root: PathBuf,
    staged: Store,
    /// Whether sessions were moved to their place by now that are not durable there.
    unsynced: AtomicBool,
    _lock: HeldLock,
}

impl Store {
    /// Begins to create sessions aside, after another process that does so.
    #[doc(hidden)]
    pub fn stage(&self) -> Result<Staging> {
        let storage = self.storage();
        let derived = self.root().join("derived");
        let failed = |error| Error::io("cannot stage sessions", &derived, error);
        make_dir(storage, &derived).map_err(failed)?;
        let lock = LockFile::open(storage, &derived, "intake.lock")?.hold()?;
        let root = derived.join("intake");
        // What an interrupted process left. The sessions that it put in place are there, but
        // may not be durable yet; those that it did not are removed.
        if storage.exists(&root).map_err(failed)? {
            storage.sync_dir(self.sessions_dir()).map_err(failed)?;
            self.remove_derived(&root)?;
        }
        let mut options = StoreOptions {
            storage: Arc::new(Unsynced(self.shared_storage())),
            durability: Durability::Os,
            keep_trails: None,
            ..self.0.options.clone()
        };
        options.snapshots.touch_hook = None;
        let staged = options.open_or_create(&root)?;
        Ok(Staging {
            home: self.clone(),
            root,
            staged,
            unsynced: AtomicBool::new(false),
            _lock: lock,
        })
    }
}

impl Staging {
    /// Returns the store to make sessions in. Nothing there is durable, or seen by others.
    pub fn aside(&self) -> &Store {
        &self.staged
    }

    /// Puts the sessions in place that were made so far, all of them closed. Returns those
    /// that others had put there meanwhile: they stay as they are.
    pub fn publish(&self) -> Result<Vec<SessionId>> {
        let storage = self.home.storage();
        let sessions = self.root.join(SESSIONS);
        let ids = self.staged.sessions()?;
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
        // The next process that stages sessions removes what is left. It must know that there
        // are sessions to sync.
        let is_synced = !self.unsynced.load(Ordering::Relaxed);
        if is_synced && !is_gone(self) {
            self.home.remove_derived(&self.root).ok();
        }
    }
}

fn is_gone(staging: &Staging) -> bool {
    let listed = staging.home.storage().list(&staging.root);
    listed.is_err_and(|error| is_absent(&error))
}
