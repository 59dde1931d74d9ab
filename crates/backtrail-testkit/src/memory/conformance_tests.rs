//! A memory storage behaves like the operating system's file system, with the same kinds
//! of errors: random operations on both, compared one by one.

use std::fmt::Debug;

use backtrail::LocalStorage;

use super::*;
use crate::splitmix::SplitMix;

/// A temporary directory that is removed after the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        let name = format!("backtrail-testkit-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        LocalStorage.create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        #[expect(clippy::disallowed_methods, reason = "a test's own directory")]
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// The same paths on two storages, and the handles that are open on both.
struct Pair {
    local: PathBuf,
    memory: MemoryStorage,
    handles: Vec<[Arc<dyn StorageFile>; 2]>,
    seed: u64,
}

impl Pair {
    fn new(scratch: &Scratch, seed: u64) -> Self {
        let local = scratch.0.join(seed.to_string());
        LocalStorage.create_dir(&local).unwrap();
        Self {
            local,
            memory: MemoryStorage::new(),
            handles: Vec::new(),
            seed,
        }
    }

    /// Performs an operation on both and fails unless they agree.
    fn compare<T: PartialEq + Debug>(
        &self,
        what: &str,
        act: impl Fn(&dyn Storage, &Path) -> io::Result<T>,
    ) {
        let local = act(&LocalStorage, &self.local).map_err(|error| error.kind());
        let memory = act(&self.memory, Path::new("/")).map_err(|error| error.kind());
        assert_eq!(memory, local, "{what} in history {}", self.seed);
    }

    /// Opens a file on both and keeps the handles if they agree.
    fn open(
        &mut self,
        what: &str,
        act: impl Fn(&dyn Storage, &Path) -> io::Result<Arc<dyn StorageFile>>,
    ) {
        self.compare(what, |storage, root| act(storage, root).map(drop));
        let local = act(&LocalStorage, &self.local);
        if let (Ok(local), Ok(memory)) = (local, act(&self.memory, Path::new("/"))) {
            self.handles.push([local, memory]);
        }
    }

    fn compare_handles<T: PartialEq + Debug>(
        &self,
        what: &str,
        n: usize,
        act: impl Fn(&dyn StorageFile) -> io::Result<T>,
    ) {
        let Some(pair) = self.handles.get(n) else {
            return;
        };
        let [local, memory] =
            [&pair[0], &pair[1]].map(|file| act(file.as_ref()).map_err(|error| error.kind()));
        assert_eq!(memory, local, "{what} in history {}", self.seed);
    }

    fn operate(&mut self, random: &mut SplitMix) {
        const PATHS: [&str; 9] = [
            "a", "b", "dir", "dir/c", "dir/d", "none/e", "a/f", "dir/../b", "dir/./c",
        ];
        let path = PATHS[random.below(PATHS.len())];
        let other = PATHS[random.below(PATHS.len())];
        let n = random.below(self.handles.len());
        let size = random.below(9);
        match random.below(20) {
            0 => self.compare(&format!("create_dir {path}"), |s, r| {
                s.create_dir(&r.join(path))
            }),
            1 => self.compare(&format!("create {path}"), |s, r| {
                s.create_new(&r.join(path)).map(|_| ())
            }),
            2 => self.compare(&format!("link {path} {other}"), |s, r| {
                // The engine never passes a directory as `from`.
                match s.list(&r.join(path)) {
                    Ok(_) => Ok(()),
                    Err(_) => s.link_new(&r.join(path), &r.join(other)),
                }
            }),
            3 => self.compare(&format!("remove {path}"), |s, r| {
                s.remove_file(&r.join(path))
            }),
            4 => self.compare(&format!("exists {path}"), |s, r| s.exists(&r.join(path))),
            5 => self.compare(&format!("list {path}"), |s, r| {
                let mut names = s.list(&r.join(path))?;
                names.sort();
                Ok(names)
            }),
            6 | 7 => self.open(&format!("open_append {path}"), |s, r| {
                s.open_append(&r.join(path))
            }),
            8 => self.open(&format!("open_read {path}"), |s, r| {
                // Opening a directory is an intended difference.
                match s.list(&r.join(path)) {
                    Ok(_) => errno(disk::EISDIR),
                    Err(_) => s.open_read(&r.join(path)),
                }
            }),
            9 | 10 => self.compare_handles("append", n, |file| file.append(&[7; 9][..size])),
            11 => self.compare_handles("truncate", n, |file| file.truncate(size as u64)),
            12 => self.compare_handles("read", n, |file| {
                let mut buf = [0; 20];
                let count = file.read_at(&mut buf, size as u64)?;
                Ok((count, buf, file.len()?))
            }),
            13 => self.compare_handles("try_lock", n, |file| file.try_lock()),
            14 => self.compare_handles("unlock", n, |file| file.unlock()),
            15 => self.compare_handles("share", n, |file| file.try_lock_shared()),
            16 => self.compare(&format!("rename {path} {other}"), |s, r| {
                s.rename_new(&r.join(path), &r.join(other))
            }),
            17 => self.compare(&format!("replace {path} {other}"), |s, r| {
                // The engine never passes directories here.
                match (s.list(&r.join(path)), s.list(&r.join(other))) {
                    (Err(_), Err(_)) => s.replace(&r.join(path), &r.join(other)),
                    _ => Ok(()),
                }
            }),
            18 => self.compare(&format!("remove_dir {path}"), |s, r| {
                s.remove_dir(&r.join(path))
            }),
            _ => {
                if !self.handles.is_empty() {
                    self.handles.swap_remove(n);
                }
            }
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn memory_answers_as_linux_does() {
    let scratch = Scratch::new();
    for seed in 0..100 {
        let mut random = SplitMix::new(seed);
        let mut pair = Pair::new(&scratch, seed);
        for _ in 0..100 {
            pair.operate(&mut random);
        }
    }
}
