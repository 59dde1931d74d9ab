//! Walks through a whole snapshot, one directory after the other.

use std::iter;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::change::FileState;
use super::cursor::Cursor;
use super::damage::{DamagedPart, DamagedPath, damage_error};
use super::entry::{Dir, FileKind, Node, Skipped, SkippedReason};
use super::name::{os_str, shown};
use super::repeats::Repeats;
use super::source::Nodes;
use super::tree::Snapshot;
use crate::error::{Error, ErrorKind, Result};
use crate::hex::path_fields;
use crate::objects::ObjectId;

/// The deepest nesting of directories, including the topmost. Scans capture no more, and
/// snapshots are not read deeper.
pub(super) const MAX_DEPTH: usize = 4096;

/// Rejects directories nested deeper than any scan captures.
pub(super) fn check_depth(depth: usize, path: &Path) -> Result<()> {
    if depth < MAX_DEPTH {
        return Ok(());
    }
    let start: PathBuf = path.components().take(4).collect();
    let what = format!(
        "the snapshot has more than {MAX_DEPTH} nested directories below {}",
        shown(&start)
    );
    Err(Error::new(ErrorKind::Corrupt, what))
}

/// A walk through a snapshot in memory that grows only with the depth.
#[derive(Debug)]
pub(super) struct Walk {
    snapshot: Snapshot,
    /// Whether a directory contains anything to look for.
    enter: fn(&Dir) -> bool,
    open: Vec<OpenDir>,
    path: PathBuf,
    /// The directories that are damaged, in part or altogether; their other entries follow.
    damaged: Vec<DamagedPath>,
    repeats: Repeats,
}

#[derive(Debug)]
struct OpenDir {
    cursor: Cursor,
    /// Whether it was listed before, elsewhere.
    is_repeated: bool,
}

impl Walk {
    pub(super) fn new(snapshot: &Snapshot, enter: fn(&Dir) -> bool) -> Self {
        let mut walk = Self {
            snapshot: snapshot.clone(),
            enter,
            open: Vec::new(),
            path: PathBuf::new(),
            damaged: Vec::new(),
            repeats: Repeats::default(),
        };
        let root = snapshot.root();
        if enter(root) {
            walk.open_dir(root.listing);
        }
        walk
    }

    fn open_dir(&mut self, listing: ObjectId) {
        let is_repeated = self.repeats.enter([Some(listing), None]);
        self.open.push(OpenDir {
            cursor: Cursor::new(listing),
            is_repeated,
        });
    }

    pub(super) fn into_damaged(self) -> Vec<DamagedPath> {
        self.damaged
    }

    /// Returns the next entry unless something before it is damaged.
    fn next_undamaged(&mut self) -> Option<Result<(PathBuf, Node)>> {
        let next = self.next();
        match damage_error(&self.damaged) {
            Some(error) => {
                self.open.clear();
                self.damaged.clear();
                Some(Err(error))
            }
            None => next,
        }
    }

    fn damage(&mut self, path: &Path, error: Error) -> Result<()> {
        if self.damaged.last().is_none_or(|last| last.path != path) {
            let of = self.snapshot.of();
            let damaged = DamagedPath::new(path, DamagedPart::SomeNames, of, error)?;
            self.damaged.push(damaged);
        }
        Ok(())
    }

    fn step(&mut self) -> Result<Option<(PathBuf, Node)>> {
        while let Some(dir) = self.open.last_mut() {
            let entry = match dir.cursor.advance(self.snapshot.source()) {
                Ok(Some(entry)) => entry,
                Ok(None) => {
                    self.open.pop();
                    self.path.pop();
                    continue;
                }
                Err(error) => {
                    self.damage(&self.path.clone(), error)?;
                    continue;
                }
            };
            let path = self.path.join(os_str(&entry.name));
            if dir.is_repeated {
                let root = self.snapshot.root().listing;
                let source: &dyn Nodes = self.snapshot.source();
                self.repeats.count(&path, &[(source, root)])?;
            }
            if let Node::Dir(dir) = &entry.node
                && (self.enter)(dir)
            {
                match check_depth(self.open.len(), &path) {
                    Ok(()) => {
                        self.path.push(os_str(&entry.name));
                        self.open_dir(dir.listing);
                    }
                    Err(error) => self.damage(&path, error)?,
                }
            }
            return Ok(Some((path, entry.node)));
        }
        Ok(None)
    }
}

/// Continues after damage, which is collected.
impl Iterator for Walk {
    type Item = Result<(PathBuf, Node)>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            self.open.clear();
        }
        step.transpose()
    }
}

/// The captured entries of a snapshot; see [`Snapshot::entries`]. Ends after an error.
#[derive(Debug)]
pub struct Entries(pub(super) Walk);

impl Iterator for Entries {
    type Item = Result<(PathBuf, FileState)>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut steps = iter::from_fn(|| self.0.next_undamaged());
        steps.find_map(|step| match step {
            Ok((path, node)) => FileState::from_node(&node).map(|state| Ok((path, state))),
            Err(error) => Some(Err(error)),
        })
    }
}

/// The skipped entries of a snapshot; see [`Snapshot::skipped`]. Ends after an error.
#[derive(Debug)]
pub struct SkippedEntries(pub(super) Walk);

impl Iterator for SkippedEntries {
    type Item = Result<SkippedEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut steps = iter::from_fn(|| self.0.next_undamaged());
        steps.find_map(|step| match step {
            Ok((path, Node::Skipped(skipped))) => SkippedEntry::new(path, &skipped).map(Ok),
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        })
    }
}

/// An entry that was found but not captured, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SkippedEntry {
    /// The path relative to the workspace.
    #[serde(flatten, with = "path_fields")]
    pub path: PathBuf,
    /// The kind of entry.
    pub kind: FileKind,
    /// The reason why it was skipped.
    pub reason: SkippedReason,
    /// The length of a file; 0 for anything else.
    pub bytes: u64,
}

impl SkippedEntry {
    /// Creates an entry, except for `.git`.
    pub(crate) fn new(path: PathBuf, skipped: &Skipped) -> Option<Self> {
        let Skipped { reason, kind, size } = *skipped;
        (reason != SkippedReason::Git).then_some(Self {
            path,
            kind,
            reason,
            bytes: size,
        })
    }
}
