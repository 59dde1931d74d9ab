//! What the model calls of a session used and cost, each of them once.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::message::Usage;
use crate::trail::Details;
use crate::trail::sum::Sum;

/// How many responses stay open for more records of theirs.
const OPEN: usize = 1_024;

/// What model calls used, took and cost.
///
/// A provider's response is often recorded in several records, each of which
/// repeats its usage, or the usage so far: so the last one of a response counts,
/// and counts once. A response stays open until 1,024 newer ones came. What is
/// known of it is then added up, only a hash of its id is kept, and further
/// records of it count for nothing.
#[derive(Debug, Default)]
pub(crate) struct Spending {
    open: HashMap<Sum, Spent>,
    /// The ids in `open`, oldest first.
    order: VecDeque<Sum>,
    closed: HashSet<Sum>,
    total: Total,
}

/// What one record says that its model call used, took and cost.
#[derive(Debug, Default)]
pub(crate) struct Spent {
    pub(crate) usage: Option<Usage>,
    /// What to count where no record of the response has a usage.
    pub(crate) estimated_tokens: u64,
    pub(crate) duration_ms: Option<u64>,
    pub(crate) cost_usd: Option<f64>,
}

/// All calls together.
#[derive(Debug, Default)]
pub(crate) struct Total {
    pub(crate) usage: Usage,
    pub(crate) estimated_tokens: u64,
    pub(crate) duration_ms: u64,
    pub(crate) cost_usd: Option<f64>,
    pub(crate) responses: u64,
    pub(crate) without_cost: u64,
}

impl Spent {
    /// Makes what a record says; `usage` stands elsewhere in messages and in
    /// compactions.
    pub(crate) fn new(usage: Option<&Usage>, estimated_tokens: u64, details: &Details) -> Self {
        Self {
            // A sum of one: without the fields that are not ours.
            usage: usage.map(|usage| {
                let mut counters = Usage::default();
                counters.add(usage);
                counters
            }),
            estimated_tokens,
            duration_ms: details.duration_ms,
            cost_usd: details.cost_usd,
        }
    }

    /// Takes in what a later record of the same response says.
    fn update(&mut self, later: Self) {
        self.usage = later.usage.or(self.usage.take());
        self.duration_ms = later.duration_ms.or(self.duration_ms);
        self.cost_usd = later.cost_usd.or(self.cost_usd);
        self.estimated_tokens = self.estimated_tokens.saturating_add(later.estimated_tokens);
    }
}

impl Spending {
    /// Returns whether no record of this response came yet.
    pub(crate) fn is_new(&self, response_id: Option<&str>) -> bool {
        let Some(id) = response_id.map(key) else {
            return true;
        };
        !self.open.contains_key(&id) && !self.closed.contains(&id)
    }

    /// Adds what a record says. One without a response id is a response by itself.
    pub(crate) fn add(&mut self, response_id: Option<&str>, spent: Spent) {
        let Some(id) = response_id.map(key) else {
            return self.total.add(&spent);
        };
        if let Some(open) = self.open.get_mut(&id) {
            return open.update(spent);
        }
        if self.closed.contains(&id) {
            return;
        }
        self.open.insert(id, spent);
        self.order.push_back(id);
        if self.order.len() > OPEN {
            self.close_oldest();
        }
    }

    /// Adds time that something else than a model call took.
    pub(crate) fn add_duration(&mut self, duration_ms: Option<u64>) {
        self.total.add_duration(duration_ms);
    }

    /// Returns all that was spent.
    pub(crate) fn finish(mut self) -> Total {
        while !self.order.is_empty() {
            self.close_oldest();
        }
        self.total
    }

    fn close_oldest(&mut self) {
        if let Some(id) = self.order.pop_front()
            && let Some(spent) = self.open.remove(&id)
        {
            self.total.add(&spent);
            self.closed.insert(id);
        }
    }
}

/// Eight bytes stand for an id: among a million of them, the chance that any two
/// are taken for one is one in thirty million.
fn key(response_id: &str) -> Sum {
    Sum::of(response_id.as_bytes())
}

impl Total {
    fn add(&mut self, spent: &Spent) {
        self.responses += 1;
        match &spent.usage {
            Some(usage) => self.usage.add(usage),
            None => {
                self.estimated_tokens =
                    self.estimated_tokens.saturating_add(spent.estimated_tokens);
            }
        }
        match spent.cost_usd {
            // Still a number where somebody recorded the largest there is, twice.
            Some(cost) => {
                self.cost_usd = Some((self.cost_usd.unwrap_or(0.0) + cost).min(f64::MAX));
            }
            None => self.without_cost += 1,
        }
        self.add_duration(spent.duration_ms);
    }

    fn add_duration(&mut self, duration_ms: Option<u64>) {
        self.duration_ms = self.duration_ms.saturating_add(duration_ms.unwrap_or(0));
    }
}
