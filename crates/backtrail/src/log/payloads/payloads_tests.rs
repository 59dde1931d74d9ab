//! Stored payloads are returned byte for byte, despite faults and damage; missing ones are
//! reported (F1, F8, F22).

use std::path::Path;
use std::sync::Arc;

use super::testing::{Disk, Fault, Left};
use super::writer::GATHERED;
use super::*;
use crate::trail::lines::STREAM_BUFFER;

fn files(disk: &Disk) -> LogDir {
    let id = "s1".parse().unwrap();
    LogDir::new(Arc::new(disk.clone()), Path::new("/store/sessions"), &id)
}

fn writer(disk: &Disk) -> PayloadWriter {
    PayloadWriter::new(&files(disk))
}

fn reader(disk: &Disk) -> Payloads {
    Payloads::new(&files(disk))
}

fn header(content: &[u8]) -> String {
    let (hash, bytes) = (ObjectId::of(content), content.len());
    format!("{{\"payload\":\"{hash}\",\"bytes\":{bytes}}}\n")
}

fn entry(content: &[u8]) -> Vec<u8> {
    [header(content).as_bytes(), content, b"\n"].concat()
}

/// A payload that was acknowledged as stored.
#[derive(Debug, Clone)]
struct Stored {
    content: Vec<u8>,
    at: u64,
}

fn store(writer: &mut PayloadWriter, contents: &[&[u8]]) -> Result<Vec<Stored>> {
    let places = writer.store(contents)?;
    assert_eq!(places.len(), contents.len());
    let stored = contents.iter().zip(places).map(|(content, (hash, at))| {
        assert_eq!(hash, ObjectId::of(content));
        let content = content.to_vec();
        Stored { content, at }
    });
    Ok(stored.collect())
}

/// Fetches a payload, and checks that `check` agrees.
fn fetch(payloads: &Payloads, content: &[u8], at: u64) -> Result<Vec<u8>> {
    let (hash, bytes) = (ObjectId::of(content), content.len() as u64);
    let fetched = payloads.fetch(hash, bytes, at);
    assert_eq!(payloads.check(hash, bytes, at).unwrap(), fetched.is_ok());
    fetched
}

#[track_caller]
fn assert_all_there(disk: &Disk, stored: &[Stored]) {
    let payloads = reader(disk);
    for Stored { content, at } in stored {
        assert!(
            fetch(&payloads, content, *at).unwrap() == *content,
            "at {at}"
        );
    }
}

#[test]
fn a_payload_is_stored_once_in_the_form_that_is_documented() {
    let disk = Disk::default();
    let mut writer = writer(&disk);
    assert_eq!(writer.store(&[]).unwrap(), []);
    assert_eq!(disk.bytes(), None);

    let mut stored = store(&mut writer, &[b"one", b"", b"one", b"t\nwo"]).unwrap();
    let expected = [entry(b"one"), entry(b""), entry(b"t\nwo")].concat();
    assert_eq!(disk.bytes().unwrap(), expected);
    assert_eq!(stored[0].at, 0);
    assert_eq!(stored[2].at, 0);
    // Opened and found missing, created, named, read; one write, one sync.
    let log = ["open", "create", "sync_dir", "len", "append", "sync"];
    assert_eq!(disk.take_log(), log);

    stored.extend(store(&mut writer, &[b"t\nwo"]).unwrap());
    assert_eq!(disk.take_log(), ["len"]);
    stored.extend(store(&mut writer, &[b"three", b"one"]).unwrap());
    assert_eq!(disk.take_log(), ["len", "append", "sync"]);
    assert_eq!(disk.bytes().unwrap(), [expected, entry(b"three")].concat());
    assert_all_there(&disk, &stored);
}

