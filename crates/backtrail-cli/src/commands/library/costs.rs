//! What was spent, in groups.

use std::collections::HashMap;
use std::time::SystemTime;

use backtrail::Timestamp;
use backtrail_index::{Filter, Group, Index, Spending, SpendingReport, ToolRow, UsageBlock};
use backtrail_view::library::{CostRow, Costs, CostsBy, Scope};

use super::sessions::filter;
use super::{Answer, StoreLibrary, failure};
use crate::commands::stats::bars::{self, estimated, group_cost, group_tokens, weigher};
use crate::commands::stats::{By, NamedReport, blocks, tools};
use crate::error::Result;
use crate::text::{count, grouped, one_line, plus_note};

/// How many blocks are shown, the newest.
const BLOCKS: usize = 60;

pub(super) fn costs(library: &StoreLibrary, by: CostsBy, scope: Scope) -> Answer<Costs> {
    read(library, by, scope).map_err(failure)
}

fn read(library: &StoreLibrary, by: CostsBy, scope: Scope) -> Result<Costs> {
    let index = library.recent_index()?;
    let filter = filter(library, scope);
    let by = match by {
        CostsBy::Day => By::Day,
        CostsBy::Week => By::Week,
        CostsBy::Month => By::Month,
        CostsBy::Model => By::Model,
        CostsBy::Project => By::Project,
        CostsBy::Agent => By::Agent,
        CostsBy::Tag => By::Tag,
        CostsBy::Branch => By::Branch,
        CostsBy::Tool => return Ok(of_tools(&index, &filter)?),
        CostsBy::Block => return Ok(in_blocks(&index, &filter)?),
    };
    Ok(in_groups(&index, &filter, by)?)
}

fn in_groups(index: &Index, filter: &Filter, by: By) -> backtrail_index::Result<Costs> {
    let found = NamedReport::ask(index, filter, &[by])?;
    let mut sessions = sessions_by_group(index, filter, by)?;
    let groups = found.report.by.iter().zip(&found.names);
    let groups = groups.map(|(row, [name, _])| {
        let sessions = sessions.remove(&row.key).unwrap_or_default();
        (name.clone(), row.spending, sessions)
    });
    Ok(Costs {
        rows: rows(groups.collect()),
        total: total(bars::title(&found.report), &found.report.total),
    })
}

/// Returns the sessions of each group.
pub(super) fn sessions_by_group(
    index: &Index,
    filter: &Filter,
    by: By,
) -> backtrail_index::Result<HashMap<Option<String>, Vec<String>>> {
    let report = index.spending_by(filter, &[by.group(), Group::Session])?;
    let mut sessions: HashMap<_, Vec<String>> = HashMap::new();
    for row in report.by {
        sessions.entry(row.key).or_default().extend(row.second);
    }
    Ok(sessions)
}

/// Returns how often each tool was called.
fn of_tools(index: &Index, filter: &Filter) -> backtrail_index::Result<Costs> {
    let report = index.tool_calls(filter, &[Group::Tool])?;
    let by_session = index.tool_calls(filter, &[Group::Tool, Group::Session])?;
    let mut sessions: HashMap<_, Vec<String>> = HashMap::new();
    for row in by_session.by {
        sessions.entry(row.key).or_default().extend(row.second);
    }
    let longest = report.by.iter().map(|row| row.count.calls).max();
    let row = |row: ToolRow| CostRow {
        share: thousandths(row.count.calls, longest.unwrap_or(0).max(1)),
        cost: count(row.count.calls, "call"),
        tokens: match row.count.failed {
            0 => String::new(),
            failed => format!("{} failed", grouped(failed)),
        },
        sessions: sessions.remove(&row.key).unwrap_or_default(),
        name: one_line(row.key.as_deref().unwrap_or(By::Tool.unknown()), 60),
    };
    Ok(Costs {
        total: tools::title(&report.total),
        rows: report.by.into_iter().map(row).collect(),
    })
}

fn in_blocks(index: &Index, filter: &Filter) -> backtrail_index::Result<Costs> {
    let all = index.blocks(filter, Timestamp::from(SystemTime::now()))?;
    let shown = &all[all.len().saturating_sub(BLOCKS)..];
    let mut groups = Vec::with_capacity(shown.len());
    for block in shown {
        let sessions = sessions_in(index, filter, block)?;
        groups.push((blocks::name(block), block.spending, sessions));
    }
    let mut sum = Spending::default();
    all.iter().for_each(|block| sum.add(&block.spending));
    Ok(Costs {
        rows: rows(groups),
        total: total(blocks::title(&all), &sum),
    })
}

/// Returns the sessions with calls in a block.
pub(super) fn sessions_in(
    index: &Index,
    filter: &Filter,
    block: &UsageBlock,
) -> backtrail_index::Result<Vec<String>> {
    let mut filter = filter.clone();
    filter.since = Some(block.start);
    filter.until = Some(block.end);
    let SpendingReport { by, .. } = index.spending_by(&filter, &[Group::Session])?;
    Ok(by.into_iter().filter_map(|row| row.key).collect())
}

/// Returns the total in a line, with what is not included.
fn total(title: String, total: &Spending) -> String {
    let notes = plus_note(total).into_iter().chain(estimated(total));
    let parts: Vec<String> = std::iter::once(title).chain(notes).collect();
    parts.join(" · ")
}

fn rows(groups: Vec<(String, Spending, Vec<String>)>) -> Vec<CostRow> {
    let weight = weigher(groups.iter().map(|(_, spending, _)| spending));
    let longest = groups.iter().map(|(_, spending, _)| weight(spending)).max();
    let longest = longest.unwrap_or(0).max(1);
    let row = |(name, spending, sessions): (String, Spending, Vec<String>)| CostRow {
        name: one_line(&name, 60),
        cost: group_cost(&spending),
        tokens: group_tokens(&spending),
        share: thousandths(weight(&spending), longest),
        sessions,
    };
    groups.into_iter().map(row).collect()
}

pub(super) fn thousandths(part: u64, of: u64) -> u16 {
    let share = u128::from(part) * 1000 / u128::from(of);
    u16::try_from(share).unwrap_or(1000)
}

#[cfg(test)]
#[path = "costs_tests.rs"]
mod tests;
