//! Differences, laid out for a width: unified or side by side.

use anstyle::{Ansi256Color, AnsiColor, Color, Effects, Style};

use crate::columns::{width, window};
use crate::look::{Background, Look};
use crate::request::{DiffRequest, DiffRows};
use backtrail_view::diff_lines::{ShownLine, runs, shown_lines};
use backtrail_view::library::{DiffKind, FileDiff, Line, Span};

/// With less room than this for text, line numbers are not shown.
const LEAST_ROOM: usize = 12;

/// Lays a difference out. Every row fits into the width.
pub(crate) fn lay_out(diff: &FileDiff, request: &DiffRequest, look: Look) -> DiffRows {
    let texts = texts(diff, look);
    let layout = Layout::new(&texts, request, look);
    let mut rows = Vec::new();
    let mut hunk = None;
    for run in runs(&texts) {
        if run.iter().any(|text| text.kind == DiffKind::Hunk) {
            hunk = Some(hunk.map_or(0, |n: usize| n + 1));
        }
        rows.extend(layout.rows(run).into_iter().map(|row| (row, hunk)));
    }
    DiffRows {
        rows,
        note: diff.note.clone(),
    }
}

/// Highlights the lines, and gives removed and added ones their colours.
fn texts(diff: &FileDiff, look: Look) -> Vec<ShownLine> {
    let mut texts = shown_lines(diff, look.palette());
    for text in texts.iter_mut().filter(|text| text.is_changed()) {
        color(text, look);
    }
    texts
}

fn color(text: &mut ShownLine, look: Look) {
    let (base, emphasis) = styles(text.kind, look);
    let mut spans = Line::new();
    let mut at = 0;
    for span in &text.spans {
        for (offset, c) in span.text.char_indices() {
            let is_changed = text
                .changed
                .iter()
                .any(|range| range.contains(&(at + offset)));
            let style = match is_changed {
                true => over(span.style, emphasis),
                false => over(span.style, base),
            };
            match spans.last_mut() {
                Some(last) if last.style == style => last.text.push(c),
                _ => spans.push(Span::new(style, c)),
            }
        }
        at += span.text.len();
    }
    text.spans = spans;
}

/// Returns the style of a removed or added line, and of the words in it that changed.
fn styles(kind: DiffKind, look: Look) -> (Style, Style) {
    let is_removed = match kind {
        DiffKind::Removed => true,
        DiffKind::Added => false,
        DiffKind::Hunk | DiffKind::Same => return Default::default(),
    };
    if !look.color {
        return (
            Style::new(),
            Style::new().effects(Effects::BOLD | Effects::UNDERLINE),
        );
    }
    if !look.many_colors {
        let color = match is_removed {
            true => AnsiColor::Red,
            false => AnsiColor::Green,
        };
        let base = Style::new().fg_color(Some(color.into()));
        return (base, base.effects(Effects::INVERT));
    }
    let (line, words) = match (is_removed, look.background) {
        (true, Background::Dark) => (52, 88),
        (false, Background::Dark) => (22, 28),
        (true, Background::Light) => (224, 217),
        (false, Background::Light) => (194, 157),
    };
    let on = |number| Style::new().bg_color(Some(Color::Ansi256(Ansi256Color(number))));
    (on(line), on(words))
}

/// Puts one style over another.
fn over(below: Style, above: Style) -> Style {
    below
        .fg_color(above.get_fg_color().or(below.get_fg_color()))
        .bg_color(above.get_bg_color().or(below.get_bg_color()))
        .effects(below.get_effects() | above.get_effects())
}

/// How the rows of a difference are made.
struct Layout<'r> {
    request: &'r DiffRequest,
    look: Look,
    /// The columns of a line number; 0 if there is no room for them.
    number: usize,
}

/// A side of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Old,
    New,
}

impl<'r> Layout<'r> {
    fn new(texts: &[ShownLine], request: &'r DiffRequest, look: Look) -> Self {
        let numbers = texts.iter().flat_map(|text| [text.old, text.new]);
        let digits = numbers.flatten().max().unwrap_or(1).to_string().len();
        let is_wide = usize::from(request.width) >= 2 * (digits + 3) + LEAST_ROOM;
        Self {
            request,
            look,
            number: if is_wide { digits } else { 0 },
        }
    }

