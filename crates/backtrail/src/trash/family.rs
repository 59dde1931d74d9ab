//! Which session continues which.

use super::delete::{Deletion, DeletionReason};
use crate::error::Result;
use crate::ids::SessionId;
use crate::log::{LogDir, first_opener};
use crate::store::Store;
use crate::trail::opener::{Opener, TrailReason};

/// A session, and the sessions that its first trail names.
#[derive(Debug)]
pub(super) struct Relative {
    pub(super) id: SessionId,
    pub(super) files: LogDir,
    pub(super) is_deleted: bool,
    /// The session whose records it continues.
    pub(super) continues: Option<SessionId>,
    /// The session that it was forked from.
    forked_from: Option<SessionId>,
    /// The session whose tool call started it.
    spawned_by: Option<SessionId>,
    /// Whether its first trail cannot be read: it may continue any session.
    pub(super) is_unreadable: bool,
}

/// All sessions of a store, including those in the trash.
#[derive(Debug)]
pub(super) struct Family(pub(super) Vec<Relative>);

impl Family {
    pub(super) fn read(store: &Store) -> Result<Self> {
        let mut all = Vec::new();
        for id in store.sessions()? {
            all.push(Relative::read(store.files(&id), false));
        }
        for id in store.deleted_sessions()? {
            all.push(Relative::read(store.files(&id).deleted(), true));
        }
        Ok(Self(all))
    }

    /// Returns the sessions that continue another.
    pub(super) fn continuing<'a>(
        &'a self,
        id: &'a SessionId,
    ) -> impl Iterator<Item = &'a Relative> {
        let continues = move |relative: &&Relative| relative.continues.as_ref() == Some(id);
        self.0.iter().filter(continues)
    }

    /// Returns the sessions whose first trail cannot be read.
    pub(super) fn unreadable(&self) -> impl Iterator<Item = &Relative> {
        self.0.iter().filter(|relative| relative.is_unreadable)
    }

    /// Returns the forks and sub-agents of sessions, at any depth, each before the one that
    /// it comes from. `fits` chooses the sessions that count.
    pub(super) fn descendants(
        &self,
        ids: &[SessionId],
        fits: impl Fn(&Relative) -> bool,
    ) -> Vec<Deletion> {
        let mut found: Vec<Deletion> = Vec::new();
        let mut parents = ids.to_vec();
        let mut at = 0;
        while let Some(parent) = parents.get(at).cloned() {
            at += 1;
            for relative in self.0.iter().filter(|relative| fits(relative)) {
                let Some(reason) = relative.comes_from(&parent) else {
                    continue;
                };
                // Only once, even in a circle.
                if !parents.contains(&relative.id) {
                    parents.push(relative.id.clone());
                    found.push(Deletion {
                        id: relative.id.clone(),
                        reason,
                    });
                }
            }
        }
        found.reverse();
        found
    }
}

impl Relative {
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
    fn comes_from(&self, parent: &SessionId) -> Option<DeletionReason> {
        let of = parent.clone();
        if [&self.continues, &self.forked_from].contains(&&Some(parent.clone())) {
            Some(DeletionReason::Fork { of })
        } else if self.spawned_by.as_ref() == Some(parent) {
            Some(DeletionReason::SubAgent { of })
        } else {
            None
        }
    }
}

/// Returns the other session that a first trail continues.
fn other(opener: &Opener, own: &SessionId) -> Option<SessionId> {
    let continues = opener.continues.as_ref()?;
    (continues.session_id != *own).then(|| continues.session_id.clone())
}

/// Returns the session that another was forked from. The origin of an imported file does
/// not count.
fn parent(opener: &Opener) -> Option<SessionId> {
    let fork = opener
        .fork
        .as_ref()
        .filter(|_| opener.reason == TrailReason::Fork)?;
    fork.parent_session_id.parse().ok()
}
