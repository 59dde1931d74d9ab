//! A file system in memory that models the page cache and power loss.
//!
//! Every change is pending until it is synced: a file's bytes and length by
//! [`StorageFile::sync`], the names in a directory by [`Storage::sync_dir`].
//! [`MemoryStorage::crash`] then returns what survives a power cut.
//!
//! Errors have Linux's error numbers, with two differences that reveal mistakes sooner: a
//! directory cannot be opened for reading, and `sync_dir` rejects a file. The current
//! directory is the root.

mod content;
mod disk;
mod handle;
mod loss;
mod names;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};

use backtrail::{Storage, StorageFile};

use crate::lock::lock;
use disk::{Disk, EPERM, Entry, errno};
use handle::{Access, MemoryFile};
pub use loss::Loss;

/// A file system in memory; clones share it.
#[derive(Clone)]
pub struct MemoryStorage(Arc<Shared>);

struct Shared {
    disk: Mutex<Disk>,
    /// Notified whenever a lock may have become free.
    unlocked: Condvar,
}

impl MemoryStorage {
    /// Returns a storage with an empty root directory and unlimited space.
    pub fn new() -> Self {
        Self::of(Disk::new())
    }

    /// Returns what a power cut at this moment leaves, as a separate storage.
    ///
    /// All of it is durable, no lock is held, and it is as large as this one. This
    /// storage and its handles continue as if nothing had happened.
    pub fn crash(&self, loss: Loss) -> Self {
        Self::of(lock(&self.0.disk).survivor(loss))
    }

    /// Returns what the next process finds when this one is killed, as a separate
    /// storage.
    ///
    /// No lock is held and nothing is lost, but unlike after [`Loss::Nothing`], pending
    /// changes are still pending: a later [`crash`](Self::crash) may lose them unless the
    /// next process syncs them.
    pub fn kill(&self) -> Self {
        Self::of(lock(&self.0.disk).without_handles())
    }

    /// Returns the bytes of a file.
    pub fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let disk = lock(&self.0.disk);
        let file = disk.find_file(path)?;
        Ok(disk.files[file].content.live().to_vec())
    }

    /// Replaces the bytes of a file, durably at once, or creates it with them.
    ///
    /// Its directory must exist; the file's name is as durable as that. The space left is
    /// neither checked nor used.
    pub fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut disk = lock(&self.0.disk);
        let file = match disk.find_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => disk.create_file(path)?,
            found => found?,
        };
        let (dir, name) = disk.slot(path)?;
        disk.dirs[dir].sync_name(&name);
        disk.files[file].content = content::Content::durable(bytes.to_vec());
        Ok(())
    }

    /// Returns the absolute paths of all files, sorted.
    pub fn files(&self) -> Vec<PathBuf> {
        lock(&self.0.disk).paths()
    }

    /// Sets how many more bytes may be appended; `None` for no limit.
    ///
    /// An append that fits in part writes that part, and the next fails with
    /// `StorageFull`. Truncating frees space, and so does removing a file's last name
    /// once its handles are closed.
    pub fn set_space(&self, bytes: Option<u64>) {
        lock(&self.0.disk).space = bytes;
    }

    fn of(disk: Disk) -> Self {
        Self(Arc::new(Shared {
            disk: Mutex::new(disk),
            unlocked: Condvar::new(),
        }))
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn StorageFile>> {
        let mut disk = lock(&self.0.disk);
        let file = disk.find_file(path)?;
        let handle = disk.open(file);
        Ok(MemoryFile::open(&self.0, file, handle, access))
    }
}

impl Default for MemoryStorage {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStorage {
    /// Omits the disk, which would bury the message of a failing test.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStorage").finish_non_exhaustive()
    }
}

impl Storage for MemoryStorage {
    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        let mut disk = lock(&self.0.disk);
        let file = disk.create_file(path)?;
        let handle = disk.open(file);
        Ok(MemoryFile::open(&self.0, file, handle, Access::Append))
    }

    fn open_append(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        self.open(path, Access::Append)
    }

    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        self.open(path, Access::Read)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        lock(&self.0.disk).create_dir(path)
    }

    fn link_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut disk = lock(&self.0.disk);
        let entry = disk.find(from)?;
        let slot = disk.free_slot(to)?;
        match entry {
            Entry::File(file) => disk.link(slot, file),
            Entry::Dir(_) => return errno(EPERM),
        }
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        lock(&self.0.disk).unlink(path)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        lock(&self.0.disk).rename(from, to)
    }

    fn replace(&self, from: &Path, to: &Path) -> io::Result<()> {
        lock(&self.0.disk).replace(from, to)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        lock(&self.0.disk).remove_dir(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        let disk = lock(&self.0.disk);
        let dir = disk.find_dir(dir)?;
        Ok(disk.dirs[dir].live().keys().cloned().collect())
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        match lock(&self.0.disk).find(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut disk = lock(&self.0.disk);
        let dir = disk.find_dir(dir)?;
        disk.sync_names(dir);
        Ok(())
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;

#[cfg(test)]
mod history_tests;

#[cfg(test)]
mod conformance_tests;
