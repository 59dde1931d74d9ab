//! A sub-agent's session and the tool call that began it know of each other,
//! whoever speaks and whatever stops the machine, and neither is a part of the
//! other.

use backtrail::{
    Block, ErrorKind, ForkOptions, Message, RecordKind, Session, SessionId, SessionOptions,
    SessionReader, Shape, Storage, Store, StoreOptions, ToolResult, ToolUse,
};
use backtrail_testkit::{
    Count, Fault, FaultyStorage, Loss, ManualClock, MemoryStorage, SeededRandomness, When,
};

use crate::kit::End;
use crate::version1::disk::{Desk, LINES};

const ROOT: &str = "/store";

fn store_on(storage: impl Storage) -> Store {
    seeded(storage, 3)
}

fn seeded(storage: impl Storage, seed: u64) -> Store {
    StoreOptions::new()
        .storage(storage)
        .clock(ManualClock::new(1_794_729_600_000))
        .randomness(SeededRandomness::new(seed))
        .open_or_create(ROOT)
        .unwrap()
}

fn call(id: &str) -> Message {
    let call = ToolUse::new(id, "task", &serde_json::json!({"prompt": "look"})).unwrap();
    Message::assistant([Block::text("I ask somebody."), call.into()])
}

/// A session that made the call `t1` in its record 2.
fn parent(store: &Store) -> Session {
    let options = SessionOptions::new().title("parent");
    let session = store.create_session(options).unwrap();
    session.append(Message::user_text("find it")).unwrap();
    assert_eq!(session.append(call("t1")).unwrap(), 2);
    session
}

fn texts(reader: &SessionReader) -> Vec<String> {
    let records = reader.records().unwrap().owned();
    let messages = records.filter_map(|record| record.unwrap().message().unwrap());
    messages
        .map(|message| message.text().into_owned())
        .collect()
}

fn spawned(reader: &SessionReader) -> Vec<SessionId> {
    let all = reader.spawned().unwrap().into_iter();
    all.map(|spawned| spawned.session_id).collect()
}

#[test]
fn a_sub_agent_and_the_call_that_began_it_lead_to_each_other() {
    let store = store_on(MemoryStorage::new());
    let session = parent(&store);
    let options = SessionOptions::new().title("child").agent("scout");
    let child = session.spawn("t1", options).unwrap();
    let info = child.reader().info().unwrap();
    let by = info.spawned_by.unwrap();
    assert_eq!(by.session_id, *session.id());
    assert_eq!((by.seq, by.tool_use_id.as_str()), (2, "t1"));
    assert_eq!(info.title.as_deref(), Some("child"));
    assert_eq!(info.agent.as_deref(), Some("scout"));
    let spawned = session.reader().spawned().unwrap();
    assert_eq!(spawned.len(), 1);
    assert_eq!(spawned[0].session_id, *child.id());
    assert_eq!(
        (spawned[0].call, spawned[0].tool_use_id.as_str()),
        (2, "t1")
    );
    // Both go on, and the links stay.
    child.append(Message::user_text("look")).unwrap();
    let result = ToolResult::ok("found").answers("t1", "task");
    assert_eq!(session.append(Message::tool_result(result)).unwrap(), 4);
    assert_eq!(texts(&child.reader()), ["look"]);
    assert_eq!(session.reader().spawned().unwrap(), spawned);
    for session in [session, child] {
        let id = session.id().clone();
        session.close().unwrap();
        assert!(store.read_session(&id).unwrap().verify().unwrap().is_ok());
    }
}

#[test]
fn a_sub_agent_starts_whether_or_not_the_parent_has_a_writer() {
    let store = store_on(MemoryStorage::new());
    let session = parent(&store);
    let id = session.id().clone();
    // The parent is open for writing.
    let first = store
        .spawn_session(&id, "t1", SessionOptions::new())
        .unwrap();
    assert_eq!(session.append(Message::user_text("on")).unwrap(), 4);
    session.close().unwrap();
    // It is closed.
    let second = store
        .spawn_session(&id, "t1", SessionOptions::new())
        .unwrap();
    let reader = store.read_session(&id).unwrap();
    assert_eq!(spawned(&reader), [first.id().clone(), second.id().clone()]);
    // A sub-agent has sub-agents of its own.
    first.append(call("t9")).unwrap();
    let grandchild = first.spawn("t9", SessionOptions::new()).unwrap();
    assert_eq!(spawned(&first.reader()), [grandchild.id().clone()]);
    assert_eq!(spawned(&reader).len(), 2);
}

