//! Tables as wide as the terminal: columns that do not fit are dropped, one column shrinks.

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

use super::span::{DIM, Line, Span, cut, width_of};

/// The columns between two columns.
const GAP: usize = 2;

/// A column of a table.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    head: &'static str,
    style: Style,
    to_the_right: bool,
    /// Columns with a higher number are dropped first; `None` is never dropped.
    drop: Option<u8>,
    /// The narrowest and the widest that a column may be that shrinks.
    range: Option<(usize, usize)>,
}

impl Column {
    /// Makes a column of text.
    pub(crate) const fn text(head: &'static str) -> Self {
        Self {
            head,
            style: Style::new(),
            to_the_right: false,
            drop: None,
            range: None,
        }
    }

    /// Makes a column of numbers.
    pub(crate) const fn number(head: &'static str) -> Self {
        Self {
            to_the_right: true,
            ..Self::text(head)
        }
    }

    pub(crate) const fn style(mut self, style: Style) -> Self {
        self.style = style;
        self
    }

    /// Lets the column shrink to the first width before others are dropped, and grow to the
    /// second. One column of a table may do so.
    pub(crate) const fn between(mut self, narrowest: usize, widest: usize) -> Self {
        self.range = Some((narrowest, widest));
        self
    }

    /// Drops the column where it does not fit, after those with a higher number.
    pub(crate) const fn drop(mut self, order: u8) -> Self {
        self.drop = Some(order);
        self
    }
}

/// A cell of a table.
pub(crate) enum Cell<'a> {
    /// Cut if it is wider than its column.
    Line(Line),
    /// Written for the width that its column has.
    Fit(Box<dyn Fn(usize) -> Line + 'a>),
    /// Takes the rest of the row.
    Rest(Line),
    /// Repeated over the width of its column.
    Rule(&'static str),
}

impl Cell<'_> {
    /// Makes a cell of text in one style.
    pub(crate) fn new(style: Style, text: &str) -> Self {
        Self::Line(vec![Span::new(style, &text.replace('\n', " "))])
    }

    fn width(&self, widest: usize) -> usize {
        match self {
            Self::Line(line) => width_of(line),
            Self::Fit(fit) => width_of(&fit(widest)),
            Self::Rest(_) | Self::Rule(_) => 0,
        }
    }
}

impl From<&str> for Cell<'_> {
    fn from(text: &str) -> Self {
        Self::new(Style::new(), text)
    }
}

impl From<String> for Cell<'_> {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

/// Rows in columns.
pub(crate) struct Table<'a> {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell<'a>>>,
}

