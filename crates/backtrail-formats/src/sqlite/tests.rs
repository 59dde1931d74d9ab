//! Databases that SQLite itself wrote are read as it reads them, whatever it does meanwhile.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::UNIX_EPOCH;

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::pages::Stamp;
use super::record::Value;
use super::*;

/// SplitMix64: the same numbers in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn value(&mut self) -> rusqlite::types::Value {
        use rusqlite::types::Value as V;
        match self.below(10) {
            0 => V::Null,
            1 => V::Integer(self.next().cast_signed()),
            2 => V::Integer(i64::try_from(self.below(3)).unwrap() - 1),
            3 => V::Integer(i64::try_from(self.below(1 << 40)).unwrap()),
            4 => V::Real(f64::from(u32::try_from(self.below(1 << 30)).unwrap()) / 7.0),
            5 => V::Real(f64::from(u32::try_from(self.below(100)).unwrap())),
            6 => V::Text("äß𝄞 word ".repeat(usize::try_from(self.below(9)).unwrap())),
            7 => V::Text("long ".repeat(usize::try_from(self.below(10_000)).unwrap())),
            8 => V::Blob(vec![0xfe; usize::try_from(self.below(5_000)).unwrap()]),
            _ => V::Text(format!("{{\"n\":{}}}", self.next())),
        }
    }
}

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("test.db")
    }

    fn create(&self, setup: &str) -> Connection {
        let connection = Connection::open(self.path()).unwrap();
        connection.execute_batch(setup).unwrap();
        connection
    }
}

const TABLE: &str = "CREATE TABLE t (id TEXT PRIMARY KEY, \"a b\" REAL, b, c BLOB, d)";

/// Returns all rows as SQLite reads them.
fn theirs(connection: &Connection) -> Vec<String> {
    let mut statement = connection
        .prepare("SELECT rowid, * FROM t ORDER BY rowid")
        .unwrap();
    let columns = statement.column_count();
    let mut rows = statement.query([]).unwrap();
    let mut all = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        let values = (0..columns).map(|at| match row.get_ref(at).unwrap() {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(number) => Value::Integer(number),
            ValueRef::Real(number) => Value::Real(number),
            ValueRef::Text(text) => Value::Text(text.to_vec().into()),
            ValueRef::Blob(blob) => Value::Blob(blob.to_vec().into()),
        });
        all.push(described(values));
    }
    all
}

/// Describes the values of a row; of long ones, the length and a hash.
fn described<'v>(values: impl Iterator<Item = Value<'v>>) -> String {
    let one = |value: Value<'_>| match value {
        Value::Text(bytes) => format!("text {} {}", bytes.len(), blake3::hash(&bytes)),
        Value::Blob(bytes) => format!("blob {} {}", bytes.len(), blake3::hash(&bytes)),
        value => format!("{value:?}"),
    };
    values.map(one).collect::<Vec<_>>().join(", ")
}

/// Returns all rows as we read them: one after the other, and each by its rowid.
fn ours(path: &Path) -> Vec<String> {
    let snapshot = Snapshot::open(path).unwrap();
    let table = snapshot.table("t").unwrap();
    let mut all = Vec::new();
    let mut cursor = snapshot.cursor(table);
    let mut finder = snapshot.cursor(table);
    cursor.rewind().unwrap();
    while let Some(row) = cursor.next().unwrap() {
        let text = |row: &Row<'_>| {
            let columns = 0..table.columns.len();
            let values = columns.map(|at| row.value(at).unwrap());
            described(std::iter::once(Value::Integer(row.rowid)).chain(values))
        };
        let found = finder.find(row.rowid).unwrap().unwrap();
        assert_eq!(text(&row), text(&found));
        all.push(text(&row));
    }
    assert!(snapshot.is_valid());
    all
}

