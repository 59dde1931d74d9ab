//! A session is written and read back, through every door.

use backtrail::{Draft, Message, Note, RecordKind, SessionOptions, StoreOptions};
use backtrail_testkit::{ManualClock, MemoryStorage, SeededRandomness};

fn texts(reader: &backtrail::SessionReader) -> Vec<String> {
    let mut records = reader.records().unwrap();
    let mut texts = Vec::new();
    while let Some(record) = records.next().unwrap() {
        if let Some(message) = record.message().unwrap() {
            texts.push(message.text().into_owned());
        }
    }
    assert!(records.damage().is_empty());
    texts
}

#[test]
fn what_is_appended_is_read_back_in_order() {
    let store = StoreOptions::new()
        .storage(MemoryStorage::new())
        .clock(ManualClock::new(1_794_729_600_000))
        .randomness(SeededRandomness::new(7))
        .rotation(2_000)
        .open_or_create("/store")
        .unwrap();
    let session = store
        .create_session(SessionOptions::new().title("t"))
        .unwrap();
    let mut said = Vec::new();
    for n in 0..40 {
        let text = format!("message {n}");
        assert_eq!(session.append(Message::user_text(&text)).unwrap(), n + 1);
        said.push(text);
    }
    assert_eq!(texts(&session.reader()), said);
    session.note(&Note::new().title("another")).unwrap();
    let seq = session
        .append(Draft::from(Message::user_text("last")).expect(40))
        .unwrap();
    assert_eq!(seq, 42);
    let error = session
        .append(Draft::from(Message::user_text("twice")).expect(40))
        .unwrap_err();
    assert_eq!(error.kind(), backtrail::ErrorKind::Conflict);
    assert_eq!(error.head(), Some(42));
    let info = session.reader().info().unwrap();
    assert_eq!(info.title.as_deref(), Some("another"));
    assert!(info.trails > 3, "{}", info.trails);
    let last = session.reader().last_records(2).unwrap();
    assert_eq!(last[0].as_ref().kind(), RecordKind::Note);
    assert_eq!(session.reader().record(17).unwrap().unwrap().seq(), 17);
    let report = session.reader().verify().unwrap();
    assert!(report.is_ok(), "{:?}", report.damage.first());
    session.close().unwrap();
    let again = store.open_session(&info.id).unwrap();
    assert_eq!(again.append(Message::user_text("more")).unwrap(), 43);
    assert_eq!(texts(&again.reader()).len(), 42);
}

#[test]
fn a_repair_of_a_trail_cut_inside_its_opener_ends() {
    let memory = MemoryStorage::new();
    let store = StoreOptions::new()
        .storage(memory.clone())
        .rotation(900)
        .open_or_create("/store")
        .unwrap();
    let session = store.create_session(SessionOptions::new()).unwrap();
    for n in 0..6 {
        let text = format!("message {n}");
        session.append(Message::user_text(text)).unwrap();
    }
    let reader = session.reader();
    drop(session);
    let path = reader.dir().join("0000.jsonl");
    let bytes = memory.read(&path).unwrap();
    memory.write(&path, &bytes[..53]).unwrap();
    let readable = texts_but_lost(&reader, Lost::Something);
    assert_eq!(readable, ["message 4", "message 5"]);
    let report = store.repair_plan(reader.id()).unwrap().apply().unwrap();
    assert_eq!(report.missing, [1..=4]);
    assert_eq!(texts(&reader), ["message 4", "message 5"]);
    assert!(reader.verify().unwrap().is_ok());
}

#[derive(PartialEq)]
enum Lost {
    Something,
    Perhaps,
}

/// Returns the texts of a session that is known to be damaged.
fn texts_but_lost(reader: &backtrail::SessionReader, lost: Lost) -> Vec<String> {
    let mut records = reader.records().unwrap();
    let mut texts = Vec::new();
    while let Some(record) = records.next().unwrap() {
        texts.extend(
            record
                .message()
                .unwrap()
                .map(|said| said.text().into_owned()),
        );
    }
    assert!(lost == Lost::Perhaps || !records.damage().is_empty());
    texts
}

/// A13: past its limit a trail goes on in a new one, every record is kept and
/// keeps its number, and a rotated trail is never touched again.
#[test]
fn a13_a_trail_past_its_limit_goes_on_in_a_new_file_and_nothing_is_lost() {
    let memory = MemoryStorage::new();
    let store = StoreOptions::new()
        .storage(memory.clone())
        .rotation(1_000)
        .open_or_create("/store")
        .unwrap();
    let session = store
        .create_session(SessionOptions::new().title("before"))
        .unwrap();
    let reader = session.reader();
    let trail = |n: u32| reader.dir().join(format!("{n:04}.jsonl"));
    let mut finished: Vec<Vec<u8>> = Vec::new();
    for n in 1..=30 {
        if n == 12 {
            session.note(&Note::new().title("after")).unwrap();
        }
        let text = format!("message {n}");
        let seq = session.append(Message::user_text(text)).unwrap();
        assert_eq!(seq, n + u64::from(n >= 12));
        let head = reader.info().unwrap().trails - 1;
        for (n, bytes) in (0..head).zip(&finished) {
            assert_eq!(memory.read(&trail(n)).unwrap(), *bytes);
        }
        while (finished.len() as u32) < head {
            let bytes = memory.read(&trail(finished.len() as u32)).unwrap();
            assert!(bytes.len() >= 1_000, "rotated only past its limit");
            finished.push(bytes);
        }
    }
    assert!(finished.len() > 5);
    let expected: Vec<String> = (1..=30).map(|n| format!("message {n}")).collect();
    assert_eq!(texts(&reader), expected);
    assert_eq!(reader.info().unwrap().title.as_deref(), Some("after"));
    assert!(reader.verify().unwrap().is_ok());
}

/// A file whose newlines were taken out is one line with a thousand records.
#[test]
fn a_trail_without_its_newlines_is_read_all_the_same() {
    let memory = MemoryStorage::new();
    let store = StoreOptions::new()
        .storage(memory.clone())
        .durability(backtrail::Durability::Os)
        .open_or_create("/store")
        .unwrap();
    let session = store.create_session(SessionOptions::new()).unwrap();
    let reader = session.reader();
    for n in 0..1000 {
        let text = format!("message {n}");
        session.append(Message::user_text(text)).unwrap();
    }
    drop(session);
    let path = reader.dir().join("0000.jsonl");
    let bytes = memory.read(&path).unwrap();
    let whole = texts(&reader);
    for replacement in [&b" "[..], b"", b"\0\0"] {
        let joined: Vec<u8> = bytes
            .split(|byte| *byte == b'\n')
            .collect::<Vec<_>>()
            .join(replacement);
        memory.write(&path, &joined).unwrap();
        assert_eq!(texts_but_lost(&reader, Lost::Perhaps), whole);
        assert_eq!(reader.last_records(1000).unwrap().len(), 1000);
    }
}
