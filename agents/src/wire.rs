//! The protocols: which one a path belongs to, how to read its requests and how to write answers.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use std::fmt::Write;

use serde_json::{Value, json};

use crate::conversation::Conversation;
use crate::exchange::{Answer, Usage};
use crate::http::Response;

/// A protocol of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Anthropic,
    Responses,
    Chat,
    Gemini,
}

impl Protocol {
    /// Returns the protocol of a request for an answer.
    pub(crate) fn of(method: &str, path: &str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or_default();
        if method != "POST" {
            None
        } else if path.ends_with("/messages") {
            Some(Self::Anthropic)
        } else if path.ends_with("/responses") {
            Some(Self::Responses)
        } else if path.ends_with("/chat/completions") {
            Some(Self::Chat)
        } else if path.ends_with("enerateContent") {
            Some(Self::Gemini)
        } else {
            None
        }
    }

    /// Reads a request.
    pub(crate) fn read(self, path: &str, body: &Value) -> Conversation {
        match self {
            Self::Anthropic => anthropic::read(body),
            Self::Responses => responses::read(body),
            Self::Chat => chat::read(body),
            Self::Gemini => gemini::read(path, body),
        }
    }

    /// Returns what a response in this protocol says that it used.
    pub(crate) fn usage(self, answer: u64, has_thinking: bool) -> Usage {
        let mut usage = Usage::of_response(answer, has_thinking);
        if self == Self::Anthropic {
            usage.cache_write = 50 + answer;
            // Its output has no such part.
            usage.reasoning = 0;
        }
        usage
    }

    /// Writes an answer in the form that the request asks for.
    pub(crate) fn write(self, request: &Conversation, answer: &Answer) -> Response {
        let whole = match self {
            Self::Anthropic => anthropic::whole(request, answer),
            Self::Responses => responses::whole(request, answer),
            Self::Chat => chat::whole(request, answer),
            Self::Gemini => gemini::whole(request, answer),
        };
        if !request.stream {
            return json_response(200, &whole);
        }
        let body = match self {
            Self::Anthropic => anthropic::events(&whole),
            Self::Responses => responses::events(&whole),
            Self::Chat => chat::events(&whole),
            Self::Gemini => gemini::events(&whole),
        };
        Response {
            status: 200,
            content_type: "text/event-stream",
            body: body.into_bytes(),
        }
    }
}

/// Answers a request that is not for an answer of the model: which models there are, how many tokens
/// a text has. Returns none if the path is not known.
pub(crate) fn service(method: &str, path: &str) -> Option<Response> {
    let path = path.split('?').next().unwrap_or_default();
    let value = if path.ends_with("/count_tokens") {
        json!({"input_tokens": 100})
    } else if path.ends_with(":countTokens") {
        json!({"totalTokens": 100})
    } else if path.ends_with("/v1beta/models") {
        json!({"models": [{"name": "models/fake-1", "supportedGenerationMethods": ["generateContent"]}]})
    } else if path.ends_with("/models") {
        let model = json!({"id": "fake-1", "object": "model", "type": "model", "display_name": "fake-1",
            "created": 1_700_000_000, "owned_by": "script"});
        json!({"object": "list", "data": [model], "has_more": false})
    } else if path == "/" || method == "HEAD" {
        json!({})
    } else {
        return None;
    };
    Some(json_response(200, &value))
}

/// Returns a response with JSON.
pub(crate) fn json_response(status: u16, value: &Value) -> Response {
    Response {
        status,
        content_type: "application/json",
        body: value.to_string().into_bytes(),
    }
}

/// Returns a server-sent event.
fn event(name: Option<&str>, data: &Value) -> String {
    let mut text = String::new();
    if let Some(name) = name {
        writeln!(text, "event: {name}").expect("a string can always grow");
    }
    write!(text, "data: {data}\n\n").expect("a string can always grow");
    text
}

/// Returns a text that is a string, or a list of parts with texts.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts
                .iter()
                .filter_map(|part| part["text"].as_str().or(part.as_str()));
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// Returns a field that is a text, or an empty one.
fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Returns the items of a list, or none.
fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Returns arguments that are an object in a text, as OpenAI's protocols have them.
fn parsed(arguments: &Value) -> Value {
    let text = arguments.as_str().unwrap_or_default();
    serde_json::from_str(text).unwrap_or_else(|_| arguments.clone())
}

/// Cuts a text in two, as a stream would.
fn halves(text: &str) -> [&str; 2] {
    let mut middle = text.len() / 2;
    while !text.is_char_boundary(middle) {
        middle -= 1;
    }
    [&text[..middle], &text[middle..]]
}
