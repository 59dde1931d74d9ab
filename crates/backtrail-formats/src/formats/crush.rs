//! Crush: an SQLite database in each project, `.crush/crush.db`.
//!
//! A message is written again and again while it grows, until it has a part that says how it
//! finished. Crush adds up what a session cost; its numbers of tokens are those of the last
//! call only.

use std::path::{Path, PathBuf};

use backtrail::{Block, Message, Role, Text, Timestamp, ToolResult, Usage};

use super::blocks::{
    self, call_input, data_url_block, mark_meta, media_block, string_json, thinking, tool_output,
    unknown_block,
};
use super::keys::{UniqueKeys, hash, valid_key};
use super::rows::{FirstRow, RowLine, json_column, seconds_or_millis};
use crate::environment::Environment;
use crate::error::Result;
use crate::event::{
    Details, Event, EventSink, MessageEvent, Origin, ReadReport, SummaryEvent, UsageEvent,
};
use crate::format::{Agent, Format, OpenFile};
use crate::json::{Object, elements};
use crate::json_lines::JsonLines;
use crate::source::{Source, file_name};
use crate::tables::{Rows, Sessions, Tables};

const TABLES: Tables = Tables {
    sessions: Sessions {
        table: "sessions",
        id: "id",
        parent: Some("parent_session_id"),
    },
    // Times are in seconds: the order is that in which messages were stored.
    rows: &[Rows {
        table: "messages",
        session: "session_id",
        order: &[],
        below: None,
    }],
    columns: &["parts"],
};

/// Crush: an SQLite database in each project.
#[derive(Debug, Clone, Copy)]
pub struct Crush;

impl Format for Crush {
    fn agent(&self) -> Agent {
        Agent {
            programs: &["crush"],
            packages: &["@charmland/crush"],
            sub_agents: true,
            compactions: true,
            usage: true,
            media: true,
            ..Agent::new("crush", "Crush", "its schema of 2025 and 2026")
        }
    }

    /// Crush keeps a list of the projects that it was used in.
    fn directories(&self, environment: &Environment) -> Vec<PathBuf> {
        let data = match environment.variable("XDG_DATA_HOME") {
            Some(data) => Some(PathBuf::from(data)),
            None => environment.home().map(|home| home.join(".local/share")),
        };
        let list = data.map(|data| data.join("crush/projects.json"));
        let list = list.and_then(|list| Source::open(&list).ok()?.read_value().ok());
        list.map(|list| project_directories(&list))
            .unwrap_or_default()
    }

    fn project_directories(&self, project: &Path) -> Vec<PathBuf> {
        vec![project.join(".crush")]
    }

    fn is_session_file(&self, path: &Path) -> bool {
        file_name(path) == "crush.db"
    }

    fn tables(&self) -> Option<&'static Tables> {
        Some(&TABLES)
    }

    fn recognises(&self, source: &Source) -> bool {
        FirstRow::find(&source.head()).is_some_and(|row| {
            row.is_of("messages", &["session_id", "role", "parts"])
                || row.is_of("sessions", &["message_count", "prompt_tokens", "cost"])
        })
    }

    fn open<'s>(&self, source: &'s Source) -> Result<OpenFile<'s>> {
        let outline = Outline::read(source)?;
        let (name, origin) = (outline.name(source), outline.origin());
        Ok(OpenFile::new(name, origin, move |sink| {
            read_messages(source, &outline, sink)
        }))
    }
}

/// Returns the directories in the list of projects.
fn project_directories(list: &str) -> Vec<PathBuf> {
    let list = Object::parse(list).unwrap_or_default();
    let projects = list.list("projects").unwrap_or_default().into_iter();
    let directory = |json: &str| {
        let project = Object::from_json(json)?;
        let data = project.path("data_dir").filter(|data| data.is_absolute());
        data.or_else(|| Some(project.path("path")?.join(".crush")))
    };
    projects.filter_map(directory).collect()
}

