//! What was spent, in groups.

use std::collections::{BTreeMap, HashMap, HashSet};

use backtrail::Timestamp;
use jiff::civil::{Date, ISOWeekDate};
use jiff::tz::TimeZone;
use jiff::{ToSpan, Unit};
use rusqlite::{Row, params_from_iter};

use super::branches::Branches;
use super::ledger::{SLOT_MS, SUMS, read_sum};
use super::query::{Where, anywhere, of_sessions};
use super::{Catalogue, moment};
use crate::error::Result;
use crate::filter::Filter;
use crate::rows::{Group, Spending, SpendingReport, SpendingRow};

/// Sums for each session and model.
const TOTALS: &str = "SELECT *, NULL AS at, first_at AS first, last_at AS last FROM totals";

/// Sums for each slot of time.
const SLOTS: &str = "SELECT *, slot * 900000 AS at, slot * 900000 AS first,
    slot * 900000 + 899999 AS last FROM totals_by_time";

/// Single calls.
pub(super) const CALLS: &str = "SELECT session, trail, seq,
    coalesce(model, (SELECT model FROM sessions WHERE key = session), '') AS model, at, at AS first, at AS last,
    (measured OR reported IS NOT NULL) AS calls, input, output, cache_write, cache_write_1h,
    cache_read, reasoning, coalesce(cost, 0) AS cost, reported IS NOT NULL AS reported,
    ((measured OR reported IS NOT NULL) AND cost IS NULL) AS unpriced,
    NOT (measured OR reported IS NOT NULL) AS estimated_calls,
    CASE WHEN measured OR reported IS NOT NULL THEN 0 ELSE estimated END AS estimated_tokens,
    measured AND reported IS NULL AND (SELECT coalesce(belongs_to = 'claude-code', 0)
        FROM sessions WHERE key = session) AS lower_bounds
    FROM ledger WHERE counts";

/// What groups need to know of a session.
#[derive(Debug)]
struct Place {
    id: String,
    family: String,
    agent: Option<String>,
    project: Option<String>,
    tags: Vec<String>,
    workspace: Option<i64>,
}

/// Finds the groups of a call. A session with two tags is in two groups.
pub(super) struct Groups<'a> {
    by: &'a [Group],
    zone: &'a TimeZone,
    places: HashMap<i64, Place>,
    branches: Branches,
}

/// The groups of a call: one key for each dimension.
pub(super) type Keys = Vec<Option<String>>;

impl<'a> Groups<'a> {
    /// Reads what is needed to group by these, of the sessions that match a filter.
    pub(super) fn read(
        db: &Catalogue,
        filter: &Filter,
        by: &'a [Group],
        zone: &'a TimeZone,
    ) -> Result<Self> {
        let fits = of_sessions(filter);
        let sql = format!(
            "SELECT s.key, s.id, s.family, coalesce(s.agent, s.belongs_to), w.project, s.tags, w.key
             FROM sessions AS s {}{}",
            db.of_workspace()?,
            fits.sql()
        );
        let places = db.rows(&sql, params_from_iter(&fits.values), |row| {
            let place = Place {
                id: row.get(1)?,
                family: row.get(2)?,
                agent: row.get(3)?,
                project: row.get(4)?,
                tags: serde_json::from_str(row.get_ref(5)?.as_str()?).unwrap_or_default(),
                workspace: row.get(6)?,
            };
            Ok((row.get(0)?, place))
        })?;
        let branches = match by.contains(&Group::Branch) {
            true => Branches::read(db)?,
            false => Branches::default(),
        };
        Ok(Self {
            by,
            zone,
            places,
            branches,
        })
    }

