//! What was spent, in groups, with the plot that `stats --svg` draws.

use std::collections::HashMap;
use std::time::SystemTime;

use backtrail::{SessionId, Timestamp};
use backtrail_index::{Filter, Group, Index, Spending, SpendingRow as GroupRow, ToolCount};
use backtrail_web::library::{
    Amounts, GroupBy, NamedSession, SpendingQuery, SpendingRow, SpendingView,
};
use jiff::civil::{ISOWeekDate, Weekday};

use super::super::costs::{sessions_by_group, sessions_in, thousandths};
use super::super::{Answer, StoreLibrary, failure};
use super::find_sessions::scoped;
use crate::commands::conversation::NO_TITLE;
use crate::commands::filters::NamedFilters;
use crate::commands::search::groups::title;
use crate::commands::stats::bars::{estimated, group_cost, group_tokens, price_notes, weigher};
use crate::commands::stats::{By, NamedReport, blocks, shown, tools};
use crate::error::Result;
use crate::short::{know, short};
use crate::text::{one_line, visible};

/// The sessions of a group are not named if they are more.
const MOST_SESSIONS: usize = 200;

pub(super) fn spending(library: &StoreLibrary, query: &SpendingQuery) -> Answer<SpendingView> {
    let read = || -> Result<SpendingView> {
        let index = library.recent_index()?;
        let filter = filter(library, query)?;
        match by(query.by) {
            Grouping::By(By::Tool) => of_tools(&index, &filter, query.limit),
            Grouping::By(by) => in_groups(library, &index, query, by),
            Grouping::Blocks => in_blocks(&index, &filter, query.limit),
        }
    };
    read().map_err(failure)
}

/// Returns the filter of a query, as the options of `stats` make it.
pub(super) fn filter(library: &StoreLibrary, query: &SpendingQuery) -> Result<Filter> {
    let named = NamedFilters {
        agents: &[],
        projects: &[],
        models: &[],
        tags: &[],
        since: &query.since,
        until: &query.until,
    };
    scoped(library, query.scope, named)
}

/// How calls are grouped.
enum Grouping {
    By(By),
    Blocks,
}

fn by(by: GroupBy) -> Grouping {
    Grouping::By(match by {
        GroupBy::Day => By::Day,
        GroupBy::Week => By::Week,
        GroupBy::Month => By::Month,
        GroupBy::Model => By::Model,
        GroupBy::Project => By::Project,
        GroupBy::Agent => By::Agent,
        GroupBy::Tool => By::Tool,
        GroupBy::Session => By::Session,
        GroupBy::Block => return Grouping::Blocks,
    })
}

fn in_groups(
    library: &StoreLibrary,
    index: &Index,
    query: &SpendingQuery,
    by: By,
) -> Result<SpendingView> {
    let mut filter = filter(library, query)?;
    let mut found = NamedReport::ask(index, &filter, &[by])?;
    let all = found.report.by.len();
    let mut range = shown(all, query.limit, by.is_time());
    // A total above newer times is theirs.
    if range.start > 0
        && let Some(span) = span_of(query, &found.report.by[range.clone()])
    {
        filter = self::filter(library, &span)?;
        found = NamedReport::ask(index, &filter, &[by])?;
        range = shown(found.report.by.len(), query.limit, true);
    }
    let mut sessions = match by {
        By::Week => sessions_by_group(index, &filter, by)?,
        _ => HashMap::new(),
    };
    let groups = found.report.by[range.clone()].iter();
    let groups = groups
        .zip(&found.names[range.clone()])
        .map(|(row, names)| Spent {
            name: names[0].clone(),
            key: row.key.clone().unwrap_or_default(),
            spending: row.spending,
            sessions: sessions.remove(&row.key).unwrap_or_default(),
        });
    let groups = groups.collect();
    let total = &found.report.total;
    let mut notes = price_notes(total, &found.unpriced);
    notes.extend(estimated(total));
    Ok(SpendingView {
        rows: rows(index, &filter, groups)?,
        all: all as u64,
        total: total_row(total),
        notes,
        svg: found.picture(range),
    })
}

/// Returns the query of the time from the first of some groups to the last; `None` if a group has
/// no time.
fn span_of(query: &SpendingQuery, groups: &[GroupRow]) -> Option<SpendingQuery> {
    let (first, last) = (groups.first()?, groups.last()?);
    let (since, _) = days_of(first.key.as_deref()?)?;
    let (_, until) = days_of(last.key.as_deref()?)?;
    Some(SpendingQuery {
        since: Some(since),
        until: query.until.clone().or(Some(until)),
        ..query.clone()
    })
}

/// Returns the first and the last day of a day, a month or an ISO week, as filters take them.
fn days_of(key: &str) -> Option<(String, String)> {
    let Some((year, week)) = key.split_once("-W") else {
        return Some((key.to_owned(), key.to_owned()));
    };
    let day = |weekday| {
        let week = ISOWeekDate::new(year.parse().ok()?, week.parse().ok()?, weekday);
        Some(week.ok()?.date().to_string())
    };
    Some((day(Weekday::Monday)?, day(Weekday::Sunday)?))
}

