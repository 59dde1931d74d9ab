//! What trails mean: a session, who speaks in it, and what was said.

mod adopt;
mod begun;
mod chain;
mod commit;
mod compact;
mod examine;
mod export;
mod files;
mod first;
mod follow;
mod fork;
mod gap;
mod gather;
mod history;
mod import;
mod info;
mod intake;
mod lock;
mod moves;
mod note;
mod options;
mod outgoing;
mod output;
mod payloads;
mod place;
mod queue;
mod reader;
mod records;
mod repair;
mod rewrite;
mod shown;
mod source;
mod spawn;
mod spending;
mod stats;
mod steps;
mod tail;
mod trail_records;
mod turn;
mod verify;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::context::{Context, Shape};
use crate::error::{Error, Result};
use crate::ids::SessionId;
use crate::message::Draft;
use crate::random::IdSource;
use crate::store::Store;
use crate::trail::opener::{Because, Opener};
use crate::trail::origin::SpawnedBy;
use crate::trash::let_go_of_trails;
use queue::Queue;
use tail::Tail;

pub use begun::{Tool, Turn};
pub use commit::Commit;
pub use compact::Compacted;
pub use follow::{Follower, Moved};
pub use fork::ForkOptions;
pub use gap::{GapBecause, HistoryGap};
pub use history::{
    Answer, Answers, History, HistoryItem, Prompt, Prompts, ToolCall, ToolCalls, ToolOutcome,
};
pub use import::{Import, ImportOutcome};
pub use info::SessionInfo;
pub use intake::{CallUsage, Intake, IntakeOptions};
pub use lock::Holder;
pub use moves::Move;
pub use note::Note;
pub use options::SessionOptions;
pub use reader::SessionReader;
pub use records::{OwnedRecords, Records};
pub use repair::{RepairPlan, RepairReport};
pub use source::{KeptSource, SourceRecord};
pub use spawn::Spawned;
pub use stats::{MessageCounts, Stats, format_duration};
pub use steps::{Step, StepKind, Steps};
pub use tail::SetAside;
pub use trail_records::{LinePart, TrailRecord, TrailRecords};
pub use verify::VerifyReport;

pub(crate) use chain::Line;
pub(crate) use files::{SessionFiles, is_absent, is_session_file, open_lock};
pub(crate) use first::{OPENING, first_opener};
pub(crate) use fork::fork;
pub(crate) use gap::{GONE_TRAILS, GoneTrail, GoneTrails};
pub(crate) use import::import;
pub(crate) use info::present_at;
pub(crate) use lock::{
    AppendGuard, AppendLock, SpeakerLock, leave_word, lies_in_store, read_holder,
};
pub(crate) use moves::not_ours;
pub(crate) use note::append_note;
pub(crate) use outgoing::move_out;
pub(crate) use output::output_len;
pub(crate) use payloads::{PayloadWriter, Payloads};
pub(crate) use place::end as end_of_line;
pub(crate) use repair::plan as repair_plan;
pub(crate) use rewrite::{Editor, Rewritten, fields_of, rewrite_line, rewrite_only_trail};
pub(crate) use source::piece_references;
pub(crate) use spawn::spawn;
pub(crate) use steps::{all_steps, newest_step, opener_of, undone_step};
pub(crate) use tail::{Entry, append_entries, append_entry};

/// When an append returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Durability {
    /// When the record is on disk, by a write and a sync of its own.
    #[default]
    Record,
    /// When the record is on disk; records that wait at the same time share one
    /// write and one sync. As safe, and faster with many threads.
    Batch,
    /// When the operating system has the record. It survives a crash of the
    /// process, not one of the machine.
    Os,
}

impl Durability {
    /// Returns the mode as it is written in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::Batch => "batch",
            Self::Os => "os",
        }
    }
}

impl std::str::FromStr for Durability {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "record" => Ok(Self::Record),
            "batch" => Ok(Self::Batch),
            "os" => Ok(Self::Os),
            other => Err(Error::invalid(format!(
                "{} is not a durability; it is record, batch or os",
                crate::error::quoted(other)
            ))),
        }
    }
}

