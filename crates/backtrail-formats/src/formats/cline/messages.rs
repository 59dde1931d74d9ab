//! Sends the messages of sessions and tasks.

use std::collections::{HashMap, VecDeque};

use backtrail::{Block, Message, Role, Text, Timestamp, ToolResult, Usage};

use super::{content, xml};
use crate::error::Result;
use crate::event::{Event, EventSink, MessageEvent, SummaryEvent, UsageEvent};
use crate::formats::blocks::{self, meta, meta_text, string_json};
use crate::formats::keys::{UniqueKeys, valid_key};
use crate::json::{Object, string};

/// Sends the events of messages.
pub(super) struct ClineEmitter<'s> {
    sink: &'s mut dyn EventSink,
    keys: UniqueKeys,
    /// Whether calls may be XML in the model's text.
    reads_xml: bool,
    model: Option<String>,
    /// The names of the tools that were called, by the ids of the calls.
    tools: HashMap<String, Text>,
    /// The calls in XML that have no result yet.
    open_calls: VecDeque<(Text, Text)>,
    /// How many messages were sent.
    pub(super) sent: u64,
}

/// What is known about a message apart from its content.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) key: String,
    pub(super) at: Option<Timestamp>,
    pub(super) model: Option<String>,
    pub(super) call: Option<Call>,
}

/// What a call of the model used.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) response_id: String,
    pub(super) usage: Usage,
    pub(super) cost: Option<f64>,
}

/// The parts of a message in the user's name.
#[derive(Debug, Default)]
struct Parts {
    results: Vec<ToolResult>,
    prompt: Vec<Block>,
    rest: Vec<Block>,
}

impl<'s> ClineEmitter<'s> {
    pub(super) fn new(sink: &'s mut dyn EventSink, reads_xml: bool) -> Self {
        Self {
            sink,
            keys: UniqueKeys::default(),
            reads_xml,
            model: None,
            tools: HashMap::new(),
            open_calls: VecDeque::new(),
            sent: 0,
        }
    }

