//! pi: a header and a tree of JSON lines.
//!
//! Every line but the first is an entry with an id and the id of its parent. The conversation
//! ends at the last line of the file; the entries that lead to it are the file's own thread,
//! and all others are branches. Version 1 has no ids: its lines follow one another.

mod tree;

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use backtrail::{Block, Message, Role, Timestamp, ToolResult, ToolUse, Usage};
use serde::{Deserialize, Serialize};

use super::blocks::{
    self, media_block, meta, meta_text, text_block, thinking, tool_output, unknown_block,
};
use super::keys::{SeenIds, hash, hash_json, save_state, valid_key};
use crate::environment::Environment;
use crate::error::Result;
use crate::event::{
    Details, Event, EventSink, MessageEvent, Origin, ReadReport, SummaryEvent, Thread, UsageEvent,
};
use crate::format::{Agent, Format, OpenFile, Resume};
use crate::json::{Object, elements, field_names, is_string, to_json, to_text};
use crate::json_lines::JsonLines;
use crate::lines::first_line;
use crate::source::{Source, is_json_lines};

use tree::Tree;

/// pi: a header and a tree of JSON lines.
#[derive(Debug, Clone, Copy)]
pub struct Pi;

impl Format for Pi {
    fn agent(&self) -> Agent {
        Agent {
            programs: &["pi"],
            packages: &[
                "@earendil-works/pi-coding-agent",
                "@mariozechner/pi-coding-agent",
            ],
            appends: true,
            branches: true,
            compactions: true,
            usage: true,
            media: true,
            ..Agent::new("pi", "pi", "1, 2 and 3 (to 1.5.0)")
        }
    }

    fn directories(&self, environment: &Environment) -> Vec<PathBuf> {
        if let Some(sessions) = environment.variable("PI_CODING_AGENT_SESSION_DIR") {
            return vec![PathBuf::from(sessions)];
        }
        environment.folders("PI_CODING_AGENT_DIR", ".pi/agent", &["sessions"])
    }

    fn is_session_file(&self, path: &Path) -> bool {
        is_json_lines(path)
    }

    fn recognises(&self, source: &Source) -> bool {
        let head = source.head();
        (has_header(&head) && !is_of_openclaw(source.path(), &head)) || is_single_message(&head)
    }

    fn open<'s>(&self, source: &'s Source) -> Result<OpenFile<'s>> {
        if is_single_message(&source.head()) {
            return open_single_message(source);
        }
        open(source, MissingParent::IsNone)
    }

    fn resume<'s>(&self, source: &'s Source, resume: &Resume) -> Result<Option<OpenFile<'s>>> {
        self::resume(source, resume)
    }
}

/// What comes before an entry whose parent is not in the file.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum MissingParent {
    /// Nothing: the entry begins a conversation.
    #[default]
    IsNone,
    /// The entry before it in the file.
    IsPrevious,
}

/// Opens a session from its beginning.
pub(super) fn open(source: &Source, missing_parent: MissingParent) -> Result<OpenFile<'_>> {
    let state = PiState {
        session: valid_key(name_of(source.stem())),
        missing_parent,
        ..PiState::default()
    };
    let opened = open_lines(source, 0, state)?;
    Ok(opened.expect("only a resumed file can be refused"))
}

/// Only a conversation that continues where it ended can be resumed. A file with a new branch
/// is read from the beginning.
pub(super) fn resume<'s>(source: &'s Source, resume: &Resume) -> Result<Option<OpenFile<'s>>> {
    match resume.state.parse::<PiState>() {
        Ok(state) => open_lines(source, resume.read_to, state),
        Err(_) => Ok(None),
    }
}

/// Returns whether a file starts with a header.
pub(super) fn has_header(head: &[u8]) -> bool {
    Object::parse(&first_line(head)).is_ok_and(|first| is_header(&first))
}

