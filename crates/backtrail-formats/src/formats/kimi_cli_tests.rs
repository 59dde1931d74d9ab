use super::*;
use crate::collector::EventCollector;
use crate::event::{Event, Origin, ReadReport};
use crate::testing::{check, read};

const PATH: &str = "/s/wd_x/session_1/agents/main/wire.jsonl";

const HEADER: &str = r#"{"type":"metadata","protocol_version":"1.4","created_at":1767323045000}"#;

fn file(lines: &[&str]) -> String {
    let lines = [&[HEADER], lines].concat();
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn user(text: &str, origin: &str) -> String {
    format!(
        r#"{{"type":"context.append_message","message":{{"role":"user","content":[{{"type":"text","text":"{text}"}}],"origin":{{"kind":"{origin}"}}}},"time":1767323046000}}"#
    )
}

fn event(event: &str) -> String {
    format!(r#"{{"type":"context.append_loop_event","event":{{{event}}},"time":1767323047000}}"#)
}

fn said(text: &str) -> String {
    event(&format!(
        r#""type":"content.part","stepUuid":"u1","part":{{"type":"text","text":"{text}"}}"#
    ))
}

const USED: &str =
    r#""usage":{"inputOther":1,"output":2,"inputCacheRead":3,"inputCacheCreation":4}"#;

fn collected(text: &str) -> (ReadReport, EventCollector) {
    read(&KimiCli, PATH, text.as_bytes()).unwrap()
}

fn texts(collected: &EventCollector) -> Vec<String> {
    let events = &collected.main().unwrap().events;
    let text = |event: &Event| match event {
        Event::Message(event) => event.message.text().into_owned(),
        Event::Summary(event) => format!("[{}]", event.summary),
        Event::Usage(event) => format!("({})", event.usage.total()),
    };
    events.iter().map(text).collect()
}

#[test]
fn each_part_of_a_step_is_a_message_and_its_usage_counts_once() {
    let all = file(&[
        r#"{"type":"config.update","systemPrompt":"brief","cwd":"/home/me"}"#,
        r#"{"type":"config.update","systemPrompt":"brief"}"#,
        &user("look", "user"),
        &user("mind the gap", "injection"),
        r#"{"type":"llm.request","model":"acme-1"}"#,
        &event(r#""type":"step.begin","uuid":"u1""#),
        &event(r#""type":"content.part","stepUuid":"u1","part":{"type":"think","think":"hm"}"#),
        &event(
            r#""type":"tool.call","uuid":"x","stepUuid":"u1","toolCallId":"c1","name":"Bash","args":{"command":"ls"}"#,
        ),
        &event(r#""type":"tool.result","toolCallId":"c1","result":{"output":"no","isError":true}"#),
        &event(&format!(
            r#""type":"step.end","uuid":"u1",{USED},"llmFirstTokenLatencyMs":5,"llmStreamDurationMs":6"#
        )),
        &format!(r#"{{"type":"usage.record",{USED}}}"#),
        &format!(r#"{{"type":"usage.record",{USED},"usageScope":"session"}}"#),
        r#"{"type":"turn.ended"}"#,
        r#"{"type":"weather"}"#,
    ]);
    let (report, collected) = collected(&all);
    assert_eq!(report.unknown.keys().collect::<Vec<_>>(), ["weather"]);
    assert_eq!(collected.session, "session_1");
    let details = &collected.main().unwrap().details;
    assert_eq!(details.directory.as_deref(), Some("/home/me".as_ref()));
    assert_eq!(details.model.as_deref(), Some("acme-1"));
    assert!(details.started_at.is_some());
    let expected = ["brief", "look", "mind the gap", "", "", "", "(10)", "(10)"];
    assert_eq!(texts(&collected), expected);
    let said: Vec<_> = collected.messages().collect();
    assert!(said[1].message.is_prompt() && said[2].message.is_meta());
    assert_eq!(said[3].response_id.as_deref(), Some("session_1#u1"));
    assert!(matches!(&said[4].message.blocks[0], Block::ToolUse(call) if call.id.as_str() == "c1"));
    assert!(matches!(&said[5].message.blocks[0], Block::ToolResult(result) if result.is_error));
    let Event::Usage(used) = &collected.main().unwrap().events[6] else {
        panic!("no usage");
    };
    assert_eq!(used.response_id, "session_1#u1");
    assert_eq!(used.duration_ms, Some(11));
    for cut in 0..=all.len() {
        check(&KimiCli, PATH, all.as_bytes(), cut);
    }
}

#[test]
fn usage_counts_once_in_either_order() {
    let record = format!(r#"{{"type":"usage.record",{USED}}}"#);
    let end = event(&format!(r#""type":"step.end","uuid":"u1",{USED}"#));
    for lines in [[&record, &end], [&end, &record]] {
        let (_, collected) = collected(&file(&[lines[0], lines[1]]));
        assert_eq!(texts(&collected), ["(10)"]);
    }
}

#[test]
fn undo_rewinds_prompts_up_to_the_last_summary() {
    let undo = |count: u64| format!(r#"{{"type":"context.undo","count":{count}}}"#);
    let all = file(&[
        &user("one", "user"),
        &said("1"),
        &user("two", "user"),
        &said("2"),
        &user("three", "user"),
        &undo(2),
        &user("four", "user"),
    ]);
    assert_eq!(texts(&collected(&all).1), ["one", "1", "four"]);
    for cut in 0..=all.len() {
        check(&KimiCli, PATH, all.as_bytes(), cut);
    }
    let all = file(&[
        &user("one", "user"),
        r#"{"type":"context.apply_compaction","summary":"s","contextSummary":"so far"}"#,
        &user("two", "user"),
        &undo(2),
        &undo(9_999_999_999_999),
    ]);
    assert_eq!(texts(&collected(&all).1), ["one", "[so far]", "two"]);
    let all = file(&[
        &user("one", "user"),
        &undo(1),
        &user("two", "user"),
        r#"{"type":"context.clear"}"#,
    ]);
    assert_eq!(texts(&collected(&all).1), ["two", "[]"]);
}

#[test]
fn the_journal_of_a_sub_agent_names_its_parent() {
    let path = "/s/wd_x/session_1/agents/agent-0/wire.jsonl";
    assert!(KimiCli.is_sub_agent_file(path.as_ref()));
    assert!(!KimiCli.is_sub_agent_file(PATH.as_ref()));
    assert!(KimiCli.is_session_file(path.as_ref()));
    assert!(!KimiCli.is_session_file("/s/wd_x/session_1/logs/wire.jsonl".as_ref()));
    let (_, collected) = read(&KimiCli, path, HEADER.as_bytes()).unwrap();
    assert_eq!(collected.session, "session_1/agent/agent-0");
    let origin = &collected.main().unwrap().thread.origin;
    assert!(
        matches!(origin, Origin::Spawned { session: Some(parent), .. } if parent == "session_1")
    );
}

#[test]
fn a_session_has_the_title_and_the_directory_of_its_state() {
    let home = tempfile::tempdir().unwrap();
    let session = home.path().join("session_1");
    std::fs::create_dir_all(session.join("agents/main")).unwrap();
    let state = r#"{"title":"Looking","workDir":"/home/me","createdAt":"2026-01-02T03:04:05Z"}"#;
    std::fs::write(session.join("state.json"), state).unwrap();
    let wire = session.join("agents/main/wire.jsonl");
    std::fs::write(&wire, file(&[&user("look", "user")])).unwrap();
    let source = Source::open(&wire).unwrap();
    let mut collected = EventCollector::default();
    collected.read(KimiCli.open(&source).unwrap()).unwrap();
    let details = &collected.main().unwrap().details;
    assert_eq!(details.title.as_deref(), Some("Looking"));
    assert_eq!(details.directory.as_deref(), Some("/home/me".as_ref()));
}

#[test]
fn the_context_of_the_older_agent_is_read() {
    let path = "/k/sessions/5d41/0190/context.jsonl";
    let all = [
        r#"{"role":"_system_prompt","content":"brief"}"#,
        r#"{"role":"_checkpoint","id":0}"#,
        r#"{"role":"user","content":[{"type":"text","text":"<system>CHECKPOINT 0</system>"}]}"#,
        r#"{"role":"user","content":"look"}"#,
        r#"{"role":"assistant","content":[{"type":"think","think":"hm"}],"tool_calls":[{"type":"function","id":"c1","function":{"name":"Bash","arguments":"{}"}}]}"#,
        r#"{"role":"tool","content":[{"type":"text","text":"<system>ERROR: no</system>"}],"tool_call_id":"c1"}"#,
        r#"{"role":"_usage","token_count":7}"#,
        r#"{"role":"ghost","content":"boo"}"#,
    ];
    let all = all.join("\n");
    assert!(KimiCli.recognises(&Source::from_bytes(path, all.as_bytes())));
    let (report, collected) = read(&KimiCli, path, all.as_bytes()).unwrap();
    assert_eq!(report.unknown.keys().collect::<Vec<_>>(), ["role: ghost"]);
    assert_eq!(collected.session, "0190");
    let said: Vec<_> = collected.messages().map(|event| &event.message).collect();
    assert_eq!(said.len(), 5);
    assert!(said[1].is_meta() && said[2].is_prompt());
    assert!(matches!(&said[3].blocks[1], Block::ToolUse(call) if call.name.as_str() == "Bash"));
    assert!(matches!(&said[4].blocks[0], Block::ToolResult(result) if result.is_error));
    // What comes before the first line may be written before it.
    let all = format!("\0\n{all}");
    for cut in 0..=all.len() {
        check(&KimiCli, path, all.as_bytes(), cut);
    }
    assert!(KimiCli.is_session_file(path.as_ref()));
    assert!(!KimiCli.is_session_file("/k/0190/subagents/a/context.jsonl".as_ref()));
}

#[test]
fn journals_of_the_older_agent_are_not_recognised() {
    let recognises = |text: &str| KimiCli.recognises(&Source::from_bytes(PATH, text.as_bytes()));
    assert!(recognises(&file(&[])));
    assert!(recognises(&file(&[&user("look", "user")])));
    let older = r#"{"timestamp":1767323045.5,"message":{"type":"TurnBegin","payload":{}}}"#;
    assert!(!recognises(&file(&[older])));
    assert!(!recognises(r#"{"type":"metadata"}"#));
}
