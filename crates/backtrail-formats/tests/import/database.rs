//! Sessions in a database: each is imported as if it were a file of its own.

use std::path::{Path, PathBuf};

use backtrail::{LocalStorage, RecordKind, Store, StoreOptions, Timestamp};
use backtrail_formats::{
    Agent, Details, Environment, Event, Format, ImportOptions, ImportReport, Lines, MessageEvent,
    OpenFile, Origin, ReadReport, Result, Rows, Sessions, Source, Tables, import,
};
use backtrail_testkit::{Count, Fault, FaultyStorage, When};
use rusqlite::Connection;
use serde_json::Value;

/// Messages in a database: a table `sessions` and a table `messages`.
struct DatabaseToy;

impl Format for DatabaseToy {
    fn agent(&self) -> Agent {
        let mut agent = backtrail_formats::ClaudeCode.agent();
        (agent.name, agent.title) = ("database-toy", "Database toy");
        agent
    }

    fn directories(&self, environment: &Environment) -> Vec<PathBuf> {
        environment.directory("TOY", ".toy").into_iter().collect()
    }

    fn is_session_file(&self, path: &Path) -> bool {
        path.extension().is_some_and(|extension| extension == "db")
    }

    fn recognises(&self, source: &Source) -> bool {
        source.head().starts_with(b"{\"table\":\"messages\"")
    }

    fn tables(&self) -> Option<&'static Tables> {
        const TABLES: Tables = Tables {
            sessions: Sessions {
                table: "sessions",
                id: "id",
                parent: Some("parent"),
            },
            rows: &[Rows {
                table: "messages",
                session: "session",
                order: &["at"],
                below: None,
            }],
            columns: &["text"],
        };
        Some(&TABLES)
    }

    fn open<'s>(&self, source: &'s Source) -> Result<OpenFile<'s>> {
        let mut lines = Lines::new(source, 0, 0);
        let (mut rows, mut report) = (Vec::new(), ReadReport::default());
        while let Some(line) = lines.next()? {
            let value: Value = serde_json::from_slice(line.bytes).unwrap();
            (report.read_to, report.lines) = (line.range.end, line.number);
            rows.push(value["row"].clone());
        }
        let session = rows.pop().unwrap();
        let origin = match session["parent"].as_str() {
            Some(parent) => Origin::Spawned {
                session: Some(parent.to_owned()),
                tool_use_id: None,
            },
            None => Origin::Start,
        };
        let id = session["id"].as_str().unwrap().to_owned();
        Ok(OpenFile::new(id, origin, move |sink| {
            sink.details(Details {
                title: session["title"].as_str().map(str::to_owned),
                ..Details::default()
            })?;
            for row in rows {
                let key = row["id"].as_str().unwrap();
                let message = backtrail::Message::user_text(row["text"].to_string());
                let mut event = MessageEvent::new(key, message);
                event.at = row["at"].as_i64().and_then(Timestamp::from_millis);
                sink.event(Event::Message(event))?;
            }
            Ok(report)
        }))
    }
}

const SCHEMA: &str = "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0;
    CREATE TABLE sessions (id TEXT PRIMARY KEY, parent TEXT, title TEXT);
    CREATE TABLE messages (id TEXT PRIMARY KEY, session TEXT, at INTEGER, text TEXT);";

struct Kit {
    dir: tempfile::TempDir,
    store: Store,
    connection: Connection,
}

