//! Ids and references reach sessions and nothing else (A15, F7), and a store is
//! only ever made where there is nothing of somebody else's.

use std::collections::HashSet;
use std::path::Path;

use backtrail::trash::DeleteScope;
use backtrail::{
    ErrorKind, ForkOptions, LocalStorage, Message, Note, Session, SessionId, SessionOptions,
    Storage, Store, StoreOptions, ToolUse,
};
use backtrail_testkit::{Count, FaultyStorage, ManualClock, MemoryStorage};

use crate::damage::lab::{Lab, forge};

fn hostile() -> Vec<String> {
    let mut all: Vec<String> = [
        "",
        ".",
        "..",
        "../x",
        "../../etc/passwd",
        "/etc/passwd",
        "a/b",
        "a\\b",
        "C:x",
        "~",
        "-rf",
        "_x",
        " a",
        "a ",
        "a b",
        "a\0b",
        "\0",
        "a\nb",
        "a\r",
        "\u{1b}[31m",
        "\u{202e}abcd",
        "äbcd",
        "７f3a",
        "abcd\u{301}",
        "a.b",
        ".hidden",
        "abcd.",
        "0000.jsonl",
        "con:",
        "%2e%2e",
        "latest/",
        "a*",
        "?",
        "[a]",
        "$HOME",
        "`id`",
        "a;b",
        "Latest ",
    ]
    .map(str::to_owned)
    .into();
    all.push("a".repeat(129));
    all.push("../".repeat(4000));
    all.push("x".repeat(10 * 1024));
    all
}

#[test]
fn what_is_no_id_never_becomes_one() {
    for text in hostile() {
        let error = text.parse::<SessionId>().expect_err(&text);
        assert_eq!(error.kind(), ErrorKind::Invalid, "{text:?}");
        let shown = error.to_string();
        assert!(
            shown.chars().count() < 200,
            "{} characters",
            shown.chars().count()
        );
        assert!(!shown.contains(char::is_control), "{shown:?}");
        let json = serde_json::to_string(&text).unwrap();
        assert!(
            serde_json::from_str::<SessionId>(&json).is_err(),
            "{text:?}"
        );
    }
    assert_eq!(
        "latest".parse::<SessionId>().unwrap_err().kind(),
        ErrorKind::Invalid
    );
    for text in [
        "a",
        "0",
        "session-1794726326112-1",
        "A_b-9",
        &"a".repeat(128),
    ] {
        let id: SessionId = text.parse().unwrap();
        assert_eq!(id.as_str(), text);
        assert_eq!(serde_json::to_string(&id).unwrap(), format!("\"{text}\""));
    }
}

#[test]
fn a_hostile_reference_is_refused_and_never_becomes_a_path() {
    let disk = FaultyStorage::new(MemoryStorage::new()).counting(Count::All);
    let store = StoreOptions::new()
        .storage(disk.clone())
        .open_or_create("/store")
        .unwrap();
    store.create_session(SessionOptions::new()).unwrap();
    let before = disk.operations();
    assert!(before > 0);
    for text in hostile() {
        let error = store.resolve(&text).expect_err(&text);
        assert_eq!(error.kind(), ErrorKind::Invalid, "{text:?}");
        assert!(!error.to_string().contains(char::is_control), "{text:?}");
    }
    for operation in &disk.log()[before as usize..] {
        let path = format!("{operation:?}");
        let is_odd = |text: &String| text.len() > 2 && text != "0000.jsonl";
        let mut hostile = hostile().into_iter().filter(is_odd);
        assert!(!hostile.any(|text| path.contains(&text)), "{path}");
    }
}

