//! The columns of the list of sessions, beside the title.

use unicode_width::UnicodeWidthStr;

use backtrail_view::library::{Scope, SessionEntry};

/// What a title must keep before another column is shown.
const TITLE: usize = 20;

/// A column.
pub(crate) struct Column {
    /// How wide it is at most.
    most: usize,
    pub(crate) text: fn(&SessionEntry) -> String,
    pub(crate) is_right: bool,
}

/// The columns, the most important first.
pub(crate) const COLUMNS: [Column; 6] = [
    Column {
        most: 10,
        text: |entry| entry.when.clone(),
        is_right: true,
    },
    Column {
        most: 9,
        text: |entry| entry.cost.clone(),
        is_right: true,
    },
    Column {
        most: 5,
        text: |entry| number(entry.turns, "t"),
        is_right: true,
    },
    Column {
        most: 5,
        text: |entry| number(entry.files, "f"),
        is_right: true,
    },
    Column {
        most: 11,
        text: |entry| entry.agent.clone(),
        is_right: false,
    },
    Column {
        most: 12,
        text: |entry| entry.project.clone(),
        is_right: false,
    },
];

/// The column of agents, by its index.
pub(crate) const AGENT: usize = 4;
/// The column of projects.
pub(crate) const PROJECT: usize = 5;

/// The order of the columns on the screen, by their index; `None` is the title.
pub(crate) const ORDER: [Option<usize>; 7] = [
    Some(AGENT),
    Some(PROJECT),
    None,
    Some(2),
    Some(3),
    Some(1),
    Some(0),
];

fn number(n: u64, unit: &str) -> String {
    match n {
        0 => String::new(),
        n => format!("{n}{unit}"),
    }
}

/// How wide each column is: as what it holds, 0 if that is nothing.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Widths([usize; COLUMNS.len()]);

impl Widths {
    pub(crate) fn of<'e>(entries: impl Iterator<Item = &'e SessionEntry>) -> Self {
        let mut widths = [0; COLUMNS.len()];
        for entry in entries {
            for (width, column) in widths.iter_mut().zip(&COLUMNS) {
                *width = (column.text)(entry).width().min(column.most).max(*width);
            }
        }
        Self(widths)
    }

    /// Returns the columns that fit beside a title, each with its width. One that is too wide
    /// leaves its room to the next. The project is the same for all but everything.
    pub(crate) fn fitting(&self, room: usize, scope: Scope) -> Vec<(usize, usize)> {
        let mut left = room.saturating_sub(TITLE);
        let mut shown = Vec::new();
        for (n, width) in self.0.into_iter().enumerate() {
            let is_wanted = width > 0 && (n != PROJECT || scope == Scope::Everything);
            if is_wanted && width < left {
                left -= width + 1;
                shown.push((n, width));
            }
        }
        shown
    }
}
