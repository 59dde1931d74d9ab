//! Any bytes as a file of version 1: nothing panics, imported messages have the same
//! bytes, both directions agree, and the session can be continued.

#![no_main]

use std::path::Path;

use backtrail::{Message, SessionReader, Shape, StoreOptions, Transcript};
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
    let Ok(import) = store.import(file) else {
        return;
    };
    assert_eq!(memory.read(file).expect("it is there"), data, "the source is only read");
    let reader = store.read_session(&import.id).expect("it was taken in");
    let before = both_ways(&reader);
    if let Ok(loaded) = loaded {
        assert_eq!(loaded.messages().len() as u64, import.messages);
    }
    for shape in Shape::ALL {
        reader.context(shape).expect("reading works");
    }
    reader.stats().expect("reading works");
    assert!(reader.verify().expect("reading works").is_ok());
    let session = store.open_session(&import.id).expect("it can be gone on with");
    session.append(Message::user_text("after")).expect("the disk works");
    let after = both_ways(&reader);
    assert!(after.starts_with(&before));
    if let Some(middle) = before.get(before.len() / 2) {
        session.rewind(*middle).expect("the record is there");
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
