//! Which file states may be let go, and in which order.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::io;

use super::trails::{KeptCheckpoint, Told};
use crate::error::{Error, Result};
use crate::ids::{CheckpointId, SessionId, WorkspaceId};
use crate::log::is_absent;
use crate::objects::ObjectId;
use crate::store::Store;
use crate::time::Timestamp;
use crate::workspace::Why;

/// A state of a workspace's files, with all checkpoints that have it.
#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) workspace: WorkspaceId,
    pub(super) snapshot: ObjectId,
    pub(super) checkpoints: Vec<CheckpointId>,
    /// Why it may never go, if so.
    pub(super) never: Option<Never>,
    /// Whether it is one around tool calls, and nothing else.
    is_of_tool: bool,
    /// When the oldest and the newest of its checkpoints were made.
    pub(super) oldest: Timestamp,
    pub(super) newest: Timestamp,
    /// Where the newest stands on its trail.
    place: usize,
}

/// Why a state is never let go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Never {
    Labelled,
    /// The newest of its session or workspace.
    Newest,
    /// A turn or run, a rewind or a mark needs it.
    InUse,
    /// Why it was made is not known here.
    Unknown,
}

/// What is there that keeps states.
#[derive(Debug, Default)]
pub(super) struct Around {
    /// The names of what lies in the store as a session, or in the trash.
    names: Vec<String>,
    /// What the turns and runs that are under way began with.
    pub(super) active: HashSet<CheckpointId>,
}

impl Around {
    /// Finds the sessions that there are. Those in the trash may come back.
    pub(super) fn look(store: &Store) -> Result<Self> {
        let mut around = Self::default();
        for dir in ["sessions", "trash"] {
            let dir = store.root().join(dir);
            match store.storage().list(&dir) {
                Ok(names) => {
                    let names = names.iter().map(|name| name.to_string_lossy().into_owned());
                    around.names.extend(names);
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) if is_absent(&error) => {}
                Err(error) => return Err(Error::io("cannot list the sessions", &dir, error)),
            }
        }
        Ok(around)
    }

    fn has(&self, session: &SessionId) -> bool {
        let mut names = self.names.iter();
        names.any(|name| name.contains(session.as_str()))
    }
}

/// Returns the states of a workspace that were not let go.
pub(super) fn states(id: &WorkspaceId, told: &Told, around: &Around) -> Vec<State> {
    let never = nevers(told, around);
    let mut states: Vec<State> = Vec::new();
    let mut by_snapshot: HashMap<ObjectId, usize> = HashMap::new();
    let kept = told.kept.iter().enumerate();
    for (place, kept) in kept.filter(|(_, kept)| !told.let_go.contains(&kept.id)) {
        let never = never.get(&kept.id).copied();
        let n = *by_snapshot.entry(kept.snapshot).or_insert(states.len());
        if n == states.len() {
            states.push(State {
                workspace: id.clone(),
                snapshot: kept.snapshot,
                checkpoints: Vec::new(),
                never: None,
                is_of_tool: true,
                oldest: kept.at,
                newest: kept.at,
                place,
            });
        }
        // The most precious of them counts.
        let state = &mut states[n];
        state.checkpoints.push(kept.id);
        state.never = state.never.or(never);
        state.is_of_tool &= kept.why == Why::ToolEnd;
        state.newest = kept.at;
        state.place = place;
    }
    let used = told
        .open_steps()
        .flat_map(|begun| [begun.before, begun.after]);
    for snapshot in used.chain(told.marks.iter().copied()) {
        if let Some(n) = by_snapshot.get(&snapshot) {
            states[*n].never.get_or_insert(Never::InUse);
        }
    }
    states
}

/// Returns the checkpoints that are never let go, and why.
fn nevers(told: &Told, around: &Around) -> HashMap<CheckpointId, Never> {
    let mut never = HashMap::new();
    let mut newest_of: HashMap<&SessionId, &KeptCheckpoint> = HashMap::new();
    let kept = || {
        told.kept
            .iter()
            .filter(|kept| !told.let_go.contains(&kept.id))
    };
    for kept in kept() {
        if let Some(session) = &kept.session {
            newest_of.insert(session, kept);
        }
        if let Why::Other(_) = kept.why {
            never.insert(kept.id, Never::Unknown);
        }
        if around.active.contains(&kept.id) {
            never.insert(kept.id, Never::InUse);
        }
    }
    let newest_of = newest_of
        .into_iter()
        .filter(|(session, _)| around.has(session));
    never.extend(newest_of.map(|(_, kept)| (kept.id, Never::Newest)));
    never.extend(kept().next_back().map(|kept| (kept.id, Never::Newest)));
    let labelled = kept().filter(|kept| kept.is_labelled);
    never.extend(labelled.map(|kept| (kept.id, Never::Labelled)));
    never
}

impl State {
    /// Returns what states are sorted by so that the first to go comes first: those
    /// around tool calls before all others, the oldest first.
    pub(super) fn order(&self, now: Timestamp) -> impl Ord + use<> {
        // A clock that was ahead makes nothing newer than now.
        let newest = self.newest.min(now);
        (!self.is_of_tool, newest, self.workspace.clone(), self.place)
    }

    /// Returns whether it may go, and is older than a moment.
    pub(super) fn is_older_than(&self, moment: Timestamp) -> bool {
        self.never.is_none() && self.newest < moment
    }
}

/// Sorts states by how precious they are, the most precious first.
pub(super) fn by_worth(states: &mut [State], now: Timestamp) {
    states.sort_by_cached_key(|state| (state.never.is_none(), Reverse(state.order(now))));
}
