//! The model answers in each protocol, streamed and not, what the script says, from the tools that
//! the request offers; it logs everything, and holds back what it should.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{Action, Hold, Kind, Script, Server, Step, Turn};

struct Model {
    server: Server,
    dir: TempDir,
}

fn model(turns: impl IntoIterator<Item = Turn>) -> Model {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(Script::new(turns), &dir.path().join("log.jsonl")).unwrap();
    Model { server, dir }
}

/// A turn of one call and an answer.
fn turn() -> Turn {
    let calls = [Action::shell("ls -a")];
    let first = Step::call("Looking.", calls).thinking("What is there?");
    Turn::new("TURN-1", [first, Step::say("Done: ä€.")])
}

fn send(port: u16, method: &str, path: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    received(stream)
}

fn received(mut stream: TcpStream) -> (u16, String) {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap();
    (status.parse().unwrap(), body.to_owned())
}

impl Model {
    fn ask(&self, path: &str, body: &Value) -> String {
        let (status, text) = send(self.server.port(), "POST", path, &body.to_string());
        assert_eq!(status, 200, "{text}");
        text
    }

    fn ask_json(&self, path: &str, body: &Value) -> Value {
        serde_json::from_str(&self.ask(path, body)).unwrap()
    }
}

/// Returns the data of the events, the end mark aside.
fn events(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let data = data.filter(|data| *data != "[DONE]");
    data.map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

/// Joins a text that comes in pieces.
fn joined(events: &[Value], pointer: &str) -> String {
    let pieces = events.iter().filter_map(|event| event.pointer(pointer));
    pieces.filter_map(Value::as_str).collect()
}

fn schema(name: &str) -> Value {
    json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]})
}

fn anthropic(messages: Value, stream: bool) -> Value {
    let tools = json!([{"name": "Bash", "input_schema": schema("command")}]);
    json!({"model": "m", "stream": stream, "tools": tools, "messages": messages})
}

#[test]
fn anthropic_messages() {
    let model = model([turn()]);
    let mut messages =
        json!([{"role": "user", "content": [{"type": "text", "text": "TURN-1 go"}]}]);
    let whole = model.ask_json(
        "/v1/messages?beta=true",
        &anthropic(messages.clone(), false),
    );
    assert_eq!(whole["content"][0]["thinking"], "What is there?");
    assert_eq!(whole["content"][1]["text"], "Looking.");
    let call = &whole["content"][2];
    assert_eq!(
        (&call["name"], &call["input"]),
        (&json!("Bash"), &json!({"command": "ls -a"}))
    );
    let list = messages.as_array_mut().unwrap();
    list.push(json!({"role": "assistant", "content": whole["content"]}));
    list.push(json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": call["id"], "content": [{"type": "text", "text": "a b"}]}]}));
    let events = events(&model.ask("/v1/messages", &anthropic(messages, true)));
    assert_eq!(joined(&events, "/delta/text"), "Done: ä€.");
    assert_eq!(joined(&events, "/delta/stop_reason"), "end_turn");
    let last = model.server.exchanges().pop().unwrap();
    assert_eq!(last.request.results(), [("call_1", "a b")]);
    assert_eq!(last.request.answers(), ["Looking."]);
}

#[test]
fn a_streamed_call_arrives_whole() {
    let model = model([turn()]);
    let messages = json!([{"role": "user", "content": "TURN-1"}]);
    let events = events(&model.ask("/v1/messages", &anthropic(messages, true)));
    assert_eq!(
        joined(&events, "/delta/partial_json"),
        r#"{"command":"ls -a"}"#
    );
    assert_eq!(joined(&events, "/delta/signature"), "signature-1");
}

fn chat(messages: Value, stream: bool) -> Value {
    let function = json!({"name": "run_shell_command", "parameters": schema("command")});
    let tools = json!([{"type": "function", "function": function}]);
    json!({"model": "m", "stream": stream, "tools": tools, "messages": messages})
}

#[test]
fn openai_chat_completions() {
    let model = model([turn()]);
    let mut messages = json!([{"role": "system", "content": "be good"}, {"role": "user", "content": "\"TURN-1\""}]);
    let streamed = model.ask("/v1/chat/completions", &chat(messages.clone(), true));
    assert!(streamed.ends_with("data: [DONE]\n\n"));
    let events = events(&streamed);
    assert_eq!(joined(&events, "/choices/0/delta/content"), "Looking.");
    assert_eq!(
        joined(&events, "/choices/0/delta/reasoning_content"),
        "What is there?"
    );
    let call = events
        .iter()
        .find_map(|event| event.pointer("/choices/0/delta/tool_calls/0"));
    let call = call.unwrap();
    assert_eq!(call["function"]["arguments"], r#"{"command":"ls -a"}"#);
    let usage = &events.last().unwrap()["usage"];
    let claimed = model.server.exchanges()[0].answer.as_ref().unwrap().usage;
    assert_eq!(usage["prompt_tokens"], claimed.input + claimed.cache_read);
    let list = messages.as_array_mut().unwrap();
    list.push(json!({"role": "assistant", "content": "Looking.", "tool_calls": [call]}));
    list.push(json!({"role": "tool", "tool_call_id": call["id"], "content": "a b"}));
    let whole = model.ask_json("/v1/chat/completions", &chat(messages, false));
    assert_eq!(whole["choices"][0]["message"]["content"], "Done: ä€.");
    let last = model.server.exchanges().pop().unwrap();
    assert_eq!(
        last.request.calls()[0].arguments,
        json!({"command": "ls -a"})
    );
}

fn responses(input: Value, stream: bool) -> Value {
    let tools = json!([{"type": "function", "name": "exec_command", "parameters": schema("cmd")}]);
    json!({"model": "m", "stream": stream, "tools": tools, "input": input, "instructions": "be good"})
}

#[test]
fn openai_responses() {
    let model = model([turn()]);
    let prompt = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "TURN-1"}]});
    let events = events(&model.ask("/v1/responses", &responses(json!([prompt]), true)));
    let last = &events.last().unwrap()["response"];
    let kinds: Vec<_> = last["output"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| &item["type"])
        .collect();
    assert_eq!(kinds, ["reasoning", "message", "function_call"]);
    assert_eq!(joined(&events, "/delta"), "Looking.{\"cmd\":\"ls -a\"}");
    let call = &last["output"][2];
    let result =
        json!({"type": "function_call_output", "call_id": call["call_id"], "output": "a b"});
    let whole = model.ask_json(
        "/v1/responses",
        &responses(json!([prompt, call, result]), false),
    );
    assert_eq!(whole["output"][0]["content"][0]["text"], "Done: ä€.");
}

