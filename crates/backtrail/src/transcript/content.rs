//! The content of a transcript, apart from its file.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::error::{Reason, Result};
use crate::ids::SessionId;
use crate::json::Text;
use crate::message::{CompactionSummary, Message};
use crate::random::{OsRandomness, new_uuid};
use crate::time::{Clock, SystemClock, Timestamp};
use crate::trail::readable::Readable;
use crate::trail::{ForkOrigin, RecordKind, RecordRef};

/// The content of a transcript, apart from its file.
#[derive(Debug, Clone)]
pub(super) struct Content {
    pub(super) session_id: SessionId,
    pub(super) created_at_ms: i64,
    pub(super) updated_at_ms: i64,
    pub(super) messages: Vec<Message>,
    /// When each message was pushed.
    pub(super) pushed_at_ms: Vec<i64>,
    pub(super) compaction: Option<Compacted>,
    pub(super) fork: Option<ForkOrigin>,
    /// Lines of a version-1 file that are neither messages nor about the session.
    pub(super) kept: Vec<KeptLine>,
}

/// A line of a version-1 file that is kept as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeptLine {
    /// How many messages come before it.
    pub(super) after: usize,
    pub(super) line: String,
}

/// The kind of record that holds such a line.
pub(super) const KEPT_LINE: &str = "version1_line";

/// The field of such a record.
#[derive(Deserialize)]
struct KeptField {
    line: String,
}

/// A compaction, and after how many messages it was made.
#[derive(Debug, Clone)]
pub(super) struct Compacted {
    pub(super) summary: CompactionSummary,
    pub(super) after: usize,
    pub(super) at_ms: i64,
}

impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        let of = |content: &Self| content.compaction.as_ref().map(|last| last.summary.clone());
        self.session_id == other.session_id
            && self.created_at_ms == other.created_at_ms
            && self.updated_at_ms == other.updated_at_ms
            && self.messages == other.messages
            && of(self) == of(other)
            && self.fork == other.fork
            && self.kept == other.kept
    }
}

impl Content {
    pub(super) fn new() -> Self {
        Self::empty(new_id(), now_ms())
    }

    pub(super) fn empty(session_id: SessionId, created_at_ms: i64) -> Self {
        Self {
            session_id,
            created_at_ms,
            updated_at_ms: created_at_ms,
            messages: Vec::new(),
            pushed_at_ms: Vec::new(),
            compaction: None,
            fork: None,
            kept: Vec::new(),
        }
    }

    pub(super) fn add_message(&mut self, message: Message, at_ms: i64) {
        self.messages.push(message);
        self.pushed_at_ms.push(at_ms);
        self.updated_at_ms = at_ms;
    }

    /// Returns the lines that are kept before a message, or after the last one.
    pub(super) fn kept_at(&self, message: usize) -> impl Iterator<Item = &str> {
        let is_last = message >= self.messages.len();
        let here =
            move |kept: &&KeptLine| kept.after == message || (is_last && kept.after > message);
        self.kept.iter().filter(here).map(|kept| kept.line.as_str())
    }

    /// Adds the message, compaction or kept line of a record, and returns its damage, if any.
    /// `seqs` are those of the messages.
    pub(super) fn add_record(
        &mut self,
        record: &RecordRef<'_>,
        seqs: &mut Vec<u64>,
    ) -> Result<Option<Reason>> {
        if record.kind() == RecordKind::Other(KEPT_LINE) {
            let Ok(KeptField { line }) = serde_json::from_slice(record.bytes()) else {
                return Ok(Some(Reason::MissingField("line")));
            };
            let after = self.messages.len();
            self.kept.push(KeptLine { after, line });
            return Ok(None);
        }
        let at_ms = record.at().map_or(self.updated_at_ms, Timestamp::as_millis);
        let read = match record.compaction() {
            Ok(Some(stored)) => {
                let mut compacted =
                    self.next_compaction(stored.summary, stored.removed_message_count, at_ms);
                let summary = &mut compacted.summary;
                if stored.count > 0 {
                    summary.count = stored.count;
                }
                let from = stored.keeps_from.unwrap_or(0);
                summary.covered = seqs.partition_point(|seq| *seq < from);
                self.set_compaction(compacted);
                return Ok(None);
            }
            Ok(None) => record.readable()?,
            Err(error) => return Ok(error.reason().cloned()),
        };
        let is_whole = matches!(read, Readable::Whole(_) | Readable::NoMessage);
        // If a part of it is lost, the rest is kept.
        if let Readable::Whole(mut message) | Readable::InPart(mut message) = read {
            message.blocks.shrink_to_fit();
            self.add_message(message, at_ms);
            seqs.push(record.seq());
        }
        if is_whole {
            return Ok(None);
        }
        let flaw = record.message().err();
        let reason = flaw.and_then(|error| error.reason().cloned());
        Ok(Some(reason.unwrap_or(Reason::NotARecord)))
    }

    /// Frees spare capacity of the lists.
    pub(super) fn shrink(&mut self) {
        self.messages.shrink_to_fit();
        self.pushed_at_ms.shrink_to_fit();
    }

    pub(super) fn set_compaction(&mut self, compacted: Compacted) {
        self.updated_at_ms = compacted.at_ms;
        self.compaction = Some(compacted);
    }

    /// Creates the compaction that follows the last one.
    pub(super) fn next_compaction(
        &self,
        summary: Text,
        removed_message_count: u64,
        at_ms: i64,
    ) -> Compacted {
        let removed = usize::try_from(removed_message_count).unwrap_or(usize::MAX);
        let after = self.messages.len();
        Compacted {
            summary: CompactionSummary {
                count: self.compactions().saturating_add(1),
                removed_message_count,
                summary,
                covered: self.covered().saturating_add(removed).min(after),
            },
            after,
            at_ms,
        }
    }

    /// Returns how many compactions there have been.
    pub(super) fn compactions(&self) -> u64 {
        self.compaction
            .as_ref()
            .map_or(0, |last| last.summary.count)
    }

    /// Returns how many messages the last summary replaces.
    pub(super) fn covered(&self) -> usize {
        let covered = self.compaction.as_ref().map_or(0, |c| c.summary.covered);
        covered.min(self.messages.len())
    }

    pub(super) fn fork(&self, branch_name: Option<&str>, seq: Option<u64>) -> Self {
        let now = now_ms();
        let count = self.messages.len() as u64;
        let seq = Some(seq.unwrap_or(count));
        Self {
            session_id: new_id(),
            created_at_ms: now,
            updated_at_ms: now,
            fork: Some(ForkOrigin::new(self.session_id.as_str(), branch_name, seq)),
            ..self.clone()
        }
    }
}

pub(super) fn now_ms() -> i64 {
    SystemClock.now().as_millis()
}

/// Creates an id that no other session has.
fn new_id() -> SessionId {
    let uuid = new_uuid(&OsRandomness).unwrap_or_else(|_| {
        // No known machine refuses randomness. If one does, time, process and a counter
        // still distinguish its sessions.
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let mut hasher = blake3::Hasher::new();
        hasher.update(format!("{:?}", std::time::SystemTime::now()).as_bytes());
        hasher.update(&std::process::id().to_le_bytes());
        hasher.update(&COUNTER.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    });
    SessionId::from_uuid(uuid)
}
