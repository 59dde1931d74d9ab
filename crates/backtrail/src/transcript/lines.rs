//! A transcript's records as lines of a trail.

use std::sync::{Arc, Mutex};

use serde::Serialize;

use super::content::{Compacted, Content, KEPT_LINE};
use crate::error::{Error, Result};
use crate::json::{Text, write_fields};
use crate::log::{PayloadWriter, move_out};
use crate::message::{Message, parts};
use crate::random::{OsRandomness, new_uuid};
use crate::sync::lock;
use crate::time::Timestamp;
use crate::trail::opener::{Opener, TrailReason};
use crate::trail::record::Position;
use crate::trail::sum::Sum;

/// Writes records one after another.
#[derive(Debug, Clone)]
pub(super) struct Lines {
    pub(super) position: Position,
    /// The seq of each message.
    pub(super) seqs: Vec<u64>,
    /// How many compactions the last one counted.
    pub(super) compactions: u64,
    /// How many kept lines of version 1 are written.
    pub(super) kept: usize,
    /// Takes large and binary parts of messages; in a transcript's own file they stay in
    /// their lines.
    pub(super) payloads: Option<Arc<Mutex<PayloadWriter>>>,
}

/// How much of a transcript was written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    position: Position,
    messages: usize,
    compactions: u64,
    kept: usize,
}

/// An addition to a transcript.
pub(super) enum New<'a> {
    /// A message, and its time.
    Message(&'a Message, i64),
    Compaction(&'a Compacted),
}

#[derive(Serialize)]
struct CompactionFields<'a> {
    at: Timestamp,
    id: uuid::Uuid,
    count: u64,
    removed_message_count: u64,
    summary: &'a Text,
    keeps_from: u64,
}

impl Lines {
    /// Starts a trail: nothing is written yet.
    pub(super) fn new() -> Self {
        Self {
            position: Position::START,
            seqs: Vec::new(),
            compactions: 0,
            kept: 0,
            payloads: None,
        }
    }

    pub(super) fn opener(&mut self, out: &mut Vec<u8>, content: &Content) -> Result<()> {
        let bare = content.messages.is_empty() && content.compaction.is_none();
        let unrecorded = bare && content.updated_at_ms != content.created_at_ms;
        let at = moment(content.created_at_ms)?;
        let opener = Opener {
            fork: content.fork.clone(),
            updated_at_ms: unrecorded.then_some(content.updated_at_ms),
            ..Opener::new(&content.session_id, 0, TrailReason::Start, at)
        };
        self.position.sum = opener.write(out)?;
        Ok(())
    }

    pub(super) fn message(
        &mut self,
        out: &mut Vec<u8>,
        message: &Message,
        at_ms: i64,
    ) -> Result<()> {
        let mut body = Vec::new();
        body.extend_from_slice(b",\"at\":\"");
        moment(at_ms)?.write(&mut body);
        let id = record_id()?.hyphenated();
        body.extend_from_slice(format!("\",\"id\":\"{id}\",\"message\":").as_bytes());
        let front = body.len();
        message
            .write_json(&mut body)
            .map_err(|error| unwritable(&error))?;
        if let Some(payloads) = &self.payloads
            && let Ok(json) = std::str::from_utf8(&body[front..])
            && parts::may_have_parts(json.as_bytes())
        {
            let mut payloads = lock(payloads);
            body = move_out(&mut payloads, &body[..front], json)?;
        }
        self.line(out, "message", &body)?;
        self.seqs.push(self.position.seq);
        Ok(())
    }

    pub(super) fn compaction(
        &mut self,
        out: &mut Vec<u8>,
        compacted: &Compacted,
        at_ms: i64,
    ) -> Result<()> {
        let summary = &compacted.summary;
        // If everything is covered, the next message is the first that is kept.
        let next = self.position.seq.saturating_add(2);
        let fields = CompactionFields {
            at: moment(at_ms)?,
            id: record_id()?,
            count: summary.count,
            removed_message_count: summary.removed_message_count,
            summary: &summary.summary,
            keeps_from: self.seqs.get(summary.covered).copied().unwrap_or(next),
        };
        let mut body = Vec::new();
        write_fields(&mut body, &fields).map_err(|error| unwritable(&error))?;
        self.line(out, "compaction", &body)?;
        self.compactions = summary.count;
        Ok(())
    }

