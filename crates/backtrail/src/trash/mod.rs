//! The trash: deleted sessions, until it is emptied.
//!
//! A session is deleted by one rename of its directory, so it is either in `sessions/` or
//! in the trash. Sessions that continue it read it there. Nothing is removed for its age
//! unless the caller asks for it.
//!
//! The trash has a lock, which is held to move something in or out, or to remove it for
//! good. What is about to be removed is renamed first: after a crash, the next process
//! finds that name and removes the rest.

mod delete;
mod deleted;
mod empty;
mod entries;
mod family;
mod inherited_names;
mod old_trails;
#[cfg(feature = "snapshots")]
mod purge;
mod remove;
mod restore;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::error::{IoContext, Result};
use crate::ids::SessionId;
use crate::log::{HeldLock, LockFile, PURGED, TRAILS, TRASH};
use crate::storage::{Storage, names_in};
use crate::store::Store;

pub use delete::{DeletePlan, DeleteScope, Deletion, DeletionReason};
pub use empty::{EmptyOptions, EmptyPlan, EmptyReport, KeptEntry};
pub use entries::{TrashContents, TrashEntry, TrashKind, TrashName};

#[cfg(feature = "snapshots")]
pub use crate::workspace::remaining_files::RemainingFiles;
#[cfg(feature = "snapshots")]
pub use purge::{PurgePlan, PurgeReport};

pub(crate) use old_trails::move_old_trails;

/// A session that is being removed by `trash empty`.
const EMPTYING: &str = ".emptying";
/// The trails of a session that are being removed.
const EMPTYING_TRAILS: &str = ".trails-emptying";
/// A session that is being purged.
const PURGING: &str = ".purging";
/// Follows the id of an imported session in the name of the file that records that it was
/// emptied, so that it is not imported again.
const EMPTIED: &str = ".emptied";
/// Foreign files of a purged session.
const LEFT: &str = ".left";
/// The same while it is rewritten.
const PURGED_NEW: &str = ".purged-new";
const LOCK: &str = "lock";

/// What a name in the trash means.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Named {
    Entry(TrashName),
    Emptying(SessionId),
    Purging(SessionId),
    Purged(SessionId),
    /// A file of Backtrail that is not an entry.
    Lock,
    /// A foreign file: it is left alone.
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
                kind: TrashKind::Session,
            }),
            TRAILS => Self::Entry(TrashName {
                id,
                kind: TrashKind::Trails,
            }),
            EMPTYING | EMPTYING_TRAILS => Self::Emptying(id),
            PURGING => Self::Purging(id),
            PURGED => Self::Purged(id),
            // A record of the past, or one that is being rewritten.
            EMPTIED | PURGED_NEW => Self::Lock,
            _ => Self::Unknown,
        }
    }
}

impl Store {
    pub(crate) fn trash_dir(&self) -> PathBuf {
        self.root().join(TRASH)
    }

    /// Waits until nobody else changes the trash.
    fn hold_trash(&self) -> Result<HeldLock> {
        self.trash_lock()?.hold()
    }

    fn trash_lock(&self) -> Result<LockFile> {
        self.make_trash_dir()?;
        LockFile::open(self.storage(), &self.trash_dir(), LOCK)
    }

    /// Returns the names in the trash, sorted; none where there is no trash.
    fn names_in_trash(&self) -> Result<Vec<(PathBuf, Named)>> {
        let dir = self.trash_dir();
        let mut all = Vec::new();
        for name in self.list_trash()? {
            let path = dir.join(&name);
            let named = match Named::of(&name) {
                // Only directories count, and a link is not one.
                Named::Emptying(_) | Named::Purging(_) if !self.is_dir(&path)? => {
                    if !self.list_trash()?.contains(&name) {
                        // Another process has just removed it.
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
        let names = names_in(self.storage(), &dir);
        let mut names = names.context("cannot list the trash", &dir)?;
        names.sort_unstable();
        Ok(names)
    }

    /// Returns the ids of the sessions in the trash, sorted.
    ///
    /// # Errors
    ///
    /// Fails where the trash cannot be read.
    pub fn deleted_sessions(&self) -> Result<Vec<SessionId>> {
        let mut ids = Vec::new();
        for (path, named) in self.names_in_trash()? {
            if let Named::Entry(name) = named
                && name.kind == TrashKind::Session
                && self.is_dir(&path)?
            {
                ids.push(name.id);
            }
        }
        Ok(ids)
    }

    /// Returns the ids of purged sessions.
    pub(crate) fn purged_sessions(&self) -> Result<Vec<SessionId>> {
        let names = self.names_in_trash()?.into_iter();
        Ok(names
            .filter_map(|(_, named)| match named {
                Named::Purged(id) => Some(id),
                _ => None,
            })
            .collect())
    }

    /// Syncs directories after a move between them.
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
        .context("cannot sync the directory", dir)
}
