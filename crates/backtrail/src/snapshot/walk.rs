//! Walks through a whole snapshot, one directory after the other.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::change::FileState;
use super::cursor::Cursor;
use super::entry::{Dir, Kind, LeftOut, LeftOutReason, Node};
use super::name::{os_str, serialize_path, shown};
use super::tree::Snapshot;
use crate::error::{Error, ErrorKind, Result};
use crate::trail::present::path_of;

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
        "the snapshot has more than {MAX_DEPTH} directories within each other, below {}",
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
    open: Vec<Cursor>,
    path: PathBuf,
}

impl Walk {
    pub(super) fn new(snapshot: &Snapshot, enter: fn(&Dir) -> bool) -> Self {
        let root = snapshot.root();
        let open = enter(root).then(|| Cursor::new(root.listing));
        Self {
            snapshot: snapshot.clone(),
            enter,
            open: open.into_iter().collect(),
            path: PathBuf::new(),
        }
    }

    fn step(&mut self) -> Result<Option<(PathBuf, Node)>> {
        while let Some(cursor) = self.open.last_mut() {
            let Some(entry) = cursor.advance(self.snapshot.source())? else {
                self.open.pop();
                self.path.pop();
                continue;
            };
            let path = self.path.join(os_str(&entry.name));
            if let Node::Dir(dir) = &entry.node
                && (self.enter)(dir)
            {
                check_depth(self.open.len(), &path)?;
                self.path.push(os_str(&entry.name));
                self.open.push(Cursor::new(dir.listing));
            }
            return Ok(Some((path, entry.node)));
        }
        Ok(None)
    }
}

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
pub struct Entries(Walk);

impl Entries {
    pub(super) fn new(walk: Walk) -> Self {
        Self(walk)
    }
}

impl Iterator for Entries {
    type Item = Result<(PathBuf, FileState)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.find_map(|step| match step {
            Ok((path, node)) => FileState::of(&node).map(|state| Ok((path, state))),
            Err(error) => Some(Err(error)),
        })
    }
}

/// The skipped entries of a snapshot; see [`Snapshot::skipped`]. Ends after an error.
#[derive(Debug)]
pub struct LeftOutEntries(Walk);

impl LeftOutEntries {
    pub(super) fn new(walk: Walk) -> Self {
        Self(walk)
    }
}

impl Iterator for LeftOutEntries {
    type Item = Result<LeftOutEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.find_map(|step| match step {
            Ok((path, Node::LeftOut(left_out))) => LeftOutEntry::new(path, &left_out).map(Ok),
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        })
    }
}

/// An entry that was found but not captured, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "LeftOutFields")]
#[non_exhaustive]
pub struct LeftOutEntry {
    /// The path relative to the workspace.
    pub path: PathBuf,
    /// The kind of entry.
    pub kind: Kind,
    /// The reason why it was skipped.
    pub reason: LeftOutReason,
    /// The length of a file; 0 for anything else.
    pub bytes: u64,
}

impl LeftOutEntry {
    /// Creates an entry, except for `.git`.
    pub(crate) fn new(path: PathBuf, left_out: &LeftOut) -> Option<Self> {
        let LeftOut { reason, kind, size } = *left_out;
        (reason != LeftOutReason::Git).then_some(Self {
            path,
            kind,
            reason,
            bytes: size,
        })
    }
}

impl Serialize for LeftOutEntry {
    /// Writes `{"path","kind","reason","bytes"}`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        serialize_path(&mut map, ["path", "path_hex"], &self.path)?;
        map.serialize_entry("kind", &self.kind)?;
        map.serialize_entry("reason", self.reason.as_str())?;
        map.serialize_entry("bytes", &self.bytes)?;
        map.end()
    }
}

/// The stored form of a skipped entry.
#[derive(Deserialize)]
struct LeftOutFields {
    path: String,
    path_hex: Option<String>,
    kind: Kind,
    reason: LeftOutReason,
    bytes: u64,
}

impl From<LeftOutFields> for LeftOutEntry {
    fn from(fields: LeftOutFields) -> Self {
        Self {
            path: path_of(&fields.path, fields.path_hex.as_deref()),
            kind: fields.kind,
            reason: fields.reason,
            bytes: fields.bytes,
        }
    }
}
