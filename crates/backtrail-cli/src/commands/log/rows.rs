//! Lines of the log as they are printed.

use backtrail::snapshot::Diff;

use crate::commands::diff::{Lines, lines_of};
use crate::error::Result;
use crate::layout::{BOLD, Cell, Column, DIM, Span, Table};
use crate::text::{count, one_line, visible};
use crate::ui::Ui;

/// One line as it is printed.
pub(in crate::commands) struct Row {
    pub(in crate::commands) kind: String,
    pub(in crate::commands) at: String,
    pub(in crate::commands) about: String,
    /// Whether it ended.
    pub(in crate::commands) ended: bool,
    pub(in crate::commands) change: String,
    pub(in crate::commands) id: String,
}

/// Marks a turn or run that did not end.
const INTERRUPTED: &str = "(interrupted)";

impl Row {
    /// Returns what it was about so that it fits; the mark is never cut off.
    fn about(&self, width: usize) -> String {
        let about = visible(&self.about);
        if self.ended {
            return one_line(&about, width);
        }
        let room = width.saturating_sub(INTERRUPTED.len() + 1);
        match one_line(&about, room) {
            about if about.is_empty() || room < ABOUT.0 => INTERRUPTED.to_owned(),
            about => format!("{about} {INTERRUPTED}"),
        }
    }
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

/// Prints lines in columns, as wide as the terminal allows.
pub(in crate::commands) fn print_rows(rows: &[Row], ui: &Ui) -> Result<()> {
    let mut table = Table::new([
        Column::text("").style(DIM),
        Column::text("").style(BOLD),
        Column::text("").between(ABOUT.0, ABOUT.1),
        Column::text(""),
        Column::text("").style(DIM),
    ]);
    for row in rows {
        table.push([
            row.at.as_str().into(),
            row.kind.as_str().into(),
            Cell::Fit(Box::new(|width| vec![Span::plain(&row.about(width))])),
            row.change.as_str().into(),
            row.id.as_str().into(),
        ]);
    }
    ui.print_table(&table, ui.width())
}
