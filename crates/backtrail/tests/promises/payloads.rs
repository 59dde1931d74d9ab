//! Payloads: media and long parts of a message are in a file of their own, once per
//! session, and every reader returns them byte for byte (F9, F20). No record is
//! acknowledged whose payloads could still be lost.

mod disk;
mod exact;
mod lost;
mod reuse;

use std::path::PathBuf;

use backtrail::{
    Block, Message, Role, Session, SessionOptions, SessionReader, Storage, Store, StoreOptions,
};
use backtrail_testkit::MemoryStorage;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A store on a disk that can be inspected.
struct Lab {
    memory: MemoryStorage,
    store: Store,
}

impl Lab {
    fn new() -> Self {
        Self::on(MemoryStorage::new())
    }

    fn on(memory: MemoryStorage) -> Self {
        Self::rotating(memory, u64::MAX)
    }

    fn rotating(memory: MemoryStorage, rotation: u64) -> Self {
        let store = store_on(memory.clone(), rotation);
        Self { memory, store }
    }

    fn begin(&self) -> Session {
        self.store.create_session(SessionOptions::new()).unwrap()
    }

    /// Returns the payload file of a session; empty if there is none.
    fn payloads(&self, reader: &SessionReader) -> Vec<u8> {
        self.memory.read(&payload_file(reader)).unwrap_or_default()
    }

    fn is_stored(&self, reader: &SessionReader, content: &[u8]) -> bool {
        memchr::memmem::find(&self.payloads(reader), content).is_some()
    }
}

fn store_on(storage: impl Storage, rotation: u64) -> Store {
    StoreOptions::new()
        .storage(storage)
        .rotation(rotation)
        .open_or_create("/store")
        .unwrap()
}

fn payload_file(reader: &SessionReader) -> PathBuf {
    reader.dir().join("payloads")
}

/// Returns bytes that differ for each number.
fn picture(n: u64, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len + 32);
    for count in 0_u64.. {
        if bytes.len() >= len {
            break;
        }
        let seed = [n.to_le_bytes(), count.to_le_bytes()].concat();
        bytes.extend_from_slice(blake3::hash(&seed).as_bytes());
    }
    bytes.truncate(len);
    bytes
}

fn image(bytes: &[u8]) -> Block {
    Block::image("image/png", STANDARD.encode(bytes)).unwrap()
}

/// Returns a user message with a picture.
fn shown(text: &str, bytes: &[u8]) -> Message {
    Message::new(Role::User, [Block::text(text), image(bytes)])
}

/// Returns every message of the line with its original bytes, read forwards; backwards,
/// one by one and by following they must be the same.
fn said(reader: &SessionReader) -> Vec<String> {
    let mut forwards = Vec::new();
    let mut records = reader.records().unwrap();
    while let Some(record) = records.next().unwrap() {
        if let Some(json) = record.message_json().unwrap() {
            let message: Message = serde_json::from_str(&json).unwrap();
            assert!(record.message().unwrap() == Some(message));
            forwards.push((record.seq(), json.into_owned()));
        }
    }
    assert!(records.damage().is_empty(), "{:?}", records.damage());
    let mut back = Vec::new();
    let mut records = reader.records_back().unwrap();
    while let Some(record) = records.next().unwrap() {
        if let Some(json) = record.message_json().unwrap() {
            back.push((record.seq(), json.into_owned()));
        }
    }
    back.reverse();
    assert!(forwards == back);
    let mut followed = Vec::new();
    let mut follower = reader.follow().unwrap();
    while let Some(record) = follower.poll().unwrap() {
        if let Some(json) = record.message_json().unwrap() {
            followed.push((record.seq(), json.into_owned()));
        }
    }
    assert!(forwards == followed);
    for (seq, json) in &forwards {
        let record = reader.record(*seq).unwrap().unwrap();
        assert!(record.as_ref().message_json().unwrap().unwrap() == *json);
    }
    forwards.into_iter().map(|(_, json)| json).collect()
}

/// Encodes a message as an append does.
fn json(message: &Message) -> String {
    serde_json::to_string(message).unwrap()
}

fn assert_whole(reader: &SessionReader) {
    let report = reader.verify().unwrap();
    assert!(report.is_ok(), "{:?}", report.damage.first());
}
