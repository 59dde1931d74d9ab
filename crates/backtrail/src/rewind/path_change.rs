//! One path, what it is and what it becomes.

use std::path::PathBuf;

use crate::error::{Error, ErrorKind, Result};
use crate::objects::ObjectId;
use crate::snapshot::entry::{Node, SkippedReason};

/// What a snapshot captured at one path, without what is below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PathEntry {
    File(FileEntry),
    Link { target: Box<[u8]> },
    Dir { mode: u32 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileEntry {
    /// All twelve permission bits.
    pub(crate) mode: u32,
    pub(crate) size: u64,
    pub(crate) content: ObjectId,
}

/// One path that changes. The workspace itself is the empty path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathChange {
    pub(crate) path: PathBuf,
    pub(crate) old: Option<PathEntry>,
    pub(crate) new: Option<PathEntry>,
}

impl PathEntry {
    /// Returns what was captured; `None` for what was skipped.
    pub(crate) fn of(node: &Node) -> Option<Self> {
        match node {
            &Node::File {
                mode,
                size,
                content,
                ..
            } => Some(Self::File(FileEntry {
                mode,
                size,
                content,
            })),
            Node::Link { target, .. } => Some(Self::Link {
                target: target.clone(),
            }),
            Node::Dir(dir) => Some(Self::Dir { mode: dir.mode }),
            Node::Skipped(_) => None,
        }
    }

    /// Returns the file, if it is one.
    pub(crate) fn file(&self) -> Option<FileEntry> {
        match self {
            Self::File(file) => Some(*file),
            Self::Link { .. } | Self::Dir { .. } => None,
        }
    }

    pub(crate) fn is_dir(&self) -> bool {
        matches!(self, Self::Dir { .. })
    }
}

impl FileEntry {
    /// Refuses a content of another length.
    pub(super) fn check_len(&self, len: u64) -> Result<()> {
        if len == self.size {
            return Ok(());
        }
        let (content, size) = (self.content, self.size);
        let what = format!("object {content} has {len} bytes, expected {size}");
        Err(Error::new(ErrorKind::Corrupt, what))
    }
}

impl PathChange {
    /// Returns whether it is the workspace's own directory.
    pub(super) fn is_root(&self) -> bool {
        self.path.as_os_str().is_empty()
    }

    /// Returns whether a file becomes the same file with another mode.
    pub(super) fn is_mode_only(&self) -> bool {
        let content = |entry: &Option<PathEntry>| Some(entry.as_ref()?.file()?.content);
        content(&self.old).is_some() && content(&self.old) == content(&self.new)
    }

    /// Returns whether a new file or link is staged for it.
    pub(super) fn stages(&self) -> bool {
        let is_new = self.new.as_ref().is_some_and(|new| !new.is_dir());
        is_new && self.old != self.new && !self.is_mode_only()
    }

    pub(super) fn stages_file(&self) -> bool {
        self.stages() && matches!(self.new, Some(PathEntry::File(_)))
    }

    pub(super) fn was_dir(&self) -> bool {
        self.old.as_ref().is_some_and(PathEntry::is_dir)
    }

    pub(super) fn becomes_dir(&self) -> bool {
        self.new.as_ref().is_some_and(PathEntry::is_dir)
    }

    /// Returns whether the old entry is removed, whatever takes its place.
    pub(super) fn removes(&self) -> bool {
        self.old.is_some() && (self.new.is_none() || self.was_dir() != self.becomes_dir())
    }
}

/// Returns whether ignore rules match something.
pub(super) fn is_ignored(node: &Node) -> bool {
    match node {
        Node::File { ignored, .. } | Node::Link { ignored, .. } => *ignored,
        Node::Skipped(skipped) => skipped.reason == SkippedReason::Ignored,
        Node::Dir(_) => false,
    }
}
