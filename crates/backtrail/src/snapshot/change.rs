//! What changed at one path.

use std::fmt;
use std::path::PathBuf;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::entry::{Dir, Kind, Node};
use super::name::{bytes_of, os_str, quoted_for_patch, serialize_path, shown};
use crate::objects::ObjectId;

/// A difference between two snapshots, at one path.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// Where, relative to the workspace; the workspace itself is `.`. The new path
    /// of a file that was renamed.
    pub path: PathBuf,
    /// What happened.
    pub kind: ChangeKind,
    /// What was there, if anything.
    pub before: Option<FileState>,
    /// What is there, if anything.
    pub after: Option<FileState>,
    /// The old path of a file that was renamed.
    pub from: Option<PathBuf>,
}

/// What happened at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// It is gone.
    Deleted,
    /// A file's content or a link's target is another; maybe the mode as well.
    Modified,
    /// Only the mode is another.
    Mode,
    /// It became something else: a file a link, a link a directory, and so on.
    Kind,
    /// A file with this content was elsewhere; maybe its mode is another as well.
    Renamed,
}

/// What was captured at one path.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileState {
    /// A file, a link or a directory.
    pub kind: Kind,
    /// All twelve permission bits; links have none.
    pub mode: Option<u32>,
    /// The length of a file or of a link's target; 0 for a directory.
    pub bytes: u64,
    /// The name of a file's content.
    pub content: Option<ObjectId>,
    /// What a link points to.
    pub target: Option<PathBuf>,
}

impl ChangeKind {
    /// Returns the kind as one lower-case word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Deleted => "deleted",
            Self::Modified => "modified",
            Self::Mode => "mode",
            Self::Kind => "kind",
            Self::Renamed => "renamed",
        }
    }
}

impl fmt::Display for ChangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FileState {
    /// Tells what was captured; nothing of what was left out.
    pub(crate) fn of(node: &Node) -> Option<Self> {
        Some(match node {
            Node::File {
                mode,
                size,
                content,
                ..
            } => Self {
                kind: Kind::File,
                mode: Some(*mode),
                bytes: *size,
                content: Some(*content),
                target: None,
            },
            Node::Link { target, .. } => Self {
                kind: Kind::Link,
                mode: None,
                bytes: target.len() as u64,
                content: None,
                target: Some(os_str(target).into()),
            },
            Node::Dir(dir) => Self::dir(dir),
            Node::LeftOut(_) => return None,
        })
    }

    pub(crate) fn dir(dir: &Dir) -> Self {
        Self {
            kind: Kind::Dir,
            mode: Some(dir.mode),
            bytes: 0,
            content: None,
            target: None,
        }
    }
}

impl Change {
    pub(crate) fn new(
        path: PathBuf,
        kind: ChangeKind,
        before: Option<FileState>,
        after: Option<FileState>,
    ) -> Self {
        Self {
            path,
            kind,
            before,
            after,
            from: None,
        }
    }

    /// Returns where it was before: its own path, unless it was renamed.
    pub fn old_path(&self) -> &PathBuf {
        self.from.as_ref().unwrap_or(&self.path)
    }

    /// Returns the path as patches spell it: as it is, or in quotes, as C would,
    /// where it holds what would break a line or command a terminal.
    pub fn quoted_path(&self) -> String {
        quoted_for_patch("", bytes_of(&self.path))
    }

    /// Returns whether this is about a directory itself, not about what is in it.
    pub(crate) fn is_dir(&self) -> bool {
        let not_dir = |state: &FileState| state.kind != Kind::Dir;
        !self.before.iter().chain(&self.after).any(not_dir)
    }
}

impl fmt::Display for Change {
    /// Says what happened in one line, which is safe to show on a terminal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = shown(&self.path);
        let slash = if self.is_dir() { "/" } else { "" };
        match self.kind {
            ChangeKind::Added => write!(f, "new {path}{slash}"),
            ChangeKind::Deleted => write!(f, "deleted {path}{slash}"),
            ChangeKind::Modified => write!(f, "edited {path}"),
            ChangeKind::Mode => write!(f, "mode {path}{slash}{}", self.modes()),
            ChangeKind::Kind => {
                let [before, after] = [&self.before, &self.after].map(word);
                write!(f, "kind {path} {before} → {after}")
            }
            ChangeKind::Renamed => write!(f, "{} → {path}{}", shown(self.old_path()), self.modes()),
        }
    }
}

impl Change {
    /// Returns ` 644 → 755` where both sides have a mode and they differ.
    fn modes(&self) -> String {
        let mode = |state: &Option<FileState>| state.as_ref().and_then(|state| state.mode);
        match (mode(&self.before), mode(&self.after)) {
            (Some(before), Some(after)) if before != after => {
                format!(" {before:03o} → {after:03o}")
            }
            _ => String::new(),
        }
    }
}

fn word(state: &Option<FileState>) -> &'static str {
    match state.as_ref().map(|state| state.kind) {
        Some(Kind::File) => "file",
        Some(Kind::Link) => "link",
        Some(Kind::Dir) => "directory",
        _ => "nothing",
    }
}

impl Serialize for ChangeKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl Serialize for Change {
    /// Writes `{"path","change","before","after"}`, with `from` where it was renamed.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        serialize_path(&mut map, ["path", "path_hex"], &self.path)?;
        map.serialize_entry("change", &self.kind)?;
        if let Some(from) = &self.from {
            serialize_path(&mut map, ["from", "from_hex"], from)?;
        }
        map.serialize_entry("before", &self.before)?;
        map.serialize_entry("after", &self.after)?;
        map.end()
    }
}

impl Serialize for FileState {
    /// Writes `{"kind"}` and, as far as they apply, `mode` (in octal), `bytes`,
    /// `content` and `target`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", &self.kind)?;
        if let Some(mode) = self.mode {
            map.serialize_entry("mode", &format!("{mode:03o}"))?;
        }
        if let Some(content) = &self.content {
            map.serialize_entry("bytes", &self.bytes)?;
            map.serialize_entry("content", content)?;
        }
        if let Some(target) = &self.target {
            serialize_path(&mut map, ["target", "target_hex"], target)?;
        }
        map.end()
    }
}
