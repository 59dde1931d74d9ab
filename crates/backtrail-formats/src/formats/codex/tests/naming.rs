//! Sessions have their names, their parents and their titles, and files are recognised.

use super::*;
use crate::event::ForkPoint;

#[test]
fn sessions_are_named_by_their_thread() {
    let id = "01a00000-0000-7000-8000-000000000002";
    let session = |path: &str, head: &str| {
        let bytes = format!("{head}\n{{\"type\":\"event_msg\",\"payload\":{{}}}}\n");
        read(Path::new(path), bytes.as_bytes()).collected.session
    };
    let named = format!("/h/sessions/rollout-2026-01-01T00-00-00-{id}.jsonl");
    let reverted = format!("rollout-2026-01-01T00-00-00-{id}_{THREAD}.jsonl.zst");
    let meta = r#"{"type":"session_meta","payload":{"id":"tt"}}"#;
    assert_eq!(session(&named, meta), "tt");
    assert_eq!(session(&reverted, meta), format!("tt_{THREAD}"));
    assert_eq!(session(&named, "{damaged"), id);
    assert_eq!(session(&reverted, "{damaged"), format!("{id}_{THREAD}"));
    assert!(session("x.jsonl", "{damaged").starts_with("unnamed-"));
    let hostile = format!(
        r#"{{"type":"session_meta","payload":{{"id":"{}\u0007"}}}}"#,
        "x".repeat(9_000)
    );
    assert!(session(&named, &hostile).len() <= 64);
}

#[test]
fn rollouts_that_share_a_beginning_name_its_owner() {
    let base =
        |id: &str| json!({"thread_id": id, "end_ordinal_exclusive": 15, "end_byte_offset": 99});
    let goes_on = |session: &str| Origin::Continues {
        session: Some(session.to_owned()),
        point: ForkPoint::AfterLastUpTo("000000000014".to_owned()),
    };
    let origin = |head: Value| Rollout::new(head).read().origin();
    let other = "01a00000-0000-7000-8000-00000000000b";
    // A fork; one of a thread that was rolled back before; one that was rolled back itself.
    let fork = json!({"forked_from_id": PARENT, "history_base": base(PARENT)});
    assert_eq!(origin(fork), goes_on(PARENT));
    let fork = json!({"forked_from_id": PARENT, "history_base": base(other)});
    assert_eq!(origin(fork), goes_on(&format!("{PARENT}_{other}")));
    assert_eq!(
        origin(json!({"history_base": base(THREAD)})),
        goes_on(THREAD)
    );
    let again = json!({"history_base": base(other)});
    assert_eq!(origin(again), goes_on(&format!("{THREAD}_{other}")));
    // One that is its own parent has no parent.
    assert_eq!(origin(json!({"forked_from_id": THREAD})), Origin::Start);
    assert_eq!(origin(json!({"parent_thread_id": THREAD})), Origin::Start);
}

#[test]
fn sub_agents_name_their_parents() {
    let spawn = json!({"parent_thread_id": PARENT, "depth": 1, "agent_nickname": "Ada", "agent_role": "worker"});
    let source = json!({"subagent": {"thread_spawn": spawn}});
    let read = Rollout::new(json!({"source": source})).read();
    let spawned = Origin::Spawned {
        session: Some(PARENT.to_owned()),
        tool_use_id: None,
    };
    assert_eq!(read.origin(), spawned);
    let tags = read.collected.main().unwrap().details.tags.clone();
    assert_eq!(tags, Some(vec!["worker".to_owned(), "Ada".to_owned()]));
    let review =
        Rollout::new(json!({"source": {"subagent": "review"}, "forked_from_id": PARENT})).read();
    assert_eq!(review.origin(), spawned);
    let tags = review.collected.main().unwrap().details.tags.clone();
    assert_eq!(tags, Some(vec!["review".to_owned()]));
}

#[test]
fn titles_come_from_the_index_and_from_events() {
    let home = tempfile::tempdir().unwrap();
    let title = |rollout: &Rollout| {
        rollout
            .read()
            .collected
            .main()
            .unwrap()
            .details
            .title
            .clone()
    };
    let mut rollout = Rollout::plain();
    rollout.path = Some(home.path().join("sessions/2026/01/01/rollout-x.jsonl"));
    rollout.event(
        json!({"type": "thread_name_updated", "thread_id": PARENT, "thread_name": "theirs"}),
    );
    assert_eq!(title(&rollout), None);
    rollout.event(
        json!({"type": "thread_name_updated", "thread_id": THREAD, "thread_name": "by event"}),
    );
    assert_eq!(title(&rollout).as_deref(), Some("by event"));
    let index = format!(
        "{{\"id\":\"{THREAD}\",\"thread_name\":\"old\"}}\n{{half\n{{\"id\":\"{THREAD}\",\"thread_name\":\"new\"}}\n"
    );
    std::fs::write(home.path().join("session_index.jsonl"), index).unwrap();
    assert_eq!(title(&rollout).as_deref(), Some("new"));
    rollout.path = Some(home.path().join("archived_sessions/rollout-x.jsonl"));
    assert_eq!(title(&rollout).as_deref(), Some("new"));
    assert_eq!(names::read_titles(home.path()).len(), 1);
}

#[test]
fn files_are_where_codex_keeps_them() {
    let home = Environment::new("/home/u");
    let expected = [
        "/home/u/.codex/sessions",
        "/home/u/.codex/archived_sessions",
    ];
    assert_eq!(Codex.directories(&home), expected.map(PathBuf::from));
    let set = home.with("CODEX_HOME", "/c");
    assert_eq!(Codex.directories(&set)[0], Path::new("/c/sessions"));
    assert!(Codex.directories(&Environment::default()).is_empty());
    for (name, is) in [
        ("rollout-2026-01-01T00-00-00-x.jsonl", true),
        ("rollout-2026-01-01T00-00-00-x.jsonl.zst", true),
        ("session_index.jsonl", false),
        ("rollout-x.jsonl.tmp", false),
    ] {
        assert_eq!(Codex.is_session_file(Path::new(name)), is, "{name}");
    }
}

#[test]
fn files_of_others_are_not_recognised() {
    let is = |text: &str| Codex.recognises(&Source::from_bytes("x.jsonl", text));
    assert!(is("\n{half\n{\"type\":\"event_msg\",\"payload\":{}}\n"));
    let long = format!(
        "{{\"timestamp\":\"t\",\"type\":\"session_meta\",\"payload\":{{\"x\":\"{}",
        "y".repeat(300_000)
    );
    assert!(is(&long));
    for text in [
        "",
        "{\"type\":\"user\",\"message\":{},\"uuid\":\"u\"}",
        "{\"type\":\"session\",\"version\":3,\"id\":\"u\",\"timestamp\":\"t\",\"cwd\":\"/\"}",
        "{\"id\":\"x\",\"thread_name\":\"n\",\"updated_at\":\"t\"}",
        "{\"type\":\"session_meta\"}",
        "{\"session\":{\"id\":\"x\"}}",
        "{\"session\":[]}",
    ] {
        assert!(!is(text), "{text}");
    }
}
