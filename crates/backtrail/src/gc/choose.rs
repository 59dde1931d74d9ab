//! Which file states may be dropped, and in which order.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use super::trails::{KeptCheckpoint, WorkspaceRecords};
use crate::error::{IoContext, Result};
use crate::ids::{CheckpointId, SessionId, WorkspaceId};
use crate::objects::ObjectId;
use crate::storage::names_in;
use crate::store::Store;
use crate::time::Timestamp;
use crate::workspace::CheckpointReason;

/// A state of a workspace's files, with all checkpoints that have it.
#[derive(Debug, Clone)]
pub(super) struct FileVersion {
    pub(super) workspace: WorkspaceId,
    pub(super) snapshot: ObjectId,
    pub(super) checkpoints: Vec<CheckpointId>,
    /// Why it is never dropped, if so.
    pub(super) kept_for: Option<KeepReason>,
    /// Whether all its checkpoints are around tool calls.
    is_of_tool: bool,
    /// When the oldest and the newest of its checkpoints were made.
    pub(super) oldest: Timestamp,
    pub(super) newest: Timestamp,
    /// The position of the newest on its trail.
    place: usize,
}

/// Why a state is never dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeepReason {
    Labelled,
    /// The newest of its session or workspace.
    Newest,
    /// A turn or run, a rewind or a mark needs it.
    InUse,
    /// A newer version made it.
    Unknown,
}

/// The sessions, turns and runs that keep states.
#[derive(Debug, Default)]
pub(super) struct StatesInUse {
    /// The names in the directories of sessions and of the trash.
    names: Vec<String>,
    /// The checkpoints that turns and runs under way began with.
    pub(super) active: HashSet<CheckpointId>,
}

impl StatesInUse {
    /// Finds the sessions. Those in the trash may be restored.
    pub(super) fn read(store: &Store) -> Result<Self> {
        let mut in_use = Self::default();
        for dir in ["sessions", "trash"] {
            let dir = store.root().join(dir);
            let names = names_in(store.storage(), &dir);
            let names = names.context("cannot list the sessions", &dir)?;
            let names = names.iter().map(|name| name.to_string_lossy().into_owned());
            in_use.names.extend(names);
        }
        Ok(in_use)
    }

    fn has(&self, session: &SessionId) -> bool {
        let mut names = self.names.iter();
        names.any(|name| name.contains(session.as_str()))
    }
}

/// Returns the states of a workspace that were not dropped.
pub(super) fn states(
    id: &WorkspaceId,
    records: &WorkspaceRecords,
    in_use: &StatesInUse,
) -> Vec<FileVersion> {
    let reasons = keep_reasons(records, in_use);
    let mut states: Vec<FileVersion> = Vec::new();
    let mut by_snapshot: HashMap<ObjectId, usize> = HashMap::new();
    let kept = records.kept.iter().enumerate();
    for (place, kept) in kept.filter(|(_, kept)| !records.dropped.contains(&kept.id)) {
        let reason = reasons.get(&kept.id).copied();
        let n = *by_snapshot.entry(kept.snapshot).or_insert(states.len());
        if n == states.len() {
            states.push(FileVersion {
                workspace: id.clone(),
                snapshot: kept.snapshot,
                checkpoints: Vec::new(),
                kept_for: None,
                is_of_tool: true,
                oldest: kept.at,
                newest: kept.at,
                place,
            });
        }
        // One checkpoint that must stay keeps them all.
        let state = &mut states[n];
        state.checkpoints.push(kept.id);
        state.kept_for = state.kept_for.or(reason);
        state.is_of_tool &= kept.reason == CheckpointReason::ToolEnd;
        state.newest = kept.at;
        state.place = place;
    }
    let used = records
        .open_steps()
        .flat_map(|begun| [begun.before, begun.after]);
    for snapshot in used.chain(records.marks.iter().copied()) {
        if let Some(n) = by_snapshot.get(&snapshot) {
            states[*n].kept_for.get_or_insert(KeepReason::InUse);
        }
    }
    states
}

/// Returns the checkpoints that are never dropped, and why.
fn keep_reasons(
    records: &WorkspaceRecords,
    in_use: &StatesInUse,
) -> HashMap<CheckpointId, KeepReason> {
    let mut reasons = HashMap::new();
    let mut newest_of: HashMap<&SessionId, &KeptCheckpoint> = HashMap::new();
    let kept = || {
        records
            .kept
            .iter()
            .filter(|kept| !records.dropped.contains(&kept.id))
    };
    for kept in kept() {
        if let Some(session) = &kept.session {
            newest_of.insert(session, kept);
        }
        if let CheckpointReason::Other(_) = kept.reason {
            reasons.insert(kept.id, KeepReason::Unknown);
        }
        if in_use.active.contains(&kept.id) {
            reasons.insert(kept.id, KeepReason::InUse);
        }
    }
    let newest_of = newest_of
        .into_iter()
        .filter(|(session, _)| in_use.has(session));
    reasons.extend(newest_of.map(|(_, kept)| (kept.id, KeepReason::Newest)));
    reasons.extend(kept().next_back().map(|kept| (kept.id, KeepReason::Newest)));
    let labelled = kept().filter(|kept| kept.is_labelled);
    reasons.extend(labelled.map(|kept| (kept.id, KeepReason::Labelled)));
    reasons
}

impl FileVersion {
    /// Returns the order in which states are dropped: those around tool calls before all
    /// others, then oldest first.
    pub(super) fn order(&self, now: Timestamp) -> impl Ord + use<> {
        // A clock that was ahead makes no state newer than now.
        let newest = self.newest.min(now);
        (!self.is_of_tool, newest, self.workspace.clone(), self.place)
    }

    /// Returns whether it may be dropped, and is older than a moment.
    pub(super) fn is_older_than(&self, moment: Timestamp) -> bool {
        self.kept_for.is_none() && self.newest < moment
    }
}

/// Sorts states so that those to drop last come first.
pub(super) fn by_worth(states: &mut [FileVersion], now: Timestamp) {
    states.sort_by_cached_key(|state| (state.kept_for.is_none(), Reverse(state.order(now))));
}