/// Changes a table at random.
fn change(connection: &Connection, numbers: &mut Numbers, times: u64) {
    for _ in 0..times {
        let id = format!("id{}", numbers.below(400));
        let values = (numbers.value(), numbers.value(), numbers.value());
        match numbers.below(5) {
            0 => connection.execute("DELETE FROM t WHERE id = ?1", (id,)),
            _ => connection.execute(
                "INSERT OR REPLACE INTO t VALUES (?1, ?2, ?3, ?4, 7)",
                (id, values.0, values.1, values.2),
            ),
        }
        .unwrap();
    }
}

#[test]
fn every_row_is_read_as_sqlite_reads_it() {
    let mut numbers = Numbers(1);
    for page_size in [512, 4096, 65_536] {
        for settings in [
            "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0;",
            "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=20;",
            "PRAGMA journal_mode=DELETE; PRAGMA auto_vacuum=FULL;",
            "PRAGMA journal_mode=TRUNCATE; PRAGMA encoding='UTF-16le';",
            "PRAGMA journal_mode=PERSIST; PRAGMA encoding='UTF-16be';",
        ] {
            let place = Place::new();
            let setup =
                format!("PRAGMA page_size={page_size}; PRAGMA synchronous=OFF; {settings} {TABLE}");
            let connection = place.create(&setup);
            for _ in 0..2 {
                change(&connection, &mut numbers, 60);
                assert_eq!(ours(&place.path()), theirs(&connection), "{setup}");
            }
            connection.execute_batch("VACUUM").unwrap();
            assert_eq!(ours(&place.path()), theirs(&connection), "{setup}");
            connection
                .execute_batch("ALTER TABLE t ADD COLUMN e TEXT DEFAULT 'it''s'")
                .unwrap();
            connection
                .execute_batch("ALTER TABLE t ADD COLUMN f DEFAULT -3.5")
                .unwrap();
            assert_eq!(ours(&place.path()), theirs(&connection), "{setup}");
            let expected = theirs(&connection);
            drop(connection);
            assert_eq!(ours(&place.path()), expected, "{setup}, closed");
        }
    }
}

#[test]
fn a_column_that_names_the_rowid_has_it() {
    for columns in [
        "t (id INTEGER PRIMARY KEY AUTOINCREMENT, x)",
        "t (x TEXT DEFAULT (datetime('now')), \"id\" INTEGER, PRIMARY KEY (id))",
        "t (id integer not null primary key, x, y AS (x || x), CHECK (id > 0, x))",
        "t (/* id */ id INTEGER PRIMARY KEY, -- the, key\n [x y] VARCHAR(3, 4) NOT NULL DEFAULT '')",
    ] {
        let place = Place::new();
        let Ok(connection) = Connection::open(place.path()) else {
            continue;
        };
        let created = connection.execute_batch(&format!("CREATE TABLE {columns}"));
        if created.is_err() {
            // A check with two values is no SQL.
            assert!(columns.contains("CHECK"));
            continue;
        }
        connection
            .execute_batch("INSERT INTO t (id) VALUES (5), (-9), (9000000000)")
            .unwrap();
        let snapshot = Snapshot::open(&place.path()).unwrap();
        let table = snapshot.table("T").unwrap();
        let id = table.column("ID").unwrap();
        let mut cursor = snapshot.cursor(table);
        cursor.rewind().unwrap();
        let mut ids = Vec::new();
        while let Some(row) = cursor.next().unwrap() {
            ids.push(row.value(id).unwrap().into_owned());
        }
        assert_eq!(ids, [-9, 5, 9_000_000_000].map(Value::Integer), "{columns}");
    }
}