#[test]
fn a_writer_knows_what_others_stored_and_makes_it_durable() {
    let disk = Disk::with(&[entry(b"one"), entry(b"two")].concat());
    disk.take_log();
    let mut writer = writer(&disk);
    let stored = store(&mut writer, &[b"two", b"one"]).unwrap();
    assert_eq!(stored[0].at, entry(b"one").len() as u64);
    assert_eq!(stored[1].at, 0);
    assert_eq!(disk.bytes().unwrap().len(), entry(b"one").len() * 2);
    // Its writer may have died before the sync.
    let log = disk.take_log();
    assert!(log.contains(&"sync_dir") && log.last() == Some(&"sync"));
    assert_all_there(&disk, &stored);
}

#[test]
fn bytes_that_are_not_the_content_are_never_referred_to() {
    let damaged = [header(b"one").as_bytes(), b"0ne\n"].concat();
    let longer = header(b"one").replace("3}", "4}") + "one!\n";
    for bad in [damaged, longer.into_bytes()] {
        let disk = Disk::with(&[bad.clone(), entry(b"two")].concat());
        let stored = store(&mut writer(&disk), &[b"one", b"two"]).unwrap();
        assert_eq!(stored[0].at as usize, bad.len() + entry(b"two").len());
        assert_eq!(stored[1].at as usize, bad.len());
        // Once stored intact, it is known to this writer and to the next.
        let len = disk.bytes().unwrap().len();
        let again = store(&mut writer(&disk), &[b"one"]).unwrap();
        assert_eq!(again[0].at, stored[0].at);
        assert_eq!(disk.bytes().unwrap().len(), len);
        // A reference to the damaged one gets the other.
        assert_eq!(fetch(&reader(&disk), b"one", 0).unwrap(), b"one");
    }
}

#[test]
fn torn_entries_and_garbage_are_stepped_over() {
    // Its content would end at a newline, in the middle of the next entry.
    let claimed = b"torn\n".len() + header(b"two").len() - 1;
    let misleading = header(&vec![b'x'; claimed]) + "torn";
    for garbage in [
        &entry(b"torn")[..40],
        &entry(b"torn")[..91],
        misleading.as_bytes(),
        &[0; 5000],
        b"\n\n\n",
        b"{\"payload\":\"{\"payload\":\"",
        &entry(b"quoted")[1..],
    ] {
        let file = [&entry(b"one"), garbage, b"\n", &entry(b"two")].concat();
        let disk = Disk::with(&[&file, garbage].concat());
        let mut first = writer(&disk);
        let known = store(&mut first, &[b"one", b"two"]).unwrap();
        assert_eq!(disk.bytes().unwrap().len(), file.len() + garbage.len());
        let stored = store(&mut first, &[b"three"]).unwrap();
        let now = disk.bytes().unwrap();
        assert!(now.starts_with(&[&file, garbage].concat()));
        let at = stored[0].at as usize;
        assert_eq!(now[at - 1], b'\n');
        assert_eq!(now[at..], entry(b"three"));
        let again = store(&mut writer(&disk), &[b"three", b"two", b"one"]).unwrap();
        assert_eq!(disk.bytes().unwrap().len(), now.len());
        assert_all_there(&disk, &[known, stored, again].concat());
    }
}

#[test]
fn a_payload_may_quote_a_payload_file() {
    let inner = [entry(b"one"), entry(b"two"), entry(b"two")].concat();
    let outer = entry(&inner);
    let disk = Disk::default();
    let mut first = writer(&disk);
    let contents: [&[u8]; 5] = [&inner, &outer, b"two", b"one", &outer[..90]];
    let stored = store(&mut first, &contents).unwrap();
    assert_eq!(
        disk.take_log().iter().filter(|op| **op == "append").count(),
        1
    );
    let len = disk.bytes().unwrap().len();
    let again = store(&mut writer(&disk), &contents).unwrap();
    assert_eq!(disk.bytes().unwrap().len(), len);
    assert_all_there(&disk, &[stored, again].concat());
    // Wrong hints cost time, but never give a wrong answer.
    let payloads = reader(&disk);
    for at in (0..len as u64 + 2).chain([u64::MAX, u64::MAX - 100]) {
        for content in contents {
            assert_eq!(fetch(&payloads, content, at).unwrap(), content);
        }
    }
}