    /// Sends a message. Returns whether its role is known.
    pub(super) fn emit(&mut self, message: &Object<'_>, facts: Facts) -> Result<bool> {
        match message.string("role").as_deref() {
            Some("assistant") => self.emit_answer(message, facts)?,
            Some("user") => self.emit_user(message, &facts)?,
            Some("system") => {
                let message = Message::new(Role::System, content::blocks(message.get("content")));
                self.send(MessageEvent::new(facts.key, message).at(facts.at))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Sends a system prompt.
    pub(super) fn emit_system(&mut self, prompt: Text) -> Result<()> {
        let message = Message::new(Role::System, [Block::text(prompt)]);
        self.send(MessageEvent::new("system", message))
    }

    fn emit_answer(&mut self, message: &Object<'_>, facts: Facts) -> Result<()> {
        blocks::send_model(self.sink, &mut self.model, facts.model.as_deref())?;
        let blocks = self.answer_blocks(message, &facts.key);
        let message = Message::new(Role::Assistant, blocks);
        let mut event = MessageEvent::new(facts.key, message).at(facts.at);
        event.model = facts.model;
        if let Some(call) = facts.call {
            event.message.usage = Some(call.usage);
            event.response_id = Some(call.response_id);
            event.cost_usd = call.cost;
        }
        self.send(event)
    }

    fn answer_blocks(&mut self, message: &Object<'_>, key: &str) -> Vec<Block> {
        let mut blocks = Vec::new();
        if let Some(reasoning) = message.text("reasoning_content") {
            blocks.push(blocks::thinking(reasoning, None));
        }
        let mut calls = 0;
        for block in content::blocks(message.get("content")) {
            match block {
                Block::Text(block) if self.reads_xml => {
                    let split = xml::split(&block.text, || {
                        calls += 1;
                        format!("{key}/call-{calls}")
                    });
                    for block in &split {
                        if let Block::ToolUse(call) = block {
                            let call = (call.name.clone(), call.id.clone());
                            self.open_calls.push_back(call);
                        }
                    }
                    blocks.extend(split);
                }
                block => blocks.push(block),
            }
        }
        for block in &blocks {
            if let Block::ToolUse(call) = block {
                let id = call.id.as_str().to_owned();
                self.tools.insert(id, call.name.clone());
            }
        }
        blocks
    }

    /// Sends a message in the user's name: the results of calls, what the user wrote, and what
    /// the agent added, each by itself.
    fn emit_user(&mut self, message: &Object<'_>, facts: &Facts) -> Result<()> {
        let parts = self.parts(message);
        for result in parts.results {
            // The ids of these messages change when a session is resumed.
            let id = result.tool_use_id.as_str();
            let key = match id.is_empty() {
                true => format!("{}/result", facts.key),
                false => format!("result:{}", valid_key(id)),
            };
            self.send(MessageEvent::new(key, Message::tool_result(result)).at(facts.at))?;
        }
        if !parts.prompt.is_empty() {
            let prompt = Message::new(Role::User, parts.prompt);
            self.send(MessageEvent::new(facts.key.clone(), prompt).at(facts.at))?;
        }
        if !parts.rest.is_empty() {
            let rest = meta(Message::new(Role::User, parts.rest));
            let key = format!("{}/added", facts.key);
            self.send(MessageEvent::new(key, rest).at(facts.at))?;
        }
        Ok(())
    }

    fn parts(&mut self, message: &Object<'_>) -> Parts {
        let mut parts = Parts::default();
        // The result in text whose output is in the next block.
        let mut waiting: Option<ToolResult> = None;
        for block in content::blocks(message.get("content")) {
            match block {
                Block::ToolResult(result) => parts.results.push(self.named(result)),
                Block::Text(block) => self.add_text(block.text, &mut waiting, &mut parts),
                // An image that a tool returned follows its text.
                Block::Media(media) if self.reads_xml && !parts.results.is_empty() => {
                    parts.rest.push(Block::Media(media));
                }
                block => parts.prompt.push(block),
            }
        }
        parts.results.extend(waiting);
        let said = parts.results.iter().filter_map(answer_in);
        let said: Vec<Block> = said.map(Block::text).collect();
        parts.prompt.splice(..0, said);
        parts
    }

    fn named(&self, mut result: ToolResult) -> ToolResult {
        let name = self.tools.get(result.tool_use_id.as_str());
        result.tool_name = result.tool_name.or_else(|| name.cloned());
        result
    }

    fn add_text(&mut self, text: Text, waiting: &mut Option<ToolResult>, parts: &mut Parts) {
        if self.reads_xml
            && let Some((name, output)) = xml::result_header(&text)
        {
            parts.results.extend(waiting.take());
            let result = self.text_result(name, output);
            match output.is_empty() {
                true => *waiting = Some(result),
                false => parts.results.push(result),
            }
            return;
        }
        let taken = content::user_text(text.clone());
        if taken.prompt.is_some()
            && let Some(mut result) = waiting.take()
        {
            result.is_error = content::text_has_failed(&text);
            result.output = string_json(&text);
            parts.results.push(result);
            return;
        }
        parts.prompt.extend(taken.prompt.map(Block::text));
        parts.rest.extend(taken.rest.map(Block::text));
    }

    /// Returns a result in text, of the first call of that tool that has none.
    fn text_result(&mut self, name: &str, output: &str) -> ToolResult {
        let is_it = |(tool, _): &(Text, Text)| tool.as_str() == name;
        let at = self.open_calls.iter().take(64).position(is_it);
        let call = at.and_then(|at| self.open_calls.remove(at));
        let id = call.map(|(_, id)| id);
        let mut result = blocks::tool_result(id, Some(Text::from(name)), None);
        result.output = string_json(&Text::from(output));
        result.is_error = content::text_has_failed(output);
        result
    }

    /// Sends a summary of the messages before it.
    pub(super) fn emit_summary(&mut self, mut summary: SummaryEvent) -> Result<()> {
        summary.key = self.keys.unique(summary.key);
        self.sink.event(Event::Summary(summary))
    }

    /// Sends a message that the agent added.
    pub(super) fn emit_note(&mut self, text: Text, facts: &Facts) -> Result<()> {
        self.send(MessageEvent::new(facts.key.clone(), meta_text(text)).at(facts.at))
    }

    /// Sends the usage of a request that no message belongs to.
    pub(super) fn emit_usage(&mut self, call: Call, at: Option<Timestamp>) -> Result<()> {
        let key = self
            .keys
            .unique(valid_key(format!("used:{}", call.response_id)));
        self.sink.event(Event::Usage(UsageEvent {
            key,
            at,
            response_id: call.response_id,
            model: self.model.clone(),
            usage: call.usage,
            duration_ms: None,
            cost_usd: call.cost,
        }))
    }

    fn send(&mut self, mut event: MessageEvent) -> Result<()> {
        event.key = self.keys.unique(event.key);
        self.sent += 1;
        self.sink.event(Event::Message(event))
    }
}

/// Returns what the user wrote in the output of a call.
fn answer_in(result: &ToolResult) -> Option<Text> {
    let output = result.output.as_str();
    if let Some(text) = string(output) {
        return content::answer(&text);
    }
    let parts = crate::json::elements(output)?;
    let text = |json: &str| Some(Object::from_json(json)?.string("text")?.into_owned());
    parts
        .into_iter()
        .filter_map(text)
        .find_map(|text| content::answer(&text))
}

/// Returns the text of a message, for a summary.
pub(super) fn text_of(message: &Object<'_>) -> String {
    let blocks = content::blocks(message.get("content"));
    Message::new(Role::User, blocks).text().into_owned()
}
