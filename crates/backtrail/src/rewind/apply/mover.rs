//! Moving staged files into place, one item at a time: forward, and back if it cannot be
//! finished.
//!
//! Each move is recorded, checked afterwards, and reversed if somebody else changed the
//! path at the same moment.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::super::outcome::NotRestored;
use super::super::path_change::{PathChange, PathEntry};
use super::compare::KnownFile;
use super::root_dir::{RootDir, SplitPath, is_gone, is_unsupported, may_write};
use super::stage::{FEW, Prepared};
use super::staging_dir::{OPEN, StagingDir, new_name, old_name};
use crate::error::{Error, Result};
use crate::snapshot::FileKind;
use crate::snapshot::name::bytes_of;
use crate::snapshot::scan::sys::{self, Seen};

pub(super) const CHANGED: &str = "changed meanwhile";
const TAKEN: &str = "something else was created there meanwhile";
const NO_DIR: &str = "its directory changed meanwhile";
pub(super) const HOLDS: &str = "has unknown files in it";
pub(super) const GONE: &str = "removed meanwhile";
const BITS: &str = "the system refuses its mode";

/// A move that was made, by the number of its item; each can be reversed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MoverStep {
    /// The old file is in the staging directory.
    TookOut(usize),
    /// The new file left the staging directory.
    PutIn(usize),
    /// The new file left the staging directory, and the old one has its name there.
    Exchanged(usize),
    MadeDir(usize),
    RemovedDir(usize),
    /// The mode before.
    SetMode(usize, u32),
}

/// How a move ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MoveResult {
    Done,
    /// It was not made, or reversed, for this reason.
    Left(&'static str),
}

/// Moves files, and keeps a list of what was done.
pub(super) struct Mover<'a> {
    pub(super) root_dir: &'a RootDir<'a>,
    pub(super) staging: &'a mut StagingDir,
    pub(super) items: &'a [PathChange],
    pub(super) ready: &'a [Prepared],
    pub(super) did: Vec<MoverStep>,
    /// The reasons for items that were left alone, by number.
    pub(super) left: Vec<Option<String>>,
    /// What must be synced: directories, and files whose mode changed.
    pub(super) touched: BTreeSet<PathBuf>,
    /// An item that the system refuses is left alone, and does not stop the rest.
    pub(super) lenient: bool,
}

impl<'a> Mover<'a> {
    pub(super) fn new(
        root_dir: &'a RootDir<'a>,
        staging: &'a mut StagingDir,
        items: &'a [PathChange],
        ready: &'a [Prepared],
    ) -> Self {
        Self {
            root_dir,
            staging,
            items,
            ready,
            did: Vec::new(),
            left: ready.iter().map(|ready| ready.left.clone()).collect(),
            touched: BTreeSet::new(),
            lenient: false,
        }
    }

    /// Returns what was left alone, in the order of the paths.
    pub(super) fn into_left(self) -> Vec<NotRestored> {
        let left = self.items.iter().zip(self.left);
        let named = left.filter_map(|(item, reason)| {
            let path = item.path.clone();
            reason.map(|reason| NotRestored { path, reason })
        });
        named.collect()
    }

    fn record(&mut self, did: MoverStep, place: SplitPath<'_>) {
        self.did.push(did);
        self.touched
            .insert(PathBuf::from(OsStr::from_bytes(place.dir)));
    }

    /// Forgets the last move: it was reversed.
    fn forget(&mut self) {
        self.did.pop();
    }

    /// Replaces a file or link.
    pub(super) fn replace(&mut self, n: usize) -> Result<MoveResult> {
        let item = &self.items[n];
        let (Some(old), place) = (&item.old, SplitPath::of(&item.path)) else {
            return Ok(MoveResult::Done);
        };
        let name = new_name(place.path);
        let dir = match self.root_dir.exchange(&self.staging.fd, &name, place) {
            Ok(dir) => dir,
            Err(error) if is_gone(error) => return Ok(MoveResult::Left(GONE)),
            Err(error) if is_unsupported(error) => return self.replace_in_two(n),
            Err(error) => return Err(self.failed("put a file in place", "renameat2", n, error)),
        };
        self.record(MoverStep::Exchanged(n), place);
        if self.is_staged(n, &name, old, self.ready[n].known.as_ref())? {
            return Ok(MoveResult::Done);
        }
        let back = self
            .root_dir
            .exchange_back(&self.staging.fd, &name, place, &dir);
        back.map_err(|error| self.failed("put a file back", "renameat2", n, error))?;
        self.forget();
        Ok(MoveResult::Left(CHANGED))
    }

