//! Text in columns, cut to a width.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use backtrail_view::library::{Line, Span};

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

/// Cuts a text to a width; what was cut is marked.
pub(crate) fn cut(text: &str, width: usize, ellipsis: &str) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(ellipsis.width());
    let mut used = 0;
    let mut cut: String = text
        .chars()
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= room
        })
        .collect();
    if width >= ellipsis.width() {
        cut.push_str(ellipsis);
    }
    cut
}

/// Cuts or fills a text to exactly a width.
pub(crate) fn fit(text: &str, width: usize, ellipsis: &str) -> String {
    let mut fitted = cut(text, width, ellipsis);
    let missing = width.saturating_sub(fitted.width());
    fitted.extend(std::iter::repeat_n(' ', missing));
    fitted
}

/// Fills a text from the left, or cuts it, to exactly a width.
pub(crate) fn fit_right(text: &str, width: usize, ellipsis: &str) -> String {
    let cut = cut(text, width, ellipsis);
    let missing = width.saturating_sub(cut.width());
    " ".repeat(missing) + &cut
}

#[cfg(test)]
mod tests {
    use backtrail_view::clean::shown;

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
}
