//! The ledger: one row for each response of a provider, however many records it has.

use std::collections::{BTreeSet, HashMap};

use backtrail::conversation::Response;
use backtrail::plumbing::{ReadRecord, ResponseCounter};
use backtrail::{Timestamp, Usage};
use rusqlite::{Row, ToSql, params, params_from_iter};

use super::Catalogue;
use crate::error::Result;
use crate::prices::{Prices, SessionPrices};
use crate::rows::{Money, Spending};

/// Writes the responses of the trail that is being read.
#[derive(Debug)]
pub(super) struct LedgerWriter {
    counter: ResponseCounter,
    session: i64,
    trail: i64,
    /// Whether responses of the session may be in the ledger already.
    may_have_earlier: bool,
    /// The responses with an id that were written: other sessions may have them, too.
    pub(super) shared: Vec<i64>,
}

impl LedgerWriter {
    pub(super) fn new(session: i64, trail: i64, unread: u64, may_have_earlier: bool) -> Self {
        Self {
            counter: ResponseCounter::with_unread_tokens(unread),
            session,
            trail,
            may_have_earlier,
            shared: Vec::new(),
        }
    }

    /// Adds what a record says of its model call.
    pub(super) fn add(
        &mut self,
        record: &ReadRecord<'_>,
        db: &Catalogue,
        prices: &Prices,
    ) -> Result<()> {
        let (session, may_have_earlier) = (self.session, self.may_have_earlier);
        self.counter.add_to(record, |id| match may_have_earlier {
            true => read_response(db, session, id),
            false => Ok(None),
        })?;
        let finished = self.counter.take_finished();
        self.write(&finished, db, prices)
    }

    /// Writes the responses that were not written yet.
    pub(super) fn finish(&mut self, db: &Catalogue, prices: &Prices) -> Result<()> {
        let finished = self.counter.finish();
        self.write(&finished, db, prices)
    }

    /// Returns the tokens that no call has read yet.
    pub(super) fn unread_tokens(&self) -> u64 {
        self.counter.unread_tokens()
    }

    fn write(&mut self, responses: &[Response], db: &Catalogue, prices: &Prices) -> Result<()> {
        for response in responses {
            let key = match &response.id {
                Some(id) => {
                    let key = key_of(id);
                    self.shared.push(key);
                    key
                }
                // Seqs repeat in the trails of a session.
                None => {
                    let seq = hash(b's', &response.seq.to_be_bytes());
                    hash(
                        b't',
                        &[seq.to_be_bytes(), self.trail.to_be_bytes()].concat(),
                    )
                }
            };
            insert(db, (self.session, self.trail, key), response, prices)?;
        }
        Ok(())
    }
}

/// Returns the key of a response. It is a hash of eight bytes: among a million of them
/// the chance that any two collide is one in thirty million.
fn key_of(id: &str) -> i64 {
    hash(b'r', id.as_bytes())
}

/// Returns a key of what `bytes` are, which is of this kind.
pub(super) fn hash(kind: u8, bytes: &[u8]) -> i64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[kind]).update(bytes);
    let mut key = [0; 8];
    key.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    i64::from_be_bytes(key)
}

fn insert(
    db: &Catalogue,
    (session, trail, key): (i64, i64, i64),
    response: &Response,
    prices: &Prices,
) -> Result<()> {
    let none = Usage::default();
    let usage = response.usage.as_ref().unwrap_or(&none);
    let reported = response.cost_usd.map(Money::from_dollars);
    let cost = prices.cost_of(response, response.model.as_deref());
    let who = match response.is_compaction {
        true => "compaction",
        false => "agent",
    };
    db.run(
        "INSERT OR REPLACE INTO ledger (session, response, response_id, trail, seq, at,
         model, who, measured, input, output, cache_write, cache_write_1h, cache_read,
         reasoning, estimated, duration_ms, reported, cost)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16,
         ?17, ?18, ?19)",
        params![
            session,
            key,
            response.id,
            trail,
            response.seq as i64,
            response.at.map(Timestamp::as_millis),
            response.model,
            who,
            response.usage.is_some(),
            clamp(usage.input_tokens),
            clamp(usage.output_tokens),
            clamp(usage.cache_creation_input_tokens),
            clamp(usage.cache_creation_1h_input_tokens.unwrap_or(0)),
            clamp(usage.cache_read_input_tokens),
            clamp(usage.reasoning_output_tokens.unwrap_or(0)),
            clamp(response.estimated_tokens),
            response.duration_ms.map(clamp),
            reported.map(|money| money.0),
            cost.map(|money| money.0),
        ],
    )
}

