//! The trash: what `delete` removed, until somebody empties it.
//!
//! A session is deleted by giving its directory another name, in one step, so it is
//! in `sessions/` or in the trash and nowhere else, whatever happens meanwhile. What
//! continues it goes on reading it there. Nothing here decides by itself that
//! something is old enough to go: every removal was asked for.
//!
//! Whoever moves something in or out, or removes it for good, holds the trash's lock.
//! What is about to be removed gets a name that says so first: a crash leaves that
//! name, and whoever comes next removes the rest.

mod delete;
mod deleted;
mod empty;
mod entries;
mod keep;
mod kin;
mod names;
mod purge;
mod remove;
mod restore;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ids::SessionId;
use crate::log::{PURGED, TRAILS, TRASH, is_absent, open_lock};
use crate::storage::{Storage, StorageFile};
use crate::store::Store;

pub use delete::{DeletePlan, DeleteScope, Deletion, DeletionBecause};
pub use empty::{EmptyOptions, EmptyPlan, EmptyReport, Kept};
pub use entries::{TrashContents, TrashEntry, TrashName, Trashed};

pub use purge::{PurgePlan, PurgeReport};

pub(crate) use keep::let_go_of_trails;

/// What is about to be removed, asked for by `trash empty`.
const EMPTYING: &str = ".emptying";
/// The trails of a session that are about to be removed.
const EMPTYING_TRAILS: &str = ".trails-emptying";
/// A session that is being purged.
const PURGING: &str = ".purging";
/// What is not ours and was in a session that is purged.
const LEFT: &str = ".left";
/// The same while it is written anew.
const PURGED_NEW: &str = ".purged-new";
const LOCK: &str = "lock";

/// What a name in the trash means.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Named {
    Entry(TrashName),
    Emptying(SessionId),
    Purging(SessionId),
    Purged(SessionId),
    /// Ours, and nothing that was deleted.
    Lock,
    /// Not ours: it is left alone.
    Unknown,
}

impl Named {
    fn of(name: &OsStr) -> Self {
        let Some(name) = name.to_str() else {
            return Self::Unknown;
        };
        if name == LOCK {
            return Self::Lock;
        }
        let (id, suffix) = name.split_at(name.find('.').unwrap_or(name.len()));
        let Ok(id) = id.parse::<SessionId>() else {
            return Self::Unknown;
        };
        match suffix {
            "" => Self::Entry(TrashName {
                id,
                what: Trashed::Session,
            }),
            TRAILS => Self::Entry(TrashName {
                id,
                what: Trashed::Trails,
            }),
            EMPTYING | EMPTYING_TRAILS => Self::Emptying(id),
            PURGING => Self::Purging(id),
            PURGED => Self::Purged(id),
            // Half of a file that says so.
            PURGED_NEW => Self::Lock,
            _ => Self::Unknown,
        }
    }
}

/// The trash's lock, held. Gives it back when dropped.
#[derive(Debug)]
struct TrashTurn(Arc<dyn StorageFile>);

impl Drop for TrashTurn {
    fn drop(&mut self) {
        self.0.unlock().ok();
    }
}

impl Store {
    pub(crate) fn trash_dir(&self) -> PathBuf {
        self.root().join(TRASH)
    }

    /// Waits for the trash's lock, making the trash where there is none.
    fn hold_trash(&self) -> Result<TrashTurn> {
        self.make_trash_dir()?;
        let (path, file) = open_lock(self.storage(), &self.trash_dir(), LOCK)?;
        loop {
            match file.lock() {
                Ok(()) => return Ok(TrashTurn(file)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("cannot lock the trash", &path, error)),
            }
        }
    }

    /// Holds the trash's lock if it is free.
    fn try_hold_trash(&self) -> Result<Option<TrashTurn>> {
        self.make_trash_dir()?;
        let (path, file) = open_lock(self.storage(), &self.trash_dir(), LOCK)?;
        match file.try_lock() {
            Ok(free) => Ok(free.then_some(TrashTurn(file))),
            Err(error) => Err(Error::io("cannot lock the trash", &path, error)),
        }
    }

    /// Returns the names in the trash, in order; none where there is no trash.
    fn names_in_trash(&self) -> Result<Vec<(PathBuf, Named)>> {
        let dir = self.trash_dir();
        let mut all = Vec::new();
        for name in self.list_trash()? {
            let path = dir.join(&name);
            let named = match Named::of(&name) {
                // Only directories are, and a link is none.
                Named::Emptying(_) | Named::Purging(_) if !self.is_dir(&path)? => {
                    if !self.list_trash()?.contains(&name) {
                        // Somebody just did the rest.
                        continue;
                    }
                    Named::Unknown
                }
                named => named,
            };
            all.push((path, named));
        }
        Ok(all)
    }

    fn list_trash(&self) -> Result<Vec<OsString>> {
        let dir = self.trash_dir();
        let mut names = match self.storage().list(&dir) {
            Ok(names) => names,
            Err(error) if is_absent(&error) => return Ok(Vec::new()),
            Err(error) => return Err(Error::io("cannot list the trash", &dir, error)),
        };
        names.sort_unstable();
        Ok(names)
    }

    /// Returns the ids of the sessions in the trash, in order.
    pub fn deleted_sessions(&self) -> Result<Vec<SessionId>> {
        let mut ids = Vec::new();
        for (path, named) in self.names_in_trash()? {
            if let Named::Entry(name) = named
                && name.what == Trashed::Session
                && self.is_dir(&path)?
            {
                ids.push(name.id);
            }
        }
        Ok(ids)
    }

    /// Returns the ids of sessions that were purged and begin so.
    pub(crate) fn purged_like(&self, beginning: &str) -> Result<Vec<SessionId>> {
        let names = self.names_in_trash()?.into_iter();
        Ok(names
            .filter_map(|(_, named)| match named {
                Named::Purged(id) if id.as_str().starts_with(beginning) => Some(id),
                _ => None,
            })
            .collect())
    }

    /// Syncs the names in directories that something moved between.
    fn sync_dirs<'a>(&self, dirs: impl IntoIterator<Item = &'a Path>) -> Result<()> {
        for dir in dirs {
            sync(self.storage(), dir)?;
        }
        Ok(())
    }
}

fn sync(storage: &dyn Storage, dir: &Path) -> Result<()> {
    storage
        .sync_dir(dir)
        .map_err(|error| Error::io("cannot sync the directory", dir, error))
}
