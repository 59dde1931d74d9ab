//! The events of a workspace, as the log shows them.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::Workspace;
use super::agent_rewinds::{AgentRewind, agent_rewinds};
use super::checkpoint::{Checkpoint, CheckpointReason, SessionPlace};
use super::spans::{Span, ends, is_first_in_run, newest_of, spans};
use super::timeline::Timeline;
use crate::error::Result;
use crate::ids::CheckpointId;
use crate::session::{Ending, Program};
use crate::snapshot::Diff;
use crate::time::Timestamp;

/// The kind of an entry of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "snake_case")]
pub enum LogKind {
    /// A turn of a session.
    Turn,
    /// A command that ran.
    Run,
    /// A checkpoint that was requested.
    Checkpoint,
    /// Your changes in between.
    Person,
    /// Changes that are yours or those of [`LogEntry::or`]: a turn or run whose process died had
    /// given its last sign of life, a process had outlived its run, or an agent went back in its
    /// own session.
    PersonOrRun,
    /// An agent went back in its own session, and the files with it. [`LogEntry::or`] names it.
    AgentRewind,
    /// Files were rewound to a point.
    Rewind,
    /// Some paths were restored from a point.
    Restore,
    /// A step was undone.
    Undo,
    /// A step was redone.
    Redo,
}

/// An entry of a workspace's log.
#[derive(Debug, Clone, Serialize)]
pub struct LogEntry {
    kind: LogKind,
    before: Option<Checkpoint>,
    begun: Option<Checkpoint>,
    after: Checkpoint,
    ended: bool,
    is_running: bool,
    is_step: bool,
    #[serde(skip)]
    id: CheckpointId,
    #[serde(skip)]
    is_undone: bool,
    or: Option<Program>,
    /// Why it is not protected, or not as a whole.
    not_protected: Option<String>,
}

impl LogEntry {
    /// Returns its kind.
    pub fn kind(&self) -> LogKind {
        self.kind
    }

    /// Returns when it ended, or was first seen.
    pub fn at(&self) -> Timestamp {
        self.after.at()
    }

    /// Returns the checkpoint that it begins with; `None` for the first.
    pub fn before(&self) -> Option<&Checkpoint> {
        self.before.as_ref()
    }

    /// Returns the checkpoint that its turn or run began with, which says what it is about.
    pub fn begun(&self) -> Option<&Checkpoint> {
        self.begun.as_ref()
    }

    /// Returns the checkpoint of its outcome.
    pub fn after(&self) -> &Checkpoint {
        &self.after
    }

    /// Returns whether it ended: a turn or run may still be running, or may have been
    /// interrupted.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Returns whether it is a step: a rewind, a restore, a turn, or a run that changed
    /// something. `last~N` counts the turns and runs among them.
    pub fn is_step(&self) -> bool {
        self.is_step
    }

    /// Returns the id that it has as a [`Step`](crate::Step), if it is one.
    pub fn step_id(&self) -> Option<CheckpointId> {
        self.is_step.then_some(self.id)
    }

    /// Returns whether it is a step that is not in effect any more: it was undone, or a rewind
    /// went back before it.
    pub fn is_undone(&self) -> bool {
        self.is_undone
    }

    /// Returns the program that may have made the changes instead of you, or that made them.
    pub fn or(&self) -> Option<&Program> {
        self.or.as_ref()
    }

    /// Returns why a turn of another program is not protected, or not as a whole: a snapshot is
    /// missing, or came late.
    pub fn not_protected(&self) -> Option<&str> {
        self.not_protected.as_deref()
    }

    /// Returns how it ended, if it is a turn or run and that is known.
    pub fn ending(&self) -> Option<Ending> {
        match self.kind {
            LogKind::Turn | LogKind::Run if self.is_running => Some(Ending::Running),
            LogKind::Turn | LogKind::Run if !self.ended => Some(Ending::Interrupted),
            LogKind::Turn | LogKind::Run => self.after.ending(),
            _ => None,
        }
    }

