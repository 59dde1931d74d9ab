//! Making a checkpoint: a snapshot, stored, then named on the trail.

use std::sync::Arc;

use super::Workspace;
use super::about::first_line;
use super::checkpoint::{Checkpoint, NotCaptured, SessionPlace, Why};
use super::look::scan_time;
use super::stored::{CHECKPOINT, Stored};
use crate::error::{Error, Reason, Result, quoted};
use crate::ids::{CheckpointId, SessionId};
use crate::json::Fields;
use crate::log::{AppendGuard, AppendLock, append_entry};
use crate::message::{read_object, take};
use crate::objects::ObjectId;
use crate::random::new_uuid;
use crate::session::{Session, SessionOptions};
use crate::snapshot::entry::Totals;
use crate::snapshot::node::write_empty;
use crate::snapshot::scan::{
    Progress, ScanOptions, ScanProgress, Scanned, Sink, SnapshotLimits, StatCache, scan,
};
use crate::snapshot::{SkippedEntry, Snapshot};
use crate::store::{Keeping, Store};

/// The lock that snapshots of one workspace take turns by.
pub(super) const SNAPSHOT: &str = "snapshot.lock";
/// The longest label.
const MAX_LABEL: usize = 200;

/// How a checkpoint is made.
#[derive(Debug, Clone)]
pub struct CheckpointOptions {
    why: Why,
    session: Option<SessionId>,
    place: Option<SessionPlace>,
    of: Option<CheckpointId>,
    label: Option<String>,
    about: Option<String>,
    prompt: Option<SessionPlace>,
    limited: bool,
    progress: Option<Arc<dyn Progress>>,
}

impl Default for CheckpointOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl CheckpointOptions {
    /// Makes options for a checkpoint that somebody asked for.
    pub fn new() -> Self {
        Self {
            why: Why::Manual,
            session: None,
            place: None,
            of: None,
            label: None,
            about: None,
            prompt: None,
            limited: true,
            progress: None,
        }
    }

    /// Sets why the checkpoint is made.
    #[must_use]
    pub fn why(mut self, why: Why) -> Self {
        self.why = why;
        self
    }

    /// Sets the session that it belongs to, at its last record.
    #[must_use]
    pub fn session(mut self, id: &SessionId) -> Self {
        self.session = Some(id.clone());
        self
    }

    /// Sets the place in a session that it belongs to.
    #[must_use]
    pub(crate) fn place(mut self, place: SessionPlace) -> Self {
        self.place = Some(place);
        self
    }

    /// Sets the checkpoint that the same turn or run began with; for a turn or run
    /// that begins within another, that of the other one.
    #[must_use]
    pub fn begun_by(mut self, start: CheckpointId) -> Self {
        self.of = Some(start);
        self
    }

    /// Sets a name that the checkpoint can be found by.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Sets what a run is about: the command. Only the first line is kept, cut at 200 bytes.
    #[must_use]
    pub fn about(mut self, about: &str) -> Self {
        self.about = first_line(about);
        self
    }

    /// Sets the message that the turn begins with.
    #[must_use]
    pub(crate) fn prompt(mut self, place: SessionPlace) -> Self {
        self.prompt = Some(place);
        self
    }

    /// Takes a first snapshot of any size.
    #[must_use]
    pub fn unlimited(mut self) -> Self {
        self.limited = false;
        self
    }

    /// Sets who is told how far the snapshot is.
    #[must_use]
    pub fn progress(mut self, progress: Arc<dyn Progress>) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Reads what is asked for from one JSON object:
    /// `{"type":"checkpoint","label":"…"}`, where the label may be missing.
    pub fn from_json(line: &str) -> Result<Self> {
        let read = read_object(line).and_then(read_request);
        let refused = |reason| Error::invalid("this line cannot be recorded").with_reason(reason);
        let options = read.map_err(refused)?;
        options.check()?;
        Ok(options)
    }

