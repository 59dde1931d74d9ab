//! Whose a file is: the same again, another with the same id, and ids that are
//! none.

use std::path::{Component, Path};

use backtrail::{ErrorKind, ImportOutcome, Message, SessionOptions};

use super::desk::{Desk, LINES, doors, message, meta, object};

// A8, A9
#[test]
fn a_file_that_is_there_already_changes_nothing() {
    for (name, bytes) in [("talk.jsonl", LINES.to_owned()), ("talk.json", object())] {
        let desk = Desk::new();
        let first = desk.import(name, &bytes);
        let before = desk.everything();
        for _ in 0..2 {
            let again = desk.import(name, &bytes);
            assert_eq!(again.outcome, ImportOutcome::Unchanged);
            assert_eq!(again.id, first.id);
            assert_eq!(again.messages, 6);
        }
        assert_eq!(desk.everything(), before);
        // Also when it went on here.
        let session = desk.store.open_session(&first.id).unwrap();
        session.append(Message::user_text("on")).unwrap();
        session.rewind_chat(0).unwrap();
        let before = desk.everything();
        let again = desk.import(name, &bytes);
        assert_eq!(again.outcome, ImportOutcome::Unchanged);
        assert_eq!(desk.everything(), before);
    }
}

/// A8: the second gets a new id and keeps the old as `original_id`.
#[test]
fn another_file_with_the_same_id_gets_one_of_its_own_every_time_the_same() {
    let other = meta("session-1794726326112-1") + &message("another talk");
    let mut ids = Vec::new();
    for _ in 0..2 {
        let desk = Desk::new();
        let first = desk.import("talk.jsonl", LINES);
        let second = desk.import("copy.jsonl", &other);
        assert_eq!(second.outcome, ImportOutcome::New);
        assert_ne!(second.id, first.id);
        assert_eq!(second.original_id.as_deref(), Some(first.id.as_str()));
        let info = desk.reader(&second.id).info().unwrap();
        assert_eq!(info.original_id.as_deref(), Some(first.id.as_str()));
        assert_eq!(
            doors(&desk.reader(&second.id)).0,
            [(2, "another talk".to_owned())]
        );
        // Each is still known when it comes again.
        let again = desk.import("copy.jsonl", &other);
        assert_eq!(again.outcome, ImportOutcome::Unchanged);
        assert_eq!(
            (&again.id, &again.original_id),
            (&second.id, &second.original_id)
        );
        assert_eq!(desk.import("x.jsonl", LINES).id, first.id);
        // A third goes beside both.
        let third = desk.import("copy.jsonl", other.clone() + &message("more"));
        assert_eq!(third.outcome, ImportOutcome::New);
        assert_eq!(third.original_id.as_deref(), Some(first.id.as_str()));
        assert_eq!(desk.store.sessions().unwrap().len(), 3);
        ids.push((second.id, third.id));
    }
    assert_eq!(ids[0], ids[1]);
}

#[test]
fn a_session_of_our_own_is_never_taken_for_the_file() {
    let desk = Desk::new();
    let ours = desk.store.create_session(SessionOptions::new()).unwrap();
    ours.append(Message::user_text("mine")).unwrap();
    let id = ours.id().clone();
    ours.close().unwrap();
    let file = meta(id.as_str()) + &message("theirs");
    let import = desk.import("talk.jsonl", &file);
    assert_ne!(import.id, id);
    assert_eq!(import.original_id.as_deref(), Some(id.as_str()));
    assert_eq!(doors(&desk.reader(&id)).0, [(1, "mine".to_owned())]);
    assert_eq!(
        doors(&desk.reader(&import.id)).0,
        [(2, "theirs".to_owned())]
    );
}

// F7
#[test]
fn an_id_that_is_a_path_never_reaches_the_file_system() {
    let long = "x".repeat(300);
    let ids = [
        "../../x",
        "/etc/passwd",
        "..",
        ".",
        "",
        " ",
        "a/b",
        "a\\\\b",
        "C:",
        "-rf",
        "a b",
        "ü",
        "latest",
        "x\\u0000y",
        "x\\ny",
        "\\ud800",
        &long,
    ];
    for id in ids {
        let desk = Desk::new();
        let before = desk.memory.files();
        let import = desk.import("talk.jsonl", meta(id) + &message("a"));
        assert_eq!(import.id.as_str(), "talk", "{id:?}");
        assert!(import.original_id.is_some(), "{id:?}");
        let info = desk.reader(&import.id).info().unwrap();
        assert_eq!(info.original_id, import.original_id);
        let inside = Path::new("/store/sessions/talk");
        for path in desk.memory.files() {
            let new = !before.contains(&path) && !path.starts_with("/desk");
            assert!(
                !new || path.parent() == Some(inside),
                "{id:?} made {path:?}"
            );
            assert!(!path.components().any(|part| part == Component::ParentDir));
        }
        assert_eq!(desk.store.sessions().unwrap(), [import.id]);
    }
}

// A15
#[test]
fn a_reference_never_means_the_file_that_was_taken_in() {
    let desk = Desk::new();
    let path = desk.put("talk.jsonl", message("a"));
    desk.store.import(&path).unwrap();
    for reference in [
        path.to_str().unwrap(),
        "talk.jsonl",
        "./talk",
        "../desk/talk.jsonl",
    ] {
        let error = desk.store.resolve(reference, None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{reference}");
    }
    assert_eq!(desk.store.resolve("talk", None).unwrap().as_str(), "talk");
}

/// A8: older copies are no sessions of their own, but are read where the file
/// itself is missing; temporary files are ignored.
#[test]
fn an_older_copy_stands_in_for_a_file_that_is_gone() {
    let desk = Desk::new();
    let (old, older) = (message("old"), message("older"));
    let path = desk.put("talk.jsonl", message("new"));
    let copy = desk.put("talk.rot-1794726326200.jsonl", &old);
    desk.put("talk.rot-999.jsonl", &older);
    let error = desk.store.import(&copy).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(error.path(), Some(copy.as_path()));
    assert!(error.to_string().contains("/desk/talk.jsonl"), "{error}");
    assert!(desk.store.sessions().unwrap().is_empty());
    // The file is gone: its newest copy is read, named either way.
    backtrail::Storage::remove_file(&desk.memory, &path).unwrap();
    for named in [&path, &copy] {
        let import = desk.store.import(named).unwrap();
        assert_eq!(import.file, copy);
        assert_eq!(import.id.as_str(), "talk");
        assert_eq!(doors(&desk.reader(&import.id)).0, [(1, "old".to_owned())]);
    }
}

// A8
#[test]
fn a_temporary_file_is_no_session() {
    let desk = Desk::new();
    for name in ["talk.jsonl.tmp-12-0", "talk.tmp-1.jsonl", ".tmp-77"] {
        let error = desk.try_import(name, LINES).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{name}");
        assert!(error.path().is_some_and(|path| path.ends_with(name)));
    }
    assert!(desk.store.sessions().unwrap().is_empty());
}
