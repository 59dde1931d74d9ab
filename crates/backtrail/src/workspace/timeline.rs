//! The steps that changed the files of a workspace, in order, and which were undone.

use std::collections::{HashMap, HashSet};

use super::Workspace;
use super::agent_turn::MissedRecord;
use super::bindings::{Bindings, add_newer, add_older};
use super::calls::calls_of;
use super::checkpoint::{Checkpoint, CheckpointReason, SessionPlace};
use super::checkpoint_record::CheckpointRecord;
use super::dropped;
use super::left_running::LeftNames;
use super::spans::{Span, newest_of, spans};
use super::step_record::StepRecord;
use crate::error::Result;
use crate::ids::{CheckpointId, SessionId};
use crate::session::{Ending, SessionReader};
use crate::store::Store;
use crate::trail::{RecordKind, RecordRef};

/// The checkpoints and steps of a workspace, oldest first.
#[derive(Debug)]
pub(crate) struct Timeline {
    pub(crate) checkpoints: Vec<Checkpoint>,
    /// The position of each checkpoint.
    places: HashMap<CheckpointId, usize>,
    /// The later checkpoints of each turn and run.
    own: HashMap<CheckpointId, Vec<usize>>,
    /// The rewinds, restores, undos and redos, by the id of the checkpoint that they ended with.
    pub(crate) moves: HashMap<CheckpointId, StepRecord>,
    /// The turns and runs that are running, by the checkpoint that they began with.
    pub(crate) active: HashSet<CheckpointId>,
    /// The turns in which a snapshot is missing, and the reason.
    pub(super) missed: HashMap<CheckpointId, String>,
    /// The checkpoints whose files were dropped.
    pub(super) dropped: HashSet<CheckpointId>,
    /// What processes that outlived their runs are called.
    pub(crate) left_names: LeftNames,
    /// The turns and runs that are steps.
    spans: Vec<Span>,
}

/// A step that changed files.
#[derive(Debug, Clone)]
pub(crate) struct FileStep {
    /// The checkpoint that it began with; for a move, the one it ended with.
    pub(crate) id: CheckpointId,
    /// The checkpoint that its turn or run began with; as `before`, but for what a run did
    /// after its turns.
    pub(crate) begun: usize,
    /// The checkpoint before it.
    pub(crate) before: usize,
    /// The checkpoint of its outcome; `None` if that is the present state.
    pub(crate) after: Option<usize>,
    pub(crate) kind: FileStepKind,
    pub(crate) session: Option<SessionId>,
    /// The checkpoint at which it was done or redone: the highest is the newest.
    came: usize,
    /// The steps that a rewind undid, while the rewind itself is in effect.
    covers: Vec<FileStep>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileStepKind {
    Turn,
    Run,
    /// A tool call of a turn, on its own.
    Call,
    /// A rewind or restore.
    Move,
}

/// How many files a step changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StepFiles {
    pub(super) count: u64,
    /// Whether that is the number. Otherwise a file that changed several times counts several
    /// times, and others may have changed some.
    pub(super) is_exact: bool,
}

/// The steps in effect, and those that were undone and may be redone.
#[derive(Debug, Default)]
pub(crate) struct FileSteps {
    /// Newest last.
    pub(crate) done: Vec<FileStep>,
    /// The most recently undone is last, each with the move that undid it.
    pub(crate) undone: Vec<(FileStep, CheckpointId)>,
    /// Those that were undone since the newest turn or run came.
    left: HashSet<CheckpointId>,
    /// The tool calls that were undone on their own, each with the checkpoint of the undo.
    undone_calls: HashMap<CheckpointId, usize>,
}

/// What is read from a trail for a timeline.
#[derive(Debug, Default)]
struct Collected {
    checkpoints: Vec<Checkpoint>,
    moves: HashMap<CheckpointId, StepRecord>,
    /// The places that checkpoints got later.
    bindings: Bindings,
    missed: HashMap<CheckpointId, String>,
    dropped: HashSet<CheckpointId>,
}

