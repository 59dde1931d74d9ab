//! No plain word, sum, hash or name reaches the replica below.

use std::collections::HashSet;

use backtrail::replica::{Answer, BlobKind, Line, ObjectPlace, Replica, Request};
use proptest::prelude::*;

use super::super::chunks::{CHUNK, SEALED_CHUNK};
use super::super::log_keys::LogKeys;
use super::{Below, Person, append, begin, end_of, fence_of, lease, line, log, named, read};

/// How many bytes in a row are no accident.
const TELLTALE: usize = 8;

/// What must not be seen.
#[derive(Default)]
struct Secrets(HashSet<Vec<u8>>);

impl Secrets {
    fn keep(&mut self, secret: &[u8]) {
        let windows = secret.windows(TELLTALE);
        self.0.extend(windows.map(<[u8]>::to_vec));
        let hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        let windows = hex.as_bytes().windows(2 * TELLTALE);
        self.0.extend(windows.map(<[u8]>::to_vec));
    }

    fn keep_line(&mut self, line: &Line) {
        self.keep(&line.bytes);
        self.keep(&line.sum);
    }

    fn found_in(&self, seen: &[u8]) -> Option<String> {
        [TELLTALE, 2 * TELLTALE].iter().find_map(|length| {
            let mut windows = seen.windows(*length);
            let found = windows.find(|window| self.0.contains(*window))?;
            Some(String::from_utf8_lossy(found).into_owned())
        })
    }
}

fn words() -> impl Strategy<Value = String> {
    "[a-z]{4,10}( [a-z]{2,10}){1,30}"
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_replica_below_sees_no_words(
        texts in proptest::collection::vec(words(), 4..12),
        holder in words(),
        payload in proptest::collection::vec(any::<u8>(), 100..40_000),
        objects in proptest::collection::vec(any::<[u8; 32]>(), 1..5),
        salt: [u8; 16],
    ) {
        let me = Person::new("secret-name-of-the-file.txt");
        let below = Below::new();
        let replica = me.at(&below);
        let log = log("a");
        let mut secrets = Secrets::default();
        secrets.keep(holder.as_bytes());
        secrets.keep(b"secret-name-of-the-file.txt");
        secrets.keep(me.recipient.to_string().as_bytes());

        let Answer::Leased { fence, .. } = replica.ask(&lease(&log, &holder)).unwrap() else {
            panic!("no lease");
        };
        let json = |(seq, text): (usize, &String)| {
            line(seq as u64, &format!("{{\"type\":\"message\",\"text\":\"{text}\"}}"))
        };
        let lines: Vec<Line> = texts.iter().enumerate().map(json).collect();
        lines.iter().for_each(|line| secrets.keep_line(line));
        let payload_name = named(BlobKind::Payload, &payload);
        secrets.keep(&payload);
        secrets.keep(&payload_name.hash);
        replica.put_blob(&log, payload_name, &payload).unwrap();
        let content = [&salt[..], texts.concat().as_bytes()].concat();
        let pack = named(BlobKind::Pack, &content);
        secrets.keep(&content);
        objects.iter().for_each(|id| secrets.keep(id));
        replica.put_blob(&log, pack, &content).unwrap();
        let place = |id: &[u8; 32]| ObjectPlace { id: *id, pack: pack.hash, from: 16, bytes: 4 };
        let end = end_of(0, &lines[0]);
        let mut requests = vec![
            Request::SealPack {
                log: log.clone(),
                objects: objects.iter().map(place).collect(),
            },
            begin(&log, fence, None, 0, lines[0].clone()),
            append(&log, fence, end, lines[1..].to_vec()),
            // Refused, and seen all the same.
            append(&log, fence, end, vec![line(9, "quite another line")]),
            begin(&log, fence, Some(end), 7, line(0, "quite another opener")),
            read(&log, 0),
            Request::Locate { log: log.clone(), ids: objects.clone() },
        ];
        secrets.keep_line(&line(9, "quite another line"));
        secrets.keep_line(&line(0, "quite another opener"));
        // A retry has the same bytes.
        requests.push(requests[2].clone());
        for request in &requests {
            replica.ask(request).unwrap();
        }
        replica.has_blobs(&log, &[payload_name, pack]).unwrap();
        replica.get_blob(&log, payload_name, Some((3, 9))).unwrap();

        let seen = below.seen();
        prop_assert!(seen.bytes.len() > 12);
        for bytes in &seen.bytes {
            let found = secrets.found_in(bytes);
            prop_assert!(found.is_none(), "{found:?} was seen");
        }
    }
}

