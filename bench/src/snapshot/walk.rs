//! The lower bound: a walk over a tree with two threads that only lists and calls `stat`,
//! and one that also reads and hashes every file.

use std::ffi::{CStr, CString};
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, Stat, openat, statat};

use crate::{Error, Result};

/// What a walk found.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) files: usize,
    pub(crate) dirs: usize,
    pub(crate) bytes: u64,
}

/// The number of cores of the reference machine.
const THREADS: usize = 2;

/// Lists everything below `root` and calls `stat`.
pub(super) fn look(root: &Path) -> Result<Found> {
    let parts = walk(root, |found: &mut Found, _, _, stat| {
        found.note(stat);
        Ok(())
    })?;
    Ok(Found::sum(parts.iter()))
}

/// The same, and reads and hashes every file.
pub(super) fn hash(root: &Path) -> Result<Found> {
    let parts = walk(
        root,
        |(found, buffer): &mut (Found, Vec<u8>), dir, name, stat| {
            found.note(stat);
            if FileType::from_raw_mode(stat.st_mode).is_file() {
                read_whole(dir, name, stat.st_size as usize, buffer)?;
                black_box(blake3::hash(buffer));
            }
            Ok(())
        },
    )?;
    Ok(Found::sum(parts.iter().map(|(found, _)| found)))
}

fn read_whole(dir: BorrowedFd<'_>, name: &CStr, len: usize, buffer: &mut Vec<u8>) -> Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(dir, name, flags, Mode::empty())?;
    buffer.resize(len, 0);
    let mut read = 0;
    while read < len {
        match rustix::io::read(&file, &mut buffer[read..])? {
            0 => return Err(format!("{name:?} became shorter").into()),
            n => read += n,
        }
    }
    Ok(())
}

impl Found {
    fn note(&mut self, stat: &Stat) {
        if FileType::from_raw_mode(stat.st_mode).is_dir() {
            self.dirs += 1;
        } else {
            self.files += 1;
            self.bytes += stat.st_size as u64;
        }
    }

    fn sum<'a>(parts: impl Iterator<Item = &'a Self>) -> Self {
        parts.fold(Self::default(), |all, part| Self {
            files: all.files + part.files,
            dirs: all.dirs + part.dirs,
            bytes: all.bytes + part.bytes,
        })
    }
}

/// Walks with [`THREADS`] threads, each with its own `T`; returns those.
fn walk<T: Default + Send>(
    root: &Path,
    visit: impl Fn(&mut T, BorrowedFd<'_>, &CStr, &Stat) -> Result<()> + Sync,
) -> Result<Vec<T>> {
    let queue = Queue::starting_with(Waiting {
        parent: None,
        name: CString::new(root.as_os_str().as_encoded_bytes())?,
    });
    std::thread::scope(|scope| {
        let work = || -> Result<T> {
            let mut own = T::default();
            let mut buffer = Vec::with_capacity(32 << 10);
            while let Some(dir) = queue.take() {
                let listed = list(dir, &queue, &mut buffer, &mut |dir, name, stat| {
                    visit(&mut own, dir, name, stat)
                });
                queue.done();
                listed?;
            }
            Ok(own)
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        let parts = threads.into_iter().map(|thread| {
            let part = thread.join().map_err(|_| "a thread panicked")?;
            part.map_err(|error| Error::from(format!("cannot walk: {error}")))
        });
        parts.collect()
    })
}

/// Lists a directory, calls `stat` on its entries, and queues the directories among them.
fn list(
    dir: Waiting,
    queue: &Queue,
    buffer: &mut Vec<u8>,
    visit: &mut dyn FnMut(BorrowedFd<'_>, &CStr, &Stat) -> Result<()>,
) -> Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let parent = dir.parent.as_ref().map_or(CWD, |parent| parent.as_fd());
    let fd = Arc::new(openat(parent, &dir.name, flags, Mode::empty())?);
    drop(dir);
    let spare: &mut [MaybeUninit<u8>] = buffer.spare_capacity_mut();
    let mut listing = RawDir::new(fd.as_fd(), spare);
    let mut below = Vec::new();
    while let Some(entry) = listing.next() {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let stat = statat(fd.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW)?;
        visit(fd.as_fd(), name, &stat)?;
        if FileType::from_raw_mode(stat.st_mode).is_dir() {
            below.push(Waiting {
                parent: Some(Arc::clone(&fd)),
                name: name.to_owned(),
            });
        }
    }
    if !below.is_empty() {
        queue.add(below);
    }
    Ok(())
}

/// A directory that is still to be listed.
struct Waiting {
    parent: Option<Arc<OwnedFd>>,
    name: CString,
}

/// Directories to be listed, last in first out, so that few are open.
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    waiting: Vec<Waiting>,
    /// How many threads are working and may find more.
    busy: usize,
}

impl Queue {
    fn starting_with(first: Waiting) -> Self {
        Self {
            state: Mutex::new(State {
                waiting: vec![first],
                busy: 0,
            }),
            changed: Condvar::new(),
        }
    }

    /// Takes a directory, waiting while others may find more.
    fn take(&self) -> Option<Waiting> {
        let mut state = self.lock();
        loop {
            if let Some(dir) = state.waiting.pop() {
                state.busy += 1;
                return Some(dir);
            }
            if state.busy == 0 {
                return None;
            }
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn add(&self, dirs: Vec<Waiting>) {
        self.lock().waiting.extend(dirs);
        self.changed.notify_all();
    }

    /// Marks the taken directory as listed.
    fn done(&self) {
        let mut state = self.lock();
        state.busy -= 1;
        if state.busy == 0 && state.waiting.is_empty() {
            self.changed.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_walk_comes_by_everything_once() {
        let dir = tempfile::tempdir().unwrap();
        let mut at = dir.path().to_owned();
        for n in 0..20 {
            for name in ["a", "b", "c"] {
                fs::create_dir(at.join(name)).unwrap();
                fs::write(at.join(name).join("file"), vec![n; 100]).unwrap();
            }
            at.push("b");
        }
        let expected = Found {
            files: 60,
            dirs: 60,
            bytes: 6_000,
        };
        assert_eq!(look(dir.path()).unwrap(), expected);
        assert_eq!(hash(dir.path()).unwrap(), expected);
        assert!(look(&dir.path().join("none")).is_err());
    }
}