/// Returns how many rows each of two tables has, and the number in a third, which SQLite always
/// changes together.
fn totals(path: &Path) -> Result<(u64, u64, i64)> {
    retry(path, || {
        let snapshot = Snapshot::open(path)?;
        let count = |name: &str| -> Result<u64> {
            let table = snapshot.table(name).unwrap();
            let mut cursor = snapshot.cursor(table);
            cursor.rewind()?;
            let mut rows = 0;
            while let Some(row) = cursor.next()? {
                row.value(1)?;
                rows += 1;
            }
            Ok(rows)
        };
        let read = || {
            let number = {
                let table = snapshot.table("c").unwrap();
                let row = snapshot.cursor(table).find(1)?.unwrap();
                match row.value(0)? {
                    Value::Integer(number) => number,
                    value => panic!("{value:?}"),
                }
            };
            Ok((count("a")?, count("b")?, number))
        };
        let result = read();
        match snapshot.is_valid() {
            true => result.map(Some),
            false => Ok(None),
        }
    })
}

const THREE_TABLES: &str = "CREATE TABLE a (id TEXT PRIMARY KEY, x);
    CREATE TABLE b (id TEXT PRIMARY KEY, x); CREATE TABLE c (n); INSERT INTO c VALUES (0);";

/// Makes one transaction that changes all three tables.
fn one_transaction(connection: &mut Connection, numbers: &mut Numbers) {
    let transaction = connection.transaction().unwrap();
    let text = "y".repeat(usize::try_from(numbers.below(9_000)).unwrap());
    let id = numbers.next().to_string();
    for table in ["a", "b"] {
        let insert = format!("INSERT INTO {table} VALUES (?1, ?2)");
        transaction.execute(&insert, (&id, &text)).unwrap();
    }
    transaction.execute("UPDATE c SET n = n + 1", ()).unwrap();
    transaction.commit().unwrap();
}

#[test]
fn a_database_that_is_written_meanwhile_is_read_as_of_one_moment() {
    for (settings, transactions) in [
        (
            "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=30; PRAGMA synchronous=OFF;",
            1_500,
        ),
        ("PRAGMA journal_mode=DELETE; PRAGMA synchronous=OFF;", 400),
    ] {
        let place = Place::new();
        let path = place.path();
        let mut connection = place.create(&format!("{settings} {THREE_TABLES}"));
        connection.busy_timeout(Duration::from_secs(60)).unwrap();
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut numbers = Numbers(2);
                for at in 0..transactions {
                    one_transaction(&mut connection, &mut numbers);
                    if at % 100 == 99 {
                        connection
                            .execute_batch("PRAGMA wal_checkpoint(TRUNCATE); VACUUM")
                            .unwrap();
                        // Readers of a database without a log need a pause.
                        std::thread::yield_now();
                    }
                }
                is_done.store(true, Ordering::Release);
            });
            let mut seen = 0;
            while !is_done.load(Ordering::Acquire) {
                let (a, b, n) = match totals(&path) {
                    Ok(totals) => totals,
                    Err(error) if error.message().contains("all the time") => continue,
                    Err(error) => panic!("{settings}: {error}"),
                };
                assert_eq!((a, i64::try_from(a).unwrap()), (b, n), "{settings}");
                assert!(n >= seen, "{settings}: {n} after {seen}");
                seen = n;
            }
        });
        let end = u64::try_from(transactions).unwrap();
        assert_eq!(
            totals(&path).unwrap(),
            (end, end, transactions),
            "{settings}"
        );
    }
}

#[test]
#[ignore = "not a test: the program that the next test kills"]
fn writer_that_is_killed() {
    let path = std::env::var("BACKTRAIL_TEST_DATABASE").expect("the next test starts it");
    let mut connection = Connection::open(path).unwrap();
    connection
        .execute_batch("PRAGMA wal_autocheckpoint=10; PRAGMA cache_size=5; PRAGMA synchronous=OFF")
        .unwrap();
    let mut numbers = Numbers(std::process::id().into());
    loop {
        one_transaction(&mut connection, &mut numbers);
        println!("one");
    }
}

