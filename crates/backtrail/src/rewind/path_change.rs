//! One path, what it is and what it becomes.

use std::path::PathBuf;

use crate::objects::ObjectId;
use crate::snapshot::entry::Node;

/// What a snapshot captured at one path, without what is below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PathEntry {
    File {
        /// All twelve permission bits.
        mode: u32,
        size: u64,
        content: ObjectId,
    },
    Link {
        target: Box<[u8]>,
    },
    Dir {
        mode: u32,
    },
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
            Node::File {
                mode,
                size,
                content,
                ..
            } => Some(Self::File {
                mode: *mode,
                size: *size,
                content: *content,
            }),
            Node::Link { target, .. } => Some(Self::Link {
                target: target.clone(),
            }),
            Node::Dir(dir) => Some(Self::Dir { mode: dir.mode }),
            Node::Skipped(_) => None,
        }
    }

    pub(crate) fn is_dir(&self) -> bool {
        matches!(self, Self::Dir { .. })
    }
}
