//! The page that `show` writes on.

use std::io::{self, Write};

use anstyle::Style;

use super::glyphs::Glyphs;
use crate::layout::{BOLD, DIM, Line, Span, cut, styled, width_of};
use crate::ui::Ui;

/// No line of text is wider, however wide the terminal is: it would be hard to read.
const WIDEST: usize = 100;
/// How wide lines are by default.
const USUAL: usize = 80;
/// How far everything below a heading is indented.
pub(super) const INDENT: usize = 2;

/// A page, and what was last written on it.
pub(super) struct Sheet<'a> {
    out: &'a mut dyn Write,
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

impl<'a> Sheet<'a> {
    pub(super) fn new(out: &'a mut dyn Write, ui: &Ui) -> Self {
        let width = ui.width().unwrap_or(USUAL).clamp(20, WIDEST);
        Self {
            out,
            width,
            glyphs: Glyphs::of_locale(),
            last: Kind::Start,
        }
    }

    pub(super) fn glyphs(&self) -> &'static Glyphs {
        self.glyphs
    }

    /// Returns how wide lines below a heading may be.
    pub(super) fn room(&self) -> usize {
        self.width - INDENT
    }

    /// Writes lines of the page's head, from the edge on.
    pub(super) fn head(&mut self, line: &[Span]) -> io::Result<()> {
        self.last = Kind::Text;
        self.line(0, line)
    }

    /// Writes lines below a heading.
    pub(super) fn put(&mut self, kind: Kind, lines: &[Line]) -> io::Result<()> {
        self.space(kind)?;
        lines.iter().try_for_each(|line| self.line(INDENT, line))
    }

    /// Writes a prompt, with its sign before it.
    pub(super) fn prompt(&mut self, lines: &[Line]) -> io::Result<()> {
        self.space(Kind::Text)?;
        let sign = Span::new(BOLD, &format!("{} ", self.glyphs.prompt));
        for (n, line) in lines.iter().enumerate() {
            let before = match n {
                0 => sign.clone(),
                _ => Span::plain("  "),
            };
            let whole: Line = [before].into_iter().chain(line.iter().cloned()).collect();
            self.line(0, &whole)?;
        }
        Ok(())
    }

    /// Writes a rule with words at its left and at its right end.
    pub(super) fn heading(&mut self, words: &[Span], edge: &str) -> io::Result<()> {
        self.space(Kind::Heading)?;
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
        self.line(0, &line)
    }

    /// Writes words at the left and at the right edge: below each other if there is no
    /// room for both.
    pub(super) fn footer(&mut self, left: &str, right: &str) -> io::Result<()> {
        if left.is_empty() && right.is_empty() {
            return Ok(());
        }
        self.space(Kind::Footer)?;
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
                self.line(INDENT, &line)
            }
            None => {
                self.line(INDENT, &left)?;
                let between = aside(0).unwrap_or(0);
                let line: Line = [gap(between)].into_iter().chain(right).collect();
                self.line(INDENT, &line)
            }
        }
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Leaves an empty line where there should be one.
    fn space(&mut self, kind: Kind) -> io::Result<()> {
        let apart = match (self.last, kind) {
            (Kind::Start, _) => false,
            (_, Kind::Heading | Kind::Footer) => true,
            (Kind::Heading, _) => false,
            (Kind::Small, Kind::Small) => false,
            _ => true,
        };
        self.last = kind;
        if apart {
            writeln!(self.out)?;
        }
        Ok(())
    }

    fn line(&mut self, indent: usize, line: &[Span]) -> io::Result<()> {
        match styled(line).as_str() {
            "" => writeln!(self.out),
            line => writeln!(self.out, "{}{line}", " ".repeat(indent)),
        }
    }
}
