//! A piece of a message, with the words that were looked for in bold.

use backtrail_index::Snippet;
use unicode_width::UnicodeWidthChar;

use crate::text::clean;
use crate::ui::BOLD;

/// A snippet takes no more lines than this.
const LINES: usize = 3;

/// A character, and whether it belongs to what was looked for.
type Marked = (char, bool);

/// Draws a snippet in lines that are no wider than a terminal; one where there is none.
pub(super) fn lines(snippet: &Snippet, width: Option<usize>) -> Vec<String> {
    let text = flat(snippet);
    let lines = match width {
        Some(width) => wrap(&text, width),
        None => vec![text],
    };
    lines.iter().map(|line| styled(line)).collect()
}

/// Returns where the words are, in characters.
pub(super) fn characters(snippet: &Snippet) -> Vec<[usize; 2]> {
    let count = |end: usize| snippet.text.get(..end).map(|text| text.chars().count());
    let marks = snippet.marks.iter();
    marks
        .filter_map(|mark| Some([count(mark.start)?, count(mark.end)?]))
        .collect()
}

/// Makes one clean line of a snippet.
fn flat(snippet: &Snippet) -> Vec<Marked> {
    let mut flat: Vec<Marked> = Vec::new();
    let mut push = |text: &str, marked: bool| {
        for c in clean(text).chars() {
            if !c.is_whitespace() {
                flat.push((c, marked));
            } else if flat.last().is_some_and(|(last, _)| *last != ' ') {
                flat.push((' ', marked));
            }
        }
    };
    let mut at = 0;
    for mark in &snippet.marks {
        // Marks that do not fit the text are left out, not the text.
        let before = snippet.text.get(at..mark.start);
        if let (Some(before), Some(word)) = (before, snippet.text.get(mark.clone())) {
            push(before, false);
            push(word, true);
            at = mark.end;
        }
    }
    push(snippet.text.get(at..).unwrap_or_default(), false);
    while flat.last().is_some_and(|(last, _)| *last == ' ') {
        flat.pop();
    }
    flat
}

/// Breaks a line between words; a word that is too long, where it must be.
fn wrap(text: &[Marked], width: usize) -> Vec<Vec<Marked>> {
    let mut lines = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if lines.len() == LINES {
            if let Some(last) = lines.last_mut() {
                shorten(last, width);
            }
            break;
        }
        let fitting = fitting(rest, width);
        let end = match rest.get(fitting) {
            None | Some((' ', _)) => fitting,
            Some(_) => {
                let space = rest[..fitting].iter().rposition(|(c, _)| *c == ' ');
                space.filter(|space| *space > 0).unwrap_or(fitting)
            }
        };
        lines.push(rest[..end].to_vec());
        rest = &rest[end..];
        while let [(' ', _), after @ ..] = rest {
            rest = after;
        }
    }
    lines
}

/// Returns how many characters fit, one at least.
fn fitting(text: &[Marked], width: usize) -> usize {
    let mut used = 0;
    let fits = text.iter().take_while(|(c, _)| {
        used += c.width().unwrap_or(0);
        used <= width
    });
    fits.count().max(1)
}

/// Ends a line with a sign that it was cut.
fn shorten(line: &mut Vec<Marked>, width: usize) {
    line.truncate(fitting(line, width.saturating_sub(1)));
    line.push(('…', false));
}

/// Writes a line with what was looked for in bold.
fn styled(line: &[Marked]) -> String {
    let mut out = String::new();
    let mut is_bold = false;
    for (c, marked) in line {
        if *marked != is_bold {
            out += &match marked {
                true => BOLD.render().to_string(),
                false => BOLD.render_reset().to_string(),
            };
            is_bold = *marked;
        }
        out.push(*c);
    }
    if is_bold {
        out += &BOLD.render_reset().to_string();
    }
    out
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
        let lines = lines(snippet, width);
        let bold = |line: String| line.replace("\u{1b}[1m", "<").replace("\u{1b}[0m", ">");
        lines.into_iter().map(bold).collect()
    }

    #[test]
    fn words_that_were_looked_for_are_bold() {
        let found = snippet(
            "…round half even here:\n\tthe old rounding lost a cent…",
            &["even", "cent"],
        );
        assert_eq!(
            seen(&found, None),
            ["…round half <even> here: the old rounding lost a <cent>…"]
        );
        assert_eq!(characters(&found), [[12, 16], [48, 52]]);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_there_are_few() {
        let latin = snippet(&"a longer word here ".repeat(30), &["word"]);
        let wide = snippet(&"漢字かな交じり文".repeat(30), &["かな"]);
        let endless = snippet(&"x".repeat(1000), &[]);
        for found in [latin, wide, endless] {
            for width in [8, 20, 58, 78] {
                let lines = lines(&found, Some(width));
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
    fn a_snippet_commands_no_terminal_and_wrong_marks_hide_nothing() {
        let hostile = snippet("a \u{1b}]0;x\u{7}b\u{9b}31m word \u{202e}c", &["word"]);
        assert_eq!(seen(&hostile, None), ["a b\u{fffd}31m <word> \u{fffd}c"]);
        let mut wrong = snippet("é word", &["word"]);
        wrong.marks.extend([1..2, 3..99]);
        wrong.marks.sort_by_key(|mark| mark.start);
        assert_eq!(seen(&wrong, None), ["é <word>"]);
        assert_eq!(characters(&wrong), [[2, 6]]);
    }
}