impl Kit {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(dir.path().join("store")).unwrap();
        std::fs::create_dir(dir.path().join("files")).unwrap();
        let connection = Connection::open(dir.path().join("files/all.db")).unwrap();
        connection.execute_batch(SCHEMA).unwrap();
        Self {
            dir,
            store,
            connection,
        }
    }

    fn database(&self) -> PathBuf {
        self.dir.path().join("files/all.db")
    }

    fn options(&self) -> ImportOptions {
        let files = self.dir.path().join("files");
        let environment = Environment::new(self.dir.path()).with("TOY", files);
        ImportOptions::new(environment).formats(vec![&DatabaseToy])
    }

    fn session(&self, id: &str, parent: Option<&str>) {
        let insert = "INSERT INTO sessions VALUES (?1, ?2, ?1 || ' title')";
        self.connection.execute(insert, (id, parent)).unwrap();
    }

    fn message(&self, session: &str, id: &str, at: i64, text: &str) {
        let at = 1_700_000_000_000 + at;
        let insert = "INSERT INTO messages VALUES (?1, ?2, ?3, ?4)";
        let values = (id, session, at, text);
        self.connection.execute(insert, values).unwrap();
    }

    fn import(&self) -> ImportReport {
        let report = import(&self.store, &self.options(), &|_| {}).unwrap();
        assert!(report.errors.is_empty(), "{:?}", report.errors);
        let errors = &report.agents[0].errors;
        assert!(errors.is_empty(), "{errors:?}");
        report
    }

    /// Returns new, updated, unchanged.
    fn counts(&self) -> (u64, u64, u64) {
        let report = self.import();
        let agent = &report.agents[0];
        assert_eq!(agent.found, agent.new + agent.updated + agent.unchanged);
        (agent.new, agent.updated, agent.unchanged)
    }

    fn keys(&self, id: &str) -> Vec<String> {
        let reader = self.store.read_session(&id.parse().unwrap()).unwrap();
        let mut records = reader.records().unwrap();
        let mut keys = Vec::new();
        while let Some(record) = records.next().unwrap() {
            if record.kind() == RecordKind::Message {
                keys.push(record.id().unwrap().into_owned());
            }
        }
        keys
    }

    fn kept(&self, id: &str) -> String {
        let reader = self.store.read_session(&id.parse().unwrap()).unwrap();
        let sources = reader.sources().unwrap();
        let mut bytes = Vec::new();
        reader.write_source(&sources[0], &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }
}

#[test]
fn each_session_of_a_database_is_imported_once_and_goes_on() {
    let kit = Kit::new();
    assert_eq!(kit.counts(), (0, 0, 0));
    kit.session("session-one-of-toys", None);
    kit.session("session-two-of-toys", None);
    kit.message("session-one-of-toys", "b", 2, "second");
    kit.message("session-one-of-toys", "a", 1, "first");
    kit.message("session-two-of-toys", "c", 3, "other");
    assert_eq!(kit.counts(), (2, 0, 0));
    assert_eq!(kit.keys("session-one-of-toys"), ["a", "b"]);
    assert_eq!(kit.keys("session-two-of-toys"), ["c"]);
    for _ in 0..2 {
        assert_eq!(kit.counts(), (0, 0, 2));
        std::fs::remove_dir_all(kit.store.root().join("derived")).unwrap();
    }
    kit.message("session-one-of-toys", "d", 4, "third");
    assert_eq!(kit.counts(), (0, 1, 1));
    assert_eq!(kit.keys("session-one-of-toys"), ["a", "b", "d"]);
    // A checkpoint and a vacuum move rows, and change nothing.
    kit.connection
        .execute_batch("PRAGMA wal_checkpoint(TRUNCATE); VACUUM")
        .unwrap();
    assert_eq!(kit.counts(), (0, 0, 2));
}

#[test]
fn a_change_is_seen_whatever_its_size_and_however_soon_it_comes() {
    let id = "session-one-of-toys";
    let moves = [
        "SELECT 1",
        "PRAGMA wal_checkpoint(PASSIVE)",
        "PRAGMA wal_checkpoint(RESTART)",
        "PRAGMA wal_checkpoint(TRUNCATE)",
        "VACUUM",
        "PRAGMA journal_mode=DELETE",
        "VACUUM",
        "PRAGMA journal_mode=WAL",
    ];
    let kit = Kit::new();
    kit.session(id, None);
    let text = |n: usize| format!("{}{n:02}", "long ".repeat(4_000));
    kit.message(id, "a", 1, &text(0));
    kit.message(id, "b", 2, "short 00");
    kit.import();
    for n in 1..=3 * moves.len() {
        // Of the same length, and at the end of a row that is longer than a page.
        let (row, new) = match n % 2 {
            0 => ("a", text(n)),
            _ => ("b", format!("short {n:02}")),
        };
        let update = "UPDATE messages SET text = ?2 WHERE id = ?1";
        kit.connection.execute(update, (row, &new)).unwrap();
        let mut other = kit.connection.prepare(moves[n % moves.len()]).unwrap();
        other.query(()).unwrap().next().unwrap();
        assert_eq!(kit.counts(), (0, 1, 0), "change {n}");
        assert!(kit.kept(id).contains(&new), "change {n}");
        assert_eq!(kit.counts(), (0, 0, 1), "after change {n}");
    }
}

