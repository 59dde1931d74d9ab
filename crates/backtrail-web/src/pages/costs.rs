//! What was spent: plots, and the numbers in them as tables.

use backtrail_view::library::{Answer, Failure};
use maud::{Markup, PreEscaped, html};
use serde_json::{Value, json};

use super::{blocks, heat_map, links};
use crate::answer::Query;
use crate::library::{
    Amounts, DearTurn, GroupBy, NamedSession, Site, SpendingQuery, SpendingRow, SpendingView,
};

/// How many groups are shown, unless a request says otherwise.
const USUAL: usize = 30;
/// The same if a request says since when.
const SINCE: usize = 400;
/// No request is answered with more groups.
const MOST: usize = 1_000;
/// The days of a heat map.
const YEAR: usize = 371;
/// How many blocks of five hours are drawn.
const BLOCKS: usize = 48;
/// How many of the dearest are listed.
const DEAREST: usize = 15;

/// Answers with spending in groups: `by`, and which of it.
pub(crate) fn spending(site: &dyn Site, query: &Query) -> Answer<Value> {
    let query = spending_query(query, group_by(query)?)?;
    let view = site.spending(&query)?;
    Ok(json!({"html": groups(&view, query.by).into_string()}))
}

/// Answers with the days of a year as a heat map. `today` is its last day.
pub(crate) fn year(site: &dyn Site, query: &Query) -> Answer<Value> {
    let today = query.text("today").unwrap_or_default();
    let query = SpendingQuery {
        limit: YEAR,
        since: None,
        until: None,
        ..spending_query(query, GroupBy::Day)?
    };
    let view = site.spending(&query)?;
    Ok(json!({"html": heat_map::year(&view.rows, today).into_string()}))
}

/// Answers with the newest blocks of five hours.
pub(crate) fn five_hours(site: &dyn Site, query: &Query) -> Answer<Value> {
    let query = SpendingQuery {
        limit: BLOCKS,
        ..spending_query(query, GroupBy::Block)?
    };
    let view = site.spending(&query)?;
    let html = html! {
        (left_out(&view, GroupBy::Block))
        (blocks::plot(&view.rows))
        (folded_table(&view, GroupBy::Block))
    };
    Ok(json!({"html": html.into_string()}))
}

/// Answers with the sessions and the turns that cost most.
pub(crate) fn dearest(site: &dyn Site, query: &Query) -> Answer<Value> {
    let query = SpendingQuery {
        limit: DEAREST,
        ..spending_query(query, GroupBy::Session)?
    };
    let sessions = site.spending(&query)?;
    let turns = site.dearest_turns(&query)?;
    let html = html! {
        section aria-labelledby="dear-sessions" {
            h2 id="dear-sessions" { "Dearest sessions" }
            (table(&sessions, GroupBy::Session))
        }
        section aria-labelledby="dear-turns" {
            h2 id="dear-turns" { "Dearest turns" }
            (turn_table(&turns))
        }
    };
    Ok(json!({"html": html.into_string()}))
}

fn spending_query(query: &Query, by: GroupBy) -> Answer<SpendingQuery> {
    let usual = match query.text("since") {
        Some(_) if times(by).is_some() => SINCE,
        _ => USUAL,
    };
    Ok(SpendingQuery {
        by,
        scope: query.scope()?,
        since: query.text("since").map(str::to_owned),
        until: query.text("until").map(str::to_owned),
        limit: query.number("limit")?.unwrap_or(usual).min(MOST),
    })
}

fn group_by(query: &Query) -> Answer<GroupBy> {
    Ok(match query.text("by").unwrap_or("day") {
        "day" => GroupBy::Day,
        "week" => GroupBy::Week,
        "month" => GroupBy::Month,
        "model" => GroupBy::Model,
        "project" => GroupBy::Project,
        "agent" => GroupBy::Agent,
        "tool" => GroupBy::Tool,
        "session" => GroupBy::Session,
        "block" => GroupBy::Block,
        other => return Err(Failure::new(format!("nothing is grouped by {other}"))),
    })
}

