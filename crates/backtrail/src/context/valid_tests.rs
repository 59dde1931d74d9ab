//! Checks contexts as providers do, independently of the renderer: each function parses a
//! context as its provider would and returns the first error.

use std::collections::HashSet;

use serde_json::Value;

use super::Shape;
use crate::message::{Block, Message, Role};

type Check = Result<(), String>;

/// Returns the error of a context, if any.
pub(super) fn check(shape: Shape, json: &str) -> Check {
    if shape == Shape::Neutral {
        return neutral(json);
    }
    // This also fails on lone surrogates and on nesting that is too deep.
    let context: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
    match shape {
        Shape::Anthropic => anthropic(&context),
        Shape::OpenAi => openai(&context),
        _ => chat(&context),
    }
}

fn ensure(holds: bool, what: &str, at: &Value) -> Check {
    match holds {
        true => Ok(()),
        false => Err(format!("{what}: {at}")),
    }
}

fn keys(object: &Value, allowed: &[&str]) -> Check {
    let object_keys = object.as_object().ok_or("not an object")?.keys();
    for key in object_keys {
        ensure(allowed.contains(&key.as_str()), "unknown field", object)?;
    }
    Ok(())
}

fn list<'v>(value: &'v Value, key: &str) -> Result<&'v [Value], String> {
    let found = value[key].as_array().map(Vec::as_slice);
    found.ok_or_else(|| format!("no list `{key}`: {value}"))
}

fn string<'v>(value: &'v Value, key: &str) -> Result<&'v str, String> {
    let found = value[key].as_str();
    found.ok_or_else(|| format!("no string `{key}`: {value}"))
}

fn said(value: &Value, key: &str) -> Check {
    ensure(!string(value, key)?.trim().is_empty(), "blank", value)
}

fn word(value: &Value, key: &str, max: usize) -> Check {
    let text = string(value, key)?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let fits = (1..=max).contains(&text.len()) && text.chars().all(allowed);
    ensure(fits, "refused id or name", value)
}

fn base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '+' || c == '/';
    text.len() - body.len() <= 2
        && text.len().is_multiple_of(4)
        && body.chars().all(allowed)
        && !body.is_empty()
}

const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

fn anthropic(context: &Value) -> Check {
    keys(context, &["system", "messages"])?;
    if context.get("system").is_some() {
        ensure(!list(context, "system")?.is_empty(), "no text", context)?;
        for block in list(context, "system")? {
            ensure(block["type"] == "text", "not text", block)?;
            said(block, "text")?;
        }
    }
    let messages = list(context, "messages")?;
    if let Some(first) = messages.first() {
        ensure(
            first["role"] == "user",
            "does not start with the user",
            first,
        )?;
    }
    let mut ids = HashSet::new();
    // The calls that the next message must answer.
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        keys(message, &["role", "content"])?;
        ensure(!list(message, "content")?.is_empty(), "empty", message)?;
        anthropic_answers(message, &open)?;
        open = match string(message, "role")? {
            "user" => Vec::new(),
            "assistant" => anthropic_assistant(message, &mut ids)?,
            _ => return Err(format!("role: {message}")),
        };
        for block in list(message, "content")? {
            anthropic_block(block, message["role"] == "user")?;
        }
    }
    ensure(open.is_empty(), "unanswered at the end", context)
}

fn anthropic_answers(message: &Value, open: &[&str]) -> Check {
    let content = list(message, "content")?;
    let is_result = |block: &&Value| block["type"] == "tool_result";
    let results: Vec<_> = content.iter().filter(is_result).collect();
    let answered: Result<Vec<_>, _> = results.iter().map(|r| string(r, "tool_use_id")).collect();
    ensure(answered? == open, "calls and results differ", message)?;
    let first = content.iter().take_while(is_result).count();
    ensure(first == results.len(), "a result after text", message)
}

