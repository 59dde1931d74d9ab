//! Ignored paths that the user asked to include.

use super::ScanOptions;
use super::cache::{CachedNode, StatCache};
use super::inspect::ItemState;
use super::walk::{DirState, WalkedDir};

/// How a path relates to the included ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inclusion {
    No,
    /// An included path is below it.
    Leads,
    /// It is included, or below one that is.
    Within,
}

impl ScanOptions {
    /// Returns how a name in a directory relates to the included paths.
    pub(super) fn inclusion(&self, dir: &[u8], name: &[u8]) -> Inclusion {
        let mut found = Inclusion::No;
        for included in &self.included {
            match relation(included, dir, name) {
                Inclusion::Within => return Inclusion::Within,
                Inclusion::Leads => found = Inclusion::Leads,
                Inclusion::No => {}
            }
        }
        found
    }

    /// Returns the options without some included paths.
    pub(super) fn without(&self, paths: &[(Vec<u8>, u64)]) -> Self {
        let mut options = self.clone();
        let is_over = |path: &Vec<u8>| paths.iter().any(|(over, _)| over == path);
        options.included.retain(|path| !is_over(path));
        options
    }
}

fn relation(included: &[u8], dir: &[u8], name: &[u8]) -> Inclusion {
    let path = super::walk::join(dir, name);
    if is_below(&path, included) {
        Inclusion::Within
    } else if is_below(included, &path) {
        Inclusion::Leads
    } else {
        Inclusion::No
    }
}

/// Returns whether a path is the other one or below it.
fn is_below(path: &[u8], other: &[u8]) -> bool {
    path.strip_prefix(other)
        .is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

/// Returns the included directories that hold more than the cap, with how much they hold.
pub(super) fn over_cap(
    options: &ScanOptions,
    dirs: &[WalkedDir],
    cache: &StatCache,
) -> Vec<(Vec<u8>, u64)> {
    let held = options.included.iter().map(|included| {
        let below = dirs.iter().filter(|dir| is_below(&dir.path, included));
        (
            included.clone(),
            below.map(|dir| bytes_in(dir, cache)).sum(),
        )
    });
    held.filter(|(_, bytes)| *bytes > options.include_cap)
        .collect()
}

/// Returns how much a directory itself holds.
fn bytes_in(dir: &WalkedDir, cache: &StatCache) -> u64 {
    match &dir.found {
        DirState::Changed(changed) => {
            let bytes = changed.items.iter().map(|item| match &item.state {
                ItemState::File { stamp, .. } => stamp.size,
                ItemState::Unread(size) => *size,
                _ => 0,
            });
            bytes.sum()
        }
        DirState::Same(_) => {
            let record = dir.record.and_then(|number| cache.record(number));
            let entries = record.iter().flat_map(|record| record.entries().flatten());
            let bytes = entries.map(|entry| match entry.node {
                CachedNode::File { stamp, .. } => stamp.size,
                _ => 0,
            });
            bytes.sum()
        }
        DirState::Gone | DirState::Skipped(_) | DirState::Replaced(_) => 0,
    }
}
