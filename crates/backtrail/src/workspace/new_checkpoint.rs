//! Creates a checkpoint: stores a snapshot, then names it on the trail.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::Workspace;
use super::about::first_line;
use super::agent_place::{AgentPlace, prompt_hash};
use super::checkpoint::{Checkpoint, CheckpointReason, SessionPlace, SkippedFiles};
use super::checkpoint_record::{CHECKPOINT, CheckpointRecord};
use super::git_head::GitHead;
use super::left_running::{LeftProcess, may_be_alive};
use super::scan::{Look, scan_time};
use super::unprotected::{
    Included, Protection, UnprotectedChanges, UnprotectedEntry, included_after, must_be_captured,
};
use crate::error::{Error, Reason, Result, quoted};
use crate::ids::{CheckpointId, SessionId};
use crate::json::Fields;
use crate::log::{HeldLock, LockFile};
use crate::message::{read_object, take};
use crate::objects::ObjectId;
use crate::session::{Ending, Session, SessionOptions};
use crate::snapshot::edit::{Edit, edit};
use crate::snapshot::entry::{Skipped, SkippedReason, Totals};
use crate::snapshot::node::write_empty;
use crate::snapshot::scan::survey::Survey;
use crate::snapshot::scan::{
    KeptIgnored, NAMED, Progress, ScanOptions, ScanProgress, Scanned, Sink, SnapshotLimits,
    StatCache, scan,
};
use crate::snapshot::{SkippedEntry, Snapshot};

/// The lock file of a workspace's snapshots.
pub(super) const SNAPSHOT: &str = "snapshot.lock";
/// The longest label.
const MAX_LABEL: usize = 200;

/// Options of a checkpoint.
#[derive(Debug, Clone, Default)]
pub struct CheckpointOptions {
    reason: CheckpointReason,
    session: Option<SessionId>,
    place: Option<SessionPlace>,
    of: Option<CheckpointId>,
    label: Option<String>,
    about: Option<String>,
    prompt: Option<SessionPlace>,
    agent: Option<AgentPlace>,
    agent_prompt: Option<String>,
    late: bool,
    ending: Option<Ending>,
    left: Vec<LeftProcess>,
    unlimited: bool,
    include: Vec<PathBuf>,
    exclude: Vec<PathBuf>,
    progress: Option<Arc<dyn Progress>>,
}

impl CheckpointOptions {
    /// Returns options for a requested checkpoint.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the reason for the checkpoint.
    #[must_use]
    pub fn reason(mut self, reason: CheckpointReason) -> Self {
        self.reason = reason;
        self
    }

    /// Sets the session that it belongs to, at the session's last record.
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

    /// Sets the checkpoint that the same turn or run began with; for the beginning of a nested
    /// turn or run, that of the outer one.
    #[must_use]
    pub fn begun_by(mut self, start: CheckpointId) -> Self {
        self.of = Some(start);
        self
    }

    /// Sets a label, by which the checkpoint can be found.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Sets the command of a run. Only its first line is kept, cut at 200 bytes.
    #[must_use]
    pub fn about(mut self, about: &str) -> Self {
        self.about = first_line(about);
        self
    }

    /// Sets how the command of a run ended.
    #[must_use]
    pub fn ending(mut self, ending: Ending) -> Self {
        self.ending = Some(ending);
        self
    }

    /// Sets the processes that the command of a run left behind. As long as one may be alive,
    /// later changes may be its work as well as the user's.
    #[must_use]
    pub fn left_running(mut self, left: Vec<LeftProcess>) -> Self {
        self.left = left;
        self
    }

    /// Sets the message that the turn begins with.
    #[must_use]
    pub(crate) fn prompt(mut self, place: SessionPlace) -> Self {
        self.prompt = Some(place);
        self
    }

    /// Sets the place in the session of another program that it is made for. The session need
    /// not be in the store yet; [`Workspace::bind`] gives the checkpoint its place later.
    #[must_use]
    pub fn agent(mut self, place: AgentPlace) -> Self {
        self.agent = Some(place);
        self
    }

