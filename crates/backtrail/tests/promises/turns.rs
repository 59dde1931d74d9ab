//! Turns: a message and its answers, with the files as they were before it.
//!
//! A disk that blocks the snapshot's first step shows which calls wait for it.

#![expect(
    clippy::disallowed_methods,
    reason = "a workspace belongs to the user, who changes it as he likes"
)]

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};

use backtrail::workspace::{CheckpointReason, LogKind};
use backtrail::{
    Block, Checkpoint, CheckpointOptions, ErrorKind, LocalStorage, Message, Point, Session,
    SessionOptions, Storage, StorageFile, Store, StoreOptions, ToolResult, ToolUse, Turn,
};

use crate::snapshots::desk::Desk;

fn session(desk: &Desk) -> Session {
    let options = SessionOptions::new().workspace(&desk.workspace);
    desk.store.create_session(options).unwrap()
}

fn call(id: &str) -> Message {
    let call = ToolUse::new(id, "bash", "ls").unwrap();
    Message::assistant([Block::from(call)])
}

fn last_seq(store: &Store, session: &Session) -> u64 {
    let reader = store.read_session(session.id()).unwrap();
    let last = reader.last_records(1).unwrap();
    last.first().map_or(0, |record| record.seq())
}

fn calls(turn: &Turn) -> Vec<String> {
    let open = turn.open_tool_calls();
    open.iter().map(|call| call.id.to_string()).collect()
}

fn checkpoints(desk: &Desk) -> Vec<Checkpoint> {
    let all = desk.workspace.checkpoints().unwrap();
    all.map(Result::unwrap).collect()
}

fn reasons(desk: &Desk) -> Vec<CheckpointReason> {
    let all = checkpoints(desk);
    all.iter().map(|kept| kept.reason().clone()).collect()
}

fn content(kept: &Checkpoint) -> String {
    let bytes = kept.snapshot().unwrap().read("file").unwrap();
    String::from_utf8(bytes.unwrap()).unwrap()
}

#[test]
fn a_turn_keeps_the_files_before_it_after_each_tool_and_at_its_end() {
    let desk = Desk::new();
    desk.write("file", "before");
    let session = session(&desk);
    session.append(Message::user_text("hello")).unwrap();
    let turn = session
        .begin_turn(Message::user_text("change\nit"))
        .unwrap();
    turn.append(call("t1")).unwrap();
    turn.append(call("t2")).unwrap();
    for (id, state) in [("t1", "first"), ("t2", "second")] {
        let tool = turn.begin_tool(id).unwrap();
        assert_eq!(tool.call().id.to_string(), id);
        desk.write("file", state);
        tool.finish(ToolResult::ok("done")).unwrap();
    }
    // Its snapshot runs in the background; the end waits for it.
    turn.append(Message::assistant([Block::text("done")]))
        .unwrap();
    let end = turn.end().unwrap();

    let kept = checkpoints(&desk);
    let expected = [
        CheckpointReason::TurnStart,
        CheckpointReason::ToolEnd,
        CheckpointReason::ToolEnd,
        CheckpointReason::TurnEnd,
    ];
    assert_eq!(reasons(&desk), expected);
    let [start, first, second, last] = &kept[..] else {
        panic!()
    };
    assert_eq!(last.id(), end.id());
    assert_eq!(content(start), "before");
    assert_eq!(content(first), "first");
    assert_eq!(content(second), "second");
    assert_eq!(start.about().unwrap().text(), Some("change"));
    assert_eq!(start.begun_by(), None);
    for later in [first, second, last] {
        assert_eq!(later.begun_by(), Some(start.id()));
    }
    // Each is at its place: the start at the record before the turn's message.
    let places: Vec<u64> = kept
        .iter()
        .map(|kept| kept.session().unwrap().seq)
        .collect();
    assert_eq!(places, [1, 5, 6, 7]);
    assert!(
        kept.iter()
            .all(|kept| kept.session().unwrap().id == *session.id())
    );
    let changes = end.changes().unwrap();
    assert_eq!(changes.changes()[0].to_string(), "edited file");
    assert_eq!(
        changes.before(&changes.changes()[0]).unwrap().unwrap(),
        b"before"
    );
    desk.verify();
}