/// What is known of a session before its messages are read.
#[derive(Debug, Default)]
struct Outline {
    id: Option<String>,
    parent: Option<String>,
    title: Option<String>,
    created: Option<Timestamp>,
    cost: f64,
    /// The message that replaces all before it.
    summary: Option<String>,
    /// How many messages there are.
    messages: u64,
    /// The position of the last message that is not a result of a tool, from 1.
    last_turn: u64,
}

impl Outline {
    /// Reads a file for the first time.
    fn read(source: &Source) -> Result<Self> {
        let mut outline = Self::default();
        let (mut lines, mut report) = JsonLines::new(source);
        while let Some(line) = lines.next(&mut report)? {
            let RowLine::Row(table, row) = RowLine::read(&line.object()) else {
                continue;
            };
            match table.as_ref() {
                "messages" => {
                    outline.messages += 1;
                    let role = row.string("role");
                    if matches!(role.as_deref(), Some("user" | "assistant")) {
                        outline.last_turn = outline.messages;
                    }
                }
                "sessions" => outline.add_session(&row),
                _ => {}
            }
        }
        Ok(outline)
    }

    fn add_session(&mut self, row: &Object<'_>) {
        const UNTITLED: [&str; 3] = ["New Session", "New Agent Session", "Untitled Session"];
        let title = row.trimmed("title");
        self.title = title.filter(|title| !UNTITLED.contains(&title.as_str()));
        self.id = row.trimmed("id");
        self.parent = row.trimmed("parent_session_id");
        self.created = row.number("created_at").and_then(seconds_or_millis);
        self.cost = row.float("cost").unwrap_or(0.0);
        self.summary = row.trimmed("summary_message_id");
    }

    fn name(&self, source: &Source) -> String {
        valid_key(self.id.as_deref().unwrap_or(source.stem()))
    }

    /// Returns where it comes from. The id of a sub-agent's session names the call:
    /// `<message>$$<call>`.
    fn origin(&self) -> Origin {
        let Some(parent) = &self.parent else {
            return Origin::Start;
        };
        let call = self.id.as_deref().and_then(|id| id.split_once("$$"));
        Origin::Spawned {
            session: Some(valid_key(parent)),
            tool_use_id: call.map(|(_, call)| call.to_owned()),
        }
    }

    fn response_id(&self, source: &Source) -> String {
        format!("crush-{}", self.name(source))
    }

    /// Returns what the session cost. The cost of sub-agents is part of their parents'.
    fn usage(&self, source: &Source) -> Option<UsageEvent> {
        let is_sub_agent = self.parent.is_some();
        (self.cost > 0.0).then(|| UsageEvent {
            key: format!(
                "cost-{}{}",
                hash(self.cost.to_string().as_bytes(), 16),
                UsageEvent::ANYWHERE
            ),
            at: None,
            response_id: self.response_id(source),
            model: None,
            usage: Usage::default(),
            duration_ms: None,
            cost_usd: Some(if is_sub_agent { 0.0 } else { self.cost }),
        })
    }
}

/// Returns the project that a database is in.
fn project(source: &Source) -> Option<PathBuf> {
    let folder = source.path().ancestors().nth(2)?;
    let is_crush = file_name(folder) == ".crush";
    Some(folder.parent().filter(|_| is_crush)?.to_owned())
}

fn read_messages(
    source: &Source,
    outline: &Outline,
    sink: &mut dyn EventSink,
) -> Result<ReadReport> {
    sink.details(Details {
        title: outline.title.clone(),
        directory: project(source),
        started_at: outline.created,
        ..Details::default()
    })?;
    let mut emitter = CrushEmitter {
        sink,
        outline,
        response_id: outline.response_id(source),
        keys: UniqueKeys::default(),
        model: None,
        at: 0,
    };
    let (mut lines, mut report) = JsonLines::new(source);
    while let Some(line) = lines.next(&mut report)? {
        let reason = match RowLine::read(&line.object()) {
            RowLine::Row(table, row) => match table.as_ref() {
                "messages" => match emitter.add(&row, &mut report)? {
                    Some(reason) => reason.to_owned(),
                    None => continue,
                },
                "sessions" => continue,
                other => {
                    report.add_unknown(&format!("table: {other}"));
                    continue;
                }
            },
            RowLine::Damaged(reason) => reason,
        };
        report.add_damage(line.number, &line.range, reason);
    }
    if let Some(usage) = outline.usage(source) {
        emitter.sink.event(Event::Usage(usage))?;
    }
    Ok(report)
}

