//! Moving the conversation: fork, rewind, undo and redo lead where they should,
//! whatever came before, and nothing that was said is ever out of reach.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use backtrail::{
    Compaction, ErrorKind, ForkOptions, Message, Note, RecordKind, Session, SessionOptions,
    SessionReader, Shape, StepKind, Storage, StorageFile, Store, StoreOptions,
};
use backtrail_testkit::MemoryStorage;

fn store(rotation: u64) -> Store {
    store_on(&MemoryStorage::new(), rotation)
}

fn store_on(memory: &MemoryStorage, rotation: u64) -> Store {
    StoreOptions::new()
        .storage(memory.clone())
        .rotation(rotation)
        .open_or_create("/store")
        .unwrap()
}

fn new_session(store: &Store) -> Session {
    store.create_session(SessionOptions::new()).unwrap()
}

/// Writes the line of history: what was said, `*` for a compaction.
fn line(reader: &SessionReader) -> String {
    let mut words = Vec::new();
    let mut records = reader.records().unwrap();
    while let Some(record) = records.next().unwrap() {
        match record.kind() {
            RecordKind::Message => words.push(record.message().unwrap().unwrap().text().into()),
            RecordKind::Compaction => words.push("*".to_owned()),
            _ => {}
        }
    }
    assert!(records.damage().is_empty(), "{:?}", records.damage());
    words.join(" ")
}

/// Plays a script: one word a step.
///
/// `undo`, `redo`, `fork`, `reopen`, `note`; `<N` rewinds to record N, `fork@N`
/// forks there, `compact-K` keeps K messages; any other word is said. `undo!` and
/// `redo!` find nothing to do.
fn play(store: &Store, script: &str) -> Session {
    let mut session = new_session(store);
    for word in script.split_whitespace() {
        session = step(store, session, word);
        let report = session.reader().verify().unwrap();
        assert!(report.is_ok(), "after {word} in {script}: {report:?}");
    }
    session
}

pub(crate) fn step(store: &Store, session: Session, word: &str) -> Session {
    match word {
        "undo" => drop(session.undo().unwrap().expect("something to undo")),
        "redo" => drop(session.redo().unwrap().expect("something to redo")),
        "undo!" => assert_eq!(session.undo().unwrap(), None),
        "redo!" => assert_eq!(session.redo().unwrap(), None),
        "note" => drop(session.note(&Note::new().title("t")).unwrap()),
        "fork" => return session.fork(&ForkOptions::new()).unwrap(),
        "reopen" => {
            let id = session.id().clone();
            session.close().unwrap();
            return store.open_session(&id).unwrap();
        }
        word => {
            if let Some(seq) = word.strip_prefix('<') {
                session.rewind_chat(seq.parse().unwrap()).unwrap().unwrap();
            } else if let Some(seq) = word.strip_prefix("fork@") {
                let options = ForkOptions::new().at(seq.parse().unwrap());
                return session.fork(&options).unwrap();
            } else if let Some(keep) = word.strip_prefix("compact-") {
                let compaction = Compaction::new("sum").keep(keep.parse().unwrap());
                session.compact(&compaction).unwrap();
            } else {
                session.append(Message::user_text(word)).unwrap();
            }
        }
    }
    session
}