#[test]
fn long_contents_are_written_from_where_they_are() {
    let long = vec![b'l'; GATHERED + 7];
    let short = vec![b's'; 1000];
    let disk = Disk::default();
    let contents: [&[u8]; 4] = [&short, &long, b"x", &short[1..]];
    let stored = store(&mut writer(&disk), &contents).unwrap();
    let expected = contents.map(entry).concat();
    assert!(disk.bytes().unwrap() == expected);
    let log = disk.take_log();
    assert_eq!(log[4..], ["append", "append", "append", "sync"]);
    assert_all_there(&disk, &stored);
}

/// F22: every operation of a store fails once, in every way. Acknowledged payloads are
/// there, and a retry works, even after a power cut.
#[test]
fn whatever_fails_what_was_acknowledged_is_there_and_a_retry_works() {
    let long = vec![b'l'; GATHERED + 7];
    let rounds: [&[&[u8]]; 3] = [
        &[b"one", b"two"],
        &[b"two", &long, b"three"],
        &[b"one", b"four"],
    ];
    // No file yet; and a file of another writer, torn at its end.
    let begun = [&entry(b"two")[..], &entry(b"four")[..91]].concat();
    let faults = [
        Fault::Error,
        Fault::Twice,
        Fault::Tear,
        Fault::Stop,
        Fault::StopHalfWay,
    ];
    let mut operations = 0;
    for fault in faults {
        for begin in [None, Some(&begun)] {
            for n in 0.. {
                let disk = begin.map_or_else(Disk::default, |file| Disk::with(file));
                disk.arm(n, fault);
                store_all_with_retries(disk.clone(), &rounds);
                if !disk.fired() {
                    break;
                }
                operations += 1;
            }
        }
    }
    assert!(operations > 150, "only {operations} operations");
}

fn store_all_with_retries(mut disk: Disk, rounds: &[&[&[u8]]]) {
    let mut first = writer(&disk);
    let mut stored = Vec::new();
    let mut failures = 0;
    for contents in rounds {
        loop {
            match store(&mut first, contents) {
                Ok(more) => {
                    stored.extend(more);
                    break;
                }
                Err(error) => {
                    assert!(error.to_string().contains("nothing was recorded"));
                    assert_eq!(error.path(), Some(Path::new("/store/sessions/s1/payloads")));
                    failures += 1;
                    assert!(failures <= 2, "{:?}", disk.take_log());
                }
            }
            if disk.is_down() {
                for left in [Left::Nothing, Left::Nuls, Left::All] {
                    assert_all_there(&disk.cut_power(left), &stored);
                }
                disk = disk.cut_power(Left::Half);
                first = writer(&disk);
            }
        }
    }
    // A pending fault would hit the reads below.
    if disk.fired() {
        assert_all_there(&disk, &stored);
    }
    for left in [Left::Nothing, Left::Half, Left::Nuls, Left::All] {
        let after = disk.cut_power(left);
        assert_all_there(&after, &stored);
        let again = store(&mut writer(&after), rounds[0]).unwrap();
        assert_all_there(
            &after.cut_power(Left::Nothing),
            &[&stored[..], &again].concat(),
        );
    }
}

#[test]
fn a_failed_write_leaves_the_file_as_it_was() {
    let disk = Disk::default();
    let mut writer = writer(&disk);
    store(&mut writer, &[b"one"]).unwrap();
    let before = disk.bytes();
    for (operation, name) in ["len", "append", "sync"].into_iter().enumerate() {
        disk.take_log();
        disk.arm(operation, Fault::Tear);
        writer.store(&[b"two"]).unwrap_err();
        assert!(disk.take_log().contains(&name));
        assert_eq!(disk.bytes(), before);
        store(&mut writer, &[b"one"]).unwrap();
        assert_eq!(disk.bytes(), before);
    }
}

