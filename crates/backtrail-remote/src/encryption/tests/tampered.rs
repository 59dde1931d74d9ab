//! What was altered below does not open, and nothing that it answers makes us panic.

use backtrail::replica::{
    Answer, BlobKind, Line, Order, Replica, ReplicaError, ReplicaErrorKind, Request,
};
use proptest::prelude::*;

use super::super::chunks::{CHUNK, Part, SEALED_CHUNK};
use super::super::log_keys::LogKeys;
use super::super::wrapped_key;
use super::{Below, Person, fence_of, lease, log, named, read, written};

/// Returns the error of reading trail 0 of a log whose lines are altered.
fn error_of(alter: impl Fn(&mut Vec<Line>) + Send + Sync + 'static) -> ReplicaError {
    let me = Person::new("me.txt");
    let below = Below::new();
    let replica = me.at(&below);
    written(&replica, &log("a"));
    below.alter_answers(move |answer| {
        if let Answer::Lines { lines, .. } = answer {
            alter(lines);
        }
    });
    let error = replica
        .ask(&read(&log("a"), 0))
        .expect_err("it was altered");
    assert_eq!(error.kind, ReplicaErrorKind::Corrupt, "{error}");
    assert!(error.message.contains("session a"), "{error}");
    assert!(error.message.contains("trail 0"), "{error}");
    error
}

#[test]
fn lines_that_were_swapped_do_not_open() {
    let error = error_of(|lines| {
        let (left, right) = lines.split_at_mut(2);
        std::mem::swap(&mut left[1].bytes, &mut right[0].bytes);
        std::mem::swap(&mut left[1].sum, &mut right[0].sum);
    });
    assert!(error.message.contains("record 1 "), "{error}");
    let error = error_of(|lines| lines.swap(1, 2));
    assert!(error.message.contains("out of order"), "{error}");
    let error = error_of(|lines| lines[2] = lines[1].clone());
    assert!(error.message.contains("out of order"), "{error}");
    let error = error_of(|lines| lines[3].seq += 1);
    assert!(error.message.contains("record 4 "), "{error}");
}

#[test]
fn a_line_does_not_open_with_another_sum() {
    let error = error_of(|lines| lines[2].sum[7] ^= 1);
    assert!(error.message.contains("record 2 "), "{error}");
}

#[test]
fn a_line_of_another_trail_does_not_open() {
    let me = Person::new("me.txt");
    let below = Below::new();
    let replica = me.at(&below);
    written(&replica, &log("a"));
    let Ok(Answer::Lines { lines, .. }) = below.memory.ask(&read(&log("a"), 0)) else {
        panic!("no lines");
    };
    below.alter_answers(move |answer| {
        if let Answer::Lines { lines: others, .. } = answer {
            others.clone_from(&lines);
        }
    });
    let error = replica.ask(&read(&log("a"), 1)).unwrap_err();
    assert!(error.message.contains("record 0 of trail 1 "), "{error}");
}

#[test]
fn nothing_opens_in_another_log_or_at_another_use() {
    let key = [7; 32];
    let keys = LogKeys::new(&log("a"), &key);
    let twin = backtrail::replica::LogKey {
        owner: backtrail::replica::LogOwner::Workspace,
        ..log("a")
    };
    let sealed = keys.seal_line(0, 1, [3; 8], b"words");
    assert_eq!(keys.open_line(0, 1, [3; 8], &sealed), Ok(b"words".to_vec()));
    let payload = named(BlobKind::Payload, b"words");
    let pack = named(BlobKind::Pack, b"words");
    let blob = keys.chunks(payload).seal(b"words");
    let holder = keys.hide_holder("words");
    for other in [log("b"), twin] {
        let other = LogKeys::new(&other, &key);
        assert!(other.open_line(0, 1, [3; 8], &sealed).is_err());
        assert!(other.chunks(payload).open(&blob).is_err());
        assert_eq!(other.reveal_holder(&holder), None);
        assert_ne!(other.check(), keys.check());
        assert_ne!(other.hide_name(payload), keys.hide_name(payload));
        assert_ne!(other.hide_object(&[1; 32]), keys.hide_object(&[1; 32]));
        assert_ne!(other.hide_sum(0, 1, [3; 8]), keys.hide_sum(0, 1, [3; 8]));
    }
    for (trail, seq, sum) in [(1, 1, [3; 8]), (0, 2, [3; 8]), (0, 1, [4; 8])] {
        assert!(keys.open_line(trail, seq, sum, &sealed).is_err());
    }
    assert!(keys.chunks(pack).open(&blob).is_err());
    assert!(
        keys.chunks(named(BlobKind::Payload, b"others"))
            .open(&blob)
            .is_err()
    );
}

