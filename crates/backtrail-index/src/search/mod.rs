//! Full-text search over all that was said and done.
//!
//! For the glue, in the order of use:
//! - [`SearchDir::open`] looks at what is on disk: it is there, it is missing, or it is
//!   not to be trusted. Reading needs no lock; [`SearchDir::known`] tells what is in it.
//! - [`SearchWriter::go_on`] adds to what was opened, [`SearchWriter::anew`] builds all
//!   from nothing beside it. Both are a `Sink`; whoever has one holds the lock. Nothing
//!   is seen by anybody before [`SearchWriter::commit`], which may be called repeatedly.
//! - [`MemoryWriter`] is a `Sink` too; [`MemoryWriter::finish`] makes what it took in
//!   searchable, in memory and for this process alone.
//! - [`ParsedQuery::parse`] and [`check_roles`], then [`find`] over one or more [`Source`]s: what is on disk,
//!   what is in memory, each with the trails that may answer.
//! - [`snippet`] and [`snippet_of_record`] for each hit that is shown.

mod book;
mod collect;
mod commit;
mod compile;
mod dir;
mod document;
mod files;
mod find;
mod fold;
mod memory;
mod pair;
mod pieces;
mod query;
mod segments;
mod snippet;
mod statistics;
mod tokens;
mod writer;

pub(crate) use dir::{KnownTrail, Opened, SearchDir};
pub(crate) use find::{Allowed, Found, RawHit, Source, Wanted, check_roles, find};
pub(crate) use memory::{MemoryIndex, MemoryWriter};
pub(crate) use query::ParsedQuery;
pub(crate) use snippet::snippet_of_record;
pub(crate) use writer::SearchWriter;

use std::ops::Range;

use backtrail::{SessionId, Timestamp};

use crate::filter::Filter;

/// What is looked for.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SearchQuery {
    /// Words, phrases in quotes, prefixes with `*`, `and`, `or`, `not`, parentheses.
    pub words: String,
    /// In which sessions, and when.
    pub filter: Filter,
    /// Only what these said: `user`, `assistant`, `tool`, `system`.
    pub roles: Vec<String>,
    /// Only calls of these tools, and their results.
    pub tools: Vec<String>,
    /// What comes first.
    pub order: Order,
    /// How many hits are wanted.
    pub limit: usize,
}

impl SearchQuery {
    /// Looks for words everywhere; the best twenty hits first.
    pub fn new(words: impl Into<String>) -> Self {
        Self {
            words: words.into(),
            filter: Filter::default(),
            roles: Vec::new(),
            tools: Vec::new(),
            order: Order::Best,
            limit: 20,
        }
    }
}

/// What comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// What fits best.
    #[default]
    Best,
    /// What is newest.
    Newest,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct SearchAnswer {
    /// The hits, as many as were wanted.
    pub hits: Vec<Hit>,
    /// How many messages fit in all.
    pub total: u64,
}

/// A message that was found.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Hit {
    /// The session that it was said in.
    pub session: SessionId,
    /// The trail that it stands in.
    pub trail: u32,
    /// Its number.
    pub seq: u64,
    /// Its id.
    pub id: Option<String>,
    /// When it was said.
    pub at: Option<Timestamp>,
    /// Who said it.
    pub role: String,
    /// The tools that it calls or whose results it has.
    pub tools: Vec<String>,
    /// How well it fits.
    pub score: f32,
    /// Where the words are in it.
    pub snippet: Snippet,
    /// The number of its turn on the session's line, from 1; `None` where it was taken
    /// back, or stands before the first prompt.
    pub turn: Option<u64>,
}

impl Hit {
    /// Makes a hit of which only the place is known.
    pub fn new(session: SessionId, trail: u32, seq: u64) -> Self {
        Self {
            session,
            trail,
            seq,
            id: None,
            at: None,
            role: String::new(),
            tools: Vec::new(),
            score: 0.0,
            snippet: Snippet::default(),
            turn: None,
        }
    }
}

/// A piece of a message around the words that were looked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Snippet {
    /// The text, with an ellipsis where it was cut. It is as it was said: whoever prints
    /// it makes it safe.
    pub text: String,
    /// Where the words are in the text, in bytes.
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
