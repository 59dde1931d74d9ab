//! Filters for sessions, messages and model calls.

use std::path::PathBuf;

use backtrail::{SessionId, Timestamp, WorkspaceId};

/// A filter for sessions, messages or model calls. Empty fields match everything; several
/// values of one field match any of them, and all fields must match.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Filter {
    /// Only this session.
    pub session: Option<SessionId>,
    /// Only the family of this session: the sessions it was forked from or spawned by,
    /// and everything forked from or spawned by any of those.
    pub family_of: Option<SessionId>,
    /// Agents by name, ignoring case.
    pub agents: Vec<String>,
    /// A workspace.
    pub workspace: Option<WorkspaceFilter>,
    /// Projects by name or remote.
    pub projects: Vec<String>,
    /// Models by any part of their name.
    pub models: Vec<String>,
    /// Tags.
    pub tags: Vec<String>,
    /// The earliest time.
    pub since: Option<Timestamp>,
    /// The time before which.
    pub until: Option<Timestamp>,
}

/// A workspace: by its id if it has one, so that it is found wherever it was moved, and
/// by its root for sessions that have nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceFilter {
    /// The workspace's id.
    pub id: Option<WorkspaceId>,
    /// The workspace's directory.
    pub root: PathBuf,
}
