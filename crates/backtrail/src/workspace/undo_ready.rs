//! What undo would take, from the end of the workspace's trail alone.
//!
//! It is for a line that must be there at once: it reads a bounded part of one file, waits for no
//! lock and looks at no file of the workspace.

use super::Workspace;
use super::agent_place::AgentPlace;
use super::timeline::{FileStep, Timeline};
use crate::error::Result;

/// How many checkpoints are read.
const MOST: usize = 500;

/// Whether there is something to undo with, and what undo would take.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UndoReady {
    /// How many files the step changed that undo takes; `None` if no step is known that changed
    /// any.
    pub files: Option<u64>,
    /// Whether that is the number. Otherwise it is an upper bound: a file that changed several
    /// times counts several times.
    pub is_exact: bool,
    /// The reason why the newest turn is not protected, if a snapshot is missing.
    pub missed: Option<String>,
    /// Whether a session of another program has a checkpoint; `None` if the trail is too long to
    /// know.
    pub has_session: Option<bool>,
}

impl Workspace {
    /// Returns what undo would take, at once: it reads only the end of the trail, waits for no
    /// lock and looks at no file. `None` if there is no checkpoint. `session` is the session of
    /// another program that is asked about.
    ///
    /// # Errors
    ///
    /// Fails if the workspace's trail cannot be read.
    pub fn undo_ready(&self, session: &AgentPlace) -> Result<Option<UndoReady>> {
        let timeline = Timeline::read_end(self, MOST)?;
        if timeline.checkpoints.is_empty() {
            return Ok(None);
        }
        let steps = timeline.steps();
        let newest_first = || steps.done.iter().rev();
        let is_running = |step: &FileStep| step.after.is_none();
        let files = newest_first()
            // What runs now is what undo takes, even if it did nothing yet.
            .map(|step| (step, timeline.files_of(step, &steps)))
            .find(|(step, files)| files.is_some() || is_running(step))
            .filter(|(step, _)| !timeline.is_dropped(step))
            .and_then(|(_, files)| files);
        let missed = newest_first().next();
        let missed = missed.and_then(|step| timeline.missed.get(&step.id).cloned());
        let mut agents = timeline.checkpoints.iter().filter_map(|it| it.agent());
        let is_known = agents.any(|agent| agent.is_in_session_of(session));
        let is_whole = timeline.checkpoints.len() < MOST;
        Ok(Some(UndoReady {
            files: files.map(|files| files.count),
            is_exact: files.is_some_and(|files| files.is_exact),
            missed,
            has_session: (is_known || is_whole).then_some(is_known),
        }))
    }
}

impl Timeline {
    /// Returns whether the files before a step were dropped, so that it cannot be undone.
    fn is_dropped(&self, step: &FileStep) -> bool {
        self.dropped.contains(&self.checkpoints[step.before].id())
    }
}
