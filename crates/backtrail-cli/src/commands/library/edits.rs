//! The edits that an agent's own calls made, as `show` has them.

use backtrail::conversation::{Item, LineChange, RelativePaths, ToolCall};
use backtrail_view::library::{ChangedFile, Changes, DiffKind, DiffLine, FileDiff, Place};

use super::StoreLibrary;
use super::{diff_lines, moments, plain};
use crate::commands::conversation::call::{CallView, FileDiff as EditedFile, Part};
use crate::commands::conversation::compare::count_lines;
use crate::error::Result;
use crate::text::one_line;
use crate::when;

/// How wide a title may be.
const WIDEST: usize = 120;

/// Why there is nothing to show.
const UNKNOWN: &str = "no checkpoints: only the agent's own edits are known";
const NOTHING: &str = "no checkpoints, and no edits by the agent itself";

/// The edits of a call, or of all calls of a turn.
#[derive(Debug, Default)]
pub(super) struct Edits {
    calls: Vec<EditingCall>,
}

/// A call, and the files that it edits.
#[derive(Debug)]
pub(super) struct EditingCall {
    /// The agent's id of the call.
    pub(super) id: String,
    /// The record of its result.
    pub(super) result: Option<u64>,
    /// The tool, and what it was called with.
    title: String,
    /// The heading of its lines.
    heading: String,
    files: Vec<EditedFile>,
}

impl Edits {
    /// Reads the edits of a turn, by its first and its last record.
    pub(super) fn of_turn(
        library: &StoreLibrary,
        place: &Place,
        bounds: (u64, u64),
    ) -> Result<Self> {
        Self::read(library, place, bounds, |_| true)
    }

    /// Reads the edits of a call, by its record or that of its result.
    pub(super) fn of_call(library: &StoreLibrary, place: &Place) -> Result<Self> {
        let seq = place.seq;
        let is_it = |call: &ToolCall| {
            call.seq == seq || call.result.as_ref().is_some_and(|result| result.seq == seq)
        };
        let bounds = super::changes::turn_bounds(library, place);
        Self::read(library, place, bounds, is_it)
    }

    fn read(
        library: &StoreLibrary,
        place: &Place,
        (first, last): (u64, u64),
        is_wanted: impl Fn(&ToolCall) -> bool,
    ) -> Result<Self> {
        let id = moments::session(library, &place.session)?;
        let reader = library.store.read_session(&id)?;
        let paths = RelativePaths::new(reader.info()?.workspace_root.as_deref());
        let items = match place.trail {
            Some(trail) => reader.turn_in_trail(trail, place.seq)?,
            None => reader.turns(first, last)?,
        };
        let mut edits = Self::default();
        for item in items {
            match item? {
                Item::ToolCall(call) if call.success != Some(false) && is_wanted(&call) => {
                    edits.calls.push(EditingCall::new(&call, &paths));
                }
                _ => {}
            }
        }
        Ok(edits)
    }

    /// Returns the first call.
    pub(super) fn call(&self) -> Option<&EditingCall> {
        self.calls.first()
    }

    /// Returns what the first call is.
    pub(super) fn title(&self) -> String {
        let first = self.calls.first();
        first.map_or_else(|| "this call".to_owned(), |call| call.title.clone())
    }

    /// Returns whether nothing was edited.
    pub(super) fn is_empty(&self) -> bool {
        self.calls.iter().all(|call| call.files.is_empty())
    }

    /// Returns the files.
    pub(super) fn changes(&self, title: &str) -> Changes {
        let mut files: Vec<ChangedFile> = Vec::new();
        for edited in self.calls.iter().flat_map(|call| &call.files) {
            let (added, removed) = count_lines(&edited.lines);
            let path = plain(&edited.path);
            match files.iter_mut().find(|file| file.path == path) {
                Some(file) => {
                    let (plus, minus) = file.lines.unwrap_or_default();
                    file.lines = Some((plus + added, minus + removed));
                }
                None => files.push(ChangedFile {
                    path,
                    what: what(&edited.note),
                    lines: Some((added, removed)),
                }),
            }
        }
        let note = if files.is_empty() { NOTHING } else { UNKNOWN };
        Changes {
            title: title.to_owned(),
            between: None,
            files,
            note: Some(note.to_owned()),
        }
    }

    /// Returns what was done to a file, call by call.
    pub(super) fn diff(&self, path: &str) -> FileDiff {
        let mut diff = FileDiff {
            path: path.to_owned(),
            ..FileDiff::default()
        };
        for call in &self.calls {
            for file in call.files.iter().filter(|file| plain(&file.path) == path) {
                diff.lines.push(line(DiffKind::Hunk, &call.heading));
                let lines = file.lines.iter();
                diff.lines
                    .extend(lines.map(|(change, text)| line(kind_of(*change), text)));
            }
        }
        diff_lines::bound(&mut diff);
        diff
    }
}

impl EditingCall {
    fn new(call: &ToolCall, paths: &RelativePaths) -> Self {
        let view = CallView::new(call, paths);
        let title = one_line(&format!("{} {}", view.name, view.with), WIDEST);
        let at = call.at.map(when::time).unwrap_or_default();
        let heading = format!("{} {at}", view.name).trim_end().to_owned();
        let files = view.parts.into_iter().filter_map(|part| match part {
            Part::Diff(file) => Some(file),
            _ => None,
        });
        Self {
            id: call.id.to_string(),
            result: call.result.as_ref().map(|result| result.seq),
            title,
            heading,
            files: files.collect(),
        }
    }
}

/// Says what happened to a file.
fn what(note: &str) -> String {
    match note {
        "" => "edited".to_owned(),
        "new file" => "new".to_owned(),
        "whole file" => "written".to_owned(),
        note => plain(note),
    }
}

fn kind_of(change: LineChange) -> DiffKind {
    match change {
        LineChange::Added => DiffKind::Added,
        LineChange::Removed => DiffKind::Removed,
        LineChange::Kept => DiffKind::Same,
        LineChange::Hunk => DiffKind::Hunk,
    }
}

/// Makes a line whose number in the file is unknown.
fn line(kind: DiffKind, text: &str) -> DiffLine {
    DiffLine {
        kind,
        old: None,
        new: None,
        text: plain(text),
    }
}
