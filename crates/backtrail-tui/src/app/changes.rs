//! What changed, file by file, and the difference of the selected file.

use std::collections::BTreeSet;

use crate::cursor::Cursor;
use crate::request::{DiffRequest, DiffRows, Request};
use backtrail_view::library::{ChangedFile, Changes, ChangesOf, Line};

/// The files that a turn, a call, a row or a span changed.
#[derive(Debug, Default)]
pub(crate) struct ChangesPanel {
    /// What is shown, or was asked for.
    pub(crate) of: Option<ChangesOf>,
    pub(crate) is_loading: bool,
    pub(crate) changes: Changes,
    pub(crate) cursor: Cursor,
    /// The files that were marked, by their path.
    pub(crate) marked: BTreeSet<String>,
    pub(crate) error: Option<String>,
}

impl ChangesPanel {
    /// Asks for other changes, unless they are shown already.
    pub(crate) fn ask(&mut self, of: ChangesOf) -> Option<Request> {
        if self.of.as_ref() == Some(&of) {
            return None;
        }
        self.of = Some(of);
        self.marked.clear();
        self.cursor = Cursor::default();
        self.again()
    }

    /// Asks for the same changes again.
    pub(crate) fn again(&mut self) -> Option<Request> {
        let of = self.of.clone()?;
        self.is_loading = true;
        Some(Request::Changes(of))
    }

    pub(crate) fn set(&mut self, answer: Result<Changes, String>, height: usize) {
        self.is_loading = false;
        self.error = None;
        match answer {
            Ok(changes) => self.changes = changes,
            Err(message) => {
                self.changes = Changes::default();
                self.error = Some(message);
            }
        }
        let files = &self.changes.files;
        self.marked
            .retain(|path| files.iter().any(|file| file.path == *path));
        self.cursor.fit(self.changes.files.len(), height);
    }

    pub(crate) fn selected(&self) -> Option<&ChangedFile> {
        self.changes.files.get(self.cursor.selected)
    }

    /// Marks the selected file, or removes its mark.
    pub(crate) fn toggle_mark(&mut self) {
        if let Some(path) = self.selected().map(|file| file.path.clone())
            && !self.marked.remove(&path)
        {
            self.marked.insert(path);
        }
    }

    /// Returns the marked files, or else the selected one.
    pub(crate) fn chosen(&self) -> Vec<String> {
        match self.marked.is_empty() {
            true => self
                .selected()
                .map(|file| file.path.clone())
                .into_iter()
                .collect(),
            false => self.marked.iter().cloned().collect(),
        }
    }
}

/// The difference of one file.
#[derive(Debug, Default)]
pub(crate) struct DiffPanel {
    /// What is shown, or was asked for.
    pub(crate) request: Option<DiffRequest>,
    pub(crate) is_loading: bool,
    pub(crate) shown: DiffRows,
    pub(crate) cursor: Cursor,
    /// How many columns are scrolled out on the left.
    pub(crate) skip: usize,
    pub(crate) is_side_by_side: bool,
    /// The hunks that were marked.
    pub(crate) marked: BTreeSet<usize>,
    pub(crate) error: Option<String>,
}

impl DiffPanel {
    /// Asks for a difference, unless it is shown already.
    pub(crate) fn ask(&mut self, request: DiffRequest) -> Option<Request> {
        if self.request.as_ref() == Some(&request) {
            return None;
        }
        let is_other = self.request.as_ref().is_none_or(|old| {
            (&old.of, &old.between, &old.path) != (&request.of, &request.between, &request.path)
        });
        if is_other {
            self.cursor = Cursor::default();
            self.marked.clear();
        }
        self.request = Some(request.clone());
        self.is_loading = true;
        Some(Request::Diff(request))
    }

    /// Asks again for what is shown: the files changed.
    pub(crate) fn again(&mut self) -> Option<Request> {
        self.request.clone().map(Request::Diff)
    }

    /// Shows nothing.
    pub(crate) fn clear(&mut self) {
        *self = Self {
            is_side_by_side: self.is_side_by_side,
            ..Self::default()
        };
    }

    pub(crate) fn set(&mut self, answer: Result<DiffRows, String>, height: usize) {
        self.is_loading = false;
        self.error = None;
        match answer {
            Ok(rows) => self.shown = rows,
            Err(message) => {
                self.shown = DiffRows::default();
                self.error = Some(message);
            }
        }
        self.cursor.fit(self.shown.rows.len(), height);
    }

    /// Returns the hunk that the cursor is in.
    pub(crate) fn hunk(&self) -> Option<usize> {
        self.shown.rows.get(self.cursor.selected)?.1
    }

    /// Marks the hunk of the cursor, or removes its mark.
    pub(crate) fn toggle_mark(&mut self) {
        if let Some(hunk) = self.hunk()
            && !self.marked.remove(&hunk)
        {
            self.marked.insert(hunk);
        }
    }

    /// Returns the marked hunks, or else the one of the cursor.
    pub(crate) fn chosen(&self) -> Vec<usize> {
        match self.marked.is_empty() {
            true => self.hunk().into_iter().collect(),
            false => self.marked.iter().copied().collect(),
        }
    }

    /// Goes to the first row of the next or the previous hunk.
    pub(crate) fn step_hunk(&mut self, forwards: bool, height: usize) {
        let rows = &self.shown.rows;
        let here = self.cursor.selected;
        let is_first = |row: &usize| {
            let hunk = rows[*row].1;
            hunk.is_some() && (*row == 0 || rows[row - 1].1 != hunk)
        };
        let found = match forwards {
            true => (here + 1..rows.len()).find(is_first),
            false => (0..here.min(rows.len())).rev().find(is_first),
        };
        if let Some(row) = found {
            self.cursor.top = row.saturating_sub(height / 4);
            self.cursor.select(row, rows.len(), height);
        }
    }

    /// Returns the text of the hunk that the cursor is in, or of everything.
    pub(crate) fn text(&self) -> String {
        let hunk = self.hunk();
        let rows = self
            .shown
            .rows
            .iter()
            .filter(|(_, of)| hunk.is_none() || *of == hunk);
        rows.map(|(line, _)| text_of(line) + "\n").collect()
    }
}

/// Returns a line without its styles.
pub(crate) fn text_of(line: &Line) -> String {
    line.iter().map(|span| span.text.as_str()).collect()
}