/// Returns whether a file is a session of OpenClaw, which writes the same format: by its
/// directory, or by an entry that only OpenClaw writes.
pub(super) fn is_of_openclaw(path: &Path, head: &[u8]) -> bool {
    let is_own = |name: &std::ffi::OsStr| name == "openclaw" || name == ".openclaw";
    let mut names = path.ancestors().skip(1).filter_map(Path::file_name);
    if names.any(is_own) {
        return true;
    }
    let lines = head.split(|byte| *byte == b'\n');
    let mut lines = lines.filter(|line| memchr::memmem::find(line, b"\"openclaw").is_some());
    lines.any(|line| {
        Object::parse(&String::from_utf8_lossy(line)).is_ok_and(|entry| {
            let message = entry.object("message").unwrap_or_default();
            let names = [
                entry.string("customType"),
                entry.string("provider"),
                message.string("provider"),
            ];
            let mut names = names.iter().flatten();
            names.any(|name| name.starts_with("openclaw"))
        })
    })
}

/// Returns whether a line is a header, of which only the first counts.
fn is_session(line: &Object<'_>) -> bool {
    line.string("type").as_deref() == Some("session")
}

fn is_header(object: &Object<'_>) -> bool {
    is_session(object) && object.has("id") && object.has("cwd") && object.has("timestamp")
}

/// Returns whether a file is one message and not a session of lines.
fn is_single_message(head: &[u8]) -> bool {
    let fields = field_names(head);
    let has = |name: &str| fields.iter().any(|field| field == name);
    has("role") && has("content") && has("api") && has("provider") && !has("type")
}

/// The state from which a file is resumed whose entries follow one another.
#[derive(Debug, Default, Serialize, Deserialize)]
struct PiState {
    session: String,
    origin: Option<String>,
    model: Option<String>,
    lines: u64,
    entries: u64,
    said: u32,
    last: Option<String>,
    ids: SeenIds,
    #[serde(default)]
    missing_parent: MissingParent,
}

impl PiState {
    /// Reads the header of a file, and returns what describes the session.
    fn read_header(&mut self, header: &Object<'_>) -> Details {
        if let Some(id) = header.non_blank("id") {
            self.session = valid_key(id);
        }
        let parent = header.non_blank("parentSession");
        let parent = parent.or(header.non_blank("branchedFrom"));
        self.origin = parent.map(|parent| valid_key(name_of(file_stem(&parent))));
        self.model = header.string("modelId").map(Cow::into_owned);
        Details {
            model: self.model.clone(),
            directory: header.path("cwd"),
            started_at: header.time("timestamp"),
            ..Details::default()
        }
    }
}

fn copy_of(session: Option<String>) -> Origin {
    session.map_or(Origin::Start, |session| Origin::Copy { session })
}

/// Returns the session's id from the name of a file: `<time>_<id>`.
fn name_of(stem: &str) -> &str {
    stem.rsplit_once('_').map_or(stem, |(_, id)| id)
}

fn file_stem(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    name.strip_suffix(".jsonl").unwrap_or(name)
}

