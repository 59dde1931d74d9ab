//! Moving staged files into place, one item at a time: forward, and back if it cannot be
//! finished.
//!
//! Each move is recorded, checked afterwards, and reversed if somebody else changed the
//! path at the same moment.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::super::outcome::NotRestored;
use super::super::path_change::{FileEntry, PathChange, PathEntry};
use super::root_dir::{RootDir, SplitPath, is_gone, is_unsupported, may_write};
use super::stage::{FEW, Prepared};
use super::staging_dir::{OPEN, StagingDir, Version};
use super::{FileWork, WorkResult};
use crate::error::{Error, Result};
use crate::snapshot::FileKind;
use crate::snapshot::name::bytes_of;
use crate::snapshot::scan::sys::{self, Horizon, Seen};
use crate::time::{Clock, SystemClock};

pub(super) const CHANGED: &str = "has changed since";
const TAKEN: &str = "something else is there now";
const NO_DIR: &str = "its directory has changed";
const HOLDS: &str = "contains unknown files";
pub(super) const GONE: &str = "no longer exists";
const BITS: &str = "its mode cannot be set";

/// A move that was made, by the number of its item; each can be reversed.
#[derive(Debug, Clone, Copy)]
enum MoverStep {
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
enum MoveResult {
    Done,
    /// It was not made, or reversed, for this reason.
    Left(&'static str),
}

/// What happens to a path that is not in its old state, or that the system refuses to
/// change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnChanged {
    /// It stops everything.
    Stop,
    /// It is left alone.
    Leave,
}

/// The direction in which the work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    Back,
}

/// Stages and moves the files of one step, and keeps a list of what was done.
#[derive(Debug)]
pub(in crate::rewind) struct Mover<'a> {
    pub(super) work: FileWork<'a>,
    pub(super) root_dir: RootDir<'a>,
    pub(super) staging: StagingDir,
    /// One for each item.
    pub(super) prepared: Vec<Prepared>,
    pub(super) on_changed: OnChanged,
    /// The root was created by this step.
    pub(super) made_root: bool,
    /// Files that changed after it may change again without showing it.
    pub(super) horizon: Horizon,
    did: Vec<MoverStep>,
    /// What must be synced: directories, and files whose mode changed.
    pub(super) touched: BTreeSet<PathBuf>,
}

impl<'a> Mover<'a> {
    pub(super) fn new(work: FileWork<'a>, root_dir: RootDir<'a>, staging: StagingDir) -> Self {
        Self {
            prepared: work.items.iter().map(|_| Prepared::default()).collect(),
            work,
            root_dir,
            staging,
            on_changed: OnChanged::Stop,
            made_root: false,
            horizon: Horizon::of(SystemClock.now().as_millis()),
            did: Vec::new(),
            touched: BTreeSet::new(),
        }
    }

    /// Moves the files and sets their modes, removes what was staged, and syncs the
    /// directories. After an error everything is put back; where that fails too, and where
    /// the clean-up fails, it returns the error, and the work must be resumed.
    pub(in crate::rewind) fn move_files(mut self) -> Result<WorkResult> {
        let Err(error) = self.move_all_in() else {
            let mut left = self.clean_up(Direction::Forward)?;
            left.extend(self.take_left());
            return Ok(WorkResult {
                left,
                rolled_back: None,
            });
        };
        if !self.put_all_back() {
            // What is staged is needed to finish it.
            return Err(error);
        }
        let cleaned = self.clean_up(Direction::Back);
        let mut left = self.take_left();
        match cleaned {
            Ok(more) => left.extend(more),
            Err(error) => left.push(NotRestored {
                path: self.staging.name.clone(),
                reason: error_text(&error),
            }),
        }
        self.work.unmake_root(self.made_root);
        Ok(WorkResult {
            left,
            rolled_back: Some(error),
        })
    }

    /// Removes what was staged; nothing else was touched.
    pub(in crate::rewind) fn give_up(mut self) {
        self.clean_up(Direction::Back).ok();
        self.work.unmake_root(self.made_root);
    }

    /// Empties the staging directory, restores the modes of directories, removes the staging
    /// directory and syncs everything. Returns what had to stay.
    pub(super) fn clean_up(&mut self, ended: Direction) -> Result<Vec<NotRestored>> {
        let swept = self.sweep();
        // Even if something has to stay in the staging directory for now.
        self.restore_modes(ended)?;
        swept?;
        let mut left = Vec::new();
        if !self.staging.remove(&self.root_dir)? {
            left.push(NotRestored {
                path: self.staging.name.clone(),
                reason: HOLDS.to_owned(),
            });
        }
        self.finish_root(ended)?;
        self.touched.insert(PathBuf::new());
        self.sync()?;
        Ok(left)
    }

    /// Removes the reasons why items were left alone, and returns them in the order of the
    /// paths.
    pub(super) fn take_left(&mut self) -> Vec<NotRestored> {
        let all = self.work.items.iter().zip(&mut self.prepared);
        let named = all.filter_map(|(item, prepared)| {
            let path = item.path.clone();
            let reason = prepared.left.take()?;
            Some(NotRestored { path, reason })
        });
        named.collect()
    }

