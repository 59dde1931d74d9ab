//! How much there is in what a scan skipped.
//!
//! Snapshots say that something was skipped, and nothing about what is in it. A survey looks
//! at names, lengths and times, and reads no content. It looks at a limited number of
//! names, breadth first, so that a huge directory costs little and does not hide the others:
//! what it says of such a directory is a lower bound. Two surveys are compared by the
//! directories that both listed.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::super::entry::{FileKind, Skipped, SkippedReason};
use super::super::name::bytes_of;
use super::split;
use super::sys::{self, Names, Root, Seen};
use super::walk::join;

/// How many names a survey looks at.
const NAMES: usize = 10_000;

/// An amount of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Amount {
    /// The number of files; 1 for a file.
    pub files: u64,
    /// Their total length.
    pub bytes: u64,
    /// Whether there may be more: not everything was looked at.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
}

/// What was skipped, and how much is in it.
#[derive(Debug, Default)]
pub(crate) struct Survey(pub(crate) BTreeMap<PathBuf, Surveyed>);

/// One skipped entry.
#[derive(Debug)]
pub(crate) struct Surveyed {
    pub(crate) skipped: Skipped,
    /// Its inode, and a hash of what its metadata says about its content.
    ino: u64,
    stamp: u64,
    /// Of a directory: those in it, by their paths; `None` if it was not listed.
    dirs: BTreeMap<Box<[u8]>, Option<DirSum>>,
    /// What was seen in directories that were not listed to their end.
    partly: DirSum,
}

/// The files in one directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct DirSum {
    files: u64,
    bytes: u64,
    /// Depends on the names, lengths and times.
    hash: u64,
}

/// How a skipped entry differs from an earlier survey.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Difference {
    Same,
    Changed,
    /// There is less in it.
    Smaller,
}

impl DirSum {
    fn add(&mut self, name: &CStr, seen: &Seen) {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(seen.len());
        // In any order: a directory may list its names differently.
        self.hash = self.hash.wrapping_add(hash((name, stamp_of(seen))));
    }
}

