//! The last check before anything is touched.

use std::collections::BTreeSet;
use std::path::Path;

use rustix::io::Errno;

use super::super::path_change::{PathChange, PathEntry};
use super::StagedWork;
use super::compare::is_link;
use super::root_dir::{SplitPath, is_gone, may_write};
use super::stage::Prepared;
use super::staging_dir::OPEN;
use crate::error::{Error, ErrorKind, Result};
use crate::snapshot::FileKind;
use crate::snapshot::name::{bytes_of, os_str, shown};
use crate::snapshot::scan::sys::{self, Seen};

/// A check of all paths.
pub(super) struct FinalCheck<'a> {
    staged: &'a StagedWork<'a>,
    /// Directories that exist and may be written to.
    fine: BTreeSet<&'a [u8]>,
}

impl<'a> FinalCheck<'a> {
    pub(super) fn new(staged: &'a StagedWork<'_>) -> Self {
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
                return Err(staged.root_dir.moved(&item.path));
            }
            if item.old != item.new {
                self.may_change(item)?;
            }
        }
        Ok(())
    }

    fn failed(&self, path: &Path, error: Errno) -> Error {
        let doing = "check a path before it is replaced";
        self.staged.root_dir.failed(doing, "fstatat", path, error)
    }

    fn is_old(&self, item: &PathChange, ready: &Prepared) -> rustix::io::Result<bool> {
        let seen = self.staged.root_dir.look(&item.path)?;
        Ok(match (&item.old, seen) {
            (None, None) => true,
            (None, Some(_)) => self.staged.made_root && bytes_of(&item.path).is_empty(),
            (Some(_), None) => false,
            (Some(PathEntry::Dir { mode }), Some(seen)) => self.is_old_dir(item, *mode, &seen),
            (Some(entry), Some(seen)) => {
                let same = ready.known.is_some_and(|known| known.stamp == seen.stamp);
                same && self.leads(item, entry)?
            }
        })
    }

    fn is_old_dir(&self, item: &PathChange, mode: u32, seen: &Seen) -> bool {
        let lent = self
            .staged
            .staging
            .made_writable
            .iter()
            .any(|(path, _)| *path == item.path);
        let is_own = seen.stamp.mode == mode || (lent && seen.stamp.mode == mode | OPEN);
        seen.kind == FileKind::Dir && is_own
    }

    /// Returns whether a link still has its target.
    fn leads(&self, item: &PathChange, entry: &PathEntry) -> rustix::io::Result<bool> {
        let PathEntry::Link { target } = entry else {
            return Ok(true);
        };
        let place = SplitPath::of(&item.path);
        match self.staged.root_dir.open_dir(place.dir) {
            Ok(dir) => is_link(&dir, place.name, target),
            Err(error) if is_gone(error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Checks whether the directory of a path, or its mode, can be changed.
    fn may_change(&mut self, item: &'a PathChange) -> Result<()> {
        let is_root = bytes_of(&item.path).is_empty();
        let sets_mode = item.is_mode_only() || (item.was_dir() && item.becomes_dir());
        if sets_mode && !self.staged.made_root {
            return self.is_owned(&item.path);
        }
        let dir = SplitPath::of(&item.path).dir;
        if is_root || self.fine.contains(dir) {
            return Ok(());
        }
        self.may_write(item, dir)?;
        self.fine.insert(dir);
        Ok(())
    }

    fn is_owned(&self, path: &Path) -> Result<()> {
        let seen = self.staged.root_dir.look(path);
        let seen = seen.map_err(|error| self.failed(path, error))?;
        match seen {
            Some(seen) if !self.is_ours(&seen) => {
                let doing = "set the mode of a path that belongs to another user";
                Err(self
                    .staged
                    .root_dir
                    .failed(doing, "fchmod", path, Errno::PERM))
            }
            _ => Ok(()),
        }
    }

    fn is_ours(&self, seen: &Seen) -> bool {
        let uid = self.staged.staging.uid;
        uid == 0 || uid == seen.uid
    }

    fn may_write(&self, item: &PathChange, dir: &[u8]) -> Result<()> {
        let path = Path::new(os_str(dir));
        let items = self.staged.work.items;
        let fd = match self.staged.root_dir.open_dir(dir) {
            Ok(fd) => fd,
            Err(error) if is_gone(error) => {
                let found = items.binary_search_by(|item| bytes_of(&item.path).cmp(dir));
                return match found {
                    // It is created first.
                    Ok(n) if items[n].becomes_dir() => Ok(()),
                    _ => Err(self.no_dir(item)),
                };
            }
            Err(error) => return Err(self.unwritable(path, error)),
        };
        if may_write(&fd).map_err(|error| self.unwritable(path, error))? {
            return Ok(());
        }
        let seen = sys::seen(&fd).map_err(|error| self.unwritable(path, error))?;
        match self.is_ours(&seen) {
            true => Ok(()),
            false => Err(self.unwritable(path, Errno::ACCESS)),
        }
    }

    fn no_dir(&self, item: &PathChange) -> Error {
        let what = format!("the directory of {} changed meanwhile", shown(&item.path));
        let path = self.staged.root_dir.path.join(&item.path);
        Error::new(ErrorKind::Conflict, what).at_path(&path)
    }

    fn unwritable(&self, dir: &Path, error: Errno) -> Error {
        self.staged
            .root_dir
            .failed("write in a directory", "faccessat", dir, error)
    }
}