    /// Returns the groups of a call; `None` if its session does not match.
    pub(super) fn of(
        &self,
        session: i64,
        model: Option<&str>,
        at: Option<i64>,
        tool: Option<&str>,
    ) -> Option<Vec<Keys>> {
        let place = self.places.get(&session)?;
        let mut all: Vec<Keys> = vec![Keys::new()];
        for by in self.by {
            let keys = match by {
                Group::Model => vec![model.map(str::to_owned)],
                Group::Agent => vec![place.agent.clone()],
                Group::Project => vec![place.project.clone()],
                Group::Session => vec![Some(place.id.clone())],
                Group::Family => vec![Some(place.family.clone())],
                Group::Tag if place.tags.is_empty() => vec![None],
                Group::Tag => place.tags.iter().cloned().map(Some).collect(),
                Group::Branch => vec![self.branches.of(session, place.workspace, at)],
                Group::Tool => vec![tool.map(str::to_owned)],
                Group::Day | Group::Week | Group::Month | Group::Hour => {
                    vec![at.and_then(|at| period(at, *by, self.zone))]
                }
            };
            let with = |before: &Keys, key: &Option<String>| {
                let key = key.clone().filter(|key| !key.is_empty());
                before.iter().cloned().chain([key]).collect()
            };
            let before = all.iter();
            all = before
                .flat_map(|before| keys.iter().map(|key| with(before, key)))
                .collect();
        }
        Some(all)
    }
}

impl Catalogue {
    /// Returns the spending that matches a filter, in up to two dimensions. Days, weeks, months and
    /// hours without any are included, up to `now` if the filter has no end.
    pub(crate) fn spending(
        &self,
        filter: &Filter,
        by: &[Group],
        zone: &TimeZone,
        now: Option<Timestamp>,
    ) -> Result<SpendingReport> {
        let mut fits = Where::default();
        fits.any(
            "lower(t.model) LIKE ? ESCAPE '\\'",
            filter.models.iter().map(|model| anywhere(model)).collect(),
        );
        let in_time = filter.since.is_some() || filter.until.is_some();
        let timed = in_time || by.iter().any(|by| by.is_time());
        let exact = [filter.since, filter.until].into_iter().flatten();
        let exact = exact.map(Timestamp::as_millis).any(|at| at % SLOT_MS != 0);
        let table = match (timed, exact) {
            _ if by.contains(&Group::Branch) => CALLS,
            (false, _) => TOTALS,
            (true, false) => SLOTS,
            (true, true) => CALLS,
        };
        let mut sums = Sums::new(Groups::read(self, filter, by, zone)?);
        let mut add = |table: &str, fits: &Where| -> Result<()> {
            let sql = format!(
                "SELECT t.session, t.model, t.at, t.first, t.last, {SUMS} FROM ({table}) AS t{}",
                fits.sql()
            );
            self.rows(&sql, params_from_iter(&fits.values), |row| sums.add(row))
        };
        // Calls without a time belong to no day but still count.
        if table == SLOTS && !in_time {
            let mut untimed = fits.clone();
            untimed.add("t.at IS NULL", []);
            add(CALLS, &untimed)?;
        }
        fits.within(filter);
        add(table, &fits)?;
        Ok(sums.finish(filter, now))
    }

    /// Returns the calls that match a filter and have a time, the first one first.
    pub(crate) fn calls(&self, filter: &Filter) -> Result<Vec<(i64, Spending)>> {
        let zone = TimeZone::UTC;
        let sessions = Groups::read(self, filter, &[], &zone)?;
        let mut fits = Where::default();
        fits.any(
            "lower(t.model) LIKE ? ESCAPE '\\'",
            filter.models.iter().map(|model| anywhere(model)).collect(),
        );
        fits.within(filter);
        fits.add("t.at IS NOT NULL", []);
        let sql = format!(
            "SELECT t.session, t.at, {SUMS} FROM ({CALLS}) AS t{} ORDER BY t.at",
            fits.sql()
        );
        let rows: Vec<(i64, i64, Spending)> =
            self.rows(&sql, params_from_iter(&fits.values), |row| {
                Ok((row.get(0)?, row.get(1)?, read_sum(row, 2)?))
            })?;
        let fitting = rows
            .into_iter()
            .filter(|(session, ..)| sessions.places.contains_key(session));
        Ok(fitting.map(|(_, at, spending)| (at, spending)).collect())
    }