    /// Refuses what no checkpoint could be made with: a label that cannot be used
    /// as a point.
    pub fn check(&self) -> Result<()> {
        self.label.as_deref().map_or(Ok(()), check_label)
    }
}

fn read_request(mut fields: Fields) -> Result<CheckpointOptions, Reason> {
    if let Some(name) = fields.duplicate() {
        return Err(Reason::RepeatedField(name.to_owned()));
    }
    take::<String>(&mut fields, "type", "a string")?;
    let label = take(&mut fields, "label", "a string")?;
    match fields.iter().next() {
        Some((name, _)) => Err(Reason::UnexpectedField(name.to_owned())),
        None => Ok(CheckpointOptions {
            label,
            ..CheckpointOptions::new()
        }),
    }
}

/// Refuses a label that could not be used as a point.
fn check_label(label: &str) -> Result<()> {
    let refuse = |why: &str| Err(Error::invalid(format!("the label {} {why}", quoted(label))));
    if label.trim().is_empty() {
        return refuse("is blank; give it a word, or leave it away");
    }
    if label.len() > MAX_LABEL {
        return refuse(&format!("is longer than {MAX_LABEL} bytes"));
    }
    if label.chars().any(char::is_control) {
        return refuse("has control characters in it");
    }
    if label != label.trim() {
        return refuse("begins or ends with a space");
    }
    match super::point::reserved(label) {
        Some(why) => refuse(why),
        None => Ok(()),
    }
}

impl Workspace {
    /// Keeps the state of the directory, and returns when that is durable.
    ///
    /// Snapshots of one workspace take turns, also those of other processes.
    pub fn checkpoint(&self, options: CheckpointOptions) -> Result<Checkpoint> {
        let (place, session) = (options.place.clone(), options.session.clone());
        self.make(options, || match (place, session) {
            (None, Some(id)) => self.store().session_place(&id).map(Some),
            (place, _) => Ok(place),
        })
    }

    /// Keeps the state of the directory and begins a session with it, which works
    /// here. Where the state cannot be kept, no session is made.
    pub fn checkpoint_in_new_session(
        &self,
        options: CheckpointOptions,
        session: SessionOptions,
    ) -> Result<(Checkpoint, Session)> {
        self.checkpoint_in_session(options, || {
            self.store().create_session(session.workspace(self))
        })
    }

    /// Keeps the state of the directory, in a session that is begun once that is
    /// stored.
    pub(crate) fn checkpoint_in_session(
        &self,
        options: CheckpointOptions,
        begin: impl FnOnce() -> Result<Session>,
    ) -> Result<(Checkpoint, Session)> {
        let mut made = None;
        let checkpoint = self.make(options, || {
            let session = begin()?;
            let place = self.store().session_place(session.id())?;
            made = Some(session);
            Ok(Some(place))
        })?;
        Ok((checkpoint, made.expect("it was made with the checkpoint")))
    }

    /// Keeps the state of the directory. `place` is asked for once that is stored.
    fn make(
        &self,
        options: CheckpointOptions,
        place: impl FnOnce() -> Result<Option<SessionPlace>>,
    ) -> Result<Checkpoint> {
        options.check()?;
        let lock = self.snapshot_lock()?;
        let _turn = lock.wait(options.progress.as_deref())?;
        // What a crash left half done is finished first, or it would be kept so.
        self.recover_locked(None)?;
        let before = self.last_checkpoint()?;
        let state = self.store_state(&options, before.as_ref())?;
        let changed = match &before {
            Some(before) => self.count_changes(&before.snapshot_id(), &state.id)?,
            None => 0,
        };
        self.record(options, state, changed, place)
    }

