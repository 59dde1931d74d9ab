//! The store's lock: whoever relies on objects shares it, whoever removes some has
//! it alone.
//!
//! A snapshot looks up what is stored already and names it in its record later. In
//! between nothing may be removed, so it shares the lock from before its first look
//! to after its record. The clean-up has the lock alone while it removes one pack,
//! with all records read that were written until then. Whoever comes while the
//! clean-up waits for the lock stands behind it, at the gate, so that newcomers do not
//! keep it waiting for ever; but only for a moment: behind a snapshot that takes long,
//! or was stopped, nobody else stands for long, and the clean-up gives up instead.

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
/// How often the clean-up tries for the lock, with the gate open and with it shut.
const ATTEMPTS: u32 = 20;
const OPEN_TRIES: u32 = 20;
const SHUT_TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(5);

/// A lock, and where it lies.
type Lock = (PathBuf, Arc<dyn StorageFile>);

/// The store's lock, held: objects that are there stay, or nobody else relies on
/// any. Gives it back when dropped.
#[derive(Debug)]
pub(crate) struct Keeping(Arc<dyn StorageFile>);

impl Drop for Keeping {
    fn drop(&mut self) {
        self.0.unlock().ok();
    }
}

impl Store {
    /// Holds the store's lock together with others: no object is removed until
    /// the guard is dropped.
    pub(crate) fn keep_objects(&self) -> Result<Keeping> {
        let shared = |file: &dyn StorageFile| file.lock_shared();
        let gate = self.lock_file(GATE)?;
        wait(&gate, shared)?;
        let _through = Keeping(gate.1);
        let lock = self.lock_file(LOCK)?;
        wait(&lock, shared)?;
        Ok(Keeping(lock.1))
    }

    /// Holds the store's lock alone: nobody relies on an object that no record names.
    /// `None` if that cannot be had, because somebody's snapshot takes too long.
    pub(crate) fn alone_with_objects(&self) -> Result<Option<Keeping>> {
        let gate = self.lock_file(GATE)?;
        let lock = self.lock_file(LOCK)?;
        for _ in 0..ATTEMPTS {
            if try_for(&lock, OPEN_TRIES)? {
                return Ok(Some(Keeping(lock.1)));
            }
            wait(&gate, |file| file.lock())?;
            let _shut = Keeping(Arc::clone(&gate.1));
            if try_for(&lock, SHUT_TRIES)? {
                return Ok(Some(Keeping(lock.1)));
            }
        }
        Ok(None)
    }

    /// Opens a lock file among the objects, making it where it is missing.
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

/// Tries for a lock a few times, and returns whether it was had.
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
