//! A request and its answer, as the server logs them.

use serde_json::{Value, json};

use crate::conversation::{Call, Conversation};

/// What a request was for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A step of a turn of the script.
    Turn {
        /// The marker of the turn.
        marker: String,
        /// The number of the step, from 0.
        step: usize,
    },
    /// Something else that the agent asks a model: a title, a summary, whether to go on.
    Side,
    /// Not for a model: a list of models, a count of tokens, an unknown path.
    Other,
}

/// What the model answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The number of the response, from 1. Its id is made of it.
    pub number: u64,
    /// What it thinks.
    pub thinking: Option<String>,
    /// What it says.
    pub text: String,
    /// What it calls.
    pub calls: Vec<Call>,
    /// The tokens that it claims to have used.
    pub usage: Usage,
}

/// The tokens of a response. No number is part of another, except for the reasoning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Input that no cache had.
    pub input: u64,
    /// Output, reasoning included.
    pub output: u64,
    /// Input that the cache had.
    pub cache_read: u64,
    /// Input that was added to the cache. Only Anthropic's protocol has it.
    pub cache_write: u64,
    /// The part of the output that is reasoning.
    pub reasoning: u64,
}

/// A request and its answer.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The number of the request, from 1.
    pub number: usize,
    /// The method.
    pub method: String,
    /// The path, with the query.
    pub path: String,
    /// What the request was for.
    pub kind: Kind,
    /// The body of the request.
    pub body: Value,
    /// What the request says; empty if it was not for a model.
    pub request: Conversation,
    /// What was answered; none if the request was not for a model.
    pub answer: Option<Answer>,
    /// Why the request could not be answered.
    pub error: Option<String>,
}

impl Exchange {
    /// Whether this is a step of the turn with this marker.
    #[must_use]
    pub fn is_of(&self, turn: &str) -> bool {
        matches!(&self.kind, Kind::Turn { marker, .. } if marker == turn)
    }

    /// Returns the line of the log.
    pub(crate) fn to_json(&self) -> Value {
        let (kind, marker, step) = match &self.kind {
            Kind::Turn { marker, step } => ("turn", Some(marker), Some(step)),
            Kind::Side => ("side", None, None),
            Kind::Other => ("other", None, None),
        };
        json!({
            "number": self.number, "method": self.method, "path": self.path, "kind": kind,
            "turn": marker, "step": step, "body": self.body,
            "answer": self.answer.as_ref().map(Answer::to_json), "error": self.error,
        })
    }
}

impl Answer {
    /// Returns the id of the response.
    #[must_use]
    pub fn id(&self) -> String {
        format!("resp_{}", self.number)
    }

    fn to_json(&self) -> Value {
        let calls = self.calls.iter();
        let calls = calls
            .map(|call| json!({"id": call.id, "name": call.name, "arguments": call.arguments}));
        let usage = self.usage;
        json!({
            "id": self.id(), "thinking": self.thinking, "text": self.text,
            "calls": calls.collect::<Vec<_>>(),
            "usage": {
                "input": usage.input, "output": usage.output, "cache_read": usage.cache_read,
                "cache_write": usage.cache_write, "reasoning": usage.reasoning,
            },
        })
    }
}

impl Usage {
    /// Returns numbers that no other response has, so that one that is lost or counted twice shows.
    pub(crate) fn of_response(number: u64, has_thinking: bool) -> Self {
        let reasoning = if has_thinking { 7 } else { 0 };
        Self {
            input: 100 + number * number,
            output: 40 + number + reasoning,
            cache_read: 1000 + 3 * number,
            cache_write: 0,
            reasoning,
        }
    }
}

impl std::iter::Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(usages: I) -> Self {
        usages.fold(Self::default(), |sum, usage| Self {
            input: sum.input + usage.input,
            output: sum.output + usage.output,
            cache_read: sum.cache_read + usage.cache_read,
            cache_write: sum.cache_write + usage.cache_write,
            reasoning: sum.reasoning + usage.reasoning,
        })
    }
}
