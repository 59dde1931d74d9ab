//! A payload is stored once per session, and found by forks, rewinds, rotations, repairs
//! and compactions (F20).

use backtrail::{Compaction, ForkOptions, Message, Session, SessionReader, Shape};
use backtrail_testkit::MemoryStorage;

use super::{Lab, assert_whole, json, payload_file, picture, said, shown};

#[test]
fn f20_the_same_picture_fifty_times_is_stored_once_also_after_reopening() {
    let lab = Lab::new();
    let mut session = lab.begin();
    let bytes = picture(1, 90_000);
    let mut expected = Vec::new();
    for n in 0..50 {
        if n % 10 == 5 {
            let id = session.id().clone();
            session.close().unwrap();
            session = lab.store.open_session(&id).unwrap();
        }
        // Three times in one message, and alone in another.
        let many = [
            super::image(&bytes),
            super::image(&bytes),
            super::image(&bytes),
        ];
        let message = match n % 2 {
            0 => Message::assistant(many),
            _ => shown(&format!("number {n}"), &bytes),
        };
        session.append(message.clone()).unwrap();
        expected.push(json(&message));
    }
    assert_eq!(said(&session.reader()), expected);
    let stored = lab.payloads(&session.reader()).len();
    assert!(stored < 90_200, "{stored} bytes");
}

/// Appends messages with pictures, and returns them.
fn speak(session: &Session, numbers: std::ops::Range<u64>) -> Vec<String> {
    let mut said = Vec::new();
    for n in numbers {
        let message = shown(&format!("picture {n}"), &picture(n, 5_000));
        session.append(message.clone()).unwrap();
        said.push(json(&message));
    }
    said
}

#[test]
fn a_fork_of_a_fork_reads_its_ancestors_payloads_and_its_own() {
    let lab = Lab::new();
    let parent = lab.begin();
    let first = speak(&parent, 0..3);
    let child = parent.fork(&ForkOptions::new().at(2)).unwrap();
    assert!(
        lab.payloads(&child.reader()).is_empty(),
        "nothing is copied"
    );
    // One picture of its own, one that the parent shows differently later.
    let second = speak(&child, 10..12);
    speak(&parent, 20..22);
    let grandchild = child.fork(&ForkOptions::new().at(3)).unwrap();
    let third = speak(&grandchild, 0..2);
    let expected = [&first[..2], &second[..1], &third].concat();
    assert_eq!(said(&grandchild.reader()), expected);
    assert_eq!(said(&child.reader()), [&first[..2], &second].concat());
    for session in [&parent, &child, &grandchild] {
        assert_whole(&session.reader());
    }
    // Each session has its own copy of a shared payload, so that the other can be
    // deleted.
    assert!(lab.is_stored(&grandchild.reader(), &picture(0, 5_000)));
    // The context has all of them, too.
    let context = grandchild.context(Shape::Neutral).unwrap();
    assert_eq!(context.skipped(), 0);
    for n in [0, 1, 10] {
        let data = serde_json::to_string(&super::image(&picture(n, 5_000))).unwrap();
        assert!(context.as_json().contains(&data), "picture {n}");
    }
}

#[test]
fn f20_rewind_undo_redo_and_rotation_store_nothing_again() {
    for rotation in [u64::MAX, 1] {
        let lab = Lab::rotating(MemoryStorage::new(), rotation);
        let session = lab.begin();
        let first = speak(&session, 0..4);
        let stored = lab.payloads(&session.reader());
        session.rewind_chat(2).unwrap().unwrap();
        assert_eq!(said(&session.reader()), first[..2]);
        let again = speak(&session, 2..4);
        let now = [&first[..2], &again].concat();
        assert_eq!(said(&session.reader()), now);
        session.undo().unwrap().unwrap();
        assert_eq!(said(&session.reader()), first);
        session.redo().unwrap().unwrap();
        assert_eq!(said(&session.reader()), now);
        session.rewind_chat(0).unwrap().unwrap();
        session.undo().unwrap().unwrap();
        assert_eq!(said(&session.reader()), now);
        assert!(lab.payloads(&session.reader()) == stored);
        assert_whole(&session.reader());
    }
}

