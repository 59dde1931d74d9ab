//! A session as a transcript, and a transcript as a session.

use std::sync::{Arc, Mutex};

use super::Transcript;
use super::content::Content;
use super::lines::Lines;
use crate::error::{Error, IoContext, Result};
use crate::log::{LogDir, PayloadWriter};
use crate::session::{Session, SessionOptions, SessionReader};
use crate::storage::append_all;
use crate::store::Store;
use crate::time::Timestamp;
use crate::trail::{Damage, DamageReport};

impl SessionReader {
    /// Returns the history as a plain value, all of it in memory.
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be read; damage is skipped and counted.
    pub fn transcript(&self) -> Result<Transcript> {
        self.pinned()?.transcript_of_line()
    }

    fn transcript_of_line(&self) -> Result<Transcript> {
        let info = self.info()?;
        let millis = |at: Option<Timestamp>| at.map_or(0, Timestamp::as_millis);
        let mut content = Content::empty(info.id, millis(info.created_at));
        content.fork = info.forked_from;
        let (mut seqs, mut last_at) = (Vec::new(), info.updated_at);
        let mut skipped = DamageReport::default();
        let mut records = self.records()?;
        while let Some(record) = records.next()? {
            if record.kind().is_spoken() {
                last_at = record.at().or(last_at);
            }
            if let Some(reason) = content.add_record(&record, &mut seqs)? {
                skipped.add(Damage {
                    file: self.dir(),
                    line: None,
                    byte: 0,
                    bytes: record.bytes().len() as u64,
                    reason,
                });
            }
        }
        skipped.append(&mut records.damage().clone());
        content.updated_at_ms = millis(last_at);
        if content.compaction.is_none()
            && let Some((_, stored)) = self.newest_compaction()?
        {
            // The compaction of a version-1 object is not a record.
            let at_ms = millis(info.updated_at);
            let mut compacted = content.next_compaction(stored.summary, 0, at_ms);
            compacted.summary.count = stored.count;
            compacted.summary.removed_message_count = stored.removed_message_count;
            content.compaction = Some(compacted);
        }
        let mut transcript = Transcript::from_content(content);
        transcript.skipped = skipped;
        Ok(transcript)
    }
}

impl Session {
    /// Returns the history as a plain value; see [`SessionReader::transcript`].
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be read; damage is skipped and counted.
    pub fn transcript(&self) -> Result<Transcript> {
        self.reader().transcript()
    }
}

impl Store {
    /// Creates a session from a transcript, with its id, and opens it for writing. After a
    /// crash the session is either complete or absent.
    ///
    /// # Errors
    ///
    /// Fails with [`Conflict`](crate::ErrorKind::Conflict) if a session has that id
    /// ([`Transcript::fork`] gives another one), and with
    /// [`Invalid`](crate::ErrorKind::Invalid) if the transcript was loaded from a trail in a store.
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
            // The trail may be a part of a session, without the large parts of its messages.
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
