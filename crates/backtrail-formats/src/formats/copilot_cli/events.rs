//! The events of a file, and those that they become.

use std::borrow::Cow;

use backtrail::{Block, Json, Message, Role, Text, ToolResult};

use super::super::blocks::{
    self, call_input, media_block, meta, meta_text, string_json, tool_output, unknown_block,
};
use super::super::keys::{hash_name, push_limited, valid_key};
use super::CopilotState;
use super::usage::Tokens;
use crate::error::Result;
use crate::event::{
    Details, Event, EventSink, MessageEvent, Origin, ReadReport, SummaryEvent, Thread, ThreadId,
    UsageEvent,
};
use crate::json::Object;

/// How many open calls and sub-agents are remembered.
const MAX_OPEN: usize = 24;

/// Sends the events of a file.
pub(super) struct CopilotEmitter<'s> {
    sink: &'s mut dyn EventSink,
    pub(super) state: &'s mut CopilotState,
    /// The call of the sub-agent whose thread is current.
    current: Option<String>,
}

impl<'s> CopilotEmitter<'s> {
    pub(super) fn new(sink: &'s mut dyn EventSink, state: &'s mut CopilotState) -> Self {
        Self {
            sink,
            state,
            current: None,
        }
    }

    /// Sends what an event of this type becomes.
    pub(super) fn emit(
        &mut self,
        event: &Object<'_>,
        kind: &str,
        key: &str,
        report: &mut ReadReport,
    ) -> Result<()> {
        let data = event.object("data").unwrap_or_default();
        let one = OneEvent {
            event,
            data: &data,
            key,
        };
        match kind {
            "session.start" | "session.resume" => self.start(&data),
            "session.model_change" => self.set_model(data.non_blank("newModel").as_deref()),
            "session.title_changed" => self.set_title(&data),
            "user.message" => self.emit_user(&one),
            "system.message" => self.emit_system(&one),
            "system.notification" => match data.text("content") {
                Some(text) => self.send(&one, meta_text(text)),
                None => Ok(()),
            },
            "assistant.message" => self.emit_reply(&one),
            "assistant.reasoning" => self.emit_reasoning(&one),
            "tool.execution_complete" => self.emit_result(&one),
            "session.usage_record" => match data.object("usage") {
                Some(usage) => self.emit_usage(&one, &usage),
                None => Ok(()),
            },
            "assistant.usage" => self.emit_usage(&one, &data),
            "session.shutdown" => self.emit_rest(&one),
            "session.compaction_complete" => self.emit_summary(&one),
            "subagent.started" => self.start_agent(&one),
            _ if is_known(kind) => Ok(()),
            _ => {
                report.add_unknown(kind);
                Ok(())
            }
        }
    }

    fn start(&mut self, data: &Object<'_>) -> Result<()> {
        let context = data.object("context").unwrap_or_default();
        self.choose(None)?;
        self.sink.details(Details {
            directory: context.path("cwd"),
            started_at: data.time("startTime"),
            ..Details::default()
        })?;
        self.set_model(data.non_blank("selectedModel").as_deref())
    }

    fn set_title(&mut self, data: &Object<'_>) -> Result<()> {
        self.choose(None)?;
        self.sink.details(Details {
            title: data.trimmed("title"),
            ..Details::default()
        })
    }

    fn set_model(&mut self, model: Option<&str>) -> Result<()> {
        match model {
            Some(model) if self.state.model.as_deref() != Some(model) => {
                self.choose(None)?;
                self.state.model = Some(model.to_owned());
                self.sink.details(Details {
                    model: self.state.model.clone(),
                    ..Details::default()
                })
            }
            _ => Ok(()),
        }
    }

    /// Makes the thread of a sub-agent the current one, by the call that started it, or the
    /// session's own.
    fn choose(&mut self, call: Option<String>) -> Result<()> {
        if self.current == call {
            return Ok(());
        }
        let thread = match &call {
            None => Thread::main(Origin::Start),
            Some(call) => Thread {
                id: ThreadId::SubAgent(call.clone()),
                origin: Origin::Spawned {
                    session: None,
                    tool_use_id: Some(call.clone()),
                },
            },
        };
        self.current = call;
        self.sink.thread(&thread)
    }

    /// Chooses the thread of an event.
    fn choose_for(&mut self, one: &OneEvent<'_>) -> Result<()> {
        let call = one.data.non_blank("parentToolCallId").map(valid_key);
        let call = call.or_else(|| {
            let agent = valid_key(one.event.non_blank("agentId")?);
            let known = self.state.agents.iter().rev();
            let known = known.clone().find(|(name, _)| *name == agent);
            Some(known.map_or(agent, |(_, call)| call.clone()))
        });
        self.choose(call)
    }

