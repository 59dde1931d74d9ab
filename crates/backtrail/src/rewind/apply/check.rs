//! The last check before anything is touched.

use std::collections::BTreeSet;
use std::path::Path;

use rustix::io::Errno;

use super::super::path_change::{PathChange, PathEntry};
use super::compare::is_link;
use super::mover::Mover;
use super::root_dir::{SplitPath, is_gone, may_write};
use super::stage::Prepared;
use crate::error::{Error, ErrorKind, Result};
use crate::snapshot::name::{bytes_of, os_str, shown};
use crate::snapshot::scan::sys::{self, Seen};

impl Mover<'_> {
    /// Checks once more that every path is in its old state, and that all changes seem
    /// possible.
    pub(in crate::rewind) fn check(&self) -> Result<()> {
        // Directories that exist and may be written to.
        let mut fine = BTreeSet::new();
        for (item, prepared) in self.work.items.iter().zip(&self.prepared) {
            let is_old = self.is_old(item, prepared);
            if !is_old.map_err(|error| self.unchecked(&item.path, error))? {
                return Err(self.root_dir.moved(&item.path));
            }
            if item.old == item.new {
                continue;
            }
            let sets_mode = item.is_mode_only() || (item.was_dir() && item.becomes_dir());
            let dir = SplitPath::of(&item.path).dir;
            if sets_mode && !self.made_root {
                self.must_be_ours(&item.path)?;
            } else if !item.is_root() && !fine.contains(dir) {
                self.must_be_writable(item, dir)?;
                fine.insert(dir);
            }
        }
        Ok(())
    }

    fn unchecked(&self, path: &Path, error: Errno) -> Error {
        let doing = "check a path before it is replaced";
        self.root_dir.failed(doing, "fstatat", path, error)
    }

    fn is_old(&self, item: &PathChange, prepared: &Prepared) -> rustix::io::Result<bool> {
        let seen = self.root_dir.look(&item.path)?;
        Ok(match (&item.old, seen) {
            (None, None) => true,
            (None, Some(_)) => self.made_root && item.is_root(),
            (Some(_), None) => false,
            (Some(PathEntry::Dir { mode }), Some(seen)) => self.is_old_dir(item, *mode, &seen),
            (Some(entry), Some(seen)) => {
                let known = prepared.known.map(|known| known.seen.stamp);
                known == Some(seen.stamp) && self.leads(item, entry)?
            }
        })
    }

    /// Returns whether a link still has its target.
    fn leads(&self, item: &PathChange, entry: &PathEntry) -> rustix::io::Result<bool> {
        let PathEntry::Link { target } = entry else {
            return Ok(true);
        };
        let place = SplitPath::of(&item.path);
        match self.root_dir.open_dir(place.dir) {
            Err(error) if is_gone(error) => Ok(false),
            dir => is_link(&dir?, place.name, target),
        }
    }

    /// Refuses to set the mode of a path that belongs to another user.
    fn must_be_ours(&self, path: &Path) -> Result<()> {
        let seen = self.root_dir.look(path);
        let seen = seen.map_err(|error| self.unchecked(path, error))?;
        if seen.is_none_or(|seen| self.is_ours(&seen)) {
            return Ok(());
        }
        let doing = "set the mode of a path that belongs to another user";
        Err(self.root_dir.failed(doing, "fchmod", path, Errno::PERM))
    }

    fn is_ours(&self, seen: &Seen) -> bool {
        let uid = self.staging.uid;
        uid == 0 || uid == seen.uid
    }

    /// Refuses a directory in which names cannot be created or removed.
    fn must_be_writable(&self, item: &PathChange, dir: &[u8]) -> Result<()> {
        let path = Path::new(os_str(dir));
        let failed = |error| {
            self.root_dir
                .failed("write in a directory", "faccessat", path, error)
        };
        let items = self.work.items;
        let fd = match self.root_dir.open_dir(dir) {
            Err(error) if is_gone(error) => {
                let found = items.binary_search_by(|item| bytes_of(&item.path).cmp(dir));
                // It is created first.
                if found.is_ok_and(|n| items[n].becomes_dir()) {
                    return Ok(());
                }
                let what = format!(
                    "the directory of {} has just changed; try again",
                    shown(&item.path)
                );
                let path = self.root_dir.path.join(&item.path);
                return Err(Error::new(ErrorKind::Conflict, what).at_path(&path));
            }
            fd => fd.map_err(failed)?,
        };
        if may_write(&fd).map_err(failed)? || self.is_ours(&sys::seen(&fd).map_err(failed)?) {
            return Ok(());
        }
        Err(failed(Errno::ACCESS))
    }
}
