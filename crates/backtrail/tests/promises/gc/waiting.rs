//! Objects that a writer has found, and has not recorded yet, are not removed.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backtrail::gc::GcOptions;
use backtrail::workspace::CheckpointReason;
use backtrail::{CheckpointOptions, LocalStorage, Storage, StorageFile, StoreOptions};

use backtrail_testkit::SeededRandomness;

use super::kit::{Bench, noise, packs, read_whole};

/// Reports what a storage is about to do.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    OpenAppend(PathBuf),
    /// It waits for a lock.
    Waits(PathBuf),
}

type Tell = Arc<dyn Fn(Step) + Send + Sync>;

#[derive(Clone)]
struct Telling(Tell);

impl std::fmt::Debug for Telling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Telling")
    }
}

#[derive(Debug)]
struct TellingFile(Telling, PathBuf, Arc<dyn StorageFile>);

impl Telling {
    fn wrap(&self, path: &Path, file: Arc<dyn StorageFile>) -> Arc<dyn StorageFile> {
        Arc::new(TellingFile(self.clone(), path.to_owned(), file))
    }
}

impl Storage for Telling {
    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        LocalStorage
            .create_new(path)
            .map(|file| self.wrap(path, file))
    }
    fn open_append(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        (self.0)(Step::OpenAppend(path.to_owned()));
        LocalStorage
            .open_append(path)
            .map(|file| self.wrap(path, file))
    }
    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        LocalStorage
            .open_read(path)
            .map(|file| self.wrap(path, file))
    }
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        LocalStorage.create_dir(path)
    }
    fn link_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        LocalStorage.link_new(from, to)
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        LocalStorage.remove_file(path)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        LocalStorage.list(dir)
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        LocalStorage.exists(path)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        LocalStorage.sync_dir(dir)
    }
}

impl StorageFile for TellingFile {
    fn len(&self) -> io::Result<u64> {
        self.2.len()
    }
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.2.read_at(buf, offset)
    }
    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        self.2.append(bytes)
    }
    fn truncate(&self, len: u64) -> io::Result<()> {
        self.2.truncate(len)
    }
    fn sync(&self) -> io::Result<()> {
        self.2.sync()
    }
    fn lock(&self) -> io::Result<()> {
        self.2.lock()
    }
    fn try_lock(&self) -> io::Result<bool> {
        let is_free = self.2.try_lock()?;
        if !is_free {
            (self.0.0)(Step::Waits(self.1.clone()));
        }
        Ok(is_free)
    }
    fn lock_shared(&self) -> io::Result<()> {
        self.2.lock_shared()
    }
    fn try_lock_shared(&self) -> io::Result<bool> {
        self.2.try_lock_shared()
    }
    fn unlock(&self) -> io::Result<()> {
        self.2.unlock()
    }
}

/// Stops the first thread that opens a file to append to it, until it is released.
struct Stop {
    at: PathBuf,
    stops: Mutex<Option<(Sender<()>, Receiver<()>)>>,
}

impl Stop {
    fn step(&self, step: &Step) {
        if *step == Step::OpenAppend(self.at.clone())
            && let Some((reached, go_on)) = self.stops.lock().unwrap().take()
        {
            reached.send(()).unwrap();
            go_on.recv().ok();
        }
    }
}

#[test]
fn a_clean_up_during_a_first_snapshot_of_the_same_content_takes_nothing_from_it() {
    let mut bench = Bench::new();
    let content = noise(500, 20_000);
    bench.write("shared", &content);
    bench.write("deep/er/shared", noise(501, 9000));
    bench.keep(CheckpointReason::Manual);
    fs::remove_dir_all(bench.workspace.root().join("deep")).unwrap();
    fs::remove_file(bench.workspace.root().join("shared")).unwrap();
    bench.state(1, CheckpointReason::Manual);

    // The same files elsewhere, in a workspace without checkpoints.
    let other = bench.dir.path().join("other");
    fs::create_dir_all(other.join("deep/er")).unwrap();
    fs::write(other.join("shared"), &content).unwrap();
    fs::write(other.join("deep/er/shared"), noise(501, 9000)).unwrap();
    let id = bench.store.workspace(&other).unwrap().id().clone();
    let trail = bench.store.root().join("workspaces").join(id.as_str());
    let (reached, is_reached) = channel();
    let (go_on, goes_on) = channel();
    let stop = Stop {
        at: trail.join("0000.jsonl"),
        stops: Mutex::new(Some((reached, goes_on))),
    };
    let writing = Telling(Arc::new(move |step| stop.step(&step)));
    let (tell, told) = channel();
    let waits = Mutex::new(tell.clone());
    let lock = bench.objects_dir().join("objects.lock");
    let cleaning = Telling(Arc::new(move |step| {
        if step == Step::Waits(lock.clone()) {
            // The receiver may be gone.
            waits.lock().unwrap().send("waits").ok();
        }
    }));
    let open = |storage, seed| {
        let random = SeededRandomness::new(seed);
        let options = StoreOptions::new()
            .clock(bench.clock.clone())
            .randomness(random);
        options.storage(storage).open(bench.store.root()).unwrap()
    };
    let (writer, cleaner) = (open(writing, 98), open(cleaning, 99));
    let size = |bench: &Bench| packs(&bench.objects_dir()).values().sum::<u64>();
    let kept = std::thread::scope(|scope| {
        // Dropped where something fails below, so that no thread waits forever.
        let go_on = go_on;
        let keeps = scope.spawn(|| {
            let workspace = writer.find_workspace(&other);
            let workspace = match workspace.unwrap() {
                Some(workspace) => workspace,
                None => writer.workspace(&other).unwrap(),
            };
            workspace.checkpoint(CheckpointOptions::new()).unwrap()
        });
        is_reached.recv().unwrap();
        let before = size(&bench);
        // Everything is already stored, and no kept record names it.
        let cleans = scope.spawn(|| {
            let report = cleaner.gc(&GcOptions::new().older_than(Duration::ZERO));
            tell.send("is done").unwrap();
            report.unwrap()
        });
        // Without waiting, it would be done before the record is there.
        assert_eq!(told.recv().unwrap(), "waits");
        assert!(size(&bench) >= before, "nothing is removed yet");
        go_on.send(()).unwrap();
        let kept = keeps.join().unwrap();
        cleans.join().unwrap();
        kept
    });
    let snapshot = kept.snapshot().unwrap();
    assert_eq!(read_whole(&snapshot).unwrap(), 29_000);
    assert_eq!(snapshot.read("shared").unwrap().unwrap(), content);
    assert_eq!(bench.check(), [true, false]);
    // And it was needed: the first state is dropped, and no other had it.
    fs::remove_dir_all(&trail).unwrap();
    assert!(bench.gc().freed > 25_000);
}
