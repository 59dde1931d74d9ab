//! The objects that the workspaces' trails name.
//!
//! A record, a line or a directory that cannot be read may name objects that nothing else
//! names. So it stops the clean-up with an error: nothing is removed because it could not
//! be read (F21).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;

use serde::Deserialize;

use crate::error::{Error, ErrorKind, Reason, Result};
use crate::ids::{CheckpointId, SessionId, WorkspaceId};
use crate::log::{LogDir, LogReader};
use crate::objects::ObjectId;
use crate::storage::is_absent;
use crate::store::Store;
use crate::time::Timestamp;
use crate::trail::lines::STREAM_BUFFER;
use crate::trail::opener::Opener;
use crate::trail::reader::{Found, TrailReader};
use crate::trail::{RecordKind, RecordRef, Sums, trail_number};
use crate::workspace::checkpoint_record::CheckpointRecord;
use crate::workspace::step_record::{GivenUp, StepRecord};
use crate::workspace::{Binding, CheckpointReason, must_be_new};
use crate::workspace::{bindings, dropped};

/// The trails of all workspaces, as far as they were read.
#[derive(Debug)]
pub(super) struct Trails {
    store: Store,
    pub(super) workspaces: BTreeMap<WorkspaceId, WorkspaceRecords>,
}

/// The fields of a checkpoint that matter here.
#[derive(Debug, Clone)]
pub(super) struct KeptCheckpoint {
    pub(super) id: CheckpointId,
    pub(super) snapshot: ObjectId,
    pub(super) reason: CheckpointReason,
    pub(super) is_labelled: bool,
    pub(super) session: Option<SessionId>,
    /// When it was made; never before an earlier record, though clocks may go back.
    pub(super) at: Timestamp,
}

/// The records of one workspace.
#[derive(Debug, Default)]
pub(super) struct WorkspaceRecords {
    /// How far each trail was read.
    read: BTreeMap<u32, u64>,
    /// In the order in which they were made.
    pub(super) kept: Vec<KeptCheckpoint>,
    known: HashSet<CheckpointId>,
    pub(super) dropped: HashSet<CheckpointId>,
    rewinds: HashMap<CheckpointId, StepRecord>,
    given_up: HashSet<CheckpointId>,
    pub(super) marks: Vec<ObjectId>,
    latest: Option<Timestamp>,
}

/// A snapshot that must stay whole, and what names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LiveSnapshot {
    pub(super) snapshot: ObjectId,
    pub(super) named_by: String,
}

/// The record of a mark.
#[derive(Debug, Deserialize)]
struct Mark {
    snapshot: ObjectId,
}

impl Trails {
    pub(super) fn new(store: &Store) -> Self {
        Self {
            store: store.clone(),
            workspaces: BTreeMap::new(),
        }
    }

    /// Reads new records, and returns the workspaces that have some.
    pub(super) fn catch_up(&mut self) -> Result<Vec<WorkspaceId>> {
        let mut changed = Vec::new();
        for id in self.list()? {
            if self.catch_up_with(&id)? {
                changed.push(id);
            }
        }
        Ok(changed)
    }

    /// Reads the new records of one workspace, and returns whether there are any.
    pub(super) fn catch_up_with(&mut self, id: &WorkspaceId) -> Result<bool> {
        let files = self.store.workspace_files(id);
        let records = self.workspaces.entry(id.clone()).or_default();
        let is_first = records.read.is_empty();
        let read = records.read(&files, !is_first);
        match (is_first, records.read.is_empty()) {
            (true, false) => must_be_whole(&self.store, &files)?,
            (true, true) if read.is_ok() => must_be_new(&files)?,
            _ => {}
        }
        read
    }

