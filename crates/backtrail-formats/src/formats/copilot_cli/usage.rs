//! The usage of calls, each counted once.
//!
//! Newer versions note the usage of each call. Older ones note the output of each message, and
//! when the agent ends, the sum of each model: what was not counted by then is added.

use std::collections::VecDeque;

use backtrail::Usage;
use serde::{Deserialize, Serialize};

use super::super::keys::{hash_name, push_limited};
use crate::json::Object;

/// How many calls and models are remembered.
const MAX_CALLS: usize = 16;
const MAX_MODELS: usize = 12;

/// Tokens as the agent counts them: the input includes what the cache has to do with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tokens {
    input: u64,
    output: u64,
    read: u64,
    written: u64,
}

impl Tokens {
    /// Reads them. `None` if there are none.
    pub(super) fn read(usage: &Object<'_>) -> Option<Self> {
        let names = [
            "inputTokens",
            "outputTokens",
            "cacheReadTokens",
            "cacheWriteTokens",
        ];
        let [input, output, read, written] = names.map(|name| usage.number(name));
        (input.is_some() || output.is_some()).then(|| Self {
            input: input.unwrap_or(0),
            output: output.unwrap_or(0),
            read: read.unwrap_or(0),
            written: written.unwrap_or(0),
        })
    }

    /// Returns those of a message, of which only the output is known.
    pub(super) fn output(output: u64) -> Self {
        Self {
            output,
            ..Self::default()
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            read: self.read.saturating_add(other.read),
            written: self.written.saturating_add(other.written),
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_sub(other.input),
            output: self.output.saturating_sub(other.output),
            read: self.read.saturating_sub(other.read),
            written: self.written.saturating_sub(other.written),
        }
    }

    pub(super) fn usage(self, reasoning: Option<u64>) -> Usage {
        let cached = self.read.saturating_add(self.written);
        let input = self.input.saturating_sub(cached);
        let mut usage = Usage::new(input, self.output)
            .cache_read(self.read)
            .cache_creation(self.written);
        usage.reasoning_output_tokens = reasoning;
        usage
    }
}

/// What was counted.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Counted {
    /// By model: in all, and since the agent was started last.
    models: VecDeque<(String, Tokens, Tokens)>,
    calls: VecDeque<u64>,
}

impl Counted {
    /// Adds tokens of a model.
    pub(super) fn add(&mut self, model: &str, tokens: Tokens) {
        let known = self.models.iter_mut().find(|(name, ..)| name == model);
        match known {
            Some((_, all, run)) => {
                *all = all.plus(tokens);
                *run = run.plus(tokens);
            }
            None => {
                let model = model.chars().take(64).collect();
                push_limited(&mut self.models, (model, tokens, tokens), MAX_MODELS);
            }
        }
    }

    /// Remembers a call whose usage is known. Returns whether it is new.
    pub(super) fn add_call(&mut self, call: &str) -> bool {
        let call = hash_name(call);
        let is_new = !self.calls.contains(&call);
        if is_new {
            push_limited(&mut self.calls, call, MAX_CALLS);
        }
        is_new
    }

    /// Returns whether the usage of a call is known.
    pub(super) fn has_call(&self, call: &str) -> bool {
        self.calls.contains(&hash_name(call))
    }

    /// Returns the tokens that the sums at the end of a run have more than were counted, by
    /// model, and counts them. Newer versions add up all runs of a session.
    pub(super) fn rest(&mut self, shutdown: &Object<'_>) -> Vec<(String, Tokens)> {
        let is_all = shutdown.has("accountingSnapshot");
        let metrics = shutdown.object("modelMetrics").or_else(|| {
            let snapshot = shutdown.object("accountingSnapshot")?;
            snapshot.object("modelMetrics")
        });
        let metrics = metrics.unwrap_or_default();
        let mut found = Vec::new();
        for (model, json) in metrics.fields().take(MAX_MODELS) {
            let usage = Object::from_json(json).and_then(|metrics| metrics.object("usage"));
            let Some(sum) = usage.and_then(|usage| Tokens::read(&usage)) else {
                continue;
            };
            let known = self.models.iter().find(|(name, ..)| name == model);
            let counted = match (known, is_all) {
                (Some((_, all, _)), true) => *all,
                (Some((_, _, run)), false) => *run,
                (None, _) => Tokens::default(),
            };
            let rest = sum.minus(counted);
            if rest != Tokens::default() {
                self.add(model, rest);
                found.push((model.to_owned(), rest));
            }
        }
        self.models
            .iter_mut()
            .for_each(|(.., run)| *run = Tokens::default());
        found
    }
}
