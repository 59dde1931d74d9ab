use backtrail::Block;

use super::*;
use crate::event::{Event, Origin};
use crate::testing::{check, read};

const PATH: &str = "/p/agent-transcripts/0190/0190.jsonl";

const PROMPT: &str = r#"{"role":"user","message":{"content":[{"type":"text","text":"<open_files>\na.txt\n</open_files>\n<user_query>\nlook\n</user_query>"}]}}"#;
const REPLY: &str = r#"{"role":"assistant","message":{"content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"so"},{"type":"tool_use","name":"Shell","input":{"command":"ls"}}]},"model":"acme-1"}"#;
const RESULT: &str = r#"{"role":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"no","is_error":true}]}}"#;

fn recognises(text: &str) -> bool {
    Cursor.recognises(&Source::from_bytes(PATH, text.as_bytes()))
}

#[test]
fn messages_are_read_and_a_prompt_is_split_from_what_is_around_it() {
    let ended = r#"{"type":"turn_ended","status":"success"}"#;
    let text = [PROMPT, REPLY, RESULT, ended, ""].join("\n");
    let (report, collected) = read(&Cursor, PATH, text.as_bytes()).unwrap();
    assert_eq!(collected.session, "0190");
    assert_eq!((report.damage.count, report.unknown.len()), (0, 0));
    let said: Vec<_> = collected.messages().collect();
    assert_eq!(said.len(), 4);
    assert!(said[0].message.is_meta());
    assert_eq!(said[0].message.text(), "<open_files>\na.txt\n</open_files>");
    assert!(said[1].message.is_prompt());
    assert_eq!(said[1].message.text(), "look");
    assert_eq!(said[2].model.as_deref(), Some("acme-1"));
    assert!(
        matches!(&said[2].message.blocks[2], Block::ToolUse(call) if call.name.as_str() == "Shell")
    );
    assert_eq!(said[3].message.role, Role::Tool);
    assert!(matches!(&said[3].message.blocks[0], Block::ToolResult(result) if result.is_error));
    for cut in 0..=text.len() {
        check(&Cursor, PATH, text.as_bytes(), cut);
    }
}

#[test]
fn what_is_unknown_or_damaged_is_counted() {
    let text = [
        PROMPT,
        r#"{"role":"assistant","message":{"content":[{"type":"hologram"}]}}"#,
        r#"{"role":"ghost","message":{"content":"boo"}}"#,
        r#"{"type":"weather"}"#,
        r#"{"role":"assistant","message":{}}"#,
        r#"{"message":{"content":"x"}}"#,
        r#"{"role":"assistant","mess"#,
        "",
    ];
    let (report, collected) = read(&Cursor, PATH, text.join("\n").as_bytes()).unwrap();
    let unknown: Vec<_> = report.unknown.keys().map(String::as_str).collect();
    assert_eq!(unknown, ["block: hologram", "role: ghost", "weather"]);
    assert_eq!(report.damage.count, 3);
    let kept = collected.messages().last().unwrap();
    assert!(matches!(&kept.message.blocks[..], [Block::Other(_)]));
}

#[test]
fn equal_lines_are_different_events() {
    let text = [PROMPT, PROMPT, ""].join("\n");
    let (_, collected) = read(&Cursor, PATH, text.as_bytes()).unwrap();
    let main = collected.main().unwrap();
    let keys: std::collections::HashSet<_> = main.events.iter().map(Event::key).collect();
    assert_eq!(keys.len(), 4);
}

#[test]
fn a_sub_agent_names_its_parent() {
    let path = "/p/agent-transcripts/0190/subagents/0191.jsonl";
    assert!(Cursor.is_sub_agent_file(path.as_ref()));
    assert!(!Cursor.is_sub_agent_file(PATH.as_ref()));
    let (_, collected) = read(&Cursor, path, PROMPT.as_bytes()).unwrap();
    assert_eq!(collected.session, "0190/agent/0191");
    let origin = &collected.main().unwrap().thread.origin;
    assert!(matches!(origin, Origin::Spawned { session: Some(parent), .. } if parent == "0190"));
}

#[test]
fn only_messages_with_a_role_and_without_a_type_are_recognised() {
    assert!(recognises(PROMPT));
    assert!(recognises(REPLY));
    for other in [
        r#"{"type":"user","message":{"role":"user","content":"x"},"uuid":"u"}"#,
        r#"{"type":"message","role":"user","message":{"content":"x"}}"#,
        r#"{"role":"user","content":"x"}"#,
        r#"{"role":"user","message":"x"}"#,
        "",
    ] {
        assert!(!recognises(other), "{other}");
    }
}

#[test]
fn transcripts_are_in_the_directories_of_projects() {
    let home = Environment::new("/home/me");
    assert_eq!(
        Cursor.directories(&home),
        [PathBuf::from("/home/me/.cursor/projects")]
    );
    assert!(Cursor.is_session_file(PATH.as_ref()));
    assert!(!Cursor.is_session_file("/p/mcps/0190.jsonl".as_ref()));
    assert!(!Cursor.is_session_file("/p/agent-transcripts/0190/0190.txt".as_ref()));
}

#[test]
fn a_chat_describes_its_transcript() {
    let home = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = home.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    };
    let meta = r#"{"schemaVersion":1,"title":"Looking","cwd":"/home/me","createdAtMs":1767323045000,"updatedAtMs":1767323046000}"#;
    write("chats/5d41/0190/meta.json", meta);
    write("chats/7d79/0191/meta.json", r#"{"title":"Other"}"#);
    let path = write("projects/x/agent-transcripts/0190/0190.jsonl", PROMPT);
    let source = Source::open(&path).unwrap();
    let mut collected = crate::collector::EventCollector::default();
    collected.read(Cursor.open(&source).unwrap()).unwrap();
    let details = &collected.main().unwrap().details;
    assert_eq!(details.title.as_deref(), Some("Looking"));
    assert_eq!(details.directory.as_deref(), Some("/home/me".as_ref()));
    assert!(details.started_at.is_some() && details.ended_at.is_some());
}
