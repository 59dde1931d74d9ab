//! Files of sessions that are still in checkpoints of others.
//!
//! A file that a session created is tracked by its content: along the trail of the
//! workspace in which it first appeared, and in all others, since a fork may work elsewhere.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use serde::Serialize;

use super::Workspace;
use super::checkpoint::Checkpoint;
use crate::error::Result;
use crate::hex::{lossy_path, lossy_paths};
use crate::ids::{CheckpointId, SessionId};
use crate::objects::ObjectId;
use crate::time::Timestamp;

/// A checkpoint that has files of a session it does not belong to.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RemainingFiles {
    /// The workspace's directory.
    #[serde(serialize_with = "lossy_path")]
    pub root: PathBuf,
    /// The checkpoint.
    pub checkpoint: CheckpointId,
    /// When it was made.
    pub at: Timestamp,
    /// The session that the checkpoint belongs to, if any.
    pub session: Option<SessionId>,
    /// How many of the session's files it has.
    pub count: u64,
    /// The first few of them.
    #[serde(serialize_with = "lossy_paths")]
    pub paths: Vec<PathBuf>,
}

/// How many paths are named.
const NAMED: usize = 3;

/// Returns the checkpoints of other sessions that contain files of these sessions.
pub(crate) fn remaining_files(
    workspaces: &[Workspace],
    sessions: &[SessionId],
) -> Result<Vec<RemainingFiles>> {
    let mut owns = Vec::new();
    for workspace in workspaces {
        let mut own = HashSet::new();
        for session in sessions {
            own.extend(workspace.traces_of(session)?.own);
        }
        owns.push((workspace, own));
    }
    // Content that appeared in one workspace may be in any other.
    let mut came_up: HashMap<ObjectId, Timestamp> = HashMap::new();
    for (workspace, own) in owns.iter().filter(|(_, own)| !own.is_empty()) {
        let mut found = Introduced::by(own.clone(), HashMap::new());
        found.follow(workspace)?;
        for (content, at) in found.theirs {
            let first = came_up.entry(content).or_insert(at);
            *first = at.min(*first);
        }
    }
    let mut held = Vec::new();
    if !came_up.is_empty() {
        for (workspace, own) in owns {
            held.extend(Introduced::by(own, came_up.clone()).follow(workspace)?);
        }
    }
    Ok(held)
}

/// The contents that sessions created, tracked along a trail.
struct Introduced {
    /// The sessions' checkpoints.
    own: HashSet<CheckpointId>,
    /// Contents that existed before, or came from others.
    known: HashSet<ObjectId>,
    /// Contents that the sessions created, and when they first appeared.
    theirs: HashMap<ObjectId, Timestamp>,
    /// The present paths of those contents.
    present: HashMap<PathBuf, ObjectId>,
}

impl Introduced {
    fn by(own: HashSet<CheckpointId>, theirs: HashMap<ObjectId, Timestamp>) -> Self {
        Self {
            own,
            known: HashSet::new(),
            theirs,
            present: HashMap::new(),
        }
    }

    /// Follows a trail, and returns the checkpoints of others that contain the sessions'
    /// files.
    fn follow(&mut self, workspace: &Workspace) -> Result<Vec<RemainingFiles>> {
        let mut held = Vec::new();
        let mut before: Option<Checkpoint> = None;
        let gone = workspace.all_dropped()?;
        for checkpoint in workspace.checkpoints()? {
            let checkpoint = checkpoint?;
            // An unreadable checkpoint has no files to name.
            if gone.contains_key(&checkpoint.id()) || checkpoint.snapshot().is_err() {
                continue;
            }
            self.step(before.as_ref(), &checkpoint)?;
            if !self.is_theirs(&checkpoint) && !self.present.is_empty() {
                held.push(self.holding(workspace, &checkpoint));
            }
            before = Some(checkpoint);
        }
        Ok(held)
    }

    fn is_theirs(&self, checkpoint: &Checkpoint) -> bool {
        self.own.contains(&checkpoint.id())
    }

    fn step(&mut self, before: Option<&Checkpoint>, checkpoint: &Checkpoint) -> Result<()> {
        let after = checkpoint.snapshot()?;
        let Some(before) = before else {
            for entry in after.entries() {
                let (path, state) = entry?;
                self.came(path, state.content, checkpoint);
            }
            return Ok(());
        };
        for change in before.snapshot()?.diff(&after)?.changes() {
            self.present.remove(&change.path);
            if let Some(from) = &change.from {
                self.present.remove(from);
            }
            let content = change.after.as_ref().and_then(|state| state.content);
            self.came(change.path.clone(), content, checkpoint);
        }
        Ok(())
    }

    fn came(&mut self, path: PathBuf, content: Option<ObjectId>, checkpoint: &Checkpoint) {
        let Some(content) = content else {
            return;
        };
        let at = checkpoint.at();
        // Content that existed when one of their turns began is not theirs, nor is content
        // that was elsewhere before.
        let brought = self.is_theirs(checkpoint) && !checkpoint.reason().begins();
        let followed = self.theirs.get(&content).is_some_and(|first| *first <= at);
        if !self.known.contains(&content) && (brought || followed) {
            self.theirs.entry(content).or_insert(at);
            self.present.insert(path, content);
        } else {
            self.known.insert(content);
        }
    }

    fn holding(&self, workspace: &Workspace, checkpoint: &Checkpoint) -> RemainingFiles {
        let mut paths: Vec<PathBuf> = self.present.keys().cloned().collect();
        paths.sort_unstable();
        paths.truncate(NAMED);
        RemainingFiles {
            root: workspace.root().to_owned(),
            checkpoint: checkpoint.id(),
            at: checkpoint.at(),
            session: checkpoint.session().map(|place| place.id.clone()),
            count: self.present.len() as u64,
            paths,
        }
    }
}