    /// Begins a session with the first checkpoint of a directory that was just made,
    /// and whose state is stored. `objects` was held since that was looked at. Where
    /// somebody was faster, it is a checkpoint like any other.
    pub(crate) fn first_checkpoint(
        &self,
        options: CheckpointOptions,
        state: State,
        objects: Keeping,
        begin: impl FnOnce() -> Result<Session>,
    ) -> Result<(Checkpoint, Session)> {
        let lock = self.snapshot_lock()?;
        // Never waiting with the objects held: who removes some waits for that, and
        // who holds the lock may wait for him.
        let turn = lock.try_hold_with(objects)?;
        if turn.is_none() || self.last_checkpoint()?.is_some() {
            drop(turn);
            return self.checkpoint_in_session(options, begin);
        }
        let session = begin()?;
        let place = self.store().session_place(session.id())?;
        let checkpoint = self.record(options, state, 0, || Ok(Some(place)))?;
        Ok((checkpoint, session))
    }

    /// Puts a checkpoint of what is stored on the trail.
    fn record(
        &self,
        options: CheckpointOptions,
        state: State,
        changed: u64,
        place: impl FnOnce() -> Result<Option<SessionPlace>>,
    ) -> Result<Checkpoint> {
        let id = new_uuid(self.store().random());
        let id = id.map_err(|error| self.failed("cannot make an id", error))?;
        let stored = Stored {
            at: self.store().now(),
            id: CheckpointId::from_uuid(id),
            why: options.why,
            session: place()?,
            of: options.of,
            label: options.label,
            about: options.about,
            prompt: options.prompt,
            snapshot: state.id,
            files: state.totals.files,
            bytes: state.totals.bytes,
            changed,
            not_captured: state.not_captured,
        };
        let seq = append_entry(self.store(), self.files(), CHECKPOINT, &stored.body()?)?;
        if let Some(cache) = &state.cache {
            self.save_cache(cache);
        }
        Ok(stored.into_checkpoint(self, seq))
    }

    /// Stores what the directory holds now. All of it is durable then.
    fn store_state(
        &self,
        options: &CheckpointOptions,
        before: Option<&Checkpoint>,
    ) -> Result<State> {
        if !self.root_exists()? {
            // A turn or run may have deleted it. Else it was moved, perhaps, and
            // what is not looked at must not pass for gone.
            let before = before.filter(|_| options.of.is_some());
            return self.store_absence(before.ok_or_else(|| self.not_there())?);
        }
        // Only what comes as a surprise is refused: who has a first snapshot has
        // decided.
        let limits = (options.limited && before.is_none()).then(SnapshotLimits::default);
        let mut scan_options = self.scan_options(limits, options.progress.clone());
        // What a turn or run does to what was captured is seen to its end, whatever
        // it writes into the rules.
        scan_options.keep = options.of.is_some() && !options.why.begins();
        self.store_scan(&scan_options)
    }

    fn store_scan(&self, options: &ScanOptions) -> Result<State> {
        let writer = self.objects().writer()?;
        let cache = self.load_cache();
        let sink = Sink::Store(&writer);
        let scanned = scan(self.root(), options, &cache, sink, scan_time())?;
        writer.finish()?;
        Ok(State::from(scanned))
    }

    /// Stores what the directory holds now, to take it elsewhere. What was captured
    /// last is captured, whatever rules say; a directory that is gone is empty.
    pub(crate) fn store_present(
        &self,
        last: &Checkpoint,
        progress: Option<Arc<dyn Progress>>,
    ) -> Result<State> {
        if !self.root_exists()? {
            return self.store_absence(last);
        }
        let mut options = self.scan_options(None, progress);
        options.keep = true;
        let state = self.store_scan(&options)?;
        if let Some(cache) = &state.cache {
            self.save_cache(cache);
        }
        Ok(state)
    }

    /// Opens the lock that snapshots and moves of the files take turns by.
    pub(crate) fn snapshot_lock(&self) -> Result<SnapshotLock> {
        let lock = AppendLock::named(self.files(), SNAPSHOT)?;
        Ok(SnapshotLock {
            lock,
            store: self.store().clone(),
        })
    }

