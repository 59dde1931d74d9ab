//! Sessions: conversations kept in a log, their turns, and how they move.

mod compact;
mod context;
mod export;
mod fork;
#[cfg(feature = "snapshots")]
mod import_writer;
mod info;
#[cfg(feature = "snapshots")]
mod input_line;
mod moves;
mod note;
mod options;
mod reader;
mod run;
#[cfg(feature = "snapshots")]
mod source;
mod spawn;
mod steps;
#[cfg(feature = "snapshots")]
mod turn;

use std::sync::Arc;

use crate::context::{Context, Shape};
use crate::error::{Error, Result};
use crate::ids::SessionId;
use crate::log::{Commit, Durability, LogDir, LogWriter, Queue, SetAside, WriterOptions};
use crate::message::Draft;
use crate::store::Store;
use crate::trail::opener::{Opener, TrailReason};
use crate::trail::origin::SpawnedBy;
use crate::trash::move_old_trails;

pub use compact::Compacted;
pub use fork::ForkOptions;
#[cfg(feature = "snapshots")]
pub use import_writer::{CallUsage, ImportWriter, ImportWriterOptions};
pub use info::SessionInfo;
#[cfg(feature = "snapshots")]
pub use input_line::{InputLine, Unknown};
pub use note::Note;
pub use options::SessionOptions;
pub use reader::SessionReader;
pub use run::{Ending, Program, Run};
#[cfg(feature = "snapshots")]
pub use source::KeptSource;
pub use spawn::Spawned;
pub use steps::{Step, StepKind, Steps};
#[cfg(feature = "snapshots")]
pub use turn::{Tool, Turn};

pub(crate) use fork::fork;
pub(crate) use moves::{MovedChat, not_ours};
pub(crate) use note::append_note;
pub(crate) use run::append_run;
pub(crate) use spawn::spawn;
pub(crate) use steps::{ChatStep, all_steps, newest_step, opener_of, undone_step};

/// A session to write to.
///
/// It holds the writer's lock until it is closed, or until its last clone is
/// dropped. Any number of threads may append through it.
#[derive(Debug, Clone)]
pub struct Session(Arc<LogWriter>);

impl Session {
    /// Creates a session and locks it.
    pub(crate) fn create(store: &Store, options: SessionOptions) -> Result<Self> {
        options.check()?;
        Self::create_as(store, store.new_session_id()?, options, None)
    }

    /// Creates a session with a given id.
    fn create_as(
        store: &Store,
        id: SessionId,
        options: SessionOptions,
        spawned_by: Option<SpawnedBy>,
    ) -> Result<Self> {
        let opener = |id: &SessionId| Opener {
            present: options.present,
            name: options.name,
            spawned_by,
            ..Opener::new(id, 0, TrailReason::Start, store.now())
        };
        Self::create_opened(store, id, opener, options.durability)
    }

    /// Creates a session whose first trail has this opener, and locks it.
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

    /// Creates a session whose first trail `make` makes, and locks it.
    pub(crate) fn create_with(
        store: &Store,
        id: SessionId,
        durability: Option<Durability>,
        make: impl FnOnce(&LogDir) -> Result<()>,
    ) -> Result<Self> {
        let log = LogWriter::create(store, store.files(&id), writer_options(durability), make)?;
        Ok(Self(Arc::new(log)))
    }

    /// Locks a session that exists.
    pub(crate) fn open(
        store: &Store,
        id: &SessionId,
        durability: Option<Durability>,
    ) -> Result<Self> {
        let log = LogWriter::open(store, store.files(id), writer_options(durability))?;
        Ok(Self(Arc::new(log)))
    }

    /// Returns the session's id.
    pub fn id(&self) -> &SessionId {
        self.0.dir.id()
    }

    /// Returns a reader of the session.
    pub fn reader(&self) -> SessionReader {
        SessionReader::new(&self.0.store, self.0.dir.clone())
    }

    /// Renders the context to send to a model now; see [`SessionReader::context`].
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be read; damage is skipped and counted.
    pub fn context(&self, shape: Shape) -> Result<Context> {
        self.reader().context(shape)
    }

    /// Returns what was set aside when the session was opened: lines that were never
    /// acknowledged, because their writer died while writing them.
    pub fn set_aside(&self) -> &[SetAside] {
        &self.0.set_aside
    }

