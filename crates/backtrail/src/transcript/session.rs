//! A session as a transcript, and a transcript as a session.

use std::sync::{Arc, Mutex};

use super::Transcript;
use super::content::{Compacted, Content};
use super::lines::Lines;
use crate::error::{Error, ErrorKind, IoContext, Reason, Result};
use crate::log::{LogDir, PayloadWriter};
use crate::message::{CompactionSummary, StoredCompaction};
use crate::session::{Session, SessionOptions, SessionReader};
use crate::storage::append_all;
use crate::store::Store;
use crate::time::Timestamp;
use crate::trail::readable::Readable;
use crate::trail::{Damage, DamageReport, RecordKind, RecordRef};

impl SessionReader {
    /// Returns the history as a plain value, all of it in memory.
    pub fn transcript(&self) -> Result<Transcript> {
        self.pinned()?.transcript_of_line()
    }

    fn transcript_of_line(&self) -> Result<Transcript> {
        let info = self.info()?;
        let millis = |at: Option<Timestamp>| at.map_or(0, Timestamp::as_millis);
        let mut reading = Reading::default();
        let mut skipped = DamageReport::default();
        let mut records = self.records()?;
        while let Some(record) = records.next()? {
            if let Err(error) = reading.take(&record) {
                if error.kind() != ErrorKind::Corrupt {
                    return Err(error);
                }
                skipped.add(Damage {
                    file: self.dir(),
                    line: None,
                    byte: 0,
                    bytes: record.bytes().len() as u64,
                    reason: error.reason().cloned().unwrap_or(Reason::NotARecord),
                });
            }
        }
        skipped.take_in(&mut records.damage().clone());
        if reading.last.is_none()
            && let Some((_, stored)) = self.newest_compaction()?
        {
            // That of a version-1 object is not a record of its own.
            reading.last = Some((stored, millis(info.updated_at), reading.messages.len()));
        }
        let mut transcript = Transcript::from_content(Content {
            session_id: info.id,
            created_at_ms: millis(info.created_at),
            updated_at_ms: millis(reading.last_at.or(info.updated_at)),
            compaction: reading.compaction(),
            messages: reading.messages,
            pushed_at_ms: reading.pushed_at_ms,
            fork: info.forked_from,
        });
        transcript.skipped = skipped;
        Ok(transcript)
    }
}

impl Session {
    /// Returns the history as a plain value; see [`SessionReader::transcript`].
    pub fn transcript(&self) -> Result<Transcript> {
        self.reader().transcript()
    }
}

#[derive(Default)]
struct Reading {
    messages: Vec<crate::message::Message>,
    pushed_at_ms: Vec<i64>,
    seqs: Vec<u64>,
    /// The last compaction, when it was made, and after how many messages.
    last: Option<(StoredCompaction, i64, usize)>,
    /// The time of the last message or compaction.
    last_at: Option<Timestamp>,
}

impl Reading {
    fn take(&mut self, record: &RecordRef<'_>) -> Result<()> {
        if record.kind().is_spoken() {
            self.last_at = record.at().or(self.last_at);
        }
        let at_ms = record.at().map_or(0, Timestamp::as_millis);
        match record.kind() {
            RecordKind::Message => {
                // Where a part of it is lost, the rest is kept.
                let readable = record.readable()?;
                let whole = matches!(readable, Readable::Whole(_));
                if let Readable::Whole(message) | Readable::InPart(message) = readable {
                    self.messages.push(message);
                    self.pushed_at_ms.push(at_ms);
                    self.seqs.push(record.seq());
                }
                if !whole {
                    let what = "a message is not whole";
                    return Err(
                        Error::new(ErrorKind::Corrupt, what).with_reason(Reason::NotARecord)
                    );
                }
            }
            _ => {
                if let Some(stored) = record.compaction()? {
                    self.last = Some((stored, at_ms, self.messages.len()));
                }
            }
        }
        Ok(())
    }

    fn compaction(&mut self) -> Option<Compacted> {
        let (stored, at_ms, after) = self.last.take()?;
        let covered = stored.keeps_from.map_or(0, |from| {
            self.seqs.iter().take_while(|seq| **seq < from).count()
        });
        Some(Compacted {
            summary: CompactionSummary {
                count: stored.count,
                removed_message_count: stored.removed_message_count,
                summary: stored.summary,
                covered,
            },
            after,
            at_ms,
        })
    }
}

impl Store {
    /// Creates a session from a transcript, with its id, and opens it for writing. It is
    /// there whole or not at all.
    ///
    /// # Errors
    ///
    /// A session with that id is a [`Conflict`](ErrorKind::Conflict):
    /// [`Transcript::fork`] gives another id. A transcript that was loaded from a trail in
    /// a store is [`Invalid`](ErrorKind::Invalid).
    pub fn create_session_from(
        &self,
        transcript: &Transcript,
        options: SessionOptions,
    ) -> Result<Session> {
        options.check()?;
        if let Some(place) = transcript
            .place
            .as_ref()
            .filter(|place| place.is_in_store())
        {
            // It may be a part of a session, and large parts of its messages are not in it.
            let what = "this is a trail of a session in a store; export the session there, \
                        and import the export";
            return Err(Error::invalid(what).at_path(place.path()));
        }
        let id = transcript.session_id().clone();
        let files = self.files(&id);
        if !files.trails()?.is_empty() {
            let what = format!("session {id} already exists; fork the transcript to import it");
            let last = self.read_session(&id)?.info()?.last_seq;
            return Err(Error::conflict(what, last));
        }
        files.refuse_gone()?;
        let durability = options.asked_durability();
        let session = Session::create_with(self, id, durability, |files| write(files, transcript))?;
        if let Some(note) = options.as_note() {
            session.note(&note)?;
        }
        Ok(session)
    }
}

/// Writes a transcript as a session's first trail.
fn write(files: &LogDir, transcript: &Transcript) -> Result<()> {
    let path = files.trail_path(0);
    let mut lines = Lines::new();
    lines.payloads = Some(Arc::new(Mutex::new(PayloadWriter::new(files))));
    files
        .create_trail(0, |file| {
            lines.rest(&transcript.content, None, &mut |bytes| {
                append_all(file, bytes).context("cannot write the session", &path)
            })
        })
        .map(drop)
}