#[test]
fn no_altered_byte_and_no_cut_of_a_line_opens() {
    let keys = LogKeys::new(&log("a"), &[7; 32]);
    let sealed = keys.seal_line(0, 1, [3; 8], b"words");
    let open = |bytes: &[u8]| keys.open_line(0, 1, [3; 8], bytes);
    for length in 0..sealed.len() {
        assert!(open(&sealed[..length]).is_err(), "{length}");
    }
    for at in 0..sealed.len() {
        for bit in 0..8 {
            let mut altered = sealed.clone();
            altered[at] ^= 1 << bit;
            assert!(open(&altered).is_err(), "{at}");
        }
    }
    let error = open(&[&[2], &sealed[1..]].concat())
        .unwrap_err()
        .to_string();
    assert!(error.contains("version 2"), "{error}");
    assert!(open(&[&sealed[..], &[0]].concat()).is_err());
}

#[test]
fn trails_that_were_altered_do_not_open() {
    let alterations: [fn(&mut Answer); 4] = [
        |answer| {
            if let Answer::Trails(trails) = answer {
                trails.swap(0, 1);
            }
        },
        |answer| {
            if let Answer::Trails(trails) = answer {
                trails[1].opener = trails[0].opener.clone();
            }
        },
        |answer| {
            if let Answer::Trails(trails) = answer {
                trails[1].end.trail = 2;
            }
        },
        |answer| {
            if let Answer::Trails(trails) = answer {
                trails[0].opener.bytes.clear();
            }
        },
    ];
    for alter in alterations {
        let me = Person::new("me.txt");
        let below = Below::new();
        let replica = me.at(&below);
        written(&replica, &log("a"));
        below.alter_answers(alter);
        let trails = Request::Trails { log: log("a") };
        let error = replica.ask(&trails).unwrap_err();
        assert_eq!(error.kind, ReplicaErrorKind::Corrupt);
        assert!(error.message.contains("session a"), "{error}");
    }
}

