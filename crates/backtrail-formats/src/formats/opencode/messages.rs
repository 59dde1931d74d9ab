//! Makes events of opencode's messages and their parts.
//!
//! Messages and parts change in place while the agent works. An event is only sent when its
//! content is final, and nothing is sent after something that is not: so events are only ever
//! appended, unless the agent itself goes back.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use backtrail::{Block, Fields, Message, Role, Timestamp, ToolResult, Usage};

use super::super::blocks::{
    self, data_url_block, mark_meta, media_kind, meta, string_json, thinking, tool_output,
    unknown_block,
};
use super::super::keys::{UniqueKeys, hash, hash_name, valid_key};
use crate::error::Result;
use crate::event::{
    Details, Event, EventSink, MessageEvent, ReadReport, STARTED_SESSION, SummaryEvent, UsageEvent,
};
use crate::json::{Object, is_string, to_compact_json};

/// A message with its parts, as they are stored.
#[derive(Debug)]
pub(super) struct Stored<'a> {
    pub(super) id: String,
    /// Its JSON value.
    pub(super) data: Cow<'a, str>,
    pub(super) parts: Vec<StoredPart<'a>>,
}

/// A part of a message, as it is stored.
#[derive(Debug)]
pub(super) struct StoredPart<'a> {
    pub(super) id: String,
    /// Its JSON value.
    pub(super) data: Cow<'a, str>,
    /// When it was last written, in milliseconds, if the store says so.
    pub(super) written: Option<u64>,
    pub(super) place: Place,
}

/// Where a message or a part is in a file: its line, from 1, and the bytes.
pub(super) type Place = (u64, Range<u64>);

/// What is known of a message that the agent may still be writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// Nothing of it changes any more.
    Over,
    /// It may change: what is not final is not sent, nor anything after it.
    Open,
    /// It may change, but this copy of it does not: all of it is sent, under keys that change
    /// with the content.
    Snapshot,
}

/// Why a message or a part cannot be used.
#[derive(Debug)]
pub(super) enum Unusable {
    Unknown(String),
    Damaged(&'static str),
}

impl Unusable {
    /// Counts it.
    pub(super) fn count(&self, (line, range): &Place, report: &mut ReadReport) {
        match self {
            Self::Unknown(kind) => report.add_unknown(kind),
            Self::Damaged(reason) => report.add_damage(*line, range, *reason),
        }
    }
}

/// Takes the JSON value of a message apart.
pub(super) fn read_message(data: &str) -> Result<Object<'_>, Unusable> {
    let data = Object::from_json(data).ok_or(Unusable::Damaged("message without data"))?;
    match data.string("role").as_deref() {
        Some("user" | "assistant") => Ok(data),
        Some(role) => Err(Unusable::Unknown(format!("message: {role}"))),
        None => Err(Unusable::Damaged("message without a role")),
    }
}

/// Sends the events of messages.
pub(super) struct OpenCodeEmitter<'s> {
    sink: &'s mut dyn EventSink,
    /// What the ids of responses begin with.
    scope: &'s str,
    keys: UniqueKeys,
    /// The model of the last answer.
    model: Option<String>,
    directory: bool,
    /// How many messages were sent.
    sent: u64,
    /// How many messages were sent before each of the agent's, by the hash of its id.
    sent_before: HashMap<u64, u64>,
    /// The first message that the compaction under way keeps.
    kept_from: Option<u64>,
    /// Whether something was not final: then nothing more is sent.
    pub(super) is_stopped: bool,
}

/// A message that is being sent.
struct Current<'m> {
    data: &'m Object<'m>,
    at: Option<Timestamp>,
    model: Option<String>,
    response_id: String,
    progress: Progress,
    /// What is added to the keys of a snapshot.
    suffix: String,
}

/// The result of a call, which follows all calls of the same step.
struct Answer {
    key: String,
    at: Option<Timestamp>,
    /// `None` while the call is running.
    result: Option<ToolResult>,
}

/// A part of a message.
pub(super) struct Part<'m> {
    pub(super) id: &'m str,
    pub(super) written: Option<u64>,
    kind: Cow<'m, str>,
    json: &'m str,
    data: Object<'m>,
    /// What became of a call.
    state: Object<'m>,
}

