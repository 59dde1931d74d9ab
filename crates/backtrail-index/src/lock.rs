//! The lock for catching up: one process at a time.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::files::open_lock;

/// How often to retry a lock that is held.
const INTERVAL: Duration = Duration::from_millis(5);

/// A lock of the operating system, released when its process ends.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "it is held, not used")] File);

impl Lock {
    /// Takes the lock, waiting for a while. Returns `None` if another process holds it or
    /// nothing can be written here.
    pub(crate) fn take(path: &Path, patience: Duration) -> Result<Option<Self>> {
        let failed = |error| Error::io("cannot lock", path, error);
        let file = match open_lock(path) {
            Ok(file) => file,
            Err(error) if is_read_only(&error) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let began = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(Self(file))),
                Err(TryLockError::WouldBlock) if began.elapsed() >= patience => return Ok(None),
                Err(TryLockError::WouldBlock) => thread::sleep(INTERVAL),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
    }
}

/// Returns whether an error means that nothing can be written, so that derived data is
/// built in memory.
pub(crate) fn is_read_only(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
    )
}
