//! An open file of a memory storage.

use std::fmt;
use std::io;
use std::sync::{Arc, PoisonError};

use backtrail::StorageFile;

use super::Shared;
use super::disk::{EBADF, EINVAL, errno};
use crate::lock::lock;

/// Whether a handle may change its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Append,
}

/// A handle, whose lock ends with it.
pub(super) struct MemoryFile {
    shared: Arc<Shared>,
    file: usize,
    handle: u64,
    access: Access,
}

impl MemoryFile {
    pub(super) fn open(
        shared: &Arc<Shared>,
        file: usize,
        handle: u64,
        access: Access,
    ) -> Arc<dyn StorageFile> {
        Arc::new(Self {
            shared: Arc::clone(shared),
            file,
            handle,
            access,
        })
    }
}

impl fmt::Debug for MemoryFile {
    /// Omits the disk, which would bury the message of a failing test.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryFile")
            .field("file", &self.file)
            .field("handle", &self.handle)
            .field("access", &self.access)
            .finish_non_exhaustive()
    }
}

impl StorageFile for MemoryFile {
    fn len(&self) -> io::Result<u64> {
        Ok(lock(&self.shared.disk).files[self.file]
            .content
            .live()
            .len() as u64)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let disk = lock(&self.shared.disk);
        let live = disk.files[self.file].content.live();
        let start = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(live.len());
        let rest = &live[start..];
        let count = rest.len().min(buf.len());
        buf[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        match self.access {
            Access::Append => lock(&self.shared.disk).append(self.file, bytes),
            Access::Read => errno(EBADF),
        }
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        match self.access {
            Access::Append => lock(&self.shared.disk).resize(self.file, len),
            Access::Read => errno(EINVAL),
        }
    }

    fn sync(&self) -> io::Result<()> {
        lock(&self.shared.disk).files[self.file].content.sync();
        Ok(())
    }

    fn lock(&self) -> io::Result<()> {
        let mut disk = lock(&self.shared.disk);
        while !disk.try_lock(self.file, self.handle) {
            let woken = self.shared.unlocked.wait(disk);
            disk = woken.unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }

    fn try_lock(&self) -> io::Result<bool> {
        Ok(lock(&self.shared.disk).try_lock(self.file, self.handle))
    }

    fn lock_shared(&self) -> io::Result<()> {
        let mut disk = lock(&self.shared.disk);
        while !disk.try_share(self.file, self.handle) {
            let woken = self.shared.unlocked.wait(disk);
            disk = woken.unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }

    fn try_lock_shared(&self) -> io::Result<bool> {
        Ok(lock(&self.shared.disk).try_share(self.file, self.handle))
    }

    fn unlock(&self) -> io::Result<()> {
        lock(&self.shared.disk).unlock(self.file, self.handle);
        self.shared.unlocked.notify_all();
        Ok(())
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        lock(&self.shared.disk).close(self.file, self.handle);
        self.shared.unlocked.notify_all();
    }
}