fn anthropic_assistant<'v>(
    message: &'v Value,
    ids: &mut HashSet<&'v str>,
) -> Result<Vec<&'v str>, String> {
    let content = list(message, "content")?;
    let last = content.last().ok_or("empty")?["type"].as_str();
    let ends = matches!(last, Some("thinking" | "redacted_thinking"));
    ensure(!ends, "ends with thinking", message)?;
    let mut open = Vec::new();
    for call in content.iter().filter(|block| block["type"] == "tool_use") {
        let id = string(call, "id")?;
        ensure(ids.insert(id), "an id twice", call)?;
        open.push(id);
    }
    Ok(open)
}

fn anthropic_block(block: &Value, from_user: bool) -> Check {
    match (string(block, "type")?, from_user) {
        ("text", _) => {
            keys(block, &["type", "text"])?;
            said(block, "text")
        }
        ("image" | "document", true) => anthropic_medium(block),
        ("tool_result", true) => anthropic_result(block),
        ("thinking", false) => {
            keys(block, &["type", "thinking", "signature"])?;
            string(block, "thinking")?;
            said(block, "signature")
        }
        ("redacted_thinking", false) => said(block, "data"),
        ("tool_use", false) => {
            keys(block, &["type", "id", "name", "input"])?;
            word(block, "id", 64)?;
            word(block, "name", 128)?;
            ensure(block["input"].is_object(), "input is not an object", block)
        }
        _ => Err(format!("block out of place: {block}")),
    }
}

fn anthropic_medium(block: &Value) -> Check {
    let source = &block["source"];
    ensure(source["type"] == "base64", "source", block)?;
    ensure(base64(string(source, "data")?), "not Base64", block)?;
    let media_type = string(source, "media_type")?;
    let fits = match string(block, "type")? {
        "image" => IMAGES.contains(&media_type),
        _ => media_type == "application/pdf",
    };
    ensure(fits, "media type", block)
}

fn anthropic_result(block: &Value) -> Check {
    keys(block, &["type", "tool_use_id", "content", "is_error"])?;
    match &block["content"] {
        Value::Null => Ok(()),
        Value::String(text) => ensure(!text.trim().is_empty(), "blank", block),
        Value::Array(content) => {
            ensure(!content.is_empty(), "empty", block)?;
            for inner in content {
                ensure(inner["type"] != "tool_result", "nested", block)?;
                let is_text = inner["type"] == "text";
                ensure(
                    is_text || block["is_error"] != true,
                    "an error is text",
                    block,
                )?;
                anthropic_block(inner, true)?;
            }
            Ok(())
        }
        _ => Err(format!("content: {block}")),
    }
}

fn openai(context: &Value) -> Check {
    keys(context, &["instructions", "input"])?;
    if context.get("instructions").is_some() {
        said(context, "instructions")?;
    }
    let input = list(context, "input")?;
    let (mut called, mut answered) = (HashSet::new(), HashSet::new());
    for (n, item) in input.iter().enumerate() {
        match string(item, "type")? {
            "message" => openai_message(item)?,
            "function_call" => {
                keys(item, &["type", "call_id", "name", "arguments"])?;
                word(item, "call_id", 64)?;
                word(item, "name", 64)?;
                arguments(item)?;
                ensure(called.insert(string(item, "call_id")?), "an id twice", item)?;
            }
            "function_call_output" => {
                let id = string(item, "call_id")?;
                ensure(called.contains(id), "orphan", item)?;
                ensure(answered.insert(id), "a second result", item)?;
                openai_output(&item["output"])?;
            }
            "reasoning" => {
                said(item, "encrypted_content")?;
                list(item, "summary")?;
                let next = input.get(n + 1).unwrap_or(&Value::Null);
                let goes_on = next["role"] == "assistant"
                    || next["type"] == "function_call"
                    || next["type"] == "reasoning";
                ensure(goes_on, "nothing follows", item)?;
            }
            _ => return Err(format!("item: {item}")),
        }
        let closed = matches!(item["type"].as_str(), Some("message"));
        ensure(
            !closed || item["role"] == "assistant" || called == answered,
            "a result is late",
            item,
        )?;
    }
    ensure(called == answered, "unanswered", context)
}

