//! The report of a run, as JSON for other programs.

use std::io::{self, Write};
use std::path::Path;

use backtrail::snapshot::Diff;
use backtrail::{Checkpoint, Run};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use serde_json::{Value, json};

use super::Begun;
use super::git_moved::GitMoved;
use crate::error::{CommandError, Result};
use crate::files;
use crate::text::{harmless, path_json};

/// Refuses a path that no report can be written to. Creates and changes nothing.
pub(super) fn check(path: &Path) -> Result<()> {
    let refused = |error: io::Error| {
        let what = "cannot write the report";
        CommandError::io(what, Some(path), &error).hint("choose another file: --report FILE")
    };
    // It may be a pipe: opening it would wait for its reader.
    let is_dir = path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/");
    match access(path, Access::WRITE_OK) {
        _ if is_dir => Err(refused(io::ErrorKind::IsADirectory.into())),
        Err(Errno::NOENT) => {
            let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
            let dir = dir.unwrap_or(Path::new("."));
            let found = access(dir, Access::WRITE_OK | Access::EXEC_OK);
            found.map_err(|error| refused(error.into()))
        }
        found => found.map_err(|error| refused(error.into())),
    }
}

/// What a run did.
pub(super) struct Outcome<'a> {
    pub(super) run: &'a Run,
    pub(super) end: Option<&'a Checkpoint>,
    pub(super) changes: Option<&'a Diff>,
    pub(super) git: Option<&'a GitMoved>,
}

/// Writes the report over what is there.
pub(super) fn write(path: &Path, begun: &Begun, outcome: &Outcome<'_>) -> Result<()> {
    let report = report(begun, outcome);
    let report = format!("{}\n", harmless(&report.to_string()));
    let written = files::replace_private(path).and_then(|mut file| {
        file.write_all(report.as_bytes())?;
        file.flush()
    });
    written.map_err(|error| CommandError::io("cannot write the report", Some(path), &error))
}

fn report(begun: &Begun, outcome: &Outcome<'_>) -> Value {
    let workspace = begun.before.as_ref().map(|(workspace, _)| workspace);
    let (run, end) = (outcome.run, outcome.end);
    let argv: Vec<_> = run.argv.iter().map(|arg| arg.to_string_lossy()).collect();
    json!({
        "session": begun.session.as_ref().map(|(_, id)| id),
        "workspace": workspace.map(|workspace| path_json(workspace.root())),
        "command": argv,
        "directory": path_json(&run.directory),
        "started_at": run.started_at,
        "duration_ms": run.duration_ms,
        "exit_code": run.exit_code,
        "signal": run.signal,
        "before": begun.start(),
        "after": end,
        "changes": outcome.changes.map(Diff::changes),
        "skipped": end.map(Checkpoint::skipped),
        "unprotected": end.map(Checkpoint::unprotected),
        "git": outcome.git,
    })
}
