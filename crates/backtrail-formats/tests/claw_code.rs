//! claw-code's files, which are those of version 1: every sample is read and comes to what
//! an independent reader counts, and importing them keeps the store whole (A8, A9, F5, F7,
//! F22).

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test reads and writes files of its own"
)]

mod counted;

use std::path::{Component, Path, PathBuf};

use backtrail::{
    Message, RecordKind, Session, SessionReader, Shape, Store, StoreOptions, Transcript,
};
use backtrail_formats::{ClawCode, Environment, ImportOptions, ImportReport, import, testing};
use backtrail_testkit::{
    Count, Fault, FaultyStorage, Loss, ManualClock, MemoryStorage, SeededRandomness, When,
};

const LINES: &str = r#"{"created_at_ms":1794726326111,"model":"m","session_id":"<id>","type":"session_meta","updated_at_ms":1794726326113,"version":1}
{"count":2,"removed_message_count":12,"summary":"they met before","type":"compaction"}
{"message":{"blocks":[{"text":"fix the bug","type":"text"}],"role":"user"},"type":"message"}
{"message":{"blocks":[{"text":"It is done.","type":"text"}],"role":"assistant"},"type":"message"}
"#;
const OBJECT: &str = r#"{"compaction":{"count":2,"removed_message_count":12,"summary":"they met before"},"messages":[{"blocks":[{"text":"fix the bug","type":"text"}],"role":"user"},{"blocks":[{"text":"It is done.","type":"text"}],"role":"assistant"}],"version":1}"#;

/// A directory with a file to import.
struct Desk {
    dir: tempfile::TempDir,
    file: PathBuf,
}

impl Desk {
    fn new(name: &str, content: impl AsRef<[u8]>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(name);
        std::fs::write(&file, content).unwrap();
        Self { dir, file }
    }

    fn import(&self, store: &Store) -> backtrail_formats::Result<ImportReport> {
        let options = ImportOptions::new(Environment::default())
            .formats(vec![&ClawCode])
            .paths(vec![self.file.clone()]);
        import(store, &options, &|_| {})
    }
}

fn store_on(storage: impl backtrail::Storage) -> StoreOptions {
    StoreOptions::new()
        .storage(storage)
        .clock(ManualClock::new(1_794_729_600_000))
        .randomness(SeededRandomness::new(7))
}

fn texts(reader: &SessionReader) -> Vec<String> {
    let mut texts = Vec::new();
    let mut records = reader.records().unwrap();
    while let Some(record) = records.next().unwrap() {
        if record.kind() == RecordKind::Message {
            let message = record.message().unwrap().unwrap();
            texts.push(message.text().into_owned());
        }
    }
    texts
}

/// Returns the file that a session was imported from.
fn file_of(reader: &SessionReader) -> Vec<u8> {
    let sources = reader.sources().unwrap();
    assert_eq!(sources.len(), 1);
    let mut bytes = Vec::new();
    reader.write_source(&sources[0], &mut bytes).unwrap();
    bytes
}

/// Checks that a store has the session, whole, and nothing else.
fn assert_whole(store: &Store, content: &str, at: &str) {
    let ids = store.sessions().unwrap();
    assert_eq!(ids.len(), 1, "{at}");
    let reader = store.read_session(&ids[0]).unwrap();
    assert_eq!(texts(&reader), ["fix the bug", "It is done."], "{at}");
    assert_eq!(file_of(&reader), content.as_bytes(), "{at}");
    assert!(reader.verify().unwrap().is_ok(), "{at}");
    let context = reader.context(Shape::Neutral).unwrap();
    assert!(context.as_json().contains("they met before"), "{at}");
}

/// Checks a store in which an import was interrupted: every session in it reads, and
/// importing again completes it.
fn assert_completed(memory: MemoryStorage, desk: &Desk, content: &str, at: &str) {
    let store = store_on(memory.clone()).open_or_create("/store").unwrap();
    for (id, info) in store.infos().unwrap() {
        info.unwrap_or_else(|error| panic!("{at}: {error:?}"));
        let report = store.read_session(&id).unwrap().verify().unwrap();
        assert!(report.is_ok(), "{at}: {report:?}");
    }
    let report = desk.import(&store).unwrap();
    assert!(report.agents[0].errors.is_empty(), "{at}: {report:?}");
    assert_whole(&store, content, at);
    let after = store_on(memory.crash(Loss::Unsynced))
        .open("/store")
        .unwrap();
    assert_whole(&after, content, &format!("{at}, then a power cut"));
    assert_eq!(std::fs::read(&desk.file).unwrap(), content.as_bytes());
}

