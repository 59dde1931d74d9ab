//! A network that loses, delays and repeats, for many seeds.

use backtrail::replica::{PullOptions, Refusal, Remote};
use backtrail::{Durability, ErrorKind, Session, StoreOptions};
use backtrail_testkit::replica::{Mishaps, Unreliable};
use backtrail_testkit::{MemoryStorage, SeededRandomness};

use super::kit::{LEASE, Machine, ROOT, Wire, same_there, there, user};

/// Opens a session again and again: a lease that arrived late may have to run out, and a message
/// that was set aside here may have arrived after all, so that it is pulled.
fn open(machine: &Machine<MemoryStorage>, wire: &Wire, id: &backtrail::SessionId) -> Session {
    for _ in 0..100 {
        match machine.store.open_session(id) {
            Ok(session) => return session,
            Err(error) if matches!(error.refusal(), Some(Refusal::Ahead)) => {
                let ids = [id.clone()];
                let pulled = machine
                    .store
                    .pull(&ids, wire, &PullOptions::new(), &mut |_| {});
                pulled.unwrap().check().unwrap();
            }
            Err(error) if matches!(error.refusal(), Some(Refusal::Fenced(_))) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::Away, "{error:?}"),
        }
        wire.clock.advance(LEASE.as_millis() as i64 / 10);
    }
    panic!("it never opens");
}

#[test]
fn in_a_bad_network_every_acknowledged_message_is_there_once() {
    let mut refused = 0;
    for seed in 0..60 {
        let wire = Wire::new();
        let bad = Unreliable::new(wire.clone(), seed, Mishaps::default());
        let disk = MemoryStorage::new();
        let remote = Remote::new("team", bad.clone(), "a").lease(LEASE);
        let options = StoreOptions::new()
            .storage(disk.clone())
            .randomness(SeededRandomness::new(seed))
            .rotation(3000)
            .durability(Durability::Remote)
            .remote(remote);
        let machine = Machine::on(disk, ROOT.into(), options);
        let mut session = machine.create();
        let id = session.id().clone();
        bad.set(Mishaps {
            request_lost: 100,
            answer_lost: 100,
            late: 100,
            ..Mishaps::default()
        });
        let mut acknowledged = Vec::new();
        for n in 0..60 {
            let text = format!("<{n}>");
            match session.append(user(&text)) {
                Ok(seq) => acknowledged.push((seq, text)),
                Err(error) if error.kind() == ErrorKind::Away => {
                    assert_eq!(error.head(), Some(session.last_seq()));
                }
                // Its own lease, asked for twice: the late one fenced the other.
                Err(error) if error.kind() == ErrorKind::Fenced => {
                    refused += 1;
                    drop(session);
                    session = open(&machine, &wire, &id);
                }
                Err(error) => panic!("{error:?}"),
            }
            if n % 20 == 19 {
                drop(session);
                session = open(&machine, &wire, &id);
            }
        }
        bad.set(Mishaps::default());
        bad.settle();
        drop(session);
        let session = open(&machine, &wire, &id);
        session.append(user("the end")).unwrap();
        same_there(&machine, &wire, &id);
        let all: String = there(&wire, &id)
            .into_iter()
            .map(|(_, lines)| lines)
            .collect();
        for (seq, text) in acknowledged {
            assert_eq!(all.matches(&text).count(), 1, "{text} in {seed}");
            let line = all.lines().find(|line| line.contains(&text)).unwrap();
            assert!(line.contains(&format!("\"seq\":{seq},")), "{line}");
        }
    }
    assert!(
        refused < 30,
        "{refused} leases were lost to their own retries"
    );
}
