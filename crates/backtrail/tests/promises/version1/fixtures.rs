//! Stores that an earlier version wrote, whose sessions begin with a file of version 1,
//! read and continue as they did then. `fixtures/version1/README.md` says how they were
//! made.

use std::path::{Path, PathBuf};

use backtrail::{Compaction, Message, SessionId, Shape, Storage, Store};
use backtrail_testkit::MemoryStorage;
use serde_json::{Map, Value, json};

use super::disk::{Desk, ROOT, both_ends, doors, line};

/// A store that an earlier version wrote, and what that version read in it.
struct Fixture {
    name: String,
    desk: Desk,
    /// The first trails, which must stay as they are.
    first: Vec<(PathBuf, Vec<u8>)>,
    expected: Map<String, Value>,
}

impl Fixture {
    #[expect(clippy::disallowed_methods, reason = "a test reads its fixtures")]
    fn all() -> Vec<Self> {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/promises/fixtures/version1");
        let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
        let dirs = entries
            .map(|entry| entry.path())
            .filter(|path| path.is_dir());
        let all: Vec<Self> = dirs.map(|dir| Self::read(&dir)).collect();
        assert_eq!(all.len(), 12);
        all
    }

    #[expect(clippy::disallowed_methods, reason = "a test reads its fixtures")]
    fn read(dir: &Path) -> Self {
        let memory = MemoryStorage::new();
        copy(&memory, &dir.join("store"), Path::new(ROOT));
        let desk = Desk::on(memory);
        let first = desk.everything().into_iter();
        let first = first.filter(|(path, bytes)| {
            let is_ours = bytes.starts_with(b"{\"type\":\"session_meta\",\"version\":2");
            path.ends_with("0000.jsonl") && !is_ours
        });
        let expected = std::fs::read_to_string(dir.join("expected.json")).unwrap();
        Self {
            name: dir.file_name().unwrap().to_string_lossy().into_owned(),
            first: first.collect(),
            desk,
            expected: serde_json::from_str(&expected).unwrap(),
        }
    }

    fn ids(&self) -> Vec<SessionId> {
        self.expected.keys().map(|id| id.parse().unwrap()).collect()
    }

    fn assert_first_trails(&self) {
        for (path, bytes) in &self.first {
            assert_eq!(&self.desk.memory.read(path).unwrap(), bytes, "{path:?}");
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a test reads its fixtures")]
fn copy(memory: &MemoryStorage, from: &Path, to: &Path) {
    memory.create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, to) = {
            let entry = entry.unwrap();
            (entry.path(), to.join(entry.file_name()))
        };
        if path.is_dir() {
            copy(memory, &path, &to);
        } else {
            memory.write(&to, &std::fs::read(&path).unwrap()).unwrap();
        }
    }
}

/// Reads all that can be read of a session.
fn read(store: &Store, id: &SessionId) -> Value {
    let reader = store.read_session(id).unwrap();
    let (history, damaged) = doors(&reader);
    let mut v1 = Vec::new();
    reader.write_v1(&mut v1).unwrap();
    let info = reader.info().unwrap();
    let stats = reader.stats().unwrap();
    let context = reader.context(Shape::Neutral).unwrap().into_json();
    json!({
        "history": history,
        "damaged": damaged,
        "context": serde_json::from_str::<Value>(&context).unwrap(),
        "transcript": reader.transcript().unwrap(),
        "version 1": String::from_utf8(v1).unwrap(),
        "messages": stats.messages.total,
        "tool calls": stats.tool_calls,
        "verified": reader.verify().unwrap().is_ok(),
        "title": info.title,
        "model": info.model,
        "workspace": info.workspace_root,
        "created_at": info.created_at,
        "updated_at": info.updated_at,
        "begins": info.begins,
        "forked_from": info.forked_from,
        "original_id": info.original_id,
        "last_seq": info.last_seq,
        "trails": info.trails,
    })
}

// A8, A9, A12
#[test]
fn an_old_store_reads_as_it_did() {
    for fixture in Fixture::all() {
        let name = &fixture.name;
        assert_eq!(
            fixture.desk.store.sessions().unwrap().len(),
            fixture.ids().len()
        );
        for id in fixture.ids() {
            let found = read(&fixture.desk.store, &id);
            let expected = &fixture.expected[id.as_str()];
            for (field, value) in expected.as_object().unwrap() {
                assert_eq!(&found[field], value, "{field} of {id} in {name}");
            }
        }
        fixture.assert_first_trails();
    }
}

// A11, A12, B2
#[test]
fn an_old_store_continues_rewinds_undoes_compacts_and_forks() {
    for fixture in Fixture::all() {
        for id in fixture.ids() {
            let at = format!("{id} in {}", fixture.name);
            let desk = &fixture.desk;
            let (before, damaged) = both_ends(&desk.reader(&id));
            let session = desk.store.open_session(&id).unwrap();
            session.append(Message::user_text("continued")).unwrap();
            session.compact(&Compaction::new("all of it")).unwrap();
            session.undo().unwrap().unwrap();
            let (after, _) = both_ends(&session.reader());
            assert!(after.starts_with(&before), "{at}");
            session.rewind_chat(0).unwrap().unwrap();
            assert_eq!(line(&session.reader()), "", "{at}");
            session.undo().unwrap().unwrap();
            let fork = session.fork(&Default::default()).unwrap();
            for session in [&session, &fork] {
                let (history, now) = both_ends(&session.reader());
                assert_eq!((&history, now), (&after, damaged), "{at}");
                assert!(session.reader().verify().unwrap().is_ok(), "{at}");
            }
            assert!(desk.store.repair_plan(&id).unwrap().is_empty(), "{at}");
        }
        fixture.assert_first_trails();
    }
}

/// The second trail that a writer makes for half an import is the one that the import
/// itself would have made: so all tests that make old sessions that way stand on what
/// the earlier version wrote.
#[test]
fn the_second_trail_is_made_as_the_earlier_version_made_it() {
    let mut compared = 0;
    for fixture in Fixture::all() {
        for id in fixture.ids() {
            let desk = &fixture.desk;
            let second = desk.trail(&id, 1);
            let Ok(expected) = desk.memory.read(&second) else {
                continue;
            };
            if desk.reader(&id).info().unwrap().trails != 2 {
                continue;
            }
            desk.memory.remove_file(&second).unwrap();
            desk.store.open_session(&id).unwrap().close().unwrap();
            let made = desk.memory.read(&second).unwrap();
            let opener = |bytes: &[u8]| -> Value {
                let line = bytes.split(|byte| *byte == b'\n').next().unwrap();
                let mut opener: Value = serde_json::from_slice(line).unwrap();
                // When it was made, and what covers that.
                for field in ["at", "sum"] {
                    opener[field].take();
                }
                opener
            };
            assert_eq!(opener(&made), opener(&expected), "{id} in {}", fixture.name);
            compared += 1;
        }
    }
    assert!(compared >= 8, "{compared}");
}
