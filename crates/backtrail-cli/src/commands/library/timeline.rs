//! What happened in this workspace, row by row as in `log`.

use backtrail::workspace::LogEntry;
use backtrail::{Checkpoint, CheckpointId, Rewind, Workspace};
use backtrail_view::library::{Place, Timeline, TimelineRow};

use super::moments::{self, NOW};
use super::{Answer, StoreLibrary, failure};
use crate::commands::log::{Line, Row, RowMaker, kind_style, newest_first};
use crate::commands::recovery::Finish;
use crate::error::Result;
use crate::home::tilde;

/// How wide the text of a row may be.
const WIDEST: usize = 200;

/// Returns the newest rows.
pub(super) fn timeline(library: &StoreLibrary, limit: usize) -> Answer<Timeline> {
    read(library, limit).map_err(failure)
}

fn read(library: &StoreLibrary, limit: usize) -> Result<Timeline> {
    let Some(workspace) = moments::here(library, Finish::ToRead)? else {
        return Ok(Timeline::default());
    };
    let lines: Vec<Line> = workspace.log()?.into_iter().map(Line::from).collect();
    let next = workspace.next_undo(&Rewind::files_and_chat())?;
    let next = next.and_then(|step| step.id);
    let mut maker = RowMaker::new(&workspace, &[], usize::MAX)?;
    let mut rows = Vec::new();
    // Changes since the last checkpoint are a row, too.
    if let Some(row) = maker.now(&workspace, &[], &library.ui)? {
        rows.push(shown(row, NOW.to_owned()));
    }
    let mut all = newest_first(&lines);
    while rows.len() < limit
        && let Some((line, folded)) = all.next()
    {
        let Some(row) = maker.row(line, folded)? else {
            continue;
        };
        let mut row = shown(row, line.after.id().to_string());
        if let Some(entry) = &line.entry {
            row.step = step_of(entry, next);
            row.session = first_record(&workspace, entry);
        }
        rows.push(row);
    }
    Ok(Timeline {
        workspace: workspace.id().to_string(),
        name: tilde(workspace.root()),
        rows,
        has_more: all.next().is_some(),
    })
}

/// Makes a row for the screen.
fn shown(row: Row, id: String) -> TimelineRow {
    TimelineRow {
        id,
        about: row.plain_about(WIDEST),
        day: row.day.unwrap_or_default(),
        at: row.at,
        style: kind_style(&row.kind),
        kind: row.kind,
        change: row.change.text(),
        short: row.session,
        session: None,
        step: None,
    }
}

/// Returns whether undo would take an entry next, or it was undone.
fn step_of(entry: &LogEntry, next: Option<CheckpointId>) -> Option<bool> {
    match entry.step_id() {
        Some(id) if Some(id) == next => Some(true),
        Some(_) if entry.is_undone() => Some(false),
        _ => None,
    }
}

/// Returns the first record of an entry's turn or run in its session.
fn first_record(workspace: &Workspace, entry: &LogEntry) -> Option<Place> {
    let before = entry.begun().and_then(Checkpoint::session)?;
    let seq = before.seq + 1;
    let is_on_line = || {
        let reader = workspace.store().read_session(&before.id).ok()?;
        let parts = reader.line_parts().ok()?;
        Some(parts.iter().any(|part| {
            part.session == before.id && part.trail == before.trail && seq <= part.until
        }))
    };
    let is_left = entry.is_undone() && !is_on_line().unwrap_or(false);
    Some(Place {
        session: before.id.to_string(),
        seq,
        trail: is_left.then_some(before.trail),
    })
}
