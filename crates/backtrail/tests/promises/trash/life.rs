//! Deleting, restoring and emptying.

use std::time::Duration;

use backtrail::trash::{DeleteScope, DeletionReason, EmptyOptions};
use backtrail::workspace::CheckpointReason;
use backtrail::{
    Block, CheckpointOptions, ErrorKind, ForkOptions, Message, Note, Role, SessionOptions, ToolUse,
};
use backtrail_testkit::{ManualClock, MemoryStorage, SeededRandomness};

use super::{HOME, delete, empty, fork, name, options, said, session, store_on};

#[test]
fn a_deleted_session_is_whole_in_the_trash_and_can_be_restored() {
    let memory = MemoryStorage::new();
    let store = store_on(&memory);
    let (id, other) = (session(&store, &["one", "two"]), session(&store, &["else"]));
    let before = memory.read(&store.read_session(&id).unwrap().dir().join("0000.jsonl"));
    delete(&store, &id).unwrap();

    assert_eq!(store.sessions().unwrap(), std::slice::from_ref(&other));
    assert_eq!(store.infos().unwrap().len(), 1);
    assert_eq!(store.resolve("latest").unwrap(), other);
    assert_eq!(store.deleted_sessions().unwrap(), std::slice::from_ref(&id));
    for error in [
        store.read_session(&id).unwrap_err(),
        store.open_session(&id).unwrap_err(),
        store.resolve(id.as_str()).unwrap_err(),
        store.resolve(id.prefix(8)).unwrap_err(),
        store.note(&id, &Note::new().title("t")).unwrap_err(),
        store.fork_session(&id, &ForkOptions::new()).unwrap_err(),
        delete(&store, &id).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error:?}");
        assert_eq!(error.in_trash(), Some(&id), "{error:?}");
        assert!(
            error
                .to_string()
                .contains("is in the trash (deleted at 2026"),
            "{error}"
        );
    }
    let contents = store.trash().unwrap();
    let [entry] = contents.entries.as_slice() else {
        panic!("{contents:?}");
    };
    assert_eq!((&entry.name.id, entry.continued_by.len()), (&id, 0));
    assert!(entry.deleted_at.is_some() && entry.bytes > 0);
    assert_eq!(said(entry.reader()), ["one", "two"]);

    store.restore_deleted(&name(&id)).unwrap();
    assert_eq!(said(&store.read_session(&id).unwrap()), ["one", "two"]);
    let after = memory.read(&store.read_session(&id).unwrap().dir().join("0000.jsonl"));
    assert_eq!(before.unwrap(), after.unwrap(), "byte for byte");
    let error = store.restore_deleted(&name(&id)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    // And it continues.
    let opened = store.open_session(&id).unwrap();
    assert_eq!(opened.append(Message::user_text("three")).unwrap(), 3);
}

#[test]
fn forks_read_what_they_continue_in_the_trash() {
    let memory = MemoryStorage::new();
    let store = store_on(&memory);
    let parent = store.create_session(SessionOptions::new()).unwrap();
    let image = Block::image("image/png", "aGVsbG8=").unwrap();
    parent.append(Message::user_text("first")).unwrap();
    parent.append(Message::new(Role::User, [image])).unwrap();
    let id = parent.id().clone();
    parent.close().unwrap();
    let child = fork(&store, &id, "second");
    let grandchild = fork(&store, &child, "third");
    let context = |id| {
        let reader = store.read_session(id).unwrap();
        reader
            .context(backtrail::Shape::Anthropic)
            .unwrap()
            .as_json()
            .to_owned()
    };
    let before = context(&grandchild);
    assert!(before.contains("aGVsbG8="));
    // A reader continues meanwhile.
    let mut reading = store.read_session(&grandchild).unwrap().records().unwrap();
    reading.next().unwrap().unwrap();
    delete(&store, &id).unwrap();
    delete(&store, &child).unwrap();
    let mut rest = 0;
    while reading.next().unwrap().is_some() {
        rest += 1;
    }
    assert_eq!(rest, 3);
    assert_eq!(context(&grandchild), before);
    let reader = store.read_session(&grandchild).unwrap();
    assert_eq!(said(&reader), ["first", "", "second", "third"]);
    assert!(reader.verify().unwrap().is_ok());
    assert!(reader.gaps().unwrap().is_empty());
    assert_eq!(store.trash().unwrap().entries.len(), 2);
    // Restored in the other order, and read meanwhile.
    store.restore_deleted(&name(&id)).unwrap();
    assert_eq!(context(&grandchild), before);
    store.restore_deleted(&name(&child)).unwrap();
    assert_eq!(context(&grandchild), before);
}

