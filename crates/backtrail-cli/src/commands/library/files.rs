//! The files at a moment.

use std::path::Path;

use backtrail::Snapshot;
use backtrail::snapshot::FileKind;
use backtrail_view::library::Moment;

use super::moments;
use super::{Answer, StoreLibrary, failure};
use crate::commands::cat::{missing, read_text};
use crate::commands::recovery::Finish;
use crate::error::{CommandError, Result};
use crate::text::{size, visible_path};

/// Larger files are not shown.
const LARGEST: u64 = 4 << 20;

/// Returns the paths of all files at a moment.
pub(super) fn files(
    library: &StoreLibrary,
    workspace: &str,
    moment: &Moment,
) -> Answer<Vec<String>> {
    open(library, workspace, moment)
        .and_then(|snapshot| paths(&snapshot))
        .map_err(failure)
}

/// Returns a file as clean text.
pub(super) fn file(
    library: &StoreLibrary,
    workspace: &str,
    moment: &Moment,
    path: &str,
) -> Answer<String> {
    open(library, workspace, moment)
        .and_then(|snapshot| text(&snapshot, Path::new(path)))
        .map_err(failure)
}

fn open(library: &StoreLibrary, workspace: &str, moment: &Moment) -> Result<Snapshot> {
    let workspace = moments::require_workspace(library, workspace, moment, Finish::ToRead)?;
    moments::snapshot(library, &workspace, moment)
}

fn paths(snapshot: &Snapshot) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    for entry in snapshot.entries() {
        let (path, state) = entry?;
        if state.kind != FileKind::Dir {
            paths.push(path.to_string_lossy().into_owned());
        }
    }
    Ok(paths)
}

fn text(snapshot: &Snapshot, path: &Path) -> Result<String> {
    let state = snapshot.entry(path)?;
    match state {
        Some(state) if state.kind == FileKind::Dir => {
            let what = format!("{} is a directory", visible_path(path));
            Err(CommandError::invalid(what))
        }
        Some(state) if state.bytes > LARGEST => {
            let what = format!("{} is too large to show", visible_path(path));
            Err(CommandError::invalid(format!(
                "{what}: {}",
                size(state.bytes)
            )))
        }
        Some(_) => read_text(snapshot, path),
        None => {
            let name = visible_path(path);
            let skipped = missing(snapshot, path, &format!("{name} exists"));
            let gone = || CommandError::not_found(format!("{name} does not exist there"));
            Err(skipped.unwrap_or_else(gone))
        }
    }
}