#[test]
fn the_rows_of_a_session_are_kept() {
    let kit = Kit::new();
    kit.session("session-one-of-toys", None);
    kit.message("session-one-of-toys", "a", 1, "{\"is\": [1, 2.50]}");
    kit.message("session-one-of-toys", "b", 2, "{\"is\":\n1}");
    kit.import();
    let expected = concat!(
        r#"{"table":"messages","row":{"id":"a","session":"session-one-of-toys","#,
        r#""at":1700000000001,"text":{"is": [1, 2.50]}}}"#,
        "\n",
        r#"{"table":"messages","row":{"id":"b","session":"session-one-of-toys","#,
        r#""at":1700000000002,"text":"{\"is\":\n1}"}}"#,
        "\n",
        r#"{"table":"sessions","row":{"id":"session-one-of-toys","parent":null,"#,
        r#""title":"session-one-of-toys title"}}"#,
        "\n",
    );
    assert_eq!(kit.kept("session-one-of-toys"), expected);
}

#[test]
fn a_message_that_is_gone_rewinds_the_session_and_a_session_that_is_gone_stays() {
    let kit = Kit::new();
    kit.session("session-one-of-toys", None);
    kit.session("session-two-of-toys", None);
    for (id, at) in [("a", 1), ("b", 2), ("c", 3)] {
        kit.message("session-one-of-toys", id, at, "text");
    }
    kit.message("session-two-of-toys", "z", 3, "other");
    kit.import();
    kit.connection
        .execute_batch("DELETE FROM messages WHERE id = 'b' OR id = 'c' OR id = 'z'")
        .unwrap();
    kit.connection
        .execute_batch("DELETE FROM sessions WHERE id = 'session-two-of-toys'")
        .unwrap();
    kit.message("session-one-of-toys", "d", 4, "other way");
    assert_eq!(kit.counts(), (0, 1, 0));
    assert_eq!(kit.keys("session-one-of-toys"), ["a", "d"]);
    assert_eq!(kit.keys("session-two-of-toys"), ["z"]);
}

#[test]
fn sub_agents_come_after_their_parents_and_rows_of_no_session_are_counted() {
    let kit = Kit::new();
    kit.session("session-child-of-toy", Some("session-parent-of-toy"));
    kit.session("session-parent-of-toy", None);
    kit.message("session-child-of-toy", "a", 1, "child");
    kit.message("session-parent-of-toy", "b", 2, "parent");
    kit.message("nobody", "c", 3, "lost");
    let report = kit.import();
    let left = &report.agents[0].not_imported;
    assert_eq!(left.get("messages rows without a session"), Some(&1));
    let child = "session-child-of-toy".parse().unwrap();
    let info = kit.store.read_session(&child).unwrap().info().unwrap();
    assert!(info.spawned_by.is_some());
    // They are counted again while they are there, though nothing changed.
    let report = kit.import();
    assert_eq!(report.agents[0].not_imported.len(), 1);
}

#[test]
fn two_imports_at_once_import_each_session_once() {
    let kit = Kit::new();
    for at in 0..40 {
        let id = format!("session-number-{at}");
        kit.session(&id, None);
        kit.message(&id, &format!("m{at}"), at, "text");
    }
    let options = kit.options();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let store = Store::open_or_create(kit.store.root()).unwrap();
            let options = &options;
            scope.spawn(move || import(&store, options, &|_| {}).unwrap());
        }
    });
    // What another one was importing is imported now.
    kit.import();
    assert_eq!(kit.store.sessions().unwrap().len(), 40);
    for at in 0..40 {
        assert_eq!(
            kit.keys(&format!("session-number-{at}")),
            [format!("m{at}")]
        );
    }
}

