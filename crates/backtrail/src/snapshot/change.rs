//! A change at one path.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::entry::{Dir, FileKind, Node};
use super::name::{bytes_of, os_str, quoted_for_patch, serialize_path, shown};
use crate::objects::ObjectId;

/// A difference between two snapshots, at one path.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// The path relative to the workspace; the workspace itself is `.`. For a rename, the
    /// new path.
    pub path: PathBuf,
    /// What happened.
    pub kind: ChangeKind,
    /// The state before, or `None` if the path did not exist.
    pub before: Option<FileState>,
    /// The state after, or `None` if the path no longer exists.
    pub after: Option<FileState>,
    /// The old path, for a rename.
    pub from: Option<PathBuf>,
}

/// What happened at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChangeKind {
    /// The path is new.
    Added,
    /// The path no longer exists.
    Deleted,
    /// The content of a file or the target of a link changed, possibly with its mode.
    Modified,
    /// Only the mode changed.
    Mode,
    /// The kind changed: a file became a link, a link a directory, and so on.
    Kind,
    /// A file with this content was at another path; its mode may have changed too.
    Renamed,
}

/// The captured state of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileState {
    /// The kind: a file, a link or a directory.
    pub kind: FileKind,
    /// All twelve permission bits; `None` for links.
    pub mode: Option<u32>,
    /// The length of a file or of a link's target; 0 for a directory.
    pub bytes: u64,
    /// The id of a file's content.
    pub content: Option<ObjectId>,
    /// The target of a link.
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
    /// Returns the state of a node, or `None` if the node was skipped.
    pub(crate) fn from_node(node: &Node) -> Option<Self> {
        Some(match node {
            Node::File {
                mode,
                size,
                content,
                ..
            } => Self {
                kind: FileKind::File,
                mode: Some(*mode),
                bytes: *size,
                content: Some(*content),
                target: None,
            },
            Node::Link { target, .. } => Self {
                kind: FileKind::Link,
                mode: None,
                bytes: target.len() as u64,
                content: None,
                target: Some(os_str(target).into()),
            },
            Node::Dir(dir) => Self::dir(dir),
            Node::Skipped(_) => return None,
        })
    }

    pub(crate) fn dir(dir: &Dir) -> Self {
        Self {
            kind: FileKind::Dir,
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

    /// Returns the path before the change, which differs from `path` only for a rename.
    pub fn old_path(&self) -> &PathBuf {
        self.from.as_ref().unwrap_or(&self.path)
    }

    /// Returns the path as patches spell it: unchanged, or in C-style quotes if it
    /// contains characters that would break a line or control a terminal.
    pub fn quoted_path(&self) -> String {
        quoted_for_patch("", bytes_of(&self.path))
    }

    /// Returns whether this change is about a directory itself, not its contents.
    pub(crate) fn is_dir(&self) -> bool {
        let not_dir = |state: &FileState| state.kind != FileKind::Dir;
        !self.before.iter().chain(&self.after).any(not_dir)
    }
}

impl fmt::Display for Change {
    /// Describes the change in one line that is safe to print on a terminal.
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
    /// Returns ` 644 → 755` if both sides have a mode and they differ.
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
        Some(FileKind::File) => "file",
        Some(FileKind::Link) => "link",
        Some(FileKind::Dir) => "directory",
        _ => "nothing",
    }
}

impl Serialize for Change {
    /// Writes `{"path","change","before","after"}`, with `from` for a rename.
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
    /// Writes `{"kind"}` and, where they apply, `mode` (in octal), `bytes`, `content` and
    /// `target`.
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
