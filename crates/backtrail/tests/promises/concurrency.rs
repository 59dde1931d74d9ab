//! Many threads and several handles: one session keeps everything in order, names its
//! writer, and shows readers only complete records (F3, F4).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use backtrail::{
    Commit, Draft, Durability, ErrorKind, Message, Note, RecordKind, Session, SessionOptions,
    SessionReader, Storage, StorageFile, Store, StoreOptions,
};
use backtrail_testkit::{FaultyStorage, ManualClock, MemoryStorage, SeededRandomness};

use crate::kit::EVERY_DURABILITY;

const THREADS: usize = 32;
/// How long a test waits before it fails.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn handles_can_be_shared_between_threads_and_kept_for_good() {
    fn shared<T: Clone + Send + Sync + 'static>() -> &'static str {
        std::any::type_name::<T>()
    }
    let names = [
        shared::<Store>(),
        shared::<Session>(),
        shared::<SessionReader>(),
    ];
    assert!(names.iter().all(|name| name.starts_with("backtrail::")));
    fn awaited<T: Future + Send + 'static>() {}
    awaited::<Commit>();
}

fn store_on(storage: impl Storage, durability: Durability) -> Store {
    options(storage, durability)
        .open_or_create("/store")
        .unwrap()
}

fn options(storage: impl Storage, durability: Durability) -> StoreOptions {
    StoreOptions::new()
        .storage(storage)
        .clock(ManualClock::new(1_794_729_600_000))
        .randomness(SeededRandomness::new(1))
        .durability(durability)
        .program("the test")
}

fn begin(store: &Store) -> Session {
    store.create_session(SessionOptions::new()).unwrap()
}

fn said(text: impl AsRef<str>) -> Draft {
    Message::user_text(text.as_ref()).into()
}

/// Reads all messages by their seqs; there must be no damage.
fn messages(reader: &SessionReader) -> BTreeMap<u64, String> {
    let mut messages = BTreeMap::new();
    let mut records = reader.records().unwrap();
    while let Some(record) = records.next().unwrap() {
        if let Some(message) = record.message().unwrap() {
            let text = message.text().into_owned();
            assert_eq!(messages.insert(record.seq(), text), None);
        }
    }
    assert!(records.damage().is_empty(), "{:?}", records.damage());
    messages
}

fn assert_sound(reader: &SessionReader) {
    let report = reader.verify().unwrap();
    assert!(report.is_ok(), "{:?}", report.damage.first());
}

