//! Text in columns: harmless, and cut to a width.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::library::{Line, Span};

/// The columns between tab stops.
const TAB: usize = 4;

/// Returns a line of a file as it is shown: tabs as spaces, and nothing that a terminal would obey.
pub(crate) fn shown(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut column = 0;
    for c in line.chars() {
        let c = match c {
            '\t' => {
                let spaces = TAB - column % TAB;
                out.extend(std::iter::repeat_n(' ', spaces));
                column += spaces;
                continue;
            }
            // It would make the sign before it wider than the sum of their widths.
            '\u{fe0f}' => continue,
            c if is_unsafe(c) => char::REPLACEMENT_CHARACTER,
            c => c,
        };
        out.push(c);
        column += c.width().unwrap_or(0);
    }
    out
}

/// Control characters, and those that reorder text.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
}

/// Returns the columns of a line.
pub(crate) fn width(line: &[Span]) -> usize {
    line.iter().map(|span| span.text.width()).sum()
}

/// Cuts `room` columns out of a line, after the first `skip`. Of a wide character that is cut in
/// two, a space remains.
pub(crate) fn window(line: &[Span], skip: usize, room: usize) -> Line {
    let mut cut = Line::new();
    let (mut column, end) = (0, skip + room);
    for span in line {
        let mut text = String::new();
        for c in span.text.chars() {
            let wide = c.width().unwrap_or(0);
            let (from, to) = (column, column + wide);
            column = to;
            if from >= skip && to <= end && (wide > 0 || from > skip) {
                text.push(c);
            } else {
                let seen = to.min(end).saturating_sub(from.max(skip));
                text.extend(std::iter::repeat_n(' ', seen));
            }
        }
        if !text.is_empty() {
            cut.push(Span::new(span.style, text));
        }
        if column >= end {
            break;
        }
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, skip: usize, room: usize) -> String {
        let line = window(&[Span::plain(text)], skip, room);
        line.into_iter().map(|span| span.text).collect()
    }

    #[test]
    fn a_window_is_cut_by_columns() {
        assert_eq!(cut("hello world", 0, 5), "hello");
        assert_eq!(cut("hello world", 6, 50), "world");
        assert_eq!(cut("hello", 9, 5), "");
        assert_eq!(cut("日本語", 0, 4), "日本");
    }

    #[test]
    fn half_of_a_wide_character_is_a_space() {
        assert_eq!(cut("日本語", 1, 4), " 本 ");
        assert_eq!(cut("日本語", 0, 3), "日 ");
        assert_eq!(cut("日本語", 0, 1), " ");
    }

    #[test]
    fn a_mark_stays_with_its_letter() {
        assert_eq!(cut("e\u{301}a", 0, 1), "e\u{301}");
        assert_eq!(cut("e\u{301}a", 1, 1), "a");
        let heart = shown("\u{2764}\u{fe0f}\u{2764}\u{fe0f}");
        assert_eq!(width(&window(&[Span::plain(heart)], 0, 2)), 2);
    }

    #[test]
    fn no_line_of_a_file_reaches_the_terminal_with_its_escapes() {
        assert_eq!(shown("a\tb\t\tc"), "a   b       c");
        assert_eq!(
            shown("\x1b[31mred\u{202e}\r"),
            "\u{fffd}[31mred\u{fffd}\u{fffd}"
        );
    }
}
