//! Hugging Face session traces: the simple format of the Hub for agents of any kind.
//!
//! The first line is a header with the name of the harness; every other line is a message. The
//! sessions of Claude Code, Codex and pi on the Hub are the files of those agents, and are read
//! as such.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use backtrail::{Block, Message, Role, Text, ToolResult};
use serde::{Deserialize, Serialize};

use super::blocks::{
    call_input, content_blocks, data_url_block, send_model, thinking, tool_output, tool_result,
    tool_use, unknown_block,
};
use super::keys::{hash_json, push_limited, save_state, valid_key};
use crate::environment::Environment;
use crate::error::Result;
use crate::event::{Details, Event, EventSink, MessageEvent, Origin};
use crate::format::{Agent, Format, OpenFile, Resume};
use crate::json::{Object, elements, to_text};
use crate::json_lines::JsonLines;
use crate::lines::first_line;
use crate::source::Source;

/// Hugging Face session traces: the simple format of the Hub for agents of any kind.
#[derive(Debug, Clone, Copy)]
pub struct HfTraces;

/// How many calls are remembered, for the names of the tools in results.
const MAX_CALLS: usize = 32;

impl Format for HfTraces {
    fn agent(&self) -> Agent {
        Agent {
            appends: true,
            media: true,
            ..Agent::new(
                "hf-traces",
                "Hugging Face session traces",
                "documented shape (STS-Format)",
            )
        }
    }

    /// They have no usual directory.
    fn directories(&self, _environment: &Environment) -> Vec<PathBuf> {
        Vec::new()
    }

    fn is_session_file(&self, _path: &Path) -> bool {
        false
    }

    fn recognises(&self, source: &Source) -> bool {
        Object::parse(&first_line(&source.head())).is_ok_and(|first| is_header(&first))
    }

    fn open<'s>(&self, source: &'s Source) -> Result<OpenFile<'s>> {
        let (mut lines, mut report) = JsonLines::new(source);
        let header = match lines.next(&mut report)? {
            Some(line) => Header::read(&line.object()),
            None => None,
        };
        let Some(header) = header else {
            return Ok(OpenFile::unnamed(report));
        };
        let state = HfState {
            session: header.session.clone(),
            ..HfState::default()
        };
        Ok(open_lines(source, 0, state, Some(header)))
    }

    fn resume<'s>(&self, source: &'s Source, resume: &Resume) -> Result<Option<OpenFile<'s>>> {
        let state = resume.state.parse::<HfState>().ok();
        Ok(state.map(|state| open_lines(source, resume.read_to, state, None)))
    }
}

/// Returns whether a line is a header. pi's has a directory and a time, and may name a harness.
fn is_header(first: &Object<'_>) -> bool {
    first.string("type").as_deref() == Some("session")
        && first.non_blank("harness").is_some()
        && first.has("id")
        && !(first.has("cwd") && first.has("timestamp"))
}

/// The first line of a file.
struct Header {
    session: String,
    details: Details,
}

impl Header {
    fn read(first: &Object<'_>) -> Option<Self> {
        if first.string("type").as_deref() != Some("session") {
            return None;
        }
        let id = match first.non_blank("id") {
            Some(id) => valid_key(id),
            None => valid_key(first.get("id")?),
        };
        let details = Details {
            title: first.trimmed("name"),
            directory: first.path("cwd"),
            model: first.trimmed("model"),
            started_at: first.time("timestamp"),
            tags: first
                .trimmed("harness")
                .map(|harness| vec![valid_key(harness)]),
            ..Details::default()
        };
        Some(Self {
            session: id,
            details,
        })
    }
}

/// The state from which a file is resumed.
#[derive(Debug, Default, Serialize, Deserialize)]
struct HfState {
    session: String,
    lines: u64,
    messages: u64,
    model: Option<String>,
    /// The last calls: their ids and the names of their tools.
    calls: VecDeque<(String, String)>,
}

