//! Tells a rollout, one record after the other.

use std::path::Path;

use backtrail::{Block, Json, Message, Role, Text, Timestamp};

use super::begin::begin;
use super::events::{self, is_silent};
use super::items::{self, Spoken};
use super::names;
use super::state::{From, State, ordinal_key};
use super::tokens::Tokens;
use crate::error::Result;
use crate::formats::pieces::mark_meta;
use crate::json::Object;
use crate::told::{About, Item, Said, Sink, Summarised, Thread, Used, Which};

/// What stands for a summary that only the provider can read.
const UNREADABLE: &str =
    "The conversation so far was summarised. The agent keeps the summary encrypted.";

/// The longest name of a model.
const MAX_MODEL: usize = 256;

/// Tells a rollout.
pub(super) struct Reader<'a> {
    pub(super) state: State,
    sink: &'a mut dyn Sink,
    path: &'a Path,
    /// The title in the index.
    title: Option<String>,
}

/// A record, and what is needed to tell it.
struct Record<'r> {
    /// Where it begins in the file.
    at: u64,
    ordinal: Option<u64>,
    time: Option<Timestamp>,
    /// What it says, byte for byte: so it is known again.
    said: &'r str,
    /// Whether it is copied of another rollout.
    copied: bool,
}

impl<'a> Reader<'a> {
    /// Goes on, or begins with an empty state.
    pub(super) fn new(state: State, path: &'a Path, sink: &'a mut dyn Sink) -> Self {
        Self {
            state,
            sink,
            path,
            title: None,
        }
    }

    /// Says whose conversation it is.
    pub(super) fn introduce(&mut self, about: About) -> Result<()> {
        self.sink.session(&self.state.session)?;
        self.sink.thread(&Thread {
            which: Which::Main,
            origin: self.state.from.origin(),
        })?;
        self.title = names::title(self.path, &self.state.thread);
        let title = self.title.clone();
        self.tell_about(About { title, ..about })
    }

    /// Begins with the first record.
    pub(super) fn begin(&mut self, first: &Object, copied: Option<String>) -> Result<()> {
        let (mut state, about) = begin(first, self.path, copied);
        state.twins = self.state.twins;
        self.state = state;
        self.introduce(about)
    }