    /// Replaces a file in two moves, if the file system cannot exchange names.
    fn replace_in_two(&mut self, n: usize) -> Result<MoveResult> {
        match self.take_out(n)? {
            MoveResult::Done => self.put_in(n),
            left => Ok(left),
        }
    }

    /// Moves an old file or link to the staging directory.
    pub(super) fn take_out(&mut self, n: usize) -> Result<MoveResult> {
        let item = &self.items[n];
        let (Some(old), place) = (&item.old, SplitPath::of(&item.path)) else {
            return Ok(MoveResult::Done);
        };
        let name = old_name(place.path);
        let dir = match self.root_dir.take(place, &self.staging.fd, &name) {
            Ok(dir) => dir,
            Err(error) if is_gone(error) => return Ok(MoveResult::Left(GONE)),
            Err(error) => return Err(self.failed("move a file away", "renameat2", n, error)),
        };
        self.record(MoverStep::TookOut(n), place);
        if self.is_staged(n, &name, old, self.ready[n].known.as_ref())? {
            return Ok(MoveResult::Done);
        }
        match self
            .root_dir
            .put(&self.staging.fd, &name, place, Some(&dir))
        {
            Ok(()) => self.forget(),
            // Both exist now, and the sweep saves this one.
            Err(Errno::EXIST) => {}
            Err(error) => return Err(self.failed("put a file back", "renameat2", n, error)),
        }
        Ok(MoveResult::Left(CHANGED))
    }

    /// Moves a new file to a path that does not exist.
    pub(super) fn put_in(&mut self, n: usize) -> Result<MoveResult> {
        let place = SplitPath::of(&self.items[n].path);
        let name = new_name(place.path);
        match self.root_dir.put(&self.staging.fd, &name, place, None) {
            Ok(()) => {
                self.record(MoverStep::PutIn(n), place);
                Ok(MoveResult::Done)
            }
            Err(Errno::EXIST) => Ok(MoveResult::Left(TAKEN)),
            Err(error) if is_gone(error) => Ok(MoveResult::Left(NO_DIR)),
            Err(error) => Err(self.failed("put a file in place", "renameat2", n, error)),
        }
    }

    pub(super) fn make_dir(&mut self, n: usize) -> Result<MoveResult> {
        let place = SplitPath::of(&self.items[n].path);
        match self.root_dir.make_dir(place.path) {
            Ok(()) => {
                self.record(MoverStep::MadeDir(n), place);
                Ok(MoveResult::Done)
            }
            Err(Errno::EXIST) => Ok(MoveResult::Left(TAKEN)),
            Err(error) if is_gone(error) => Ok(MoveResult::Left(NO_DIR)),
            Err(error) => Err(self.failed("make a directory", "mkdirat", n, error)),
        }
    }

    pub(super) fn remove_dir(&mut self, n: usize) -> Result<MoveResult> {
        let place = SplitPath::of(&self.items[n].path);
        match self.root_dir.remove_dir(place.path) {
            Ok(()) => {
                self.record(MoverStep::RemovedDir(n), place);
                Ok(MoveResult::Done)
            }
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(MoveResult::Left(HOLDS)),
            Err(Errno::NOENT) => Ok(MoveResult::Left(GONE)),
            Err(error) if is_gone(error) => Ok(MoveResult::Left(CHANGED)),
            Err(error) => Err(self.failed("remove a directory", "unlinkat", n, error)),
        }
    }