#[test]
fn open_tool_calls_are_those_without_a_result_in_order() {
    let desk = Desk::new();
    let session = session(&desk);
    let turn = session.begin_turn(Message::user_text("go")).unwrap();
    assert!(turn.open_tool_calls().is_empty());
    turn.append(call("t1")).unwrap();
    turn.append(call("t2")).unwrap();
    turn.append(call("t3")).unwrap();
    assert_eq!(calls(&turn), ["t1", "t2", "t3"]);
    turn.begin_tool("t2")
        .unwrap()
        .finish(ToolResult::ok(""))
        .unwrap();
    assert_eq!(calls(&turn), ["t1", "t3"]);
    let result = ToolResult::ok("by hand").answers("t1", "bash");
    turn.append(Message::tool_result(result)).unwrap();
    assert_eq!(calls(&turn), ["t3"]);
    for answered_or_unknown in ["t1", "t2", "never"] {
        let error = turn.begin_tool(answered_or_unknown).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().contains(answered_or_unknown), "{error}");
    }
    // A tool call that is begun and dropped has no result.
    drop(turn.begin_tool("t3").unwrap());
    assert_eq!(calls(&turn), ["t3"]);
    turn.end().unwrap();
}

/// A disk whose snapshot lock cannot be opened until it is released.
#[derive(Debug, Clone)]
struct Waiting {
    gate: Arc<(Mutex<bool>, Condvar)>,
}

impl Waiting {
    fn new() -> Self {
        Self {
            gate: Arc::new((Mutex::new(false), Condvar::new())),
        }
    }

    fn release(&self) {
        *self.gate.0.lock().unwrap() = true;
        self.gate.1.notify_all();
    }

    fn wait(&self, path: &Path) {
        if path.ends_with("snapshot.lock") {
            let open = self.gate.0.lock().unwrap();
            drop(self.gate.1.wait_while(open, |open| !*open).unwrap());
        }
    }
}