fn both() -> [(&'static str, String); 2] {
    [
        ("talk.jsonl", LINES.replace("<id>", "talk")),
        ("talk.json", OBJECT.to_owned()),
    ]
}

#[test]
fn f5_a_crash_at_any_operation_leaves_sessions_that_read_and_importing_again_completes() {
    let faults = [
        Fault::Crash { when: When::Before },
        Fault::Crash { when: When::After },
        Fault::Tear {
            numerator: 1,
            denominator: 3,
        },
    ];
    for (name, content) in both() {
        let desk = Desk::new(name, &content);
        for fault in faults {
            for n in 0.. {
                let memory = MemoryStorage::new();
                let disk = FaultyStorage::new(memory.clone()).counting(Count::Writes);
                let store = store_on(disk.clone()).open_or_create("/store").unwrap();
                disk.arm(n, fault);
                let outcome = desk.import(&store);
                let at = format!("{name}, {fault:?} at {n}");
                for after in [memory.kill(), memory.crash(Loss::Unsynced)] {
                    assert_completed(after, &desk, &content, &at);
                }
                if !disk.fired() {
                    assert!(n > 15, "only {n} operations");
                    assert_eq!(outcome.unwrap().agents[0].new, 1);
                    break;
                }
            }
        }
    }
}

#[test]
fn f22_an_error_at_any_operation_is_reported_and_importing_again_completes() {
    const EIO: i32 = 5;
    const ENOSPC: i32 = 28;
    for (name, content) in both() {
        let desk = Desk::new(name, &content);
        for number in [EIO, ENOSPC] {
            for n in 0.. {
                let memory = MemoryStorage::new();
                let disk = FaultyStorage::new(memory.clone()).counting(Count::All);
                let store = store_on(disk.clone()).open_or_create("/store").unwrap();
                disk.arm(n, Fault::Error(number));
                let outcome = desk.import(&store);
                let at = format!("{name}, {number} at {n}");
                drop(store);
                assert_completed(memory.kill(), &desk, &content, &at);
                if !disk.fired() {
                    assert!(n > 25, "only {n} operations");
                    outcome.unwrap();
                    break;
                }
            }
        }
    }
}

/// A8: another session with the file's id keeps it, and the file gets another.
#[test]
fn a_session_of_our_own_is_never_taken_for_the_file() {
    let memory = MemoryStorage::new();
    let store = store_on(memory).open_or_create("/store").unwrap();
    let ours: Session = store.create_session(Default::default()).unwrap();
    ours.append(Message::user_text("mine")).unwrap();
    let id = ours.id().clone();
    ours.close().unwrap();
    let desk = Desk::new("talk.jsonl", LINES.replace("<id>", id.as_str()));
    assert_eq!(desk.import(&store).unwrap().agents[0].new, 1);
    assert_eq!(texts(&store.read_session(&id).unwrap()), ["mine"]);
    let other = store.sessions().unwrap().into_iter().find(|it| *it != id);
    let reader = store.read_session(&other.unwrap()).unwrap();
    assert_eq!(texts(&reader), ["fix the bug", "It is done."]);
    assert_eq!(
        reader.info().unwrap().original_id.as_deref(),
        Some(id.as_str())
    );
}

// F7
#[test]
fn f7_an_id_that_is_a_path_never_reaches_the_file_system() {
    let long = "x".repeat(300);
    let ids = [
        "../../x",
        "/etc/passwd",
        "..",
        ".",
        "",
        " ",
        "a/b",
        "a\\\\b",
        "C:",
        "-rf",
        "a b",
        "ü",
        "latest",
        "x\\u0000y",
        "x\\ny",
        "\\ud800",
        &long,
    ];
    for id in ids {
        let memory = MemoryStorage::new();
        let store = store_on(memory.clone()).open_or_create("/store").unwrap();
        let desk = Desk::new("talk.jsonl", LINES.replace("<id>", id));
        assert_eq!(desk.import(&store).unwrap().agents[0].new, 1, "{id:?}");
        let made = store.sessions().unwrap();
        assert_eq!(made.len(), 1, "{id:?}");
        for path in memory.files() {
            assert!(path.starts_with("/store"), "{id:?} made {path:?}");
            let up = path.components().any(|part| part == Component::ParentDir);
            assert!(!up, "{id:?} made {path:?}");
        }
        let inside = Path::new("/store/sessions").join(made[0].as_str());
        assert!(memory.files().iter().any(|path| path.starts_with(&inside)));
        assert!(desk.dir.path().join("talk.jsonl").exists());
    }
}

#[test]
fn the_samples_agree_with_an_independent_reader() {
    let Some(samples) = counted::samples() else {
        return;
    };
    let files = counted::files(&samples.join("claw-code"));
    assert!(files.len() >= 22, "{} samples", files.len());
    for file in files {
        let (report, collected) = counted::read(&ClawCode, &file);
        assert_eq!(report.damage.count, 0, "{}", file.display());
        assert!(
            collected.session.starts_with("session-177"),
            "{}",
            collected.session
        );
        let Some(expected) = counted::independent("claw_code.py", &file) else {
            return;
        };
        counted::assert_agrees(&file, &collected, &expected);
        println!("{}: {expected}", file.display());
        // The engine reads the same form by itself.
        let engine = Transcript::load_from_path(&file).expect("it can be read");
        let ours: Vec<_> = collected
            .messages()
            .map(|said| said.message.clone())
            .collect();
        assert_eq!(engine.messages(), ours, "{}", file.display());
        let bytes = std::fs::read(&file).expect("it can be read");
        for part in 0..12 {
            testing::check(
                &ClawCode,
                &file.to_string_lossy(),
                &bytes,
                bytes.len() * part / 11,
            );
        }
    }
}
