//! Purging a session: no byte of it stays in the store.
//!
//! A file that records the purge comes first, so that the missing session does not count as
//! damage. Then the session is renamed. While that name exists, the next process completes
//! the rest: its text leaves the workspaces' trails, its file states are dropped, derived
//! data is removed, and last its own files. A clean-up then removes the objects that
//! nothing else has.
//!
//! Files are removed, not overwritten.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::delete::{DeleteScope, Deletion, DeletionReason, hold_session, refuse_active};
use super::deleted::Deleted;
use super::family::Family;
use super::inherited_names::NameHashes;
use super::{LEFT, Named, PURGED_NEW, PURGING};
use crate::error::{Error, ErrorKind, Result};
use crate::hex::lossy_paths;
use crate::ids::{CheckpointId, SessionId};
use crate::log::{LockFile, LogDir, rewrite_only_trail};
use crate::log::{PURGED, TRAILS};
use crate::store::Store;
use crate::workspace::remaining_files::RemainingFiles;
use crate::workspace::{self, Workspace};

/// A purge that was planned.
#[derive(Debug)]
pub struct PurgePlan {
    store: Store,
    deletions: Vec<Deletion>,
    again: Vec<SessionId>,
    forks: Vec<SessionId>,
    sub_agents: Vec<SessionId>,
    remaining: Vec<RemainingFiles>,
}

/// What purging sessions did.
#[derive(Debug, Default, Serialize)]
#[non_exhaustive]
pub struct PurgeReport {
    /// The sessions.
    pub purged: Vec<SessionId>,
    /// How many bytes their files had.
    pub bytes: u64,
    /// How many checkpoints had their files dropped.
    pub checkpoints: u64,
    /// The forks that inherited a title or tags, and lost them with the session.
    pub renamed: Vec<SessionId>,
    /// The forks that still have such a title or tags, since a process is writing to them or
    /// others continue them.
    pub still_named: Vec<SessionId>,
    /// The checkpoints of others whose own text quotes the session.
    pub still_quoted: Vec<CheckpointId>,
    /// Workspaces whose trail cannot be read, and may still have text of the session.
    #[serde(serialize_with = "lossy_paths")]
    pub unread: Vec<PathBuf>,
    /// Foreign files, which were left alone.
    #[serde(serialize_with = "lossy_paths")]
    pub left: Vec<PathBuf>,
}

impl Store {
    /// Plans to purge sessions, in the trash or not, and changes nothing.
    ///
    /// # Errors
    ///
    /// Fails with [`NotFound`](ErrorKind::NotFound) where a session does not exist.
    pub fn purge_plan(&self, ids: &[SessionId], scope: DeleteScope) -> Result<PurgePlan> {
        let mut named: Vec<SessionId> = Vec::new();
        let mut again = Vec::new();
        for id in ids {
            let list = match self.files_anywhere(id) {
                Err(error) if error.was_purged().is_some() => &mut again,
                found => {
                    found?;
                    &mut named
                }
            };
            if !list.contains(id) {
                list.push(id.clone());
            }
        }
        let family = Family::read(self)?;
        let mut deletions = family.descendants(&named, |_| true);
        let others = match scope {
            DeleteScope::WithDescendants => Vec::new(),
            DeleteScope::Named => std::mem::take(&mut deletions),
        };
        deletions.extend(named.iter().map(|id| Deletion {
            id: id.clone(),
            reason: DeletionReason::Named,
        }));
        let (mut forks, mut sub_agents) = (Vec::new(), Vec::new());
        for other in others {
            match other.reason {
                DeletionReason::SubAgent { .. } => sub_agents.push(other.id),
                _ => forks.push(other.id),
            }
        }
        let all: Vec<SessionId> = deletions.iter().map(|it| it.id.clone()).collect();
        let remaining = workspace::remaining_files(&self.workspaces()?, &all)?;
        Ok(PurgePlan {
            store: self.clone(),
            deletions,
            again,
            forks,
            sub_agents,
            remaining,
        })
    }

    /// Returns the files of a session, in the trash or not.
    fn files_anywhere(&self, id: &SessionId) -> Result<LogDir> {
        let files = self.files(id);
        match files.head() {
            Ok(_) => Ok(files),
            Err(error) if error.in_trash().is_some() => Ok(files.deleted()),
            Err(error) => Err(error),
        }
    }

