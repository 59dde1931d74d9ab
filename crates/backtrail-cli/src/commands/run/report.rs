//! What happened, as a file that other programs read.

use std::path::Path;

use backtrail::{Checkpoint, Diff, Run};
use serde_json::{Value, json};

use super::Begun;
use crate::commands::checkpoint::{checkpoint_json, not_captured_json};
use crate::error::{CommandError, Result};
use crate::text::path_json;

/// Writes the report, replacing what is there.
pub(super) fn write(
    path: &Path,
    begun: &Begun,
    run: &Run,
    end: Option<&Checkpoint>,
    changes: Option<&Diff>,
) -> Result<()> {
    let report = report(begun, run, end, changes);
    #[expect(
        clippy::disallowed_methods,
        reason = "the report is the person's own file"
    )]
    let written = std::fs::write(path, format!("{report}\n"));
    written.map_err(|error| {
        let what = "cannot write the report; the command ran, and everything else was kept";
        CommandError::io(what, Some(path), &error)
    })
}

fn report(begun: &Begun, run: &Run, end: Option<&Checkpoint>, changes: Option<&Diff>) -> Value {
    let (workspace, start) = match begun {
        Begun::Protected(begun) => (Some(path_json(begun.workspace.root())), Some(&begun.start)),
        Begun::Unprotected(_) => (None, None),
    };
    let argv: Vec<_> = run.argv.iter().map(|arg| arg.to_string_lossy()).collect();
    json!({
        "session": begun.session().map(|(_, id)| id),
        "workspace": workspace,
        "command": argv,
        "directory": path_json(&run.directory),
        "started_at": run.started_at,
        "duration_ms": run.duration_ms,
        "exit_code": run.exit_code,
        "signal": run.signal,
        "before": start.map(checkpoint_json),
        "after": end.map(checkpoint_json),
        "changes": changes.map(Diff::changes),
        "not_captured": end.map(|end| not_captured_json(end.not_captured())),
    })
}
