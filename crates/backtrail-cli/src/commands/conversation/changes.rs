//! The files that the turns of a session changed, as far as its workspace still knows.

use backtrail::snapshot::Diff;
use backtrail::workspace::{LogEntry, LogKind, SessionPlace};
use backtrail::{
    Checkpoint, CheckpointId, ErrorKind, SessionInfo, SessionReader, Store, Workspace,
};

use crate::commands::moves::workspace_of;
use crate::text::{count, some_of, visible_path};

/// The workspace of a session, and the turns of it that are on the line.
#[derive(Debug, Default)]
pub(in crate::commands) struct Changes {
    workspace: Option<Workspace>,
    turns: Vec<LogEntry>,
}

/// How many files are named.
const NAMED: usize = 4;

impl Changes {
    /// Finds what is known. A conversation can be read without its files, so errors are
    /// ignored.
    pub(in crate::commands) fn find(
        store: &Store,
        reader: &SessionReader,
        info: &SessionInfo,
    ) -> Self {
        Self::find_in(store, reader, info, None)
    }

    /// Finds what is known of the turns in a trail, which may have been undone; without one, of
    /// those on the line.
    pub(in crate::commands) fn find_in(
        store: &Store,
        reader: &SessionReader,
        info: &SessionInfo,
        trail: Option<u32>,
    ) -> Self {
        Self::look(store, reader, info, trail).unwrap_or_default()
    }

    fn look(
        store: &Store,
        reader: &SessionReader,
        info: &SessionInfo,
        trail: Option<u32>,
    ) -> backtrail::Result<Self> {
        let root = info.workspace_root.as_deref();
        let found = match root.and_then(|root| store.find_workspace(root).ok()?) {
            Some(found) => Some(found),
            // It may have moved.
            None => workspace_of(store, &info.id)?,
        };
        let Some(workspace) = found else {
            return Ok(Self::default());
        };
        let line = reader.line_parts()?;
        let is_on_line = |entry: &LogEntry| {
            let (_, place) = places(entry);
            place.is_some_and(|place| match trail {
                Some(trail) => place.id == info.id && place.trail == trail,
                None => line.iter().any(|part| {
                    part.session == place.id && part.trail == place.trail && place.seq <= part.until
                }),
            })
        };
        let mut turns = workspace.log()?;
        turns.retain(|entry| entry.kind() == LogKind::Turn && is_on_line(entry));
        Ok(Self {
            workspace: Some(workspace),
            turns,
        })
    }

    /// Returns the workspace, if there is one.
    pub(in crate::commands) fn workspace(&self) -> Option<&Workspace> {
        self.workspace.as_ref()
    }

    /// Returns the turn that has the records `from` to `to`.
    pub(in crate::commands) fn turn_within(&self, from: u64, to: u64) -> Option<&LogEntry> {
        let is_it = |entry: &&LogEntry| {
            let (seq, _) = places(entry);
            seq.is_some_and(|seq| (from..=to).contains(&seq))
        };
        self.turns.iter().rev().find(is_it)
    }

    /// Returns the turn that has a record, if its checkpoints say so.
    pub(in crate::commands) fn turn_with(&self, seq: u64) -> Option<&LogEntry> {
        let seq_of = |checkpoint: &Checkpoint| checkpoint.session().map(|place| place.seq);
        let is_it = |entry: &&LogEntry| {
            let before = entry.begun().and_then(seq_of);
            let end = seq_of(entry.after());
            before.is_some_and(|before| before < seq) && end.is_some_and(|end| seq <= end)
        };
        self.turns.iter().rev().find(is_it)
    }

    /// Says which files the turn changed that has the records `from` to `to`.
    pub(in crate::commands) fn of_turn(&self, from: u64, to: u64) -> String {
        let Some(entry) = self.turn_within(from, to) else {
            return String::new();
        };
        match entry.changes() {
            Ok(Some(diff)) => words(&diff),
            Ok(None) => String::new(),
            Err(error) => unknown(&error),
        }
    }

    /// Says which files a run changed, by the checkpoint after it.
    pub(in crate::commands) fn of_run(&self, after: Option<CheckpointId>) -> String {
        let (Some(workspace), Some(id)) = (&self.workspace, after) else {
            return String::new();
        };
        match workspace.checkpoint_by_id(id) {
            Ok(Some(checkpoint)) => match checkpoint.changes() {
                Ok(diff) => words(&diff),
                Err(error) => unknown(&error),
            },
            _ => String::new(),
        }
    }
}

/// Returns a record of a turn, and the place that says so: its end, or if that has none, as when
/// the agent was interrupted in a call, the record before its prompt.
fn places(entry: &LogEntry) -> (Option<u64>, Option<&SessionPlace>) {
    let before = entry.before().and_then(Checkpoint::session);
    match entry.after().session() {
        Some(end) => (Some(end.seq), Some(end)),
        None => (before.map(|place| place.seq + 1), before),
    }
}

/// Says that the states of files are not kept any more.
pub(in crate::commands) const DROPPED: &str = "the files it changed were dropped";

fn unknown(error: &backtrail::Error) -> String {
    match error.kind() {
        ErrorKind::Dropped => DROPPED.to_owned(),
        _ => "the files it changed cannot be read any more".to_owned(),
    }
}

/// Writes how many files changed, and names some.
fn words(diff: &Diff) -> String {
    let changes = diff.changes();
    if changes.is_empty() {
        return String::new();
    }
    let names = changes.iter().map(|change| visible_path(&change.path));
    let names = some_of(names, NAMED, changes.len());
    format!("{} changed: {names}", count(changes.len(), "file"))
}
