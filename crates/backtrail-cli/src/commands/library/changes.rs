//! What a turn, a call, a row of the timeline, or everything between two moments changed.
//!
//! Checkpoints say it exactly. Without them the edits that an agent's own calls made are known,
//! as `show` has them.

use backtrail::snapshot::{ChangeKind, Diff};
use backtrail::workspace::{CheckpointReason, LogEntry};
use backtrail::{Change, Checkpoint, ErrorKind, Workspace};
use backtrail_view::library::{
    Between, ChangedFile, Changes, ChangesOf, FileDiff, Moment, PartOrTurn, Place,
};

use super::edits::{EditingCall, Edits};
use super::moments::{self, NOW};
use super::{Answer, StoreLibrary, failure};
use super::{diff_lines, pages};
use crate::commands::conversation::changes::{self as turns, DROPPED};
use crate::commands::diff::{Lines, lines_of};
use crate::commands::log::{about, kind};
use crate::commands::recovery::Finish;
use crate::error::{CommandError, Result};
use crate::text::{count, one_line, visible, visible_path};

/// How many files are compared line by line to count the lines.
const COUNTED: usize = 1000;
/// How wide a title may be.
const WIDEST: usize = 120;

/// Returns what changed.
pub(super) fn changes(library: &StoreLibrary, of: &ChangesOf) -> Answer<Changes> {
    match of {
        ChangesOf::Between(between) => titled_between(library, between),
        ChangesOf::Row(id) => of_row(library, id),
        ChangesOf::Part(place, PartOrTurn::Turn) => of_turn(library, place),
        ChangesOf::Part(place, PartOrTurn::Part) => of_call(library, place),
    }
    .map_err(failure)
}

/// Returns the difference of a file.
pub(super) fn diff(
    library: &StoreLibrary,
    of: &ChangesOf,
    between: Option<&Between>,
    path: &str,
) -> Answer<FileDiff> {
    let diff = match (between, of) {
        (Some(between), _) | (None, ChangesOf::Between(between)) => {
            file_between(library, between, path)
        }
        (None, ChangesOf::Part(place, PartOrTurn::Part)) => {
            Edits::of_call(library, place).map(|edits| edits.diff(path))
        }
        (None, ChangesOf::Part(place, PartOrTurn::Turn)) => {
            edits_of_turn(library, place).map(|edits| edits.diff(path))
        }
        (None, ChangesOf::Row(_)) => Err(CommandError::not_found("these changes are unknown")),
    };
    diff.map_err(failure)
}

/// Compares two moments.
pub(super) fn compare(library: &StoreLibrary, between: &Between) -> Result<Diff> {
    let workspace = moments::workspace(library, &between.workspace, Finish::ToRead)?;
    let before = moments::snapshot(library, &workspace, &between.from)?;
    Ok(match moments::point(library, &workspace, &between.to)? {
        Some(point) => before.diff(&workspace.snapshot(&point)?)?,
        None => workspace.changes_since(&before)?,
    })
}

fn file_between(library: &StoreLibrary, between: &Between, path: &str) -> Result<FileDiff> {
    let diff = compare(library, between)?;
    match change_of(&diff, path) {
        Some(change) => Ok(diff_lines::of_change(&diff, change)?),
        None => Ok(FileDiff {
            path: path.to_owned(),
            note: Some("no change".to_owned()),
            ..FileDiff::default()
        }),
    }
}

/// Finds the change of a file.
pub(super) fn change_of<'d>(diff: &'d Diff, path: &str) -> Option<&'d Change> {
    diff.iter()
        .find(|change| change.path.to_string_lossy() == path)
}

fn titled_between(library: &StoreLibrary, between: &Between) -> Result<Changes> {
    let workspace = moments::workspace(library, &between.workspace, Finish::ToRead)?;
    let [from, to] = [&between.from, &between.to].map(|it| moments::brief(library, &workspace, it));
    listed(library, format!("{from} to {to}"), between.clone())
}