#[test]
fn a_database_whose_program_was_killed_is_read_as_sqlite_would() {
    use std::io::BufRead as _;
    for mode in ["WAL", "DELETE", "PERSIST"] {
        for lines in [3, 20, 61] {
            let place = Place::new();
            drop(place.create(&format!("PRAGMA journal_mode={mode}; {THREE_TABLES}")));
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args([
                    "--exact",
                    "--ignored",
                    "sqlite::tests::writer_that_is_killed",
                    "--nocapture",
                ])
                .env("BACKTRAIL_TEST_DATABASE", place.path())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let output = std::io::BufReader::new(child.stdout.take().unwrap());
            let told = output
                .lines()
                .take(lines)
                .filter(|line| line.is_ok())
                .count();
            assert_eq!(told, lines);
            child.kill().unwrap();
            child.wait().unwrap();
            let before = database_stamp(&place.path());
            let ours = totals(&place.path()).unwrap();
            assert_eq!(database_stamp(&place.path()), before, "nothing was written");
            let connection = Connection::open(place.path()).unwrap();
            let one = |sql: &str| {
                connection
                    .query_row(sql, (), |row| row.get::<_, i64>(0))
                    .unwrap()
            };
            let count = |table: &str| one(&format!("SELECT count(*) FROM {table}"));
            let theirs = (count("a"), count("b"), one("SELECT n FROM c"));
            let ours = (
                i64::try_from(ours.0).unwrap(),
                i64::try_from(ours.1).unwrap(),
                ours.2,
            );
            assert_eq!(ours, theirs, "{mode} after {lines}");
        }
    }
}

#[test]
fn an_old_log_beside_a_newer_database_is_ignored() {
    let place = Place::new();
    let connection = place.create(&format!("PRAGMA journal_mode=WAL; {TABLE}"));
    let mut numbers = Numbers(3);
    change(&connection, &mut numbers, 30);
    let wal = place.dir.path().join("test.db-wal");
    let old = std::fs::read(&wal).unwrap();
    connection
        .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
        .unwrap();
    change(&connection, &mut numbers, 30);
    let expected = theirs(&connection);
    // The newer log, and then what an older one left behind it.
    assert_eq!(ours(&place.path()), expected);
    let mut both = std::fs::read(&wal).unwrap();
    both.extend_from_slice(&old[32.min(old.len())..]);
    let copy = Place::new();
    std::fs::copy(place.path(), copy.path()).unwrap();
    std::fs::write(copy.dir.path().join("test.db-wal"), &both).unwrap();
    assert_eq!(ours(&copy.path()), expected);
    // Cut anywhere, it ends at an earlier commit.
    for cut in [both.len() / 7, both.len() / 2, both.len() - old.len() / 2] {
        std::fs::write(copy.dir.path().join("test.db-wal"), &both[..cut]).unwrap();
        let rows = ours(&copy.path());
        assert!(rows.len() <= 60, "{}", rows.len());
    }
    // Without its log it is as it was when that was copied into it.
    std::fs::remove_file(copy.dir.path().join("test.db-wal")).unwrap();
    assert!(!ours(&copy.path()).is_empty());
}

#[test]
fn a_locked_database_and_one_that_cannot_be_written_are_read() {
    let place = Place::new();
    let connection = place.create(&format!("PRAGMA journal_mode=WAL; {TABLE}"));
    change(&connection, &mut Numbers(4), 50);
    let expected = theirs(&connection);
    connection
        .execute_batch("PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE; DELETE FROM t")
        .unwrap();
    let path = place.path();
    let mut permissions = std::fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&path, permissions).unwrap();
    assert_eq!(ours(&path), expected);
}

#[test]
fn a_database_with_a_time_in_the_future_is_read() {
    let place = Place::new();
    let connection = place.create(TABLE);
    change(&connection, &mut Numbers(8), 20);
    let file = std::fs::File::options()
        .append(true)
        .open(place.path())
        .unwrap();
    let later = std::time::SystemTime::now() + Duration::from_secs(86_400);
    file.set_modified(later).unwrap();
    assert_eq!(ours(&place.path()), theirs(&connection));
}