impl<'s> OpenCodeEmitter<'s> {
    pub(super) fn new(sink: &'s mut dyn EventSink, details: &Details, scope: &'s str) -> Self {
        Self {
            sink,
            scope,
            keys: UniqueKeys::default(),
            model: details.model.clone(),
            directory: details.directory.is_some(),
            sent: 0,
            sent_before: HashMap::new(),
            kept_from: None,
            is_stopped: false,
        }
    }

    /// Sends a message.
    pub(super) fn add(
        &mut self,
        message: &Stored<'_>,
        data: &Object<'_>,
        parts: &[Part<'_>],
        progress: Progress,
    ) -> Result<()> {
        if self.is_stopped {
            return Ok(());
        }
        self.sent_before.insert(hash_name(&message.id), self.sent);
        match data.string("role").as_deref() {
            Some("user") => self.add_user(&message.id, data, parts, progress),
            Some("assistant") => self.add_assistant(message, data, parts, progress),
            _ => Ok(()),
        }
    }

    /// Sends what the user wrote as one message, and what the agent added to it one by one.
    fn add_user(
        &mut self,
        id: &str,
        data: &Object<'_>,
        parts: &[Part<'_>],
        progress: Progress,
    ) -> Result<()> {
        if progress == Progress::Open {
            self.is_stopped = true;
            return Ok(());
        }
        let compaction = parts.iter().find(|part| part.kind == "compaction");
        if let Some(compaction) = compaction {
            let kept = compaction.data.string("tail_start_id");
            self.kept_from = kept.map(|id| hash_name(&id));
        }
        let at = created(data);
        let (added, own): (Vec<_>, Vec<_>) = parts.iter().partition(|part| part.is_added());
        let blocks: Vec<Block> = own.into_iter().filter_map(prompt_block).collect();
        if !blocks.is_empty() {
            let message = Message::new(Role::User, blocks);
            self.send(MessageEvent::new(valid_key(id), message).at(at))?;
        }
        for part in added {
            let blocks = prompt_block(part);
            let message = meta(Message::new(Role::User, blocks));
            self.send(MessageEvent::new(valid_key(part.id), message).at(at))?;
        }
        Ok(())
    }

    fn add_assistant(
        &mut self,
        message: &Stored<'_>,
        data: &Object<'_>,
        parts: &[Part<'_>],
        progress: Progress,
    ) -> Result<()> {
        let current = Current::new(message, data, parts, self.scope, progress);
        self.describe(&current)?;
        let is_summary = data.is_true("summary") && !data.has("error");
        if is_summary && progress == Progress::Over {
            self.send_summary(&message.id, &current, parts)?;
        } else if is_summary && progress == Progress::Open {
            self.is_stopped = true;
        } else {
            self.add_parts(&current, parts)?;
        }
        if !self.is_stopped && progress == Progress::Open {
            self.is_stopped = true;
        }
        if self.is_stopped {
            return Ok(());
        }
        self.send_error(&message.id, &current)?;
        self.send_usage(&message.id, &current, parts)
    }

    /// Says what an answer shows of its session.
    fn describe(&mut self, current: &Current<'_>) -> Result<()> {
        let model = current.model.clone();
        let is_new = model.is_some() && model != self.model;
        let path = current.data.object("path");
        let directory = path.filter(|_| !self.directory);
        let directory = directory.and_then(|path| path.path("cwd"));
        if !is_new && directory.is_none() {
            return Ok(());
        }
        self.directory |= directory.is_some();
        self.model = model.clone().or(self.model.take());
        self.sink.details(Details {
            model,
            directory,
            ..Details::default()
        })
    }

    /// Sends the parts of an answer in order, but results after all calls of their step.
    fn add_parts(&mut self, current: &Current<'_>, parts: &[Part<'_>]) -> Result<()> {
        let is_open = current.progress == Progress::Open;
        let mut answers = Vec::new();
        for part in parts {
            match part.kind.as_ref() {
                "step-start" | "step-finish" => self.send_answers(&mut answers, is_open)?,
                "tool" if is_open && part.status() == Status::Pending => self.is_stopped = true,
                "tool" => {
                    self.send_part(current, part, part.call())?;
                    answers.push(part.answer(&current.suffix));
                }
                "text" | "reasoning" if is_open && part.end().is_none() => self.is_stopped = true,
                "text" | "reasoning" | "file" => self.send_part(current, part, part.block())?,
                _ => {}
            }
            if self.is_stopped {
                return Ok(());
            }
        }
        match is_open {
            // There may be another call.
            true => self.is_stopped = true,
            false => self.send_answers(&mut answers, false)?,
        }
        Ok(())
    }

    fn send_part(
        &mut self,
        current: &Current<'_>,
        part: &Part<'_>,
        block: Option<Block>,
    ) -> Result<()> {
        let Some(block) = block else {
            return Ok(());
        };
        let mut message = Message::assistant([block]);
        if part.is_added() {
            mark_meta(&mut message);
        }
        let key = format!("{}{}", valid_key(part.id), current.suffix);
        self.send(MessageEvent {
            model: current.model.clone(),
            response_id: Some(current.response_id.clone()),
            ..MessageEvent::new(key, message).at(part.start().or(current.at))
        })
    }

    /// Sends the results of a step. One that is not there yet is waited for.
    fn send_answers(&mut self, answers: &mut Vec<Answer>, is_open: bool) -> Result<()> {
        for answer in answers.drain(..) {
            match answer.result {
                Some(result) => {
                    let message = Message::tool_result(result);
                    self.send(MessageEvent::new(answer.key, message).at(answer.at))?;
                }
                None if is_open => {
                    self.is_stopped = true;
                    return Ok(());
                }
                // It was interrupted.
                None => {}
            }
        }
        Ok(())
    }

    fn send_summary(&mut self, id: &str, current: &Current<'_>, parts: &[Part<'_>]) -> Result<()> {
        let texts = parts.iter().filter(|part| part.kind == "text");
        let texts = texts.filter_map(|part| part.data.trimmed("text"));
        let summary = texts.collect::<Vec<_>>().join("\n\n");
        let first = self.kept_from.take();
        let kept = first.and_then(|first| self.sent_before.get(&first));
        let event = SummaryEvent {
            at: completed(current.data).or(current.at),
            keep: kept.map_or(0, |before| self.sent - before),
            model: current.model.clone(),
            ..SummaryEvent::new(self.keys.unique(valid_key(id)), summary)
        };
        self.sink.event(Event::Summary(event))
    }

    /// Sends why an answer was not finished.
    fn send_error(&mut self, id: &str, current: &Current<'_>) -> Result<()> {
        let error = current.data.get("error").filter(|error| *error != "null");
        let Some(error) = error.and_then(to_compact_json) else {
            return Ok(());
        };
        let mut message = Message::assistant([]);
        message.extra.push("error", error);
        let key = format!("{}/error{}", valid_key(id), current.suffix);
        self.send(MessageEvent {
            model: current.model.clone(),
            response_id: Some(current.response_id.clone()),
            ..MessageEvent::new(key, message).at(completed(current.data).or(current.at))
        })
    }

    fn send_usage(&mut self, id: &str, current: &Current<'_>, parts: &[Part<'_>]) -> Result<()> {
        let usage = usage(current.data, parts);
        let cost_usd = cost(current.data, parts);
        if usage == Usage::default() && cost_usd.unwrap_or(0.0) == 0.0 {
            return Ok(());
        }
        let key = format!("{}/usage{}", valid_key(id), current.suffix);
        let event = UsageEvent {
            key: self.keys.unique(key),
            at: completed(current.data).or(current.at),
            response_id: current.response_id.clone(),
            model: current.model.clone(),
            usage,
            duration_ms: None,
            cost_usd,
        };
        self.sink.event(Event::Usage(event))
    }

