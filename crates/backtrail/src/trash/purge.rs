//! Purging a session: no byte of it stays in the store.
//!
//! A file that says so comes first, so that nobody takes what is gone for damage. Then
//! the session gets a name that says that it is being purged. As long as that is there
//! the rest is done again, whoever comes next: its words leave the trails of the
//! workspaces, its file states are let go of, derived data goes, and last its own
//! files. The clean-up then removes the objects that nothing else holds.
//!
//! Files are removed, not overwritten: what the disk keeps of them is its own matter.

use std::path::PathBuf;

use super::delete::{DeleteScope, Deletion, DeletionBecause, hold_session, refuse_active};
use super::deleted::Deleted;
use super::kin::Family;
use super::names::Names;
use super::{Named, PURGED, PURGING, TRAILS};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{CheckpointId, SessionId};
use crate::session::{AppendLock, SessionFiles, rewrite_only_trail};
use crate::store::Store;
use crate::workspace::{self, StillHeld, Workspace};

/// What purging sessions would do.
#[derive(Debug)]
pub struct PurgePlan {
    store: Store,
    deletions: Vec<Deletion>,
    forks: Vec<SessionId>,
    sub_agents: Vec<SessionId>,
    held: Vec<StillHeld>,
}

/// What purging sessions did.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct PurgeReport {
    /// The sessions.
    pub purged: Vec<SessionId>,
    /// How many bytes their files had.
    pub bytes: u64,
    /// How many checkpoints were let go of.
    pub checkpoints: u64,
    /// The forks that inherited a title or tags, and lost them with the session.
    pub renamed: Vec<SessionId>,
    /// The forks that still have such words, since somebody speaks in them or others go
    /// on from them.
    pub still_named: Vec<SessionId>,
    /// The checkpoints of others whose own words have those of the session in them.
    pub still_quoted: Vec<CheckpointId>,
    /// Workspaces whose trail cannot be read: what stands there was not looked at.
    pub unread: Vec<PathBuf>,
    /// What is not ours, and was left where it is.
    pub left: Vec<PathBuf>,
}

