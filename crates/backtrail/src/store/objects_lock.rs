//! The lock of the objects: shared by snapshots, exclusive for `gc`.
//!
//! A snapshot finds objects that are already stored, and names them in its record later. In
//! between none may be removed, so it shares the lock from before its first lookup until
//! after its record. `gc` takes the lock exclusively while it removes one pack, after it has
//! read all records written until then. While it waits, new snapshots wait at a gate, so
//! that they cannot keep it waiting forever. That lasts only a moment: if a snapshot takes
//! long or was stopped, `gc` gives up instead.

use std::time::Duration;

use super::{OBJECTS, Store};
use crate::error::{IoContext, Result};
use crate::log::{HeldLock, LockFile};
use crate::storage::make_dir;

const LOCK: &str = "objects.lock";
const GATE: &str = "gate.lock";
/// How often `gc` tries to take the lock, with the gate open and with it shut.
const ATTEMPTS: u32 = 20;
const OPEN_TRIES: u32 = 20;
const SHUT_TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(5);

impl Store {
    /// Shares the lock: no object is removed until the guard is dropped.
    pub(crate) fn share_objects(&self) -> Result<HeldLock> {
        let _through = self.lock_file(GATE)?.hold_shared()?;
        self.lock_file(LOCK)?.hold_shared()
    }

    /// Takes the lock exclusively: no process relies on an object that no record names.
    /// `None` if a snapshot holds it too long.
    pub(crate) fn own_objects(&self) -> Result<Option<HeldLock>> {
        let gate = self.lock_file(GATE)?;
        let lock = self.lock_file(LOCK)?;
        for _ in 0..ATTEMPTS {
            if let Some(held) = lock.try_for(OPEN_TRIES, PAUSE)? {
                return Ok(Some(held));
            }
            let _shut = gate.hold()?;
            if let Some(held) = lock.try_for(SHUT_TRIES, PAUSE)? {
                return Ok(Some(held));
            }
        }
        Ok(None)
    }

    /// Opens a lock file among the objects, and creates it if it is missing.
    pub(crate) fn lock_file(&self, name: &str) -> Result<LockFile> {
        let dir = self.root().join(OBJECTS);
        make_dir(self.storage(), &dir).context("cannot lock the store", &dir)?;
        LockFile::open(self.storage(), &dir, name)
    }
}