fn arguments(value: &Value) -> Check {
    let text = string(value, "arguments")?;
    let object: Value = serde_json::from_str(text).map_err(|error| format!("{error}: {text}"))?;
    ensure(object.is_object(), "arguments are not an object", value)
}

fn openai_message(item: &Value) -> Check {
    keys(item, &["type", "role", "content"])?;
    let content = list(item, "content")?;
    ensure(!content.is_empty(), "empty", item)?;
    for part in content {
        match (string(item, "role")?, string(part, "type")?) {
            ("user", "input_image" | "input_file") => openai_medium(part)?,
            ("user" | "developer", "input_text") | ("assistant", "output_text") => {
                said(part, "text")?;
            }
            _ => return Err(format!("part out of place: {item}")),
        }
    }
    Ok(())
}

fn openai_output(output: &Value) -> Check {
    if output.is_string() {
        return Ok(());
    }
    let content = output.as_array().ok_or("output")?;
    ensure(!content.is_empty(), "empty", output)?;
    for part in content {
        match string(part, "type")? {
            "input_text" => said(part, "text")?,
            _ => openai_medium(part)?,
        }
    }
    Ok(())
}

fn openai_medium(part: &Value) -> Check {
    match string(part, "type")? {
        "input_image" => image_url(string(part, "image_url")?),
        "input_file" => {
            said(part, "filename")?;
            let data = string(part, "file_data")?;
            let data = data.strip_prefix("data:application/pdf;base64,");
            ensure(data.is_some_and(base64), "file", part)
        }
        _ => Err(format!("medium: {part}")),
    }
}

fn image_url(url: &str) -> Check {
    let fits = IMAGES.iter().any(|media_type| {
        let data = url.strip_prefix(&format!("data:{media_type};base64,"));
        data.is_some_and(base64)
    });
    ensure(fits, "image", &Value::from(url))
}

fn chat(context: &Value) -> Check {
    keys(context, &["messages"])?;
    let mut ids = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    for message in list(context, "messages")? {
        if message["role"] == "tool" {
            keys(message, &["role", "tool_call_id", "content"])?;
            string(message, "content")?;
            let id = string(message, "tool_call_id")?;
            let at = open.iter().position(|call| *call == id);
            open.remove(at.ok_or_else(|| format!("orphan: {message}"))?);
            continue;
        }
        ensure(open.is_empty(), "unanswered", message)?;
        keys(message, &["role", "content", "tool_calls"])?;
        if message.get("tool_calls").is_some() {
            ensure(message["role"] == "assistant", "whose call", message)?;
            for call in list(message, "tool_calls")? {
                open.push(chat_call(call)?);
                ensure(ids.insert(string(call, "id")?), "an id twice", call)?;
            }
        }
        let may_be_null = !open.is_empty();
        chat_content(message, may_be_null)?;
    }
    ensure(open.is_empty(), "unanswered at the end", context)
}

fn chat_call(call: &Value) -> Result<&str, String> {
    ensure(call["type"] == "function", "type", call)?;
    word(&call["function"], "name", 64)?;
    arguments(&call["function"])?;
    let id = string(call, "id")?;
    let fits = (1..=40).contains(&id.len()) && id.chars().all(|c| c.is_ascii_graphic());
    ensure(fits, "id", call).map(|()| id)
}

fn chat_content(message: &Value, may_be_null: bool) -> Check {
    let role = string(message, "role")?;
    let known = ["system", "user", "assistant"].contains(&role);
    ensure(known, "role", message)?;
    match &message["content"] {
        Value::Null => ensure(may_be_null, "no content", message),
        Value::String(text) => ensure(!text.trim().is_empty(), "blank", message),
        Value::Array(parts) => {
            ensure(role == "user" && !parts.is_empty(), "parts", message)?;
            for part in parts {
                match string(part, "type")? {
                    "text" => said(part, "text")?,
                    "image_url" => image_url(string(&part["image_url"], "url")?)?,
                    _ => return Err(format!("part: {part}")),
                }
            }
            Ok(())
        }
        _ => Err(format!("content: {message}")),
    }
}