    /// Stores that the directory is gone: it is empty then, and everything in it
    /// can come back.
    fn store_absence(&self, before: &Checkpoint) -> Result<State> {
        let mode = before.snapshot()?.root().mode;
        let writer = self.objects().writer()?;
        let (id, root) = write_empty(mode, &mut |bytes| writer.put(bytes))?;
        writer.finish()?;
        Ok(State::whole(id, root.totals))
    }

    fn count_changes(&self, before: &ObjectId, after: &ObjectId) -> Result<u64> {
        if before == after {
            return Ok(0);
        }
        let open = |id| self.open_snapshot(id);
        match open(before).and_then(|before| before.diff(&open(after)?)) {
            Ok(diff) => Ok(diff.changes().len() as u64),
            // A damaged snapshot must not stop those that come after it.
            Err(error) if error.kind() == crate::ErrorKind::Corrupt => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Opens a snapshot by its name.
    pub(crate) fn open_snapshot(&self, id: &ObjectId) -> Result<Snapshot> {
        match &self.0.read {
            Some(source) => Snapshot::open(Arc::clone(source) as _, *id),
            None => Snapshot::stored(self.objects(), *id),
        }
    }
}

/// The lock that snapshots and moves of the files of one workspace take turns by.
#[derive(Debug)]
pub(crate) struct SnapshotLock {
    lock: AppendLock,
    store: Store,
}

/// The lock, held. No object of the store is removed meanwhile: what is found to be
/// stored may be relied on until it is given back.
#[derive(Debug)]
pub(crate) struct SnapshotTurn<'a> {
    _objects: Keeping,
    _lock: AppendGuard<'a>,
}

impl SnapshotLock {
    /// Holds the lock if it is free.
    pub(crate) fn try_hold(&self) -> Result<Option<SnapshotTurn<'_>>> {
        let held = self.lock.try_hold()?;
        held.map(|held| self.turn(held)).transpose()
    }

    /// Holds the lock if it is free, by who relies on objects already.
    fn try_hold_with(&self, objects: Keeping) -> Result<Option<SnapshotTurn<'_>>> {
        let held = self.lock.try_hold()?;
        Ok(held.map(|held| SnapshotTurn {
            _objects: objects,
            _lock: held,
        }))
    }

    /// Waits for the lock and holds it, telling that it waits.
    pub(crate) fn wait(&self, progress: Option<&dyn Progress>) -> Result<SnapshotTurn<'_>> {
        if let Some(held) = self.lock.try_hold()? {
            return self.turn(held);
        }
        if let Some(progress) = progress {
            progress.update(ScanProgress::waiting());
        }
        self.turn(self.lock.hold()?)
    }

    fn turn<'a>(&'a self, held: AppendGuard<'a>) -> Result<SnapshotTurn<'a>> {
        Ok(SnapshotTurn {
            _objects: self.store.keep_objects()?,
            _lock: held,
        })
    }
}

/// The state of a directory that was stored.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) id: ObjectId,
    totals: Totals,
    pub(crate) not_captured: NotCaptured,
    cache: Option<StatCache>,
}

impl State {
    /// Takes a snapshot that is stored and in which nothing was left out.
    pub(crate) fn whole(id: ObjectId, totals: Totals) -> Self {
        Self {
            id,
            totals,
            not_captured: NotCaptured::default(),
            cache: None,
        }
    }
}

impl From<Scanned> for State {
    fn from(scanned: Scanned) -> Self {
        Self {
            id: scanned.id,
            totals: scanned.root.totals,
            not_captured: not_captured(&scanned),
            cache: scanned.cache,
        }
    }
}

/// Returns what a scan saw and did not capture.
pub(super) fn not_captured(scanned: &Scanned) -> NotCaptured {
    let first = scanned.skipped.iter();
    NotCaptured {
        count: scanned.root.totals.skipped,
        first: first
            .filter_map(|(path, skipped)| SkippedEntry::new(path.clone(), skipped))
            .collect(),
    }
}
