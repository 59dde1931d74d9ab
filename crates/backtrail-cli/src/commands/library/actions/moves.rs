//! What moves files: undo, redo, rewind, restore and fork.

use std::path::Path;
use std::sync::Arc;

use backtrail::rewind::{self, Verb};
use backtrail::snapshot::Progress;
use backtrail::{ErrorKind, Point, Rewind, Workspace};
use backtrail_view::library::{Action, Between, Moment, OnConflict, Place, Report};

use super::super::StoreLibrary;
use super::super::moments;
use super::hunks::ChosenHunks;
use super::sessions::path_of;
use super::{Draft, Planned};
use crate::commands::fork::plan_into;
use crate::commands::moves::{Move, PlannedMove, Scope, workspace_of};
use crate::commands::recovery::Finish;
use crate::commands::rewind::not_ours;
use crate::commands::workspace::WorkspaceArgs;
use crate::error::{CommandError, Result};
use crate::home::tilde;

/// Plans to undo or redo a step here, as the command does.
pub(super) fn step(library: &StoreLibrary, verb: Verb) -> Result<Draft> {
    let program = library.ui.program();
    let here = moments::here_args(library)?;
    let scope = Scope::find(None, &here, &library.ui, Finish::ToWrite)?;
    let planned = match &scope {
        Scope::Workspace {
            workspace, session, ..
        } => {
            let mut options = Rewind::files_and_chat();
            if let Some(session) = session {
                options = options.session(session);
            }
            let movement = match verb {
                Verb::Redo => Move::Redo(workspace),
                _ => Move::Undo(workspace),
            };
            PlannedMove::new(movement, options, program)?
        }
        Scope::Session(store, id) => {
            let reader = store.read_session(id)?;
            let movement = match verb {
                Verb::Redo => Move::ChatRedo(&reader),
                _ => Move::ChatUndo(&reader),
            };
            PlannedMove::new(movement, Rewind::chat(), program)?
        }
    };
    Ok(match planned {
        Some(planned) => draft(planned, true),
        None => {
            let title = if verb == Verb::Redo { "Redo" } else { "Undo" };
            let why = format!("nothing to {verb} here");
            Draft::impossible(title.to_owned(), vec![why])
        }
    })
}

/// Plans to move files and conversation back to a moment.
pub(super) fn rewind(library: &StoreLibrary, workspace: &str, moment: &Moment) -> Result<Draft> {
    let found = moments::find_workspace(library, workspace, moment, Finish::ToWrite)?;
    let workspace = match (found, moment) {
        (None, Moment::Record(place)) => return rewind_chat(library, place),
        (found, _) => found.ok_or_else(nothing)?,
    };
    let point = point_before_now(library, &workspace, moment)?;
    let resolved = workspace.resolve(&point);
    let has_files = !resolved.is_err_and(|error| error.kind() == ErrorKind::NotFound);
    match moment {
        // The session is older than the first checkpoint.
        Moment::Record(place) if !has_files => rewind_chat(library, place),
        _ => {
            let movement = Move::Rewind(&workspace, &point);
            planned_to(library, movement, Rewind::files_and_chat(), &workspace)
        }
    }
}

/// Plans to move a conversation that has no files beside it at a record.
fn rewind_chat(library: &StoreLibrary, place: &Place) -> Result<Draft> {
    let id = moments::session(library, &place.session)?;
    let reader = library.store.read_session(&id)?;
    if let Some(agent) = reader.info()?.belongs_to {
        return Err(not_ours(&id, place.seq, &agent, &library.ui));
    }
    let movement = Move::ChatRewind(&reader, place.seq);
    let planned = PlannedMove::new(movement, Rewind::chat(), library.ui.program())?;
    Ok(draft(planned.ok_or_else(nothing)?, false))
}

/// Plans to restore some files.
pub(super) fn restore(
    library: &StoreLibrary,
    workspace: &str,
    moment: &Moment,
    paths: &[String],
) -> Result<Draft> {
    if paths.is_empty() {
        return Err(CommandError::invalid("choose at least one file"));
    }
    let (workspace, point) = target(library, workspace, moment)?;
    let movement = Move::Rewind(&workspace, &point);
    planned_to(library, movement, Rewind::files().paths(paths), &workspace)
}

/// Plans to take back some hunks of a file.
pub(super) fn restore_hunks(
    library: &StoreLibrary,
    between: &Between,
    path: &str,
    hunks: &[usize],
) -> Result<Draft> {
    let (workspace, point) = target(library, &between.workspace, &between.from)?;
    let chosen = ChosenHunks::find(library, between, path, hunks)?;
    let options = Rewind::files().paths([path]).in_parts();
    let movement = Move::Rewind(&workspace, &point);
    let planned = PlannedMove::new(movement, options, library.ui.program())?;
    let planned = planned.ok_or_else(nothing)?;
    let planned = planned.choose(|plan| chosen.choose_from(plan))?;
    Ok(draft_in(library, &workspace, planned))
}

