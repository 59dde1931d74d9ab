//! Tantivy's files.
//!
//! Large files are on disk, written once and never changed. The small ones that tantivy
//! replaces (the list of segments) are kept in memory: they are part of the commit, which
//! is one file, so that there is a single atomic step from one state to the next.
//!
//! Tantivy leaves permissions to the umask. Here each file is its owner's alone.

use std::collections::HashMap;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use tantivy::Directory;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    DirectoryLock, FileHandle, Lock, MmapDirectory, WatchCallback, WatchHandle, WritePtr,
};

/// The file from which tantivy reads the list of segments.
pub(super) const META: &str = "meta.json";

/// Files on disk, and small ones in memory.
#[derive(Debug, Clone)]
pub(super) struct Files {
    dir: PathBuf,
    disk: MmapDirectory,
    small: Arc<RwLock<HashMap<PathBuf, Vec<u8>>>>,
}

impl Files {
    /// Opens an existing directory.
    pub(super) fn open(dir: &Path) -> tantivy::Result<Self> {
        Ok(Self {
            dir: dir.to_owned(),
            disk: MmapDirectory::open(dir)?,
            small: Arc::default(),
        })
    }

    /// Sets the list of segments.
    pub(super) fn with_meta(self, meta: &[u8]) -> Self {
        self.put(Path::new(META), meta);
        self
    }

    fn put(&self, path: &Path, data: &[u8]) {
        let mut small = self.small.write().unwrap_or_else(PoisonError::into_inner);
        small.insert(path.to_owned(), data.to_owned());
    }

    fn get(&self, path: &Path) -> Option<Vec<u8>> {
        let small = self.small.read().unwrap_or_else(PoisonError::into_inner);
        small.get(path).cloned()
    }
}

impl Directory for Files {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        self.disk.get_file_handle(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.disk.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        if self.get(path).is_some() {
            return Ok(true);
        }
        self.disk.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let file = self.disk.open_write(path)?;
        let private = Permissions::from_mode(0o600);
        match std::fs::set_permissions(self.dir.join(path), private) {
            Ok(()) => Ok(file),
            Err(error) => Err(OpenWriteError::wrap_io_error(error, path.to_owned())),
        }
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        let missing = || OpenReadError::FileDoesNotExist(path.to_owned());
        self.get(path).ok_or_else(missing)
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        self.put(path, data);
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        // The commit does it, once.
        Ok(())
    }

    fn acquire_lock(&self, _lock: &Lock) -> Result<DirectoryLock, LockError> {
        // The writer holds a lock of its own.
        Ok(DirectoryLock::from(Box::new(())))
    }

    fn watch(&self, _callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}
