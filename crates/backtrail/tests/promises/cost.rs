//! The cost of a long history: opening, moving and rendering read the same amount however
//! long the history is, and no turn rewrites earlier messages.
//!
//! Times are measured in `bench/`. Here the bytes read and written are counted, which
//! determine the time but do not depend on the machine.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use backtrail::{
    Compaction, Durability, ForkOptions, Message, SessionId, SessionOptions, Shape, Storage,
    StorageFile, Store, StoreOptions,
};
use backtrail_testkit::MemoryStorage;

/// The bytes that went through a storage.
#[derive(Debug, Default)]
struct Counts {
    read: AtomicU64,
    written: AtomicU64,
}

impl Counts {
    fn take(&self) -> (u64, u64) {
        let read = self.read.swap(0, Ordering::Relaxed);
        (read, self.written.swap(0, Ordering::Relaxed))
    }
}

#[derive(Debug, Clone)]
struct Counting {
    inner: MemoryStorage,
    counts: Arc<Counts>,
}

#[derive(Debug)]
struct CountingFile {
    inner: Arc<dyn StorageFile>,
    counts: Arc<Counts>,
}

impl Counting {
    fn new() -> Self {
        Self {
            inner: MemoryStorage::new(),
            counts: Arc::default(),
        }
    }

    fn count(&self, file: Arc<dyn StorageFile>) -> Arc<dyn StorageFile> {
        Arc::new(CountingFile {
            inner: file,
            counts: Arc::clone(&self.counts),
        })
    }

    fn store(&self, rotation: u64) -> Store {
        StoreOptions::new()
            .storage(self.clone())
            .durability(Durability::Os)
            .rotation(rotation)
            .open_or_create("/store")
            .unwrap()
    }
}

impl Storage for Counting {
    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        Ok(self.count(self.inner.create_new(path)?))
    }

    fn open_append(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        Ok(self.count(self.inner.open_append(path)?))
    }

    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        Ok(self.count(self.inner.open_read(path)?))
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
        self.inner.list(dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.inner.exists(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.inner.sync_dir(dir)
    }
}

impl StorageFile for CountingFile {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let n = self.inner.read_at(buf, offset)?;
        self.counts.read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.inner.append(bytes)?;
        self.counts.written.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.inner.truncate(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }

    fn lock(&self) -> io::Result<()> {
        self.inner.lock()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.inner.try_lock()
    }

    fn unlock(&self) -> io::Result<()> {
        self.inner.unlock()
    }
}

/// Creates a session with this many records and a compaction near its end.
fn long_session(disk: &Counting, records: usize, rotation: u64) -> SessionId {
    let store = disk.store(rotation);
    let session = store.create_session(SessionOptions::new()).unwrap();
    let text = "something that is said and is neither short nor long, as most of it is; ".repeat(3);
    for results in (0..records).collect::<Vec<_>>().chunks(1000) {
        let batch = session.append_batch(results.iter().map(|_| Message::user_text(text.as_str())));
        assert!(batch.iter().all(Result::is_ok));
    }
    session
        .compact(&Compaction::new("so far").keep(20))
        .unwrap();
    session.append(Message::user_text(text.as_str())).unwrap();
    let id = session.id().clone();
    session.close().unwrap();
    id
}

/// The bytes that each operation reads and writes, by name.
fn costs(records: usize, rotation: u64) -> Vec<(&'static str, u64, u64)> {
    let disk = Counting::new();
    let id = long_session(&disk, records, rotation);
    let store = disk.store(rotation);
    let mut costs = Vec::new();
    let mut note = |name, disk: &Counting| {
        let (read, written) = disk.counts.take();
        costs.push((name, read, written));
    };
    disk.counts.take();
    let session = store.open_session(&id).unwrap();
    note("open", &disk);
    session.context(Shape::Anthropic).unwrap();
    note("context", &disk);
    session.append(Message::user_text("next")).unwrap();
    note("append", &disk);
    let middle = records as u64 / 2;
    session.rewind_chat(middle).unwrap().unwrap();
    note("rewind", &disk);
    session.undo().unwrap().unwrap();
    note("undo", &disk);
    session.redo().unwrap().unwrap();
    note("redo", &disk);
    session.reader().steps().unwrap();
    note("steps", &disk);
    session.fork(&ForkOptions::new().at(middle / 2)).unwrap();
    note("fork", &disk);
    session.reader().info().unwrap();
    note("info", &disk);
    costs
}

