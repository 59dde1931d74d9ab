//! Groups with bars, as wide as the terminal.

use std::ops::Range;

use unicode_width::UnicodeWidthStr;

use crate::commands::show::is_unicode;
use crate::layout::{BOLD, Cell, Column, DIM, Table, pad_end, styled};
use crate::text::one_line;

/// How wide it is without a terminal.
const WIDTH: usize = 80;
/// The longest bar.
const LONGEST: usize = 60;
/// Shorter bars compare nothing.
const SHORTEST: usize = 6;
/// Columns make room for so much of a name.
const NAME: usize = 16;

/// Rows with a bar and numbers each.
#[derive(Debug, Clone)]
pub(super) struct Plot {
    /// The names of the columns behind the bar.
    pub(super) columns: Vec<&'static str>,
    /// Which columns are shown, by their numbers: the first choice that fits.
    pub(super) choices: Vec<Vec<usize>>,
    pub(super) rows: Vec<PlotRow>,
}

/// A row of a plot.
#[derive(Debug, Clone)]
pub(super) struct PlotRow {
    pub(super) name: String,
    /// Whether it is a part of the row above that is none.
    pub(super) is_part: bool,
    /// How long the bar is, compared with others.
    pub(super) weight: u64,
    pub(super) cells: Vec<String>,
}

impl Plot {
    /// Returns how many groups there are.
    pub(super) fn groups(&self) -> usize {
        self.rows.iter().filter(|row| !row.is_part).count()
    }

    /// Keeps some of the groups, with their parts.
    pub(super) fn keep(&mut self, groups: Range<usize>) {
        let mut group = 0;
        self.rows.retain(|row| {
            group += usize::from(!row.is_part);
            groups.contains(&(group - 1))
        });
    }

    /// Draws a line for each row.
    pub(super) fn draw(&self, width: Option<usize>) -> String {
        let width = width.unwrap_or(WIDTH);
        let has_parts = self.rows.iter().any(|row| row.is_part);
        let longest = self
            .rows
            .iter()
            .map(|row| self.name(row).width())
            .max()
            .unwrap_or(0);
        let fits = |columns: &&Vec<usize>| {
            longest.min(NAME) + 2 + SHORTEST + self.width_of(columns) <= width
        };
        let last = self.choices.last().cloned().unwrap_or_default();
        let columns = self.choices.iter().find(fits).unwrap_or(&last);
        let room = width.saturating_sub(self.width_of(columns) + 2);
        let name = longest.min(
            (room / 2)
                .max(NAME.min(room))
                .max(room.saturating_sub(SHORTEST + 8).min(30)),
        );
        let bar = room.saturating_sub(name).min(LONGEST);
        let bar = if bar < SHORTEST { 0 } else { bar };
        let mut table = Table::new(self.heads(columns));
        // Sums have no bar beside those of their parts.
        let barred = |row: &&PlotRow| row.is_part == has_parts;
        let most = self
            .rows
            .iter()
            .filter(barred)
            .map(|row| row.weight)
            .max()
            .unwrap_or(0)
            .max(1);
        for row in &self.rows {
            let share = match barred(&row) {
                true => row.weight as f64 / most as f64,
                false => 0.0,
            };
            let bar = pad_end(&draw_bar(share, bar, is_unicode()), bar);
            let style = if has_parts && !row.is_part {
                BOLD
            } else {
                anstyle::Style::new()
            };
            let indent = if row.is_part { "  " } else { "" };
            let title = one_line(&row.name, name.saturating_sub(indent.len()));
            let mut cells = vec![
                Cell::new(style, &format!("{indent}{title}")),
                Cell::from(bar),
            ];
            cells.extend(columns.iter().map(|at| Cell::new(style, &row.cells[*at])));
            table.push(cells);
        }
        let lines = table.lines(None);
        lines.iter().map(|line| styled(line) + "\n").collect()
    }

    fn name(&self, row: &PlotRow) -> String {
        let indent = if row.is_part { "  " } else { "" };
        format!("{indent}{}", row.name)
    }

    fn width_of(&self, columns: &[usize]) -> usize {
        let width = |at: &usize| {
            let cells = self.rows.iter().map(|row| row.cells[*at].width());
            2 + cells.max().unwrap_or(0).max(self.columns[*at].width())
        };
        columns.iter().map(width).sum()
    }

    fn heads(&self, columns: &[usize]) -> Vec<Column> {
        let mut heads = vec![Column::text(""), Column::text("")];
        heads.extend(columns.iter().enumerate().map(|(n, at)| {
            let head = Column::number(self.columns[*at]);
            if n == 0 { head } else { head.style(DIM) }
        }));
        heads
    }
}

/// Draws a bar, to an eighth of a character; what is there is seen.
pub(super) fn draw_bar(share: f64, width: usize, unicode: bool) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    let eighths = match share > 0.0 && width > 0 {
        true => eighths.max(1),
        false => eighths,
    };
    match unicode {
        true => format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8]),
        false => "#".repeat(eighths.div_ceil(8)),
    }
}