#[test]
fn chunks_that_were_altered_do_not_open() {
    type Alteration = (&'static str, fn(&mut Vec<u8>));
    let alterations: [Alteration; 9] = [
        ("swapped", |blob| {
            let (left, right) = blob.split_at_mut(SEALED_CHUNK);
            left.swap_with_slice(&mut right[..SEALED_CHUNK]);
        }),
        ("without the last", |blob| blob.truncate(3 * SEALED_CHUNK)),
        ("without the first", |blob| drop(blob.drain(..SEALED_CHUNK))),
        ("without one between", |blob| {
            blob.drain(SEALED_CHUNK..2 * SEALED_CHUNK);
        }),
        ("one twice", |blob| {
            let chunk = blob[..SEALED_CHUNK].to_vec();
            blob.splice(SEALED_CHUNK..SEALED_CHUNK, chunk);
        }),
        ("the last twice", |blob| {
            let chunk = blob[3 * SEALED_CHUNK..].to_vec();
            blob.extend(chunk);
        }),
        ("cut", |blob| blob.truncate(2 * SEALED_CHUNK + 100)),
        ("a byte more", |blob| blob.push(0)),
        ("empty", Vec::clear),
    ];
    for (name, alter) in alterations {
        let me = Person::new("me.txt");
        let below = Below::new();
        let replica = me.at(&below);
        let log = log("a");
        fence_of(&replica, &log);
        let plain = vec![5; 3 * CHUNK + 100];
        let payload = named(BlobKind::Payload, &plain);
        replica.put_blob(&log, payload, &plain).unwrap();
        below.alter_blobs(alter);
        let error = replica.get_blob(&log, payload, None).expect_err(name);
        assert_eq!(error.kind, ReplicaErrorKind::Corrupt, "{name}: {error}");
        assert!(error.message.contains("of session a"), "{name}: {error}");
    }
}

#[test]
fn a_part_that_was_cut_is_an_error_and_no_shorter_part() {
    let me = Person::new("me.txt");
    let below = Below::new();
    let replica = me.at(&below);
    let log = log("a");
    fence_of(&replica, &log);
    let plain = vec![5; 3 * CHUNK + 100];
    let payload = named(BlobKind::Payload, &plain);
    replica.put_blob(&log, payload, &plain).unwrap();
    for cut in [0, 1, SEALED_CHUNK - 1, SEALED_CHUNK, 2 * SEALED_CHUNK - 1] {
        below.alter_blobs(move |part| part.truncate(cut));
        let part = replica.get_blob(&log, payload, Some((10, CHUNK as u64)));
        let error = part.expect_err("it was cut");
        assert_eq!(error.kind, ReplicaErrorKind::Corrupt, "{cut}: {error}");
    }
}

#[test]
fn the_key_of_another_log_is_refused_before_anything_is_written() {
    let me = Person::new("me.txt");
    let below = Below::new();
    written(&me.at(&below), &log("a"));
    written(&me.at(&below), &log("b"));
    let Ok(Answer::Log(other)) = below.memory.ask(&Request::Status { log: log("b") }) else {
        panic!("no status");
    };
    below.alter_answers(move |answer| {
        if let Answer::Log(status) = answer {
            status.wrapped_key.clone_from(&other.wrapped_key);
        }
    });
    below.seen();
    let error = me.at(&below).ask(&lease(&log("a"), "me")).unwrap_err();
    assert_eq!(error.kind, ReplicaErrorKind::Corrupt, "{error}");
    assert!(error.message.contains("session a"), "{error}");
    assert_eq!(below.seen().writes, 0);
}

#[test]
fn another_key_than_before_is_refused() {
    let me = Person::new("me.txt");
    let below = Below::new();
    let replica = me.at(&below);
    written(&replica, &log("a"));
    let recipients = [me.recipient.clone()];
    let other = wrapped_key::create(&log("a"), &recipients, &me.identities).unwrap();
    below.alter_answers(move |answer| {
        if let Answer::Log(status) = answer {
            status.wrapped_key.clone_from(&other);
        }
    });
    let status = Request::Status { log: log("a") };
    let error = replica.ask(&status).unwrap_err();
    assert_eq!(error.kind, ReplicaErrorKind::Corrupt);
    assert!(error.message.contains("another key"), "{error}");
}

#[test]
fn a_log_that_is_not_encrypted_is_refused_before_anything_is_written() {
    let me = Person::new("me.txt");
    let below = Below::new();
    written(&below.memory, &log("a"));
    let replica = me.at(&below);
    let error = replica.ask(&lease(&log("a"), "me")).unwrap_err();
    assert_eq!(error.kind, ReplicaErrorKind::Unfit, "{error}");
    assert!(
        error.message.contains("session a is not encrypted"),
        "{error}"
    );
    assert_eq!(below.seen().writes, 0);
}

#[test]
fn no_altered_byte_and_no_cut_of_a_wrapped_key_opens() {
    let me = Person::new("me.txt");
    let recipients = [me.recipient.clone()];
    let wrapped = wrapped_key::create(&log("a"), &recipients, &me.identities).unwrap();
    let open = |bytes: &[u8]| wrapped_key::open(&log("a"), bytes, &me.identities);
    assert!(open(&wrapped).is_ok());
    for length in 0..wrapped.len() {
        assert!(open(&wrapped[..length]).is_err(), "{length}");
    }
    for at in 0..wrapped.len() {
        let mut altered = wrapped.clone();
        altered[at] ^= 1;
        assert!(open(&altered).is_err(), "{at}");
    }
    let version = [&[9], &wrapped[1..]].concat();
    let error = open(&version).unwrap_err();
    assert!(error.message.contains("version 9"), "{error}");
    assert!(open(&[&wrapped[..], &[0]].concat()).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_bytes_make_it_panic(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..40_000),
        with_version: bool,
        text in "\\PC{0,40}|[0-9a-f]{0,120}",
        part: (u64, u64),
    ) {
        if let (true, Some(first)) = (with_version, bytes.first_mut()) {
            *first = 1;
        }
        let me = Person::new("me.txt");
        let keys = LogKeys::new(&log("a"), &[7; 32]);
        prop_assert!(keys.open_line(0, 1, [3; 8], &bytes).is_err());
        let chunks = keys.chunks(named(BlobKind::Payload, b"words"));
        prop_assert!(chunks.open(&bytes).is_err());
        if let Some(part) = Part::new(part.0, part.1) {
            prop_assert!(part.open(&chunks, &bytes).is_err());
        }
        prop_assert!(wrapped_key::open(&log("a"), &bytes, &me.identities).is_err());
        prop_assert_eq!(keys.reveal_holder(&text), None);
    }

    #[test]
    fn a_hidden_sum_is_one_to_one_and_says_nothing_of_the_plain_one(
        sum: [u8; 8],
        other: [u8; 8],
        trail: u32,
        seq: u64,
    ) {
        let keys = LogKeys::new(&log("a"), &[7; 32]);
        let hidden = keys.hide_sum(trail, seq, sum);
        prop_assert_eq!(keys.reveal_sum(trail, seq, hidden), sum);
        prop_assert_ne!(hidden, sum);
        let hidden_other = keys.hide_sum(trail, seq, other);
        prop_assert_eq!(hidden == hidden_other, sum == other);
        // What a pad would show.
        let xor = |a: [u8; 8], b: [u8; 8]| u64::from_le_bytes(a) ^ u64::from_le_bytes(b);
        prop_assert!(sum == other || xor(hidden, hidden_other) != xor(sum, other));
        prop_assert_ne!(keys.hide_sum(trail, seq ^ 1, sum), hidden);
    }
}

#[test]
fn lines_backwards_have_to_fall() {
    let me = Person::new("me.txt");
    let below = Below::new();
    let replica = me.at(&below);
    written(&replica, &log("a"));
    let backwards = Request::Read {
        log: log("a"),
        trail: 0,
        beyond: None,
        order: Order::Backwards,
        max_bytes: u64::MAX,
    };
    assert!(replica.ask(&backwards).is_ok());
    below.alter_answers(|answer| {
        if let Answer::Lines { lines, .. } = answer {
            lines.reverse();
        }
    });
    assert!(replica.ask(&backwards).is_err());
}
