//! Counts the usage of each model call of a rollout once.
//!
//! Codex writes a `token_count` with the total so far and the usage of the last call. It often
//! writes one again with the same total, without a call. Newer versions write a
//! `token_usage_record` per call as well; only that of a remote compaction has no `token_count`
//! of its own.

use std::collections::VecDeque;

use backtrail::Usage;
use serde::{Deserialize, Serialize};

use crate::formats::keys::push_limited;
use crate::json::Object;

/// How many records and compactions are remembered until they match.
const MAX_WAITING: usize = 8;
/// The longest id that is kept.
const MAX_ID: usize = 256;

/// Token counts as Codex writes them: the input includes cached tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tokens {
    input: u64,
    cached: u64,
    written: u64,
    output: u64,
    reasoning: u64,
    total: u64,
}

impl Tokens {
    pub(super) fn read(object: &Object<'_>) -> Self {
        let number = |name| object.number(name).unwrap_or(0);
        Self {
            input: number("input_tokens"),
            cached: object
                .number("cached_input_tokens")
                .unwrap_or_else(|| number("cache_read_input_tokens")),
            written: number("cache_write_input_tokens"),
            output: number("output_tokens"),
            reasoning: number("reasoning_output_tokens"),
            total: number("total_tokens"),
        }
    }

    /// Returns the difference to an earlier total. A smaller total is a new start.
    fn since(self, before: Self) -> Self {
        if self.input < before.input || self.output < before.output {
            return self;
        }
        Self {
            input: self.input - before.input,
            cached: self.cached.saturating_sub(before.cached),
            written: self.written.saturating_sub(before.written),
            output: self.output - before.output,
            reasoning: self.reasoning.saturating_sub(before.reasoning),
            total: self.total.saturating_sub(before.total),
        }
    }

    fn is_zero(self) -> bool {
        Self { total: 0, ..self } == Self::default()
    }

    /// Returns the usage, with input, cache reads and cache writes separated.
    pub(super) fn usage(self) -> Usage {
        let cached = self.cached.min(self.input);
        let written = self.written.min(self.input - cached);
        Usage::new(self.input - cached - written, self.output)
            .cache_read(cached)
            .cache_creation(written)
            .reasoning(self.reasoning)
    }
}

/// A call that is either a compaction or has its own `token_count`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Recorded {
    id: String,
    tokens: Tokens,
    total: Option<Tokens>,
}

/// Counts the calls of one rollout.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct UsageCounter {
    /// How many calls were counted.
    pub(super) calls: u64,
    /// Whether the rollout continues another one and its total.
    pub(super) follows: bool,
    /// Whether there is output of the model in the rollout's own part.
    pub(super) active: bool,
    total: Option<Tokens>,
    recorded: VecDeque<Recorded>,
    newest: Option<String>,
    compactions: VecDeque<String>,
    done: VecDeque<String>,
}

impl UsageCounter {
    /// Notes a total that was copied from another rollout, without counting it.
    pub(super) fn skip(&mut self, info: &Object<'_>) {
        self.total = tokens_at(info, "total_token_usage").or(self.total);
    }

    /// Returns the usage in a `token_count`. `None` if it belongs to no call, or to one that
    /// was counted.
    pub(super) fn count(&mut self, info: &Object<'_>) -> Option<Tokens> {
        let total = tokens_at(info, "total_token_usage");
        let last = tokens_at(info, "last_token_usage");
        let before = self.total;
        self.total = total.or(before);
        // A rollout that continues another one starts with its count.
        if self.follows && !self.active {
            return None;
        }
        let advanced = total.is_none() || total != before;
        let tokens = match (last, total) {
            (Some(last), _) if advanced => last,
            (_, Some(total)) => match before {
                Some(before) => total.since(before),
                None if self.follows => return None,
                None => total,
            },
            _ => return None,
        };
        if tokens.is_zero() {
            return None;
        }
        if advanced {
            self.settle(tokens, total);
        }
        Some(tokens)
    }

    /// Marks the newest record as counted, if it belongs to the call that is counted now.
    fn settle(&mut self, tokens: Tokens, total: Option<Tokens>) {
        let is_same = |newest: &Recorded| {
            newest.tokens == tokens || (total.is_some() && newest.total == total)
        };
        // An older record belongs to another call, even if it looks the same.
        let newest = self.recorded.back();
        if newest.is_some_and(|newest| self.newest.as_ref() == Some(&newest.id) && is_same(newest))
            && let Some(newest) = self.recorded.pop_back()
        {
            push_limited(&mut self.done, newest.id, MAX_WAITING);
        }
    }

    /// Takes a `token_usage_record`. Returns its usage if it belongs to a compaction that was
    /// sent already.
    pub(super) fn record(&mut self, payload: &Object<'_>) -> Option<Tokens> {
        self.active = true;
        let id = short(payload.string("response_id")?.trim())?;
        let tokens = tokens_at(payload, "usage")?;
        if tokens.is_zero() || self.done.contains(&id) {
            return None;
        }
        if let Some(at) = self.compactions.iter().position(|sent| *sent == id) {
            self.compactions.remove(at);
            push_limited(&mut self.done, id, MAX_WAITING);
            return Some(tokens);
        }
        let total = tokens_at(payload, "thread_token_usage");
        if !self.recorded.iter().any(|known| known.id == id) {
            self.newest = Some(id.clone());
            push_limited(
                &mut self.recorded,
                Recorded { id, tokens, total },
                MAX_WAITING,
            );
        }
        None
    }

    /// Returns the usage of a compaction, if it is known and was not counted.
    pub(super) fn compaction(&mut self, id: &str) -> Option<Tokens> {
        let id = short(id.trim())?;
        match self.recorded.iter().position(|known| known.id == id) {
            Some(at) => {
                let recorded = self.recorded.remove(at)?;
                push_limited(&mut self.done, id, MAX_WAITING);
                Some(recorded.tokens)
            }
            None => {
                if !self.done.contains(&id) {
                    push_limited(&mut self.compactions, id, MAX_WAITING);
                }
                None
            }
        }
    }
}

fn tokens_at(object: &Object<'_>, name: &str) -> Option<Tokens> {
    Some(Tokens::read(&object.object(name)?))
}

fn short(id: &str) -> Option<String> {
    (!id.is_empty() && id.len() <= MAX_ID).then(|| id.to_owned())
}
