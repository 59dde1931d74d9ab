//! What was spent, in groups, with the plot that `stats --svg` draws.

use std::collections::HashMap;
use std::time::SystemTime;

use backtrail::Timestamp;
use backtrail_index::{Filter, Group, Index, Spending, ToolCount};
use backtrail_web::library::{Amounts, GroupBy, SpendingQuery, SpendingRow, SpendingView};

use super::super::costs::{sessions_by_group, sessions_in, thousandths};
use super::super::{Answer, StoreLibrary, failure};
use super::find_sessions::scoped;
use crate::commands::filters::NamedFilters;
use crate::commands::stats::bars::{estimated, group_cost, group_tokens, price_notes, weigher};
use crate::commands::stats::{By, NamedReport, blocks, shown, tools};
use crate::error::Result;
use crate::text::one_line;

/// The sessions of a group are not named if they are more.
const MOST_SESSIONS: usize = 200;

pub(super) fn spending(library: &StoreLibrary, query: &SpendingQuery) -> Answer<SpendingView> {
    let read = || -> Result<SpendingView> {
        let index = library.recent_index()?;
        let filter = filter(library, query)?;
        match by(query.by) {
            Grouping::By(By::Tool) => of_tools(&index, &filter, query.limit),
            Grouping::By(by) => in_groups(&index, &filter, by, query.limit),
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

fn in_groups(index: &Index, filter: &Filter, by: By, limit: usize) -> Result<SpendingView> {
    let found = NamedReport::ask(index, filter, &[by])?;
    let all = found.report.by.len();
    let range = shown(all, limit, by.is_time());
    let mut sessions = match by {
        By::Session => HashMap::new(),
        by => sessions_by_group(index, filter, by)?,
    };
    let groups = found.report.by[range.clone()].iter();
    let groups = groups.zip(&found.names[range.clone()]).map(|(row, names)| {
        let own = row.key.iter().filter(|_| matches!(by, By::Session));
        let sessions = sessions.remove(&row.key);
        Spent {
            name: names[0].clone(),
            key: row.key.clone().unwrap_or_default(),
            spending: row.spending,
            sessions: sessions.unwrap_or_else(|| own.cloned().collect()),
        }
    });
    let total = &found.report.total;
    let mut notes = price_notes(total, &found.unpriced);
    notes.extend(estimated(total));
    Ok(SpendingView {
        rows: rows(groups.collect()),
        all: all as u64,
        total: total_row(total),
        notes,
        svg: found.picture(range),
    })
}

fn in_blocks(index: &Index, filter: &Filter, limit: usize) -> Result<SpendingView> {
    let all = index.blocks(filter, Timestamp::from(SystemTime::now()))?;
    let newest = &all[shown(all.len(), limit, true)];
    let mut groups = Vec::with_capacity(newest.len());
    for block in newest {
        groups.push(Spent {
            name: blocks::name(block),
            key: block.start.to_string(),
            spending: block.spending,
            sessions: sessions_in(index, filter, block)?,
        });
    }
    let mut total = Spending::default();
    all.iter().for_each(|block| total.add(&block.spending));
    let mut notes = price_notes(&total, &index.unpriced(filter)?);
    notes.extend(estimated(&total));
    Ok(SpendingView {
        rows: rows(groups),
        all: all.len() as u64,
        total: total_row(&total),
        notes,
        svg: blocks::picture(newest, &all),
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

fn rows(groups: Vec<Spent>) -> Vec<SpendingRow> {
    let weight = weigher(groups.iter().map(|group| &group.spending));
    let longest = groups.iter().map(|group| weight(&group.spending)).max();
    let longest = longest.unwrap_or(0).max(1);
    let row = |mut group: Spent| {
        if group.sessions.len() > MOST_SESSIONS {
            group.sessions.clear();
        }
        SpendingRow {
            key: group.key,
            share: thousandths(weight(&group.spending), longest),
            sessions: group.sessions,
            ..spent_row(&group.name, &group.spending)
        }
    };
    groups.into_iter().map(row).collect()
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