/// The name of a fork is a reference, after ids and their beginnings.
#[test]
fn a_reference_may_be_the_name_of_a_fork() {
    let lab = with_sessions(&["7f3a1c9e", "try-3000"]);
    let parent = "7f3a1c9e".parse().unwrap();
    let fork = |name: &str| {
        let fork = lab
            .store
            .fork_session(&parent, &ForkOptions::new().branch_name(name));
        fork.unwrap().id().clone()
    };
    let (two, spaced, short) = (fork("try-2"), fork("try it again"), fork("b"));
    let resolve = |text: &str| lab.store.resolve(text);
    assert_eq!(resolve("try-2").unwrap(), two);
    assert_eq!(resolve("try it again").unwrap(), spaced);
    assert_eq!(resolve("b").unwrap(), short);
    // What begins an id means that session.
    fork("7f3a");
    assert_eq!(resolve("7f3a").unwrap(), parent);
    fork("try-3");
    assert_eq!(resolve("try-3").unwrap().as_str(), "try-3000");
    for unknown in ["try", "try-2 ", "TRY-2", "again"] {
        assert!(resolve(unknown).is_err(), "{unknown}");
    }
    let both = [two, fork("try-2")];
    let error = resolve("try-2").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ambiguous);
    assert_eq!(error.candidates().len(), both.len());
    assert!(both.iter().all(|id| error.candidates().contains(id)));
}

/// A store with sessions of these ids.
fn with_sessions(ids: &[&str]) -> Lab {
    let lab = Lab::new();
    for id in ids {
        let id: SessionId = id.parse().unwrap();
        lab.plant(&id, &[&forge::trail(&id, 0, "start", None, 1)]);
    }
    lab
}

#[test]
fn a_reference_is_an_id_or_the_one_beginning_that_fits() {
    let lab = with_sessions(&[
        "7f3a1c9e",
        "7f3a2222",
        "9999",
        "abc",
        "abcdef",
        "latestnews",
    ]);
    let resolve = |text: &str| lab.store.resolve(text);
    let found = |text: &str| resolve(text).unwrap().as_str().to_owned();
    assert_eq!(found("7f3a1c9e"), "7f3a1c9e");
    assert_eq!(found("7f3a1"), "7f3a1c9e");
    assert_eq!(found("9999"), "9999");
    assert_eq!(found("abcd"), "abcdef");
    assert_eq!(found("lates"), "latestnews");
    // A whole id is one, however short, even if another begins with it.
    assert_eq!(found("abc"), "abc");
    for short in ["7f3", "a", "ab", "999"] {
        assert_eq!(
            resolve(short).unwrap_err().kind(),
            ErrorKind::Invalid,
            "{short}"
        );
    }
    for unknown in ["7f3b", "9999a", "ABCD", "7f3a1c9e0"] {
        assert_eq!(
            resolve(unknown).unwrap_err().kind(),
            ErrorKind::NotFound,
            "{unknown}"
        );
    }
    let error = resolve("7f3a").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ambiguous);
    let names: Vec<&str> = error.candidates().iter().map(SessionId::as_str).collect();
    assert_eq!(names, ["7f3a1c9e", "7f3a2222"]);
}

#[test]
fn a_whole_id_wins_over_longer_ones_that_begin_with_it() {
    let lab = with_sessions(&["abcd", "abcde", "abcdef"]);
    assert_eq!(lab.store.resolve("abcd").unwrap().as_str(), "abcd");
    assert_eq!(lab.store.resolve("abcde").unwrap().as_str(), "abcde");
    assert_eq!(lab.store.resolve("abcdef").unwrap().as_str(), "abcdef");
}

fn at(start_ms: i64) -> Store {
    StoreOptions::new()
        .storage(MemoryStorage::new())
        .clock(ManualClock::new(start_ms))
        .open_or_create("/store")
        .unwrap()
}

fn delete(store: &Store, session: Session) {
    let id = session.id().clone();
    session.close().unwrap();
    let plan = store.delete_plan(&[id], DeleteScope::Named).unwrap();
    plan.apply().unwrap();
}

