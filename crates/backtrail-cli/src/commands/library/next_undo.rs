//! What undo would do, in a line that is asked for often.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use backtrail::workspace::{LogEntry, LogKind};
use backtrail::{CheckpointId, Rewind, Step, Workspace};

use super::StoreLibrary;
use super::{moments, plain};
use crate::commands::moves::{Scope, step_text};
use crate::commands::recovery::Finish;
use crate::error::Result;
use crate::text::count;

/// How long an answer holds while no checkpoint is made: a step of a conversation alone leaves
/// none.
const HOLDS: Duration = Duration::from_secs(5);

/// The last answer, and what it was for.
#[derive(Debug, Default)]
pub(super) struct NextUndo(Mutex<Option<KnownUndo>>);

#[derive(Debug)]
struct KnownUndo {
    checkpoint: Option<CheckpointId>,
    since: Instant,
    line: String,
}

impl NextUndo {
    fn lock(&self) -> MutexGuard<'_, Option<KnownUndo>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the answer: something was done.
    pub(super) fn forget(&self) {
        *self.lock() = None;
    }

    /// Says what undo would do here, or why it would do nothing.
    pub(super) fn ask(&self, library: &StoreLibrary) -> String {
        match self.find(library) {
            Ok(line) => line,
            Err(error) => format!("undo: unknown: {}", plain(&error.with_causes())),
        }
    }

    fn find(&self, library: &StoreLibrary) -> Result<String> {
        let checkpoint = newest(library)?;
        if let Some(known) = self.lock().as_ref()
            && known.checkpoint == checkpoint
            && known.since.elapsed() < HOLDS
        {
            return Ok(known.line.clone());
        }
        let line = match checkpoint {
            Some(_) => line(library)?,
            None => NO_CHECKPOINTS.to_owned(),
        };
        *self.lock() = Some(KnownUndo {
            checkpoint,
            since: Instant::now(),
            line: line.clone(),
        });
        Ok(line)
    }
}

const NO_CHECKPOINTS: &str = "NOT PROTECTED: no checkpoints here yet";

/// Returns the newest checkpoint here.
fn newest(library: &StoreLibrary) -> Result<Option<CheckpointId>> {
    let root = library.root.as_deref();
    let found = root.map(|root| library.store.find_workspace(root));
    let Some(workspace) = found.transpose()?.flatten() else {
        return Ok(None);
    };
    Ok(workspace.last_checkpoint()?.map(|last| last.id()))
}

fn line(library: &StoreLibrary) -> Result<String> {
    let here = moments::here_args(library)?;
    let scope = Scope::find(None, &here, &library.ui, Finish::ToRead)?;
    let Scope::Workspace {
        workspace, session, ..
    } = &scope
    else {
        return Ok(NO_CHECKPOINTS.to_owned());
    };
    let mut options = Rewind::files_and_chat();
    if let Some(session) = session {
        options = options.session(session);
    }
    let log = workspace.log()?;
    let next = match workspace.next_undo(&options)? {
        Some(step) => described(workspace, &log, &step),
        None => "nothing to undo".to_owned(),
    };
    let is_work = |entry: &&LogEntry| matches!(entry.kind(), LogKind::Turn | LogKind::Run);
    let last = log.iter().rev().find(is_work);
    Ok(match last.and_then(LogEntry::not_protected) {
        Some(reason) => format!("NOT PROTECTED: {}; {next}", plain(reason)),
        None => next,
    })
}

fn described(workspace: &Workspace, log: &[LogEntry], step: &Step) -> String {
    let is_it = |entry: &&LogEntry| step.id.is_some() && entry.step_id() == step.id;
    let entry = log.iter().rev().find(is_it);
    let files = entry.and_then(|entry| files_of(workspace, entry));
    let files = files.map_or_else(String::new, |files| format!(", {}", count(files, "file")));
    plain(&format!("undo: {}{files}", step_text(step)))
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