/// A script, and the history that it must lead to.
const TABLE: &[(&str, &str)] = &[
    // Rewind, and what undo makes of it.
    ("a b c <2", "a b"),
    ("a b c <0", ""),
    ("a b c <0 d", "d"),
    ("a b c <2 d", "a b d"),
    ("a b c <2 undo", "a b c"),
    ("a b c <2 d undo", "a b c"),
    ("a b c <0 undo", "a b c"),
    ("a b c <2 undo d", "a b c d"),
    // Nothing to undo, nothing to redo.
    ("undo! redo!", ""),
    ("a b undo! redo!", "a b"),
    ("a b <1 redo!", "a"),
    ("a b <1 undo undo!", "a b"),
    // Redo comes forward again, with what was said.
    ("a b c <2 undo redo", "a b"),
    ("a b c <2 d undo redo", "a b d"),
    ("a b c <2 d undo redo undo", "a b c"),
    ("a b c <2 undo redo redo!", "a b"),
    ("a b c <2 undo redo undo redo undo redo", "a b"),
    ("a b c <2 undo redo undo redo undo", "a b c"),
    // Undo after undo.
    ("a b c <2 <1 undo", "a b"),
    ("a b c <2 <1 undo undo", "a b c"),
    ("a b c <2 <1 undo undo undo!", "a b c"),
    ("a b c <2 <1 undo undo redo", "a b"),
    ("a b c <2 <1 undo undo redo redo", "a"),
    ("a b c <2 <1 undo undo redo redo redo!", "a"),
    ("a b c <2 <1 undo undo redo undo redo redo", "a"),
    ("a b c d <3 e <2 f undo", "a b c e"),
    ("a b c d <3 e <2 f undo undo", "a b c d"),
    ("a b c d <3 e <2 f undo undo redo redo", "a b f"),
    // A new step, or anything said, ends redo; a note does not.
    ("a b c <2 undo d redo!", "a b c d"),
    ("a b c <2 undo <1 redo!", "a"),
    ("a b c <2 undo <1 undo", "a b c"),
    ("a b c <2 undo compact-1 redo!", "a b c *"),
    ("a b c <2 undo note redo", "a b"),
    ("a b c <2 <1 undo note undo note redo note redo", "a"),
    ("a b c <2 undo d undo!", "a b c d"),
    ("a b <1 c <1 d undo undo", "a b"),
    // Compactions.
    ("a b compact-1", "a b *"),
    ("a b compact-1 undo", "a b"),
    ("a b compact-1 c undo", "a b"),
    ("a b compact-1 c undo redo", "a b * c"),
    ("a b compact-1 c compact-1 undo", "a b * c"),
    ("a b compact-1 c compact-1 undo undo", "a b"),
    ("a b compact-1 c compact-1 undo undo redo redo", "a b * c *"),
    ("a b compact-1 c <2 undo", "a b * c"),
    ("a b compact-1 c d <4 e", "a b * c e"),
    ("a b compact-1 c d <4 undo undo", "a b"),
    ("a b compact-1 note c undo", "a b"),
    ("a note compact-0 undo", "a"),
    ("compact-0 undo", ""),
    // Forks: steps of the parent are the parent's.
    ("a b c fork d", "a b c d"),
    ("a b c fork@2 d", "a b d"),
    ("a b c fork@0 d", "d"),
    ("fork d", "d"),
    ("a b c <2 fork undo!", "a b"),
    ("a b compact-1 fork undo!", "a b *"),
    ("a b c fork@2 d <1 undo", "a b d"),
    ("a b c fork@2 d <1 e undo redo", "a e"),
    ("a b fork c fork d <1 undo", "a b c d"),
    ("a b fork c fork d <3 e undo undo!", "a b c d"),
    ("a b fork c fork@2 d <0 e undo", "a b d"),
    ("a b fork@1 fork@1 x <1 y undo redo undo", "a x"),
    ("a b c <2 d fork e <3 undo", "a b d e"),
    ("a b c <2 fork <1 fork <0 undo", "a"),
    // Across closing.
    ("a b c <2 reopen undo", "a b c"),
    ("a b c <2 undo reopen redo", "a b"),
    ("a b compact-1 reopen c undo reopen redo", "a b * c"),
];

#[test]
fn undo_and_redo_lead_where_the_table_says() {
    // Each in one trail, and with a trail for every record or two.
    for rotation in [u64::MAX, 1, 700] {
        for (script, expected) in TABLE {
            let store = store(rotation);
            let session = play(&store, script);
            let reader = session.reader();
            assert_eq!(line(&reader), *expected, "{script} (rotation {rotation})");
        }
    }
}

