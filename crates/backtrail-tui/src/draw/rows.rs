//! What every panel is drawn with: borders, rows, and text cut to a width.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::symbols::border;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Clear, Widget};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::app::areas::inner;
pub(super) use crate::columns::{cut, fit, fit_right};
use crate::look::Look;
use backtrail_view::library;

/// Borders of characters that every terminal has.
const ASCII_BORDER: border::Set<'_> = border::Set {
    top_left: "+",
    top_right: "+",
    bottom_left: "+",
    bottom_right: "+",
    vertical_left: "|",
    vertical_right: "|",
    horizontal_top: "-",
    horizontal_bottom: "-",
};

/// The titles of a panel.
#[derive(Debug, Default)]
pub(super) struct Titles {
    pub(super) top: String,
    pub(super) bottom: String,
}

impl Titles {
    pub(super) fn top(top: impl Into<String>) -> Self {
        Self {
            top: top.into(),
            bottom: String::new(),
        }
    }
}

/// Draws the border of a panel with its titles; returns what is inside.
pub(super) fn panel(
    look: Look,
    has_focus: bool,
    titles: &Titles,
    area: Rect,
    buf: &mut Buffer,
) -> Rect {
    let set = match look.unicode {
        true => border::ROUNDED,
        false => ASCII_BORDER,
    };
    let room = usize::from(area.width.saturating_sub(4));
    let ellipsis = look.signs().ellipsis;
    let title = |text: &str| match text {
        "" => String::new(),
        text => format!(" {} ", cut(text, room, ellipsis)),
    };
    let bold = match has_focus {
        true => look.bold(),
        false => Style::new(),
    };
    Block::new()
        .borders(Borders::ALL)
        .border_set(set)
        .border_style(look.border(has_focus))
        .title_top(Line::styled(title(&titles.top), bold))
        .title_bottom(Line::styled(title(&titles.bottom), look.dim()).right_aligned())
        .render(area, buf);
    inner(area)
}

/// Draws the border of something that lies over the panels; returns what is inside.
pub(super) fn overlay(look: Look, titles: &Titles, area: Rect, buf: &mut Buffer) -> Rect {
    Clear.render(area, buf);
    panel(look, true, titles, area, buf)
}

/// Returns an area in the middle of another, at most as large as wanted.
pub(super) fn centred(within: Rect, width: u16, height: u16) -> Rect {
    let width = width.min(within.width);
    let height = height.min(within.height);
    Rect {
        x: within.x + (within.width - width) / 2,
        y: within.y + (within.height - height) / 2,
        width,
        height,
    }
}

/// Returns the area of a row of a panel, if it is visible.
pub(super) fn row(area: Rect, n: usize) -> Option<Rect> {
    let n = u16::try_from(n).ok().filter(|n| *n < area.height)?;
    Some(Rect {
        y: area.y + n,
        height: 1,
        ..area
    })
}

/// Writes a line into a row.
pub(super) fn put(buf: &mut Buffer, area: Rect, line: &Line<'_>) {
    buf.set_line(area.x, area.y, line, area.width);
}

/// Writes lines from the top of an area.
pub(super) fn put_lines<'a>(
    buf: &mut Buffer,
    area: Rect,
    lines: impl IntoIterator<Item = Line<'a>>,
) {
    for (n, line) in lines.into_iter().take(area.height.into()).enumerate() {
        if let Some(row) = row(area, n) {
            put(buf, row, &line);
        }
    }
}

/// Writes dim text where a panel has nothing to show.
pub(super) fn put_note(look: Look, buf: &mut Buffer, area: Rect, text: &str) {
    let lines = wrapped(text, area.width.into());
    put_lines(
        buf,
        area,
        lines.into_iter().map(|line| Line::styled(line, look.dim())),
    );
}

/// Writes what went wrong.
pub(super) fn put_error(look: Look, buf: &mut Buffer, area: Rect, text: &str) {
    let style = look.fg(ratatui::style::Color::Red);
    let lines = wrapped(text, area.width.into());
    put_lines(
        buf,
        area,
        lines.into_iter().map(|line| Line::styled(line, style)),
    );
}

/// Converts a line of the library.
pub(super) fn line_of(look: Look, line: &library::Line) -> Line<'_> {
    let spans = line.iter();
    let spans = spans.map(|span| Span::styled(span.text.as_str(), look.style(span.style)));
    Line::from_iter(spans)
}

/// Drops columns from the left of a line.
pub(super) fn skipped(line: &library::Line, columns: usize) -> library::Line {
    let mut left = columns;
    let mut rest = library::Line::new();
    for span in line {
        if left == 0 {
            rest.push(span.clone());
            continue;
        }
        let mut chars = span.text.chars();
        while left > 0 {
            let Some(c) = chars.next() else { break };
            left = left.saturating_sub(c.width().unwrap_or(0));
        }
        rest.push(library::Span::new(span.style, chars.as_str()));
    }
    rest
}

/// Breaks a text into lines at spaces.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split(' ') {
            let is_full = line.width() + 1 + word.width() > width;
            if !line.is_empty() && is_full {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_never_wider_than_its_room() {
        for text in ["", "plain", "日本語のテキスト", "e\u{301}e\u{301}", "a日b"] {
            for width in 0..12 {
                assert!(cut(text, width, "…").width() <= width, "{text} {width}");
                assert_eq!(fit(text, width, "…").width(), width, "{text} {width}");
                assert_eq!(fit_right(text, width, "~").width(), width, "{text} {width}");
            }
        }
    }

    #[test]
    fn what_was_cut_is_marked() {
        assert_eq!(cut("abcdef", 4, "…"), "abc…");
        assert_eq!(cut("abcd", 4, "…"), "abcd");
    }
}
