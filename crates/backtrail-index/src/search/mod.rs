//! Full-text search over all messages, tool calls and runs.
//!
//! In the order of use:
//! - [`SearchIndex::open`] opens the index on disk: it is ready, missing, or not to be
//!   trusted. Reading needs no lock; [`SearchIndex::known`] returns its trails.
//! - [`SearchWriter::resume`] adds to an opened index, [`SearchWriter::rebuild`] builds a
//!   new one beside it. Both are a `Sink`, and the caller holds the lock. Nothing is
//!   visible before [`SearchWriter::commit`], which may be called repeatedly.
//! - [`SearchWriter::in_memory`] builds one for this process only, of records that are
//!   not on disk yet.
//! - [`SearchRequest::new`] parses a query, and [`find`] searches one or more indexes, on
//!   disk or in memory, each with the trails that may match.
//! - [`snippet_of_record`] for each hit that is shown.

mod collect;
mod commit;
mod compile;
mod dir;
mod document;
mod files;
mod find;
mod fold;
mod query;
mod record_text;
mod segments;
mod snippet;
mod statistics;
mod terms;
mod tokens;
mod touched;
mod trail_table;
mod word_pair;
mod writer;

pub(crate) use dir::{IndexedTrail, Opened, SearchIndex};
pub(crate) use document::tier;
pub(crate) use find::{AllowedTrails, FoundRecords, RawHit, SearchRequest, find};
pub(crate) use snippet::snippet_of_record;
pub(crate) use terms::{respelled, sessions_that_touched};
pub(crate) use touched::FilePattern;
pub(crate) use writer::SearchWriter;

use std::collections::HashSet;
use std::ops::Range;

use backtrail::{SessionId, Timestamp};
use serde::Serialize;

use crate::filter::Filter;

/// A search.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SearchQuery {
    /// Words, "phrases", prefixes with `*`, `and`, `or`, `not` and parentheses, and `file:`
    /// filters: see [`Index::search`](crate::Index::search).
    pub words: String,
    /// Which sessions, and when.
    pub filter: Filter,
    /// Only these sessions of those; `None` for all of them.
    pub sessions: Option<HashSet<SessionId>>,
    /// Only messages of these roles: `user`, `assistant`, `tool`, `system`.
    pub roles: Vec<String>,
    /// Only calls of these tools, and their results.
    pub tools: Vec<String>,
    /// The order of the hits.
    pub order: Order,
    /// The most hits to return.
    pub limit: usize,
}

impl SearchQuery {
    /// Searches everywhere, returning the best twenty hits.
    pub fn new(words: impl Into<String>) -> Self {
        Self {
            words: words.into(),
            filter: Filter::default(),
            sessions: None,
            roles: Vec::new(),
            tools: Vec::new(),
            order: Order::Best,
            limit: 20,
        }
    }
}

/// The order of hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Order {
    /// Best match first.
    #[default]
    Best,
    /// Newest first.
    Newest,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct SearchAnswer {
    /// The hits, up to the limit.
    pub hits: Vec<Hit>,
    /// The total number of matching messages.
    pub total: u64,
}

/// A message that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Hit {
    /// The session of the message.
    pub session: SessionId,
    /// The trail of the record.
    pub trail: u32,
    /// The seq of the record.
    pub seq: u64,
    /// The id of the record.
    pub id: Option<String>,
    /// The time of the message.
    pub at: Option<Timestamp>,
    /// The role of the message.
    pub role: String,
    /// The tools that it calls or has results of.
    pub tools: Vec<String>,
    /// How well it matches.
    pub score: f32,
    /// The text around the matching words.
    pub snippet: Snippet,
    /// The number of its turn on the session's line, from 1; `None` if it was undone or
    /// comes before the first prompt.
    pub turn: Option<u64>,
    /// Whether a rewind or an undo removed it from the conversation.
    pub undone: bool,
    /// Whether it was said, or done by a tool.
    pub kind: HitKind,
}

/// What kind of record was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HitKind {
    /// People or models said it.
    Said,
    /// A call of a tool, its output, or a run.
    Tool,
    /// The agent inserted it: a reminder, a skill, instructions.
    Injected,
}

/// A part of a message around the matching words.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Snippet {
    /// The text with its line breaks, and with an ellipsis where it was cut. Common indentation
    /// and blank lines are removed; it is unchanged otherwise: callers must escape it before
    /// printing.
    pub text: String,
    /// The ranges of the matching words in the text, in bytes.
    pub marks: Vec<Range<usize>>,
}

#[cfg(test)]
mod search_tests;
#[cfg(test)]
mod speed_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod trust_tests;
