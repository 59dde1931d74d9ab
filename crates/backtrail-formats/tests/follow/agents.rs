//! Agents that write in other ways: a database, one JSON value that is rewritten, events that end
//! turns, files in the project.

use std::time::SystemTime;

use backtrail::{SessionId, Timestamp};
use backtrail_formats::{Codex, Followed, FollowedKind, HandOver, Source, hand_over};
use rusqlite::Connection;

use crate::kit::{Claude, Kit, append, kinds_of, next, next_kinds, next_session};

fn now() -> Timestamp {
    SystemTime::now().into()
}

const GOOSE: &str = "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0;
    CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT, description TEXT, session_type TEXT,
        working_dir TEXT, created_at TIMESTAMP, updated_at TIMESTAMP, extension_data TEXT,
        total_tokens INTEGER, input_tokens INTEGER, output_tokens INTEGER,
        accumulated_total_tokens INTEGER, accumulated_input_tokens INTEGER,
        accumulated_output_tokens INTEGER, schedule_id TEXT, recipe_json TEXT,
        user_recipe_values_json TEXT, provider_name TEXT, model_config_json TEXT);
    CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT,
        role TEXT, content_json TEXT, created_timestamp INTEGER, timestamp TIMESTAMP, tokens INTEGER,
        metadata_json TEXT);";

fn add_session(connection: &Connection, id: &str, kit: &Kit) {
    let sql = "INSERT INTO sessions (id, name, working_dir, created_at) VALUES (?1, 'n', ?2, ?3)";
    let work = kit.work().to_string_lossy().into_owned();
    connection
        .execute(sql, (id, work, now().to_string()))
        .unwrap();
}

fn say(connection: &Connection, session: &str, role: &str, content: &str) {
    let sql = "INSERT INTO messages (session_id, role, content_json, created_timestamp)
        VALUES (?1, ?2, ?3, ?4)";
    let seconds = now().as_millis() / 1000;
    connection
        .execute(sql, (session, role, content, seconds))
        .unwrap();
}

#[test]
fn a_database_is_followed_through_its_log_and_only_the_sessions_that_change() {
    let kit = Kit::new();
    let path = kit.path(".local/share/goose/sessions/sessions.db");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch(GOOSE).unwrap();
    add_session(&connection, "20260101_1", &kit);
    say(
        &connection,
        "20260101_1",
        "user",
        r#"[{"type":"text","text":"an older one"}]"#,
    );
    let mut follower = kit.follow();
    add_session(&connection, "20260101_2", &kit);
    say(
        &connection,
        "20260101_2",
        "user",
        r#"[{"type":"text","text":"mend it"}]"#,
    );
    let first = next_session(&mut follower);
    assert_eq!(
        (first.agent, &*first.agent_session_id),
        ("goose", "20260101_2")
    );
    assert_eq!(first.source, path.join("20260101_2.jsonl"));
    assert_eq!(first.directory, Some(kit.work()));
    assert_eq!(kinds_of(first), [FollowedKind::Prompt]);
    let call = r#"[{"type":"toolRequest","id":"t1","toolCall":{"status":"success",
        "value":{"name":"shell","arguments":{"command":"ls"}}}}]"#;
    say(&connection, "20260101_2", "assistant", call);
    let (id, name) = ("t1".to_owned(), "shell".to_owned());
    let kinds = next_kinds(&mut follower, 1);
    assert_eq!(kinds, [FollowedKind::Call { id, name }]);
    let result = r#"[{"type":"toolResponse","id":"t1","toolResult":{"status":"success",
        "value":[{"type":"text","text":"a.rs"}]}}]"#;
    say(&connection, "20260101_2", "user", result);
    let (id, failed) = ("t1".to_owned(), false);
    let kinds = next_kinds(&mut follower, 1);
    assert_eq!(kinds, [FollowedKind::Result { id, failed }]);
    say(
        &connection,
        "20260101_2",
        "assistant",
        r#"[{"type":"text","text":"done"}]"#,
    );
    let kinds = next_kinds(&mut follower, 1);
    assert_eq!(kinds, [FollowedKind::Answer, FollowedKind::TurnEnd]);
    assert_eq!(kit.store.sessions().unwrap().len(), 1);
    drop(follower);
    // What was there before comes with the next import, and nothing twice.
    kit.import();
    assert_eq!(kit.contents(), kit.imported());
}