/// Opening, resuming and moving read no more of a hundred times the history, except for a
/// few more steps of a binary search.
#[test]
fn what_a_move_reads_does_not_grow_with_the_history() {
    let short = costs(1_000, u64::MAX);
    let long = costs(100_000, u64::MAX);
    for ((name, few, written), (_, many, written_too)) in short.into_iter().zip(long) {
        assert!(
            many <= few * 3 / 2 + 200_000,
            "{name} reads {few} bytes of 1,000 records and {many} of 100,000"
        );
        assert!(
            written_too <= written + 100,
            "{name} writes {written} bytes, and {written_too} where more was said"
        );
    }
}

/// With many trails, only one opener of each is read.
#[test]
fn what_a_move_reads_of_many_trails_is_an_opener_each() {
    let trails = 50;
    let records = 20_000;
    let whole = 300 * records as u64;
    for (name, read, _) in costs(records, whole / trails) {
        assert!(
            read <= 200_000 + trails * 4 * 8192,
            "{name} reads {read} bytes of {whole} in {trails} trails"
        );
    }
}

/// F10: a turn after many turns reads and writes as much as after few.
#[test]
fn f10_a_turn_costs_what_it_says_however_many_came_before() {
    let disk = Counting::new();
    let session = disk
        .store(u64::MAX)
        .create_session(SessionOptions::new())
        .unwrap();
    let turns = |count: u64| {
        disk.counts.take();
        for n in 0..count {
            session.append(Message::user_text("ask")).unwrap();
            session
                .append(Message::assistant([backtrail::Block::text("answer")]))
                .unwrap();
            if n % 10 == 9 {
                session.compact(&Compaction::new("so far").keep(4)).unwrap();
                session.context(Shape::OpenAi).unwrap();
            }
        }
        disk.counts.take()
    };
    turns(1_500);
    let (read, written) = turns(300);
    turns(4_500);
    let (read_later, written_later) = turns(300);
    assert!(
        written_later <= written * 21 / 20,
        "{written} bytes written after 1,500 turns, {written_later} after 6,000"
    );
    assert!(
        read_later <= read * 13 / 10,
        "{read} bytes read after 1,500 turns, {read_later} after 6,000"
    );
}

/// F11: listing sessions, or finding the latest, only reads their ends.
#[test]
fn f11_listing_reads_the_ends_of_sessions_and_not_what_lies_between() {
    let disk = Counting::new();
    for _ in 0..3 {
        long_session(&disk, 20_000, u64::MAX);
    }
    let store = disk.store(u64::MAX);
    disk.counts.take();
    assert_eq!(store.infos().unwrap().len(), 3);
    store.resolve("latest").unwrap();
    let (read, _) = disk.counts.take();
    assert!(read < 6 * 150_000, "{read} bytes read of 3 sessions");
}

/// A row of the log shows the prompt of a turn: one record, found by bisection.
#[test]
fn what_a_row_of_the_log_reads_does_not_grow_with_the_session() {
    let read = |records: usize| {
        let dir = tempfile::tempdir().unwrap();
        let disk = Counting::new();
        let store = disk.store(1 << 40);
        let workspace = store.workspace(dir.path()).unwrap();
        let options = SessionOptions::new().workspace(&workspace);
        let session = store.create_session(options).unwrap();
        let text = "something that is neither short nor long".repeat(5);
        for _ in 0..2 {
            let batch = (0..records).map(|_| Message::user_text(text.as_str()));
            assert!(session.append_batch(batch).iter().all(Result::is_ok));
            let turn = session.begin_turn(Message::user_text("look")).unwrap();
            turn.end().unwrap();
        }
        let log = workspace.log().unwrap();
        disk.counts.take();
        for entry in &log {
            let about = entry.before().unwrap().about().unwrap();
            assert_eq!(about.text(), Some("look"));
        }
        disk.counts.take().0
    };
    let (short, long) = (read(100), read(10_000));
    assert!(long < short + (256 << 10), "{short} and {long} bytes");
}
