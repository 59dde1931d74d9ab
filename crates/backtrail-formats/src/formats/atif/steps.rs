//! Sends the steps of a run.

use std::collections::HashMap;

use backtrail::{Block, Message, Role, Text, Timestamp, ToolResult, Usage};

use super::time;
use crate::error::Result;
use crate::event::{Event, EventSink, MessageEvent};
use crate::formats::blocks::{
    call_input, content_blocks, meta, send_model, thinking, tool_output, tool_result, tool_use,
    unknown_block,
};
use crate::formats::keys::{UniqueKeys, hash, valid_key};
use crate::json::Object;

/// Sends the steps of a run.
pub(super) struct Steps<'s> {
    sink: &'s mut dyn EventSink,
    session: &'s str,
    keys: UniqueKeys,
    model: Option<String>,
    /// Whether any step says what it used.
    pub(super) has_usage: bool,
}

impl<'s> Steps<'s> {
    pub(super) fn new(
        sink: &'s mut dyn EventSink,
        session: &'s str,
        model: Option<String>,
    ) -> Self {
        Self {
            sink,
            session,
            keys: UniqueKeys::default(),
            model,
            has_usage: false,
        }
    }

    /// Sends a step. Returns whether its source is known.
    pub(super) fn emit(&mut self, step: &Object<'_>, n: usize) -> Result<bool> {
        let at = time(step);
        let key = key(step, n);
        match step.string("source").as_deref() {
            Some("user") => {
                let message = Message::new(Role::User, content(step.get("message")));
                self.send(MessageEvent::new(key.clone(), message).at(at))?;
            }
            Some("system") => {
                let message = Message::new(Role::System, content(step.get("message")));
                self.send(MessageEvent::new(key.clone(), message).at(at))?;
            }
            Some("agent" | "assistant") => self.emit_answer(step, &key, at)?,
            _ => return Ok(false),
        }
        self.emit_results(step, &key, at)?;
        Ok(true)
    }

    fn emit_answer(&mut self, step: &Object<'_>, key: &str, at: Option<Timestamp>) -> Result<()> {
        let model = step.trimmed("model_name");
        send_model(self.sink, &mut self.model, model.as_deref())?;
        let reasoning = step
            .text("reasoning_content")
            .filter(|text| !text.is_empty());
        let mut blocks: Vec<Block> = reasoning
            .map(|text| thinking(text, None))
            .into_iter()
            .collect();
        blocks.extend(content(step.get("message")));
        let calls = step.list("tool_calls").unwrap_or_default();
        blocks.extend(
            calls
                .into_iter()
                .map(|json| call(json).unwrap_or_else(|| unknown_block("atif_tool_call", json))),
        );
        let mut message = Message::new(Role::Assistant, blocks);
        let metrics = step.object("metrics").unwrap_or_default();
        // What was copied from an earlier run was counted there.
        let is_own = !step.is_true("is_copied_context");
        message.usage = usage(&metrics).filter(|_| is_own);
        let cost = metrics.float("cost_usd").filter(|_| is_own);
        self.has_usage |= usage(&metrics).is_some();
        let mut event = MessageEvent::new(key, message).at(at);
        event.model = model.or_else(|| self.model.clone());
        if event.message.usage.is_some() || cost.is_some() {
            event.response_id = Some(format!("{}#{key}", self.session));
            event.cost_usd = cost;
        }
        self.send(event)
    }

    /// Sends what was observed: the results of the step's calls, and other things.
    fn emit_results(&mut self, step: &Object<'_>, key: &str, at: Option<Timestamp>) -> Result<()> {
        let Some(observation) = step.object("observation") else {
            return Ok(());
        };
        let calls = called(step);
        for (n, json) in observation
            .list("results")
            .unwrap_or_default()
            .iter()
            .enumerate()
        {
            let result = Object::from_json(json).unwrap_or_default();
            let message = match result.text("source_call_id") {
                Some(id) => Message::tool_result(answer(&result, id, &calls)),
                None => {
                    let blocks = content(result.get("content"));
                    meta(Message::new(Role::User, blocks))
                }
            };
            let key = format!("{key}/result-{n}");
            self.send(MessageEvent::new(key, message).at(at))?;
        }
        Ok(())
    }