#[test]
fn cascade_takes_forks_and_sub_agents_along_the_deepest_first() {
    let memory = MemoryStorage::new();
    let store = store_on(&memory);
    let root = store.create_session(SessionOptions::new()).unwrap();
    let call = ToolUse::new("t1", "task", &serde_json::json!({})).unwrap();
    root.append(Message::assistant([call.into()])).unwrap();
    let agent = root.spawn("t1", SessionOptions::new()).unwrap();
    let (id, agent_id) = (root.id().clone(), agent.id().clone());
    agent.append(Message::user_text("look")).unwrap();
    agent.close().unwrap();
    root.close().unwrap();
    let child = fork(&store, &id, "a");
    let grandchild = fork(&store, &child, "b");
    let stranger = session(&store, &["mine"]);

    let alone = store
        .delete_plan(std::slice::from_ref(&id), DeleteScope::Named)
        .unwrap();
    assert_eq!(alone.deletions().len(), 1);
    assert_eq!(alone.forks(), std::slice::from_ref(&child));
    drop(alone);

    let ids = [id.clone()];
    let plan = store
        .delete_plan(&ids, DeleteScope::WithDescendants)
        .unwrap();
    let order: Vec<_> = plan.deletions().iter().map(|it| it.id.clone()).collect();
    let at = |id| order.iter().position(|known| known == id).unwrap();
    assert_eq!(order.len(), 4);
    assert!(at(&grandchild) < at(&child) && at(&child) < at(&id) && at(&agent_id) < at(&id));
    let reason = &plan.deletions()[at(&agent_id)].reason;
    assert_eq!(*reason, DeletionReason::SubAgent { of: id.clone() });
    plan.apply().unwrap();
    assert_eq!(store.sessions().unwrap(), [stranger]);
}

#[test]
fn emptying_keeps_and_names_sessions_that_others_continue() {
    let memory = MemoryStorage::new();
    let store = store_on(&memory);
    let id = session(&store, &["one"]);
    let child = fork(&store, &id, "two");
    let grandchild = fork(&store, &child, "three");
    let other = session(&store, &["else"]);
    for id in [&id, &child, &other] {
        delete(&store, id).unwrap();
    }
    let plan = store.empty_plan(&EmptyOptions::new()).unwrap();
    assert_eq!(plan.emptied().len(), 1);
    let kept: Vec<_> = plan
        .kept()
        .iter()
        .map(|kept| (&kept.entry.name.id, &kept.read_by))
        .collect();
    assert!(
        kept.contains(&(&child, &vec![grandchild.clone()])),
        "{kept:?}"
    );
    assert!(kept.contains(&(&id, &vec![child.clone()])), "{kept:?}");
    let report = plan.apply().unwrap();
    assert_eq!(report.emptied, [name(&other)]);
    assert_eq!(report.kept.len(), 2, "they are named afterwards as well");
    assert!(report.bytes > 0);
    let reader = store.read_session(&grandchild).unwrap();
    assert_eq!(said(&reader), ["one", "two", "three"]);
    // Where the reader is removed as well, all are.
    delete(&store, &grandchild).unwrap();
    let only = EmptyOptions::new().only([name(&id)]);
    assert!(store.empty_plan(&only).unwrap().emptied().is_empty());
    assert_eq!(empty(&store).unwrap().len(), 3);
    assert!(store.trash().unwrap().entries.is_empty());
    let files = memory.files();
    assert!(
        !files.iter().any(|path| path.ends_with("0000.jsonl")),
        "{files:?}"
    );
}

