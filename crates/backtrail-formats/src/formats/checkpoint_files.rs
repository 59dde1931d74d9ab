//! Checkpoint files of design B: each is all of a session up to then, in one object.
//!
//! Such a file says what was asked, what was answered and which tools were called, each in
//! a list of its own, but not which of the calls belong to which answer. All of them are
//! told before the last answer. Files of one session, saved one after the other, are one
//! session that grew.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use backtrail::{Block, Fields, Json, Message, Role, Text, Timestamp, ToolResult, ToolUse};

use super::pieces::{hash, hash_of, key_of, literal, meta, top_fields, whole};
use crate::format::{Format, ReadError, Resume, Support};
use crate::json::{Object, is_string, text_of};
use crate::places::Environment;
use crate::source::Source;
use crate::told::{About, DamagedLine, Damages, Item, Said, Sink, Thread, Told};

/// Checkpoint files of design B: each is all of a session up to then, in one object.
#[derive(Debug, Clone, Copy)]
pub struct CheckpointFiles;

/// The fields by which such a file is known.
const LISTS: [&str; 5] = [
    "stats",
    "user_prompts",
    "assistant_responses",
    "tool_calls",
    "file_diffs",
];

impl Format for CheckpointFiles {
    fn name(&self) -> &'static str {
        "checkpoint-files"
    }

    fn title(&self) -> &'static str {
        "checkpoint files"
    }

    fn support(&self) -> Support {
        Support::messages("1")
    }

    /// They lie where somebody put them.
    fn places(&self, _environment: &Environment) -> Vec<PathBuf> {
        Vec::new()
    }

    fn is_session_name(&self, _path: &Path) -> bool {
        false
    }

    fn recognises(&self, source: &Source) -> bool {
        let head = source.head();
        if crate::lines::trim(&head).first() != Some(&b'{') {
            return false;
        }
        let fields = top_fields(&head);
        let known = |name: &&String| LISTS.contains(&name.as_str());
        fields.iter().any(|name| name == "id") && fields.iter().filter(known).count() >= 2
    }

    fn read(
        &self,
        source: &Source,
        resume: Option<&Resume>,
        sink: &mut dyn Sink,
    ) -> Result<Told, ReadError> {
        if resume.is_some() {
            return Err(ReadError::StartOver);
        }
        let mut told = Told {
            session: key_of(source.stem()),
            read_to: source.len(),
            state: None,
            lines: 1,
            damage: Damages::default(),
            unknown: BTreeMap::new(),
            unfinished: false,
        };
        match Object::parse(&whole(source)?) {
            Ok(checkpoint) => {
                told.session = name_of(&checkpoint);
                tell(&checkpoint, &told.session, sink)?;
            }
            Err(reason) => {
                told.unfinished = true;
                told.damage.add(DamagedLine {
                    line: 1,
                    byte: 0,
                    bytes: source.len(),
                    reason,
                });
            }
        }
        Ok(told)
    }
}

/// Names the session of a checkpoint: by when it began, and with which prompt.
fn name_of(checkpoint: &Object) -> String {
    let stats = checkpoint.object("stats");
    let began = stats.as_ref().and_then(|stats| stats.get("start_time"));
    let prompts = list(checkpoint, "user_prompts");
    let hash_of =
        |json: Option<&Json>| json.map_or(String::new(), |json| hash_of(json.as_str(), 64));
    let all = format!("{}\n{}", hash_of(began), hash_of(prompts.first()));
    format!("checkpoints-{}", hash(all.as_bytes(), 32))
}

fn tell(checkpoint: &Object, session: &str, sink: &mut dyn Sink) -> Result<(), ReadError> {
    sink.session(session)?;
    sink.thread(&Thread::main())?;
    let stats = checkpoint.object("stats");
    sink.about(About {
        began: stats
            .as_ref()
            .and_then(|stats| time(stats.get("start_time")?)),
        tags: checkpoint.string("id").map(|id| vec![key_of(&id)]),
        ..About::default()
    })?;
    let prompts = list(checkpoint, "user_prompts");
    let answers = list(checkpoint, "assistant_responses");
    let calls = list(checkpoint, "tool_calls");
    // The calls stand behind the prompt of the last answer, and before that answer.
    let turns = prompts.len().max(answers.len());
    let last = answers.len().saturating_sub(1);
    for turn in 0..turns.max(1) {
        if let Some(prompt) = prompts.get(turn) {
            let message = Message::new(Role::User, [Block::text(words(prompt))]);
            say(
                format!("p{turn}-{}", hash_of(prompt.as_str(), 8)),
                message,
                sink,
            )?;
        }
        if turn == last {
            tell_calls(&calls, sink)?;
        }
        if let Some(answer) = answers.get(turn) {
            let message = Message::assistant([Block::text(words(answer))]);
            say(
                format!("a{turn}-{}", hash_of(answer.as_str(), 8)),
                message,
                sink,
            )?;
        }
    }
    tell_changes(checkpoint, sink)
}