/// F8: one flipped byte, anywhere, costs at most the payload that it hit.
#[test]
fn a_flipped_byte_costs_at_most_the_payload_it_hit() {
    let contents: [&[u8]; 3] = [b"the first", b"the\nsecond", b"third"];
    let disk = Disk::default();
    let stored = store(&mut writer(&disk), &contents).unwrap();
    let file = disk.bytes().unwrap();
    for at in 0..file.len() {
        for flip in [1, 0x80, file[at] ^ b'\n', file[at] ^ b'9'] {
            let mut damaged = file.clone();
            damaged[at] ^= flip;
            let disk = Disk::with(&damaged);
            let payloads = reader(&disk);
            for one in &stored {
                let from = one.at as usize + header(&one.content).len();
                let was_hit = flip != 0 && (from..from + one.content.len()).contains(&at);
                match fetch(&payloads, &one.content, one.at) {
                    Ok(content) => assert_eq!(content, one.content),
                    Err(error) => assert_lost(&error, one),
                }
                assert_eq!(fetch(&payloads, &one.content, one.at).is_err(), was_hit);
            }
            // The next writer notices, and stores the lost payloads again.
            let again = store(&mut writer(&disk), &contents).unwrap();
            assert_all_there(&disk, &again);
            assert_all_there(&disk, &stored);
        }
    }
}

#[track_caller]
fn assert_lost(error: &Error, one: &Stored) {
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert_eq!(error.path(), Some(Path::new("/store/sessions/s1/payloads")));
    let hash = ObjectId::of(&one.content).to_string();
    assert!(error.to_string().contains(&hash), "{error}");
}

#[test]
fn a_file_that_was_cut_still_gives_what_is_before_the_cut() {
    let contents: [&[u8]; 3] = [b"the first", b"the\nsecond", b""];
    let disk = Disk::default();
    let stored = store(&mut writer(&disk), &contents).unwrap();
    let file = disk.bytes().unwrap();
    for len in 0..file.len() {
        let disk = Disk::with(&file[..len]);
        for one in &stored {
            let end = one.at as usize + header(&one.content).len() + one.content.len();
            match fetch(&reader(&disk), &one.content, one.at) {
                Ok(content) => assert_eq!((content, end <= len), (one.content.clone(), true)),
                Err(error) => {
                    assert!(end > len);
                    assert_lost(&error, one);
                }
            }
        }
        let again = store(&mut writer(&disk), &contents).unwrap();
        assert_all_there(&disk, &[stored.clone(), again].concat());
    }
}

#[test]
fn a_writer_notices_that_its_file_was_cut() {
    let disk = Disk::default();
    let mut writer = writer(&disk);
    let mut stored = store(&mut writer, &[b"one", b"two"]).unwrap();
    disk.truncate(stored[1].at + 5).unwrap();
    stored.extend(store(&mut writer, &[b"two", b"three"]).unwrap());
    assert_all_there(&disk, &stored);
}

#[test]
fn a_missing_file_is_said_and_found_again_once_it_is_there() {
    let disk = Disk::default();
    let payloads = reader(&disk);
    let one = Stored {
        content: b"one".to_vec(),
        at: 0,
    };
    let error = fetch(&payloads, b"one", 0).unwrap_err();
    assert_lost(&error, &one);
    assert!(error.to_string().contains("there is no payload file"));
    store(&mut writer(&disk), &[b"one"]).unwrap();
    assert_eq!(fetch(&payloads.clone(), b"one", 0).unwrap(), b"one");
}