/// A session to speak in: the live handle.
///
/// It holds the speaker's lock until it is closed, or until its last clone is
/// dropped. Append through it from as many threads as you like.
#[derive(Debug, Clone)]
pub struct Session(Arc<Live>);

/// What all clones of a session share.
#[derive(Debug)]
struct Live {
    store: Store,
    files: SessionFiles,
    durability: Durability,
    append_lock: AppendLock,
    /// Taken away when the session is closed.
    speaker: Mutex<Option<SpeakerLock>>,
    tail: Mutex<Tail>,
    queue: Queue,
    ids: IdSource,
    payloads: Mutex<PayloadWriter>,
    set_aside: Vec<SetAside>,
}

impl Session {
    /// Creates a session and takes its lock.
    pub(crate) fn create(store: &Store, options: SessionOptions) -> Result<Self> {
        options.check()?;
        Self::create_as(store, store.new_session_id()?, options, None)
    }

    /// Creates a session with an id that is known beforehand.
    fn create_as(
        store: &Store,
        id: SessionId,
        options: SessionOptions,
        spawned_by: Option<SpawnedBy>,
    ) -> Result<Self> {
        let opener = |id: &SessionId| Opener {
            present: options.present,
            spawned_by,
            ..Opener::new(id, 0, Because::Start, store.now())
        };
        Self::create_opened(store, id, opener, options.durability)
    }

    /// Creates a session whose first trail has this opener, and takes its lock.
    fn create_opened(
        store: &Store,
        id: SessionId,
        opener: impl FnOnce(&SessionId) -> Opener,
        durability: Option<Durability>,
    ) -> Result<Self> {
        let opener = opener(&id);
        Self::create_with(store, id, durability, |files| {
            files.create_opened(&opener).map(drop)
        })
    }

    /// Creates a session whose first trail `make` makes, and takes its lock.
    pub(crate) fn create_with(
        store: &Store,
        id: SessionId,
        durability: Option<Durability>,
        make: impl FnOnce(&SessionFiles) -> Result<()>,
    ) -> Result<Self> {
        let files = store.files(&id);
        match store.storage().create_dir(files.dir()) {
            // What a crash left of one that nobody was told about.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            created => created
                .map_err(|error| Error::io("cannot create the session", files.dir(), error))?,
        }
        let speaker = SpeakerLock::take(&files, &store.holder())?;
        make(&files)?;
        Self::start(store, files, speaker, durability)
    }

    /// Takes the lock of a session that is there.
    pub(crate) fn open(
        store: &Store,
        id: &SessionId,
        durability: Option<Durability>,
    ) -> Result<Self> {
        let files = store.files(id);
        files.head()?;
        let speaker = SpeakerLock::take(&files, &store.holder())?;
        Self::start(store, files, speaker, durability)
    }

    fn start(
        store: &Store,
        files: SessionFiles,
        speaker: SpeakerLock,
        durability: Option<Durability>,
    ) -> Result<Self> {
        let append_lock = AppendLock::open(&files)?;
        let guard = append_lock.hold()?;
        let mut tail = Tail::load(store, &files)?;
        drop(guard);
        // What a speaker finds counts as said: an append that expects less is
        // told so, and must not be told so of what a power cut may yet take.
        tail.sync()?;
        let set_aside = std::mem::take(&mut tail.set_aside);
        Ok(Self(Arc::new(Live {
            store: store.clone(),
            payloads: Mutex::new(PayloadWriter::new(&files)),
            files,
            durability: durability.unwrap_or(store.durability()),
            append_lock,
            speaker: Mutex::new(Some(speaker)),
            tail: Mutex::new(tail),
            queue: Queue::default(),
            ids: IdSource::default(),
            set_aside,
        })))
    }

    /// Returns the session's id.
    pub fn id(&self) -> &SessionId {
        self.0.files.id()
    }