impl Collected {
    /// Adds a record. `bind` adds one of places to those that are known.
    fn add(
        &mut self,
        workspace: &Workspace,
        record: &RecordRef<'_>,
        bind: impl Fn(&mut Bindings, &RecordRef<'_>),
    ) {
        match record.kind() {
            RecordKind::Checkpoint | RecordKind::Done => {
                if let Ok(stored) = record.parse::<CheckpointRecord>() {
                    self.checkpoints.push(stored.at(workspace, record.seq()));
                }
            }
            RecordKind::Rewind => {
                if let Ok(begun) = record.parse::<StepRecord>() {
                    self.moves.insert(begun.id, begun);
                }
            }
            RecordKind::Bound => bind(&mut self.bindings, record),
            RecordKind::Missed => {
                if let Ok(missed) = record.parse::<MissedRecord>()
                    && let Some(turn) = missed.of
                {
                    self.missed.insert(turn, missed.reason);
                }
            }
            RecordKind::Dropped => {
                let dropped = dropped::read(record).map(|(_, ids)| ids);
                self.dropped.extend(dropped.unwrap_or_default());
            }
            _ => {}
        }
    }
}

impl Timeline {
    pub(crate) fn read(workspace: &Workspace) -> Result<Self> {
        let mut all = Collected::default();
        let Some(mut records) = workspace.records()? else {
            return Ok(Self::of(workspace, all, HashSet::new()));
        };
        while let Some(record) = records.next()? {
            all.add(workspace, &record, add_newer);
        }
        Ok(Self::of(workspace, all, workspace.active_starts()?))
    }

    /// Reads the end of the trail: at most so many checkpoints, without waiting for a lock. Steps
    /// that began before are missing.
    pub(super) fn read_end(workspace: &Workspace, most: usize) -> Result<Self> {
        let mut end = Collected::default();
        if let Some(mut records) = workspace.records_back()? {
            while end.checkpoints.len() < most
                && let Some(record) = records.next()?
            {
                end.add(workspace, &record, add_older);
            }
        }
        end.checkpoints.reverse();
        Ok(Self::of(workspace, end, workspace.seem_active()))
    }

    fn of(workspace: &Workspace, read: Collected, active: HashSet<CheckpointId>) -> Self {
        let mut timeline = Self {
            checkpoints: read.checkpoints,
            places: HashMap::new(),
            own: HashMap::new(),
            moves: read.moves,
            active,
            missed: read.missed,
            dropped: read.dropped,
            left_names: LeftNames::default(),
            spans: Vec::new(),
        };
        for (place, checkpoint) in timeline.checkpoints.iter_mut().enumerate() {
            checkpoint.record.bind(&read.bindings);
            timeline.places.insert(checkpoint.id(), place);
            if let Some(start) = checkpoint.begun_by() {
                timeline.own.entry(start).or_default().push(place);
            }
            timeline.left_names.add(checkpoint);
        }
        let mut spans = spans(&timeline.checkpoints);
        let undone = timeline.moves.values().filter_map(|begun| begun.step);
        let undone: HashSet<CheckpointId> = undone.collect();
        spans.retain(|span| !timeline.is_idle(workspace, span, &undone));
        timeline.spans = spans;
        timeline
    }

    /// Returns whether a run or a turn of another program changed nothing, in files (not even
    /// unprotected ones, for good) and in a conversation that can be rewound here, and so is no
    /// step. One that was undone while it ran had changed something.
    fn is_idle(&self, workspace: &Workspace, span: &Span, undone: &HashSet<CheckpointId>) -> bool {
        let Some(at) = span.end else {
            return false;
        };
        let end = &self.checkpoints[at];
        // What changed after its last sign of life may be its work.
        let may_go_on = at + 1 == self.checkpoints.len() || self.is_changed(at + 1);
        let start = &self.checkpoints[span.begun];
        let is_run = *start.reason() == CheckpointReason::RunStart;
        let is_agents = start.agent().is_some();
        (is_run || is_agents)
            && !(end.last_seen().is_some() && may_go_on)
            && !(span.changed_files(&self.checkpoints) && self.changed_own(span))
            && end.unprotected().count == 0
            && !undone.contains(&span.id)
            && (is_agents || !spoke(workspace.store(), start.session(), end.session()))
    }