#[test]
fn the_steps_are_listed_as_text() {
    let store = store(u64::MAX);
    let session = play(&store, "a b c d compact-1 <3 <2 undo");
    let steps = session.reader().steps().unwrap();
    let kinds = |steps: &[backtrail::Step]| -> Vec<String> {
        steps.iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        kinds(&steps.to_undo),
        [
            "the rewind from record 5 to record 3",
            "the compaction of 3 messages at record 5"
        ]
    );
    assert_eq!(
        kinds(&steps.to_redo),
        ["the rewind from record 3 to record 2"]
    );
    assert!(steps.to_undo.iter().all(|step| step.at.is_some()));
    let moved = session.undo().unwrap().unwrap();
    let chat = moved.chat.unwrap();
    assert_eq!((chat.from, chat.to), (3, 5));
    assert_eq!(
        moved.step.unwrap().kind,
        StepKind::Rewind { from: 5, to: 3 }
    );
    assert_eq!(session.reader().steps().unwrap().to_redo.len(), 2);
}

#[test]
fn going_back_and_forth_does_not_make_the_line_longer() {
    let memory = MemoryStorage::new();
    let store = store_on(&memory, u64::MAX);
    let session = play(&store, "a b c <2");
    let mut openers: Vec<serde_json::Value> = Vec::new();
    for _ in 0..50 {
        session.undo().unwrap().unwrap();
        session.redo().unwrap().unwrap();
        let path = session
            .reader()
            .dir()
            .join(format!("{:04}.jsonl", openers.len() * 2 + 3));
        openers.push(opener(&memory, &path));
    }
    // Each continues the trail that holds the records, not the one before it.
    for opener in openers {
        assert_eq!(opener["continues"]["trail"], 0, "{opener}");
        assert!(opener["as_at"]["trail"].as_u64().unwrap() <= 1, "{opener}");
    }
    session.undo().unwrap().unwrap();
    assert_eq!(line(&session.reader()), "a b c");
}

