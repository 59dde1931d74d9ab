//! The lock of the objects: shared by snapshots, exclusive for `gc`.
//!
//! A snapshot finds objects that are already stored, and names them in its record later. In
//! between none may be removed, so it shares the lock from before its first lookup until
//! after its record. `gc` takes the lock exclusively while it removes one pack, after it has
//! read all records written until then. While it waits, new snapshots wait at a gate, so
//! that they cannot keep it waiting forever. That lasts only a moment: if a snapshot takes
//! long or was stopped, `gc` gives up instead.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::{OBJECTS, Store};
use crate::error::{Error, Result};
use crate::log::open_lock;
use crate::storage::StorageFile;

const LOCK: &str = "objects.lock";
const GATE: &str = "gate.lock";
/// How often `gc` tries to take the lock, with the gate open and with it shut.
const ATTEMPTS: u32 = 20;
const OPEN_TRIES: u32 = 20;
const SHUT_TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(5);

/// A lock file and its path.
type Lock = (PathBuf, Arc<dyn StorageFile>);

/// The lock, held shared or exclusively until it is dropped.
#[derive(Debug)]
pub(crate) struct ObjectsLock(Arc<dyn StorageFile>);

impl Drop for ObjectsLock {
    fn drop(&mut self) {
        self.0.unlock().ok();
    }
}

impl Store {
    /// Shares the lock: no object is removed until the guard is dropped.
    pub(crate) fn share_objects(&self) -> Result<ObjectsLock> {
        let shared = |file: &dyn StorageFile| file.lock_shared();
        let gate = self.lock_file(GATE)?;
        wait(&gate, shared)?;
        let _through = ObjectsLock(gate.1);
        let lock = self.lock_file(LOCK)?;
        wait(&lock, shared)?;
        Ok(ObjectsLock(lock.1))
    }

    /// Takes the lock exclusively: no process relies on an object that no record names.
    /// `None` if a snapshot holds it too long.
    pub(crate) fn own_objects(&self) -> Result<Option<ObjectsLock>> {
        let gate = self.lock_file(GATE)?;
        let lock = self.lock_file(LOCK)?;
        for _ in 0..ATTEMPTS {
            if try_for(&lock, OPEN_TRIES)? {
                return Ok(Some(ObjectsLock(lock.1)));
            }
            wait(&gate, |file| file.lock())?;
            let _shut = ObjectsLock(Arc::clone(&gate.1));
            if try_for(&lock, SHUT_TRIES)? {
                return Ok(Some(ObjectsLock(lock.1)));
            }
        }
        Ok(None)
    }

    /// Opens a lock file among the objects, and creates it if it is missing.
    pub(crate) fn lock_file(&self, name: &str) -> Result<Lock> {
        let dir = self.root().join(OBJECTS);
        match self.storage().create_dir(&dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(Error::io("cannot lock the store", &dir, error));
            }
            _ => {}
        }
        open_lock(self.storage(), &dir, name)
    }
}

fn wait((path, file): &Lock, take: impl Fn(&dyn StorageFile) -> io::Result<()>) -> Result<()> {
    loop {
        match take(file.as_ref()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            taken => return taken.map_err(|error| failed(path, error)),
        }
    }
}

/// Tries to take a lock a few times, and returns whether it succeeded.
fn try_for((path, file): &Lock, tries: u32) -> Result<bool> {
    for n in 0..tries {
        if file.try_lock().map_err(|error| failed(path, error))? {
            return Ok(true);
        }
        if n + 1 < tries {
            std::thread::sleep(PAUSE);
        }
    }
    Ok(false)
}

fn failed(path: &Path, error: io::Error) -> Error {
    Error::io("cannot lock the store", path, error)
}
