//! The page that a conversation is written on, line by line.

use std::io::{self, Write};

use anstyle::Style;

use super::glyphs::Glyphs;
use crate::layout::{BOLD, DIM, Line, Span, cut, styled, width_of};

/// No line of text is wider, however wide the terminal is: it would be hard to read.
const WIDEST: usize = 100;
/// How wide lines are by default.
const USUAL: usize = 80;
/// How far everything below a heading is indented.
pub(super) const INDENT: usize = 2;

/// The lines that were written, and what was last.
#[derive(Debug)]
pub(super) struct Sheet {
    lines: Vec<Line>,
    width: usize,
    glyphs: &'static Glyphs,
    last: Kind,
}

/// What is written: it decides whether an empty line comes before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Start,
    Heading,
    /// Dialogue.
    Text,
    /// One line, close to others of its kind.
    Small,
    /// How a turn ended.
    Footer,
}

impl Sheet {
    /// Creates an empty page for lines of a width.
    pub(super) fn new(width: Option<usize>) -> Self {
        Self {
            lines: Vec::new(),
            width: width.unwrap_or(USUAL).clamp(20, WIDEST),
            glyphs: Glyphs::of_locale(),
            last: Kind::Start,
        }
    }

    /// Continues a page that something was written on before.
    pub(super) fn continued(mut self) -> Self {
        self.last = Kind::Text;
        self
    }

    /// Removes and returns the lines so far.
    pub(super) fn take(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.lines)
    }

    /// Prints the lines so far, and removes them.
    pub(super) fn print(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let mut lines = self.lines.drain(..);
        lines.try_for_each(|line| writeln!(out, "{}", styled(&line)))
    }

    pub(super) fn glyphs(&self) -> &'static Glyphs {
        self.glyphs
    }

    /// Returns how wide lines below a heading may be.
    pub(super) fn room(&self) -> usize {
        self.width - INDENT
    }

    /// Writes lines of the page's head, from the edge on.
    pub(super) fn head(&mut self, line: &[Span]) {
        self.last = Kind::Text;
        self.line(0, line);
    }

    /// Writes lines below a heading.
    pub(super) fn put(&mut self, kind: Kind, lines: &[Line]) {
        self.space(kind);
        lines.iter().for_each(|line| self.line(INDENT, line));
    }

    /// Writes a prompt, with its sign before it.
    pub(super) fn prompt(&mut self, lines: &[Line]) {
        self.space(Kind::Text);
        let sign = Span::new(BOLD, &format!("{} ", self.glyphs.prompt));
        for (n, line) in lines.iter().enumerate() {
            let before = match n {
                0 => sign.clone(),
                _ => Span::plain("  "),
            };
            let whole: Line = [before].into_iter().chain(line.iter().cloned()).collect();
            self.line(0, &whole);
        }
    }

    /// Writes a rule with words at its left and at its right end.
    pub(super) fn heading(&mut self, words: &[Span], edge: &str) {
        self.space(Kind::Heading);
        let rule = |columns: usize| Span::new(DIM, &self.glyphs.rule.repeat(columns));
        let mut line: Line = vec![rule(2), Span::plain(" ")];
        line.extend(cut(words, self.width.saturating_sub(8)));
        line.push(Span::plain(" "));
        let edge = match edge {
            "" => Line::new(),
            edge => vec![Span::new(DIM, &format!(" {edge} ")), rule(2)],
        };
        match self.width.checked_sub(width_of(&line) + width_of(&edge)) {
            Some(between) => {
                line.push(rule(between));
                line.extend(edge);
            }
            None => line.push(rule(self.width.saturating_sub(width_of(&line)))),
        }
        self.line(0, &line);
    }

    /// Writes words at the left and at the right edge: below each other if there is no
    /// room for both.
    pub(super) fn footer(&mut self, left: &str, right: &str) {
        if left.is_empty() && right.is_empty() {
            return;
        }
        self.space(Kind::Footer);
        let right = cut(&[Span::new(DIM, right)], self.room());
        let left = cut(&[Span::new(Style::new(), left)], self.room());
        let room = self.room();
        let aside = |used: usize| room.checked_sub(used + width_of(&right));
        let gap = |columns: usize| Span::plain(&" ".repeat(columns));
        match aside(width_of(&left)).filter(|between| *between >= 2) {
            Some(between) => {
                let line: Line = left
                    .into_iter()
                    .chain([gap(between)])
                    .chain(right)
                    .collect();
                self.line(INDENT, &line);
            }
            None => {
                self.line(INDENT, &left);
                let between = aside(0).unwrap_or(0);
                let line: Line = [gap(between)].into_iter().chain(right).collect();
                self.line(INDENT, &line);
            }
        }
    }

    /// Leaves an empty line where there should be one.
    fn space(&mut self, kind: Kind) {
        let apart = match (self.last, kind) {
            (Kind::Start, _) => false,
            (_, Kind::Heading | Kind::Footer) => true,
            (Kind::Heading, _) => false,
            (Kind::Small, Kind::Small) => false,
            _ => true,
        };
        self.last = kind;
        if apart {
            self.lines.push(Line::new());
        }
    }

    fn line(&mut self, indent: usize, line: &[Span]) {
        let is_blank = line.iter().all(|span| span.text.trim_end().is_empty());
        self.lines.push(match is_blank {
            true => Line::new(),
            false => indented(indent, line),
        });
    }
}

fn indented(indent: usize, line: &[Span]) -> Line {
    let blank = (indent > 0).then(|| Span::blank(indent));
    blank.into_iter().chain(line.iter().cloned()).collect()
}
