//! Removes secrets from text that will be shared.
//!
//! The rules are precise rather than many: the keys of providers by their shape, private keys,
//! passwords in URLs, and values whose names say that they are secret and that do not look made
//! up. Obvious placeholders stay. A token is recognised by its shape alone, not by its checksum:
//! removing an invented one does no harm.
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
use serde::Serialize;

pub use json::JsonRedactor;

/// How often a text is searched: each round finds only what the removals of the one before
/// exposed.
const MAX_ROUNDS: usize = 4;

/// Removes secrets and counts what it removed.
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

/// The removed secrets of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding<'a> {
    /// The kind, as it is written in place of the secret.
    pub kind: &'static str,
    /// How many were removed.
    pub count: u64,
    /// The places, in order: records or lines, as the caller counts them.
    pub places: &'a BTreeSet<u64>,
}

/// A secret in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    start: usize,
    end: usize,
    kind: &'static str,
    /// If two overlap, this one names both.
    exact: bool,
}

impl Redactor {
    /// Creates one that has removed nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the place of what is redacted next: the number of a record or a line.
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

    /// Returns a text without its secrets. Each is replaced by its kind:
    /// `[removed: github token]`.
    pub fn redact<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        for _ in 0..MAX_ROUNDS {
            let spans = find(&text);
            if spans.is_empty() {
                break;
            }
            spans.iter().for_each(|span| self.remember(span));
            text = Cow::Owned(replace(&text, &spans));
        }
        text
    }

    /// Redacts the value of a field whose name may say that it is secret.
    pub fn redact_named<'t>(&mut self, name: &str, value: &'t str) -> Cow<'t, str> {
        let inner = find(value);
        match context::value_of(name, value) {
            // A key with a known shape has a better name.
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

    /// Redacts the strings in a JSON value, including the names of fields; `None` if nothing is
    /// removed.
    pub fn redact_json(&mut self, json: &Json) -> Option<Json> {
        self.redact_field("", json)
    }

    fn redact_field(&mut self, name: &str, json: &Json) -> Option<Json> {
        let text = json::redact_strings(self, name, json.as_str())?;
        Json::new(text).ok()
    }

    /// Redacts a message.
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
            // The data is not text.
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

/// Returns the secrets in a text, in order and without overlaps.
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

/// Returns whether a value is a placeholder: `xxxx`, `<your-key>`, `$TOKEN`,
/// `AKIAIOSFODNN7EXAMPLE`, or the replacement of a removed secret.
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
