//! Blobs: large bytes that never change.

use backtrail::replica::{BlobKind, ReplicaErrorKind};

use super::case::{Case, blob};

/// Returns bytes that no other promise stores.
fn bytes(case: &Case<'_>, len: usize) -> Vec<u8> {
    let seed = blake3::hash(case.control.fresh().as_str().as_bytes());
    let mut bytes = vec![0; len];
    blake3::Hasher::new_keyed(seed.as_bytes())
        .finalize_xof()
        .fill(&mut bytes);
    bytes
}

pub(super) fn a_blob_comes_back_whole_and_in_parts(case: &Case<'_>) {
    let log = case.writer().log;
    for kind in [BlobKind::Payload, BlobKind::Pack] {
        for len in [16, 70_000, 2_500_000] {
            let bytes = bytes(case, len);
            let name = case.put(&log, kind, &bytes);
            assert!(case.has(&log, name));
            assert!(case.get(&log, name).as_deref() == Some(&bytes[..]));
            for (from, part) in [(0, 16), (3, 9), (len - 7, 7), (len / 2, len / 4), (0, len)] {
                let read = case
                    .replica
                    .get_blob(&log, name, Some((from as u64, part as u64)));
                let read = read.unwrap_or_else(|error| panic!("{from}, {part}: {error}"));
                assert!(
                    read.as_deref() == Some(&bytes[from..from + part]),
                    "{from}, {part}"
                );
            }
        }
    }
}

pub(super) fn a_blob_that_is_not_there_is_none(case: &Case<'_>) {
    let log = case.writer().log;
    for kind in [BlobKind::Payload, BlobKind::Pack] {
        let there = case.put(&log, kind, &bytes(case, 100));
        let absent = blob(kind, &bytes(case, 100));
        assert_eq!(case.get(&log, absent), None);
        assert_eq!(case.replica.get_blob(&log, absent, Some((1, 2))), Ok(None));
        let names = [absent, there, absent, absent, there];
        let has = case.replica.has_blobs(&log, &names);
        assert_eq!(has, Ok(vec![false, true, false, false, true]));
    }
    assert_eq!(case.replica.has_blobs(&log, &[]), Ok(Vec::new()));
}

pub(super) fn payloads_belong_to_a_log_and_packs_to_all(case: &Case<'_>) {
    let (log, other) = (case.writer().log, case.writer().log);
    let bytes = bytes(case, 100);
    let payload = case.put(&log, BlobKind::Payload, &bytes);
    assert!(!case.has(&other, payload));
    assert_eq!(case.get(&other, payload), None);
    let same_hash = blob(BlobKind::Pack, &bytes);
    assert!(!case.has(&log, same_hash));
    let pack = case.put(&log, BlobKind::Pack, &bytes);
    assert!(case.has(&other, pack));
    assert_eq!(case.get(&other, pack), Some(bytes));
    // A pack is no payload, although the hash is the same.
    assert!(!case.has(&other, payload));
    assert_eq!(case.get(&other, payload), None);
}

pub(super) fn a_blob_is_stored_once(case: &Case<'_>) {
    let log = case.writer().log;
    for kind in [BlobKind::Payload, BlobKind::Pack] {
        let bytes = bytes(case, 100);
        for _ in 0..3 {
            let name = case.put(&log, kind, &bytes);
            assert_eq!(case.get(&log, name).as_deref(), Some(&bytes[..]));
        }
    }
}

pub(super) fn a_blob_that_does_not_match_its_name_is_an_error(case: &Case<'_>) {
    let log = case.writer().log;
    for kind in [BlobKind::Payload, BlobKind::Pack] {
        let name = case.put(&log, kind, &bytes(case, 5000));
        case.control.damage(&log, name);
        let read = case.replica.get_blob(&log, name, None);
        let error = read.expect_err("its bytes were altered");
        assert_eq!(error.kind, ReplicaErrorKind::Corrupt, "{error}");
        assert!(!error.message.is_empty());
    }
}
