//! Removes secrets from text that is going to be handed on.
//!
//! The rules are precise rather than many: the keys of providers by their shape, private
//! keys, passwords in addresses, and values that are named as secrets and look like none
//! that a person would make up. What is plainly a placeholder stays. A token is told by
//! its shape alone, not by its checksum: to remove an invented one does no harm.
//!
//! ```
//! use backtrail_formats::Redactor;
//!
//! let mut redactor = Redactor::new();
//! let text = "fetch postgres://app:tr0ub4dor@db/main";
//! assert_eq!(redactor.redact(text), "fetch postgres://app:[removed: password]@db/main");
//! assert_eq!(redactor.findings().next().map(|found| found.kind), Some("password"));
//! ```

mod context;
mod json;
mod tokens;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use backtrail::{Block, Fields, Json, Message, Text};

pub use json::JsonRedactor;

/// After so many rounds whatever is left stays: each one finds only what the removals of
/// the one before laid bare.
const ROUNDS: usize = 4;

/// Removes secrets and remembers what it removed.
#[derive(Debug, Default)]
pub struct Redactor {
    place: u64,
    found: BTreeMap<&'static str, Removed>,
}

#[derive(Debug, Default)]
struct Removed {
    count: u64,
    places: BTreeSet<u64>,
}

/// What was removed of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding<'a> {
    /// What it was, as it stands in its place.
    pub kind: &'static str,
    /// How often.
    pub count: u64,
    /// The places, in order: records or lines, as the caller counts them.
    pub places: &'a BTreeSet<u64>,
}

/// A part of a text that is a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    start: usize,
    end: usize,
    kind: &'static str,
    /// Where two overlap, this one names both.
    exact: bool,
}

impl Redactor {
    /// Makes one that has removed nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets where what is redacted next stands: the number of a record or of a line.
    pub fn at(&mut self, place: u64) {
        self.place = place;
    }

    /// Returns what was removed so far.
    pub fn findings(&self) -> impl Iterator<Item = Finding<'_>> {
        self.found.iter().map(|(kind, removed)| Finding {
            kind,
            count: removed.count,
            places: &removed.places,
        })
    }

    /// Returns a text without its secrets. Each is replaced by what it was:
    /// `[removed: github token]`.
    pub fn redact<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        for _ in 0..ROUNDS {
            let spans = find(&text);
            if spans.is_empty() {
                break;
            }
            spans.iter().for_each(|span| self.remember(span));
            text = Cow::Owned(replace(&text, &spans));
        }
        text
    }

    /// Redacts the value of a field, whose name may say that it is secret.
    pub fn redact_named<'t>(&mut self, name: &str, value: &'t str) -> Cow<'t, str> {
        let inner = find(value);
        match context::value_of(name, value) {
            // A key that is known by its shape says better what it was.
            Some(span) if !inner.iter().any(|span| span.exact) => {
                self.remember(&span);
                Cow::Owned(replace(value, &[span]))
            }
            _ => self.redact(value),
        }
    }

    fn remember(&mut self, span: &Span) {
        let removed = self.found.entry(span.kind).or_default();
        removed.count += 1;
        removed.places.insert(self.place);
    }

    /// Redacts the strings within a JSON value, the names of fields among them; `None`
    /// where nothing is removed.
    pub fn redact_json(&mut self, json: &Json) -> Option<Json> {
        self.redact_field("", json)
    }

    fn redact_field(&mut self, name: &str, json: &Json) -> Option<Json> {
        let text = json::redact_strings(self, name, json.as_str())?;
        Json::new(text).ok()
    }

    /// Redacts all that is said in a message.
    pub fn redact_message(&mut self, message: &mut Message) {
        message
            .blocks
            .iter_mut()
            .for_each(|block| self.block(block));
        self.fields(&mut message.extra);
    }

    fn block(&mut self, block: &mut Block) {
        match block {
            Block::Text(block) => {
                self.text(&mut block.text);
                self.fields(&mut block.extra);
            }
            Block::Thinking(block) => {
                self.text(&mut block.thinking);
                self.fields(&mut block.extra);
            }
            Block::ToolUse(block) => {
                self.text(&mut block.name);
                self.json(&mut block.input);
                self.fields(&mut block.extra);
            }
            Block::ToolResult(block) => {
                if let Some(name) = &mut block.tool_name {
                    self.text(name);
                }
                self.json(&mut block.output);
                self.fields(&mut block.extra);
            }
            // The data is no text.
            Block::Media(block) => {
                self.text(&mut block.media_type);
                self.fields(&mut block.extra);
            }
            Block::Other(json) => self.json(json),
            _ => {}
        }
    }

    fn text(&mut self, text: &mut Text) {
        if let Cow::Owned(redacted) = self.redact(text) {
            *text = redacted.into();
        }
    }

    fn json(&mut self, json: &mut Json) {
        if let Some(redacted) = self.redact_json(json) {
            *json = redacted;
        }
    }

    fn fields(&mut self, fields: &mut Fields) {
        if fields.is_empty() {
            return;
        }
        let mut redacted = Fields::default();
        for (name, value) in fields.iter() {
            let value = self
                .redact_field(name, value)
                .unwrap_or_else(|| value.clone());
            redacted.push(self.redact(name).into_owned(), value);
        }
        *fields = redacted;
    }
}

/// Returns the secrets in a text, in order, none of them within another.
fn find(text: &str) -> Vec<Span> {
    let mut spans = Vec::new();
    tokens::find(text, &mut spans);
    context::find(text, &mut spans);
    spans.sort_by_key(|span| (span.start, span.end));
    let mut apart: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match apart.last_mut() {
            Some(last) if span.start < last.end => {
                if span.exact && !last.exact {
                    (last.kind, last.exact) = (span.kind, true);
                }
                last.end = last.end.max(span.end);
            }
            _ => apart.push(span),
        }
    }
    apart
}

fn replace(text: &str, spans: &[Span]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for span in spans {
        out.push_str(text.get(at..span.start).unwrap_or_default());
        out.push_str("[removed: ");
        out.push_str(span.kind);
        out.push(']');
        at = span.end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

/// Returns whether a value only stands for a secret: `xxxx`, `<your-key>`, `$TOKEN`,
/// `AKIAIOSFODNN7EXAMPLE`, or what was put in place of one.
fn is_placeholder(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let has = |word: &str| lower.contains(word);
    let is_sign = |c: u8| {
        matches!(
            c,
            b'<' | b'>' | b'{' | b'}' | b'[' | b']' | b'$' | b'%' | b'*'
        )
    };
    let fill = |c: u8| matches!(c, b'x' | b'0' | b'.' | b'-' | b'_');
    has("example")
        || has("placeholder")
        || has("changeme")
        || has("redacted")
        || has("xxxxxx")
        || lower.starts_with("your")
        || has("your-")
        || has("your_")
        || value.contains('…')
        || value.bytes().next().is_some_and(is_sign)
        || value.contains("***")
        || value.contains("${")
        || value.contains("{{")
        || lower.bytes().all(fill)
}

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
