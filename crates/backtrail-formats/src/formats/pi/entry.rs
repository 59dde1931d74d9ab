//! What an entry says.

use backtrail::{Block, Fields, Json, Message, Role, Thinking, ToolResult, ToolUse, Usage};

use super::super::pieces::{hash, media, meta, meta_text, other, output, text_with};
use crate::error::Result;
use crate::json::{Object, is_string, list_of, text_of};
use crate::told::{About, Item, Said, Sink, Summarised, Used};

/// What an entry is, as far as the tree needs to know.
#[derive(Debug)]
pub(super) enum Kind {
    /// It says something: one message.
    Says,
    /// It sums up what came before.
    Summary,
    /// It names the session.
    Title(String),
    /// It says at which entry the conversation stands.
    Leaf,
    /// It says nothing that is told.
    Silent,
    Unknown(String),
    Damaged(&'static str),
}

/// Returns what an entry is.
pub(super) fn kind(object: &Object) -> Kind {
    let Some(name) = object.string("type") else {
        return Kind::Damaged("an entry without a type");
    };
    match name.as_ref() {
        "message" => match object.object("message") {
            Some(message) => kind_of_message(&message),
            None => Kind::Damaged("a message entry without a message"),
        },
        "compaction" => Kind::Summary,
        "branch_summary" | "custom_message" => Kind::Says,
        "session_info" => match object.string("name") {
            Some(name) if !name.trim().is_empty() => Kind::Title(name.into_owned()),
            _ => Kind::Silent,
        },
        "leaf" => Kind::Leaf,
        "model_change" | "thinking_level_change" | "label" | "custom" => Kind::Silent,
        other => Kind::Unknown(other.to_owned()),
    }
}

fn kind_of_message(message: &Object) -> Kind {
    match message.string("role").as_deref() {
        Some(
            "user" | "assistant" | "toolResult" | "bashExecution" | "custom" | "hookMessage"
            | "branchSummary" | "compactionSummary",
        ) => Kind::Says,
        Some(role) => Kind::Unknown(format!("message: {role}")),
        None => Kind::Damaged("a message without a role"),
    }
}

/// Tells entries to a sink.
#[derive(Debug)]
pub(super) struct Teller<'s> {
    session: &'s str,
    /// The model, by the last entry that was told.
    pub(super) model: Option<String>,
}

impl<'s> Teller<'s> {
    pub(super) fn new(session: &'s str, model: Option<String>) -> Self {
        Self { session, model }
    }

    /// Tells an entry.
    pub(super) fn tell(
        &mut self,
        entry: &Object,
        key: &str,
        keep: u64,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        match (kind(entry), entry.string("type").as_deref()) {
            (Kind::Summary, _) => sink.item(summary(entry, key, keep)),
            (Kind::Says, Some("message")) => self.say(entry, key, sink),
            (Kind::Says, _) => self.say_aside(entry, key, sink),
            (_, Some("model_change")) => self.set_model(entry.string("modelId").as_deref(), sink),
            _ => Ok(()),
        }
    }

    fn set_model(&mut self, model: Option<&str>, sink: &mut dyn Sink) -> Result<()> {
        match model {
            Some(model) if !model.is_empty() && self.model.as_deref() != Some(model) => {
                self.model = Some(model.to_owned());
                sink.about(About {
                    model: self.model.clone(),
                    ..About::default()
                })
            }
            _ => Ok(()),
        }
    }

    /// Tells a message.
    fn say(&mut self, entry: &Object, key: &str, sink: &mut dyn Sink) -> Result<()> {
        let Some(said) = entry.object("message") else {
            return Ok(());
        };
        let Some(mut message) = message(&said) else {
            return Ok(());
        };
        let is_reply = message.role == Role::Assistant;
        let usage = message.usage.take();
        let at = entry.time("timestamp").or_else(|| said.time("timestamp"));
        let response = || self.response(&said, key);
        let mut item = Said::new(key, message);
        item.at = at;
        if is_reply {
            item.model = said.string("model").map(|model| model.into_owned());
            item.cost_usd = cost(&said);
            item.response_id = usage.as_ref().map(|_| response());
            item.message.usage = usage;
            self.set_model(item.model.clone().as_deref(), sink)?;
            return sink.item(Item::Said(item));
        }
        // What a tool used by itself, a sub-agent for one.
        let used = usage.map(|usage| Used {
            key: format!("{key}/used"),
            at,
            response_id: response(),
            model: said.string("model").map(|model| model.into_owned()),
            usage,
            duration_ms: None,
            cost_usd: cost(&said),
        });
        sink.item(Item::Said(item))?;
        used.map_or(Ok(()), |used| sink.item(Item::Used(used)))
    }

    /// Names a response. The same entry in a session that was copied has the same name,
    /// so that it counts once; two responses to which a provider gave one id have not.
    fn response(&self, said: &Object, key: &str) -> String {
        let time = said.get("timestamp").map(Json::as_str);
        match (said.string("responseId"), time) {
            (Some(id), Some(time)) if !id.is_empty() => format!("{id}@{time}"),
            (_, Some(time)) => {
                let model = said.get("model").map_or("", Json::as_str);
                let usage = said.get("usage").map_or("", Json::as_str);
                let all = format!("{time}\n{model}\n{usage}");
                format!("pi-{}", hash(all.as_bytes(), 24))
            }
            _ => format!("{}#{key}", self.session),
        }
    }

