//! Which session goes on from which.

use super::delete::{Deletion, DeletionBecause};
use crate::error::Result;
use crate::ids::SessionId;
use crate::log::{LogDir, first_opener};
use crate::store::Store;
use crate::trail::opener::{Because, Opener};

/// What the first trail of a session says of others.
#[derive(Debug)]
pub(super) struct Kin {
    pub(super) id: SessionId,
    pub(super) files: LogDir,
    pub(super) is_deleted: bool,
    /// The session whose records it goes on from.
    pub(super) continues: Option<SessionId>,
    /// The session that it was forked from.
    forked_from: Option<SessionId>,
    /// The session whose tool call began it.
    spawned_by: Option<SessionId>,
    /// Whether what it says cannot be read: it may go on from any.
    pub(super) is_unreadable: bool,
}

/// All sessions of a store, those in the trash included.
#[derive(Debug)]
pub(super) struct Family(pub(super) Vec<Kin>);

impl Family {
    pub(super) fn read(store: &Store) -> Result<Self> {
        let mut all = Vec::new();
        for id in store.sessions()? {
            all.push(Kin::read(store.files(&id), false));
        }
        for id in store.deleted_sessions()? {
            all.push(Kin::read(store.files(&id).deleted(), true));
        }
        Ok(Self(all))
    }

    /// Returns the sessions that go on from records of another.
    pub(super) fn continuing<'a>(&'a self, id: &'a SessionId) -> impl Iterator<Item = &'a Kin> {
        let continues = move |kin: &&Kin| kin.continues.as_ref() == Some(id);
        self.0.iter().filter(continues)
    }

    /// Returns the sessions whose beginning cannot be read.
    pub(super) fn unreadable(&self) -> impl Iterator<Item = &Kin> {
        self.0.iter().filter(|kin| kin.is_unreadable)
    }

    /// Returns the forks and sub-agents of sessions, at whatever depth, each before
    /// the one that it comes from. `fits` says which sessions count.
    pub(super) fn descendants(
        &self,
        ids: &[SessionId],
        fits: impl Fn(&Kin) -> bool,
    ) -> Vec<Deletion> {
        let mut found: Vec<Deletion> = Vec::new();
        let mut parents = ids.to_vec();
        let mut at = 0;
        while let Some(parent) = parents.get(at).cloned() {
            at += 1;
            for kin in self.0.iter().filter(|kin| fits(kin)) {
                let Some(because) = kin.comes_from(&parent) else {
                    continue;
                };
                // Once, though they go in a circle.
                if !parents.contains(&kin.id) {
                    parents.push(kin.id.clone());
                    found.push(Deletion {
                        id: kin.id.clone(),
                        because,
                    });
                }
            }
        }
        found.reverse();
        found
    }
}

impl Kin {
    fn read(files: LogDir, is_deleted: bool) -> Self {
        let (opener, is_unreadable) = match first_opener(&files) {
            Ok(Some(opener)) => (Some(opener), false),
            _ => (None, true),
        };
        let id = files.id().clone();
        Self {
            continues: opener.as_ref().and_then(|opener| other(opener, &id)),
            forked_from: opener.as_ref().and_then(parent),
            spawned_by: opener
                .and_then(|opener| opener.spawned_by)
                .map(|by| by.session_id),
            id,
            files,
            is_deleted,
            is_unreadable,
        }
    }

    /// Returns how it comes from a session, if it does.
    fn comes_from(&self, parent: &SessionId) -> Option<DeletionBecause> {
        let of = parent.clone();
        if [&self.continues, &self.forked_from].contains(&&Some(parent.clone())) {
            Some(DeletionBecause::Fork { of })
        } else if self.spawned_by.as_ref() == Some(parent) {
            Some(DeletionBecause::SubAgent { of })
        } else {
            None
        }
    }
}

/// Returns the other session that a first trail goes on from.
fn other(opener: &Opener, own: &SessionId) -> Option<SessionId> {
    let continues = opener.continues.as_ref()?;
    (continues.session_id != *own).then(|| continues.session_id.clone())
}

/// Returns the session that another was forked from here. What an imported file says
/// of its origin is no fork of ours.
fn parent(opener: &Opener) -> Option<SessionId> {
    let fork = opener
        .fork
        .as_ref()
        .filter(|_| opener.because == Because::Fork)?;
    fork.parent_session_id.parse().ok()
}
