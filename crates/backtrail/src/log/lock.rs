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

use super::directory::LogDir;
use crate::error::{Error, IoContext, Result};
use crate::storage::{Storage, StorageFile, append_all, if_found, read_full};
use crate::store::Store;
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

/// How often a lock is tried before it counts as held.
const PATIENCE: u32 = 10;
const PAUSE: Duration = Duration::from_millis(2);
const WRITER: &str = "speaker.lock";
const APPEND: &str = "append.lock";

/// Takes the right to write messages to a session, or fails with who has it.
pub(crate) fn hold_writer(store: &Store, files: &LogDir) -> Result<HeldLock> {
    let lock = LockFile::open(files.storage(), files.path(), WRITER)?;
    let message = format!("session {} is being written to by", files.id());
    lock.take(&store.holder(), &message)
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
fn read_holder(file: &dyn StorageFile) -> Option<Holder> {
    let mut word = [0; 1024];
    let len = read_full(file, &mut word, 0).ok()?;
    serde_json::from_slice(&word[..len]).ok()
}

/// The file of a lock. Every append holds one during its write.
#[derive(Debug, Clone)]
pub(crate) struct LockFile {
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn StorageFile>,
}

impl LockFile {
    /// Opens the lock that every append to a log takes.
    pub(crate) fn append(files: &LogDir) -> Result<Self> {
        Self::open(files.storage(), files.path(), APPEND)
    }

    /// Opens a lock in a directory, creating it if it does not exist.
    pub(crate) fn open(storage: &dyn Storage, dir: &Path, name: &str) -> Result<Self> {
        let path = dir.join(name);
        let mut opened = storage.open_append(&path);
        if matches!(&opened, Err(error) if error.kind() == io::ErrorKind::NotFound) {
            opened = match storage.create_new(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    storage.open_append(&path)
                }
                created => created,
            };
        }
        let file = opened.context("cannot open the lock", &path)?;
        Ok(Self { path, file })
    }

    /// Opens the lock of appends without creating it; `None` if nothing was ever appended.
    pub(crate) fn existing(files: &LogDir) -> Result<Option<Self>> {
        let path = files.path().join(APPEND);
        let file = if_found(files.storage().open_read(&path));
        let file = file.context("cannot open the lock", &path)?;
        Ok(file.map(|file| Self { path, file }))
    }

    /// Takes the lock for long and records by whom, or fails with its holder. `message` is
    /// followed by the holder.
    pub(crate) fn take(&self, me: &Holder, message: &str) -> Result<HeldLock> {
        // Another process may only be checking the lock, or be about to write its name.
        if let Some(held) = self.try_for(PATIENCE, PAUSE)? {
            // Used only in the message of a process that finds it locked.
            write_holder(self.file.as_ref(), me).ok();
            return Ok(held);
        }
        let holder = read_holder(self.file.as_ref());
        let by = match &holder {
            Some(holder) => holder.to_string(),
            None => "another process".to_owned(),
        };
        Err(Error::locked(format!("{message} {by}"), &self.path, holder))
    }

    /// Holds the lock if it is free.
    pub(crate) fn try_hold(&self) -> Result<Option<HeldLock>> {
        let is_free = self.file.try_lock().context("cannot lock", &self.path)?;
        Ok(is_free.then(|| HeldLock(Arc::clone(&self.file))))
    }

    /// Tries to take the lock a few times.
    pub(crate) fn try_for(&self, tries: u32, pause: Duration) -> Result<Option<HeldLock>> {
        let mut held = self.try_hold()?;
        for _ in 1..tries {
            if held.is_none() {
                std::thread::sleep(pause);
                held = self.try_hold()?;
            }
        }
        Ok(held)
    }

    /// Waits for the lock and holds it until the guard is dropped.
    pub(crate) fn hold(&self) -> Result<HeldLock> {
        self.wait(|file| file.lock())
    }

    /// Waits for the lock and holds it together with others that share it.
    pub(crate) fn hold_shared(&self) -> Result<HeldLock> {
        self.wait(|file| file.lock_shared())
    }

    fn wait(&self, take: impl Fn(&dyn StorageFile) -> io::Result<()>) -> Result<HeldLock> {
        loop {
            match take(self.file.as_ref()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                taken => {
                    taken.context("cannot lock", &self.path)?;
                    return Ok(HeldLock(Arc::clone(&self.file)));
                }
            }
        }
    }
}

/// A lock, held until it is dropped.
#[derive(Debug)]
pub(crate) struct HeldLock(Arc<dyn StorageFile>);

impl Drop for HeldLock {
    fn drop(&mut self) {
        // Closing the file would be enough, but a clone of the handle may live longer.
        self.0.unlock().ok();
    }
}

/// Writes the holder to a lock's file.
fn write_holder(file: &dyn StorageFile, me: &Holder) -> io::Result<()> {
    let word = serde_json::to_vec(me).map_err(io::Error::other)?;
    file.truncate(0)?;
    append_all(file, &word)
}

/// Returns whether a file is in a session's directory of some store: those contain lock
/// files.
pub(crate) fn lies_in_store(storage: &dyn Storage, path: &Path) -> Result<bool> {
    storage
        .exists(&path.with_file_name(APPEND))
        .context("cannot inspect the file's directory", path)
}
