//! Families of sessions: forks and sub-agents with the session they come from.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeSet, HashMap, HashSet};

use backtrail_index::{SessionRow, Spending};

use super::Sort;
use super::table::SessionLine;

/// Sessions that come from one another.
pub(super) struct Family {
    rows: Vec<SessionRow>,
    /// The one that represents the family.
    head: usize,
    spending: Spending,
    /// How many different files it changed.
    files: u64,
}

/// What there is to read in a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// A conversation; or one that cannot be read, or is pinned, is treated as such.
    Conversation,
    /// Commands that ran, and no message.
    Runs,
    /// No prompt.
    Nothing,
}

/// Makes every session a family of its own.
pub(super) fn alone(rows: Vec<SessionRow>) -> Vec<Family> {
    let alone = |row| Family::new(vec![row], None);
    rows.into_iter().map(alone).collect()
}

/// Groups sessions by family. `files` has how many different files those with several members
/// changed.
pub(super) fn gather(rows: Vec<SessionRow>, files: &HashMap<String, u64>) -> Vec<Family> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut families: Vec<Vec<SessionRow>> = Vec::new();
    for row in rows {
        let place = *places
            .entry(row.family.root.clone())
            .or_insert(families.len());
        match families.get_mut(place) {
            Some(family) => family.push(row),
            None => families.push(vec![row]),
        }
    }
    let family = |rows: Vec<SessionRow>| {
        let root = rows.first().map(|row| row.family.root.as_str());
        let files = root.and_then(|root| files.get(root).copied());
        Family::new(rows, files)
    };
    families.into_iter().map(family).collect()
}

/// Sorts families by what the table shows of them.
pub(super) fn sort(families: &mut [Family], by: Sort) {
    families.sort_by(|a, b| {
        let newest = |family: &Family| Reverse(family.head().updated_at);
        let id = |family: &Family| family.head().id.clone();
        compare(a, b, by)
            .then_with(|| newest(a).cmp(&newest(b)))
            .then_with(|| id(a).cmp(&id(b)))
    });
}

fn compare(a: &Family, b: &Family, by: Sort) -> Ordering {
    let title = |family: &Family| {
        let title = title_of(family.head()).map(str::to_lowercase);
        (title.is_none(), title)
    };
    match by {
        Sort::Updated => b.is_pinned().cmp(&a.is_pinned()),
        Sort::Created => b.head().created_at.cmp(&a.head().created_at),
        Sort::Cost => b.spending.cost.cmp(&a.spending.cost),
        Sort::Tokens => b.spending.tokens().cmp(&a.spending.tokens()),
        Sort::Turns => b.head().turns.cmp(&a.head().turns),
        Sort::Title => title(a).cmp(&title(b)),
    }
}

/// Returns the title of a session, else the beginning of its first prompt.
pub(in crate::commands) fn title_of(row: &SessionRow) -> Option<&str> {
    row.title.as_deref().or(row.begins.as_deref())
}

/// Returns the agent of a session.
pub(in crate::commands) fn agent_of(row: &SessionRow) -> Option<&str> {
    row.agent.as_deref().or(row.belongs_to.as_deref())
}

impl Family {
    /// Makes a family; without `files`, no two of its sessions changed the same file.
    fn new(rows: Vec<SessionRow>, files: Option<u64>) -> Self {
        let mut spending = Spending::default();
        rows.iter().for_each(|row| spending.add(&row.spending));
        // A sub-agent may be the last active one, but the user did not talk to it.
        let newest = |(_, row): &(usize, &SessionRow)| {
            let is_readable = row.error.is_none();
            (is_readable, row.family.spawned_by.is_none(), row.updated_at)
        };
        let head = rows.iter().enumerate().max_by_key(newest);
        let head = head.map_or(0, |(place, _)| place);
        Self {
            files: files.unwrap_or_else(|| rows.iter().map(|row| row.files_changed).sum()),
            rows,
            head,
            spending,
        }
    }