fn groups(view: &SpendingView, by: GroupBy) -> Markup {
    html! {
        @if by != GroupBy::Tool { (total(&view.total)) }
        (left_out(view, by))
        @if let [first, rest @ ..] = view.notes.as_slice() {
            p.note { (first) }
            @if !rest.is_empty() {
                details.notes {
                    summary { (rest.len()) @if rest.len() == 1 { " more note" } @else { " more notes" } }
                    @for note in rest { p.note { (note) } }
                }
            }
        }
        @if view.rows.is_empty() { p.empty { "Nothing was spent in this time." } }
        @else {
            div.plot tabindex="0" role="region" aria-label="Plot" { (PreEscaped(&view.svg)) }
            (folded_table(view, by))
        }
    }
}

/// Returns the total as a few large numbers.
fn total(total: &SpendingRow) -> Markup {
    html! {
        dl.totals {
            (figure("Cost", &total.cost))
            (figure("Tokens", &total.tokens))
            (figure("Model calls", &grouped(total.amounts.calls)))
            (figure("Cache hit rate", &hit_rate(&total.amounts)))
        }
    }
}

fn figure(name: &str, value: &str) -> Markup {
    let value = match value {
        "" => "unknown",
        value => value,
    };
    html! { div { dt { (name) } dd { (value) } } }
}

fn folded_table(view: &SpendingView, by: GroupBy) -> Markup {
    html! {
        details.numbers-of { summary { b { "The numbers" } span { "as a table" } } (table(view, by)) }
    }
}

/// Says how many groups are not shown, and whether the total has them.
fn left_out(view: &SpendingView, by: GroupBy) -> Markup {
    let shown = view.rows.len() as u64;
    let left = grouped(view.all.saturating_sub(shown));
    html! {
        @if view.all > shown {
            p.note {
                @match times(by) {
                    Some(times) => {
                        "The newest " (grouped(shown)) " of " (grouped(view.all)) " " (times)
                        ", and their total. Choose Since to see earlier ones."
                    }
                    None => { (left) " more are in the total and not shown." }
                }
            }
        }
    }
}

/// Returns what groups are called if they are times.
fn times(by: GroupBy) -> Option<&'static str> {
    match by {
        GroupBy::Day => Some("days"),
        GroupBy::Week => Some("weeks"),
        GroupBy::Month => Some("months"),
        GroupBy::Block => Some("blocks"),
        _ => None,
    }
}

/// Returns the numbers of groups and of their total.
fn table(view: &SpendingView, by: GroupBy) -> Markup {
    let columns: &[&str] = match by {
        GroupBy::Tool => &["Calls"],
        _ => &[
            "Cost",
            "Tokens",
            "Calls",
            "Input",
            "Output",
            "Cache read",
            "Cache write",
            "Cache hits",
        ],
    };
    html! {
        div.wide tabindex="0" role="region" aria-label={ "Numbers by " (heading(by).to_lowercase()) } { table.amounts {
            thead { tr {
                th scope="col" { (heading(by)) }
                @for column in columns { th.right scope="col" { (column) } }
            } }
            tbody { @for row in &view.rows { (table_row(row, by)) } }
            @if by != GroupBy::Session { tfoot { (table_row(&view.total, by)) } }
        } }
    }
}

fn table_row(row: &SpendingRow, by: GroupBy) -> Markup {
    let amounts = &row.amounts;
    html! {
        tr {
            th scope="row" { (group_name(row, by)) }
            @if by == GroupBy::Tool { (cell(&grouped(amounts.calls))) }
            @else {
                (cell(&row.cost))
                (cell(&row.tokens))
                @for number in [amounts.calls, amounts.input, amounts.output, amounts.cache_read, amounts.cache_write] {
                    (cell(&grouped(number)))
                }
                (cell(&hit_rate(amounts)))
            }
        }
    }
}