#[test]
fn a_record_that_does_not_exist_is_named_and_nothing_moves() {
    let store = store(u64::MAX);
    let session = play(&store, "a b c");
    let error = session.rewind_chat(7).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(
        error.to_string().contains("no record 7; its last is 3"),
        "{error}"
    );
    let error = session.fork(&ForkOptions::new().at(9)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(
        session.rewind_chat(3).unwrap(),
        None,
        "it ends there already"
    );
    assert_eq!(line(&session.reader()), "a b c");
    assert_eq!(session.reader().info().unwrap().trails, 1);
    assert_eq!(store.sessions().unwrap().len(), 1);
}

/// A12: a new id, the parent's id, the name trimmed, and the exact place.
#[test]
fn a_fork_says_where_it_comes_from() {
    let store = store(u64::MAX);
    let session = play(&store, "a b c");
    session
        .note(&Note::new().title("the title").tags(["x"]).pinned(true))
        .unwrap();
    let fork = session
        .fork(&ForkOptions::new().at(2).branch_name("  try-2 "))
        .unwrap();
    let info = fork.reader().info().unwrap();
    let origin = info.forked_from.unwrap();
    assert_ne!(fork.id(), session.id());
    assert_eq!(origin.parent_session_id, session.id().as_str());
    assert_eq!(origin.branch_name.as_deref(), Some("try-2"));
    assert_eq!(origin.seq, Some(2));
    assert_eq!(info.title.as_deref(), Some("the title"), "as it is now");
    assert!(!info.pinned, "a pin is the parent's own");
    let blank = session.fork(&ForkOptions::new().branch_name("  ")).unwrap();
    let info = blank.reader().info().unwrap();
    assert_eq!(info.forked_from.unwrap().branch_name, None);
    // Both go their own way.
    fork.append(Message::user_text("x")).unwrap();
    session.append(Message::user_text("d")).unwrap();
    assert_eq!(line(&fork.reader()), "a b x");
    assert_eq!(line(&blank.reader()), "a b c");
    assert_eq!(line(&session.reader()), "a b c d");
}

#[test]
fn a_fork_needs_no_lock_of_its_parent_and_copies_nothing() {
    let memory = MemoryStorage::new();
    let store = store_on(&memory, u64::MAX);
    let session = new_session(&store);
    let large = "x".repeat(300_000);
    session.append(Message::user_text(large.clone())).unwrap();
    // `session` still speaks.
    let fork = store
        .fork_session(session.id(), &ForkOptions::new())
        .unwrap();
    let bytes: usize = fork
        .reader()
        .records()
        .unwrap()
        .owned()
        .map(|record| record.unwrap().as_ref().bytes().len())
        .sum();
    assert!(bytes > large.len());
    let trail = fork.reader().dir().join("0000.jsonl");
    let own = memory.open_read(&trail).unwrap().len().unwrap();
    assert!(own < 1000, "{own} bytes in the fork's own trail");
}

/// Reads the opener of a trail.
fn opener(memory: &MemoryStorage, path: &Path) -> serde_json::Value {
    let file = memory.open_read(path).unwrap();
    let mut bytes = vec![0; 2000];
    let n = file.read_at(&mut bytes, 0).unwrap();
    let line = bytes[..n].split(|b| *b == b'\n').next().unwrap();
    serde_json::from_slice(line).unwrap()
}

/// B2: history can be cleared, and that can be undone.
#[test]
fn history_can_be_cleared_and_the_clearing_undone() {
    let store = store(u64::MAX);
    let session = play(&store, "a b c compact-1 <0");
    assert_eq!(line(&session.reader()), "");
    assert_eq!(session.append(Message::user_text("z")).unwrap(), 1);
    let context = session.context(Shape::Neutral).unwrap();
    assert!(!context.as_json().contains("sum"), "{context:?}");
    session.undo().unwrap().unwrap();
    assert_eq!(line(&session.reader()), "a b c *");
}

#[test]
fn titles_and_tags_are_not_undone() {
    let store = store(u64::MAX);
    let session = play(&store, "a b c");
    session.note(&Note::new().title("first")).unwrap();
    session.append(Message::user_text("d")).unwrap();
    session.note(&Note::new().title("second")).unwrap();
    session.rewind_chat(2).unwrap().unwrap();
    let title = || session.reader().info().unwrap().title;
    assert_eq!(title().as_deref(), Some("second"));
    session.note(&Note::new().title("third")).unwrap();
    session.undo().unwrap().unwrap();
    assert_eq!(title().as_deref(), Some("third"));
}

/// What a rewind continues is named in its opener. Where that is gone, and what
/// lies below it too, the next trail that can be read continues.
#[test]
fn trails_in_which_nothing_can_be_read_hide_nothing_below_them() {
    let memory = MemoryStorage::new();
    let store = store_on(&memory, u64::MAX);
    let session = play(&store, "a b c <2 d <1 e");
    let dir = session.reader().dir();
    let id = session.id().clone();
    session.close().unwrap();
    for trail in ["0001.jsonl", "0002.jsonl"] {
        memory.write(&dir.join(trail), b"garbage\n").unwrap();
    }
    let session = store.open_session(&id).unwrap();
    session.append(Message::user_text("f")).unwrap();
    let records = session.reader().records().unwrap().owned();
    let texts: Vec<String> = records
        .filter_map(|record| record.unwrap().message().unwrap())
        .map(|message| message.text().into_owned())
        .collect();
    assert_eq!(texts, ["a", "b", "c", "f"]);
}

#[test]
fn a_repair_keeps_the_steps_that_were_there() {
    let memory = MemoryStorage::new();
    let store = store_on(&memory, u64::MAX);
    let session = play(&store, "a b c d compact-1 e <5 f");
    let id = session.id().clone();
    let steps = session.reader().steps().unwrap();
    let first = session.reader().dir().join("0000.jsonl");
    session.close().unwrap();
    let mut bytes = memory.read(&first).unwrap();
    let text = br#""text":"b""#;
    let at = bytes.windows(text.len()).position(|window| window == text);
    bytes[at.unwrap() + 8] = b'X';
    memory.write(&first, &bytes).unwrap();
    store.repair_plan(&id).unwrap().apply().unwrap();
    let session = store.open_session(&id).unwrap();
    assert_eq!(line(&session.reader()), "a c d * f");
    assert_eq!(session.reader().steps().unwrap(), steps);
    // Something new comes first, then what was there before.
    session.compact(&Compaction::new("sum")).unwrap();
    session.undo().unwrap().unwrap();
    assert_eq!(line(&session.reader()), "a c d * f");
    let moved = session.undo().unwrap().unwrap();
    assert_eq!(
        moved.step.unwrap().kind,
        StepKind::Rewind { from: 6, to: 5 }
    );
    session.redo().unwrap().unwrap();
    assert_eq!(line(&session.reader()), "a c d * f");
}

/// Two processes that tag at once both get their tags.
#[test]
fn tags_are_added_to_those_at_the_time_of_the_note() {
    let store = store(u64::MAX);
    let session = new_session(&store);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (store, id) = (store.clone(), session.id().clone());
            scope.spawn(move || {
                for n in 0..10 {
                    let note = Note::new().add_tag(format!("{thread}-{n}"));
                    store.note(&id, &note).unwrap();
                }
            });
        }
    });
    assert_eq!(session.reader().info().unwrap().tags.len(), 40);
    let note = Note::new().remove_tag("0-0").add_tag("1-1");
    session.note(&note).unwrap();
    assert_eq!(session.reader().info().unwrap().tags.len(), 39);
}