    fn send(&mut self, mut event: MessageEvent) -> Result<()> {
        event.key = self.keys.unique(event.key);
        self.sink.event(Event::Message(event))
    }
}

/// Returns the key of a step: its number, and a hash of what does not change any more.
fn key(step: &Object<'_>, n: usize) -> String {
    let number = step.number("step_id").unwrap_or(n as u64 + 1);
    let part = |name: &str| step.get(name).unwrap_or_default();
    let all = [part("source"), part("message"), part("tool_calls")].join("\n");
    valid_key(format!("{number}-{}", hash(all.as_bytes(), 16)))
}

/// Returns the blocks of a content: a string, or a list of parts. The content of images and
/// audio is in other files.
fn content(json: Option<&str>) -> Vec<Block> {
    content_blocks(json, "atif", |json| {
        let part = Object::from_json(json)?;
        let is_text = part.string("type")? == "text";
        part.text("text").filter(|_| is_text).map(Block::text)
    })
}

fn call(json: &str) -> Option<Block> {
    let call = Object::from_json(json)?;
    let name = call.text("function_name")?;
    let input = call_input(call.get("arguments"));
    Some(Block::ToolUse(tool_use(
        call.text("tool_call_id"),
        Some(name),
        input,
    )))
}

/// Returns the names of the tools that a step called, and whether the calls failed.
fn called(step: &Object<'_>) -> HashMap<String, (Option<Text>, bool)> {
    let calls = step.list("tool_calls").unwrap_or_default().into_iter();
    let read = |json: &str| {
        let call = Object::from_json(json)?;
        let failed = call
            .object("extra")
            .is_some_and(|extra| says_failed(&extra));
        let id = call.string("tool_call_id")?.into_owned();
        Some((id, (call.text("function_name"), failed)))
    };
    calls.filter_map(read).collect()
}

/// Returns the result of a call.
fn answer(
    result: &Object<'_>,
    id: Text,
    calls: &HashMap<String, (Option<Text>, bool)>,
) -> ToolResult {
    let (name, failed) = calls.get(id.as_str()).cloned().unwrap_or_default();
    let output = match result.has("content") {
        true => tool_output(&content(result.get("content"))),
        false => result
            .json("subagent_trajectory_ref")
            .filter(|_| result.has("subagent_trajectory_ref")),
    };
    let extra = result.object("extra");
    ToolResult {
        is_error: failed || extra.is_some_and(|extra| says_failed(&extra)),
        ..tool_result(Some(id), name, output)
    }
}

/// Returns whether what an agent adds to a call or a result says that it failed. The format has
/// no field for that.
fn says_failed(extra: &Object<'_>) -> bool {
    let code = ["exit_code", "exitCode", "returncode", "return_code"];
    let has_code = |name: &&str| extra.float(name).is_some_and(|code| code != 0.0);
    let status = |object: &Object<'_>| {
        let status = object.string("status");
        matches!(status.as_deref(), Some("error" | "failed" | "failure"))
    };
    extra.is_true("is_error")
        || extra.is_true("isError")
        || extra.non_blank("error").is_some()
        || extra.get("success") == Some("false")
        || code.iter().any(has_code)
        || status(extra)
        || extra.object("invocation").is_some_and(|call| status(&call))
}

/// Returns what a step used. Its input includes what came from the cache.
fn usage(metrics: &Object<'_>) -> Option<Usage> {
    let count = |name: &str| metrics.number(name);
    let extra = metrics.object("extra").unwrap_or_default();
    let written = [
        "cache_creation_input_tokens",
        "cache_write_tokens",
        "cache_creation_tokens",
    ];
    let written = written
        .iter()
        .find_map(|name| extra.number(name))
        .unwrap_or(0);
    let (input, output) = (count("prompt_tokens"), count("completion_tokens"));
    let cached = count("cached_tokens").unwrap_or(0);
    if input.is_none() && output.is_none() {
        return None;
    }
    // Cached tokens are a part of the input; written ones are if there is room for them.
    let rest = input.unwrap_or(0).saturating_sub(cached);
    let mut usage = Usage::new(
        rest.checked_sub(written).unwrap_or(rest),
        output.unwrap_or(0),
    )
    .cache_read(cached)
    .cache_creation(written);
    usage.reasoning_output_tokens = extra.number("reasoning_tokens");
    Some(usage)
}
