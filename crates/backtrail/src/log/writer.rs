//! Writes a log: one process appends, and its threads share the work.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::directory::LogDir;
use super::lock::{HeldLock, LockFile, hold_writer};
use super::payloads::PayloadWriter;
use super::queue::Queue;
use super::reader::LogReader;
use super::remote::RemoteLog;
use super::tail::{Entry, SetAside, Tail};
use crate::error::{Error, IoContext, Result};
use crate::message::Draft;
use crate::random::IdSource;
use crate::replica::Remote;
use crate::storage::make_dir;
use crate::store::Store;
use crate::sync::lock;

/// When an append returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Durability {
    /// When the record is on disk, by its own write and sync.
    #[default]
    Record,
    /// When the record is on disk; concurrent records share one write and one sync. As
    /// safe, and faster with many threads.
    Batch,
    /// When the operating system has the record. It survives a crash of the process, but
    /// not of the machine.
    Os,
    /// When the record is on disk, and the store's [`Remote`] has it as well. Concurrent
    /// records share one write, one sync and one request.
    Remote,
}

impl Durability {
    /// Returns the mode as it is written in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::Batch => "batch",
            Self::Os => "os",
            Self::Remote => "remote",
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
                "unknown durability {}: use record, batch or os",
                crate::error::quoted(other)
            ))),
        }
    }
}

/// A log that this process writes to. Threads share it.
///
/// It holds the writer's lock until it is closed or dropped.
#[derive(Debug)]
pub(crate) struct LogWriter {
    pub(crate) store: Store,
    pub(crate) dir: LogDir,
    pub(super) durability: Durability,
    pub(crate) append_lock: LockFile,
    /// Released when the log is closed.
    lock: Mutex<Option<HeldLock>>,
    tail: Mutex<Tail>,
    pub(crate) queue: Queue,
    ids: IdSource,
    pub(crate) payloads: Mutex<PayloadWriter>,
    pub(crate) set_aside: Vec<SetAside>,
    /// Called after each rotation, with the short lock held.
    rotated: fn(&Store, &LogDir),
    /// Set if an append waits for a replica as well.
    pub(crate) remote: Option<RemoteLog>,
}

/// Options for opening a log for writing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriterOptions {
    /// When an append returns; `None` for the store's setting.
    pub(crate) durability: Option<Durability>,
    /// Called after each rotation, with the short lock held.
    pub(crate) rotated: fn(&Store, &LogDir),
}

impl WriterOptions {
    fn durability(&self, store: &Store) -> Durability {
        self.durability.unwrap_or(store.durability())
    }

    /// Takes the lease of a log, if an append is to wait for a replica.
    fn remote(&self, store: &Store, dir: &LogDir) -> Result<Option<RemoteLog>> {
        if self.durability(store) != Durability::Remote {
            return Ok(None);
        }
        let remote: &Remote = store.remote().ok_or_else(|| {
            Error::invalid("a session is to be written to a remote, and the store has none")
        })?;
        RemoteLog::open(remote, dir).map(Some)
    }
}

impl LogWriter {
    /// Creates a log whose first trail `make` makes, and locks it.
    pub(crate) fn create(
        store: &Store,
        dir: LogDir,
        options: WriterOptions,
        make: impl FnOnce(&LogDir) -> Result<()>,
    ) -> Result<Self> {
        // One that exists was left by a crash before the session was acknowledged.
        make_dir(store.storage(), dir.path()).context("cannot create the session", dir.path())?;
        let lock = hold_writer(store, &dir)?;
        let remote = options.remote(store, &dir)?;
        make(&dir)?;
        Self::start(store, dir, lock, options, remote)
    }

    /// Locks an existing log.
    pub(crate) fn open(store: &Store, dir: LogDir, options: WriterOptions) -> Result<Self> {
        dir.head()?;
        let lock = hold_writer(store, &dir)?;
        let remote = options.remote(store, &dir)?;
        Self::start(store, dir, lock, options, remote)
    }

    fn start(
        store: &Store,
        dir: LogDir,
        lock: HeldLock,
        options: WriterOptions,
        remote: Option<RemoteLog>,
    ) -> Result<Self> {
        let append_lock = LockFile::append(&dir)?;
        let guard = append_lock.hold()?;
        let mut tail = Tail::load(store, &dir)?;
        drop(guard);
        // A later append may be refused because of records found here, so they must
        // survive a power cut.
        tail.sync()?;
        let set_aside = std::mem::take(&mut tail.set_aside);
        let log = Self {
            store: store.clone(),
            payloads: Mutex::new(PayloadWriter::new(&dir)),
            dir,
            durability: options.durability(store),
            append_lock,
            lock: Mutex::new(Some(lock)),
            tail: Mutex::new(tail),
            queue: Queue::default(),
            ids: IdSource::default(),
            set_aside,
            rotated: options.rotated,
            remote,
        };
        log.catch_up_remote()?;
        Ok(log)
    }

