//! The report of a run, as JSON for other programs.

use std::io::{self, Write};
use std::path::Path;

use backtrail::snapshot::Diff;
use backtrail::{Checkpoint, Run};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use serde_json::{Value, json};

use super::Begun;
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

/// Writes the report over what is there.
pub(super) fn write(
    path: &Path,
    begun: &Begun,
    run: &Run,
    end: Option<&Checkpoint>,
    changes: Option<&Diff>,
) -> Result<()> {
    let report = report(begun, run, end, changes);
    let report = format!("{}\n", harmless(&report.to_string()));
    let written = files::replace_private(path).and_then(|mut file| {
        file.write_all(report.as_bytes())?;
        file.flush()
    });
    written.map_err(|error| CommandError::io("cannot write the report", Some(path), &error))
}

fn report(begun: &Begun, run: &Run, end: Option<&Checkpoint>, changes: Option<&Diff>) -> Value {
    let workspace = begun.before.as_ref().map(|(workspace, _)| workspace);
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
        "changes": changes.map(Diff::changes),
        "skipped": end.map(Checkpoint::skipped),
    })
}
