//! A text as it will be shown: decoded, without terminal escapes, and with lines joined that
//! break a key in two. A view knows which bytes of the text each of its own bytes is made of, so
//! whatever is found in a view is removed from the text.

use std::ops::Range;

use crate::escapes::escape_len;

/// How often a text is decoded: JSON in JSON in a URL.
const DEEPEST: usize = 3;

/// A text made from another one.
#[derive(Debug)]
pub(super) struct View {
    pub(super) text: String,
    pieces: Vec<Piece>,
    /// Where a break was taken out.
    joins: Vec<usize>,
}

/// A part of a view: copied, or one character that stands for several.
#[derive(Debug, Clone, Copy)]
struct Piece {
    at: usize,
    /// Its start and end in the other text.
    from: (usize, usize),
    is_copy: bool,
}

impl View {
    /// Returns the bytes of the other text that a part of this one is made of.
    pub(super) fn source(&self, part: &Range<usize>) -> Range<usize> {
        let last = |before: usize| {
            let after = self.pieces.partition_point(|piece| piece.at <= before);
            after.checked_sub(1).and_then(|at| self.pieces.get(at))
        };
        let start = last(part.start).map_or(0, |piece| match piece.is_copy {
            true => piece.from.0 + (part.start - piece.at),
            false => piece.from.0,
        });
        let end = last(part.end.saturating_sub(1)).map_or(0, |piece| match piece.is_copy {
            true => piece.from.0 + (part.end - piece.at),
            false => piece.from.1,
        });
        start..end.max(start)
    }

    /// Returns the places inside a part where a break was taken out.
    pub(super) fn joins_in(&self, part: &Range<usize>) -> &[usize] {
        let from = self.joins.partition_point(|at| *at <= part.start);
        let to = self.joins.partition_point(|at| *at < part.end);
        self.joins.get(from..to).unwrap_or_default()
    }
}

/// Makes a view from left to right.
struct Builder<'t> {
    source: &'t str,
    /// How much of the source is in the view.
    done: usize,
    view: View,
}

impl<'t> Builder<'t> {
    fn new(source: &'t str) -> Self {
        let view = View {
            text: String::with_capacity(source.len()),
            pieces: Vec::new(),
            joins: Vec::new(),
        };
        Self {
            source,
            done: 0,
            view,
        }
    }

    fn copy(&mut self, upto: usize) {
        let Some(part) = self.source.get(self.done..upto).filter(|it| !it.is_empty()) else {
            return;
        };
        self.view.pieces.push(Piece {
            at: self.view.text.len(),
            from: (self.done, upto),
            is_copy: true,
        });
        self.view.text.push_str(part);
        self.done = upto;
    }

    /// Copies up to `from`; one character, or none, stands for the rest up to `to`.
    fn replace(&mut self, from: usize, to: usize, by: Option<char>) {
        self.copy(from);
        if let Some(by) = by {
            self.view.pieces.push(Piece {
                at: self.view.text.len(),
                from: (from, to),
                is_copy: false,
            });
            self.view.text.push(by);
        }
        self.done = to;
    }

    /// Returns the view; `None` if it is the text itself.
    fn finish(mut self) -> Option<View> {
        if self.done == 0 {
            return None;
        }
        self.copy(self.source.len());
        Some(self.view)
    }
}

/// Returns a text after decoding, once for each level: `\n`, `\u0041`, `%3D`, `&quot;`.
pub(super) fn decoded(text: &str) -> Vec<View> {
    let mut views: Vec<View> = Vec::new();
    for _ in 0..DEEPEST {
        let source = views.last().map_or(text, |view| &view.text);
        match decode(source) {
            Some(view) => views.push(view),
            None => break,
        }
    }
    views
}

fn decode(text: &str) -> Option<View> {
    let mut view = Builder::new(text);
    for at in memchr::memchr3_iter(b'\\', b'%', b'&', text.as_bytes()) {
        if at < view.done {
            continue;
        }
        let rest = &text.as_bytes()[at + 1..];
        let code = match text.as_bytes()[at] {
            b'\\' => after_backslash(rest),
            b'%' => hex(rest, 2).map(|c| (c, 2)),
            _ => entity(rest),
        };
        if let Some((c, length)) = code {
            view.replace(at, at + 1 + length, Some(c));
        }
    }
    view.finish()
}

/// Returns the character of an escape, and the length of the escape after the backslash.
fn after_backslash(rest: &[u8]) -> Option<(char, usize)> {
    let c = match rest.first()? {
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'e' => '\u{1b}',
        c @ (b'"' | b'\'' | b'/' | b'\\' | b'`') => char::from(*c),
        b'u' => return hex(&rest[1..], 4).map(|c| (c, 5)),
        b'x' => return hex(&rest[1..], 2).map(|c| (c, 3)),
        b'0' if rest.starts_with(b"033") => return Some(('\u{1b}', 3)),
        _ => return None,
    };
    Some((c, 1))
}

/// Returns an ASCII character that is written as hexadecimal digits.
fn hex(rest: &[u8], digits: usize) -> Option<char> {
    let text = std::str::from_utf8(rest.get(..digits)?).ok()?;
    let is_plain = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let code = u8::from_str_radix(text.get(digits - 2..)?, 16).ok()?;
    let is_small = text.bytes().rev().skip(2).all(|byte| byte == b'0');
    (is_plain && is_small && code.is_ascii()).then(|| char::from(code))
}

