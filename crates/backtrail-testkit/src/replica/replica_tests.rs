//! The model keeps the promises itself, and the failures happen as they are described.

use std::sync::atomic::{AtomicU32, Ordering};

use backtrail::SessionId;
use backtrail::replica::{
    Answer, BlobKind, BlobName, LogKey, LogOwner, Replica, ReplicaErrorKind, Request,
};

use super::{MemoryReplica, Mishaps, Unreliable, promises};
use crate::ManualClock;

struct Memory {
    replica: MemoryReplica,
    clock: ManualClock,
    logs: AtomicU32,
}

impl Memory {
    fn new() -> Self {
        let clock = ManualClock::new(1_700_000_000_000);
        clock.set_step(0);
        Self {
            replica: MemoryReplica::new(clock.clone()),
            clock,
            logs: AtomicU32::new(0),
        }
    }
}

impl promises::Control for Memory {
    fn fresh(&self) -> SessionId {
        let n = self.logs.fetch_add(1, Ordering::Relaxed);
        format!("log-{n:04}-{:-<100}", "").parse().unwrap()
    }

    fn outlive(&self, ms: u64) {
        self.clock.advance(i64::try_from(ms).unwrap());
    }

    fn damage(&self, log: &LogKey, name: BlobName) {
        self.replica.damage_blob(log, name);
    }
}

// F41.
#[test]
fn the_model_keeps_every_promise() {
    let memory = Memory::new();
    promises::all(&memory.replica, &memory);
}

#[test]
fn a_network_that_loses_nothing_keeps_every_promise() {
    let memory = Memory::new();
    let replica = Unreliable::new(memory.replica.clone(), 7, Mishaps::default());
    promises::all(&replica, &memory);
    assert_eq!(replica.lost(), 0);
}

fn log() -> LogKey {
    LogKey {
        owner: LogOwner::Session,
        id: "a".parse().unwrap(),
    }
}

fn lease(holder: &str) -> Request {
    Request::Lease {
        log: log(),
        holder: holder.to_owned(),
        ttl_ms: 1000,
        wrapped_key: Vec::new(),
    }
}

fn fence(replica: &MemoryReplica) -> u64 {
    match replica.ask(&Request::Status { log: log() }).unwrap() {
        Answer::Log(status) => status.fence.0,
        _ => 0,
    }
}

#[test]
fn a_lost_request_changes_nothing_a_lost_answer_does_and_a_late_request_comes_later() {
    let memory = Memory::new().replica;
    let always = |mishaps| Unreliable::new(memory.clone(), 1, mishaps);
    let request_lost = always(Mishaps {
        request_lost: 1000,
        ..Mishaps::default()
    });
    let answer_lost = always(Mishaps {
        answer_lost: 1000,
        ..Mishaps::default()
    });
    let late = always(Mishaps {
        late: 1000,
        ..Mishaps::default()
    });
    for (replica, at_once, later) in [(request_lost, 0, 0), (answer_lost, 1, 1), (late, 1, 2)] {
        let error = replica.ask(&lease("a")).unwrap_err();
        assert_eq!(error.kind, ReplicaErrorKind::Away);
        assert_eq!(fence(&memory), at_once);
        replica.set(Mishaps::default());
        replica.settle();
        assert_eq!(fence(&memory), later);
        assert_eq!(replica.lost(), 1);
    }
}

#[test]
fn a_late_request_arrives_among_others() {
    let memory = Memory::new().replica;
    let replica = Unreliable::new(memory.clone(), 3, Mishaps::default());
    replica.set(Mishaps {
        late: 1000,
        ..Mishaps::default()
    });
    replica.ask(&lease("a")).unwrap_err();
    replica.set(Mishaps::default());
    let mut asked = 0;
    while fence(&memory) == 0 {
        replica.ask(&Request::Status { log: log() }).unwrap();
        asked += 1;
        assert!(asked < 100);
    }
}

#[test]
fn blobs_fail_to_be_stored_and_to_be_read() {
    let memory = Memory::new().replica;
    let replica = Unreliable::new(memory.clone(), 1, Mishaps::default());
    let bytes = b"some bytes";
    let name = BlobName {
        kind: BlobKind::Payload,
        hash: *blake3::hash(bytes).as_bytes(),
    };
    let with = |change: fn(&mut Mishaps)| {
        let mut mishaps = Mishaps::default();
        change(&mut mishaps);
        replica.set(mishaps);
    };
    let is_there = || memory.has_blobs(&log(), &[name]).unwrap()[0];
    with(|mishaps| mishaps.put_lost = 1000);
    replica.put_blob(&log(), name, bytes).unwrap_err();
    assert!(!is_there());
    with(|mishaps| mishaps.put_answer_lost = 1000);
    replica.put_blob(&log(), name, bytes).unwrap_err();
    assert!(is_there());
    with(|mishaps| mishaps.blob_missing = 1000);
    assert_eq!(replica.get_blob(&log(), name, None), Ok(None));
    with(|mishaps| mishaps.blob_cut = 1000);
    let error = replica.get_blob(&log(), name, None).unwrap_err();
    assert_eq!(error.kind, ReplicaErrorKind::Corrupt);
    let part = replica
        .get_blob(&log(), name, Some((1, 5)))
        .unwrap()
        .unwrap();
    assert!(part.len() < 5 && bytes[1..].starts_with(&part));
    with(|_| ());
    assert_eq!(
        replica.get_blob(&log(), name, None),
        Ok(Some(bytes.to_vec()))
    );
    memory.lose_blob(&log(), name);
    assert_eq!(replica.get_blob(&log(), name, None), Ok(None));
}

#[test]
fn equal_seeds_lose_the_same() {
    let outcomes = |seed| -> Vec<bool> {
        let replica = Unreliable::new(Memory::new().replica, seed, Mishaps::often());
        (0..100).map(|_| replica.ask(&lease("a")).is_ok()).collect()
    };
    assert_eq!(outcomes(5), outcomes(5));
    assert_ne!(outcomes(5), outcomes(6));
}

#[test]
fn names_of_blobs_are_checked_unless_they_are_keyed() {
    let name = BlobName {
        kind: BlobKind::Pack,
        hash: [3; 32],
    };
    let memory = Memory::new().replica;
    memory.put_blob(&log(), name, b"sealed").unwrap_err();
    assert_eq!(memory.get_blob(&log(), name, None), Ok(None));
    let keyed = Memory::new().replica.with_keyed_names();
    keyed.put_blob(&log(), name, b"sealed").unwrap();
    assert_eq!(
        keyed.get_blob(&log(), name, Some((2, 3))),
        Ok(Some(b"ale".to_vec()))
    );
    keyed.damage_blob(&log(), name);
    keyed.get_blob(&log(), name, Some((2, 3))).unwrap_err();
}
