//! Spending: its head, its totals and its plot.

use backtrail::Timestamp;
use backtrail_index::{Spending, SpendingReport, UnpricedModel};

use super::Averages;
use super::plot::{Plot, PlotRow};
use crate::layout::{BOLD, DIM, hanging, pad_start};
use crate::text::{cost, count, grouped, money, one_line, plus_note, short_number, tokens};
use crate::when;

/// Writes a title in at most `width` columns.
pub(super) fn head(title: &str, width: Option<usize>) -> String {
    format!("{BOLD}{}{BOLD:#}\n", hanging(0, title, width))
}

/// Says when it was, how many calls there were and what they cost.
pub(in crate::commands) fn title(report: &SpendingReport) -> String {
    let mut parts = Vec::new();
    parts.extend(report.span.map(|(first, last)| span(first, last)));
    parts.push(count(report.sessions, "session"));
    parts.push(count(report.total.calls, "call"));
    parts.extend(Some(cost(&report.total)).filter(|cost| !cost.is_empty()));
    parts.join(" · ")
}

/// Writes from when to when: a day, a month, or both ends.
fn span(first: Timestamp, last: Timestamp) -> String {
    let day = |at: Timestamp| when::full(at).chars().take(10).collect::<String>();
    let (first_day, last_day) = (day(first), day(last));
    match (first_day.get(..7), last_day.get(..7)) {
        _ if first_day == last_day => first_day,
        (Some(first), Some(last)) if first == last => when::month(first),
        _ => format!("{first_day} to {last_day}"),
    }
}

/// Returns the plot of groups: their cost, share and tokens. If nothing has a price, tokens are
/// compared. Rows with two names are parts of a group.
pub(super) fn plot(rows: Vec<([String; 2], Spending)>, total: &Spending) -> Plot {
    let weight = weigher(rows.iter().map(|(_, spending)| spending));
    let all = weight(total);
    let row = |name: &str, is_part: bool, spending: &Spending| PlotRow {
        name: name.to_owned(),
        is_part,
        weight: weight(spending),
        cells: cells(spending, weight(spending), all),
    };
    let mut sums: Vec<(String, Spending, Vec<PlotRow>)> = Vec::new();
    for ([first, second], spending) in &rows {
        if sums.last().is_none_or(|(name, ..)| name != first) {
            sums.push((first.clone(), Spending::default(), Vec::new()));
        }
        if let Some((_, sum, parts)) = sums.last_mut() {
            sum.add(spending);
            if !second.is_empty() {
                parts.push(row(second, true, spending));
            }
        }
    }
    let rows = sums
        .into_iter()
        .flat_map(|(name, sum, parts)| std::iter::once(row(&name, false, &sum)).chain(parts));
    Plot {
        columns: vec![
            "COST", "SHARE", "INPUT", "OUTPUT", "READ", "WRITE", "TOKENS",
        ],
        choices: vec![
            vec![0, 1, 2, 3, 4, 5],
            vec![0, 2, 3, 4, 5],
            vec![0, 1, 6],
            vec![0, 6],
            vec![0],
        ],
        rows: rows.collect(),
    }
}

/// Returns what the bars of groups compare: costs, or tokens if nothing has a price.
pub(in crate::commands) fn weigher<'a>(
    mut groups: impl Iterator<Item = &'a Spending>,
) -> fn(&Spending) -> u64 {
    match groups.any(|spending| spending.cost.0 > 0) {
        true => |spending| u64::try_from(spending.cost.0).unwrap_or(0),
        false => Spending::tokens,
    }
}

/// Returns the cells behind the bar: cost, share of all, tokens.
fn cells(spending: &Spending, weight: u64, all: u64) -> Vec<String> {
    let is_priced = spending.calls > spending.unpriced_calls;
    let cost = group_cost(spending);
    let share = match (weight, all) {
        _ if !is_priced => String::new(),
        (0, _) | (_, 0) => String::new(),
        (weight, all) => pad_start(&percent(weight as f64 / all as f64), 5),
    };
    let number = |n: u64| match spending.calls {
        0 => String::new(),
        _ => short_number(n),
    };
    vec![
        cost,
        share,
        number(spending.input_tokens),
        number(spending.output_tokens),
        number(spending.cache_read_tokens),
        number(spending.cache_write_tokens),
        group_tokens(spending),
    ]
}

/// Returns what a group cost.
pub(in crate::commands) fn group_cost(spending: &Spending) -> String {
    match spending.calls {
        0 if spending.estimated_calls > 0 => "estimated".to_owned(),
        0 => String::new(),
        _ => cost(spending),
    }
}