    fn record(&mut self, did: MoverStep, place: SplitPath<'_>) {
        self.did.push(did);
        self.touched.insert(place.dir_path());
    }

    /// Exchanges a path with its staged file. If the path did not have this version, that
    /// is reversed.
    fn exchange(&mut self, n: usize, version: Version) -> Result<MoveResult> {
        let place = SplitPath::of(self.path(n));
        let name = Version::New.staged_name(place.path);
        let dir = match self.root_dir.exchange(&self.staging.fd, &name, place) {
            Ok(dir) => dir,
            Err(error) if is_gone(error) => return Ok(MoveResult::Left(GONE)),
            // The file system cannot exchange names: two moves do it.
            Err(error) if is_unsupported(error) && version == Version::Old => {
                return match self.take_out(n, version)? {
                    MoveResult::Done => self.put_in(n, Version::New),
                    left => Ok(left),
                };
            }
            Err(error) => return Err(self.failed("put a file in place", "renameat2", n, error)),
        };
        self.record(MoverStep::Exchanged(n), place);
        if self.is_staged(n, &name, version)? {
            return Ok(MoveResult::Done);
        }
        self.root_dir
            .exchange_back(&self.staging.fd, &name, place, &dir)
            .map_err(|error| self.failed("put a file back", "renameat2", n, error))?;
        self.did.pop();
        Ok(MoveResult::Left(CHANGED))
    }

    /// Moves a file or link to the staging directory. If it is not this version, it is put
    /// back.
    fn take_out(&mut self, n: usize, version: Version) -> Result<MoveResult> {
        let place = SplitPath::of(self.path(n));
        let name = version.staged_name(place.path);
        let dir = match self.root_dir.take(place, &self.staging.fd, &name) {
            Ok(dir) => dir,
            Err(error) if is_gone(error) => return Ok(MoveResult::Left(GONE)),
            Err(error) => return Err(self.failed("move a file away", "renameat2", n, error)),
        };
        self.record(MoverStep::TookOut(n), place);
        if self.is_staged(n, &name, version)? {
            return Ok(MoveResult::Done);
        }
        let fd = &self.staging.fd;
        match self.root_dir.put(fd, &name, place, Some(&dir)) {
            Ok(()) => _ = self.did.pop(),
            // Both exist now, and the sweep saves this one.
            Err(Errno::EXIST) => {}
            Err(error) => return Err(self.failed("put a file back", "renameat2", n, error)),
        }
        Ok(MoveResult::Left(CHANGED))
    }