    /// Tells what is no message of the conversation, but stands in the model's context.
    fn say_aside(&self, entry: &Object, key: &str, sink: &mut dyn Sink) -> Result<()> {
        let at = entry.time("timestamp");
        let message = match entry.text("summary") {
            Some(summary) => meta_text(summary),
            None => meta(Message::new(Role::User, content(entry.get("content")))),
        };
        let mut said = Said::new(key, message);
        said.at = at;
        sink.item(Item::Said(said))?;
        let Some(usage) = entry.object("usage").and_then(|usage| self::usage(&usage)) else {
            return Ok(());
        };
        sink.item(Item::Used(Used {
            key: format!("{key}/used"),
            at,
            response_id: self.response(entry, key),
            model: None,
            usage,
            duration_ms: None,
            cost_usd: cost(entry),
        }))
    }
}

fn summary(entry: &Object, key: &str, keep: u64) -> Item {
    let summary = entry.text("summary").unwrap_or_default();
    Item::Summarised(Summarised {
        covers: None,
        key: key.to_owned(),
        at: entry.time("timestamp"),
        summary: summary.as_str().to_owned(),
        keep,
        model: None,
        usage: entry.object("usage").and_then(|usage| self::usage(&usage)),
    })
}

/// Reads a message of any role.
pub(super) fn message(said: &Object) -> Option<Message> {
    let mut message = match said.string("role")?.as_ref() {
        "user" => {
            let mut blocks = content(said.get("content"));
            blocks.extend(attachments(said));
            Message::new(Role::User, blocks)
        }
        "assistant" => reply(said),
        "toolResult" => Message::tool_result(result(said)),
        "bashExecution" => meta_text(command(said)),
        "custom" | "hookMessage" => meta(Message::new(Role::User, content(said.get("content")))),
        "branchSummary" | "compactionSummary" => {
            meta_text(said.text("summary").unwrap_or_default())
        }
        _ => return None,
    };
    message.usage = said.object("usage").and_then(|used| usage(&used));
    Some(message)
}

fn reply(said: &Object) -> Message {
    let mut message = Message::new(Role::Assistant, content(said.get("content")));
    for (name, kept) in [("stopReason", "stop_reason"), ("errorMessage", "error")] {
        let worth = |value: &&Json| !matches!(value.as_str(), "null" | "\"stop\"" | "\"toolUse\"");
        if let Some(value) = said.get(name).filter(worth) {
            message.extra.push(kept, value.clone());
        }
    }
    message
}

fn result(said: &Object) -> ToolResult {
    let blocks = content(said.get("content"));
    ToolResult {
        tool_use_id: said.text("toolCallId").unwrap_or_default(),
        tool_name: said.text("toolName"),
        output: output(&blocks),
        is_error: said.is_true("isError"),
        extra: Fields::default(),
    }
}

/// Returns a command that the person ran, with what it printed.
fn command(said: &Object) -> String {
    let command = said.text("command").unwrap_or_default();
    let printed = said.text("output").unwrap_or_default();
    match said.number("exitCode") {
        Some(code) if code != 0 => format!("$ {command}\n{printed}\n(exit code {code})"),
        _ => format!("$ {command}\n{printed}"),
    }
}

/// Reads a content: a string, or a list of blocks.
fn content(content: Option<&Json>) -> Vec<Block> {
    let Some(content) = content else {
        return Vec::new();
    };
    if is_string(content) {
        return text_of(content).map(Block::text).into_iter().collect();
    }
    let blocks = list_of(content).unwrap_or_default();
    blocks
        .iter()
        .map(|json| block(json).unwrap_or_else(|| other("pi", json)))
        .collect()
}

fn block(json: &Json) -> Option<Block> {
    let mut object = Object::of(json)?;
    Some(match object.string("type")?.as_ref() {
        "text" => {
            let text = object.text("text")?;
            text_with(text, "signature", object.take("textSignature"))
        }
        "thinking" => Block::Thinking(Thinking {
            thinking: object.text("thinking")?,
            signature: object.text("thinkingSignature"),
            extra: Fields::default(),
        }),
        "toolCall" => Block::ToolUse(call(&object)?),
        "image" => {
            let data = object.get("data").filter(|data| is_string(data))?;
            media(object.text("mimeType")?, data.clone())
        }
        _ => return None,
    })
}

fn call(object: &Object) -> Option<ToolUse> {
    let mut extra = Fields::default();
    if let Some(signature) = object.get("thoughtSignature") {
        extra.push("signature", signature.clone());
    }
    let empty = || Json::new("{}").expect("this is JSON");
    Some(ToolUse {
        id: object.text("id").unwrap_or_default(),
        name: object.text("name")?,
        input: object.get("arguments").cloned().unwrap_or_else(empty),
        extra,
    })
}

/// Reads the files that version 1 kept beside a prompt.
fn attachments(said: &Object) -> Vec<Block> {
    let attached = said.list("attachments").unwrap_or_default();
    let read = |json: &Json| {
        let object = Object::of(json)?;
        let data = object.get("content").filter(|data| is_string(data))?;
        Some(media(object.text("mimeType")?, data.clone()))
    };
    let kept = |json: &Json| read(json).unwrap_or_else(|| other("pi_attachment", json));
    attached.iter().map(kept).collect()
}

/// Reads what a call used: its input does not count what came from the cache.
fn usage(used: &Object) -> Option<Usage> {
    let count = |name: &str| used.number(name);
    let any = ["input", "output", "cacheRead", "cacheWrite"];
    any.iter().any(|name| count(name).is_some()).then(|| {
        let mut usage = Usage::new(count("input").unwrap_or(0), count("output").unwrap_or(0))
            .cache_read(count("cacheRead").unwrap_or(0))
            .cache_creation(count("cacheWrite").unwrap_or(0));
        usage.reasoning_output_tokens = count("reasoning");
        usage
    })
}

/// Returns what the agent says a call cost.
pub(super) fn cost(said: &Object) -> Option<f64> {
    let cost = said.object("usage")?.object("cost")?.float("total")?;
    (cost.is_finite() && cost >= 0.0).then_some(cost)
}
