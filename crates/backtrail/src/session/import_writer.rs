//! Sessions that another program keeps: taken in as that program tells them.
//!
//! Whoever takes one in speaks in it, in the name of its agent: what was said goes in with
//! the times and ids that it has there, many records at a time, and where the agent took
//! the conversation back, it is taken back here. Nobody else moves it.

use serde::Serialize;

use super::{Session, SessionOptions, SessionReader, append_note};
use crate::error::{Error, Result};
use crate::ids::SessionId;
use crate::json::body;
use crate::log::Durability;
use crate::log::place;
use crate::log::tail::Entry;
use crate::message::{Compaction, Draft, Usage};
use crate::session::Note;
use crate::store::Store;
use crate::sync::lock;
use crate::time::Timestamp;
use crate::trail::SourceRecord;
use crate::trail::opener::{Opener, TrailReason};
use crate::trail::origin::{ForkOrigin, SpawnedBy};

/// A session of another program's on its way in.
#[derive(Debug)]
pub struct ImportWriter {
    session: Session,
    /// Records that wait to be written together.
    waiting: Vec<(&'static str, Vec<u8>)>,
    bytes: usize,
}

/// Past this many bytes, what waits is written.
const WAITING: usize = 4 << 20;

/// What a session that is taken in begins with.
#[derive(Debug, Clone, Default)]
pub struct ImportWriterOptions {
    session: SessionOptions,
    began: Option<Timestamp>,
    original_id: Option<String>,
    origin: Origin,
}

#[derive(Debug, Clone, Default)]
enum Origin {
    #[default]
    Start,
    Copy(ForkOrigin),
    Continues {
        parent: SessionId,
        seq: u64,
        branch_name: Option<String>,
    },
    Spawned(SpawnedBy),
}

impl ImportWriterOptions {
    /// Makes options for a session that belongs to `agent`.
    pub fn new(agent: &str, options: SessionOptions) -> Self {
        Self {
            session: options.agent(agent).belongs_to(agent),
            ..Self::default()
        }
    }

    /// Sets when it began.
    #[must_use]
    pub fn began(mut self, at: Timestamp) -> Self {
        self.began = Some(at);
        self
    }

    /// Sets the id that the program gives it, where it has another here.
    #[must_use]
    pub fn original_id(mut self, id: impl Into<String>) -> Self {
        self.original_id = Some(id.into());
        self
    }

    /// Says that it began as a copy of another session, which need not be in the store.
    #[must_use]
    pub fn copy_of(mut self, session: impl Into<String>, branch_name: Option<&str>) -> Self {
        self.origin = Origin::Copy(ForkOrigin::new(session, branch_name, None));
        self
    }

    /// Says that it goes on from a record of another session; 0 for its beginning.
    #[must_use]
    pub fn continues(mut self, parent: &SessionId, seq: u64, branch_name: Option<&str>) -> Self {
        self.origin = Origin::Continues {
            parent: parent.clone(),
            seq,
            branch_name: branch_name.map(str::to_owned),
        };
        self
    }

    /// Says that a tool call of another session began it. The seq is 0 where the call is
    /// not known, or not in the store.
    #[must_use]
    pub fn spawned_by(mut self, session: &SessionId, seq: u64, tool_use_id: &str) -> Self {
        self.origin = Origin::Spawned(SpawnedBy {
            session_id: session.clone(),
            seq,
            tool_use_id: tool_use_id.to_owned(),
        });
        self
    }
}

impl Store {
    /// Begins a session that another program keeps, with an id that is known beforehand.
    pub fn begin_intake(
        &self,
        id: &SessionId,
        options: ImportWriterOptions,
    ) -> Result<ImportWriter> {
        options.session.check()?;
        let files = self.files(id);
        files.refuse_gone()?;
        if !files.trails()?.is_empty() {
            let what = format!("session {id} already exists");
            return Err(Error::conflict(what, 0).at_path(files.path()));
        }
        let at = options.began.unwrap_or_else(|| self.now());
        let opener = Opener {
            present: options.session.present,
            original_id: options.original_id,
            ..Opener::new(id, 0, TrailReason::Start, at)
        };
        let opener = match options.origin {
            Origin::Start => opener,
            Origin::Copy(origin) => Opener {
                fork: Some(origin),
                ..opener
            },
            Origin::Spawned(by) => Opener {
                spawned_by: Some(by),
                ..opener
            },
            Origin::Continues {
                parent,
                seq,
                branch_name,
            } => {
                let theirs = self.files(&parent);
                let place = place::find(self, &theirs, theirs.head()?, seq)?;
                let name = branch_name.as_deref();
                let opener = Opener {
                    reason: TrailReason::Fork,
                    fork: Some(ForkOrigin::new(parent.as_str(), name, Some(seq))),
                    ..opener
                };
                match seq {
                    0 => opener,
                    _ => opener.continuing(place.continues(&parent), place.position.compacted),
                }
            }
        };
        let durability = options.session.durability.or(Some(Durability::Batch));
        Session::create_opened(self, id.clone(), |_| opener, durability).map(ImportWriter::new)
    }