    /// Writes a line of version 1 that is kept as it is.
    fn kept_line(&mut self, out: &mut Vec<u8>, line: &str, at_ms: i64) -> Result<()> {
        #[derive(Serialize)]
        struct Fields<'a> {
            at: Timestamp,
            line: &'a str,
        }
        let at = moment(at_ms)?;
        let mut body = Vec::new();
        write_fields(&mut body, &Fields { at, line }).map_err(|error| unwritable(&error))?;
        self.line(out, KEPT_LINE, &body)?;
        self.kept += 1;
        Ok(())
    }

    /// Writes the part of a transcript that is not written yet, followed by `new` if there is
    /// any. Complete lines are passed on in batches.
    pub(super) fn rest(
        &mut self,
        content: &Content,
        new: Option<&New<'_>>,
        hand_out: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        /// How many bytes are passed on at once, unless a single line is longer.
        const ENOUGH: usize = 1 << 20;
        let (from, len) = (self.seqs.len(), content.messages.len());
        let compaction = content
            .compaction
            .as_ref()
            .filter(|last| last.summary.count > self.compactions)
            .map(|last| (last.after.max(last.summary.covered).clamp(from, len), last));
        let mut out = Vec::new();
        if self.position.sum == Sum::ZERO {
            self.opener(&mut out, content)?;
        }
        // The last record gets the time of the transcript's last change.
        let updated = new.is_none().then_some(content.updated_at_ms);
        for n in from..=len {
            while let Some(kept) = content.kept.get(self.kept)
                && (kept.after <= n || n == len)
            {
                self.kept_line(&mut out, &kept.line, content.updated_at_ms)?;
            }
            if let Some((_, last)) = compaction.filter(|(at, _)| *at == n) {
                let at_ms = updated.filter(|_| n == len).unwrap_or(last.at_ms);
                self.compaction(&mut out, last, at_ms)?;
            }
            if let Some(message) = content.messages.get(n) {
                let is_last = n + 1 == len && compaction.is_none_or(|(at, _)| at < len);
                let pushed = content.pushed_at_ms.get(n).copied();
                let at_ms = updated.filter(|_| is_last).or(pushed).unwrap_or(0);
                self.message(&mut out, message, at_ms)?;
            }
            if out.len() >= ENOUGH {
                hand_out(&out)?;
                out.clear();
            }
        }
        match new {
            Some(New::Message(message, at_ms)) => self.message(&mut out, message, *at_ms)?,
            Some(New::Compaction(last)) => self.compaction(&mut out, last, last.at_ms)?,
            None => {}
        }
        if out.is_empty() {
            return Ok(());
        }
        hand_out(&out)
    }

    fn line(&mut self, out: &mut Vec<u8>, kind: &str, body: &[u8]) -> Result<()> {
        self.position = self.position.write_next(out, kind, body)?;
        Ok(())
    }

    /// Returns the current position, to return to after a failure.
    pub(super) fn mark(&self) -> Mark {
        Mark {
            position: self.position,
            messages: self.seqs.len(),
            compactions: self.compactions,
            kept: self.kept,
        }
    }

    pub(super) fn go_back(&mut self, mark: Mark) {
        self.position = mark.position;
        self.seqs.truncate(mark.messages);
        self.compactions = mark.compactions;
        self.kept = mark.kept;
    }
}

fn record_id() -> Result<uuid::Uuid> {
    new_uuid(&OsRandomness).map_err(|error| Error::machine("cannot create an id", error))
}

fn moment(ms: i64) -> Result<Timestamp> {
    Timestamp::from_millis(ms).ok_or_else(|| Error::invalid("the time is out of range"))
}

fn unwritable(error: &serde_json::Error) -> Error {
    Error::json("the transcript cannot be written as JSON", error)
}