/// Backtrail's own form is read by its own types. No provider refuses it, but calls and
/// results must match, and nothing may be empty.
fn neutral(json: &str) -> Check {
    #[derive(serde::Deserialize)]
    struct Neutral {
        messages: Vec<Message>,
    }
    let context: Neutral = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let mut ids = HashSet::new();
    let mut open: Vec<String> = Vec::new();
    for message in &context.messages {
        let (mut calls, mut results) = (Vec::new(), Vec::new());
        for block in &message.blocks {
            match block {
                Block::ToolUse(call) => calls.push(call.id.to_string()),
                Block::ToolResult(result) => results.push(result.tool_use_id.to_string()),
                Block::Text(text) if text.text.trim().is_empty() => return Err("blank".into()),
                _ => {}
            }
        }
        let wrong = |what: &str| Err(format!("{what}: {message:?}"));
        if message.blocks.is_empty() || message.usage.is_some() {
            return wrong("empty, or with usage");
        }
        if results != open || (results.is_empty() == (message.role == Role::Tool)) {
            return wrong("calls and results differ");
        }
        if !calls.is_empty() && message.role != Role::Assistant {
            return wrong("whose call");
        }
        if !calls.iter().all(|id| ids.insert(id.clone())) {
            return wrong("an id twice");
        }
        open = calls;
    }
    match open.is_empty() {
        true => Ok(()),
        false => Err("unanswered at the end".into()),
    }
}

#[test]
fn the_checks_refuse_what_a_provider_refuses() {
    let call = r#"{"type":"tool_use","id":"a","name":"n","input":{}}"#;
    let result = r#"{"type":"tool_result","tool_use_id":"a"}"#;
    let user = r#"{"role":"user","content":[{"type":"text","text":"x"}]}"#;
    let dangling = format!(r#"{{"messages":[{user},{{"role":"assistant","content":[{call}]}}]}}"#);
    let orphan = format!(r#"{{"messages":[{{"role":"user","content":[{result}]}}]}}"#);
    let twice = format!(
        r#"{{"messages":[{user},{{"role":"assistant","content":[{call},{call}]}},{{"role":"user","content":[{result},{result}]}}]}}"#
    );
    let good = format!(
        r#"{{"messages":[{user},{{"role":"assistant","content":[{call}]}},{{"role":"user","content":[{result}]}}]}}"#
    );
    check(Shape::Anthropic, &good).unwrap();
    let wrong_order = good.replacen(
        user,
        r#"{"role":"assistant","content":[{"type":"text","text":"x"}]}"#,
        1,
    );
    let half = good.replace("\"x\"", "\"\\ud83d\"");
    for bad in [dangling, orphan, twice, wrong_order, half] {
        assert!(check(Shape::Anthropic, &bad).is_err(), "{bad}");
    }
    let bad = [
        r#"{"input":[{"type":"function_call","call_id":"a","name":"n","arguments":"{}"}]}"#,
        r#"{"input":[{"type":"function_call_output","call_id":"a","output":""}]}"#,
        r#"{"input":[{"type":"reasoning","summary":[],"encrypted_content":"e"}]}"#,
        r#"{"input":[{"type":"message","role":"user","content":[]}]}"#,
    ];
    for bad in bad {
        assert!(check(Shape::OpenAi, bad).is_err(), "{bad}");
    }
    let bad = [
        r#"{"messages":[{"role":"tool","tool_call_id":"a","content":""}]}"#,
        r#"{"messages":[{"role":"assistant","content":null}]}"#,
        r#"{"messages":[{"role":"developer","content":"x"}]}"#,
        r#"{"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"n","arguments":"{}"}}]}]}"#,
    ];
    for bad in bad {
        assert!(check(Shape::OpenAiChat, bad).is_err(), "{bad}");
    }
}
