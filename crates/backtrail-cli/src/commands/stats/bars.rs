//! Spending in bars, as wide as the terminal.

use backtrail::Timestamp;
use backtrail_index::{Spending, SpendingReport, SpendingRow, UnpricedModel};
use unicode_width::UnicodeWidthStr;

use crate::layout::{BOLD, Cell, Column, DIM, Table, pad_end, pad_start, styled};
use crate::text::{cost, count, grouped, one_line, plus_note, short_number, tokens};
use crate::when;

/// How wide it is without a terminal.
const WIDTH: usize = 80;
/// The longest bar.
const LONGEST: usize = 60;
/// Bars that are shorter than this compare nothing.
const SHORTEST: usize = 4;

/// Writes when it was, how many calls there were and what they cost.
pub(super) fn head(report: &SpendingReport) -> String {
    let mut parts = Vec::new();
    parts.extend(report.span.map(|(first, last)| span(first, last)));
    parts.push(count(report.sessions, "session"));
    parts.push(count(report.total.calls, "call"));
    parts.extend(Some(cost(&report.total)).filter(|cost| !cost.is_empty()));
    format!("{BOLD}{}{BOLD:#}\n", parts.join(" · "))
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

/// Draws a line for each part: its name, a bar, its cost and its share of all.
pub(super) fn draw(
    names: &[String],
    rows: &[SpendingRow],
    report: &SpendingReport,
    width: Option<usize>,
) -> String {
    let width = width.unwrap_or(WIDTH);
    // If nothing has a price, tokens are compared.
    let by_cost = report.by.iter().any(|row| row.spending.cost.0 > 0);
    let weight = |spending: &Spending| match by_cost {
        true => u64::try_from(spending.cost.0).unwrap_or(0),
        false => spending.tokens(),
    };
    let most = report.by.iter().map(|row| weight(&row.spending)).max();
    let all = weight(&report.total);
    let cells: Vec<[String; 3]> = rows
        .iter()
        .map(|row| cells(&row.spending, weight(&row.spending), all))
        .collect();
    let widest = |n: usize| {
        cells
            .iter()
            .map(|cells| cells[n].width())
            .max()
            .unwrap_or(0)
    };
    let shape = Shape::new(names, [widest(0), widest(1), widest(2)], width);
    let mut table = Table::new(shape.columns());
    for ((name, row), cells) in names.iter().zip(rows).zip(cells) {
        let share = weight(&row.spending) as f64 / most.unwrap_or(0).max(1) as f64;
        table.push(shape.row(name, share, cells));
    }
    let lines = table.lines(None);
    lines.iter().map(|line| styled(line) + "\n").collect()
}

/// Returns the cells behind the bar: cost, share of all, tokens.
fn cells(spending: &Spending, weight: u64, all: u64) -> [String; 3] {
    if spending.calls == 0 {
        let calls = count(spending.estimated_calls, "call");
        return ["estimated".to_owned(), calls, tokens(spending)];
    }
    let is_unpriced = spending.calls == spending.unpriced_calls;
    let share = match (weight, all) {
        _ if is_unpriced => count(spending.calls, "call"),
        (0, _) | (_, 0) => String::new(),
        // As wide as the widest, so that they line up.
        (weight, all) => pad_start(&percent(weight as f64 / all as f64), 5),
    };
    [cost(spending), share, tokens(spending)]
}

/// Writes a share of all; little is not nothing, and nearly all is not all.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        percent if percent < 0.5 => "<1 %".to_owned(),
        percent if (99.5..99.999_999).contains(&percent) => ">99 %".to_owned(),
        percent => format!("{percent:.0} %"),
    }
}

/// How wide names and bars are.
struct Shape {
    name: usize,
    bar: usize,
    /// Whether there is room for tokens.
    tokens: bool,
}

impl Shape {
    fn new(names: &[String], [cost, share, tokens]: [usize; 3], width: usize) -> Self {
        /// A name that is cut to less than this says nothing.
        const NAME: usize = 10;
        let longest = names.iter().map(|name| name.width()).max().unwrap_or(0);
        let numbers = 2 + cost + 2 + share;
        let with_tokens = numbers + 2 + tokens;
        let room = |numbers: usize| width.saturating_sub(numbers + 2);
        let has_room = room(with_tokens) >= longest.min(24) + 12;
        let room = room(if has_room { with_tokens } else { numbers });
        let name = longest.min((room / 2).max(NAME.min(room)));
        let bar = room.saturating_sub(name).min(LONGEST);
        Self {
            name,
            bar: if bar < SHORTEST { 0 } else { bar },
            tokens: has_room,
        }
    }

    fn columns(&self) -> Vec<Column> {
        let mut columns = vec![
            Column::text(""),
            Column::text(""),
            Column::number(""),
            Column::text(""),
        ];
        if self.tokens {
            columns.push(Column::number("").style(DIM));
        }
        columns
    }

    fn row(&self, name: &str, share: f64, cells: [String; 3]) -> Vec<Cell<'static>> {
        let bar = pad_end(&bar(share, self.bar), self.bar);
        let name = one_line(name, self.name);
        let all = [name, bar].into_iter().chain(cells);
        all.map(Cell::from).collect()
    }
}

/// Draws a bar, to an eighth of a character; what is there is seen.
fn bar(share: f64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    let eighths = match share > 0.0 && width > 0 {
        true => eighths.max(1),
        false => eighths,
    };
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

/// Writes what was spent in all.
pub(super) fn totals(total: &Spending, width: Option<usize>) -> String {
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
pub(super) fn price_remarks(total: &Spending, unpriced: &[UnpricedModel]) -> String {
    let mut out = String::new();
    let mut say = |text: String| out += &remark(&text);
    plus_note(total).into_iter().for_each(&mut say);
    for model in unpriced.iter().take(UNPRICED) {
        let name = model.model.as_deref().unwrap_or("no model");
        let (calls, tokens) = (count(model.calls, "call"), short_number(model.tokens));
        say(format!(
            "unpriced: {}, {calls}, {tokens} tokens",
            one_line(name, 60)
        ));
    }
    if let Some(more) = unpriced
        .len()
        .checked_sub(UNPRICED)
        .filter(|more| *more > 0)
    {
        say(format!(
            "unpriced: {} (--json lists all)",
            count(more, "more model")
        ));
    }
    out
}

fn remark(text: &str) -> String {
    format!("{DIM}{text}{DIM:#}\n")
}

/// Writes what is not in the numbers.
pub(super) fn remarks(total: &Spending, unpriced: &[UnpricedModel]) -> String {
    let mut out = price_remarks(total, unpriced);
    if total.estimated_calls > 0 {
        let tokens = short_number(total.estimated_tokens);
        let calls = count(total.estimated_calls, "call");
        out += &remark(&format!(
            "plus about {tokens} estimated tokens ({calls}), not included"
        ));
    }
    out
}

#[cfg(test)]
#[path = "bars_tests.rs"]
mod tests;