/// A disk on which something else happens just before the nth look at a
/// directory.
struct Meddling {
    inner: MemoryStorage,
    looks: AtomicUsize,
    nth: usize,
    meddle: Box<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for Meddling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meddling")
    }
}

impl Storage for Meddling {
    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        self.inner.create_new(path)
    }

    fn open_append(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        self.inner.open_append(path)
    }

    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        self.inner.open_read(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.inner.create_dir(path)
    }

    fn link_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.link_new(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.inner.remove_file(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        if self.looks.fetch_add(1, Ordering::Relaxed) == self.nth {
            (self.meddle)();
        }
        self.inner.list(dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.inner.exists(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.inner.sync_dir(dir)
    }
}

/// Whatever moves meanwhile, what is read is one state that the session had.
#[test]
fn a_context_and_an_export_are_of_one_line_also_while_the_conversation_moves() {
    let read = |reader: &SessionReader| {
        let mut export = Vec::new();
        reader.write_json(&mut export).unwrap();
        let mut export: serde_json::Value = serde_json::from_slice(&export).unwrap();
        export["updated_at_ms"] = 0.into();
        let context = reader.context(Shape::Neutral).unwrap().into_json();
        (context, export)
    };
    for nth in 0..12 {
        let memory = MemoryStorage::new();
        let session = play(&store_on(&memory, u64::MAX), "a b c d e f compact-2 g");
        let id = session.id().clone();
        let before = read(&session.reader());
        session.rewind_chat(3).unwrap();
        let after = read(&session.reader());
        session.undo().unwrap();
        let disk = Meddling {
            inner: memory,
            looks: AtomicUsize::new(0),
            nth,
            meddle: Box::new(move || {
                session.rewind_chat(3).unwrap();
            }),
        };
        // To open the store and the session takes looks of its own.
        let store = StoreOptions::new().storage(disk).open("/store").unwrap();
        let (context, export) = read(&store.read_session(&id).unwrap());
        assert!(
            context == before.0 || context == after.0,
            "{nth}: {context}"
        );
        assert!(export == before.1 || export == after.1, "{nth}: {export}");
    }
}