    fn send(&mut self, mut event: MessageEvent) -> Result<()> {
        event.key = self.keys.unique(event.key);
        self.sent += 1;
        self.sink.event(Event::Message(event))
    }
}

impl<'m> Current<'m> {
    fn new(
        message: &Stored<'_>,
        data: &'m Object<'m>,
        parts: &[Part<'_>],
        scope: &str,
        progress: Progress,
    ) -> Self {
        let suffix = match progress {
            Progress::Snapshot => {
                let parts = parts.iter().map(|part| part.json);
                let all: String = [message.data.as_ref()].into_iter().chain(parts).collect();
                format!("~{}", hash(all.as_bytes(), 8))
            }
            _ => String::new(),
        };
        let model = data.trimmed("modelID");
        let named = || data.object("model")?.trimmed("modelID");
        Self {
            data,
            at: created(data),
            model: model.or_else(named),
            response_id: response_id(&message.id, data, scope),
            progress,
            suffix,
        }
    }
}

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    /// Its input is still being written.
    Pending,
    Running,
    Completed,
    Failed,
}

impl<'m> Part<'m> {
    /// Takes a part apart.
    pub(super) fn read(stored: &'m StoredPart<'_>) -> Result<Self, Unusable> {
        let data = Object::from_json(&stored.data).ok_or(Unusable::Damaged("part without data"))?;
        let kind = data.string("type");
        let kind = kind.ok_or(Unusable::Damaged("part without a type"))?;
        let state = data.object("state");
        match kind.as_ref() {
            "text" | "reasoning" if !data.get("text").is_some_and(is_string) => {
                return Err(Unusable::Damaged("part without a text"));
            }
            "tool" if state.is_none() => return Err(Unusable::Damaged("call without a state")),
            "text" | "reasoning" | "tool" | "file" | "agent" | "subtask" | "step-start"
            | "step-finish" | "snapshot" | "patch" | "retry" | "compaction" => {}
            other => return Err(Unusable::Unknown(format!("part: {other}"))),
        }
        Ok(Self {
            id: &stored.id,
            written: stored.written,
            kind,
            json: &stored.data,
            data,
            state: state.unwrap_or_default(),
        })
    }