/// Opens a file from its beginning, or where an earlier reading ended. `None` if what was
/// appended there does not continue the conversation.
fn open_lines(source: &Source, from: u64, mut state: PiState) -> Result<Option<OpenFile<'_>>> {
    let is_resumed = from > 0;
    let (mut lines, mut report) = JsonLines::resume(source, from, state.lines);
    let mut tree = Tree::new(&mut state);
    let mut details = Details::default();
    let mut is_empty = !is_resumed;
    while let Some(line) = lines.next(&mut report)? {
        let entry = line.object();
        if !is_session(&entry) {
            tree.add(&entry, &line, &mut report);
        } else if is_empty {
            details = state.read_header(&entry);
        }
        is_empty = false;
        if is_resumed && !tree.is_linear() {
            return Ok(None);
        }
    }
    tree.close();
    details.title = tree.title.take();
    let (session, origin) = (state.session.clone(), copy_of(state.origin.clone()));
    Ok(Some(OpenFile::new(session, origin, move |sink| {
        sink.details(details)?;
        let mut emitter = Emitter {
            sink: &mut *sink,
            session: &state.session,
            model: state.model.clone(),
        };
        emit_main(source, from, state.lines, &tree, &mut emitter)?;
        let model = emitter.model;
        emit_branches(source, &tree, &state.session, sink)?;
        if tree.is_linear() && !is_empty {
            report.state = save_state(&PiState {
                model,
                lines: report.lines,
                entries: state.entries + tree.len() as u64,
                said: tree.messages(),
                last: tree.last_id,
                ids: tree.seen,
                session: state.session.clone(),
                origin: state.origin,
                missing_parent: state.missing_parent,
            });
        }
        Ok(report)
    })))
}

/// Sends the entries that lead to the last one, in a second pass through the file.
fn emit_main(
    source: &Source,
    from: u64,
    number: u64,
    tree: &Tree,
    emitter: &mut Emitter<'_>,
) -> Result<()> {
    let (mut lines, mut report) = JsonLines::resume(source, from, number);
    let mut at = 0;
    while let Some(line) = lines.next(&mut report)? {
        let entry = line.object();
        if is_session(&entry) {
            continue;
        }
        if tree.is_on_main(at) {
            emitter.emit(&entry, &tree.key(at, &entry), tree.keep(at, true))?;
        }
        at += 1;
    }
    Ok(())
}

/// Sends each branch, from the point where it leaves the file's own thread.
fn emit_branches(
    source: &Source,
    tree: &Tree,
    session: &str,
    sink: &mut dyn EventSink,
) -> Result<()> {
    let mut keys = HashMap::new();
    for branch in tree.branches() {
        let first = branch.own.iter().find(|at| tree.is_event(**at));
        let Some(key) = first.and_then(|at| key_at(source, tree, *at, &mut keys)) else {
            continue;
        };
        let leaves = tree.last_event_up_to(branch.leaves);
        let after = leaves.and_then(|at| key_at(source, tree, at, &mut keys));
        sink.thread(&Thread::branch(key, after))?;
        let mut emitter = Emitter {
            sink: &mut *sink,
            session,
            model: None,
        };
        for at in branch.stem.iter().chain(&branch.own) {
            let line = source.line_at(tree.range(*at))?;
            if let Ok(entry) = Object::parse(&line) {
                emitter.emit(&entry, &tree.key(*at, &entry), tree.keep(*at, false))?;
            }
        }
    }
    Ok(())
}

/// Returns the key of an entry. Many branches may leave at the same one.
fn key_at(
    source: &Source,
    tree: &Tree,
    at: u32,
    keys: &mut HashMap<u32, String>,
) -> Option<String> {
    if let Some(key) = keys.get(&at) {
        return Some(key.clone());
    }
    let line = source.line_at(tree.range(at)).ok()?;
    let key = tree.key(at, &Object::parse(&line).ok()?);
    keys.insert(at, key.clone());
    Some(key)
}

/// Opens a file that is one message.
fn open_single_message(source: &Source) -> Result<OpenFile<'_>> {
    let text = source.read_value()?;
    let session = format!("message-{}", hash_json(&text, 16));
    let response_id = format!("{session}#n0");
    Ok(OpenFile::new(session, Origin::Start, move |sink| {
        let body = Object::parse(&text).unwrap_or_default();
        let Some(message) = message(&body) else {
            return Ok(ReadReport {
                unfinished: true,
                ..ReadReport::default()
            });
        };
        let model = body.string("model").map(Cow::into_owned);
        let at = body.time("timestamp");
        sink.details(Details {
            model: model.clone(),
            started_at: at,
            ..Details::default()
        })?;
        sink.event(Event::Message(MessageEvent {
            model,
            response_id: message.usage.as_ref().map(|_| response_id),
            cost_usd: cost(&body),
            ..MessageEvent::new("n0", message).at(at)
        }))?;
        Ok(ReadReport::for_single_value(source.len()))
    }))
}

