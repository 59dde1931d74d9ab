//! The ledger: one row for each response of a provider, however many records it has.

use std::collections::{BTreeSet, HashMap};

use backtrail::{Timestamp, Usage};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::failed;
use crate::error::Result;
use crate::feed::Said;
use crate::prices::Prices;
use crate::rows::{Money, Spending};

/// What one record says of its model call, or what all records of a response say.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    /// What names the response: a hash of its id, else of the record's own place.
    response: i64,
    response_id: Option<String>,
    seq: u64,
    at: Option<i64>,
    model: Option<String>,
    who: &'static str,
    usage: Option<Usage>,
    /// What to count where no record of the response has a usage.
    estimated: u64,
    duration_ms: Option<u64>,
    reported: Option<Money>,
}

impl Call {
    pub(super) fn new(said: &Said<'_>, usage: Option<&Usage>, estimated: u64) -> Self {
        let details = said.details;
        Self {
            response: response_key(said),
            response_id: details.response_id.clone(),
            seq: said.seq,
            at: said.at.map(Timestamp::as_millis),
            model: details.model.clone(),
            who: "agent",
            // A sum of one: without the fields that are not ours.
            usage: usage.map(|usage| {
                let mut counters = Usage::default();
                counters.add(usage);
                counters
            }),
            estimated,
            duration_ms: details.duration_ms,
            reported: details.cost_usd.map(Money::from_dollars),
        }
    }

    pub(super) fn who(mut self, who: &'static str) -> Self {
        self.who = who;
        self
    }

    /// Takes in what a later record of the same response says.
    fn update(&mut self, later: Self) {
        self.usage = later.usage.or(self.usage.take());
        self.duration_ms = later.duration_ms.or(self.duration_ms);
        self.reported = later.reported.or(self.reported);
        self.model = later.model.or(self.model.take());
        self.estimated = self.estimated.saturating_add(later.estimated);
        self.at = self.at.or(later.at);
        self.seq = later.seq;
    }
}

/// Returns what names a response. A hash of eight bytes stands for its id: among a million
/// of them the chance that any two are taken for one is one in thirty million. A record
/// without a response id is a response by itself.
fn response_key(said: &Said<'_>) -> i64 {
    match &said.details.response_id {
        Some(id) => hash(b'r', id.as_bytes()),
        None => hash(b's', &said.seq.to_be_bytes()),
    }
}

fn hash(kind: u8, bytes: &[u8]) -> i64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[kind]).update(bytes);
    let mut key = [0; 8];
    key.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    i64::from_be_bytes(key)
}

/// The calls of the trail that is being read.
#[derive(Debug)]
pub(super) struct Calls {
    calls: HashMap<i64, Call>,
    /// Whether calls of the session may be in the ledger already.
    goes_on: bool,
}

impl Calls {
    pub(super) fn new(goes_on: bool) -> Self {
        Self {
            calls: HashMap::new(),
            goes_on,
        }
    }

    /// Returns whether no record of this response came yet: in what is being read, nor in
    /// what was read before of the session.
    pub(super) fn is_new(&self, said: &Said<'_>, db: &Connection, session: i64) -> Result<bool> {
        let response = response_key(said);
        if said.details.response_id.is_none() || self.calls.contains_key(&response) {
            return Ok(said.details.response_id.is_none());
        }
        Ok(!self.goes_on || read_call(db, session, response)?.is_none())
    }

    pub(super) fn add(&mut self, call: Call) {
        match self.calls.entry(call.response) {
            std::collections::hash_map::Entry::Occupied(mut known) => known.get_mut().update(call),
            std::collections::hash_map::Entry::Vacant(free) => {
                free.insert(call);
            }
        }
    }

    /// Writes the rows; returns the responses with an id, which others may have, too.
    pub(super) fn write(
        self,
        db: &Connection,
        session: i64,
        trail: i64,
        prices: &Prices,
    ) -> Result<Vec<i64>> {
        let mut shared = Vec::new();
        for call in self.calls.into_values() {
            // The numbers of records are those of their trail: one without a response id
            // is told from those of other trails by that.
            let response = match &call.response_id {
                Some(_) => call.response,
                None => hash(
                    b't',
                    &[call.response.to_be_bytes(), trail.to_be_bytes()].concat(),
                ),
            };
            let known = match &call.response_id {
                Some(_) if self.goes_on => read_call(db, session, response)?,
                _ => None,
            };
            let call = match known {
                Some(mut known) => {
                    known.update(call);
                    known
                }
                None => call,
            };
            if call.response_id.is_some() {
                shared.push(response);
            }
            let cost = call.cost(prices);
            call.insert(db, session, response, trail, cost)?;
        }
        Ok(shared)
    }
}

