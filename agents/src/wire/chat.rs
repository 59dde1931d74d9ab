//! OpenAI chat completions.

use serde_json::{Value, json};

use super::{event, halves, list, parsed, string, text_of};
use crate::conversation::{Call, Conversation, Entry, Tool};
use crate::exchange::Answer;

pub(super) fn read(body: &Value) -> Conversation {
    let mut entries = Vec::new();
    for message in list(&body["messages"]) {
        read_message(message, &mut entries);
    }
    let tools = list(&body["tools"]).iter();
    let tools = tools.filter(|tool| tool["type"] == "function");
    Conversation {
        stream: body["stream"] == true,
        model: string(&body["model"]),
        tools: tools.map(|tool| tool_of(&tool["function"])).collect(),
        entries,
    }
}

fn read_message(message: &Value, entries: &mut Vec<Entry>) {
    let text = text_of(&message["content"]);
    match message["role"].as_str().unwrap_or_default() {
        "user" => entries.push(Entry::User(text)),
        "assistant" => {
            if let Some(thinking) = message["reasoning_content"].as_str() {
                entries.push(Entry::Thinking(thinking.to_owned()));
            }
            entries.push(Entry::Assistant(text));
            entries.extend(list(&message["tool_calls"]).iter().map(call));
        }
        "tool" => entries.push(Entry::Result {
            id: string(&message["tool_call_id"]),
            text,
        }),
        _ => entries.push(Entry::System(text)),
    }
}

fn call(call: &Value) -> Entry {
    Entry::Call(Call {
        id: string(&call["id"]),
        name: string(&call["function"]["name"]),
        arguments: parsed(&call["function"]["arguments"]),
    })
}

fn tool_of(function: &Value) -> Tool {
    Tool {
        name: string(&function["name"]),
        schema: function["parameters"].clone(),
    }
}

pub(super) fn whole(request: &Conversation, answer: &Answer) -> Value {
    let mut message = json!({"role": "assistant", "content": answer.text});
    if let Some(thinking) = &answer.thinking {
        message["reasoning_content"] = json!(thinking);
    }
    if !answer.calls.is_empty() {
        let calls = answer.calls.iter().enumerate();
        message["tool_calls"] = calls.map(|(index, call)| write_call(index, call)).collect();
    }
    let finish = if answer.calls.is_empty() {
        "stop"
    } else {
        "tool_calls"
    };
    let usage = answer.usage;
    let input = usage.input + usage.cache_read;
    json!({
        "id": answer.id(), "object": "chat.completion", "created": 1_700_000_000, "model": request.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": input, "completion_tokens": usage.output, "total_tokens": input + usage.output,
            "prompt_tokens_details": {"cached_tokens": usage.cache_read},
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning}},
    })
}

fn write_call(index: usize, call: &Call) -> Value {
    let function = json!({"name": call.name, "arguments": call.arguments.to_string()});
    json!({"index": index, "id": call.id, "type": "function", "function": function})
}

pub(super) fn events(whole: &Value) -> String {
    let message = &whole["choices"][0]["message"];
    let mut deltas = vec![json!({"role": "assistant", "content": ""})];
    if let Some(thinking) = message["reasoning_content"].as_str() {
        deltas.push(json!({"reasoning_content": thinking}));
    }
    deltas.extend(halves(&string(&message["content"])).map(|part| json!({"content": part})));
    deltas.extend(
        list(&message["tool_calls"])
            .iter()
            .map(|call| json!({"tool_calls": [call]})),
    );
    let mut text = String::new();
    for delta in deltas {
        text += &chunk(
            whole,
            json!([{"index": 0, "delta": delta, "finish_reason": null}]),
            &Value::Null,
        );
    }
    let finish = &whole["choices"][0]["finish_reason"];
    text += &chunk(
        whole,
        json!([{"index": 0, "delta": {}, "finish_reason": finish}]),
        &Value::Null,
    );
    text += &chunk(whole, json!([]), &whole["usage"]);
    text + "data: [DONE]\n\n"
}

fn chunk(whole: &Value, choices: Value, usage: &Value) -> String {
    let data = json!({
        "id": whole["id"], "object": "chat.completion.chunk", "created": whole["created"],
        "model": whole["model"], "choices": choices, "usage": usage,
    });
    event(None, &data)
}
