//! A storage that does not sync.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use super::{Storage, StorageFile};

/// Wraps another storage without syncing its files one by one. The code that stages many
/// files syncs them all together before anything relies on them.
#[derive(Debug)]
pub(crate) struct Unsynced(pub(crate) Arc<dyn Storage>);

#[derive(Debug)]
struct UnsyncedFile(Arc<dyn StorageFile>);

fn file(opened: io::Result<Arc<dyn StorageFile>>) -> io::Result<Arc<dyn StorageFile>> {
    Ok(Arc::new(UnsyncedFile(opened?)))
}

impl Storage for Unsynced {
    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        file(self.0.create_new(path))
    }

    fn open_append(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        file(self.0.open_append(path))
    }

    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        file(self.0.open_read(path))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.0.create_dir(path)
    }

    fn link_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        // No other process sees either name, and renaming is cheaper.
        self.0.rename_new(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.0.remove_file(path)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename_new(from, to)
    }

    fn replace(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.replace(from, to)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.0.remove_dir(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.0.list(dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.0.exists(path)
    }

    fn is_dir(&self, path: &Path) -> io::Result<bool> {
        self.0.is_dir(path)
    }

    fn is_link(&self, path: &Path) -> io::Result<bool> {
        self.0.is_link(path)
    }

    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    fn sync_tree(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }
}

impl StorageFile for UnsyncedFile {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buf, offset)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        self.0.append(bytes)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.0.truncate(len)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self) -> io::Result<()> {
        self.0.lock()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.0.try_lock()
    }

    fn lock_shared(&self) -> io::Result<()> {
        self.0.lock_shared()
    }

    fn try_lock_shared(&self) -> io::Result<bool> {
        self.0.try_lock_shared()
    }

    fn unlock(&self) -> io::Result<()> {
        self.0.unlock()
    }

    fn modified(&self) -> io::Result<SystemTime> {
        self.0.modified()
    }
}
