use super::*;
use crate::collector::EventCollector;
use crate::event::ReadReport;
use crate::testing::{check, read};

const PATH: &str = "/data/session.jsonl";
const TRACE: &str = r#"{"type":"session","harness":"my-agent","id":"abc123","name":" Times ","extra":1}
{"type":"message","message":{"role":"system","content":"Be brief."}}
{"type":"message","message":{"role":"user","content":"what time is it?","timestamp":1790000001000}}
{"type":"message","message":{"role":"assistant","content":"","reasoningContent":"hm","model":"big","toolCalls":[{"id":"t1","function":{"name":"clock","arguments":"{\"zone\":\"UTC\"}"}}],"timestamp":1790000002000}}
{"type":"message","message":{"role":"tool","toolCallId":"t1","content":"15:00"}}
{"type":"message","message":{"role":"assistant","content":[{"type":"text","text":"three"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}},{"type":"odd"}]}}
{"type":"message","message":{"role":"robot","content":"x"}}
{"type":"later"}
{"type":"message"}
"#;

fn collected(text: &str) -> (ReadReport, EventCollector) {
    read(&HfTraces, PATH, text.as_bytes()).unwrap()
}

#[test]
fn a_trace_is_a_header_and_messages() {
    let (report, events) = collected(TRACE);
    assert_eq!(events.session, "abc123");
    assert_eq!(report.damage.count, 1);
    assert_eq!(report.unknown.values().sum::<u64>(), 2);
    let main = events.main().unwrap();
    assert_eq!(main.details.title.as_deref(), Some("Times"));
    assert_eq!(main.details.model.as_deref(), Some("big"));
    let all: Vec<_> = events.messages().collect();
    let roles: Vec<_> = all.iter().map(|event| event.message.role.clone()).collect();
    let expected = [
        Role::System,
        Role::User,
        Role::Assistant,
        Role::Tool,
        Role::Assistant,
    ];
    assert_eq!(roles, expected);
    assert_eq!(all[1].at.unwrap().as_millis(), 1_790_000_001_000);
    let blocks = &all[2].message.blocks;
    assert!(matches!(&blocks[0], Block::Thinking(_)));
    assert!(matches!(&blocks[1], Block::ToolUse(call)
        if call.input.as_str() == r#"{"zone":"UTC"}"#));
    assert!(
        matches!(&all[3].message.blocks[0], Block::ToolResult(result)
        if result.tool_name == Some(Text::from("clock")) && !result.is_error)
    );
    assert!(matches!(
        all[4].message.blocks[..],
        [Block::Text(_), Block::Media(_), Block::Other(_)]
    ));
}

#[test]
fn the_same_message_twice_is_two_messages() {
    let second = TRACE.lines().nth(2).unwrap();
    let (_, events) = collected(&format!("{TRACE}{second}\n{second}\n"));
    assert_eq!(events.messages().count(), 7);
    check(
        &HfTraces,
        PATH,
        format!("{TRACE}{second}\n{second}\n").as_bytes(),
        9,
    );
}

#[test]
fn it_can_be_resumed_from_every_byte() {
    (0..=TRACE.len()).for_each(|cut| check(&HfTraces, PATH, TRACE.as_bytes(), cut));
}

#[test]
fn sessions_of_pi_are_not_recognised() {
    let is = |first: &str| HfTraces.recognises(&Source::from_bytes(PATH, first));
    assert!(is(r#"{"type":"session","harness":"x","id":"1"}"#));
    assert!(!is(
        r#"{"type":"session","id":"1","cwd":"/","timestamp":"2026-02-03T04:05:06Z"}"#
    ));
    let pi = r#"{"type":"session","harness":"x","version":3,"id":"1","cwd":"/","timestamp":"2026-02-03T04:05:06Z"}"#;
    assert!(!is(pi));
    assert!(super::super::Pi.recognises(&Source::from_bytes(PATH, pi)));
}
