//! What Claude Code needs of a session file to resume it, checked by a reader of its own: the
//! fields that it was seen to require, the chain of lines, and the request that it makes of them.

use std::collections::HashSet;
use std::path::Path;

use backtrail::Timestamp;
use backtrail::context::HandOver;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::provider_tests::{anthropic, check_anthropic};
use super::read_back::{DIRECTORY, ID, TITLE, hard, time};
use super::round_trip_tests::any_hand_over;
use super::target;
use crate::environment::Environment;
use crate::launch::NewSession;

/// Writes a conversation, and returns its lines and the request that they must become.
fn written(hand_over: HandOver) -> (Vec<Value>, Value) {
    let environment = Environment::new("/home/u");
    let new = NewSession {
        id: ID.to_owned(),
        at: time(1_795_000_000_000),
        directory: DIRECTORY.into(),
        environment: &environment,
    };
    let target = target("claude-code").unwrap();
    let (session, _) = target.prepare(hand_over, TITLE, Some(Path::new("/old")), &new);
    let mut file = Vec::new();
    target.write(&session, &mut file).unwrap();
    let file = String::from_utf8(file).unwrap();
    assert!(file.ends_with('\n'));
    let lines = file.lines().map(|line| serde_json::from_str(line).unwrap());
    (lines.collect(), anthropic(&session))
}

fn text<'v>(line: &'v Value, field: &str) -> &'v str {
    let text = line[field].as_str().unwrap_or_default();
    assert!(!text.is_empty(), "{field}: {line:#}");
    text
}

/// Checks every line by itself, and its place in the chain.
fn check_lines(lines: &[Value]) {
    let (mut last, mut at, mut ids) = (Value::Null, None::<Timestamp>, HashSet::new());
    for line in lines {
        assert!(ids.insert(text(line, "uuid")), "a uuid twice: {line:#}");
        assert_eq!(text(line, "uuid").len(), 36, "{line:#}");
        assert_eq!(line["parentUuid"], last, "{line:#}");
        last = line["uuid"].clone();
        assert_eq!(line["sessionId"], ID, "{line:#}");
        assert_eq!(line["cwd"], DIRECTORY, "{line:#}");
        assert_eq!(line["isSidechain"], false, "{line:#}");
        assert_eq!(line["userType"], "external", "{line:#}");
        text(line, "version");
        let (time, message) = (text(line, "timestamp"), &line["message"]);
        assert!(time.len() == 24 && time.ends_with('Z'), "{line:#}");
        let time: Timestamp = time.parse().unwrap();
        assert!(at.is_none_or(|at| at <= time), "times go back: {line:#}");
        at = Some(time);
        assert_eq!(text(line, "type"), text(message, "role"), "{line:#}");
        assert!(!message["content"].as_array().unwrap().is_empty());
        if line["type"] == "assistant" {
            assert!(ids.insert(text(message, "id")), "an id twice: {line:#}");
            assert_eq!(message["type"], "message", "{line:#}");
            text(message, "model");
            text(message, "stop_reason");
            assert!(message["usage"].is_object(), "{line:#}");
        }
    }
}

/// Returns the request that the agent makes: the messages of the chain that the last line ends.
fn request(lines: &[Value]) -> Value {
    let mut messages = Vec::new();
    let mut wanted = lines.last().map(|line| line["uuid"].clone());
    while let Some(uuid) = wanted.filter(|uuid| !uuid.is_null()) {
        let line = lines.iter().find(|line| line["uuid"] == uuid).unwrap();
        let message = &line["message"];
        messages.push(json!({"role": message["role"], "content": message["content"]}));
        wanted = Some(line["parentUuid"].clone());
    }
    messages.reverse();
    json!(messages)
}

/// Writes results without output as a list, which is the same to the provider.
fn with_lists(mut messages: Value) -> Value {
    let messages_mut = messages.as_array_mut().unwrap().iter_mut();
    for block in messages_mut.flat_map(|message| message["content"].as_array_mut().unwrap()) {
        if block["type"] == "tool_result" && block["content"] == "" {
            block["content"] = json!([]);
        }
    }
    messages
}

fn check(hand_over: HandOver) {
    let (lines, expected) = written(hand_over);
    let (title, lines) = lines.split_last().unwrap();
    let named = json!({"type": "custom-title", "customTitle": TITLE, "sessionId": ID});
    assert_eq!(*title, named);
    check_lines(lines);
    assert_eq!(with_lists(request(lines)), with_lists(expected));
}

#[test]
fn claude_code_has_every_field_that_it_needs_and_sends_the_whole_conversation() {
    let (lines, request) = written(hard());
    assert!(lines.len() > 10, "{lines:#?}");
    assert_eq!(check_anthropic(&request), Ok(()));
    check(hard());
}

proptest! {
    #[test]
    fn claude_code_sends_any_conversation_as_it_was(given in any_hand_over()) {
        prop_assume!(!given.messages.is_empty());
        check(given);
    }
}