    /// Sets the prompt that a turn of another program begins with. Only a hash is kept, by which
    /// the message is recognised later.
    #[must_use]
    pub fn agent_prompt(mut self, text: impl Into<String>) -> Self {
        self.agent_prompt = Some(text.into());
        self
    }

    /// Marks the checkpoint as late: the files may have changed since the moment that it is
    /// about.
    #[must_use]
    pub fn late(mut self) -> Self {
        self.late = true;
        self
    }

    /// Captures an ignored directory or file from now on, in this and later snapshots of the
    /// workspace. The path is relative to the workspace. A directory is included as long as it
    /// holds no more than [`StoreOptions::include_cap`](crate::StoreOptions::include_cap);
    /// what `.backtrailignore` names stays out.
    #[must_use]
    pub fn include_ignored(mut self, path: impl Into<PathBuf>) -> Self {
        self.include.push(path.into());
        self
    }

    /// No longer captures an ignored path that was included.
    #[must_use]
    pub fn exclude_ignored(mut self, path: impl Into<PathBuf>) -> Self {
        self.exclude.push(path.into());
        self
    }

    /// Allows a first snapshot of any size.
    #[must_use]
    pub fn unlimited(mut self) -> Self {
        self.unlimited = true;
        self
    }

    /// Sets the receiver of progress reports.
    #[must_use]
    pub fn progress(mut self, progress: Arc<dyn Progress>) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Parses the options from one JSON object: `{"type":"checkpoint","label":"…"}`. The label
    /// is optional.
    ///
    /// # Errors
    ///
    /// Fails with [`Invalid`](crate::ErrorKind::Invalid) if the line is anything else.
    pub fn from_json(line: &str) -> Result<Self> {
        let read = read_object(line).and_then(read_request);
        let refused = |reason| Error::invalid("this line cannot be recorded").with_reason(reason);
        let options = read.map_err(refused)?;
        options.check()?;
        Ok(options)
    }