/// Sends the events of messages.
struct CrushEmitter<'s> {
    sink: &'s mut dyn EventSink,
    outline: &'s Outline,
    /// The id under which the whole session is counted.
    response_id: String,
    keys: UniqueKeys,
    model: Option<String>,
    /// How many messages there were.
    at: u64,
}

impl CrushEmitter<'_> {
    /// Sends a message. Nothing is sent after one that is still being written. Returns why it
    /// cannot be read, if it cannot.
    fn add(&mut self, row: &Object<'_>, report: &mut ReadReport) -> Result<Option<&'static str>> {
        self.at += 1;
        let Some(role) = row.string("role") else {
            return Ok(Some("message without a role"));
        };
        let parts = json_column(row, "parts");
        let Some(parts) = parts.as_deref().and_then(elements) else {
            return Ok(Some("message without parts"));
        };
        let parts = Parts::read(&parts, report);
        let is_over = parts.finish.is_some() || row.has("finished_at");
        if role == "assistant" && !is_over && self.at >= self.outline.last_turn {
            report.unfinished = true;
        }
        if report.unfinished {
            return Ok(None);
        }
        let role = match role.as_ref() {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "tool" => Role::Tool,
            "system" => Role::System,
            other => {
                report.add_unknown(&format!("message: {other}"));
                return Ok(None);
            }
        };
        self.send(row, role, parts)?;
        Ok(None)
    }

    fn send(&mut self, row: &Object<'_>, role: Role, parts: Parts) -> Result<()> {
        let id = row.trimmed("id").unwrap_or_default();
        let at = row.number("created_at").and_then(seconds_or_millis);
        let is_summary = row.number("is_summary_message") == Some(1)
            || self.outline.summary.as_deref() == Some(id.as_str());
        let key = self.keys.unique(valid_key(&id));
        let model = row.trimmed("model").filter(|_| role == Role::Assistant);
        self.describe(model.as_deref())?;
        if is_summary && role == Role::Assistant {
            return self.sink.event(Event::Summary(SummaryEvent {
                at,
                model,
                ..SummaryEvent::new(key, parts.text())
            }));
        }
        let is_answer = role == Role::Assistant;
        self.sink.event(Event::Message(MessageEvent {
            model,
            response_id: is_answer.then(|| self.response_id.clone()),
            ..MessageEvent::new(key, parts.into_message(role)).at(at)
        }))
    }

    fn describe(&mut self, model: Option<&str>) -> Result<()> {
        if model.is_none() || model == self.model.as_deref() {
            return Ok(());
        }
        self.model = model.map(str::to_owned);
        self.sink.details(Details {
            model: self.model.clone(),
            ..Details::default()
        })
    }
}

/// The parts of a message.
#[derive(Debug, Default)]
struct Parts {
    blocks: Vec<Block>,
    /// Whether the user wrote some of it.
    is_own: bool,
    /// How it finished, and why if it failed.
    finish: Option<(Text, Text)>,
}

impl Parts {
    fn read(parts: &[&str], report: &mut ReadReport) -> Self {
        let mut read = Self::default();
        for json in parts {
            let part = Object::from_json(json).unwrap_or_default();
            let data = part.object("data").unwrap_or_default();
            let kind = part.string("type").unwrap_or_default();
            if kind == "finish" {
                read.finish = Some(finish(&data));
                continue;
            }
            read.is_own |= match kind.as_ref() {
                "text" => !data.is_true("hidden"),
                "shell_command" => false,
                _ => true,
            };
            match block(&kind, &data) {
                Some(block) => read.blocks.push(block),
                None => {
                    report.add_unknown(&format!("part: {kind}"));
                    read.blocks.push(unknown_block("crush", json));
                }
            }
        }
        let is_empty = |block: &Block| match block {
            Block::Text(block) => block.text.is_empty(),
            Block::Thinking(block) => block.thinking.is_empty() && block.signature.is_none(),
            _ => false,
        };
        read.blocks.retain(|block| !is_empty(block));
        read
    }