    /// Returns whether a turn or run itself changed files: not if they changed only while a call
    /// of another turn was open, and none of its own.
    fn changed_own(&self, span: &Span) -> bool {
        let end = span.end.unwrap_or(span.start);
        let others = self.checkpoints[span.start..=end].iter().filter_map(|it| {
            let turn = it.begun_by().filter(|_| it.agent().is_some())?;
            self.index_of(turn).filter(|turn| *turn != span.begun)
        });
        let others: HashSet<usize> = others.collect();
        if others.is_empty() {
            return true;
        }
        let others: Vec<(usize, usize)> = others
            .into_iter()
            .flat_map(|turn| self.calls_in(turn))
            .collect();
        let own = self.calls_in(span.begun);
        let is_open = |calls: &[(usize, usize)], n: usize| {
            calls.iter().any(|(start, end)| *start < n && n <= *end)
        };
        let mut states = span.start + 1..=end;
        states.any(|n| self.is_changed(n) && (is_open(&own, n) || !is_open(&others, n)))
    }

    /// Returns whether a turn or run is a step.
    pub(super) fn is_step(&self, span: &Span) -> bool {
        self.span(span.start, span.id).is_some()
    }

    /// Returns the turn or run that is a step with this id. Several may start with one state.
    fn span(&self, start: usize, id: CheckpointId) -> Option<&Span> {
        let from = self.spans.partition_point(|span| span.start < start);
        let same = self.spans[from..].iter();
        let mut same = same.take_while(|span| span.start == start);
        same.find(|span| span.id == id)
    }

    /// Returns how a turn or run ended, if that is known.
    pub(crate) fn ending(&self, step: &FileStep) -> Option<Ending> {
        if step.kind == FileStepKind::Move {
            return None;
        }
        match self.span(step.before, step.id)?.end {
            Some(end) => self.checkpoints[end].ending(),
            None if self.active.contains(&step.id) => Some(Ending::Running),
            None => Some(Ending::Interrupted),
        }
    }

    /// Returns the position of a checkpoint.
    pub(crate) fn index_of(&self, id: CheckpointId) -> Option<usize> {
        self.places.get(&id).copied()
    }

    /// Returns the turns and runs that `last~N` counts: those in effect, and those after the
    /// last of them that were undone since another one came.
    pub(super) fn spans_counted(&self) -> Vec<Span> {
        let steps = self.steps();
        let in_effect: HashSet<CheckpointId> = steps.done.iter().map(|step| step.id).collect();
        let mut spans = self.spans.clone();
        let is_in_effect = |span: &Span| in_effect.contains(&span.id);
        let last = spans.iter().rposition(is_in_effect);
        let mut n = 0;
        spans.retain(|span| {
            n += 1;
            let is_left = steps.left.contains(&span.id);
            is_in_effect(span) || (is_left && Some(n) > last.map(|last| last + 1))
        });
        spans
    }

    /// Determines the steps in effect.
    pub(crate) fn steps(&self) -> FileSteps {
        let spans = &self.spans;
        let mut starts = spans.iter().peekable();
        let by_end: HashMap<usize, &Span> = spans
            .iter()
            .filter_map(|span| span.end.map(|end| (end, span)))
            .collect();
        let mut steps = FileSteps::default();
        for (n, checkpoint) in self.checkpoints.iter().enumerate() {
            if let Some(span) = by_end.get(&n) {
                // It was undone while running, and then continued.
                let step = self.span_step(n, span);
                let continued =
                    step.kind == FileStepKind::Turn || span.changed_files(&self.checkpoints);
                if continued && !self.was_over(span, n) {
                    steps.end(step);
                }
            } else if checkpoint.reason().moved()
                && let Some(begun) = self.moves.get(&checkpoint.id())
            {
                steps.moved(n, begun, self);
            }
            while let Some(span) = starts.next_if(|span| span.start == n) {
                steps.add(self.span_step(n, span));
            }
        }
        steps
    }

