//! Searches the index on disk and those in memory as if they were one.

use std::cmp::{Ordering, Reverse};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering as Memory};
use std::thread;

use backtrail::SessionId;
use tantivy::Searcher;
use tantivy::query::{EnableScoring, Query, Weight};

use super::SearchQuery;
use super::collect::{Candidate, Collected, Conditions, collect};
use super::compile::{compile, unreadable};
use super::dir::{IndexedTrail, SearchIndex, guarded};
use super::document::ROLES;
use super::query::ParsedQuery;
use super::statistics::{Counted, Statistics};
use crate::error::{Error, Result};

/// A search request.
#[derive(Debug, Clone)]
pub(crate) struct SearchRequest {
    pub(crate) words: ParsedQuery,
    pub(crate) query: SearchQuery,
}

impl SearchRequest {
    /// Parses a query; an invalid one is an `Error::Query`.
    pub(crate) fn new(query: &SearchQuery) -> Result<Self> {
        for role in &query.roles {
            if !ROLES.iter().any(|name| name.eq_ignore_ascii_case(role)) {
                let known = ROLES.join(", ");
                return Err(Error::Query(format!("unknown role `{role}`: {known}")));
            }
        }
        Ok(Self {
            words: ParsedQuery::parse(&query.words)?,
            query: query.clone(),
        })
    }
}

/// The trails whose records may match.
#[derive(Debug, Clone)]
pub(crate) struct AllowedTrails {
    /// For each trail number in the index, its rank among the known trails, or `NOT` if
    /// it is excluded.
    ranks: Vec<u32>,
}

/// The rank of an excluded trail.
const NOT: u32 = u32::MAX;

impl AllowedTrails {
    /// Creates the set of known trails that satisfy `fits`. `known` must be all trails of
    /// the index, in order.
    pub(crate) fn of(known: &[IndexedTrail], mut fits: impl FnMut(&IndexedTrail) -> bool) -> Self {
        let most = known.iter().map(|trail| trail.ordinal as usize + 1).max();
        let mut ranks = vec![NOT; most.unwrap_or(0)];
        for (rank, trail) in known.iter().enumerate() {
            if fits(trail) {
                ranks[trail.ordinal as usize] = rank as u32;
            }
        }
        Self { ranks }
    }

    /// Returns the rank of an allowed trail.
    pub(super) fn rank(&self, ordinal: u64) -> Option<u32> {
        let rank = *self.ranks.get(usize::try_from(ordinal).ok()?)?;
        (rank != NOT).then_some(rank)
    }
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct FoundRecords {
    /// The first hits, up to the limit.
    pub(crate) hits: Vec<RawHit>,
    /// The total number of hits.
    pub(crate) total: u64,
}

impl FoundRecords {
    /// Adds the result of the same request to another index.
    pub(crate) fn merge(&mut self, other: Self, wanted: &SearchRequest) {
        self.total += other.total;
        self.hits.extend(other.hits);
        self.hits.sort_unstable_by(RawHit::compare);
        self.hits.truncate(wanted.query.limit);
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
    /// 0 for what people and models said, 1 for calls and output of tools, 2 for what the agent
    /// inserted; 0 if sorted by time.
    pub(crate) tier: u8,
    /// 0 if sorted by time.
    pub(crate) score: f32,
}

impl RawHit {
    fn new(found: &Candidate, known: &[IndexedTrail]) -> Option<Self> {
        let trail = known.get(found.rank.0 as usize)?;
        Some(Self {
            session: trail.session.clone(),
            number: trail.known.seen.number,
            seq: found.seq,
            byte: found.byte,
            at: (found.at != i64::MIN).then_some(found.at),
            role: ROLES.get(usize::from(found.role)).unwrap_or(&"other"),
            tier: found.tier.0,
            score: found.score as f32 / 100.0,
        })
    }

    /// What was said comes first, then better hits, then newer ones, then by session and trail, then later
    /// records. No two are equal, so the order is always the same.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        let said = self.tier.cmp(&other.tier);
        let better = other.score.total_cmp(&self.score);
        let newer = other.at.cmp(&self.at);
        let key = |hit: &Self| (hit.number, Reverse(hit.seq));
        let place = self.session.cmp(&other.session);
        said.then(better)
            .then(newer)
            .then(place)
            .then_with(|| key(self).cmp(&key(other)))
    }
}

/// Searches several indexes, with scores computed over all of them. The caller ensures
/// that no record is in two of them.
///
/// `Err(Error::Search)` means that an index is unreadable and must be rebuilt.
pub(crate) fn find(
    wanted: &SearchRequest,
    indexes: &[(&SearchIndex, &AllowedTrails)],
) -> Result<FoundRecords> {
    let counted = indexes.iter();
    let counted = counted.map(|(index, _)| Counted::new(&index.searcher, index.known()));
    let statistics = Statistics::new(counted.collect());
    let conditions = Conditions::new(wanted);
    let mut found = FoundRecords::default();
    for (index, allowed) in indexes {
        let searcher = &index.searcher;
        let Some(query) = compile(wanted, searcher)? else {
            continue;
        };
        let part = search(&*query, searcher, &statistics, allowed, &conditions)?;
        let hits = part.first.iter();
        let hits = hits.filter_map(|hit| RawHit::new(hit, index.known()));
        let part = FoundRecords {
            hits: hits.collect(),
            total: part.total,
        };
        found.merge(part, wanted);
    }
    Ok(found)
}

/// Searches one index; tantivy's panics become errors.
fn search(
    query: &dyn Query,
    searcher: &Searcher,
    statistics: &Statistics<'_>,
    allowed: &AllowedTrails,
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

/// Searches all segments, on as many cores as help.
fn collect_all(
    weight: &dyn Weight,
    searcher: &Searcher,
    allowed: &AllowedTrails,
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
