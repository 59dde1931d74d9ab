//! Makes events of goose's messages.
//!
//! A compaction hides the messages before it from the model and adds some that are hidden from
//! the user: the summary, a note to go on, and a copy of the last prompt.

use std::collections::HashMap;

use backtrail::{Block, Message, Role, Timestamp, ToolResult};

use super::super::blocks::{
    self, mark_meta, media_block, string_json, thinking, tool_output, unknown_block,
};
use super::super::keys::{UniqueKeys, hash, hash_json, hash_name, valid_key};
use super::super::rows::{json_column, seconds_or_millis};
use crate::error::Result;
use crate::event::{Event, EventSink, MessageEvent, ReadReport, SummaryEvent};
use crate::json::{Object, elements, to_compact_json};

/// A message, as it is stored.
#[derive(Debug)]
pub(super) struct Stored {
    id: Option<String>,
    role: Role,
    at: Option<Timestamp>,
    blocks: Vec<Block>,
    model: Option<String>,
    /// A hash of its content.
    content: String,
    /// Whether the user sees it, and whether the model does.
    is_shown: bool,
    is_sent: bool,
}

impl Stored {
    /// Reads a message: of the database, an export or a file of lines. The error is the reason
    /// why it cannot be read.
    pub(super) fn read(message: &Object<'_>, report: &mut ReadReport) -> Result<Self, String> {
        let role = message.string("role").ok_or("message without a role")?;
        let role = match role.as_ref() {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "system" => Role::System,
            other => return Err(format!("message of an unknown role: {other}")),
        };
        let content = json_column(message, "content_json").or(json_column(message, "content"));
        let content = content.ok_or("message without content")?;
        let parts = elements(&content).ok_or("message without content")?;
        let blocks = parts.into_iter().map(|json| block(json, report));
        let blocks: Vec<Block> = blocks.collect();
        let metadata = json_column(message, "metadata_json").or(json_column(message, "metadata"));
        let metadata = metadata.and_then(|json| Some(Metadata::read(&Object::from_json(&json)?)));
        let metadata = metadata.unwrap_or_default();
        let created = message.number("created_timestamp");
        Ok(Self {
            id: message
                .trimmed("message_id")
                .or_else(|| message.trimmed("id")),
            at: created
                .or_else(|| message.number("created"))
                .and_then(seconds_or_millis),
            content: content_hash(&role, &blocks, &content),
            role,
            blocks,
            model: metadata.model,
            is_shown: metadata.is_shown,
            is_sent: metadata.is_sent,
        })
    }

    /// Returns whether it consists of texts.
    fn is_text(&self) -> bool {
        let is_text = |block: &Block| matches!(block, Block::Text(_));
        !self.blocks.is_empty() && self.blocks.iter().all(is_text)
    }

