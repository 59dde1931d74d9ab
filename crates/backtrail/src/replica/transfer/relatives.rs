//! The sessions that come along: those that a session continues, and its sub-agents.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::ids::SessionId;
use crate::log::{LogDir, first_opener};
use crate::replica::local::LocalLog;
use crate::store::Store;
use crate::trail::TrailReason;
use crate::trail::opener::{Continues, Opener};

/// The session that another continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parent {
    pub(super) id: SessionId,
    /// The record that is continued; `None` if none is.
    pub(super) at: Option<Continues>,
}

/// Returns the session that an opener of a first trail names.
pub(super) fn parent_in(opener: &Opener) -> Option<Parent> {
    let other = |id: &SessionId| *id != opener.session_id;
    if let Some(continues) = &opener.continues {
        let id = continues.session_id.clone();
        let at = Some(continues.clone());
        return other(&id).then_some(Parent { id, at });
    }
    // An imported session may name one that was never here.
    let fork = opener.fork.as_ref();
    let fork = fork.filter(|_| opener.reason == TrailReason::Fork)?;
    let id = fork.parent_session_id.parse().ok().filter(other)?;
    Some(Parent { id, at: None })
}

/// Returns the session that one here continues.
pub(super) fn parent_here(files: &LogDir) -> Result<Option<Parent>> {
    Ok(first_opener(files)?.as_ref().and_then(parent_in))
}

/// Returns the files of a session, in the trash or not.
pub(super) fn files_anywhere(store: &Store, id: &SessionId) -> Result<LogDir> {
    let files = store.files(id);
    match files.head() {
        Ok(_) => Ok(files),
        Err(error) if error.in_trash().is_some() => Ok(files.deleted()),
        Err(error) => Err(error),
    }
}

/// The sub-agents of the store that name the session whose tool call started them. An import
/// writes no record about them into that session.
#[derive(Debug, Default)]
pub(super) struct SubAgents(BTreeMap<SessionId, Vec<SessionId>>);

impl SubAgents {
    pub(super) fn read(store: &Store) -> Result<Self> {
        let mut all: BTreeMap<SessionId, Vec<SessionId>> = BTreeMap::new();
        for id in store.sessions()? {
            // One that cannot be read fails when it is pushed itself.
            if let Ok(Some(opener)) = first_opener(&store.files(&id))
                && let Some(by) = opener.spawned_by
            {
                all.entry(by.session_id).or_default().push(id);
            }
        }
        Ok(Self(all))
    }

    /// Returns the sub-agents of a session, those first that its own records name.
    pub(super) fn of(&self, log: &LocalLog) -> Result<Vec<SessionId>> {
        let mut found = log.named()?.sub_agents;
        let named = self.0.get(&log.key().id);
        for id in named.into_iter().flatten() {
            if !found.contains(id) {
                found.push(id.clone());
            }
        }
        Ok(found)
    }
}