    /// Completes interrupted purges.
    pub(crate) fn finish_purges(&self) -> Result<PurgeReport> {
        let mut report = PurgeReport::default();
        if self.purging()?.is_empty() {
            return Ok(report);
        }
        let _guard = self.hold_trash()?;
        for (path, id) in self.purging()? {
            self.finish_purge(&id, path, &mut report)?;
        }
        Ok(report)
    }

    /// Returns the sessions that are being purged.
    fn purging(&self) -> Result<Vec<(PathBuf, SessionId)>> {
        let names = self.names_in_trash()?.into_iter();
        Ok(names
            .filter_map(|(path, named)| match named {
                Named::Purging(id) => Some((path, id)),
                _ => None,
            })
            .collect())
    }

    /// Records that a session is purged, and renames it.
    fn begin_purge(&self, id: &SessionId) -> Result<PathBuf> {
        let live = self.files(id);
        let writer = match live.head() {
            Ok(_) => Some(hold_session(self, id)?),
            Err(error) if error.in_trash().is_some() => {
                refuse_active(self, id)?;
                None
            }
            Err(error) => return Err(error),
        };
        let files = match &writer {
            Some(_) => live,
            None => live.deleted(),
        };
        let _guard = LockFile::append(&files)?.hold()?;
        let (trash, storage) = (self.trash_dir(), self.storage());
        let said = self.said_purged(id);
        let now = Deleted {
            program: None,
            ..Deleted::now(self)
        };
        now.write_file(storage, &said)?;
        super::sync(storage, &trash)?;
        let to = trash.join(format!("{id}{PURGING}"));
        storage.rename_new(files.path(), &to).map_err(|error| {
            let what = format!("cannot purge session {id}");
            Error::io(what, files.path(), error)
        })?;
        self.sync_dirs([trash.as_path(), self.sessions_dir()])?;
        Ok(to)
    }

    /// Completes a purge.
    fn finish_purge(&self, id: &SessionId, dir: PathBuf, report: &mut PurgeReport) -> Result<()> {
        let mut workspaces = Vec::new();
        for (workspace, known) in workspace::all(self)? {
            match known {
                Ok(Some(known)) => workspaces.push(known.open(self)),
                Ok(None) => {}
                Err(_) => {
                    let files = self.workspace_files(&workspace);
                    report.unread.push(files.path().to_owned());
                }
            }
        }
        for workspace in &workspaces {
            let left = match workspace.purge_session(id) {
                // It stays as it is, and is reported, until it is repaired.
                Err(error) if error.kind() == ErrorKind::Corrupt => {
                    report.unread.push(workspace.root().to_owned());
                    continue;
                }
                left => left?,
            };
            report.checkpoints += left.checkpoints;
            report.still_quoted.extend(left.quoted);
        }
        let own = self.files(id).at(&dir);
        self.purge_names(id, NameHashes::of(&own)?, report)?;
        purge_derived(&workspaces);
        self.forget_derived()?;
        let trails = self.trash_dir().join(format!("{id}{TRAILS}"));
        for dir in [trails, dir] {
            if self.is_dir(&dir)? {
                let removed = self.remove_session_dir(&dir)?;
                report.bytes += removed.bytes;
                if !removed.left.is_empty() {
                    report.left.extend(self.leave(id, &dir, &removed.left)?);
                }
            }
        }
        report.purged.push(id.clone());
        Ok(())
    }