    /// Returns whether another program's turn was undone after its last sign of life, so that
    /// its end is only where that was noticed.
    fn was_over(&self, span: &Span, end: usize) -> bool {
        let (start, end_reason) = (
            &self.checkpoints[span.begun],
            self.checkpoints[end].reason(),
        );
        if start.agent().is_none() || *end_reason != CheckpointReason::Interrupted {
            return false;
        }
        let moves = self.moves.values();
        let undos =
            moves.filter(|it| it.reason == CheckpointReason::Undo && it.step == Some(span.id));
        let undone = undos
            .filter_map(|it| self.index_of(it.id))
            .filter(|n| *n < end)
            .max();
        undone.is_some_and(|undone| {
            let mut since = self.checkpoints[undone..end].iter();
            !since.any(|it| it.begun_by() == Some(start.id()))
        })
    }

    fn span_step(&self, came: usize, span: &Span) -> FileStep {
        let start = &self.checkpoints[span.begun];
        let is_active = span.end.is_none() && self.active.contains(&start.id());
        FileStep {
            id: span.id,
            begun: span.begun,
            before: span.start,
            after: match span.end {
                None if is_active => None,
                // Its process died: the next checkpoint has its last changes.
                None => {
                    let next = newest_of(&self.checkpoints, span.begun) + 1;
                    (next < self.checkpoints.len()).then_some(next)
                }
                // Its end does not have its work any more.
                Some(end) if self.was_over(span, end) => {
                    let is_own = |n: &usize| self.checkpoints[*n].begun_by() == Some(start.id());
                    (span.start..end).rev().find(is_own).or(Some(end))
                }
                // What changed after its last sign of life may be its work, too.
                Some(end) if self.checkpoints[end].last_seen().is_some() => {
                    match self.checkpoints.get(end + 1) {
                        Some(next) if next.reason().moved() => Some(end),
                        next => next.map(|_| end + 1),
                    }
                }
                end => end,
            },
            kind: match start.reason() {
                CheckpointReason::RunStart => FileStepKind::Run,
                _ => FileStepKind::Turn,
            },
            session: start.session().map(|place| place.id.clone()),
            came,
            covers: Vec::new(),
        }
    }
}

/// Returns whether a message was recorded between two places of a session. One that cannot
/// be read has none to undo.
fn spoke(store: &Store, from: Option<&SessionPlace>, to: Option<&SessionPlace>) -> bool {
    let (Some(from), Some(to)) = (from, to) else {
        return false;
    };
    if from.id != to.id || from.trail != to.trail {
        return true;
    }
    let is_spoken = |reader: &SessionReader, seq| {
        let record = reader.record_at(from.trail, seq).ok().flatten();
        record.is_some_and(|record| record.as_ref().kind().is_spoken())
    };
    // Most have nothing in between, and no session is read.
    from.seq < to.seq
        && store
            .read_session(&from.id)
            .is_ok_and(|reader| (from.seq + 1..=to.seq).any(|seq| is_spoken(&reader, seq)))
}

impl Timeline {
    /// Returns the tool calls of a turn of another program, by where they began and ended.
    fn calls_in(&self, turn: usize) -> Vec<(usize, usize)> {
        let id = self.checkpoints[turn].id();
        let own = self.own.get(&id).map_or(&[][..], Vec::as_slice);
        calls_of(&self.checkpoints, turn, own.iter().copied())
    }

    /// Returns the tool call that ended with a checkpoint, as a step of its own.
    fn call(&self, id: CheckpointId) -> Option<FileStep> {
        let after = self.index_of(id)?;
        let turn = self.checkpoints[after].begun_by();
        let turn = turn.and_then(|turn| self.index_of(turn))?;
        let calls = self.calls_in(turn);
        let (before, _) = calls.into_iter().find(|(_, end)| *end == after)?;
        Some(self.call_step(turn, (before, after)))
    }

