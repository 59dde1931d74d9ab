//! The last look before anything is touched.

use std::collections::BTreeSet;
use std::path::Path;

use rustix::io::Errno;

use super::super::thing::{Item, Thing};
use super::Staged;
use super::beneath::{Place, is_gone, may_write};
use super::desk::OPEN;
use super::known::is_link;
use super::stage::Ready;
use crate::error::{Error, ErrorKind, Result};
use crate::snapshot::FileKind;
use crate::snapshot::name::{bytes_of, os_str, shown};
use crate::snapshot::scan::sys::{self, Seen};

/// A look at all paths.
pub(super) struct Check<'a> {
    staged: &'a Staged<'a>,
    /// Directories that were found to be there, and may be written in.
    fine: BTreeSet<&'a [u8]>,
}

impl<'a> Check<'a> {
    pub(super) fn new(staged: &'a Staged<'_>) -> Self {
        Self {
            staged,
            fine: BTreeSet::new(),
        }
    }

    pub(super) fn run(&mut self) -> Result<()> {
        let staged = self.staged;
        for (item, ready) in staged.work.items.iter().zip(&staged.ready) {
            if !self
                .is_old(item, ready)
                .map_err(|error| self.failed(&item.path, error))?
            {
                return Err(staged.beneath.moved(&item.path));
            }
            if item.old != item.new {
                self.may_change(item)?;
            }
        }
        Ok(())
    }

    fn failed(&self, path: &Path, error: Errno) -> Error {
        let doing = "look once more at what is to be replaced";
        self.staged.beneath.failed(doing, "fstatat", path, error)
    }

    fn is_old(&self, item: &Item, ready: &Ready) -> rustix::io::Result<bool> {
        let seen = self.staged.beneath.look(&item.path)?;
        Ok(match (&item.old, seen) {
            (None, None) => true,
            (None, Some(_)) => self.staged.made_root && bytes_of(&item.path).is_empty(),
            (Some(_), None) => false,
            (Some(Thing::Dir { mode }), Some(seen)) => self.is_old_dir(item, *mode, &seen),
            (Some(thing), Some(seen)) => {
                let same = ready.known.is_some_and(|known| known.stamp == seen.stamp);
                same && self.leads(item, thing)?
            }
        })
    }

    fn is_old_dir(&self, item: &Item, mode: u32, seen: &Seen) -> bool {
        let lent = self
            .staged
            .desk
            .lent
            .iter()
            .any(|(path, _)| *path == item.path);
        let is_own = seen.stamp.mode == mode || (lent && seen.stamp.mode == mode | OPEN);
        seen.kind == FileKind::Dir && is_own
    }

    /// Returns whether a link leads where it led.
    fn leads(&self, item: &Item, thing: &Thing) -> rustix::io::Result<bool> {
        let Thing::Link { target } = thing else {
            return Ok(true);
        };
        let place = Place::of(&item.path);
        match self.staged.beneath.open_dir(place.dir) {
            Ok(dir) => is_link(&dir, place.name, target),
            Err(error) if is_gone(error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Finds out whether the directory of a path can be changed, or its mode.
    fn may_change(&mut self, item: &'a Item) -> Result<()> {
        let is_root = bytes_of(&item.path).is_empty();
        let sets_mode = item.is_mode_only() || (item.was_dir() && item.becomes_dir());
        if sets_mode && !self.staged.made_root {
            return self.is_owned(&item.path);
        }
        let dir = Place::of(&item.path).dir;
        if is_root || self.fine.contains(dir) {
            return Ok(());
        }
        self.may_write(item, dir)?;
        self.fine.insert(dir);
        Ok(())
    }

    fn is_owned(&self, path: &Path) -> Result<()> {
        let seen = self.staged.beneath.look(path);
        let seen = seen.map_err(|error| self.failed(path, error))?;
        match seen {
            Some(seen) if !self.is_ours(&seen) => {
                let doing = "set the mode of what belongs to somebody else";
                Err(self
                    .staged
                    .beneath
                    .failed(doing, "fchmod", path, Errno::PERM))
            }
            _ => Ok(()),
        }
    }

    fn is_ours(&self, seen: &Seen) -> bool {
        let uid = self.staged.desk.uid;
        uid == 0 || uid == seen.uid
    }

    fn may_write(&self, item: &Item, dir: &[u8]) -> Result<()> {
        let path = Path::new(os_str(dir));
        let items = self.staged.work.items;
        let fd = match self.staged.beneath.open_dir(dir) {
            Ok(fd) => fd,
            Err(error) if is_gone(error) => {
                let found = items.binary_search_by(|item| bytes_of(&item.path).cmp(dir));
                return match found {
                    // It comes first.
                    Ok(n) if items[n].becomes_dir() => Ok(()),
                    _ => Err(self.no_dir(item)),
                };
            }
            Err(error) => return Err(self.shut(path, error)),
        };
        if may_write(&fd).map_err(|error| self.shut(path, error))? {
            return Ok(());
        }
        let seen = sys::seen(&fd).map_err(|error| self.shut(path, error))?;
        match self.is_ours(&seen) {
            true => Ok(()),
            false => Err(self.shut(path, Errno::ACCESS)),
        }
    }

    fn no_dir(&self, item: &Item) -> Error {
        let what = format!("the directory of {} changed meanwhile", shown(&item.path));
        let path = self.staged.beneath.path.join(&item.path);
        Error::new(ErrorKind::Conflict, what).at_path(&path)
    }

    fn shut(&self, dir: &Path, error: Errno) -> Error {
        self.staged
            .beneath
            .failed("write in a directory", "faccessat", dir, error)
    }
}
