//! What is asked of the remote, and how often.

use std::sync::Barrier;
use std::time::Duration;

use backtrail::{Draft, ErrorKind, Message, Note, SessionOptions, ToolResult, ToolUse};

use super::kit::{Machine, Wire, WireFault, same_there, texts, there, user};

#[test]
fn an_append_is_one_request() {
    let wire = Wire::new();
    let machine = Machine::new(&wire, "a");
    let session = machine.create();
    assert_eq!(wire.asked(), ["lease", "begin"]);
    session.append(user("one")).unwrap();
    assert_eq!(wire.asked(), ["append"]);
    session.append_batch([user("two"), user("three"), user("four")]);
    assert_eq!(wire.asked(), ["append"]);
    session.rewind_chat(1).unwrap();
    assert_eq!(wire.asked(), ["begin"]);
    let id = session.id().clone();
    session.close().unwrap();
    assert_eq!(wire.asked(), ["release"]);
    let session = machine.store.open_session(&id).unwrap();
    assert_eq!(wire.asked(), ["lease"]);
    session.append(user("five")).unwrap();
    assert_eq!(wire.asked(), ["append"]);
}

#[test]
fn a_turn_of_a_prompt_and_its_answer_adds_two_requests_and_messages_that_wait_together_one() {
    let wire = Wire::new();
    let machine = Machine::new(&wire, "a");
    let session = machine.create();
    wire.asked();
    session.append(user("what is here?")).unwrap();
    let call = ToolUse::new("t1", "bash", &serde_json::json!({"command": "ls"})).unwrap();
    // The agent goes on while the call and its result are written, and waits for the last.
    wire.set_slow(Duration::from_millis(50));
    let call = session.append_deferred(Message::assistant([call.into()]));
    let result = ToolResult::ok("src").answers("t1", "bash");
    let result = session.append_deferred(Message::tool_result(result));
    session.append(user("thanks")).unwrap();
    call.wait().unwrap();
    result.wait().unwrap();
    let asked = wire.asked();
    assert!(asked.len() <= 3, "{asked:?}");
    same_there(&machine, &wire, session.id());
}

#[test]
fn threads_that_wait_share_a_request() {
    const THREADS: usize = 8;
    const EACH: usize = 10;
    let wire = Wire::new();
    let machine = Machine::new(&wire, "a");
    let session = machine.create();
    wire.asked();
    wire.set_slow(Duration::from_millis(5));
    let start = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (session, start) = (&session, &start);
            scope.spawn(move || {
                start.wait();
                for n in 0..EACH {
                    session.append(user(&format!("{thread}.{n}"))).unwrap();
                }
            });
        }
    });
    let asked = wire.asked().len();
    assert!(asked * 3 < THREADS * EACH, "{asked} requests");
    same_there(&machine, &wire, session.id());
    assert_eq!(texts(&machine.store, session.id()).len(), THREADS * EACH);
}

#[test]
fn a_message_whose_answer_was_lost_is_there_once_and_has_its_seq() {
    let wire = Wire::new();
    let machine = Machine::new(&wire, "a");
    let session = machine.create();
    wire.arm(0, WireFault::AnswerLost);
    wire.asked();
    assert_eq!(session.append(user("one")).unwrap(), 1);
    assert_eq!(wire.asked(), ["append", "append"]);
    assert_eq!(session.append(user("two")).unwrap(), 2);
    assert_eq!(wire.asked(), ["append"]);
    same_there(&machine, &wire, session.id());
}

#[test]
fn notes_of_other_processes_are_sent_with_the_next_append() {
    let wire = Wire::new();
    let machine = Machine::new(&wire, "a");
    let session = machine.create();
    let id = session.id();
    machine.store.note(id, &Note::new().title("one")).unwrap();
    wire.asked();
    session.append(Draft::from(user("two")).expect(0)).unwrap();
    assert_eq!(wire.asked(), ["append"]);
    same_there(&machine, &wire, id);
    machine.store.note(id, &Note::new().title("three")).unwrap();
    machine.store.note(id, &Note::new().title("four")).unwrap();
    assert_eq!(session.acknowledge().unwrap(), 4);
    assert_eq!(wire.asked(), ["append"]);
    same_there(&machine, &wire, id);
    assert_eq!(session.acknowledge().unwrap(), 4);
    assert!(wire.asked().is_empty(), "nothing was new");
}

#[test]
fn payloads_are_there_before_their_line() {
    let wire = Wire::new();
    let machine = Machine::new(&wire, "a");
    let session = machine.create();
    let text = "x".repeat((1 << 20) + 1);
    wire.asked();
    session.append(user(&text)).unwrap();
    assert_eq!(wire.asked(), ["put", "append"]);
    // It is refused, and nothing names what is not there.
    wire.arm(0, WireFault::AwayFrom);
    let error = session.append(user(&(text + "y"))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Away);
    let [(0, lines)] = &there(&wire, session.id())[..] else {
        panic!("there is one trail");
    };
    assert_eq!(lines.lines().count(), 2);
    wire.set_away(false);
    assert_eq!(session.acknowledge().unwrap(), 2);
    same_there(&machine, &wire, session.id());
}

#[test]
fn a_session_that_was_written_here_before_is_sent_when_it_is_opened() {
    let wire = Wire::new();
    let machine = Machine::new(&wire, "a");
    let local = SessionOptions::new().durability(backtrail::Durability::Record);
    let session = machine.store.create_session(local).unwrap();
    let id = session.id().clone();
    for n in 0..300 {
        session
            .append(user(&format!("{n} {}", "x".repeat(10_000))))
            .unwrap();
    }
    session.rewind_chat(5).unwrap();
    session.append(user("after it")).unwrap();
    session.close().unwrap();
    assert!(
        wire.asked().is_empty(),
        "nothing leaves the machine unasked"
    );
    drop(machine.store.open_session(&id).unwrap());
    let asked = wire.asked();
    assert!(asked.len() < 10, "{asked:?}");
    same_there(&machine, &wire, &id);
}
