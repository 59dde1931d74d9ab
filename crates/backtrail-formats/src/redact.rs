//! Removes secrets from text that will be shared.
//!
//! The rules know the keys of services by their shape or by their name, private keys, logins in
//! URLs, headers and commands, and values whose names say that they are secret and that do not
//! look made up. Obvious placeholders stay. A token is recognised by its shape alone, not by its
//! checksum: removing an invented one does no harm.
//!
//! A text is searched as it will be shown, too: after decoding (JSON, XML, percent signs), without
//! terminal escapes, and with lines joined that break a key in two.
//!
//! ```
//! use backtrail_formats::Redactor;
//!
//! let mut redactor = Redactor::new();
//! let text = "fetch postgres://app:tr0ub4dor@db/main";
//! assert_eq!(redactor.redact(text), "fetch postgres://app:[removed: password]@db/main");
//! assert_eq!(redactor.findings().next().map(|found| found.kind), Some("password"));
//! ```

mod assignments;
mod base64;
mod commands;
mod json;
mod judge;
mod manifests;
mod names;
mod pattern;
mod people;
mod private_keys;
mod rules;
mod shapes;
mod urls;
mod values;
mod views;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use backtrail::{Block, Fields, Json, Message, Text};
use serde::Serialize;

pub use json::JsonRedactor;

use self::rules::RULES;
use self::views::{Escapes, View};

/// How often a text is searched: each round finds only what the removals of the one before
/// exposed.
const MAX_ROUNDS: usize = 4;

/// Removes secrets and counts what it removed.
#[derive(Debug, Default)]
pub struct Redactor {
    place: u64,
    found: BTreeMap<&'static str, Removed>,
    people: Option<People>,
}

/// What names a person is removed, too.
#[derive(Debug, Default)]
struct People {
    /// Home directories that are not where they usually are.
    homes: Vec<String>,
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

    /// Also removes home directories and e-mail addresses. `home` is the caller's own directory,
    /// which may be anywhere.
    #[must_use]
    pub fn people(mut self, home: Option<&Path>) -> Self {
        /// A shorter path is not somebody's.
        const SHORTEST: usize = 4;
        let home = home
            .and_then(Path::to_str)
            .map(|home| home.trim_end_matches('/'));
        let homes = home.filter(|home| home.len() >= SHORTEST);
        self.people = Some(People {
            homes: homes.map(str::to_owned).into_iter().collect(),
        });
        self
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
        let spans = self.find(text);
        self.redact_spans(text, spans)
    }

    /// Redacts the value of a field whose name may say that it is secret.
    pub fn redact_named<'t>(&mut self, name: &str, value: &'t str) -> Cow<'t, str> {
        let mut spans = self.find(value);
        spans.extend(named(name, value));
        self.redact_spans(value, merged(spans))
    }

    /// Removes all of a text.
    fn redact_all(&mut self, text: &str, kind: &'static str) -> Cow<'static, str> {
        let span = Span {
            start: 0,
            end: text.len(),
            kind,
            exact: true,
        };
        self.remember(&span);
        Cow::Owned(replace(text, &[span]))
    }

    /// Redacts a word of a command line, by the words before it.
    fn redact_argument<'t>(&mut self, before: &str, value: &'t str) -> Cow<'t, str> {
        let quote = match value.contains([' ', '\n']) && !value.contains('\'') {
            true => "'",
            false => "",
        };
        let line = format!("{before} {quote}{value}{quote}");
        let from = before.len() + 1 + quote.len();
        let mut spans = self.find(value);
        spans.extend(self.find(&line).into_iter().filter_map(|span| {
            let start = span.start.max(from) - from;
            let end = span.end.min(from + value.len()).checked_sub(from)?;
            (start < end).then_some(Span { start, end, ..span })
        }));
        self.redact_spans(value, merged(spans))
    }

    /// Removes what was found, and what that exposed.
    fn redact_spans<'t>(&mut self, text: &'t str, mut spans: Vec<Span>) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        for _ in 0..MAX_ROUNDS {
            if spans.is_empty() {
                break;
            }
            spans.iter().for_each(|span| self.remember(span));
            text = Cow::Owned(replace(&text, &spans));
            spans = self.find(&text);
        }
        text
    }

    /// Returns what is to be removed from a text, in order and without overlaps: what is found in
    /// the text as it is, and in its views.
    fn find(&self, text: &str) -> Vec<Span> {
        let people = self.people.as_ref();
        let decoded = views::decoded(text);
        let mut chain: Vec<&View> = Vec::new();
        let mut own = RULES.find(text, people);
        let mut spans = own.clone();
        for view in &decoded {
            chain.push(view);
            own = RULES.find(&view.text, people);
            spans.extend(own.iter().map(|span| span.through(&chain)));
        }
        let shown = decoded.last().map_or(text, |view| &view.text);
        if let Some(view) = views::without_escapes(shown, Escapes::Blanks) {
            let chain = [&chain[..], &[&view]].concat();
            let found = RULES.find(&view.text, people);
            spans.extend(found.iter().map(|span| span.through(&chain)));
        }
        let plain = views::without_escapes(shown, Escapes::Removed);
        if let Some(view) = &plain {
            chain.push(view);
            own = RULES.find(&view.text, people);
            spans.extend(own.iter().map(|span| span.through(&chain)));
        }
        let shown = plain.as_ref().map_or(shown, |view| &view.text);
        if let Some(view) = views::joined(shown) {
            let is_broken = |span: &&Span| {
                // A list of keys, one on each line, is not a broken key.
                let begins = |at: &usize| {
                    own.iter()
                        .any(|own| own.start == view.source(&(*at..at + 1)).start)
                };
                let joins = view.joins_in(&(span.start..span.end));
                !joins.is_empty() && !joins.iter().any(begins)
            };
            let found = RULES.find(&view.text, people);
            chain.push(&view);
            let broken = found.iter().filter(is_broken);
            spans.extend(broken.map(|span| span.through(&chain)));
        }
        merged(spans)
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

impl Span {
    /// Returns the span of the text that views were made from, one from the other.
    fn through(&self, views: &[&View]) -> Self {
        let mut range = self.start..self.end;
        for view in views.iter().rev() {
            range = view.source(&range);
        }
        Self {
            start: range.start,
            end: range.end,
            ..*self
        }
    }
}

/// Finds the secret in the value of a field, by its name.
fn named(name: &str, value: &str) -> Option<Span> {
    let found = |value: &str| RULES.named(name, value);
    match views::without_escapes(value, Escapes::Removed) {
        Some(view) => found(&view.text).map(|span| span.through(&[&view])),
        None => found(value),
    }
}

/// Returns spans in order; those that overlap become one.
fn merged(mut spans: Vec<Span>) -> Vec<Span> {
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

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
