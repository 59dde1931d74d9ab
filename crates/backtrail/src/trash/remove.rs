//! Removing a directory of ours for good, and nothing else.

use std::path::{Path, PathBuf};

use super::{EMPTYING, EMPTYING_TRAILS, Named, TrashName, Trashed};
use crate::error::{Error, Result};
use crate::ids::SessionId;
use crate::log::{is_absent, is_session_file};
use crate::store::Store;

/// What was removed of a directory.
#[derive(Debug, Default)]
pub(crate) struct Removed {
    pub(crate) bytes: u64,
    /// What is not ours, and was left where it is.
    pub(crate) left: Vec<PathBuf>,
}

impl Store {
    /// Gives an entry the name of something that is about to be removed.
    pub(super) fn doom(&self, name: &TrashName) -> Result<PathBuf> {
        let suffix = match name.what {
            Trashed::Session => EMPTYING,
            Trashed::Trails => EMPTYING_TRAILS,
        };
        let trash = self.trash_dir();
        let to = trash.join(format!("{}{suffix}", name.id));
        let from = trash.join(name.to_string());
        if self.is_dir(&to)? {
            // Somebody died while he removed one of that name. The rest of it goes
            // first: names are not given twice.
            self.remove_session_dir(&to)?;
        }
        self.storage()
            .rename_new(&from, &to)
            .map_err(|error| Error::io(format!("cannot empty {name}"), &from, error))?;
        super::sync(self.storage(), &trash)?;
        Ok(to)
    }

    /// Removes a session's directory: its own files, and then itself. What is not
    /// ours, or is no file, stays and is named; links are not followed.
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
                // Gone already, by another's hand.
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
        self.storage()
            .is_dir(path)
            .map_err(|error| Error::io("cannot look into the trash", path, error))
    }

    /// Does the rest of emptyings and purges that were interrupted. The caller holds no
    /// lock: a purge waits for those of the workspaces, and for the store's.
    pub(crate) fn clear_emptying(&self) -> Result<Removed> {
        let purged = self.finish_purges()?;
        let mut removed = Removed {
            bytes: purged.bytes,
            left: purged.left,
        };
        if self.leftovers()?.is_empty() {
            return Ok(removed);
        }
        let _turn = self.hold_trash()?;
        for (path, _) in self.leftovers()? {
            let more = self.remove_session_dir(&path)?;
            removed.bytes += more.bytes;
            removed.left.extend(more.left);
        }
        Ok(removed)
    }

    /// Returns what an emptying that was interrupted left.
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
