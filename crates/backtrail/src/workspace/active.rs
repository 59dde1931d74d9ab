//! Who works in a workspace now.
//!
//! A turn or run that is under way has a file of its own beside the trail, locked
//! by its process. The lock is gone with the process, so a file without one is
//! what a crash left, and is swept away by the next who looks.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Workspace;
use super::about::{About, prompt};
use super::checkpoint::{Checkpoint, SessionPlace};
use crate::error::Result;
use crate::ids::{CheckpointId, SessionId};
use crate::log::{AppendLock, Holder};
use crate::storage::{StorageFile, append_all, read_full};
use crate::store::Store;

const PREFIX: &str = "active-";
/// The longest file that is read.
const MAX_FILE: usize = 8 << 10;

/// A turn or run that is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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

/// The content of its file.
#[derive(Debug, Serialize, Deserialize)]
struct ActivityFile {
    checkpoint: CheckpointId,
    session: Option<SessionId>,
    about: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prompt: Option<SessionPlace>,
    holder: Holder,
}

impl ActivityFile {
    fn read(file: &dyn StorageFile) -> Option<Self> {
        let mut bytes = vec![0; MAX_FILE];
        let len = read_full(file, &mut bytes, 0).ok()?;
        serde_json::from_slice(&bytes[..len]).ok()
    }

    fn into_activity(self, store: &Store) -> Activity {
        let prompt = || match prompt(store, self.prompt.as_ref()?)? {
            About::Text(text) => Some(text),
            About::SessionDeleted => None,
        };
        Activity {
            about: self.about.or_else(prompt),
            checkpoint: self.checkpoint,
            session: self.session,
            holder: self.holder,
        }
    }
}

/// Says that a turn or run is under way, until it is dropped. It keeps nobody
/// from anything.
#[derive(Debug)]
pub struct Active {
    workspace: Workspace,
    path: PathBuf,
    file: Arc<dyn StorageFile>,
}

impl Workspace {
    /// Says that a turn or run is under way that began with a checkpoint.
    pub fn activate(&self, start: &Checkpoint) -> Result<Active> {
        let name = format!("{PREFIX}{}", start.id());
        let path = self.files().path().join(name);
        let activity = ActivityFile {
            checkpoint: start.id(),
            session: start.session().map(|place| place.id.clone()),
            about: start.about.clone(),
            prompt: start.prompt.clone(),
            holder: self.store().holder(),
        };
        let failed = |error| self.failed("cannot say that something is under way", error);
        let word = serde_json::to_vec(&activity).map_err(|error| failed(error.into()))?;
        // Nobody sweeps it away between its making and its lock.
        let lock = AppendLock::open(self.files())?;
        let _guard = lock.hold()?;
        let file = self.store().storage().create_new(&path).map_err(failed)?;
        file.lock().map_err(failed)?;
        append_all(file.as_ref(), &word).map_err(failed)?;
        Ok(Active {
            workspace: self.clone(),
            path,
            file,
        })
    }

    /// Returns the turns and runs that are under way.
    pub fn active(&self) -> Result<Vec<Activity>> {
        self.look_who(true)
    }

    /// Returns the turns and runs that are under way, and changes nothing.
    pub(crate) fn at_work(&self) -> Result<Vec<Activity>> {
        self.look_who(false)
    }

    fn look_who(&self, sweeps: bool) -> Result<Vec<Activity>> {
        let storage = self.store().storage();
        let Some(lock) = AppendLock::open_existing(self.files())? else {
            return Ok(Vec::new());
        };
        let guard = lock.hold()?;
        let names = storage.list(self.files().path());
        let names = names.map_err(|error| self.failed("cannot look who is at work", error))?;
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
                // Its process is gone.
                if sweeps {
                    storage.remove_file(&path).ok();
                }
            } else if let Some(activity) = ActivityFile::read(file.as_ref()) {
                all.push(activity);
            }
        }
        drop(guard);
        all.sort_by_key(|activity: &ActivityFile| activity.holder.since);
        let all = all.into_iter();
        Ok(all
            .map(|activity| activity.into_activity(self.store()))
            .collect())
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        let storage = self.workspace.store().storage();
        // Without its lock, whoever looks next sweeps it away.
        let removed: io::Result<()> = storage.remove_file(&self.path);
        removed.ok();
        self.file.unlock().ok();
    }
}