    /// Sets the mode of an existing file or directory.
    pub(super) fn set_mode(&mut self, n: usize) -> Result<MoveResult> {
        let item = &self.items[n];
        let (Some(PathEntry::File { mode, .. } | PathEntry::Dir { mode }), known) =
            (&item.new, self.ready[n].known)
        else {
            return Ok(MoveResult::Done);
        };
        let is_expected = |seen: &Seen| match item.becomes_dir() {
            true => seen.kind == FileKind::Dir && is_ours(item, seen.stamp.mode),
            false => {
                let same = known.is_some_and(|known| known.is_unchanged(seen));
                seen.kind == FileKind::File && same
            }
        };
        match self.root_dir.set_mode(&item.path, *mode, is_expected) {
            Ok(Some(was)) if was == *mode => return Ok(MoveResult::Done),
            Ok(Some(was)) => self.did.push(MoverStep::SetMode(n, was)),
            Ok(None) => return Ok(MoveResult::Left(CHANGED)),
            Err(error) => return Err(self.failed("set a mode", "fchmod", n, error)),
        }
        self.touched.insert(item.path.clone());
        let seen = self.root_dir.look(&item.path);
        let seen = seen.map_err(|error| self.failed("look at a mode", "fstatat", n, error))?;
        match seen {
            Some(seen) if seen.stamp.mode == *mode => Ok(MoveResult::Done),
            _ => Ok(MoveResult::Left(BITS)),
        }
    }

    /// Returns whether a staged name is what it should be.
    pub(super) fn is_staged(
        &self,
        n: usize,
        name: &str,
        entry: &PathEntry,
        known: Option<&KnownFile>,
    ) -> Result<bool> {
        let at = (&self.staging.fd, name.as_bytes());
        let is = self.root_dir.is(at, &self.items[n].path, entry, known);
        is.map_err(|error| self.failed("read a file that was moved away", "read", n, error))
    }

    pub(super) fn failed(&self, doing: &str, call: &'static str, n: usize, error: Errno) -> Error {
        self.root_dir
            .failed(doing, call, &self.items[n].path, error)
    }

    pub(super) fn path(&self, n: usize) -> &'a Path {
        &self.items[n].path
    }
}

/// Returns whether a directory has its old mode, its new one, or the one it has while we
/// work in it.
pub(super) fn is_ours(item: &PathChange, mode: u32) -> bool {
    let of = |entry: &Option<PathEntry>| match entry {
        Some(PathEntry::Dir { mode: own }) => mode == *own || mode == own | OPEN,
        _ => false,
    };
    // A directory inherits some bits from the one that it is created in.
    of(&item.old) || of(&item.new) || (!item.was_dir() && mode & !0o2000 == OPEN)
}

/// The direction in which the work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    Back,
}

