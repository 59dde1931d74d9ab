//! An old session is all there: its bytes, its records, and what is known of it at a
//! glance.

use std::path::Path;

use backtrail::conversation::HistoryItem;
use backtrail::{
    Block, ErrorKind, LocalStorage, RecordKind, SessionReader, Shape, Storage, Transcript,
};
use serde_json::Value;

use super::disk::{Desk, Done, LINES, ROOT, Watched, doors, object, options};

/// Both forms of one talk, with the number that its first message has.
fn both() -> [(&'static str, String, u64); 2] {
    [
        ("talk.jsonl", LINES.to_owned(), 4),
        ("talk.json", object(), 1),
    ]
}

// F2
#[test]
fn the_first_trail_is_only_ever_read() {
    for (name, bytes, _) in both() {
        let desk = Desk::new();
        let id = desk.half_session(name, &bytes);
        let trail = desk.trail(&id, 0);
        let watched = Watched::new(desk.memory.clone());
        let store = options(watched.clone()).open(ROOT).unwrap();
        let session = store.open_session(&id).unwrap();
        session.append(backtrail::Message::user_text("on")).unwrap();
        session.rewind_chat(0).unwrap();
        session.undo().unwrap();
        session.close().unwrap();
        let done = watched.take(&trail);
        assert!(done.contains(&Done::OpenedToRead), "{done:?}");
        let changes = done.iter().any(|done| matches!(done, Done::Changed(_)));
        assert!(!changes, "{done:?}");
        assert_eq!(desk.memory.read(&trail).unwrap(), bytes.as_bytes());
    }
}

// A8, A9
#[test]
fn every_record_is_read_through_every_door() {
    let messages = [
        "fix the bug",
        "assistant…",
        "tool…",
        "assistant…",
        "tool…",
        "It is done.",
    ];
    for (name, bytes, first) in both() {
        let desk = Desk::new();
        let id = desk.old_session(name, &bytes);
        let (history, damaged) = doors(&desk.reader(&id));
        assert_eq!(damaged, 0);
        let mut expected: Vec<(u64, &str)> = (first..).zip(messages).collect();
        if first > 1 {
            expected.splice(0..0, [(2, "*"), (3, "prompt_history")]);
        }
        let found: Vec<(u64, &str)> = history.iter().map(|(n, w)| (*n, w.as_str())).collect();
        assert_eq!(found, expected, "{name}");
        assert!(desk.reader(&id).verify().unwrap().is_ok());
    }
}

// A8: tool input there is any text in a JSON string.
#[test]
fn tool_input_is_the_string_that_it_was() {
    for (name, bytes, first) in both() {
        let desk = Desk::new();
        let id = desk.old_session(name, &bytes);
        let input = |seq: u64| -> String {
            let record = desk.reader(&id).record(seq).unwrap().unwrap();
            let message = record.message().unwrap().unwrap();
            let call = message.blocks.iter().find_map(|block| match block {
                Block::ToolUse(call) => Some(call.input.as_str().to_owned()),
                _ => None,
            });
            call.unwrap()
        };
        assert_eq!(input(first + 1), r#""{\"command\":\"ls\"}""#, "{name}");
        assert_eq!(input(first + 3), r#""echo hi""#, "{name}");
    }
}

/// A8: a version-1 compaction's removed messages are not in its file: its context
/// is the summary and every message there.
#[test]
fn the_context_is_the_summary_and_every_message_in_every_shape() {
    for (name, bytes, _) in both() {
        let desk = Desk::new();
        let id = desk.old_session(name, &bytes);
        for shape in Shape::ALL {
            let context = desk.reader(&id).context(shape).unwrap();
            let json: Value = serde_json::from_str(context.as_json()).unwrap();
            let said = json.to_string();
            assert_eq!(context.skipped(), 0);
            for part in [
                "they met before",
                "fix the bug",
                "toolu_01",
                "src",
                "toolu_02",
                "echo hi",
                "It is done.",
            ] {
                assert!(said.contains(part), "{name}, {shape}, {part}: {said}");
            }
            let places = |part| said.find(part).unwrap();
            assert!(places("they met before") < places("fix the bug"), "{said}");
        }
    }
}

#[test]
fn history_and_statistics_know_the_old_talk() {
    for (name, bytes, _) in both() {
        let desk = Desk::new();
        let id = desk.old_session(name, &bytes);
        let reader = desk.reader(&id);
        let kinds: Vec<&str> = reader
            .history()
            .unwrap()
            .map(|item| match item.unwrap() {
                HistoryItem::Prompt(_) => "prompt",
                HistoryItem::Answer(_) => "answer",
                HistoryItem::ToolCall(call) => match call.success {
                    Some(true) => "worked",
                    Some(false) => "failed",
                    None => "open",
                },
                _ => "other",
            })
            .collect();
        assert_eq!(kinds, ["prompt", "worked", "failed", "answer"], "{name}");
        let stats = reader.stats().unwrap();
        assert_eq!(stats.messages.total, 6);
        assert_eq!(stats.tool_calls, 2);
        assert_eq!(stats.failed_tool_calls, 1);
        assert_eq!(stats.usage.total(), 17);
        assert_eq!(stats.damaged, 0);
    }
}

/// B1: an old session began when its file did, also once it is continued.
#[test]
fn statistics_begin_when_the_file_did() {
    let desk = Desk::new();
    let id = desk.old_session("talk.jsonl", LINES);
    let started = || {
        let stats = desk.reader(&id).stats().unwrap();
        stats.started_at.unwrap().as_millis()
    };
    assert_eq!(started(), 1_794_726_326_111);
    let session = desk.store.open_session(&id).unwrap();
    session.append(backtrail::Message::user_text("on")).unwrap();
    assert_eq!(started(), 1_794_726_326_111);
}

// A8
#[test]
fn what_the_meta_says_is_known_at_a_glance() {
    let desk = Desk::new();
    let id = desk.old_session("talk.jsonl", LINES);
    assert_eq!(id.as_str(), "session-1794726326112-1");
    let info = desk.reader(&id).info().unwrap();
    assert_eq!(info.created_at.unwrap().as_millis(), 1_794_726_326_111);
    assert_eq!(info.updated_at.unwrap().as_millis(), 1_794_726_326_113);
    assert_eq!(info.model.as_deref(), Some("m"));
    assert_eq!(
        info.workspace_root.as_deref(),
        Some(Path::new("/home/u/proj"))
    );
    let origin = info.forked_from.unwrap();
    assert_eq!(origin.parent_session_id, "session-1794726326110-0");
    assert_eq!(origin.branch_name.as_deref(), Some("try-2"));
    assert_eq!(origin.seq, None);
    assert_eq!(info.original_id, None);
    assert_eq!(info.last_seq, 9);
    assert_eq!((info.trails, info.version), (2, Some(2)));
    assert!(!info.pinned);
}

// A8
#[test]
fn the_last_meta_and_the_last_compaction_count() {
    let desk = Desk::new();
    let first = "{\"model\":\"old\",\"session_id\":\"one\",\"type\":\"session_meta\"}\n";
    let second = "{\"count\":7,\"summary\":\"the newer one\",\"type\":\"compaction\"}\n";
    let last = "{\"model\":\"new\",\"session_id\":\"two\",\"type\":\"session_meta\"}\n";
    let file = [first, LINES, second, last].concat();
    let id = desk.old_session("talk.jsonl", file);
    assert_eq!(id.as_str(), "two");
    let reader = desk.reader(&id);
    assert_eq!(reader.info().unwrap().model.as_deref(), Some("new"));
    let context = reader.context(Shape::Neutral).unwrap().into_json();
    assert!(context.contains("the newer one"), "{context}");
    assert!(!context.contains("they met before"), "{context}");
    let session = desk.store.open_session(&id).unwrap();
    let compacted = session.compact(&backtrail::Compaction::new("s")).unwrap();
    assert_eq!(compacted.count, 8);
}

/// A9: absent id and times are filled in, stably: the file's name, then its age.
#[test]
fn a_file_that_says_nothing_of_itself_is_known_by_its_name_and_age() {
    let dir = tempfile::tempdir().unwrap();
    let aged = |name: &str| {
        let path = dir.path().join(name);
        LocalStorage.create_new(&path).unwrap();
        LocalStorage
            .open_append(&path)
            .unwrap()
            .append(object().as_bytes())
            .unwrap();
        path
    };
    let (plain, dated) = (aged("my talk.json"), aged("session-1775008161929.json"));
    for _ in 0..2 {
        let loaded = Transcript::load_from_path(&plain).unwrap();
        assert_eq!(loaded.session_id().as_str(), "my-talk");
        let modified = LocalStorage.open_read(&plain).unwrap().modified().unwrap();
        let modified = backtrail::Timestamp::from(modified).as_millis();
        assert_eq!(loaded.created_at_ms(), modified);
        let loaded = Transcript::load_from_path(&dated).unwrap();
        assert_eq!(loaded.created_at_ms(), 1_775_008_161_929);
    }
}

/// F11: a list of sessions costs the same however long they are.
#[test]
fn a_list_and_latest_do_not_read_the_file_again() {
    let desk = Desk::new();
    let long = LINES.to_owned() + &super::disk::message(&"x".repeat(2 << 20));
    let id = desk.old_session("talk.jsonl", long);
    let watched = Watched::new(desk.memory.clone());
    let store = options(watched.clone()).open(ROOT).unwrap();
    let reads = || -> usize {
        let done = watched.take(&desk.trail(&id, 0));
        let bytes = done.iter().map(|done| match done {
            Done::Read(n) => *n,
            _ => 0,
        });
        bytes.sum()
    };
    store.open_session(&id).unwrap().close().unwrap();
    store.note(&id, &backtrail::Note::new().title("t")).unwrap();
    assert!(reads() < 1000, "opening and noting");
    assert_eq!(store.infos().unwrap().len(), 1);
    assert_eq!(store.resolve("latest").unwrap(), id);
    assert_eq!(store.resolve("session-17").unwrap(), id);
    assert!(reads() < 1000, "listing");
    assert_eq!(last_kind(&store.read_session(&id).unwrap()), "note");
    assert!(reads() < 1000, "the last record");
    // Nor does what a model is sent, once a summary stands for the file.
    let session = store.open_session(&id).unwrap();
    session
        .compact(&backtrail::Compaction::new("so far"))
        .unwrap();
    reads();
    let context = session.context(Shape::Anthropic).unwrap();
    assert!(context.as_json().contains("so far"));
    assert!(reads() < 2000, "the context");
}

// A15
#[test]
fn a_reference_never_means_the_imported_file() {
    let desk = Desk::new();
    desk.old_session("talk.jsonl", super::disk::message("a"));
    for reference in [
        "/desk/talk.jsonl",
        "talk.jsonl",
        "./talk",
        "../desk/talk.jsonl",
    ] {
        let error = desk.store.resolve(reference).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{reference}");
    }
    assert_eq!(desk.store.resolve("talk").unwrap().as_str(), "talk");
}

fn last_kind(reader: &SessionReader) -> String {
    let last = reader.last_records(1).unwrap();
    let kind: RecordKind<'_> = last[0].as_ref().kind();
    kind.as_str().to_owned()
}
