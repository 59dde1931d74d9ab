//! Anthropic Messages.

use serde_json::{Value, json};

use super::{event, halves, list, string, text_of};
use crate::conversation::{Call, Conversation, Entry, Tool};
use crate::exchange::Answer;

pub(super) fn read(body: &Value) -> Conversation {
    let mut entries = Vec::new();
    let system = text_of(&body["system"]);
    if !system.is_empty() {
        entries.push(Entry::System(system));
    }
    for message in list(&body["messages"]) {
        let is_user = message["role"] == "user";
        match &message["content"] {
            Value::String(text) => entries.push(said(is_user, text)),
            content => entries.extend(
                list(content)
                    .iter()
                    .filter_map(|block| entry(is_user, block)),
            ),
        }
    }
    Conversation {
        stream: body["stream"] == true,
        model: string(&body["model"]),
        tools: list(&body["tools"]).iter().map(tool).collect(),
        entries,
    }
}

fn said(is_user: bool, text: &str) -> Entry {
    let text = text.to_owned();
    if is_user {
        Entry::User(text)
    } else {
        Entry::Assistant(text)
    }
}

fn entry(is_user: bool, block: &Value) -> Option<Entry> {
    Some(match block["type"].as_str()? {
        "text" => said(is_user, block["text"].as_str()?),
        "thinking" => Entry::Thinking(string(&block["thinking"])),
        "tool_use" => Entry::Call(Call {
            id: string(&block["id"]),
            name: string(&block["name"]),
            arguments: block["input"].clone(),
        }),
        "tool_result" => Entry::Result {
            id: string(&block["tool_use_id"]),
            text: text_of(&block["content"]),
        },
        _ => return None,
    })
}

fn tool(tool: &Value) -> Tool {
    Tool {
        name: string(&tool["name"]),
        schema: tool["input_schema"].clone(),
    }
}

pub(super) fn whole(request: &Conversation, answer: &Answer) -> Value {
    let mut content = Vec::new();
    if let Some(thinking) = &answer.thinking {
        let signature = format!("signature-{}", answer.number);
        content.push(json!({"type": "thinking", "thinking": thinking, "signature": signature}));
    }
    if !answer.text.is_empty() {
        content.push(json!({"type": "text", "text": answer.text}));
    }
    for call in &answer.calls {
        content.push(
            json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}),
        );
    }
    let stop = if answer.calls.is_empty() {
        "end_turn"
    } else {
        "tool_use"
    };
    let usage = answer.usage;
    json!({
        "id": format!("msg_{}", answer.number), "type": "message", "role": "assistant", "model": request.model,
        "content": content, "stop_reason": stop, "stop_sequence": null,
        "usage": {"input_tokens": usage.input, "output_tokens": usage.output,
            "cache_read_input_tokens": usage.cache_read, "cache_creation_input_tokens": usage.cache_write},
    })
}

pub(super) fn events(whole: &Value) -> String {
    let mut start = whole.clone();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    let mut text = named(json!({"type": "message_start", "message": start}));
    for (index, block) in list(&whole["content"]).iter().enumerate() {
        text += &block_events(index, block);
    }
    let delta = json!({"stop_reason": whole["stop_reason"], "stop_sequence": null});
    text += &named(json!({"type": "message_delta", "delta": delta, "usage": whole["usage"]}));
    text + &named(json!({"type": "message_stop"}))
}

fn block_events(index: usize, block: &Value) -> String {
    let mut start = block.clone();
    let mut deltas = Vec::new();
    match block["type"].as_str().unwrap_or_default() {
        "thinking" => {
            start["thinking"] = json!("");
            start["signature"] = json!("");
            deltas.push(json!({"type": "thinking_delta", "thinking": block["thinking"]}));
            deltas.push(json!({"type": "signature_delta", "signature": block["signature"]}));
        }
        "tool_use" => {
            start["input"] = json!({});
            let input = block["input"].to_string();
            deltas.extend(
                halves(&input)
                    .map(|part| json!({"type": "input_json_delta", "partial_json": part})),
            );
        }
        _ => {
            start["text"] = json!("");
            let text = string(&block["text"]);
            deltas.extend(halves(&text).map(|part| json!({"type": "text_delta", "text": part})));
        }
    }
    let mut text =
        named(json!({"type": "content_block_start", "index": index, "content_block": start}));
    for delta in deltas {
        text += &named(json!({"type": "content_block_delta", "index": index, "delta": delta}));
    }
    text + &named(json!({"type": "content_block_stop", "index": index}))
}

/// Returns an event that is named by its type.
fn named(data: Value) -> String {
    event(data["type"].as_str(), &data)
}
