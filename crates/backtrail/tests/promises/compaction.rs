//! Compaction: a summary replaces earlier messages in the context and nowhere else; it
//! separates no call from its result, it can be undone, and nothing is lost or counted
//! twice (A11, F6, F20, F25).

mod context;
mod cover;
mod disk;

use backtrail::{
    Block, Compacted, Compaction, Message, Note, Role, Session, SessionOptions, Shape, Storage,
    Store, StoreOptions, ToolResult, ToolUse,
};
use backtrail_testkit::{ManualClock, MemoryStorage, SeededRandomness};

fn store(rotation: u64) -> Store {
    store_on(MemoryStorage::new(), rotation)
}

fn store_on(storage: impl Storage, rotation: u64) -> Store {
    StoreOptions::new()
        .storage(storage)
        .clock(ManualClock::new(1_794_729_600_000))
        .randomness(SeededRandomness::new(1))
        .rotation(rotation)
        .open_or_create("/store")
        .unwrap()
}

fn begin(store: &Store) -> Session {
    store.create_session(SessionOptions::new()).unwrap()
}

/// Plays a script with one word per record.
///
/// `s`, `u` and `a` are texts of system, user and assistant; `cA+B` calls two tools,
/// `rA+B` are their results, `mA` is a user message with a result and a text, `n` is a
/// note and `*2` a compaction that keeps two messages.
fn play(session: &Session, script: &str) -> Option<Compacted> {
    let mut compacted = None;
    for word in script.split_whitespace() {
        let (verb, ids) = word.split_at(1);
        match verb {
            "n" => drop(session.note(&Note::new().title(ids)).unwrap()),
            "*" => {
                let last = session.last_seq();
                let summary = format!("what was said up to {last}");
                let compaction = Compaction::new(summary).keep(ids.parse().unwrap());
                compacted = Some(session.compact(&compaction).unwrap());
            }
            _ => drop(session.append(message(session, verb, ids)).unwrap()),
        }
    }
    compacted
}

fn message(session: &Session, verb: &str, ids: &str) -> Message {
    let text = || Block::text(format!("{verb} after {}", session.last_seq()));
    let ids = ids.split('+').filter(|id| !id.is_empty());
    match verb {
        "s" => Message::new(Role::System, [text()]),
        "u" => Message::new(Role::User, [text()]),
        "a" => Message::assistant([text()]),
        "c" => Message::assistant(ids.map(call)),
        "r" => Message::new(Role::Tool, ids.map(result)),
        "m" => Message::new(Role::User, ids.map(result).chain([text()])),
        other => panic!("no such word: {other}"),
    }
}

fn call(id: &str) -> Block {
    ToolUse::new(id, "look", &serde_json::json!({ "at": id }))
        .unwrap()
        .into()
}

fn result(id: &str) -> Block {
    Block::ToolResult(ToolResult::ok(format!("seen {id}")).answers(id, "look"))
}

/// Returns the context in all four shapes.
fn contexts(session: &Session) -> [String; 4] {
    Shape::ALL.map(|shape| {
        let context = session.context(shape).unwrap();
        assert_eq!(context.skipped(), 0);
        context.into_json()
    })
}
