//! The turns and runs that are running in a workspace.
//!
//! Each has a file beside the trail, locked by its process. The lock ends with the process,
//! so a file without a lock was left by a crash. It ends with the last sign of life.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Workspace;
use super::about::prompt;
use super::checkpoint::{Checkpoint, SessionPlace};
use super::sign_of_life::{Heartbeat, SignOfLife};
use crate::error::Result;
use crate::ids::{CheckpointId, SessionId};
use crate::log::{Holder, LockFile};
use crate::storage::{StorageFile, append_all, read_full};
use crate::store::Store;

const PREFIX: &str = "active-";
/// The longest file that is read.
const MAX_FILE: usize = 8 << 10;

/// A turn or run that is running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Activity {
    /// The checkpoint that it began with.
    pub checkpoint: CheckpointId,
    /// Its session.
    pub session: Option<SessionId>,
    /// The command of a run, or the beginning of a turn's prompt.
    pub about: Option<String>,
    /// The process.
    pub holder: Holder,
}

/// What a turn or run left whose process died.
#[derive(Debug)]
pub(super) struct DeadActivity {
    pub(super) start: CheckpointId,
    /// Its last sign of life, if that is readable.
    pub(super) sign: Option<SignOfLife>,
    path: PathBuf,
}

/// The first line of the file; the second is a sign of life.
#[derive(Debug, Serialize, Deserialize)]
struct ActivityFile {
    #[serde(flatten)]
    activity: Activity,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prompt: Option<SessionPlace>,
}

/// Reads the beginning of a file.
fn read_file(file: &dyn StorageFile) -> Option<Vec<u8>> {
    let mut bytes = vec![0; MAX_FILE];
    let len = read_full(file, &mut bytes, 0).ok()?;
    bytes.truncate(len);
    Some(bytes)
}

impl ActivityFile {
    fn read(file: &dyn StorageFile) -> Option<Self> {
        let bytes = read_file(file)?;
        let first = bytes.split(|byte| *byte == b'\n').next()?;
        serde_json::from_slice(first).ok()
    }

    fn into_activity(self, store: &Store) -> Activity {
        let prompt = self.prompt.as_ref().and_then(|place| prompt(store, place));
        let prompt = prompt.and_then(|prompt| prompt.text().map(ToOwned::to_owned));
        Activity {
            about: self.activity.about.or(prompt),
            ..self.activity
        }
    }
}

/// Marks a turn or run as running until it is dropped. It locks nothing.
#[derive(Debug)]
pub struct Active {
    workspace: Workspace,
    path: PathBuf,
    file: Arc<dyn StorageFile>,
    /// Stops before the file is removed.
    heartbeat: Option<Heartbeat>,
}

impl Workspace {
    /// Marks the turn or run that began with a checkpoint as running.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be written.
    pub fn activate(&self, start: &Checkpoint) -> Result<Active> {
        let name = format!("{PREFIX}{}", start.id());
        let path = self.files().path().join(name);
        let activity = ActivityFile {
            activity: Activity {
                checkpoint: start.id(),
                session: start.session().map(|place| place.id.clone()),
                about: start.record.about.clone(),
                holder: self.store().holder(),
            },
            prompt: start.record.prompt.clone(),
        };
        let failed = |error| self.failed("cannot mark the run as running", error);
        let mut bytes = serde_json::to_vec(&activity).map_err(|error| failed(error.into()))?;
        bytes.push(b'\n');
        let len = bytes.len() as u64;
        let sign = SignOfLife::now(None);
        bytes.extend(sign.iter().flat_map(SignOfLife::line));
        // No other process removes the file before it is locked.
        let _guard = LockFile::append(self.files())?.hold()?;
        let file = self.store().storage().create_new(&path).map_err(failed)?;
        file.lock().map_err(failed)?;
        append_all(file.as_ref(), &bytes).map_err(failed)?;
        let heartbeat = sign.and_then(|sign| Heartbeat::start(&file, len, sign.from));
        Ok(Active {
            workspace: self.clone(),
            path,
            file,
            heartbeat,
        })
    }

    /// Returns the turns and runs that are running.
    ///
    /// # Errors
    ///
    /// Fails if the workspace's directory in the store cannot be read.
    pub fn active(&self) -> Result<Vec<Activity>> {
        let mut all = self.look_at_active()?.0;
        all.sort_by_key(|file| file.activity.holder.since);
        let all = all.into_iter();
        Ok(all
            .map(|activity| activity.into_activity(self.store()))
            .collect())
    }

    /// Returns what is left of turns and runs whose process died.
    pub(super) fn dead(&self) -> Result<Vec<DeadActivity>> {
        self.look_at_active().map(|(_, dead)| dead)
    }

    /// Removes what is left of a turn or run whose process died.
    pub(super) fn forget_dead(&self, dead: &DeadActivity) {
        // What cannot be removed now is looked at again.
        self.store().storage().remove_file(&dead.path).ok();
    }

    fn look_at_active(&self) -> Result<(Vec<ActivityFile>, Vec<DeadActivity>)> {
        let storage = self.store().storage();
        let (mut all, mut dead) = (Vec::new(), Vec::new());
        let Some(lock) = LockFile::existing(self.files())? else {
            return Ok((all, dead));
        };
        let _guard = lock.hold()?;
        let names = storage.list(self.files().path());
        let names = names.map_err(|error| self.failed("cannot list what is running", error))?;
        for name in names {
            let name = name.to_string_lossy();
            let Some(id) = name.strip_prefix(PREFIX) else {
                continue;
            };
            let path = self.files().path().join(&*name);
            let Ok(file) = storage.open_read(&path) else {
                continue;
            };
            if !file.try_lock().unwrap_or(false) {
                all.extend(ActivityFile::read(file.as_ref()));
            } else if let Ok(start) = id.parse() {
                let bytes = read_file(file.as_ref());
                let sign = bytes.and_then(|bytes| SignOfLife::read(&bytes));
                dead.push(DeadActivity { start, sign, path });
            }
        }
        Ok((all, dead))
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        let storage = self.workspace.store().storage();
        drop(self.heartbeat.take());
        // Without its lock, the next process removes it.
        let removed: io::Result<()> = storage.remove_file(&self.path);
        removed.ok();
        self.file.unlock().ok();
    }
}
