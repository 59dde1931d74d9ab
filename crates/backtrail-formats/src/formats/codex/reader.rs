//! Turns the records of a rollout into events.

use std::borrow::Cow;
use std::path::Path;

use backtrail::{Block, Message, Role, Text, Timestamp};

use super::failures;
use super::items::{self, DUPLICATE_ITEMS, IGNORED_EVENTS, Item};
use super::lookahead::{Duplicate, Duplicates};
use super::names;
use super::state::{CodexState, Predecessor, ordinal_key};
use super::usage::Tokens;
use crate::error::Result;
use crate::event::{Details, Event, EventSink, MessageEvent, ReadReport, SummaryEvent, UsageEvent};
use crate::formats::blocks::mark_meta;
use crate::json::Object;

/// Replaces a summary that only the provider can read.
const UNREADABLE: &str = "The conversation so far was summarised. The summary is encrypted.";

/// The longest name of a model.
const MAX_MODEL: usize = 256;

/// What is known of the items of a kind of message that is shown.
type ShownKind = fn(&mut Duplicates) -> &mut Duplicate;

const PROMPTS: ShownKind = |twice| &mut twice.prompts;
const REPLIES: ShownKind = |twice| &mut twice.replies;
const THOUGHTS: ShownKind = |twice| &mut twice.thoughts;

/// Turns records into events.
pub(super) struct Reader<'a> {
    pub(super) state: CodexState,
    pub(super) report: ReadReport,
    sink: &'a mut dyn EventSink,
    /// The title in the index.
    title: Option<String>,
}

/// A record.
struct Record<'r> {
    /// Where it starts in the file.
    at: u64,
    ordinal: Option<u64>,
    time: Option<Timestamp>,
    /// Its content, byte for byte, which identifies it.
    content: &'r str,
    /// Whether it is copied from another rollout.
    copied: bool,
}

impl<'a> Reader<'a> {
    /// Creates one, and sends the title in the index and other details.
    pub(super) fn new(
        state: CodexState,
        path: &Path,
        details: Details,
        report: ReadReport,
        sink: &'a mut dyn EventSink,
    ) -> Result<Self> {
        let title = names::title(path, &state.thread);
        let mut reader = Self {
            state,
            report,
            sink,
            title: title.clone(),
        };
        reader.send_details(Details { title, ..details })?;
        Ok(reader)
    }

    /// Counts a record of an unknown type.
    pub(super) fn unknown(&mut self, kind: &str) -> Result<()> {
        self.report.add_unknown(kind);
        Ok(())
    }

    /// Sends the events of a record that starts at a byte of the file.
    pub(super) fn record(&mut self, object: &Object<'_>, at: u64) -> Result<()> {
        self.state.records += 1;
        let Some(payload) = object.get("payload") else {
            return self.bare(object, at);
        };
        let kind = object.string("type").unwrap_or_default();
        let inner = match kind.as_ref() {
            "world_state"
            | "inter_agent_communication_metadata"
            | "security_risk_score"
            | "retained_context"
                if self.state.inherited.is_over() =>
            {
                return Ok(());
            }
            // Most events contain nothing new and need not be read.
            "event_msg" if self.is_skipped(payload) => return Ok(()),
            _ => Object::from_json(payload).unwrap_or_default(),
        };
        let ordinal = object.number("ordinal");
        let time = object.time("timestamp");
        let record = Record {
            at,
            ordinal,
            time,
            content: payload,
            copied: self.state.inherited.covers(ordinal, time, &inner),
        };
        match kind.as_ref() {
            "response_item" => self.item(&record, &inner, "response_item/"),
            "event_msg" => self.event(&record, &inner),
            "turn_context" => self.turn_context(&inner),
            "compacted" => self.compacted(&record, &inner),
            "token_usage_record" => self.usage_record(&record, &inner),
            "inter_agent_communication" => self.message(&record, items::between_agents(&inner)),
            "realtime_item" => self.realtime_item(&record, &inner),
            // Only the first `session_meta` counts; later ones are copied from a parent.
            "session_meta"
            | "world_state"
            | "inter_agent_communication_metadata"
            | "security_risk_score"
            | "retained_context" => Ok(()),
            "" => self.unknown("(no type)"),
            kind => self.unknown(kind),
        }
    }