#[test]
fn latest_is_the_session_with_the_newest_message_and_prefers_the_workspace() {
    let store = at(1_000_000_000_000);
    let latest = |root: Option<&str>| match root {
        Some(root) => store.resolve_in("latest", Path::new(root)),
        None => store.resolve("latest"),
    };
    assert_eq!(latest(None).unwrap_err().kind(), ErrorKind::NotFound);
    let in_a = SessionOptions::new().workspace_root(Path::new("/a"));
    let first = store.create_session(in_a.clone()).unwrap();
    let second = store.create_session(in_a).unwrap();
    let elsewhere = store
        .create_session(SessionOptions::new().workspace_root(Path::new("/b")))
        .unwrap();
    let nowhere = store.create_session(SessionOptions::new()).unwrap();
    assert_eq!(latest(None).unwrap(), *nowhere.id());
    assert_eq!(latest(Some("/a")).unwrap(), *second.id());
    assert_eq!(latest(Some("/b")).unwrap(), *elsewhere.id());
    assert_eq!(
        latest(Some("/c")).unwrap(),
        *nowhere.id(),
        "none works there"
    );
    first.append(Message::user_text("newest")).unwrap();
    assert_eq!(latest(None).unwrap(), *first.id());
    assert_eq!(latest(Some("/a")).unwrap(), *first.id());
    // One without a message does not get ahead, whatever else is done to it.
    second.note(&Note::new().title("newer still")).unwrap();
    let newer = store.create_session(SessionOptions::new()).unwrap();
    assert_eq!(latest(None).unwrap(), *first.id());
    // An undone message was one.
    first.rewind_chat(0).unwrap();
    assert_eq!(latest(None).unwrap(), *first.id());
    newer.append(Message::user_text("newest")).unwrap();
    assert_eq!(latest(None).unwrap(), *newer.id());
}

/// Every kind of note, by every way to make one.
#[test]
fn a_note_is_not_activity() {
    let store = at(1_000_000_000_000);
    let old = store.create_session(SessionOptions::new()).unwrap();
    old.append(Message::user_text("old")).unwrap();
    let new = store.create_session(SessionOptions::new()).unwrap();
    new.append(Message::user_text("new")).unwrap();
    let updated = || old.reader().info().unwrap().updated_at;
    let before = updated();
    let said = old.reader().record(1).unwrap().unwrap();
    assert_eq!(before, said.as_ref().at());
    let notes = [
        Note::new().title("a title"),
        Note::new().tags(["a-tag"]),
        Note::new().pinned(true),
        Note::new().model("m-2"),
        Note::new().pinned(false),
    ];
    for note in &notes {
        old.note(note).unwrap();
        store.note(old.id(), note).unwrap();
        assert_eq!(updated(), before, "{note:?}");
        assert_eq!(store.resolve("latest").unwrap(), *new.id(), "{note:?}");
    }
    old.append(Message::user_text("again")).unwrap();
    assert!(updated() > before);
    assert_eq!(store.resolve("latest").unwrap(), *old.id());
}

/// F25: an agent that is killed while its sub-agent works resumes as itself.
#[test]
fn latest_is_never_the_session_of_a_sub_agent() {
    let store = at(1_000_000_000_000);
    let agent = store.create_session(SessionOptions::new()).unwrap();
    agent.append(Message::user_text("go")).unwrap();
    let call = ToolUse::new("call-1", "task", &serde_json::json!({})).unwrap();
    agent.append(Message::assistant([call.into()])).unwrap();
    let sub_agent = agent.spawn("call-1", SessionOptions::new()).unwrap();
    sub_agent.append(Message::user_text("a part")).unwrap();
    assert_eq!(store.resolve("latest").unwrap(), *agent.id());
    let here = SessionOptions::new().workspace_root(Path::new("/a"));
    let deeper = agent.spawn("call-1", here).unwrap();
    deeper.append(Message::user_text("a part of it")).unwrap();
    let found = store.resolve_in("latest", Path::new("/a")).unwrap();
    assert_eq!(found, *agent.id(), "only a sub-agent works there");
    delete(&store, agent);
    let error = store.resolve("latest").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("sub-agents'"), "{error}");
}

