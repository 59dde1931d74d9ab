//! What every session that is handed over promises: no provider refuses the request that an
//! agent makes of it.
//!
//! Sessions of all kinds are recorded by the engine, handed over, and prepared for each target.
//! The requests are then checked by the published limits of each provider: Anthropic's Messages,
//! OpenAI's Responses and chat completions, and Gemini.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use backtrail::context::{
    HandOver, HandOverContent, HandOverMedia, HandOverOptions, HandOverPart, ReplyPart,
};
use backtrail::{Compaction, Message, SessionOptions, StoreOptions};
use backtrail_testkit::MemoryStorage;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::read_back::{DIRECTORY, ID, TITLE, hard, time};
use super::{OutgoingSession, targets};
use crate::environment::Environment;
use crate::format::formats;
use crate::launch::NewSession;

pub(super) type Check = Result<(), String>;

fn ensure(holds: bool, what: &str, at: &Value) -> Check {
    match holds {
        true => Ok(()),
        false => Err(format!("{what}: {at}")),
    }
}

fn list<'v>(value: &'v Value, field: &str) -> &'v [Value] {
    value[field].as_array().map_or(&[], Vec::as_slice)
}

/// Checks an id or a name.
fn word(value: &Value, field: &str, max: usize) -> Check {
    let text = value[field].as_str().unwrap_or_default();
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let fits = (1..=max).contains(&text.len()) && text.chars().all(allowed);
    ensure(fits, field, value)
}

/// Checks that a text is not blank.
fn said(value: &Value, field: &str) -> Check {
    let text = value[field].as_str().unwrap_or_default();
    ensure(!text.trim().is_empty(), "blank", value)
}

/// Checks arguments in a string.
fn arguments(value: &Value) -> Check {
    let text = value["arguments"].as_str().unwrap_or_default();
    let parsed = serde_json::from_str::<Value>(text);
    ensure(parsed.is_ok_and(|it| it.is_object()), "arguments", value)
}

fn is_image(media: &HandOverMedia) -> bool {
    media.media_type.starts_with("image/")
}

fn input(text: &str) -> Value {
    // This also fails if it is too deep for a parser.
    serde_json::from_str(text).unwrap()
}

fn texts(parts: &[HandOverPart]) -> String {
    super::joined_text(parts)
}

/// What an agent sends to Anthropic.
pub(super) fn anthropic(session: &OutgoingSession<'_>) -> Value {
    let part = |part: &HandOverPart| match part {
        HandOverPart::Text(text) => json!({"type": "text", "text": text}),
        HandOverPart::Media(media) => {
            let kind = if is_image(media) { "image" } else { "document" };
            let source = json!({"type": "base64", "media_type": media.media_type,
                "data": media.data});
            json!({"type": kind, "source": source})
        }
    };
    let mut messages = Vec::new();
    for message in &session.messages {
        match &message.content {
            HandOverContent::User(parts) => {
                let content: Vec<_> = parts.iter().map(part).collect();
                messages.push(json!({"role": "user", "content": content}));
            }
            HandOverContent::Assistant { parts, .. } => {
                let mut results = Vec::new();
                let content = parts.iter().map(|it| match it {
                    ReplyPart::Text(text) => json!({"type": "text", "text": text}),
                    ReplyPart::Call(call) => {
                        let output: Vec<_> = call.output.iter().map(part).collect();
                        results.push(json!({"type": "tool_result", "tool_use_id": call.id,
                            "content": output, "is_error": call.is_error}));
                        json!({"type": "tool_use", "id": call.id, "name": call.name,
                            "input": input(&call.input)})
                    }
                });
                let content: Vec<_> = content.collect();
                messages.push(json!({"role": "assistant", "content": content}));
                if !results.is_empty() {
                    messages.push(json!({"role": "user", "content": results}));
                }
            }
        }
    }
    json!(messages)
}