#[test]
fn nothing_equal_looks_equal_in_two_logs_or_places() {
    let me = Person::new("me.txt");
    let below = Below::new();
    let replica = me.at(&below);
    for id in ["a", "b"] {
        let log = log(id);
        let fence = fence_of(&replica, &log);
        let same = |seq| Line {
            seq,
            ..line(0, "the same words")
        };
        let lines: Vec<Line> = (0..4).map(same).collect();
        for request in [
            begin(&log, fence, None, 0, lines[0].clone()),
            append(&log, fence, end_of(0, &lines[0]), lines[1..].to_vec()),
            begin(&log, fence, Some(end_of(0, &lines[3])), 1, lines[0].clone()),
        ] {
            replica.ask(&request).unwrap();
        }
        // Chunks of zeros, and a payload whose hash is that of a pack.
        let bytes = vec![0; 100_000];
        for kind in [BlobKind::Payload, BlobKind::Pack] {
            replica.put_blob(&log, named(kind, &bytes), &bytes).unwrap();
        }
        let locate = Request::Locate {
            log: log.clone(),
            ids: vec![*blake3::hash(&bytes).as_bytes()],
        };
        replica.ask(&locate).unwrap();
    }
    let mut pieces = Vec::new();
    for bytes in below.seen().bytes {
        pieces.extend(bytes.chunks(16 * 1024).map(<[u8]>::to_vec));
    }
    pieces.retain(|piece| piece.len() >= 32);
    let pieces_there = pieces.len();
    // The first 26 bytes of a wrapped key and the whole rest differ; so does everything else.
    let different: HashSet<Vec<u8>> = pieces.into_iter().collect();
    assert_eq!(different.len(), pieces_there);
}

#[test]
fn a_retry_has_the_same_bytes() {
    let me = Person::new("me.txt");
    let below = Below::new();
    let replica = me.at(&below);
    let log = log("a");
    let fence = fence_of(&replica, &log);
    let request = begin(&log, fence, None, 0, line(0, "opener"));
    let seen = |replica: &super::EncryptedReplica<Below>| {
        below.seen();
        replica.ask(&request).unwrap();
        replica
            .put_blob(&log, named(BlobKind::Payload, b"p"), b"p")
            .unwrap();
        below.seen().bytes
    };
    let first = seen(&replica);
    assert_eq!(seen(&replica), first);
    // Another process, which opens the key again.
    let other = me.at(&below);
    fence_of(&other, &log);
    assert_eq!(seen(&other), first);
}

#[test]
fn a_nonce_is_never_used_for_other_bytes() {
    let keys = LogKeys::new(&log("a"), &[7; 32]);
    let nonce = |sealed: Vec<u8>| sealed[1..25].to_vec();
    let payload = named(BlobKind::Payload, b"words");
    let zeros = keys.chunks(payload).seal(&[0; 2 * CHUNK]);
    let mut nonces = vec![
        nonce(keys.seal_line(0, 1, [0; 8], b"words")),
        nonce(keys.seal_line(0, 1, [0; 8], b"other words")),
        nonce(keys.seal_line(0, 1, [1; 8], b"words")),
        nonce(keys.seal_line(0, 2, [0; 8], b"words")),
        nonce(keys.seal_line(1, 1, [0; 8], b"words")),
        nonce(LogKeys::new(&log("a"), &[8; 32]).seal_line(0, 1, [0; 8], b"words")),
        nonce(zeros[..SEALED_CHUNK].to_vec()),
        nonce(zeros[SEALED_CHUNK..].to_vec()),
        // What should not happen: other bytes with the same name.
        nonce(keys.chunks(payload).seal(&[1; 2 * CHUNK])),
    ];
    let all = nonces.len();
    nonces.sort();
    nonces.dedup();
    assert_eq!(nonces.len(), all);
}