/// Lists the files that differ. If the states cannot be read any more, a note says why.
fn listed(library: &StoreLibrary, title: String, between: Between) -> Result<Changes> {
    let mut changes = Changes {
        title,
        ..Changes::default()
    };
    let diff = match compare(library, &between) {
        Err(error) if error.kind == ErrorKind::Dropped.as_str() => {
            changes.note = Some(DROPPED.to_owned());
            return Ok(changes);
        }
        diff => diff?,
    };
    for (n, change) in diff.iter().enumerate() {
        let lines = match n < COUNTED {
            true => counted(&diff, change)?,
            false => None,
        };
        changes.files.push(ChangedFile {
            path: change.path.to_string_lossy().into_owned(),
            what: what(change),
            lines,
        });
    }
    if changes.files.len() > COUNTED {
        let files = count(COUNTED, "file");
        changes.note = Some(format!("lines are counted in the first {files}"));
    }
    changes.between = Some(between);
    Ok(changes)
}

fn counted(diff: &Diff, change: &Change) -> Result<Option<(u64, u64)>> {
    Ok(match lines_of(diff, change)? {
        Lines::Counted(added, removed) => Some((added, removed)),
        Lines::Binary(..) | Lines::TooLarge(..) => None,
    })
}

/// Says what happened to a file.
fn what(change: &Change) -> String {
    match change.kind {
        ChangeKind::Added => "new".to_owned(),
        ChangeKind::Deleted => "deleted".to_owned(),
        ChangeKind::Mode => "mode".to_owned(),
        ChangeKind::Renamed => format!("renamed from {}", visible_path(change.old_path())),
        _ => "edited".to_owned(),
    }
}

/// Returns two checkpoints of a workspace as states.
fn between_checkpoints(workspace: &Workspace, from: &Checkpoint, to: &Checkpoint) -> Between {
    Between {
        workspace: workspace.id().to_string(),
        from: Moment::Checkpoint(from.id().to_string()),
        to: Moment::Checkpoint(to.id().to_string()),
    }
}

fn of_row(library: &StoreLibrary, id: &str) -> Result<Changes> {
    let Some(workspace) = moments::here(library, Finish::ToRead)? else {
        return Err(CommandError::not_found("no checkpoints here yet"));
    };
    if id == NOW {
        return since_last(library, &workspace);
    }
    let log = workspace.log()?;
    let its = log
        .iter()
        .filter(|entry| entry.after().id().to_string() == id);
    // A prompt without a snapshot has the checkpoint of what came before it, and changed nothing.
    let changed = |entry: &&LogEntry| {
        let before = entry.before().map(Checkpoint::snapshot_id);
        before != Some(entry.after().snapshot_id())
    };
    let Some(entry) = its.max_by_key(changed) else {
        let what = "that row is not in the log any more";
        return Err(CommandError::not_found(what));
    };
    of_entry(library, &workspace, entry)
}

fn since_last(library: &StoreLibrary, workspace: &Workspace) -> Result<Changes> {
    let Some(last) = workspace.last_checkpoint()? else {
        return Err(CommandError::not_found("no checkpoints here yet"));
    };
    let between = Between {
        workspace: workspace.id().to_string(),
        from: Moment::Checkpoint(last.id().to_string()),
        to: Moment::Now,
    };
    listed(library, "since the last checkpoint".to_owned(), between)
}

fn of_entry(library: &StoreLibrary, workspace: &Workspace, entry: &LogEntry) -> Result<Changes> {
    let title = format!("{} {}", kind(entry), visible(&about(entry)));
    let title = one_line(&title, WIDEST);
    let Some(before) = entry.before() else {
        return Ok(Changes {
            title,
            note: Some(count(entry.after().files(), "file")),
            ..Changes::default()
        });
    };
    let between = between_checkpoints(workspace, before, entry.after());
    let mut changes = listed(library, title, between)?;
    if let Some(reason) = entry.not_protected() {
        changes.note = Some(format!("NOT PROTECTED: {reason}"));
    }
    Ok(changes)
}

