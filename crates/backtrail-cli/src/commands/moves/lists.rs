//! Names in columns that fit a terminal.

use std::path::Path;

use unicode_width::UnicodeWidthStr;

use crate::layout::{Line, Span, pad_end, styled, wrap_words};
use crate::text::{grouped, one_line, visible_path};

/// How many names are given before the rest is a number.
const NAMED: usize = 10;

/// One line of a list: a label and what it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) label: String,
    pub(super) words: Vec<String>,
}

impl Item {
    /// Makes a line of names; those after the tenth are a number. `None` if there are none.
    pub(super) fn names<'a>(
        label: &str,
        paths: impl ExactSizeIterator<Item = &'a Path>,
        reason: Option<&str>,
    ) -> Option<Self> {
        let all = paths.len();
        let mut words: Vec<String> = paths.take(NAMED).map(visible_path).collect();
        let last = words.len().checked_sub(1)?;
        for word in &mut words[..last] {
            word.push(',');
        }
        if all > NAMED {
            words.push(format!("and {} more", grouped((all - NAMED) as u64)));
        }
        if let Some(reason) = reason {
            words.push(format!("({reason})"));
        }
        Some(Self {
            label: label.to_owned(),
            words,
        })
    }

    /// Makes a line of text that wraps between its words.
    pub(super) fn prose(label: &str, text: &str) -> Self {
        Self {
            label: label.to_owned(),
            words: text.split(' ').map(ToOwned::to_owned).collect(),
        }
    }

    pub(super) fn text(label: &str, text: String) -> Self {
        Self {
            label: label.to_owned(),
            words: vec![text],
        }
    }
}

/// Makes one line of text that takes at most `width` columns; a quote at its end stays
/// closed if it is cut.
pub(super) fn shortened(text: &str, width: usize) -> String {
    let quote = text.chars().last().filter(|c| matches!(c, '`' | '"'));
    let line = one_line(text, width);
    match quote {
        Some(quote) if line.ends_with('…') => {
            one_line(text, width.saturating_sub(1)) + &quote.to_string()
        }
        _ => line,
    }
}

/// Lays out a list: labels in one column, words in the other, wrapped to the width. A word
/// is never cut.
pub(super) fn lines(items: &[Item], width: Option<usize>) -> Vec<String> {
    let labels = items.iter().map(|item| item.label.width());
    let column = labels.max().unwrap_or(0) + 4;
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(column));
    let mut lines = Vec::new();
    for item in items {
        let words: Vec<Line> = item.words.iter().map(|it| vec![Span::plain(it)]).collect();
        let mut before = pad_end(&format!("  {}", item.label), column);
        for line in wrap_words(&words, room) {
            lines.push(format!("{before}{}", styled(&line)));
            before = " ".repeat(column);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn names(label: &str, paths: &[&str], reason: Option<&str>) -> Item {
        let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
        Item::names(label, paths.iter().map(PathBuf::as_path), reason).unwrap()
    }

    #[test]
    fn names_are_in_a_column_and_wrap_at_the_width_of_the_terminal() {
        let items = [
            names("restored", &["src/cart.rs", "src/money.rs"], None),
            names("deleted", &["tests/cart.rs"], None),
            Item::text("unchanged", "212 files".to_owned()),
        ];
        assert_eq!(
            lines(&items, None),
            [
                "  restored   src/cart.rs, src/money.rs",
                "  deleted    tests/cart.rs",
                "  unchanged  212 files",
            ]
        );
        assert_eq!(
            lines(&items[..1], Some(30)),
            ["  restored  src/cart.rs,", "            src/money.rs"]
        );
        for line in lines(&items, Some(30)) {
            assert!(line.width() <= 30, "{line}");
        }
    }

    #[test]
    fn a_text_that_is_cut_keeps_its_quotes() {
        assert_eq!(shortened("the run `make all`", 18), "the run `make all`");
        assert_eq!(shortened("the run `make all`", 15), "the run `make…`");
        assert_eq!(shortened("the rewind to there", 10), "the rewin…");
    }

    #[test]
    fn many_names_end_in_a_number_and_reasons_follow_them() {
        let paths: Vec<String> = (0..47).map(|n| format!("f{n}")).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let line = &lines(&[names("kept", &paths, Some("reason"))], None)[0];
        assert!(line.ends_with("f8, f9 and 37 more (reason)"), "{line}");
        let odd = names("kept", &["a\nb\u{1b}[31m"], None);
        assert_eq!(lines(&[odd], None), ["  kept  a^Jb^[[31m"]);
        let none: [&Path; 0] = [];
        assert_eq!(Item::names("kept", none.into_iter(), None), None);
    }
}
