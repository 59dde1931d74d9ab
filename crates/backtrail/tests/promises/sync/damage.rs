//! Damage costs the lines that it hit, here and there, and is counted.

use backtrail::replica::{BlobKind, BlobName, Depth, Replica};
use backtrail::{Message, SessionOptions};

use super::kit::{Side, Story, key, picture, replica};

fn trail(side: &Side, story: &Story, number: u32) -> std::path::PathBuf {
    let name = format!("/store/sessions/{}/{number:04}.jsonl", story.main);
    let path = std::path::PathBuf::from(name);
    assert!(side.files().contains_key(&path));
    path
}

/// Alters a byte of the nth line of a trail.
fn damage_line(side: &Side, path: &std::path::Path, n: usize) {
    let mut bytes = side.disk.read(path).unwrap();
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    let start = match n {
        0 => 0,
        n => ends.map(|(at, _)| at + 1).nth(n - 1).unwrap(),
    };
    bytes[start + 40] ^= 1;
    side.disk.write(path, &bytes).unwrap();
}

#[test]
fn a_damaged_line_is_not_sent_and_counted_and_those_after_it_are() {
    let (a, b, there) = (Side::new(1), Side::new(2), replica());
    let story = Story::begin(&a.store);
    let texts = a.texts(&story.main);
    damage_line(&a, &trail(&a, &story, 0), 1);
    let sent = a.push(&story.main, &there);
    assert_eq!(sent.skipped.count(), 1);
    b.pull(&story.main, &there);
    assert_eq!(b.texts(&story.main), texts[1..]);
    // The next push sends nothing again.
    assert!(a.push(&story.main, &there).is_nothing());
    a.say(&story.main, "more");
    assert_eq!(a.push(&story.main, &there).lines, 1);
    assert_eq!(b.pull(&story.main, &there).lines, 1);
}

#[test]
fn a_last_line_that_was_damaged_after_its_push_comes_back_by_a_pull() {
    let (a, there) = (Side::new(1), replica());
    let session = a.store.create_session(SessionOptions::new()).unwrap();
    for text in ["one", "two", "three"] {
        session.append(Message::user_text(text)).unwrap();
    }
    let id = session.id().clone();
    session.close().unwrap();
    a.push(&id, &there);
    let path = std::path::PathBuf::from(format!("/store/sessions/{id}/0000.jsonl"));
    damage_line(&a, &path, 3);
    assert_eq!(a.texts(&id), ["one", "two"]);
    assert_eq!(a.pull(&id, &there).lines, 1);
    assert_eq!(a.texts(&id), ["one", "two", "three"]);
    a.say(&id, "four");
    a.push(&id, &there);
}

#[test]
fn a_line_that_the_replica_ends_with_may_be_damaged_here_if_the_next_one_proves_it() {
    let (a, there) = (Side::new(1), replica());
    let session = a.store.create_session(SessionOptions::new()).unwrap();
    session.append(Message::user_text("one")).unwrap();
    session.append(Message::user_text("two")).unwrap();
    let id = session.id().clone();
    a.push(&id, &there);
    session.append(Message::user_text("three")).unwrap();
    session.close().unwrap();
    let path = std::path::PathBuf::from(format!("/store/sessions/{id}/0000.jsonl"));
    damage_line(&a, &path, 2);
    assert_eq!(a.push(&id, &there).lines, 1);
    let b = Side::new(2);
    b.pull(&id, &there);
    assert_eq!(b.texts(&id), ["one", "two", "three"]);
}