/// Opens the workspace and finds the point of an earlier moment.
fn target(library: &StoreLibrary, workspace: &str, moment: &Moment) -> Result<(Workspace, Point)> {
    let workspace = moments::require_workspace(library, workspace, moment, Finish::ToWrite)?;
    let point = point_before_now(library, &workspace, moment)?;
    Ok((workspace, point))
}

fn point_before_now(
    library: &StoreLibrary,
    workspace: &Workspace,
    moment: &Moment,
) -> Result<Point> {
    let point = moments::point(library, workspace, moment)?;
    point.ok_or_else(|| CommandError::invalid("the files are as they are now"))
}

fn planned_to(
    library: &StoreLibrary,
    movement: Move<'_>,
    options: Rewind,
    workspace: &Workspace,
) -> Result<Draft> {
    let planned = PlannedMove::new(movement, options, library.ui.program())?;
    Ok(draft_in(library, workspace, planned.ok_or_else(nothing)?))
}

/// Shows a planned move in a workspace, which it names if that is not the one here.
fn draft_in(library: &StoreLibrary, workspace: &Workspace, planned: PlannedMove) -> Draft {
    let is_here = library.root.as_deref() == Some(workspace.root());
    let mut draft = draft(planned, is_here);
    if !is_here {
        let place = format!("in {}", tilde(workspace.root()));
        draft.plan.lines.splice(0..0, super::shown(&[place]));
    }
    draft
}

fn nothing() -> CommandError {
    CommandError::not_found("there is nothing to go to")
}

/// Shows a planned move.
fn draft(planned: PlannedMove, is_here: bool) -> Draft {
    let (title, lines) = (planned.title(), planned.lines());
    if !planned.is_possible() {
        return Draft::impossible(title, lines);
    }
    let choices = planned.choices().into_iter();
    let choices = choices.filter_map(|(on_conflict, words)| Some((shown(on_conflict)?, words)));
    let choices = choices.collect();
    let planned = Box::new(planned);
    let mut draft = Draft::possible(title, lines, Planned::Move { planned, is_here });
    draft.plan.choices = choices;
    draft
}

fn shown(on_conflict: rewind::OnConflict) -> Option<OnConflict> {
    match on_conflict {
        rewind::OnConflict::Keep => Some(OnConflict::Keep),
        rewind::OnConflict::Merge => Some(OnConflict::Merge),
        rewind::OnConflict::Overwrite => Some(OnConflict::Overwrite),
        _ => None,
    }
}

fn meant(on_conflict: OnConflict) -> rewind::OnConflict {
    match on_conflict {
        OnConflict::Stop => rewind::OnConflict::Stop,
        OnConflict::Keep => rewind::OnConflict::Keep,
        OnConflict::Merge => rewind::OnConflict::Merge,
        OnConflict::Overwrite => rewind::OnConflict::Overwrite,
    }
}

/// Does a planned move.
pub(super) fn apply(
    planned: PlannedMove,
    is_here: bool,
    on_conflict: OnConflict,
    progress: Arc<dyn Progress>,
) -> Result<Report> {
    let applied = planned.apply(meant(on_conflict), progress)?;
    let reverse = applied.reverse.filter(|_| is_here);
    Ok(Report {
        message: applied.message,
        reverse: reverse.map(|verb| match verb {
            Verb::Redo => Action::Redo,
            _ => Action::Undo,
        }),
    })
}

/// Plans a fork in a directory of its own.
pub(super) fn fork(library: &StoreLibrary, place: &Place, dir: &str) -> Result<Draft> {
    let dir = path_of(dir)?;
    let id = moments::session(library, &place.session)?;
    let workspace = workspace_of(&library.store, &id)?;
    let point = match (place.trail, &workspace) {
        // What was undone is only on the workspace's trail.
        (Some(_), Some(workspace)) => undone_point(library, workspace, place)?,
        (Some(_), None) => return Err(moments::no_checkpoints()),
        (None, _) => {
            let last = library.store.read_session(&id)?.info()?.last_seq;
            Point::record(&id, place.seq.min(last))
        }
    };
    let from = match workspace {
        Some(workspace) => WorkspaceArgs::named(workspace.root().to_owned()),
        None => moments::here_args(library)?,
    };
    let planned = plan_into(&point, Path::new(&dir), from, &library.ui)?;
    let title = "Fork into a directory".to_owned();
    let mut lines = vec![planned.first_line().to_owned()];
    lines.extend_from_slice(planned.lines());
    Ok(Draft::possible(
        title,
        lines,
        Planned::Fork(Box::new(planned)),
    ))
}

fn undone_point(library: &StoreLibrary, workspace: &Workspace, place: &Place) -> Result<Point> {
    let point = moments::point(library, workspace, &Moment::Record(place.clone()))?;
    point.ok_or_else(nothing)
}