#[test]
fn a_file_that_is_rewritten_in_place_is_not_read_half() {
    let kit = Kit::new();
    let name = ".cline/data/sessions/1790000000000_abcde/1790000000000_abcde.messages.json";
    let path = kit.path(name);
    let mut follower = kit.follow();
    let mut other = Claude::new(1, kit.work());
    let mut messages = Vec::new();
    for n in 0..6_u32 {
        let role = ["user", "assistant"][n as usize % 2];
        let ts = now().as_millis();
        messages.push(format!(
            r#"{{"id":"m{n}","role":"{role}","content":[{{"type":"text","text":"message {n}"}}],"ts":{ts}}}"#
        ));
        let text = format!(
            r#"{{"version":1,"agent":"lead","sessionId":"1790000000000_abcde","messages":[{}],"system_prompt":"Be brief."}}"#,
            messages.join(",")
        );
        // As the agent writes it: cut off, then written piece by piece. The follower looks at it
        // when only one is there, and at another session after that.
        let (half, rest) = text.split_at(text.len() - 60);
        std::fs::write(&path, half).unwrap();
        kit.append(&other.name(), other.prompt("meanwhile"));
        assert_eq!(next_session(&mut follower).session.as_str(), other.session);
        append(&path, rest.as_bytes());
        let kinds = next_kinds(&mut follower, 1);
        let expected = match role {
            "user" => vec![FollowedKind::Prompt],
            _ => vec![FollowedKind::Answer, FollowedKind::TurnEnd],
        };
        assert_eq!(kinds, expected);
    }
    for id in kit.store.sessions().unwrap() {
        let info = kit.store.read_session(&id).unwrap().info().unwrap();
        assert_eq!(info.trails, 1, "rewound, though nothing was taken back");
    }
    assert_eq!(kit.contents(), kit.imported());
}

#[test]
fn a_json_file_that_stays_incomplete_is_reported_once() {
    let kit = Kit::new();
    let name = ".cline/data/sessions/1790000000000_abcde/1790000000000_abcde.messages.json";
    let path = kit.path(name);
    let mut follower = kit.follow();
    std::fs::write(&path, "{\"version\":1,").unwrap();
    let wake = next(&mut follower);
    assert!(wake.sessions.is_empty());
    let problem = wake.problems[0].to_string();
    assert!(
        problem.contains("not complete JSON") && problem.contains(name),
        "{problem}"
    );
}

#[test]
fn codex_ends_a_turn_only_where_it_says_so() {
    let kit = Kit::new();
    let id = "01a1e334-2c4b-7e30-b1de-be549fbee69c";
    let name = format!(".codex/sessions/2026/11/16/rollout-2026-11-16T07-13-29-{id}.jsonl");
    let mut follower = kit.follow();
    let line = |kind: &str, payload: &str| {
        let at = now();
        kit.append(
            &name,
            format!("{{\"timestamp\":\"{at}\",\"type\":\"{kind}\",\"payload\":{payload}}}\n"),
        );
    };
    let item = |payload: &str| line("response_item", payload);
    let work = kit.work();
    line(
        "session_meta",
        &format!(r#"{{"id":"{id}","cwd":{work:?},"cli_version":"0.166.0"}}"#),
    );
    item(r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"mend it"}]}"#);
    assert_eq!(next_kinds(&mut follower, 1), [FollowedKind::Prompt]);
    item(
        r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look"}]}"#,
    );
    assert_eq!(next_kinds(&mut follower, 1), [FollowedKind::Answer]);
    item(r#"{"type":"function_call","name":"shell","arguments":"{}","call_id":"c1"}"#);
    let (call, name) = ("c1".to_owned(), "shell".to_owned());
    assert_eq!(
        next_kinds(&mut follower, 1),
        [FollowedKind::Call { id: call, name }]
    );
    item(r#"{"type":"function_call_output","call_id":"c1","output":"a"}"#);
    next_kinds(&mut follower, 1);
    item(
        r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}"#,
    );
    assert_eq!(next_kinds(&mut follower, 1), [FollowedKind::Answer]);
    line("event_msg", r#"{"type":"task_complete","turn_id":"1"}"#);
    assert_eq!(next_kinds(&mut follower, 1), [FollowedKind::TurnEnd]);
    // In one write, the end is where it was.
    item(r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"again"}]}"#);
    next_kinds(&mut follower, 1);
    line(
        "event_msg",
        r#"{"type":"turn_aborted","reason":"interrupted"}"#,
    );
    assert_eq!(next_kinds(&mut follower, 1), [FollowedKind::TurnEnd]);
    assert_eq!(kit.contents(), kit.imported());
}

