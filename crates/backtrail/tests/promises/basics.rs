//! A session is written and read back, through every reader.

use backtrail::{Draft, Message, Note, RecordKind, SessionOptions, StoreOptions};
use backtrail_testkit::{ManualClock, MemoryStorage, SeededRandomness};

fn store_on(memory: &MemoryStorage, rotation: u64) -> backtrail::Store {
    StoreOptions::new()
        .storage(memory.clone())
        .rotation(rotation)
        .open_or_create("/store")
        .unwrap()
}

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
    let store = store_on(&memory, 900);
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

/// Returns the texts of a damaged session.
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

/// A13: a trail that exceeds its limit continues in a new file, every record keeps its
/// number, and a rotated trail is never changed again.
#[test]
fn a13_a_trail_past_its_limit_continues_in_a_new_file_and_nothing_is_lost() {
    let memory = MemoryStorage::new();
    let store = store_on(&memory, 1_000);
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

/// A file without its newlines is one line with a thousand records.
#[test]
fn a_trail_without_its_newlines_is_read_anyway() {
    let memory = MemoryStorage::new();
    let store = store_on(&memory, StoreOptions::DEFAULT_ROTATION);
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

/// F19: records that a power cut took from the end of a trail may have been acknowledged,
/// so their numbers are not reused.
#[test]
fn f19_numbers_of_a_blanked_end_are_not_given_again() {
    let memory = MemoryStorage::new();
    let store = store_on(&memory, StoreOptions::DEFAULT_ROTATION);
    for newlines in ["lost too", "kept"] {
        let session = store.create_session(SessionOptions::new()).unwrap();
        let reader = session.reader();
        for n in 1..=10 {
            session.append(Message::user_text(n.to_string())).unwrap();
        }
        drop(session);
        let path = reader.dir().join("0000.jsonl");
        let mut bytes = memory.read(&path).unwrap();
        let lines: Vec<usize> = memchr_newlines(&bytes);
        for byte in &mut bytes[lines[5] + 1..] {
            if newlines == "lost too" || *byte != b'\n' {
                *byte = 0;
            }
        }
        memory.write(&path, &bytes).unwrap();
        let session = store.open_session(reader.id()).unwrap();
        for aside in session.set_aside() {
            assert!(!aside.never_acknowledged);
        }
        // Nor by a handle that was not open when the end was cut off.
        drop(session);
        let session = store.open_session(reader.id()).unwrap();
        let seq = session.append(Message::user_text("new")).unwrap();
        assert!(
            seq > 10,
            "{seq} was acknowledged before, newlines {newlines}"
        );
        let shown = texts_but_lost(&reader, Lost::Perhaps);
        assert_eq!(shown, ["1", "2", "3", "4", "5", "new"]);
    }
}

fn memchr_newlines(bytes: &[u8]) -> Vec<usize> {
    let places = bytes.iter().enumerate();
    places
        .filter(|(_, byte)| **byte == b'\n')
        .map(|(at, _)| at)
        .collect()
}

/// A record quoted in a tool's input never becomes a record of this trail, however the
/// line around it is damaged.
#[test]
fn a_quoted_record_stays_a_quotation() {
    let memory = MemoryStorage::new();
    let store = store_on(&memory, StoreOptions::DEFAULT_ROTATION);
    let other = store.create_session(SessionOptions::new()).unwrap();
    for n in 0..8 {
        other
            .append(Message::user_text(format!("foreign {n}")))
            .unwrap();
    }
    let quoted = other.reader().record(8).unwrap().unwrap();
    let quoted = std::str::from_utf8(quoted.as_ref().bytes())
        .unwrap()
        .to_owned();
    let session = store.create_session(SessionOptions::new()).unwrap();
    let input = backtrail::Json::new(quoted.clone()).unwrap();
    let call = backtrail::ToolUse::new("t", "write", &input).unwrap();
    session.append(Message::user_text("mine")).unwrap();
    session.append(Message::assistant([call.into()])).unwrap();
    let reader = session.reader();
    drop(session);
    let path = reader.dir().join("0000.jsonl");
    let bytes = memory.read(&path).unwrap();
    let text = String::from_utf8(bytes.clone()).unwrap();
    let end = text.find(&quoted).unwrap() + quoted.len();
    for cut in [end, end + 1, bytes.len() - 1] {
        memory.write(&path, &bytes[..cut]).unwrap();
        assert!(!all(&reader).contains("foreign"), "cut at {cut}");
    }
    for at in end - quoted.len() - 2..end + 3 {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        memory.write(&path, &changed).unwrap();
        assert!(!all(&reader).contains("foreign"), "changed at {at}");
    }
}

/// Returns all texts as one.
fn all(reader: &backtrail::SessionReader) -> String {
    texts_but_lost(reader, Lost::Perhaps).join("\n")
}

#[test]
fn a_note_that_would_swell_every_opener_is_refused() {
    let store = StoreOptions::new()
        .storage(MemoryStorage::new())
        .open_or_create("/store")
        .unwrap();
    let session = store.create_session(SessionOptions::new()).unwrap();
    let many = Note::new().tags((0..100_000).map(|n| format!("tag {n}")));
    let error = session.note(&many).unwrap_err();
    assert_eq!(error.kind(), backtrail::ErrorKind::Invalid);
    let error = store
        .create_session(SessionOptions::new().tags(["t".repeat(5000)]))
        .unwrap_err();
    assert!(error.to_string().contains("5000 bytes long"), "{error}");
    assert_eq!(session.note(&Note::new().tags(["few"])).unwrap(), 1);
    assert_eq!(session.reader().info().unwrap().tags, ["few"]);
}

/// F23 for sessions: an unreadable session hides no other.
#[test]
fn one_unreadable_session_hides_no_other() {
    let memory = MemoryStorage::new();
    let faulty =
        backtrail_testkit::FaultyStorage::new(memory).counting(backtrail_testkit::Count::All);
    let store = StoreOptions::new()
        .storage(faulty.clone())
        .open_or_create("/store")
        .unwrap();
    for _ in 0..3 {
        drop(store.create_session(SessionOptions::new()).unwrap());
    }
    let permission_denied = backtrail_testkit::Fault::Error(13);
    for nth in 1..4 {
        faulty.arm(nth, permission_denied);
        assert_eq!(store.sessions().unwrap().len(), 3);
        assert!(faulty.fired());
    }
}

/// A trail is identified by its opener, not by its file name.
#[test]
fn a_file_under_the_wrong_number_is_reported() {
    let memory = MemoryStorage::new();
    let store = store_on(&memory, StoreOptions::DEFAULT_ROTATION);
    let session = store.create_session(SessionOptions::new()).unwrap();
    for n in 1..=3 {
        session.append(Message::user_text(n.to_string())).unwrap();
    }
    let reader = session.reader();
    drop(session);
    let bytes = memory.read(&reader.dir().join("0000.jsonl")).unwrap();
    memory
        .write(&reader.dir().join("0001.jsonl"), &bytes)
        .unwrap();
    assert!(!reader.verify().unwrap().is_ok());
    assert_eq!(texts_but_lost(&reader, Lost::Something), ["1", "2", "3"]);
}

/// A repair does not reuse the number of a lost record either.
#[test]
fn a_repair_does_not_give_numbers_again() {
    let memory = MemoryStorage::new();
    let store = store_on(&memory, StoreOptions::DEFAULT_ROTATION);
    let session = store.create_session(SessionOptions::new()).unwrap();
    for n in 1..=10 {
        session.append(Message::user_text(n.to_string())).unwrap();
    }
    let reader = session.reader();
    drop(session);
    let path = reader.dir().join("0000.jsonl");
    let mut bytes = memory.read(&path).unwrap();
    let lines = memchr_newlines(&bytes);
    bytes[lines[8] + 100] ^= 1;
    bytes[lines[9] + 100] ^= 1;
    memory.write(&path, &bytes).unwrap();
    let report = store.repair_plan(reader.id()).unwrap().apply().unwrap();
    assert_eq!(report.trail, Some(1));
    let session = store.open_session(reader.id()).unwrap();
    assert_eq!(session.append(Message::user_text("new")).unwrap(), 11);
    assert_eq!(texts(&reader).len(), 9);
    assert!(reader.verify().unwrap().is_ok());
}
