//! The events that records become.

use std::borrow::Cow;
use std::collections::VecDeque;

use backtrail::{Block, Message, Role, Usage};
use serde::{Deserialize, Serialize};

use super::super::blocks::{meta, starts_with_any, unknown_block};
use super::super::keys::push_limited;
use super::super::parts::part_block;
use super::records::{RecordKind, model_call, parts, record_kind};
use crate::error::Result;
use crate::event::{Details, Event, EventSink, MessageEvent, SummaryEvent, UsageEvent};
use crate::json::Object;

/// How many calls of the model are remembered whose message has not come yet.
const MAX_CALLS: usize = 8;

/// A call of the model whose usage was sent and whose message follows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ModelCall {
    response_id: String,
    counts: [u64; 3],
}

/// Sends the events of records.
pub(super) struct QwenEmitter<'s> {
    sink: &'s mut dyn EventSink,
    session: &'s str,
    /// The model of the last record.
    pub(super) model: Option<String>,
    pub(super) calls: VecDeque<ModelCall>,
}

impl<'s> QwenEmitter<'s> {
    /// Creates one; the model and the calls are those of an earlier reading.
    pub(super) fn new(
        sink: &'s mut dyn EventSink,
        session: &'s str,
        model: Option<String>,
        calls: VecDeque<ModelCall>,
    ) -> Self {
        Self {
            sink,
            session,
            model,
            calls,
        }
    }

    /// Sends the events of a record. A summary keeps so many messages.
    pub(super) fn emit(&mut self, record: &Object<'_>, key: &str, keep: u64) -> Result<()> {
        match (record_kind(record), record.string("type").as_deref()) {
            (RecordKind::Summary, _) => self.sink.event(summary(record, key, keep)),
            (RecordKind::Usage, _) => self.emit_usage(record, key),
            (RecordKind::Message, Some("assistant")) => self.emit_reply(record, key),
            (RecordKind::Message, Some("tool_result")) => self.emit_results(record, key),
            (RecordKind::Message, _) => self.emit_user(record, key),
            _ => Ok(()),
        }
    }

    fn send(&mut self, key: &str, message: Message, record: &Object<'_>) -> Result<()> {
        let event = MessageEvent::new(key, message).at(record.time("timestamp"));
        self.sink.event(Event::Message(event))
    }

    /// Sends what the user wrote, and apart from it what a hook added.
    fn emit_user(&mut self, record: &Object<'_>, key: &str) -> Result<()> {
        let is_added =
            |block: &Block| matches!(block, Block::Text(block) if is_hook_context(&block.text));
        let (added, written): (Vec<_>, Vec<_>) = blocks(record).into_iter().partition(is_added);
        if !written.is_empty() {
            let message = Message::new(Role::User, written);
            let message = match is_prompt(record) {
                true => message,
                false => meta(message),
            };
            self.send(key, message, record)?;
        }
        if added.is_empty() {
            return Ok(());
        }
        let message = meta(Message::new(Role::User, added));
        self.send(&format!("{key}/context"), message, record)
    }

    fn emit_results(&mut self, record: &Object<'_>, key: &str) -> Result<()> {
        let is_result = |block: &Block| matches!(block, Block::ToolResult(_));
        let (mut results, rest): (Vec<_>, Vec<_>) = blocks(record).into_iter().partition(is_result);
        let failed = is_failed(record);
        let only = results.len() == 1;
        let call = record.object("toolCallResult").unwrap_or_default();
        let call = call.string("callId");
        for block in &mut results {
            if let Block::ToolResult(result) = block {
                let is_meant = only || call.as_deref() == Some(result.tool_use_id.as_str());
                result.is_error |= failed && is_meant;
            }
        }
        if !results.is_empty() {
            self.send(key, Message::new(Role::Tool, results), record)?;
        }
        if rest.is_empty() {
            return Ok(());
        }
        let message = meta(Message::new(Role::User, rest));
        self.send(&format!("{key}/content"), message, record)
    }

