//! One record: writes, checks and parses its line.
//!
//! A line is `{"type":"…",…,"prev":"…","sum":"…"}`. The sum covers the line up to its
//! `,"sum"`, so each line can be checked by itself, whether it is read forwards or
//! backwards; `prev` repeats the sum of the record before, which reveals lost and
//! reordered lines.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::envelope::{Envelope, Span, kind_in, read_envelope};
use super::foreign::ForeignKind;
use super::opener::WORKSPACE_META;
use super::source::piece_references;
use super::sum::{HEX, Sum};
use crate::error::{Error, ErrorKind, Reason, Result};
use crate::json::Parts;
use crate::message::{Message, StoredCompaction, parts};
use crate::time::Timestamp;

/// The longest line that is written.
pub(crate) const MAX_WRITTEN: usize = 16 << 20;
/// The longest line that a reader accepts.
pub(crate) const MAX_READ: usize = 256 << 20;

/// The kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RecordKind<'a> {
    /// A trail's first record, `session_meta` or `workspace_meta`.
    Opener,
    /// A message.
    Message,
    /// A summary that replaces earlier messages in the context.
    Compaction,
    /// The usage of a model call, recorded apart from the call's messages.
    Usage,
    /// The file that a session was imported from, up to a byte.
    Source,
    /// A change of title, tags or model.
    Note,
    /// The session of a sub-agent that a tool call started.
    Spawned,
    /// A command that ran.
    Run,
    /// The state of a workspace, on its own trail.
    Checkpoint,
    /// Files of a workspace are about to be undone or redone.
    Rewind,
    /// The rewind, undo or redo is complete.
    Done,
    /// The rewind, undo or redo was abandoned, and everything is as before.
    GivenUp,
    /// File states of a workspace were dropped; their checkpoints stay.
    Dropped,
    /// The state of one path of a workspace, marked before an edit.
    Mark,
    /// The marks of a workspace were cleared.
    MarksCleared,
    /// Checkpoints of a workspace got their places in a session.
    Bound,
    /// A snapshot that was to be taken before a tool call is missing.
    Missed,
    /// Another kind, kept unchanged.
    Other(&'a str),
}

/// The kinds, as they are written.
const KINDS: [(&str, RecordKind<'static>); 18] = [
    ("message", RecordKind::Message),
    ("note", RecordKind::Note),
    ("compaction", RecordKind::Compaction),
    ("usage", RecordKind::Usage),
    ("source", RecordKind::Source),
    ("session_meta", RecordKind::Opener),
    (WORKSPACE_META, RecordKind::Opener),
    ("spawned", RecordKind::Spawned),
    ("run", RecordKind::Run),
    ("checkpoint", RecordKind::Checkpoint),
    ("rewind", RecordKind::Rewind),
    ("done", RecordKind::Done),
    ("given_up", RecordKind::GivenUp),
    ("let_go", RecordKind::Dropped),
    ("mark", RecordKind::Mark),
    ("marks_cleared", RecordKind::MarksCleared),
    ("bound", RecordKind::Bound),
    ("missed", RecordKind::Missed),
];

impl<'a> RecordKind<'a> {
    /// Returns the kind as it is written.
    pub fn as_str(self) -> &'a str {
        match self {
            Self::Other(name) => name,
            kind => {
                let known = KINDS.iter().find(|(_, known)| *known == kind);
                known.map_or("", |(name, _)| name)
            }
        }
    }

    fn from_name(name: &'a str) -> Self {
        let known = KINDS.iter().find(|(known, _)| *known == name);
        known.map_or(Self::Other(name), |(_, kind)| *kind)
    }

    /// Returns whether only the session's writer may append it.
    pub(crate) fn is_spoken(self) -> bool {
        matches!(self, Self::Message | Self::Compaction)
    }
}

/// The source of the large and binary parts of messages.
pub(crate) trait PayloadSource: fmt::Debug + Send + Sync {
    /// Returns the content that a reference names.
    fn fetch(&self, reference: &parts::Reference) -> Result<Vec<u8>>;
}