/// Returns the character of an XML entity, and the length of the entity after `&`.
fn entity(rest: &[u8]) -> Option<(char, usize)> {
    const NAMED: [(&[u8], char); 6] = [
        (b"quot;", '"'),
        (b"apos;", '\''),
        (b"amp;", '&'),
        (b"lt;", '<'),
        (b"gt;", '>'),
        (b"nbsp;", ' '),
    ];
    if let Some((name, c)) = NAMED.iter().find(|(name, _)| rest.starts_with(name)) {
        return Some((*c, name.len()));
    }
    let end = rest.iter().take(7).position(|byte| *byte == b';')?;
    let number = std::str::from_utf8(&rest[..end]).ok()?.strip_prefix('#')?;
    let code = match number.strip_prefix(['x', 'X']) {
        Some(digits) => u8::from_str_radix(digits, 16).ok()?,
        None => number.parse().ok()?,
    };
    code.is_ascii().then(|| (char::from(code), end + 1))
}

/// What is in place of a terminal escape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escapes {
    /// Nothing: a key may be coloured in parts.
    Removed,
    /// A blank: a colour may be all that is between a key and the next word.
    Blanks,
}

/// Returns a text without its terminal escapes and invisible characters; `None` if it has none.
pub(super) fn without_escapes(text: &str, escapes: Escapes) -> Option<View> {
    // Most texts have none.
    if text.is_ascii() && memchr::memchr2(0x1b, b'^', text.as_bytes()).is_none() {
        return None;
    }
    let is_start = |byte: u8| matches!(byte, 0x1b | b'^' | 0xc2 | 0xe2 | 0xef);
    let mut view = Builder::new(text);
    for (at, byte) in text.bytes().enumerate() {
        if at < view.done || !is_start(byte) {
            continue;
        }
        let rest = &text[at..];
        let length = match byte {
            0x1b => escape_len(rest),
            // As `cat -v` shows it.
            b'^' if rest.starts_with("^[[") => 1 + escape_len(&rest[1..]),
            b'^' => 0,
            _ => invisible_len(rest),
        };
        if length > 0 {
            let by = (escapes == Escapes::Blanks).then_some(' ');
            view.replace(at, at + length, by);
        }
    }
    view.finish()
}

/// Returns the length of an invisible character at the beginning, or of a control sequence that
/// starts with a single character.
fn invisible_len(text: &str) -> usize {
    match text.chars().next() {
        Some('\u{9b}') => {
            let end = text[2..].find(|c: char| ('\u{40}'..='\u{7e}').contains(&c));
            end.map_or(2, |end| 2 + end + 1)
        }
        Some(c @ ('\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}')) => c.len_utf8(),
        _ => 0,
    }
}

/// Returns a text whose lines are joined where a break may be inside a key; `None` if there is
/// no such place.
pub(super) fn joined(text: &str) -> Option<View> {
    let bytes = text.as_bytes();
    let mut view = Builder::new(text);
    for at in memchr::memchr_iter(b'\n', bytes) {
        let blanks = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\\');
        let before = at - bytes[..at].iter().rev().take(8).take_while(blanks).count();
        if before < view.done || !before.checked_sub(1).is_some_and(|it| is_part(bytes[it])) {
            continue;
        }
        let rest = &bytes[at + 1..];
        let indent = rest.iter().take(64).take_while(blanks).count();
        if continues(&rest[indent..]) {
            view.replace(before, at + 1 + indent, None);
            view.view.joins.push(view.view.text.len());
        }
    }
    view.finish()
}

/// Returns whether a line may begin with the rest of a key.
fn continues(line: &[u8]) -> bool {
    /// The longest part that is examined.
    const MOST: usize = 4096;
    let length = line
        .iter()
        .take(MOST)
        .take_while(|byte| is_part(**byte))
        .count();
    let part = &line[..length];
    let is_mixed = part.iter().any(u8::is_ascii_digit)
        || part
            .windows(2)
            .any(|two| two[0].is_ascii_lowercase() && two[1].is_ascii_uppercase());
    let ends = match line.get(length) {
        None => true,
        Some(byte) => {
            byte.is_ascii_whitespace()
                || matches!(
                    byte,
                    b'"' | b'\'' | b'`' | b',' | b';' | b')' | b'<' | b'&' | b'@' | b'\\' | b']'
                )
        }
    };
    is_mixed && !assigns(part) && ends
}

/// Returns whether a line begins with a name and its value: `A=1`.
fn assigns(part: &[u8]) -> bool {
    /// The longest name.
    const LONGEST: usize = 40;
    let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let name = part.iter().take(LONGEST).take_while(is_name).count();
    let is_value = |byte: &u8| byte.is_ascii_alphanumeric();
    part.first().is_some_and(u8::is_ascii_alphabetic)
        && part.get(name) == Some(&b'=')
        && part.get(name + 1).is_some_and(is_value)
}

fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'_' | b'-' | b'+' | b'/' | b'=' | b'.' | b'~' | b'%')
}