#[test]
fn a_file_in_the_project_is_followed_if_the_agent_keeps_it_there() {
    let kit = Kit::new();
    let options = kit.options().directory(kit.work());
    let mut follower = backtrail_formats::Follower::start(&kit.store, &options).unwrap();
    let path = kit.work().join(".aider.chat.history.md");
    let text = "\n# aider chat started at 2026-02-03 04:05:06\n\n#### mend it  \n\nDone.\n\n";
    std::fs::write(&path, text).unwrap();
    let followed = next_session(&mut follower);
    assert_eq!(followed.agent, "aider");
    assert!(kinds_of(followed).starts_with(&[FollowedKind::Prompt]));
}

// F24
#[test]
fn f24_a_session_that_is_handed_over_while_it_is_followed_reports_only_what_is_new() {
    let kit = Kit::new();
    let mut follower = kit.follow();
    let mut claude = Claude::new(1, kit.work());
    let name = claude.name();
    claude.turn("mend it").iter().for_each(|line| {
        kit.append(&name, line);
        next_kinds(&mut follower, 1);
    });
    let parent: SessionId = claude.session.parse().unwrap();
    let info = kit.store.read_session(&parent).unwrap().info().unwrap();
    let id = "019b2d3e-0000-7000-8000-000000000002";
    let line = |kind: &str, payload: &str| {
        let at = now();
        format!("{{\"timestamp\":\"{at}\",\"type\":\"{kind}\",\"payload\":{payload}}}\n")
    };
    let said = |role: &str, kind: &str, text: &str| {
        let content = format!(r#"[{{"type":"{kind}","text":"{text}"}}]"#);
        let payload = format!(r#"{{"type":"message","role":"{role}","content":{content}}}"#);
        line("response_item", &payload)
    };
    let meta = format!(r#"{{"id":"{id}","cwd":{:?}}}"#, kit.work());
    let copy = line("session_meta", &meta)
        + &said("user", "input_text", "mend it")
        + &said("assistant", "output_text", "done");
    let file = format!(".codex/sessions/2026/08/03/rollout-2026-08-03T10-48-56-{id}.jsonl");
    let path = kit.path(&file);
    let content = Source::from_bytes(&path, copy.as_str());
    let new = HandOver {
        agent: &Codex,
        name: id,
        file: &path,
        content: Some(&content),
        parent: &parent,
        seq: info.last_seq,
        title: None,
        directory: None,
    };
    hand_over(&kit.store, &new).unwrap();
    kit.append(&file, copy + &said("user", "input_text", "and that"));
    let mut sessions = Vec::new();
    while !sessions.iter().any(|it: &Followed| !it.records.is_empty()) {
        sessions.extend(next(&mut follower).sessions);
    }
    let followed = sessions.pop().unwrap();
    assert_eq!(followed.session.as_str(), id);
    assert_eq!(followed.agent, "codex");
    assert!(!followed.is_new, "it exists since the hand-over");
    assert_eq!(kinds_of(followed), [FollowedKind::Prompt]);
    kit.append(&file, said("assistant", "output_text", "that too"));
    assert_eq!(next_kinds(&mut follower, 1), [FollowedKind::Answer]);
    assert_eq!(kit.store.sessions().unwrap().len(), 2);
}