impl<'a> Table<'a> {
    pub(crate) fn new(columns: impl Into<Vec<Column>>) -> Self {
        Self {
            columns: columns.into(),
            rows: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, row: impl Into<Vec<Cell<'a>>>) {
        self.rows.push(row.into());
    }

    /// Returns how wide the table is where nothing is dropped or cut.
    pub(crate) fn width(&self) -> usize {
        total(&self.natural())
    }

    /// Draws the table in at most `width` columns, below its heads if it has any.
    pub(crate) fn lines(&self, width: Option<usize>) -> Vec<Line> {
        let columns = self.fit(width);
        let mut lines = Vec::new();
        if self.columns.iter().any(|column| !column.head.is_empty()) {
            let head = |column: &Column| Cell::from(column.head);
            let heads: Vec<Cell<'_>> = self.columns.iter().map(head).collect();
            let mut line = draw(&heads, &columns, &self.columns);
            for span in &mut line {
                span.style = DIM;
            }
            lines.push(merged(line));
        }
        let rows = self.rows.iter();
        lines.extend(rows.map(|row| draw(row, &columns, &self.columns)));
        match width {
            // An id that another program gave may be wider than the terminal.
            Some(width) => lines.iter().map(|line| cut(line, width)).collect(),
            None => lines,
        }
    }

    /// Returns the columns that are shown, and how wide each is.
    fn fit(&self, width: Option<usize>) -> Vec<(usize, usize)> {
        let mut columns = self.natural();
        let Some(width) = width else {
            return columns;
        };
        let shrinks = self.columns.iter().position(|it| it.range.is_some());
        let (narrowest, _) = shrinks
            .and_then(|n| self.columns[n].range)
            .unwrap_or((0, 0));
        let natural = shrinks.map_or(0, |n| columns[n].1);
        let needed = |columns: &[(usize, usize)]| total(columns) - natural + natural.min(narrowest);
        if needed(&columns) > width {
            let is_blank = |n: usize| self.rows.iter().all(|row| is_blank(row.get(n)));
            columns.retain(|(n, _)| self.columns[*n].drop.is_none() || !is_blank(*n));
        }
        while needed(&columns) > width {
            let dropped = columns
                .iter()
                .filter_map(|(n, _)| Some((self.columns[*n].drop?, *n)))
                .max();
            let Some((_, dropped)) = dropped else {
                break;
            };
            columns.retain(|(n, _)| *n != dropped);
        }
        let others = total(&columns) - natural;
        for (n, taken) in &mut columns {
            if Some(*n) == shrinks {
                *taken = natural.min(width.saturating_sub(others)).max(1);
            }
        }
        columns
    }

    /// Returns all columns, each as wide as its widest cell.
    fn natural(&self) -> Vec<(usize, usize)> {
        let widest = |n: usize| {
            let column = &self.columns[n];
            let most = column.range.map_or(usize::MAX, |(_, widest)| widest);
            let cells = self.rows.iter().filter_map(|row| row.get(n));
            let cells = cells.map(|cell| cell.width(most)).max().unwrap_or(0);
            cells.min(most).max(column.head.width())
        };
        (0..self.columns.len()).map(|n| (n, widest(n))).collect()
    }
}

fn total(columns: &[(usize, usize)]) -> usize {
    let widths: usize = columns.iter().map(|(_, width)| width).sum();
    widths + GAP * columns.len().saturating_sub(1)
}

fn is_blank(cell: Option<&Cell<'_>>) -> bool {
    match cell {
        None => true,
        Some(cell) => cell.width(usize::MAX) == 0,
    }
}

fn draw(row: &[Cell<'_>], shown: &[(usize, usize)], columns: &[Column]) -> Line {
    let mut line = Line::new();
    for (place, (n, width)) in shown.iter().enumerate() {
        if place > 0 {
            line.push(Span::blank(GAP));
        }
        let Some(cell) = row.get(*n) else {
            line.push(Span::blank(*width));
            continue;
        };
        let column = &columns[*n];
        let mut spans = match cell {
            Cell::Line(spans) => cut(spans, *width),
            Cell::Fit(fit) => cut(&fit(*width), *width),
            Cell::Rule(text) => vec![Span::new(DIM, &text.repeat(*width))],
            Cell::Rest(spans) => {
                line.extend(spans.iter().cloned());
                return line;
            }
        };
        for span in &mut spans {
            if span.style == Style::new() {
                span.style = column.style;
            }
        }
        let pad = Span::blank(width.saturating_sub(width_of(&spans)));
        match column.to_the_right {
            true => {
                line.push(pad);
                line.extend(spans);
            }
            false => {
                line.extend(spans);
                line.push(pad);
            }
        }
    }
    line
}

/// Joins neighbouring spans of one style.
fn merged(line: Line) -> Line {
    let mut out = Line::new();
    for span in line {
        match out.last_mut() {
            Some(last) if last.style == span.style => last.text.push_str(&span.text),
            _ => out.push(span),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::styled;
    use super::*;

    fn table() -> Table<'static> {
        let mut table = Table::new([
            Column::text("ID"),
            Column::text("AGENT").drop(1),
            Column::text("TITLE").between(8, 30),
            Column::number("TURNS").drop(2),
        ]);
        let title =
            |text: &'static str| Cell::Fit(Box::new(move |width| cut(&[Span::plain(text)], width)));
        table.push([
            "aaaa".into(),
            "codex".into(),
            title("why is checkout slow"),
            "12".into(),
        ]);
        table.push(["bbbb".into(), "".into(), title("漢字"), "3".into()]);
        table.push(["cccc".into(), Cell::Rest(vec![Span::plain("unreadable")])]);
        table
    }

    fn drawn(width: Option<usize>) -> Vec<String> {
        let lines = table().lines(width);
        let text = |line: &Line| anstream::adapter::strip_str(&styled(line)).to_string();
        lines.iter().map(text).collect()
    }

    #[test]
    fn columns_line_up() {
        let whole = [
            "ID    AGENT  TITLE                 TURNS",
            "aaaa  codex  why is checkout slow     12",
            "bbbb         漢字                      3",
            "cccc  unreadable",
        ];
        assert_eq!(drawn(None), whole);
        assert_eq!(drawn(Some(200)), whole);
        assert_eq!(table().width(), 40);
    }

    #[test]
    fn one_column_shrinks_then_others_are_dropped() {
        assert_eq!(drawn(Some(30))[1], "aaaa  codex  why is ch…     12");
        assert_eq!(drawn(Some(24))[1], "aaaa  codex  why is che…");
        assert_eq!(drawn(Some(18))[1], "aaaa  why is chec…");
        for width in 6..60 {
            for line in table().lines(Some(width)) {
                assert!(width_of(&line) <= width, "{width}: {line:?}");
            }
        }
    }
}