fn gemini(contents: Value) -> Value {
    let declaration =
        json!({"name": "run_shell_command", "parametersJsonSchema": schema("command")});
    json!({"contents": contents, "tools": [{"functionDeclarations": [declaration]}]})
}

#[test]
fn gemini_contents() {
    let model = model([turn()]);
    let prompt = json!({"role": "user", "parts": [{"text": "TURN-1"}]});
    let path = "/v1beta/models/g-1:streamGenerateContent?alt=sse";
    let events = events(&model.ask(path, &gemini(json!([prompt]))));
    assert_eq!(events.len(), 3);
    assert_eq!(joined(&events, "/candidates/0/finishReason"), "STOP");
    let part = events[2].pointer("/candidates/0/content/parts/0").unwrap();
    assert_eq!(part["functionCall"]["args"], json!({"command": "ls -a"}));
    let result =
        json!({"functionResponse": {"id": "call_1", "name": "x", "response": {"output": "a b"}}});
    let contents =
        json!([prompt, {"role": "model", "parts": [part]}, {"role": "user", "parts": [result]}]);
    let whole = model.ask_json("/v1beta/models/g-1:generateContent", &gemini(contents));
    assert_eq!(
        whole["candidates"][0]["content"]["parts"][0]["text"],
        "Done: ä€."
    );
    let last = model.server.exchanges().pop().unwrap();
    assert_eq!(
        (last.request.model.as_str(), last.request.results()),
        ("g-1", vec![("call_1", "a b")])
    );
}

#[test]
fn models_tokens_and_unknown_paths() {
    let model = model([]);
    let port = model.server.port();
    assert!(send(port, "GET", "/v1/models", "").1.contains("fake-1"));
    assert!(
        send(port, "POST", "/v1/messages/count_tokens", "{}")
            .1
            .contains("input_tokens")
    );
    assert!(
        send(port, "POST", "/v1beta/models/g:countTokens", "{}")
            .1
            .contains("totalTokens")
    );
    assert_eq!(send(port, "GET", "/v1/nothing", "").0, 404);
    let kinds = model
        .server
        .exchanges()
        .into_iter()
        .map(|exchange| exchange.kind);
    assert!(kinds.into_iter().all(|kind| kind == Kind::Other));
}

