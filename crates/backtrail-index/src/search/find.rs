//! Looking for something: in what is on disk and in what is in memory, as if it were one.

use std::cmp::{Ordering, Reverse};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering as Memory};
use std::thread;

use backtrail::{SessionId, Timestamp};
use tantivy::Searcher;
use tantivy::query::{EnableScoring, Query, Weight};

use super::Order;
use super::collect::{Candidate, Collected, Conditions, collect};
use super::compile::{compile, unreadable};
use super::dir::{KnownTrail, SearchDir, guarded};
use super::document::ROLES;
use super::memory::MemoryIndex;
use super::query::ParsedQuery;
use super::statistics::{Counted, Statistics};
use crate::error::{Error, Result};

/// All that is wanted.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) query: ParsedQuery,
    /// `user`, `assistant`, `tool`, `system`, `summary`, `run`, `other`; empty means all.
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
pub(crate) struct Allowed {
    /// For each number of a trail in the index, its place among the known ones, or
    /// `NOT` where it may not answer.
    ranks: Vec<u32>,
}

/// The place of a trail that may not answer.
const NOT: u32 = u32::MAX;

impl Allowed {
    /// Makes the set of those known trails that fit. Give all that are known to the
    /// index, in their order.
    pub(crate) fn of(known: &[KnownTrail], mut fits: impl FnMut(&KnownTrail) -> bool) -> Self {
        let most = known.iter().map(|trail| trail.ordinal as usize + 1).max();
        let mut ranks = vec![NOT; most.unwrap_or(0)];
        for (rank, trail) in known.iter().enumerate() {
            if fits(trail) {
                ranks[trail.ordinal as usize] = rank as u32;
            }
        }
        Self { ranks }
    }

    /// Returns the place of a trail that may answer.
    pub(super) fn rank(&self, ordinal: u64) -> Option<u32> {
        let rank = *self.ranks.get(usize::try_from(ordinal).ok()?)?;
        (rank != NOT).then_some(rank)
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

impl<'a> Source<'a> {
    fn parts(self) -> (&'a Searcher, &'a [KnownTrail], &'a Allowed) {
        match self {
            Self::Dir(dir, allowed) => (&dir.searcher, dir.known(), allowed),
            Self::Memory(memory, allowed) => (&memory.searcher, memory.known(), allowed),
        }
    }
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
    pub(crate) fn merge(&mut self, other: Self, wanted: &Wanted) {
        self.total += other.total;
        self.hits.extend(other.hits);
        self.hits.sort_unstable_by(RawHit::compare);
        self.hits.truncate(wanted.limit);
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
    /// 0 where the newest are wanted.
    pub(crate) score: f32,
}

impl RawHit {
    fn new(found: &Candidate, known: &[KnownTrail]) -> Option<Self> {
        let trail = known.get(found.rank.0 as usize)?;
        Some(Self {
            session: trail.session.clone(),
            number: trail.number,
            seq: found.seq,
            byte: found.byte,
            at: (found.at != i64::MIN).then_some(found.at),
            role: ROLES.get(usize::from(found.role)).unwrap_or(&"other"),
            score: found.score as f32 / 100.0,
        })
    }

    /// The better one comes first; of equals the newer one, then by session and trail,
    /// then the later record. No two are equal, so the order is always the same.
    fn compare(&self, other: &Self) -> Ordering {
        let better = other.score.total_cmp(&self.score);
        let newer = other.at.cmp(&self.at);
        let key = |hit: &Self| (hit.number, Reverse(hit.seq));
        let place = self.session.cmp(&other.session);
        better
            .then(newer)
            .then(place)
            .then_with(|| key(self).cmp(&key(other)))
    }
}

/// Looks for what is wanted in all sources, scored by what is common to them. The caller
/// sees to it that no record is in two of them.
///
/// `Err(Error::Search)` means that an index cannot be read: build it anew.
pub(crate) fn find(wanted: &Wanted, sources: &[Source<'_>]) -> Result<Found> {
    let counted = sources.iter().map(|source| {
        let (searcher, known, _) = source.parts();
        Counted::new(searcher, known)
    });
    let statistics = Statistics::new(counted.collect());
    let conditions = Conditions::new(wanted);
    let mut found = Found::default();
    for source in sources {
        let (searcher, known, allowed) = source.parts();
        let Some(query) = compile(wanted, searcher)? else {
            continue;
        };
        let part = search(&*query, searcher, &statistics, allowed, &conditions)?;
        let hits = part.first.iter().filter_map(|hit| RawHit::new(hit, known));
        let part = Found {
            hits: hits.collect(),
            total: part.total,
        };
        found.merge(part, wanted);
    }
    Ok(found)
}

/// Searches one index; panics of tantivy's are errors.
fn search(
    query: &dyn Query,
    searcher: &Searcher,
    statistics: &Statistics<'_>,
    allowed: &Allowed,
    conditions: &Conditions,
) -> Result<Collected> {
    let searched = guarded(|| {
        let weight = query.weight(EnableScoring::enabled_from_statistics_provider(
            statistics, searcher,
        ))?;
        collect_all(&*weight, searcher, allowed, conditions)
    });
    searched.map_err(|what| unreadable(tantivy::TantivyError::InternalError(what)))
}

/// Goes through all segments, on as many cores as help.
fn collect_all(
    weight: &dyn Weight,
    searcher: &Searcher,
    allowed: &Allowed,
    conditions: &Conditions,
) -> tantivy::Result<Collected> {
    let segments = searcher.segment_readers();
    let next = AtomicUsize::new(0);
    let all = Mutex::new(Collected::default());
    let work = || -> tantivy::Result<()> {
        while let Some(segment) = segments.get(next.fetch_add(1, Memory::Relaxed)) {
            let part = collect(weight, segment, allowed, conditions)?;
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            all.total += part.total;
            all.first.extend(part.first);
        }
        Ok(())
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let is_large = searcher.num_docs() > 50_000;
    let others = if is_large {
        segments.len().min(cores).min(4)
    } else {
        1
    } - 1;
    thread::scope(|scope| {
        let others: Vec<_> = (0..others).map(|_| scope.spawn(work)).collect();
        let mut done = work();
        for other in others {
            match other.join() {
                Ok(result) => done = done.and(result),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    })?;
    let mut all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    all.first.sort_unstable_by(|a, b| b.cmp(a));
    all.first.truncate(conditions.limit);
    Ok(all)
}

/// Tells that what was asked is wrong, for whoever checks it before asking.
pub(crate) fn check_roles(roles: &[String]) -> Result<()> {
    for role in roles {
        if !ROLES.iter().any(|name| name.eq_ignore_ascii_case(role)) {
            let known = ROLES.join(", ");
            return Err(Error::Query(format!("there is no role `{role}`: {known}")));
        }
    }
    Ok(())
}
