//! A deleted session is in the trash, whole, until the trash is emptied; a purged one is
//! nowhere.

mod beside;
mod faults;
mod keep;
mod life;
mod others;
mod prompts;
mod purge;
mod several;
mod spared;

use backtrail::trash::{DeleteScope, EmptyOptions, TrashName};
use backtrail::{Message, Result, SessionId, SessionOptions, SessionReader, Store, StoreOptions};
use backtrail_testkit::{ManualClock, MemoryStorage, SeededRandomness};

const HOME: &str = "/store-in-memory";

fn options(storage: impl backtrail::Storage) -> StoreOptions {
    StoreOptions::new()
        .storage(storage)
        .clock(ManualClock::new(1_794_729_600_000))
        .randomness(SeededRandomness::new(3))
}

fn store_on(memory: &MemoryStorage) -> Store {
    options(memory.clone()).open_or_create(HOME).unwrap()
}

/// Creates a session with some messages, and closes it.
fn session(store: &Store, words: &[&str]) -> SessionId {
    let session = store
        .create_session(SessionOptions::new().title(words[0]))
        .unwrap();
    for word in words {
        session.append(Message::user_text(*word)).unwrap();
    }
    let id = session.id().clone();
    session.close().unwrap();
    id
}

fn fork(store: &Store, id: &SessionId, word: &str) -> SessionId {
    let fork = store.fork_session(id, &Default::default()).unwrap();
    fork.append(Message::user_text(word)).unwrap();
    let id = fork.id().clone();
    fork.close().unwrap();
    id
}

fn delete(store: &Store, id: &SessionId) -> Result<()> {
    let ids = std::slice::from_ref(id);
    store.delete_plan(ids, DeleteScope::Named)?.apply()
}

fn name(id: &SessionId) -> TrashName {
    id.as_str().parse().unwrap()
}

fn empty(store: &Store) -> Result<Vec<TrashName>> {
    let plan = store.empty_plan(&EmptyOptions::new())?;
    Ok(plan.apply()?.emptied)
}

/// Returns the messages, and asserts that there is no damage.
fn said(reader: &SessionReader) -> Vec<String> {
    let mut records = reader.records().unwrap();
    let mut said = Vec::new();
    while let Some(record) = records.next().unwrap() {
        if let Some(message) = record.message().unwrap() {
            said.push(message.text().into_owned());
        }
    }
    assert!(records.damage().is_empty(), "{:?}", records.damage());
    said
}