#[test]
fn a_call_that_was_never_made_begins_nothing() {
    let memory = MemoryStorage::new();
    let store = store_on(memory.clone());
    let session = parent(&store);
    let before = memory.files();
    for unknown in ["t2", "", "T1", "t1 "] {
        let error = session.spawn(unknown, SessionOptions::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().contains(session.id().as_str()), "{error}");
    }
    // Nor do options that no session can have, and what is not a call.
    let bad = SessionOptions::new().title("x".repeat(5000));
    assert_eq!(
        session.spawn("t1", bad).unwrap_err().kind(),
        ErrorKind::Invalid
    );
    session.append(Message::user_text("t7")).unwrap();
    let error = session.spawn("t7", SessionOptions::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let missing: SessionId = "nobody".parse().unwrap();
    let error = store.spawn_session(&missing, "t1", SessionOptions::new());
    assert_eq!(error.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(store.sessions().unwrap(), [session.id().clone()]);
    assert_eq!(memory.files(), before);
    assert!(session.reader().spawned().unwrap().is_empty());
    assert_eq!(session.last_seq(), 3);
}

#[test]
fn the_newest_call_of_an_id_is_the_one_that_counts() {
    let store = store_on(MemoryStorage::new());
    let session = parent(&store);
    assert_eq!(session.append(call("t1")).unwrap(), 3);
    let child = session.spawn("t1", SessionOptions::new()).unwrap();
    let by = child.reader().info().unwrap().spawned_by.unwrap();
    assert_eq!(by.seq, 3);
}

#[test]
fn a_sub_agent_is_no_fork() {
    let store = store_on(MemoryStorage::new());
    let session = parent(&store);
    let child = session.spawn("t1", SessionOptions::new()).unwrap();
    assert!(texts(&child.reader()).is_empty());
    assert_eq!(child.reader().records().unwrap().owned().count(), 0);
    let info = child.reader().info().unwrap();
    assert_eq!((info.forked_from, info.last_seq), (None, 0));
    let context = child.context(Shape::Neutral).unwrap();
    assert!(!context.as_json().contains("find it"), "{context:?}");
    let context = session.context(Shape::Neutral).unwrap();
    assert!(!context.as_json().contains("spawned"), "{context:?}");
    // It is no step of the parent's either.
    assert_eq!(session.undo().unwrap(), None);
    assert_eq!(session.reader().stats().unwrap().messages.total, 2);
    // A fork of a sub-agent is a fork, and not a sub-agent.
    let fork = child.fork(&ForkOptions::new()).unwrap();
    let info = fork.reader().info().unwrap();
    assert_eq!(info.spawned_by, None);
    assert!(info.forked_from.is_some());
    assert_eq!(spawned(&session.reader()), [child.id().clone()]);
}

#[test]
fn sub_agents_are_those_of_the_line_of_history() {
    let store = store_on(MemoryStorage::new());
    let session = parent(&store);
    let one = session
        .spawn("t1", SessionOptions::new())
        .unwrap()
        .id()
        .clone();
    session.append(call("t2")).unwrap();
    let two = session
        .spawn("t2", SessionOptions::new())
        .unwrap()
        .id()
        .clone();
    session.append(Message::user_text("more")).unwrap();
    let of = |session: &Session| spawned(&session.reader());
    assert_eq!(of(&session), [one.clone(), two.clone()]);
    let fork = session.fork(&ForkOptions::new().at(4)).unwrap();
    let only_one = std::slice::from_ref(&one);
    assert_eq!(of(&fork), only_one);
    session.rewind_chat(3).unwrap().unwrap();
    assert_eq!(of(&session), only_one);
    // A call that was taken back cannot begin anything, and its child is there.
    let error = session.spawn("t2", SessionOptions::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(store.read_session(&two).unwrap().info().is_ok());
    session.rewind_chat(0).unwrap().unwrap();
    assert!(of(&session).is_empty());
    session.undo().unwrap().unwrap();
    session.undo().unwrap().unwrap();
    assert_eq!(of(&session), [one, two]);
}

/// A redo is still there: a link is nothing that was said.
#[test]
fn a_sub_agent_does_not_end_redo() {
    let store = store_on(MemoryStorage::new());
    let session = parent(&store);
    session.append(Message::user_text("more")).unwrap();
    session.rewind_chat(2).unwrap().unwrap();
    session.undo().unwrap().unwrap();
    session.spawn("t1", SessionOptions::new()).unwrap();
    assert!(session.redo().unwrap().is_some());
}

#[test]
fn an_imported_session_starts_sub_agents_by_its_old_calls() {
    let desk = Desk::new();
    let id = desk.old_session("talk.jsonl", LINES);
    let options = SessionOptions::new();
    let child = desk.store.spawn_session(&id, "toolu_02", options).unwrap();
    let by = child.reader().info().unwrap().spawned_by.unwrap();
    assert_eq!((by.session_id, by.seq), (id.clone(), 7));
    assert_eq!(spawned(&desk.reader(&id)), [child.id().clone()]);
}

#[test]
fn a_link_to_a_session_that_never_came_is_passed_over() {
    let memory = MemoryStorage::new();
    let store = store_on(memory.clone());
    let session = parent(&store);
    let gone = session.spawn("t1", SessionOptions::new()).unwrap();
    let kept = session.spawn("t1", SessionOptions::new()).unwrap();
    let (gone_id, dir) = (gone.id().clone(), gone.reader().dir());
    gone.close().unwrap();
    memory.remove_file(&dir.join("0000.jsonl")).unwrap();
    assert_eq!(spawned(&session.reader()), [kept.id().clone()]);
    assert!(!store.sessions().unwrap().contains(&gone_id));
    // It is a record all the same, and no damage.
    let links = session.reader().records().unwrap().owned();
    let links = links.filter(|r| r.as_ref().unwrap().as_ref().kind() == RecordKind::Spawned);
    assert_eq!(links.count(), 2);
    assert!(session.reader().verify().unwrap().is_ok());
}

/// A child that cannot be looked at just now is not one that never came.
#[test]
fn a_child_that_cannot_be_inspected_is_an_error_and_not_skipped() {
    let memory = MemoryStorage::new();
    let id = {
        let store = store_on(memory.clone());
        let session = parent(&store);
        session.spawn("t1", SessionOptions::new()).unwrap();
        session.id().clone()
    };
    let disk = FaultyStorage::new(memory).counting(Count::All);
    let store = store_on(disk.clone());
    let reader = store.read_session(&id).unwrap();
    for n in 0.. {
        disk.arm(n, Fault::Error(5));
        let all = reader.spawned();
        if !disk.fired() {
            assert_eq!(all.unwrap().len(), 1);
            break;
        }
        if let Ok(all) = all {
            assert_eq!(all.len(), 1, "{:?}", disk.log());
        }
    }
}

#[test]
fn f5_a_crash_at_any_operation_of_a_spawn_leaves_the_parent_whole() {
    let base = MemoryStorage::new();
    let id = parent(&store_on(base.clone())).id().clone();
    let base = base.crash(Loss::Nothing);
    let faults = [
        Fault::Crash { when: When::Before },
        Fault::Crash { when: When::After },
        Fault::Tear {
            numerator: 1,
            denominator: 2,
        },
    ];
    for fault in faults {
        for n in 0.. {
            let memory = base.crash(Loss::Nothing);
            let disk = FaultyStorage::new(memory.clone());
            let store = store_on(disk.clone());
            disk.arm(n, fault);
            let child = store.spawn_session(&id, "t1", SessionOptions::new());
            let ends = [
                End::Kill,
                End::Power(Loss::Unsynced),
                End::Power(Loss::Shuffled { seed: n }),
            ];
            for end in ends {
                let at = format!("{fault:?} at {n}, {end:?}");
                let child = child.as_ref().ok().map(Session::id);
                check_after_spawn(end.of(&memory), &id, child, &at);
            }
            if !disk.fired() {
                assert!(n > 10, "only {n} operations");
                child.unwrap();
                break;
            }
        }
    }
}

fn check_after_spawn(memory: MemoryStorage, id: &SessionId, child: Option<&SessionId>, at: &str) {
    let store = seeded(memory.clone(), 4);
    let reader = store.read_session(id).unwrap();
    assert_eq!(texts(&reader), ["find it", "I ask somebody."], "{at}");
    let links = spawned(&reader);
    let sessions = store.sessions().unwrap();
    // Every child is there, and every session but the parent is a child.
    assert_eq!(links.len() + 1, sessions.len(), "{at}: {links:?}");
    for link in &links {
        let info = store.read_session(link).unwrap().info().unwrap();
        assert_eq!(info.spawned_by.unwrap().session_id, *id, "{at}");
    }
    if let Some(child) = child {
        assert_eq!(links, std::slice::from_ref(child), "{at}");
    }
    // It can be done, or done again.
    let next = store
        .spawn_session(id, "t1", SessionOptions::new())
        .unwrap();
    next.append(Message::user_text("look")).unwrap();
    let after = store_on(memory.crash(Loss::Unsynced));
    let links = spawned(&after.read_session(id).unwrap());
    assert_eq!(links.last(), Some(next.id()), "{at}");
    assert_eq!(
        texts(&after.read_session(next.id()).unwrap()),
        ["look"],
        "{at}"
    );
}
