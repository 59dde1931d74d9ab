//! Finds the differences between two trees, reading only the parts that differ.
//!
//! Equal ids mean equal states, which are never read. Long listings are merged node by
//! node: of two different nodes, the one that reaches further is opened, until both sides
//! are at equal nodes again, however the listings are split.
//!
//! What counts as a change:
//! - A file with different content or a link with a different target is modified; a file
//!   or directory that differs only in its mode is a mode change.
//! - A path that becomes something else (file, link, directory) changes its kind, and the
//!   contents of the directory are deleted or added as well.
//! - A directory shows up through its contents. A directory without captured contents is
//!   added or deleted itself, because nothing else would show it.
//! - A path that was skipped on either side is not a change, and neither is anything
//!   below it, because its state is unknown. Whether ignore rules matched a file is not a
//!   change.
//!
//! A node that is damaged on one side hides the same names on the other: they are unknown, and
//! the directory is named as damaged.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use super::change::{Change, ChangeKind, FileState};
use super::cursor::{Cursor, Next, find};
use super::damage::{DamagedPart, DamagedPath, DamagedSides};
use super::entry::{DirEntry, Node};
use super::name::{names_of, os_str};
use super::repeats::Repeats;
use super::source::Nodes;
use super::tree::Snapshot;
use super::walk::{SkippedEntry, check_depth};
use crate::error::{Error, Result};
use crate::objects::ObjectId;

/// A running comparison.
pub(super) struct Comparison<'a> {
    before: &'a Snapshot,
    after: &'a Snapshot,
    /// Directories that are still to be compared.
    ahead: Vec<DirPair>,
    changes: Vec<Change>,
    /// Paths that were captured before and skipped after.
    lost: Vec<SkippedEntry>,
    /// Every path that differs, if requested.
    every: Option<Vec<Difference>>,
    damaged: DamagedSides,
    repeats: Repeats,
}

/// One of the two snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Before,
    After,
}

impl Side {
    fn other(self) -> Self {
        match self {
            Self::Before => Self::After,
            Self::After => Self::Before,
        }
    }
}

/// The differences between two snapshots as far as they can be read.
#[derive(Debug)]
pub(super) struct Compared {
    pub(super) changes: Vec<Change>,
    pub(super) lost: Vec<SkippedEntry>,
    pub(super) damaged: DamagedSides,
}

/// A path that differs itself, regardless of what is below it. The workspace is the empty
/// path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) path: PathBuf,
    pub(crate) before: Option<Node>,
    pub(crate) after: Option<Node>,
}

/// A directory on one side or on both.
struct DirPair {
    path: PathBuf,
    depth: usize,
    before: Option<ObjectId>,
    after: Option<ObjectId>,
    /// The change of the directory itself, reported if nothing was captured in it.
    if_empty: Option<Change>,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(before: &'a Snapshot, after: &'a Snapshot) -> Self {
        Self {
            before,
            after,
            ahead: Vec::new(),
            changes: Vec::new(),
            lost: Vec::new(),
            every: None,
            damaged: DamagedSides::default(),
            repeats: Repeats::default(),
        }
    }

    /// Finds every path that differs, including directories and skipped entries, but
    /// nothing below a skipped entry.
    pub(super) fn differences(
        mut self,
        only: Option<&[&Path]>,
    ) -> Result<(Vec<Difference>, DamagedSides)> {
        self.every = Some(Vec::new());
        self.compare(only)?;
        let mut every = self.every.unwrap_or_default();
        every.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok((every, self.damaged))
    }

    /// Compares two workspaces, at some paths or everywhere.
    pub(super) fn run(mut self, only: Option<&[&Path]>) -> Result<Compared> {
        self.compare(only)?;
        Ok(Compared {
            changes: self.changes,
            lost: self.lost,
            damaged: self.damaged,
        })
    }

    fn compare(&mut self, only: Option<&[&Path]>) -> Result<()> {
        match only.map(outermost).transpose()? {
            Some(only) if only.first().is_some_and(|path| !path.is_empty()) => {
                for names in only {
                    self.walk_down(&names)?;
                }
            }
            _ => {
                let [before, after] = self.roots();
                self.compare_at(".".into(), 0, before, after);
            }
        }
        while let Some(pair) = self.ahead.pop() {
            self.merge(pair)?;
        }
        Ok(())
    }

    fn roots(&self) -> [Option<Node>; 2] {
        [self.before, self.after].map(|snapshot| Some(Node::Dir(*snapshot.root())))
    }

