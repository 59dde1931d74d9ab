//! Compactions, before and after they are recorded.

use serde::{Deserialize, Serialize};

use super::draft::{self, Details};
use super::usage::Usage;
use crate::error::{Error, Reason, Result};
use crate::json::{Fields, Text, write_fields};
use crate::time::Timestamp;

/// A summary that replaces earlier messages in the context.
///
/// The messages stay in the history; only the context begins with the summary from then
/// on.
///
/// ```
/// let compaction = backtrail::Compaction::new("They fixed the rounding.").keep(4);
/// # let _ = compaction;
/// ```
#[derive(Debug, Clone)]
pub struct Compaction {
    summary: String,
    keep: u64,
    expect: Option<u64>,
    usage: Option<Usage>,
    details: Details,
    /// The time and the id, if another program made the compaction.
    made: (Option<Timestamp>, Option<String>),
    covers: u64,
}

impl Compaction {
    /// Creates a compaction that keeps no messages besides the summary.
    pub fn new(summary: impl Into<String>) -> Self {
        Self {
            summary: summary.into(),
            keep: 0,
            expect: None,
            usage: None,
            details: Details::default(),
            made: (None, None),
            covers: 0,
        }
    }

    /// Adds messages that it covers but that are not in the session, because another
    /// program removed them.
    #[must_use]
    pub fn covers(mut self, messages: u64) -> Self {
        self.covers = messages;
        self
    }

    /// Sets the time it was made. The default is the time it is recorded.
    #[must_use]
    pub fn at(mut self, at: Timestamp) -> Self {
        self.made.0 = Some(at);
        self
    }

    /// Sets the record's id. The default is a new id.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.made.1 = Some(id.into());
        self
    }

    /// Sets how many of the last messages stay in the context. More stay if a tool call
    /// would lose its result otherwise.
    #[must_use]
    pub fn keep(mut self, messages: u64) -> Self {
        self.keep = messages;
        self
    }

    /// Sets the seq that the caller expects to be last; see
    /// [`Draft::expect`](super::Draft::expect).
    #[must_use]
    pub fn expect(mut self, seq: u64) -> Self {
        self.expect = Some(seq);
        self
    }

    /// Sets the usage of the model call that made the summary.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// Sets the model that made the summary.
    #[must_use]
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.details.model = Some(model.into());
        self
    }

    /// Parses a compaction from one JSON object:
    /// `{"type":"compaction","summary":"…","keep":4}`. It may also have `expect`,
    /// `usage`, `model`, `response_id`, `duration_ms` and `cost_usd`.
    ///
    /// # Errors
    ///
    /// Fails with [`Invalid`](crate::ErrorKind::Invalid), and a [`Reason`] if a field is
    /// missing or wrong.
    pub fn from_json(line: &str) -> Result<Self> {
        let read = draft::read_object(line).and_then(read_compaction);
        read.map_err(|reason| Error::invalid("this line cannot be recorded").with_reason(reason))
    }

    /// Returns the seq that the caller expects to be last, if set.
    pub fn expected(&self) -> Option<u64> {
        self.expect
    }

    pub(crate) fn kept(&self) -> u64 {
        self.keep
    }

    /// Rejects summaries that no model could use.
    pub(crate) fn check(&self) -> Result<()> {
        if self.summary.trim().is_empty() {
            let must = "a text that is not blank";
            return Err(Error::invalid("this compaction cannot be recorded")
                .with_reason(Reason::WrongField("summary", must)));
        }
        let what = "this compaction cannot be recorded";
        draft::check_name("id", self.made.1.as_deref(), what)?;
        self.details.check(what)
    }

    /// Encodes the fields between the record's numbers and its `prev`.
    pub(crate) fn encode(
        &self,
        at: Timestamp,
        id: uuid::Uuid,
        covered: &Covered,
    ) -> Result<Vec<u8>> {
        #[derive(Serialize)]
        struct CompactionBody<'a> {
            at: Timestamp,
            id: String,
            #[serde(flatten)]
            covered: &'a Covered,
            #[serde(flatten)]
            details: &'a Details,
            #[serde(skip_serializing_if = "Option::is_none")]
            usage: Option<&'a Usage>,
            summary: &'a str,
        }
        let mut out = Vec::with_capacity(512 + self.summary.len());
        let (made_at, made_id) = &self.made;
        let covered = Covered {
            removed_message_count: covered.removed_message_count.saturating_add(self.covers),
            ..*covered
        };
        let body = CompactionBody {
            at: made_at.unwrap_or(at),
            id: made_id.clone().unwrap_or_else(|| id.to_string()),
            covered: &covered,
            details: &self.details,
            usage: self.usage.as_ref(),
            summary: &self.summary,
        };
        write_fields(&mut out, &body)
            .map_err(|error| Error::json("this compaction cannot be recorded", &error))?;
        Ok(out)
    }
}

fn read_compaction(mut fields: Fields) -> Result<Compaction, Reason> {
    if let Some(name) = fields.duplicate() {
        return Err(Reason::RepeatedField(name.to_owned()));
    }
    match draft::take::<String>(&mut fields, "type", "a string")? {
        Some(kind) if kind == "compaction" => {}
        Some(kind) => return Err(Reason::UnsupportedType(kind)),
        None => return Err(Reason::MissingType),
    }
    let summary =
        draft::take(&mut fields, "summary", "a string")?.ok_or(Reason::MissingField("summary"))?;
    let compaction = Compaction {
        summary,
        keep: draft::take(&mut fields, "keep", "a whole number")?.unwrap_or(0),
        expect: draft::take(&mut fields, "expect", "the number of a record")?,
        usage: draft::take(&mut fields, "usage", "an object")?,
        details: Details::take(&mut fields)?,
        made: (None, None),
        covers: 0,
    };
    match fields.iter().next() {
        Some((name, _)) => Err(Reason::UnexpectedField(name.to_owned())),
        None => Ok(compaction),
    }
}

/// What a compaction covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Covered {
    pub(crate) count: u64,
    pub(crate) removed_message_count: u64,
    /// The first record that stays in the context, or the compaction itself if none does.
    pub(crate) keeps_from: u64,
}

/// A recorded compaction; see [`RecordRef::compaction`](crate::RecordRef::compaction).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StoredCompaction {
    /// Its number among the session's compactions, from 1.
    #[serde(default)]
    pub count: u64,
    /// How many messages it covers that no earlier compaction did.
    #[serde(default)]
    pub removed_message_count: u64,
    /// The first record that stays in the context. `None` in version 1, where the covered
    /// messages are not in the file: everything there stays.
    #[serde(default)]
    pub keeps_from: Option<u64>,
    /// The summary.
    pub summary: Text,
}

/// A summary that replaces the messages before it, in a [`Transcript`](crate::Transcript).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompactionSummary {
    /// How many compactions there have been, this one included.
    pub count: u64,
    /// How many messages this one removed from the context.
    pub removed_message_count: u64,
    /// The summary.
    pub summary: Text,
    /// How many messages of the transcript the summary replaces, counted from the
    /// first. Those that a version-1 compaction removed are not among them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub covered: usize,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}