#[test]
fn a_disk_that_cannot_be_read_is_not_taken_for_damage() {
    let disk = Disk::with(&entry(b"one"));
    let hash = ObjectId::of(b"one");
    for n in 0..3 {
        disk.take_log();
        disk.arm(n, Fault::Error);
        let error = reader(&disk).fetch(hash, 3, 0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        disk.take_log();
        disk.arm(n, Fault::Error);
        let error = reader(&disk).check(hash, 3, 0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
    }
}

#[test]
fn a_length_that_cannot_be_is_refused_without_memory_for_it() {
    let disk = Disk::with(&entry(b"one"));
    let payloads = reader(&disk);
    let hash = ObjectId::of(b"one");
    for bytes in [2, 4, 1 << 40, u64::MAX - 88, u64::MAX] {
        for at in [0, 1, u64::MAX] {
            let error = payloads.fetch(hash, bytes, at).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert!(!payloads.check(hash, bytes, at).unwrap());
        }
    }
}

#[test]
fn a_header_is_found_wherever_it_stands_in_the_buffer() {
    let len = header(b"one").len();
    for before in STREAM_BUFFER - len - 1..=STREAM_BUFFER + 1 {
        let mut file = vec![b'{'; before];
        file.extend(entry(b"one"));
        let disk = Disk::with(&file);
        assert_eq!(fetch(&reader(&disk), b"one", 5).unwrap(), b"one");
        assert_eq!(
            store(&mut writer(&disk), &[b"one"]).unwrap()[0].at,
            before as u64
        );
    }
}

/// Headers that lead nowhere cost reading in proportion to the file.
#[test]
fn a_file_full_of_headers_does_not_take_for_ever() {
    let lost = vec![b'l'; 100_000];
    let file = header(&lost).repeat(20_000).into_bytes();
    let disk = Disk::with(&file);
    fetch(&reader(&disk), &lost, 1).unwrap_err();
    let stored = store(&mut writer(&disk), &[&lost]).unwrap();
    assert_eq!(stored[0].at as usize, file.len());
    let limit = file.len() * 64;
    assert!(disk.bytes_read() < limit, "{} bytes", disk.bytes_read());
}

#[test]
fn only_the_exact_form_is_a_header() {
    let right = header(b"one");
    let wanted = Entry {
        hash: ObjectId::of(b"one"),
        bytes: 3,
        at: 7,
    };
    assert_eq!(Entry::parse(right.as_bytes(), 7), Some(wanted));
    let hash = wanted.hash.to_string();
    for wrong in [
        right.replace("3}", "03}"),
        right.replace("3}", "3 }"),
        right.replace("3}", "3]"),
        right.replace("3}", "}"),
        right.replace("3}", "-3}"),
        right.replace("3}", "99999999999999999999}"),
        right.replace("}\n", "} "),
        right.replace(&hash, &hash.to_uppercase()),
        right.replace(&hash, &hash[1..]),
        right.replace("bytes", "Bytes"),
        format!(" {right}"),
    ] {
        assert_eq!(Entry::parse(wrong.as_bytes(), 7), None, "{wrong}");
    }
    for len in 0..right.len() {
        assert_eq!(Entry::parse(&right.as_bytes()[..len], 7), None);
    }
}

/// Both halves together, on a real disk: out of a message and back into it (F9).
#[cfg(unix)]
#[test]
fn a_message_comes_back_byte_for_byte_through_the_file() {
    use crate::message::parts::{parts, restore, splice};
    use std::os::unix::fs::PermissionsExt;

    let text = "a \\\"long\\\" text, ".repeat(100_000);
    let message = format!(
        r#"{{ "role":"user", "blocks":[ {{"type":"image","data":"aW1hZ2U="}},
            {{"text":"{text}","type":"text"}}], "x":{{"payload":null}} }}"#
    );
    let home = tempfile::tempdir().unwrap();
    let id = "s1".parse().unwrap();
    std::fs::DirBuilder::new()
        .create(home.path().join("s1"))
        .unwrap();
    let files = LogDir::new(Arc::new(crate::LocalStorage), home.path(), &id);

    let parts = parts(&message, 1 << 20);
    let contents: Vec<_> = parts.iter().map(|part| part.content.bytes()).collect();
    let places = PayloadWriter::new(&files).store(&contents).unwrap();
    let references: Vec<_> = parts
        .iter()
        .zip(places)
        .map(|(part, (hash, at))| part.content.reference(hash, at))
        .collect();
    assert_eq!(references.len(), 3);
    let line = String::from_utf8(splice(&message, &parts, &references)).unwrap();
    assert!(line.len() < 2000);

    let payloads = Payloads::new(&files);
    let restored = restore(&line, |one| payloads.fetch(one.hash, one.bytes, one.at));
    assert!(restored.unwrap() == message);
    let metadata = home.path().join("s1/payloads").metadata().unwrap();
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
}