    /// Waits for queued records, syncs them whatever the mode, and releases the
    /// lock.
    pub(crate) fn close(&self) -> Result<()> {
        self.queue.close(self);
        let synced = {
            let mut tail = self.lock_tail();
            match tail.stopped() {
                Some(error) => Err(error),
                None => tail.sync(),
            }
        };
        let held = lock(&self.lock).take();
        let closed = match &held {
            Some(_) => synced.and_then(|()| self.acknowledge(self.lock_tail())),
            None => synced,
        };
        if let Some(remote) = &self.remote {
            remote.release();
        }
        drop(held);
        closed
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        let open = self.lock.get_mut().is_ok_and(|lock| lock.is_some());
        let tail = self.tail.get_mut().unwrap_or_else(PoisonError::into_inner);
        if open && self.durability == Durability::Os && tail.stopped().is_none() {
            tail.sync().ok();
        }
    }
}

/// A queued record: the part after its numbers.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(super) body: Vec<u8>,
    /// Where the message begins, if large or binary parts of it may have to move
    /// to the payload file.
    pub(super) message_at: Option<usize>,
    expect: Option<u64>,
}

fn entry(body: &[u8]) -> Entry<'_> {
    Entry {
        kind: "message",
        body,
    }
}

impl LogWriter {
    pub(crate) fn encode(&self, draft: &Draft) -> Result<Pending> {
        let (body, at) = draft.encode(|| self.store.now(), || self.new_id())?;
        Ok(Pending {
            message_at: draft.may_have_parts(&body[at..]).then_some(at),
            body,
            expect: draft.expected(),
        })
    }

    /// Makes the id of a record.
    pub(crate) fn new_id(&self) -> Result<uuid::Uuid> {
        let id = self.ids.next(self.store.random());
        id.map_err(|error| Error::machine("cannot create an id", error))
    }

    pub(crate) fn lock_tail(&self) -> MutexGuard<'_, Tail> {
        lock(&self.tail)
    }

    /// Writes one record, which is what most appends do, without the bookkeeping of a
    /// group.
    pub(super) fn write_one(&self, pending: &Pending) -> Result<u64> {
        let mut tail = self.lock_tail();
        let body = self.body_of(pending)?;
        let guard = self.begin_write(&mut tail)?;
        self.check_expected(&tail, pending.expect, 0)?;
        self.write(&mut tail, &[entry(&body)])?;
        drop(guard);
        self.end_write(&mut tail)?;
        let seq = tail.position().seq;
        self.acknowledge(tail)?;
        Ok(seq)
    }

    /// Writes a group of records with one `write` and, unless the mode leaves it to the
    /// operating system, one sync.
    pub(super) fn write_group(&self, group: &[Pending]) -> Vec<Result<u64>> {
        let mut tail = self.lock_tail();
        let written = self.try_write_group(&mut tail, group);
        match written {
            Ok(results) => self.acknowledge_group(tail, results),
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
        let before = tail.position().seq;
        self.write(tail, &entries)?;
        drop(guard);
        if !entries.is_empty() {
            self.end_write(tail)?;
        }
        let mut results: Vec<Result<u64>> = (before..tail.position().seq)
            .map(|seq| Ok(seq + 1))
            .collect();
        for (n, error) in refused {
            results.insert(n, Err(error));
        }
        Ok(results)
    }

    /// Takes the short lock and moves the tail to the trail's end.
    pub(crate) fn begin_write(&self, tail: &mut Tail) -> Result<HeldLock> {
        if let Some(error) = tail.stopped() {
            return Err(error);
        }
        self.must_not_be_fenced(tail)?;
        let guard = self.append_lock.hold()?;
        tail.catch_up()?;
        self.note_end(tail);
        if tail.is_past(self.store.rotation()) {
            tail.rotate()?;
            self.note_written(tail, 0);
            (self.rotated)(&self.store, &self.dir);
        }
        Ok(guard)
    }

    /// Writes records at the end, between [`begin_write`](Self::begin_write) and
    /// [`end_write`](Self::end_write).
    pub(crate) fn write(&self, tail: &mut Tail, entries: &[Entry<'_>]) -> Result<()> {
        let from = tail.len();
        tail.append(entries)?;
        self.note_written(tail, from);
        Ok(())
    }

    /// Syncs the written records, if the mode requires it. The short lock is not held
    /// meanwhile: it orders writes, and a sync covers them all.
    pub(crate) fn end_write(&self, tail: &mut Tail) -> Result<()> {
        match self.durability {
            Durability::Os => Ok(()),
            Durability::Record | Durability::Batch | Durability::Remote => tail.sync(),
        }
    }

    /// Checks that there is no message after the record that the caller expects to be the
    /// last. Notes of other processes do not count.
    pub(crate) fn check_expected(
        &self,
        tail: &Tail,
        expect: Option<u64>,
        before: usize,
    ) -> Result<()> {
        let Some(expect) = expect else {
            return Ok(());
        };
        let last = tail.position().seq + before as u64;
        let in_sync = expect <= last
            && (before == 0 || expect == last)
            && (expect == last || !self.reader().is_spoken_after(expect)?);
        if in_sync {
            return Ok(());
        }
        let message = format!(
            "session {} ends at record {last}, not {expect}",
            self.dir.id()
        );
        Err(Error::conflict(message, last))
    }

    pub(crate) fn reader(&self) -> LogReader {
        LogReader::new(&self.store, self.dir.clone())
    }
}
