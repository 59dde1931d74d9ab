//! Messages, and the events that they become.

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use backtrail::{Block, Json, Message, Role, ToolResult, Usage};

use super::super::blocks::{meta, meta_text, starts_with_any, unknown_block};
use super::super::keys::{hash_json, short_hash, valid_key};
use super::super::parts::{function_call, function_result, part_block, response_output};
use crate::error::Result;
use crate::event::{Details, Event, EventSink, MessageEvent};
use crate::json::{Object, elements, is_string, to_json, to_text};

/// Who wrote a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MessageKind {
    User,
    Model,
    /// From the agent to the user; the model does not see it.
    Notice,
    Unknown(String),
}

/// Returns who wrote a message.
pub(super) fn message_kind(record: &Object<'_>) -> MessageKind {
    let kind = record.string("type").or_else(|| record.string("role"));
    match kind.as_deref() {
        Some("user" | "function") => MessageKind::User,
        Some("gemini" | "model" | "assistant") => MessageKind::Model,
        Some("info" | "error" | "warning") => MessageKind::Notice,
        Some(other) => MessageKind::Unknown(other.to_owned()),
        None => MessageKind::Unknown("no type".to_owned()),
    }
}

/// Returns whether a message contains only tool results.
pub(super) fn is_results(record: &Object<'_>) -> bool {
    let parts = parts(record);
    let is_result =
        |part: &&str| Object::from_json(part).is_some_and(|part| part.has("functionResponse"));
    message_kind(record) == MessageKind::User && !parts.is_empty() && parts.iter().all(is_result)
}

/// Returns whether a message is the context that the agent writes at the start of a session.
pub(super) fn is_session_context(record: &Object<'_>) -> bool {
    message_kind(record) == MessageKind::User
        && starts_with_any(&message_text(record), &["<session_context>"])
}

/// Returns the text of a message.
pub(super) fn message_text(record: &Object<'_>) -> String {
    let message = Message::new(Role::User, content_blocks(record, &HashSet::new()));
    message.text().trim().to_owned()
}

/// Sends the events of messages.
pub(super) struct Emitter<'s> {
    pub(super) sink: &'s mut dyn EventSink,
    session: &'s str,
    pub(super) model: Option<String>,
    /// The calls of the last reply whose results were sent with it.
    pub(super) answered: Vec<String>,
    /// The keys that were used, and how often.
    keys: HashMap<[u8; 8], u64>,
    /// The key of the last event.
    pub(super) last_key: Option<String>,
    count: u64,
}

impl<'s> Emitter<'s> {
    /// Creates one; the model and the answered calls are those of an earlier reading.
    pub(super) fn new(
        sink: &'s mut dyn EventSink,
        session: &'s str,
        model: Option<String>,
        answered: Vec<String>,
    ) -> Self {
        Self {
            sink,
            session,
            model,
            answered,
            keys: HashMap::new(),
            last_key: None,
            count: 0,
        }
    }

    /// Returns a key for an id and its content: a revised message has another key.
    pub(super) fn key(&mut self, id: &str, json: &str) -> String {
        let key = format!("{}~{}", valid_key(id), hash_json(json, 8));
        let first = short_hash(key.as_bytes());
        loop {
            let count = self.keys.entry(first).or_default();
            *count += 1;
            if *count == 1 {
                return key;
            }
            let again = format!("{key}~{count}");
            if let Entry::Vacant(vacant) = self.keys.entry(short_hash(again.as_bytes())) {
                vacant.insert(1);
                return again;
            }
        }
    }