    /// Returns the workspaces. Other directories beside them must hold no trail.
    fn list(&self) -> Result<Vec<WorkspaceId>> {
        let (dir, storage) = (self.store.workspaces_dir(), self.store.storage());
        let names = match storage.list(dir) {
            Ok(names) => names,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::io("cannot list the workspaces", dir, error)),
        };
        let mut ids = Vec::new();
        for name in names {
            let path = dir.join(&name);
            match storage.list(&path) {
                Ok(inside) => match name.to_str().and_then(|name| name.parse().ok()) {
                    Some(id) => ids.push(id),
                    None if inside.iter().any(|name| trail_number(name).is_some()) => {
                        let what = "a directory in workspaces/ has a trail, but its name is not a workspace id";
                        return Err(Error::new(ErrorKind::Corrupt, what).at_path(&path));
                    }
                    None => {}
                },
                // A lock file, for example.
                Err(error) if is_absent(&error) => {}
                Err(error) => return Err(Error::io("cannot list the trails", &path, error)),
            }
        }
        ids.sort_unstable();
        Ok(ids)
    }

    /// Treats checkpoints as dropped, for a plan.
    pub(super) fn pretend_drop(&mut self, id: &WorkspaceId, checkpoints: Vec<CheckpointId>) {
        if let Some(records) = self.workspaces.get_mut(id) {
            records.dropped.extend(checkpoints);
        }
    }

    /// Returns all snapshots of a workspace that must stay whole.
    pub(super) fn roots(&self, id: &WorkspaceId) -> Vec<LiveSnapshot> {
        let records = self.workspaces.get(id);
        records.map_or_else(Vec::new, |records| records.roots(id))
    }
}

/// Refuses trails with damage that was not repaired.
fn must_be_whole(store: &Store, files: &LogDir) -> Result<()> {
    let report = LogReader::new(store, files.clone()).verify()?;
    let head = files.trail_path(files.head()?);
    let is_tail = |file, reason: &Reason| *reason == Reason::Unfinished && file == head;
    let mut damage = report.damage.first().iter();
    // The unfinished line of a dead writer names nothing: it was never reported as written.
    match damage.find(|damage| !is_tail(damage.file.clone(), &damage.reason)) {
        Some(damage) => Err(damage.clone().into()),
        None => Ok(()),
    }
}

impl WorkspaceRecords {
    /// Reads new records. Damage in them is an error where `is_new`: the trails were
    /// verified before.
    fn read(&mut self, files: &LogDir, is_new: bool) -> Result<bool> {
        let mut changed = false;
        for trail in files.trails()? {
            let path = files.trail_path(trail);
            let file = files.open_read(trail)?;
            let len = file.len();
            let len = len.map_err(|error| Error::io("cannot read the trail", &path, error))?;
            let from = self.read.get(&trail).copied();
            if from == Some(len) {
                continue;
            }
            if from.is_some_and(|from| from > len) {
                let what = "the trail shrank while being read";
                return Err(Error::new(ErrorKind::Corrupt, what).at_path(&path));
            }
            changed = true;
            let from = from.unwrap_or(0);
            let reader = TrailReader::forwards(file, &path, from, STREAM_BUFFER, Sums::Check);
            let to = self.read_on(files, trail, reader, is_new)?;
            self.read.insert(trail, to.unwrap_or(from));
        }
        Ok(changed)
    }

    /// Reads to the end, and returns where the last whole line ends.
    fn read_on(
        &mut self,
        files: &LogDir,
        trail: u32,
        mut reader: TrailReader,
        is_new: bool,
    ) -> Result<Option<u64>> {
        let mut to = None;
        while let Some(found) = reader.advance()? {
            match found {
                Found::Record => self.take(files, trail, &reader.record(), is_new)?,
                Found::Damage(damage) if damage.reason == Reason::Unfinished => {}
                Found::Damage(damage) if is_new => return Err(damage.into()),
                Found::Damage(_) => {}
            }
            to = reader.last_line().map(|(begin, end, ended)| match ended {
                true => end,
                false => begin,
            });
        }
        Ok(to)
    }

