//! Lines of the log as they are printed.

use std::io::Write;

use backtrail::Diff;
use unicode_width::UnicodeWidthStr;

use crate::commands::diff::{Lines, lines_of};
use crate::text::{count, one_line, visible};
use crate::ui::{BOLD, DIM, Ui};

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
    let paths = count(diff.changes().len() as u64, "file");
    Ok(match (added, removed) {
        (0, 0) => paths,
        (added, 0) => format!("+{added}  {paths}"),
        (0, removed) => format!("−{removed}  {paths}"),
        (added, removed) => format!("+{added} −{removed}  {paths}"),
    })
}

/// The space between two columns.
const GAP: usize = 2;
/// The narrowest and the widest column for what it was about.
const ABOUT: (usize, usize) = (8, 50);

/// Prints lines in columns, as wide as the terminal allows.
pub(in crate::commands) fn print_rows(rows: &[Row], ui: &Ui) -> std::io::Result<()> {
    let widest = |text: fn(&Row) -> &str| {
        let widths = rows.iter().map(|row| text(row).chars().count());
        widths.max().unwrap_or(0)
    };
    let at = widest(|row| &row.at);
    let kind = widest(|row| &row.kind);
    let change = widest(|row| &row.change);
    let id = widest(|row| &row.id);
    let others = at + kind + change + id + 4 * GAP;
    let room = ui
        .width()
        .map_or(ABOUT.1, |width| width.saturating_sub(others));
    let room = room.clamp(ABOUT.0, ABOUT.1);
    let abouts: Vec<String> = rows.iter().map(|row| row.about(room)).collect();
    let about = abouts.iter().map(|about| about.width()).max().unwrap_or(0);
    let mut out = ui.out();
    for (row, text) in rows.iter().zip(&abouts) {
        let pad = " ".repeat(about.saturating_sub(text.width()));
        writeln!(
            out,
            "{DIM}{:<at$}{DIM:#}  {BOLD}{:<kind$}{BOLD:#}  {text}{pad}  {:<change$}  {DIM}{}{DIM:#}",
            row.at, row.kind, row.change, row.id
        )?;
    }
    out.flush()
}
