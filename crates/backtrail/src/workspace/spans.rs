//! The turns and runs of a workspace.

use std::collections::{HashMap, HashSet};

use super::checkpoint::{Checkpoint, CheckpointReason};
use crate::ids::CheckpointId;

/// A turn or run, or a part of a run that has turns, by the checkpoints around it.
#[derive(Debug, Clone)]
pub(super) struct Span {
    pub(super) start: usize,
    /// `None` while it is running, or if its process died.
    pub(super) end: Option<usize>,
    /// The checkpoint that the turn or run began with. The part of a run after its turns
    /// starts later, and a turn whose snapshot came late starts before.
    pub(super) begun: usize,
    /// Its id as a step.
    pub(super) id: CheckpointId,
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
/// within another, or is within another of the same session, is a part of it. But turns of
/// other programs within a run are apart from it, and of the run only what changed before and
/// after them is left.
pub(super) fn spans(checkpoints: &[Checkpoint]) -> Vec<Span> {
    let ends = ends(checkpoints);
    let turns = turns_in_runs(checkpoints);
    let starts = checkpoints.iter().enumerate();
    let mut all: Vec<Span> = Vec::new();
    for (start, checkpoint) in starts {
        let end = ends.get(&checkpoint.id()).copied();
        if let Some(within) = turns.get(&start) {
            let run = RunWithTurns {
                start,
                end,
                turns: within,
            };
            all.extend(around_turns(checkpoints, &run, &ends));
        } else if checkpoint.reason().begins()
            && (checkpoint.begun_by().is_none() || is_agents_turn(checkpoint))
        {
            all.push(Span {
                start: state_before(checkpoints, start),
                end,
                begun: start,
                id: checkpoint.id(),
            });
        }
    }
    all.sort_by_key(|span| span.start);
    without_inner(checkpoints, all)
}

/// Removes the spans that are within another of the same session.
fn without_inner(checkpoints: &[Checkpoint], all: Vec<Span>) -> Vec<Span> {
    let mut outer: Vec<Span> = Vec::new();
    // The open ends by session, going backwards: a span that starts before one is within it.
    let mut open: HashMap<&str, usize> = HashMap::new();
    for span in all {
        let place = checkpoints[span.begun].session();
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

/// Returns the last state before a turn or run. If its snapshot came late, that is the one before:
/// what changed in between may be its work.
pub(crate) fn state_before(checkpoints: &[Checkpoint], start: usize) -> usize {
    let checkpoint = &checkpoints[start];
    match is_agents_turn(checkpoint) && checkpoint.is_late() {
        true => start.saturating_sub(1),
        false => start,
    }
}

/// Returns whether a late turn is the first thing in its run: then nothing else can have changed
/// files since the run began.
pub(crate) fn is_first_in_run(checkpoints: &[Checkpoint], turn: usize) -> bool {
    let before = turn.checked_sub(1).map(|before| checkpoints[before].id());
    before.is_some() && before == checkpoints[turn].begun_by()
}

/// Returns whether a checkpoint begins a turn of another program.
fn is_agents_turn(checkpoint: &Checkpoint) -> bool {
    *checkpoint.reason() == CheckpointReason::TurnStart && checkpoint.agent().is_some()
}

/// Returns the turns of other programs by the run that they are in. A run within a run is a
/// part of that.
pub(crate) fn turns_in_runs(checkpoints: &[Checkpoint]) -> HashMap<usize, Vec<usize>> {
    let mut outermost: HashMap<CheckpointId, usize> = HashMap::new();
    let mut turns: HashMap<usize, Vec<usize>> = HashMap::new();
    for (n, checkpoint) in checkpoints.iter().enumerate() {
        let around = checkpoint.begun_by();
        let around = around.and_then(|around| outermost.get(&around).copied());
        if *checkpoint.reason() == CheckpointReason::RunStart {
            outermost.insert(checkpoint.id(), around.unwrap_or(n));
        } else if let Some(run) = around
            && is_agents_turn(checkpoint)
        {
            turns.entry(run).or_default().push(n);
        }
    }
    turns
}

/// Returns the parts of a run before its first turn and after its last one, as far as files
/// changed there.
fn around_turns(
    checkpoints: &[Checkpoint],
    run: &RunWithTurns<'_>,
    ends: &HashMap<CheckpointId, usize>,
) -> Vec<Span> {
    let span = |(start, end): (usize, usize)| Span {
        start,
        end: Some(end),
        begun: run.start,
        // Each part is a step of its own.
        id: match start == run.start {
            true => checkpoints[start].id(),
            false => checkpoints[end].id(),
        },
    };
    let parts = run.parts(checkpoints, ends).into_iter().map(span);
    parts
        .filter(|span| span.changed_files(checkpoints))
        .collect()
}

/// A run with turns of other programs in it.
pub(crate) struct RunWithTurns<'a> {
    pub(crate) start: usize,
    /// `None` if it did not end.
    pub(crate) end: Option<usize>,
    pub(crate) turns: &'a [usize],
}

impl RunWithTurns<'_> {
    /// Returns what is the run's own: up to its first turn, and after its last one. What
    /// Backtrail itself restored after that is not.
    pub(crate) fn parts(
        &self,
        checkpoints: &[Checkpoint],
        ends: &HashMap<CheckpointId, usize>,
    ) -> Vec<(usize, usize)> {
        let first = state_before(checkpoints, self.turns[0]);
        let mut parts = Vec::from_iter((first > self.start).then_some((self.start, first)));
        let last = self
            .turns
            .iter()
            .map(|turn| ends.get(&checkpoints[*turn].id()));
        let last = last.collect::<Option<Vec<_>>>();
        if let (Some(end), Some(last)) = (self.end, last.and_then(|it| it.into_iter().max())) {
            let after = (*last..end).rev();
            let mut after = after.filter(|n| n == last || checkpoints[*n].reason().moved());
            parts.extend(after.next().map(|from| (from, end)));
        }
        parts
    }
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
