//! Going through a whole snapshot, one directory after the other.

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

/// Directories within each other, the topmost counted. No scan captures more, and
/// no snapshot is read deeper.
pub(super) const MAX_DEPTH: usize = 4096;

/// Refuses directories that go on and on, as no file system made them.
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

/// A walk through a snapshot, in memory that grows with the depth alone.
#[derive(Debug)]
pub(super) struct Walk {
    snapshot: Snapshot,
    /// Whether there is something to look for in a directory.
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

/// What a snapshot holds; see [`Snapshot::entries`]. Ends after an error.
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

/// What a snapshot does not hold; see [`Snapshot::left_out`]. Ends after an error.
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

/// An entry that was seen and not captured, and why.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "LeftOutFields")]
#[non_exhaustive]
pub struct LeftOutEntry {
    /// Where it is, relative to the workspace.
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
    /// Why it was not captured.
    pub reason: LeftOutReason,
    /// A file's length; 0 for everything else.
    pub bytes: u64,
}

impl LeftOutEntry {
    /// Makes one of all but `.git`, which nobody misses.
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

/// An entry that was not captured, as it is written.
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