    fn emit_reply(&mut self, record: &Object<'_>, key: &str) -> Result<()> {
        let model = record.non_blank("model").map(Cow::into_owned);
        self.set_model(model.as_deref())?;
        let mut message = Message::new(Role::Assistant, blocks(record));
        let counts = record.object("usageMetadata");
        let counts = counts.as_ref().and_then(Counts::of_message);
        let mut response_id = None;
        if let Some(counts) = counts {
            let call = self.take_call(&counts);
            let is_sent = call
                .as_ref()
                .is_some_and(|call| call.counts == counts.main());
            // The usage was sent with the call.
            message.usage = (!is_sent).then(|| counts.usage());
            let own = || self.response_id(record, key);
            response_id = Some(call.map_or_else(own, |call| call.response_id));
        }
        self.sink.event(Event::Message(MessageEvent {
            model,
            response_id,
            ..MessageEvent::new(key, message).at(record.time("timestamp"))
        }))
    }

    /// Returns the call that a message belongs to: the one with the same counts, or else the
    /// last one.
    fn take_call(&mut self, counts: &Counts) -> Option<ModelCall> {
        let same = self
            .calls
            .iter()
            .rposition(|call| call.counts == counts.main());
        let at = same.or(self.calls.len().checked_sub(1))?;
        let call = self.calls.remove(at);
        // Calls before it have no message.
        self.calls.drain(..at);
        call
    }

    fn set_model(&mut self, model: Option<&str>) -> Result<()> {
        match model {
            Some(model) if self.model.as_deref() != Some(model) => {
                self.model = Some(model.to_owned());
                self.sink.details(Details {
                    model: self.model.clone(),
                    ..Details::default()
                })
            }
            _ => Ok(()),
        }
    }

    /// Sends the usage of a call. That of a sub-agent has no message here.
    fn emit_usage(&mut self, record: &Object<'_>, key: &str) -> Result<()> {
        let payload = record.object("systemPayload").unwrap_or_default();
        let Some(call) = model_call(&payload) else {
            return Ok(());
        };
        let Some(counts) = Counts::of_call(&call) else {
            return Ok(());
        };
        let response_id = self.response_id(record, key);
        if !call.has("subagent_name") {
            let call = ModelCall {
                response_id: response_id.clone(),
                counts: counts.main(),
            };
            push_limited(&mut self.calls, call, MAX_CALLS);
        }
        self.sink.event(Event::Usage(UsageEvent {
            key: key.to_owned(),
            at: record.time("timestamp"),
            response_id,
            model: call.non_blank("model").map(Cow::into_owned),
            usage: counts.usage(),
            duration_ms: call.number("duration_ms"),
            cost_usd: None,
        }))
    }

    /// Returns the id of a response. A copy of the record in another session has the same id,
    /// so that it counts once. (The provider's own id is not always unique.)
    fn response_id(&self, record: &Object<'_>, key: &str) -> String {
        let id = record.string("uuid").unwrap_or_default();
        match uuid::Uuid::try_parse(&id).is_ok() {
            true => id.into_owned(),
            false => format!("{}#{key}", self.session),
        }
    }
}

/// Returns the blocks of a message.
fn blocks(record: &Object<'_>) -> Vec<Block> {
    let parts = parts(record).unwrap_or_default().into_iter();
    let block = |json: &str| part_block(json).unwrap_or_else(|| unknown_block("qwen_part", json));
    parts.map(block).collect()
}

fn is_hook_context(text: &str) -> bool {
    starts_with_any(text, &["<qwen:user-prompt-submit-context>"])
}

/// Returns whether the user wrote a message, and not the agent in the user's name.
fn is_prompt(record: &Object<'_>) -> bool {
    let is_own = matches!(
        record.string("subtype").as_deref(),
        None | Some("mid_turn_user_message" | "realtime_message")
    );
    let provenance = record.string("provenance");
    is_own && provenance.is_none_or(|provenance| provenance == "real_user")
}