    /// Returns its labels: of its outcome and, if it is a turn or run, of its start.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        let is_span = matches!(self.kind, LogKind::Turn | LogKind::Run);
        let start = self.begun.as_ref();
        // What a turn or run has while it goes on has a line of its own.
        let end = Some(&self.after).filter(|_| self.ended || !is_span);
        let labels = [start, end].into_iter().flatten();
        labels.filter_map(Checkpoint::label)
    }

    /// Returns its changes; `None` for the first checkpoint.
    ///
    /// # Errors
    ///
    /// Fails with [`Dropped`](crate::ErrorKind::Dropped) if the files of a checkpoint were
    /// dropped, and if objects cannot be read.
    pub fn changes(&self) -> Result<Option<Diff>> {
        let Some(before) = &self.before else {
            return Ok(None);
        };
        let after = self.after.snapshot()?;
        before.snapshot()?.diff(&after).map(Some)
    }
}

impl Workspace {
    /// Returns the log, oldest first: turns and runs, each as one entry; requested
    /// checkpoints; and the changes between them.
    ///
    /// # Errors
    ///
    /// Fails if the workspace's trail cannot be read.
    pub fn log(&self) -> Result<Vec<LogEntry>> {
        Ok(entries(&Timeline::read(self)?))
    }

    /// Returns the turns and runs that did not end, by their first checkpoint: running ones,
    /// and those that were interrupted.
    ///
    /// # Errors
    ///
    /// Fails if the workspace's trail cannot be read.
    pub fn unended(&self) -> Result<HashMap<CheckpointId, Ending>> {
        let timeline = Timeline::read(self)?;
        let ended = ends(&timeline.checkpoints);
        let starts = timeline.checkpoints.iter();
        let starts = starts.filter(|start| start.reason().begins());
        let open = starts
            .map(Checkpoint::id)
            .filter(|id| !ended.contains_key(id));
        let ending = |id| match timeline.active.contains(&id) {
            true => Ending::Running,
            false => Ending::Interrupted,
        };
        Ok(open.map(|id| (id, ending(id))).collect())
    }
}

fn entries(timeline: &Timeline) -> Vec<LogEntry> {
    let checkpoints = &timeline.checkpoints;
    let mut entries = Vec::new();
    let doubts = Doubts {
        timeline,
        rewinds: agent_rewinds(checkpoints),
    };
    let spans = spans(checkpoints);
    let ends: HashSet<usize> = spans.iter().filter_map(|span| span.end).collect();
    let mut starts = spans.iter().peekable();
    let is_open = |n: usize| {
        let around = |span: &&Span| span.start < n && span.end.is_some_and(|end| end >= n);
        spans.iter().any(|span| around(&span))
    };
    for (n, checkpoint) in checkpoints.iter().enumerate() {
        let before = n.checked_sub(1).map(|n| &checkpoints[n]);
        let entry = |kind| LogEntry {
            kind,
            before: before.cloned(),
            begun: None,
            after: checkpoint.clone(),
            ended: true,
            is_running: false,
            is_step: matches!(kind, LogKind::Rewind | LogKind::Restore),
            id: checkpoint.id(),
            is_undone: false,
            or: None,
            not_protected: None,
        };
        // A change while another turn or run was active belongs to that one.
        let changed = before.is_some_and(|before| before.snapshot_id() != checkpoint.snapshot_id());
        let is_resumed = *checkpoint.reason() == CheckpointReason::TurnResume;
        let persons = changed && (is_resumed || !is_open(n));
        let person = || {
            let (kind, or) = doubts.kind_of(n);
            LogEntry { or, ..entry(kind) }
        };
        let mut begins = false;
        // A turn whose snapshot came late starts with the checkpoint before it.
        while let Some(span) = starts.next_if(|span| span.start == n) {
            if span.begun == n {
                entries.extend(persons.then(person));
                entries.extend(missed_entries(checkpoints, n));
                begins = true;
            }
            entries.push(span_entry(timeline, span));
        }
        if begins {
            continue;
        }
        match checkpoint.reason() {
            CheckpointReason::Manual => entries.push(entry(LogKind::Checkpoint)),
            CheckpointReason::BeforeRewind | CheckpointReason::TurnResume => {
                entries.extend(persons.then(person))
            }
            CheckpointReason::Rewind => entries.push(entry(LogKind::Rewind)),
            CheckpointReason::Restore => entries.push(entry(LogKind::Restore)),
            CheckpointReason::Undo => entries.push(entry(LogKind::Undo)),
            CheckpointReason::Redo => entries.push(entry(LogKind::Redo)),
            // The end of a turn or run is shown with its start. A label that is on another
            // checkpoint of one is shown, too.
            _ if checkpoint.label().is_some() && !ends.contains(&n) => {
                entries.push(entry(LogKind::Checkpoint));
            }
            _ => {}
        }
    }
    entries.sort_by_key(|entry| entry.after.seq);
    let in_effect = timeline.steps().done;
    let in_effect: HashSet<CheckpointId> = in_effect.iter().map(|step| step.id).collect();
    for entry in &mut entries {
        entry.is_undone = entry.is_step && !in_effect.contains(&entry.id);
    }
    entries
}

