//! The store's lock: whoever relies on objects shares it, whoever removes some has
//! it alone.
//!
//! A snapshot looks up what is stored already and names it in its record later. In
//! between nothing may be removed, so it shares the lock from before its first look
//! to after its record. The clean-up has the lock alone while it removes one pack,
//! with all records read that were written until then. Whoever comes while the
//! clean-up waits for the lock stands behind it, at the gate: it is never kept
//! waiting by newcomers for ever.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::{OBJECTS, Store};
use crate::error::{Error, Result};
use crate::session::open_lock;
use crate::storage::StorageFile;

const LOCK: &str = "objects.lock";
const GATE: &str = "gate.lock";

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
        self.hold(|file| file.lock_shared())
    }

    /// Holds the store's lock alone: nobody relies on an object that no record
    /// names.
    pub(crate) fn alone_with_objects(&self) -> Result<Keeping> {
        self.hold(|file| file.lock())
    }

    fn hold(&self, take: impl Fn(&dyn StorageFile) -> io::Result<()>) -> Result<Keeping> {
        let wait = |(path, file): &(PathBuf, Arc<dyn StorageFile>)| loop {
            match take(file.as_ref()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                taken => {
                    return taken.map_err(|error| Error::io("cannot lock the store", path, error));
                }
            }
        };
        let gate = self.lock_file(GATE)?;
        wait(&gate)?;
        let _through = Keeping(gate.1);
        let lock = self.lock_file(LOCK)?;
        wait(&lock)?;
        Ok(Keeping(lock.1))
    }

    /// Opens a lock file among the objects, making it where it is missing.
    pub(crate) fn lock_file(&self, name: &str) -> Result<(PathBuf, Arc<dyn StorageFile>)> {
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