/// Lets 32 threads append `each` records and returns the results of each.
fn append_from_threads(session: &Session, each: usize) -> Vec<Vec<(u64, String)>> {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || {
                    let text = |n| format!("thread {thread} says {n}");
                    let append = |n| (session.append(said(text(n))).unwrap(), text(n));
                    (0..each).map(append).collect()
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

/// F3, F4: records of one session from many threads are neither mixed nor lost.
#[test]
fn f3_f4_many_threads_get_numbers_without_gaps_each_in_its_own_order() {
    for durability in EVERY_DURABILITY {
        let memory = MemoryStorage::new();
        let store = options(memory, durability)
            .rotation(4_000)
            .open_or_create("/store")
            .unwrap();
        let session = begin(&store);
        let told = append_from_threads(&session, 12);
        for one in &told {
            assert!(one.is_sorted(), "{durability:?}: {one:?}");
        }
        let told: BTreeMap<u64, String> = told.into_iter().flatten().collect();
        let seqs: Vec<u64> = told.keys().copied().collect();
        let all: Vec<u64> = (1..=THREADS as u64 * 12).collect();
        assert_eq!(seqs, all, "{durability:?}");
        assert_eq!(messages(&session.reader()), told, "{durability:?}");
        assert!(session.reader().info().unwrap().trails > 3);
        assert_sound(&session.reader());
    }
}

/// Returns the lines of a log about the first trail.
fn trail_operations(disk: &FaultyStorage) -> Vec<String> {
    let mut log = disk.log();
    log.retain(|line| line.contains("0000.jsonl"));
    log
}

#[test]
fn f3_a_record_goes_out_in_one_write_and_one_sync_of_its_own() {
    let disk = FaultyStorage::new(MemoryStorage::new());
    let store = store_on(disk.clone(), Durability::Record);
    let session = begin(&store);
    for n in 0..10 {
        let before = trail_operations(&disk).len();
        session.append(said(format!("record {n}"))).unwrap();
        let done = trail_operations(&disk).split_off(before);
        assert_eq!(done.len(), 2, "{done:?}");
        assert!(done[0].starts_with("append "), "{done:?}");
        assert!(done[1].starts_with("sync "), "{done:?}");
    }
    let before = trail_operations(&disk).len();
    session.append_batch((0..3).map(|n| said(format!("more {n}"))));
    assert_eq!(trail_operations(&disk).len(), before + 6);
}

#[test]
fn what_is_left_to_the_os_is_written_at_once_and_synced_when_it_is_closed() {
    let disk = FaultyStorage::new(MemoryStorage::new());
    let session = begin(&store_on(disk.clone(), Durability::Os));
    let before = trail_operations(&disk).len();
    session.append(said("one")).unwrap();
    session.append_batch([said("two"), said("three")]);
    session.close().unwrap();
    let done = trail_operations(&disk).split_off(before);
    let verbs: Vec<_> = done
        .iter()
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(verbs, ["append", "append", "sync"]);
}

/// F3: even if writes are shared, no line is split over two.
#[test]
fn f3_every_write_ends_with_a_line() {
    for durability in EVERY_DURABILITY {
        let memory = MemoryStorage::new();
        let disk = FaultyStorage::new(memory.clone());
        let session = begin(&store_on(disk.clone(), durability));
        let path = session.reader().dir().join("0000.jsonl");
        let mut offset = memory.read(&path).unwrap().len();
        let before = trail_operations(&disk).len();
        append_from_threads(&session, 5);
        let bytes = memory.read(&path).unwrap();
        for line in trail_operations(&disk).split_off(before) {
            if let Some(len) = line.strip_prefix("append 0000.jsonl ") {
                offset += len.parse::<usize>().unwrap();
                assert_eq!(bytes[offset - 1], b'\n', "{durability:?}");
            }
        }
        assert_eq!(offset, bytes.len());
    }
}

/// A storage that notifies a watcher before its operations.
#[derive(Debug)]
struct WatchedStorage<W> {
    inner: FaultyStorage,
    watcher: Arc<W>,
}

trait Watcher: fmt::Debug + Send + Sync + 'static {
    /// Called before each sync of a file.
    fn before_sync(&self) {}

    /// Called when a reader reaches the end of a file.
    fn after_end(&self) {}

    /// Called after the length of a file was read.
    fn after_len(&self) {}
}

impl<W: Watcher> WatchedStorage<W> {
    fn new(inner: MemoryStorage, watcher: W) -> Self {
        Self {
            inner: FaultyStorage::new(inner),
            watcher: Arc::new(watcher),
        }
    }

    fn watch(&self, inner: Arc<dyn StorageFile>) -> Arc<dyn StorageFile> {
        let watcher = Arc::clone(&self.watcher);
        Arc::new(WatchedFile { inner, watcher })
    }
}

impl<W: Watcher> Storage for WatchedStorage<W> {
    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        Ok(self.watch(self.inner.create_new(path)?))
    }

    fn open_append(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        Ok(self.watch(self.inner.open_append(path)?))
    }

    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        Ok(self.watch(self.inner.open_read(path)?))
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

#[derive(Debug)]
struct WatchedFile<W> {
    inner: Arc<dyn StorageFile>,
    watcher: Arc<W>,
}

impl<W: Watcher> StorageFile for WatchedFile<W> {
    fn len(&self) -> io::Result<u64> {
        let len = self.inner.len()?;
        self.watcher.after_len();
        Ok(len)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.inner.read_at(buf, offset)?;
        if read == 0 {
            self.watcher.after_end();
        }
        Ok(read)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        self.inner.append(bytes)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.inner.truncate(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.watcher.before_sync();
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

/// Blocks syncs while it is closed.
#[derive(Debug, Default)]
struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    closed: bool,
    waiting: usize,
}

impl Gate {
    fn close(&self) {
        self.state.lock().unwrap().closed = true;
    }

    fn open(&self) {
        self.state.lock().unwrap().closed = false;
        self.changed.notify_all();
    }

    /// Waits until a sync is blocked.
    fn wait_for_somebody(&self) {
        let state = self.state.lock().unwrap();
        let nobody = |state: &mut GateState| state.waiting == 0;
        let waited = self.changed.wait_timeout_while(state, PATIENCE, nobody);
        assert!(!waited.unwrap().1.timed_out(), "nobody came to sync");
    }
}

impl Watcher for Gate {
    fn before_sync(&self) {
        let mut state = self.state.lock().unwrap();
        state.waiting += 1;
        self.changed.notify_all();
        let closed = |state: &mut GateState| state.closed;
        self.changed.wait_while(state, closed).unwrap().waiting -= 1;
    }
}

/// Returns a disk with a gate, and the gate.
fn gated() -> (WatchedStorage<Gate>, Arc<Gate>) {
    let disk = WatchedStorage::new(MemoryStorage::new(), Gate::default());
    let gate = Arc::clone(&disk.watcher);
    (disk, gate)
}

/// While a record waits for its sync, later ones queue up; then they are written
/// together.
#[test]
fn what_waits_at_the_same_time_shares_one_write_and_one_sync() {
    let (disk, gate) = gated();
    let counted = disk.inner.clone();
    let session = begin(&store_on(disk, Durability::Batch));
    let before = trail_operations(&counted).len();
    gate.close();
    let first = session.append_deferred(said("the first"));
    gate.wait_for_somebody();
    let session = &session;
    let commits: Vec<Commit> = thread::scope(|scope| {
        let hand_in = |thread| session.append_deferred(said(format!("thread {thread}")));
        let threads: Vec<_> = (1..THREADS)
            .map(|thread| scope.spawn(move || hand_in(thread)))
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    gate.open();
    assert_eq!(first.wait().unwrap(), 1);
    let mut seqs: Vec<u64> = commits.into_iter().map(|c| c.wait().unwrap()).collect();
    seqs.sort_unstable();
    assert_eq!(seqs, (2..=THREADS as u64).collect::<Vec<_>>());
    let done = trail_operations(&counted).split_off(before);
    let verbs: Vec<_> = done
        .iter()
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(verbs, ["append", "sync", "append", "sync"]);
}

/// The same with `append`: while one thread waits for its sync, the others queue up. Only
/// they know when, so the first round waits for all of them, and the promise is about
/// many rounds together.
#[test]
fn threads_that_append_at_the_same_time_need_fewer_syncs_than_records() {
    let (disk, gate) = gated();
    let counted = disk.inner.clone();
    let session = &begin(&store_on(disk, Durability::Batch));
    let before = trail_operations(&counted).len();
    let coming = &AtomicUsize::new(0);
    gate.close();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                coming.fetch_add(1, Ordering::SeqCst);
                for n in 0..4 {
                    session.append(said(format!("{thread} {n}"))).unwrap();
                }
            });
        }
        gate.wait_for_somebody();
        while coming.load(Ordering::SeqCst) < THREADS {
            thread::yield_now();
        }
        gate.open();
    });
    let done = trail_operations(&counted).split_off(before);
    let count = |verb| done.iter().filter(|line| line.starts_with(verb)).count();
    assert_eq!(count("append "), count("sync "));
    assert_eq!(messages(&session.reader()).len(), THREADS * 4);
    assert!(count("sync ") < THREADS * 4, "{} syncs", count("sync "));
}

