//! What every replica promises, asked through the encryption.

use std::sync::atomic::{AtomicU32, Ordering};

use backtrail::SessionId;
use backtrail::replica::{
    Answer, BlobKind, BlobName, LogKey, ObjectPlace, Replica, ReplicaErrorKind, Request,
};
use backtrail_testkit::replica::promises::{Control, PROMISES};

use super::super::{EncryptedReplica, Opened};
use super::{Below, Person, end_of, fence_of, line, log, named, written};

struct Meddler<'a> {
    replica: &'a EncryptedReplica<Below>,
    ids: AtomicU32,
}

impl Control for Meddler<'_> {
    fn fresh(&self) -> SessionId {
        let n = self.ids.fetch_add(1, Ordering::Relaxed);
        format!("log-{n}").parse().unwrap()
    }

    fn outlive(&self, ms: u64) {
        self.replica.inner.clock.advance(ms as i64);
    }

    fn damage(&self, log: &LogKey, name: BlobName) {
        let Ok(Opened::Keys(keys)) = self.replica.keys(log) else {
            panic!("no key");
        };
        let memory = &self.replica.inner.memory;
        memory.damage_blob(log, keys.hide_name(name));
    }
}

/// What encryption does not promise, each with the test here that says what it does instead.
const OTHERWISE: [&str; 7] = [
    // bytes_are_counted_as_they_are_stored
    "a_status_counts_bytes_and_has_times",
    "objects_are_read_from_the_pack_that_was_sealed_last",
    "packs_are_listed_once_in_order",
    // objects_and_packs_belong_to_one_log
    "payloads_belong_to_a_log_and_packs_to_all",
    "objects_are_where_they_were_sealed",
    "objects_are_read_from_packs_that_stay",
    // a_log_has_no_key_that_the_caller_sees
    "the_key_is_that_of_the_first_lease",
];

#[test]
fn an_encrypted_replica_promises_what_every_replica_does() {
    let me = Person::new("me.txt");
    let replica = me.at(&Below::new());
    let meddler = Meddler {
        replica: &replica,
        ids: AtomicU32::new(0),
    };
    for name in OTHERWISE {
        assert!(PROMISES.iter().any(|(other, _)| *other == name), "{name}");
    }
    for (name, promise) in PROMISES {
        if !OTHERWISE.contains(name) {
            eprintln!("{name}");
            promise(&replica, &meddler);
        }
    }
}

#[test]
fn bytes_are_counted_as_they_are_stored() {
    let me = Person::new("me.txt");
    let replica = me.at(&Below::new());
    let log = log("a");
    written(&replica, &log);
    let Answer::Log(status) = replica.ask(&Request::Status { log: log.clone() }).unwrap() else {
        panic!("no status");
    };
    let texts = ["opener 0", "opener 1", "lorem", "ipsum", "dolor"];
    let plain: usize = texts.iter().map(|text| text.len()).sum();
    assert_eq!(status.bytes, (plain + texts.len() * 41) as u64);
    let pack = named(BlobKind::Pack, b"sixteen random bytes, and objects");
    replica
        .put_blob(&log, pack, b"sixteen random bytes, and objects")
        .unwrap();
    let packs = Request::Packs {
        after: None,
        limit: 9,
    };
    let Answer::Packs(packs) = replica.ask(&packs).unwrap() else {
        panic!("no packs");
    };
    assert_eq!(packs.len(), 1);
    assert_eq!((packs[0].pack, packs[0].bytes), (pack.hash, 16 * 1024));
}

#[test]
fn objects_and_packs_belong_to_one_log() {
    let me = Person::new("me.txt");
    let replica = me.at(&Below::new());
    let (ours, other) = (log("a"), log("b"));
    for log in [&ours, &other] {
        fence_of(&replica, log);
    }
    let bytes = b"sixteen random bytes, and objects";
    let pack = named(BlobKind::Pack, bytes);
    replica.put_blob(&ours, pack, bytes).unwrap();
    let place = ObjectPlace {
        id: [7; 32],
        pack: pack.hash,
        from: 16,
        bytes: 4,
    };
    let seal = Request::SealPack {
        log: ours.clone(),
        objects: vec![place],
    };
    assert_eq!(replica.ask(&seal), Ok(Answer::Done));
    let locate = |log: &LogKey| {
        replica.ask(&Request::Locate {
            log: log.clone(),
            ids: vec![[8; 32], [7; 32]],
        })
    };
    assert_eq!(locate(&ours), Ok(Answer::Objects(vec![place])));
    assert_eq!(locate(&other), Ok(Answer::Objects(Vec::new())));
    assert_eq!(
        replica.get_blob(&ours, pack, Some((16, 4))),
        Ok(Some(bytes[16..20].to_vec()))
    );
    let error = replica.get_blob(&other, pack, None).unwrap_err();
    assert_eq!(error.kind, ReplicaErrorKind::Corrupt, "{error}");
    let relies = Request::Begin {
        log: other.clone(),
        fence: backtrail::replica::Fence(1),
        head: None,
        trail: 0,
        opener: line(0, "opener"),
        relies_on: vec![pack.hash],
        ttl_ms: 1000,
    };
    let opener = end_of(0, &line(0, "opener"));
    assert_eq!(replica.ask(&relies), Ok(Answer::Appended(opener)));
}

#[test]
fn a_log_has_no_key_that_the_caller_sees() {
    let me = Person::new("me.txt");
    let replica = me.at(&Below::new());
    let log = log("a");
    let twice = Request::Lease {
        log: log.clone(),
        holder: "bot".to_owned(),
        ttl_ms: 1000,
        wrapped_key: b"another key".to_vec(),
    };
    let error = replica.ask(&twice).unwrap_err();
    assert_eq!(error.kind, ReplicaErrorKind::Unfit, "{error}");
    assert_eq!(replica.inner.seen().writes, 0);
    let Ok(Answer::Leased { log: status, .. }) = replica.ask(&super::lease(&log, "bot")) else {
        panic!("no lease");
    };
    assert!(status.wrapped_key.is_empty());
    let Ok(Answer::Log(status)) = replica.inner.memory.ask(&Request::Status { log }) else {
        panic!("no status");
    };
    assert!(!status.wrapped_key.is_empty());
}