    fn call_step(&self, turn: usize, (before, after): (usize, usize)) -> FileStep {
        FileStep {
            id: self.checkpoints[after].id(),
            begun: turn,
            before,
            after: Some(after),
            kind: FileStepKind::Call,
            session: self.checkpoints[turn]
                .session()
                .map(|place| place.id.clone()),
            came: before,
            covers: Vec::new(),
        }
    }

    /// Returns the tool calls of a turn that were undone on their own, each with the checkpoint of
    /// the undo.
    fn undone_in(&self, turn: usize, steps: &FileSteps) -> Vec<(FileStep, usize)> {
        let undone = steps.undone_calls.iter();
        let undone = undone.filter_map(|(call, undo)| Some((self.call(*call)?, *undo)));
        undone.filter(|(call, _)| call.begun == turn).collect()
    }

    /// Returns the checkpoint that has what is left of a step: its outcome or, if calls of it or
    /// calls beside it were undone on their own, what that left.
    pub(crate) fn what_is_left_of(&self, step: &FileStep, steps: &FileSteps) -> Option<usize> {
        let outcome = step.after?;
        let is_turn = match step.kind {
            FileStepKind::Turn => true,
            FileStepKind::Call => false,
            FileStepKind::Run | FileStepKind::Move => return Some(outcome),
        };
        let undone = self.undone_in(step.begun, steps).into_iter();
        let undone = undone.filter(|(call, _)| is_turn || overlap(call, step));
        Some(undone.map(|(_, undo)| undo).max().unwrap_or(outcome))
    }

    /// Returns the tool calls of a turn of which changes are left that were not undone, newest
    /// first.
    pub(crate) fn calls_of(&self, turn: &FileStep, steps: &FileSteps) -> Vec<FileStep> {
        let undone = self.undone_in(turn.begun, steps);
        let is_undone = |n: usize| undone.iter().any(|(call, _)| call.covers_state(n));
        let is_left = |call: &FileStep| {
            let mut states = call.states();
            states.any(|n| self.is_changed(n) && !is_undone(n))
        };
        let mut calls = self.calls_in(turn.begun);
        calls.retain(|(_, end)| *end < self.checkpoints.len());
        calls.sort_by_key(|(_, end)| std::cmp::Reverse(*end));
        let calls = calls.into_iter().map(|it| self.call_step(turn.begun, it));
        calls.filter(is_left).collect()
    }

    /// Returns the tools of the calls that ran while files changed in another call, so that it is
    /// not known which of them changed what.
    pub(crate) fn beside(&self, call: &FileStep) -> Vec<String> {
        if call.kind != FileStepKind::Call {
            return Vec::new();
        }
        let others = self.calls_in(call.begun).into_iter();
        let others = others.filter(|(_, end)| Some(*end) != call.after);
        let is_beside = |(start, end): &(usize, usize)| {
            let mut states = call.states();
            states.any(|n| *start < n && n <= *end && self.is_changed(n))
        };
        let tool = |(start, end): (usize, usize)| {
            let known = self
                .checkpoints
                .get(end)
                .unwrap_or(&self.checkpoints[start]);
            known.tool_name()
        };
        others.filter(is_beside).map(tool).collect()
    }

    /// Returns how many files a step changed, by what its checkpoints say; `None` if it changed
    /// none.
    pub(super) fn files_of(&self, step: &FileStep, steps: &FileSteps) -> Option<StepFiles> {
        let after = step.after.unwrap_or(self.checkpoints.len() - 1);
        let (first, last) = (&self.checkpoints[step.before], &self.checkpoints[after]);
        if first.snapshot_id() == last.snapshot_id() {
            return None;
        }
        if step.kind == FileStepKind::Move {
            return Some(StepFiles {
                count: last.changed(),
                is_exact: true,
            });
        }
        let changed = (step.before + 1..=after).filter(|n| self.is_changed(*n));
        let changed: Vec<usize> = changed.collect();
        let is_own = |n: &usize| self.checkpoints[*n].begun_by() == Some(step.id);
        Some(StepFiles {
            count: changed.iter().map(|n| self.checkpoints[*n].changed()).sum(),
            is_exact: matches!(changed[..], [n] if is_own(&n)) && steps.undone_calls.is_empty(),
        })
    }