fn say(key: String, message: Message, sink: &mut dyn Sink) -> Result<(), ReadError> {
    sink.item(Item::Said(Said::new(key, message)))?;
    Ok(())
}

fn list(checkpoint: &Object, name: &str) -> Vec<Json> {
    checkpoint.list(name).unwrap_or_default()
}

/// Returns what is mostly a string as text.
fn words(json: &Json) -> Text {
    text_of(json).unwrap_or_else(|| Text::from(json.as_str()))
}

fn tell_calls(calls: &[Json], sink: &mut dyn Sink) -> Result<(), ReadError> {
    for (n, json) in calls.iter().enumerate() {
        let key = format!("c{n}-{}", hash_of(json.as_str(), 8));
        let id = Text::from(format!("call-{n}"));
        let Some(call) = Object::of(json) else {
            continue;
        };
        let name = call.text("tool_name").unwrap_or_default();
        let used = ToolUse {
            id: id.clone(),
            name: name.clone(),
            input: input(&call),
            extra: Fields::default(),
        };
        say(
            key.clone(),
            Message::assistant([Block::ToolUse(used)]),
            sink,
        )?;
        if !call.has("success") && !call.has("result") {
            continue;
        }
        let result = ToolResult {
            tool_use_id: id,
            tool_name: Some(name),
            output: match call.get("result").filter(|_| call.has("result")) {
                Some(result) => result.clone(),
                None => literal(&Text::default()),
            },
            is_error: call
                .get("success")
                .is_some_and(|json| json.as_str() == "false"),
            extra: Fields::default(),
        };
        say(format!("{key}/result"), Message::tool_result(result), sink)?;
    }
    Ok(())
}

/// Returns what a tool was called with: an object, also where it stands in a string.
fn input(call: &Object) -> Json {
    let Some(arguments) = call.get("arguments") else {
        return Json::new("{}").expect("this is JSON");
    };
    let inner = text_of(arguments).filter(|text| text.trim_start().starts_with('{'));
    let inner = inner.and_then(|text| Json::new(text.as_str()).ok());
    inner.unwrap_or_else(|| arguments.clone())
}

/// Tells which files were changed, as the agent noted it.
fn tell_changes(checkpoint: &Object, sink: &mut dyn Sink) -> Result<(), ReadError> {
    let changes = list(checkpoint, "file_diffs");
    let blocks: Vec<Block> = changes.iter().filter_map(change).collect();
    if blocks.is_empty() {
        return Ok(());
    }
    let raw = checkpoint.get("file_diffs").map_or("", Json::as_str);
    let key = format!("files-{}", hash_of(raw, 16));
    let mut said = Said::new(key, meta(Message::new(Role::User, blocks)));
    said.at = checkpoint.get("timestamp").and_then(time);
    sink.item(Item::Said(said))?;
    Ok(())
}

fn change(json: &Json) -> Option<Block> {
    let change = Object::of(json)?;
    let value = |name: &str| change.get(name).map_or("null", Json::as_str);
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

/// Reads a time: seconds and nanoseconds since 1970, or as RFC 3339.
fn time(json: &Json) -> Option<Timestamp> {
    if is_string(json) {
        return text_of(json)?.as_str().parse().ok();
    }
    let time = Object::of(json)?;
    let seconds = i64::try_from(time.number("secs_since_epoch")?).ok()?;
    let millis = i64::try_from(time.number("nanos_since_epoch").unwrap_or(0) / 1_000_000).ok()?;
    Timestamp::from_millis(seconds.checked_mul(1_000)?.checked_add(millis)?)
}

#[cfg(test)]
#[path = "checkpoint_files_tests.rs"]
mod tests;
