use super::*;
use crate::collector::EventCollector;
use crate::event::Origin;
use crate::testing::{check, read};

const PATH: &str = "/s/%2Fx/0190/chat_history.jsonl";

const LINES: [&str; 8] = [
    r#"{"type":"system","content":"brief"}"#,
    r#"{"type":"user","content":[{"type":"text","text":"OS: none"}],"synthetic_reason":"environment_context"}"#,
    r#"{"type":"user","content":[{"type":"text","text":"look"}],"prompt_index":0}"#,
    r#"{"type":"reasoning","id":"r1","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}],"encrypted_content":"x"}"#,
    r#"{"type":"assistant","content":"","tool_calls":[{"id":"c1","name":"run","arguments":"{\"command\":\"ls\"}"}],"model_id":"acme-1"}"#,
    r#"{"type":"tool_result","tool_call_id":"c1","content":"a","images":["data:image/png;base64,aGk="]}"#,
    r#"{"type":"backend_tool_call","kind":{"tool_type":"web_search","action":{"query":"x"},"id":"w1"}}"#,
    r#"{"type":"weather"}"#,
];

#[test]
fn lines_of_every_type_are_read() {
    let all = LINES.join("\n");
    let (report, collected) = read(&GrokCli, PATH, all.as_bytes()).unwrap();
    assert_eq!(collected.session, "0190");
    assert_eq!(report.unknown.keys().collect::<Vec<_>>(), ["weather"]);
    let said: Vec<_> = collected.messages().collect();
    assert_eq!(said.len(), 7);
    assert_eq!(said[0].message.role, Role::System);
    assert!(said[1].message.is_meta() && said[2].message.is_prompt());
    assert!(
        matches!(&said[3].message.blocks[0], Block::Thinking(block) if block.thinking.as_str() == "a\nb")
    );
    assert!(matches!(&said[4].message.blocks[..], [Block::ToolUse(call)]
        if call.id.as_str() == "c1" && call.input.as_str() == r#"{"command":"ls"}"#));
    assert_eq!(said[4].model.as_deref(), Some("acme-1"));
    assert!(
        matches!(&said[5].message.blocks[0], Block::ToolResult(result)
        if result.output.as_str().contains("image/png"))
    );
    assert!(
        matches!(&said[6].message.blocks[0], Block::ToolUse(call) if call.name.as_str() == "web_search")
    );
    for cut in 0..=all.len() {
        check(&GrokCli, PATH, all.as_bytes(), cut);
    }
}

#[test]
fn a_session_is_described_by_its_summary_and_a_sub_agent_by_its_parent() {
    let home = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = home.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    };
    let summary = r#"{"info":{"id":"0191","cwd":"/home/me"},"generated_title":"Looking","created_at":"2026-01-02T03:04:05.123456Z","session_kind":"subagent"}"#;
    write("b/0191/summary.json", summary);
    write("b/0190/subagents/0191/meta.json", "{}");
    let path = write("b/0191/chat_history.jsonl", &LINES.join("\n"));
    let source = Source::open(&path).unwrap();
    let mut collected = EventCollector::default();
    collected.read(GrokCli.open(&source).unwrap()).unwrap();
    assert_eq!(collected.session, "0191");
    let main = collected.main().unwrap();
    assert_eq!(main.details.title.as_deref(), Some("Looking"));
    assert_eq!(main.details.directory.as_deref(), Some("/home/me".as_ref()));
    assert!(main.details.started_at.is_some());
    let parent = match &main.thread.origin {
        Origin::Spawned { session, .. } => session.as_deref(),
        _ => None,
    };
    assert_eq!(parent, Some("0190"));
}

#[test]
fn only_histories_are_recognised() {
    let recognises = |text: &str| GrokCli.recognises(&Source::from_bytes(PATH, text.as_bytes()));
    assert!(recognises(LINES[0]));
    assert!(recognises(LINES[2]));
    for other in [
        r#"{"type":"user","content":[{"type":"text","text":"x"}]}"#,
        r#"{"type":"system","content":"x","uuid":"u","sessionId":"s"}"#,
        r#"{"type":"system","content":"x","id":"1","timestamp":"2026-01-02T03:04:05Z"}"#,
        r#"{"role":"system","content":"x"}"#,
    ] {
        assert!(!recognises(other), "{other}");
    }
    assert!(GrokCli.is_session_file(PATH.as_ref()));
    let copy = "/s/%2Fx/0190/subagents/0191/chat_history.jsonl";
    assert!(!GrokCli.is_session_file(copy.as_ref()));
    assert!(!GrokCli.is_session_file("/s/%2Fx/0190/updates.jsonl".as_ref()));
}