    fn columns(&self) -> usize {
        usize::from(self.request.width)
    }

    /// Lays out a heading, a line in both, or a run of removed and added lines.
    fn rows(&self, run: &[ShownLine]) -> Vec<Line> {
        match run {
            [heading] if heading.kind == DiffKind::Hunk => vec![self.heading(heading)],
            _ if self.request.side_by_side => self.side_by_side(run),
            _ => run.iter().map(|text| self.unified(text)).collect(),
        }
    }

    fn heading(&self, text: &ShownLine) -> Line {
        let style = match self.look.color {
            true => Style::new().fg_color(Some(AnsiColor::Cyan.into())),
            false => Style::new().effects(Effects::BOLD),
        };
        let text: String = text.spans.iter().map(|span| span.text.as_str()).collect();
        window(&[Span::new(style, text)], 0, self.columns())
    }

    fn unified(&self, text: &ShownLine) -> Line {
        let mut row = self.numbers(&[text.old, text.new]);
        row.extend(self.content(text, self.columns().saturating_sub(width(&row))));
        window(&row, 0, self.columns())
    }

    fn side_by_side(&self, run: &[ShownLine]) -> Vec<Line> {
        let of = |kind| {
            let is_there =
                move |text: &&ShownLine| text.kind == kind || text.kind == DiffKind::Same;
            run.iter().filter(is_there).collect::<Vec<_>>()
        };
        let (old, new) = (of(DiffKind::Removed), of(DiffKind::Added));
        let half = self.columns().saturating_sub(1) / 2;
        let bar = if self.look.unicode { "│" } else { "|" };
        let dim = Style::new().effects(Effects::DIMMED);
        let rows = (0..old.len().max(new.len())).map(|n| {
            let mut row = self.half(old.get(n).copied(), Side::Old, half);
            row.push(Span::new(dim, bar));
            row.extend(self.half(new.get(n).copied(), Side::New, half));
            window(&row, 0, self.columns())
        });
        rows.collect()
    }

    /// Returns one side of a row, as wide as it may be.
    fn half(&self, text: Option<&ShownLine>, side: Side, room: usize) -> Line {
        let mut row = Line::new();
        if let Some(text) = text {
            let number = match side {
                Side::Old => text.old,
                Side::New => text.new,
            };
            row = self.numbers(&[number]);
            row.extend(self.content(text, room.saturating_sub(width(&row))));
            row = window(&row, 0, room);
        }
        let left = room.saturating_sub(width(&row));
        if left > 0 {
            row.push(Span::plain(" ".repeat(left)));
        }
        row
    }

    fn numbers(&self, numbers: &[Option<u64>]) -> Line {
        if self.number == 0 {
            return Line::new();
        }
        let one = |number: &Option<u64>| {
            let number = number.map_or_else(String::new, |number| number.to_string());
            format!("{number:>0$} ", self.number)
        };
        let dim = Style::new().effects(Effects::DIMMED);
        vec![Span::new(dim, numbers.iter().map(one).collect::<String>())]
    }

    /// Returns sign and text, filled up in the colour of the line.
    fn content(&self, text: &ShownLine, room: usize) -> Line {
        let (base, _) = styles(text.kind, self.look);
        let sign = match text.kind {
            DiffKind::Removed => "-",
            DiffKind::Added => "+",
            DiffKind::Hunk | DiffKind::Same => " ",
        };
        let mut line = vec![Span::new(base, sign)];
        let room_for_text = room.saturating_sub(1);
        line.extend(window(&text.spans, self.request.skip, room_for_text));
        let left = room.saturating_sub(width(&line));
        if left > 0 && base.get_bg_color().is_some() {
            line.push(Span::new(base, " ".repeat(left)));
        }
        line
    }
}

#[cfg(test)]
#[path = "diff_rows_tests.rs"]
mod tests;