    /// Returns whether the agent added it in the user's name, or it is not for the model.
    fn is_added(&self) -> bool {
        self.data.is_true("synthetic") || self.data.is_true("ignored")
    }

    fn time(&self) -> Object<'m> {
        let time = self.data.object("time");
        time.or_else(|| self.state.object("time"))
            .unwrap_or_default()
    }

    fn start(&self) -> Option<Timestamp> {
        self.time().time("start")
    }

    fn end(&self) -> Option<Timestamp> {
        self.time().time("end")
    }

    fn status(&self) -> Status {
        let state = &self.state;
        match state.string("status").as_deref() {
            Some("pending") => Status::Pending,
            Some("error") => Status::Failed,
            Some("completed") => Status::Completed,
            // Versions that name it differently.
            _ if state.has("error") => Status::Failed,
            _ if state.has("output") => Status::Completed,
            _ => Status::Running,
        }
    }

    fn call(&self) -> Option<Block> {
        let (id, name) = (self.data.text("callID"), self.data.text("tool"));
        let input = self.state.get("input").and_then(to_compact_json);
        let mut call = blocks::tool_use(id, name, input);
        call.extra = self.started_session();
        Some(Block::ToolUse(call))
    }

    /// Returns the session that a call started, as a field of the call and of its result.
    fn started_session(&self) -> Fields {
        let mut fields = Fields::default();
        let metadata = self.state.object("metadata").unwrap_or_default();
        if let Some(session) = metadata.text("sessionId") {
            fields.push(STARTED_SESSION, string_json(&session));
        }
        fields
    }

    fn answer(&self, suffix: &str) -> Answer {
        let result = match self.status() {
            Status::Pending | Status::Running => None,
            Status::Completed => Some(self.result(self.output(), self.has_failed())),
            Status::Failed => {
                let error = self.state.text("error").unwrap_or_default();
                Some(self.result(vec![Block::text(error)], true))
            }
        };
        Answer {
            key: format!("{}/result{suffix}", valid_key(self.id)),
            at: self.end(),
            result,
        }
    }

    fn result(&self, output: Vec<Block>, is_error: bool) -> ToolResult {
        let (id, name) = (self.data.text("callID"), self.data.text("tool"));
        ToolResult {
            is_error,
            extra: self.started_session(),
            ..blocks::tool_result(id, name, tool_output(&output))
        }
    }

    /// Returns what a call gave back: its output, and files.
    fn output(&self) -> Vec<Block> {
        let text = self.state.text("output").filter(|text| !text.is_empty());
        let text = text.map(Block::text);
        let files = self.state.list("attachments").unwrap_or_default();
        let files = files.into_iter().map(file_block);
        text.into_iter().chain(files).collect()
    }

    /// Returns whether the command of a call that was completed failed.
    fn has_failed(&self) -> bool {
        let exit = self.state.object("metadata");
        exit.and_then(|metadata| metadata.float("exit"))
            .is_some_and(|exit| exit != 0.0)
    }

    /// Returns a part of an answer as a block. `None` if there is nothing in it.
    fn block(&self) -> Option<Block> {
        let text = || self.data.text("text");
        match self.kind.as_ref() {
            "text" => text()
                .filter(|text| !text.trim().is_empty())
                .map(Block::text),
            "reasoning" => {
                let signature = self.signature();
                let text = text()?;
                let is_empty = text.trim().is_empty() && signature.is_none();
                (!is_empty).then(|| thinking(text, signature))
            }
            "file" => Some(file_block_of(&self.data)),
            _ => None,
        }
    }

    /// Returns the provider's signature of a thought.
    fn signature(&self) -> Option<backtrail::Text> {
        let metadata = self.data.object("metadata")?;
        let of_provider = metadata.fields().filter_map(|(_, json)| {
            let provider = Object::from_json(json)?;
            provider.text("signature")
        });
        of_provider
            .into_iter()
            .find(|signature| !signature.is_empty())
    }
}

