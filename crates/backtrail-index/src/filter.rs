//! Which sessions, messages or calls are meant.

use std::path::PathBuf;

use backtrail::{SessionId, Timestamp, WorkspaceId};

/// Which sessions, messages or model calls are meant. What is empty means all; several
/// values of one field mean any of them, several fields all of them.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Filter {
    /// Only this session.
    pub session: Option<SessionId>,
    /// Only the family of this session: what it was forked from or spawned by, and all
    /// that was forked from or spawned by any of those.
    pub family_of: Option<SessionId>,
    /// Agents, by their names; upper and lower case are the same.
    pub agents: Vec<String>,
    /// A workspace.
    pub workspace: Option<WorkspaceFilter>,
    /// Projects, by their names or remotes.
    pub projects: Vec<String>,
    /// Models, by any part of their names.
    pub models: Vec<String>,
    /// Tags.
    pub tags: Vec<String>,
    /// Not before this moment.
    pub since: Option<Timestamp>,
    /// Before this moment.
    pub until: Option<Timestamp>,
}

/// One workspace: by its id where it has one, so that it is found wherever it was moved,
/// and by its root for sessions that have nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceFilter {
    /// Its id.
    pub id: Option<WorkspaceId>,
    /// Its directory.
    pub root: PathBuf,
}
