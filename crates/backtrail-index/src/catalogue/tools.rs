//! Calls of tools, in groups.

use std::collections::{BTreeMap, HashSet};

use jiff::tz::TimeZone;

use super::Catalogue;
use super::spending::{Groups, Keys};
use crate::error::Result;
use crate::filter::Filter;
use crate::rows::{Group, ToolCount, ToolReport, ToolRow};

impl Catalogue {
    /// Counts the calls of tools that match a filter. A call that a session copied from another
    /// one, with its id and time, counts once.
    pub(crate) fn tools(
        &self,
        filter: &Filter,
        by: &[Group],
        zone: &TimeZone,
    ) -> Result<ToolReport> {
        let groups = Groups::read(self, filter, by, zone)?;
        let models: Vec<String> = filter.models.iter().map(|it| it.to_lowercase()).collect();
        let mut seen = HashSet::new();
        let mut report = ToolReport::default();
        let mut parts: BTreeMap<Keys, (ToolCount, HashSet<i64>)> = BTreeMap::new();
        let sql = "SELECT t.session, c.name, c.id, c.at, c.model, c.failed, c.ms
            FROM tool_calls AS c JOIN trails AS t ON t.key = c.trail
            JOIN sessions AS s ON s.key = t.session ORDER BY s.created_at, s.id";
        let () = self.rows(sql, [], |row| {
            let session: i64 = row.get(0)?;
            let (name, id): (String, String) = (row.get(1)?, row.get(2)?);
            let at: Option<i64> = row.get(3)?;
            let model: Option<String> = row.get(4)?;
            let fits = fits_time(filter, at) && fits_model(&models, model.as_deref());
            let Some(keys) = groups.of(session, model.as_deref(), at, Some(&name)) else {
                return Ok(());
            };
            let is_copy = !id.is_empty() && at.is_some() && !seen.insert((id, at, name));
            if !fits || is_copy {
                return Ok(());
            }
            let failed: Option<bool> = row.get(5)?;
            let ms: Option<i64> = row.get(6)?;
            let one = ToolCount {
                calls: 1,
                failed: u64::from(failed == Some(true)),
                open: u64::from(failed.is_none()),
                timed: u64::from(ms.is_some()),
                ms: ms.unwrap_or(0).unsigned_abs(),
            };
            report.total.add(&one);
            for keys in keys {
                let (count, sessions) = parts.entry(keys).or_default();
                count.add(&one);
                sessions.insert(session);
            }
            Ok(())
        })?;
        report.by = parts.into_iter().map(row_of).collect();
        sort(&mut report.by, by);
        Ok(report)
    }
}

fn fits_time(filter: &Filter, at: Option<i64>) -> bool {
    if filter.since.is_none() && filter.until.is_none() {
        return true;
    }
    at.is_some_and(|at| {
        filter.since.is_none_or(|since| at >= since.as_millis())
            && filter.until.is_none_or(|until| at < until.as_millis())
    })
}

fn fits_model(models: &[String], model: Option<&str>) -> bool {
    let model = model.unwrap_or_default().to_lowercase();
    models.is_empty() || models.iter().any(|part| model.contains(part.as_str()))
}

fn row_of((keys, (count, sessions)): (Keys, (ToolCount, HashSet<i64>))) -> ToolRow {
    let mut keys = keys.into_iter();
    ToolRow {
        key: keys.next().flatten(),
        second: keys.next().flatten(),
        count,
        sessions: sessions.len() as u64,
    }
}

/// Sorts times by themselves and everything else by the number of calls.
fn sort(rows: &mut [ToolRow], by: &[Group]) {
    let mut sums: BTreeMap<Option<String>, u64> = BTreeMap::new();
    for row in rows.iter() {
        *sums.entry(row.key.clone()).or_default() += row.count.calls;
    }
    let is_time = |place: usize| by.get(place).is_some_and(|by| by.is_time());
    let weight = |place, calls: u64| std::cmp::Reverse(if is_time(place) { 0 } else { calls });
    rows.sort_by_cached_key(|row| {
        let first = (
            weight(0, sums.get(&row.key).copied().unwrap_or(0)),
            row.key.clone(),
        );
        (first, (weight(1, row.count.calls), row.second.clone()))
    });
}
