//! Workspaces and moments, as the screens name them.

use backtrail::{Checkpoint, CheckpointId, Point, SessionId, Snapshot, Workspace, WorkspaceId};
use backtrail_view::library::{Moment, Place};

use super::StoreLibrary;
use crate::commands::moves::workspace_of;
use crate::commands::recovery::Finish;
use crate::commands::unresolved;
use crate::commands::workspace::{WorkspaceArgs, make_ready_at_once};
use crate::error::{CommandError, Result};
use crate::text::one_line;
use crate::when;

/// How the row of changes since the last checkpoint is called.
pub(super) const NOW: &str = "now";

/// Opens the workspace here, if there is one, and finishes an interrupted rewind.
pub(super) fn here(library: &StoreLibrary, finish: Finish) -> Result<Option<Workspace>> {
    let root = library.root.as_deref();
    let found = root.map(|root| library.store.find_workspace(root));
    let found = found.transpose()?.flatten();
    if let Some(workspace) = &found {
        make_ready_at_once(workspace, finish, &library.ui)?;
    }
    Ok(found)
}

/// Returns the workspace here as it is named on the command line.
pub(super) fn here_args(library: &StoreLibrary) -> Result<WorkspaceArgs> {
    let Some(root) = &library.root else {
        return Ok(WorkspaceArgs::default());
    };
    Ok(match library.store.find_workspace(root)? {
        Some(_) => WorkspaceArgs::named(root.clone()),
        None => WorkspaceArgs::default(),
    })
}

/// Opens a workspace that the screens name, and finishes an interrupted rewind.
pub(super) fn workspace(library: &StoreLibrary, id: &str, finish: Finish) -> Result<Workspace> {
    let found = id
        .parse::<WorkspaceId>()
        .and_then(|id| library.store.workspace_by_id(&id));
    let workspace =
        found.map_err(|error| CommandError::from(error).context("no checkpoints there"))?;
    make_ready_at_once(&workspace, finish, &library.ui)?;
    Ok(workspace)
}

/// Opens the workspace that the screens name. If they name none, it is the one that the session of
/// the record works in; `None` if that has no checkpoints.
pub(super) fn find_workspace(
    library: &StoreLibrary,
    id: &str,
    moment: &Moment,
    finish: Finish,
) -> Result<Option<Workspace>> {
    let Moment::Record(place) = moment else {
        return workspace(library, id, finish).map(Some);
    };
    if !id.is_empty() {
        return workspace(library, id, finish).map(Some);
    }
    let found = workspace_of(&library.store, &session(library, &place.session)?)?;
    if let Some(workspace) = &found {
        make_ready_at_once(workspace, finish, &library.ui)?;
    }
    Ok(found)
}

/// Does the same; fails if there is none.
pub(super) fn require_workspace(
    library: &StoreLibrary,
    id: &str,
    moment: &Moment,
    finish: Finish,
) -> Result<Workspace> {
    let found = find_workspace(library, id, moment, finish)?;
    found.ok_or_else(no_checkpoints)
}

/// The error of a session that works in no workspace with checkpoints.
pub(super) fn no_checkpoints() -> CommandError {
    CommandError::not_found("this session has no file checkpoints")
}

/// Returns the session that the screens name. Nothing is imported first: they know its id.
pub(super) fn session(library: &StoreLibrary, id: &str) -> Result<SessionId> {
    let found = library.store.resolve(id);
    found.map_err(|error| unresolved(&library.store, id, error))
}

/// Returns the point that a moment is; `None` for now.
pub(super) fn point(
    library: &StoreLibrary,
    workspace: &Workspace,
    moment: &Moment,
) -> Result<Option<Point>> {
    Ok(match moment {
        Moment::Now => None,
        Moment::Checkpoint(id) if id == NOW => None,
        Moment::Checkpoint(id) => Some(Point::checkpoint(id.parse::<CheckpointId>()?)),
        Moment::Record(place) => Some(point_of_record(library, workspace, place)?),
    })
}

/// Returns the point of a record. One that was undone is not on the line of its session: the
/// checkpoint before it is meant.
fn point_of_record(library: &StoreLibrary, workspace: &Workspace, place: &Place) -> Result<Point> {
    let id = session(library, &place.session)?;
    let Some(trail) = place.trail else {
        return Ok(Point::record(&id, place.seq));
    };
    let is_before = |checkpoint: &Checkpoint| {
        let at = checkpoint.session();
        at.is_some_and(|at| at.id == id && at.trail == trail && at.seq <= place.seq)
    };
    for checkpoint in workspace.checkpoints_back()? {
        let checkpoint = checkpoint?;
        if is_before(&checkpoint) {
            return Ok(Point::checkpoint(checkpoint.id()));
        }
    }
    let what = format!("no checkpoint was made at or before record {}", place.seq);
    Err(CommandError::not_found(what))
}

/// Opens the files of a moment.
pub(super) fn snapshot(
    library: &StoreLibrary,
    workspace: &Workspace,
    moment: &Moment,
) -> Result<Snapshot> {
    Ok(match point(library, workspace, moment)? {
        Some(point) => workspace.snapshot(&point)?,
        None => workspace.present()?,
    })
}

/// Returns a moment in a few characters: its label, its time, or `now`.
pub(super) fn brief(library: &StoreLibrary, workspace: &Workspace, moment: &Moment) -> String {
    let found = point(library, workspace, moment);
    let found = found.and_then(|point| Ok(point.map(|it| workspace.resolve(&it)).transpose()?));
    match found {
        Ok(Some(checkpoint)) => match checkpoint.label() {
            Some(label) => one_line(label, 40),
            None => when::brief(checkpoint.at()),
        },
        Ok(None) => NOW.to_owned(),
        Err(_) => "?".to_owned(),
    }
}
