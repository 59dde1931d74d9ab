//! Blocks of code in a conversation, in the colours of their languages.

use backtrail_view::highlight::Language;
use backtrail_view::library;
use backtrail_view::library::Palette;

use crate::commands::diff::{ADDED, REMOVED};
use crate::layout::{DIM, Line, Span};
use crate::text::clean;

/// A block of code.
#[derive(Debug, Default)]
pub(super) struct CodeBlock {
    text: String,
    /// What follows its fence.
    words: String,
}

impl CodeBlock {
    /// Makes an empty block with what follows its fence.
    pub(super) fn fenced(words: &str) -> Self {
        Self {
            text: String::new(),
            words: words.to_owned(),
        }
    }

    /// Adds text at its end.
    pub(super) fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Returns its lines: highlighted if the language is known, else dim.
    pub(super) fn lines(&self, palette: Palette) -> Vec<Line> {
        // What is highlighted is what is shown: an escape must not end up in two spans.
        let text = clean(&self.text).replace('\t', "    ");
        let lines = text.trim_end_matches('\n').split('\n');
        if matches!(self.words.as_str(), "diff" | "patch") {
            return lines.map(diff_line).collect();
        }
        let language = Language::named(&self.words, lines.clone(), palette);
        let mut highlighter = language.as_ref().map(Language::start);
        let line = |line| match &mut highlighter {
            Some(highlighter) => converted(highlighter.line(line)),
            None => vec![Span::new(DIM, line)],
        };
        lines.map(line).collect()
    }
}

fn diff_line(line: &str) -> Line {
    let style = match line.as_bytes().first() {
        Some(b'+') => ADDED,
        Some(b'-') => REMOVED,
        _ => DIM,
    };
    vec![Span::new(style, line)]
}

/// Turns a highlighted line, whose text is clean, into one of the page.
pub(super) fn converted(line: library::Line) -> Line {
    let span = |span: library::Span| Span {
        style: span.style,
        text: span.text,
    };
    line.into_iter().map(span).collect()
}