    /// Tells a record, which begins at a byte of the file. Returns its kind where that is
    /// not known.
    pub(super) fn record(&mut self, object: &Object, at: u64) -> Result<Option<String>> {
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
                return Ok(None);
            }
            // Most events say nothing new: they need not be read.
            "event_msg" if self.is_passed_over(payload) => return Ok(None),
            _ => Object::of(payload).unwrap_or_default(),
        };
        let ordinal = object.number("ordinal");
        let time = object.time("timestamp");
        let record = Record {
            at,
            ordinal,
            time,
            said: payload.as_str(),
            copied: self.state.inherited.covers(ordinal, time, &inner),
        };
        match kind.as_ref() {
            "response_item" => self.item(&record, &inner, "response_item/"),
            "event_msg" => self.event(&record, &inner),
            "turn_context" => self.turn_context(&inner),
            "compacted" => self.compacted(&record, &inner),
            "token_usage_record" => self.usage_record(&record, &inner),
            "inter_agent_communication" => self.say(&record, items::between_agents(&inner)),
            "realtime_item" => self.voice(&record, &inner),
            // The first counts; those of a parent, and later states, do not.
            "session_meta"
            | "world_state"
            | "inter_agent_communication_metadata"
            | "security_risk_score"
            | "retained_context" => Ok(None),
            "" => Ok(Some("(no type)".to_owned())),
            kind => Ok(Some(kind.to_owned())),
        }
    }

    /// Tells a record that has no envelope: all of the oldest rollouts.
    fn bare(&mut self, object: &Object, at: u64) -> Result<Option<String>> {
        if object.has("record_type")
            || (!object.has("type") && object.has("timestamp") && object.has("id"))
        {
            return Ok(None);
        }
        let said: String = object.fields().map(|(_, json)| json.as_str()).collect();
        let time = object
            .time("timestamp")
            .or_else(|| object.time("created_at"));
        let record = Record {
            at,
            ordinal: None,
            time,
            said: &said,
            copied: false,
        };
        self.item(&record, object, "")
    }

    /// Returns whether an event says nothing that is told.
    fn is_passed_over(&self, payload: &Json) -> bool {
        let state = &self.state;
        let may_count = state.counting.follows && !state.counting.active;
        if !state.inherited.is_over() || may_count {
            return false;
        }
        let Some(kind) = events::kind_of(payload) else {
            return false;
        };
        match kind {
            "user_message" => state.twins.prompts.items,
            "agent_message" => state.twins.replies.items,
            "agent_reasoning" | "agent_reasoning_raw_content" => state.twins.thoughts.items,
            kind => is_silent(kind),
        }
    }

    /// Tells an item of the conversation.
    fn item(&mut self, record: &Record<'_>, payload: &Object, of: &str) -> Result<Option<String>> {
        let kind = match payload.string("type") {
            Some(kind) => kind.into_owned(),
            None if payload.has("role") => "message".to_owned(),
            None => "(no type)".to_owned(),
        };
        let spoken = items::read(&kind, payload, &|| self.key_of(record));
        match spoken {
            Spoken::Message(message) => {
                self.find_directory(&message)?;
                self.say(record, message)
            }
            Spoken::Call(message) => {
                for block in &message.blocks {
                    if let Block::ToolUse(call) = block {
                        self.state.calls.push(&call.id, &call.name);
                    }
                }
                self.say(record, message)
            }
            Spoken::Answer(mut result) => {
                let tool = self.state.calls.take(&result.tool_use_id);
                result.tool_name = result.tool_name.or(tool.map(Text::from));
                self.say(record, Message::tool_result(result))
            }
            Spoken::Nothing => Ok(None),
            Spoken::Unknown => Ok(Some(format!("{of}{kind}"))),
        }
    }

    /// Tells an event.
    fn event(&mut self, record: &Record<'_>, payload: &Object) -> Result<Option<String>> {
        let kind = payload.string("type").unwrap_or_default();
        match kind.as_ref() {
            "user_message" => match payload.text("message") {
                Some(_) => self.prompt(record, events::prompt(payload)),
                None => Ok(Some("event_msg/user_message".to_owned())),
            },
            "agent_message" => match payload.text("message") {
                Some(text) => self.reply(record, [Block::text(text)]),
                None => Ok(Some("event_msg/agent_message".to_owned())),
            },
            "agent_reasoning" | "agent_reasoning_raw_content" => match payload.text("text") {
                Some(text) => self.thought(record, text),
                None => Ok(Some(format!("event_msg/{kind}"))),
            },
            "item_completed" => self.completed(record, payload),
            "token_count" => self.token_count(record, payload),
            "thread_rolled_back" => self.take_back(payload.number("num_turns").unwrap_or(0)),
            "thread_name_updated" if !record.copied => self.renamed(payload),
            "thread_name_updated" => Ok(None),
            kind if is_silent(kind) => Ok(None),
            kind => Ok(Some(format!("event_msg/{kind}"))),
        }
    }

    /// Tells what is said to be done: that which nothing else says.
    fn completed(&mut self, record: &Record<'_>, payload: &Object) -> Result<Option<String>> {
        let Some(item) = payload.object("item") else {
            return Ok(Some("event_msg/item_completed".to_owned()));
        };
        let kind = item.string("type").unwrap_or_default();
        match kind.as_ref() {
            "UserMessage" => {
                let content = item
                    .get("content")
                    .map_or_else(Vec::new, super::content::blocks);
                self.prompt(record, Message::new(Role::User, content))
            }
            "AgentMessage" => {
                let content = item
                    .get("content")
                    .map_or_else(Vec::new, super::content::blocks);
                self.reply(record, content)
            }
            "Reasoning" => {
                let mut texts = items::texts(&item, "summary_text");
                texts.extend(items::texts(&item, "raw_content"));
                self.thought(record, items::join(texts))
            }
            "Plan" => match item.text("text") {
                Some(text) => self.say(record, Message::assistant([Block::text(text)])),
                None => Ok(None),
            },
            // Items of the conversation say what these did.
            kind if events::is_done(kind) => Ok(None),
            kind => Ok(Some(format!("item_completed/{kind}"))),
        }
    }

    /// Tells what was spoken instead of written.
    fn voice(&mut self, record: &Record<'_>, payload: &Object) -> Result<Option<String>> {
        let kind = payload.string("type").unwrap_or_default();
        match kind.as_ref() {
            "transcript_segment" => match items::spoken(payload) {
                Some(message) => self.say(record, message),
                None => Ok(None),
            },
            "realtime_session_started" | "realtime_session_closed" | "bem_item_promoted" => {
                Ok(None)
            }
            kind => Ok(Some(format!("realtime_item/{kind}"))),
        }
    }

    /// Tells what a person said, where no item does.
    fn prompt(&mut self, record: &Record<'_>, message: Message) -> Result<Option<String>> {
        if self.state.twins.prompts.items {
            return Ok(None);
        }
        self.state.twins.prompts.events = true;
        self.say(record, message)
    }

    /// Tells what the model said, where no item does.
    fn reply(
        &mut self,
        record: &Record<'_>,
        blocks: impl IntoIterator<Item = Block>,
    ) -> Result<Option<String>> {
        self.state.counting.active |= !record.copied;
        if self.state.twins.replies.items {
            return Ok(None);
        }
        self.state.twins.replies.events = true;
        self.say(record, Message::assistant(blocks))
    }

    /// Tells what the model thought, where no item does.
    fn thought(&mut self, record: &Record<'_>, text: Text) -> Result<Option<String>> {
        self.state.counting.active |= !record.copied;
        if self.state.twins.thoughts.items {
            return Ok(None);
        }
        self.state.twins.thoughts.events = true;
        self.say(record, Message::assistant([Block::thinking(text)]))
    }

    /// Tells a message.
    fn say(&mut self, record: &Record<'_>, mut message: Message) -> Result<Option<String>> {
        // What its parent was asked is no prompt of a sub-agent.
        if record.copied && message.is_prompt() && matches!(self.state.from, From::Spawned(_)) {
            mark_meta(&mut message);
        }
        if message.is_prompt() {
            let is_first = self.state.prompts.len() == 0 && self.title.is_none();
            if let Some(title) = request(&message.text()).filter(|_| is_first) {
                self.tell_about(About {
                    title: Some(title),
                    ..About::default()
                })?;
            }
            self.state.prompts.push(self.state.last_key.as_deref());
        }
        let mut said = Said::new(self.next_key(record), message);
        said.at = record.time;
        if said.message.role == Role::Assistant {
            said.model.clone_from(&self.state.model);
            if !record.copied {
                self.state.counting.active = true;
                said.response_id = Some(self.response_id(self.state.counting.calls + 1));
            }
        }
        self.sink.item(Item::Said(said))?;
        Ok(None)
    }

    fn turn_context(&mut self, payload: &Object) -> Result<Option<String>> {
        let mut about = About::default();
        if let Some(model) = payload.string("model").filter(|model| is_model(model))
            && self.state.model.as_deref() != Some(model.as_ref())
        {
            self.state.model = Some(model.clone().into_owned());
            about.model = self.state.model.clone();
        }
        if !self.state.has_directory
            && let Some(directory) = payload.string("cwd").filter(|cwd| !cwd.trim().is_empty())
        {
            self.state.has_directory = true;
            about.directory = Some(directory.into_owned().into());
        }
        self.tell_about(about)?;
        Ok(None)
    }

    fn find_directory(&mut self, message: &Message) -> Result<()> {
        if self.state.has_directory {
            return Ok(());
        }
        let Some(directory) = items::directory(message) else {
            return Ok(());
        };
        self.state.has_directory = true;
        self.tell_about(About {
            directory: Some(directory.into()),
            ..About::default()
        })
    }

    fn renamed(&mut self, payload: &Object) -> Result<Option<String>> {
        // The index knows better, and names that were copied are the parent's.
        let is_own = payload
            .string("thread_id")
            .is_none_or(|id| *id == *self.state.thread);
        if self.title.is_none() && is_own {
            let title = payload
                .string("thread_name")
                .map(|name| name.trim().to_owned());
            self.tell_about(About {
                title: title.filter(|title| !title.is_empty()),
                ..About::default()
            })?;
        }
        Ok(None)
    }

    /// Takes back the last turns.
    fn take_back(&mut self, turns: u64) -> Result<Option<String>> {
        if let Some(key) = self.state.prompts.take_back(turns) {
            self.sink.back_to(key.as_deref())?;
            self.state.last_key = key;
        }
        Ok(None)
    }

    fn token_count(&mut self, record: &Record<'_>, payload: &Object) -> Result<Option<String>> {
        let Some(info) = payload.object("info") else {
            return Ok(None);
        };
        if record.copied {
            self.state.counting.take_over(&info);
            return Ok(None);
        }
        let Some(tokens) = self.state.counting.count(&info) else {
            return Ok(None);
        };
        let model = payload.string("model").or_else(|| info.string("model"));
        let model = model
            .filter(|model| is_model(model))
            .map(|model| model.into_owned());
        self.used(record, tokens, model)
    }

    fn usage_record(&mut self, record: &Record<'_>, payload: &Object) -> Result<Option<String>> {
        let is_own = payload
            .string("thread_id")
            .is_none_or(|id| *id == *self.state.thread);
        if record.copied || !is_own {
            return Ok(None);
        }
        match self.state.counting.record(payload) {
            Some(tokens) => self.used(record, tokens, None),
            None => Ok(None),
        }
    }

    /// Tells what a call used.
    fn used(
        &mut self,
        record: &Record<'_>,
        tokens: Tokens,
        model: Option<String>,
    ) -> Result<Option<String>> {
        self.state.counting.calls += 1;
        let used = Used {
            key: self.next_key(record),
            at: record.time,
            response_id: self.response_id(self.state.counting.calls),
            model: model.or_else(|| self.state.model.clone()),
            usage: tokens.usage(),
            duration_ms: None,
            cost_usd: None,
        };
        self.sink.item(Item::Used(used))?;
        Ok(None)
    }

    fn compacted(&mut self, record: &Record<'_>, payload: &Object) -> Result<Option<String>> {
        let id = payload
            .string("compaction_response_id")
            .filter(|_| !record.copied);
        let tokens = id.and_then(|id| self.state.counting.compaction(&id));
        let summary = payload
            .string("message")
            .map(|message| message.trim().to_owned());
        let summary = summary.filter(|summary| !summary.is_empty());
        let summary = summary.or_else(|| readable_summary(payload));
        let summarised = Summarised {
            covers: None,
            key: self.next_key(record),
            at: record.time,
            summary: summary.unwrap_or_else(|| UNREADABLE.to_owned()),
            keep: 0,
            model: self.state.model.clone(),
            usage: tokens.map(Tokens::usage),
        };
        self.sink.item(Item::Summarised(summarised))?;
        Ok(None)
    }

    fn tell_about(&mut self, about: About) -> Result<()> {
        match about == About::default() {
            true => Ok(()),
            false => self.sink.about(about),
        }
    }

    fn response_id(&self, call: u64) -> String {
        format!("{}#{call}", self.state.session)
    }

    /// Returns a record's key: its number, or where it stands and what it says.
    fn key_of(&self, record: &Record<'_>) -> String {
        let is_next = |ordinal: &u64| self.state.last_ordinal.is_none_or(|last| *ordinal > last);
        let ordinal = record.ordinal.filter(is_next);
        ordinal.and_then(ordinal_key).unwrap_or_else(|| {
            let hash = blake3::hash(record.said.as_bytes());
            format!("b{:012}-{}", record.at, &hash.to_hex()[..8])
        })
    }

    /// Returns the key of a record that is told now.
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

/// Returns the summary in what replaces the history, where it can be read: what the next
/// model is told in the user's name.
fn readable_summary(payload: &Object) -> Option<String> {
    const BEGIN: &str = "Another language model started to solve this problem";
    let history = payload.list("replacement_history")?;
    history.iter().rev().find_map(|item| {
        let item = Object::of(item)?;
        let is_message = item.string("type")? == "message" && item.string("role")? == "user";
        let message = is_message.then(|| items::message(&item)).flatten()?;
        let text = message.text().trim().to_owned();
        text.starts_with(BEGIN).then_some(text)
    })
}

/// Returns what the person asked, where an editor put what is open in it before that.
fn request(prompt: &str) -> Option<String> {
    const ASKS: &str = "## My request for Codex:";
    /// A title is no essay.
    const LONGEST: usize = 120;
    let (_, asked) = prompt.split_once(ASKS)?;
    let line = asked.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(LONGEST).collect())
}
