//! The order of the work: forward, and back if it cannot be finished.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::super::thing::Thing;
use super::beneath::{Place, is_gone, may_write};
use super::desk::{OPEN, new_name, old_name};
use super::hands::{CHANGED, Did, Hands, Turn};
use super::stage::FEW;
use crate::error::{Error, Result};
use crate::snapshot::FileKind;
use crate::snapshot::name::bytes_of;
use crate::snapshot::scan::sys;

/// Which way the work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Forward,
    Back,
}

impl Hands<'_> {
    /// Brings every item to its new state. After an error some are, and some are
    /// not.
    pub(super) fn forward(&mut self) -> Result<()> {
        self.lend()?;
        let all = 0..self.items.len();
        for n in all.clone().rev() {
            if self.items[n].removes() {
                self.turn(n, |hands| match hands.items[n].was_dir() {
                    true => hands.remove_dir(n),
                    false => hands.take_out(n),
                })?;
            }
        }
        for n in all.clone() {
            let item = &self.items[n];
            if item.becomes_dir() && !item.was_dir() && !bytes_of(&item.path).is_empty() {
                self.turn(n, |hands| hands.make_dir(n))?;
            }
        }
        for n in all.clone() {
            let item = &self.items[n];
            let is_put = item.old.is_none() || item.was_dir();
            match () {
                () if item.stages() && is_put => self.turn(n, |hands| hands.put_in(n))?,
                () if item.stages() => self.turn(n, |hands| hands.replace(n))?,
                () if item.is_mode_only() => self.turn(n, |hands| hands.set_mode(n))?,
                () => {}
            }
        }
        for n in all.rev() {
            if self.items[n].becomes_dir() && !bytes_of(self.path(n)).is_empty() {
                self.turn(n, |hands| hands.set_mode(n))?;
            }
        }
        Ok(())
    }

    /// Takes an item's turn unless it was left alone already.
    fn turn(&mut self, n: usize, act: impl Fn(&mut Self) -> Result<Turn>) -> Result<()> {
        if self.left[n].is_some() {
            return Ok(());
        }
        match act(self) {
            Ok(Turn::Done) => {}
            Ok(Turn::Left(why)) => self.left[n] = Some(why.to_owned()),
            Err(error) if self.lenient && is_refused(&error) => self.left[n] = Some(told(&error)),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Makes writable, for the time being, the directories that names are made or
    /// removed in.
    pub(super) fn lend(&mut self) -> Result<()> {
        let mut lent = Vec::new();
        for dir in self.dirs() {
            let fd = match self.beneath.open_dir(bytes_of(&dir)) {
                Err(error) if is_gone(error) => continue,
                fd => fd.map_err(|error| self.shut(&dir, error))?,
            };
            if may_write(&fd).map_err(|error| self.shut(&dir, error))? {
                continue;
            }
            let seen = sys::seen(&fd).map_err(|error| self.shut(&dir, error))?;
            lent.push((dir, seen.stamp.mode));
        }
        if lent.is_empty() {
            return Ok(());
        }
        self.desk.note(self.beneath, lent.clone())?;
        for (dir, mode) in lent {
            let set = self.beneath.set_mode(&dir, mode | OPEN, |seen| {
                seen.kind == FileKind::Dir && seen.stamp.mode == mode
            });
            set.map_err(|error| self.shut(&dir, error))?;
            self.touched.insert(dir);
        }
        Ok(())
    }

    fn shut(&self, dir: &Path, error: Errno) -> Error {
        self.beneath
            .failed("write in a directory", "fchmod", dir, error)
    }

    /// Returns the directories that names are made or removed in.
    fn dirs(&self) -> Vec<PathBuf> {
        let items = self.items.iter().zip(&self.left);
        let changes = items.filter(|(item, left)| {
            let moves = item.stages() || item.removes() || !item.was_dir() && item.becomes_dir();
            left.is_none() && moves && !bytes_of(&item.path).is_empty()
        });
        let dirs = changes.map(|(item, _)| Place::of(&item.path).dir);
        let mut dirs: Vec<&[u8]> = dirs.collect();
        dirs.sort_unstable();
        dirs.dedup();
        let path = |dir: &[u8]| PathBuf::from(OsStr::from_bytes(dir));
        dirs.into_iter().map(path).collect()
    }

    /// Takes back all that was done, the last first; what cannot be taken back is
    /// left, and named.
    pub(super) fn back(&mut self) {
        self.left = vec![None; self.items.len()];
        let mut made = Vec::new();
        while let Some(did) = self.did.pop() {
            let (n, turn) = match did {
                Did::TookOut(n) => (n, self.put_back(n)),
                Did::PutIn(n) => (n, self.take_back(n)),
                Did::Exchanged(n) => (n, self.exchange_back(n)),
                Did::MadeDir(n) => (n, self.unmake_dir(n)),
                Did::RemovedDir(n) => {
                    made.push(n);
                    (n, self.remake_dir(n))
                }
                Did::SetMode(n, was) => (n, self.unset_mode(n, was)),
            };
            self.note_back(n, turn);
        }
        for n in made {
            if let Some(Thing::Dir { mode }) = self.items[n].old {
                let turn = self.unset_mode(n, mode);
                self.note_back(n, turn);
            }
        }
    }

    fn note_back(&mut self, n: usize, turn: Result<Turn>) {
        let why = match turn {
            Ok(Turn::Done) => return,
            Ok(Turn::Left(why)) => why.to_owned(),
            Err(error) => told(&error),
        };
        self.left[n].get_or_insert(why);
    }

    fn put_back(&mut self, n: usize) -> Result<Turn> {
        let place = Place::of(self.path(n));
        match self
            .beneath
            .put(&self.desk.fd, &old_name(place.path), place, None)
        {
            Ok(()) => Ok(Turn::Done),
            Err(Errno::EXIST) => Ok(Turn::Left(CHANGED)),
            Err(error) if is_gone(error) => Ok(Turn::Left(CHANGED)),
            Err(error) => Err(self.failed("put a file back", "renameat2", n, error)),
        }
    }

    fn take_back(&mut self, n: usize) -> Result<Turn> {
        let (place, name) = (Place::of(self.path(n)), new_name(self.path(n)));
        let dir = match self.beneath.take(place, &self.desk.fd, &name) {
            Ok(dir) => dir,
            Err(error) if is_gone(error) => return Ok(Turn::Left(CHANGED)),
            Err(error) => return Err(self.failed("take a file back", "renameat2", n, error)),
        };
        if self.is_new_on_desk(n, &name)? {
            return Ok(Turn::Done);
        }
        match self.beneath.put(&self.desk.fd, &name, place, Some(&dir)) {
            Ok(()) | Err(Errno::EXIST) => Ok(Turn::Left(CHANGED)),
            Err(error) => Err(self.failed("put a file back", "renameat2", n, error)),
        }
    }

    fn exchange_back(&mut self, n: usize) -> Result<Turn> {
        let (place, name) = (Place::of(self.path(n)), new_name(self.path(n)));
        let dir = match self.beneath.exchange(&self.desk.fd, &name, place) {
            Ok(dir) => dir,
            Err(error) if is_gone(error) => return Ok(Turn::Left(CHANGED)),
            Err(error) => return Err(self.failed("put a file back", "renameat2", n, error)),
        };
        if self.is_new_on_desk(n, &name)? {
            return Ok(Turn::Done);
        }
        let back = self
            .beneath
            .exchange_back(&self.desk.fd, &name, place, &dir);
        back.map_err(|error| self.failed("put a file back", "renameat2", n, error))?;
        Ok(Turn::Left(CHANGED))
    }

    fn is_new_on_desk(&self, n: usize, name: &str) -> Result<bool> {
        match &self.items[n].new {
            Some(new) => self.is_on_desk(n, name, new, None),
            None => Ok(true),
        }
    }

    fn unmake_dir(&mut self, n: usize) -> Result<Turn> {
        let turn = self.remove_dir(n);
        if turn.as_ref().is_ok_and(|turn| *turn == Turn::Done) {
            self.did.pop();
        }
        turn
    }

    fn remake_dir(&mut self, n: usize) -> Result<Turn> {
        let turn = self.make_dir(n);
        if turn.as_ref().is_ok_and(|turn| *turn == Turn::Done) {
            self.did.pop();
        }
        turn
    }

    fn unset_mode(&mut self, n: usize, mode: u32) -> Result<Turn> {
        match self.beneath.set_mode(self.path(n), mode, |_| true) {
            Ok(Some(_)) => Ok(Turn::Done),
            Ok(None) => Ok(Turn::Left(CHANGED)),
            Err(error) => Err(self.failed("set a mode back", "fchmod", n, error)),
        }
    }

    /// Gives back their modes to directories that are writable for the time being,
    /// save those that got a new one. The workspace's own comes last of all, when
    /// nothing is staged any more.
    pub(super) fn give_back(&self, ended: Ended) -> Result<()> {
        for (path, mode) in self.desk.lent.iter().rev() {
            if !bytes_of(path).is_empty() && !self.has_mode(path, ended) {
                self.desk.give_back(self.beneath, path, *mode)?;
            }
        }
        Ok(())
    }

    /// Gives the workspace's own directory its mode, new or back, when nothing is to
    /// be made or removed in it any more.
    pub(super) fn finish_root(&mut self, ended: Ended) -> Result<()> {
        let is_root = |path: &Path| bytes_of(path).is_empty();
        let lent = self.desk.lent.iter().find(|(path, _)| is_root(path));
        if let Some((path, mode)) = lent
            && !self.has_mode(path, ended)
        {
            return self.desk.give_back(self.beneath, path, *mode);
        }
        match self.items.first() {
            Some(item) if ended == Ended::Forward && is_root(&item.path) => {
                self.turn(0, |hands| hands.set_mode(0))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether a path is an item that got a mode of its own.
    fn has_mode(&self, path: &Path, ended: Ended) -> bool {
        let found = self
            .items
            .binary_search_by(|item| bytes_of(&item.path).cmp(bytes_of(path)));
        found.is_ok_and(|n| {
            ended == Ended::Forward && self.items[n].becomes_dir() && self.left[n].is_none()
        })
    }

    /// Makes durable what was done.
    pub(super) fn sync(&self) -> Result<()> {
        let failed = |call, path: &Path, error| {
            self.beneath
                .failed("make the changes durable", call, path, error)
        };
        if self.touched.len() > FEW {
            let synced = self.beneath.sync_all();
            return synced.map_err(|error| failed("syncfs", Path::new(""), error));
        }
        for path in &self.touched {
            let synced = self.beneath.sync(path);
            synced.map_err(|error| failed("fsync", path, error))?;
        }
        Ok(())
    }
}

/// Returns whether the system does not allow something, and will not later.
fn is_refused(error: &Error) -> bool {
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref());
    source.is_some_and(|source: &io::Error| source.kind() == io::ErrorKind::PermissionDenied)
}

/// Says an error with its cause.
pub(super) fn told(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