    /// Returns the session to read from.
    pub fn reader(&self) -> SessionReader {
        self.0.reader()
    }

    /// Renders what a model should be sent now; see [`SessionReader::context`].
    pub fn context(&self, shape: Shape) -> Result<Context> {
        self.reader().context(shape)
    }

    /// Returns what opening the session had to set aside: lines that were never
    /// acknowledged, because their writer died while it wrote them.
    pub fn set_aside(&self) -> &[SetAside] {
        &self.0.set_aside
    }

    /// Returns the seq of the last record that this handle knows of.
    pub fn last_seq(&self) -> u64 {
        self.0.lock_tail().position.seq
    }

    /// Returns why this handle acknowledges nothing any more, if it does not:
    /// a sync failed. Open the session again to go on.
    pub fn stopped(&self) -> Option<Error> {
        self.0.lock_tail().stopped()
    }

    /// Appends a message and returns its seq once it is durable, as far as the
    /// session's [`Durability`] goes.
    ///
    /// After an error the message is not acknowledged, and may yet be there when
    /// the session is opened again; [`Draft::expect`] tells the two apart.
    pub fn append(&self, message: impl Into<Draft>) -> Result<u64> {
        let pending = self.0.encode(&message.into())?;
        self.0.queue.append(&self.0, pending)
    }

    /// Appends several messages in order, and returns how each fared. Unless the
    /// mode is [`Durability::Record`], they share one `write` and one sync.
    pub fn append_batch<D: Into<Draft>>(
        &self,
        messages: impl IntoIterator<Item = D>,
    ) -> Vec<Result<u64>> {
        let encoded: Vec<_> = messages
            .into_iter()
            .map(|message| self.0.encode(&message.into()))
            .collect();
        self.0.queue.append_batch(&self.0, encoded)
    }

    /// Hands a message in without waiting. Messages become durable in the order
    /// in which they were handed in; the caller's thread never touches the disk.
    pub fn append_deferred(&self, message: impl Into<Draft>) -> Commit {
        Queue::append_deferred(&self.0, self.0.encode(&message.into()))
    }

    /// Appends a note.
    pub fn note(&self, note: &Note) -> Result<u64> {
        if let Some(error) = self.stopped() {
            return Err(error);
        }
        append_note(&self.0.store, &self.0.files, note)
    }

    /// Waits for what was handed in, makes it durable whatever the mode, and
    /// gives the lock back. Other clones of this handle can append no more.
    ///
    /// Dropping the last clone cannot report a failure, and does not wait: what
    /// was handed in by [`append_deferred`](Self::append_deferred) is written by a
    /// thread that keeps the lock until it is done. A process that ends before
    /// that takes the rest with it.
    pub fn close(self) -> Result<()> {
        self.0.queue.close(&self.0);
        let synced = {
            let mut tail = self.0.lock_tail();
            match tail.stopped() {
                Some(error) => Err(error),
                None => tail.sync(),
            }
        };
        let mut speaker = self
            .0
            .speaker
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        drop(speaker.take());
        synced
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let speaks = self
            .speaker
            .get_mut()
            .is_ok_and(|speaker| speaker.is_some());
        let tail = self.tail.get_mut().unwrap_or_else(PoisonError::into_inner);
        if speaks && self.durability == Durability::Os && tail.stopped().is_none() {
            tail.sync().ok();
        }
    }
}

/// A record that waits for its turn: what stands behind its numbers.
#[derive(Debug)]
pub(crate) struct Pending {
    body: Vec<u8>,
    /// Where the message begins, if large or binary parts of it may have to move
    /// to the payload file.
    message_at: Option<usize>,
    expect: Option<u64>,
}

fn entry(body: &[u8]) -> Entry<'_> {
    Entry {
        kind: "message",
        body,
    }
}

impl Live {
    fn encode(&self, draft: &Draft) -> Result<Pending> {
        let (body, at) =
            draft.encode(|| self.store.now(), || self.ids.next(self.store.random()))?;
        Ok(Pending {
            message_at: draft.may_have_parts(&body[at..]).then_some(at),
            body,
            expect: draft.expected(),
        })
    }

