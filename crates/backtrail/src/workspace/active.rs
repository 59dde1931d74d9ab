//! The turns and runs that are running in a workspace.
//!
//! Each has a file beside the trail, locked by its process. The lock ends with the process,
//! so a file without a lock was left by a crash. It ends with the last sign of life. A turn of
//! another program is not locked: its file names that program's process instead.

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Workspace;
use super::about::prompt;
use super::agent_place::AgentPlace;
use super::checkpoint::{Checkpoint, SessionPlace};
use super::process::Process;
use super::sign_of_life::{Heartbeat, SignOfLife};
use crate::error::Result;
use crate::ids::{CheckpointId, SessionId};
use crate::log::{HeldLock, Holder, LockFile};
use crate::storage::{StorageFile, append_all, read_full};
use crate::store::Store;

const PREFIX: &str = "active-";
/// How often the lock is tried by who only reads. An append holds it for a moment.
const PATIENCE: u32 = 50;
const PAUSE: Duration = Duration::from_millis(2);
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

/// What is running, and what is left of what died.
type Seen = (Vec<ActivityFile>, Vec<DeadActivity>);

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
    /// The session of another program whose turn it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<AgentPlace>,
    /// The process of that program, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    process: Option<Process>,
}

/// A turn of another program that is running.
#[derive(Debug, Clone)]
pub(super) struct AgentActivity {
    pub(super) start: CheckpointId,
    pub(super) agent: AgentPlace,
    path: PathBuf,
}

impl AgentActivity {
    pub(super) fn new(workspace: &Workspace, start: &Checkpoint, agent: AgentPlace) -> Self {
        Self {
            start: start.id(),
            agent,
            path: workspace.activity_path(start.id()),
        }
    }
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

