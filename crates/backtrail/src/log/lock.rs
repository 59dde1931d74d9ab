//! Who may write: the speaker's lock, and the short lock of each append.
//!
//! Both are locks of the operating system on files of their own. They are gone
//! with their process, however it ends; the files stay and mean nothing.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::directory::{LogDir, open_lock};
use crate::error::{Error, IoContext, Result};
use crate::storage::{Storage, StorageFile, append_all, read_full};
use crate::time::Timestamp;

/// Who holds a lock, as far as they left word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Holder {
    /// The process.
    pub pid: u32,
    /// What it calls itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Since when it holds the lock.
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

/// The right to speak in a session, until it is dropped.
#[derive(Debug)]
pub(crate) struct WriterLock {
    file: Arc<dyn StorageFile>,
}

/// How often a lock is tried before it counts as held.
const PATIENCE: u32 = 10;
const SPEAKER: &str = "speaker.lock";
const APPEND: &str = "append.lock";

impl WriterLock {
    /// Takes the lock, or says who holds it.
    pub(crate) fn take(files: &LogDir, me: &Holder) -> Result<Self> {
        let (path, file) = files.open_lock(SPEAKER)?;
        let failed = |error| Error::io("cannot lock the session", &path, error);
        let mut tries = 1;
        while !file.try_lock().map_err(failed)? {
            // Somebody may only be looking, or be about to leave word.
            if tries < PATIENCE {
                tries += 1;
                std::thread::sleep(Duration::from_millis(2));
                continue;
            }
            let holder = read_holder(file.as_ref());
            let by = holder
                .as_ref()
                .map_or_else(|| "another process".to_owned(), ToString::to_string);
            let message = format!("session {} is open for writing in {by}", files.id());
            return Err(Error::locked(message, &path, holder));
        }
        let lock = Self { file };
        // Only a courtesy to whoever finds the session locked.
        leave_word(lock.file.as_ref(), me).ok();
        Ok(lock)
    }
}

/// Says in a lock's file who holds it.
pub(crate) fn leave_word(file: &dyn StorageFile, me: &Holder) -> io::Result<()> {
    let word = serde_json::to_vec(me).map_err(io::Error::other)?;
    file.truncate(0)?;
    append_all(file, &word)
}

impl Drop for WriterLock {
    fn drop(&mut self) {
        // Closing the file would do; a clone of the handle may outlive us.
        self.file.unlock().ok();
    }
}

/// Returns whether somebody speaks in the session now, and who.
pub(crate) fn writer(files: &LogDir) -> Result<Option<Option<Holder>>> {
    let path: PathBuf = files.path().join(SPEAKER);
    let file = match files.storage().open_read(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("cannot open the lock", &path, error)),
    };
    match file.try_lock() {
        Ok(true) => {
            file.unlock().ok();
            Ok(None)
        }
        Ok(false) => Ok(Some(read_holder(file.as_ref()))),
        Err(error) => Err(Error::io("cannot look at the lock", &path, error)),
    }
}

/// Reads who holds a lock, as far as they left word.
pub(crate) fn read_holder(file: &dyn StorageFile) -> Option<Holder> {
    let mut word = [0; 1024];
    let len = read_full(file, &mut word, 0).ok()?;
    serde_json::from_slice(&word[..len]).ok()
}

/// The lock that every append takes for as long as its write.
#[derive(Debug, Clone)]
pub(crate) struct AppendLock {
    file: Arc<dyn StorageFile>,
    path: PathBuf,
}

impl AppendLock {
    pub(crate) fn open(files: &LogDir) -> Result<Self> {
        Self::named(files, APPEND)
    }

    /// Opens a lock with a purpose of its own, beside a trail.
    pub(crate) fn named(files: &LogDir, name: &str) -> Result<Self> {
        let (path, file) = files.open_lock(name)?;
        Ok(Self { file, path })
    }

    /// Makes a lock of a file itself, which is not in a store.
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

    /// Opens the lock without making it; `None` where nobody ever appended.
    pub(crate) fn open_existing(files: &LogDir) -> Result<Option<Self>> {
        let path = files.path().join(APPEND);
        match files.storage().open_read(&path) {
            Ok(file) => Ok(Some(Self { file, path })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("cannot open the lock", &path, error)),
        }
    }

    /// Holds the lock if it is free.
    pub(crate) fn try_hold(&self) -> Result<Option<AppendGuard<'_>>> {
        match self.file.try_lock() {
            Ok(free) => Ok(free.then(|| AppendGuard(self.file.as_ref()))),
            Err(error) => Err(Error::io("cannot lock the trail", &self.path, error)),
        }
    }

    /// Waits for the lock and holds it until the guard is dropped.
    pub(crate) fn hold(&self) -> Result<AppendGuard<'_>> {
        loop {
            match self.file.lock() {
                Ok(()) => return Ok(AppendGuard(self.file.as_ref())),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("cannot lock the trail", &self.path, error)),
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

/// Returns whether a file lies in a session's directory of some store: those have
/// locks beside them.
pub(crate) fn lies_in_store(storage: &dyn Storage, path: &Path) -> Result<bool> {
    storage
        .exists(&path.with_file_name(APPEND))
        .context("cannot look at the file's directory", path)
}