/// Returns whether the agent says that a call failed.
fn is_failed(record: &Object<'_>) -> bool {
    let call = record.object("toolCallResult").unwrap_or_default();
    let says = |name: &str| {
        let status = call.string(name);
        matches!(status.as_deref(), Some("error" | "cancelled" | "failed"))
    };
    let shown = call.object("resultDisplay").unwrap_or_default();
    let is_command = shown.string("type").as_deref() == Some("shell_result");
    let code = shown.float("exitCode");
    let has_failed = is_command && (code.is_some_and(|code| code != 0.0) || shown.has("signal"));
    says("status") || says("executionStatus") || has_failed
}

/// Returns a summary. It is the first message of the list that replaces all messages.
fn summary(record: &Object<'_>, key: &str, keep: u64) -> Event {
    let payload = record.object("systemPayload").unwrap_or_default();
    let list = payload.list("compressedHistory").unwrap_or_default();
    let new = list
        .len()
        .saturating_sub(usize::try_from(keep).unwrap_or(usize::MAX));
    let text = |content: &&str| {
        let content = Object::from_json(content)?;
        let is_user = content.string("role").as_deref() == Some("user");
        let parts = content.list("parts").filter(|_| is_user)?;
        let text = Message::new(Role::User, parts.into_iter().filter_map(part_block));
        let text = text.text().trim().to_owned();
        (!text.is_empty() && !starts_with_any(&text, &STARTUP)).then_some(text)
    };
    let text = list[..new].iter().find_map(text);
    Event::Summary(SummaryEvent {
        at: record.time("timestamp"),
        keep,
        ..SummaryEvent::new(key, text.unwrap_or_default())
    })
}

/// How the message starts that describes the environment to the model.
const STARTUP: [&str; 2] = [
    "This is the Qwen Code. We are setting up the context for our chat.",
    "<system-reminder>",
];

/// The tokens of a call.
#[derive(Debug)]
struct Counts {
    input: u64,
    output: u64,
    cached: u64,
    thoughts: Option<u64>,
    tool: u64,
    total: Option<u64>,
}

impl Counts {
    /// Reads those of a message.
    fn of_message(counts: &Object<'_>) -> Option<Self> {
        Self::read(
            counts,
            [
                "promptTokenCount",
                "candidatesTokenCount",
                "cachedContentTokenCount",
                "thoughtsTokenCount",
                "toolUsePromptTokenCount",
                "totalTokenCount",
            ],
        )
    }

    /// Reads those of a note on a call.
    fn of_call(counts: &Object<'_>) -> Option<Self> {
        Self::read(
            counts,
            [
                "input_token_count",
                "output_token_count",
                "cached_content_token_count",
                "thoughts_token_count",
                "tool_token_count",
                "total_token_count",
            ],
        )
    }

    fn read(counts: &Object<'_>, names: [&str; 6]) -> Option<Self> {
        let [input, output, cached, thoughts, tool, total] = names.map(|name| counts.number(name));
        (input.is_some() || output.is_some()).then(|| Self {
            input: input.unwrap_or(0),
            output: output.unwrap_or(0),
            cached: cached.unwrap_or(0),
            thoughts,
            tool: tool.unwrap_or(0),
            total,
        })
    }

    /// Returns those that tell one call from another.
    fn main(&self) -> [u64; 3] {
        [self.input, self.output, self.cached]
    }

    /// Returns the usage. The input includes what came from the cache. Thoughts are part of
    /// the output, unless the total shows that they are counted separately.
    fn usage(&self) -> Usage {
        let thoughts = self.thoughts.unwrap_or(0);
        let both = self.input.saturating_add(self.output);
        let is_apart = self
            .total
            .is_some_and(|total| total == both.saturating_add(thoughts).saturating_add(self.tool));
        let (thoughts, tool) = if is_apart {
            (thoughts, self.tool)
        } else {
            (0, 0)
        };
        let input = self.input.saturating_sub(self.cached).saturating_add(tool);
        let output = self.output.saturating_add(thoughts);
        let mut usage = Usage::new(input, output).cache_read(self.cached);
        usage.reasoning_output_tokens = self.thoughts;
        usage
    }
}