/// Runs a future on this thread.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn deferred_records_are_numbered_as_they_were_handed_in() {
    for durability in EVERY_DURABILITY {
        let session = begin(&store_on(MemoryStorage::new(), durability));
        let commits: Vec<Commit> = (1..=60)
            .map(|n| session.append_deferred(said(format!("record {n}"))))
            .collect();
        for (n, commit) in (1..).zip(commits) {
            let seq = match n % 2 {
                0 => commit.wait(),
                _ => block_on(commit),
            };
            assert_eq!(seq.unwrap(), n, "{durability:?}");
        }
        assert_eq!(session.append(said("record 61")).unwrap(), 61);
        let expected = (1..=61).map(|n| (n, format!("record {n}"))).collect();
        assert_eq!(messages(&session.reader()), expected, "{durability:?}");
    }
}

/// A task that waits for a record to become durable is woken.
#[test]
fn a_commit_wakes_the_task_that_waits_for_it() {
    let (disk, gate) = gated();
    let session = begin(&store_on(disk, Durability::Record));
    gate.close();
    let mut commit = pin!(session.append_deferred(said("one")));
    gate.wait_for_somebody();
    let context = &mut Context::from_waker(Waker::noop());
    assert!(commit.as_mut().poll(context).is_pending());
    let opener = thread::spawn(move || gate.open());
    assert_eq!(block_on(commit).unwrap(), 1);
    opener.join().unwrap();
}