#[test]
fn a_fork_is_the_latest_once_it_has_a_message_or_is_alone() {
    let store = at(1_000_000_000_000);
    let parent = store.create_session(SessionOptions::new()).unwrap();
    parent.append(Message::user_text("one")).unwrap();
    let fork = store
        .fork_session(parent.id(), &ForkOptions::new())
        .unwrap();
    fork.note(&Note::new().title("a fork")).unwrap();
    assert_eq!(store.resolve("latest").unwrap(), *parent.id());
    let empty = store.create_session(SessionOptions::new()).unwrap();
    assert_eq!(store.resolve("latest").unwrap(), *parent.id());
    fork.append(Message::user_text("two")).unwrap();
    assert_eq!(store.resolve("latest").unwrap(), *fork.id());
    delete(&store, fork);
    let alone = store
        .fork_session(parent.id(), &ForkOptions::new())
        .unwrap();
    delete(&store, parent);
    assert_eq!(store.resolve("latest").unwrap(), *empty.id());
    delete(&store, empty);
    assert_eq!(store.resolve("latest").unwrap(), *alone.id());
}

/// F23: one that cannot be read hides none of the others.
#[test]
fn latest_and_the_list_pass_over_what_is_no_session() {
    let lab = with_sessions(&["aaaa"]);
    let sessions = Path::new("/store/sessions");
    lab.disk.create_dir(&sessions.join("bbbb")).unwrap();
    lab.disk.create_dir(&sessions.join("..hidden")).unwrap();
    lab.disk.write(&sessions.join("cccc"), b"a file").unwrap();
    lab.disk.create_dir(&sessions.join("dddd")).unwrap();
    lab.disk
        .write(&sessions.join("dddd/0000.jsonl"), b"garbage\n")
        .unwrap();
    let mut ids: Vec<String> = lab
        .store
        .sessions()
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, ["aaaa", "dddd"]);
    assert_eq!(lab.store.resolve("latest").unwrap().as_str(), "aaaa");
    assert_eq!(lab.store.infos().unwrap().len(), 2);
    let gone: SessionId = "bbbb".parse().unwrap();
    for error in [
        lab.store.read_session(&gone).map(drop).unwrap_err(),
        lab.store.open_session(&gone).map(drop).unwrap_err(),
        lab.store.note(&gone, &Note::new()).map(drop).unwrap_err(),
        lab.store.repair_plan(&gone).map(drop).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error:?}");
    }
}

#[test]
fn a_directory_of_somebody_elses_does_not_become_a_store() {
    let disk = MemoryStorage::new();
    disk.create_dir(Path::new("/home")).unwrap();
    disk.write(Path::new("/home/letter.txt"), b"dear").unwrap();
    let options = || StoreOptions::new().storage(disk.clone());
    let error = options().open_or_create("/home").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(error.path(), Some(Path::new("/home")));
    assert_eq!(
        options().open("/home").unwrap_err().kind(),
        ErrorKind::Invalid,
        "to look for a store there is a mistake as well"
    );
    assert_eq!(disk.files(), [Path::new("/home/letter.txt")]);
    assert_eq!(disk.list(Path::new("/home")).unwrap(), ["letter.txt"]);
    // Settings may be written before there is a store.
    disk.create_dir(Path::new("/fresh")).unwrap();
    disk.write(Path::new("/fresh/config.toml"), b"").unwrap();
    options().open_or_create("/fresh").unwrap();
    options().open_or_create("/some/where/deep").unwrap();
    options().open("/some/where/deep").unwrap();
}

