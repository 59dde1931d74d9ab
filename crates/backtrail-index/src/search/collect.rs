//! Collects the matching records and keeps the best.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use tantivy::columnar::{Column, ColumnValues};
use tantivy::query::Weight;
use tantivy::{DocId, SegmentReader};

use super::Order;
use super::document::{NUMBERS, ROLES};
use super::find::{AllowedTrails, SearchRequest};

/// Conditions for a record besides the words.
#[derive(Debug, Clone)]
pub(super) struct Conditions {
    /// The roles as bits; `None` for all.
    roles: Option<u64>,
    since: Option<i64>,
    until: Option<i64>,
    order: Order,
    pub(super) limit: usize,
}

impl Conditions {
    pub(super) fn new(SearchRequest { query, .. }: &SearchRequest) -> Self {
        let bit = |role: &String| {
            let found = ROLES
                .iter()
                .position(|name| name.eq_ignore_ascii_case(role));
            found.map_or(0, |at| 1_u64 << at)
        };
        let roles = query.roles.iter().map(bit).fold(0, |all, bit| all | bit);
        Self {
            roles: (!query.roles.is_empty()).then_some(roles),
            since: query.filter.since.map(|at| at.as_millis()),
            until: query.filter.until.map(|at| at.as_millis()),
            order: query.order,
            limit: query.limit,
        }
    }

    fn asks_for_time(&self) -> bool {
        self.since.is_some() || self.until.is_some()
    }

    fn fits_time(&self, at: Option<i64>) -> bool {
        let Some(at) = at else {
            return !self.asks_for_time();
        };
        self.since.is_none_or(|since| at >= since) && self.until.is_none_or(|until| at < until)
    }
}

/// A matching record. The greatest comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    /// What was said is the greatest. 0 if sorted by time.
    pub(super) tier: Reverse<u8>,
    /// In hundredths: smaller differences count as equal, and the newer record comes
    /// first. 0 if sorted by time.
    pub(super) score: u32,
    /// The smallest value if the time is unknown.
    pub(super) at: i64,
    /// The rank of the trail among the allowed ones, the first one the greatest.
    pub(super) rank: Reverse<u32>,
    pub(super) seq: u64,
    pub(super) byte: u64,
    pub(super) role: u8,
}

/// The result for one part of an index.
#[derive(Debug, Default)]
pub(super) struct Collected {
    pub(super) total: u64,
    pub(super) first: Vec<Candidate>,
}

/// Collects the records of a segment.
pub(super) fn collect(
    weight: &dyn Weight,
    segment: &SegmentReader,
    allowed: &AllowedTrails,
    conditions: &Conditions,
) -> tantivy::Result<Collected> {
    let mut top = Top::new(segment, allowed, conditions)?;
    match conditions.order {
        Order::Best => weight.for_each(segment, &mut |doc, score| top.take(doc, score))?,
        Order::Newest => weight.for_each_no_score(segment, &mut |docs| {
            for &doc in docs {
                top.take(doc, 0.0);
            }
        })?,
    }
    Ok(Collected {
        total: top.total,
        first: top.heap.into_iter().map(|Reverse(found)| found).collect(),
    })
}

/// The columns of a segment, and the best matching records.
struct Top<'a> {
    trails: Arc<dyn ColumnValues<u64>>,
    seqs: Column<u64>,
    bytes: Column<u64>,
    times: Column<i64>,
    roles: Column<u64>,
    tiers: Arc<dyn ColumnValues<u64>>,
    allowed: &'a AllowedTrails,
    conditions: &'a Conditions,
    total: u64,
    /// The worst kept candidate is on top.
    heap: BinaryHeap<Reverse<Candidate>>,
    /// Lower candidates are dropped.
    worst: (Reverse<u8>, u32),
}

impl<'a> Top<'a> {
    fn new(
        segment: &SegmentReader,
        allowed: &'a AllowedTrails,
        conditions: &'a Conditions,
    ) -> tantivy::Result<Self> {
        let numbers = segment.fast_fields();
        let [trail, seq, byte, at, role, tier] = NUMBERS;
        Ok(Self {
            trails: numbers.u64(trail)?.first_or_default_col(u64::MAX),
            seqs: numbers.u64(seq)?,
            bytes: numbers.u64(byte)?,
            times: numbers.i64(at)?,
            roles: numbers.u64(role)?,
            tiers: numbers.u64(tier)?.first_or_default_col(0),
            allowed,
            conditions,
            total: 0,
            heap: BinaryHeap::new(),
            worst: (Reverse(u8::MAX), 0),
        })
    }

    fn take(&mut self, doc: DocId, score: f32) {
        let Some(rank) = self.allowed.rank(self.trails.get_val(doc)) else {
            return;
        };
        if let Some(roles) = self.conditions.roles {
            let role = self.roles.first(doc).unwrap_or(63).min(63);
            if roles >> role & 1 == 0 {
                return;
            }
        }
        if self.conditions.asks_for_time() && !self.conditions.fits_time(self.times.first(doc)) {
            return;
        }
        self.total += 1;
        let score = (score * 100.0).round() as u32;
        let tier = match self.conditions.order {
            Order::Best => u8::try_from(self.tiers.get_val(doc)).unwrap_or(u8::MAX),
            Order::Newest => 0,
        };
        let place = (Reverse(tier), score);
        if place >= self.worst {
            self.keep(doc, place, rank);
        }
    }

    fn keep(&mut self, doc: DocId, (tier, score): (Reverse<u8>, u32), rank: u32) {
        let limit = self.conditions.limit;
        let at = self.times.first(doc).unwrap_or(i64::MIN);
        let is_full = self.heap.len() >= limit;
        if is_full
            && self.heap.peek().is_none_or(|Reverse(worst)| {
                (tier, score, at) < (worst.tier, worst.score, worst.at)
            })
        {
            return;
        }
        let candidate = Candidate {
            tier,
            score,
            at,
            rank: Reverse(rank),
            seq: self.seqs.first(doc).unwrap_or(0),
            byte: self.bytes.first(doc).unwrap_or(0),
            role: u8::try_from(self.roles.first(doc).unwrap_or(0)).unwrap_or(u8::MAX),
        };
        self.heap.push(Reverse(candidate));
        if self.heap.len() > limit {
            self.heap.pop();
        }
        if self.heap.len() >= limit
            && let Some(Reverse(worst)) = self.heap.peek()
        {
            self.worst = (worst.tier, worst.score);
        }
    }
}
