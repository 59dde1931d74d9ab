//! A request is rebuilt from the records of a file, whatever they are.

use serde_json::{Value, json};

use super::sent::{SentRequest, WhichRequest, sent_request, sha256};
use crate::error::Result;
use crate::source::Source;

fn hash(value: &Value) -> String {
    sha256(&value.to_string()).unwrap()
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": [{"type": "text", "text": text}]})
}

fn reply() -> Value {
    let blocks = [
        json!({"type": "text", "text": "a"}),
        json!({"type": "tool_use", "id": "t", "name": "Bash", "input": {}}),
    ];
    json!({"role": "assistant", "content": blocks})
}

fn shape() -> Value {
    json!({"system": [{"type": "text", "text": "be kind"}], "tools": [{"name": "Bash"}]})
}

fn params() -> Value {
    json!({"max_tokens": 9, "model": "m"})
}

/// The messages of the second request.
fn messages() -> [Value; 3] {
    [user("one"), reply(), user("two")]
}

/// The second request, without its digest.
fn second() -> Value {
    let [_, reply, two] = messages();
    let marks = json!([
        {"path": ["system", 0], "value": {"type": "ephemeral"}},
        {"path": ["messages", 2, "content", 0], "value": {"type": "ephemeral"}},
    ]);
    json!({
        "type": "api-request", "id": "q2", "shapeHash": hash(&shape()), "params": params(),
        "base": "q1", "keep": 1, "tail": [hash(&reply), hash(&two)], "cacheControl": marks,
    })
}

fn body() -> Value {
    let [one, reply, two] = messages();
    let mut body = json!({"model": "m", "messages": [one, reply, two], "max_tokens": 9});
    body["system"] = shape()["system"].clone();
    body["tools"] = shape()["tools"].clone();
    body["system"][0]["cache_control"] = json!({"type": "ephemeral"});
    body["messages"][2]["content"][0]["cache_control"] = json!({"type": "ephemeral"});
    body
}

/// The records of two requests, and of the response between them.
fn records() -> Vec<Value> {
    let [one, reply, two] = messages();
    let line = |block: &Value| json!({"type": "assistant", "requestRef": "q1", "message": {"id": "r1", "content": [block]}});
    let mut second = second();
    second["requestDigest"] = hash(&body()).into();
    vec![
        json!({"type": "api-request-shape", "shapeHash": hash(&shape()), "shape": shape()}),
        json!({"type": "api-request-blob", "hash": hash(&one), "message": one}),
        json!({"type": "api-request", "id": "q1", "shapeHash": hash(&shape()), "params": params(), "keep": 0, "tail": [hash(&one)]}),
        line(&reply["content"][0]),
        line(&reply["content"][1]),
        json!({"type": "api-request-blob", "hash": hash(&two), "message": two}),
        second,
    ]
}

fn sent(records: &[Value], which: WhichRequest<'_>) -> Result<Option<SentRequest>> {
    let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
    sent_request(&Source::from_bytes("/p/s.jsonl", lines), which)
}

fn error(records: &[Value]) -> String {
    sent(records, WhichRequest::Last)
        .unwrap_err()
        .message()
        .to_owned()
}

#[test]
fn hashes_are_those_of_sorted_json_without_blanks() {
    let hash = "2dcfd7f79b7e9314";
    assert_eq!(
        sha256("{ \"b\": {}, \"a\": [ 1, \"é\" ] }").unwrap()[..16],
        *hash
    );
    let deep = "[".repeat(1_000) + &"]".repeat(1_000);
    assert_eq!(sha256(&deep), None);
}

#[test]
fn the_last_request_is_rebuilt_and_verified() {
    let sent = sent(&records(), WhichRequest::Last).unwrap().unwrap();
    let json: Value = serde_json::from_str(&sent.json).unwrap();
    assert_eq!(json, body());
    assert!(sent.is_verified);
    assert!(
        sent.json.starts_with(r#"{"model":"m","messages":[{"#),
        "{}",
        sent.json
    );
}

#[test]
fn the_request_before_a_response_is_rebuilt() {
    let first = sent(&records(), WhichRequest::AnsweredBy("r1"))
        .unwrap()
        .unwrap();
    let json: Value = serde_json::from_str(&first.json).unwrap();
    assert_eq!(json["messages"], json!([user("one")]));
    assert!(!first.is_verified, "it has no digest");
    assert_eq!(
        sent(&records(), WhichRequest::AnsweredBy("r9")).unwrap(),
        None
    );
    assert_eq!(sent(&records()[..2], WhichRequest::Last).unwrap(), None);
}

#[test]
fn an_edited_response_is_found_by_its_place() {
    let mut records = records();
    records[3]["message"]["content"][0]["text"] = "edited".into();
    let sent = sent(&records, WhichRequest::Last).unwrap().unwrap();
    assert!(sent.json.contains("edited"));
    assert!(!sent.is_verified);
}

#[test]
fn what_is_missing_or_contradictory_is_an_error() {
    let without = |n: usize| {
        let mut records = records();
        records.remove(n);
        error(&records)
    };
    assert_eq!(
        without(0),
        "the system prompt and the tools of the request are missing"
    );
    assert!(without(1).starts_with("message 1 of the request is missing: "));
    assert_eq!(
        without(2),
        "request q1, which a later one is based on, is missing"
    );
    assert!(without(5).starts_with("message 3 of the request is missing: "));
    let with = |field: &str, value: Value| {
        let mut records = records();
        records[6][field] = value;
        error(&records)
    };
    assert_eq!(with("keep", json!(2)), "a request keeps 2 of 1 messages");
    assert_eq!(
        with("keep", json!(u64::MAX)),
        "a request keeps 18446744073709551615 of 1 messages"
    );
    assert_eq!(with("base", json!("q2")), "request q2 is based on itself");
    assert_eq!(
        with("tail", json!([7])),
        "a message of a request has no hash"
    );
    let path = |path: Value| with("cacheControl", json!([{"path": path, "value": {}}]));
    for lost in [
        json!(["system", 7]),
        json!(["x"]),
        json!(["messages"]),
        json!(vec![0; 99]),
    ] {
        assert_eq!(path(lost), "a mark for the cache is not in the request");
    }
    let many = json!(vec![json!({"path": ["system", 0], "value": {}}); 65]);
    assert_eq!(
        with("cacheControl", many),
        "a mark for the cache is not in the request"
    );
}

#[test]
fn a_request_that_repeats_a_large_message_is_refused() {
    let large = user(&"x".repeat(1 << 20));
    let records = [
        json!({"type": "api-request-blob", "hash": "h", "message": large}),
        json!({"type": "api-request", "id": "q", "keep": 0, "tail": vec!["h"; 100]}),
    ];
    assert_eq!(error(&records), "the request is larger than 64 MiB");
}