/// The message of a record; other fields are ignored.
#[derive(Deserialize)]
struct Body<T> {
    #[serde(default = "Option::default")]
    message: Option<T>,
}

/// A record, borrowed from the reader's buffer without copying.
#[derive(Debug, Clone, Copy)]
pub struct RecordRef<'a> {
    bytes: &'a [u8],
    envelope: Envelope,
    /// The source of the large parts of messages; `None` for a reader of a single file.
    payloads: Option<&'a Arc<dyn PayloadSource>>,
}

impl<'a> RecordRef<'a> {
    pub(crate) fn new(
        bytes: &'a [u8],
        envelope: Envelope,
        payloads: Option<&'a Arc<dyn PayloadSource>>,
    ) -> Self {
        Self {
            bytes,
            envelope,
            payloads,
        }
    }

    /// Returns the whole line as it is on disk, without its newline. Large and binary
    /// parts of a message are references to the payload file.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the record's number in the history.
    pub fn seq(&self) -> u64 {
        self.envelope.seq
    }

    /// Returns the record's kind.
    pub fn kind(&self) -> RecordKind<'a> {
        match self.envelope.foreign {
            Some((ForeignKind::Message, _)) => return RecordKind::Message,
            Some((ForeignKind::Compaction, _)) => return RecordKind::Compaction,
            Some((ForeignKind::Other, _)) | None => {}
        }
        let name = match self.envelope.kind {
            Some(_) => self.text(self.envelope.kind),
            None => self.slow().and_then(|fields| kind_in(&fields)),
        };
        RecordKind::from_name(name.unwrap_or(""))
    }

    /// Returns the record's id, if it has one.
    pub fn id(&self) -> Option<Cow<'a, str>> {
        if self.envelope.kind.is_some() {
            return self.text(self.envelope.id).map(Cow::Borrowed);
        }
        self.slow_string("id").map(Cow::Owned)
    }

    /// Returns when the record was made, if it has a time.
    pub fn at(&self) -> Option<Timestamp> {
        if self.envelope.kind.is_some() {
            return self.text(self.envelope.at)?.parse().ok();
        }
        self.slow_string("at")?.parse().ok()
    }

    /// Parses the message; `None` for other kinds of records.
    ///
    /// Fails if this version does not know the message's shape, or if a part of it is lost;
    /// [`stored_message`](Self::stored_message) returns the rest of it.
    ///
    /// # Errors
    ///
    /// Fails with `Corrupt` if the record or one of its payloads cannot be read.
    pub fn message(&self) -> Result<Option<Message>> {
        if !parts::may_have_references(self.bytes) {
            return self.stored_message();
        }
        let Some(json) = self.message_json()? else {
            return Ok(None);
        };
        self.present(serde_json::from_str(&json).map(Some))
    }

    /// Returns the message's JSON exactly as it was appended; `None` for other kinds of
    /// records.
    ///
    /// # Errors
    ///
    /// Fails with `Corrupt` if the record or one of its payloads cannot be read.
    pub fn message_json(&self) -> Result<Option<Cow<'a, str>>> {
        let Some(json) = self.stored_json()? else {
            return Ok(None);
        };
        match self.payloads {
            Some(payloads) if parts::may_have_references(json.as_bytes()) => {
                let restored = parts::restore(json, |part| payloads.fetch(part))?;
                Ok(Some(Cow::Owned(restored)))
            }
            _ => Ok(Some(Cow::Borrowed(json))),
        }
    }

    /// Returns the message's JSON as it is in its line; `None` if the record is not a readable
    /// message. See [`stored_message`](Self::stored_message).
    pub fn stored_message_json(&self) -> Option<&'a str> {
        self.stored_json().ok().flatten()
    }

    /// Returns the message's JSON as it is in its line.
    pub(crate) fn stored_json(&self) -> Result<Option<&'a str>> {
        if self.kind() != RecordKind::Message {
            return Ok(None);
        }
        if let Some((_, body)) = self.envelope.foreign {
            let body = &self.bytes[body.range()];
            return match std::str::from_utf8(body) {
                Ok(json) => Ok(Some(json)),
                Err(error) => Err(self.flawed(Reason::NotUtf8(error.valid_up_to() as u64))),
            };
        }
        let read = serde_json::from_slice(self.bytes);
        let read = read.map(|body: Body<&'a RawValue>| body.message);
        Ok(self.present(read)?.map(RawValue::get))
    }

    /// Returns the message, which must be present.
    fn present<T>(&self, read: Result<Option<T>, serde_json::Error>) -> Result<Option<T>> {
        match read {
            Ok(None) => Err(self.flawed(Reason::MissingField("message"))),
            Ok(message) => Ok(message),
            Err(error) => Err(self.flawed(Reason::Syntax(error.to_string()))),
        }
    }

    fn flawed(&self, reason: Reason) -> Error {
        let what = format!("cannot read the message of record {}", self.seq());
        Error::new(ErrorKind::Corrupt, what).with_reason(reason)
    }

    /// Parses the message as it is in its line, where a large or binary part is a reference
    /// to its payload. For callers that do not need those parts.
    ///
    /// # Errors
    ///
    /// Fails with `Corrupt` if the record cannot be read.
    pub fn stored_message(&self) -> Result<Option<Message>> {
        if self.kind() != RecordKind::Message {
            return Ok(None);
        }
        let read = match self.envelope.foreign {
            Some((_, body)) => serde_json::from_slice(&self.bytes[body.range()]).map(Some),
            None => serde_json::from_slice(self.bytes).map(|body: Body<_>| body.message),
        };
        self.present(read)
    }

    /// Copies the record.
    pub fn to_owned(&self) -> Record {
        Record {
            bytes: self.bytes.into(),
            envelope: self.envelope,
            payloads: self.payloads.cloned(),
        }
    }

    /// Returns the record's references to the payload file.
    pub(crate) fn references(&self) -> Result<Vec<parts::Reference>> {
        if !parts::may_have_references(self.bytes) {
            return Ok(Vec::new());
        }
        if self.kind() == RecordKind::Source {
            return Ok(piece_references(self));
        }
        let json = self.stored_json()?.unwrap_or("{}");
        let found = parts::references(json);
        Ok(found.into_iter().map(|(_, reference)| reference).collect())
    }

    /// Returns the seq of the newest note before this record in its trail.
    pub(crate) fn noted(&self) -> Option<u64> {
        self.envelope.noted
    }

    /// Returns the seq of the newest compaction before this record on its line.
    pub(crate) fn compacted(&self) -> Option<u64> {
        self.envelope.compacted
    }

    /// Returns the record's sum: the last field of its line or, for a record of another
    /// format, its hash.
    pub fn sum_bytes(&self) -> [u8; 8] {
        self.sum().to_bytes()
    }

    /// Returns the record's sum.
    pub(crate) fn sum(&self) -> Sum {
        match split_sum(self.bytes) {
            Some((_, sum)) if self.envelope.foreign.is_none() => sum,
            _ => Sum::of(self.bytes),
        }
    }

    /// Returns the sum of the record before, as this one repeats it.
    pub(crate) fn prev(&self) -> Option<Sum> {
        split_prev(split_sum(self.bytes)?.0).map(|(_, prev)| prev)
    }

    fn text(&self, range: Option<Span>) -> Option<&'a str> {
        std::str::from_utf8(self.bytes.get(range?.range())?).ok()
    }

    fn slow(&self) -> Option<Parts<'a>> {
        serde_json::from_slice(self.bytes).ok()
    }

    fn slow_string(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.slow()?.get(name)?.get()).ok()
    }
}

