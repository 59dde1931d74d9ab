//! A table of a Markdown text.

use anstyle::Effects;

use super::glyphs::Glyphs;
use crate::layout::{self, Cell, Column, Line, Span, wrap};

/// The rows of a table, the head first.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Vec<Line>>,
}

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
        let mut table = layout::Table::new(vec![Column::text(""); columns]);
        for (n, row) in self.rows.iter().enumerate() {
            table.push(row.iter().cloned().map(Cell::Line).collect::<Vec<_>>());
            if n == 0 {
                let rules = (0..columns).map(|_| Cell::Rule(glyphs.rule));
                table.push(rules.collect::<Vec<_>>());
            }
        }
        match table.width() > width {
            true => self.as_lists(width),
            false => table.lines(None),
        }
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
