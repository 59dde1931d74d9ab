//! Any bytes as a trail: nothing panics, both directions agree, and later appends are
//! found.
//!
//! The input is a script over a real trail, because the fuzzer would never guess a sum.

#![no_main]

use std::path::Path;

use backtrail::{Block, Compaction, Message, SessionId, SessionOptions, SessionReader, Shape, StoreOptions};
use backtrail_testkit::{ManualClock, MemoryStorage, SeededRandomness};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let memory = MemoryStorage::new();
    let options = || {
        StoreOptions::new()
            .storage(memory.clone())
            .clock(ManualClock::new(1_794_729_600_000))
            .randomness(SeededRandomness::new(1))
            .rotation(900)
    };
    let store = options().open_or_create("/store").expect("an empty disk takes a store");
    let session = store.create_session(SessionOptions::new()).expect("and a session");
    for n in 0..6 {
        session.append(Message::user_text(format!("message {n}"))).expect("and messages");
    }
    session.compact(&Compaction::new("so far").keep(2)).expect("and a compaction");
    session.append(Message::assistant([Block::image("image/png", "iVBORw==").expect("an image")])).expect("and an image");
    session.rewind_chat(7).expect("and a rewind");
    session.append(Message::user_text("another way")).expect("and more");
    let id: SessionId = session.id().clone();
    drop(session);

    let files: Vec<_> = memory.files().into_iter().filter(|f| f.extension().is_some_and(|e| e == "jsonl")).collect();
    let mut script = data.iter().copied();
    let mut next = || script.next();
    while let (Some(op), Some(file), Some(high), Some(low), Some(value)) = (next(), next(), next(), next(), next()) {
        damage(&memory, &files[usize::from(file) % files.len()], op, usize::from(high) << 8 | usize::from(low), value);
    }

    let reader = store.read_session(&id).expect("files are there");
    let before = both_ways(&reader);
    reader.verify().expect("reading works");
    reader.context(Shape::Anthropic).expect("reading works");
    reader.stats().expect("reading works");
    let steps = reader.steps().expect("reading works");
    let plan = store.repair_plan(&id).expect("reading works");
    if let Ok(session) = store.open_session(&id) {
        let seq = session.append(Message::user_text("after")).expect("the disk works");
        let after = both_ways(&reader);
        assert!(after.starts_with(&before), "an append hid something");
        assert_eq!(after.last(), Some(&seq));
        drop(session);
        plan.apply().expect("the disk works");
        assert_eq!(both_ways(&reader), after, "a repair lost something");
        let report = reader.verify().expect("reading works");
        assert!(report.is_ok(), "{:?}", report.damage.first());
        move_about(&store, &id, steps.to_undo.len());
    }
});

/// Undoes and redoes everything, and ends where it began.
fn move_about(store: &backtrail::Store, id: &SessionId, known: usize) {
    let session = store.open_session(id).expect("it was open before");
    let reader = session.reader();
    let before = forwards(&reader);
    let mut undone = 0;
    while session.undo().expect("the disk works").is_some() {
        undone += 1;
        forwards(&reader);
    }
    assert!(undone <= known + 1, "steps came from nowhere");
    for _ in 0..undone {
        assert!(session.redo().expect("the disk works").is_some(), "a redo is missing");
    }
    assert_eq!(forwards(&reader), before, "back and forth leads elsewhere");
}

fn damage(memory: &MemoryStorage, file: &Path, op: u8, at: usize, value: u8) {
    let mut bytes = memory.read(file).expect("it was listed");
    let at = at % (bytes.len() + 1);
    match op % 6 {
        0 if at < bytes.len() => bytes[at] = value,
        1 => bytes.truncate(at),
        2 => bytes.insert(at, value),
        3 => drop(bytes.drain(at..(at + usize::from(value)).min(bytes.len()))),
        4 => drop(bytes.splice(at..at, std::iter::repeat_n(0, usize::from(value)))),
        _ => {
            let copy: Vec<u8> = bytes[at..(at + 4 * usize::from(value)).min(bytes.len())].to_vec();
            bytes.extend(copy);
        }
    }
    memory.write(file, &bytes).expect("memory takes it");
}

/// Returns the seqs of the line in order. A line cut inside a trail whose lines were
/// moved can show fewer of them backwards.
fn forwards(reader: &SessionReader) -> Vec<u64> {
    let records = reader.records().expect("files are there").owned();
    records.map(|record| record.expect("reading works").seq()).collect()
}

/// Returns the seqs of the line in order; both directions must agree.
fn both_ways(reader: &SessionReader) -> Vec<u64> {
    let seqs = |mut records: backtrail::Records| {
        let mut seqs = Vec::new();
        while let Some(record) = records.next().expect("reading works") {
            record.message().ok();
            seqs.push(record.seq());
        }
        if records.damage().is_empty() {
            assert!(seqs.is_sorted() || seqs.iter().rev().is_sorted());
        }
        seqs.sort_unstable();
        // Two records can have one number if lines were copied and changed.
        seqs.dedup();
        seqs
    };
    let forwards = seqs(reader.records().expect("reading works"));
    let backwards = seqs(reader.records_back().expect("reading works"));
    assert_eq!(forwards, backwards);
    forwards
}