    /// Moves a staged file to a path that does not exist.
    fn put_in(&mut self, n: usize, version: Version) -> Result<MoveResult> {
        let place = SplitPath::of(self.path(n));
        let name = version.staged_name(place.path);
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

    fn make_dir(&mut self, n: usize) -> Result<MoveResult> {
        let place = SplitPath::of(self.path(n));
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

    fn remove_dir(&mut self, n: usize) -> Result<MoveResult> {
        let place = SplitPath::of(self.path(n));
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
    fn set_mode(&mut self, n: usize) -> Result<MoveResult> {
        let (item, known) = (&self.work.items[n], self.prepared[n].known);
        let Some(PathEntry::File(FileEntry { mode, .. }) | PathEntry::Dir { mode }) = &item.new
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
        let seen = seen.map_err(|error| self.failed("read a mode", "fstatat", n, error))?;
        match seen {
            Some(seen) if seen.stamp.mode == *mode => Ok(MoveResult::Done),
            _ => Ok(MoveResult::Left(BITS)),
        }
    }

    /// Returns whether a staged name is this version of its item.
    fn is_staged(&self, n: usize, name: &str, version: Version) -> Result<bool> {
        let item = &self.work.items[n];
        let (entry, known) = match version {
            Version::Old => (&item.old, self.prepared[n].known.as_ref()),
            Version::New => (&item.new, None),
        };
        let Some(entry) = entry else { return Ok(true) };
        let at = (&self.staging.fd, name.as_bytes());
        let same = self.root_dir.same(at, &item.path, entry, known);
        same.map(|same| same.is_some())
            .map_err(|error| self.failed("read a file that was moved away", "read", n, error))
    }

    pub(super) fn failed(&self, doing: &str, call: &'static str, n: usize, error: Errno) -> Error {
        self.root_dir.failed(doing, call, self.path(n), error)
    }

    pub(super) fn path(&self, n: usize) -> &'a Path {
        &self.work.items[n].path
    }

    /// Brings every item to its new state. After an error some are there, and some are not.
    pub(super) fn move_all_in(&mut self) -> Result<()> {
        self.make_writable()?;
        let items = self.work.items;
        let all = 0..items.len();
        for n in all.clone().rev().filter(|n| items[*n].removes()) {
            self.work_on(n, |mover| match items[n].was_dir() {
                true => mover.remove_dir(n),
                false => mover.take_out(n, Version::Old),
            })?;
        }
        let is_dir = |n: &usize| items[*n].becomes_dir() && !items[*n].is_root();
        for n in all.clone().filter(is_dir).filter(|n| !items[*n].was_dir()) {
            self.work_on(n, |mover| mover.make_dir(n))?;
        }
        for n in all.clone() {
            let item = &items[n];
            let is_put = item.old.is_none() || item.was_dir();
            self.work_on(n, |mover| match () {
                () if item.stages() && is_put => mover.put_in(n, Version::New),
                () if item.stages() => mover.exchange(n, Version::Old),
                () if item.is_mode_only() => mover.set_mode(n),
                () => Ok(MoveResult::Done),
            })?;
        }
        for n in all.rev().filter(is_dir) {
            self.work_on(n, |mover| mover.set_mode(n))?;
        }
        Ok(())
    }

    /// Works on an item unless it was left alone already.
    fn work_on(&mut self, n: usize, act: impl Fn(&mut Self) -> Result<MoveResult>) -> Result<()> {
        if self.prepared[n].left.is_some() {
            return Ok(());
        }
        self.prepared[n].left = match act(self) {
            Ok(MoveResult::Done) => None,
            Ok(MoveResult::Left(reason)) => Some(reason.to_owned()),
            Err(error) if self.on_changed == OnChanged::Leave && is_refused(&error) => {
                Some(error_text(&error))
            }
            Err(error) => return Err(error),
        };
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
        self.staging.record_modes(&self.root_dir, opened.clone())?;
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
    fn dirs(&self) -> BTreeSet<PathBuf> {
        let items = self.work.items.iter().zip(&self.prepared);
        let changes = items.filter(|(item, prepared)| {
            let moves = item.stages() || item.removes() || !item.was_dir() && item.becomes_dir();
            prepared.left.is_none() && moves && !item.is_root()
        });
        let dirs = changes.map(|(item, _)| SplitPath::of(&item.path).dir_path());
        dirs.collect()
    }

    /// Reverses all moves, the last first. Items that others changed are named. Returns
    /// whether the system refused nothing.
    fn put_all_back(&mut self) -> bool {
        self.take_left();
        let mut is_back = true;
        let mut made = Vec::new();
        for did in std::mem::take(&mut self.did).into_iter().rev() {
            let (n, result) = match did {
                MoverStep::TookOut(n) => (n, self.put_in(n, Version::Old)),
                MoverStep::PutIn(n) => (n, self.take_out(n, Version::New)),
                MoverStep::Exchanged(n) => (n, self.exchange(n, Version::New)),
                MoverStep::MadeDir(n) => (n, self.remove_dir(n)),
                MoverStep::RemovedDir(n) => {
                    made.push(n);
                    (n, self.make_dir(n))
                }
                MoverStep::SetMode(n, was) => (n, self.unset_mode(n, was)),
            };
            is_back &= self.record_back(n, result);
        }
        for n in made {
            if let Some(PathEntry::Dir { mode }) = self.work.items[n].old {
                let result = self.unset_mode(n, mode);
                is_back &= self.record_back(n, result);
            }
        }
        is_back
    }

    /// Returns whether the system did not refuse it.
    fn record_back(&mut self, n: usize, result: Result<MoveResult>) -> bool {
        if let Ok(MoveResult::Left(reason)) = result {
            self.prepared[n].left.get_or_insert(reason.to_owned());
        }
        result.is_ok()
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
    fn restore_modes(&self, ended: Direction) -> Result<()> {
        for (path, mode) in self.staging.made_writable.iter().rev() {
            if !bytes_of(path).is_empty() && !self.has_mode(path, ended) {
                self.staging.restore_mode(&self.root_dir, path, *mode)?;
            }
        }
        Ok(())
    }

    /// Sets the mode of the root, new or old, when no more names change in it.
    fn finish_root(&mut self, ended: Direction) -> Result<()> {
        let mut lent = self.staging.made_writable.iter();
        if let Some((path, mode)) = lent.find(|(path, _)| bytes_of(path).is_empty())
            && !self.has_mode(path, ended)
        {
            return self.staging.restore_mode(&self.root_dir, path, *mode);
        }
        match self.work.items.first() {
            Some(item) if ended == Direction::Forward && item.is_root() => {
                self.work_on(0, |mover| mover.set_mode(0))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether a path is an item that got its new mode.
    fn has_mode(&self, path: &Path, ended: Direction) -> bool {
        let items = self.work.items;
        let found = items.binary_search_by(|item| bytes_of(&item.path).cmp(bytes_of(path)));
        let got = |n: usize| items[n].becomes_dir() && self.prepared[n].left.is_none();
        ended == Direction::Forward && found.is_ok_and(got)
    }

    /// Syncs what was done.
    fn sync(&self) -> Result<()> {
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
