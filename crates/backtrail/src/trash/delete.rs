//! Deleting sessions: one rename each moves them to the trash.

use serde::Serialize;

use super::deleted::Deleted;
use super::family::Family;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::SessionId;
use crate::log::{HeldLock, LockFile, hold_writer};
use crate::store::Store;
#[cfg(feature = "snapshots")]
use crate::workspace::{self, Workspace};

/// Which sessions are deleted with the named ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum DeleteScope {
    /// None. Forks read the session in the trash.
    #[default]
    Named,
    /// Their forks and the sessions of their sub-agents, at any depth.
    WithDescendants,
}

/// A session that would be deleted, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Deletion {
    /// The session.
    pub id: SessionId,
    /// Why it is deleted.
    #[serde(flatten)]
    pub reason: DeletionReason,
}

/// Why a session is deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum DeletionReason {
    /// It was named.
    Named,
    /// It is a fork of a deleted session.
    Fork {
        /// The session that it was forked from.
        of: SessionId,
    },
    /// A tool call of a deleted session started it.
    SubAgent {
        /// The session with the tool call.
        of: SessionId,
    },
}

/// A deletion that was planned.
#[derive(Debug)]
pub struct DeletePlan {
    store: Store,
    deletions: Vec<Deletion>,
    forks: Vec<SessionId>,
}

impl Store {
    /// Plans the deletion of sessions, and changes nothing.
    ///
    /// # Errors
    ///
    /// Fails with [`NotFound`](ErrorKind::NotFound) where a session does not exist.
    pub fn delete_plan(&self, ids: &[SessionId], scope: DeleteScope) -> Result<DeletePlan> {
        let mut named: Vec<SessionId> = Vec::new();
        for id in ids {
            self.files(id).head()?;
            if !named.contains(id) {
                named.push(id.clone());
            }
        }
        let family = Family::read(self)?;
        let mut deletions = match scope {
            DeleteScope::Named => Vec::new(),
            DeleteScope::WithDescendants => {
                family.descendants(&named, |relative| !relative.is_deleted)
            }
        };
        deletions.extend(named.iter().map(|id| Deletion {
            id: id.clone(),
            reason: DeletionReason::Named,
        }));
        let stays = |id: &SessionId| !deletions.iter().any(|deletion| deletion.id == *id);
        let forks = deletions
            .iter()
            .flat_map(|deletion| family.continuing(&deletion.id));
        let forks = forks.filter(|relative| !relative.is_deleted && stays(&relative.id));
        let forks = forks.map(|relative| relative.id.clone()).collect();
        Ok(DeletePlan {
            store: self.clone(),
            deletions,
            forks,
        })
    }
}

impl DeletePlan {
    /// Returns the sessions that would be deleted, each before the one that it comes from.
    pub fn deletions(&self) -> &[Deletion] {
        &self.deletions
    }

    /// Returns the sessions that continue one of those and stay: they read it in the trash.
    pub fn forks(&self) -> &[SessionId] {
        &self.forks
    }

    /// Moves the sessions to the trash.
    ///
    /// # Errors
    ///
    /// Fails with [`Locked`](ErrorKind::Locked), before anything is moved, where another
    /// process is writing to one of them.
    pub fn apply(self) -> Result<()> {
        let Self {
            store, deletions, ..
        } = self;
        let _guard = store.hold_trash()?;
        let mut held = Vec::new();
        for deletion in &deletions {
            held.push((deletion, hold_session(&store, &deletion.id)?));
        }
        for (done, (deletion, _writer)) in held.iter().enumerate() {
            let moved = move_to_trash(&store, &deletion.id);
            moved.map_err(|error| match done {
                0 => error,
                1 => error.with_note("one session is already in the trash"),
                n => error.with_note(format!("{n} sessions are already in the trash")),
            })?;
        }
        Ok(())
    }
}

/// Takes the write lock of a session.
pub(super) fn hold_session(store: &Store, id: &SessionId) -> Result<HeldLock> {
    let files = store.files(id);
    files.head()?;
    let lock = hold_writer(store, &files).map_err(|error| gone_meanwhile(store, id, error))?;
    #[cfg(feature = "snapshots")]
    refuse_active(store, id)?;
    Ok(lock)
}

/// Refuses a session in which a command runs, in any workspace: its last record would be
/// lost.
#[cfg(feature = "snapshots")]
pub(super) fn refuse_active(store: &Store, id: &SessionId) -> Result<()> {
    for (workspace, known) in workspace::all(store)? {
        let workspace = match known {
            Ok(Some(known)) => known.open(store),
            // It has no checkpoints.
            Ok(None) => continue,
            // What is running there can be found even so.
            Err(_) => {
                let root = store.workspace_files(&workspace).path().to_owned();
                Workspace::new(store, workspace, root)
            }
        };
        let active = workspace.active()?.into_iter();
        let mut own = active.filter(|activity| activity.session.as_ref() == Some(id));
        if let Some(activity) = own.next() {
            let what = format!("session {id} is running in {}", activity.holder);
            return Err(Error::locked(what, workspace.root(), Some(activity.holder)));
        }
    }
    Ok(())
}

fn move_to_trash(store: &Store, id: &SessionId) -> Result<()> {
    let files = store.files(id);
    let lock = LockFile::append(&files).map_err(|error| gone_meanwhile(store, id, error))?;
    // Nothing is appended meanwhile: a process that waits finds the session gone.
    let _guard = lock.hold()?;
    files.head()?;
    let storage = store.storage();
    Deleted::now(store).write(storage, files.path())?;
    let to = files.deleted();
    storage
        .rename_new(files.path(), to.path())
        .map_err(|error| {
            let what = format!("cannot move session {id} to the trash");
            Error::io(what, to.path(), error)
        })?;
    store.sync_dirs([store.trash_dir().as_path(), store.sessions_dir()])
}

/// Returns the error of a session that was moved meanwhile.
fn gone_meanwhile(store: &Store, id: &SessionId, error: Error) -> Error {
    match error.kind() {
        ErrorKind::NotFound => store.files(id).not_found(),
        _ => error,
    }
}
