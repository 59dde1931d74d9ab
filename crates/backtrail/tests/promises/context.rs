//! The context of a session: a response is one message, whatever records it has.

use backtrail::{Block, Draft, Message, Role, Session, Shape, ToolResult, ToolUse};
use serde_json::{Value, json};

use crate::damage::lab::Lab;

fn session_of<const N: usize>(lab: &Lab, drafts: [Draft; N]) -> Session {
    let session = lab.store.create_session(Default::default()).unwrap();
    let results = session.append_batch(drafts);
    assert!(results.iter().all(Result::is_ok));
    session
}

fn part(response: &str, block: impl Into<Block>) -> Draft {
    let draft = Draft::from(Message::assistant([block.into()]));
    draft.model("claude-x").response_id(response)
}

fn call(id: &str) -> ToolUse {
    ToolUse::new(id, "bash", &json!({})).unwrap()
}

fn result(id: &str) -> Draft {
    let result = ToolResult::ok("done").answers(id, "bash");
    Draft::from(Message::new(Role::Tool, [result.into()]))
}

/// Returns the roles of the messages, each with how many parts it has.
fn roles(session: &Session, shape: Shape) -> Vec<String> {
    let context = session.context(shape).unwrap();
    assert_eq!(context.mends(), [], "{shape}");
    let json: Value = serde_json::from_str(context.as_json()).unwrap();
    let messages = json["messages"].as_array().unwrap().iter();
    let role = |message: &Value| {
        let parts = ["content", "blocks", "tool_calls"].map(|name| message[name].as_array());
        let parts: usize = parts.into_iter().flatten().map(Vec::len).sum();
        format!("{} {parts}", message["role"].as_str().unwrap())
    };
    messages.map(role).collect()
}

#[test]
fn the_records_of_one_response_are_one_message_in_every_shape() {
    let lab = Lab::new();
    let session = session_of(
        &lab,
        [
            Message::user_text("go").into(),
            part("r1", Block::signed_thinking("hm", "sig")),
            part("r1", Block::text("I look.")),
            part("r1", call("t1")),
            // Its first call has a result before the second is recorded.
            result("t1"),
            part("r1", call("t2")),
            result("t2"),
            part("r2", Block::text("Done.")),
            Message::user_text("more").into(),
            part("r2", Block::text("Another response with the same id.")),
        ],
    );
    let anthropic = [
        "user 1",
        "assistant 4",
        "user 2",
        "assistant 1",
        "user 1",
        "assistant 1",
    ];
    assert_eq!(roles(&session, Shape::Anthropic), anthropic);
    let neutral = [
        "user 1",
        "assistant 4",
        "tool 2",
        "assistant 1",
        "user 1",
        "assistant 1",
    ];
    assert_eq!(roles(&session, Shape::Neutral), neutral);
    let context = session.context(Shape::OpenAiChat).unwrap();
    let json: Value = serde_json::from_str(context.as_json()).unwrap();
    assert_eq!(
        json["messages"][1]["tool_calls"].as_array().unwrap().len(),
        2
    );
    assert_eq!(json["messages"][1]["content"], "I look.");
    let context = session.context(Shape::OpenAi).unwrap();
    let json: Value = serde_json::from_str(context.as_json()).unwrap();
    let kinds = json["input"].as_array().unwrap().iter();
    let kinds: Vec<&str> = kinds.map(|item| item["type"].as_str().unwrap()).collect();
    let calls = [
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
    ];
    assert_eq!(kinds[2..6], calls);
}

#[test]
fn a_repair_names_the_record_of_its_block() {
    let lab = Lab::new();
    let session = session_of(
        &lab,
        [
            Message::user_text("go").into(),
            part("r1", Block::text("I look.")),
            part("r1", Block::text(" ")),
            part("r1", call("t1")),
        ],
    );
    let context = session.context(Shape::Anthropic).unwrap();
    let mends: Vec<String> = context
        .mends()
        .iter()
        .map(|mend| format!("{} {}", mend.seq, mend.rule))
        .collect();
    assert_eq!(mends, ["3 empty_text", "4 dangling_call"]);
}