    fn text(&self) -> String {
        let texts = self.blocks.iter().filter_map(|block| match block {
            Block::Text(block) => Some(block.text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n\n")
    }

    fn into_message(self, role: Role) -> Message {
        let is_added = role == Role::User && !self.is_own;
        let mut message = Message::new(role, self.blocks);
        if is_added {
            mark_meta(&mut message);
        }
        let is_usual = |reason: &str| matches!(reason, "" | "end_turn" | "tool_use" | "stop");
        if let Some((reason, error)) = self.finish.filter(|(reason, _)| !is_usual(reason)) {
            message.extra.push("stop_reason", string_json(&reason));
            if !error.is_empty() {
                message.extra.push("error", string_json(&error));
            }
        }
        message
    }
}

fn finish(data: &Object<'_>) -> (Text, Text) {
    let text = |name: &str| data.text(name).unwrap_or_default();
    let (message, details) = (text("message"), text("details"));
    let error = match (message.is_empty(), details.is_empty()) {
        (false, false) => format!("{message}: {details}").into(),
        (true, _) => details,
        (false, true) => message,
    };
    (text("reason"), error)
}

/// Reads a part. `None` if it is not known.
fn block(kind: &str, data: &Object<'_>) -> Option<Block> {
    Some(match kind {
        "text" => Block::text(data.text("text")?),
        "reasoning" => {
            let signature = data.text("signature");
            let signature = signature.filter(|signature| !signature.is_empty());
            thinking(data.text("thinking")?, signature)
        }
        "tool_call" => {
            let input = call_input(data.get("input"));
            Block::ToolUse(blocks::tool_use(data.text("id"), data.text("name"), input))
        }
        "tool_result" => Block::ToolResult(result(data)),
        "binary" => media_block(data.text("MIMEType")?, data.string_json("Data")?),
        "image_url" => data_url_block("image", &data.string("url")?)
            .unwrap_or_else(|| address(&data.text("url").unwrap_or_default())),
        "shell_command" => Block::text(command(data)),
        _ => return None,
    })
}

/// Returns the address of an image.
fn address(url: &Text) -> Block {
    let url = string_json(url);
    let json = format!("{{\"type\":\"image_url\",\"url\":{}}}", url.as_str());
    unknown_block("image_url", &json)
}

/// Returns a command that the user ran, with its output.
fn command(data: &Object<'_>) -> String {
    let text = |name: &str| data.text(name).unwrap_or_default();
    let (command, output) = (text("command"), text("output"));
    match data.float("exit_code") {
        Some(code) if code != 0.0 => format!("$ {command}\n{output}\n(exit code {code})"),
        _ => format!("$ {command}\n{output}"),
    }
}

fn result(data: &Object<'_>) -> ToolResult {
    let text = data.text("content").map(Block::text);
    let medium = data
        .string_json("data")
        .filter(|data| data.as_str() != "\"\"");
    let medium = medium.and_then(|medium| Some(media_block(data.text("mime_type")?, medium)));
    let output: Vec<Block> = text.into_iter().chain(medium).collect();
    ToolResult {
        is_error: data.is_true("is_error") || has_failed(data),
        ..blocks::tool_result(
            data.text("tool_call_id"),
            data.text("name"),
            tool_output(&output),
        )
    }
}

/// Returns whether the command of a call failed.
fn has_failed(data: &Object<'_>) -> bool {
    let metadata = json_column(data, "metadata").unwrap_or_default();
    let metadata = Object::from_json(&metadata).unwrap_or_default();
    let code = metadata.float("exit_code");
    code.is_some_and(|code| code != 0.0)
}

#[cfg(test)]
#[path = "crush_tests.rs"]
mod tests;
