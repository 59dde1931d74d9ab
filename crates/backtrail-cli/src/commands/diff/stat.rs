//! `backtrail diff --stat`: how many lines changed in each file.

use std::io::Write;

use backtrail::Change;
use backtrail::snapshot::{ChangeKind, Diff};

use super::{ADDED, Lines, REMOVED, lines_of};
use crate::error::Result;
use crate::layout::{Cell, Column, DIM, Line, Span, Table, cut_middle, styled};
use crate::text::{count, grouped, size, visible};

/// The longest bar.
const WIDEST_BAR: usize = 30;
/// A path is not cut further than this.
const NARROWEST_PATH: usize = 12;

/// A line of the table.
struct Row {
    /// What happened to it: `edited`.
    verb: String,
    path: String,
    lines: Lines,
}

impl Row {
    fn of(change: &Change, lines: Lines) -> Self {
        let text = change.to_string();
        let (verb, path) = match text.split_once(' ') {
            Some((verb, path)) if change.kind != ChangeKind::Renamed => (verb, path),
            _ => ("renamed", text.as_str()),
        };
        Self {
            verb: verb.to_owned(),
            path: visible(path).into_owned(),
            lines,
        }
    }

    /// Returns the number, and what is drawn after it.
    fn amount(&self, most: u64, widest: usize) -> (String, Line) {
        match self.lines {
            Lines::Counted(added, removed) => {
                let bar = bar(added, removed, most, widest);
                (grouped(added + removed), bar)
            }
            Lines::Binary(before, after) => {
                ("Bin".to_owned(), vec![Span::plain(&sizes(before, after))])
            }
            Lines::TooLarge(before, after) => {
                let text = format!("{} (too large to compare)", sizes(before, after));
                ("?".to_owned(), vec![Span::plain(&text)])
            }
        }
    }
}

/// Returns the sizes of a file before and after, if it was there.
pub(in crate::commands) fn sizes(before: Option<u64>, after: Option<u64>) -> String {
    let sizes = [before, after].into_iter().flatten();
    sizes.map(size).collect::<Vec<_>>().join(" → ")
}

/// Prints the table in at most `width` columns, and the sums.
pub(super) fn print(diff: &Diff, width: Option<usize>, out: &mut impl Write) -> Result<()> {
    let mut rows = Vec::new();
    for change in diff.iter() {
        rows.push(Row::of(change, lines_of(diff, change)?));
    }
    out.write_all(draw(&rows, width).as_bytes())?;
    let sum = |part: fn(&Lines) -> u64| grouped(rows.iter().map(|row| part(&row.lines)).sum());
    let (added, removed) = (sum(Lines::added), sum(Lines::removed));
    let paths = count(rows.len(), "path");
    writeln!(
        out,
        "{paths}, {ADDED}+{added}{ADDED:#} {REMOVED}−{removed}{REMOVED:#}"
    )?;
    Ok(())
}

fn draw(rows: &[Row], width: Option<usize>) -> String {
    let total = |row: &Row| row.lines.added() + row.lines.removed();
    let most = rows.iter().map(total).max().unwrap_or(0).max(1);
    // Paths need more room than bars.
    let widest = width.map_or(WIDEST_BAR, |width| (width / 4).clamp(4, WIDEST_BAR));
    let mut table = Table::new([
        Column::text("").style(DIM),
        Column::text("").between(NARROWEST_PATH, usize::MAX),
        Column::number(""),
        Column::text("").drop(1),
    ]);
    for row in rows {
        let (number, bar) = row.amount(most, widest);
        table.push([
            row.verb.as_str().into(),
            Cell::Fit(Box::new(|width| {
                vec![Span::plain(&cut_middle(&row.path, width))]
            })),
            number.into(),
            Cell::Line(bar),
        ]);
    }
    let lines = table.lines(width);
    lines.iter().map(|line| styled(line) + "\n").collect()
}

fn bar(added: u64, removed: u64, most: u64, widest: usize) -> Line {
    let widest = widest as u64;
    let scaled = |n: u64| match n {
        0 => 0,
        n if most <= widest => n,
        n => (u128::from(n) * u128::from(widest) / u128::from(most)).max(1) as u64,
    };
    let signs = |sign: &str, n: u64| sign.repeat(usize::try_from(scaled(n)).unwrap_or(0));
    vec![
        Span::new(ADDED, &signs("+", added)),
        Span::new(REMOVED, &signs("−", removed)),
    ]
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use super::*;

    fn rows() -> Vec<Row> {
        let row = |verb: &str, path: &str, lines| Row {
            verb: verb.to_owned(),
            path: path.to_owned(),
            lines,
        };
        let deep = "crates/backtrail-cli/src/commands/some/module/implementation.rs";
        vec![
            row("edited", "src/a.rs", Lines::Counted(1, 2)),
            row("new", deep, Lines::Counted(1200, 0)),
            row(
                "edited",
                "logo.png",
                Lines::Binary(Some(12 << 10), Some(14 << 10)),
            ),
            row("new", "icon.png", Lines::Binary(None, Some(900))),
            row("mode", "run.sh 644 → 755", Lines::Counted(0, 0)),
            row(
                "edited",
                "dump.sql",
                Lines::TooLarge(Some(20 << 20), Some(21 << 20)),
            ),
        ]
    }

    fn drawn(width: Option<usize>) -> String {
        anstream::adapter::strip_str(&draw(&rows(), width)).to_string()
    }

    #[test]
    fn paths_and_numbers_line_up() {
        let bar = "+".repeat(30);
        assert_eq!(
            drawn(None),
            format!(
                "\
edited  src/a.rs                                                             3  +−
new     crates/backtrail-cli/src/commands/some/module/implementation.rs  1,200  {bar}
edited  logo.png                                                           Bin  12 KiB → 14 KiB
new     icon.png                                                           Bin  900 bytes
mode    run.sh 644 → 755                                                     0
edited  dump.sql                                                             ?  20 MiB → 21 MiB (too large to compare)
"
            )
        );
    }

    #[test]
    fn a_path_is_cut_in_its_middle_and_no_line_is_wider_than_the_terminal() {
        for width in 10..200 {
            for line in drawn(Some(width)).lines() {
                assert!(line.width() <= width, "{width}: {line:?}");
            }
        }
        let at_80 = drawn(Some(80));
        assert!(
            at_80.contains("new     crates/b…mplementation.rs  1,200  ++++++++++++++++++++\n"),
            "{at_80}"
        );
    }
}