    /// Returns how many prompts the sessions with spending got, those that another session copied
    /// counted once, and without the tasks of sub-agents.
    pub(crate) fn prompts(&self, filter: &Filter) -> Result<u64> {
        let mut sessions = of_sessions(filter);
        sessions.add("s.spawned_by IS NULL", []);
        sessions.add("EXISTS (SELECT 1 FROM totals WHERE session = s.key)", []);
        let sql = format!(
            "SELECT t.key FROM trails AS t JOIN sessions AS s ON s.key = t.session {}{}",
            self.of_workspace()?,
            sessions.sql()
        );
        let trails: HashSet<i64> =
            self.rows(&sql, params_from_iter(&sessions.values), |row| row.get(0))?;
        let mut prompts = Where::default();
        prompts.add("t.prompt_key IS NOT NULL", []);
        prompts.within(filter);
        let sql = format!(
            "SELECT t.prompt_key, t.trail FROM messages AS t{} ORDER BY t.prompt_key",
            prompts.sql()
        );
        let (mut count, mut last) = (0, None);
        let () = self.rows(&sql, params_from_iter(&prompts.values), |row| {
            let key: i64 = row.get(0)?;
            if last != Some(key) && trails.contains(&row.get(1)?) {
                last = Some(key);
                count += 1;
            }
            Ok(())
        })?;
        Ok(count)
    }
}

/// Sums that are being computed.
struct Sums<'a> {
    groups: Groups<'a>,
    total: Spending,
    sessions: HashSet<i64>,
    span: Option<(i64, i64)>,
    parts: BTreeMap<Keys, (Spending, HashSet<i64>)>,
}

impl<'a> Sums<'a> {
    fn new(groups: Groups<'a>) -> Self {
        Self {
            groups,
            total: Spending::default(),
            sessions: HashSet::new(),
            span: None,
            parts: BTreeMap::new(),
        }
    }

    fn add(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        let session: i64 = row.get(0)?;
        let model = row.get::<_, Option<String>>(1)?;
        let model = model.as_deref();
        let Some(keys) = self.groups.of(session, model, row.get(2)?, None) else {
            return Ok(());
        };
        let spending = read_sum(row, 5)?;
        self.total.add(&spending);
        self.sessions.insert(session);
        let times: (Option<i64>, Option<i64>) = (row.get(3)?, row.get(4)?);
        if let (Some(first), Some(last)) = times {
            let (from, to) = self.span.unwrap_or((first, last));
            self.span = Some((from.min(first), to.max(last)));
        }
        if self.groups.by.is_empty() {
            return Ok(());
        }
        for keys in keys {
            let (sum, sessions) = self.parts.entry(keys).or_default();
            sum.add(&spending);
            sessions.insert(session);
        }
        Ok(())
    }

    fn finish(mut self, filter: &Filter, now: Option<Timestamp>) -> SpendingReport {
        self.fill(filter, now);
        let rows = self.parts.into_iter().map(|(keys, (spending, sessions))| {
            let mut keys = keys.into_iter();
            SpendingRow {
                key: keys.next().flatten(),
                second: keys.next().flatten(),
                spending,
                sessions: sessions.len() as u64,
            }
        });
        let mut by: Vec<SpendingRow> = rows.collect();
        sort(&mut by, self.groups.by);
        let span = self
            .span
            .and_then(|(first, last)| Some((moment(Some(first))?, moment(Some(last))?)));
        SpendingReport {
            total: self.total,
            sessions: self.sessions.len() as u64,
            span,
            by,
        }
    }

    /// Adds the days, weeks, months or hours in which nothing was spent.
    fn fill(&mut self, filter: &Filter, now: Option<Timestamp>) {
        let ([by], Some((first, last))) = (self.groups.by, self.span) else {
            return;
        };
        let from = filter
            .since
            .map_or(first, |since| since.as_millis().min(first));
        let until = filter.until.or(now.filter(|_| filter.since.is_some()));
        let to = until.map_or(last, |until| (until.as_millis() - 1).max(last));
        for key in periods((from, to), (first, last), *by, self.groups.zone) {
            self.parts.entry(vec![Some(key)]).or_default();
        }
    }
}

/// Sorts times by themselves and everything else by cost, the most expensive first. In two
/// dimensions, a group is sorted by its sum.
fn sort(rows: &mut [SpendingRow], by: &[Group]) {
    let mut sums: HashMap<Option<String>, Spending> = HashMap::new();
    for row in rows.iter() {
        sums.entry(row.key.clone()).or_default().add(&row.spending);
    }
    let weight = |is_time: bool, spending: &Spending| {
        let weight = (!is_time).then(|| (spending.cost, spending.tokens()));
        std::cmp::Reverse(weight)
    };
    let is_time = |place: usize| by.get(place).is_some_and(|by| by.is_time());
    rows.sort_by_cached_key(|row| {
        let sum = sums.get(&row.key).copied().unwrap_or_default();
        let first = (weight(is_time(0), &sum), row.key.clone());
        let second = (weight(is_time(1), &row.spending), row.second.clone());
        (first, second)
    });
}