impl Call {
    /// Returns what the call cost: what its provider said, else by its price.
    fn cost(&self, prices: &Prices) -> Option<Money> {
        let at = self.at.and_then(Timestamp::from_millis);
        let priced = || prices.cost(self.model.as_deref()?, at, self.usage.as_ref()?);
        self.reported.or_else(priced)
    }

    fn insert(
        &self,
        db: &Connection,
        session: i64,
        response: i64,
        trail: i64,
        cost: Option<Money>,
    ) -> Result<()> {
        let writing = failed("cannot write to the ledger");
        let mut insert = db
            .prepare_cached(
                "INSERT OR REPLACE INTO ledger (session, response, response_id, trail, seq, at,
                 model, who, measured, input, output, cache_write, cache_write_1h, cache_read,
                 reasoning, estimated, duration_ms, reported, cost)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16,
                 ?17, ?18, ?19)",
            )
            .map_err(&writing)?;
        let none = Usage::default();
        let usage = self.usage.as_ref().unwrap_or(&none);
        insert
            .execute(params![
                session,
                response,
                self.response_id,
                trail,
                self.seq as i64,
                self.at,
                self.model,
                self.who,
                self.usage.is_some(),
                clamp(usage.input_tokens),
                clamp(usage.output_tokens),
                clamp(usage.cache_creation_input_tokens),
                clamp(usage.cache_creation_1h_input_tokens.unwrap_or(0)),
                clamp(usage.cache_read_input_tokens),
                clamp(usage.reasoning_output_tokens.unwrap_or(0)),
                clamp(self.estimated),
                self.duration_ms.map(clamp),
                self.reported.map(|money| money.0),
                cost.map(|money| money.0),
            ])
            .map_err(&writing)?;
        Ok(())
    }
}

fn read_call(db: &Connection, session: i64, response: i64) -> Result<Option<Call>> {
    let reading = failed("cannot read the ledger");
    let mut find = db
        .prepare_cached(
            "SELECT response_id, seq, at, model, who, measured, input, output, cache_write,
             cache_write_1h, cache_read, reasoning, estimated, duration_ms, reported
             FROM ledger WHERE session = ?1 AND response = ?2",
        )
        .map_err(&reading)?;
    find.query_row([session, response], |row| {
        let who: String = row.get(4)?;
        Ok(Call {
            response,
            response_id: row.get(0)?,
            seq: count(row, 1)?,
            at: row.get(2)?,
            model: row.get(3)?,
            who: if who == "compaction" {
                "compaction"
            } else {
                "agent"
            },
            usage: row
                .get::<_, bool>(5)?
                .then(|| read_usage(row, 6))
                .transpose()?,
            estimated: count(row, 12)?,
            duration_ms: row.get::<_, Option<i64>>(13)?.map(i64::unsigned_abs),
            reported: row.get::<_, Option<i64>>(14)?.map(Money),
        })
    })
    .optional()
    .map_err(&reading)
}

/// Reads the six counters of a call that begin at a column.
fn read_usage(row: &Row<'_>, at: usize) -> rusqlite::Result<Usage> {
    Ok(Usage::new(count(row, at)?, count(row, at + 1)?)
        .cache_creation(count(row, at + 2)?)
        .cache_creation_1h(count(row, at + 3)?)
        .cache_read(count(row, at + 4)?)
        .reasoning(count(row, at + 5)?))
}

/// SQLite's numbers are signed: nobody uses more tokens than those can count.
fn clamp(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(i64::unsigned_abs)
}

