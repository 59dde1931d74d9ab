//! The context: what a model should be sent, in the shape of a provider.
//!
//! Pure functions from messages to JSON. The same messages give the same bytes,
//! and those of a shorter history are a prefix of those of a longer one, so that
//! a provider's prompt cache stays warm. What a provider would refuse is mended
//! here by fixed rules, each application of which is a [`Mend`]; the log is never
//! touched. `docs/context.md` has the shapes and the rules, one by one.
//!
//! `calls` finds which result answers which call, `mending` applies the rules and
//! gives what is left to the writers, one for each shape, which only write.

mod anthropic;
mod calls;
mod chat;
mod input;
mod mend;
mod mending;
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
mod valid;

use crate::message::Message;

pub use mend::{Mend, MendRule};
pub use shape::Shape;

/// What a model should be sent: JSON in one shape, and what was mended in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    shape: Shape,
    json: String,
    mends: Vec<Mend>,
    skipped: u64,
}

impl Context {
    /// Returns the JSON: one object, the part of a request that is the
    /// conversation.
    pub fn as_json(&self) -> &str {
        &self.json
    }

    /// Returns the JSON as a string of its own.
    pub fn into_json(self) -> String {
        self.json
    }

    /// Returns the shape it has.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns where what is sent is not what was said, in the order of the
    /// records.
    pub fn mends(&self) -> &[Mend] {
        &self.mends
    }

    /// Returns how many places and messages of the history could not be read, and
    /// so are not in it, or not whole.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    pub(crate) fn with_skipped(self, skipped: u64) -> Self {
        Self { skipped, ..self }
    }
}

/// What a context is rendered from.
#[derive(Debug, Clone, Default)]
pub(crate) struct ContextInput {
    /// The system messages at the very beginning of the history.
    pub(crate) instructions: Vec<Said>,
    /// The text of the last compaction.
    pub(crate) summary: Option<String>,
    /// What was said since, or all of it.
    pub(crate) messages: Vec<Said>,
}

/// A message, the seq of its record and the model that made it.
#[derive(Debug, Clone)]
pub(crate) struct Said {
    pub(crate) seq: u64,
    pub(crate) model: Option<String>,
    pub(crate) message: Message,
}

/// Renders what a model should be sent.
pub(crate) fn render(shape: Shape, input: &ContextInput) -> Context {
    let mended = mending::mend(shape, input);
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