fn in_blocks(index: &Index, filter: &Filter, limit: usize) -> Result<SpendingView> {
    let all = index.blocks(filter, Timestamp::from(SystemTime::now()))?;
    let newest = &all[shown(all.len(), limit, true)];
    let mut filter = filter.clone();
    if newest.len() < all.len() {
        filter.since = newest.first().map(|block| block.start);
    }
    let mut groups = Vec::with_capacity(newest.len());
    for block in newest {
        groups.push(Spent {
            name: blocks::name(block),
            key: block.start.to_string(),
            spending: block.spending,
            sessions: sessions_in(index, &filter, block)?,
        });
    }
    let mut total = Spending::default();
    newest.iter().for_each(|block| total.add(&block.spending));
    let mut notes = price_notes(&total, &index.unpriced(&filter)?);
    notes.extend(estimated(&total));
    Ok(SpendingView {
        rows: rows(index, &filter, groups)?,
        all: all.len() as u64,
        total: total_row(&total),
        notes,
        svg: blocks::picture(newest, newest),
    })
}

fn of_tools(index: &Index, filter: &Filter, limit: usize) -> Result<SpendingView> {
    let report = index.tool_calls(filter, &[Group::Tool])?;
    let range = shown(report.by.len(), limit, By::Tool.is_time());
    let named = report.by[range].iter().map(|row| {
        let name = row.key.as_deref().unwrap_or(By::Tool.unknown());
        (name.to_owned(), row.count)
    });
    let named: Vec<(String, ToolCount)> = named.collect();
    let longest = named.iter().map(|(_, count)| count.calls).max();
    let longest = longest.unwrap_or(0).max(1);
    let row = |(name, count): &(String, ToolCount)| SpendingRow {
        share: thousandths(count.calls, longest),
        ..tool_row(name, count)
    };
    Ok(SpendingView {
        rows: named.iter().map(row).collect(),
        all: report.by.len() as u64,
        total: tool_row("total", &report.total),
        notes: vec!["tokens cannot be divided among tools".to_owned()],
        svg: tools::picture(&named, &report.total),
    })
}

fn tool_row(name: &str, count: &ToolCount) -> SpendingRow {
    SpendingRow {
        name: one_line(name, 60),
        key: name.to_owned(),
        amounts: Amounts {
            calls: count.calls,
            ..Amounts::default()
        },
        ..SpendingRow::default()
    }
}

/// A group.
struct Spent {
    name: String,
    key: String,
    spending: Spending,
    sessions: Vec<String>,
}

fn rows(index: &Index, filter: &Filter, groups: Vec<Spent>) -> Result<Vec<SpendingRow>> {
    let names = names(index, filter, &groups)?;
    let weight = weigher(groups.iter().map(|group| &group.spending));
    let longest = groups.iter().map(|group| weight(&group.spending)).max();
    let longest = longest.unwrap_or(0).max(1);
    let row = |group: Spent| SpendingRow {
        key: group.key,
        share: thousandths(weight(&group.spending), longest),
        sessions: match group.sessions.len() {
            0..=MOST_SESSIONS => group.sessions.iter().map(|id| named(id, &names)).collect(),
            _ => Vec::new(),
        },
        ..spent_row(&group.name, &group.spending)
    };
    Ok(groups.into_iter().map(row).collect())
}

/// Returns what the sessions of groups are called, if groups have sessions.
fn names(index: &Index, filter: &Filter, groups: &[Spent]) -> Result<HashMap<String, String>> {
    if groups.iter().all(|group| group.sessions.is_empty()) {
        return Ok(HashMap::new());
    }
    know(|| index.short_ids().ok());
    let rows = index.sessions(filter)?.into_iter();
    let rows = rows.map(|row| {
        let title = title(&row).unwrap_or(NO_TITLE);
        (row.id.to_string(), one_line(&visible(title), 80))
    });
    Ok(rows.collect())
}

fn named(id: &str, names: &HashMap<String, String>) -> NamedSession {
    let parsed = id.parse::<SessionId>();
    NamedSession {
        id: id.to_owned(),
        short: parsed.map_or_else(|_| String::new(), |id| short(&id)),
        title: names.get(id).cloned().unwrap_or_default(),
    }
}

fn total_row(total: &Spending) -> SpendingRow {
    SpendingRow {
        key: "total".to_owned(),
        share: 1000,
        ..spent_row("total", total)
    }
}

fn spent_row(name: &str, spending: &Spending) -> SpendingRow {
    SpendingRow {
        name: one_line(name, 80),
        amounts: amounts(spending),
        cost: group_cost(spending),
        tokens: group_tokens(spending),
        ..SpendingRow::default()
    }
}

/// Returns amounts; the cost is none if nothing has a price.
fn amounts(spending: &Spending) -> Amounts {
    let has_price = spending.calls > spending.unpriced_calls;
    Amounts {
        calls: spending.calls,
        input: spending.input_tokens,
        output: spending.output_tokens,
        cache_read: spending.cache_read_tokens,
        cache_write: spending.cache_write_tokens,
        micro_dollars: has_price.then(|| spending.cost.0.saturating_add(500).div_euclid(1000)),
    }
}