// F21: nothing is deleted unasked, however old it is, and nothing that cannot be read.
#[test]
fn f21_nothing_is_deleted_unasked_nor_what_cannot_be_read() {
    let memory = MemoryStorage::new();
    let clock = ManualClock::new(1_794_729_600_000);
    let open = || {
        let options = backtrail::StoreOptions::new()
            .storage(memory.clone())
            .clock(clock.clone())
            .randomness(SeededRandomness::new(9));
        options.open_or_create(HOME).unwrap()
    };
    let store = open();
    let (old, young) = (session(&store, &["old"]), session(&store, &["young"]));
    delete(&store, &old).unwrap();
    let files = memory.files();
    // Ten years later.
    clock.advance(10 * 365 * 24 * 3600 * 1000);
    let store = open();
    delete(&store, &young).unwrap();
    session(&store, &["another"]);
    store.trash().unwrap();
    store.verify_snapshots().unwrap();
    let is_there = |path| memory.files().contains(path);
    let moved = |path: &std::path::PathBuf| !path.to_string_lossy().contains(young.as_str());
    assert!(files.iter().filter(|path| moved(path)).all(is_there));
    // By age, only what is old goes; what has no time of deletion stays.
    let month = EmptyOptions::new().older_than(Duration::from_secs(30 * 24 * 3600));
    let names: Vec<_> = store
        .empty_plan(&month)
        .unwrap()
        .emptied()
        .iter()
        .map(|e| e.name.clone())
        .collect();
    assert_eq!(names, [name(&old)]);
    let dir = format!("{HOME}/trash/{old}/deleted");
    memory.write(dir.as_ref(), b"{torn").unwrap();
    assert!(store.empty_plan(&month).unwrap().emptied().is_empty());
    // A session whose first trail cannot be read may continue any of them.
    let damaged = session(&store, &["damaged"]);
    let path = store
        .read_session(&damaged)
        .unwrap()
        .dir()
        .join("0000.jsonl");
    let mut bytes = memory.read(&path).unwrap();
    bytes[5] ^= 1;
    memory.write(&path, &bytes).unwrap();
    let plan = store.empty_plan(&EmptyOptions::new()).unwrap();
    assert!(plan.emptied().is_empty());
    assert!(
        plan.kept()
            .iter()
            .all(|kept| kept.in_doubt && kept.read_by == [damaged.clone()])
    );
    plan.apply().unwrap();
    assert_eq!(store.trash().unwrap().entries.len(), 2);
}

#[test]
fn a_session_with_a_writer_is_not_deleted_nor_any_with_it() {
    let memory = MemoryStorage::new();
    let store = options(memory.clone())
        .program("agent")
        .open_or_create(HOME)
        .unwrap();
    let free = session(&store, &["free"]);
    let spoken = store.create_session(SessionOptions::new()).unwrap();
    let ids = [free.clone(), spoken.id().clone()];
    let plan = store.delete_plan(&ids, DeleteScope::Named).unwrap();
    let error = plan.apply().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert_eq!(error.holder().unwrap().program.as_deref(), Some("agent"));
    assert_eq!(store.sessions().unwrap().len(), 2);
    spoken.append(Message::user_text("still here")).unwrap();
    spoken.close().unwrap();
    store
        .delete_plan(&ids, DeleteScope::Named)
        .unwrap()
        .apply()
        .unwrap();
    assert!(store.sessions().unwrap().is_empty());
}

#[test]
fn a_name_that_is_taken_is_not_restored_over() {
    let memory = MemoryStorage::new();
    let store = store_on(&memory);
    let id = session(&store, &["one"]);
    let transcript = store.read_session(&id).unwrap().transcript().unwrap();
    delete(&store, &id).unwrap();
    // The id is not given again while it is in the trash: forks would read another session.
    let error = store
        .create_session_from(&transcript, SessionOptions::new())
        .unwrap_err();
    assert_eq!(error.in_trash(), Some(&id));
    // It is created by hand even so.
    let dir = std::path::PathBuf::from(format!("{HOME}/sessions/{id}"));
    backtrail::Storage::create_dir(&memory, &dir).unwrap();
    memory.write(&dir.join("0000.jsonl"), b"another\n").unwrap();
    let error = store.restore_deleted(&name(&id)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error:?}");
    assert_eq!(memory.read(&dir.join("0000.jsonl")).unwrap(), b"another\n");
    assert_eq!(said(&store.read_deleted(&id).unwrap()), ["one"]);
}

#[test]
fn a_session_in_which_a_command_runs_is_not_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let store = backtrail::Store::open_or_create(dir.path().join("store")).unwrap();
    let work = dir.path().join("work");
    #[expect(clippy::disallowed_methods, reason = "the workspace is the user's")]
    std::fs::create_dir(&work).unwrap();
    let workspace = store.workspace(&work).unwrap();
    let made = store
        .create_session(SessionOptions::new().workspace(&workspace))
        .unwrap();
    let id = made.id().clone();
    made.close().unwrap();
    let start = CheckpointOptions::new()
        .session(&id)
        .reason(CheckpointReason::RunStart);
    let start = workspace.checkpoint(start).unwrap();
    let active = workspace.activate(&start).unwrap();
    let error = delete(&store, &id).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(
        error.to_string().contains("is running in process"),
        "{error}"
    );
    let ids = std::slice::from_ref(&id);
    let purge = store.purge_plan(ids, DeleteScope::Named).unwrap().apply();
    assert_eq!(purge.unwrap_err().kind(), ErrorKind::Locked);
    drop(active);
    delete(&store, &id).unwrap();
}