    /// Returns the session that represents the family: the newest that is not a sub-agent.
    pub(super) fn head(&self) -> &SessionRow {
        &self.rows[self.head]
    }

    /// Returns how many sessions it has.
    pub(super) fn len(&self) -> u64 {
        self.rows.len() as u64
    }

    /// Returns how many commands ran in it.
    pub(super) fn runs(&self) -> u64 {
        self.rows.iter().map(|row| row.runs).sum()
    }

    /// Returns what there is to read in it.
    pub(super) fn content(&self) -> Content {
        let is_conversation = |row: &SessionRow| {
            let is_readable = row.error.is_none() && row.damaged == 0;
            row.turns > 0 || row.pinned || !is_readable
        };
        match () {
            () if self.rows.iter().any(is_conversation) => Content::Conversation,
            () if self.rows.iter().any(|row| row.runs > 0) => Content::Runs,
            () => Content::Nothing,
        }
    }

    fn is_pinned(&self) -> bool {
        self.rows.iter().any(|row| row.pinned)
    }

    /// Returns one line for the family.
    pub(super) fn folded(&self) -> SessionLine<'_> {
        let others = || {
            let rows = self.rows.iter().enumerate();
            rows.filter(|(place, _)| *place != self.head)
                .map(|(_, row)| row)
        };
        let sub_agents = others()
            .filter(|row| row.family.spawned_by.is_some())
            .count();
        SessionLine {
            row: self.head(),
            depth: 0,
            pinned: self.is_pinned(),
            forks: others().count() - sub_agents,
            sub_agents,
            other_agents: self.other_agents(),
            files: self.files,
            spending: self.spending,
        }
    }

    /// Returns the agents of its conversations, other than that of the one that represents it.
    fn other_agents(&self) -> Vec<&str> {
        let forks = self
            .rows
            .iter()
            .filter(|row| row.family.spawned_by.is_none());
        let agents: BTreeSet<&str> = forks.filter_map(agent_of).collect();
        let own = agent_of(self.head());
        agents
            .into_iter()
            .filter(|agent| Some(*agent) != own)
            .collect()
    }

    /// Returns a line for each session, below the one that it comes from.
    pub(super) fn tree(&self) -> Vec<SessionLine<'_>> {
        let ids: HashMap<&str, usize> = {
            let rows = self.rows.iter().enumerate();
            rows.map(|(place, row)| (row.id.as_str(), place)).collect()
        };
        let mut children: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
        for (place, row) in self.rows.iter().enumerate() {
            let parent = parent_of(row).and_then(|id| ids.get(id).copied());
            children.entry(parent).or_default().push(place);
        }
        for places in children.values_mut() {
            // The last pushed is the first popped.
            places.sort_by_key(|place| Reverse((self.rows[*place].created_at, *place)));
        }
        let beginnings = children.remove(&None).unwrap_or_default();
        let mut left: Vec<(usize, usize)> = beginnings.into_iter().map(|it| (it, 0)).collect();
        let mut seen = HashSet::new();
        let mut lines = Vec::new();
        while let Some((place, depth)) = left.pop() {
            if seen.insert(place) {
                lines.push(SessionLine::of(&self.rows[place], depth));
                let below = children.remove(&Some(place)).unwrap_or_default();
                left.extend(below.into_iter().map(|it| (it, depth + 1)));
            }
        }
        // A session that damage made its own ancestor is not hidden.
        let rest = (0..self.rows.len()).filter(|place| !seen.contains(place));
        lines.extend(rest.map(|place| SessionLine::of(&self.rows[place], 0)));
        lines
    }
}

/// Returns the id of the session that one comes from.
fn parent_of(row: &SessionRow) -> Option<&str> {
    let forked_from = row.family.forked_from.as_ref().map(|(id, _)| id.as_str());
    forked_from.or(row.family.spawned_by.as_deref())
}