#[test]
fn f20_ten_compactions_store_no_picture_again_and_add_a_summary_each() {
    let lab = Lab::new();
    let session = lab.begin();
    let expected = speak(&session, 0..30);
    let stored = lab.payloads(&session.reader());
    let trail = session.reader().dir().join("0000.jsonl");
    let before = lab.memory.read(&trail).unwrap().len();
    let summary = "What was seen so far. ".repeat(20);
    for _ in 0..10 {
        session
            .compact(&Compaction::new(&summary).keep(20))
            .unwrap();
    }
    let grown = lab.memory.read(&trail).unwrap().len() - before;
    assert!(grown < 10 * (summary.len() + 400), "{grown} bytes");
    assert!(lab.payloads(&session.reader()) == stored);
    assert_eq!(said(&session.reader()), expected, "the originals stay");
    // The twenty that stay are in the context unchanged.
    let context = session.context(Shape::Neutral).unwrap();
    let data = |n| serde_json::to_string(&super::image(&picture(n, 5_000))).unwrap();
    assert!(context.as_json().contains(&data(10)));
    assert!(!context.as_json().contains(&data(9)));
}

/// Damages the record `seq` in whichever trail contains it.
fn ruin(lab: &Lab, reader: &SessionReader, seq: u64) {
    let line = reader.record(seq).unwrap().unwrap();
    let line = line.as_ref().bytes().to_vec();
    for path in lab.memory.files() {
        let mut bytes = lab.memory.read(&path).unwrap();
        let dir = path.parent() == Some(reader.dir().as_path());
        if dir && let Some(at) = memchr::memmem::find(&bytes, &line) {
            bytes[at + 50] ^= 1;
            lab.memory.write(&path, &bytes).unwrap();
            return;
        }
    }
    panic!("record {seq} is nowhere");
}

fn repair(lab: &Lab, id: &backtrail::SessionId) -> Session {
    let report = lab.store.repair_plan(id).unwrap().apply().unwrap();
    assert!(report.copied > 0, "{report:?}");
    let session = lab.store.open_session(id).unwrap();
    assert_whole(&session.reader());
    session
}

#[test]
fn a_repair_copies_lines_and_their_payloads_are_found() {
    let lab = Lab::new();
    let session = lab.begin();
    let mut expected = speak(&session, 0..6);
    let stored = lab.payloads(&session.reader());
    let id = session.id().clone();
    ruin(&lab, &session.reader(), 3);
    session.close().unwrap();
    let session = repair(&lab, &id);
    expected.remove(2);
    assert_eq!(said(&session.reader()), expected);
    assert!(lab.payloads(&session.reader()) == stored);
    expected.extend(speak(&session, 2..3));
    assert_eq!(said(&session.reader()), expected);
    assert!(lab.payloads(&session.reader()) == stored, "it was there");
}

/// A repair of a fork may copy lines of another session.
#[test]
fn a_repaired_fork_finds_the_payloads_of_the_lines_that_it_copied() {
    let lab = Lab::new();
    let parent = lab.begin();
    let mut expected = speak(&parent, 0..5);
    let child = parent.fork(&ForkOptions::new()).unwrap();
    expected.extend(speak(&child, 5..7));
    let grandchild = child.fork(&ForkOptions::new()).unwrap();
    expected.extend(speak(&grandchild, 7..9));
    let id = grandchild.id().clone();
    ruin(&lab, &parent.reader(), 2);
    for session in [parent, child, grandchild] {
        session.close().unwrap();
    }
    let session = repair(&lab, &id);
    expected.remove(1);
    assert_eq!(said(&session.reader()), expected);
    // From now on they are its own.
    let own = payload_file(&session.reader());
    for path in lab.memory.files() {
        if path.ends_with("payloads") && path != own {
            lab.memory.write(&path, b"").unwrap();
        }
    }
    for (seq, expected) in (3..).zip(&expected[1..]) {
        let record = session.reader().record(seq).unwrap().unwrap();
        let json = record.as_ref().message_json().unwrap().unwrap();
        assert_eq!(json, *expected);
    }
    // A second repair has nothing to do.
    let id = session.id().clone();
    session.close().unwrap();
    let plan = lab.store.repair_plan(&id).unwrap();
    assert!(plan.is_empty(), "{:?}", plan.damage());
}