    fn nodes(&self, side: Side) -> &'a dyn Nodes {
        match side {
            Side::Before => self.before.source(),
            Side::After => self.after.source(),
        }
    }

    /// Records that a directory is damaged on one side.
    fn damage(&mut self, side: Side, path: &Path, part: DamagedPart, error: Error) -> Result<()> {
        let (snapshot, damaged) = match side {
            Side::Before => (self.before, &mut self.damaged.before),
            Side::After => (self.after, &mut self.damaged.after),
        };
        // A directory may have several damaged nodes.
        if damaged.last().is_none_or(|last| last.path != path) {
            damaged.push(DamagedPath::new(path, part, snapshot.of(), error)?);
        }
        Ok(())
    }

    fn record_difference(&mut self, path: &Path, before: &Option<Node>, after: &Option<Node>) {
        let skipped = is_skipped(before) || is_skipped(after);
        let differs = before != after && (skipped || change_kind(before, after).is_some());
        if let Some(every) = self.every.as_mut().filter(|_| differs) {
            every.push(Difference {
                path: match path == Path::new(".") {
                    true => PathBuf::new(),
                    false => path.to_owned(),
                },
                before: before.clone(),
                after: after.clone(),
            });
        }
    }

    /// Goes to one path on both sides and compares the nodes there.
    fn walk_down(&mut self, names: &[&[u8]]) -> Result<()> {
        let mut path = PathBuf::new();
        let [mut before, mut after] = self.roots();
        for name in names {
            if before == after || is_skipped(&before) || is_skipped(&after) {
                return Ok(());
            }
            let stepped = [
                (
                    Side::Before,
                    step_down(self.nodes(Side::Before), before, name),
                ),
                (Side::After, step_down(self.nodes(Side::After), after, name)),
            ];
            let mut found = [None, None];
            let mut is_known = true;
            for ((side, step), found) in stepped.into_iter().zip(&mut found) {
                match step {
                    Ok(node) => *found = node,
                    Err(error) => {
                        self.damage(side, &path, DamagedPart::SomeNames, error)?;
                        is_known = false;
                    }
                }
            }
            if !is_known {
                return Ok(());
            }
            [before, after] = found;
            path.push(os_str(name));
        }
        self.compare_at(path, names.len(), before, after);
        Ok(())
    }

    /// Compares the entries of two listings.
    fn merge(&mut self, pair: DirPair) -> Result<()> {
        if let Err(error) = check_depth(pair.depth, &pair.path) {
            let side = match pair.after {
                Some(_) => Side::After,
                None => Side::Before,
            };
            return self.damage(side, &pair.path, DamagedPart::AllNames, error);
        }
        let mut before = pair.before.map(Cursor::new).unwrap_or_default();
        let mut after = pair.after.map(Cursor::new).unwrap_or_default();
        let is_repeated = self.repeats.enter([pair.before, pair.after]);
        let mut empty = true;
        loop {
            let (take_before, take_after) = match (before.peek(), after.peek()) {
                (Next::End, Next::End) => break,
                (Next::Node(old, old_last), Next::Node(new, new_last)) => {
                    if old == new {
                        before.skip();
                        after.skip();
                        continue;
                    }
                    let order = reach(old_last, new_last);
                    if order.is_ge() {
                        self.open(Side::Before, [&mut before, &mut after], &pair.path)?;
                    } else {
                        self.open(Side::After, [&mut after, &mut before], &pair.path)?;
                    }
                    continue;
                }
                (Next::Node(..), _) => {
                    self.open(Side::Before, [&mut before, &mut after], &pair.path)?;
                    continue;
                }
                (_, Next::Node(..)) => {
                    self.open(Side::After, [&mut after, &mut before], &pair.path)?;
                    continue;
                }
                (Next::Entry(old), Next::Entry(new)) => match old.name.cmp(&new.name) {
                    Ordering::Less => (true, false),
                    Ordering::Equal => (true, true),
                    Ordering::Greater => (false, true),
                },
                (Next::Entry(_), Next::End) => (true, false),
                (Next::End, Next::Entry(_)) => (false, true),
            };
            let old = take_before.then(|| before.take()).flatten();
            let new = take_after.then(|| after.take()).flatten();
            empty &= !was_captured(&old) && !was_captured(&new);
            if is_repeated && old != new {
                self.count_repeated(&pair, old.as_ref().or(new.as_ref()))?;
            }
            self.compare_entries(&pair, old, new);
        }
        self.changes.extend(pair.if_empty.filter(|_| empty));
        Ok(())
    }

    /// Opens the next node of one side. If it is damaged, its names are unknown: what the
    /// other side has of them is skipped, too.
    fn open(&mut self, side: Side, [cursor, other]: [&mut Cursor; 2], path: &Path) -> Result<()> {
        let end: Option<Box<[u8]>> = match cursor.peek() {
            Next::Node(_, last) => last.map(Into::into),
            Next::Entry(_) | Next::End => return Ok(()),
        };
        let Err(error) = cursor.open(self.nodes(side)) else {
            return Ok(());
        };
        let part = match end {
            None => DamagedPart::AllNames,
            Some(_) => DamagedPart::SomeNames,
        };
        self.damage(side, path, part, error)?;
        let is_unknown = |name: &[u8]| end.as_deref().is_none_or(|end| name <= end);
        loop {
            match other.peek() {
                Next::Entry(entry) if is_unknown(&entry.name) => drop(other.take()),
                Next::Node(_, Some(last)) if is_unknown(last) => other.skip(),
                Next::Node(_, None) if end.is_none() => other.skip(),
                Next::Node(..) if end.as_deref().is_some_and(|end| !other.is_past(end)) => {
                    self.open(side.other(), [&mut *other, &mut *cursor], path)?;
                }
                _ => return Ok(()),
            }
        }
    }

    fn count_repeated(&mut self, pair: &DirPair, entry: Option<&DirEntry>) -> Result<()> {
        let Some(entry) = entry else {
            return Ok(());
        };
        let tree = |side: &'a Snapshot| (side.source() as &dyn Nodes, side.root().listing);
        let trees = [tree(self.before), tree(self.after)];
        let path = pair.path.join(os_str(&entry.name));
        self.repeats.count(&path, &trees)
    }

    fn compare_entries(
        &mut self,
        pair: &DirPair,
        before: Option<DirEntry>,
        after: Option<DirEntry>,
    ) {
        if before == after {
            return;
        }
        let Some(entry) = before.as_ref().or(after.as_ref()) else {
            return;
        };
        let path = pair.path.join(os_str(&entry.name));
        let [before, after] = [before, after].map(|entry| entry.map(|entry| entry.node));
        self.compare_at(path, pair.depth + 1, before, after);
    }

    /// Compares the nodes at one path and queues directories.
    fn compare_at(
        &mut self,
        path: PathBuf,
        depth: usize,
        before: Option<Node>,
        after: Option<Node>,
    ) {
        self.record_difference(&path, &before, &after);
        if let (Some(before), Some(Node::Skipped(after))) = (&before, &after)
            && !matches!(before, Node::Skipped(_))
        {
            self.lost.extend(SkippedEntry::new(path.clone(), after));
        }
        if is_skipped(&before) || is_skipped(&after) {
            return;
        }
        let change = change_kind(&before, &after).map(|kind| {
            let [before, after] =
                [&before, &after].map(|node| node.as_ref().and_then(FileState::from_node));
            Change::new(path.clone(), kind, before, after)
        });
        let [old, new] = [&before, &after].map(listing);
        let one_sided = before.is_none() || after.is_none();
        let is_dir = old.is_some() || new.is_some();
        let (now, if_empty) = if one_sided && is_dir {
            (None, change)
        } else {
            (change, None)
        };
        self.changes.extend(now);
        if old != new {
            let path = if path == Path::new(".") {
                PathBuf::new()
            } else {
                path
            };
            self.ahead.push(DirPair {
                path,
                depth,
                before: old,
                after: new,
                if_empty,
            });
        }
    }
}