impl Mover<'_> {
    /// Brings every item to its new state. After an error some are there, and some are not.
    pub(super) fn forward(&mut self) -> Result<()> {
        self.make_writable()?;
        let all = 0..self.items.len();
        for n in all.clone().rev() {
            if self.items[n].removes() {
                self.work_on(n, |mover| match mover.items[n].was_dir() {
                    true => mover.remove_dir(n),
                    false => mover.take_out(n),
                })?;
            }
        }
        for n in all.clone() {
            let item = &self.items[n];
            if item.becomes_dir() && !item.was_dir() && !bytes_of(&item.path).is_empty() {
                self.work_on(n, |mover| mover.make_dir(n))?;
            }
        }
        for n in all.clone() {
            let item = &self.items[n];
            let is_put = item.old.is_none() || item.was_dir();
            match () {
                () if item.stages() && is_put => self.work_on(n, |mover| mover.put_in(n))?,
                () if item.stages() => self.work_on(n, |mover| mover.replace(n))?,
                () if item.is_mode_only() => self.work_on(n, |mover| mover.set_mode(n))?,
                () => {}
            }
        }
        for n in all.rev() {
            if self.items[n].becomes_dir() && !bytes_of(self.path(n)).is_empty() {
                self.work_on(n, |mover| mover.set_mode(n))?;
            }
        }
        Ok(())
    }

    /// Works on an item unless it was left alone already.
    fn work_on(&mut self, n: usize, act: impl Fn(&mut Self) -> Result<MoveResult>) -> Result<()> {
        if self.left[n].is_some() {
            return Ok(());
        }
        match act(self) {
            Ok(MoveResult::Done) => {}
            Ok(MoveResult::Left(reason)) => self.left[n] = Some(reason.to_owned()),
            Err(error) if self.lenient && is_refused(&error) => {
                self.left[n] = Some(error_text(&error))
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Makes the directories writable for now in which names are created or removed.
    pub(super) fn make_writable(&mut self) -> Result<()> {
        let mut opened = Vec::new();
        for dir in self.dirs() {
            let fd = match self.root_dir.open_dir(bytes_of(&dir)) {
                Err(error) if is_gone(error) => continue,
                fd => fd.map_err(|error| self.unwritable(&dir, error))?,
            };
            if may_write(&fd).map_err(|error| self.unwritable(&dir, error))? {
                continue;
            }
            let seen = sys::seen(&fd).map_err(|error| self.unwritable(&dir, error))?;
            opened.push((dir, seen.stamp.mode));
        }
        if opened.is_empty() {
            return Ok(());
        }
        self.staging.record_modes(self.root_dir, opened.clone())?;
        for (dir, mode) in opened {
            let set = self.root_dir.set_mode(&dir, mode | OPEN, |seen| {
                seen.kind == FileKind::Dir && seen.stamp.mode == mode
            });
            set.map_err(|error| self.unwritable(&dir, error))?;
            self.touched.insert(dir);
        }
        Ok(())
    }

    fn unwritable(&self, dir: &Path, error: Errno) -> Error {
        self.root_dir
            .failed("write in a directory", "fchmod", dir, error)
    }

    /// Returns the directories in which names are created or removed.
    fn dirs(&self) -> Vec<PathBuf> {
        let items = self.items.iter().zip(&self.left);
        let changes = items.filter(|(item, left)| {
            let moves = item.stages() || item.removes() || !item.was_dir() && item.becomes_dir();
            left.is_none() && moves && !bytes_of(&item.path).is_empty()
        });
        let dirs = changes.map(|(item, _)| SplitPath::of(&item.path).dir);
        let mut dirs: Vec<&[u8]> = dirs.collect();
        dirs.sort_unstable();
        dirs.dedup();
        let path = |dir: &[u8]| PathBuf::from(OsStr::from_bytes(dir));
        dirs.into_iter().map(path).collect()
    }

    /// Reverses all moves, the last first; items that cannot be put back are named.
    pub(super) fn back(&mut self) {
        self.left = vec![None; self.items.len()];
        let mut made = Vec::new();
        while let Some(did) = self.did.pop() {
            let (n, result) = match did {
                MoverStep::TookOut(n) => (n, self.put_back(n)),
                MoverStep::PutIn(n) => (n, self.take_back(n)),
                MoverStep::Exchanged(n) => (n, self.exchange_back(n)),
                MoverStep::MadeDir(n) => (n, self.unmake_dir(n)),
                MoverStep::RemovedDir(n) => {
                    made.push(n);
                    (n, self.remake_dir(n))
                }
                MoverStep::SetMode(n, was) => (n, self.unset_mode(n, was)),
            };
            self.record_back(n, result);
        }
        for n in made {
            if let Some(PathEntry::Dir { mode }) = self.items[n].old {
                let result = self.unset_mode(n, mode);
                self.record_back(n, result);
            }
        }
    }

    fn record_back(&mut self, n: usize, result: Result<MoveResult>) {
        let reason = match result {
            Ok(MoveResult::Done) => return,
            Ok(MoveResult::Left(reason)) => reason.to_owned(),
            Err(error) => error_text(&error),
        };
        self.left[n].get_or_insert(reason);
    }

    fn put_back(&mut self, n: usize) -> Result<MoveResult> {
        let place = SplitPath::of(self.path(n));
        match self
            .root_dir
            .put(&self.staging.fd, &old_name(place.path), place, None)
        {
            Ok(()) => Ok(MoveResult::Done),
            Err(Errno::EXIST) => Ok(MoveResult::Left(CHANGED)),
            Err(error) if is_gone(error) => Ok(MoveResult::Left(CHANGED)),
            Err(error) => Err(self.failed("put a file back", "renameat2", n, error)),
        }
    }

    fn take_back(&mut self, n: usize) -> Result<MoveResult> {
        let (place, name) = (SplitPath::of(self.path(n)), new_name(self.path(n)));
        let dir = match self.root_dir.take(place, &self.staging.fd, &name) {
            Ok(dir) => dir,
            Err(error) if is_gone(error) => return Ok(MoveResult::Left(CHANGED)),
            Err(error) => return Err(self.failed("take a file back", "renameat2", n, error)),
        };
        if self.is_new_staged(n, &name)? {
            return Ok(MoveResult::Done);
        }
        match self
            .root_dir
            .put(&self.staging.fd, &name, place, Some(&dir))
        {
            Ok(()) | Err(Errno::EXIST) => Ok(MoveResult::Left(CHANGED)),
            Err(error) => Err(self.failed("put a file back", "renameat2", n, error)),
        }
    }

    fn exchange_back(&mut self, n: usize) -> Result<MoveResult> {
        let (place, name) = (SplitPath::of(self.path(n)), new_name(self.path(n)));
        let dir = match self.root_dir.exchange(&self.staging.fd, &name, place) {
            Ok(dir) => dir,
            Err(error) if is_gone(error) => return Ok(MoveResult::Left(CHANGED)),
            Err(error) => return Err(self.failed("put a file back", "renameat2", n, error)),
        };
        if self.is_new_staged(n, &name)? {
            return Ok(MoveResult::Done);
        }
        let back = self
            .root_dir
            .exchange_back(&self.staging.fd, &name, place, &dir);
        back.map_err(|error| self.failed("put a file back", "renameat2", n, error))?;
        Ok(MoveResult::Left(CHANGED))
    }

    fn is_new_staged(&self, n: usize, name: &str) -> Result<bool> {
        match &self.items[n].new {
            Some(new) => self.is_staged(n, name, new, None),
            None => Ok(true),
        }
    }

    fn unmake_dir(&mut self, n: usize) -> Result<MoveResult> {
        let result = self.remove_dir(n);
        if result
            .as_ref()
            .is_ok_and(|result| *result == MoveResult::Done)
        {
            self.did.pop();
        }
        result
    }

    fn remake_dir(&mut self, n: usize) -> Result<MoveResult> {
        let result = self.make_dir(n);
        if result
            .as_ref()
            .is_ok_and(|result| *result == MoveResult::Done)
        {
            self.did.pop();
        }
        result
    }

    fn unset_mode(&mut self, n: usize, mode: u32) -> Result<MoveResult> {
        match self.root_dir.set_mode(self.path(n), mode, |_| true) {
            Ok(Some(_)) => Ok(MoveResult::Done),
            Ok(None) => Ok(MoveResult::Left(CHANGED)),
            Err(error) => Err(self.failed("set a mode back", "fchmod", n, error)),
        }
    }

    /// Restores the modes of directories that are writable for now, except those that got
    /// a new one. The root comes last, when nothing is staged any more.
    pub(super) fn restore_modes(&self, ended: Direction) -> Result<()> {
        for (path, mode) in self.staging.made_writable.iter().rev() {
            if !bytes_of(path).is_empty() && !self.has_mode(path, ended) {
                self.staging.restore_mode(self.root_dir, path, *mode)?;
            }
        }
        Ok(())
    }

    /// Sets the mode of the root, new or old, when no more names change in it.
    pub(super) fn finish_root(&mut self, ended: Direction) -> Result<()> {
        let is_root = |path: &Path| bytes_of(path).is_empty();
        let root = self
            .staging
            .made_writable
            .iter()
            .find(|(path, _)| is_root(path));
        if let Some((path, mode)) = root
            && !self.has_mode(path, ended)
        {
            return self.staging.restore_mode(self.root_dir, path, *mode);
        }
        match self.items.first() {
            Some(item) if ended == Direction::Forward && is_root(&item.path) => {
                self.work_on(0, |mover| mover.set_mode(0))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether a path is an item that got its new mode.
    fn has_mode(&self, path: &Path, ended: Direction) -> bool {
        let found = self
            .items
            .binary_search_by(|item| bytes_of(&item.path).cmp(bytes_of(path)));
        found.is_ok_and(|n| {
            ended == Direction::Forward && self.items[n].becomes_dir() && self.left[n].is_none()
        })
    }

    /// Syncs what was done.
    pub(super) fn sync(&self) -> Result<()> {
        let failed = |call, path: &Path, error| {
            self.root_dir
                .failed("make the changes durable", call, path, error)
        };
        if self.touched.len() > FEW {
            let synced = self.root_dir.sync_all();
            return synced.map_err(|error| failed("syncfs", Path::new(""), error));
        }
        for path in &self.touched {
            let synced = self.root_dir.sync(path);
            synced.map_err(|error| failed("fsync", path, error))?;
        }
        Ok(())
    }
}

/// Returns whether the system refuses something for good.
fn is_refused(error: &Error) -> bool {
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref());
    source.is_some_and(|source: &io::Error| source.kind() == io::ErrorKind::PermissionDenied)
}

/// Returns an error with its cause.
pub(super) fn error_text(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
