//! Whatever stops an import, there is no session or one that can be read, and
//! importing again, or opening it to write, completes it (F5, F22).

use std::path::Path;

use backtrail::{ErrorKind, Import, ImportOutcome, Message, Note, Result, SessionId, Shape};
use backtrail_testkit::{Count, Fault, FaultyStorage, Loss, MemoryStorage, When};

use super::desk::{Desk, LINES, ROOT, both_ends, line, object, options};
use crate::kit::End;

const STOPS: [Fault; 4] = [
    Fault::Crash { when: When::Before },
    Fault::Crash { when: When::After },
    Fault::Tear {
        numerator: 1,
        denominator: 3,
    },
    Fault::Tear {
        numerator: u32::MAX - 1,
        denominator: u32::MAX,
    },
];

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

fn ends(n: u64) -> [End; 5] {
    [
        End::Kill,
        End::Power(Loss::Unsynced),
        End::Power(Loss::Nothing),
        End::Power(Loss::Tail { keep_bytes: 17 }),
        End::Power(Loss::Shuffled { seed: n }),
    ]
}

/// Both forms, each with the history that it must lead to.
fn both() -> [(&'static str, String, String); 2] {
    [("talk.jsonl", LINES.to_owned()), ("talk.json", object())].map(|(name, bytes)| {
        let desk = Desk::new();
        let id = desk.import(name, &bytes).id;
        let expected = line(&desk.reader(&id));
        (name, bytes, expected)
    })
}

/// Takes the file in on a disk that goes wrong, and returns the disk, what came
/// of it, and whether it went wrong.
fn import(
    name: &str,
    bytes: &str,
    n: u64,
    fault: Fault,
    count: Count,
) -> (Desk, Result<Import>, bool) {
    let desk = Desk::new();
    let path = desk.put(name, bytes);
    let disk = FaultyStorage::new(desk.memory.clone()).counting(count);
    let store = options(disk.clone()).open(ROOT).unwrap();
    disk.arm(n, fault);
    let outcome = store.import(&path);
    let fired = disk.fired();
    (desk, outcome, fired)
}

/// Checks that a store has the session, whole, and nothing else.
fn check_whole(desk: &Desk, expected: &str, at: &str) {
    let ids = desk.store.sessions().unwrap();
    assert_eq!(ids.len(), 1, "{at}");
    let reader = desk.reader(&ids[0]);
    assert_eq!(line(&reader), expected, "{at}");
    assert!(reader.verify().unwrap().is_ok(), "{at}");
    assert_eq!(reader.info().unwrap().trails, 2, "{at}");
    let context = reader.context(Shape::Neutral).unwrap();
    assert!(context.as_json().contains("they met before"), "{at}");
}

/// Checks what a store has after an import that was not acknowledged.
fn check_half(desk: &Desk, expected: &str, at: &str) {
    for (id, info) in desk.store.infos().unwrap() {
        info.unwrap_or_else(|error| panic!("{at}: {error:?}"));
        assert_eq!(line(&desk.reader(&id)), expected, "{at}");
        assert!(desk.reader(&id).verify().unwrap().is_ok(), "{at}");
    }
}

/// Checks that importing again completes it, and that a power cut takes nothing
/// of what was acknowledged then.
fn check_again(memory: MemoryStorage, name: &str, bytes: &str, expected: &str, at: &str) {
    let desk = Desk::on(memory);
    desk.import(name, bytes);
    check_whole(&desk, expected, at);
    let after = Desk::on(desk.memory.crash(Loss::Unsynced));
    check_whole(&after, expected, &format!("{at}, then a power cut"));
    assert_eq!(after.import(name, bytes).outcome, ImportOutcome::Unchanged);
}

/// Checks that speaking and noting complete it.
fn check_goes_on(memory: MemoryStorage, expected: &str, at: &str) {
    let desk = Desk::on(memory);
    for id in desk.store.sessions().unwrap() {
        desk.store.note(&id, &Note::new().title("noted")).unwrap();
        let session = desk.store.open_session(&id).unwrap();
        session.append(Message::user_text("on")).unwrap();
        drop(session);
        let after = Desk::on(desk.memory.crash(Loss::Unsynced));
        let reader = after.reader(&id);
        assert_eq!(line(&reader), format!("{expected} note on"), "{at}");
        assert!(reader.verify().unwrap().is_ok(), "{at}");
    }
}

#[test]
fn f5_a_crash_at_any_operation_leaves_no_session_or_one_that_reads() {
    for (name, bytes, expected) in both() {
        for fault in STOPS {
            for n in 0.. {
                let (desk, outcome, fired) = import(name, &bytes, n, fault, Count::Writes);
                for end in ends(n) {
                    let at = format!("{name}, {fault:?} at {n}, {end:?}");
                    let after = || end.of(&desk.memory);
                    let next = Desk::on(after());
                    match &outcome {
                        Ok(_) => check_whole(&next, &expected, &at),
                        Err(_) => check_half(&next, &expected, &at),
                    }
                    let file = next.memory.read(&Path::new("/desk").join(name)).unwrap();
                    assert_eq!(file, bytes.as_bytes(), "{at}");
                    check_again(after(), name, &bytes, &expected, &at);
                    check_goes_on(after(), &expected, &at);
                }
                if !fired {
                    assert!(n > 15, "only {n} operations");
                    assert_eq!(outcome.unwrap().outcome, ImportOutcome::New);
                    break;
                }
            }
        }
    }
}

#[test]
fn f22_an_error_at_any_operation_is_told_and_importing_again_completes_it() {
    for (name, bytes, expected) in both() {
        for (number, kind) in [(EIO, ErrorKind::Io), (ENOSPC, ErrorKind::DiskFull)] {
            for fault in [Fault::Error(number), Fault::ErrorFrom(number)] {
                for n in 0.. {
                    let (desk, outcome, fired) = import(name, &bytes, n, fault, Count::All);
                    let at = format!("{name}, {fault:?} at {n}");
                    let next = Desk::on(desk.memory.kill());
                    match &outcome {
                        Ok(_) => check_whole(&next, &expected, &at),
                        Err(error) => {
                            assert_eq!(error.kind(), kind, "{at}: {error:?}");
                            assert!(error.path().is_some(), "{at}: {error:?}");
                            check_half(&next, &expected, &at);
                        }
                    }
                    check_again(desk.memory.kill(), name, &bytes, &expected, &at);
                    if !fired {
                        assert!(n > 25, "only {n} operations");
                        outcome.unwrap();
                        break;
                    }
                }
            }
        }
    }
}

/// The session that a crash left half is completed by whoever opens it, and that
/// can be stopped as well.
#[test]
fn f5_a_crash_while_it_is_completed_loses_nothing() {
    for (name, bytes, expected) in both() {
        let desk = Desk::new();
        let id = desk.import(name, &bytes).id;
        backtrail::Storage::remove_file(&desk.memory, &desk.trail(&id, 1)).unwrap();
        let half = desk.memory.crash(Loss::Nothing);
        for n in 0.. {
            let memory = half.crash(Loss::Nothing);
            let disk = FaultyStorage::new(memory.clone());
            let store = options(disk.clone()).open(ROOT).unwrap();
            disk.arm(n, Fault::Crash { when: When::After });
            let said = store
                .open_session(&id)
                .and_then(|session| session.append(Message::user_text("on")));
            for end in ends(n) {
                let at = format!("{name} at {n}, {end:?}");
                let next = Desk::on(end.of(&memory));
                let line = words_of(&next, &id);
                let whole = format!("{expected} on");
                assert!(
                    line == whole || said.is_err() && line == expected,
                    "{at}: {line}"
                );
                // Importing again makes durable what it makes; of what was said and
                // not acknowledged that cannot be asked.
                let again = Desk::on(end.of(&memory));
                again.import(name, &bytes);
                let after = Desk::on(again.memory.crash(Loss::Unsynced));
                let line = words_of(&after, &id);
                assert!(
                    line == whole || said.is_err() && line == expected,
                    "{at}: {line}"
                );
                assert_eq!(after.reader(&id).info().unwrap().trails, 2, "{at}");
            }
            if !disk.fired() {
                said.unwrap();
                break;
            }
        }
    }
}

/// Reads a session in which a line may be unfinished.
fn words_of(desk: &Desk, id: &SessionId) -> String {
    let words = both_ends(&desk.reader(id))
        .0
        .into_iter()
        .map(|(_, word)| word);
    words.collect::<Vec<_>>().join(" ")
}

/// Two at a time: one of them makes the session, the other finds it or is told.
#[test]
fn an_import_finds_what_another_made_meanwhile() {
    let desk = Desk::new();
    let path = desk.put("talk.jsonl", LINES);
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| desk.store.import(&path)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    let mut new = 0;
    for outcome in outcomes {
        match outcome {
            Ok(import) => new += u64::from(import.outcome == ImportOutcome::New),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Locked, "{error:?}"),
        }
    }
    assert_eq!(new, 1);
    assert_eq!(desk.store.sessions().unwrap().len(), 1);
    assert_eq!(
        desk.import("talk.jsonl", LINES).outcome,
        ImportOutcome::Unchanged
    );
}

