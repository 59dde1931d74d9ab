//! A table of a Markdown text.

use anstyle::Effects;

use super::glyphs::Glyphs;
use super::wrap::{Line, Span, width_of, wrap};
use crate::ui::DIM;

/// The rows of a table, the head first.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Vec<Line>>,
}

/// What stands between two columns.
const GAP: &str = "  ";

impl Table {
    pub(super) fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(super) fn push_cell(&mut self, cell: Line) {
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    /// Renders it in columns, or where those are too wide each row as a list.
    pub(super) fn render(mut self, width: usize, glyphs: &Glyphs) -> Vec<Line> {
        for cell in self.rows.first_mut().into_iter().flatten() {
            for span in cell {
                span.style |= Effects::BOLD;
            }
        }
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widest = |n: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(n));
            cells.map(|cell| width_of(cell)).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(widest).collect();
        let whole = widths.iter().sum::<usize>() + GAP.len() * columns.saturating_sub(1);
        if whole > width {
            return self.as_lists(width);
        }
        let mut lines: Vec<Line> = self
            .rows
            .iter()
            .map(|row| in_columns(row, &widths))
            .collect();
        let rules = widths.iter().map(|width| glyphs.rule.repeat(*width));
        let rule = Span::new(DIM, &rules.collect::<Vec<_>>().join(GAP));
        lines.insert(lines.len().min(1), vec![rule]);
        lines
    }

    fn as_lists(&self, width: usize) -> Vec<Line> {
        let Some((head, rows)) = self.rows.split_first() else {
            return Vec::new();
        };
        let mut lines = Vec::new();
        for (n, row) in rows.iter().enumerate() {
            if n > 0 {
                lines.push(Line::new());
            }
            for (n, cell) in row.iter().enumerate() {
                let mut line = head.get(n).cloned().unwrap_or_default();
                line.push(Span::plain(": "));
                line.extend(cell.iter().cloned());
                lines.extend(wrap(&line, width));
            }
        }
        lines
    }
}

fn in_columns(row: &[Line], widths: &[usize]) -> Line {
    let mut line = Line::new();
    for (n, (cell, width)) in row.iter().zip(widths).enumerate() {
        line.extend(cell.iter().cloned());
        if n + 1 < widths.len() {
            let pad = width.saturating_sub(width_of(cell));
            line.push(Span::plain(&format!("{}{GAP}", " ".repeat(pad))));
        }
    }
    line
}
