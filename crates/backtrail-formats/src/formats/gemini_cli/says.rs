//! What a message says.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use backtrail::{Block, Fields, Json, Message, Role, Text, Thinking, ToolResult, ToolUse, Usage};

use super::super::pieces::{hash_of, key_of, literal, media, meta, meta_text, other, text_with};
use crate::error::Result;
use crate::json::{Object, is_string, list_of, text_of};
use crate::told::{About, Item, Said, Sink};

/// Whose a message is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    User,
    Model,
    /// What the agent tells the person, and not the model.
    Notice,
    Unknown(String),
}

/// Returns whose a message is.
pub(super) fn kind(record: &Object) -> Kind {
    let kind = record.string("type").or_else(|| record.string("role"));
    match kind.as_deref() {
        Some("user" | "function") => Kind::User,
        Some("gemini" | "model" | "assistant") => Kind::Model,
        Some("info" | "error" | "warning") => Kind::Notice,
        Some(other) => Kind::Unknown(other.to_owned()),
        None => Kind::Unknown("no type".to_owned()),
    }
}

/// Returns whether a message is nothing but what tools gave back.
pub(super) fn is_results(record: &Object) -> bool {
    let parts = parts(record);
    let is_result = |part: &Json| Object::of(part).is_some_and(|part| part.has("functionResponse"));
    kind(record) == Kind::User && !parts.is_empty() && parts.iter().all(is_result)
}

/// Returns the text of a message.
pub(super) fn notes(record: &Object) -> String {
    let said = Message::new(Role::User, blocks(record, &HashSet::new()));
    said.text().trim().to_owned()
}

/// Tells messages to a sink.
#[derive(Debug)]
pub(super) struct Teller<'s> {
    session: &'s str,
    model: Option<String>,
    /// The calls of the last reply whose results were told with it.
    answered: Vec<String>,
    /// The keys that were made, and how often each was.
    keys: HashMap<[u8; 8], u64>,
    /// The key of what was told last.
    pub(super) last: Option<String>,
    count: u64,
}

impl<'s> Teller<'s> {
    pub(super) fn new(session: &'s str, model: Option<String>, answered: Vec<String>) -> Self {
        Self {
            session,
            model,
            answered,
            keys: HashMap::new(),
            last: None,
            count: 0,
        }
    }

    /// Returns what is needed to go on: the model, and the calls that were answered.
    pub(super) fn into_parts(self) -> (Option<String>, Vec<String>) {
        (self.model, self.answered)
    }

    /// Makes a key of an id and what is said under it: said anew, it is another.
    pub(super) fn key(&mut self, id: &str, json: &str) -> String {
        let key = format!("{}~{}", key_of(id), hash_of(json, 8));
        let first = short(&key);
        loop {
            let count = self.keys.entry(first).or_default();
            *count += 1;
            if *count == 1 {
                return key;
            }
            let again = format!("{key}~{count}");
            if let Entry::Vacant(vacant) = self.keys.entry(short(&again)) {
                vacant.insert(1);
                return again;
            }
        }
    }

    /// Tells a message, and returns how many it became.
    pub(super) fn tell(&mut self, record: &Object, sink: &mut dyn Sink) -> Result<u64> {
        let (before, place) = (self.count, self.keys.len());
        let id = record.string("id").map(|id| id.into_owned());
        let id = id.unwrap_or_else(|| format!("n{place}"));
        let key = self.key(&id, &said_in(record));
        match kind(record) {
            Kind::User => self.tell_user(record, &key, sink)?,
            Kind::Model => self.tell_reply(record, &id, &key, sink)?,
            Kind::Notice => {
                let text = notes(record);
                if !text.is_empty() {
                    self.say(Said::new(key, meta_text(text)), record, sink)?;
                }
            }
            Kind::Unknown(_) => {}
        }
        Ok(self.count - before)
    }

    fn say(&mut self, mut said: Said, record: &Object, sink: &mut dyn Sink) -> Result<()> {
        said.at = said.at.or_else(|| record.time("timestamp"));
        self.count += 1;
        self.last = Some(said.key.clone());
        sink.item(Item::Said(said))
    }