    /// Sends a record without an envelope, as in the oldest rollouts.
    fn bare(&mut self, object: &Object<'_>, at: u64) -> Result<()> {
        if object.has("record_type")
            || (!object.has("type") && object.has("timestamp") && object.has("id"))
        {
            return Ok(());
        }
        let content: String = object.fields().map(|(_, json)| json).collect();
        let time = object
            .time("timestamp")
            .or_else(|| object.time("created_at"));
        let record = Record {
            at,
            ordinal: None,
            time,
            content: &content,
            copied: false,
        };
        self.item(&record, object, "")
    }

    /// Returns whether an event contains nothing that is needed.
    fn is_skipped(&self, payload: &str) -> bool {
        let state = &self.state;
        let may_count = state.counting.follows && !state.counting.active;
        if !state.inherited.is_over() || may_count {
            return false;
        }
        let Some(kind) = items::event_type(payload) else {
            return false;
        };
        match kind {
            "user_message" => state.duplicates.prompts.items,
            "agent_message" => state.duplicates.replies.items,
            "agent_reasoning" | "agent_reasoning_raw_content" => state.duplicates.thoughts.items,
            kind => IGNORED_EVENTS.contains(&kind),
        }
    }

    /// Remembers a call that failed.
    fn ended(&mut self, ended: &Object<'_>) {
        if let Some(id) = failures::failed_call(ended) {
            self.state.add_failed(id);
        }
    }

    /// Sends an item of the conversation.
    fn item(&mut self, record: &Record<'_>, payload: &Object<'_>, prefix: &str) -> Result<()> {
        let kind = match payload.string("type") {
            Some(kind) => kind.into_owned(),
            None if payload.has("role") => "message".to_owned(),
            None => "(no type)".to_owned(),
        };
        match items::read(&kind, payload, &|| self.key_of(record)) {
            Item::Message(mut message) => {
                self.find_directory(&message)?;
                self.name_tools(&mut message);
                self.message(record, message)
            }
            Item::Ignored => Ok(()),
            Item::Unknown => self.unknown(&format!("{prefix}{kind}")),
        }
    }

    /// Remembers the tools of calls, names them in their results, and marks those that failed.
    fn name_tools(&mut self, message: &mut Message) {
        for block in &mut message.blocks {
            match block {
                Block::ToolUse(call) => self.state.calls.push(&call.id, &call.name),
                Block::ToolResult(result) => {
                    result.is_error |= self.state.remove_failed(&result.tool_use_id);
                    let tool = self.state.calls.remove(&result.tool_use_id);
                    let tool = tool.map(Text::from);
                    result.tool_name = result.tool_name.take().or(tool);
                }
                _ => {}
            }
        }
    }

    /// Sends an event for the screen.
    fn event(&mut self, record: &Record<'_>, payload: &Object<'_>) -> Result<()> {
        let kind = payload.string("type").unwrap_or_default();
        match kind.as_ref() {
            "user_message" => match payload.text("message") {
                Some(_) => self.shown(record, PROMPTS, items::event_prompt(payload)),
                None => self.unknown("event_msg/user_message"),
            },
            "agent_message" => match payload.text("message") {
                Some(text) => self.shown(record, REPLIES, Message::assistant([Block::text(text)])),
                None => self.unknown("event_msg/agent_message"),
            },
            "agent_reasoning" | "agent_reasoning_raw_content" => match payload.text("text") {
                Some(text) => {
                    let thought = Message::assistant([Block::thinking(text)]);
                    self.shown(record, THOUGHTS, thought)
                }
                None => self.unknown(&format!("event_msg/{kind}")),
            },
            "item_completed" => self.completed(record, payload),
            "token_count" => self.token_count(record, payload),
            "thread_rolled_back" => self.roll_back(payload.number("num_turns").unwrap_or(0)),
            "thread_name_updated" if !record.copied => self.renamed(payload),
            "thread_name_updated" => Ok(()),
            kind if failures::is_end(kind) => {
                self.ended(payload);
                Ok(())
            }
            kind if IGNORED_EVENTS.contains(&kind) => Ok(()),
            kind => self.unknown(&format!("event_msg/{kind}")),
        }
    }

