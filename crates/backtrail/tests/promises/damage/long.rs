//! A line longer than a reader accepts, on a real disk.

#![expect(
    clippy::disallowed_methods,
    reason = "tests damage files behind the engine's back"
)]

use std::fs::OpenOptions;
use std::io::{Seek, SeekFrom, Write};

use backtrail::{Message, Reason, SessionReader, Store};

use super::lab::{backwards, forwards, lines};

const LONG: u64 = 300_000_000;
/// The most memory a reader may use, whatever it reads.
const LIMIT: u64 = 256 << 20;

fn said(reader: &SessionReader) -> Vec<u64> {
    let (shown, damage) = forwards(reader);
    let (shown_back, damage_back) = backwards(reader);
    assert_eq!(shown, shown_back);
    for damage in [damage, damage_back] {
        assert_eq!(damage.len(), 1, "{damage:?}");
        let reason = Reason::TooLong {
            bytes: LONG,
            limit: LIMIT,
        };
        assert_eq!(damage[0].reason, reason);
        assert_eq!(damage[0].bytes, LONG);
    }
    shown.into_iter().map(|(seq, _)| seq).collect()
}

/// 300 MB without a newline: mostly a hole in the file, so it takes no space.
#[test]
fn a_line_of_300_megabytes_is_skipped_and_counted_from_both_ends() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(dir.path().join("store")).unwrap();
    let session = store.create_session(Default::default()).unwrap();
    for n in 1..=6 {
        session.append(Message::user_text(format!("{n}"))).unwrap();
    }
    let reader = session.reader();
    session.close().unwrap();
    let path = reader.dir().join("0000.jsonl");
    let bytes = std::fs::read(&path).unwrap();
    let all = lines(&bytes);
    let mut file = OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(&path)
        .unwrap();
    file.write_all(&all[..4].concat()).unwrap();
    file.write_all(b"{\"type\":\"").unwrap();
    let rest = i64::try_from(LONG).unwrap() - 9 - 3;
    file.seek(SeekFrom::Current(rest)).unwrap();
    file.write_all(b"\"}}\n").unwrap();
    file.write_all(&all[4..].concat()).unwrap();
    drop(file);

    assert_eq!(said(&reader), [1, 2, 3, 4, 5, 6]);
    for seq in [3, 4] {
        assert_eq!(reader.record(seq).unwrap().unwrap().seq(), seq);
    }
    let report = reader.verify().unwrap();
    assert_eq!(report.damage.count(), 1);
    assert_eq!(report.damage.first()[0].line, Some(5));
    assert_eq!(
        report.damage.first()[0].byte,
        all[..4].concat().len() as u64
    );
    let session = store.open_session(reader.id()).unwrap();
    assert_eq!(session.append(Message::user_text("7")).unwrap(), 7);
    assert_eq!(reader.last_records(1).unwrap()[0].seq(), 7);
    check_memory();
}

/// The peak memory of this process: the line in question, twice when read backwards, and
/// whatever the other tests use.
#[cfg(target_os = "linux")]
fn check_memory() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    let peak_kib: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak_kib < 1 << 20, "{peak_kib} KiB");
}

#[cfg(not(target_os = "linux"))]
fn check_memory() {}
