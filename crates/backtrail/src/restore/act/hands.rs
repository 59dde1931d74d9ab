//! One item at a time: each move is noted, looked at afterwards, and taken back if
//! somebody else was quicker.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::super::plan::NotRestored;
use super::super::thing::{Item, Thing};
use super::beneath::{Beneath, Place, is_gone, is_unsupported};
use super::desk::{Desk, OPEN, new_name, old_name};
use super::known::Known;
use super::stage::Ready;
use crate::error::Result;
use crate::snapshot::FileKind;
use crate::snapshot::scan::sys::Seen;

pub(super) const CHANGED: &str = "changed meanwhile";
const TAKEN: &str = "something else was made there meanwhile";
const NO_DIR: &str = "its directory is not what it was";
pub(super) const HOLDS: &str = "holds files that are not known";
pub(super) const GONE: &str = "removed meanwhile";
const BITS: &str = "the system does not allow its mode";

/// Something that was done, by the number of its item; each can be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Did {
    /// What was old is on the desk.
    TookOut(usize),
    /// What is new left the desk.
    PutIn(usize),
    /// What is new left the desk, and what was old came there under its name.
    Exchanged(usize),
    MadeDir(usize),
    RemovedDir(usize),
    /// From this mode.
    SetMode(usize, u32),
}

/// How a move ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Done,
    /// Nothing of it remains, and why.
    Left(&'static str),
}

/// Who does the work, and what was done.
pub(super) struct Hands<'a> {
    pub(super) beneath: &'a Beneath<'a>,
    pub(super) desk: &'a mut Desk,
    pub(super) items: &'a [Item],
    pub(super) ready: &'a [Ready],
    pub(super) did: Vec<Did>,
    /// By the number of the item.
    pub(super) left: Vec<Option<String>>,
    /// What must be synced: directories, and files whose mode changed.
    pub(super) touched: BTreeSet<PathBuf>,
    /// What the system does not allow is left, and does not stop the rest.
    pub(super) lenient: bool,
}