/// Returns how a path itself changed, ignoring what is below it.
fn change_kind(before: &Option<Node>, after: &Option<Node>) -> Option<ChangeKind> {
    let (before, after) = match (before, after) {
        (Some(before), Some(after)) => (before, after),
        (None, Some(_)) => return Some(ChangeKind::Added),
        (Some(_), None) => return Some(ChangeKind::Deleted),
        (None, None) => return None,
    };
    match (before, after) {
        (
            Node::File { mode, content, .. },
            Node::File {
                mode: new_mode,
                content: new_content,
                ..
            },
        ) => {
            let mode = (mode != new_mode).then_some(ChangeKind::Mode);
            (content != new_content)
                .then_some(ChangeKind::Modified)
                .or(mode)
        }
        (Node::Link { target, .. }, Node::Link { target: new, .. }) => {
            (target != new).then_some(ChangeKind::Modified)
        }
        (Node::Dir(dir), Node::Dir(new)) => (dir.mode != new.mode).then_some(ChangeKind::Mode),
        _ => Some(ChangeKind::Kind),
    }
}

/// Compares how far two nodes reach; the topmost node reaches to the end.
fn reach(before: Option<&[u8]>, after: Option<&[u8]>) -> Ordering {
    let is_topmost = before.is_none().cmp(&after.is_none());
    is_topmost.then(before.cmp(&after))
}

fn listing(node: &Option<Node>) -> Option<ObjectId> {
    match node {
        Some(Node::Dir(dir)) => Some(dir.listing),
        _ => None,
    }
}

fn is_skipped(node: &Option<Node>) -> bool {
    matches!(node, Some(Node::Skipped(_)))
}

fn was_captured(entry: &Option<DirEntry>) -> bool {
    entry
        .as_ref()
        .is_some_and(|entry| !matches!(entry.node, Node::Skipped(_)))
}

fn step_down(nodes: &dyn Nodes, node: Option<Node>, name: &[u8]) -> Result<Option<Node>> {
    match node {
        Some(Node::Dir(dir)) => find(nodes, dir.listing, name),
        _ => Ok(None),
    }
}

/// Returns the names along each path, without paths that are below others.
fn outermost<'p>(paths: &[&'p Path]) -> Result<Vec<Vec<&'p [u8]>>> {
    let mut all = Vec::new();
    for path in paths {
        all.push(names_of(path)?);
    }
    all.sort();
    // In this order, the paths below a path come right after it.
    all.dedup_by(|path, kept| path.starts_with(kept));
    Ok(all)
}