/// What an entry is, as far as the tree needs to know.
#[derive(Debug)]
enum EntryKind {
    /// One message.
    Message,
    /// A summary of what came before.
    Summary,
    /// The title of the session.
    Title(String),
    /// The entry at which the conversation continues.
    Leaf,
    /// Something else that is known.
    Other,
    Unknown(String),
    Damaged(&'static str),
}

/// Returns what an entry is.
fn entry_kind(entry: &Object<'_>) -> EntryKind {
    let Some(name) = entry.string("type") else {
        return EntryKind::Damaged("entry without a type");
    };
    match name.as_ref() {
        "message" => match entry.object("message") {
            Some(message) => message_kind(&message),
            None => EntryKind::Damaged("message entry without a message"),
        },
        "compaction" => EntryKind::Summary,
        "branch_summary" | "custom_message" => EntryKind::Message,
        "session_info" => match entry.trimmed("name") {
            Some(name) => EntryKind::Title(name),
            None => EntryKind::Other,
        },
        "leaf" => EntryKind::Leaf,
        "model_change" | "thinking_level_change" | "label" | "custom" => EntryKind::Other,
        other => EntryKind::Unknown(other.to_owned()),
    }
}

fn message_kind(message: &Object<'_>) -> EntryKind {
    match message.string("role").as_deref() {
        Some(
            "system" | "user" | "assistant" | "toolResult" | "bashExecution" | "custom"
            | "hookMessage" | "branchSummary" | "compactionSummary",
        ) => EntryKind::Message,
        Some(role) => EntryKind::Unknown(format!("message: {role}")),
        None => EntryKind::Damaged("message without a role"),
    }
}

/// Sends the events of entries.
struct Emitter<'s> {
    sink: &'s mut dyn EventSink,
    session: &'s str,
    /// The model of the last entry.
    model: Option<String>,
}

