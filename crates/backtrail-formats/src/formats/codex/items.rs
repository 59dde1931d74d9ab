//! The items of a conversation, as Codex sends them to the model and writes them down.

use backtrail::{Block, Fields, Json, Message, Role, Text, Thinking, ToolResult, ToolUse};

use super::content::{blocks, context_directory, is_meta, output};
use crate::formats::pieces::mark_meta;
use crate::json::{Object, is_string, list_of, text_of};

/// What an item says.
#[derive(Debug)]
pub(super) enum Spoken {
    /// A message of somebody: a person, the model, or whoever instructs it.
    Message(Message),
    /// A tool is called.
    Call(Message),
    /// A tool answers, by the id of the call.
    Answer(ToolResult),
    /// Known, and of no interest here.
    Nothing,
    /// Not known.
    Unknown,
}

/// Reads an item. What `key` returns stands in for an id that it should have.
pub(super) fn read(kind: &str, payload: &Object, key: &dyn Fn() -> String) -> Spoken {
    match kind {
        "message" => message(payload).map_or(Spoken::Unknown, Spoken::Message),
        "agent_message" => Spoken::Message(between_agents(payload)),
        "reasoning" => Spoken::Message(Message::assistant([reasoning(payload)])),
        "function_call" | "tool_call" => call(payload, "arguments", "function", key),
        "custom_tool_call" => call(payload, "input", "custom", key),
        "local_shell_call" => call(payload, "action", "local_shell", key),
        "web_search_call" => call(payload, "action", "web_search", key),
        "tool_search_call" => call(payload, "arguments", "tool_search", key),
        "image_generation_call" => image(payload, key),
        "function_call_output" | "custom_tool_call_output" | "tool_result" | "function_result" => {
            answer(payload, &["output", "result"])
        }
        "tool_search_output" => answer(payload, &["tools", "output"]),
        // A summary that only the provider can read, and states of things.
        "compaction" | "context_compaction" | "compaction_summary" | "compaction_trigger"
        | "ghost_snapshot" | "additional_tools" | "other" => Spoken::Nothing,
        _ => Spoken::Unknown,
    }
}

/// Reads a message.
pub(super) fn message(payload: &Object) -> Option<Message> {
    let content = payload.get("content").or_else(|| payload.get("message"))?;
    let blocks = blocks(content);
    let role = payload.string("role")?;
    let role = match role.as_ref() {
        "developer" | "system" => Role::System,
        role => Role::from(role),
    };
    let meta = role == Role::User && is_meta(payload, &blocks);
    let mut message = Message::new(role, blocks);
    if meta {
        mark_meta(&mut message);
    }
    Some(message)
}

/// Returns whether a message is a person's: so much as is needed to look ahead.
pub(super) fn is_prompt(payload: &Object) -> bool {
    message(payload).is_some_and(|message| message.is_prompt())
}

/// Returns the directory that a message of the agent's own names.
pub(super) fn directory(message: &Message) -> Option<&str> {
    message
        .is_meta()
        .then(|| context_directory(&message.blocks))
        .flatten()
}

/// Reads what one agent says to another.
pub(super) fn between_agents(payload: &Object) -> Message {
    let mut content = payload.get("content").map_or_else(Vec::new, blocks);
    if let Some(encrypted) = payload.get("encrypted_content")
        && is_string(encrypted)
        && let Ok(block) = Json::new(format!(
            "{{\"type\":\"encrypted_content\",\"encrypted_content\":{encrypted}}}"
        ))
    {
        content.push(Block::Other(block));
    }
    let mut message = Message::new(Role::User, content);
    mark_meta(&mut message);
    for name in ["author", "recipient"] {
        if let Some(who) = payload.get(name).filter(|who| is_string(who)) {
            message.extra.push(name, who.clone());
        }
    }
    message
}

/// Reads what was spoken, by a person or by the model. `None` for what is no speech.
pub(super) fn spoken(payload: &Object) -> Option<Message> {
    let text = payload
        .text("text")
        .filter(|text| !text.trim().is_empty())?;
    let role = Role::from(payload.string("role")?.as_ref());
    Some(Message::new(role, [Block::text(text)]))
}