    fn text(&self) -> String {
        let texts = self.blocks.iter().filter_map(|block| match block {
            Block::Text(block) => Some(block.text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Returns the key: its id, unless it may get another one when the agent writes it again.
    fn key(&self) -> String {
        match &self.id {
            Some(id) if !is_generated(id) => valid_key(id),
            _ => format!("{}-{}", self.role, self.content),
        }
    }

    fn into_message(self) -> Message {
        let is_result = |block: &Block| matches!(block, Block::ToolResult(_));
        let is_tool = !self.blocks.is_empty() && self.blocks.iter().all(is_result);
        let role = match is_tool {
            true => Role::Tool,
            false => self.role,
        };
        Message::new(role, self.blocks)
    }
}

/// Puts each result after its call, as they are in the database. An export has the messages in
/// the order of their times, and a result may have an earlier time than its call.
pub(super) fn calls_first(messages: Vec<Stored>) -> Vec<Stored> {
    let mut called_at = HashMap::new();
    for (at, message) in messages.iter().enumerate() {
        for block in &message.blocks {
            if let Block::ToolUse(call) = block {
                called_at.entry(call.id.clone()).or_insert(at);
            }
        }
    }
    let place = |(at, message): (usize, Stored)| {
        let calls = message.blocks.iter().filter_map(|block| match block {
            Block::ToolResult(result) => called_at.get(&result.tool_use_id).copied(),
            _ => None,
        });
        let after = calls.max().filter(|call| *call > at);
        (after.unwrap_or(at), after.is_some(), message)
    };
    let mut placed: Vec<_> = messages.into_iter().enumerate().map(place).collect();
    placed.sort_by_key(|(at, is_moved, _)| (*at, *is_moved));
    placed.into_iter().map(|(.., message)| message).collect()
}

/// Who sees a message.
struct Metadata {
    is_shown: bool,
    is_sent: bool,
    model: Option<String>,
}

impl Default for Metadata {
    fn default() -> Self {
        Self {
            is_shown: true,
            is_sent: true,
            model: None,
        }
    }
}

impl Metadata {
    fn read(metadata: &Object<'_>) -> Self {
        let is = |name: &str| metadata.get(name) != Some("false");
        let inference = metadata.object("inference").unwrap_or_default();
        let model = ["model", "responseModel", "requestedModel"];
        Self {
            is_shown: is("userVisible"),
            is_sent: is("agentVisible"),
            model: model.into_iter().find_map(|name| inference.trimmed(name)),
        }
    }
}

/// Returns whether an id was made when the message was stored: `msg_<session>_<uuid>`.
fn is_generated(id: &str) -> bool {
    let mut parts = id.split('_');
    let is_date = |part: &str| part.len() == 8 && part.bytes().all(|byte| byte.is_ascii_digit());
    parts.next() == Some("msg") && parts.next().is_some_and(is_date) && parts.count() >= 2
}

/// Returns a hash of a message. Newer versions write the same texts with more fields.
fn content_hash(role: &Role, blocks: &[Block], content: &str) -> String {
    let texts: Option<Vec<&str>> = blocks
        .iter()
        .map(|block| match block {
            Block::Text(block) => Some(block.text.as_str()),
            _ => None,
        })
        .collect();
    match texts {
        Some(texts) => hash(format!("{role}\n{}", texts.join("\0")).as_bytes(), 16),
        None => hash_json(content, 16),
    }
}

/// Sends the events of messages.
pub(super) struct GooseEmitter<'s> {
    sink: &'s mut dyn EventSink,
    keys: UniqueKeys,
    model: Option<String>,
    /// The id under which all calls are counted.
    response_id: String,
    /// Messages that the user does not see, until one comes that he does.
    hidden: Vec<Stored>,
    /// A hash of the last prompt.
    last_prompt: Option<u64>,
    /// Whether the last message belonged to a compaction.
    is_compacted: bool,
}

impl<'s> GooseEmitter<'s> {
    pub(super) fn new(
        sink: &'s mut dyn EventSink,
        model: Option<String>,
        response_id: String,
    ) -> Self {
        Self {
            sink,
            keys: UniqueKeys::default(),
            model,
            response_id,
            hidden: Vec::new(),
            last_prompt: None,
            is_compacted: false,
        }
    }

    /// Sends a message, or holds it until it is clear what it is.
    pub(super) fn add(&mut self, message: Stored) -> Result<()> {
        /// No compaction adds more.
        const MAX_HIDDEN: usize = 8;
        if !message.is_shown {
            if self.hidden.len() >= MAX_HIDDEN {
                self.end()?;
            }
            self.hidden.push(message);
            return Ok(());
        }
        self.end()?;
        let is_copy = self.is_compacted
            && message.role == Role::User
            && self.last_prompt == Some(hash_name(&message.text()));
        self.is_compacted = false;
        self.send(message, is_copy)
    }

    /// Sends what is held.
    pub(super) fn end(&mut self) -> Result<()> {
        let hidden = std::mem::take(&mut self.hidden);
        if hidden.is_empty() {
            return Ok(());
        }
        let summary = find_summary(&hidden);
        self.is_compacted = summary.is_some();
        for (at, message) in hidden.into_iter().enumerate() {
            match summary {
                Some(summary) if at == summary => self.send_summary(&message)?,
                Some(summary) => self.send(message, at > summary)?,
                None => {
                    let is_added = message.is_sent;
                    self.send(message, is_added)?;
                }
            }
        }
        Ok(())
    }

    fn send_summary(&mut self, message: &Stored) -> Result<()> {
        let key = self.keys.unique(message.key());
        self.sink.event(Event::Summary(SummaryEvent {
            at: message.at,
            model: self.model.clone(),
            ..SummaryEvent::new(key, message.text())
        }))
    }

    fn send(&mut self, mut stored: Stored, is_added: bool) -> Result<()> {
        let key = self.keys.unique(stored.key());
        let (at, model) = (stored.at, stored.model.take());
        if stored.role == Role::User && stored.is_text() && !is_added {
            self.last_prompt = Some(hash_name(&stored.text()));
        }
        let mut message = stored.into_message();
        if is_added {
            mark_meta(&mut message);
        }
        let is_answer = message.role == Role::Assistant;
        self.sink.event(Event::Message(MessageEvent {
            model: model.or_else(|| self.model.clone()).filter(|_| is_answer),
            response_id: is_answer.then(|| self.response_id.clone()),
            ..MessageEvent::new(key, message).at(at)
        }))
    }
}

/// Returns which of the messages that a compaction added is the summary: the last one of the
/// user, if the note to go on follows it. Older versions wrote it as the assistant.
fn find_summary(hidden: &[Stored]) -> Option<usize> {
    let is_prompt = |message: &Stored| message.role == Role::User && message.is_text();
    match hidden.iter().rposition(is_prompt) {
        Some(at) => (at + 1 < hidden.len()).then_some(at),
        None => {
            let are_texts = hidden.len() > 1 && hidden.iter().all(Stored::is_text);
            are_texts.then_some(0)
        }
    }
}

/// Reads a part of a message.
fn block(json: &str, report: &mut ReadReport) -> Block {
    let Some(object) = Object::from_json(json) else {
        report.add_unknown("content");
        return unknown_block("goose", json);
    };
    let kind = object.string("type").unwrap_or_default();
    let known = match kind.as_ref() {
        "text" => object.text("text").map(Block::text),
        "thinking" => {
            let signature = object.text("signature");
            let signature = signature.filter(|signature| !signature.is_empty());
            object
                .text("thinking")
                .map(|text| thinking(text, signature))
        }
        "reasoning" => object.text("text").map(|text| thinking(text, None)),
        "image" => image(&object),
        "toolRequest" | "frontendToolRequest" => Some(call(&object)),
        "toolResponse" => Some(Block::ToolResult(result(&object))),
        "redactedThinking"
        | "toolConfirmationRequest"
        | "actionRequired"
        | "systemNotification"
        | "conversationCompacted"
        | "summarizationRequested"
        | "contextLengthExceeded" => Some(unknown_block("goose", json)),
        _ => None,
    };
    known.unwrap_or_else(|| {
        report.add_unknown(&format!("content: {kind}"));
        unknown_block("goose", json)
    })
}

fn image(object: &Object<'_>) -> Option<Block> {
    let data = object.string_json("data")?;
    Some(media_block(object.text("mimeType")?, data))
}

/// Returns a call. One that could not be parsed has an error.
fn call(object: &Object<'_>) -> Block {
    let request = object.object("toolCall").unwrap_or_default();
    let value = request.object("value").unwrap_or_default();
    let input = value.get("arguments").and_then(to_compact_json);
    let mut call = blocks::tool_use(object.text("id"), value.text("name"), input);
    if let Some(error) = request.json("error") {
        call.extra.push("error", error);
    }
    for name in ["thoughtSignature", "metadata"] {
        if let Some(value) = object.json(name) {
            call.extra.push(name, value);
        }
    }
    Block::ToolUse(call)
}

fn result(object: &Object<'_>) -> ToolResult {
    let answer = object.object("toolResult").unwrap_or_default();
    let is_failed = answer
        .string("status")
        .is_some_and(|status| status == "error");
    if let Some(error) = answer.text("error").filter(|_| is_failed) {
        return ToolResult {
            is_error: true,
            ..blocks::tool_result(object.text("id"), None, Some(string_json(&error)))
        };
    }
    let value = answer.object("value").unwrap_or_default();
    // Older versions have only the content.
    let content = value.list("content").or_else(|| answer.list("value"));
    let output = content.unwrap_or_default().into_iter().map(output);
    let output: Vec<Block> = output.collect();
    ToolResult {
        is_error: is_failed || value.is_true("isError") || has_failed(&value),
        ..blocks::tool_result(object.text("id"), None, tool_output(&output))
    }
}

/// Returns whether the command of a call failed.
fn has_failed(value: &Object<'_>) -> bool {
    let structured = value.object("structuredContent").unwrap_or_default();
    let code = structured.float("exit_code");
    code.or_else(|| structured.float("exitCode"))
        .is_some_and(|code| code != 0.0)
}

/// Returns a part of a result.
fn output(json: &str) -> Block {
    let object = Object::from_json(json).unwrap_or_default();
    let known = match object.string("type").as_deref() {
        Some("text") => object.text("text").map(Block::text),
        Some("image") => image(&object),
        Some("resource") => object
            .object("resource")
            .and_then(|resource| resource.text("text"))
            .map(Block::text),
        _ => None,
    };
    known.unwrap_or_else(|| unknown_block("goose_output", json))
}
