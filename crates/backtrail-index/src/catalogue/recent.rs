//! What was spent lately, by a few lookups in indexes, whatever the history.
//!
//! Totals are kept for each quarter of an hour, which is all that days and blocks of five hours
//! need: both begin at a full quarter in every time zone.

use rusqlite::{Params, Row};

use super::Catalogue;
use super::ledger::SLOT_MS;
use crate::error::Result;
use crate::rows::{Money, Spending};

/// The number of slots in an hour, and in a block.
const HOUR: i64 = 4;
const BLOCK: i64 = 5 * HOUR;
/// How far the beginning of a block is searched: months of work without a pause.
const MOST_STEPS: usize = 500;

/// The columns of a cost, in the order of [`read_cost`].
const COST: &str = "coalesce(sum(cost), 0), coalesce(sum(calls), 0), coalesce(sum(unpriced), 0),
    coalesce(sum(estimated_calls), 0), coalesce(sum(lower_bounds), 0)";

/// Spending by time. Without the index, which a catalogue of an earlier version gets with its
/// next commit, there is no answer instead of a slow one.
const BY_TIME: &str = "totals_by_time INDEXED BY spending_by_time";

const KEY: &str = "SELECT key FROM sessions WHERE id = ?1";

/// Returns the query for a session and its sub-agents.
fn of_session() -> String {
    format!(
        "SELECT {COST} FROM totals WHERE session IN (
             {KEY} UNION SELECT s.key FROM sessions AS p JOIN sessions AS s ON s.family = p.family
             WHERE p.id = ?1 AND s.spawned_by = ?1)"
    )
}

/// Returns the query for the slots from one to another.
fn of_time() -> String {
    format!("SELECT {COST} FROM {BY_TIME} WHERE slot >= ?1 AND slot < ?2")
}

/// A direction in time.
#[derive(Debug, Clone, Copy)]
enum Nearest {
    Before,
    From,
}

impl Nearest {
    fn sql(self) -> String {
        let (which, fits) = match self {
            Self::Before => ("max", "<"),
            Self::From => ("min", ">="),
        };
        format!("SELECT {which}(slot) FROM {BY_TIME} WHERE slot {fits} ?1")
    }
}

impl Catalogue {
    /// Returns the cost of a session and of the sub-agents that it started; `None` if the
    /// session is not known.
    pub(crate) fn cost_of_session(&self, id: &str) -> Result<Option<Spending>> {
        if self.first(KEY, [id], |row| row.get::<_, i64>(0))?.is_none() {
            return Ok(None);
        }
        self.cost(&of_session(), [id]).map(Some)
    }

    /// Returns the cost since a moment.
    pub(crate) fn cost_since(&self, since: i64) -> Result<Spending> {
        let since = since.div_euclid(SLOT_MS);
        self.cost(&of_time(), [since, i64::MAX])
    }

    /// Returns the block of five hours that a moment is in, if there were calls: its beginning
    /// and its cost.
    pub(crate) fn block_at(&self, now: i64) -> Result<Option<(i64, Spending)>> {
        let now = now.div_euclid(SLOT_MS);
        let Some(start) = self.last_block()? else {
            return Ok(None);
        };
        let end = start + BLOCK;
        if now >= end {
            return Ok(None);
        }
        let cost = self.cost(&of_time(), [start, end])?;
        Ok(Some((start * SLOT_MS, cost)))
    }

    /// Returns the beginning of the newest block, as a slot.
    fn last_block(&self) -> Result<Option<i64>> {
        let Some(newest) = self.slot(Nearest::Before, i64::MAX)? else {
            return Ok(None);
        };
        let Some(mut call) = self.surely_first(newest)? else {
            return Ok(None);
        };
        // Each block ends where the next call behind it begins another one.
        for _ in 0..MOST_STEPS {
            let start = full_hour(call);
            if newest < start + BLOCK {
                return Ok(Some(start));
            }
            match self.slot(Nearest::From, start + BLOCK)? {
                Some(next) => call = next,
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Returns the newest call, not after one, that begins a block wherever the blocks before it
    /// began: the pause before it is too long.
    fn surely_first(&self, newest: i64) -> Result<Option<i64>> {
        let mut call = newest;
        for _ in 0..MOST_STEPS {
            // Within four hours no pause is long enough.
            let within = self.slot(Nearest::From, call - 4 * HOUR + 1)?;
            let first = within.unwrap_or(call).min(call);
            match self.slot(Nearest::Before, first)? {
                Some(before) if first < full_hour(before) + BLOCK => call = before,
                _ => return Ok(Some(first)),
            }
        }
        Ok(None)
    }

    /// Returns the slot with calls that is nearest to one.
    fn slot(&self, nearest: Nearest, to: i64) -> Result<Option<i64>> {
        let sql = nearest.sql();
        Ok(self.first(&sql, [to], |row| row.get(0))?.flatten())
    }

    fn cost(&self, sql: &str, values: impl Params) -> Result<Spending> {
        Ok(self.first(sql, values, read_cost)?.unwrap_or_default())
    }
}

fn full_hour(slot: i64) -> i64 {
    slot - slot.rem_euclid(HOUR)
}

fn read_cost(row: &Row<'_>) -> rusqlite::Result<Spending> {
    let count = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
    Ok(Spending {
        cost: Money(row.get(0)?),
        calls: count(1)?,
        unpriced_calls: count(2)?,
        estimated_calls: count(3)?,
        lower_bound_calls: count(4)?,
        ..Spending::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::schema;

    #[test]
    fn no_lookup_scans_a_table() {
        let catalogue = Catalogue::empty_in_memory().unwrap();
        catalogue.run(schema::BY_TIME, []).unwrap();
        let lookups = [
            KEY.to_owned(),
            of_session(),
            of_time(),
            Nearest::Before.sql(),
            Nearest::From.sql(),
        ];
        for sql in lookups {
            let plan = catalogue.db.prepare(&format!("EXPLAIN QUERY PLAN {sql}"));
            let mut plan = plan.unwrap();
            let places = plan.parameter_count();
            let values = vec![1; places];
            let steps = plan.query_map(rusqlite::params_from_iter(values), |row| row.get(3));
            let steps: Vec<String> = steps.unwrap().collect::<rusqlite::Result<_>>().unwrap();
            let is_table = |step: &&String| step.contains("SEARCH") || step.contains("SCAN");
            let tables: Vec<&String> = steps.iter().filter(is_table).collect();
            assert!(!tables.is_empty(), "{sql}: {steps:?}");
            let is_lookup = |step: &&String| step.starts_with("SEARCH");
            assert!(tables.iter().all(is_lookup), "{sql}: {steps:?}");
        }
        // All of a sum is in the index.
        assert!(of_time().contains("spending_by_time"));
    }
}
