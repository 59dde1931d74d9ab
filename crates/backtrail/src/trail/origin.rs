//! The origin of a session: a fork, a tool call of another session, or another program.

use serde::{Deserialize, Serialize};

use crate::ids::SessionId;
use crate::time::Timestamp;

/// The session that a session was forked from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ForkOrigin {
    /// The parent session, which may be in another store.
    pub parent_session_id: String,
    /// The name of the fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_name: Option<String>,
    /// The last shared record, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
}

impl ForkOrigin {
    /// Creates an origin; a blank branch name is ignored.
    pub(crate) fn new(
        parent: impl Into<String>,
        branch_name: Option<&str>,
        seq: Option<u64>,
    ) -> Self {
        let branch_name = branch_name.map(str::trim).filter(|name| !name.is_empty());
        Self {
            parent_session_id: parent.into(),
            branch_name: branch_name.map(str::to_owned),
            seq,
        }
    }
}

/// The tool call that started a sub-agent's session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SpawnedBy {
    /// The session that called.
    pub session_id: SessionId,
    /// The seq of the call's record.
    pub seq: u64,
    /// The id of the call.
    pub tool_use_id: String,
}

/// An imported file that is a session's first trail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Imported {
    /// The BLAKE3 hash of the file.
    pub(crate) hash: String,
    pub(crate) bytes: u64,
    /// The id in the file, if the session has another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) original_id: Option<String>,
    /// Whether its first message is not a system message, so that it has no instructions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) uninstructed: bool,
    /// The beginning of the first prompt, so that a list need not read the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) begins: Option<String>,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}