impl Emitter<'_> {
    fn emit(&mut self, entry: &Object<'_>, key: &str, keep: u64) -> Result<()> {
        match (entry_kind(entry), entry.string("type").as_deref()) {
            (EntryKind::Summary, _) => self.sink.event(summary(entry, key, keep)),
            (EntryKind::Message, Some("message")) => self.emit_message(entry, key),
            (EntryKind::Message, _) => self.emit_context(entry, key),
            (_, Some("model_change")) => self.set_model(entry.string("modelId").as_deref()),
            _ => Ok(()),
        }
    }

    fn set_model(&mut self, model: Option<&str>) -> Result<()> {
        match model {
            Some(model) if !model.is_empty() && self.model.as_deref() != Some(model) => {
                self.model = Some(model.to_owned());
                self.sink.details(Details {
                    model: self.model.clone(),
                    ..Details::default()
                })
            }
            _ => Ok(()),
        }
    }

    fn emit_message(&mut self, entry: &Object<'_>, key: &str) -> Result<()> {
        let Some(body) = entry.object("message") else {
            return Ok(());
        };
        let Some(mut message) = message(&body) else {
            return Ok(());
        };
        let at = entry.time("timestamp").or_else(|| body.time("timestamp"));
        let model = body.string("model").map(Cow::into_owned);
        if message.role != Role::Assistant {
            // The usage of a tool itself, such as a sub-agent.
            let usage = message.usage.take();
            let event = MessageEvent::new(key, message).at(at);
            self.sink.event(Event::Message(event))?;
            return self.emit_usage(&body, key, at, usage, model);
        }
        self.set_model(model.as_deref())?;
        let usage = message.usage.as_ref();
        let response_id = usage.map(|_| self.response_id(&body, key));
        self.sink.event(Event::Message(MessageEvent {
            model,
            response_id,
            cost_usd: cost(&body),
            ..MessageEvent::new(key, message).at(at)
        }))
    }

    /// Sends usage that is not the model's.
    fn emit_usage(
        &mut self,
        body: &Object<'_>,
        key: &str,
        at: Option<Timestamp>,
        usage: Option<Usage>,
        model: Option<String>,
    ) -> Result<()> {
        let Some(usage) = usage else {
            return Ok(());
        };
        self.sink.event(Event::Usage(UsageEvent {
            key: format!("{key}/used"),
            at,
            response_id: self.response_id(body, key),
            model,
            usage,
            duration_ms: None,
            cost_usd: cost(body),
        }))
    }

    /// Returns the id of a response. A copy of the entry in another session has the same id,
    /// so that it counts once; two responses with the same id of the provider do not.
    fn response_id(&self, message: &Object<'_>, key: &str) -> String {
        let time = message.get("timestamp");
        match (message.string("responseId"), time) {
            (Some(id), Some(time)) if !id.is_empty() => format!("{id}@{time}"),
            (_, Some(time)) => {
                let model = message.get("model").unwrap_or_default();
                let usage = message.get("usage").unwrap_or_default();
                let all = format!("{time}\n{model}\n{usage}");
                format!("pi-{}", hash(all.as_bytes(), 24))
            }
            _ => format!("{}#{key}", self.session),
        }
    }

    /// Sends an entry that is not a message of the conversation but is in the model's context.
    fn emit_context(&mut self, entry: &Object<'_>, key: &str) -> Result<()> {
        let at = entry.time("timestamp");
        let message = match entry.text("summary") {
            Some(summary) => meta_text(summary),
            None => meta(Message::new(
                Role::User,
                content_blocks(entry.get("content")),
            )),
        };
        let event = MessageEvent::new(key, message).at(at);
        self.sink.event(Event::Message(event))?;
        let usage = entry.object("usage").and_then(|usage| self::usage(&usage));
        self.emit_usage(entry, key, at, usage, None)
    }
}

fn summary(entry: &Object<'_>, key: &str, keep: u64) -> Event {
    let summary = entry.text("summary").unwrap_or_default();
    Event::Summary(SummaryEvent {
        at: entry.time("timestamp"),
        keep,
        usage: entry.object("usage").and_then(|usage| self::usage(&usage)),
        ..SummaryEvent::new(key, summary.as_str())
    })
}

/// Returns a message of any role.
fn message(body: &Object<'_>) -> Option<Message> {
    let mut message = match body.string("role")?.as_ref() {
        "user" => {
            let mut blocks = content_blocks(body.get("content"));
            blocks.extend(attachments(body));
            Message::new(Role::User, blocks)
        }
        "assistant" => reply(body),
        "system" => system_prompt(body),
        "toolResult" => Message::tool_result(tool_result(body)),
        "bashExecution" => meta_text(command(body)),
        "custom" | "hookMessage" => meta(Message::new(
            Role::User,
            content_blocks(body.get("content")),
        )),
        "branchSummary" | "compactionSummary" => {
            meta_text(body.text("summary").unwrap_or_default())
        }
        _ => return None,
    };
    message.usage = body.object("usage").and_then(|counts| usage(&counts));
    Some(message)
}

/// Returns a system prompt: its content, and its sections in their order.
fn system_prompt(body: &Object<'_>) -> Message {
    let mut blocks = content_blocks(body.get("content"));
    blocks.retain(|block| !matches!(block, Block::Text(block) if block.text.is_empty()));
    if let Some(sections) = body.object("sections") {
        let sections = sections.fields().filter_map(|(_, json)| to_text(json));
        blocks.extend(sections.map(Block::text));
    }
    Message::new(Role::System, blocks)
}