    /// Sends the events of a message, and returns how many there are.
    pub(super) fn emit(&mut self, record: &Object<'_>) -> Result<u64> {
        let (before, place) = (self.count, self.keys.len());
        let id = record.string("id").map(|id| id.into_owned());
        let id = id.unwrap_or_else(|| format!("n{place}"));
        let key = self.key(&id, &content_of(record));
        match message_kind(record) {
            MessageKind::User => self.emit_user(record, &key)?,
            MessageKind::Model => self.emit_reply(record, &id, &key)?,
            MessageKind::Notice => {
                let text = message_text(record);
                if !text.is_empty() {
                    self.send(MessageEvent::new(key, meta_text(text)), record)?;
                }
            }
            MessageKind::Unknown(_) => {}
        }
        Ok(self.count - before)
    }

    fn send(&mut self, mut event: MessageEvent, record: &Object<'_>) -> Result<()> {
        event.at = event.at.or_else(|| record.time("timestamp"));
        self.count += 1;
        self.last_key = Some(event.key.clone());
        self.sink.event(Event::Message(event))
    }

    fn emit_user(&mut self, record: &Object<'_>, key: &str) -> Result<()> {
        let (mut results, content): (Vec<_>, Vec<_>) = content_blocks(record, &HashSet::new())
            .into_iter()
            .partition(|block| matches!(block, Block::ToolResult(_)));
        let answered: HashSet<&str> = self.answered.iter().map(String::as_str).collect();
        results.retain(|block| match block {
            Block::ToolResult(result) => !answered.contains(result.tool_use_id.as_str()),
            _ => true,
        });
        if !results.is_empty() {
            let key = match content.is_empty() {
                true => key.to_owned(),
                false => format!("{key}/results"),
            };
            let event = MessageEvent::new(key, Message::new(Role::Tool, results));
            self.send(event, record)?;
        }
        if content.is_empty() {
            return Ok(());
        }
        let message = Message::new(Role::User, content);
        let message = match starts_with_any(&message.text(), &INJECTED) {
            true => meta(message),
            false => message,
        };
        self.send(MessageEvent::new(key, message), record)
    }

    fn emit_reply(&mut self, record: &Object<'_>, id: &str, key: &str) -> Result<()> {
        let calls = record.list("toolCalls").unwrap_or_default();
        let calls: Vec<Object<'_>> = calls.into_iter().filter_map(Object::from_json).collect();
        let model = record.non_blank("model").map(Cow::into_owned);
        if model.is_some() && model != self.model {
            self.model.clone_from(&model);
            self.sink.details(Details {
                model: model.clone(),
                ..Details::default()
            })?;
        }
        let mut message = Message::assistant(reply(record, &calls));
        message.usage = record.object("tokens").and_then(|tokens| usage(&tokens));
        let results: Vec<ToolResult> = calls.iter().filter_map(tool_result).collect();
        self.answered = results
            .iter()
            .map(|result| result.tool_use_id.to_string())
            .collect();
        let mut event = MessageEvent::new(key, message);
        event.response_id = event.message.usage.as_ref().map(|_| {
            let session = self.session;
            format!("{session}#{}", valid_key(id))
        });
        event.model = model;
        self.send(event, record)?;
        if results.is_empty() {
            return Ok(());
        }
        let blocks = results.into_iter().map(Block::ToolResult);
        let results = Message::new(Role::Tool, blocks);
        let mut event = MessageEvent::new(format!("{key}/results"), results);
        event.at = calls.iter().filter_map(|call| call.time("timestamp")).max();
        self.send(event, record)
    }
}

/// Returns the content of a message, with its fields sorted: it identifies the message.
fn content_of(record: &Object<'_>) -> String {
    let fields = record.fields();
    let fields = fields.filter(|(name, _)| *name != "displayContent");
    let mut fields: Vec<String> = fields
        .map(|(name, json)| format!("{name}:{json}"))
        .collect();
    fields.sort();
    fields.concat()
}

/// How texts start that the agent writes in the user's name.
const INJECTED: [&str; 5] = [
    "<session_context>",
    "This is the Gemini CLI. We are setting up the context for our chat.",
    "<hook_context>",
    "<state_snapshot>",
    "<environment_context>",
];