#[test]
fn only_a_stamp_that_every_later_change_would_alter_is_settled() {
    let place = Place::new();
    let connection = place.create("PRAGMA journal_mode=WAL; CREATE TABLE t (x)");
    connection
        .execute_batch("INSERT INTO t VALUES (1)")
        .unwrap();
    let stamp = database_stamp(&place.path());
    let at = |stamp: DatabaseStamp, after: Duration| {
        let changed = [stamp.file.modified_ns, stamp.wal.modified_ns].into_iter();
        let last = changed.max().unwrap().try_into().unwrap();
        stamp.is_settled(UNIX_EPOCH + Duration::from_nanos(last) + after)
    };
    let (soon, later) = (Duration::from_millis(1), Duration::from_secs(60));
    assert!(stamp.wal.len > 0);
    assert!(!at(stamp, soon));
    assert!(at(stamp, later));
    // Of the log alone, when the database did not change for long.
    let mut old = stamp;
    old.file = Stamp::default();
    assert!(!at(old, soon));
    // A file system may keep only seconds.
    let mut coarse = old;
    coarse.wal = Stamp::at_second(1_000);
    assert!(!at(coarse, Duration::from_millis(1_500)));
    assert!(at(coarse, Duration::from_millis(2_500)));
}

#[test]
fn damaged_databases_give_errors_and_end() {
    let place = Place::new();
    let connection = place.create(&format!("PRAGMA page_size=512; {TABLE}"));
    change(&connection, &mut Numbers(5), 120);
    drop(connection);
    let sound = std::fs::read(place.path()).unwrap();
    let mut numbers = Numbers(6);
    let copy = Place::new();
    let mut errors = 0;
    for _ in 0..600 {
        let mut bytes = sound.clone();
        for _ in 0..=numbers.below(20) {
            let at = usize::try_from(numbers.below(bytes.len() as u64)).unwrap();
            bytes[at] = numbers.next().to_le_bytes()[0];
        }
        if numbers.below(4) == 0 {
            bytes.truncate(usize::try_from(numbers.below(bytes.len() as u64)).unwrap());
        }
        std::fs::write(copy.path(), &bytes).unwrap();
        // Not `Snapshot::open`, which waits for a file that was just written.
        let Ok(pages) = Pages::open(&copy.path()) else {
            continue;
        };
        let Ok(schema) = Schema::read(&pages) else {
            continue;
        };
        let Some(table) = schema.table("t") else {
            continue;
        };
        let mut cursor = Cursor::new(&pages, table);
        errors += u64::from(cursor.rewind().is_err());
        let mut steps = 0_u64;
        loop {
            steps += 1;
            assert!(steps < 1_000_000, "it ends");
            match cursor.next() {
                Ok(None) => break,
                Ok(Some(row)) => {
                    for column in 0..table.columns.len() {
                        errors += u64::from(row.value(column).is_err());
                    }
                    errors += u64::from(Cursor::new(&pages, table).find(row.rowid).is_err());
                }
                Err(_) => errors += 1,
            }
        }
    }
    assert!(errors > 100, "{errors} errors");
}

#[test]
fn a_table_whose_definition_is_damaged_costs_no_other() {
    let place = Place::new();
    let connection = place.create(&format!("CREATE TABLE lost (x); {TABLE}"));
    change(&connection, &mut Numbers(7), 20);
    let expected = theirs(&connection);
    drop(connection);
    let mut bytes = std::fs::read(place.path()).unwrap();
    let at = bytes
        .windows(13)
        .position(|window| window == b"tablelostlost")
        .unwrap();
    bytes[at - 4..at].fill(0xff);
    std::fs::write(place.path(), bytes).unwrap();
    assert_eq!(ours(&place.path()), expected);
}
