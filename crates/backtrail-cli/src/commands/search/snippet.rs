//! A piece of a message, with the matching words in bold.

use anstyle::Style;
use backtrail::conversation::RelativePaths;
use backtrail_index::Snippet;

use crate::layout::{BOLD, Line, Span, cut, styled, wrap};

/// The most lines of a snippet: those of a piece of code, one of them wrapped.
const LINES: usize = 6;

/// Draws a snippet with its line breaks, in lines of at most `width` columns.
pub(super) fn lines(snippet: &Snippet, paths: &RelativePaths, width: Option<usize>) -> Vec<String> {
    let text = spans(snippet, paths);
    let Some(width) = width else {
        let text: String = text.iter().map(whole).collect();
        return text
            .lines()
            .map(|line| line.trim_end().to_owned())
            .collect();
    };
    wrapped(&text, width)
        .iter()
        .map(|line| styled(line))
        .collect()
}

/// Lays out a snippet in lines of at most `width` columns, with the matching words in bold.
pub(in crate::commands) fn laid_out(
    snippet: &Snippet,
    paths: &RelativePaths,
    width: usize,
) -> Vec<Line> {
    wrapped(&spans(snippet, paths), width)
}

fn wrapped(text: &[Span], width: usize) -> Vec<Line> {
    let mut lines = wrap(text, width);
    if lines.len() > LINES {
        lines.truncate(LINES);
        let last = &mut lines[LINES - 1];
        last.push(Span::plain("…"));
        *last = cut(last, width);
    }
    lines
}

/// Writes a span with the blanks at its end.
fn whole(span: &Span) -> String {
    let style = span.style;
    format!("{style}{}{style:#}", span.text)
}

/// Returns where the matching words are, in characters.
pub(super) fn characters(snippet: &Snippet) -> Vec<[usize; 2]> {
    let count = |end: usize| snippet.text.get(..end).map(|text| text.chars().count());
    let marks = snippet.marks.iter();
    marks
        .filter_map(|mark| Some([count(mark.start)?, count(mark.end)?]))
        .collect()
}

/// Returns the clean text of a snippet, with its words in their style, and paths as they are seen
/// from the session's directory.
fn spans(snippet: &Snippet, paths: &RelativePaths) -> Line {
    let mut spans = Line::new();
    let mut push = |text: &str, style: Style| {
        if !text.is_empty() {
            spans.push(Span::new(style, &paths.code(text)));
        }
    };
    let mut at = 0;
    for mark in &snippet.marks {
        // Marks that do not fit the text are skipped, not the text.
        let before = snippet.text.get(at..mark.start);
        if let (Some(before), Some(word)) = (before, snippet.text.get(mark.clone())) {
            push(before, Style::new());
            push(word, BOLD);
            at = mark.end;
        }
    }
    push(snippet.text.get(at..).unwrap_or_default(), Style::new());
    spans
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use super::*;

    fn snippet(text: &str, words: &[&str]) -> Snippet {
        let mut snippet = Snippet::default();
        snippet.text = text.to_owned();
        for word in words {
            let found = text.match_indices(word);
            snippet
                .marks
                .extend(found.map(|(at, word)| at..at + word.len()));
        }
        snippet.marks.sort_by_key(|mark| mark.start);
        snippet
    }

    fn seen(snippet: &Snippet, width: Option<usize>) -> Vec<String> {
        let lines = lines(snippet, &RelativePaths::new(Some("/w".as_ref())), width);
        let bold = |line: String| line.replace("\u{1b}[1m", "<").replace("\u{1b}[0m", ">");
        lines.into_iter().map(bold).collect()
    }

    #[test]
    fn matching_words_are_bold() {
        let found = snippet(
            "…round half even here:\n\tthe old rounding lost a cent…",
            &["even", "cent"],
        );
        for width in [None, Some(60)] {
            assert_eq!(
                seen(&found, width),
                [
                    "…round half <even> here:",
                    "    the old rounding lost a <cent>…"
                ]
            );
        }
        assert_eq!(characters(&found), [[12, 16], [48, 52]]);
    }

    #[test]
    fn paths_are_seen_from_the_directory_of_the_session() {
        let found = snippet("…see /w/src/cart.rs and /etc/cart", &["cart"]);
        assert_eq!(seen(&found, None), ["…see src/<cart>.rs and /etc/<cart>"]);
    }

    #[test]
    fn a_snippet_has_few_lines_and_none_is_too_wide() {
        let latin = snippet(&"a longer word here ".repeat(30), &["word"]);
        let wide = snippet(&"漢字かな交じり文".repeat(30), &["かな"]);
        let endless = snippet(&"x".repeat(1000), &[]);
        for found in [latin, wide, endless] {
            for width in [8, 20, 58, 78] {
                let lines = lines(&found, &RelativePaths::default(), Some(width));
                assert_eq!(lines.len(), LINES);
                for line in &lines {
                    let plain = anstream::adapter::strip_str(line).to_string();
                    assert!(plain.width() <= width, "{width}: {plain}");
                }
                assert!(lines[LINES - 1].contains('…'));
            }
        }
        let short = snippet("one two three", &["two"]);
        assert_eq!(seen(&short, Some(9)), ["one <two>", "three"]);
    }

    #[test]
    fn escapes_are_removed_and_wrong_marks_hide_nothing() {
        let hostile = snippet("a \u{1b}]0;x\u{7}b\u{9b}31m word \u{202e}c", &["word"]);
        assert_eq!(seen(&hostile, None), ["a b\u{fffd}31m <word> \u{fffd}c"]);
        let mut wrong = snippet("é word", &["word"]);
        wrong.marks.extend([1..2, 3..99]);
        wrong.marks.sort_by_key(|mark| mark.start);
        assert_eq!(seen(&wrong, None), ["é <word>"]);
        assert_eq!(characters(&wrong), [[2, 6]]);
    }
}
