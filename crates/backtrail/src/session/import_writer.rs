//! Writes imported sessions: those that another program keeps.
//!
//! The importer writes on behalf of the session's agent: records are appended with the
//! times and ids that they have in the agent's files, many at a time, and if the agent
//! rewound the conversation, it is rewound here. No other process moves it.

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
use crate::trail::opener::{AT_FROM_FILE, Opener, TrailReason};
use crate::trail::origin::{ForkOrigin, SpawnedBy};

/// Writes to an imported session.
#[derive(Debug)]
pub struct ImportWriter {
    session: Session,
    /// Records to be written together.
    waiting: Vec<(&'static str, Vec<u8>)>,
    bytes: usize,
}

/// Pending records are written when they exceed this many bytes.
const WAITING: usize = 4 << 20;

/// Options for an imported session.
#[derive(Debug, Clone, Default)]
pub struct ImportWriterOptions {
    session: SessionOptions,
    began: Option<Timestamp>,
    is_from_file: bool,
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
    /// Creates options for a session that belongs to `agent`.
    pub fn new(agent: &str, options: SessionOptions) -> Self {
        Self {
            session: options.agent(agent).belongs_to(agent),
            ..Self::default()
        }
    }

    /// Sets when the session began.
    #[must_use]
    pub fn began(mut self, at: Timestamp) -> Self {
        self.began = Some(at);
        self
    }

    /// Sets the time of the session's file in place of the unknown time when it began.
    #[must_use]
    pub fn began_about(mut self, file_time: Timestamp) -> Self {
        self.is_from_file = true;
        self.began(file_time)
    }

    /// Sets the id that the program gives the session, if it differs from the one here.
    #[must_use]
    pub fn original_id(mut self, id: impl Into<String>) -> Self {
        self.original_id = Some(id.into());
        self
    }

    /// Sets the session that this one began as a copy of. It need not be in the store.
    #[must_use]
    pub fn copy_of(mut self, session: impl Into<String>, branch_name: Option<&str>) -> Self {
        self.origin = Origin::Copy(ForkOrigin::new(session, branch_name, None));
        self
    }

    /// Sets the record of another session that this one continues from; 0 for its beginning.
    #[must_use]
    pub fn continues(mut self, parent: &SessionId, seq: u64, branch_name: Option<&str>) -> Self {
        self.origin = Origin::Continues {
            parent: parent.clone(),
            seq,
            branch_name: branch_name.map(str::to_owned),
        };
        self
    }

    /// Sets the tool call of another session that started this one. The seq is 0 if the call
    /// is unknown or not in the store.
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
    /// Begins to import a session of another program, under a given id.
    ///
    /// # Errors
    ///
    /// Fails with `Conflict` if the session exists, and if it was deleted or the store cannot be
    /// written.
    pub fn begin_import(
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
            at_from: options.is_from_file.then(|| AT_FROM_FILE.to_owned()),
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

    /// Continues the import of a session. A session that was not imported is refused.
    ///
    /// # Errors
    ///
    /// Fails with `Invalid` if the session was not imported, with `NotFound` if there is none of
    /// this id, with `Locked` if another process is writing to it, and if it cannot be written.
    pub fn resume_import(&self, id: &SessionId) -> Result<ImportWriter> {
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
    /// Returns whether a session with this id was deleted here: it is in the trash, was emptied
    /// from there after an import, or was purged.
    pub fn was_deleted(&self, id: &SessionId) -> bool {
        self.files(id).refuse_gone().is_err() || self.was_emptied(id)
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

    /// Returns a reader of the session. It does not see pending records.
    pub fn reader(&self) -> SessionReader {
        self.session.reader()
    }

    /// Appends a message. It may stay pending, to be written with others.
    ///
    /// # Errors
    ///
    /// Fails if the message is invalid or the session cannot be written.
    pub fn message(&mut self, draft: &Draft) -> Result<()> {
        let pending = self.session.0.encode(draft)?;
        let body = self.session.0.body_of(&pending)?.into_owned();
        self.wait("message", body)
    }

    /// Appends the usage of a model call, if it is recorded apart from the call's messages.
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be written.
    pub fn usage(&mut self, used: &CallUsage) -> Result<()> {
        self.wait("usage", body(used)?)
    }

    /// Appends a summary that replaces earlier messages in the context.
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be written.
    pub fn compact(&mut self, compaction: &Compaction) -> Result<()> {
        self.flush()?;
        self.session.compact(compaction).map(drop)
    }

    /// Appends a note with new details of the session.
    ///
    /// # Errors
    ///
    /// Fails with `Invalid` if the note is too long, and if the session cannot be written.
    pub fn note(&mut self, note: &Note) -> Result<()> {
        self.flush()?;
        append_note(&self.session.0.store, &self.session.0.dir, note).map(drop)
    }

    /// Rewinds the conversation to a record, the last one that stays; 0 empties it. Later
    /// records stay in their trail.
    ///
    /// # Errors
    ///
    /// Fails with `NotFound` if there is no such record, and if the session cannot be written.
    pub fn back_to(&mut self, seq: u64) -> Result<()> {
        self.flush()?;
        self.session.move_to_record(seq).map(drop)
    }

    /// Stores bytes of a file that the session is imported from, after those already stored
    /// for `source`.
    ///
    /// # Errors
    ///
    /// Fails if the session's payloads cannot be written.
    pub fn keep(&mut self, source: &mut SourceRecord, bytes: &[u8]) -> Result<()> {
        let payloads = &self.session.0.payloads;
        let mut payloads = lock(payloads);
        source.keep(bytes, &mut payloads)
    }

    /// Records the file that the session was imported from, after all other records. Returns
    /// the place of the new record: its trail, its seq and its first byte.
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be written.
    pub fn source(&mut self, source: &SourceRecord) -> Result<(u32, u64, u64)> {
        let live = &self.session.0;
        let body = source.encode(live.store.now(), live.new_id()?)?;
        self.flush()?;
        let before = self.write(&[("source", body)])?;
        let tail = self.session.0.lock_tail();
        Ok((tail.trail, tail.position().seq, before))
    }

    /// Writes the pending records.
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be written.
    pub fn flush(&mut self) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let waiting = std::mem::take(&mut self.waiting);
        self.bytes = 0;
        self.write(&waiting).map(drop)
    }

    /// Writes the pending records, syncs the session and releases the lock.
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be written or synced.
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

    /// Writes records in one `write`, and returns where the first one begins. They become
    /// durable when the session is closed: until then nothing relies on them.
    fn write(&self, records: &[(&'static str, Vec<u8>)]) -> Result<u64> {
        let live = &self.session.0;
        live.alone(|| {
            let mut tail = live.lock_tail();
            let guard = live.begin_write(&mut tail)?;
            let entries: Vec<_> = records
                .iter()
                .map(|(kind, body)| Entry { kind, body })
                .collect();
            let begins = tail.len();
            live.write(&mut tail, &entries)?;
            drop(guard);
            Ok(begins)
        })
    }
}

/// The usage of a model call, recorded apart from the call's messages.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct CallUsage {
    /// When the call was made.
    pub at: Timestamp,
    /// The id of the record.
    pub id: String,
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The id of the response, which its messages share.
    pub response_id: String,
    /// How long the call took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The cost that the provider reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// How many tokens the call used.
    pub usage: Usage,
}

impl CallUsage {
    /// Creates a record of a call's usage.
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
