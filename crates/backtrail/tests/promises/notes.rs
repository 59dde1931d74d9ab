//! What is known of a session (title, tags, model, workspace, pin) is known
//! after whatever happens to it.

use std::path::{Path, PathBuf};

use backtrail::{
    Compaction, ErrorKind, ForkOptions, Message, Note, Session, SessionInfo, SessionOptions, Store,
    StoreOptions,
};
use backtrail_testkit::{ManualClock, MemoryStorage};

use crate::version1::disk::{Desk, LINES};

fn store(rotation: u64) -> Store {
    StoreOptions::new()
        .storage(MemoryStorage::new())
        .clock(ManualClock::new(1_794_729_600_000))
        .rotation(rotation)
        .open_or_create("/store")
        .unwrap()
}

fn all() -> Note {
    Note::new()
        .title("the title")
        .tags(["x", "y"])
        .model("m-2")
        .workspace_root(Path::new("/w"))
        .pinned(true)
}

fn known(info: &SessionInfo) -> (Option<&str>, Vec<&str>, Option<&str>, Option<PathBuf>, bool) {
    (
        info.title.as_deref(),
        info.tags.iter().map(String::as_str).collect(),
        info.model.as_deref(),
        info.workspace_root.clone(),
        info.pinned,
    )
}

fn check(session: &Session, pinned: bool, after: &str) {
    let info = session.reader().info().unwrap();
    let expected = (
        Some("the title"),
        vec!["x", "y"],
        Some("m-2"),
        Some(PathBuf::from("/w")),
        pinned,
    );
    assert_eq!(known(&info), expected, "after {after}");
}

fn say(session: &Session, text: &str) {
    session.append(Message::user_text(text)).unwrap();
}

/// Does everything that begins a new trail, and checks after each.
fn live(store: &Store, session: Session) {
    session.note(&all()).unwrap();
    check(&session, true, "the note");
    for text in ["a", "b", "c"] {
        say(&session, text);
        check(&session, true, "a message");
    }
    let last = session.last_seq();
    session.rewind_chat(last - 1).unwrap().unwrap();
    check(&session, true, "a rewind");
    session.undo().unwrap().unwrap();
    check(&session, true, "an undo");
    session.redo().unwrap().unwrap();
    check(&session, true, "a redo");
    session.rewind_chat(0).unwrap().unwrap();
    check(&session, true, "a rewind to before the note");
    say(&session, "d");
    session.undo().unwrap().unwrap();
    session.compact(&Compaction::new("sum")).unwrap();
    check(&session, true, "a compaction");
    let fork = session.fork(&ForkOptions::new()).unwrap();
    check(&fork, false, "a fork");
    say(&fork, "e");
    let again = fork.fork(&ForkOptions::new().at(1)).ok();
    if let Some(again) = again {
        check(&again, false, "a fork of a fork");
    }
    let id = session.id().clone();
    session.close().unwrap();
    let session = store.open_session(&id).unwrap();
    check(&session, true, "opening it again");
    say(&session, "f");
    check(&session, true, "speaking again");
    // One thing changes, and the others stay.
    store.note(&id, &Note::new().pinned(false)).unwrap();
    check(&session, false, "the pin is taken away");
    session
        .note(&Note::new().tags::<String>([]).model(""))
        .unwrap();
    let info = session.reader().info().unwrap();
    assert_eq!((info.tags.len(), info.model.as_deref()), (0, None));
    assert_eq!(info.title.as_deref(), Some("the title"));
}

#[test]
fn what_is_noted_outlives_rotations_moves_forks_and_reopening() {
    for rotation in [u64::MAX, 1, 900] {
        let store = store(rotation);
        let session = store.create_session(SessionOptions::new()).unwrap();
        live(&store, session);
    }
}

#[test]
fn notes_on_an_imported_session_stay_as_well() {
    for rotation in [u64::MAX, 1, 900] {
        let desk = Desk::new().rotating_at(rotation);
        let id = desk.old_session("talk.jsonl", LINES);
        let session = desk.store.open_session(&id).unwrap();
        live(&desk.store, session);
        // The file says otherwise, and that is older.
        let info = desk.reader(&id).info().unwrap();
        assert_eq!(info.workspace_root.as_deref(), Some(Path::new("/w")));
    }
}

/// F26: whoever moves a project notes where it is now.
#[test]
fn latest_follows_a_workspace_to_where_it_is_now() {
    let store = store(u64::MAX);
    let begin = |root: &str| {
        let options = SessionOptions::new().workspace_root(Path::new(root));
        let session = store.create_session(options).unwrap();
        say(&session, "a");
        session.id().clone()
    };
    let (first, second) = (begin("/one"), begin("/two"));
    let latest = |root: &str| store.resolve_in("latest", Path::new(root)).unwrap();
    assert_eq!(
        (latest("/one"), latest("/two")),
        (first.clone(), second.clone())
    );
    assert_eq!(latest("/nowhere"), second, "the newest of all");
    let moved = Note::new().workspace_root(Path::new("/three"));
    store.note(&first, &moved).unwrap();
    assert_eq!(latest("/three"), first);
    assert_eq!(latest("/two"), second);
    let all = "nobody is there: the newest message of all, and a note is none";
    assert_eq!(latest("/one"), second, "{all}");
    // Also when it is rewound, and goes on in other trails.
    let session = store.open_session(&first).unwrap();
    session.rewind_chat(0).unwrap();
    drop(session);
    say(&store.open_session(&second).unwrap(), "b");
    assert_eq!(latest("/three"), first);
    assert_eq!(latest("/one"), second);
}

#[test]
fn an_imported_workspace_counts_for_latest() {
    let desk = Desk::new();
    let id = desk.old_session("talk.jsonl", LINES);
    let options = SessionOptions::new().workspace_root(Path::new("/other"));
    let newer = desk.store.create_session(options).unwrap();
    let latest = |root: &str| desk.store.resolve_in("latest", Path::new(root));
    assert_eq!(latest("/home/u/proj").unwrap(), id);
    assert_eq!(latest("/other").unwrap(), *newer.id());
    say(&newer, "a");
    // It is as old as its file says, not as its import.
    assert_eq!(latest("/nowhere").unwrap(), *newer.id());
}

#[test]
fn a_note_that_is_too_long_is_refused_and_changes_nothing() {
    let store = store(u64::MAX);
    let session = store.create_session(SessionOptions::new()).unwrap();
    session.note(&all()).unwrap();
    let long = "x".repeat(4097);
    let many = vec!["x".repeat(4000); 20];
    for note in [
        Note::new().title(long.as_str()),
        Note::new().model(long.as_str()),
        Note::new().tags([long.as_str()]),
        Note::new().tags(many),
        Note::new().workspace_root(Path::new(&"/x".repeat(3000))),
    ] {
        let error = session.note(&note).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error:?}");
    }
    check(&session, true, "notes that were refused");
    assert_eq!(session.reader().info().unwrap().last_seq, 1);
}