    /// Sends a completed item, if it is nowhere else.
    fn completed(&mut self, record: &Record<'_>, payload: &Object<'_>) -> Result<()> {
        let Some(item) = payload.object("item") else {
            return self.unknown("event_msg/item_completed");
        };
        let kind = item.string("type").unwrap_or_default();
        let content = || {
            item.get("content")
                .map_or_else(Vec::new, items::content_blocks)
        };
        match kind.as_ref() {
            "UserMessage" => self.shown(record, PROMPTS, Message::new(Role::User, content())),
            "AgentMessage" => self.shown(record, REPLIES, Message::assistant(content())),
            "Reasoning" => {
                let mut texts = items::texts(&item, "summary_text");
                texts.extend(items::texts(&item, "raw_content"));
                let thought = Message::assistant([Block::thinking(items::join(texts))]);
                self.shown(record, THOUGHTS, thought)
            }
            "Plan" => match item.text("text") {
                Some(text) => self.message(record, Message::assistant([Block::text(text)])),
                None => Ok(()),
            },
            kind if DUPLICATE_ITEMS.contains(&kind) => {
                self.ended(&item);
                Ok(())
            }
            kind => self.unknown(&format!("item_completed/{kind}")),
        }
    }

    /// Sends a message that was spoken.
    fn realtime_item(&mut self, record: &Record<'_>, payload: &Object<'_>) -> Result<()> {
        let kind = payload.string("type").unwrap_or_default();
        match kind.as_ref() {
            "transcript_segment" => match items::spoken(payload) {
                Some(message) => self.message(record, message),
                None => Ok(()),
            },
            "realtime_session_started" | "realtime_session_closed" | "bem_item_promoted" => Ok(()),
            kind => self.unknown(&format!("realtime_item/{kind}")),
        }
    }

    /// Sends a message that was shown, if there is no item for it.
    fn shown(&mut self, record: &Record<'_>, kind: ShownKind, message: Message) -> Result<()> {
        self.state.counting.active |= !record.copied && message.role == Role::Assistant;
        let twice = kind(&mut self.state.duplicates);
        if twice.items {
            return Ok(());
        }
        twice.events = true;
        self.message(record, message)
    }

    fn message(&mut self, record: &Record<'_>, mut message: Message) -> Result<()> {
        // A prompt of its parent is not a prompt of a sub-agent.
        let is_sub_agent = matches!(self.state.from, Predecessor::Spawned(_));
        if record.copied && is_sub_agent && message.is_prompt() {
            mark_meta(&mut message);
        }
        if message.is_prompt() {
            self.state.prompts.push(self.state.last_key.as_deref());
        }
        let mut event = MessageEvent::new(self.next_key(record), message);
        event.at = record.time;
        if event.message.role == Role::Assistant {
            event.model.clone_from(&self.state.model);
            if !record.copied {
                self.state.counting.active = true;
                event.response_id = Some(self.response_id(self.state.counting.calls + 1));
            }
        }
        self.sink.event(Event::Message(event))
    }

    fn turn_context(&mut self, payload: &Object<'_>) -> Result<()> {
        let mut details = Details::default();
        if let Some(model) = payload.string("model").filter(|model| is_model(model))
            && self.state.model.as_deref() != Some(model.as_ref())
        {
            self.state.model = Some(model.clone().into_owned());
            details.model = self.state.model.clone();
        }
        if !self.state.has_directory {
            details.directory = payload.path("cwd");
            self.state.has_directory = details.directory.is_some();
        }
        self.send_details(details)
    }

    fn find_directory(&mut self, message: &Message) -> Result<()> {
        if self.state.has_directory {
            return Ok(());
        }
        let Some(directory) = items::directory(message) else {
            return Ok(());
        };
        self.state.has_directory = true;
        self.send_details(Details {
            directory: Some(directory.into()),
            ..Details::default()
        })
    }

    fn renamed(&mut self, payload: &Object<'_>) -> Result<()> {
        // The index is more reliable, and copied names belong to the parent.
        let is_own = payload
            .string("thread_id")
            .is_none_or(|id| *id == *self.state.thread);
        if self.title.is_none() && is_own {
            self.send_details(Details {
                title: payload.trimmed("thread_name"),
                ..Details::default()
            })?;
        }
        Ok(())
    }

