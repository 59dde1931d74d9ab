//! Where a session comes from: a fork, a tool call of another, another program.

use serde::{Deserialize, Serialize};

use crate::ids::SessionId;
use crate::time::Timestamp;

/// What a session was forked from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ForkOrigin {
    /// The session that was forked; not always one of this store.
    pub parent_session_id: String,
    /// What the fork was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_name: Option<String>,
    /// The last record that both have in common, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
}

impl ForkOrigin {
    /// Names a fork; a blank branch name is none.
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

/// The tool call that a sub-agent's session was begun by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SpawnedBy {
    /// The session that called.
    pub session_id: SessionId,
    /// The record of the call.
    pub seq: u64,
    /// The call.
    pub tool_use_id: String,
}

/// What is known of a file that was taken in as a session's first trail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Imported {
    /// BLAKE3 over all of it.
    pub(crate) hash: String,
    pub(crate) bytes: u64,
    /// The id that the file itself bears, where the session has another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) original_id: Option<String>,
    /// Whether its first message is anybody's but the system's: then there are no
    /// instructions to look for in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) uninstructed: bool,
    /// How the user began, so that a list need not read the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) begins: Option<String>,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}