impl<'a> RecordRef<'a> {
    /// Reads the record as one of its kind.
    pub(crate) fn parse<T: Deserialize<'a>>(&self) -> Result<T, Reason> {
        serde_json::from_slice(self.bytes).map_err(|error| Reason::Syntax(error.to_string()))
    }

    /// Reads a record of one kind; `None` if it is another.
    pub(crate) fn parse_as<T: Deserialize<'a>>(&self, kind: RecordKind<'_>) -> Result<Option<T>> {
        if self.kind() != kind {
            return Ok(None);
        }
        self.parse().map(Some).map_err(|reason| {
            let what = format!("cannot read the {} of record {}", kind.as_str(), self.seq());
            Error::new(ErrorKind::Corrupt, what).with_reason(reason)
        })
    }

    /// Parses the compaction; `None` for other kinds of records.
    ///
    /// # Errors
    ///
    /// Fails with [`Corrupt`](crate::ErrorKind::Corrupt) if the record is not a valid
    /// compaction.
    pub fn compaction(&self) -> Result<Option<StoredCompaction>> {
        self.parse_as(RecordKind::Compaction)
    }
}

/// A record that owns a copy of its line.
#[derive(Debug, Clone)]
pub struct Record {
    bytes: Box<[u8]>,
    envelope: Envelope,
    payloads: Option<Arc<dyn PayloadSource>>,
}

