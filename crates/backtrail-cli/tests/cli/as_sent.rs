//! `context --as-sent`: the request that Claude Code really sent.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::kit::{Cli, Ran, screen};

const ID: &str = "0b1c2d3e-0000-4000-8000-000000000001";

/// Returns JSON with sorted keys.
fn sorted(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields: BTreeMap<_, _> = fields.iter().collect();
            let field = |(name, value)| format!("{}:{}", json!(name), sorted(value));
            let fields: Vec<String> = fields.into_iter().map(field).collect();
            format!("{{{}}}", fields.join(","))
        }
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(sorted).collect();
            format!("[{}]", values.join(","))
        }
        plain => plain.to_string(),
    }
}

fn hash(value: &Value) -> String {
    let hash = Sha256::digest(sorted(value));
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn text(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

fn shape() -> Value {
    json!({"system": text("Be kind."), "tools": []})
}

/// The records of a call, with a conversation of one more message each time.
fn call(n: usize, messages: &[Value]) -> Vec<Value> {
    let last = messages.last().unwrap();
    let params = json!({"model": "claude-x", "max_tokens": 9});
    let mut body = params.clone();
    body["messages"] = json!(messages);
    body["system"] = shape()["system"].clone();
    body["tools"] = shape()["tools"].clone();
    let tail: Vec<String> = messages.iter().map(hash).collect();
    let (uuid, answer) = (format!("u{n}"), format!("a{n}"));
    let parent = if n == 1 {
        Value::Null
    } else {
        json!(format!("a{}", n - 1))
    };
    vec![
        json!({"type": "user", "uuid": uuid, "parentUuid": parent, "sessionId": ID, "message": last}),
        json!({"type": "api-request-blob", "hash": hash(last), "message": last}),
        json!({"type": "api-request", "id": format!("q{n}"), "shapeHash": hash(&shape()), "params": params, "keep": 0, "tail": tail, "cacheControl": [], "requestDigest": hash(&body)}),
        json!({"type": "assistant", "uuid": answer, "parentUuid": uuid, "sessionId": ID, "requestRef": format!("q{n}"), "message": {"id": format!("r{n}"), "role": "assistant", "model": "claude-x", "content": text(&format!("answer {n}")), "usage": {"input_tokens": 1}}}),
    ]
}

fn records() -> Vec<Value> {
    let one = json!({"role": "user", "content": text("one")});
    let reply = json!({"role": "assistant", "content": text("answer 1")});
    let two = json!({"role": "user", "content": text("two")});
    let mut records =
        vec![json!({"type": "api-request-shape", "shapeHash": hash(&shape()), "shape": shape()})];
    records.extend(call(1, std::slice::from_ref(&one)));
    records.extend(call(2, &[one, reply, two]));
    records
}

fn import(cli: &Cli, records: &[Value]) -> String {
    let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
    let file = cli.work().join(format!("{ID}.jsonl"));
    std::fs::write(&file, lines).unwrap();
    let ran = cli.run(&["import", file.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let listed = cli.run(&["list", "--all", "--json"]).json();
    listed[0]["id"].as_str().unwrap().to_owned()
}

fn messages(ran: &Ran) -> usize {
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    ran.json()["messages"].as_array().unwrap().len()
}

#[test]
fn the_request_that_was_sent_is_printed() {
    let cli = Cli::new();
    let id = import(&cli, &records());
    let last = cli.run(&["context", &id, "--as-sent"]);
    assert_eq!(messages(&last), 3);
    assert_eq!(last.json()["system"], shape()["system"]);
    assert_eq!(last.json()["model"], "claude-x");
    // Records 1 to 4 are the four messages, perhaps after others.
    let shown = cli.run(&["show", &id, "--json"]).json();
    let seqs: Vec<u64> = shown["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["seq"].as_u64().unwrap())
        .collect();
    for (seq, expected) in [(seqs[1], 1), (seqs[2], 1), (seqs[3], 3)] {
        let ran = cli.run(&["context", &format!("{id}:{seq}"), "--as-sent"]);
        assert_eq!(messages(&ran), expected, "record {seq}");
    }
    let early = cli.run(&["context", &format!("{id}:{}", seqs[0]), "--as-sent"]);
    assert_eq!(early.code, 2);
    assert!(
        early.stderr.contains("has no record of what was sent"),
        "{}",
        early.stderr
    );
}

#[test]
fn a_session_without_requests_says_so() {
    let cli = Cli::new();
    let id = cli.new_session("hello");
    let expected = "\
exit 2
err: error: session <id> has no record of what was sent: only Claude Code from 2.1.325 keeps it
";
    let ran = cli.run(&["context", &id, "--as-sent"]);
    assert_eq!(screen(&ran, &cli, &[&id]), expected);
    let cli = Cli::new();
    let plain: Vec<Value> = records()
        .into_iter()
        .filter(|record| record["type"] == "user" || record["type"] == "assistant")
        .collect();
    let id = import(&cli, &plain);
    let ran = cli.run(&["context", &id, "--as-sent"]);
    assert_eq!(screen(&ran, &cli, &[&id]), expected);
    let ran = cli.run(&["context", &format!("{id}:1")]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("add --as-sent"), "{}", ran.stderr);
}

#[test]
fn a_request_that_was_edited_is_printed_with_a_warning_and_one_with_a_gap_is_not() {
    let cli = Cli::new();
    let mut edited = records();
    edited[0]["shape"]["system"] = text("Be rude.");
    let id = import(&cli, &edited);
    let ran = cli.run(&["context", &id, "--as-sent"]);
    assert_eq!(ran.code, 0);
    assert_eq!(ran.json()["system"], text("Be rude."));
    assert!(
        ran.stderr
            .starts_with("warning: the request does not have the hash"),
        "{}",
        ran.stderr
    );

    let cli = Cli::new();
    let id = import(&cli, &records()[1..]);
    let ran = cli.run(&["context", &id, "--as-sent"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(
        ran.stderr
            .contains("the system prompt and the tools of the request are missing"),
        "{}",
        ran.stderr
    );
}
