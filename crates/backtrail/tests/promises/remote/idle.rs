//! A session that does nothing keeps its lease, and learns that it lost it.

use std::time::{Duration, Instant};

use backtrail::replica::Remote;
use backtrail::{Durability, ErrorKind, StoreOptions};
use backtrail_testkit::MemoryStorage;

use super::kit::{Machine, ROOT, Wire, user};

const SHORT: Duration = Duration::from_millis(60);

fn machine(wire: &Wire, name: &str) -> Machine<MemoryStorage> {
    let disk = MemoryStorage::new();
    let remote = Remote::new("team", wire.clone(), name).lease(SHORT);
    let options = StoreOptions::new().storage(disk.clone()).remote(remote);
    Machine::on(disk, ROOT.into(), options.durability(Durability::Remote))
}

#[track_caller]
fn eventually(mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn an_idle_session_renews_its_lease() {
    let wire = Wire::new();
    let machine = machine(&wire, "a");
    let session = machine.create();
    wire.asked();
    let mut renewals = 0;
    eventually(|| {
        renewals += wire.asked().iter().filter(|name| **name == "renew").count();
        renewals >= 3
    });
    session.append(user("one")).unwrap();
    let id = session.id().clone();
    drop(session);
    // The lease is given back, so nobody has to wait for its end.
    eventually(|| wire.asked().contains(&"release"));
    let other = super::idle::machine(&wire, "b");
    other.pull(&wire, &id);
    other.store.open_session(&id).unwrap();
}

#[test]
fn an_idle_session_that_lost_its_lease_writes_nothing_more() {
    let wire = Wire::new();
    let machine = machine(&wire, "a");
    let session = machine.create();
    let id = session.id().clone();
    session.append(user("one")).unwrap();
    let other = super::idle::machine(&wire, "b");
    other.pull(&wire, &id);
    // It could not renew for too long.
    wire.set_away(true);
    std::thread::sleep(SHORT);
    wire.clock.advance(1000);
    wire.set_away(false);
    let mut theirs = None;
    eventually(|| {
        wire.clock.advance(1000);
        theirs = other.store.open_session(&id).ok();
        theirs.is_some()
    });
    eventually(|| session.stopped().is_some());
    let before = machine.trails(&id);
    let error = session.append(user("late")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Fenced);
    assert_eq!(machine.trails(&id), before);
    assert!(
        machine
            .files(&id)
            .iter()
            .all(|name| !name.contains("aside"))
    );
}