impl<'a> Hands<'a> {
    pub(super) fn new(
        beneath: &'a Beneath<'a>,
        desk: &'a mut Desk,
        items: &'a [Item],
        ready: &'a [Ready],
    ) -> Self {
        Self {
            beneath,
            desk,
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
        let named = left.filter_map(|(item, why)| {
            let path = item.path.clone();
            why.map(|why| NotRestored { path, why })
        });
        named.collect()
    }

    fn note(&mut self, did: Did, place: Place<'_>) {
        self.did.push(did);
        self.touched
            .insert(PathBuf::from(OsStr::from_bytes(place.dir)));
    }

    /// Forgets the last thing that was done: it was taken back.
    fn forget(&mut self) {
        self.did.pop();
    }

    /// Puts what is new in the place of a file or link.
    pub(super) fn replace(&mut self, n: usize) -> Result<Turn> {
        let item = &self.items[n];
        let (Some(old), place) = (&item.old, Place::of(&item.path)) else {
            return Ok(Turn::Done);
        };
        let name = new_name(place.path);
        let dir = match self.beneath.exchange(&self.desk.fd, &name, place) {
            Ok(dir) => dir,
            Err(error) if is_gone(error) => return Ok(Turn::Left(GONE)),
            Err(error) if is_unsupported(error) => return self.replace_in_two(n),
            Err(error) => return Err(self.failed("put a file in place", "renameat2", n, error)),
        };
        self.note(Did::Exchanged(n), place);
        if self.is_on_desk(n, &name, old, self.ready[n].known.as_ref())? {
            return Ok(Turn::Done);
        }
        let back = self
            .beneath
            .exchange_back(&self.desk.fd, &name, place, &dir);
        back.map_err(|error| self.failed("put a file back", "renameat2", n, error))?;
        self.forget();
        Ok(Turn::Left(CHANGED))
    }

    /// Where nothing can be exchanged: out with the old, then in with the new.
    fn replace_in_two(&mut self, n: usize) -> Result<Turn> {
        match self.take_out(n)? {
            Turn::Done => self.put_in(n),
            left => Ok(left),
        }
    }

    /// Moves an old file or link to the desk.
    pub(super) fn take_out(&mut self, n: usize) -> Result<Turn> {
        let item = &self.items[n];
        let (Some(old), place) = (&item.old, Place::of(&item.path)) else {
            return Ok(Turn::Done);
        };
        let name = old_name(place.path);
        let dir = match self.beneath.take(place, &self.desk.fd, &name) {
            Ok(dir) => dir,
            Err(error) if is_gone(error) => return Ok(Turn::Left(GONE)),
            Err(error) => return Err(self.failed("move a file away", "renameat2", n, error)),
        };
        self.note(Did::TookOut(n), place);
        if self.is_on_desk(n, &name, old, self.ready[n].known.as_ref())? {
            return Ok(Turn::Done);
        }
        match self.beneath.put(&self.desk.fd, &name, place, Some(&dir)) {
            Ok(()) => self.forget(),
            // Then both are there, and the sweep saves this one.
            Err(Errno::EXIST) => {}
            Err(error) => return Err(self.failed("put a file back", "renameat2", n, error)),
        }
        Ok(Turn::Left(CHANGED))
    }

    /// Puts what is new where nothing stands.
    pub(super) fn put_in(&mut self, n: usize) -> Result<Turn> {
        let place = Place::of(&self.items[n].path);
        let name = new_name(place.path);
        match self.beneath.put(&self.desk.fd, &name, place, None) {
            Ok(()) => {
                self.note(Did::PutIn(n), place);
                Ok(Turn::Done)
            }
            Err(Errno::EXIST) => Ok(Turn::Left(TAKEN)),
            Err(error) if is_gone(error) => Ok(Turn::Left(NO_DIR)),
            Err(error) => Err(self.failed("put a file in place", "renameat2", n, error)),
        }
    }

    pub(super) fn make_dir(&mut self, n: usize) -> Result<Turn> {
        let place = Place::of(&self.items[n].path);
        match self.beneath.make_dir(place.path) {
            Ok(()) => {
                self.note(Did::MadeDir(n), place);
                Ok(Turn::Done)
            }
            Err(Errno::EXIST) => Ok(Turn::Left(TAKEN)),
            Err(error) if is_gone(error) => Ok(Turn::Left(NO_DIR)),
            Err(error) => Err(self.failed("make a directory", "mkdirat", n, error)),
        }
    }

    pub(super) fn remove_dir(&mut self, n: usize) -> Result<Turn> {
        let place = Place::of(&self.items[n].path);
        match self.beneath.remove_dir(place.path) {
            Ok(()) => {
                self.note(Did::RemovedDir(n), place);
                Ok(Turn::Done)
            }
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(Turn::Left(HOLDS)),
            Err(Errno::NOENT) => Ok(Turn::Left(GONE)),
            Err(error) if is_gone(error) => Ok(Turn::Left(CHANGED)),
            Err(error) => Err(self.failed("remove a directory", "unlinkat", n, error)),
        }
    }

    /// Sets the mode of a file or directory that is there.
    pub(super) fn set_mode(&mut self, n: usize) -> Result<Turn> {
        let item = &self.items[n];
        let (Some(Thing::File { mode, .. } | Thing::Dir { mode }), known) =
            (&item.new, self.ready[n].known)
        else {
            return Ok(Turn::Done);
        };
        let is_expected = |seen: &Seen| match item.becomes_dir() {
            true => seen.kind == FileKind::Dir && is_ours(item, seen.stamp.mode),
            false => {
                let same = known.is_some_and(|known| known.is_unchanged(seen));
                seen.kind == FileKind::File && same
            }
        };
        match self.beneath.set_mode(&item.path, *mode, is_expected) {
            Ok(Some(was)) if was == *mode => return Ok(Turn::Done),
            Ok(Some(was)) => self.did.push(Did::SetMode(n, was)),
            Ok(None) => return Ok(Turn::Left(CHANGED)),
            Err(error) => return Err(self.failed("set a mode", "fchmod", n, error)),
        }
        self.touched.insert(item.path.clone());
        let seen = self.beneath.look(&item.path);
        let seen = seen.map_err(|error| self.failed("look at a mode", "fstatat", n, error))?;
        match seen {
            Some(seen) if seen.stamp.mode == *mode => Ok(Turn::Done),
            _ => Ok(Turn::Left(BITS)),
        }
    }

    /// Returns whether what came to the desk is what it should be.
    pub(super) fn is_on_desk(
        &self,
        n: usize,
        name: &str,
        thing: &Thing,
        known: Option<&Known>,
    ) -> Result<bool> {
        let at = (&self.desk.fd, name.as_bytes());
        let is = self.beneath.is(at, &self.items[n].path, thing, known);
        is.map_err(|error| self.failed("read what was moved away", "read", n, error))
    }

    pub(super) fn failed(
        &self,
        doing: &str,
        call: &'static str,
        n: usize,
        error: Errno,
    ) -> crate::error::Error {
        self.beneath.failed(doing, call, &self.items[n].path, error)
    }

    pub(super) fn path(&self, n: usize) -> &'a Path {
        &self.items[n].path
    }
}

/// Returns whether a directory has a mode that it had, shall have, or has while we
/// work in it.
pub(super) fn is_ours(item: &Item, mode: u32) -> bool {
    let of = |thing: &Option<Thing>| match thing {
        Some(Thing::Dir { mode: own }) => mode == *own || mode == own | OPEN,
        _ => false,
    };
    // A directory gets some bits from the one that it is made in.
    of(&item.old) || of(&item.new) || (!item.was_dir() && mode & !0o2000 == OPEN)
}