    fn start_agent(&mut self, one: &OneEvent<'_>) -> Result<()> {
        let Some(call) = one.data.non_blank("toolCallId").map(valid_key) else {
            return Ok(());
        };
        if let Some(agent) = one.event.non_blank("agentId").map(valid_key) {
            push_limited(&mut self.state.agents, (agent, call.clone()), MAX_OPEN);
        }
        self.choose(Some(call))?;
        self.sink.details(Details {
            title: one.data.trimmed("agentDisplayName"),
            model: one.data.trimmed("model"),
            tags: one.data.trimmed("agentName").map(|name| vec![name]),
            started_at: one.event.time("timestamp"),
            ..Details::default()
        })
    }

    fn send(&mut self, one: &OneEvent<'_>, message: Message) -> Result<()> {
        self.choose_for(one)?;
        self.send_event(MessageEvent::new(one.key, message).at(one.event.time("timestamp")))
    }

    fn send_event(&mut self, event: MessageEvent) -> Result<()> {
        self.state.messages += u64::from(self.current.is_none());
        self.sink.event(Event::Message(event))
    }

    fn emit_user(&mut self, one: &OneEvent<'_>) -> Result<()> {
        let attached = one.data.list("attachments").unwrap_or_default();
        let text = one.data.text("content");
        let text = text.filter(|text| attached.is_empty() || !text.is_empty());
        let blocks = text.map(Block::text).into_iter();
        let blocks = blocks.chain(attached.into_iter().map(attachment));
        let message = Message::new(Role::User, blocks);
        let source = one.data.non_blank("source");
        let is_users = source.is_none_or(|source| source == "user");
        self.send(one, if is_users { message } else { meta(message) })
    }

    fn emit_system(&mut self, one: &OneEvent<'_>) -> Result<()> {
        let text = one.data.text("content").map(Block::text);
        self.send(one, Message::new(Role::System, text))
    }

    fn emit_reasoning(&mut self, one: &OneEvent<'_>) -> Result<()> {
        let Some(text) = one.data.text("content").filter(|text| !text.is_empty()) else {
            return Ok(());
        };
        self.state.reasoning = Some(hash_name(text.as_str()));
        let block = blocks::thinking(text, None);
        self.send(one, Message::new(Role::Assistant, [block]))
    }

    fn emit_reply(&mut self, one: &OneEvent<'_>) -> Result<()> {
        let data = one.data;
        let mut blocks = Vec::new();
        let reasoning = data.text("reasoningText").filter(|text| !text.is_empty());
        let sent = self.state.reasoning.take();
        if let Some(text) = reasoning.filter(|text| sent != Some(hash_name(text.as_str()))) {
            blocks.push(blocks::thinking(text, data.text("reasoningOpaque")));
        }
        let content = data.text("content").filter(|text| !text.is_empty());
        blocks.extend(content.map(Block::text));
        for json in data.list("toolRequests").unwrap_or_default() {
            blocks.push(self.call(json));
        }
        let mut message = Message::assistant(blocks);
        let model = data.non_blank("model").map(Cow::into_owned);
        let is_main = !data.has("parentToolCallId") && !one.event.has("agentId");
        if is_main {
            self.set_model(model.as_deref())?;
        }
        let call = data.non_blank("apiCallId");
        let is_counted = call
            .as_deref()
            .is_some_and(|call| self.state.counted.has_call(call));
        if let Some(output) = data.number("outputTokens").filter(|_| !is_counted) {
            let tokens = Tokens::output(output);
            let model = model.as_deref().or(self.state.model.as_deref());
            self.state.counted.add(model.unwrap_or_default(), tokens);
            message.usage = (output > 0).then(|| tokens.usage(None));
        }
        let response_id = match (call, &message.usage) {
            (Some(call), _) => Some(self.response_id(&call)),
            (None, Some(_)) => Some(self.response_id(one.key)),
            (None, None) => None,
        };
        self.choose_for(one)?;
        self.send_event(MessageEvent {
            model,
            response_id,
            ..MessageEvent::new(one.key, message).at(one.event.time("timestamp"))
        })
    }

    /// Returns the block of a call, and remembers the name of its tool.
    fn call(&mut self, json: &str) -> Block {
        let Some(request) = Object::from_json(json) else {
            return unknown_block("copilot_call", json);
        };
        let (id, name) = (request.text("toolCallId"), request.text("name"));
        if let (Some(id), Some(name)) = (&id, &name) {
            let short = |text: &Text| text.chars().take(64).collect::<String>();
            let open = (short(id), short(name));
            push_limited(&mut self.state.open_calls, open, MAX_OPEN);
        }
        let input = call_input(request.get("arguments"));
        Block::ToolUse(blocks::tool_use(id, name, input))
    }

