//! The local disk, with its syncs counted and optionally skipped.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use backtrail::{LocalStorage, Storage, StorageFile};

/// What happens when the engine syncs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Syncs {
    Made,
    /// It is only counted, as if the disk took no time.
    Skipped,
}

/// The local disk with counted syncs.
#[derive(Debug, Clone)]
pub(crate) struct CountedStorage {
    syncs: Syncs,
    asked: Arc<SyncCounters>,
}

/// How many syncs were requested.
#[derive(Debug, Default)]
struct SyncCounters {
    of_files: AtomicUsize,
    of_dirs: AtomicUsize,
}

/// The number of syncs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SyncCount {
    pub(super) of_files: usize,
    pub(super) of_dirs: usize,
}

impl CountedStorage {
    pub(crate) fn new(syncs: Syncs) -> Self {
        Self {
            syncs,
            asked: Arc::default(),
        }
    }

    /// Returns how many syncs were requested since the last call.
    pub(super) fn take_count(&self) -> SyncCount {
        SyncCount {
            of_files: self.asked.of_files.swap(0, Ordering::Relaxed),
            of_dirs: self.asked.of_dirs.swap(0, Ordering::Relaxed),
        }
    }

    fn watch(&self, file: Arc<dyn StorageFile>) -> Arc<dyn StorageFile> {
        Arc::new(CountedFile {
            file,
            syncs: self.syncs,
            asked: Arc::clone(&self.asked),
        })
    }
}

impl Storage for CountedStorage {
    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        Ok(self.watch(LocalStorage.create_new(path)?))
    }

    fn open_append(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        Ok(self.watch(LocalStorage.open_append(path)?))
    }

    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        Ok(self.watch(LocalStorage.open_read(path)?))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        LocalStorage.create_dir(path)
    }

    fn link_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        LocalStorage.link_new(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        LocalStorage.remove_file(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        LocalStorage.list(dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        LocalStorage.exists(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.asked.of_dirs.fetch_add(1, Ordering::Relaxed);
        match self.syncs {
            Syncs::Made => LocalStorage.sync_dir(dir),
            Syncs::Skipped => Ok(()),
        }
    }
}

#[derive(Debug)]
struct CountedFile {
    file: Arc<dyn StorageFile>,
    syncs: Syncs,
    asked: Arc<SyncCounters>,
}

impl StorageFile for CountedFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buf, offset)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        self.file.append(bytes)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.file.truncate(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.asked.of_files.fetch_add(1, Ordering::Relaxed);
        match self.syncs {
            Syncs::Made => self.file.sync(),
            Syncs::Skipped => Ok(()),
        }
    }

    fn lock(&self) -> io::Result<()> {
        self.file.lock()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.file.try_lock()
    }

    fn unlock(&self) -> io::Result<()> {
        self.file.unlock()
    }

    fn modified(&self) -> io::Result<SystemTime> {
        self.file.modified()
    }
}

#[cfg(test)]
mod tests {
    use backtrail::{Message, SessionOptions, StoreOptions};

    use super::*;

    #[test]
    fn syncs_are_counted_whether_they_are_made_or_not() {
        for syncs in [Syncs::Made, Syncs::Skipped] {
            let dir = tempfile::tempdir().unwrap();
            let watched = CountedStorage::new(syncs);
            let options = StoreOptions::new().storage(watched.clone());
            let store = options.open_or_create(dir.path().join("store")).unwrap();
            let session = store.create_session(SessionOptions::new()).unwrap();
            assert!(watched.take_count().of_dirs > 0);
            session.append(Message::user_text("hello")).unwrap();
            let one = SyncCount {
                of_files: 1,
                of_dirs: 0,
            };
            assert_eq!(watched.take_count(), one, "{syncs:?}");
        }
    }
}
