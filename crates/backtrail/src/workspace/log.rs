//! What happened in a workspace, as a person tells it.

use super::Workspace;
use std::collections::HashSet;

use super::checkpoint::{Checkpoint, Why};
use super::nested::{Span, spans};
use crate::error::Result;
use crate::snapshot::Diff;
use crate::time::Timestamp;

/// What a line of the log is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LogKind {
    /// A turn of a session.
    Turn,
    /// A command that ran.
    Run,
    /// A checkpoint that somebody asked for.
    Checkpoint,
    /// What a person did between those.
    Person,
    /// Files were taken back to a point.
    Rewind,
    /// Some paths were taken back to a point.
    Restore,
    /// A step was taken back.
    Undo,
    /// A step was brought forward again.
    Redo,
}

/// Something that happened in a workspace.
#[derive(Debug, Clone)]
pub struct LogEntry {
    kind: LogKind,
    before: Option<Checkpoint>,
    after: Checkpoint,
    ended: bool,
}

impl LogEntry {
    /// Returns what it is about.
    pub fn kind(&self) -> LogKind {
        self.kind
    }

    /// Returns when it was over, or first seen.
    pub fn at(&self) -> Timestamp {
        self.after.at()
    }

    /// Returns the checkpoint that it begins with; the first has none.
    pub fn before(&self) -> Option<&Checkpoint> {
        self.before.as_ref()
    }

    /// Returns the checkpoint that has its outcome.
    pub fn after(&self) -> &Checkpoint {
        &self.after
    }

    /// Returns whether it came to its end: a turn or run may be under way, or
    /// have been given up.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Returns what it changed; `None` for the first checkpoint of all.
    pub fn changes(&self) -> Result<Option<Diff>> {
        let Some(before) = &self.before else {
            return Ok(None);
        };
        let after = self.after.snapshot()?;
        before.snapshot()?.diff(&after).map(Some)
    }
}

impl Workspace {
    /// Returns what happened here, the oldest first: turns and runs, each as one;
    /// checkpoints that somebody asked for; and what was changed between them.
    pub fn log(&self) -> Result<Vec<LogEntry>> {
        let checkpoints = self.checkpoints()?.collect::<Result<Vec<_>>>()?;
        Ok(entries(&checkpoints))
    }
}

fn entries(checkpoints: &[Checkpoint]) -> Vec<LogEntry> {
    let mut entries = Vec::new();
    let spans = spans(checkpoints);
    let mut starts = spans.iter().peekable();
    let is_open = |n: usize| {
        let around = |span: &&Span| span.start < n && span.end.is_some_and(|end| end > n);
        spans.iter().any(|span| around(&span))
    };
    for (n, checkpoint) in checkpoints.iter().enumerate() {
        let before = n.checked_sub(1).map(|n| &checkpoints[n]);
        let entry = |kind| LogEntry {
            kind,
            before: before.cloned(),
            after: checkpoint.clone(),
            ended: true,
        };
        // What changed while another turn or run was under way is that one's.
        let changed = before.is_some_and(|before| before.snapshot != checkpoint.snapshot);
        let persons = changed && !is_open(n);
        if let Some(span) = starts.next_if(|span| span.start == n) {
            entries.extend(persons.then(|| entry(LogKind::Person)));
            entries.push(span_entry(checkpoints, span));
            continue;
        }
        match checkpoint.why {
            Why::Manual => entries.push(entry(LogKind::Checkpoint)),
            Why::BeforeRewind => entries.extend(persons.then(|| entry(LogKind::Person))),
            Why::Rewind => entries.push(entry(LogKind::Rewind)),
            Why::Restore => entries.push(entry(LogKind::Restore)),
            Why::Undo => entries.push(entry(LogKind::Undo)),
            Why::Redo => entries.push(entry(LogKind::Redo)),
            _ => {}
        }
    }
    entries.sort_by_key(|entry| entry.after.seq);
    entries
}

fn span_entry(checkpoints: &[Checkpoint], span: &Span) -> LogEntry {
    let start = &checkpoints[span.start];
    let end = span.end.map(|end| &checkpoints[end]);
    let after = end.unwrap_or_else(|| newest_of(&checkpoints[span.start..]));
    LogEntry {
        kind: match start.why {
            Why::RunStart => LogKind::Run,
            _ => LogKind::Turn,
        },
        before: Some(start.clone()),
        after: after.clone(),
        ended: end.is_some_and(|end| end.why != Why::Interrupted),
    }
}

/// Returns the newest checkpoint of a turn or run that did not end: its own, and
/// those of what was begun within it. `rest` begins with the one that it began with.
pub(super) fn newest_of(rest: &[Checkpoint]) -> &Checkpoint {
    let mut newest = &rest[0];
    let mut own = HashSet::from([newest.id]);
    for checkpoint in rest {
        if checkpoint.of.is_some_and(|start| own.contains(&start)) {
            own.insert(checkpoint.id);
            newest = checkpoint;
        }
    }
    newest
}
