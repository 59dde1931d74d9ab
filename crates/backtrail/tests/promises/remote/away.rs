//! The remote cannot be reached.

use std::time::{Duration, Instant};

use backtrail::replica::WhenAway;
use backtrail::{Draft, Durability, ErrorKind, SessionOptions, StoreOptions};
use backtrail_testkit::MemoryStorage;

use super::kit::{LEASE, Machine, ROOT, Wire, same_there, texts, there, user};

#[test]
fn an_append_fails_the_message_is_here_and_the_next_one_takes_it_along() {
    let wire = Wire::new();
    let machine = Machine::new(&wire, "a");
    let session = machine.create();
    session.append(user("one")).unwrap();
    wire.set_away(true);
    let error = session.append(user("two")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Away);
    assert_eq!(error.head(), Some(2), "the record that is here");
    assert!(error.to_string().contains("team"), "{error}");
    assert!(session.stopped().is_none() && session.behind().is_none());
    assert_eq!(texts(&machine.store, session.id()), ["one", "two"]);
    let there_now = there(&wire, session.id());
    assert!(!there_now[0].1.contains("two"));
    wire.set_away(false);
    assert_eq!(session.append(user("three")).unwrap(), 3);
    same_there(&machine, &wire, session.id());
}

#[test]
fn of_a_batch_what_was_refused_stays_refused_and_the_rest_is_here() {
    let wire = Wire::new();
    let machine = Machine::new(&wire, "a");
    let session = machine.create();
    session.append(user("one")).unwrap();
    wire.set_away(true);
    let wrong = Draft::from(user("wrong")).expect(9);
    let batch = [user("two").into(), wrong, user("three").into()];
    let errors = session
        .append_batch(batch)
        .into_iter()
        .map(Result::unwrap_err);
    let errors: Vec<_> = errors.map(|error| (error.kind(), error.head())).collect();
    let expected = [
        (ErrorKind::Away, Some(2)),
        (ErrorKind::Conflict, Some(2)),
        (ErrorKind::Away, Some(3)),
    ];
    assert_eq!(errors, expected);
    wire.set_away(false);
    assert_eq!(session.acknowledge().unwrap(), 3);
    assert_eq!(texts(&machine.store, session.id()), ["one", "two", "three"]);
    same_there(&machine, &wire, session.id());
}

#[test]
fn a_session_is_not_created_and_not_opened_without_the_lease() {
    let wire = Wire::new();
    let machine = Machine::new(&wire, "a");
    let id = machine.create().id().clone();
    wire.set_away(true);
    let error = machine.store.create_session(SessionOptions::new());
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Away);
    assert_eq!(machine.store.sessions().unwrap(), std::slice::from_ref(&id));
    let error = machine.store.open_session(&id).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Away);
    wire.set_away(false);
    machine.store.open_session(&id).unwrap();
}

#[test]
fn a_session_may_go_on_without_it_and_says_that_it_is_behind() {
    let wire = Wire::new();
    let machine = Machine::when_away(&wire, "a", WhenAway::Local);
    wire.set_away(true);
    let session = machine.create();
    assert_eq!(session.behind().map(|it| it.kind()), Some(ErrorKind::Away));
    let before = wire.asked().len();
    for n in 0..50 {
        assert_eq!(session.append(user("here")).unwrap(), n + 1);
    }
    assert!(
        wire.asked().len() < before + 5,
        "it is not asked every time"
    );
    assert!(there(&wire, session.id()).is_empty());
    wire.set_away(false);
    catches_up(|| session.append(user("more")).map(drop).is_ok() && session.behind().is_none());
    same_there(&machine, &wire, session.id());
}

#[test]
fn what_was_acknowledged_without_it_is_sent_when_the_session_is_opened_again() {
    let wire = Wire::new();
    let machine = Machine::when_away(&wire, "a", WhenAway::Local);
    let session = machine.create();
    session.append(user("one")).unwrap();
    assert!(session.behind().is_none());
    wire.set_away(true);
    session.append(user("two")).unwrap();
    assert!(session.behind().is_some());
    let id = session.id().clone();
    session.close().unwrap();
    wire.set_away(false);
    let session = machine.store.open_session(&id).unwrap();
    assert!(session.behind().is_none());
    same_there(&machine, &wire, &id);
}

#[test]
fn what_was_acknowledged_here_stays_if_another_machine_took_over_meanwhile() {
    let wire = Wire::new();
    let machine = Machine::when_away(&wire, "a", WhenAway::Local);
    let other = Machine::new(&wire, "b");
    let session = machine.create();
    let id = session.id().clone();
    session.append(user("one")).unwrap();
    wire.set_away(true);
    session.append(user("here")).unwrap();
    wire.set_away(false);
    wire.clock.advance(LEASE.as_millis() as i64 + 1);
    other.pull(&wire, &id);
    let theirs = other.store.open_session(&id).unwrap();
    theirs.append(user("there")).unwrap();
    let mut error = None;
    catches_up(|| {
        error = session.append(user("late")).err();
        error.is_some()
    });
    assert_eq!(error.unwrap().kind(), ErrorKind::Fenced);
    let here = texts(&machine.store, &id);
    assert_eq!(here[..2], ["one", "here"], "acknowledged");
    assert_eq!(texts(&other.store, &id), ["one", "there"]);
    drop((session, theirs));
    // It is not merged, and not overwritten.
    wire.clock.advance(LEASE.as_millis() as i64 + 1);
    let error = machine.store.open_session(&id).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("fork"), "{error}");
    same_there(&other, &wire, &id);
}

#[test]
fn without_a_remote_there_is_nothing_to_wait_for() {
    let options = StoreOptions::new().storage(MemoryStorage::new());
    let store = options.open_or_create(ROOT).unwrap();
    let options = SessionOptions::new().durability(Durability::Remote);
    let error = store.create_session(options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(store.sessions().unwrap().is_empty());
    let session = store.create_session(SessionOptions::new()).unwrap();
    session.append(user("one")).unwrap();
    assert_eq!(session.acknowledge().unwrap(), 1);
    assert!(session.behind().is_none());
}

/// Tries for a few seconds: a remote that was away is left alone for a while.
#[track_caller]
fn catches_up(mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(20));
    }
}