    /// Goes on taking in a session that another program keeps. One of our own is refused.
    pub fn resume_intake(&self, id: &SessionId) -> Result<ImportWriter> {
        let session = Session::open(self, id, Some(Durability::Batch))?;
        match session.reader().log.present()?.belongs_to {
            Some(_) => Ok(ImportWriter::new(session)),
            None => {
                let what = format!("session {id} was not imported");
                Err(Error::invalid(what))
            }
        }
    }
}

impl Store {
    /// Returns whether a session of this id was deleted here: it is in the trash, or was
    /// purged.
    pub fn was_deleted(&self, id: &SessionId) -> bool {
        self.files(id).refuse_gone().is_err()
    }
}

impl ImportWriter {
    fn new(session: Session) -> Self {
        Self {
            session,
            waiting: Vec::new(),
            bytes: 0,
        }
    }

    /// Returns the session's id.
    pub fn id(&self) -> &SessionId {
        self.session.id()
    }

    /// Returns the session to read from: what still waits is not there yet.
    pub fn reader(&self) -> SessionReader {
        self.session.reader()
    }

    /// Adds a message behind what was said. It may wait to be written with others.
    pub fn message(&mut self, draft: &Draft) -> Result<()> {
        let pending = self.session.0.encode(draft)?;
        let body = self.session.0.body_of(&pending)?.into_owned();
        self.wait("message", body)
    }

    /// Adds what a model call used, where it is told apart from its messages.
    pub fn usage(&mut self, used: &CallUsage) -> Result<()> {
        self.wait("usage", body(used)?)
    }

    /// Adds a summary in place of what was said.
    pub fn compact(&mut self, compaction: &Compaction) -> Result<()> {
        self.flush()?;
        self.session.compact(compaction).map(drop)
    }

    /// Notes what is known of the session now.
    pub fn note(&mut self, note: &Note) -> Result<()> {
        self.flush()?;
        append_note(&self.session.0.store, &self.session.0.dir, note).map(drop)
    }

    /// Takes the conversation back to a record, the last that stays; 0 empties it. What
    /// was said after it stays in its trail.
    pub fn back_to(&mut self, seq: u64) -> Result<()> {
        self.flush()?;
        self.session.move_to_record(seq).map(drop)
    }

    /// Keeps bytes of a file that the session is taken in from, behind those that the
    /// reading kept before.
    pub fn keep(&mut self, source: &mut SourceRecord, bytes: &[u8]) -> Result<()> {
        let payloads = &self.session.0.payloads;
        let mut payloads = lock(payloads);
        source.keep(bytes, &mut payloads)
    }

    /// Says what the session was taken in from, behind all that was said. Returns where
    /// that record stands: its trail, its seq and its first byte.
    pub fn source(&mut self, source: &SourceRecord) -> Result<(u32, u64, u64)> {
        let live = &self.session.0;
        let body = source.encode(live.store.now(), live.new_id()?)?;
        self.flush()?;
        let before = self.write(&[("source", body)])?;
        let tail = self.session.0.lock_tail();
        Ok((tail.trail, tail.position().seq, before))
    }

    /// Writes what waits.
    pub fn flush(&mut self) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let waiting = std::mem::take(&mut self.waiting);
        self.bytes = 0;
        self.write(&waiting).map(drop)
    }

    /// Writes what waits, makes all of it durable and gives the lock back.
    pub fn close(mut self) -> Result<()> {
        self.flush()?;
        self.session.close()
    }

    fn wait(&mut self, kind: &'static str, body: Vec<u8>) -> Result<()> {
        self.bytes += body.len();
        self.waiting.push((kind, body));
        match self.bytes > WAITING {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Writes records in one `write`, and returns where the first one begins. They are
    /// made durable when the session is closed: until then nobody relies on them.
    fn write(&self, records: &[(&'static str, Vec<u8>)]) -> Result<u64> {
        let live = &self.session.0;
        live.queue.alone(live, || {
            let mut tail = live.lock_tail();
            let guard = live.begin_write(&mut tail)?;
            let entries: Vec<_> = records
                .iter()
                .map(|(kind, body)| Entry { kind, body })
                .collect();
            let begins = tail.len();
            tail.append(&entries)?;
            drop(guard);
            Ok(begins)
        })
    }
}

/// What a model call used, told apart from its messages.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct CallUsage {
    /// When.
    pub at: Timestamp,
    /// What names the record.
    pub id: String,
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The response; messages of it have the same.
    pub response_id: String,
    /// How long the call took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// What the provider says it cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// How much.
    pub usage: Usage,
}

impl CallUsage {
    /// Says what a call used.
    pub fn new(
        id: impl Into<String>,
        at: Timestamp,
        response_id: impl Into<String>,
        usage: Usage,
    ) -> Self {
        Self {
            at,
            id: id.into(),
            model: None,
            response_id: response_id.into(),
            duration_ms: None,
            cost_usd: None,
            usage,
        }
    }
}