impl Record {
    /// Returns the record as a borrowed one, with all methods.
    pub fn as_ref(&self) -> RecordRef<'_> {
        RecordRef::new(&self.bytes, self.envelope, self.payloads.as_ref())
    }

    /// Returns the record's number in the history.
    pub fn seq(&self) -> u64 {
        self.envelope.seq
    }

    /// Parses the message; see [`RecordRef::message`].
    ///
    /// # Errors
    ///
    /// Fails with `Corrupt` if the record or one of its payloads cannot be read.
    pub fn message(&self) -> Result<Option<Message>> {
        self.as_ref().message()
    }
}

/// Whether a reader recomputes sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Sums {
    /// Recomputes every record's sum; a wrong one is damage.
    #[default]
    Check,
    /// Trusts the sums, which is a little faster.
    Trust,
}

/// Checks a line without its newline, and finds its small fields.
pub(crate) fn check_line(line: &[u8], sums: Sums) -> Result<Envelope, Reason> {
    let Some((body, sum)) = split_sum(line) else {
        return Err(classify(line));
    };
    if sums == Sums::Check && Sum::of(body) != sum {
        return Err(Reason::BadSum);
    }
    read_envelope(line)
}

/// Returns the reason why a line has no sum at its end.
fn classify(line: &[u8]) -> Reason {
    match line.first() {
        Some(0) => Reason::NulBlock,
        Some(b'{') => Reason::MissingSum,
        _ => Reason::NotARecord,
    }
}

const SUM_KEY: &[u8] = b",\"sum\":\"";
const PREV_KEY: &[u8] = b",\"prev\":\"";

/// Splits a line into the part that its sum covers, and the sum.
pub(crate) fn split_sum(line: &[u8]) -> Option<(&[u8], Sum)> {
    split_hex(line.strip_suffix(b"\"}")?, SUM_KEY)
}

/// Splits the part that a sum covers into the part before `prev`, and `prev`.
pub(crate) fn split_prev(body: &[u8]) -> Option<(&[u8], Sum)> {
    split_hex(body.strip_suffix(b"\"")?, PREV_KEY)
}

fn split_hex<'a>(bytes: &'a [u8], key: &[u8]) -> Option<(&'a [u8], Sum)> {
    let (rest, hex) = bytes.split_at_checked(bytes.len().checked_sub(HEX)?)?;
    Some((rest.strip_suffix(key)?, Sum::from_hex(hex)?))
}

/// The position after a record, which the next record of the trail continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) seq: u64,
    pub(crate) sum: Sum,
    /// The newest note in the trail.
    pub(crate) noted: Option<u64>,
    /// The newest compaction on the line.
    pub(crate) compacted: Option<u64>,
}