fn stamp_of(seen: &Seen) -> u64 {
    let stamp = &seen.stamp;
    hash((stamp.ino, stamp.size, stamp.mtime, stamp.mode))
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl Survey {
    /// Looks at skipped entries of the workspace `root`. What cannot be read counts as
    /// not listed.
    pub(crate) fn take(root: &Path, store: &Path, skipped: &[(PathBuf, Skipped)]) -> Self {
        Self::of_names(root, store, skipped, NAMES)
    }

    fn of_names(root: &Path, store: &Path, skipped: &[(PathBuf, Skipped)], names: usize) -> Self {
        let Ok(root) = Root::open(root) else {
            return Self::default();
        };
        let store = sys::seen_path(store).ok();
        let mut surveyor = Surveyor {
            root,
            store: store.map(|seen| (seen.dev, seen.stamp.ino)),
            left: names,
            names: Names::default(),
        };
        let mut entries: Vec<(&PathBuf, Surveyed)> = skipped
            .iter()
            .filter_map(|(path, skipped)| Some((path, surveyor.begin(path, skipped)?)))
            .collect();
        surveyor.list(&mut entries);
        let entries = entries.into_iter();
        Self(entries.map(|(path, it)| (path.clone(), it)).collect())
    }

    /// Returns the entry that another one was moved to, if it is still as much.
    pub(crate) fn moved_to(&self, was: &Surveyed) -> bool {
        let is_it = |now: &&Surveyed| now.ino == was.ino && now.skipped.kind == was.skipped.kind;
        let mut entries = self.0.values().filter(is_it);
        entries.any(|now| was.compare(now) != Difference::Smaller)
    }
}

impl Surveyed {
    /// Returns how much there is; `None` if that is not known.
    pub(crate) fn amount(&self) -> Option<Amount> {
        match self.skipped.kind {
            FileKind::File => Some(Amount {
                files: 1,
                bytes: self.skipped.size,
                at_least: false,
            }),
            FileKind::Dir if self.dirs.is_empty() => None,
            FileKind::Dir => {
                let listed = self.dirs.values().flatten().chain([&self.partly]);
                let mut amount = Amount {
                    at_least: self.dirs.values().any(Option::is_none),
                    ..Amount::default()
                };
                for sum in listed {
                    amount.files += sum.files;
                    amount.bytes = amount.bytes.saturating_add(sum.bytes);
                }
                Some(amount)
            }
            _ => None,
        }
    }

    /// Compares it with its later state.
    pub(crate) fn compare(&self, now: &Self) -> Difference {
        if self.skipped.kind != now.skipped.kind {
            return Difference::Smaller;
        }
        if self.skipped.kind != FileKind::Dir {
            return match now.skipped.size < self.skipped.size {
                true => Difference::Smaller,
                false if now.stamp != self.stamp => Difference::Changed,
                false => Difference::Same,
            };
        }
        let (mut was, mut is) = (DirSum::default(), DirSum::default());
        let mut changed = false;
        for (path, before) in &self.dirs {
            match (before, now.dirs.get(path)) {
                (Some(before), Some(Some(after))) => {
                    changed |= before != after;
                    was.count(before);
                    is.count(after);
                }
                (before, None) if now.lacks(path) => {
                    changed = true;
                    // One that was not listed had something in it, as far as is known.
                    was.count(&before.unwrap_or(DirSum {
                        files: 1,
                        ..DirSum::default()
                    }));
                }
                _ => {}
            }
        }
        for (path, after) in &now.dirs {
            if let Some(after) = after
                && !self.dirs.contains_key(path)
                && self.lacks(path)
            {
                changed = true;
                is.count(after);
            }
        }
        match (is.files < was.files || is.bytes < was.bytes, changed) {
            (true, _) => Difference::Smaller,
            (false, true) => Difference::Changed,
            (false, false) => Difference::Same,
        }
    }

    /// Returns whether it is known that a directory, which has no entry, did not exist.
    fn lacks(&self, path: &[u8]) -> bool {
        let mut above = path;
        while !above.is_empty() {
            above = split(above).0;
            match self.dirs.get(above) {
                Some(Some(_)) => return true,
                Some(None) => return false,
                None => {}
            }
        }
        false
    }
}

impl DirSum {
    fn count(&mut self, other: &Self) {
        self.files += other.files;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

struct Surveyor {
    root: Root,
    /// The store's device and inode: it changes all the time.
    store: Option<(u64, u64)>,
    /// How many names it may still look at.
    left: usize,
    names: Names,
}

impl Surveyor {
    /// Looks at an entry itself; `None` if it holds nothing that could be lost.
    fn begin(&self, path: &Path, skipped: &Skipped) -> Option<Surveyed> {
        use SkippedReason::{Git, Special, Store};
        if matches!(skipped.reason, Git | Special | Store) {
            return None;
        }
        let (dir, name) = split(bytes_of(path));
        let fd = self.root.open_dir(dir).ok()?;
        let seen = sys::seen_at(&fd, name).ok()?;
        let mut surveyed = Surveyed {
            skipped: *skipped,
            ino: seen.stamp.ino,
            stamp: stamp_of(&seen),
            dirs: BTreeMap::new(),
            partly: DirSum::default(),
        };
        let is_here = seen.dev == self.root.dev && self.store != Some((seen.dev, seen.stamp.ino));
        if seen.kind == FileKind::Dir && skipped.kind == FileKind::Dir && is_here {
            surveyed.dirs.insert(Box::default(), None);
        }
        Some(surveyed)
    }

    /// Lists the directories of all entries, the topmost first.
    fn list(&mut self, entries: &mut [(&PathBuf, Surveyed)]) {
        let is_dir = |n: &usize| !entries[*n].1.dirs.is_empty();
        let mut level: Vec<(usize, Box<[u8]>)> = (0..entries.len())
            .filter(is_dir)
            .map(|n| (n, Box::default()))
            .collect();
        while !level.is_empty() && self.left > 0 {
            let mut next: Vec<(usize, usize, Box<[u8]>)> = Vec::new();
            for (n, below) in level {
                let (path, surveyed) = &mut entries[n];
                let path = match below.is_empty() {
                    true => bytes_of(path).into(),
                    false => join(bytes_of(path), &below),
                };
                let dirs = self.list_dir(&path, &below, surveyed);
                let before = next.iter().filter(|(_, of, _)| *of == n).count();
                let dirs = dirs.into_iter().enumerate();
                next.extend(dirs.map(|(at, dir)| (before + at, n, dir)));
            }
            // The entries take turns, so that one with many directories hides no other.
            next.sort();
            level = next.into_iter().map(|(_, n, dir)| (n, dir)).collect();
        }
    }

    /// Lists one directory, and returns those in it.
    fn list_dir(&mut self, path: &[u8], below: &[u8], into: &mut Surveyed) -> Vec<Box<[u8]>> {
        let mut dirs = Vec::new();
        let Ok(fd) = self.root.open_dir(path) else {
            return dirs;
        };
        let is_here = sys::seen(&fd).is_ok_and(|seen| seen.dev == self.root.dev);
        if self.left == 0 || !is_here || self.names.read(&fd).is_err() {
            return dirs;
        }
        let mut sum = DirSum::default();
        let mut is_whole = true;
        for (name, kind) in self.names.iter() {
            if self.left == 0 {
                is_whole = false;
                break;
            }
            self.left -= 1;
            let is_dir = match kind {
                Some(kind) => kind == FileKind::Dir,
                None => sys::seen_at(&fd, name).is_ok_and(|seen| seen.kind == FileKind::Dir),
            };
            if is_dir {
                let dir = join(below, name.to_bytes());
                into.dirs.insert(dir.clone(), None);
                dirs.push(dir);
            } else if let Ok(seen) = sys::seen_at(&fd, name) {
                sum.add(name, &seen);
            }
        }
        if is_whole {
            into.dirs.insert(below.into(), Some(sum));
        } else {
            into.partly.count(&sum);
        }
        dirs
    }
}

#[cfg(test)]
#[path = "survey_tests.rs"]
mod tests;
