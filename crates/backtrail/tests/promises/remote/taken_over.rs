//! Another machine took over while this one was paused, or died.

use backtrail::{Error, ErrorKind, Note, Session, SessionId};
use backtrail_testkit::MemoryStorage;

use super::kit::{LEASE, Machine, Wire, WireFault, same_there, texts, there, user};

type Disk = Machine<MemoryStorage>;

/// Lets the lease run out, and another machine continue the session.
fn take_over(wire: &Wire, id: &SessionId) -> (Disk, Session) {
    wire.clock.advance(LEASE.as_millis() as i64 + 1);
    let other = Machine::new(wire, "b");
    other.pull(wire, id);
    let session = other.store.open_session(id).unwrap();
    session.append(user("from b")).unwrap();
    (other, session)
}

#[track_caller]
fn is_fenced(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Fenced, "{error:?}");
    assert!(error.to_string().contains("pull it"), "{error}");
}

fn asides(machine: &Disk, id: &SessionId) -> Vec<String> {
    let mut files = machine.files(id);
    files.retain(|name| name.contains(".aside-"));
    files
}

#[test]
fn a_paused_writer_is_refused_for_good_and_its_line_is_set_aside() {
    let wire = Wire::new();
    let machine = Machine::new(&wire, "a");
    let session = machine.create();
    let id = session.id().clone();
    session.append(user("one")).unwrap();
    let before = machine.trails(&id);
    let (other, theirs) = take_over(&wire, &id);
    let error = session.append(user("late")).unwrap_err();
    is_fenced(&error);
    assert!(error.to_string().starts_with("b took over"), "{error}");
    assert_eq!(machine.trails(&id), before, "the line is gone");
    assert_eq!(asides(&machine, &id).len(), 1, "and kept aside");
    // For good: also after the other machine gave its lease back.
    theirs.close().unwrap();
    for _ in 0..3 {
        is_fenced(&session.append(user("again")).unwrap_err());
        is_fenced(&session.note(&Note::new().title("again")).unwrap_err());
        is_fenced(&session.rewind_chat(0).unwrap_err());
    }
    is_fenced(&session.stopped().unwrap());
    assert_eq!(machine.trails(&id), before);
    assert_eq!(texts(&machine.store, &id), ["one"], "it can be read");
    same_there(&other, &wire, &id);
    drop(session);
    // Read-only until it is pulled.
    let error = machine.store.open_session(&id).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("pull it"), "{error}");
    machine.pull(&wire, &id);
    let session = machine.store.open_session(&id).unwrap();
    session.append(user("two")).unwrap();
    same_there(&machine, &wire, &id);
    assert_eq!(texts(&machine.store, &id), ["one", "from b", "two"]);
}

#[test]
fn a_session_that_another_machine_writes_to_is_not_opened() {
    let wire = Wire::new();
    let machine = Machine::new(&wire, "a");
    let session = machine.create();
    let other = Machine::new(&wire, "b");
    other.pull(&wire, session.id());
    let error = other.store.open_session(session.id()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(error.to_string().contains("written to by a "), "{error}");
    let id = session.id().clone();
    session.close().unwrap();
    other.store.open_session(&id).unwrap();
}

#[test]
fn a_machine_dies_and_another_one_continues() {
    let wire = Wire::new();
    let machine = Machine::new(&wire, "a");
    let session = machine.create();
    let id = session.id().clone();
    session.append(user("one")).unwrap();
    session.append(user("two")).unwrap();
    // Nothing runs on it any more, and nothing is left of it.
    std::mem::forget(session);
    drop(machine);
    let (other, theirs) = take_over(&wire, &id);
    assert_eq!(texts(&other.store, &id), ["one", "two", "from b"]);
    theirs.undo().unwrap();
    theirs.append(user("on")).unwrap();
    same_there(&other, &wire, &id);
}

#[test]
fn a_message_that_arrived_before_the_pause_is_acknowledged_after_it() {
    let wire = Wire::new();
    let machine = Machine::new(&wire, "a");
    let session = machine.create();
    let id = session.id().clone();
    session.append(user("one")).unwrap();
    wire.arm(0, WireFault::AnswerLostThenAway);
    let error = session.append(user("two")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Away);
    wire.set_away(false);
    let (other, theirs) = take_over(&wire, &id);
    assert_eq!(texts(&other.store, &id), ["one", "two", "from b"]);
    // The retry is answered with its seq, and what comes after is refused.
    assert_eq!(session.acknowledge().unwrap(), 2);
    is_fenced(&session.append(user("late")).unwrap_err());
    assert_eq!(texts(&machine.store, &id), ["one", "two"]);
    drop((session, theirs));
    machine.pull(&wire, &id);
    same_there(&machine, &wire, &id);
}

#[test]
fn all_lines_that_were_never_acknowledged_are_set_aside() {
    let wire = Wire::new();
    let machine = Machine::new(&wire, "a");
    let session = machine.create();
    let id = session.id().clone();
    session.append(user("one")).unwrap();
    let before = machine.trails(&id);
    wire.set_away(true);
    for text in ["two", "three"] {
        session.append(user(text)).unwrap_err();
    }
    session.rewind_chat(2).unwrap_err();
    session.append(user("four")).unwrap_err();
    wire.set_away(false);
    let (_other, _theirs) = take_over(&wire, &id);
    is_fenced(&session.append(user("five")).unwrap_err());
    assert_eq!(machine.trails(&id), before);
    assert_eq!(asides(&machine, &id).len(), 2, "of both trails");
    assert_eq!(texts(&machine.store, &id), ["one"]);
    drop(session);
    assert!(
        machine
            .store
            .read_session(&id)
            .unwrap()
            .verify()
            .unwrap()
            .damage
            .is_empty()
    );
}

#[test]
fn a_move_that_is_refused_leaves_the_conversation_where_it_was() {
    let wire = Wire::new();
    let machine = Machine::new(&wire, "a");
    let session = machine.create();
    let id = session.id().clone();
    for text in ["one", "two", "three"] {
        session.append(user(text)).unwrap();
    }
    let before = machine.trails(&id);
    let (other, _theirs) = take_over(&wire, &id);
    is_fenced(&session.rewind_chat(1).unwrap_err());
    assert_eq!(machine.trails(&id), before);
    assert_eq!(texts(&machine.store, &id), ["one", "two", "three"]);
    same_there(&other, &wire, &id);
    drop(session);
    machine.pull(&wire, &id);
    same_there(&machine, &wire, &id);
}

#[test]
fn a_note_that_another_process_was_told_of_stays() {
    let wire = Wire::new();
    let machine = Machine::new(&wire, "a");
    let session = machine.create();
    let id = session.id().clone();
    session.append(user("one")).unwrap();
    let (_other, _theirs) = take_over(&wire, &id);
    let note = Note::new().title("told");
    machine.store.note(&id, &note).unwrap();
    is_fenced(&session.append(user("late")).unwrap_err());
    let info = machine.store.read_session(&id).unwrap().info().unwrap();
    assert_eq!(info.title.as_deref(), Some("told"));
    assert_eq!(texts(&machine.store, &id), ["one"]);
    let lines = there(&wire, &id).remove(0).1;
    assert!(
        !lines.contains("told"),
        "it is not there, and a push says so"
    );
}