#[test]
fn a_lost_payload_costs_no_line() {
    let (a, b, there) = (Side::new(1), Side::new(2), replica());
    let story = Story::begin(&a.store);
    let payloads = format!("/store/sessions/{}/payloads", story.fork);
    a.disk.write(payloads.as_ref(), b"").unwrap();
    let pushed = a.try_push(&story.fork, &there);
    let sent = pushed.of(&story.fork).unwrap().as_ref().unwrap();
    assert_eq!((sent.lost_payloads.len(), sent.payloads), (1, 0));
    // And there.
    let session = a.store.open_session(&story.main).unwrap();
    session.append(picture(9)).unwrap();
    session.close().unwrap();
    a.push(&story.main, &there);
    let reader = a.store.read_session(&story.main).unwrap();
    let last = reader.last_records(1).unwrap().remove(0);
    let line: serde_json::Value = serde_json::from_slice(last.as_ref().bytes()).unwrap();
    let hash = line["message"]["blocks"][1]["data"]["payload"]
        .as_str()
        .unwrap();
    let mut name = BlobName {
        kind: BlobKind::Payload,
        hash: [0; 32],
    };
    for (byte, digits) in name.hash.iter_mut().zip(hash.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap();
    }
    there.lose_blob(&key(&story.main), name);
    let got = b.pull(&story.main, &there);
    assert_eq!(got.lost_payloads, [hash]);
    // Once it is there again, it is fetched.
    let content = [0, 1, 2, 3, 4, 5].repeat(49);
    there.put_blob(&key(&story.main), name, &content).unwrap();
    let got = b.pull(&story.main, &there);
    assert_eq!((got.payloads, got.lines), (1, 0));
    b.verify();
    let ours = a.trails();
    for (path, bytes) in b.trails() {
        assert_eq!(ours[&path], bytes);
    }
}

#[test]
fn an_unfinished_line_is_neither_sent_nor_in_the_way() {
    let (a, b, there) = (Side::new(1), Side::new(2), replica());
    let session = a.store.create_session(SessionOptions::new()).unwrap();
    session.append(Message::user_text("one")).unwrap();
    let id = session.id().clone();
    session.close().unwrap();
    let path = std::path::PathBuf::from(format!("/store/sessions/{id}/0000.jsonl"));
    let whole = a.disk.read(&path).unwrap();
    let torn = [&whole[..], br#"{"type":"message","seq":2,"at":"2026"#].concat();
    a.disk.write(&path, &torn).unwrap();
    assert!(a.push(&id, &there).skipped.is_empty());
    b.pull(&id, &there);
    b.say(&id, "two");
    b.push(&id, &there);
    a.pull(&id, &there);
    assert_eq!(a.texts(&id), ["one", "two"]);
    assert_eq!(a.disk.read(&path).unwrap(), b.disk.read(&path).unwrap());
}

#[test]
fn verify_names_what_differs_on_either_side() {
    let (a, b, there) = (Side::new(1), Side::new(2), replica());
    let story = Story::begin(&a.store);
    a.push(&story.main, &there);
    b.pull(&story.main, &there);
    let report = b
        .store
        .verify_replica(&story.main, &there, Depth::Contents)
        .unwrap();
    assert!(report.is_same(), "{report:?}");
    assert!(report.same > 8 && report.payloads == 2, "{report:?}");
    a.say(&story.main, "only here");
    b.say(&story.main, "only there");
    b.push(&story.main, &there);
    let report = a
        .store
        .verify_replica(&story.main, &there, Depth::Names)
        .unwrap();
    assert_eq!(
        (report.different.count(), report.only_there.count()),
        (1, 0)
    );
    let path = trail(&a, &story, 0);
    damage_line(&a, &path, 1);
    let report = a
        .store
        .verify_replica(&story.main, &there, Depth::Names)
        .unwrap();
    assert_eq!(report.only_there.first().len(), 1, "{report:?}");
    assert_eq!(report.only_there.first()[0].seq, 1);
    assert_eq!(report.damaged_here.count(), 1);
    a.say(&story.main, "one more");
    let report = a
        .store
        .verify_replica(&story.main, &there, Depth::Names)
        .unwrap();
    assert_eq!(report.only_here.count(), 1);
    let payloads = format!("/store/sessions/{}/payloads", story.main);
    a.disk.write(payloads.as_ref(), b"").unwrap();
    let report = a
        .store
        .verify_replica(&story.main, &there, Depth::Names)
        .unwrap();
    assert_eq!((report.lost_here.len(), report.lost_there.len()), (2, 0));
}