impl Store {
    /// Finds out what purging sessions would do, in the trash or not.
    pub fn purge_plan(&self, ids: &[SessionId], scope: DeleteScope) -> Result<PurgePlan> {
        let mut named: Vec<SessionId> = Vec::new();
        for id in ids {
            self.files_anywhere(id)?;
            if !named.contains(id) {
                named.push(id.clone());
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
            because: DeletionBecause::Named,
        }));
        let (mut forks, mut sub_agents) = (Vec::new(), Vec::new());
        for other in others {
            match other.because {
                DeletionBecause::SubAgent { .. } => sub_agents.push(other.id),
                _ => forks.push(other.id),
            }
        }
        let all: Vec<SessionId> = deletions.iter().map(|it| it.id.clone()).collect();
        let held = workspace::still_held(&self.workspaces()?, &all)?;
        Ok(PurgePlan {
            store: self.clone(),
            deletions,
            forks,
            sub_agents,
            held,
        })
    }

    /// Returns the files of a session wherever it is.
    fn files_anywhere(&self, id: &SessionId) -> Result<SessionFiles> {
        let files = self.files(id);
        match files.head() {
            Ok(_) => Ok(files),
            Err(error) if error.in_trash().is_some() => Ok(files.deleted()),
            Err(error) => Err(error),
        }
    }

    /// Does the rest of purges that were interrupted.
    pub(crate) fn finish_purges(&self) -> Result<PurgeReport> {
        let mut report = PurgeReport::default();
        if self.purging()?.is_empty() {
            return Ok(report);
        }
        let _turn = self.hold_trash()?;
        for (path, id) in self.purging()? {
            self.finish_purge(&id, path, &mut report)?;
        }
        Ok(report)
    }

    /// Returns the sessions that are being purged, or were about to.
    fn purging(&self) -> Result<Vec<(PathBuf, SessionId)>> {
        let names = self.names_in_trash()?.into_iter();
        Ok(names
            .filter_map(|(path, named)| match named {
                Named::Purging(id) => Some((path, id)),
                _ => None,
            })
            .collect())
    }

    /// Gives a session the name of one that is being purged, and says so for good.
    fn begin_purge(&self, id: &SessionId) -> Result<PathBuf> {
        let live = self.files(id);
        let speaker = match live.head() {
            Ok(_) => Some(hold_session(self, id)?),
            Err(error) if error.in_trash().is_some() => {
                refuse_active(self, id)?;
                None
            }
            Err(error) => return Err(error),
        };
        let files = match &speaker {
            Some(_) => live,
            None => live.deleted(),
        };
        let lock = AppendLock::open(&files)?;
        let _guard = lock.hold()?;
        let (trash, storage) = (self.trash_dir(), self.storage());
        let said = trash.join(format!("{id}{PURGED}"));
        let now = Deleted {
            program: None,
            ..Deleted::now(self)
        };
        now.write_file(storage, &said)?;
        super::sync(storage, &trash)?;
        let to = trash.join(format!("{id}{PURGING}"));
        storage.rename_new(files.dir(), &to).map_err(|error| {
            let what = format!("cannot purge session {id}");
            Error::io(what, files.dir(), error)
        })?;
        self.sync_dirs([trash.as_path(), self.sessions_dir()])?;
        Ok(to)
    }

    /// Does all that is left to do of a purge.
    fn finish_purge(&self, id: &SessionId, dir: PathBuf, report: &mut PurgeReport) -> Result<()> {
        let mut workspaces = Vec::new();
        for (workspace, known) in workspace::all(self)? {
            match known {
                Ok(Some(known)) => workspaces.push(known.open(self)),
                Ok(None) => {}
                Err(_) => {
                    let files = self.workspace_files(&workspace);
                    report.unread.push(files.dir().to_owned());
                }
            }
        }
        for workspace in &workspaces {
            let left = workspace.purge_session(id)?;
            report.checkpoints += left.checkpoints;
            report.still_quoted.extend(left.quoted);
        }
        self.purge_names(id, &dir, report)?;
        purge_derived(&workspaces);
        let trails = self.trash_dir().join(format!("{id}{TRAILS}"));
        for dir in [trails, dir] {
            if self.is_dir(&dir)? {
                let removed = self.remove_session_dir(&dir)?;
                report.bytes += removed.bytes;
                report.left.extend(removed.left);
            }
        }
        report.purged.push(id.clone());
        Ok(())
    }

    /// Takes from forks the title and the tags that they have of the session.
    fn purge_names(
        &self,
        id: &SessionId,
        dir: &std::path::Path,
        report: &mut PurgeReport,
    ) -> Result<()> {
        let own = self.files(id).at(dir);
        let names = Names::of(&own)?;
        let family = Family::read(self)?;
        let forks = family.descendants(std::slice::from_ref(id), |_| true);
        for fork in forks {
            let Some(kin) = family.0.iter().find(|kin| kin.id == fork.id) else {
                continue;
            };
            let said = names.are_in(&kin.files)?;
            if !said {
                continue;
            }
            let alone = kin.files.readable_trails()?.len() == 1
                && family.continuing(&kin.id).next().is_none();
            let rewritten = alone
                && match rewrite_only_trail(self, &kin.files, &names) {
                    Ok(()) => true,
                    Err(error) if error.kind() == ErrorKind::Locked => false,
                    Err(error) => return Err(error),
                };
            let list = match rewritten {
                true => &mut report.renamed,
                false => &mut report.still_named,
            };
            if !list.contains(&fork.id) {
                list.push(fork.id);
            }
        }
        Ok(())
    }
}

/// Removes what was derived from sessions and the workspaces that they worked in.
fn purge_derived(workspaces: &[Workspace]) {
    for workspace in workspaces {
        workspace.forget_cache();
    }
}

impl PurgePlan {
    /// Returns the sessions that would be purged, each before the one it comes from.
    pub fn deletions(&self) -> &[Deletion] {
        &self.deletions
    }

    /// Returns the forks that stay: what they have of the session is gone for them, too.
    pub fn forks(&self) -> &[SessionId] {
        &self.forks
    }

    /// Returns the sessions of sub-agents that stay.
    pub fn sub_agents(&self) -> &[SessionId] {
        &self.sub_agents
    }

    /// Returns the checkpoints of others that hold files as the sessions left them:
    /// those stay in the store.
    pub fn still_held(&self) -> &[StillHeld] {
        &self.held
    }

    /// Purges the sessions. What was begun and not finished is finished by the next
    /// purge, `trash empty` or clean-up.
    pub fn apply(self) -> Result<PurgeReport> {
        let Self {
            store, deletions, ..
        } = self;
        store.finish_purges()?;
        let mut report = PurgeReport::default();
        let _turn = store.hold_trash()?;
        for deletion in deletions {
            let dir = store.begin_purge(&deletion.id)?;
            store.finish_purge(&deletion.id, dir, &mut report)?;
        }
        Ok(report)
    }
}
