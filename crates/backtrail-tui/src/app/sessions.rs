//! The list of sessions.

use std::collections::HashMap;

use crate::cursor::Cursor;
use crate::fuzzy;
use crate::session_columns::Widths;
use backtrail_view::library::{Scope, SessionEntry, SessionList};

/// The list of sessions, what is shown of it, and what was read.
#[derive(Debug)]
pub(crate) struct SessionsPanel {
    pub(crate) scope: Scope,
    pub(crate) list: SessionList,
    /// What was typed to filter it.
    pub(crate) filter: String,
    /// Only these sessions, and why.
    pub(crate) only: Option<(String, Vec<String>)>,
    /// Whether runs and empty sessions are listed.
    pub(crate) shows_wordless: bool,
    /// The entries that are shown, by index.
    pub(crate) shown: Vec<usize>,
    /// How wide the columns of those are.
    pub(crate) widths: Widths,
    pub(crate) cursor: Cursor,
    /// The last record of each session that was seen.
    seen: HashMap<String, u64>,
    /// Whether the list was answered at least once.
    pub(crate) is_loaded: bool,
    /// Whether a newer list is on its way.
    pub(crate) is_loading: bool,
    /// Whether the list must be read again after that.
    pub(crate) is_stale: bool,
    pub(crate) error: Option<String>,
}

impl SessionsPanel {
    pub(crate) fn new(scope: Scope) -> Self {
        Self {
            scope,
            list: SessionList::default(),
            filter: String::new(),
            only: None,
            shows_wordless: false,
            shown: Vec::new(),
            widths: Widths::default(),
            cursor: Cursor::default(),
            seen: HashMap::new(),
            is_loaded: false,
            is_loading: false,
            is_stale: false,
            error: None,
        }
    }

    /// Takes a new list; the selected session stays selected. What is in a first list was there
    /// before; what comes later is unread.
    pub(crate) fn set(&mut self, list: SessionList, is_first: bool, height: usize) {
        let selected = self.selected().map(|entry| entry.id.clone());
        for entry in &list.entries {
            let seen = if is_first { entry.last_seq } else { 0 };
            self.seen.entry(entry.id.clone()).or_insert(seen);
        }
        self.list = list;
        self.is_loaded = true;
        self.choose(height);
        if let Some(id) = selected {
            self.select(&id, height);
        }
    }

    /// Decides what is shown.
    pub(crate) fn choose(&mut self, height: usize) {
        let entries = &self.list.entries;
        let is_wanted = |entry: &SessionEntry| match &self.only {
            Some((_, ids)) => ids.contains(&entry.id),
            None => self.shows_wordless || !entry.is_wordless,
        };
        let wanted = |n: &usize| is_wanted(&entries[*n]);
        let mut shown: Vec<usize> = (0..entries.len()).filter(wanted).collect();
        // If nothing else would be listed, runs are.
        if shown.is_empty() && self.only.is_none() {
            shown = (0..entries.len()).collect();
        }
        self.shown = match self.filter.trim() {
            "" => shown,
            filter => {
                let texts: Vec<String> = shown.iter().map(|n| searched(&entries[*n])).collect();
                let found = fuzzy::matching(filter, &texts);
                found.into_iter().map(|n| shown[n]).collect()
            }
        };
        self.widths = Widths::of(self.shown.iter().map(|n| &entries[*n]));
        self.cursor.fit(self.shown.len(), height);
    }

    pub(crate) fn selected(&self) -> Option<&SessionEntry> {
        let index = self.shown.get(self.cursor.selected)?;
        self.list.entries.get(*index)
    }

    /// Selects a session, if it is shown.
    pub(crate) fn select(&mut self, id: &str, height: usize) {
        let mut shown = self.shown.iter();
        if let Some(row) = shown.position(|n| self.list.entries[*n].id == id) {
            self.cursor.select(row, self.shown.len(), height);
        }
    }

    /// Finds a session by its id.
    pub(crate) fn entry(&self, id: &str) -> Option<&SessionEntry> {
        self.list.entries.iter().find(|entry| entry.id == id)
    }

    /// Remembers that a session was read up to a record.
    pub(crate) fn mark_read(&mut self, id: &str, seq: u64) {
        let seen = self.seen.entry(id.to_owned()).or_default();
        *seen = (*seen).max(seq);
    }

    /// Returns whether a session grew since it was seen.
    pub(crate) fn is_unread(&self, entry: &SessionEntry) -> bool {
        self.seen
            .get(&entry.id)
            .is_some_and(|seen| *seen < entry.last_seq)
    }
}

/// Returns the text that a filter is matched with.
fn searched(entry: &SessionEntry) -> String {
    let tags: String = entry.tags.iter().map(|tag| format!(" #{tag}")).collect();
    let SessionEntry {
        title,
        agent,
        project,
        short,
        ..
    } = entry;
    format!("{title} {agent} {project} {short}{tags}")
}
