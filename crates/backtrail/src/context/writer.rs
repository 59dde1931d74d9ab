//! Writes JSON piece by piece in a fixed order.

use super::parts::{ContextItem, ContextTurn, SentResult};
use crate::escape::write_str;

/// Growing JSON text.
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }

    /// Writes JSON text unchanged.
    pub(super) fn raw(&mut self, json: &str) -> &mut Self {
        self.0.extend_from_slice(json.as_bytes());
        self
    }

    /// Writes a string literal.
    pub(super) fn str(&mut self, text: &str) -> &mut Self {
        write_str(&mut self.0, text);
        self
    }

    /// Starts the next element of a list, with a comma unless it is the first.
    pub(super) fn next(&mut self) -> &mut Self {
        if self.0.last() != Some(&b'[') {
            self.0.push(b',');
        }
        self
    }

    /// Writes a value that serializes to JSON.
    pub(super) fn value<T: serde::Serialize>(&mut self, value: &T) -> &mut Self {
        serde_json::to_writer(&mut self.0, value)
            .expect("a block is JSON, and memory takes all that is written");
        self
    }

    /// Writes the items of a context: messages, and the results of calls.
    pub(super) fn items(
        &mut self,
        items: &[ContextItem<'_>],
        turn: fn(&mut Self, &ContextTurn<'_>),
        results: fn(&mut Self, &[SentResult<'_>]),
    ) -> &mut Self {
        for item in items {
            match item {
                ContextItem::Turn(said) => turn(self, said),
                ContextItem::Results(answers) => results(self, answers),
            }
        }
        self
    }

    pub(super) fn finish(self) -> String {
        String::from_utf8(self.0).expect("only UTF-8 was written")
    }
}