/// Decides which session a response counts for that several have, and returns the sessions
/// whose totals change by it: it counts once, for the one that had it first.
pub(super) fn settle_shared(
    db: &Connection,
    responses: Option<&BTreeSet<i64>>,
) -> Result<BTreeSet<i64>> {
    let settling = failed("cannot settle the ledger");
    let shared: Vec<i64> = match responses {
        Some(responses) => responses.iter().copied().collect(),
        None => {
            let mut all = db
                .prepare(
                    "SELECT response FROM ledger WHERE response_id IS NOT NULL
                     GROUP BY response HAVING count(*) > 1",
                )
                .map_err(&settling)?;
            let found = all.query_map([], |row| row.get(0)).map_err(&settling)?;
            found.collect::<rusqlite::Result<_>>().map_err(&settling)?
        }
    };
    let mut find = db
        .prepare_cached(
            "SELECT l.session, l.counts FROM ledger AS l JOIN sessions AS s ON s.key = l.session
             WHERE l.response = ?1 AND l.response_id IS NOT NULL
             ORDER BY l.at IS NULL, l.at, s.created_at IS NULL, s.created_at, s.id",
        )
        .map_err(&settling)?;
    let mut set = db
        .prepare_cached("UPDATE ledger SET counts = ?3 WHERE session = ?1 AND response = ?2")
        .map_err(&settling)?;
    let mut changed = BTreeSet::new();
    for response in shared {
        let rows = find
            .query_map([response], |row| Ok((row.get(0)?, row.get(1)?)))
            .map_err(&settling)?;
        let rows: Vec<(i64, bool)> = rows.collect::<rusqlite::Result<_>>().map_err(&settling)?;
        for (n, (session, counts)) in rows.into_iter().enumerate() {
            if counts != (n == 0) {
                set.execute(params![session, response, n == 0])
                    .map_err(&settling)?;
                changed.insert(session);
            }
        }
    }
    Ok(changed)
}

/// The length of the pieces of time that totals are kept for: whole in every time zone.
pub(super) const SLOT_MS: i64 = 15 * 60 * 1000;

/// Sums up a session's rows anew: for each model, and for each piece of time.
/// With `prices`, what the calls cost is worked out anew.
pub(super) fn write_totals(db: &Connection, session: i64, prices: Option<&Prices>) -> Result<()> {
    let summing = failed("cannot sum up the ledger");
    let lower: bool = db
        .prepare_cached(
            "SELECT coalesce(belongs_to = 'claude-code', 0) FROM sessions WHERE key = ?1",
        )
        .and_then(|mut find| find.query_row([session], |row| row.get(0)))
        .map_err(&summing)?;
    let mut rows = db
        .prepare_cached(
            "SELECT response, model, at, measured, reported, estimated, input, output, cache_write,
             cache_write_1h, cache_read, reasoning, cost, counts FROM ledger WHERE session = ?1",
        )
        .map_err(&summing)?;
    let mut totals: HashMap<String, Total> = HashMap::new();
    let mut slots: HashMap<(String, i64), Spending> = HashMap::new();
    let mut costs = Vec::new();
    let mut rows = rows.query([session]).map_err(&summing)?;
    while let Some(row) = rows.next().map_err(&summing)? {
        let entry = Entry::read(row).map_err(&summing)?;
        let cost = match prices {
            Some(prices) => entry.cost(prices),
            None => entry.known_cost,
        };
        if cost != entry.known_cost {
            costs.push((entry.response, cost));
        }
        if !entry.counts {
            continue;
        }
        let spending = entry.spending(cost, lower);
        let model = entry.model.unwrap_or_default();
        if let Some(at) = entry.at {
            let slot = (model.clone(), at.div_euclid(SLOT_MS));
            slots.entry(slot).or_default().add(&spending);
        }
        totals.entry(model).or_default().add(&spending, entry.at);
    }
    let mut set = db
        .prepare_cached("UPDATE ledger SET cost = ?3 WHERE session = ?1 AND response = ?2")
        .map_err(&summing)?;
    for (response, cost) in costs {
        let cost = cost.map(|cost| cost.0);
        set.execute(params![session, response, cost])
            .map_err(&summing)?;
    }
    replace_totals(db, session, &totals, &slots).map_err(&summing)
}

/// A row of the ledger, as far as sums need it.
struct Entry {
    response: i64,
    model: Option<String>,
    at: Option<i64>,
    measured: bool,
    reported: Option<Money>,
    estimated: u64,
    usage: Usage,
    known_cost: Option<Money>,
    counts: bool,
}