    /// Checks that the label can be used as a point.
    ///
    /// # Errors
    ///
    /// Fails with [`Invalid`](crate::ErrorKind::Invalid) if it cannot.
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
        return refuse("is blank; give it a name or omit it");
    }
    if label.len() > MAX_LABEL {
        return refuse(&format!("is longer than {MAX_LABEL} bytes"));
    }
    if label.chars().any(char::is_control) {
        return refuse("contains control characters");
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
    /// Saves the state of the directory. It is durable when this returns.
    ///
    /// Only one snapshot of a workspace is taken at a time, across all processes.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be read or the store cannot be written, and with
    /// [`TooMuch`](crate::ErrorKind::TooMuch) if a first snapshot is over the limits.
    pub fn checkpoint(&self, options: CheckpointOptions) -> Result<Checkpoint> {
        let (place, session) = (options.place.clone(), options.session.clone());
        self.make(options, || match (place, session) {
            (None, Some(id)) => self.store().session_place(&id).map(Some),
            (place, _) => Ok(place),
        })
    }

    /// Saves the state of the directory and creates a session that works here. If the state
    /// cannot be saved, no session is created.
    ///
    /// # Errors
    ///
    /// Fails as [`checkpoint`](Self::checkpoint) does.
    pub fn checkpoint_in_new_session(
        &self,
        options: CheckpointOptions,
        session: SessionOptions,
    ) -> Result<(Checkpoint, Session)> {
        self.checkpoint_in_session(options, || {
            self.store().create_session(session.workspace(self))
        })
    }

    /// Saves the state of the directory, in a session that is created once the state is stored.
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

    /// Saves the state of the directory. `place` is called once it is stored.
    fn make(
        &self,
        mut options: CheckpointOptions,
        place: impl FnOnce() -> Result<Option<SessionPlace>>,
    ) -> Result<Checkpoint> {
        options.check()?;
        let _guard = self.hold_snapshots(options.progress.as_deref())?;
        // Finish a step that a crash interrupted; otherwise its half-done state would be saved.
        self.recover_locked(None)?;
        let before = self.last_checkpoint()?;
        options.left = may_be_alive(before.as_ref(), options.left);
        let included = included_after(before.as_ref(), &options.include, &options.exclude)?;
        let state = self.store_state(&options, before.as_ref(), &included)?;
        let changed = match &before {
            Some(before) => self.count_changes(&before.snapshot_id(), &state.id)?,
            None => 0,
        };
        let found = self.look_at_unprotected(&options, before.is_none(), &state)?;
        self.record(options, state, (changed, included), found, place)
    }

    /// Creates a session with the first checkpoint of a new directory whose state is already
    /// stored. `objects` was held since that state was read. If another process made a
    /// checkpoint first, this becomes an ordinary one.
    pub(crate) fn first_checkpoint(
        &self,
        options: CheckpointOptions,
        state: CapturedState,
        objects: HeldLock,
        begin: impl FnOnce() -> Result<Session>,
    ) -> Result<(Checkpoint, Session)> {
        // Never wait while the objects are held: `gc` waits for them, and the process that
        // holds the lock may wait for `gc`.
        let held = self.snapshot_lock()?.try_hold()?;
        let guard = held.map(|held| SnapshotGuard {
            _objects: objects,
            _lock: held,
        });
        if guard.is_none() || self.last_checkpoint()?.is_some() {
            drop(guard);
            return self.checkpoint_in_session(options, begin);
        }
        let session = begin()?;
        let place = self.store().session_place(session.id())?;
        let included = included_after(None, &options.include, &[])?;
        let found = UnprotectedFound::default();
        let checkpoint = self.record(options, state, (0, included), found, || Ok(Some(place)))?;
        Ok((checkpoint, session))
    }

    /// Appends a checkpoint of a stored state to the trail.
    fn record(
        &self,
        options: CheckpointOptions,
        state: CapturedState,
        (changed, included): (u64, Vec<Included>),
        found: UnprotectedFound,
        place: impl FnOnce() -> Result<Option<SessionPlace>>,
    ) -> Result<Checkpoint> {
        let now = (self.store().now(), self.new_checkpoint_id()?);
        let (exit_code, signal) = match options.ending {
            Some(Ending::Done) => (Some(0), None),
            Some(Ending::Failed { exit_code, signal }) => (exit_code, signal),
            _ => (None, None),
        };
        let mut agent = options.agent;
        if let (Some(agent), Some(prompt)) = (&mut agent, &options.agent_prompt) {
            agent.prompt = Some(prompt_hash(now.1, prompt));
        }
        let record = CheckpointRecord {
            session: place()?,
            agent,
            late: options.late,
            of: options.of,
            label: options.label,
            about: options.about,
            prompt: options.prompt,
            changed,
            skipped: state.skipped,
            included,
            unprotected: found.changes,
            exit_code,
            signal,
            git: GitHead::read(self.root()),
            left: options.left,
            ..CheckpointRecord::new(now, options.reason, (state.id, state.totals))
        };
        let seq = self.append(CHECKPOINT, &record)?;
        if let Some(cache) = &state.cache {
            self.save_cache(cache);
        }
        if let Some(survey) = found.survey.filter(|_| record.reason.begins()) {
            self.remember_survey(record.id, survey);
        }
        if let Some(start) = record.of.filter(|_| record.reason.ends()) {
            self.forget_survey(start);
        }
        Ok(Checkpoint {
            protection: Some(Arc::new(found.protection)),
            ..record.at(self, seq)
        })
    }

    /// Looks at what a snapshot does not protect: if it is the first, or begins or ends a turn
    /// or run. Refuses what was asked to be included and is not.
    fn look_at_unprotected(
        &self,
        options: &CheckpointOptions,
        first: bool,
        state: &CapturedState,
    ) -> Result<UnprotectedFound> {
        let over_cap = &state.over_cap;
        if !options.include.is_empty() {
            let snapshot = self.open_snapshot(&state.id)?;
            let cap = self.store().include_cap();
            must_be_captured(&snapshot, &options.include, over_cap, cap)?;
        }
        let mut found = UnprotectedFound {
            protection: Protection {
                first,
                over_cap: over_cap.iter().map(UnprotectedEntry::over_cap).collect(),
                ..Protection::default()
            },
            ..UnprotectedFound::default()
        };
        let reason = &options.reason;
        if !first && !reason.begins() && !reason.ends() {
            return Ok(found);
        }
        let survey = Survey::take(self.root(), self.store().root(), &state.unprotected);
        if let Some(start) = options.of.filter(|_| reason.ends()) {
            let snapshot = self.open_snapshot(&state.id)?;
            found.changes = self.unprotected_since(start, &snapshot, &survey);
        }
        found.protection.unprotected = UnprotectedEntry::all(&state.unprotected, &survey);
        if first {
            found.protection.ignored_files = state.kept_ignored.count;
            found.protection.ignored_first = state.kept_ignored.first.clone();
        }
        found.survey = Some(Arc::new(survey));
        Ok(found)
    }

    /// Stores the present state of the directory. It is durable when this returns.
    fn store_state(
        &self,
        options: &CheckpointOptions,
        before: Option<&Checkpoint>,
        included: &[Included],
    ) -> Result<CapturedState> {
        if !self.root_exists()? {
            // A turn or run may have deleted it. Otherwise it may have been moved, and its
            // files must not count as deleted.
            let before = before.filter(|_| options.of.is_some());
            return self.store_absence(before.ok_or_else(|| self.not_there())?);
        }
        // Only the first snapshot is limited: the size of later ones is no surprise.
        let limits = (!options.unlimited && before.is_none()).then(SnapshotLimits::default);
        let mut scan_options = self.scan_options(included, limits, options.progress.clone());
        // A turn or run may change the ignore rules: files captured at its beginning are
        // captured until its end.
        scan_options.keep = options.of.is_some() && !options.reason.begins();
        self.store_scan(&scan_options)
    }

    fn store_scan(&self, options: &ScanOptions) -> Result<CapturedState> {
        let writer = self.objects().writer()?;
        let cache = self.load_cache();
        let sink = Sink::Store(&writer);
        let scanned = scan(self.root(), options, &cache, sink, scan_time())?;
        writer.finish()?;
        Ok(CapturedState::from(scanned))
    }

    /// Stores the present state of the directory, to copy it elsewhere. Files in the last
    /// checkpoint are captured even if ignored; a directory that is gone counts as empty.
    pub(crate) fn store_present(
        &self,
        last: &Checkpoint,
        look: Look,
        progress: Option<Arc<dyn Progress>>,
    ) -> Result<CapturedState> {
        if !self.root_exists()? {
            return self.store_absence(last);
        }
        let mut options = self.scan_options(last.included(), None, progress);
        options.keep = true;
        options.reread = look == Look::Thorough;
        let state = self.store_scan(&options)?;
        if let Some(cache) = &state.cache {
            self.save_cache(cache);
        }
        Ok(state)
    }

    /// Stores the absence of the directory, as an empty one.
    fn store_absence(&self, before: &Checkpoint) -> Result<CapturedState> {
        let mode = before.root_mode()?;
        let writer = self.objects().writer()?;
        let (id, root) = write_empty(mode, &mut |bytes| writer.put(bytes))?;
        writer.finish()?;
        Ok(CapturedState::whole(id, root.totals))
    }

    pub(super) fn count_changes(&self, before: &ObjectId, after: &ObjectId) -> Result<u64> {
        if before == after {
            return Ok(0);
        }
        let open = |id| self.open_snapshot(id);
        match open(before).and_then(|before| before.diff(&open(after)?)) {
            Ok(diff) => Ok(diff.changes().len() as u64),
            // A damaged snapshot must not block later ones.
            Err(error) if error.kind() == crate::ErrorKind::Corrupt => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Stores a snapshot with some paths changed. It is durable when this returns.
    pub(crate) fn store_edited(
        &self,
        snapshot: &Snapshot,
        edits: &BTreeMap<PathBuf, Edit>,
    ) -> Result<(ObjectId, Totals)> {
        let writer = self.objects().writer()?;
        let (id, root) = edit(snapshot, edits, &mut |bytes| writer.put(bytes))?;
        writer.finish()?;
        Ok((id, root.totals))
    }

    /// Stores a snapshot with these paths alone. It is durable when this returns.
    pub(crate) fn store_only(
        &self,
        mode: u32,
        paths: &BTreeMap<PathBuf, Edit>,
    ) -> Result<(ObjectId, Totals)> {
        let empty = self.unstored(|put| write_empty(mode, put))?;
        self.store_edited(&empty, paths)
    }

    /// Opens a snapshot by its name.
    pub(crate) fn open_snapshot(&self, id: &ObjectId) -> Result<Snapshot> {
        match &self.0.read {
            Some(source) => Snapshot::open(Arc::clone(source) as _, *id),
            None => Snapshot::stored(self.objects(), *id),
        }
    }
}

/// The lock of snapshots and steps that move files, held. No object of the store is removed
/// meanwhile, so that stored objects can be relied on.
#[derive(Debug)]
pub(crate) struct SnapshotGuard {
    _objects: HeldLock,
    _lock: HeldLock,
}

impl Workspace {
    /// Takes the lock of snapshots and steps if it is free.
    pub(crate) fn try_hold_snapshots(&self) -> Result<Option<SnapshotGuard>> {
        let held = self.snapshot_lock()?.try_hold()?;
        held.map(|held| self.guard(held)).transpose()
    }

    /// Waits for the lock of snapshots and steps, and reports that it waits.
    pub(crate) fn hold_snapshots(&self, progress: Option<&dyn Progress>) -> Result<SnapshotGuard> {
        let lock = self.snapshot_lock()?;
        if let Some(held) = lock.try_hold()? {
            return self.guard(held);
        }
        if let Some(progress) = progress {
            progress.update(ScanProgress::waiting());
        }
        self.guard(lock.hold()?)
    }

    /// Waits for the lock, and finishes a step that a crash interrupted.
    pub(crate) fn hold_recovered(&self) -> Result<SnapshotGuard> {
        let guard = self.hold_snapshots(None)?;
        self.recover_locked(None)?;
        Ok(guard)
    }

    fn snapshot_lock(&self) -> Result<LockFile> {
        LockFile::open(self.store().storage(), self.files().path(), SNAPSHOT)
    }

    fn guard(&self, held: HeldLock) -> Result<SnapshotGuard> {
        Ok(SnapshotGuard {
            _objects: self.store().share_objects()?,
            _lock: held,
        })
    }
}

/// The stored state of a directory.
#[derive(Debug)]
pub(crate) struct CapturedState {
    pub(crate) id: ObjectId,
    totals: Totals,
    pub(crate) skipped: SkippedFiles,
    /// All that was skipped, up to a limit.
    unprotected: Vec<(PathBuf, Skipped)>,
    kept_ignored: KeptIgnored,
    /// Included directories that hold too much, and how much.
    over_cap: Vec<(Vec<u8>, u64)>,
    cache: Option<StatCache>,
}

/// What is known of unprotected files when a checkpoint is made.
#[derive(Debug, Default)]
struct UnprotectedFound {
    survey: Option<Arc<Survey>>,
    protection: Protection,
    changes: UnprotectedChanges,
}

impl CapturedState {
    /// Returns whether something could not be read.
    pub(crate) fn has_unreadable(&self) -> bool {
        let mut skipped = self.unprotected.iter();
        skipped.any(|(_, it)| it.reason == SkippedReason::Unreadable)
    }

    /// Returns the state of a snapshot that skipped nothing.
    pub(crate) fn whole(id: ObjectId, totals: Totals) -> Self {
        Self {
            id,
            totals,
            skipped: SkippedFiles::default(),
            unprotected: Vec::new(),
            kept_ignored: KeptIgnored::default(),
            over_cap: Vec::new(),
            cache: None,
        }
    }
}

impl From<Scanned> for CapturedState {
    fn from(scanned: Scanned) -> Self {
        Self {
            id: scanned.id,
            totals: scanned.root.totals,
            skipped: skipped(&scanned),
            unprotected: scanned.skipped,
            kept_ignored: scanned.kept_ignored,
            over_cap: scanned.over_cap,
            cache: scanned.cache,
        }
    }
}

/// Returns the files that a scan skipped.
pub(super) fn skipped(scanned: &Scanned) -> SkippedFiles {
    let first = scanned.skipped.iter().take(NAMED);
    SkippedFiles {
        count: scanned.root.totals.skipped,
        first: first
            .filter_map(|(path, skipped)| SkippedEntry::new(path.clone(), skipped))
            .collect(),
    }
}
