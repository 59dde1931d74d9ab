//! Locks: the writer's lock, and the short lock of each append.
//!
//! Both are locks of the operating system on separate files. They end with their process,
//! however it ends; the files stay and mean nothing.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::directory::{LogDir, open_lock};
use crate::error::{Error, IoContext, Result};
use crate::storage::{Storage, StorageFile, append_all, if_found, read_full};
use crate::time::Timestamp;

/// The process that holds a lock, as recorded in the lock's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Holder {
    /// The process id.
    pub pid: u32,
    /// The program's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// When it took the lock.
    pub since: Timestamp,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.pid)?;
        match &self.program {
            Some(program) => write!(f, " ({program}, since {})", self.since),
            None => write!(f, " (since {})", self.since),
        }
    }
}

/// The right to write messages to a session, until it is dropped.
#[derive(Debug)]
pub(crate) struct WriterLock {
    file: Arc<dyn StorageFile>,
}

/// How often a lock is tried before it counts as held.
const PATIENCE: u32 = 10;
const WRITER: &str = "speaker.lock";
const APPEND: &str = "append.lock";

impl WriterLock {
    /// Takes the lock, or fails with its holder.
    pub(crate) fn take(files: &LogDir, me: &Holder) -> Result<Self> {
        let (path, file) = files.open_lock(WRITER)?;
        let failed = |error| Error::io("cannot lock the session", &path, error);
        let mut tries = 1;
        while !file.try_lock().map_err(failed)? {
            // Another process may only be checking the lock, or be about to write its name.
            if tries < PATIENCE {
                tries += 1;
                std::thread::sleep(Duration::from_millis(2));
                continue;
            }
            let holder = read_holder(file.as_ref());
            let by = holder
                .as_ref()
                .map_or_else(|| "another process".to_owned(), ToString::to_string);
            let message = format!("session {} is being written to by {by}", files.id());
            return Err(Error::locked(message, &path, holder));
        }
        let lock = Self { file };
        // Used only in the message of a process that finds the session locked.
        write_holder(lock.file.as_ref(), me).ok();
        Ok(lock)
    }
}

/// Writes the holder to a lock's file.
pub(crate) fn write_holder(file: &dyn StorageFile, me: &Holder) -> io::Result<()> {
    let word = serde_json::to_vec(me).map_err(io::Error::other)?;
    file.truncate(0)?;
    append_all(file, &word)
}

impl Drop for WriterLock {
    fn drop(&mut self) {
        // Closing the file would be enough, but a clone of the handle may live longer.
        self.file.unlock().ok();
    }
}

/// Returns whether a process is writing to the session, and which.
pub(crate) fn writer(files: &LogDir) -> Result<Option<Option<Holder>>> {
    let path = files.path().join(WRITER);
    let file = if_found(files.storage().open_read(&path)).context("cannot open the lock", &path)?;
    let Some(file) = file else {
        return Ok(None);
    };
    if file.try_lock().context("cannot check the lock", &path)? {
        file.unlock().ok();
        return Ok(None);
    }
    Ok(Some(read_holder(file.as_ref())))
}

/// Reads the holder of a lock from its file, if it is recorded there.
pub(crate) fn read_holder(file: &dyn StorageFile) -> Option<Holder> {
    let mut word = [0; 1024];
    let len = read_full(file, &mut word, 0).ok()?;
    serde_json::from_slice(&word[..len]).ok()
}

/// The lock that every append holds during its write.
#[derive(Debug, Clone)]
pub(crate) struct AppendLock {
    file: Arc<dyn StorageFile>,
    path: PathBuf,
}

impl AppendLock {
    pub(crate) fn open(files: &LogDir) -> Result<Self> {
        Self::named(files, APPEND)
    }

    /// Opens a lock for another purpose, beside a trail.
    pub(crate) fn named(files: &LogDir, name: &str) -> Result<Self> {
        let (path, file) = files.open_lock(name)?;
        Ok(Self { file, path })
    }

    /// Creates a lock on a file itself, for a file outside a store.
    pub(crate) fn of_file(path: &Path, file: Arc<dyn StorageFile>) -> Self {
        Self {
            file,
            path: path.to_owned(),
        }
    }

    /// Opens the lock of a directory of the store.
    pub(crate) fn in_dir(storage: &dyn Storage, dir: &Path) -> Result<Self> {
        let (path, file) = open_lock(storage, dir, APPEND)?;
        Ok(Self { file, path })
    }

    /// Opens the lock without creating it; `None` if nothing was ever appended.
    pub(crate) fn open_existing(files: &LogDir) -> Result<Option<Self>> {
        let path = files.path().join(APPEND);
        let file = if_found(files.storage().open_read(&path));
        let file = file.context("cannot open the lock", &path)?;
        Ok(file.map(|file| Self { file, path }))
    }

    /// Holds the lock if it is free.
    pub(crate) fn try_hold(&self) -> Result<Option<AppendGuard<'_>>> {
        let is_free = self
            .file
            .try_lock()
            .context("cannot lock the trail", &self.path)?;
        Ok(is_free.then(|| AppendGuard(self.file.as_ref())))
    }

    /// Waits for the lock and holds it until the guard is dropped.
    pub(crate) fn hold(&self) -> Result<AppendGuard<'_>> {
        loop {
            match self.file.lock() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                locked => {
                    locked.context("cannot lock the trail", &self.path)?;
                    return Ok(AppendGuard(self.file.as_ref()));
                }
            }
        }
    }
}

/// The short lock, held.
#[derive(Debug)]
pub(crate) struct AppendGuard<'a>(&'a dyn StorageFile);

impl Drop for AppendGuard<'_> {
    fn drop(&mut self) {
        self.0.unlock().ok();
    }
}

/// Returns whether a file is in a session's directory of some store: those contain lock
/// files.
pub(crate) fn lies_in_store(storage: &dyn Storage, path: &Path) -> Result<bool> {
    storage
        .exists(&path.with_file_name(APPEND))
        .context("cannot inspect the file's directory", path)
}