    /// Returns whether the turn of another program goes on. One whose process is not known
    /// does until its end comes.
    fn is_alive(&self) -> bool {
        let process = self.process.as_ref();
        self.agent.is_some() && process.is_none_or(Process::is_running)
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
        let path = self.activity_path(start.id());
        let failed = |error| self.failed("cannot mark the run as running", error);
        let sign = SignOfLife::now(None);
        let (bytes, len) = self.activity_bytes(start, None, sign.as_ref())?;
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

    /// Marks a turn of another program as running, for as long as its process runs and
    /// [`end_agent_activity`](Self::end_agent_activity) is not called.
    pub(super) fn activate_agent(
        &self,
        start: &Checkpoint,
        process: Option<Process>,
    ) -> Result<()> {
        let failed = |error| self.failed("cannot mark the turn as running", error);
        let path = self.activity_path(start.id());
        let sign = SignOfLife::now(None);
        let (bytes, _) = self.activity_bytes(start, process, sign.as_ref())?;
        let _guard = LockFile::append(self.files())?.hold()?;
        let file = self.store().storage().create_new(&path).map_err(failed)?;
        append_all(file.as_ref(), &bytes).map_err(failed)
    }

    fn activity_path(&self, start: CheckpointId) -> PathBuf {
        self.files().path().join(format!("{PREFIX}{start}"))
    }

    /// Returns the content of the file that marks a turn or run as running, and the length of
    /// its first line.
    fn activity_bytes(
        &self,
        start: &Checkpoint,
        process: Option<Process>,
        sign: Option<&SignOfLife>,
    ) -> Result<(Vec<u8>, u64)> {
        let mut holder = self.store().holder();
        if let Some(process) = &process {
            holder.pid = process.pid;
        }
        let activity = ActivityFile {
            activity: Activity {
                checkpoint: start.id(),
                session: start.session().map(|place| place.id.clone()),
                about: start.record.about.clone(),
                holder,
            },
            prompt: start.record.prompt.clone(),
            agent: start.agent().cloned(),
            process,
        };
        let failed =
            |error: serde_json::Error| self.failed("cannot mark it as running", error.into());
        let mut bytes = serde_json::to_vec(&activity).map_err(failed)?;
        bytes.push(b'\n');
        let len = bytes.len() as u64;
        bytes.extend(sign.into_iter().flat_map(SignOfLife::line));
        Ok((bytes, len))
    }

    /// Returns the turns of other programs that are running.
    pub(super) fn agent_activities(&self) -> Result<Vec<AgentActivity>> {
        let all = self.look_at_active()?.0.into_iter();
        Ok(all
            .filter_map(|file| {
                let start = file.activity.checkpoint;
                Some(AgentActivity {
                    start,
                    agent: file.agent?,
                    path: self.activity_path(start),
                })
            })
            .collect())
    }

    /// Notes that a turn of another program is alive.
    pub(super) fn sign_agent_activity(&self, turn: &AgentActivity) {
        let storage = self.store().storage();
        let sign = || {
            let file = storage.open_append(&turn.path).ok()?;
            let bytes = read_file(file.as_ref())?;
            let len = bytes.iter().position(|byte| *byte == b'\n')? + 1;
            let from = SignOfLife::read(&bytes).map(|sign| sign.from);
            let sign = SignOfLife::now(from)?;
            file.replace_end(len as u64, &sign.line()).ok()
        };
        // A sign that cannot be written is missing, which is safe.
        sign();
    }

    /// Removes the mark of a turn of another program.
    pub(super) fn end_agent_activity(&self, turn: &AgentActivity) {
        // What cannot be removed now goes when the process is gone.
        self.store().storage().remove_file(&turn.path).ok();
    }

    /// Makes a turn of another program one whose process died: the next process that takes the
    /// snapshot lock ends it.
    pub(super) fn interrupt_agent_activity(&self, turn: &AgentActivity) -> Result<()> {
        let failed = |error| self.failed("cannot end the turn before", error);
        let storage = self.store().storage();
        let file = storage.open_append(&turn.path).map_err(failed)?;
        let bytes = read_file(file.as_ref()).unwrap_or_default();
        let mut lines = bytes.splitn(2, |byte| *byte == b'\n');
        let first = lines.next().unwrap_or_default();
        let Ok(mut activity) = serde_json::from_slice::<ActivityFile>(first) else {
            return Ok(());
        };
        (activity.agent, activity.process) = (None, None);
        let mut content = serde_json::to_vec(&activity).map_err(|error| failed(error.into()))?;
        content.push(b'\n');
        content.extend(lines.next().unwrap_or_default());
        file.replace_end(0, &content).map_err(failed)
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

    /// Returns the checkpoints that turns and runs began with that seem to be running. It waits
    /// for no lock, so one whose process just died may be among them.
    pub(super) fn seem_active(&self) -> HashSet<CheckpointId> {
        let storage = self.store().storage();
        let names = storage.list(self.files().path()).unwrap_or_default();
        let starts = names.iter().filter_map(|name| {
            let start = name.to_str()?.strip_prefix(PREFIX)?.parse().ok()?;
            let file = storage.open_read(&self.activity_path(start)).ok()?;
            let read = ActivityFile::read(file.as_ref())?;
            (read.agent.is_none() || read.is_alive()).then_some(start)
        });
        starts.collect()
    }

    /// Returns the checkpoints that turns and runs began with that are running. If another process
    /// holds the lock, those that seem to be: who only reads does not wait for it.
    pub(super) fn active_starts(&self) -> Result<HashSet<CheckpointId>> {
        let Some((all, _)) = self.try_look_at_active()? else {
            return Ok(self.seem_active());
        };
        let all = all.into_iter();
        Ok(all.map(|file| file.activity.checkpoint).collect())
    }

    /// Returns whether a process died here. If another one holds the lock, that is found later.
    pub(super) fn has_dead_activity(&self) -> Result<bool> {
        let looked = self.try_look_at_active()?;
        Ok(looked.is_some_and(|(_, dead)| !dead.is_empty()))
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

    fn look_at_active(&self) -> Result<Seen> {
        let Some(lock) = LockFile::existing(self.files())? else {
            return Ok(Seen::default());
        };
        self.look_under(&lock.hold()?)
    }

    /// Does the same, but gives up if another process holds the lock for more than a moment.
    fn try_look_at_active(&self) -> Result<Option<Seen>> {
        let Some(lock) = LockFile::existing(self.files())? else {
            return Ok(Some(Seen::default()));
        };
        let guard = lock.try_for(PATIENCE, PAUSE)?;
        guard.map(|guard| self.look_under(&guard)).transpose()
    }

    fn look_under(&self, _guard: &HeldLock) -> Result<Seen> {
        let storage = self.store().storage();
        let (mut all, mut dead) = (Vec::new(), Vec::new());
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
            let read = ActivityFile::read(file.as_ref());
            if !file.try_lock().unwrap_or(false) {
                all.extend(read);
            } else if let Some(alive) = read.filter(ActivityFile::is_alive) {
                all.push(alive);
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