/// Formats the day, week, month or hour of a moment.
fn period(at: i64, by: Group, zone: &TimeZone) -> Option<String> {
    let at = jiff::Timestamp::from_millisecond(at).ok()?;
    let at = at.to_zoned(zone.clone());
    Some(match by {
        Group::Hour => format!("{:02}:00", at.hour()),
        by => of_day(at.date(), by),
    })
}

fn of_day(day: Date, by: Group) -> String {
    match by {
        Group::Month => format!("{:04}-{:02}", day.year(), day.month()),
        Group::Week => {
            let week: ISOWeekDate = day.iso_week_date();
            format!("{:04}-W{:02}", week.year(), week.week())
        }
        _ => format!("{:04}-{:02}-{:02}", day.year(), day.month(), day.day()),
    }
}

/// Returns all days, weeks, months or hours between two moments. If those are more than twenty
/// years apart, the first and the last call count instead.
fn periods(asked: (i64, i64), known: (i64, i64), by: Group, zone: &TimeZone) -> Vec<String> {
    let days = |(from, to): (i64, i64)| -> Option<(Date, i32)> {
        let date = |at: i64| {
            let at = jiff::Timestamp::from_millisecond(at).ok()?;
            Some(at.to_zoned(zone.clone()).date())
        };
        let (from, to) = (date(from)?, date(to)?);
        let days = from.until((Unit::Day, to)).ok()?.get_days();
        (0..=20 * 366).contains(&days).then_some((from, days))
    };
    match by {
        Group::Hour => (0..24).map(|hour| format!("{hour:02}:00")).collect(),
        Group::Day | Group::Week | Group::Month => {
            let Some((from, days)) = days(asked).or_else(|| days(known)) else {
                return Vec::new();
            };
            let days = (0..=days).filter_map(|day| from.checked_add(day.days()).ok());
            let mut all: Vec<String> = days.map(|day| of_day(day, by)).collect();
            all.dedup();
            all
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> i64 {
        text.parse::<jiff::Timestamp>()
            .expect("a time")
            .as_millisecond()
    }

    #[test]
    fn days_and_hours_are_local_also_when_clocks_change() {
        let zone = TimeZone::get("Europe/Berlin").expect("a zone");
        let of = |text: &str, by| period(at(text), by, &zone).expect("a period");
        // Clocks go from 2 to 3 at 01:00 UTC, and from 3 to 2 in autumn.
        assert_eq!(of("2026-03-29T00:59:59Z", Group::Hour), "01:00");
        assert_eq!(of("2026-03-29T01:00:00Z", Group::Hour), "03:00");
        assert_eq!(of("2026-10-25T00:30:00Z", Group::Hour), "02:00");
        assert_eq!(of("2026-10-25T01:30:00Z", Group::Hour), "02:00");
        assert_eq!(of("2026-03-28T22:59:59Z", Group::Day), "2026-03-28");
        assert_eq!(of("2026-03-28T23:00:00Z", Group::Day), "2026-03-29");
        assert_eq!(of("2026-03-29T22:00:00Z", Group::Day), "2026-03-30");
        assert_eq!(of("2026-12-31T23:00:00Z", Group::Month), "2027-01");
        // 2027 begins on a Friday: that week belongs to 2026.
        assert_eq!(of("2026-12-31T23:00:00Z", Group::Week), "2026-W53");
        let span = (at("2026-03-27T23:00:00Z"), at("2026-03-29T22:00:00Z"));
        assert_eq!(
            periods(span, span, Group::Day, &zone),
            ["2026-03-28", "2026-03-29", "2026-03-30"]
        );
        assert_eq!(
            periods(span, span, Group::Week, &zone),
            ["2026-W13", "2026-W14"]
        );
        let endless = (i64::MIN / 4, at("2026-03-29T22:00:00Z"));
        assert_eq!(periods(endless, span, Group::Day, &zone).len(), 3);
    }
}