/// Returns how many tokens a group used.
pub(in crate::commands) fn group_tokens(spending: &Spending) -> String {
    match spending.calls + spending.estimated_calls {
        0 => String::new(),
        _ => tokens(spending),
    }
}

/// Writes a share of all; little is not nothing, and nearly all is not all.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        percent if percent < 0.5 => "<1 %".to_owned(),
        percent if (99.5..99.999_999).contains(&percent) => ">99 %".to_owned(),
        percent => format!("{percent:.0} %"),
    }
}

/// Writes what was spent in all.
pub(super) fn totals(
    total: &Spending,
    averages: Option<&Averages>,
    width: Option<usize>,
) -> String {
    let mut out = String::new();
    let mut row = |name: &str, text: String| {
        let room = width.map_or(usize::MAX, |width| width.saturating_sub(12).max(8));
        out += &format!("{DIM}{name:<12}{DIM:#}{}\n", one_line(&text, room));
    };
    if total.calls > 0 {
        for (name, tokens) in [
            ("input", total.input_tokens),
            ("output", total.output_tokens),
            ("cache read", total.cache_read_tokens),
            ("cache write", total.cache_write_tokens),
        ] {
            row(name, grouped(tokens));
        }
        if total.reasoning_tokens > 0 {
            let reasoning = grouped(total.reasoning_tokens);
            row("reasoning", format!("{reasoning}, part of the output"));
        }
    }
    row("cost", spent(total, ""));
    let is_priced = total.calls > total.unpriced_calls;
    for (name, thing, n) in averages.iter().flat_map(|averages| averages.each()) {
        let (cost, tokens) = averages.map_or_else(Default::default, |averages| averages.of(n));
        let cost = if is_priced {
            format!("{}, ", money(cost))
        } else {
            String::new()
        };
        let calls = if thing == "day" { " with calls" } else { "" };
        let of = format!("{}{calls}", count(n, thing));
        row(
            name,
            format!("{cost}{} tokens ({of})", short_number(tokens)),
        );
    }
    out
}

/// Says what was spent, in how many calls, and whether providers reported it.
pub(super) fn spent(total: &Spending, calls: &str) -> String {
    let priced = total.calls.saturating_sub(total.unpriced_calls);
    if priced == 0 {
        return format!("unpriced{calls}");
    }
    let by = match total.reported_calls {
        0 => "",
        reported if reported >= priced => ", reported by the providers",
        _ => ", partly reported by the providers",
    };
    format!("{}{calls}{by}", cost(total))
}

/// How many unpriced models are listed.
const UNPRICED: usize = 10;

/// Writes what a `+` means, and which models have no price.
pub(super) fn price_remarks(
    total: &Spending,
    unpriced: &[UnpricedModel],
    width: Option<usize>,
) -> String {
    let notes = price_notes(total, unpriced);
    notes.iter().map(|text| remark(text, width)).collect()
}

/// Says what a `+` means, and which models have no price, a line each.
pub(in crate::commands) fn price_notes(
    total: &Spending,
    unpriced: &[UnpricedModel],
) -> Vec<String> {
    let mut notes: Vec<String> = plus_note(total).into_iter().collect();
    notes.extend(unpriced.iter().take(UNPRICED).map(|model| {
        let name = one_line(model.model.as_deref().unwrap_or("no model"), 60);
        let (calls, tokens) = (count(model.calls, "call"), short_number(model.tokens));
        format!("unpriced: {name}, {calls}, {tokens} tokens")
    }));
    let more = unpriced.len().saturating_sub(UNPRICED);
    if more > 0 {
        let more = count(more, "more model");
        notes.push(format!("unpriced: {more} (--json lists all)"));
    }
    notes
}

/// Writes a remark in at most `width` columns.
pub(super) fn remark(text: &str, width: Option<usize>) -> String {
    format!("{DIM}{}{DIM:#}\n", hanging(0, text, width))
}

/// Writes what is not in the numbers.
pub(super) fn remarks(
    total: &Spending,
    unpriced: &[UnpricedModel],
    width: Option<usize>,
) -> String {
    let mut out = price_remarks(total, unpriced, width);
    if let Some(text) = estimated(total) {
        out += &remark(&text, width);
    }
    out
}

/// Says how many tokens are estimated.
pub(in crate::commands) fn estimated(total: &Spending) -> Option<String> {
    let tokens = short_number(total.estimated_tokens);
    let calls = count(total.estimated_calls, "call");
    let text = format!("plus about {tokens} estimated tokens ({calls}), not included");
    (total.estimated_calls > 0).then_some(text)
}

#[cfg(test)]
#[path = "bars_tests.rs"]
mod tests;