    fn emit_result(&mut self, one: &OneEvent<'_>) -> Result<()> {
        let id = one.data.text("toolCallId");
        let calls = &mut self.state.open_calls;
        let short: String = id.iter().flat_map(|id| id.chars()).take(64).collect();
        let name = calls.iter().position(|(call, _)| *call == short);
        let name = name.and_then(|at| calls.remove(at));
        let name = one
            .data
            .text("toolName")
            .or(name.map(|(_, name)| name.into()));
        let result = ToolResult {
            is_error: is_failed(one.data),
            ..blocks::tool_result(id, name, output(one.data))
        };
        self.send(one, Message::tool_result(result))
    }

    fn emit_usage(&mut self, one: &OneEvent<'_>, usage: &Object<'_>) -> Result<()> {
        let Some(tokens) = Tokens::read(usage) else {
            return Ok(());
        };
        let call = usage.non_blank("apiCallId");
        let is_new = call
            .as_deref()
            .is_none_or(|call| self.state.counted.add_call(call));
        if !is_new {
            return Ok(());
        }
        let model = usage.non_blank("model").map(Cow::into_owned);
        let name = model.as_deref().or(self.state.model.as_deref());
        let name = name.unwrap_or_default().to_owned();
        self.state.counted.add(&name, tokens);
        let response_id = self.response_id(call.as_deref().unwrap_or(one.key));
        self.choose_for(one)?;
        self.sink.event(Event::Usage(UsageEvent {
            key: one.key.to_owned(),
            at: one.event.time("timestamp"),
            response_id,
            model,
            usage: tokens.usage(usage.number("reasoningTokens")),
            duration_ms: usage.number("duration"),
            // The agent counts its cost in requests, not in money.
            cost_usd: None,
        }))
    }

    /// Sends the usage that was not counted when the agent ended.
    fn emit_rest(&mut self, one: &OneEvent<'_>) -> Result<()> {
        self.choose(None)?;
        for (n, (model, tokens)) in self.state.counted.rest(one.data).into_iter().enumerate() {
            let key = format!("{}/usage-{}", one.key, n + 1);
            self.sink.event(Event::Usage(UsageEvent {
                at: one.event.time("timestamp"),
                response_id: self.response_id(&key),
                key,
                model: Some(model),
                usage: tokens.usage(None),
                duration_ms: None,
                cost_usd: None,
            }))?;
        }
        Ok(())
    }

    fn emit_summary(&mut self, one: &OneEvent<'_>) -> Result<()> {
        if one.data.get("success") == Some("false") {
            return Ok(());
        }
        self.choose_for(one)?;
        let count = |name: &str| one.data.number(name);
        let kept = match (
            count("preCompactionMessagesLength"),
            count("messagesRemoved"),
        ) {
            (Some(before), Some(removed)) => before.saturating_sub(removed),
            _ => 0,
        };
        let used = one.data.object("compactionTokensUsed");
        let tokens = used.as_ref().and_then(|used| {
            let count = |names: [&str; 2]| names.iter().find_map(|name| used.number(name));
            let input = count(["inputTokens", "input"]);
            let output = count(["outputTokens", "output"]);
            let cached = count(["cacheReadTokens", "cachedInput"]).unwrap_or(0);
            (input.is_some() || output.is_some()).then(|| {
                let input = input.unwrap_or(0).saturating_sub(cached);
                backtrail::Usage::new(input, output.unwrap_or(0)).cache_read(cached)
            })
        });
        let summary = one.data.string("summaryContent").unwrap_or_default();
        self.sink.event(Event::Summary(SummaryEvent {
            at: one.event.time("timestamp"),
            keep: kept.min(self.state.messages),
            usage: tokens,
            model: used.as_ref().and_then(|used| used.trimmed("model")),
            ..SummaryEvent::new(one.key, summary)
        }))
    }

    /// Returns the id of a response within this session.
    fn response_id(&self, id: &str) -> String {
        // A response has the same id in all copies, so that it counts once.
        let copied_from = self.state.copied_from.as_ref();
        let first = copied_from.map_or(&self.state.session, |(_, first)| first);
        format!("{first}#{}", valid_key(id))
    }
}

/// One event of a file.
struct OneEvent<'a> {
    event: &'a Object<'a>,
    data: &'a Object<'a>,
    key: &'a str,
}

