//! Any text as a line of input: accepted messages are written and read back.

#![no_main]

use backtrail::{Draft, SessionOptions, StoreOptions};
use backtrail_testkit::MemoryStorage;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &str| {
    let Ok(draft) = Draft::from_json(line) else {
        return;
    };
    let store = StoreOptions::new()
        .storage(MemoryStorage::new())
        .open_or_create("/store")
        .expect("an empty disk takes a store");
    let session = store.create_session(SessionOptions::new()).expect("and a session");
    let Ok(seq) = session.append(draft) else {
        return;
    };
    let record = session.reader().record(seq).expect("reading works").expect("it was acknowledged");
    record.message().expect("what was taken is a message");
    assert!(session.reader().verify().expect("reading works").is_ok());
});
