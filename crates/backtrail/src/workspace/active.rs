//! The turns and runs that are running in a workspace.
//!
//! Each has a file beside the trail, locked by its process. The lock ends with the process,
//! so a file without a lock was left by a crash, and the next process removes it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Workspace;
use super::about::prompt;
use super::checkpoint::{Checkpoint, SessionPlace};
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

/// Whether to remove the files of dead processes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leftovers {
    Remove,
    Keep,
}

/// The content of the file.
#[derive(Debug, Serialize, Deserialize)]
struct ActivityFile {
    #[serde(flatten)]
    activity: Activity,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prompt: Option<SessionPlace>,
}

impl ActivityFile {
    fn read(file: &dyn StorageFile) -> Option<Self> {
        let mut bytes = vec![0; MAX_FILE];
        let len = read_full(file, &mut bytes, 0).ok()?;
        serde_json::from_slice(&bytes[..len]).ok()
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
        let bytes = serde_json::to_vec(&activity).map_err(|error| failed(error.into()))?;
        // No other process removes the file before it is locked.
        let _guard = LockFile::append(self.files())?.hold()?;
        let file = self.store().storage().create_new(&path).map_err(failed)?;
        file.lock().map_err(failed)?;
        append_all(file.as_ref(), &bytes).map_err(failed)?;
        Ok(Active {
            workspace: self.clone(),
            path,
            file,
        })
    }

    /// Returns the turns and runs that are running.
    ///
    /// # Errors
    ///
    /// Fails if the workspace's directory in the store cannot be read.
    pub fn active(&self) -> Result<Vec<Activity>> {
        self.read_active(Leftovers::Remove)
    }

    /// Returns the turns and runs that are running, without changing anything.
    pub(crate) fn at_work(&self) -> Result<Vec<Activity>> {
        self.read_active(Leftovers::Keep)
    }

    fn read_active(&self, leftovers: Leftovers) -> Result<Vec<Activity>> {
        let storage = self.store().storage();
        let Some(lock) = LockFile::existing(self.files())? else {
            return Ok(Vec::new());
        };
        let guard = lock.hold()?;
        let names = storage.list(self.files().path());
        let names = names.map_err(|error| self.failed("cannot list what is running", error))?;
        let mut all = Vec::new();
        for name in names {
            if !name.to_string_lossy().starts_with(PREFIX) {
                continue;
            }
            let path = self.files().path().join(name);
            let Ok(file) = storage.open_read(&path) else {
                continue;
            };
            if file.try_lock().unwrap_or(false) {
                // The process is gone.
                if leftovers == Leftovers::Remove {
                    storage.remove_file(&path).ok();
                }
            } else if let Some(activity) = ActivityFile::read(file.as_ref()) {
                all.push(activity);
            }
        }
        drop(guard);
        all.sort_by_key(|file: &ActivityFile| file.activity.holder.since);
        let all = all.into_iter();
        Ok(all
            .map(|activity| activity.into_activity(self.store()))
            .collect())
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        let storage = self.workspace.store().storage();
        // Without its lock, the next process removes it.
        let removed: io::Result<()> = storage.remove_file(&self.path);
        removed.ok();
        self.file.unlock().ok();
    }
}