fn cell(text: &str) -> Markup {
    html! { td.right { (text) } }
}

/// Returns the name of a group, with the way to its sessions.
fn group_name(row: &SpendingRow, by: GroupBy) -> Markup {
    let filter = match by {
        GroupBy::Day | GroupBy::Month => {
            links::parameters(&[("since", &row.key), ("until", &row.key)])
        }
        GroupBy::Model => links::parameters(&[("model", &row.key)]),
        GroupBy::Project => links::parameters(&[("project", &row.key)]),
        GroupBy::Agent => links::parameters(&[("agent", &row.key)]),
        _ => String::new(),
    };
    html! {
        @if row.key.is_empty() || row.name == "total" { (row.name) }
        @else if by == GroupBy::Session { a href=(links::session(&row.key)) { (row.name) } }
        @else if !filter.is_empty() { a href={ "/?" (filter) } { (row.name) } }
        @else { (row.name) (sessions_of(row)) }
    }
}

fn sessions_of(row: &SpendingRow) -> Markup {
    html! {
        @if !row.sessions.is_empty() {
            details.its-sessions {
                summary { (row.sessions.len()) @if row.sessions.len() == 1 { " session" } @else { " sessions" } }
                ul { @for session in &row.sessions { li { (session_link(session)) } } }
            }
        }
    }
}

fn session_link(session: &NamedSession) -> Markup {
    html! {
        a href=(links::session(&session.id)) {
            @if session.title.is_empty() { "(no title)" } @else { (session.title) }
        }
        " " code { (session.short) }
    }
}

fn heading(by: GroupBy) -> &'static str {
    match by {
        GroupBy::Day => "Day",
        GroupBy::Week => "Week",
        GroupBy::Month => "Month",
        GroupBy::Model => "Model",
        GroupBy::Project => "Project",
        GroupBy::Agent => "Agent",
        GroupBy::Tool => "Tool",
        GroupBy::Session => "Session",
        GroupBy::Block => "Block of five hours",
    }
}

fn turn_table(turns: &[DearTurn]) -> Markup {
    html! {
        @if turns.is_empty() { p.empty { "No turn has a known cost." } }
        @else {
            div.wide tabindex="0" role="region" aria-label="Numbers of the dearest turns" { table.amounts {
                thead { tr {
                    th scope="col" { "Turn" } th scope="col" { "Session" }
                    th.right scope="col" { "Cost" } th.right scope="col" { "Tokens" }
                } }
                @for turn in turns {
                    tr {
                        th scope="row" { a href={ (links::session(&turn.session)) "#r" (turn.seq) } { (turn.prompt) } }
                        td { (turn.title) }
                        (cell(&turn.cost))
                        (cell(&turn.tokens))
                    }
                }
            } }
        }
    }
}

/// Returns how much of what was sent came from a cache.
fn hit_rate(amounts: &Amounts) -> String {
    let sent = [amounts.input, amounts.cache_read, amounts.cache_write];
    let sent: u128 = sent.into_iter().map(u128::from).sum();
    match sent {
        0 => String::new(),
        sent => format!("{} %", u128::from(amounts.cache_read) * 100 / sent),
    }
}

/// Returns a number with a comma between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    let groups = groups.map(|group| String::from_utf8_lossy(group));
    groups.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_groups() {
        let all = [0, 12, 999, 1_000, 1_234_567].map(grouped);
        assert_eq!(all, ["0", "12", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn the_hit_rate_is_the_share_of_what_was_sent() {
        let amounts = Amounts {
            input: 10,
            cache_read: 80,
            cache_write: 10,
            output: 1_000,
            ..Amounts::default()
        };
        assert_eq!(hit_rate(&amounts), "80 %");
        assert_eq!(hit_rate(&Amounts::default()), "");
        let large = Amounts {
            input: u64::MAX,
            cache_read: u64::MAX,
            ..Amounts::default()
        };
        assert_eq!(hit_rate(&large), "50 %");
    }
}