/// Opens the session as soon as its lock is free.
fn open_when_free(store: &Store, before: &SessionReader) -> Session {
    let began = Instant::now();
    loop {
        match store.open_session(before.id()) {
            Err(error) if error.kind() == ErrorKind::Locked && began.elapsed() < PATIENCE => {
                thread::yield_now();
            }
            opened => return opened.unwrap(),
        }
    }
}

#[test]
fn nothing_handed_in_is_called_back_by_dropping_its_commit_or_the_session() {
    for durability in EVERY_DURABILITY {
        let (disk, gate) = gated();
        let store = store_on(disk, durability);
        let session = begin(&store);
        let reader = session.reader();
        // In OS mode nothing is synced before the session ends.
        if durability != Durability::Os {
            gate.close();
        }
        for n in 1..=20 {
            drop(session.append_deferred(said(format!("record {n}"))));
        }
        drop(session);
        gate.open();
        let again = open_when_free(&store, &reader);
        let expected = (1..=20).map(|n| (n, format!("record {n}"))).collect();
        assert_eq!(messages(&reader), expected, "{durability:?}");
        assert_eq!(again.append(said("more")).unwrap(), 21);
    }
}

#[test]
fn closing_waits_for_what_was_handed_in_and_ends_every_clone() {
    for durability in EVERY_DURABILITY {
        let (disk, gate) = gated();
        let store = store_on(disk, durability);
        let session = begin(&store);
        let clone = session.clone();
        gate.close();
        let mut commits: Vec<Commit> = (1..=20)
            .map(|n| session.append_deferred(said(format!("record {n}"))))
            .collect();
        let opener = thread::spawn(move || {
            gate.wait_for_somebody();
            gate.open();
        });
        session.close().unwrap();
        opener.join().unwrap();
        for (n, commit) in (1..).zip(&mut commits) {
            let context = &mut Context::from_waker(Waker::noop());
            match pin!(commit).poll(context) {
                Poll::Ready(seq) => assert_eq!(seq.unwrap(), n),
                Poll::Pending => panic!("{durability:?}: record {n} is still on its way"),
            }
        }
        let refused = [
            clone.append(said("no")),
            clone.append_deferred(said("no")).wait(),
            clone.append_batch([said("no")]).remove(0),
        ];
        for outcome in refused {
            assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Invalid);
        }
        assert_eq!(messages(&clone.reader()).len(), 20);
        let next = store.open_session(clone.id()).unwrap();
        assert_eq!(next.append(said("more")).unwrap(), 21);
    }
}

