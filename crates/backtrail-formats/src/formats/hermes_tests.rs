use super::*;
use crate::testing::{check, read};

const PATH: &str = "/s/session_1.json";

fn session(messages: &str) -> String {
    format!(
        r#"{{"session_id":"s1","model":"acme-1","session_start":"2026-01-02T03:04:05Z","last_updated":"2026-01-02T04:04:05Z","model_config":{{"cwd":"/home/me"}},"system_prompt":"brief","messages":[{messages}]}}"#
    )
}

#[test]
fn messages_are_read_with_their_calls_and_failures() {
    let text = session(
        r#"{"role":"user","content":"look"},
        {"role":"assistant","content":"so","reasoning":"hm","reasoning_content":"hm","tool_calls":[{"id":"c1","function":{"name":"terminal","arguments":"{\"command\":\"ls\"}"}}]},
        {"role":"tool","content":"{\"output\":\"\",\"exit_code\":1}","tool_call_id":"c1","tool_name":"terminal"},
        {"role":"tool","content":"{\"output\":\"a\",\"exit_code\":0,\"error\":null}","tool_call_id":"c2"},
        {"role":"tool","content":"no","tool_call_id":"c3","finish_reason":"error"},
        {"role":"session_meta"},{"role":"weather"},{"content":"x"},7"#,
    );
    let (report, collected) = read(&Hermes, PATH, text.as_bytes()).unwrap();
    assert_eq!(report.unknown.keys().collect::<Vec<_>>(), ["role: weather"]);
    assert_eq!(report.damage.count, 2);
    assert_eq!(collected.session, "s1");
    let details = &collected.main().unwrap().details;
    assert_eq!(details.directory.as_deref(), Some("/home/me".as_ref()));
    assert!(details.started_at.is_some() && details.ended_at.is_some());
    let said: Vec<_> = collected.messages().collect();
    assert_eq!(said[0].message.role, Role::System);
    assert!(said[1].message.is_prompt());
    assert_eq!(said[2].model.as_deref(), Some("acme-1"));
    assert!(matches!(&said[2].message.blocks[..],
        [Block::Thinking(_), Block::Text(_), Block::ToolUse(call)] if call.name.as_str() == "terminal"));
    let failed: Vec<_> = said[3..]
        .iter()
        .map(|event| matches!(&event.message.blocks[0], Block::ToolResult(result) if result.is_error))
        .collect();
    assert_eq!(failed, [true, false, true]);
    for cut in 0..=text.len() {
        check(&Hermes, PATH, text.as_bytes(), cut);
    }
}

#[test]
fn a_session_that_is_being_written_is_damaged_for_now() {
    let text = session(r#"{"role":"user","content":"look"}"#);
    let (report, collected) = read(&Hermes, PATH, &text.as_bytes()[..text.len() - 3]).unwrap();
    assert!(report.unfinished);
    assert_eq!(collected.messages().count(), 0);
}

#[test]
fn only_sessions_are_recognised() {
    let recognises = |text: &str| Hermes.recognises(&Source::from_bytes(PATH, text.as_bytes()));
    assert!(recognises(&session("")));
    assert!(!recognises(
        r#"{"session_id":"s1","messages":[{"role":"user","blocks":[]}]}"#
    ));
    assert!(Hermes.is_session_file(PATH.as_ref()));
    assert!(!Hermes.is_session_file("/s/sessions.json".as_ref()));
}