/// The columns of a response behind its id, in the order of [`response_of`].
const RESPONSE: &str = "seq, at, model, who, measured, input, output, cache_write, \
    cache_write_1h, cache_read, reasoning, estimated, duration_ms, reported";

fn response_of(row: &Row<'_>) -> rusqlite::Result<Response> {
    let mut response = Response::default();
    response.id = row.get(0)?;
    response.seq = count(row, 1)?;
    response.at = row
        .get::<_, Option<i64>>(2)?
        .and_then(Timestamp::from_millis);
    response.model = row.get(3)?;
    response.is_compaction = row.get_ref(4)?.as_str()? == "compaction";
    if row.get(5)? {
        response.usage = Some(read_usage(row, 6)?);
    }
    response.estimated_tokens = count(row, 12)?;
    response.duration_ms = row.get::<_, Option<i64>>(13)?.map(i64::unsigned_abs);
    let reported = row.get::<_, Option<i64>>(14)?.map(Money);
    response.cost_usd = reported.map(Money::dollars);
    Ok(response)
}

fn read_response(db: &Catalogue, session: i64, id: &str) -> Result<Option<Response>> {
    let sql =
        format!("SELECT response_id, {RESPONSE} FROM ledger WHERE session = ?1 AND response = ?2");
    db.first(&sql, [session, key_of(id)], response_of)
}

/// Reads the six counters of a call that begin at a column.
fn read_usage(row: &Row<'_>, at: usize) -> rusqlite::Result<Usage> {
    Ok(Usage::new(count(row, at)?, count(row, at + 1)?)
        .cache_creation(count(row, at + 2)?)
        .cache_creation_1h(count(row, at + 3)?)
        .cache_read(count(row, at + 4)?)
        .reasoning(count(row, at + 5)?))
}

/// SQLite's numbers are signed: no call uses more tokens than those can count.
fn clamp(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(i64::unsigned_abs)
}