#[test]
fn f4_a_second_writer_learns_who_the_first_is() {
    let store = store_on(MemoryStorage::new(), Durability::Record);
    let session = begin(&store);
    let id = session.id().clone();
    let error = store.open_session(&id).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    let holder = error.holder().unwrap();
    assert_eq!(holder.pid, std::process::id());
    assert_eq!(holder.program.as_deref(), Some("the test"));
    let speaker = session.reader().writer().unwrap().flatten();
    assert_eq!(speaker.as_ref(), Some(holder));
    let plan = store.repair_plan(&id).unwrap();
    assert_eq!(plan.apply().unwrap_err().kind(), ErrorKind::Locked);
}

#[test]
fn f4_the_lock_is_free_once_the_session_is_closed_or_its_last_clone_dropped() {
    let store = store_on(MemoryStorage::new(), Durability::Record);
    let first = begin(&store);
    let id = first.id().clone();
    let clone = first.clone();
    drop(first);
    let error = store.open_session(&id).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    drop(clone);
    let second = store.open_session(&id).unwrap();
    let clone = second.clone();
    second.close().unwrap();
    assert_eq!(clone.reader().writer().unwrap(), None);
    let third = store.open_session(&id).unwrap();
    drop(clone);
    let error = store.open_session(&id).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    drop(third);
    store.open_session(&id).unwrap();
}

