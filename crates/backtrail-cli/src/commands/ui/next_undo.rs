//! What undo would do, in a line that is asked for often.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use backtrail::workspace::{LogEntry, LogKind};
use backtrail::{CheckpointId, Rewind, Workspace};

use super::library::StoreLibrary;
use super::{moments, plain};
use crate::commands::moves::step_text;
use crate::commands::recovery::Finish;
use crate::error::Result;
use crate::text::count;

/// How long an answer holds while no checkpoint is made: a step of a conversation alone leaves
/// none.
const HOLDS: Duration = Duration::from_secs(5);

/// The last answer, and what it was for.
#[derive(Debug, Default)]
pub(super) struct NextUndo(Mutex<Option<Known>>);

#[derive(Debug)]
struct Known {
    checkpoint: Option<CheckpointId>,
    since: Instant,
    line: String,
}

impl NextUndo {
    fn lock(&self) -> MutexGuard<'_, Option<Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the answer: something was done.
    pub(super) fn forget(&self) {
        *self.lock() = None;
    }

    /// Says what undo would do here, or why it would do nothing.
    pub(super) fn ask(&self, library: &StoreLibrary) -> String {
        let found = find(library, self.lock().as_ref());
        match found {
            Ok(Found::Same(line)) => line,
            Ok(Found::New(known)) => {
                let line = known.line.clone();
                *self.lock() = Some(known);
                line
            }
            Err(error) => format!("undo: unknown: {}", plain(&error.with_causes())),
        }
    }
}

enum Found {
    Same(String),
    New(Known),
}

fn find(library: &StoreLibrary, known: Option<&Known>) -> Result<Found> {
    let root = library.root.as_deref();
    let found = root.map(|root| library.store.find_workspace(root));
    let workspace = found.transpose()?.flatten();
    let last = match &workspace {
        Some(workspace) => workspace.last_checkpoint()?,
        None => None,
    };
    let checkpoint = last.map(|last| last.id());
    if let Some(known) = known.filter(|it| it.checkpoint == checkpoint)
        && known.since.elapsed() < HOLDS
    {
        return Ok(Found::Same(known.line.clone()));
    }
    let line = match checkpoint {
        Some(_) => line(library)?,
        None => "NOT PROTECTED: no checkpoints here yet".to_owned(),
    };
    Ok(Found::New(Known {
        checkpoint,
        since: Instant::now(),
        line,
    }))
}

fn line(library: &StoreLibrary) -> Result<String> {
    let Some(workspace) = moments::here(library, Finish::ToRead)? else {
        return Ok("NOT PROTECTED: no checkpoints here yet".to_owned());
    };
    let log = workspace.log()?;
    let mut newest = log.iter().rev();
    let turn = newest.find(|entry| entry.kind() == LogKind::Turn);
    if let Some(reason) = turn.and_then(LogEntry::not_protected) {
        return Ok(format!("NOT PROTECTED: {}", plain(reason)));
    }
    let Some(step) = workspace.next_undo(&Rewind::files_and_chat())? else {
        return Ok("nothing to undo".to_owned());
    };
    let entry = log
        .iter()
        .rev()
        .find(|it| it.step_id() == step.id && step.id.is_some());
    let files = entry.and_then(|entry| files_of(&workspace, entry));
    let files = files.map_or_else(String::new, |files| format!(", {}", count(files, "file")));
    Ok(plain(&format!("undo: {}{files}", step_text(&step))))
}

/// Returns how many files a step changed. What runs now has changed what is different now.
fn files_of(workspace: &Workspace, entry: &LogEntry) -> Option<usize> {
    let changes = match entry.ended() {
        true => entry.changes().ok()??,
        false => {
            let before = entry.before()?.snapshot().ok()?;
            workspace.changes_since(&before).ok()?
        }
    };
    Some(changes.changes().len())
}