#[test]
fn a_request_without_tools_is_not_a_turn() {
    let model = model([turn()]);
    let body = json!({"messages": [{"role": "user", "content": "A title for: TURN-1"}]});
    let whole = model.ask_json("/v1/chat/completions", &body);
    assert_eq!(whole["choices"][0]["message"]["content"], "fine");
    assert_eq!(model.server.exchanges()[0].kind, Kind::Side);
}

#[test]
fn the_observer_sees_a_step_before_it_is_answered() {
    let dir = tempfile::tempdir().unwrap();
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let sees = std::sync::Arc::clone(&seen);
    let observer = Box::new(move |kind: &Kind| sees.lock().unwrap().push(kind.clone()));
    let log = dir.path().join("log.jsonl");
    let server = Server::start_observed(Script::new([turn()]), &log, observer).unwrap();
    let model = Model { server, dir };
    let messages = json!([{"role": "user", "content": "TURN-1"}]);
    model.ask("/v1/messages", &anthropic(messages, true));
    let first = Kind::Turn {
        marker: "TURN-1".to_owned(),
        step: 0,
    };
    assert_eq!(*seen.lock().unwrap(), [first]);
}

#[test]
fn every_request_is_logged_with_its_answer() {
    let model = model([turn()]);
    model.ask(
        "/v1/messages",
        &anthropic(json!([{"role": "user", "content": "TURN-1"}]), true),
    );
    let log = std::fs::read_to_string(model.dir.path().join("log.jsonl")).unwrap();
    let line: Value = serde_json::from_str(&log).unwrap();
    assert_eq!(
        (&line["turn"], &line["step"]),
        (&json!("TURN-1"), &json!(0))
    );
    assert_eq!(line["body"]["messages"][0]["content"], "TURN-1");
    assert_eq!(
        line["answer"]["calls"][0]["arguments"],
        json!({"command": "ls -a"})
    );
}

#[test]
fn an_action_that_no_tool_can_do_is_an_error_and_logged() {
    let model = model([turn()]);
    let mut body = anthropic(json!([{"role": "user", "content": "TURN-1"}]), false);
    body["tools"][0]["name"] = json!("WebSearch");
    let (status, text) = send(
        model.server.port(),
        "POST",
        "/v1/messages",
        &body.to_string(),
    );
    assert_eq!(status, 400);
    assert!(text.contains("WebSearch"), "{text}");
    assert!(model.server.exchanges()[0].error.is_some());
}

#[test]
fn a_body_in_chunks_is_read() {
    let model = model([turn()]);
    let body = anthropic(json!([{"role": "user", "content": "TURN-1"}]), false).to_string();
    let (first, second) = body.split_at(20);
    let mut stream = TcpStream::connect(("127.0.0.1", model.server.port())).unwrap();
    write!(
        stream,
        "POST /v1/messages HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    .unwrap();
    write!(
        stream,
        "{:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n",
        first.len(),
        second.len()
    )
    .unwrap();
    let (status, text) = received(stream);
    assert_eq!(status, 200);
    assert!(text.contains("Looking."));
}

/// Asks in a thread, waits until the request is there, and asserts that it has no answer yet.
fn ask_and_hold(model: &Model) -> std::thread::JoinHandle<(u16, String)> {
    let body = anthropic(json!([{"role": "user", "content": "TURN-1"}]), false).to_string();
    let port = model.server.port();
    let asking = std::thread::spawn(move || send(port, "POST", "/v1/messages", &body));
    assert!(model.server.wait_for("TURN-1", 0, Duration::from_secs(30)));
    assert!(model.server.exchanges().is_empty());
    asking
}

fn held(hold: Hold) -> Model {
    model([Turn::new("TURN-1", [Step::say("Now.").after(hold)])])
}

#[test]
fn an_answer_waits_for_its_release() {
    let by_name = || held(Hold::Released("one".to_owned()));
    let model = by_name();
    let asking = ask_and_hold(&model);
    model.server.release("another");
    assert!(model.server.exchanges().is_empty());
    model.server.release("one");
    assert!(asking.join().unwrap().1.contains("Now."));

    let model = by_name();
    let asking = ask_and_hold(&model);
    send(model.server.port(), "POST", "/control/release/one", "");
    assert!(asking.join().unwrap().1.contains("Now."));
}

#[test]
fn an_answer_waits_for_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let file: PathBuf = dir.path().join("ready");
    let model = held(Hold::File(file.clone()));
    let asking = ask_and_hold(&model);
    std::fs::write(file, "").unwrap();
    assert!(asking.join().unwrap().1.contains("Now."));
}