    /// Returns the seq of the last record that this handle knows of.
    pub fn last_seq(&self) -> u64 {
        self.0.lock_tail().position().seq
    }

    /// Returns the error that stopped this handle, if a sync failed or another machine took
    /// over: it acknowledges nothing any more. Reopen the session to continue.
    pub fn stopped(&self) -> Option<Error> {
        let stopped = self.0.lock_tail().stopped();
        stopped.or_else(|| self.0.remote.as_ref()?.stopped())
    }

    /// Returns why the store's remote lacks records that were acknowledged here, with
    /// [`WhenAway::Local`](crate::replica::WhenAway::Local); `None` if it has them all. They are
    /// sent as soon as it can be reached.
    pub fn behind(&self) -> Option<Error> {
        self.0.remote.as_ref()?.behind()
    }

    /// Waits until the store's remote has everything that is here, and returns the seq of the
    /// last record. After an append that failed with `Away`, this is how to try again without
    /// appending the message twice.
    ///
    /// # Errors
    ///
    /// Fails as `append` does.
    pub fn acknowledge(&self) -> Result<u64> {
        self.0.alone(|| {
            let mut tail = self.0.lock_tail();
            drop(self.0.begin_write(&mut tail)?);
            self.0.end_write(&mut tail)?;
            Ok(tail.position().seq)
        })
    }

    /// Makes sure that no other machine writes to the session, before something that cannot be
    /// undone.
    pub(crate) fn renew_lease(&self) -> Result<()> {
        match &self.0.remote {
            Some(remote) => remote.renew(),
            None => Ok(()),
        }
    }

    /// Keeps what was written even if another machine took over: the files already moved.
    pub(crate) fn keep_written(&self) {
        if let Some(remote) = &self.0.remote {
            remote.keep();
        }
    }

    /// Appends a message and returns its seq once it is durable, as far as the
    /// session's [`Durability`] goes.
    ///
    /// After an error the message is not acknowledged, but may be there when the session is
    /// reopened; use [`Draft::expect`] to find out which.
    ///
    /// # Errors
    ///
    /// Fails with `Conflict` if the expected seq is not the last, with `DiskFull` if there is no
    /// space, and with `Io` if the session cannot be written; after a failed sync the handle is stopped.
    /// With [`Durability::Remote`] also with `Away` if the remote cannot be reached, and with `Fenced`
    /// if another machine took over: then the message is set aside and the handle is stopped.
    pub fn append(&self, message: impl Into<Draft>) -> Result<u64> {
        let pending = self.0.encode(&message.into())?;
        self.0.queue.append(&self.0, pending)
    }

    /// Appends several messages in order, and returns the outcome of each. Unless the
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

    /// Queues a message without waiting. Messages become durable in the order in which they
    /// were queued; the caller's thread never touches the disk.
    pub fn append_deferred(&self, message: impl Into<Draft>) -> Commit {
        Queue::append_deferred(&self.0, self.0.encode(&message.into()))
    }

    /// Appends a note.
    ///
    /// # Errors
    ///
    /// Fails with `Invalid` if the note is too long, and if the session cannot be written.
    pub fn note(&self, note: &Note) -> Result<u64> {
        if let Some(error) = self.stopped() {
            return Err(error);
        }
        match &self.0.remote {
            Some(_) => self.0.alone(|| self.0.write_note(note)),
            None => append_note(&self.0.store, &self.0.dir, note),
        }
    }

    /// Waits for queued messages, syncs them whatever the mode, and releases the lock.
    /// Other clones of this handle can no longer append.
    ///
    /// Dropping the last clone cannot report a failure, and does not wait: messages queued
    /// by [`append_deferred`](Self::append_deferred) are written by a thread that keeps the
    /// lock until it is done. If the process ends before that, the rest is lost.
    ///
    /// # Errors
    ///
    /// Fails if a queued message could not be made durable.
    pub fn close(self) -> Result<()> {
        self.0.close()
    }
}

fn writer_options(durability: Option<Durability>) -> WriterOptions {
    WriterOptions {
        durability,
        rotated: |store, dir| {
            if let Some(keep) = store.keep_trails() {
                // A trail that cannot be moved now is moved by the next rotation; no append waits
                // for it or fails because of it.
                move_old_trails(store, dir, keep).ok();
            }
        },
    }
}
