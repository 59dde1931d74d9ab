//! What the requests of a task used, from `ui_messages.json`.

use std::collections::VecDeque;

use backtrail::{Timestamp, Usage};
use serde_json::value::RawValue;

use super::Extension;
use crate::json::{Object, elements};

/// The requests of a task, in order.
#[derive(Debug, Default)]
pub(super) struct Requests(VecDeque<Request>);

/// A request to the model.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) at: Option<Timestamp>,
    pub(super) usage: Option<Usage>,
    pub(super) cost: Option<f64>,
}

impl Requests {
    /// Reads the requests from the messages that the user saw.
    pub(super) fn read(shown: &[u8], extension: Extension) -> Self {
        let text = String::from_utf8_lossy(shown);
        let Ok(list) = serde_json::from_str::<&RawValue>(&text) else {
            return Self::default();
        };
        let list = elements(list.get()).unwrap_or_default().into_iter();
        Self(list.filter_map(|json| request(json, extension)).collect())
    }

    /// Returns the next request, which a message of the user or the model belongs to.
    pub(super) fn next(&self) -> Option<&Request> {
        self.0.front()
    }

    /// Takes the request of a message of the model out, with those before it that were not
    /// answered. A message without a time belongs to the next request.
    pub(super) fn take(&mut self, at: Option<Timestamp>) -> (Vec<Request>, Option<Request>) {
        let Some(at) = at else {
            return (Vec::new(), self.0.pop_front());
        };
        let is_before = |request: &Request| request.at.is_none_or(|started| started <= at);
        let mut before = Vec::new();
        while self.0.front().is_some_and(is_before) {
            before.extend(self.0.pop_front());
        }
        let own = before.pop();
        (before, own)
    }

    /// Returns the requests that no message belongs to.
    pub(super) fn rest(self) -> impl Iterator<Item = Request> {
        self.0.into_iter()
    }
}

/// Returns the request that a message tells of.
fn request(json: &str, extension: Extension) -> Option<Request> {
    let shown = Object::from_json(json)?;
    let kind = shown.string("say")?;
    if kind != "api_req_started" && kind != "subagent_usage" {
        return None;
    }
    let text = shown.string("text").unwrap_or_default();
    let counts = Object::parse(&text).unwrap_or_default();
    Some(Request {
        at: shown.time("ts"),
        usage: usage(&counts, extension),
        cost: counts.float("cost"),
    })
}

/// Returns what a request used.
///
/// Roo Code counts what came from the cache as input since late in 2025, and always for
/// providers like OpenAI; before, the input was only what is new. Input that is less than what
/// came from the cache is new input.
fn usage(counts: &Object<'_>, extension: Extension) -> Option<Usage> {
    let output = counts.number("tokensOut");
    let count = |name: &str| counts.number(name).unwrap_or(0);
    let mut input = counts.number("tokensIn").or(output.map(|_| 0))?;
    let cached = count("cacheReads").saturating_add(count("cacheWrites"));
    if extension != Extension::Cline && input >= cached {
        input -= cached;
    }
    let usage = Usage::new(input, output.unwrap_or(0))
        .cache_read(count("cacheReads"))
        .cache_creation(count("cacheWrites"));
    (usage.total() > 0).then_some(usage)
}
