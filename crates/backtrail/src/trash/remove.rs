//! Removing a session's directory for good.

use std::path::{Path, PathBuf};

use super::{EMPTYING, EMPTYING_TRAILS, Named, TrashKind, TrashName};
use crate::error::{Error, IoContext, Result};
use crate::ids::SessionId;
use crate::log::is_session_file;
use crate::storage::{LinkRefused, is_absent, names_in};
use crate::store::Store;

/// What was removed of a directory.
#[derive(Debug, Default)]
pub(crate) struct Removed {
    pub(crate) bytes: u64,
    /// Foreign files, which were left alone.
    pub(crate) left: Vec<PathBuf>,
}

impl Store {
    /// Renames an entry that is about to be removed.
    pub(super) fn mark_for_removal(&self, name: &TrashName) -> Result<PathBuf> {
        let suffix = match name.kind {
            TrashKind::Session => EMPTYING,
            TrashKind::Trails => EMPTYING_TRAILS,
        };
        let trash = self.trash_dir();
        let to = trash.join(format!("{}{suffix}", name.id));
        let from = trash.join(name.to_string());
        self.refuse_links_in(&from)?;
        if self.is_dir(&to)? {
            // A process died while it removed one of that name. The rest goes first.
            self.remove_session_dir(&to)?;
        }
        self.storage()
            .rename_new(&from, &to)
            .map_err(|error| Error::io(format!("cannot empty {name}"), &from, error))?;
        super::sync(self.storage(), &trash)?;
        Ok(to)
    }

    /// Refuses to remove a directory with a link in it: what that points to would stay.
    fn refuse_links_in(&self, dir: &Path) -> Result<()> {
        let storage = self.storage();
        let failed = |error| Error::io("cannot remove what was deleted", dir, error);
        for name in names_in(storage, dir).map_err(failed)? {
            let path = dir.join(name);
            if storage.is_link(&path).map_err(failed)? {
                return Err(failed(LinkRefused::at(&path)));
            }
        }
        Ok(())
    }

    /// Removes a session's directory: its files, and then itself. Foreign files and anything
    /// that is not a file stay and are reported; links are not followed.
    pub(super) fn remove_session_dir(&self, dir: &Path) -> Result<Removed> {
        let mut removed = Removed::default();
        if !self.is_dir(dir)? {
            removed.left.push(dir.to_owned());
            return Ok(removed);
        }
        let failed = |error| Error::io("cannot remove what was deleted", dir, error);
        let mut names = self.storage().list(dir).map_err(failed)?;
        names.sort_unstable();
        for name in names {
            let path = dir.join(&name);
            let ours = name.to_str().is_some_and(is_session_file);
            match self.storage().open_read(&path) {
                Ok(file) if ours => {
                    removed.bytes += file.len().unwrap_or(0);
                    drop(file);
                    self.storage().remove_file(&path).map_err(failed)?;
                }
                // Another process removed it.
                Err(error) if is_absent(&error) => {}
                _ => removed.left.push(path),
            }
        }
        if removed.left.is_empty() {
            self.storage().remove_dir(dir).map_err(failed)?;
        }
        super::sync(self.storage(), &self.trash_dir())?;
        Ok(removed)
    }

    pub(super) fn is_dir(&self, path: &Path) -> Result<bool> {
        let is_dir = self.storage().is_dir(path);
        is_dir.context("cannot read the trash", path)
    }

    /// Completes interrupted emptyings and purges. The caller holds no lock: a purge waits
    /// for those of the workspaces and of the store.
    pub(crate) fn clear_emptying(&self) -> Result<Removed> {
        let mut removed = Removed::default();
        #[cfg(feature = "snapshots")]
        {
            let purged = self.finish_purges()?;
            removed.bytes = purged.bytes;
            removed.left = purged.left;
        }
        if self.leftovers()?.is_empty() {
            return Ok(removed);
        }
        let _guard = self.hold_trash()?;
        for (path, _) in self.leftovers()? {
            let more = self.remove_session_dir(&path)?;
            removed.bytes += more.bytes;
            removed.left.extend(more.left);
        }
        Ok(removed)
    }

    /// Returns the leftovers of an interrupted emptying.
    pub(super) fn leftovers(&self) -> Result<Vec<(PathBuf, SessionId)>> {
        let names = self.names_in_trash()?.into_iter();
        Ok(names
            .filter_map(|(path, named)| match named {
                Named::Emptying(id) => Some((path, id)),
                _ => None,
            })
            .collect())
    }
}
