//! Gemini.

use serde_json::{Value, json};

use super::{event, list, string, text_of};
use crate::conversation::{Call, Conversation, Entry, Tool};
use crate::exchange::Answer;

pub(super) fn read(path: &str, body: &Value) -> Conversation {
    let mut entries = Vec::new();
    let system = text_of(&body["systemInstruction"]["parts"]);
    if !system.is_empty() {
        entries.push(Entry::System(system));
    }
    for content in list(&body["contents"]) {
        let is_user = content["role"] != "model";
        entries.extend(
            list(&content["parts"])
                .iter()
                .filter_map(|part| entry(is_user, part)),
        );
    }
    let declarations = list(&body["tools"]).iter();
    let declarations = declarations.flat_map(|tool| list(&tool["functionDeclarations"]));
    Conversation {
        stream: path.contains(":streamGenerateContent"),
        model: model(path),
        tools: declarations.map(tool).collect(),
        entries,
    }
}

/// Returns the model in `/v1beta/models/MODEL:generateContent`.
fn model(path: &str) -> String {
    let rest = path.rsplit('/').next().unwrap_or_default();
    rest.split(':').next().unwrap_or_default().to_owned()
}

fn entry(is_user: bool, part: &Value) -> Option<Entry> {
    if let Some(call) = part.get("functionCall") {
        return Some(Entry::Call(Call {
            id: string(&call["id"]),
            name: string(&call["name"]),
            arguments: call["args"].clone(),
        }));
    }
    if let Some(response) = part.get("functionResponse") {
        return Some(Entry::Result {
            id: string(&response["id"]),
            text: result(&response["response"]),
        });
    }
    let text = part["text"].as_str()?.to_owned();
    Some(match (is_user, part["thought"] == true) {
        (true, _) => Entry::User(text),
        (false, true) => Entry::Thinking(text),
        (false, false) => Entry::Assistant(text),
    })
}

fn result(response: &Value) -> String {
    let text = ["output", "error", "result"]
        .iter()
        .find_map(|field| response[field].as_str());
    text.map_or_else(|| response.to_string(), str::to_owned)
}

fn tool(declaration: &Value) -> Tool {
    let schema = declaration
        .get("parametersJsonSchema")
        .or(declaration.get("parameters"));
    Tool {
        name: string(&declaration["name"]),
        schema: schema.cloned().unwrap_or_default(),
    }
}

pub(super) fn whole(request: &Conversation, answer: &Answer) -> Value {
    let mut parts = Vec::new();
    if let Some(thinking) = &answer.thinking {
        parts.push(json!({"text": thinking, "thought": true}));
    }
    if !answer.text.is_empty() {
        parts.push(json!({"text": answer.text}));
    }
    for call in &answer.calls {
        let signature = format!("c2lnbmF0dXJl{:04}", answer.number);
        parts.push(
            json!({"functionCall": {"id": call.id, "name": call.name, "args": call.arguments},
            "thoughtSignature": signature}),
        );
    }
    let usage = answer.usage;
    let input = usage.input + usage.cache_read;
    json!({
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": input, "cachedContentTokenCount": usage.cache_read,
            "candidatesTokenCount": usage.output - usage.reasoning, "thoughtsTokenCount": usage.reasoning,
            "totalTokenCount": input + usage.output},
        "modelVersion": request.model, "responseId": answer.id(),
    })
}

/// Streams each part on its own; the last has the reason for the end and the usage.
pub(super) fn events(whole: &Value) -> String {
    let parts = list(&whole["candidates"][0]["content"]["parts"]);
    let Some((last, others)) = parts.split_last() else {
        return event(None, whole);
    };
    let mut text = String::new();
    for part in others {
        let mut chunk = with_part(whole, part);
        remove(&mut chunk, "usageMetadata");
        remove(&mut chunk["candidates"][0], "finishReason");
        text += &event(None, &chunk);
    }
    text + &event(None, &with_part(whole, last))
}

fn with_part(whole: &Value, part: &Value) -> Value {
    let mut chunk = whole.clone();
    chunk["candidates"][0]["content"]["parts"] = json!([part]);
    chunk
}

fn remove(object: &mut Value, field: &str) {
    if let Some(object) = object.as_object_mut() {
        object.remove(field);
    }
}
