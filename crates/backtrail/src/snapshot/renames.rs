//! Finds deleted and added files of equal content and reports them as renamed.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;

use super::change::{Change, ChangeKind, FileState};
use crate::objects::ObjectId;

/// Turns deletions and additions into renames. `changes` must be sorted by path.
///
/// Candidates with the same file name come first, then the first in order; each is used
/// once. Empty files are never paired, because they are all alike.
pub(super) fn detect(changes: Vec<Change>) -> Vec<Change> {
    let mut changes: Vec<Option<Change>> = changes.into_iter().map(Some).collect();
    for (old, new) in matches(&changes) {
        let Some(deleted) = changes[old].take() else {
            continue;
        };
        if let Some(added) = &mut changes[new] {
            added.kind = ChangeKind::Renamed;
            added.before = deleted.before;
            added.from = Some(deleted.path);
        }
    }
    changes.into_iter().flatten().collect()
}

/// The positions of deleted files of one content.
#[derive(Default)]
struct DeletedFiles {
    by_name: HashMap<OsString, VecDeque<usize>>,
    in_order: VecDeque<usize>,
}

/// Returns which deleted file became which added one.
fn matches(changes: &[Option<Change>]) -> Vec<(usize, usize)> {
    let mut gone: HashMap<ObjectId, DeletedFiles> = HashMap::new();
    for (at, change, content) in files(changes, ChangeKind::Deleted) {
        let deleted = gone.entry(content).or_default();
        deleted.in_order.push_back(at);
        let name = change.path.file_name().unwrap_or_default();
        deleted
            .by_name
            .entry(name.to_owned())
            .or_default()
            .push_back(at);
    }
    let mut pairs = Vec::new();
    let mut rest = Vec::new();
    let mut used = vec![false; changes.len()];
    for (at, change, content) in files(changes, ChangeKind::Added) {
        let name = change.path.file_name().unwrap_or_default();
        let deleted = gone.get_mut(&content);
        let same_name = deleted.and_then(|deleted| deleted.by_name.get_mut(name)?.pop_front());
        match same_name {
            Some(old) => {
                used[old] = true;
                pairs.push((old, at));
            }
            None => rest.push((at, content)),
        }
    }
    for (at, content) in rest {
        let deleted = gone.get_mut(&content);
        let queue = deleted.map(|deleted| &mut deleted.in_order);
        pairs.extend(
            queue
                .and_then(|queue| next_unused(queue, &used))
                .map(|old| (old, at)),
        );
    }
    pairs
}

fn next_unused(queue: &mut VecDeque<usize>, used: &[bool]) -> Option<usize> {
    std::iter::from_fn(|| queue.pop_front()).find(|at| !used[*at])
}

/// Returns the non-empty files with a change of this kind.
fn files(
    changes: &[Option<Change>],
    kind: ChangeKind,
) -> impl Iterator<Item = (usize, &Change, ObjectId)> {
    let content = |state: &FileState| state.content.filter(|_| state.bytes > 0);
    changes.iter().enumerate().filter_map(move |(at, change)| {
        let change = change.as_ref().filter(|change| change.kind == kind)?;
        let state = change.before.as_ref().or(change.after.as_ref())?;
        Some((at, change, content(state)?))
    })
}