    fn take(
        &mut self,
        files: &LogDir,
        trail: u32,
        record: &RecordRef<'_>,
        is_new: bool,
    ) -> Result<()> {
        let flawed = |reason: Reason| {
            let kind = record.kind().as_str();
            let what = format!(
                "record {} ({kind}) of the workspace cannot be read",
                record.seq()
            );
            let path = files.trail_path(trail);
            Error::new(ErrorKind::Corrupt, what)
                .at_path(&path)
                .with_reason(reason)
        };
        self.latest = self.latest.max(record.at());
        match record.kind() {
            RecordKind::Opener => match Opener::read(record, files.id(), trail).map_err(flawed) {
                Ok(opener) => refuse_newer(&opener, files, trail)?,
                Err(error) if is_new => return Err(error),
                Err(_) => {}
            },
            RecordKind::Checkpoint => {
                self.keep(record.parse::<CheckpointRecord>().map_err(flawed)?);
                // A checkpoint has the files that were marked.
                self.marks.clear();
            }
            RecordKind::Done => self.keep(record.parse::<CheckpointRecord>().map_err(flawed)?),
            RecordKind::Rewind => {
                let begun = record.parse::<StepRecord>().map_err(flawed)?;
                self.rewinds.insert(begun.id, begun);
            }
            RecordKind::GivenUp => {
                let given_up: GivenUp = record.parse().map_err(flawed)?;
                self.given_up.insert(given_up.of);
            }
            RecordKind::Dropped => self
                .dropped
                .extend(dropped::read(record).map_err(flawed)?.1),
            RecordKind::Mark => {
                let mark: Mark = record.parse().map_err(flawed)?;
                self.marks.push(mark.snapshot);
            }
            RecordKind::MarksCleared => self.marks.clear(),
            RecordKind::Other(name) => {
                return Err(flawed(Reason::UnsupportedType(name.to_owned())));
            }
            RecordKind::Bound => self.bind(bindings::read(record).map_err(flawed)?),
            // These name no object.
            RecordKind::Note
            | RecordKind::Missed
            | RecordKind::Message
            | RecordKind::Compaction
            | RecordKind::Usage
            | RecordKind::Source
            | RecordKind::Spawned
            | RecordKind::Run => {}
        }
        Ok(())
    }

    fn keep(&mut self, stored: CheckpointRecord) {
        // A repair copies the records that it could read.
        if !self.known.insert(stored.id) {
            return;
        }
        let at = self.latest.max(Some(stored.at)).unwrap_or(stored.at);
        self.latest = Some(at);
        self.kept.push(KeptCheckpoint {
            id: stored.id,
            snapshot: stored.snapshot,
            reason: stored.reason,
            is_labelled: stored.label.is_some(),
            session: stored.session.map(|place| place.id),
            at,
        });
    }

    /// Gives checkpoints the sessions that they belong to.
    fn bind(&mut self, bindings: Vec<Binding>) {
        let mut sessions: HashMap<CheckpointId, SessionId> = bindings
            .into_iter()
            .map(|it| (it.checkpoint, it.session.id))
            .collect();
        // They are bound soon after they were made.
        for kept in self.kept.iter_mut().rev() {
            if sessions.is_empty() {
                break;
            }
            if let Some(session) = sessions.remove(&kept.id) {
                kept.session = Some(session);
            }
        }
    }

    /// Returns the steps that have no end.
    pub(super) fn open_steps(&self) -> impl Iterator<Item = &StepRecord> {
        let ended = |id| self.known.contains(&id) || self.given_up.contains(&id);
        self.rewinds.values().filter(move |begun| !ended(begun.id))
    }

    fn roots(&self, workspace: &WorkspaceId) -> Vec<LiveSnapshot> {
        let mut roots = Vec::new();
        let mut add = |snapshot, named_by| roots.push(LiveSnapshot { snapshot, named_by });
        let is_dropped = |id| self.dropped.contains(&id);
        for kept in self.kept.iter().filter(|kept| !is_dropped(kept.id)) {
            add(kept.snapshot, format!("checkpoint {}", kept.id.prefix(8)));
        }
        for begun in self.open_steps() {
            let named = format!("an unfinished {} in workspace {workspace}", begun.reason);
            add(begun.before, named.clone());
            add(begun.after, named);
        }
        for mark in &self.marks {
            add(*mark, format!("a mark in workspace {workspace}"));
        }
        roots
    }
}

fn refuse_newer(opener: &Opener, files: &LogDir, trail: u32) -> Result<()> {
    if !opener.is_newer() {
        return Ok(());
    }
    let what = "a trail was written by a newer version; upgrade Backtrail";
    let path = files.trail_path(trail);
    Err(Error::new(ErrorKind::NewerFormat, what).at_path(&path))
}