fn of_turn(library: &StoreLibrary, place: &Place) -> Result<Changes> {
    let id = moments::session(library, &place.session)?;
    let reader = library.store.read_session(&id)?;
    let info = reader.info()?;
    let known = turns::Changes::find_in(&library.store, &reader, &info, place.trail);
    let (from, to) = turn_bounds(library, place);
    let entry = known.turn_with(place.seq).or(known.turn_within(from, to));
    match (entry, known.workspace()) {
        (Some(entry), Some(workspace)) => of_entry(library, workspace, entry),
        _ => Ok(edits_of_turn(library, place)?.changes("this turn")),
    }
}

fn edits_of_turn(library: &StoreLibrary, place: &Place) -> Result<Edits> {
    Edits::of_turn(library, place, turn_bounds(library, place))
}

/// Returns the first and the last record of the turn that has a record.
pub(super) fn turn_bounds(library: &StoreLibrary, place: &Place) -> (u64, u64) {
    let prompt = |forwards| pages::prompt_from(library, place, forwards).ok().flatten();
    let first = match is_prompt(library, place) {
        Ok(true) => place.seq,
        _ => prompt(false).unwrap_or(0),
    };
    let last = prompt(true).map_or(u64::MAX, |next| next.saturating_sub(1));
    (first, last)
}

fn is_prompt(library: &StoreLibrary, place: &Place) -> Result<bool> {
    let id = moments::session(library, &place.session)?;
    let record = library.store.read_session(&id)?.record(place.seq)?;
    let message = record.and_then(|record| record.as_ref().message().ok().flatten());
    Ok(message.is_some_and(|message| message.is_prompt()))
}

fn of_call(library: &StoreLibrary, place: &Place) -> Result<Changes> {
    let edits = Edits::of_call(library, place)?;
    let between = match edits.call() {
        Some(call) => around_call(library, place, call)?,
        None => None,
    };
    match between {
        Some(between) => {
            let found = listed(library, edits.title(), between)?;
            match found.files.is_empty() && !edits.is_empty() {
                true => Ok(edits.changes(&edits.title())),
                false => Ok(found),
            }
        }
        None => Ok(edits.changes(&edits.title())),
    }
}

/// Finds the checkpoints before and after a tool call, if there are any.
fn around_call(
    library: &StoreLibrary,
    place: &Place,
    call: &EditingCall,
) -> Result<Option<Between>> {
    let id = moments::session(library, &place.session)?;
    let reader = library.store.read_session(&id)?;
    let known = turns::Changes::find_in(&library.store, &reader, &reader.info()?, place.trail);
    let (Some(entry), Some(workspace)) = (known.turn_with(place.seq), known.workspace()) else {
        return Ok(None);
    };
    // The hooks of an agent name the call; of a session here, the place is the result's.
    let is_its = |checkpoint: &Checkpoint| match (checkpoint.agent(), checkpoint.session()) {
        (Some(agent), _) => agent.call.as_deref() == Some(&call.id),
        (None, Some(at)) => {
            let is_end = *checkpoint.reason() == CheckpointReason::ToolEnd;
            is_end && at.id == id && call.result == Some(at.seq)
        }
        (None, None) => false,
    };
    let first = entry.begun().map(Checkpoint::seq);
    let (mut after, mut before) = (None, None);
    for checkpoint in workspace.checkpoints_back()? {
        let checkpoint = checkpoint?;
        if Some(checkpoint.seq()) < first {
            break;
        }
        match (&after, is_its(&checkpoint)) {
            (None, true) => after = Some(checkpoint),
            (None, false) => {}
            (Some(_), is_start) => {
                // Without a checkpoint before it, the one before its end is the nearest.
                if is_start || before.is_none() {
                    before = Some(checkpoint);
                }
                if is_start {
                    break;
                }
            }
        }
    }
    Ok(before
        .zip(after)
        .map(|(before, after)| between_checkpoints(workspace, &before, &after)))
}