/// A file that grows while it is read is not taken in half.
#[test]
fn a_copy_that_is_not_what_was_looked_at_is_refused() {
    let desk = Desk::new();
    let path = desk.put("talk.jsonl", LINES);
    let shifting = shifting::Shifting::new(desk.memory.clone(), &path);
    let store = options(shifting).open(ROOT).unwrap();
    let error = store.import(&path).unwrap_err();
    assert_eq!(error.path(), Some(path.as_path()));
    assert!(error.to_string().contains("import it again"), "{error}");
    assert!(desk.store.sessions().unwrap().is_empty());
    assert_eq!(desk.import("talk.jsonl", LINES).outcome, ImportOutcome::New);
}

mod shifting {
    //! A disk on which one file reads otherwise once a trail is being made.

    use std::ffi::OsString;
    use std::io;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use backtrail::{Storage, StorageFile};
    use backtrail_testkit::MemoryStorage;

    #[derive(Debug)]
    pub(super) struct Shifting {
        inner: MemoryStorage,
        path: PathBuf,
        shifted: Arc<AtomicBool>,
    }

    impl Shifting {
        pub(super) fn new(inner: MemoryStorage, path: &Path) -> Self {
            Self {
                inner,
                path: path.to_owned(),
                shifted: Arc::default(),
            }
        }
    }

    impl Storage for Shifting {
        fn create_new(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
            self.shifted
                .fetch_or(path.ends_with("new-trail"), Ordering::SeqCst);
            self.inner.create_new(path)
        }

        fn open_append(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
            self.inner.open_append(path)
        }

        fn open_read(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
            let inner = self.inner.open_read(path)?;
            if path != self.path {
                return Ok(inner);
            }
            Ok(Arc::new(ShiftingFile {
                inner,
                shifted: Arc::clone(&self.shifted),
            }))
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
    struct ShiftingFile {
        inner: Arc<dyn StorageFile>,
        shifted: Arc<AtomicBool>,
    }

    impl StorageFile for ShiftingFile {
        fn len(&self) -> io::Result<u64> {
            self.inner.len()
        }

        fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
            let n = self.inner.read_at(buf, offset)?;
            if offset == 0 && n > 0 && self.shifted.load(Ordering::SeqCst) {
                buf[0] ^= 1;
            }
            Ok(n)
        }

        fn append(&self, bytes: &[u8]) -> io::Result<usize> {
            self.inner.append(bytes)
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
}
