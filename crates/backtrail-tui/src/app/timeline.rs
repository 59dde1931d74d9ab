//! What happened in this workspace, and moments to compare.

use crate::cursor::Cursor;
use crate::request::Request;
use backtrail_view::library::{Between, ChangesOf, Moment, Timeline, TimelineRow};

/// How many rows are read at first, and how many more each time the end is near.
const STEP: usize = 200;

/// The rows of the timeline.
#[derive(Debug)]
pub(crate) struct TimelinePanel {
    pub(crate) timeline: Timeline,
    pub(crate) cursor: Cursor,
    /// The moment to compare with: the row's id.
    pub(crate) mark: Option<String>,
    limit: usize,
    pub(crate) is_loaded: bool,
    is_loading: bool,
    is_stale: bool,
    pub(crate) error: Option<String>,
}

impl Default for TimelinePanel {
    fn default() -> Self {
        Self {
            timeline: Timeline::default(),
            cursor: Cursor::default(),
            mark: None,
            limit: STEP,
            is_loaded: false,
            is_loading: false,
            is_stale: false,
            error: None,
        }
    }
}

impl TimelinePanel {
    /// Reads the rows, or once more after the answer that is on its way.
    pub(crate) fn ask(&mut self) -> Option<Request> {
        if self.is_loading {
            self.is_stale = true;
            return None;
        }
        self.is_loading = true;
        Some(Request::Timeline(self.limit))
    }

    /// Asks for more rows if the end is near.
    pub(crate) fn needed(&mut self) -> Option<Request> {
        let left = self
            .timeline
            .rows
            .len()
            .saturating_sub(self.cursor.selected);
        if !self.timeline.has_more || left > STEP / 4 || self.is_loading {
            return None;
        }
        self.limit = self.timeline.rows.len() + STEP;
        self.ask()
    }

    /// Takes the rows; the selected one stays selected. Returns what is still to be asked.
    pub(crate) fn set(
        &mut self,
        answer: Result<Timeline, String>,
        height: usize,
    ) -> Option<Request> {
        let selected = self.selected().map(|row| row.id.clone());
        let was_first = self.cursor.selected == 0;
        self.is_loading = false;
        self.is_loaded = true;
        self.error = None;
        match answer {
            Ok(timeline) => self.timeline = timeline,
            Err(message) => self.error = Some(message),
        }
        let rows = &self.timeline.rows;
        if let Some(id) = selected.filter(|_| !was_first)
            && let Some(row) = rows.iter().position(|row| row.id == id)
        {
            self.cursor.selected = row;
        }
        self.cursor.fit(self.timeline.rows.len(), height);
        std::mem::take(&mut self.is_stale)
            .then(|| self.ask())
            .flatten()
    }

    pub(crate) fn selected(&self) -> Option<&TimelineRow> {
        self.timeline.rows.get(self.cursor.selected)
    }

    /// Returns the moment of the selected row.
    pub(crate) fn moment(&self) -> Option<Moment> {
        self.selected()
            .map(|row| Moment::Checkpoint(row.id.clone()))
    }

    /// Returns what the panel of changes shows: the selected row, or the difference to the mark.
    pub(crate) fn changes_of(&self) -> Option<ChangesOf> {
        let row = self.selected()?;
        let Some(mark) = self.mark.as_ref().filter(|mark| **mark != row.id) else {
            return Some(ChangesOf::Row(row.id.clone()));
        };
        let at = |id: &str| self.timeline.rows.iter().position(|row| row.id == id);
        // Newest first: the one further down is the earlier one.
        let (from, to) = match at(mark) > at(&row.id) {
            true => (mark.clone(), row.id.clone()),
            false => (row.id.clone(), mark.clone()),
        };
        Some(ChangesOf::Between(Between {
            workspace: self.timeline.workspace.clone(),
            from: Moment::Checkpoint(from),
            to: Moment::Checkpoint(to),
        }))
    }

    /// Marks the selected moment, or removes the mark.
    pub(crate) fn toggle_mark(&mut self) {
        self.mark = match self.mark {
            Some(_) => None,
            None => self.selected().map(|row| row.id.clone()),
        };
    }
}