/// Decides which session counts a response that several have: the one that had it first.
/// Returns the sessions whose totals change.
pub(super) fn settle_shared(
    db: &Catalogue,
    responses: Option<&BTreeSet<i64>>,
) -> Result<BTreeSet<i64>> {
    let shared: Vec<i64> = match responses {
        Some(responses) => responses.iter().copied().collect(),
        None => db.rows(
            "SELECT response FROM ledger WHERE response_id IS NOT NULL
             GROUP BY response HAVING count(*) > 1",
            [],
            |row| row.get(0),
        )?,
    };
    let mut changed = BTreeSet::new();
    for response in shared {
        let rows: Vec<(i64, bool)> = db.rows(
            "SELECT l.session, l.counts FROM ledger AS l JOIN sessions AS s ON s.key = l.session
             WHERE l.response = ?1 AND l.response_id IS NOT NULL
             ORDER BY l.at IS NULL, l.at, s.created_at IS NULL, s.created_at, s.id",
            [response],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        for (n, (session, counts)) in rows.into_iter().enumerate() {
            if counts != (n == 0) {
                let sql = "UPDATE ledger SET counts = ?3 WHERE session = ?1 AND response = ?2";
                db.run(sql, params![session, response, n == 0])?;
                changed.insert(session);
            }
        }
    }
    Ok(changed)
}

/// The length of the pieces of time that totals are kept for: whole in every time zone.
pub(super) const SLOT_MS: i64 = 15 * 60 * 1000;

/// Sums up a session's rows: for each model, and for each piece of time. With `reprice`,
/// the cost of every call is computed again.
pub(super) fn write_totals(
    db: &Catalogue,
    session: i64,
    prices: &Prices,
    reprice: bool,
) -> Result<()> {
    let sql = "SELECT model, belongs_to FROM sessions WHERE key = ?1";
    let of_session = db.first(sql, [session], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (model, belongs_to): (_, Option<String>) = of_session.unwrap_or_default();
    let prices = SessionPrices::new(prices.clone(), model, belongs_to.as_deref());
    let mut totals: HashMap<String, Total> = HashMap::new();
    let mut slots: HashMap<(String, i64), Spending> = HashMap::new();
    let mut costs = Vec::new();
    let sql =
        format!("SELECT NULL, {RESPONSE}, response, cost, counts FROM ledger WHERE session = ?1");
    let () = db.rows(&sql, [session], |row| {
        let response = response_of(row)?;
        let known_cost = row.get::<_, Option<i64>>(16)?.map(Money);
        // The session's model, which replaces the call's, may have changed.
        let cost = match reprice || response.model.is_none() {
            true => prices.cost(&response),
            false => known_cost,
        };
        if cost != known_cost {
            costs.push((row.get::<_, i64>(15)?, cost));
        }
        // Another session counts it.
        if !row.get::<_, bool>(17)? {
            return Ok(());
        }
        let spending = prices.spending_at(&response, cost);
        let model = prices.model(&response).unwrap_or_default().to_owned();
        let at = response.at.map(Timestamp::as_millis);
        if let Some(at) = at {
            let slot = (model.clone(), at.div_euclid(SLOT_MS));
            slots.entry(slot).or_default().add(&spending);
        }
        totals.entry(model).or_default().add(&spending, at);
        Ok(())
    })?;
    for (key, cost) in costs {
        let sql = "UPDATE ledger SET cost = ?3 WHERE session = ?1 AND response = ?2";
        db.run(sql, params![session, key, cost.map(|cost| cost.0)])?;
    }
    replace_totals(db, session, &totals, &slots)
}

/// A sum, and when its calls were made.
#[derive(Debug, Default)]
struct Total {
    spending: Spending,
    span: Option<(i64, i64)>,
}

impl Total {
    fn add(&mut self, spending: &Spending, at: Option<i64>) {
        self.spending.add(spending);
        if let Some(at) = at {
            let (first, last) = self.span.unwrap_or((at, at));
            self.span = Some((first.min(at), last.max(at)));
        }
    }
}

fn replace_totals(
    db: &Catalogue,
    session: i64,
    totals: &HashMap<String, Total>,
    slots: &HashMap<(String, i64), Spending>,
) -> Result<()> {
    db.run("DELETE FROM totals WHERE session = ?1", [session])?;
    db.run("DELETE FROM totals_by_time WHERE session = ?1", [session])?;
    let sql = format!(
        "INSERT INTO totals (session, model, first_at, last_at, {SUMS})
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    );
    for (model, total) in totals {
        let (first, last) = total.span.unzip();
        insert_sum(db, &sql, &[&session, model, &first, &last], &total.spending)?;
    }
    let sql = format!(
        "INSERT INTO totals_by_time (session, model, slot, {SUMS})
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    );
    for ((model, slot), spending) in slots {
        insert_sum(db, &sql, &[&session, model, slot], spending)?;
    }
    Ok(())
}

/// Inserts a row that begins with other columns.
fn insert_sum(db: &Catalogue, sql: &str, place: &[&dyn ToSql], sum: &Spending) -> Result<()> {
    let mut sum = *sum;
    let mut sums = sum.counters().map(|counter| clamp(*counter)).to_vec();
    sums.push(sum.cost.0);
    let sums = sums.iter().map(|sum| sum as &dyn ToSql);
    db.run(sql, params_from_iter(place.iter().copied().chain(sums)))
}

/// The columns of a sum: the counters, in the order of [`Spending::counters`], and the cost.
pub(super) const SUMS: &str = "calls, input, output, cache_write, cache_write_1h, cache_read, \
    reasoning, reported, unpriced, estimated_calls, estimated_tokens, lower_bounds, cost";

/// Reads a sum whose columns begin at one.
pub(super) fn read_sum(row: &Row<'_>, at: usize) -> rusqlite::Result<Spending> {
    let mut sum = Spending::default();
    let counters = sum.counters();
    let behind = at + counters.len();
    for (column, counter) in (at..).zip(counters) {
        *counter = count(row, column)?;
    }
    sum.cost = Money(row.get(behind)?);
    Ok(sum)
}
