use super::*;
use crate::collector::EventCollector;
use crate::testing::{check, read};

const PATH: &str = "/home/me/.openclaw/agents/main/sessions/0190.jsonl";

const LINES: [&str; 4] = [
    r#"{"type":"session","version":3,"id":"0190","timestamp":"2026-01-02T03:04:05Z","cwd":"/home/me"}"#,
    r#"{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:06Z","message":{"role":"user","content":"look"}}"#,
    r#"{"type":"message","id":"b","parentId":"a","timestamp":"2026-01-02T03:04:07Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"exec","arguments":{}}]}}"#,
    r#"{"type":"message","id":"c","parentId":"c1","timestamp":"2026-01-02T03:04:08Z","message":{"role":"toolResult","toolCallId":"c1","content":"no","isError":true}}"#,
];

fn collected(text: &str) -> EventCollector {
    read(&OpenClaw, PATH, text.as_bytes()).unwrap().1
}

#[test]
fn an_entry_whose_parent_is_not_in_the_file_follows_the_one_before_it() {
    let all = LINES.join("\n");
    assert_eq!(collected(&all).session, "0190");
    assert_eq!(collected(&all).messages().count(), 3);
    assert_eq!(collected(&all).threads.len(), 1);
    for cut in 0..=all.len() {
        check(&OpenClaw, PATH, all.as_bytes(), cut);
    }
}

#[test]
fn another_branch_is_still_a_branch() {
    let other =
        r#"{"type":"message","id":"d","parentId":"a","message":{"role":"user","content":"other"}}"#;
    let collected = collected(&[&LINES[..], &[other]].concat().join("\n"));
    assert_eq!(collected.threads.len(), 2);
    assert_eq!(collected.messages().count(), 2);
}

#[test]
fn sessions_of_pi_are_told_apart_by_their_directory_or_their_entries() {
    let all = LINES.join("\n");
    let claims = |path: &str, text: &str| {
        let source = Source::from_bytes(path, text.as_bytes());
        (OpenClaw.recognises(&source), pi::Pi.recognises(&source))
    };
    assert_eq!(claims(PATH, &all), (true, false));
    assert_eq!(claims("/x/0190.jsonl", &all), (false, true));
    let marked = format!(
        "{all}\n{}",
        r#"{"type":"custom_message","id":"e","parentId":"c","customType":"openclaw.runtime-context","content":"x"}"#
    );
    assert_eq!(claims("/x/0190.jsonl", &marked), (true, false));
    let quoted = format!(
        "{all}\n{}",
        r#"{"type":"message","id":"e","parentId":"c","message":{"role":"user","content":"openclaw"}}"#
    );
    assert_eq!(claims("/x/0190.jsonl", &quoted), (false, true));
}

#[test]
fn only_sessions_are_read_in_the_directories_of_agents() {
    assert!(OpenClaw.is_session_file(PATH.as_ref()));
    for reason in ["reset", "deleted"] {
        let archived = format!("{PATH}.{reason}.2026-01-02T03-04-05.000Z");
        assert!(OpenClaw.is_session_file(archived.as_ref()), "{archived}");
        let all = LINES.join("\n");
        let (_, collected) = read(&OpenClaw, &archived, all.as_bytes()).unwrap();
        assert_eq!(collected.session, "0190");
    }
    for other in [
        "0190.trajectory.jsonl",
        "0190.trajectory.jsonl.deleted.2026-01-02T03-04-05.000Z",
        "0190.jsonl.bak",
        "0190.checkpoint.1.jsonl",
        "sessions.json",
    ] {
        let path = PathBuf::from("/home/me/.openclaw/agents/main/sessions").join(other);
        assert!(!OpenClaw.is_session_file(&path), "{other}");
    }
}