    /// Rolls back the last turns.
    fn roll_back(&mut self, turns: u64) -> Result<()> {
        if let Some(key) = self.state.prompts.roll_back(turns) {
            self.sink.rewind_to(key.as_deref())?;
            self.state.last_key = key;
        }
        Ok(())
    }

    fn token_count(&mut self, record: &Record<'_>, payload: &Object<'_>) -> Result<()> {
        let Some(info) = payload.object("info") else {
            return Ok(());
        };
        if record.copied {
            self.state.counting.skip(&info);
            return Ok(());
        }
        let Some(tokens) = self.state.counting.count(&info) else {
            return Ok(());
        };
        let model = payload.string("model").or_else(|| info.string("model"));
        let model = model.filter(|model| is_model(model)).map(Cow::into_owned);
        self.usage(record, tokens, model)
    }

    fn usage_record(&mut self, record: &Record<'_>, payload: &Object<'_>) -> Result<()> {
        let is_own = payload
            .string("thread_id")
            .is_none_or(|id| *id == *self.state.thread);
        if record.copied || !is_own {
            return Ok(());
        }
        match self.state.counting.record(payload) {
            Some(tokens) => self.usage(record, tokens, None),
            None => Ok(()),
        }
    }

    /// Sends the usage of a call.
    fn usage(&mut self, record: &Record<'_>, tokens: Tokens, model: Option<String>) -> Result<()> {
        self.state.counting.calls += 1;
        let usage = UsageEvent {
            key: self.next_key(record),
            at: record.time,
            response_id: self.response_id(self.state.counting.calls),
            model: model.or_else(|| self.state.model.clone()),
            usage: tokens.usage(),
            duration_ms: None,
            cost_usd: None,
        };
        self.sink.event(Event::Usage(usage))
    }

    fn compacted(&mut self, record: &Record<'_>, payload: &Object<'_>) -> Result<()> {
        let id = payload
            .string("compaction_response_id")
            .filter(|_| !record.copied);
        let tokens = id.and_then(|id| self.state.counting.compaction(&id));
        let summary = payload.trimmed("message");
        let summary = summary.or_else(|| readable_summary(payload));
        let summary = summary.unwrap_or_else(|| UNREADABLE.to_owned());
        let event = SummaryEvent {
            at: record.time,
            model: self.state.model.clone(),
            usage: tokens.map(Tokens::usage),
            ..SummaryEvent::new(self.next_key(record), summary)
        };
        self.sink.event(Event::Summary(event))
    }

    fn send_details(&mut self, details: Details) -> Result<()> {
        match details == Details::default() {
            true => Ok(()),
            false => self.sink.details(details),
        }
    }

    fn response_id(&self, call: u64) -> String {
        format!("{}#{call}", self.state.session)
    }

    /// Returns a record's key: its number, or its position with a hash of its content.
    fn key_of(&self, record: &Record<'_>) -> String {
        let is_next = |ordinal: &u64| self.state.last_ordinal.is_none_or(|last| *ordinal > last);
        let ordinal = record.ordinal.filter(is_next);
        ordinal.and_then(ordinal_key).unwrap_or_else(|| {
            let hash = blake3::hash(record.content.as_bytes());
            format!("b{:012}-{}", record.at, &hash.to_hex()[..8])
        })
    }

    /// Returns the key of a record that is sent now.
    fn next_key(&mut self, record: &Record<'_>) -> String {
        let key = self.key_of(record);
        if key.starts_with(|c: char| c.is_ascii_digit()) {
            self.state.last_ordinal = record.ordinal;
        }
        self.state.last_key = Some(key.clone());
        key
    }
}

fn is_model(model: &str) -> bool {
    !model.trim().is_empty() && model.len() <= MAX_MODEL
}

/// Returns the summary in the replacement of the history, if it is readable: the text for the
/// next model, in the user's name.
fn readable_summary(payload: &Object<'_>) -> Option<String> {
    const START: &str = "Another language model started to solve this problem";
    let history = payload.list("replacement_history")?;
    history.iter().rev().find_map(|item| {
        let item = Object::from_json(item)?;
        let is_message = item.string("type")? == "message" && item.string("role")? == "user";
        let message = is_message.then(|| items::message(&item)).flatten()?;
        let text = message.text().trim().to_owned();
        text.starts_with(START).then_some(text)
    })
}