/// Returns a part of a prompt as a block.
fn prompt_block(part: &Part<'_>) -> Option<Block> {
    match part.kind.as_ref() {
        "subtask" => part.data.text("prompt").map(Block::text),
        _ => part.block(),
    }
}

fn file_block(json: &str) -> Block {
    match Object::from_json(json) {
        Some(file) => file_block_of(&file),
        None => unknown_block("file", json),
    }
}

/// Returns a file as a block. Of one that is elsewhere, only its address is known.
fn file_block_of(file: &Object<'_>) -> Block {
    let url = file.string("url").unwrap_or_default();
    let kind = media_kind(&file.string("mime").unwrap_or_default());
    data_url_block(kind, &url).unwrap_or_else(|| address_block(file))
}

/// Returns the address of a file as a block.
fn address_block(file: &Object<'_>) -> Block {
    let fields = ["filename", "mime", "url"];
    let fields = fields.into_iter().filter_map(|name| {
        let value = string_json(&file.text(name)?);
        Some(format!(",\"{name}\":{}", value.as_str()))
    });
    let fields: String = fields.collect();
    unknown_block("file", &format!("{{\"type\":\"file\"{fields}}}"))
}

fn created(data: &Object<'_>) -> Option<Timestamp> {
    data.object("time")?.time("created")
}

fn completed(data: &Object<'_>) -> Option<Timestamp> {
    data.object("time")?.time("completed")
}

/// Returns whether an answer is complete.
pub(super) fn is_completed(data: &Object<'_>) -> bool {
    completed(data).is_some()
}

/// Returns the id of a response. A copy of the message in another session has another id but
/// the same time and model, and counts once. Nothing else matters: parts and tokens may change.
fn response_id(id: &str, data: &Object<'_>, scope: &str) -> String {
    let Some(at) = created(data) else {
        return format!("opencode-{}", valid_key(id));
    };
    let model = data.get("modelID").unwrap_or_default();
    let all = format!("{scope}\n{}\n{model}", at.as_millis());
    format!("opencode-{}", hash(all.as_bytes(), 24))
}

/// Returns the usage of an answer: the sum of its steps, of which it only repeats the last.
fn usage(data: &Object<'_>, parts: &[Part<'_>]) -> Usage {
    let steps = parts.iter().filter(|part| part.kind == "step-finish");
    let mut steps = steps.filter_map(|part| part.data.object("tokens"));
    let Some(first) = steps.next() else {
        let tokens = data.object("tokens");
        return tokens
            .map(|tokens| tokens_used(&tokens))
            .unwrap_or_default();
    };
    let mut usage = tokens_used(&first);
    steps.for_each(|step| usage.add(&tokens_used(&step)));
    usage
}

/// Returns the tokens of one step. Input does not include the cache, nor output reasoning.
fn tokens_used(tokens: &Object<'_>) -> Usage {
    let count = |name: &str| tokens.number(name).unwrap_or(0);
    let cache = tokens.object("cache").unwrap_or_default();
    let cached = |name: &str| cache.number(name).unwrap_or(0);
    let reasoning = count("reasoning");
    let output = count("output").saturating_add(reasoning);
    let usage = Usage::new(count("input"), output)
        .cache_read(cached("read"))
        .cache_creation(cached("write"));
    match reasoning {
        0 => usage,
        reasoning => usage.reasoning(reasoning),
    }
}

/// Returns the cost of an answer.
fn cost(data: &Object<'_>, parts: &[Part<'_>]) -> Option<f64> {
    let steps = parts.iter().filter(|part| part.kind == "step-finish");
    let steps = steps.filter_map(|part| part.data.float("cost"));
    data.float("cost").or_else(|| steps.reduce(|a, b| a + b))
}
