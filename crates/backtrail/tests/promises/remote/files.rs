//! Going back with the files of a session at a remote.

use std::fs;

use backtrail::replica::WhenAway;
use backtrail::{ErrorKind, LocalStorage, Message, Session, SessionOptions};

use super::kit::{LEASE, Machine, Wire, WireFault, options, same_there, user};

struct Project {
    _dir: tempfile::TempDir,
    machine: Machine<LocalStorage>,
    file: std::path::PathBuf,
    session: Session,
}

/// A session with two turns, of which the second changed a file.
fn project(wire: &Wire) -> Project {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("project");
    fs::create_dir(&root).unwrap();
    let file = root.join("poem.txt");
    fs::write(&file, "roses\n").unwrap();
    let settings = options(wire, "a", WhenAway::Fail);
    let machine = Machine::on(LocalStorage, dir.path().join("store"), settings);
    let workspace = machine.store.workspace(&root).unwrap();
    let options = SessionOptions::new().workspace(&workspace);
    let session = machine.store.create_session(options).unwrap();
    let turn = session.begin_turn(user("write")).unwrap();
    turn.end().unwrap();
    let turn = session.begin_turn(user("write more")).unwrap();
    let call = backtrail::ToolUse::new("t1", "write", &serde_json::json!({})).unwrap();
    turn.append(Message::assistant([call.into()])).unwrap();
    let tool = turn.begin_tool("t1").unwrap();
    fs::write(&file, "violets\n").unwrap();
    tool.finish(backtrail::ToolResult::ok("done")).unwrap();
    turn.end().unwrap();
    Project {
        _dir: dir,
        machine,
        file,
        session,
    }
}

fn text(project: &Project) -> String {
    fs::read_to_string(&project.file).unwrap()
}

#[test]
fn files_and_conversation_move_after_the_lease_was_renewed() {
    let wire = Wire::new();
    let project = project(&wire);
    wire.asked();
    project.session.undo().unwrap();
    assert_eq!(text(&project), "roses\n");
    let asked = wire.asked();
    assert_eq!(asked, ["renew", "begin"]);
    same_there(&project.machine, &wire, project.session.id());
    project.session.redo().unwrap();
    assert_eq!(text(&project), "violets\n");
    same_there(&project.machine, &wire, project.session.id());
}

#[test]
fn nothing_is_touched_if_another_machine_took_over() {
    let wire = Wire::new();
    let project = project(&wire);
    let id = project.session.id().clone();
    let before = project.machine.trails(&id);
    wire.clock.advance(LEASE.as_millis() as i64 + 1);
    let other = Machine::new(&wire, "b");
    other.pull(&wire, &id);
    let _theirs = other.store.open_session(&id).unwrap();
    let error = project.session.undo().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Fenced, "{error:?}");
    assert_eq!(text(&project), "violets\n");
    assert_eq!(project.machine.trails(&id), before);
}

#[test]
fn nothing_is_touched_while_the_remote_is_away() {
    let wire = Wire::new();
    let project = project(&wire);
    wire.set_away(true);
    let error = project.session.undo().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Away, "{error:?}");
    assert_eq!(text(&project), "violets\n");
    wire.set_away(false);
    project.session.undo().unwrap();
    assert_eq!(text(&project), "roses\n");
    same_there(&project.machine, &wire, project.session.id());
}

#[test]
fn files_that_moved_keep_their_conversation_if_another_machine_takes_over_just_then() {
    let wire = Wire::new();
    let project = project(&wire);
    let id = project.session.id().clone();
    let before = project.machine.trails(&id).len();
    // The lease is renewed, the files move, and then it is too late.
    wire.arm(1, WireFault::TakenOver);
    let error = project.session.undo().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Fenced, "{error:?}");
    assert_eq!(text(&project), "roses\n");
    assert_eq!(project.machine.trails(&id).len(), before + 1, "they agree");
    assert!(project.session.stopped().is_some());
}