/// What may have changed files instead of the user.
struct Doubts<'a> {
    timeline: &'a Timeline,
    rewinds: Vec<AgentRewind>,
}

impl Doubts<'_> {
    /// Returns what the change before state `n` is, which no turn or run made as far as is known.
    fn kind_of(&self, n: usize) -> (LogKind, Option<Program>) {
        let checkpoints = &self.timeline.checkpoints;
        let before = &checkpoints[n - 1];
        if before.last_seen().is_some() {
            let start = before.begun_by().and_then(|it| self.timeline.index_of(it));
            let program = start.map(|start| checkpoints[start].program());
            return (LogKind::PersonOrRun, program);
        }
        if !checkpoints[n].record.missed.is_empty() {
            return (LogKind::PersonOrRun, Some(checkpoints[n].program()));
        }
        let rewind = self.rewinds.iter().find(|it| it.from < n && n <= it.until);
        if let Some(rewind) = rewind {
            let is_there = checkpoints[n].snapshot_id() == checkpoints[rewind.to].snapshot_id();
            let kind = match is_there {
                true => LogKind::AgentRewind,
                false => LogKind::PersonOrRun,
            };
            return (kind, Some(checkpoints[rewind.until].program()));
        }
        match self.timeline.left_names.after(before).into_iter().next() {
            Some(name) => (LogKind::PersonOrRun, Some(Program::Process(name))),
            None => (LogKind::Person, None),
        }
    }
}

/// Returns the prompts before a turn of which there is no checkpoint.
fn missed_entries(checkpoints: &[Checkpoint], n: usize) -> Vec<LogEntry> {
    let missed = checkpoints[n].record.missed.iter();
    let entry = |prompt: &SessionPlace| {
        let mut begun = checkpoints[n].clone();
        begun.record.prompt = Some(prompt.clone());
        LogEntry {
            kind: LogKind::Turn,
            before: Some(checkpoints[n].clone()),
            begun: Some(begun),
            after: checkpoints[n].clone(),
            ended: true,
            is_running: false,
            is_step: false,
            id: checkpoints[n].id(),
            is_undone: false,
            or: None,
            not_protected: Some("no snapshot was taken".to_owned()),
        }
    };
    missed.map(entry).collect()
}

fn span_entry(timeline: &Timeline, span: &Span) -> LogEntry {
    let checkpoints = &timeline.checkpoints;
    let start = &checkpoints[span.start];
    let end = span.end.map(|end| &checkpoints[end]);
    let begun = &checkpoints[span.begun];
    let after = end.unwrap_or_else(|| &checkpoints[newest_of(checkpoints, span.begun)]);
    LogEntry {
        kind: match begun.reason() {
            CheckpointReason::RunStart => LogKind::Run,
            _ => LogKind::Turn,
        },
        before: Some(start.clone()),
        begun: Some(begun.clone()),
        after: after.clone(),
        ended: end.is_some_and(|end| *end.reason() != CheckpointReason::Interrupted),
        is_running: end.is_none() && timeline.active.contains(&begun.id()),
        is_step: timeline.is_step(span),
        id: span.id,
        is_undone: false,
        or: None,
        not_protected: match timeline.missed.get(&span.id) {
            Some(reason) => Some(reason.clone()),
            None if begun.is_late() && !is_first_in_run(checkpoints, span.begun) => {
                Some("its snapshot came late".to_owned())
            }
            None => None,
        },
    }
}
