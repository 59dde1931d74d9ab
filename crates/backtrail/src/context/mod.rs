//! The context: what to send to a model, in the shape of a provider.
//!
//! Pure functions from messages to JSON. The same messages give the same bytes, and a
//! shorter history gives a prefix of a longer one, so that a provider's prompt cache
//! stays warm. Anything a provider would refuse is mended by fixed rules, each
//! application of which is a [`Mend`]; the log is never changed. `docs/context.md`
//! describes the shapes and rules one by one.
//!
//! `calls` finds which result answers which call, `mender` applies the rules, and one
//! writer for each shape writes the result without deciding anything. `hand_over` makes values
//! of it, for other programs.

mod anthropic;
mod calls;
mod chat;
mod hand_over;
mod input;
mod mend;
mod mender;
mod neutral;
mod openai;
mod output;
mod parts;
mod rules;
mod shape;
mod writer;

#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod valid_tests;

use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::message::Message;
use crate::time::Timestamp;

pub(crate) use hand_over::AddedTexts;
pub use hand_over::{
    HandOver, HandOverCall, HandOverContent, HandOverExtent, HandOverMedia, HandOverMessage,
    HandOverOptions, HandOverPart, LeftBehind, ReplyPart,
};
pub use mend::{Mend, MendRule};
pub use shape::Shape;

/// The context to send to a model: JSON in one shape, and the mends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Context {
    shape: Shape,
    #[serde(serialize_with = "as_json")]
    json: String,
    mends: Vec<Mend>,
    skipped: u64,
}

/// Serializes a string of JSON as that JSON.
fn as_json<S: Serializer>(json: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let raw: &RawValue = serde_json::from_str(json).map_err(S::Error::custom)?;
    raw.serialize(serializer)
}

impl Context {
    /// Returns the JSON object with the conversation part of a request.
    pub fn as_json(&self) -> &str {
        &self.json
    }

    /// Returns the JSON as an owned string.
    pub fn into_json(self) -> String {
        self.json
    }

    /// Returns the shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns where the context differs from what was recorded, in the order of the
    /// records.
    pub fn mends(&self) -> &[Mend] {
        &self.mends
    }

    /// Returns how many places and messages of the history could not be read, so that
    /// they are missing or incomplete.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    pub(crate) fn with_skipped(self, skipped: u64) -> Self {
        Self { skipped, ..self }
    }
}

/// The input of a context.
#[derive(Debug, Clone, Default)]
pub(crate) struct ContextInput {
    /// The system messages at the very beginning of the history.
    pub(crate) instructions: Vec<ContextMessage>,
    /// The text of the last compaction.
    pub(crate) summary: Option<String>,
    /// The messages since the compaction, or all of them.
    pub(crate) messages: Vec<ContextMessage>,
}

/// A message with the seq of its record and the model that wrote it.
#[derive(Debug, Clone)]
pub(crate) struct ContextMessage {
    pub(crate) seq: u64,
    pub(crate) model: Option<String>,
    /// When the record was made, if known.
    pub(crate) at: Option<Timestamp>,
    pub(crate) message: Message,
    /// The later records of the same response: the first block of each, and its seq.
    joined: Vec<(usize, u64)>,
}

impl ContextMessage {
    pub(crate) fn new(seq: u64, model: Option<String>, message: Message) -> Self {
        Self {
            seq,
            model,
            at: None,
            message,
            joined: Vec::new(),
        }
    }

    /// Sets when the record was made.
    pub(crate) fn at(mut self, at: Option<Timestamp>) -> Self {
        self.at = at;
        self
    }

    /// Adds the next record of the same response.
    pub(crate) fn join(&mut self, later: Self) {
        self.joined.push((self.message.blocks.len(), later.seq));
        self.message.blocks.extend(later.message.blocks);
    }

    /// Returns the seq of the record with a block.
    fn seq_of(&self, block: usize) -> u64 {
        let after = self.joined.partition_point(|(first, _)| *first <= block);
        let joined = after.checked_sub(1).map(|last| self.joined[last].1);
        joined.unwrap_or(self.seq)
    }
}

pub(crate) fn render(shape: Shape, input: &ContextInput) -> Context {
    let mended = mender::mend(shape, input);
    let json = match shape {
        Shape::Neutral => neutral::write(&mended),
        Shape::Anthropic => anthropic::write(&mended),
        Shape::OpenAi => openai::write(&mended),
        Shape::OpenAiChat => chat::write(&mended),
    };
    Context {
        shape,
        json,
        mends: mended.mends,
        skipped: 0,
    }
}