    fn tell_user(&mut self, record: &Object, key: &str, sink: &mut dyn Sink) -> Result<()> {
        let (results, said): (Vec<_>, Vec<_>) = blocks(record, &HashSet::new())
            .into_iter()
            .partition(|block| matches!(block, Block::ToolResult(_)));
        let answered: HashSet<&str> = self.answered.iter().map(String::as_str).collect();
        let is_told = |block: &Block| match block {
            Block::ToolResult(result) => answered.contains(result.tool_use_id.as_str()),
            _ => false,
        };
        let results: Vec<Block> = results
            .into_iter()
            .filter(|block| !is_told(block))
            .collect();
        if !results.is_empty() {
            let key = match said.is_empty() {
                true => key.to_owned(),
                false => format!("{key}/results"),
            };
            self.say(
                Said::new(key, Message::new(Role::Tool, results)),
                record,
                sink,
            )?;
        }
        if said.is_empty() {
            return Ok(());
        }
        let message = Message::new(Role::User, said);
        let message = match is_injected(&message) {
            true => meta(message),
            false => message,
        };
        self.say(Said::new(key, message), record, sink)
    }

    fn tell_reply(
        &mut self,
        record: &Object,
        id: &str,
        key: &str,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let calls = record.list("toolCalls").unwrap_or_default();
        let calls: Vec<Object> = calls.iter().filter_map(Object::of).collect();
        let model = record.string("model").filter(|model| !model.is_empty());
        let model = model.map(|model| model.into_owned());
        if model.is_some() && model != self.model {
            self.model.clone_from(&model);
            sink.about(About {
                model: model.clone(),
                ..About::default()
            })?;
        }
        let mut message = Message::assistant(reply(record, &calls));
        message.usage = record.object("tokens").and_then(|tokens| usage(&tokens));
        let results: Vec<ToolResult> = calls.iter().filter_map(result).collect();
        self.answered = results
            .iter()
            .map(|result| result.tool_use_id.to_string())
            .collect();
        let mut said = Said::new(key, message);
        said.response_id = said.message.usage.as_ref().map(|_| {
            let session = self.session;
            format!("{session}#{}", key_of(id))
        });
        said.model = model;
        self.say(said, record, sink)?;
        if results.is_empty() {
            return Ok(());
        }
        let blocks = results.into_iter().map(Block::ToolResult);
        let mut said = Said::new(format!("{key}/results"), Message::new(Role::Tool, blocks));
        said.at = calls.iter().filter_map(|call| call.time("timestamp")).max();
        self.say(said, record, sink)
    }
}

fn short(key: &str) -> [u8; 8] {
    let mut short = [0; 8];
    short.copy_from_slice(&blake3::hash(key.as_bytes()).as_bytes()[..8]);
    short
}

/// Returns all that a message says, in an order of its own: what it is known by.
fn said_in(record: &Object) -> String {
    let said = record
        .fields()
        .filter(|(name, _)| *name != "displayContent");
    let mut said: Vec<String> = said.map(|(name, json)| format!("{name}:{json}")).collect();
    said.sort();
    said.concat()
}

/// Returns whether the agent said it in the user's name.
fn is_injected(message: &Message) -> bool {
    let text = message.text();
    let text = text.trim_start();
    [
        "<session_context>",
        "<hook_context>",
        "<state_snapshot>",
        "<environment_context>",
    ]
    .iter()
    .any(|mark| text.starts_with(mark))
}

fn reply(record: &Object, calls: &[Object]) -> Vec<Block> {
    let thoughts = record.list("thoughts").unwrap_or_default();
    let mut all: Vec<Block> = thoughts.iter().map(thought).collect();
    let ids = calls.iter().filter_map(|call| call.string("id"));
    let ids: HashSet<String> = ids.map(|id| id.into_owned()).collect();
    all.extend(blocks(record, &ids));
    all.extend(calls.iter().map(|call| Block::ToolUse(self::call(call))));
    all
}

fn thought(json: &Json) -> Block {
    let Some(object) = Object::of(json) else {
        return other("gemini_thought", json);
    };
    let part = |name: &str| object.text(name).filter(|text| !text.is_empty());
    match (part("subject"), part("description")) {
        (Some(subject), Some(description)) => {
            Block::thinking(format!("{subject}\n\n{description}"))
        }
        (Some(text), None) | (None, Some(text)) => Block::thinking(text.as_str()),
        (None, None) => other("gemini_thought", json),
    }
}

/// Returns the parts of a message: of a string, a part, or a list of them.
fn parts(record: &Object) -> Vec<Json> {
    let content = record
        .get("content")
        .filter(|content| content.as_str() != "null");
    let Some(content) = content.or_else(|| record.get("parts")) else {
        return Vec::new();
    };
    list_of(content).unwrap_or_else(|| vec![content.clone()])
}