impl Entry {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            response: row.get(0)?,
            model: row.get(1)?,
            at: row.get(2)?,
            measured: row.get(3)?,
            reported: row.get::<_, Option<i64>>(4)?.map(Money),
            estimated: count(row, 5)?,
            usage: read_usage(row, 6)?,
            known_cost: row.get::<_, Option<i64>>(12)?.map(Money),
            counts: row.get(13)?,
        })
    }

    /// Returns what the call cost: what its provider said, else by its price.
    fn cost(&self, prices: &Prices) -> Option<Money> {
        if self.reported.is_some() || !self.measured {
            return self.reported;
        }
        let at = self.at.and_then(Timestamp::from_millis);
        prices.cost(self.model.as_deref()?, at, &self.usage)
    }

    fn spending(&self, cost: Option<Money>, lower: bool) -> Spending {
        if !self.measured && self.reported.is_none() {
            return Spending {
                estimated_calls: 1,
                estimated_tokens: self.estimated,
                ..Spending::default()
            };
        }
        let usage = &self.usage;
        Spending {
            calls: 1,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cache_write_tokens: usage.cache_creation_input_tokens,
            cache_write_1h_tokens: usage.cache_creation_1h_input_tokens.unwrap_or(0),
            cache_read_tokens: usage.cache_read_input_tokens,
            reasoning_tokens: usage.reasoning_output_tokens.unwrap_or(0),
            cost: cost.unwrap_or_default(),
            reported_calls: u64::from(self.reported.is_some()),
            unpriced_calls: u64::from(cost.is_none()),
            lower_bound_calls: u64::from(lower),
            ..Spending::default()
        }
    }
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
    db: &Connection,
    session: i64,
    totals: &HashMap<String, Total>,
    slots: &HashMap<(String, i64), Spending>,
) -> rusqlite::Result<()> {
    db.prepare_cached("DELETE FROM totals WHERE session = ?1")?
        .execute([session])?;
    db.prepare_cached("DELETE FROM totals_by_time WHERE session = ?1")?
        .execute([session])?;
    let mut insert = db.prepare_cached(
        "INSERT INTO totals VALUES
         (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
    )?;
    for (model, total) in totals {
        let n = columns(&total.spending);
        let (first, last) = total.span.unzip();
        insert.execute(params![
            session, model, n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10],
            n[11], n[12], first, last,
        ])?;
    }
    let mut insert = db.prepare_cached(
        "INSERT INTO totals_by_time VALUES
         (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
    )?;
    for ((model, slot), spending) in slots {
        let n = columns(spending);
        insert.execute(params![
            session, model, slot, n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9],
            n[10], n[11], n[12],
        ])?;
    }
    Ok(())
}

/// The columns of a sum, in the order of [`columns`].
pub(super) const SUMS: &str = "calls, input, output, cache_write, cache_write_1h, cache_read, \
    reasoning, cost, reported, unpriced, estimated_calls, estimated_tokens, lower_bounds";

fn columns(sum: &Spending) -> [i64; 13] {
    [
        clamp(sum.calls),
        clamp(sum.input_tokens),
        clamp(sum.output_tokens),
        clamp(sum.cache_write_tokens),
        clamp(sum.cache_write_1h_tokens),
        clamp(sum.cache_read_tokens),
        clamp(sum.reasoning_tokens),
        sum.cost.0,
        clamp(sum.reported_calls),
        clamp(sum.unpriced_calls),
        clamp(sum.estimated_calls),
        clamp(sum.estimated_tokens),
        clamp(sum.lower_bound_calls),
    ]
}

/// Reads a sum whose columns begin at one.
pub(super) fn read_sum(row: &Row<'_>, at: usize) -> rusqlite::Result<Spending> {
    Ok(Spending {
        calls: count(row, at)?,
        input_tokens: count(row, at + 1)?,
        output_tokens: count(row, at + 2)?,
        cache_write_tokens: count(row, at + 3)?,
        cache_write_1h_tokens: count(row, at + 4)?,
        cache_read_tokens: count(row, at + 5)?,
        reasoning_tokens: count(row, at + 6)?,
        cost: Money(row.get(at + 7)?),
        reported_calls: count(row, at + 8)?,
        unpriced_calls: count(row, at + 9)?,
        estimated_calls: count(row, at + 10)?,
        estimated_tokens: count(row, at + 11)?,
        lower_bound_calls: count(row, at + 12)?,
    })
}
