//! Hermes, by Nous Research: a session as one JSON object, with messages in the style of OpenAI.
//!
//! Newer versions keep sessions in a database, which is not read here.

use std::path::{Path, PathBuf};

use backtrail::{Block, Message, Role, Text, ToolResult};
use serde::{Deserialize, Serialize};

use super::blocks::thinking;
use super::content::{any_text, output_text, tool_calls, tool_result};
use super::keys::valid_key;
use super::log::{LineReader, Log, read_messages};
use super::value::open_value;
use crate::environment::Environment;
use crate::error::Result;
use crate::event::{Details, EventSink, ReadReport};
use crate::format::{Agent, Format, OpenFile};
use crate::json::{Object, field_names};
use crate::source::{Source, file_name};

/// Hermes, by Nous Research: a session as one JSON object.
#[derive(Debug, Clone, Copy)]
pub struct Hermes;

impl Format for Hermes {
    fn agent(&self) -> Agent {
        Agent {
            programs: &["hermes"],
            media: true,
            ..Agent::new("hermes", "Hermes", "JSON files")
        }
    }

    fn directories(&self, environment: &Environment) -> Vec<PathBuf> {
        environment.folders("HERMES_HOME", ".hermes", &["sessions"])
    }

    fn is_session_file(&self, path: &Path) -> bool {
        let name = file_name(path);
        name.starts_with("session_") && name.ends_with(".json")
    }

    fn recognises(&self, source: &Source) -> bool {
        let fields = field_names(&source.head());
        let has = |name: &str| fields.iter().any(|field| field == name);
        has("session_id")
            && has("session_start")
            && ["messages", "system_prompt", "tools"].into_iter().any(has)
    }

    fn open<'s>(&self, source: &'s Source) -> Result<OpenFile<'s>> {
        let stem = source.stem();
        open_value(
            source,
            move |text| {
                let object = Object::parse(text)?;
                Ok(session_of(&object, stem))
            },
            move |text, report, sink| read_session(text, stem, report, sink),
        )
    }
}

fn session_of(object: &Object<'_>, stem: &str) -> String {
    let id = object.non_blank("session_id");
    valid_key(id.as_deref().unwrap_or(stem))
}

fn read_session(
    text: &str,
    stem: &str,
    report: &mut ReadReport,
    sink: &mut dyn EventSink,
) -> Result<()> {
    let Ok(object) = Object::parse(text) else {
        return Ok(());
    };
    let config = object.object("model_config").unwrap_or_default();
    let directory = object.path("cwd").or_else(|| config.path("cwd"));
    let model = object.trimmed("model");
    sink.details(Details {
        title: object.trimmed("title"),
        model: model.clone(),
        directory: directory.filter(|path| path.is_absolute()),
        started_at: object.time("session_start"),
        ended_at: object.time("last_updated"),
        ..Details::default()
    })?;
    // The system prompt is read like a message before the others.
    let prompt = object
        .get("system_prompt")
        .filter(|_| object.non_blank("system_prompt").is_some());
    let prompt = prompt.map(|prompt| format!("{{\"role\":\"system\",\"content\":{prompt}}}"));
    let mut messages: Vec<&str> = prompt.iter().map(String::as_str).collect();
    messages.extend(object.list("messages").unwrap_or_default());
    let session = session_of(&object, stem);
    read_messages::<HermesMessages>(&messages, &session, model, report, sink)
}

/// Reads messages. They do not depend on each other.
#[derive(Debug, Default, Serialize, Deserialize)]
struct HermesMessages {}

impl LineReader for HermesMessages {
    fn read(&mut self, message: &Object<'_>, log: &mut Log<'_>) -> Result<()> {
        let read = match message.string("role").as_deref() {
            Some("user") => Message::new(Role::User, log.content(message.get("content"))),
            Some("assistant") => reply(message, log),
            Some("tool") => Message::tool_result(result(message)),
            Some("system") => Message::new(Role::System, log.content(message.get("content"))),
            Some("session_meta") => return Ok(()),
            Some(other) => {
                log.unknown(&format!("role: {other}"));
                return Ok(());
            }
            None => {
                log.damaged("message without a role");
                return Ok(());
            }
        };
        log.at = message.time("timestamp");
        log.message(read)
    }
}

fn reply(message: &Object<'_>, log: &mut Log<'_>) -> Message {
    let thought = any_text(message, &["reasoning", "reasoning_content"]);
    let thought = thought.filter(|text: &Text| !text.is_empty());
    let thought = thought.map(|text| thinking(text, None));
    let mut blocks: Vec<Block> = thought.into_iter().collect();
    blocks.extend(log.content(message.get("content")));
    blocks.extend(tool_calls(message, "tool_calls"));
    Message::new(Role::Assistant, blocks)
}

/// Returns the result of a tool. A command's output is an object inside a text, with its exit
/// code.
fn result(message: &Object<'_>) -> ToolResult {
    let mut result = tool_result(message);
    let text = output_text(&result).unwrap_or_default();
    let output = Object::parse(&text).unwrap_or_default();
    let code = output.float("exit_code");
    result.is_error |= message.string("finish_reason").as_deref() == Some("error")
        || code.is_some_and(|code| code != 0.0)
        || output.non_blank("error").is_some();
    result
}

#[cfg(test)]
#[path = "hermes_tests.rs"]
mod tests;