fn reply(record: &Object<'_>, calls: &[Object<'_>]) -> Vec<Block> {
    let thoughts = record.list("thoughts").unwrap_or_default();
    let mut all: Vec<Block> = thoughts.into_iter().map(thought).collect();
    let ids = calls.iter().filter_map(|call| call.string("id"));
    let ids: HashSet<String> = ids.map(|id| id.into_owned()).collect();
    all.extend(content_blocks(record, &ids));
    all.extend(calls.iter().map(|call| Block::ToolUse(function_call(call))));
    all
}

fn thought(json: &str) -> Block {
    let Some(object) = Object::from_json(json) else {
        return unknown_block("gemini_thought", json);
    };
    let part = |name: &str| object.text(name).filter(|text| !text.is_empty());
    match (part("subject"), part("description")) {
        (Some(subject), Some(description)) => {
            Block::thinking(format!("{subject}\n\n{description}"))
        }
        (Some(text), None) | (None, Some(text)) => Block::thinking(text.as_str()),
        (None, None) => unknown_block("gemini_thought", json),
    }
}

/// Returns the parts of a message: a string, a part, or a list of them.
fn parts<'a>(record: &Object<'a>) -> Vec<&'a str> {
    let content = record.get("content").filter(|content| *content != "null");
    let Some(content) = content.or_else(|| record.get("parts")) else {
        return Vec::new();
    };
    elements(content).unwrap_or_else(|| vec![content])
}

/// Returns the blocks of a message, without calls that are elsewhere.
fn content_blocks(record: &Object<'_>, calls: &HashSet<String>) -> Vec<Block> {
    let mut blocks = Vec::new();
    for json in parts(record) {
        if is_string(json) {
            let text = to_text(json).filter(|text| !text.is_empty());
            blocks.extend(text.map(Block::text));
            continue;
        }
        let call = Object::from_json(json).and_then(|part| part.object("functionCall"));
        let id = call.as_ref().and_then(|call| call.string("id"));
        if id.is_some_and(|id| calls.contains(id.as_ref())) {
            continue;
        }
        blocks.push(part_block(json).unwrap_or_else(|| unknown_block("gemini_part", json)));
    }
    blocks
}

/// Returns the result of a call, if there is one yet.
fn tool_result(call: &Object<'_>) -> Option<ToolResult> {
    let status = call.string("status");
    let failed = matches!(status.as_deref(), Some("error" | "cancelled"));
    let done = failed || status.as_deref() == Some("success");
    let given = call.get("result").filter(|given| *given != "null");
    let (output, is_error) = match given {
        Some(given) => match single_response(given) {
            Some((output, is_error)) => (Some(output), is_error),
            None => (Some(to_json(given)?), false),
        },
        None if done => (call.string_json("resultDisplay"), false),
        None => return None,
    };
    Some(function_result(call, output, is_error || failed))
}

fn single_response(given: &str) -> Option<(Json, bool)> {
    let parts = elements(given).unwrap_or_else(|| vec![given]);
    match parts.as_slice() {
        [text] if is_string(text) => Some((to_json(text)?, false)),
        [part, after @ ..] => {
            let response = Object::from_json(part)?.object("functionResponse")?;
            response_output(&response, after)
        }
        [] => None,
    }
}

/// Returns the usage of a call. The input includes what came from the cache, but neither
/// thoughts nor what tools added to the prompt, which are counted separately.
fn usage(tokens: &Object<'_>) -> Option<Usage> {
    let count = |name: &str| tokens.number(name);
    if count("input").is_none() && count("output").is_none() {
        return None;
    }
    let number = |name: &str| count(name).unwrap_or(0);
    let cached = number("cached");
    let input = number("input")
        .saturating_sub(cached)
        .saturating_add(number("tool"));
    let output = number("output").saturating_add(number("thoughts"));
    let mut usage = Usage::new(input, output).cache_read(cached);
    usage.reasoning_output_tokens = count("thoughts");
    Some(usage)
}