impl Storage for Waiting {
    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        self.wait(path);
        LocalStorage.create_new(path)
    }

    fn open_append(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        self.wait(path);
        LocalStorage.open_append(path)
    }

    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        self.wait(path);
        LocalStorage.open_read(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        LocalStorage.create_dir(path)
    }

    fn link_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        LocalStorage.link_new(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        LocalStorage.remove_file(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        LocalStorage.list(dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        LocalStorage.exists(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        LocalStorage.sync_dir(dir)
    }
}

#[test]
fn the_conversation_does_not_wait_for_the_snapshot_and_a_tool_does() {
    let desk = Desk::new();
    desk.write("file", "before");
    let disk = Waiting::new();
    let store = StoreOptions::new().storage(disk.clone());
    let store = store.open(desk.store.root()).unwrap();
    let workspace = store.workspace(desk.root()).unwrap();
    let options = SessionOptions::new().workspace(&workspace);
    let session = store.create_session(options).unwrap();
    // All of this returns and is durable, although no snapshot can be made.
    let turn = session.begin_turn(Message::user_text("go")).unwrap();
    turn.append(call("t1")).unwrap();
    turn.append(Message::assistant([Block::text("and so on")]))
        .unwrap();
    assert_eq!(last_seq(&desk.store, &session), 3);
    assert!(desk.workspace.last_checkpoint().unwrap().is_none());
    // Only the tool call waits: otherwise it would change what is to be kept.
    let begun = std::thread::scope(|scope| {
        let tool = scope.spawn(|| {
            let tool = turn.begin_tool("t1").unwrap();
            let first = desk.workspace.last_checkpoint().unwrap();
            desk.write("file", "after");
            tool.finish(ToolResult::ok("done")).unwrap();
            first
        });
        disk.release();
        tool.join().unwrap()
    });
    let begun = begun.expect("the snapshot was there when the tool began");
    assert_eq!(begun.reason(), &CheckpointReason::TurnStart);
    assert_eq!(content(&begun), "before");
    assert_eq!(content(&turn.end().unwrap()), "after");
}

#[test]
fn a_turn_that_is_dropped_is_interrupted_and_its_changes_are_kept() {
    let desk = Desk::new();
    desk.write("file", "before");
    let session = session(&desk);
    let turn = session.begin_turn(Message::user_text("go")).unwrap();
    turn.append(call("t1")).unwrap();
    let tool = turn.begin_tool("t1").unwrap();
    desk.write("file", "half");
    drop(tool);
    drop(turn);
    assert_eq!(
        reasons(&desk),
        [CheckpointReason::TurnStart, CheckpointReason::Interrupted]
    );
    let log = desk.workspace.log().unwrap();
    let [entry] = &log[..] else { panic!("{log:?}") };
    assert_eq!((entry.kind(), entry.ended()), (LogKind::Turn, false));
    let changes = entry.changes().unwrap().unwrap();
    assert_eq!(changes.changes()[0].to_string(), "edited file");
    assert_eq!(
        desk.workspace.resolve(&Point::turns_back(1)).unwrap().id(),
        log[0].before().unwrap().id()
    );
}

/// Set in the process that will be killed.
const CHILD: &str = "BACKTRAIL_TEST_TURN_OF";

/// Not a promise: the process that is killed in the middle of a turn.
#[test]
fn a_process_that_waits_to_be_killed() {
    let Ok(home) = std::env::var(CHILD) else {
        return;
    };
    let store = Store::open(Path::new(&home).join("store")).unwrap();
    let workspace = store.workspace(&Path::new(&home).join("work")).unwrap();
    let options = SessionOptions::new().workspace(&workspace);
    let session = store.create_session(options).unwrap();
    let turn = session.begin_turn(Message::user_text("doomed")).unwrap();
    turn.append(call("t1")).unwrap();
    let _tool = turn.begin_tool("t1").unwrap();
    fs::write(workspace.root().join("file"), "half").unwrap();
    fs::write(Path::new(&home).join("ready"), "").unwrap();
    // Until it is killed, or its parent is gone.
    io::Read::read(&mut io::stdin(), &mut [0]).ok();
}

#[test]
fn a_turn_whose_process_was_killed_has_no_end_and_is_not_running() {
    let desk = Desk::new();
    desk.write("file", "before");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "turns::a_process_that_waits_to_be_killed"])
        .env(CHILD, desk.dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !desk.dir.path().join("ready").exists() {
        assert!(child.try_wait().unwrap().is_none(), "it died by itself");
        std::thread::yield_now();
    }
    let active = desk.workspace.active().unwrap();
    assert_eq!(active.len(), 1);
    assert_eq!(active[0].holder.pid, child.id());
    assert_eq!(active[0].about.as_deref(), Some("doomed"));
    child.kill().unwrap();
    child.wait().unwrap();

    assert!(desk.workspace.active().unwrap().is_empty());
    assert_eq!(reasons(&desk), [CheckpointReason::TurnStart]);
    let log = desk.workspace.log().unwrap();
    assert_eq!((log.len(), log[0].ended()), (1, false));
    assert_eq!(log[0].after().about().unwrap().text(), Some("doomed"));
    // Its changes are seen against its start, and another turn continues.
    let before = desk.workspace.snapshot(&Point::turns_back(1)).unwrap();
    let changes = desk.workspace.changes_since(&before).unwrap();
    assert_eq!(changes.changes()[0].to_string(), "edited file");
    let id = active[0].session.clone().unwrap();
    let session = desk.store.open_session(&id).unwrap();
    let turn = session.begin_turn(Message::user_text("again")).unwrap();
    turn.end().unwrap();
    let ended: Vec<_> = desk.workspace.log().unwrap();
    let turns: Vec<_> = ended
        .iter()
        .filter(|entry| entry.kind() == LogKind::Turn)
        .map(|entry| entry.ended())
        .collect();
    assert_eq!(turns, [false, true]);
    desk.verify();
}

#[test]
fn two_sessions_in_one_workspace_have_turns_of_their_own() {
    let desk = Desk::new();
    desk.write("file", "0");
    let (one, two) = (session(&desk), session(&desk));
    let first = one.begin_turn(Message::user_text("one")).unwrap();
    first.append(call("t1")).unwrap();
    let tool = first.begin_tool("t1").unwrap();
    let second = two.begin_turn(Message::user_text("two")).unwrap();
    second.append(call("t1")).unwrap();
    let other = second.begin_tool("t1").unwrap();
    assert_eq!(desk.workspace.active().unwrap().len(), 2);
    desk.write("file", "1");
    tool.finish(ToolResult::ok("")).unwrap();
    desk.write("other", "2");
    other.finish(ToolResult::ok("")).unwrap();
    let end = first.end().unwrap();
    assert_eq!(end.session().unwrap().id, *one.id());
    assert_eq!(desk.workspace.active().unwrap().len(), 1);
    second.end().unwrap();
    assert!(desk.workspace.active().unwrap().is_empty());
    let log = desk.workspace.log().unwrap();
    let turns: Vec<_> = log.iter().filter(|e| e.kind() == LogKind::Turn).collect();
    assert_eq!(turns.len(), 2, "neither lies within the other");
    assert_eq!(turns[0].after().session().unwrap().id, *one.id());
    assert_eq!(turns[1].after().session().unwrap().id, *two.id());
    desk.verify();
}

#[test]
fn a_spawned_session_is_linked_and_works_in_the_same_workspace() {
    let desk = Desk::new();
    let session = session(&desk);
    let turn = session.begin_turn(Message::user_text("delegate")).unwrap();
    turn.append(call("t1")).unwrap();
    let child = turn.spawn("t1", SessionOptions::new()).unwrap();
    let workspace = child.workspace().unwrap().expect("it is inherited");
    assert_eq!(workspace.id(), desk.workspace.id());
    let spawned = desk.store.read_session(session.id()).unwrap().spawned();
    assert_eq!(spawned.unwrap()[0].session_id, *child.id());
    let inner = child.begin_turn(Message::user_text("sub")).unwrap();
    desk.write("file", "by the sub-agent");
    inner.end().unwrap();
    let error = turn.spawn("never", SessionOptions::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    // It may work elsewhere if the caller says so.
    let elsewhere = desk.dir.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let elsewhere = desk.store.workspace(&elsewhere).unwrap();
    let options = SessionOptions::new().workspace(&elsewhere);
    let other = turn.spawn("t1", options).unwrap();
    assert_eq!(other.workspace().unwrap().unwrap().id(), elsewhere.id());
    turn.end().unwrap();
}

#[test]
fn without_a_workspace_there_is_no_turn_and_nothing_is_written() {
    let desk = Desk::new();
    let session = desk.store.create_session(SessionOptions::new()).unwrap();
    let error = session.begin_turn(Message::user_text("go")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("has no workspace"), "{error}");
    assert_eq!(session.last_seq(), 0);
    let error = session.checkpoint(CheckpointOptions::new()).unwrap_err();
    assert!(error.to_string().contains("has no workspace"), "{error}");
}

/// A sparse file is large enough to be refused, and costs nothing.
#[test]
fn a_first_snapshot_that_is_too_large_stops_the_tool_and_says_so() {
    let desk = Desk::new();
    for n in 0..21 {
        let file = fs::File::create(desk.path(&format!("large{n}"))).unwrap();
        file.set_len(256 << 20).unwrap();
    }
    let session = session(&desk);
    let turn = session.begin_turn(Message::user_text("go")).unwrap();
    turn.append(call("t1")).unwrap();
    for _ in 0..2 {
        let error = turn.begin_tool("t1").unwrap_err();
        let too_much = error.too_much().expect("it says how much");
        assert_eq!((too_much.files, too_much.bytes), (21, 21 * (256 << 20)));
    }
    // The messages are safe.
    assert_eq!(last_seq(&desk.store, &session), 2);
    assert!(turn.end().unwrap_err().too_much().is_some());
    assert!(desk.workspace.last_checkpoint().unwrap().is_none());
    // Without it, the next turn works.
    for n in 0..21 {
        fs::remove_file(desk.path(&format!("large{n}"))).unwrap();
    }
    let turn = session.begin_turn(Message::user_text("again")).unwrap();
    turn.append(call("t2")).unwrap();
    turn.begin_tool("t2")
        .unwrap()
        .finish(ToolResult::ok(""))
        .unwrap();
    turn.end().unwrap();
}
