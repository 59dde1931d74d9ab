//! Looking for something: in what is on disk and in what is in memory, as if it were one.

use backtrail::{SessionId, Timestamp};

use super::Order;
use super::dir::{KnownTrail, SearchDir};
use super::memory::MemoryIndex;
use super::query::ParsedQuery;
use crate::error::Result;

/// All that is wanted.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) query: ParsedQuery,
    /// `user`, `assistant`, `tool`, `system`, `summary`, `run`; empty means all.
    pub(crate) roles: Vec<String>,
    /// Any of these tools, whole names, upper and lower case being the same.
    pub(crate) tools: Vec<String>,
    /// Any of these models, by any part of their names.
    pub(crate) models: Vec<String>,
    pub(crate) since: Option<Timestamp>,
    pub(crate) until: Option<Timestamp>,
    pub(crate) order: Order,
    pub(crate) limit: usize,
}

/// Which trails may answer.
#[derive(Debug, Clone)]
pub(crate) struct Allowed {}

impl Allowed {
    /// Makes the set of those known trails that fit.
    pub(crate) fn of(_known: &[KnownTrail], _fits: impl FnMut(&KnownTrail) -> bool) -> Self {
        Self {}
    }
}

/// Where to look.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source<'a> {
    /// On disk.
    Dir(&'a SearchDir, &'a Allowed),
    /// In memory.
    Memory(&'a MemoryIndex, &'a Allowed),
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Found {
    /// The first hits, as many as are wanted.
    pub(crate) hits: Vec<RawHit>,
    /// How many there are.
    pub(crate) total: u64,
}

impl Found {
    /// Adds what was found elsewhere with the same wishes.
    pub(crate) fn merge(&mut self, other: Self, _wanted: &Wanted) {
        self.total += other.total;
    }
}

/// A record that was found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RawHit {
    pub(crate) session: SessionId,
    pub(crate) number: u32,
    pub(crate) seq: u64,
    pub(crate) byte: u64,
    /// In milliseconds since 1970.
    pub(crate) at: Option<i64>,
    /// `user`, `assistant`, `tool`, `system`, `summary`, `run`, or `other`.
    pub(crate) role: &'static str,
    pub(crate) score: f32,
}

/// Looks for what is wanted in all sources, scored by what is common to them. The caller
/// sees to it that no record is in two of them.
///
/// `Err(Error::Search)` means that an index cannot be read: build it anew.
pub(crate) fn find(_wanted: &Wanted, _sources: &[Source<'_>]) -> Result<Found> {
    Ok(Found::default())
}
