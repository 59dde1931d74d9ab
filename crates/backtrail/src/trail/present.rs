//! The metadata of a session that may change.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::hex::{path_of, to_hex};
use crate::ids::WorkspaceId;
use crate::time::Timestamp;

/// The metadata of a session that may change. Each opener and each note contains all of
/// it, so the newest one is enough.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Present {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) workspace: Option<WorkspaceRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tags: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) pinned: bool,
    /// The agent that keeps the conversation itself, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) belongs_to: Option<String>,
}

/// The directory that a session works in, or that is a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkspaceRef {
    /// The workspace, if the directory has checkpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<WorkspaceId>,
    /// The root as text; lossy if `root_hex` is present.
    pub(crate) root: String,
    /// The bytes of a root that is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) root_hex: Option<String>,
    /// Identifies the directory, on a workspace's trail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) directory: Option<DirectoryId>,
    /// The remote of its repository, without credentials; on a workspace's trail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) remote: Option<String>,
    /// Where it was before, the latest last; on a workspace's trail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) formerly: Vec<FormerDirectory>,
    /// The workspace that replaced it; on a workspace's trail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) superseded_by: Option<WorkspaceId>,
}

/// A former place of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FormerDirectory {
    /// As in [`WorkspaceRef`].
    pub(crate) root: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) root_hex: Option<String>,
    /// When it was moved there; absent if it was there from the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<Timestamp>,
    /// When it was moved away.
    pub(crate) until: Timestamp,
    /// Whether only sessions were there, and the workspace itself never was.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) sessions_only: bool,
}

impl FormerDirectory {
    pub(crate) fn new(root: &Path, since: Option<Timestamp>, until: Timestamp) -> Self {
        let WorkspaceRef { root, root_hex, .. } = WorkspaceRef::new(root);
        Self {
            root,
            root_hex,
            since,
            until,
            sessions_only: false,
        }
    }

    pub(crate) fn root(&self) -> PathBuf {
        path_of(&self.root, self.root_hex.as_deref())
    }
}

/// The file system's identity of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DirectoryId {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    /// When it was created, in nanoseconds since 1970, because inodes are reused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) born: Option<u64>,
}

impl WorkspaceRef {
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            id: None,
            root: root.to_string_lossy().into_owned(),
            root_hex: root
                .to_str()
                .is_none()
                .then(|| to_hex(root.as_os_str().as_encoded_bytes())),
            directory: None,
            remote: None,
            formerly: Vec::new(),
            superseded_by: None,
        }
    }

    /// Returns the root as it is written in a record.
    pub(crate) fn text(&self) -> &String {
        &self.root
    }

    pub(crate) fn root(&self) -> PathBuf {
        path_of(&self.root, self.root_hex.as_deref())
    }
}
