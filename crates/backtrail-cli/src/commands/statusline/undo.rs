//! Whether what the agent does now can be undone, from the end of the workspace's trail.

use std::path::{Path, PathBuf};

use backtrail::Store;
use backtrail::workspace::{AgentPlace, UndoReady};
use backtrail_formats::StatusReport;

use crate::commands::workspace::{SESSION_VARIABLE, too_wide};

/// The agent that reports a status line.
const AGENT: &str = "claude-code";

/// Whether undo is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Undo {
    Ready {
        /// The files that it would restore; `None` if there is nothing to undo.
        files: Option<u64>,
        /// Whether that is the number, and not an upper bound.
        is_exact: bool,
    },
    NotProtected(String),
}

impl Undo {
    /// Looks at the directory that the agent works in; `None` if that is not known.
    pub(super) fn look(report: &StatusReport, store: Option<&Store>) -> Option<Self> {
        let directory = match &report.directory {
            Some(directory) => directory.clone(),
            None => std::env::current_dir().ok()?,
        };
        let not = |reason: &str| Some(Self::NotProtected(reason.to_owned()));
        if too_wide(&directory).is_some() {
            return not("not a project directory");
        }
        let Some(store) = store else {
            return not("no checkpoint yet");
        };
        match Self::at(&directory, report, store) {
            Ok(Some(ready)) => Some(Self::of(ready, report)),
            Ok(None) => not("no checkpoint yet"),
            // Whatever is wrong there, it is not known whether undo is ready.
            Err(_) => None,
        }
    }

    fn at(
        directory: &PathBuf,
        report: &StatusReport,
        store: &Store,
    ) -> backtrail::Result<Option<UndoReady>> {
        let Some(workspace) = store.noted_workspace(Path::new(directory))? else {
            return Ok(None);
        };
        let session = report.session.as_deref().unwrap_or_default();
        workspace.undo_ready(&AgentPlace::new(AGENT, session))
    }

    fn of(ready: UndoReady, report: &StatusReport) -> Self {
        if let Some(reason) = ready.missed {
            return Self::NotProtected(reason);
        }
        // `run` makes the checkpoints of what it started.
        let in_run = std::env::var_os(SESSION_VARIABLE).is_some_and(|it| !it.is_empty());
        let worked = report.session.is_some() && report.has_answers && !in_run;
        if worked && ready.has_session == Some(false) {
            return Self::NotProtected("no checkpoint in this session".to_owned());
        }
        Self::Ready {
            files: ready.files,
            is_exact: ready.is_exact,
        }
    }
}
