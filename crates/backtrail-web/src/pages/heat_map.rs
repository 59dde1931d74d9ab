//! A year of days. Each is a square whose size and colour say how much was spent, so that it can be
//! read without colours; a table has the numbers.

use std::collections::HashMap;

use jiff::ToSpan;
use jiff::civil::Date;
use maud::{Markup, html};

use super::links;
use crate::library::SpendingRow;

/// The weeks that are shown.
const WEEKS: i64 = 53;
/// The width and height of a day.
const CELL: i64 = 14;
const LEFT: i64 = 34;
const TOP: i64 = 20;

/// Returns the year that ends with a day, `2026-11-18`; without one, with the last day that
/// something was spent on.
pub(super) fn year(rows: &[SpendingRow], today: &str) -> Markup {
    let spent: HashMap<Date, &SpendingRow> = rows
        .iter()
        .filter_map(|row| Some((row.key.parse().ok()?, row)))
        .collect();
    let last = today.parse().ok().or_else(|| spent.keys().max().copied());
    let Some(last) = last else {
        return html! { p.empty { "Nothing was spent yet." } };
    };
    let days = days_until(last);
    html! {
        div.plot tabindex="0" role="region" aria-label="Plot of the year" {
            (picture(&days, &spent))
        }
        (legend())
    }
}

/// Returns the days of whole weeks that end with a day. Weeks begin on Monday.
fn days_until(last: Date) -> Vec<(i64, Date)> {
    let weekday = i64::from(last.weekday().to_monday_zero_offset());
    let count = (WEEKS - 1) * 7 + weekday;
    let day = |at: i64| Some((at, last.checked_sub((count - at).days()).ok()?));
    (0..=count).filter_map(day).collect()
}

fn picture(days: &[(i64, Date)], spent: &HashMap<Date, &SpendingRow>) -> Markup {
    let most = days.iter().filter_map(|(_, day)| spent.get(day));
    let most = most.map(|row| weight(row)).max().unwrap_or(0);
    let (width, height) = (LEFT + WEEKS * CELL, TOP + 7 * CELL);
    html! {
        svg.heat viewBox={ "0 0 " (width) " " (height) } width=(width) height=(height) role="img"
            aria-label="What each day of a year cost; the table of days has the numbers" {
            (month_names(days))
            @for (row, name) in [(0, "Mon"), (2, "Wed"), (4, "Fri")] {
                text.dim x="0" y=(TOP + row * CELL + 11) { (name) }
            }
            @for (at, day) in days { (cell(*at, *day, spent.get(day).copied(), most)) }
        }
    }
}

fn month_names(days: &[(i64, Date)]) -> Markup {
    let firsts = days.iter().filter(|(_, day)| day.day() == 1);
    html! {
        @for (at, day) in firsts {
            text.dim x=(LEFT + at / 7 * CELL) y="12" { (day.strftime("%b")) }
        }
    }
}

fn cell(at: i64, day: Date, row: Option<&SpendingRow>, most: u64) -> Markup {
    let level = row.map_or(0, |row| level(weight(row), most));
    // The more was spent, the larger the square is.
    let size = [4, 6, 8, 10, 12][level];
    let inset = (CELL - size) / 2;
    let (x, y) = (LEFT + at / 7 * CELL + inset, TOP + at % 7 * CELL + inset);
    let key = day.to_string();
    let words = match row {
        Some(row) => format!("{key}: {}, {} tokens", row.cost, row.tokens),
        None => format!("{key}: nothing"),
    };
    let sessions = format!(
        "/?{}",
        links::parameters(&[("since", &key), ("until", &key)])
    );
    html! {
        rect class={ "heat h" (level) } x=(x) y=(y) width=(size) height=(size) rx="2"
            data-href=[row.map(|_| sessions)] { title { (words) } }
    }
}

/// Returns what a day weighs: its cost.
fn weight(row: &SpendingRow) -> u64 {
    let amounts = &row.amounts;
    let cost = amounts
        .micro_dollars
        .and_then(|cost| u64::try_from(cost).ok());
    cost.unwrap_or(0)
}

/// Returns 1 to 4 for what is something, by its part of the most: a day of a hundred times another
/// leaves the other visible.
fn level(weight: u64, most: u64) -> usize {
    match () {
        () if weight == 0 => 0,
        () if weight > most / 2 => 4,
        () if weight > most / 5 => 3,
        () if weight > most / 20 => 2,
        () => 1,
    }
}

fn legend() -> Markup {
    html! {
        p.legend {
            "less "
            svg width=(5 * CELL) height=(CELL) aria-hidden="true" {
                @for (n, size) in [4, 6, 8, 10, 12].into_iter().enumerate() {
                    rect class={ "heat h" (n) } x=(n as i64 * CELL + (CELL - size) / 2) y=((CELL - size) / 2)
                        width=(size) height=(size) rx="2" {}
                }
            }
            " more"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::Amounts;

    fn day(key: &str, micro_dollars: i64) -> SpendingRow {
        SpendingRow {
            key: key.to_owned(),
            cost: format!("${micro_dollars}"),
            amounts: Amounts {
                micro_dollars: Some(micro_dollars),
                ..Amounts::default()
            },
            ..SpendingRow::default()
        }
    }

    #[test]
    fn every_day_of_a_year_is_there_once_and_weeks_begin_on_monday() {
        let last: Date = "2026-11-18".parse().unwrap();
        let days = days_until(last);
        assert_eq!(days.len(), 52 * 7 + 3);
        assert_eq!(days[0].1.weekday(), jiff::civil::Weekday::Monday);
        assert_eq!(days.last(), Some(&(366, last)));
    }

    #[test]
    fn a_day_says_what_it_cost_and_leads_to_its_sessions() {
        let rows = [
            day("2026-11-17", 100),
            day("2026-11-02", 3),
            day("no date", 5),
        ];
        let html = year(&rows, "2026-11-18").into_string();
        assert!(html.contains("<title>2026-11-17: $100,"));
        assert!(html.contains("/?since=2026-11-17&amp;until=2026-11-17"));
        assert_eq!(html.matches("class=\"heat h4\"").count(), 2);
        assert_eq!(html.matches("class=\"heat h1\"").count(), 2);
    }
}