#[test]
fn a_store_of_a_newer_format_is_refused_and_distinguished_from_a_damaged_one() {
    let disk = MemoryStorage::new();
    let options = || StoreOptions::new().storage(disk.clone());
    options().open_or_create("/store").unwrap();
    let format = Path::new("/store/format");
    assert_eq!(disk.read(format).unwrap(), b"backtrail 2\n");
    for (content, kind) in [
        ("backtrail 3\n", ErrorKind::NewerFormat),
        ("backtrail 4294967295", ErrorKind::NewerFormat),
        ("backtrail\n", ErrorKind::Corrupt),
        ("backtrail two\n", ErrorKind::Corrupt),
        ("backtrail -3\n", ErrorKind::Corrupt),
        ("sqlite 2\n", ErrorKind::Corrupt),
        ("", ErrorKind::Corrupt),
        ("\0\0\0\0\0\0\0\0\0\0\0\0", ErrorKind::Corrupt),
    ] {
        disk.write(format, content.as_bytes()).unwrap();
        for opened in [options().open("/store"), options().open_or_create("/store")] {
            let error = opened.unwrap_err();
            assert_eq!(error.kind(), kind, "{content:?}");
            assert_eq!(error.path(), Some(format), "{content:?}");
        }
        assert_eq!(disk.read(format).unwrap(), content.as_bytes());
    }
    disk.write(format, b"\xff\xfe").unwrap();
    assert_eq!(
        options().open("/store").unwrap_err().kind(),
        ErrorKind::Corrupt
    );
    disk.write(format, b"backtrail 2\r\n").unwrap();
    options().open("/store").unwrap();
}

#[cfg(unix)]
#[test]
fn nobody_else_can_read_a_store() {
    use std::os::unix::fs::PermissionsExt;

    fn check(path: &Path, seen: &mut usize) {
        let mode = path.symlink_metadata().unwrap().permissions().mode() & 0o777;
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, expected, "{}: {mode:o}", path.display());
        *seen += 1;
        if path.is_dir() {
            for name in LocalStorage.list(path).unwrap() {
                check(&path.join(name), seen);
            }
        }
    }

    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("above").join("store");
    let store = StoreOptions::new()
        .rotation(1)
        .open_or_create(&root)
        .unwrap();
    let session = store.create_session(SessionOptions::new()).unwrap();
    session.append(Message::user_text("1")).unwrap();
    session.append(Message::user_text("2")).unwrap();
    let path = session.reader().dir().join("0002.jsonl");
    session.close().unwrap();
    // A torn line, so that there is a side file as well.
    LocalStorage
        .open_append(&path)
        .unwrap()
        .append(b"{\"type\"")
        .unwrap();
    let id = store.sessions().unwrap().remove(0);
    assert_eq!(store.open_session(&id).unwrap().set_aside().len(), 1);
    let mut seen = 0;
    check(&root, &mut seen);
    // The store, sessions/, format, one session, three trails, two locks, a side file.
    assert_eq!(seen, 10);
    assert!(Store::open(&root).is_ok());
}

/// F7: ids come from the operating system's randomness, each anew.
#[test]
fn ids_never_collide_between_threads() {
    const THREADS: usize = 64;
    const EACH: usize = 1_000;
    let store = StoreOptions::new()
        .storage(MemoryStorage::new())
        .durability(backtrail::Durability::Os)
        .open_or_create("/store")
        .unwrap();
    // Records have ids of the same make as sessions, and are cheaper.
    let of_thread = |_| {
        let store = store.clone();
        std::thread::spawn(move || {
            let session = store.create_session(SessionOptions::new()).unwrap();
            let drafts = (0..EACH).map(|_| Message::user_text("x"));
            assert!(session.append_batch(drafts).iter().all(Result::is_ok));
            let records = session.reader().records().unwrap().owned();
            let ids = records.map(|record| record.unwrap().as_ref().id().unwrap().into_owned());
            ids.chain([session.id().to_string()]).collect::<Vec<_>>()
        })
    };
    let threads: Vec<_> = (0..THREADS).map(of_thread).collect();
    let mut ids = HashSet::new();
    for thread in threads {
        for id in thread.join().unwrap() {
            assert!(ids.insert(id.clone()), "{id} came twice");
        }
    }
    assert_eq!(ids.len(), THREADS * (EACH + 1));
}