    fn lock_tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes one record: what most appends are, without the bookkeeping that a
    /// group needs.
    fn write_one(&self, pending: &Pending) -> Result<u64> {
        let mut tail = self.lock_tail();
        let body = self.body_of(pending)?;
        let guard = self.begin_write(&mut tail)?;
        self.check_expected(&tail, pending.expect, 0)?;
        tail.append(&[entry(&body)])?;
        drop(guard);
        self.end_write(&mut tail)?;
        Ok(tail.position.seq)
    }

    /// Writes a group of records with one `write` and, unless the mode leaves
    /// that to the OS, one sync.
    fn write_group(&self, group: &[Pending]) -> Vec<Result<u64>> {
        let mut tail = self.lock_tail();
        match self.try_write_group(&mut tail, group) {
            Ok(results) => results,
            Err(error) => group.iter().map(|_| Err(error.duplicate())).collect(),
        }
    }

    fn try_write_group(&self, tail: &mut Tail, group: &[Pending]) -> Result<Vec<Result<u64>>> {
        let bodies: Vec<_> = group.iter().map(|pending| self.body_of(pending)).collect();
        let guard = self.begin_write(tail)?;
        let mut entries = Vec::with_capacity(group.len());
        let mut refused = Vec::new();
        for (n, (pending, body)) in group.iter().zip(&bodies).enumerate() {
            let checked = self.check_expected(tail, pending.expect, entries.len());
            match (checked, body) {
                (Err(error), _) => refused.push((n, error)),
                (Ok(()), Err(error)) => refused.push((n, error.duplicate())),
                (Ok(()), Ok(body)) => entries.push(entry(body)),
            }
        }
        let before = tail.position.seq;
        tail.append(&entries)?;
        drop(guard);
        if !entries.is_empty() {
            self.end_write(tail)?;
        }
        let mut results: Vec<Result<u64>> =
            (before..tail.position.seq).map(|seq| Ok(seq + 1)).collect();
        for (n, error) in refused {
            results.insert(n, Err(error));
        }
        Ok(results)
    }

    /// Takes the short lock and sees to it that the tail is the trail's end.
    fn begin_write(&self, tail: &mut Tail) -> Result<AppendGuard<'_>> {
        if let Some(error) = tail.stopped() {
            return Err(error);
        }
        let guard = self.append_lock.hold()?;
        tail.catch_up()?;
        if tail.is_past(self.store.rotation()) {
            tail.rotate()?;
            if let Some(keep) = self.store.keep_trails() {
                // What cannot go now goes with the next rotation: no message waits
                // for it, nor is refused.
                let_go_of_trails(&self.store, &self.files, keep).ok();
            }
        }
        Ok(guard)
    }

    /// Makes what was written durable, as far as the mode goes. The short lock
    /// is not held meanwhile: it orders writes, and a sync covers them all.
    fn end_write(&self, tail: &mut Tail) -> Result<()> {
        match self.durability {
            Durability::Os => Ok(()),
            Durability::Record | Durability::Batch => tail.sync(),
        }
    }

    /// Checks that nothing was said after the record that the caller takes for
    /// the last. Notes of others do not count: they are not said.
    fn check_expected(&self, tail: &Tail, expect: Option<u64>, before: usize) -> Result<()> {
        let Some(expect) = expect else {
            return Ok(());
        };
        let last = tail.position.seq + before as u64;
        let in_sync = expect <= last
            && (before == 0 || expect == last)
            && (expect == last || !self.reader().is_spoken_after(expect)?);
        if in_sync {
            return Ok(());
        }
        let message = format!(
            "record {expect} is not the last of session {}: {last} is",
            self.files.id()
        );
        Err(Error::conflict(message, last))
    }

    fn reader(&self) -> SessionReader {
        SessionReader::new(&self.store, self.files.clone())
    }
}