#[test]
fn notes_of_others_are_read_and_do_not_count_as_messages() {
    let store = store_on(MemoryStorage::new(), Durability::Record);
    let session = begin(&store);
    let note = |title: &str| store.note(session.id(), &Note::new().title(title));
    assert_eq!(session.append(said("one")).unwrap(), 1);
    assert_eq!(note("a").unwrap(), 2);
    assert_eq!(note("b").unwrap(), 3);
    // Only notes came after record 1.
    assert_eq!(session.append(said("two").expect(1)).unwrap(), 4);
    assert_eq!(note("c").unwrap(), 5);
    // Record 4 came after 3, and after 1.
    for expected in [1, 3] {
        let error = session.append(said("again").expect(expected)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert_eq!(error.head(), Some(5));
    }
    // A record that does not exist yet is not the last one either.
    let error = session.append(said("early").expect(6)).unwrap_err();
    assert_eq!((error.kind(), error.head()), (ErrorKind::Conflict, Some(5)));
    for expected in [4, 6] {
        let seq = session.append(said("on").expect(expected)).unwrap();
        assert_eq!(seq, expected + if expected == 4 { 2 } else { 1 });
    }
    let info = session.reader().info().unwrap();
    assert_eq!(info.title.as_deref(), Some("c"));
    assert_sound(&session.reader());
}

/// F4: notes of other processes while one writes are neither lost nor mixed.
#[test]
fn f4_notes_and_messages_of_many_threads_share_one_row_of_numbers() {
    for durability in EVERY_DURABILITY {
        let store = &options(MemoryStorage::new(), durability)
            .rotation(3_000)
            .open_or_create("/store")
            .unwrap();
        let session = &begin(store);
        let told: Vec<Vec<u64>> = thread::scope(|scope| {
            let speakers = (0..4).map(|thread| {
                scope.spawn(move || {
                    let text = |n| format!("{thread} {n}");
                    (0..25)
                        .map(|n| session.append(said(text(n))).unwrap())
                        .collect()
                })
            });
            let noters = (0..4).map(|thread| {
                scope.spawn(move || {
                    let note = |n| Note::new().title(format!("{thread} {n}"));
                    (0..25)
                        .map(|n| store.note(session.id(), &note(n)).unwrap())
                        .collect()
                })
            });
            let threads: Vec<_> = speakers.chain(noters).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        for one in &told {
            assert!(one.is_sorted_by(|a, b| a < b), "{durability:?}: {one:?}");
        }
        let mut seqs: Vec<u64> = told.concat();
        seqs.sort_unstable();
        assert_eq!(seqs, (1..=200).collect::<Vec<_>>(), "{durability:?}");
        assert_eq!(messages(&session.reader()).len(), 100);
        assert_sound(&session.reader());
    }
}

/// Reads a session in every way until `done`, and checks that it is complete and only
/// grows; returns how often.
fn read_until(done: &AtomicBool, reader: &SessionReader) -> usize {
    let mut seen = BTreeMap::new();
    let mut rounds = 0;
    let mut follower = reader.follow().unwrap();
    let mut followed = 0;
    loop {
        let last_round = done.load(Ordering::SeqCst);
        let now = messages(reader);
        assert!(seen.iter().all(|(seq, text)| now.get(seq) == Some(text)));
        for (seq, text) in &now {
            assert!(text.starts_with(&format!("{seq}:")), "{seq} is {text:.20}");
        }
        let count = now.len();
        let last = reader.last_records(3).unwrap();
        assert!(last.len() == count.min(3) || count < 3);
        let mut back = reader.records_back().unwrap();
        let newest = back.next().unwrap().map(|record| record.seq());
        assert!(newest >= now.keys().last().copied());
        if let Some(seq) = newest {
            let record = reader.record(seq).unwrap().unwrap();
            assert_eq!(record.as_ref().kind(), RecordKind::Message);
        }
        while let Some(record) = follower.poll().unwrap() {
            followed += 1;
            assert_eq!(record.seq(), followed);
        }
        assert!(followed >= count as u64);
        assert_sound(reader);
        seen = now;
        rounds += 1;
        if last_round {
            assert!(follower.damage().is_empty(), "{:?}", follower.damage());
            return rounds;
        }
    }
}

/// Lets readers read while `count` records are appended through rotations.
fn read_while_writing(store: &Store, count: u64, padding: usize) {
    let session = &begin(store);
    let done = &AtomicBool::new(false);
    thread::scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|_| {
                let reader = store.read_session(session.id()).unwrap();
                scope.spawn(move || read_until(done, &reader))
            })
            .collect();
        let texts = (1..=count).map(|n| format!("{n}:{}", "x".repeat(n as usize * padding)));
        for (n, text) in (1..).zip(texts) {
            match n % 3 {
                0 => assert_eq!(session.append_deferred(said(text)).wait().unwrap(), n),
                _ => assert_eq!(session.append(said(text)).unwrap(), n),
            }
        }
        done.store(true, Ordering::SeqCst);
        for reader in readers {
            assert!(reader.join().unwrap() > 0);
        }
    });
    assert_eq!(messages(&session.reader()).len() as u64, count);
    assert!(session.reader().info().unwrap().trails > 3);
}

#[test]
fn readers_never_see_damage_while_others_write() {
    for durability in EVERY_DURABILITY {
        let options = options(MemoryStorage::new(), durability).rotation(5_000);
        read_while_writing(&options.open_or_create("/store").unwrap(), 80, 1);
    }
}

/// Writes the rest of a line when a reader has reached the end a number of times.
#[derive(Debug)]
struct Finisher {
    ends_to_come: AtomicUsize,
    file: Arc<dyn StorageFile>,
    rest: Vec<u8>,
}

impl Watcher for Finisher {
    fn after_end(&self) {
        if self.ends_to_come.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.file.append(&self.rest).unwrap();
        }
    }
}

