//! Projects: workspaces that share a git remote.

use std::path::Path;

pub use backtrail::plumbing::remote_of;
use serde::Serialize;

/// A project: workspaces that share a git remote, or one workspace without a remote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Project {
    /// Its name: the last part of the remote or of the directory.
    pub name: String,
    /// Its remote, without scheme and credentials: `github.com/acme/shop`.
    pub remote: Option<String>,
}

impl Project {
    /// Creates a project from a known name and remote.
    pub(crate) fn named(name: String, remote: Option<String>) -> Self {
        Self { name, remote }
    }

    /// Creates the project of a directory from its remote, if it has one.
    pub fn new(root: &Path, remote: Option<&str>) -> Self {
        let last = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
        let name = match remote {
            Some(remote) => last(remote),
            None => root.file_name().map_or_else(
                || root.to_string_lossy().into_owned(),
                |name| name.to_string_lossy().into_owned(),
            ),
        };
        Self {
            name,
            remote: remote.map(str::to_owned),
        }
    }
}
