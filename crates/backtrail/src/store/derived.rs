//! Data derived from the store, which a purge removes.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use super::Store;
use crate::error::{Error, Result};
use crate::storage::{append_all, if_found, is_absent, make_dir, names_in, read_range};

impl Store {
    /// Reads a file of derived data; `None` if it cannot be read.
    #[doc(hidden)]
    pub fn read_derived(&self, name: &str) -> Option<Vec<u8>> {
        let file = self.storage().open_read(&self.derived_dir().join(name));
        let file = file.ok()?;
        read_range(file.as_ref(), 0..file.len().ok()?).ok()
    }

    /// Replaces a file of derived data atomically.
    #[doc(hidden)]
    pub fn write_derived(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let (storage, dir) = (self.storage(), self.derived_dir());
        make_dir(storage, &dir)?;
        let aside = dir.join(format!("{name}.new"));
        if_found(storage.remove_file(&aside))?;
        append_all(storage.create_new(&aside)?.as_ref(), bytes)?;
        storage.replace(&aside, &dir.join(name))
    }

    fn derived_dir(&self) -> PathBuf {
        self.root().join("derived")
    }

    /// Removes the catalogue and the search index, after waiting for a process that is
    /// writing them. They are rebuilt from the rest of the store.
    pub(crate) fn forget_derived(&self) -> Result<()> {
        let dir = self.derived_dir();
        let names = names_in(self.storage(), &dir).map_err(|error| failed(&dir, error))?;
        // Removing a lock file would allow two processes to hold the lock.
        let is_lock = |name: &OsString| Path::new(name).extension() == Some("lock".as_ref());
        let (locks, others): (Vec<_>, Vec<_>) = names.into_iter().partition(is_lock);
        let mut held = Vec::new();
        for name in locks {
            let path = dir.join(name);
            let file = self.storage().open_append(&path);
            let file = file.map_err(|error| failed(&path, error))?;
            file.lock().map_err(|error| failed(&path, error))?;
            held.push(file);
        }
        for name in others {
            if !name.to_string_lossy().starts_with("stat-cache") {
                self.remove_derived(&dir.join(name))?;
            }
        }
        Ok(())
    }

    pub(super) fn remove_derived(&self, path: &Path) -> Result<()> {
        let storage = self.storage();
        let gone = |done: io::Result<()>| match done {
            Err(error) if !is_absent(&error) => Err(failed(path, error)),
            _ => Ok(()),
        };
        match storage.is_dir(path) {
            Ok(true) => {
                for name in storage.list(path).map_err(|error| failed(path, error))? {
                    self.remove_derived(&path.join(name))?;
                }
                gone(storage.remove_dir(path))
            }
            Ok(false) => gone(storage.remove_file(path)),
            Err(error) => Err(failed(path, error)),
        }
    }
}

fn failed(path: &Path, error: io::Error) -> Error {
    Error::io("cannot remove derived data", path, error)
}
