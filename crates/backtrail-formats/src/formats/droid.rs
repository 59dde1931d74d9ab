//! Droid, by Factory: the files of sessions, and the output of `droid exec`, both JSON lines.
//!
//! A session's file starts with `session_start`; its messages have blocks in the style of
//! Anthropic. The output of `droid exec --output-format stream-json` has a line for each
//! message, call and result, and one with the final text and the usage at the end. That of a
//! session is in the file beside it, as one sum.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use backtrail::{Block, Json, Message, Role, ToolResult, Usage};
use serde::{Deserialize, Serialize};

use super::blocks;
use super::content::{
    anthropic_usage, any_text, output_text, result_output, split_reminders, tool_call, tool_result,
};
use super::keys::{hash, hash_name, push_limited, valid_key};
use super::log::{LineReader, Log, SessionStart, open_log, resume_log};
use crate::environment::Environment;
use crate::error::Result;
use crate::event::{Details, Event, EventSink, UsageEvent};
use crate::format::{Agent, Format, OpenFile, Resume};
use crate::json::{Object, to_text};
use crate::json_lines::JsonLines;
use crate::lines::first_line;
use crate::source::{Source, is_json_lines, trim};

/// Droid, by Factory: the files of sessions, and the output of `droid exec`.
#[derive(Debug, Clone, Copy)]
pub struct Droid;

impl Format for Droid {
    fn agent(&self) -> Agent {
        Agent {
            programs: &["droid"],
            packages: &["@factory/cli"],
            appends: true,
            sub_agents: true,
            compactions: true,
            usage: true,
            media: true,
            ..Agent::new(
                "droid",
                "Droid",
                "session files, `droid exec` as stream-json",
            )
        }
    }

    fn directories(&self, environment: &Environment) -> Vec<PathBuf> {
        environment.below_home(&[".factory/sessions"])
    }

    fn is_session_file(&self, path: &Path) -> bool {
        is_json_lines(path)
    }

    fn recognises(&self, source: &Source) -> bool {
        let head = source.head();
        Object::parse(&first_line(&head)).is_ok_and(|first| {
            is_session_start(&first) || (is_stream_line(&first) && has_stream_event(&head))
        })
    }

    fn open<'s>(&self, source: &'s Source) -> Result<OpenFile<'s>> {
        let mut start = SessionStart {
            session: valid_key(source.stem()),
            details: settings(source),
            is_unnamed: true,
            ..SessionStart::default()
        };
        let (mut lines, mut report) = JsonLines::new(source);
        while let Some(line) = lines.next(&mut report)? {
            if name_session(&line.object(), &mut start) {
                break;
            }
        }
        Ok(open_log::<DroidLines>(source, start))
    }

    fn resume<'s>(&self, source: &'s Source, resume: &Resume) -> Result<Option<OpenFile<'s>>> {
        let resumed = resume_log::<DroidLines>(source, resume, settings(source));
        Ok(resumed)
    }
}

fn is_session_start(line: &Object<'_>) -> bool {
    line.string("type").as_deref() == Some("session_start") && line.non_blank("id").is_some()
}

fn stream_session<'a>(line: &Object<'a>) -> Option<std::borrow::Cow<'a, str>> {
    line.non_blank("session_id").or(line.non_blank("sessionId"))
}

/// Returns whether a line may be one of `droid exec`. Lines of other agents with the same types
/// have a `uuid` or their content in a `message`.
fn is_stream_line(line: &Object<'_>) -> bool {
    let is_type = matches!(
        line.string("type").as_deref(),
        Some("system" | "message" | "tool_call" | "tool_result" | "completion" | "error")
    );
    is_type && stream_session(line).is_some() && !line.has("uuid") && !line.has("data")
}

/// Returns whether one of the first lines is an event that only `droid exec` writes.
fn has_stream_event(head: &[u8]) -> bool {
    const LINES: usize = 50;
    let lines = head.split(|byte| *byte == b'\n').map(trim);
    lines.take(LINES).any(|line| {
        Object::parse(&String::from_utf8_lossy(line)).is_ok_and(|line| {
            let is_event = match line.string("type").as_deref() {
                Some("message") => line.has("role") && line.has("text"),
                Some("tool_call") => line.has("toolName"),
                Some("tool_result") => line.has("value"),
                Some("completion") => line.has("finalText"),
                _ => false,
            };
            is_event && is_stream_line(&line)
        })
    })
}

/// Returns whether a line names the session; `start` has its name then.
fn name_session(line: &Object<'_>, start: &mut SessionStart) -> bool {
    let id = match is_session_start(line) {
        true => line.non_blank("id"),
        false => stream_session(line),
    };
    let Some(id) = id else {
        return false;
    };
    start.session = valid_key(id);
    start.is_unnamed = false;
    start.parent = line.non_blank("callingSessionId").map(valid_key);
    start.call = line.string("callingToolUseId").map(|id| id.into_owned());
    true
}