/// Returns whether a call failed. The agent calls a command successful that it could run,
/// whatever its exit code is.
fn is_failed(data: &Object<'_>) -> bool {
    let shell = data.object("shellExecution");
    if let Some(code) = shell.and_then(|shell| shell.float("exitCode")) {
        return code != 0.0 || data.get("success") == Some("false");
    }
    if data.get("success") == Some("false") || data.has("error") {
        return true;
    }
    let result = data.object("result").unwrap_or_default();
    let text = result.string("content").unwrap_or_default();
    exit_code(&text).is_some_and(|code| code != 0)
}

/// Returns the exit code that older versions note on the last line of a command's output, such
/// as `<shellId: 0 completed with exit code 2>`.
fn exit_code(output: &str) -> Option<i64> {
    let last = output.trim_end().lines().next_back()?;
    let note = last.strip_prefix('<')?.strip_suffix('>')?;
    note.rsplit_once("exit code ")?.1.trim().parse().ok()
}

/// Returns the output of a tool.
fn output(data: &Object<'_>) -> Option<Json> {
    let Some(result) = data.object("result") else {
        let error = data.object("error").and_then(|error| error.text("message"));
        let error = error.or_else(|| data.text("error"));
        return error
            .map(|error| string_json(&error))
            .or_else(|| data.json("result"));
    };
    let text = result.text("content").map(Block::text);
    let media = |json: &str| {
        let part = Object::from_json(json)?;
        let data = part.string_json("data")?;
        Some(media_block(part.text("mimeType")?, data))
    };
    let parts = result.list("contents").unwrap_or_default();
    let media = parts.into_iter().filter_map(media);
    tool_output(&text.into_iter().chain(media).collect::<Vec<_>>())
}

fn attachment(json: &str) -> Block {
    let read = || {
        let attached = Object::from_json(json)?;
        let data = attached.string_json("data")?;
        Some(media_block(attached.text("mimeType")?, data))
    };
    read().unwrap_or_else(|| unknown_block("copilot_attachment", json))
}

/// Returns whether events of a type are known, and not part of the conversation.
fn is_known(kind: &str) -> bool {
    let Some((family, _)) = kind.split_once('.') else {
        return kind == "abort";
    };
    match family {
        "session" => SESSION.iter().any(|name| kind.ends_with(name)),
        "assistant" => ASSISTANT.iter().any(|name| kind.ends_with(name)),
        _ => FAMILIES.contains(&family),
    }
}

/// Families of events about the agent itself: its hooks, permissions, servers and so on.
const FAMILIES: [&str; 27] = [
    "auto_mode_switch",
    "canvas",
    "capabilities",
    "command",
    "commands",
    "custom_agents",
    "elicitation",
    "exit_plan_mode",
    "extensions",
    "external_tool",
    "factory",
    "fusion",
    "hook",
    "mcp",
    "mcp_app",
    "model",
    "pending_messages",
    "permission",
    "sampling",
    "session_limits_exhausted",
    "skill",
    "skills",
    "subagent",
    "tool",
    "tools",
    "ui",
    "user_input",
];

/// Events of the session that are not part of the conversation.
const SESSION: [&str; 44] = [
    ".auto_mode_resolved",
    ".autopilot_objective_changed",
    ".background_tasks_changed",
    ".binary_asset",
    ".canvas_opened",
    ".canvas_closed",
    ".canvas_recorded",
    ".canvas_registry_changed",
    ".canvas_removed",
    ".canvas_unavailable",
    ".compaction_start",
    ".context_changed",
    ".context_cleared",
    ".custom_agents_updated",
    ".custom_notification",
    ".error",
    ".extensions_loaded",
    ".handoff",
    ".idle",
    ".info",
    ".limits_changed",
    ".managed_settings_enforced",
    ".managed_settings_resolved",
    ".mcp_server_status_changed",
    ".mcp_servers_loaded",
    ".mode_changed",
    ".mode_notice_delivered",
    ".permissions_changed",
    ".plan_changed",
    ".remote_steerable_changed",
    ".schedule_cancelled",
    ".schedule_created",
    ".schedule_rearmed",
    ".session_limits_changed",
    ".skills_loaded",
    ".snapshot_rewind",
    ".task_complete",
    ".todos_changed",
    ".tools_updated",
    ".truncation",
    ".usage_checkpoint",
    ".usage_info",
    ".warning",
    ".workspace_file_changed",
];

/// Events of the model that are not part of the conversation.
const ASSISTANT: [&str; 13] = [
    ".fusion_phase_completed",
    ".fusion_phase_failed",
    ".fusion_phase_started",
    ".idle",
    ".intent",
    ".message_delta",
    ".message_start",
    ".reasoning_delta",
    ".server_tool_progress",
    ".streaming_delta",
    ".tool_call_delta",
    ".turn_end",
    ".turn_start",
];
