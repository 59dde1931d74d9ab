//! Any bytes as a file of version 1, loaded and as the first trail of an old session:
//! nothing panics, the file is only read, both directions agree, and the session
//! continues.

#![no_main]

use std::path::Path;

use backtrail::{Message, SessionId, SessionReader, Shape, Storage, StoreOptions, Transcript};
use backtrail_testkit::{ManualClock, MemoryStorage, SeededRandomness};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let memory = MemoryStorage::new();
    let file = Path::new("/session-1775008161929.jsonl");
    memory.write(file, data).expect("memory takes it");
    let store = StoreOptions::new()
        .storage(memory.clone())
        .clock(ManualClock::new(1_794_729_600_000))
        .randomness(SeededRandomness::new(1))
        .open_or_create("/store")
        .expect("an empty disk takes a store");
    let loaded = Transcript::load_from_place(file, std::sync::Arc::new(memory.clone()));
    let Ok(loaded) = loaded else {
        return;
    };
    assert_eq!(memory.read(file).expect("it is there"), data, "the source is only read");
    if data.starts_with(b"{\"type\":\"session_meta\",\"version\":2") {
        return;
    }
    let id: SessionId = "old".parse().expect("it is an id");
    let dir = Path::new("/store/sessions/old");
    memory.create_dir(dir).expect("memory takes it");
    memory.write(&dir.join("0000.jsonl"), data).expect("memory takes it");
    let reader = store.read_session(&id).expect("it is there");
    let before = both_ways(&reader);
    assert!(before.len() <= data.len() && loaded.messages().len() <= data.len());
    for shape in Shape::ALL {
        reader.context(shape).expect("reading works");
    }
    reader.stats().expect("reading works");
    assert!(reader.verify().expect("reading works").is_ok());
    let session = store.open_session(&id).expect("it can be continued");
    session.append(Message::user_text("after")).expect("the disk works");
    let after = both_ways(&reader);
    assert!(after.starts_with(&before));
    if let Some(middle) = before.get(before.len() / 2) {
        session.rewind_chat(*middle).expect("the record is there");
        session.undo().expect("the disk works");
        assert_eq!(both_ways(&reader), after);
    }
});

/// Returns the seqs of the line in order; both directions must agree.
fn both_ways(reader: &SessionReader) -> Vec<u64> {
    let seqs = |mut records: backtrail::Records| {
        let mut seqs = Vec::new();
        while let Some(record) = records.next().expect("reading works") {
            record.message().ok();
            seqs.push(record.seq());
        }
        seqs
    };
    let forwards = seqs(reader.records().expect("files are there"));
    let mut backwards = seqs(reader.records_back().expect("files are there"));
    backwards.reverse();
    assert_eq!(forwards, backwards);
    forwards
}