/// Returns what the file beside a session says of it.
fn settings(source: &Source) -> Details {
    let text = settings_text(source);
    let settings = Object::parse(&text).unwrap_or_default();
    Details {
        model: settings.trimmed("model"),
        ..Details::default()
    }
}

fn settings_text(source: &Source) -> String {
    let name = format!("{}.settings.json", source.stem());
    let bytes = source.read_beside(name.as_ref()).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the usage of a whole session. Thinking is not part of the output there.
fn total_usage(settings: &Object<'_>) -> Option<Usage> {
    let counts = settings.object("tokenUsage")?;
    let count = |name: &str| counts.number(name).unwrap_or(0);
    let thinking = count("thinkingTokens");
    let output = count("outputTokens").saturating_add(thinking);
    let usage = Usage::new(count("inputTokens"), output)
        .cache_creation(count("cacheCreationTokens"))
        .cache_read(count("cacheReadTokens"))
        .reasoning(thinking);
    (usage.total() > 0).then_some(usage)
}

/// How many messages a compaction can find again.
const REMEMBERED: usize = 64;

/// Reads lines, and remembers the last ones.
#[derive(Debug, Default, Serialize, Deserialize)]
struct DroidLines {
    /// Hashes of the ids of the last messages, and how many messages came up to each.
    recent: VecDeque<(u64, u64)>,
    /// A hash of the last text of the model.
    last_text: Option<u64>,
    /// Whether the lines have usage.
    #[serde(default)]
    has_usage: bool,
    /// The key of the session's usage that was sent last.
    #[serde(default)]
    total: Option<String>,
}

impl LineReader for DroidLines {
    fn read(&mut self, line: &Object<'_>, log: &mut Log<'_>) -> Result<()> {
        let Some(kind) = line.string("type") else {
            log.damaged("line without a type");
            return Ok(());
        };
        log.at = line.time("timestamp");
        match kind.as_ref() {
            "session_start" => log.details(session_details(line)),
            "system" => self.read_system(line, log),
            "message" => self.read_message(line, log),
            "tool_call" => read_call(line, log),
            "tool_result" => read_result(line, log),
            "completion" => self.read_completion(line, log),
            "error" => read_error(line, log),
            "compaction_state" => self.read_compaction(line, log),
            "todo_state" | "session_settings" | "agent_turn_outcome" | "session_end" => Ok(()),
            other => {
                log.unknown(other);
                Ok(())
            }
        }
    }

    /// Sends the usage of the session so far. It has one id, so that the last sum counts.
    fn finish(&mut self, source: &Source, session: &str, sink: &mut dyn EventSink) -> Result<()> {
        let text = settings_text(source);
        let settings = Object::parse(&text).unwrap_or_default();
        let Some(usage) = total_usage(&settings).filter(|_| !self.has_usage) else {
            return Ok(());
        };
        let sum = hash(format!("{usage:?}").as_bytes(), 16);
        let key = format!("total-{sum}{}", UsageEvent::ANYWHERE);
        if self.total.as_deref() == Some(&key) {
            return Ok(());
        }
        self.total = Some(key.clone());
        sink.event(Event::Usage(UsageEvent {
            key,
            at: None,
            response_id: format!("droid-{session}"),
            model: settings.trimmed("model"),
            usage,
            duration_ms: None,
            cost_usd: None,
        }))
    }
}

impl DroidLines {
    fn read_system(&mut self, line: &Object<'_>, log: &mut Log<'_>) -> Result<()> {
        log.details(Details {
            directory: line.path("cwd"),
            started_at: log.at,
            ..Details::default()
        })?;
        log.set_model(line.string("model"))
    }

    fn read_message(&mut self, line: &Object<'_>, log: &mut Log<'_>) -> Result<()> {
        let nested = line.object("message");
        let body = nested.as_ref().unwrap_or(line);
        let content = body.get("content").or_else(|| body.get("text"));
        let (Some(role), Some(content)) = (body.string("role"), content) else {
            log.damaged("message without a role or content");
            return Ok(());
        };
        let mut blocks = log.content(Some(content));
        blocks.iter_mut().for_each(mark_failed);
        match role.as_ref() {
            "user" => log.prompt(blocks, |text| split_reminders(text, "system-reminder"))?,
            "assistant" => {
                log.set_model(body.string("model"))?;
                let message = Message::new(Role::Assistant, blocks);
                self.last_text = Some(hash_name(&message.text()));
                log.message(message)?;
            }
            "system" => log.message(Message::new(Role::System, blocks))?,
            other => log.unknown(&format!("role: {other}")),
        }
        if let Some(id) = line.string("id") {
            push_limited(
                &mut self.recent,
                (hash_name(&id), log.messages()),
                REMEMBERED,
            );
        }
        Ok(())
    }

    /// Reads the end of a run. Its text is usually that of the last message.
    fn read_completion(&mut self, line: &Object<'_>, log: &mut Log<'_>) -> Result<()> {
        if let Some(text) = line
            .text("finalText")
            .filter(|text| !text.trim().is_empty())
        {
            let hash = Some(hash_name(&text));
            if self.last_text != hash {
                log.message(Message::assistant([Block::text(text)]))?;
            }
            self.last_text = hash;
        }
        let usage = line
            .object("usage")
            .and_then(|usage| anthropic_usage(&usage));
        match usage {
            Some(usage) => {
                self.has_usage = true;
                log.usage(usage, None, line.number("durationMs"))
            }
            None => Ok(()),
        }
    }

    /// Reads a summary. Messages after its anchor stay in the context.
    fn read_compaction(&mut self, line: &Object<'_>, log: &mut Log<'_>) -> Result<()> {
        let anchor = line.object("anchorMessage");
        let anchor = anchor.and_then(|anchor| anchor.string("id").map(|id| hash_name(&id)));
        let is_anchor = |(id, _): &&(u64, u64)| Some(*id) == anchor;
        let found = self.recent.iter().rev().find(is_anchor);
        let keep = found.map_or(0, |(_, messages)| log.messages().saturating_sub(*messages));
        let nested = line
            .object("summary")
            .and_then(|summary| summary.text("body"));
        let summary = any_text(line, &["summaryText", "summary"]).or(nested);
        log.summary(&summary.unwrap_or_default(), keep)
    }
}

fn session_details(line: &Object<'_>) -> Details {
    Details {
        title: line.trimmed("sessionTitle").or(line.trimmed("title")),
        directory: line.path("cwd"),
        started_at: line.time("timestamp"),
        ..Details::default()
    }
}

/// Marks a result as failed whose text says that its command did.
fn mark_failed(block: &mut Block) {
    if let Block::ToolResult(result) = block {
        let text = output_text(result).unwrap_or_default();
        result.is_error |= text.trim_start().starts_with("Error: Command failed");
    }
}

fn read_call(line: &Object<'_>, log: &mut Log<'_>) -> Result<()> {
    let Some(mut call) = tool_call(line) else {
        log.damaged("call without a name");
        return Ok(());
    };
    // The line has an id of its own too.
    if let Some(id) = line.text("toolCallId") {
        call.id = id;
    }
    log.message(Message::assistant([Block::from(call)]))
}

fn read_result(line: &Object<'_>, log: &mut Log<'_>) -> Result<()> {
    let value = line.get("value");
    let id = line.text("toolCallId").or_else(|| line.text("id"));
    let output = value.and_then(command_output);
    let mut result = ToolResult {
        is_error: tool_result(line).is_error || value.is_some_and(has_failed),
        ..blocks::tool_result(id, any_text(line, &["toolName", "toolId"]), output)
    };
    if let Some(error) = line.object("error").and_then(|error| error.text("message")) {
        result.is_error = true;
        result.output = blocks::string_json(&error);
    }
    log.message(Message::tool_result(result))
}

/// Returns the output of a command: all of it, if there is more than a text.
fn command_output(value: &str) -> Option<Json> {
    let object = Object::from_json(value);
    let stdout = object.as_ref().and_then(|object| object.text("stdout"));
    let is_all = object.is_some_and(|object| {
        let is_silent = |(name, json): (&str, &str)| match name {
            "stdout" => true,
            "exitCode" | "exit_code" => json == "0",
            _ => to_text(json).is_some_and(|text| text.is_empty()),
        };
        object.fields().all(is_silent)
    });
    match stdout.filter(|_| is_all) {
        Some(text) => Some(blocks::string_json(&text)),
        None => result_output(value),
    }
}

/// Returns whether a value is the output of a command that failed.
fn has_failed(value: &str) -> bool {
    let object = Object::from_json(value).unwrap_or_default();
    ["exitCode", "exit_code"]
        .iter()
        .filter_map(|name| object.float(name))
        .any(|code| code != 0.0)
}

fn read_error(line: &Object<'_>, log: &mut Log<'_>) -> Result<()> {
    let mut message = Message::assistant([]);
    let Some(error) = line.json("message") else {
        log.damaged("error without a message");
        return Ok(());
    };
    message.extra.push("error", error);
    log.message(message)
}

#[cfg(test)]
#[path = "droid_tests.rs"]
mod tests;
