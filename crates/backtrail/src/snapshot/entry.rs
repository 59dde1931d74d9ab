//! The entries of a directory in a snapshot.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::objects::ObjectId;

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DirEntry {
    /// Not empty, without `/` or NUL, and neither `.` nor `..`.
    pub(crate) name: Box<[u8]>,
    pub(crate) node: Node,
}

/// The thing a name refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    File {
        /// All twelve permission bits.
        mode: u32,
        size: u64,
        content: ObjectId,
        /// Whether ignore rules matched it when it was captured.
        ignored: bool,
    },
    Link {
        target: Box<[u8]>,
        ignored: bool,
    },
    Dir(Dir),
    /// Found but not captured.
    Skipped(Skipped),
}

/// A directory: its mode and its contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dir {
    pub(crate) mode: u32,
    /// The topmost node of its listing.
    pub(crate) listing: ObjectId,
    pub(crate) totals: Totals,
}

/// Totals for a directory and everything below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Totals {
    /// The number of captured files and links.
    pub files: u64,
    /// The total size of those files.
    pub bytes: u64,
    /// The number of skipped entries, not counting `.git`.
    pub skipped: u64,
}

/// An entry that was found but not captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Skipped {
    pub(crate) reason: SkippedReason,
    pub(crate) kind: FileKind,
    /// The length of a file; 0 for anything else.
    pub(crate) size: u64,
}

/// The kind of a file system entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FileKind {
    /// A regular file.
    File,
    /// A symbolic link.
    Link,
    /// A directory.
    Dir,
    /// A socket.
    Socket,
    /// A named pipe.
    Fifo,
    /// A block or character device.
    Device,
}

/// The reason why an entry was skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SkippedReason {
    /// Ignore rules match it: a directory, a file too large to be kept anyway, or
    /// anything in `.backtrailignore`.
    Ignored,
    /// A file larger than the cap.
    TooLarge,
    /// It could not be read.
    Unreadable,
    /// A socket, named pipe or device.
    Special,
    /// A file that changed every time it was read.
    Unstable,
    /// A directory on another file system.
    OtherFileSystem,
    /// `.git`: the repository's own state, which is never touched.
    Git,
    /// The store itself.
    Store,
    /// A directory nested too deep for a snapshot to be read.
    TooDeep,
}

impl Totals {
    /// Adds an entry with everything below it.
    pub(crate) fn add(&mut self, node: &Node) {
        match node {
            Node::File { size, .. } => {
                self.files += 1;
                self.bytes = self.bytes.saturating_add(*size);
            }
            Node::Link { .. } => self.files += 1,
            Node::Dir(dir) => {
                self.files += dir.totals.files;
                self.bytes = self.bytes.saturating_add(dir.totals.bytes);
                self.skipped += dir.totals.skipped;
            }
            Node::Skipped(skipped) if skipped.reason == SkippedReason::Git => {}
            Node::Skipped(_) => self.skipped += 1,
        }
    }
}

impl SkippedReason {
    /// Returns the reason as it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ignored => "ignored",
            Self::TooLarge => "too_large",
            Self::Unreadable => "unreadable",
            Self::Special => "special",
            Self::Unstable => "unstable",
            Self::OtherFileSystem => "other_file_system",
            Self::Git => "git",
            Self::Store => "store",
            Self::TooDeep => "too_deep",
        }
    }
}

impl fmt::Display for SkippedReason {
    /// Describes the reason in a few words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ignored => "ignored",
            Self::TooLarge => "over snapshot_cap",
            Self::Unreadable => "unreadable",
            Self::Special => "not a file",
            Self::Unstable => "keeps changing",
            Self::OtherFileSystem => "another file system",
            Self::Git => "git data",
            Self::Store => "the store itself",
            Self::TooDeep => "nested too deep",
        })
    }
}