// F5.
#[test]
fn f5_an_import_of_a_database_that_is_killed_anywhere_is_made_whole_by_the_next() {
    let mut killed = 0;
    for n in 0.. {
        let kit = Kit::new();
        let sessions = ["session-one-of-toys", "session-two-of-toys"];
        for session in sessions {
            kit.session(session, None);
            kit.message(session, &format!("{session}-a"), 1, "text");
        }
        let disk = FaultyStorage::new(LocalStorage).counting(Count::Writes);
        let faulty = StoreOptions::new().storage(disk.clone());
        let faulty = faulty.open(kit.store.root()).unwrap();
        disk.arm(n, Fault::Crash { when: When::Before });
        import(&faulty, &kit.options(), &|_| {}).ok();
        let fired = disk.fired();
        drop(faulty);
        kit.import();
        for session in sessions {
            assert_eq!(kit.keys(session), [format!("{session}-a")], "write {n}");
            assert!(kit.kept(session).ends_with(" title\"}}\n"), "write {n}");
        }
        assert_eq!(kit.counts(), (0, 0, 2), "write {n}");
        if !fired {
            break;
        }
        killed += 1;
    }
    assert!(killed > 5, "{killed}");
}

#[test]
fn a_database_that_is_named_is_recognised_and_its_log_is_no_other_file() {
    let kit = Kit::new();
    kit.session("session-one-of-toys", None);
    kit.message("session-one-of-toys", "a", 1, "text");
    for path in [kit.database(), kit.dir.path().join("files")] {
        let options = kit.options().paths(vec![path]);
        let report = import(&kit.store, &options, &|_| {}).unwrap();
        assert!(report.errors.is_empty(), "{:?}", report.errors);
        assert!(report.other_files.is_empty(), "{:?}", report.other_files);
        assert_eq!(report.agents[0].found, 1);
    }
    assert_eq!(kit.keys("session-one-of-toys"), ["a"]);
    // One without these tables is not of this agent.
    let other = kit.dir.path().join("other.db");
    let connection = Connection::open(&other).unwrap();
    connection.execute_batch("CREATE TABLE t (x)").unwrap();
    let options = kit.options().paths(vec![other]);
    let report = import(&kit.store, &options, &|_| {}).unwrap();
    assert_eq!(report.errors.len(), 1);
    assert_eq!(
        report.errors[0].message(),
        "an SQLite database, but not one of Database toy"
    );
    // Neither is a log, nor a database whose beginning is destroyed.
    let log = kit.dir.path().join("files/all.db-wal");
    let report = import(&kit.store, &kit.options().paths(vec![log]), &|_| {}).unwrap();
    let message = report.errors[0].message();
    assert!(message.starts_with("a part of the database"), "{message}");
    std::fs::write(kit.dir.path().join("files/broken.db"), "garbage\n").unwrap();
    std::fs::write(kit.dir.path().join("files/empty.db"), "").unwrap();
    let report = import(&kit.store, &kit.options(), &|_| {}).unwrap();
    let errors = &report.agents[0].errors;
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].message().starts_with("not an SQLite database"));
    assert_eq!(kit.store.sessions().unwrap().len(), 1);
}

#[test]
fn a_database_that_cannot_be_read_is_found_and_named() {
    let kit = Kit::new();
    kit.session("pears", None);
    kit.message("pears", "m1", 1, "three");
    let damaged = kit.dir.path().join("files/bad.db");
    std::fs::write(&damaged, "eggs, milk").unwrap();
    let cut = kit.dir.path().join("files/cut.db");
    std::fs::write(&cut, &std::fs::read(kit.database()).unwrap()[..60]).unwrap();
    std::fs::write(kit.dir.path().join("files/empty.db"), "").unwrap();
    let report = import(&kit.store, &kit.options(), &|_| {}).unwrap();
    let agent = &report.agents[0];
    let paths: Vec<_> = agent
        .errors
        .iter()
        .filter_map(|error| error.path())
        .collect();
    assert_eq!(paths, [damaged.as_path(), cut.as_path()]);
    let reason = agent.errors[0].message();
    assert!(reason.starts_with("not an SQLite database"), "{reason}");
    assert_eq!((agent.found, agent.new), (4, 1));
    assert_eq!((agent.unchanged, agent.without_conversation), (1, 1));
}
