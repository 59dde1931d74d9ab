//! Lines of the log as they are printed.

use backtrail::rewind::Ending;
use backtrail::snapshot::Diff;
use unicode_width::UnicodeWidthStr;

use crate::commands::diff::{Lines, lines_of};
use crate::error::Result;
use crate::layout::{BOLD, Cell, Column, DIM, Span, Table, wrap};
use crate::text::{count, one_line, visible};
use crate::ui::Ui;

/// One line as it is printed.
pub(in crate::commands) struct Row {
    pub(in crate::commands) kind: String,
    pub(in crate::commands) at: String,
    pub(in crate::commands) about: String,
    /// Its labels. They are never cut off.
    pub(in crate::commands) labels: Vec<String>,
    /// How a turn or run ended, if that is known.
    pub(in crate::commands) ending: Option<Ending>,
    pub(in crate::commands) change: String,
    pub(in crate::commands) id: String,
}

impl Row {
    /// Returns what it was about so that it fits, with what is never cut off behind it.
    fn about(&self, tail: &str, width: usize) -> String {
        let about = visible(&self.about);
        if tail.is_empty() {
            return one_line(&about, width);
        }
        let room = width.saturating_sub(tail.width() + 1);
        let whole = one_line(&about, usize::MAX);
        match one_line(&about, room) {
            cut if cut.is_empty() || (room < ABOUT.0 && cut != whole) => tail.to_owned(),
            cut => format!("{cut} {tail}"),
        }
    }

    /// Returns the labels and how it ended: `[built] (failed, exit 3)`.
    fn tail(&self) -> String {
        let labels = self.labels.iter().map(|label| visible(label).into_owned());
        // A label that is all there is needs no brackets.
        let alone = self.about.is_empty();
        let labels = labels.map(|label| match alone {
            true => label,
            false => format!("[{label}]"),
        });
        let words: Vec<String> = labels.chain(self.ending.and_then(mark)).collect();
        words.join(" ")
    }
}

/// Returns the mark of a turn or run that failed, was interrupted or is running.
pub(in crate::commands) fn mark(ending: Ending) -> Option<String> {
    let text = ending.to_string();
    (!text.is_empty()).then(|| format!("({text})"))
}

/// Returns how much changed: `+48 −12  4 files`.
pub(in crate::commands) fn change(diff: &Diff) -> backtrail::Result<String> {
    if diff.is_empty() {
        return Ok("no change".to_owned());
    }
    let (mut added, mut removed) = (0, 0);
    for change in diff.iter() {
        if let Lines::Counted(more, less) = lines_of(diff, change)? {
            added += more;
            removed += less;
        }
    }
    let paths = count(diff.changes().len(), "file");
    Ok(match (added, removed) {
        (0, 0) => paths,
        (added, 0) => format!("+{added}  {paths}"),
        (0, removed) => format!("−{removed}  {paths}"),
        (added, removed) => format!("+{added} −{removed}  {paths}"),
    })
}

/// The narrowest and the widest column for what it was about.
const ABOUT: (usize, usize) = (8, 50);

/// Prints lines in columns, as wide as the terminal allows. Labels and marks that do not fit
/// go below their line.
pub(in crate::commands) fn print_rows(rows: &[Row], ui: &Ui) -> Result<()> {
    let room = room_for_about(rows, ui.width());
    let mut table = Table::new(columns());
    for row in rows {
        let tail = row.tail();
        let (beside, below) = match tail.width() <= room {
            true => (tail, String::new()),
            false => (String::new(), tail),
        };
        table.push([
            row.at.as_str().into(),
            row.kind.as_str().into(),
            Cell::Fit(Box::new(move |width| {
                vec![Span::plain(&row.about(&beside, width))]
            })),
            row.change.as_str().into(),
            row.id.as_str().into(),
        ]);
        if !below.is_empty() {
            let width = ui
                .width()
                .map_or(usize::MAX, |width| width.saturating_sub(INDENT));
            for mut line in wrap(&[Span::plain(&below)], width) {
                line.insert(0, Span::blank(INDENT));
                table.push([Cell::Rest(line)]);
            }
        }
    }
    ui.print_table(&table, ui.width())
}

/// How far labels below a line are indented.
const INDENT: usize = 7;

fn columns() -> [Column; 5] {
    [
        Column::text("").style(DIM),
        Column::text("").style(BOLD),
        Column::text("").between(ABOUT.0, ABOUT.1),
        Column::text(""),
        Column::text("").style(DIM),
    ]
}

/// Returns how wide the text of a line can be.
fn room_for_about(rows: &[Row], width: Option<usize>) -> usize {
    let mut others = Table::new(columns());
    for row in rows {
        let texts = [&row.at, &row.kind, "", &row.change, &row.id];
        others.push(texts.map(Cell::from));
    }
    let room = width.map(|width| width.saturating_sub(others.width()));
    room.map_or(ABOUT.1, |room| room.min(ABOUT.1))
}