pub(super) fn check_anthropic(messages: &Value) -> Check {
    let messages = messages.as_array().unwrap();
    if let Some(first) = messages.first() {
        ensure(
            first["role"] == "user",
            "the first is not the user's",
            first,
        )?;
    }
    let mut ids = HashSet::new();
    let mut open: Vec<&Value> = Vec::new();
    for message in messages {
        let content = list(message, "content");
        ensure(!content.is_empty(), "no content", message)?;
        let is_result = |block: &&Value| block["type"] == "tool_result";
        let results = content.iter().filter(is_result);
        let answered: Vec<_> = results.map(|result| &result["tool_use_id"]).collect();
        ensure(answered == open, "calls and results differ", message)?;
        open.clear();
        for block in content {
            check_anthropic_block(block, message["role"] == "user")?;
            if block["type"] == "tool_use" {
                ensure(ids.insert(&block["id"]), "an id twice", block)?;
                open.push(&block["id"]);
            }
        }
    }
    ensure(open.is_empty(), "unanswered at the end", &Value::Null)
}

fn check_anthropic_block(block: &Value, is_users: bool) -> Check {
    match (block["type"].as_str().unwrap_or_default(), is_users) {
        ("text", _) => said(block, "text"),
        ("tool_use", false) => {
            word(block, "id", 64)?;
            word(block, "name", 128)
        }
        ("tool_result", true) => {
            for part in list(block, "content") {
                check_anthropic_block(part, true)?;
                let fits = part["type"] == "text" || block["is_error"] == false;
                ensure(fits, "an error is text", block)?;
            }
            Ok(())
        }
        ("image" | "document", true) => {
            let types = [
                "image/png",
                "image/jpeg",
                "image/gif",
                "image/webp",
                "application/pdf",
            ];
            let media_type = block["source"]["media_type"].as_str().unwrap_or_default();
            ensure(types.contains(&media_type), "media type", block)?;
            let size = block["source"]["data"].as_str().map_or(0, str::len);
            ensure(size > 0 && size <= 5 << 20, "size", &json!(size))
        }
        _ => Err(format!("block out of place: {block}")),
    }
}

/// What an agent sends to OpenAI's Responses.
fn responses(session: &OutgoingSession<'_>) -> Value {
    let mut items = Vec::new();
    for message in &session.messages {
        match &message.content {
            HandOverContent::User(parts) => {
                let content = parts.iter().map(|part| match part {
                    HandOverPart::Text(text) => json!({"type": "input_text", "text": text}),
                    HandOverPart::Media(media) if is_image(media) => {
                        json!({"type": "input_image", "image_url": super::data_url(media)})
                    }
                    HandOverPart::Media(media) => {
                        json!({"type": "input_file", "file_data": super::data_url(media)})
                    }
                });
                let content: Vec<_> = content.collect();
                items.push(json!({"type": "message", "role": "user", "content": content}));
            }
            HandOverContent::Assistant { parts, .. } => {
                let mut results = Vec::new();
                for part in parts {
                    match part {
                        ReplyPart::Text(text) => items.push(json!({"type": "message",
                            "role": "assistant",
                            "content": [{"type": "output_text", "text": text}]})),
                        ReplyPart::Call(call) => {
                            items.push(json!({"type": "function_call", "call_id": call.id,
                                "name": call.name, "arguments": call.input}));
                            results.push(json!({"type": "function_call_output",
                                "call_id": call.id, "output": texts(&call.output)}));
                        }
                    }
                }
                items.append(&mut results);
            }
        }
    }
    json!(items)
}