fn reply(body: &Object<'_>) -> Message {
    let mut message = Message::new(Role::Assistant, content_blocks(body.get("content")));
    for (name, kept) in [("stopReason", "stop_reason"), ("errorMessage", "error")] {
        let is_usual = |value: &str| matches!(value, "null" | "\"stop\"" | "\"toolUse\"");
        if let Some(value) = body.get(name).filter(|value| !is_usual(value))
            && let Some(value) = to_json(value)
        {
            message.extra.push(kept, value);
        }
    }
    message
}

fn tool_result(body: &Object<'_>) -> ToolResult {
    let blocks = content_blocks(body.get("content"));
    ToolResult {
        is_error: body.is_true("isError"),
        ..blocks::tool_result(
            body.text("toolCallId"),
            body.text("toolName"),
            tool_output(&blocks),
        )
    }
}

/// Returns a command that the user ran, with its output.
fn command(body: &Object<'_>) -> String {
    let command = body.text("command").unwrap_or_default();
    let output = body.text("output").unwrap_or_default();
    match body.number("exitCode") {
        Some(code) if code != 0 => format!("$ {command}\n{output}\n(exit code {code})"),
        _ => format!("$ {command}\n{output}"),
    }
}

/// Returns the blocks of a content: a string, or a list of blocks.
fn content_blocks(content: Option<&str>) -> Vec<Block> {
    let Some(content) = content else {
        return Vec::new();
    };
    if is_string(content) {
        return to_text(content).map(Block::text).into_iter().collect();
    }
    let blocks = elements(content).unwrap_or_default().into_iter();
    blocks
        .map(|json| block(json).unwrap_or_else(|| unknown_block("pi", json)))
        .collect()
}

fn block(json: &str) -> Option<Block> {
    let object = Object::from_json(json)?;
    Some(match object.string("type")?.as_ref() {
        "text" => {
            let text = object.text("text")?;
            text_block(text, "signature", object.json("textSignature"))
        }
        "thinking" => thinking(object.text("thinking")?, object.text("thinkingSignature")),
        "toolCall" => Block::ToolUse(tool_call(&object)?),
        "image" => {
            let data = object.string_json("data")?;
            media_block(object.text("mimeType")?, data)
        }
        _ => return None,
    })
}

fn tool_call(object: &Object<'_>) -> Option<ToolUse> {
    let name = object.text("name")?;
    let mut call = blocks::tool_use(object.text("id"), Some(name), object.json("arguments"));
    if let Some(signature) = object.json("thoughtSignature") {
        call.extra.push("signature", signature);
    }
    Some(call)
}

/// Returns the files that version 1 kept beside a prompt.
fn attachments(body: &Object<'_>) -> Vec<Block> {
    let attached = body.list("attachments").unwrap_or_default();
    let read = |json: &str| {
        let object = Object::from_json(json)?;
        let data = object.string_json("content")?;
        Some(media_block(object.text("mimeType")?, data))
    };
    let block = |json: &str| read(json).unwrap_or_else(|| unknown_block("pi_attachment", json));
    attached.into_iter().map(block).collect()
}

/// Returns the usage of a call: its input does not include what came from the cache.
fn usage(counts: &Object<'_>) -> Option<Usage> {
    let count = |name: &str| counts.number(name);
    let any = ["input", "output", "cacheRead", "cacheWrite"];
    any.iter().any(|name| count(name).is_some()).then(|| {
        let mut usage = Usage::new(count("input").unwrap_or(0), count("output").unwrap_or(0))
            .cache_read(count("cacheRead").unwrap_or(0))
            .cache_creation(count("cacheWrite").unwrap_or(0));
        usage.reasoning_output_tokens = count("reasoning");
        usage
    })
}

/// Returns the cost of a call, as reported by the agent.
fn cost(message: &Object<'_>) -> Option<f64> {
    message.object("usage")?.object("cost")?.float("total")
}

#[cfg(test)]
#[path = "pi_tests.rs"]
mod tests;
