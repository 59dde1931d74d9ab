//! Checkpoint files of design B: each contains a session up to then, in one object.
//!
//! Such a file has a list of prompts, a list of answers and a list of tool calls, but does not
//! tell which calls belong to which answer. All of them are placed before the last answer.
//! Files of one session, saved one after the other, are one session that grew.

use std::path::{Path, PathBuf};

use backtrail::{Block, Json, Message, Role, Text, Timestamp};

use super::blocks::{call_input, meta, tool_result, tool_use};
use super::keys::{hash, hash_json, valid_key};
use super::value::open_value;
use crate::environment::Environment;
use crate::error::Result;
use crate::event::{Details, Event, EventSink, MessageEvent};
use crate::format::{Agent, Format, OpenFile};
use crate::json::{Object, field_names, is_string, string, to_text};
use crate::source::Source;

/// Checkpoint files of design B: each contains a session up to then, in one object.
#[derive(Debug, Clone, Copy)]
pub struct CheckpointFiles;

/// The fields that identify such a file.
const FIELDS: [&str; 5] = [
    "stats",
    "user_prompts",
    "assistant_responses",
    "tool_calls",
    "file_diffs",
];

impl Format for CheckpointFiles {
    fn agent(&self) -> Agent {
        Agent::new("checkpoint-files", "checkpoint files", "1")
    }

    /// They have no usual directory.
    fn directories(&self, _environment: &Environment) -> Vec<PathBuf> {
        Vec::new()
    }

    fn is_session_file(&self, _path: &Path) -> bool {
        false
    }

    fn recognises(&self, source: &Source) -> bool {
        let head = source.head();
        if crate::source::trim(&head).first() != Some(&b'{') {
            return false;
        }
        let fields = field_names(&head);
        let known = |name: &&String| FIELDS.contains(&name.as_str());
        fields.iter().any(|name| name == "id") && fields.iter().filter(known).count() >= 2
    }

    fn open<'s>(&self, source: &'s Source) -> Result<OpenFile<'s>> {
        let name = |text: &str| Object::parse(text).map(|checkpoint| session_name(&checkpoint));
        open_value(source, name, |text, _, sink| {
            emit(&Object::from_json(text).unwrap_or_default(), sink)
        })
    }
}

/// Returns the name of a checkpoint's session, from its start time and its first prompt.
fn session_name(checkpoint: &Object<'_>) -> String {
    let stats = checkpoint.object("stats");
    let started = stats.as_ref().and_then(|stats| stats.get("start_time"));
    let prompts = list(checkpoint, "user_prompts");
    let hash_of = |json: Option<&str>| json.map_or(String::new(), |json| hash_json(json, 64));
    let first = prompts.first().copied();
    let all = format!("{}\n{}", hash_of(started), hash_of(first));
    format!("checkpoints-{}", hash(all.as_bytes(), 32))
}

fn emit(checkpoint: &Object<'_>, sink: &mut dyn EventSink) -> Result<()> {
    let stats = checkpoint.object("stats");
    sink.details(Details {
        started_at: stats
            .as_ref()
            .and_then(|stats| time(stats.get("start_time")?)),
        tags: checkpoint.string("id").map(|id| vec![valid_key(&id)]),
        ..Details::default()
    })?;
    let prompts = list(checkpoint, "user_prompts");
    let answers = list(checkpoint, "assistant_responses");
    let calls = list(checkpoint, "tool_calls");
    // The calls come after the prompt of the last answer, and before that answer.
    let turns = prompts.len().max(answers.len());
    let last = answers.len().saturating_sub(1);
    for turn in 0..turns.max(1) {
        if let Some(prompt) = prompts.get(turn) {
            let message = Message::new(Role::User, [Block::text(text_of(prompt))]);
            let key = format!("p{turn}-{}", hash_json(prompt, 8));
            sink.event(Event::Message(MessageEvent::new(key, message)))?;
        }
        if turn == last {
            emit_calls(&calls, sink)?;
        }
        if let Some(answer) = answers.get(turn) {
            let message = Message::assistant([Block::text(text_of(answer))]);
            let key = format!("a{turn}-{}", hash_json(answer, 8));
            sink.event(Event::Message(MessageEvent::new(key, message)))?;
        }
    }
    emit_file_changes(checkpoint, sink)
}

fn list<'a>(checkpoint: &Object<'a>, name: &str) -> Vec<&'a str> {
    checkpoint.list(name).unwrap_or_default()
}

/// Returns a value, which is usually a string, as text.
fn text_of(json: &str) -> Text {
    to_text(json).unwrap_or_else(|| Text::from(json))
}

fn emit_calls(calls: &[&str], sink: &mut dyn EventSink) -> Result<()> {
    for (n, json) in calls.iter().enumerate() {
        let key = format!("c{n}-{}", hash_json(json, 8));
        let id = Some(Text::from(format!("call-{n}")));
        let Some(call) = Object::from_json(json) else {
            continue;
        };
        let name = call.text("tool_name").unwrap_or_default();
        let tool_use = tool_use(
            id.clone(),
            Some(name.clone()),
            call_input(call.get("arguments")),
        );
        let event = MessageEvent::new(key.clone(), Message::assistant([tool_use.into()]));
        sink.event(Event::Message(event))?;
        if !call.has("success") && !call.has("result") {
            continue;
        }
        let output = call.json("result").filter(|_| call.has("result"));
        let mut result = tool_result(id, Some(name), output);
        result.is_error = call.get("success") == Some("false");
        let event = MessageEvent::new(format!("{key}/result"), Message::tool_result(result));
        sink.event(Event::Message(event))?;
    }
    Ok(())
}

/// Sends the file changes that the agent noted.
fn emit_file_changes(checkpoint: &Object<'_>, sink: &mut dyn EventSink) -> Result<()> {
    let changes = list(checkpoint, "file_diffs");
    let blocks: Vec<Block> = changes.into_iter().filter_map(file_change).collect();
    if blocks.is_empty() {
        return Ok(());
    }
    let raw = checkpoint.get("file_diffs").unwrap_or_default();
    let key = format!("files-{}", hash_json(raw, 16));
    let event = MessageEvent::new(key, meta(Message::new(Role::User, blocks)));
    let at = checkpoint.get("timestamp").and_then(time);
    sink.event(Event::Message(event.at(at)))
}

fn file_change(json: &str) -> Option<Block> {
    let change = Object::from_json(json)?;
    let value = |name: &str| change.get(name).unwrap_or("null");
    let at = match change.get("timestamp").and_then(time) {
        Some(at) => format!("\"{at}\""),
        None => value("timestamp").to_owned(),
    };
    let (path, before, after) = (value("path"), value("before"), value("after"));
    let block = format!(
        "{{\"type\":\"file_change\",\"path\":{path},\"before\":{before},\"after\":{after},\"at\":{at}}}"
    );
    Json::new(block).ok().map(Block::Other)
}

/// Returns a time: seconds and nanoseconds since 1970, or RFC 3339.
fn time(json: &str) -> Option<Timestamp> {
    if is_string(json) {
        return string(json)?.parse().ok();
    }
    let time = Object::from_json(json)?;
    let seconds = i64::try_from(time.number("secs_since_epoch")?).ok()?;
    let millis = i64::try_from(time.number("nanos_since_epoch").unwrap_or(0) / 1_000_000).ok()?;
    Timestamp::from_millis(seconds.checked_mul(1_000)?.checked_add(millis)?)
}

#[cfg(test)]
#[path = "checkpoint_files_tests.rs"]
mod tests;
