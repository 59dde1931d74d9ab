//! Deleting sessions: to the trash, by one rename each.

use super::deleted::Deleted;
use super::kin::Family;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::SessionId;
use crate::log::{AppendLock, WriterLock};
use crate::store::Store;
use crate::workspace::{self, Workspace};

/// What is deleted beside the sessions that are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum DeleteScope {
    /// Nothing. Forks go on reading the session in the trash.
    #[default]
    Named,
    /// Their forks and the sessions of their sub-agents, at whatever depth.
    WithDescendants,
}

/// A session that is to be deleted, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deletion {
    /// The session.
    pub id: SessionId,
    /// Why it is among those.
    pub because: DeletionBecause,
}

/// Why a session is deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeletionBecause {
    /// It was named.
    Named,
    /// It is a fork of one that is deleted.
    Fork {
        /// Of which.
        of: SessionId,
    },
    /// A tool call of one that is deleted began it.
    SubAgent {
        /// Of which.
        of: SessionId,
    },
}

/// What deleting sessions would do.
#[derive(Debug)]
pub struct DeletePlan {
    store: Store,
    deletions: Vec<Deletion>,
    forks: Vec<SessionId>,
}

impl Store {
    /// Finds out what deleting sessions would do.
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
            DeleteScope::WithDescendants => family.descendants(&named, |kin| !kin.is_deleted),
        };
        deletions.extend(named.iter().map(|id| Deletion {
            id: id.clone(),
            because: DeletionBecause::Named,
        }));
        let stays = |id: &SessionId| !deletions.iter().any(|deletion| deletion.id == *id);
        let forks = deletions
            .iter()
            .flat_map(|deletion| family.continuing(&deletion.id));
        let forks = forks.filter(|kin| !kin.is_deleted && stays(&kin.id));
        let forks = forks.map(|kin| kin.id.clone()).collect();
        Ok(DeletePlan {
            store: self.clone(),
            deletions,
            forks,
        })
    }
}

impl DeletePlan {
    /// Returns the sessions that would be deleted, each before the one it comes from.
    pub fn deletions(&self) -> &[Deletion] {
        &self.deletions
    }

    /// Returns the sessions that go on from one of those and stay: they read it in the
    /// trash.
    pub fn forks(&self) -> &[SessionId] {
        &self.forks
    }

    /// Moves the sessions to the trash. Where somebody speaks in one of them, nothing
    /// is moved.
    pub fn apply(self) -> Result<()> {
        let Self {
            store, deletions, ..
        } = self;
        let _turn = store.hold_trash()?;
        let mut held = Vec::new();
        for deletion in &deletions {
            held.push((deletion, hold_session(&store, &deletion.id)?));
        }
        for (done, (deletion, _speaker)) in held.iter().enumerate() {
            let moved = move_to_trash(&store, &deletion.id);
            moved.map_err(|error| match done {
                0 => error,
                1 => error.with_note("one session is in the trash already"),
                n => error.with_note(format!("{n} sessions are in the trash already")),
            })?;
        }
        Ok(())
    }
}

/// Takes the right to speak in a session, so that nobody else does.
pub(super) fn hold_session(store: &Store, id: &SessionId) -> Result<WriterLock> {
    let files = store.files(id);
    files.head()?;
    let lock = WriterLock::take(&files, &store.holder())
        .map_err(|error| gone_meanwhile(store, id, error))?;
    refuse_active(store, id)?;
    Ok(lock)
}

/// Refuses a session in which a command runs, in whatever workspace: what it says at its
/// end would be lost.
pub(super) fn refuse_active(store: &Store, id: &SessionId) -> Result<()> {
    for (workspace, known) in workspace::all(store)? {
        let workspace = match known {
            Ok(Some(known)) => known.open(store),
            // Nothing was ever begun there.
            Ok(None) => continue,
            // Who is at work there is told all the same.
            Err(_) => {
                let root = store.workspace_files(&workspace).path().to_owned();
                Workspace::new(store, workspace, root)
            }
        };
        let active = workspace.active()?.into_iter();
        let mut own = active.filter(|activity| activity.session.as_ref() == Some(id));
        if let Some(activity) = own.next() {
            let what = format!("session {id} is at work in {}", activity.holder);
            return Err(Error::locked(what, workspace.root(), Some(activity.holder)));
        }
    }
    Ok(())
}

fn move_to_trash(store: &Store, id: &SessionId) -> Result<()> {
    let files = store.files(id);
    let lock = AppendLock::open(&files).map_err(|error| gone_meanwhile(store, id, error))?;
    // Nobody appends meanwhile: whoever waits finds the session gone.
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

/// Says of a session that is not there any more where it is.
fn gone_meanwhile(store: &Store, id: &SessionId, error: Error) -> Error {
    match error.kind() {
        ErrorKind::NotFound => store.files(id).not_found(),
        _ => error,
    }
}