impl Position {
    /// The position before the first record.
    pub(crate) const START: Self = Self {
        seq: 0,
        sum: Sum::ZERO,
        noted: None,
        compacted: None,
    };

    /// Returns the position after `record`.
    pub(crate) fn after(record: &RecordRef<'_>) -> Self {
        Self {
            seq: record.seq(),
            sum: record.sum(),
            noted: match record.kind() {
                RecordKind::Note => Some(record.seq()),
                _ => record.noted(),
            },
            compacted: match record.kind() {
                RecordKind::Compaction => Some(record.seq()),
                _ => record.compacted(),
            },
        }
    }

    /// Writes the next record, including its newline, and returns the position after it.
    /// `body` is as in [`write_line`].
    pub(crate) fn write_next(self, out: &mut Vec<u8>, kind: &str, body: &[u8]) -> Result<Self> {
        let seq = self.seq.checked_add(1).ok_or_else(|| {
            Error::new(
                ErrorKind::Corrupt,
                "the trail has run out of record numbers",
            )
        })?;
        let front = Front {
            kind,
            version: None,
            seq,
            noted: self.noted,
            compacted: self.compacted,
        };
        let start = out.len();
        let sum = write_line(out, front, body, self.sum);
        let bytes = (out.len() - start) as u64;
        let limit = MAX_WRITTEN as u64;
        if bytes > limit {
            let what = format!("the {kind} is too large to be recorded");
            return Err(Error::invalid(what).with_reason(Reason::TooLong { bytes, limit }));
        }
        Ok(Self {
            seq,
            sum,
            noted: if kind == "note" {
                Some(seq)
            } else {
                self.noted
            },
            compacted: match kind {
                "compaction" => Some(seq),
                _ => self.compacted,
            },
        })
    }
}

/// Writes one line, including its newline, and returns its sum.
///
/// `body` is the part between the numbers at the front and `prev`, beginning with a comma.
/// The caller chooses the seq, so that openers can repeat one.
pub(crate) fn write_line(out: &mut Vec<u8>, front: Front<'_>, body: &[u8], prev: Sum) -> Sum {
    let start = out.len();
    let mut digits = itoa::Buffer::new();
    out.reserve(body.len() + 160);
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(front.kind.as_bytes());
    if let Some(version) = front.version {
        out.extend_from_slice(b"\",\"version\":");
        out.extend_from_slice(digits.format(version).as_bytes());
        out.extend_from_slice(b",\"seq\":");
    } else {
        out.extend_from_slice(b"\",\"seq\":");
    }
    out.extend_from_slice(digits.format(front.seq).as_bytes());
    if let Some(noted) = front.noted {
        out.extend_from_slice(b",\"noted\":");
        out.extend_from_slice(digits.format(noted).as_bytes());
    }
    if let Some(compacted) = front.compacted {
        out.extend_from_slice(b",\"compacted\":");
        out.extend_from_slice(digits.format(compacted).as_bytes());
    }
    out.extend_from_slice(body);
    finish_line(out, start, prev)
}

/// The front of a line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Front<'a> {
    pub(crate) kind: &'a str,
    pub(crate) version: Option<u32>,
    pub(crate) seq: u64,
    pub(crate) noted: Option<u64>,
    pub(crate) compacted: Option<u64>,
}

/// Ends the line that begins at `start` with its `prev`, its sum and a newline.
pub(crate) fn finish_line(out: &mut Vec<u8>, start: usize, prev: Sum) -> Sum {
    out.extend_from_slice(PREV_KEY);
    out.extend_from_slice(&prev.to_hex());
    out.push(b'"');
    let sum = Sum::of(&out[start..]);
    out.extend_from_slice(SUM_KEY);
    out.extend_from_slice(&sum.to_hex());
    out.extend_from_slice(b"\"}\n");
    sum
}