/// Returns what the parts of a message say, without calls that are told elsewhere.
fn blocks(record: &Object, calls: &HashSet<String>) -> Vec<Block> {
    let mut blocks = Vec::new();
    for json in parts(record) {
        if is_string(&json) {
            let text = text_of(&json).filter(|text| !text.is_empty());
            blocks.extend(text.map(Block::text));
            continue;
        }
        let call = Object::of(&json).and_then(|part| part.object("functionCall"));
        let id = call.as_ref().and_then(|call| call.string("id"));
        if id.is_some_and(|id| calls.contains(id.as_ref())) {
            continue;
        }
        blocks.push(block(&json).unwrap_or_else(|| other("gemini_part", &json)));
    }
    blocks
}

fn block(json: &Json) -> Option<Block> {
    let part = Object::of(json)?;
    let signature = part
        .get("thoughtSignature")
        .filter(|signature| is_string(signature));
    if let Some(text) = part.text("text") {
        if part.is_true("thought") {
            return Some(Block::Thinking(Thinking {
                thinking: text,
                signature: signature.and_then(text_of),
                extra: Fields::default(),
            }));
        }
        return Some(text_with(text, "signature", signature.cloned()));
    }
    if let Some(inline) = part.object("inlineData") {
        let data = inline.get("data").filter(|data| is_string(data))?;
        return Some(media(inline.text("mimeType")?, data.clone()));
    }
    if let Some(call) = part.object("functionCall") {
        let mut call = self::call(&call);
        if let Some(signature) = signature {
            call.extra.push("signature", signature.clone());
        }
        return Some(Block::ToolUse(call));
    }
    let response = part.object("functionResponse")?;
    let (output, is_error) = response_of(&response)?;
    Some(Block::ToolResult(ToolResult {
        tool_use_id: response.text("id").unwrap_or_default(),
        tool_name: response.text("name"),
        output,
        is_error,
        extra: Fields::default(),
    }))
}

fn call(call: &Object) -> ToolUse {
    ToolUse {
        id: call.text("id").unwrap_or_default(),
        name: call.text("name").unwrap_or_default(),
        input: match call.get("args") {
            Some(args) => args.clone(),
            None => Json::new("{}").expect("this is JSON"),
        },
        extra: Fields::default(),
    }
}

/// Returns what a tool gave back: its `output` or `error` where that is all, else the
/// whole of it.
fn response_of(response: &Object) -> Option<(Json, bool)> {
    let given = response.get("response")?;
    let fields = Object::of(given);
    let lone = |name: &str| {
        let fields = fields.as_ref()?;
        let value = fields.get(name).filter(|value| is_string(value))?;
        (fields.fields().count() == 1).then(|| value.clone())
    };
    Some(match (lone("output"), lone("error")) {
        (Some(output), _) => (output, false),
        (None, Some(error)) => (error, true),
        (None, None) => (given.clone(), false),
    })
}

/// Returns the result of a call, once there is one.
fn result(call: &Object) -> Option<ToolResult> {
    let status = call.string("status");
    let failed = matches!(status.as_deref(), Some("error" | "cancelled"));
    let done = failed || status.as_deref() == Some("success");
    let given = call.get("result").filter(|given| given.as_str() != "null");
    let shown = call.get("resultDisplay").filter(|shown| is_string(shown));
    let (output, is_error) = match given {
        Some(given) => lone_response(given).unwrap_or_else(|| (given.clone(), false)),
        None if done => (
            shown.cloned().unwrap_or_else(|| literal(&Text::default())),
            false,
        ),
        None => return None,
    };
    Some(ToolResult {
        tool_use_id: call.text("id").unwrap_or_default(),
        tool_name: call.text("name"),
        output,
        is_error: is_error || failed,
        extra: Fields::default(),
    })
}

fn lone_response(given: &Json) -> Option<(Json, bool)> {
    let parts = list_of(given).unwrap_or_else(|| vec![given.clone()]);
    let [part] = parts.as_slice() else {
        return None;
    };
    if is_string(part) {
        return Some((part.clone(), false));
    }
    response_of(&Object::of(part)?.object("functionResponse")?)
}

/// Reads what a call used. The input counts what came from the cache, and neither thoughts
/// nor what tools put into the prompt: those are counted beside it.
fn usage(tokens: &Object) -> Option<Usage> {
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