/// The same step by step: a line is half written when a reader reaches it, and finished
/// at any moment of the reading.
#[test]
fn a_line_that_is_finished_while_it_is_read_is_there_or_not_but_never_damage() {
    let memory = MemoryStorage::new();
    let session = begin(&store_on(memory.clone(), Durability::Record));
    session.append(said("one")).unwrap();
    let path = session.reader().dir().join("0000.jsonl");
    let before = memory.read(&path).unwrap();
    session.append(said("two")).unwrap();
    let after = memory.read(&path).unwrap();
    let id = session.id().clone();
    drop(session);
    for cut in before.len()..after.len() {
        let finisher = Finisher {
            ends_to_come: AtomicUsize::new(0),
            file: memory.open_append(&path).unwrap(),
            rest: after[cut..].to_vec(),
        };
        let storage = WatchedStorage::new(memory.clone(), finisher);
        let finisher = Arc::clone(&storage.watcher);
        let store = store_on(storage, Durability::Record);
        for ends_to_come in 1..6 {
            memory.write(&path, &after[..cut]).unwrap();
            finisher.ends_to_come.store(ends_to_come, Ordering::SeqCst);
            let read = messages(&store.read_session(&id).unwrap());
            assert_eq!(read[&1], "one");
            assert!(read.get(&2).is_none_or(|text| text == "two"), "{read:?}");
        }
    }
}

/// Removes half a line once a reader has learnt how long the file is.
#[derive(Debug)]
struct Retractor {
    armed: AtomicBool,
    file: Arc<dyn StorageFile>,
    whole: usize,
}

impl Watcher for Retractor {
    fn after_len(&self) {
        if self.armed.swap(false, Ordering::SeqCst) {
            self.file.truncate(self.whole as u64).unwrap();
        }
    }
}

/// A writer on a full disk removes the partial line that it wrote. A backward reader may
/// have started there.
#[test]
fn f22_a_line_that_is_removed_while_it_is_read_is_not_an_error() {
    let memory = MemoryStorage::new();
    let session = begin(&store_on(memory.clone(), Durability::Record));
    session.append(said("one")).unwrap();
    let path = session.reader().dir().join("0000.jsonl");
    let bytes = memory.read(&path).unwrap();
    let retractor = Retractor {
        armed: AtomicBool::new(false),
        file: memory.open_append(&path).unwrap(),
        whole: bytes.len(),
    };
    let storage = WatchedStorage::new(memory.clone(), retractor);
    let retractor = Arc::clone(&storage.watcher);
    let store = store_on(storage, Durability::Record);
    let reader = store.read_session(session.id()).unwrap();
    for half in 1..bytes.len() {
        memory
            .write(&path, &[&bytes[..], &bytes[..half]].concat())
            .unwrap();
        retractor.armed.store(true, Ordering::SeqCst);
        let last = reader.last_records(2).unwrap();
        assert_eq!(last.len(), 1, "with {half} bytes taken back");
        assert!(!retractor.armed.load(Ordering::SeqCst));
    }
}

/// On a real disk a reader may come while a line is half written.
#[test]
fn readers_of_a_real_disk_never_see_damage_while_others_write() {
    let dir = tempfile::tempdir().unwrap();
    let options = StoreOptions::new()
        .durability(Durability::Os)
        .rotation(500_000);
    let store = options.open_or_create(dir.path().join("store")).unwrap();
    read_while_writing(&store, 100, 400);
}

/// The same on a real disk, with the operating system's locks.
#[test]
fn f4_on_a_real_disk_notes_and_messages_share_one_row_of_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let options = StoreOptions::new()
        .durability(Durability::Os)
        .rotation(3_000);
    let store = &options.open_or_create(dir.path().join("store")).unwrap();
    let session = &begin(store);
    let error = store.open_session(session.id()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert_eq!(error.holder().unwrap().pid, std::process::id());
    let mut seqs: Vec<u64> = thread::scope(|scope| {
        let noter = scope.spawn(move || {
            let note = |n| Note::new().title(format!("note {n}"));
            (0..20)
                .map(|n| store.note(session.id(), &note(n)).unwrap())
                .collect::<Vec<_>>()
        });
        let told = append_from_threads(session, 4);
        let told = told.into_iter().flatten().map(|(seq, _)| seq);
        told.chain(noter.join().unwrap()).collect()
    });
    seqs.sort_unstable();
    let all = THREADS as u64 * 4 + 20;
    assert_eq!(seqs, (1..=all).collect::<Vec<_>>());
    assert_sound(&session.reader());
}