fn open_lines(
    source: &Source,
    from: u64,
    mut state: HfState,
    header: Option<Header>,
) -> OpenFile<'_> {
    OpenFile::new(state.session.clone(), Origin::Start, move |sink| {
        let (mut lines, mut report) = JsonLines::resume(source, from, state.lines);
        let mut is_first = header.is_some();
        if let Some(header) = header {
            sink.details(header.details)?;
        }
        while let Some(line) = lines.next(&mut report)? {
            let is_header = std::mem::take(&mut is_first);
            let record = line.object();
            match (record.string("type").as_deref(), record.object("message")) {
                _ if is_header => {}
                (Some("message"), Some(message)) => {
                    let json = record.get("message").unwrap_or_default();
                    if !state.emit(&message, json, sink)? {
                        let role = message.string("role").unwrap_or_default();
                        report.add_unknown(&format!("message: {role}"));
                    }
                }
                (Some("message"), None) => {
                    let reason = "message line without a message";
                    report.add_damage(line.number, &line.range, reason);
                }
                (Some(kind), _) => report.add_unknown(kind),
                (None, _) => report.add_damage(line.number, &line.range, "line without a type"),
            }
        }
        state.lines = report.lines;
        report.state = save_state(&state);
        Ok(report)
    })
}

impl HfState {
    /// Sends a message. Returns whether its role is known.
    fn emit(&mut self, body: &Object<'_>, json: &str, sink: &mut dyn EventSink) -> Result<bool> {
        let role = body.string("role");
        let message = match role.as_deref() {
            Some("user") => Message::new(Role::User, content(body.get("content"))),
            Some("system" | "developer") => {
                Message::new(Role::System, content(body.get("content")))
            }
            Some("assistant") => self.answer(body),
            Some("tool") => Message::tool_result(self.result(body)),
            _ => return Ok(false),
        };
        let model = body.trimmed("model");
        send_model(sink, &mut self.model, model.as_deref())?;
        let key = format!("{}-{}", self.messages, hash_json(json, 16));
        self.messages += 1;
        let mut event = MessageEvent::new(key, message).at(body.time("timestamp"));
        event.model = model;
        sink.event(Event::Message(event))?;
        Ok(true)
    }

    fn answer(&mut self, body: &Object<'_>) -> Message {
        let reasoning = either(body, "reasoningContent", "reasoning_content").and_then(to_text);
        let reasoning = reasoning.filter(|text| !text.is_empty());
        let mut blocks: Vec<Block> = reasoning
            .map(|text| thinking(text, None))
            .into_iter()
            .collect();
        blocks.extend(content(body.get("content")));
        let calls = either(body, "toolCalls", "tool_calls").and_then(elements);
        for json in calls.unwrap_or_default() {
            match call(json) {
                Some((id, name, input)) => {
                    let known = (id.as_str().to_owned(), name.as_str().to_owned());
                    push_limited(&mut self.calls, known, MAX_CALLS);
                    let call = tool_use(Some(id), Some(name), input);
                    blocks.push(Block::ToolUse(call));
                }
                None => blocks.push(unknown_block("hf_tool_call", json)),
            }
        }
        Message::new(Role::Assistant, blocks)
    }

    fn result(&self, body: &Object<'_>) -> ToolResult {
        let id = either(body, "toolCallId", "tool_call_id").and_then(to_text);
        let called =
            |(call, _): &&(String, String)| id.as_ref().is_some_and(|id| id.as_str() == call);
        let name = self.calls.iter().rev().find(called);
        let name = name.map(|(_, name)| Text::from(name.as_str()));
        let name = name.or_else(|| body.text("name"));
        ToolResult {
            is_error: body.is_true("isError") || body.is_true("is_error"),
            ..tool_result(id, name, tool_output(&content(body.get("content"))))
        }
    }
}

/// Returns a field that has two names: the documented one, and that of OpenAI.
fn either<'a>(body: &Object<'a>, name: &str, other: &str) -> Option<&'a str> {
    body.get(name).or_else(|| body.get(other))
}

fn call(json: &str) -> Option<(Text, Text, Option<backtrail::Json>)> {
    let call = Object::from_json(json)?;
    let function = call.object("function").unwrap_or_else(|| call.clone());
    let id = call.text("id").unwrap_or_default();
    let name = function.text("name")?;
    Some((id, name, call_input(function.get("arguments"))))
}

/// Returns the blocks of a content: a string, or a list of parts like those of OpenAI.
fn content(json: Option<&str>) -> Vec<Block> {
    content_blocks(json, "hf_content", part)
}

fn part(json: &str) -> Option<Block> {
    let part = Object::from_json(json)?;
    match part.string("type")?.as_ref() {
        "text" => part.text("text").map(Block::text),
        "image_url" => {
            let url = part
                .object("image_url")?
                .string("url")
                .map(Cow::into_owned)?;
            data_url_block("image", &url)
        }
        _ => None,
    }
}

#[cfg(test)]
#[path = "hf_traces_tests.rs"]
mod tests;