    /// Returns whether files changed before a state, and Backtrail did not restore them.
    fn is_changed(&self, n: usize) -> bool {
        let (before, after) = (&self.checkpoints[n - 1], &self.checkpoints[n]);
        before.snapshot_id() != after.snapshot_id() && !after.reason().moved()
    }
}

/// Returns whether two calls ran at the same time.
fn overlap(one: &FileStep, other: &FileStep) -> bool {
    one.states().any(|n| other.covers_state(n))
}

impl FileStep {
    /// Returns the states after its first one, up to its outcome.
    fn states(&self) -> std::ops::RangeInclusive<usize> {
        self.before + 1..=self.after.unwrap_or(self.before)
    }

    fn covers_state(&self, n: usize) -> bool {
        self.states().contains(&n)
    }
}

impl FileSteps {
    fn add(&mut self, step: FileStep) {
        if step.kind != FileStepKind::Move {
            self.left.clear();
        }
        self.done.push(step);
        // After a new step nothing can be redone.
        self.undone.clear();
    }

    /// Adds the end of a turn or run. One that was undone while running is a step again,
    /// because it continued.
    fn end(&mut self, step: FileStep) {
        // It is usually one of the last.
        if self.done.iter().rev().any(|done| done.id == step.id) {
            return;
        }
        for around in &mut self.done {
            around.covers.retain(|covered| covered.id != step.id);
        }
        self.add(step);
    }

    fn moved(&mut self, n: usize, begun: &StepRecord, timeline: &Timeline) {
        let Some(before) = timeline.index_of(begun.from) else {
            return;
        };
        let same = |step: &FileStep| Some(step.id) == begun.step;
        match begun.reason {
            CheckpointReason::Undo => {
                if let Some(at) = self.done.iter().rposition(same) {
                    let mut step = self.done.remove(at);
                    // The steps that it had undone return to their positions.
                    self.done.append(&mut step.covers);
                    self.done.sort_by_key(|step| step.came);
                    self.left.insert(step.id);
                    self.undone.push((step, begun.id));
                } else if let Some(call) = begun.step.and_then(|call| timeline.call(call)) {
                    self.undone_calls.insert(call.id, n);
                    self.undone.push((call, begun.id));
                }
            }
            CheckpointReason::Redo => {
                if let Some(at) = self.undone.iter().rposition(|(step, _)| same(step)) {
                    let (mut step, _) = self.undone.remove(at);
                    if step.kind == FileStepKind::Call {
                        // Its turn is the step.
                        self.undone_calls.remove(&step.id);
                        return;
                    }
                    if let Some(begun) = timeline.moves.get(&step.id) {
                        step.covers = self.covered_by(begun, timeline);
                    }
                    step.came = n;
                    self.done.push(step);
                }
            }
            _ => {
                let step = FileStep {
                    id: begun.id,
                    begun: before,
                    before,
                    after: Some(n),
                    kind: FileStepKind::Move,
                    session: begun.session().cloned(),
                    came: n,
                    covers: self.covered_by(begun, timeline),
                };
                self.add(step);
            }
        }
    }

    /// Removes the steps that a rewind undid: those of its session, or all if it belongs to
    /// none.
    fn covered_by(&mut self, begun: &StepRecord, timeline: &Timeline) -> Vec<FileStep> {
        let to = begun.to.and_then(|to| timeline.index_of(to));
        let Some(to) = to.filter(|_| begun.reason == CheckpointReason::Rewind) else {
            return Vec::new();
        };
        let is_covered = |step: &mut FileStep| {
            let its = begun.of_session.is_none() || step.session == begun.of_session;
            its && step.before >= to
        };
        let covered: Vec<FileStep> = self.done.extract_if(.., is_covered).collect();
        self.left.extend(covered.iter().map(|step| step.id));
        covered
    }
}
