//! The turns and runs of a workspace.

use std::collections::{HashMap, HashSet};

use super::checkpoint::Checkpoint;
use crate::ids::CheckpointId;

/// A turn or run, by the checkpoints around it.
#[derive(Debug, Clone)]
pub(super) struct Span {
    pub(super) start: usize,
    /// `None` while it is running, or if its process died.
    pub(super) end: Option<usize>,
}

impl Span {
    /// Returns whether files are not as they were when it began.
    pub(super) fn changed_files(&self, checkpoints: &[Checkpoint]) -> bool {
        let before = checkpoints[self.start].snapshot_id();
        self.end
            .is_none_or(|end| checkpoints[end].snapshot_id() != before)
    }
}

/// Finds the turns and runs among checkpoints, which are in order. A turn or run that began
/// within another, or is within another of the same session, is a part of it.
pub(super) fn spans(checkpoints: &[Checkpoint]) -> Vec<Span> {
    let ends = ends(checkpoints);
    let starts = checkpoints.iter().enumerate();
    let all: Vec<Span> = starts
        .filter(|(_, checkpoint)| checkpoint.reason().begins() && checkpoint.begun_by().is_none())
        .map(|(start, checkpoint)| Span {
            start,
            end: ends.get(&checkpoint.id()).copied(),
        })
        .collect();
    let mut outer: Vec<Span> = Vec::new();
    // The open ends by session, going backwards: a span that starts before one is within it.
    let mut open: HashMap<&str, usize> = HashMap::new();
    for span in all {
        let place = checkpoints[span.start].session();
        let session = place.map(|place| place.id.as_str());
        let around = session.and_then(|session| open.get(session).copied());
        let inner = match (around, span.end) {
            (Some(around), Some(end)) => end < around,
            (Some(around), None) => span.start < around,
            (None, _) => false,
        };
        if inner {
            continue;
        }
        if let (Some(session), Some(end)) = (session, span.end) {
            open.insert(session, end);
        }
        outer.push(span);
    }
    outer
}

/// Returns the ends of turns and runs, by the checkpoint that they began with. One that
/// continued after an end has no end before the next.
pub(crate) fn ends(checkpoints: &[Checkpoint]) -> HashMap<CheckpointId, usize> {
    let mut last: HashMap<CheckpointId, usize> = HashMap::new();
    for (n, checkpoint) in checkpoints.iter().enumerate() {
        let own = checkpoint.begun_by();
        if let Some(start) = own.filter(|_| !checkpoint.reason().begins()) {
            last.insert(start, n);
        }
    }
    last.retain(|_, n| checkpoints[*n].reason().ends());
    last
}

/// Returns the newest checkpoint of a turn or run that did not end: its own, or one of a
/// nested turn or run.
pub(crate) fn newest_of(checkpoints: &[Checkpoint], start: usize) -> usize {
    let mut newest = start;
    let mut own = HashSet::from([checkpoints[start].id()]);
    for (n, checkpoint) in checkpoints.iter().enumerate().skip(start) {
        if checkpoint.begun_by().is_some_and(|by| own.contains(&by)) {
            own.insert(checkpoint.id());
            newest = n;
        }
    }
    newest
}