fn check_responses(items: &Value) -> Check {
    let mut ids = HashSet::new();
    let mut open = HashSet::new();
    for item in items.as_array().unwrap() {
        match item["type"].as_str().unwrap_or_default() {
            "message" => {
                let is_users = item["role"] == "user";
                ensure(!is_users || open.is_empty(), "calls are open", item)?;
                ensure(!list(item, "content").is_empty(), "no content", item)?;
                for part in list(item, "content") {
                    let is_text = part.get("text").is_some();
                    if is_text {
                        said(part, "text")?;
                    }
                }
            }
            "function_call" => {
                word(item, "call_id", 64)?;
                word(item, "name", 64)?;
                arguments(item)?;
                ensure(ids.insert(&item["call_id"]), "an id twice", item)?;
                open.insert(&item["call_id"]);
            }
            "function_call_output" => {
                ensure(open.remove(&item["call_id"]), "no call is open", item)?;
                ensure(item["output"].is_string(), "output", item)?;
            }
            _ => return Err(format!("item: {item}")),
        }
    }
    ensure(open.is_empty(), "unanswered at the end", &Value::Null)
}

/// What an agent sends to OpenAI's chat completions: the lines of the target.
fn chat(session: &OutgoingSession<'_>) -> Value {
    let mut out = Vec::new();
    let target = super::target("openai-chat").unwrap();
    target.write(session, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    Value::Array(lines.collect())
}

fn check_chat(messages: &Value) -> Check {
    let mut ids = HashSet::new();
    let mut open: Vec<&Value> = Vec::new();
    let mut last = Value::Null;
    for message in messages.as_array().unwrap() {
        if message["role"] == "tool" {
            ensure(!open.is_empty(), "no call is open", message)?;
            ensure(*open.remove(0) == message["tool_call_id"], "order", message)?;
            ensure(message["content"].is_string(), "content", message)?;
            last = json!("tool");
            continue;
        }
        ensure(open.is_empty(), "calls are open", message)?;
        let calls = list(message, "tool_calls");
        match &message["content"] {
            Value::String(_) => said(message, "content")?,
            Value::Array(parts) => {
                ensure(!parts.is_empty(), "no content", message)?;
                for part in parts.iter().filter(|part| part["type"] == "text") {
                    said(part, "text")?;
                }
            }
            Value::Null => ensure(!calls.is_empty(), "no content", message)?,
            _ => return Err(format!("content: {message}")),
        }
        let in_a_row = message["role"] == "assistant" && last == "assistant";
        ensure(!in_a_row, "two responses in a row", message)?;
        for call in calls {
            ensure(message["role"] == "assistant", "whose call", message)?;
            word(call, "id", 64)?;
            word(&call["function"], "name", 64)?;
            arguments(&call["function"])?;
            ensure(ids.insert(&call["id"]), "an id twice", call)?;
            open.push(&call["id"]);
        }
        last = message["role"].clone();
    }
    ensure(open.is_empty(), "unanswered at the end", &Value::Null)
}

/// What an agent sends to Gemini.
fn gemini(session: &OutgoingSession<'_>) -> Value {
    let mut contents = Vec::new();
    for message in &session.messages {
        match &message.content {
            HandOverContent::User(parts) => {
                let parts = parts.iter().map(|part| match part {
                    HandOverPart::Text(text) => json!({"text": text}),
                    HandOverPart::Media(media) => {
                        json!({"inlineData": {"mimeType": media.media_type, "data": media.data}})
                    }
                });
                contents.push(json!({"role": "user", "parts": parts.collect::<Vec<_>>()}));
            }
            HandOverContent::Assistant { parts, .. } => {
                let mut results = Vec::new();
                let parts = parts.iter().map(|part| match part {
                    ReplyPart::Text(text) => json!({"text": text}),
                    ReplyPart::Call(call) => {
                        let output = texts(&call.output);
                        let response = json!({"id": call.id, "name": call.name,
                            "response": {"output": output}});
                        results.push(json!({"functionResponse": response}));
                        json!({"functionCall": {"id": call.id, "name": call.name,
                            "args": input(&call.input)}})
                    }
                });
                contents.push(json!({"role": "model", "parts": parts.collect::<Vec<_>>()}));
                if !results.is_empty() {
                    contents.push(json!({"role": "user", "parts": results}));
                }
            }
        }
    }
    json!(contents)
}

fn check_gemini(contents: &Value) -> Check {
    let contents = contents.as_array().unwrap();
    let mut open: Vec<&Value> = Vec::new();
    let mut was_model = true;
    for content in contents {
        let is_model = content["role"] == "model";
        ensure(
            !(is_model && was_model),
            "a response without a prompt",
            content,
        )?;
        was_model = is_model;
        ensure(!list(content, "parts").is_empty(), "no parts", content)?;
        let answers = list(content, "parts").iter();
        let answers = answers.filter_map(|part| part.get("functionResponse"));
        let answered: Vec<_> = answers.map(|answer| &answer["name"]).collect();
        ensure(answered == open, "calls and responses differ", content)?;
        open.clear();
        for part in list(content, "parts") {
            if part.get("text").is_some() {
                said(part, "text")?;
            }
            if let Some(call) = part.get("functionCall") {
                word(call, "name", 64)?;
                ensure(call["args"].is_object(), "args", call)?;
                open.push(&call["name"]);
            }
        }
    }
    ensure(open.is_empty(), "unanswered at the end", &Value::Null)
}

/// Checks what becomes of a conversation for every target.
fn check_all(hand_over: &HandOver) -> Check {
    let environment = Environment::new("/home/u");
    let new = NewSession {
        id: ID.to_owned(),
        at: time(1_795_000_000_000),
        directory: PathBuf::from("/w/elsewhere"),
        environment: &environment,
    };
    for target in targets() {
        let old = Some(Path::new(DIRECTORY));
        let (session, _) = target.prepare(hand_over.clone(), TITLE, old, &new);
        let named = |error: String| format!("{}: {error}", target.name());
        check_anthropic(&anthropic(&session)).map_err(named)?;
        check_responses(&responses(&session)).map_err(named)?;
        check_chat(&chat(&session)).map_err(named)?;
        check_gemini(&gemini(&session)).map_err(named)?;
    }
    Ok(())
}

fn one(of: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop::sample::select(of)
}

fn block() -> impl Strategy<Value = String> {
    const TEXTS: &[&str] = &[
        r#""hi""#,
        r#""""#,
        r#""\n""#,
        r#""\u0000 \u2028 é😀 \ud83d""#,
        r#""<system-reminder>x</system-reminder>""#,
    ];
    const IDS: &[&str] = &[
        r#""t1""#,
        r#""t2""#,
        r#""""#,
        r#""functions.bash:0|é""#,
        r#""0123456789012345678901234567890123456789012345678901234567890123456789""#,
    ];
    const NAMES: &[&str] = &[
        r#""Bash""#,
        r#""read_files""#,
        r#""""#,
        r#""mcp__srv.x/y""#,
        r#""a_name_that_is_longer_than_sixty_four_characters_and_shorter_than_one_hundred""#,
    ];
    const INPUTS: &[&str] = &[
        r#"{"command":"cd /w/shop && ls","n":1.0}"#,
        r#"{"files":[{"path":"/w/shop/a"}]}"#,
        r#""{\"a\":1}""#,
        r#"[1]"#,
        r#"null"#,
        r#"DEEP"#,
    ];
    const OUTPUTS: &[&str] = &[
        r#""out\n""#,
        r#""""#,
        r#""\n""#,
        r#"[{"type":"text","text":" "},{"type":"image","media_type":"image/png","data":"QUJD"}]"#,
        r#"[{"type":"document","media_type":"application/pdf","data":"QUJD"},{"type":"x"}]"#,
        r#"{"ok":true}"#,
    ];
    const MEDIA: &[&str] = &[
        r#"{"type":"image","media_type":"image/png","data":"QUJD"}"#,
        r#"{"type":"image","media_type":"image/tiff","data":"QUJD"}"#,
        r#"{"type":"document","media_type":"application/pdf","data":"QUJD"}"#,
        r#"{"type":"hologram"}"#,
    ];
    let text = one(TEXTS).prop_map(|text| format!(r#"{{"type":"text","text":{text}}}"#));
    let thought = one(TEXTS)
        .prop_map(|text| format!(r#"{{"type":"thinking","thinking":{text},"signature":"c2ln"}}"#));
    let call = (one(IDS), one(NAMES), one(INPUTS)).prop_map(|(id, name, input)| {
        let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(110), "]".repeat(110));
        let input = if input == "DEEP" { &deep } else { input };
        format!(r#"{{"type":"tool_use","id":{id},"name":{name},"input":{input}}}"#)
    });
    let result = (one(IDS), one(OUTPUTS), any::<bool>()).prop_map(|(id, output, is_error)| {
        format!(
            r#"{{"type":"tool_result","tool_use_id":{id},"output":{output},"is_error":{is_error}}}"#
        )
    });
    prop_oneof![
        3 => text,
        1 => thought,
        4 => call,
        4 => result,
        1 => one(MEDIA).prop_map(str::to_owned),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    const ROLES: &[&str] = &[
        "user",
        "user",
        "assistant",
        "assistant",
        "assistant",
        "tool",
        "system",
        "reviewer",
    ];
    let blocks = prop::collection::vec(block(), 0..5);
    (one(ROLES), blocks).prop_map(|(role, blocks)| {
        let json = format!(r#"{{"role":"{role}","blocks":[{}]}}"#, blocks.join(","));
        serde_json::from_str(&json).unwrap()
    })
}

/// Records messages, and hands them over.
fn recorded(messages: Vec<Message>, compacted: bool) -> HandOver {
    let options = StoreOptions::new().storage(MemoryStorage::new());
    let store = options.open_or_create("/store").unwrap();
    let session = store.create_session(SessionOptions::default()).unwrap();
    for message in messages {
        session.append(message).unwrap();
    }
    if compacted {
        session
            .compact(&Compaction::new("It went well.").keep(3))
            .unwrap();
    }
    let reader = store.read_session(session.id()).unwrap();
    reader.hand_over(HandOverOptions::default()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 150,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_session_becomes_one_that_a_provider_refuses(
        messages in prop::collection::vec(message(), 0..10),
        compacted in any::<bool>(),
    ) {
        let handed = recorded(messages, compacted);
        prop_assert_eq!(check_all(&handed), Ok(()), "{:?}", handed.messages);
    }
}

#[test]
fn a_hard_session_is_accepted_and_broken_ones_are_not() {
    assert_eq!(check_all(&hard()), Ok(()));
    let call_in = |hand_over: &mut HandOver, n: usize, change: &dyn Fn(&mut ReplyPart)| {
        if let HandOverContent::Assistant { parts, .. } = &mut hand_over.messages[n].content {
            parts.iter_mut().for_each(change);
        }
    };
    let mut same_ids = hard();
    call_in(&mut same_ids, 1, &|part| {
        if let ReplyPart::Call(call) = part {
            call.id = "same".to_owned();
        }
    });
    let mut long_name = hard();
    call_in(&mut long_name, 1, &|part| {
        if let ReplyPart::Call(call) = part {
            call.name = "n".repeat(65);
        }
    });
    let mut blank = hard();
    call_in(&mut blank, 7, &|part| {
        *part = ReplyPart::Text(" ".to_owned())
    });
    let mut answer_first = hard();
    answer_first.messages.remove(0);
    let mut in_a_row = hard();
    in_a_row.messages.remove(6);
    for broken in [same_ids, long_name, blank, answer_first, in_a_row] {
        assert!(check_all(&broken).is_err(), "{:?}", broken.messages);
    }
}

#[test]
fn targets_that_can_be_read_are_called_as_their_formats_are() {
    for target in targets() {
        let format = formats().find(|format| format.name() == target.name());
        match format {
            Some(format) => assert_eq!(target.title(), format.title()),
            None => assert_eq!(target.name(), "openai-chat"),
        }
    }
}
