//! Styled text.

use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::text::clean;

/// Less important text.
pub(crate) const DIM: Style = Style::new().dimmed();
/// Text that should catch the eye.
pub(crate) const BOLD: Style = Style::new().bold();

/// Text in one style, without terminal escapes of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) style: Style,
    pub(crate) text: String,
}

impl Span {
    /// Makes a span of any text; it is cleaned.
    pub(crate) fn new(style: Style, text: &str) -> Self {
        Self {
            style,
            text: clean(text).replace('\t', "    "),
        }
    }

    /// Makes a span without a style.
    pub(crate) fn plain(text: &str) -> Self {
        Self::new(Style::new(), text)
    }

    /// Makes a span of blanks.
    pub(crate) fn blank(columns: usize) -> Self {
        Self {
            style: Style::new(),
            text: " ".repeat(columns),
        }
    }
}

/// Spans side by side.
pub(crate) type Line = Vec<Span>;

/// Returns how many columns spans take.
pub(crate) fn width_of(line: &[Span]) -> usize {
    line.iter().map(|span| span.text.width()).sum()
}

/// Cuts spans to at most `width` columns, ending in an ellipsis if something was cut off.
pub(crate) fn cut(line: &[Span], width: usize) -> Line {
    if width_of(line) <= width {
        return line.to_vec();
    }
    let mut room = width.saturating_sub(1);
    let mut kept = Line::new();
    for span in line {
        let mut text = String::new();
        for cluster in clusters(&span.text) {
            if cluster.width() > room {
                text.push('…');
                kept.push(Span {
                    style: span.style,
                    text,
                });
                return kept;
            }
            room -= cluster.width();
            text.push_str(cluster);
        }
        kept.push(Span {
            style: span.style,
            text,
        });
    }
    kept
}

/// Cuts a path or another name in its middle, so that it ends as it does.
pub(crate) fn cut_middle(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let Some(room) = width.checked_sub(1) else {
        return String::new();
    };
    let all: Vec<&str> = clusters(text).collect();
    let end = fitting(all.iter().rev(), room - room / 3);
    let start = fitting(all.iter(), room - end.1);
    let (start, end) = (&all[..start.0], &all[all.len() - end.0..]);
    format!("{}…{}", start.concat(), end.concat())
}

/// Returns how many characters fit, and how many columns they take.
fn fitting<'a>(characters: impl Iterator<Item = &'a &'a str>, room: usize) -> (usize, usize) {
    let (mut count, mut taken) = (0, 0);
    for character in characters {
        if taken + character.width() > room {
            break;
        }
        count += 1;
        taken += character.width();
    }
    (count, taken)
}

/// Writes spans with the escapes of their styles, without blanks at the end.
pub(crate) fn styled(line: &[Span]) -> String {
    let is_blank = |span: &&Span| span.text.trim_end().is_empty();
    let blank = line.iter().rev().take_while(is_blank).count();
    let shown = &line[..line.len() - blank];
    let mut out = String::new();
    for (n, span) in shown.iter().enumerate() {
        let text = match n + 1 == shown.len() {
            true => span.text.trim_end(),
            false => &span.text,
        };
        let style = span.style;
        if !text.is_empty() {
            out += &format!("{style}{text}{style:#}");
        }
    }
    out
}

/// Adds blanks after text, up to a width.
pub(crate) fn pad_end(text: &str, width: usize) -> String {
    let room = width.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(room))
}

/// Adds blanks before text, up to a width.
pub(crate) fn pad_start(text: &str, width: usize) -> String {
    let room = width.saturating_sub(text.width());
    format!("{}{text}", " ".repeat(room))
}

/// Splits text into characters, each with the combining ones after it.
pub(super) fn clusters(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        // Nearly all text is ASCII, and two ASCII characters never combine.
        if let [first, second, ..] = rest.as_bytes()
            && first.is_ascii()
            && second.is_ascii()
        {
            let (cluster, after) = rest.split_at(1);
            rest = after;
            return Some(cluster);
        }
        let mut chars = rest.char_indices();
        let (_, first) = chars.next()?;
        let mut last = first;
        let mut end = rest.len();
        for (at, c) in chars {
            let joins = (c.width() == Some(0) && c != '\n')
                || last == '\u{200d}'
                || ('\u{1f3fb}'..='\u{1f3ff}').contains(&c);
            if !joins || first == '\n' {
                end = at;
                break;
            }
            last = c;
        }
        let (cluster, after) = rest.split_at(end);
        rest = after;
        Some(cluster)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_cut_ends_in_an_ellipsis() {
        let line = [Span::plain("one "), Span::plain("漢字漢字")];
        let text = |line: Line| line.into_iter().map(|span| span.text).collect::<String>();
        assert_eq!(text(cut(&line, 12)), "one 漢字漢字");
        assert_eq!(text(cut(&line, 8)), "one 漢…");
    }

    #[test]
    fn a_path_is_cut_in_its_middle_and_keeps_its_end() {
        let path = "crates/backtrail-cli/src/main.rs";
        assert_eq!(cut_middle(path, 32), path);
        assert_eq!(cut_middle(path, 20), "crates…i/src/main.rs");
        assert_eq!(cut_middle(path, 2), "…s");
        assert_eq!(cut_middle(path, 1), "…");
        assert_eq!(cut_middle(path, 0), "");
        for width in 0..30 {
            let cut = cut_middle("漢字/漢字漢字/e\u{301}漢字漢字.rs", width);
            assert!(cut.width() <= width, "{width}: {cut}");
        }
    }

    #[test]
    fn padding_counts_columns() {
        assert_eq!(pad_end("漢字", 6), "漢字  ");
        assert_eq!(
            pad_start("e\u{301}", 3),
            "  e\u{301}",
            "an accent takes no room"
        );
        assert_eq!(pad_end("too long", 3), "too long");
    }

    #[test]
    fn styles_end_where_their_text_ends_and_no_line_ends_in_blanks() {
        let bold = Style::new().bold();
        let line = [Span::new(bold, "a"), Span::plain(" b  "), Span::blank(3)];
        assert_eq!(styled(&line), format!("{bold}a{bold:#} b"));
    }
}
