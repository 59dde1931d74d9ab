//! What each turn of a session cost.

use std::collections::BTreeMap;

use backtrail::SessionId;
use rusqlite::types::Value;
use rusqlite::{params, params_from_iter};

use super::Catalogue;
use super::ledger::{SUMS, read_sum};
use super::query::{Where, anywhere};
use super::spending::CALLS;
use crate::error::Result;
use crate::filter::Filter;
use crate::rows::{Spending, TurnRow};

/// A record by its trail and its seq.
type Place = (u32, u64);

impl Catalogue {
    /// Returns the turns of a session with calls that match the times and models of a filter, in
    /// order. A call before the first prompt is of no turn.
    pub(crate) fn turns(&self, session: &SessionId, filter: &Filter) -> Result<Vec<TurnRow>> {
        let key = self.first(
            "SELECT key FROM sessions WHERE id = ?1",
            params![session.as_str()],
            |row| row.get::<_, i64>(0),
        )?;
        let Some(key) = key else {
            return Ok(Vec::new());
        };
        let prompts = self.prompts_of(key)?;
        let mut turns: BTreeMap<Place, Spending> = BTreeMap::new();
        for (place, spending) in self.calls_of(key, filter)? {
            if let Some(prompt) = prompt_before(&prompts, place) {
                turns.entry(prompt).or_default().add(&spending);
            }
        }
        let row = |((trail, seq), spending): (Place, Spending)| TurnRow {
            trail,
            seq,
            prompt: prompts.get(&(trail, seq)).cloned().unwrap_or_default(),
            spending,
        };
        Ok(turns.into_iter().map(row).collect())
    }

    /// Returns how the prompts of a session begin.
    fn prompts_of(&self, key: i64) -> Result<BTreeMap<Place, String>> {
        self.rows(
            "SELECT t.number, m.seq, m.prompt FROM trails AS t JOIN messages AS m ON m.trail = t.key
             WHERE t.session = ?1 AND m.prompt IS NOT NULL",
            params![key],
            |row| {
                let seq: i64 = row.get(1)?;
                Ok(((row.get(0)?, seq.unsigned_abs()), row.get(2)?))
            },
        )
    }

    /// Returns what the calls of a session spent.
    fn calls_of(&self, key: i64, filter: &Filter) -> Result<Vec<(Place, Spending)>> {
        let mut fits = Where::default();
        fits.add("t.session = ?", [Value::Integer(key)]);
        fits.any(
            "lower(t.model) LIKE ? ESCAPE '\\'",
            filter.models.iter().map(|model| anywhere(model)).collect(),
        );
        fits.within(filter);
        let sql = format!(
            "SELECT n.number, t.seq, {SUMS} FROM ({CALLS}) AS t
             JOIN trails AS n ON n.key = t.trail{}",
            fits.sql()
        );
        self.rows(&sql, params_from_iter(&fits.values), |row| {
            let seq: i64 = row.get(1)?;
            Ok(((row.get(0)?, seq.unsigned_abs()), read_sum(row, 2)?))
        })
    }
}

/// Returns the last prompt before a record: in its trail, or in one that this continues.
fn prompt_before(prompts: &BTreeMap<Place, String>, (trail, seq): Place) -> Option<Place> {
    let mut before = prompts
        .range(..=(trail, seq))
        .rev()
        .map(|(place, _)| *place);
    before.find(|(_, prompt)| *prompt <= seq)
}