    /// Renames a directory with foreign files, so that the purge is complete. Returns where
    /// the files are now.
    fn leave(&self, id: &SessionId, dir: &Path, left: &[PathBuf]) -> Result<Vec<PathBuf>> {
        let trash = self.trash_dir();
        let mut to = trash.join(format!("{id}{LEFT}"));
        let mut again = 1;
        loop {
            match self.storage().rename_new(dir, &to) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    again += 1;
                    to = trash.join(format!("{id}{LEFT}-{again}"));
                }
                renamed => {
                    renamed.map_err(|error| {
                        Error::io(
                            "cannot set aside files that are not part of the store",
                            dir,
                            error,
                        )
                    })?;
                    break;
                }
            }
        }
        super::sync(self.storage(), &trash)?;
        let names = left.iter().filter_map(|path| path.file_name());
        Ok(names.map(|name| to.join(name)).collect())
    }

    /// Completes a purge that a process writing to a fork had prevented.
    fn purge_again(&self, id: &SessionId, report: &mut PurgeReport) -> Result<()> {
        let said = self.said_purged(id);
        let said = Deleted::read_file(self.storage(), &said);
        let names = said.map(|said| said.names).unwrap_or_default();
        if !names.is_empty() {
            self.purge_names(id, names, report)?;
        }
        report.purged.push(id.clone());
        Ok(())
    }

    fn said_purged(&self, id: &SessionId) -> PathBuf {
        self.trash_dir().join(format!("{id}{PURGED}"))
    }

    /// Removes from forks the title and the tags that they have from the session, and keeps
    /// their hashes as long as some forks still have them.
    fn purge_names(
        &self,
        id: &SessionId,
        names: NameHashes,
        report: &mut PurgeReport,
    ) -> Result<()> {
        let family = Family::read(self)?;
        let forks = family.descendants(std::slice::from_ref(id), |_| true);
        let mut is_left = false;
        for fork in forks {
            let Some(relative) = family.0.iter().find(|relative| relative.id == fork.id) else {
                continue;
            };
            let inherited = names.inherited_by(&relative.files)?;
            if inherited.is_empty() {
                continue;
            }
            let alone = relative.files.readable_trails()?.len() == 1
                && family.continuing(&relative.id).next().is_none();
            let rewritten = alone
                && match rewrite_only_trail(self, &relative.files, &inherited) {
                    Ok(()) => true,
                    Err(error) if error.kind() == ErrorKind::Locked => false,
                    Err(error) => return Err(error),
                };
            is_left |= !rewritten;
            let list = match rewritten {
                true => &mut report.renamed,
                false => &mut report.still_named,
            };
            if !list.contains(&fork.id) {
                list.push(fork.id);
            }
        }
        self.remember_names(
            id,
            if is_left {
                names
            } else {
                NameHashes::default()
            },
        )
    }

    /// Rewrites the record of a purge with the hashes that forks still have.
    fn remember_names(&self, id: &SessionId, names: NameHashes) -> Result<()> {
        let (storage, path) = (self.storage(), self.said_purged(id));
        let said = Deleted::read_file(storage, &path);
        let said = said.unwrap_or_else(|| Deleted {
            program: None,
            ..Deleted::now(self)
        });
        if said.names == names {
            return Ok(());
        }
        // The file exists at every moment: other processes rely on it.
        let aside = self.trash_dir().join(format!("{id}{PURGED_NEW}"));
        Deleted { names, ..said }.write_file(storage, &aside)?;
        let replaced = storage.replace(&aside, &path);
        replaced
            .map_err(|error| Error::io("cannot write the record of the purge", &path, error))?;
        super::sync(storage, &self.trash_dir())
    }
}

/// Removes data derived from sessions and their workspaces.
fn purge_derived(workspaces: &[Workspace]) {
    for workspace in workspaces {
        workspace.forget_cache();
    }
}

impl PurgePlan {
    /// Returns the sessions that would be purged, each before the one that it comes from.
    pub fn deletions(&self) -> &[Deletion] {
        &self.deletions
    }

    /// Returns the sessions that were purged before: what could not be completed then is
    /// tried again.
    pub fn again(&self) -> &[SessionId] {
        &self.again
    }

    /// Returns the forks that stay, without what they inherited from the session.
    pub fn forks(&self) -> &[SessionId] {
        &self.forks
    }

    /// Returns the sessions of sub-agents that stay.
    pub fn sub_agents(&self) -> &[SessionId] {
        &self.sub_agents
    }

    /// Returns the checkpoints of others that have files of the sessions: those files stay
    /// in the store.
    pub fn remaining_files(&self) -> &[RemainingFiles] {
        &self.remaining
    }

    /// Purges the sessions. An interrupted purge is completed by the next purge, `trash
    /// empty` or clean-up.
    ///
    /// # Errors
    ///
    /// Fails with [`Locked`](ErrorKind::Locked) where another process is writing to one of
    /// them, and where the store has symbolic links or cannot be written.
    pub fn apply(self) -> Result<PurgeReport> {
        let Self {
            store,
            deletions,
            again,
            ..
        } = self;
        store.refuse_links("cannot purge: text may remain behind a link")?;
        store.finish_purges()?;
        let mut report = PurgeReport::default();
        let _guard = store.hold_trash()?;
        for deletion in deletions {
            let dir = store.begin_purge(&deletion.id)?;
            store.finish_purge(&deletion.id, dir, &mut report)?;
        }
        for id in again {
            store.purge_again(&id, &mut report)?;
        }
        Ok(report)
    }
}
