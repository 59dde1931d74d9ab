//! OpenAI Responses.

use serde_json::{Value, json};

use super::{event, list, parsed, string, text_of};
use crate::conversation::{Call, Conversation, Entry, Tool};
use crate::exchange::Answer;

pub(super) fn read(body: &Value) -> Conversation {
    let mut entries = Vec::new();
    if let Some(text) = body["instructions"].as_str() {
        entries.push(Entry::System(text.to_owned()));
    }
    match &body["input"] {
        Value::String(text) => entries.push(Entry::User(text.clone())),
        input => entries.extend(list(input).iter().filter_map(entry)),
    }
    let tools = list(&body["tools"]).iter();
    let tools = tools.filter(|tool| tool["type"] == "function");
    Conversation {
        stream: body["stream"] == true,
        model: string(&body["model"]),
        tools: tools.map(tool_of).collect(),
        entries,
    }
}

fn entry(item: &Value) -> Option<Entry> {
    Some(match item["type"].as_str().unwrap_or("message") {
        "message" => {
            let text = text_of(&item["content"]);
            match item["role"].as_str()? {
                "user" => Entry::User(text),
                "assistant" => Entry::Assistant(text),
                _ => Entry::System(text),
            }
        }
        "reasoning" => Entry::Thinking(text_of(&item["summary"])),
        "function_call" => Entry::Call(Call {
            id: string(&item["call_id"]),
            name: string(&item["name"]),
            arguments: parsed(&item["arguments"]),
        }),
        "function_call_output" => Entry::Result {
            id: string(&item["call_id"]),
            text: text_of(&item["output"]),
        },
        _ => return None,
    })
}

fn tool_of(tool: &Value) -> Tool {
    Tool {
        name: string(&tool["name"]),
        schema: tool["parameters"].clone(),
    }
}

pub(super) fn whole(request: &Conversation, answer: &Answer) -> Value {
    let number = answer.number;
    let mut output = Vec::new();
    if let Some(thinking) = &answer.thinking {
        output.push(json!({"type": "reasoning", "id": format!("rs_{number}"),
            "summary": [{"type": "summary_text", "text": thinking}],
            "encrypted_content": format!("encrypted-{number}")}));
    }
    if !answer.text.is_empty() {
        output.push(
            json!({"type": "message", "id": format!("msg_{number}"), "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": answer.text, "annotations": []}]}),
        );
    }
    for call in &answer.calls {
        output.push(
            json!({"type": "function_call", "id": format!("fc_{}", call.id), "call_id": call.id,
            "name": call.name, "arguments": call.arguments.to_string(), "status": "completed"}),
        );
    }
    let usage = answer.usage;
    let input = usage.input + usage.cache_read;
    json!({
        "id": answer.id(), "object": "response", "created_at": 1_700_000_000, "status": "completed",
        "model": request.model, "output": output, "parallel_tool_calls": true, "tools": [], "error": null,
        "usage": {"input_tokens": input, "output_tokens": usage.output, "total_tokens": input + usage.output,
            "input_tokens_details": {"cached_tokens": usage.cache_read},
            "output_tokens_details": {"reasoning_tokens": usage.reasoning}},
    })
}

pub(super) fn events(whole: &Value) -> String {
    let mut begun = whole.clone();
    begun["status"] = json!("in_progress");
    begun["output"] = json!([]);
    begun["usage"] = Value::Null;
    let mut events = vec![json!({"type": "response.created", "response": begun})];
    for (index, item) in list(&whole["output"]).iter().enumerate() {
        item_events(index, item, &mut events);
    }
    events.push(json!({"type": "response.completed", "response": whole}));
    let numbered = events.into_iter().enumerate().map(|(number, mut data)| {
        data["sequence_number"] = json!(number);
        event(data["type"].as_str(), &data)
    });
    numbered.collect()
}

fn item_events(index: usize, item: &Value, events: &mut Vec<Value>) {
    let mut begun = item.clone();
    for (field, empty) in [
        ("content", json!([])),
        ("summary", json!([])),
        ("arguments", json!("")),
    ] {
        if begun.get(field).is_some() {
            begun[field] = empty;
        }
    }
    let id = &item["id"];
    events
        .push(json!({"type": "response.output_item.added", "output_index": index, "item": begun}));
    match item["type"].as_str().unwrap_or_default() {
        "message" => {
            let part = &item["content"][0];
            let at = |kind: &str| json!({"type": kind, "item_id": id, "output_index": index, "content_index": 0});
            let mut add = |kind: &str, field: &str, value: &Value| {
                let mut data = at(kind);
                data[field] = value.clone();
                events.push(data);
            };
            add(
                "response.content_part.added",
                "part",
                &json!({"type": "output_text", "text": "", "annotations": []}),
            );
            add("response.output_text.delta", "delta", &part["text"]);
            add("response.output_text.done", "text", &part["text"]);
            add("response.content_part.done", "part", part);
        }
        "function_call" => {
            for (kind, field) in [("delta", "delta"), ("done", "arguments")] {
                let mut data = json!({"type": format!("response.function_call_arguments.{kind}"),
                    "item_id": id, "output_index": index});
                data[field] = item["arguments"].clone();
                events.push(data);
            }
        }
        _ => {}
    }
    events.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
}