fn reasoning(payload: &Object) -> Block {
    let mut thoughts = texts(payload, "summary");
    thoughts.extend(texts(payload, "content"));
    let mut extra = Fields::default();
    if let Some(encrypted) = payload
        .get("encrypted_content")
        .filter(|json| is_string(json))
    {
        extra.push("encrypted_content", encrypted.clone());
    }
    Block::Thinking(Thinking {
        thinking: join(thoughts),
        signature: None,
        extra,
    })
}

/// Returns the texts of a list, whose elements are strings or have one.
pub(super) fn texts(payload: &Object, name: &str) -> Vec<Text> {
    let text = |part: &Json| text_of(part).or_else(|| Object::of(part)?.text("text"));
    let Some(list) = payload.list(name) else {
        return Vec::new();
    };
    list.iter().filter_map(text).collect()
}

/// Joins texts by blank lines. One alone stays as it is, byte for byte.
pub(super) fn join(mut texts: Vec<Text>) -> Text {
    match texts.len() {
        1 => texts.remove(0),
        _ => {
            let texts: Vec<&str> = texts.iter().map(Text::as_str).collect();
            texts.join("\n\n").into()
        }
    }
}

/// Reads a call, whose input is in the field `input`.
fn call(payload: &Object, input: &str, tool: &str, key: &dyn Fn() -> String) -> Spoken {
    let name = payload
        .text("name")
        .or_else(|| payload.object("function")?.text("name"));
    let id = payload.text("call_id").or_else(|| payload.text("id"));
    let mut extra = Fields::default();
    if let Some(space) = payload.get("namespace").filter(|json| is_string(json)) {
        extra.push("namespace", space.clone());
    }
    let Some(input) = input_of(payload.get(input)) else {
        return Spoken::Unknown;
    };
    Spoken::Call(Message::assistant([Block::ToolUse(ToolUse {
        id: id.unwrap_or_else(|| key().into()),
        name: name.unwrap_or_else(|| tool.into()),
        input,
        extra,
    })]))
}

/// Returns an input. One that is an object in a string is taken out of it.
fn input_of(json: Option<&Json>) -> Option<Json> {
    let Some(json) = json else {
        return Json::new("{}").ok();
    };
    if let Some(text) = text_of(json)
        && text.trim_start().starts_with('{')
        && !text.is_lossy()
        && let Ok(inner) = Json::new(text.trim())
    {
        return Some(inner);
    }
    Some(json.clone())
}

fn image(payload: &Object, key: &dyn Fn() -> String) -> Spoken {
    let prompt = payload.get("revised_prompt").filter(|json| is_string(json));
    let input = prompt.map_or_else(
        || "{}".to_owned(),
        |prompt| format!("{{\"prompt\":{prompt}}}"),
    );
    let Ok(input) = Json::new(input) else {
        return Spoken::Unknown;
    };
    let id = payload.text("call_id").or_else(|| payload.text("id"));
    let mut message = Message::assistant([Block::ToolUse(ToolUse {
        id: id.unwrap_or_else(|| key().into()),
        name: "image_generation".into(),
        input,
        extra: Fields::default(),
    })]);
    if let Some(result) = payload.text("result").filter(|result| !result.is_empty())
        && let Ok(image) = Block::image("image/png", result)
    {
        message.blocks.push(image);
    }
    Spoken::Call(message)
}

fn answer(payload: &Object, names: &[&str]) -> Spoken {
    let id = payload.text("call_id").or_else(|| payload.text("id"));
    let json = names.iter().find_map(|name| payload.get(name));
    let (output, failed) = match json {
        Some(json) if names[0] == "tools" && list_of(json).is_some() => (json.clone(), false),
        Some(json) => output(json),
        None => match Json::new("\"\"") {
            Ok(nothing) => (nothing, false),
            Err(_) => return Spoken::Unknown,
        },
    };
    let failed = failed
        || payload
            .get("success")
            .is_some_and(|json| json.as_str() == "false");
    Spoken::Answer(ToolResult {
        tool_use_id: id.unwrap_or_default(),
        tool_name: payload.text("name"),
        output,
        is_error: failed,
        extra: Fields::default(),
    })
}
