//! The states of a workspace's files that blame looks at, and what one path was in each.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use crate::error::{Error, ErrorKind, Result};
use crate::objects::ObjectId;
use crate::snapshot::Snapshot;
use crate::snapshot::entry::Node;
use crate::snapshot::path_finder::PathFinder;
use crate::time::Timestamp;
use crate::workspace::timeline::Timeline;
use crate::workspace::{Checkpoint, Look, Workspace};

/// How many states one thread looks at.
const IN_ONE: usize = 500;
const MAX_THREADS: usize = 8;

/// What a path was in a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    Absent,
    File {
        content: ObjectId,
        bytes: u64,
    },
    /// A directory or a link.
    Other,
    /// It was skipped, or the state was dropped or is damaged.
    Unknown,
}

impl Version {
    fn of(node: Option<&Node>) -> Self {
        match node {
            None => Self::Absent,
            Some(&Node::File { content, size, .. }) => Self::File {
                content,
                bytes: size,
            },
            Some(Node::Link { .. } | Node::Dir(_)) => Self::Other,
            Some(Node::Skipped(_)) => Self::Unknown,
        }
    }

    pub(super) fn is_file(self) -> bool {
        matches!(self, Self::File { .. })
    }
}

/// The states up to the one that is blamed: the checkpoints and, after them, the present.
#[derive(Debug)]
pub(super) struct States {
    pub(super) workspace: Workspace,
    pub(super) timeline: Timeline,
    /// The files as they are now, as far as they were looked at; `None` if a checkpoint is
    /// blamed.
    present: Option<Snapshot>,
    /// The state that is blamed.
    pub(super) last: usize,
    /// The snapshot of each checkpoint; `None` if it was dropped.
    snapshots: Vec<Option<ObjectId>>,
}

impl States {
    /// Reads the states up to a checkpoint, or to the present.
    pub(super) fn read(
        workspace: &Workspace,
        at: Option<&Checkpoint>,
        present: Option<Snapshot>,
    ) -> Result<Self> {
        let timeline = Timeline::read(workspace)?;
        let last = match at {
            Some(at) => timeline.index_of(at.id()).ok_or_else(|| {
                let what = format!("checkpoint {} is not here", at.id().prefix(8));
                Error::new(ErrorKind::NotFound, what)
            })?,
            None => timeline.checkpoints.len(),
        };
        let dropped = workspace.all_dropped()?;
        let checkpoints = &timeline.checkpoints;
        let is_kept = |it: &&Checkpoint| !dropped.contains_key(&it.id());
        // Another checkpoint may have the same files.
        let kept = checkpoints
            .iter()
            .filter(is_kept)
            .map(Checkpoint::snapshot_id);
        let kept: HashSet<ObjectId> = kept.collect();
        let ids = checkpoints.iter().map(Checkpoint::snapshot_id);
        let snapshots = ids.map(|id| Some(id).filter(|id| kept.contains(id)));
        Ok(Self {
            snapshots: snapshots.collect(),
            workspace: workspace.clone(),
            timeline,
            present,
            last,
        })
    }

    /// Returns what a path was in every state up to the last.
    pub(super) fn versions(&self, path: &Path) -> Result<Vec<Version>> {
        let stored = &self.snapshots[..self.snapshots.len().min(self.last + 1)];
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let part = stored.len().div_ceil(threads.min(MAX_THREADS)).max(IN_ONE);
        let parts: Vec<Result<Vec<Version>>> = thread::scope(|scope| {
            let look = |part| scope.spawn(move || self.look(path, part));
            let parts: Vec<_> = stored.chunks(part).map(look).collect();
            let join = |part: thread::ScopedJoinHandle<'_, _>| {
                part.join().unwrap_or_else(|_| {
                    let what = "a thread that reads snapshots failed";
                    Err(Error::new(ErrorKind::Invalid, what))
                })
            };
            parts.into_iter().map(join).collect()
        });
        let mut versions = Vec::with_capacity(self.last + 1);
        for part in parts {
            versions.extend(part?);
        }
        if let Some(present) = self.present.as_ref().filter(|_| self.is_present(self.last)) {
            versions.push(Version::of(present.walk_down(path)?.as_ref()));
        }
        Ok(versions)
    }

    fn look(&self, path: &Path, snapshots: &[Option<ObjectId>]) -> Result<Vec<Version>> {
        let mut finder = PathFinder::new(self.workspace.objects(), path)?;
        let mut versions: Vec<Version> = Vec::with_capacity(snapshots.len());
        for (n, id) in snapshots.iter().enumerate() {
            let before = n.checked_sub(1).filter(|before| snapshots[*before] == *id);
            versions.push(match (before, id) {
                (Some(before), _) => versions[before],
                (None, None) => Version::Unknown,
                (None, Some(id)) => match finder.find(id) {
                    Ok(node) => Version::of(node.as_ref()),
                    Err(error) if error.kind() == ErrorKind::Corrupt => Version::Unknown,
                    Err(error) => return Err(error),
                },
            });
        }
        Ok(versions)
    }

    /// Returns whether a state is the present one.
    pub(super) fn is_present(&self, state: usize) -> bool {
        state == self.timeline.checkpoints.len()
    }

    /// Returns the checkpoint of a state; `None` for the present.
    pub(super) fn checkpoint(&self, state: usize) -> Option<&Checkpoint> {
        self.timeline.checkpoints.get(state)
    }

    /// Returns when a state was saved; now for the present.
    pub(super) fn at(&self, state: usize) -> Timestamp {
        let saved = self.checkpoint(state).map(Checkpoint::at);
        saved.unwrap_or_else(|| self.workspace.store().now())
    }

    /// Returns the state that Backtrail restored, in part or whole, where a state is the result
    /// of that. The inner one is `None` if it is not known.
    pub(super) fn restored(&self, state: usize) -> Option<Option<usize>> {
        let checkpoint = self.checkpoint(state)?;
        checkpoint.reason().moved().then(|| {
            let begun = self.timeline.moves.get(&checkpoint.id())?;
            let to = self.timeline.index_of(begun.to?)?;
            (to < state).then_some(to)
        })
    }

    /// Opens all files of a state. The present is scanned for that.
    pub(super) fn open(&self, state: usize) -> Result<Snapshot> {
        match self.snapshots.get(state) {
            Some(Some(id)) => self.workspace.open_snapshot(id),
            Some(None) => Err(Error::new(ErrorKind::Dropped, "the files were dropped")),
            None => {
                let mode = self.present.as_ref().map_or(0o755, |it| it.root().mode);
                let scanned = self.workspace.scan_present(mode, Look::Quick, None)?;
                Ok(scanned.0)
            }
        }
    }

    /// Reads a file in a state.
    pub(super) fn text(&self, state: usize, path: &Path, id: &ObjectId) -> Result<Arc<[u8]>> {
        match self.present.as_ref().filter(|_| self.is_present(state)) {
            Some(present) => Ok(present.read(path)?.unwrap_or_default().into()),
            None => self.workspace.objects().read(id).map(Arc::from),
        }
    }
}
