//! Parts of blobs are the same parts of the plain bytes.

use backtrail::replica::{BlobKind, Replica, ReplicaErrorKind};
use proptest::prelude::*;

use super::super::chunks::{CHUNK, SEALED_CHUNK};
use super::{Below, Person, fence_of, log, named};

fn bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; len];
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    hasher.finalize_xof().fill(&mut bytes);
    bytes
}

/// Lengths around the ends of chunks, and others.
fn lengths() -> impl Strategy<Value = usize> {
    let near_an_end = (0..4_usize, 0..5_usize).prop_map(|(chunks, near)| {
        let length = chunks * CHUNK + near;
        length.saturating_sub(2)
    });
    prop_oneof![near_an_end, 0..3 * CHUNK]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_part_is_that_slice_of_the_plain_bytes(
        len in lengths(),
        parts in proptest::collection::vec((lengths(), lengths()), 1..8),
        seed: u64,
    ) {
        let me = Person::new("me.txt");
        let below = Below::new();
        let replica = me.at(&below);
        let log = log("a");
        fence_of(&replica, &log);
        let plain = bytes(len, seed);
        for kind in [BlobKind::Payload, BlobKind::Pack] {
            let name = named(kind, &plain);
            replica.put_blob(&log, name, &plain).unwrap();
            let stored = below.seen().bytes.pop().unwrap();
            prop_assert_eq!(stored.len(), (len / CHUNK + 1) * SEALED_CHUNK);
            let whole = replica.get_blob(&log, name, None).unwrap();
            prop_assert!(whole.as_deref() == Some(&plain[..]));
            for (from, bytes) in &parts {
                let part = replica.get_blob(&log, name, Some((*from as u64, *bytes as u64)));
                match plain.get(*from..from + bytes) {
                    Some(expected) => {
                        prop_assert!(part.unwrap().as_deref() == Some(expected), "{from} {bytes}");
                    }
                    None => prop_assert_eq!(part.unwrap_err().kind, ReplicaErrorKind::Corrupt),
                }
            }
        }
    }
}

#[test]
fn a_part_that_no_blob_reaches_is_an_error() {
    let me = Person::new("me.txt");
    let replica = me.at(&Below::new());
    let log = log("a");
    fence_of(&replica, &log);
    let name = named(BlobKind::Payload, b"words");
    replica.put_blob(&log, name, b"words").unwrap();
    for part in [
        (u64::MAX, 1),
        (u64::MAX, u64::MAX),
        (1, u64::MAX),
        (0, u64::MAX),
        (u64::MAX, 0),
        (6, 0),
        (5, 1),
        (0, 6),
    ] {
        let error = replica.get_blob(&log, name, Some(part)).unwrap_err();
        assert_eq!(error.kind, ReplicaErrorKind::Corrupt, "{part:?}: {error}");
    }
    assert_eq!(replica.get_blob(&log, name, Some((5, 0))), Ok(Some(vec![])));
}

#[test]
fn a_part_costs_the_chunks_that_it_is_in() {
    let me = Person::new("me.txt");
    let below = Below::new();
    let replica = me.at(&below);
    let log = log("a");
    fence_of(&replica, &log);
    let plain = bytes(40 * CHUNK, 1);
    let name = named(BlobKind::Pack, &plain);
    replica.put_blob(&log, name, &plain).unwrap();
    below.alter_blobs(|read| assert_eq!(read.len(), 2 * SEALED_CHUNK));
    let part = Some((20 * CHUNK as u64 - 1, 2));
    let read = replica.get_blob(&log, name, part).unwrap();
    assert_eq!(
        read.as_deref(),
        Some(&plain[20 * CHUNK - 1..20 * CHUNK + 1])
    );
}
