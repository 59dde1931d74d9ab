//! Reads JSON with comments and trailing commas, and keeps where everything is.

use std::ops::Range;

use serde::de::IgnoredAny;

use super::{Member, Node, NodeKind};

/// Deeper values are refused: no settings are nested like this.
const DEEPEST: usize = 200;

/// What JSON allows between values.
pub(super) const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

/// Reads a text from a place on.
pub(super) struct Parser<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    pub(super) comments: Vec<Range<usize>>,
}

impl Parser<'_> {
    /// Reads the outermost value; `None` if there are only blanks and comments.
    pub(super) fn document(&mut self) -> Result<Option<Node>, String> {
        self.skip()?;
        if self.rest().is_empty() {
            return Ok(None);
        }
        let root = self.node(0)?;
        self.skip()?;
        match self.rest().is_empty() {
            true => Ok(Some(root)),
            false => Err("there is more after the end".to_owned()),
        }
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// Skips blanks and comments.
    fn skip(&mut self) -> Result<(), String> {
        loop {
            let rest = self.rest();
            self.at += rest.len() - rest.trim_start_matches(BLANKS).len();
            let rest = self.rest();
            let length = match () {
                () if rest.starts_with("//") => {
                    let line = rest.split('\n').next().unwrap_or(rest);
                    line.strip_suffix('\r').unwrap_or(line).len()
                }
                () if rest.starts_with("/*") => match rest[2..].find("*/") {
                    Some(length) => length + 4,
                    None => return Err("a comment does not end".to_owned()),
                },
                () => return Ok(()),
            };
            self.comments.push(self.at..self.at + length);
            self.at += length;
        }
    }

    fn node(&mut self, depth: usize) -> Result<Node, String> {
        if depth > DEEPEST {
            return Err("it is nested too deeply".to_owned());
        }
        let start = self.at;
        let kind = match self.rest().as_bytes().first() {
            Some(b'{') => NodeKind::Object(self.list('}', |parser| parser.member(depth))?),
            Some(b'[') => NodeKind::Array(self.list(']', |parser| parser.node(depth + 1))?),
            Some(_) => self.scalar()?,
            None => return Err("it ends too early".to_owned()),
        };
        let span = start..self.at;
        Ok(Node { span, kind })
    }

    /// Reads what is between brackets. A comma may follow the last item.
    fn list<T>(
        &mut self,
        close: char,
        mut item: impl FnMut(&mut Self) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        let mut items = Vec::new();
        self.at += 1;
        loop {
            self.skip()?;
            if self.rest().starts_with(close) {
                break;
            }
            items.push(item(self)?);
            self.skip()?;
            match self.rest().chars().next() {
                Some(',') => self.at += 1,
                Some(next) if next == close => {}
                Some(_) => return Err(format!("expected , or {close}")),
                None => return Err(format!("it ends before {close}")),
            }
        }
        self.at += 1;
        Ok(items)
    }

    fn member(&mut self, depth: usize) -> Result<Member, String> {
        let start = self.at;
        if !self.rest().starts_with('"') {
            return Err("expected a key in quotes".to_owned());
        }
        self.scalar()?;
        let raw = &self.text[start..self.at];
        let key = serde_json::from_str(raw).unwrap_or_else(|_| raw.to_owned());
        self.skip()?;
        if !self.rest().starts_with(':') {
            return Err("expected : after a key".to_owned());
        }
        self.at += 1;
        self.skip()?;
        let value = self.node(depth + 1)?;
        Ok(Member { key, start, value })
    }

    /// Reads a string, a number or a word.
    fn scalar(&mut self) -> Result<NodeKind, String> {
        let rest = self.rest();
        let length = match rest.starts_with('"') {
            true => string_length(rest),
            false => {
                let ends = |c: char| ",:{}[]\"/".contains(c) || BLANKS.contains(&c);
                rest.find(ends).unwrap_or(rest.len())
            }
        };
        let scalar = &rest[..length];
        if serde_json::from_str::<IgnoredAny>(scalar).is_err() {
            return Err(match scalar.chars().next() {
                Some('"') => "a string is not valid or does not end".to_owned(),
                _ => "expected a value".to_owned(),
            });
        }
        self.at += length;
        Ok(NodeKind::Scalar)
    }
}

/// Returns how long a string is, with its quotes.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}
