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

impl Catalogue {
    /// Returns the cost of a session and of the sub-agents that it started; `None` if the
    /// session is not known.
    pub(crate) fn cost_of_session(&self, id: &str) -> Result<Option<Spending>> {
        let sql = "SELECT key FROM sessions WHERE id = ?1";
        if self.first(sql, [id], |row| row.get::<_, i64>(0))?.is_none() {
            return Ok(None);
        }
        let sql = format!(
            "SELECT {COST} FROM totals WHERE session IN (
                 SELECT key FROM sessions WHERE id = ?1
                 UNION SELECT s.key FROM sessions AS p JOIN sessions AS s ON s.family = p.family
                 WHERE p.id = ?1 AND s.spawned_by = ?1)"
        );
        self.cost(&sql, [id]).map(Some)
    }

    /// Returns the cost since a moment.
    pub(crate) fn cost_since(&self, since: i64) -> Result<Spending> {
        let sql = format!("SELECT {COST} FROM {BY_TIME} WHERE slot >= ?1");
        self.cost(&sql, [since.div_euclid(SLOT_MS)])
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
        let sql = format!("SELECT {COST} FROM {BY_TIME} WHERE slot >= ?1 AND slot < ?2");
        let cost = self.cost(&sql, [start, end])?;
        Ok(Some((start * SLOT_MS, cost)))
    }

    /// Returns the beginning of the newest block, as a slot.
    fn last_block(&self) -> Result<Option<i64>> {
        let Some(newest) = self.slot("max(slot)", "slot <= ?1", i64::MAX)? else {
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
            match self.slot("min(slot)", "slot >= ?1", start + BLOCK)? {
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
            let within = self.slot("min(slot)", "slot > ?1", call - 4 * HOUR)?;
            let first = within.unwrap_or(call).min(call);
            match self.slot("max(slot)", "slot < ?1", first)? {
                Some(before) if first < full_hour(before) + BLOCK => call = before,
                _ => return Ok(Some(first)),
            }
        }
        Ok(None)
    }

    fn slot(&self, what: &str, fits: &str, than: i64) -> Result<Option<i64>> {
        let sql = format!("SELECT {what} FROM {BY_TIME} WHERE {fits}");
        Ok(self.first(&sql, [than], |row| row.get(0))?.flatten())
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
