//! What a follower reports.

use std::path::PathBuf;

use backtrail::{ForkOrigin, SessionId, SpawnedBy, Timestamp};

use crate::error::Error;

/// Why [`Follower::wait`](super::Follower::wait) returned. Empty if its deadline came first.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Wake {
    /// The sessions that were added to, each once.
    pub sessions: Vec<Followed>,
    /// What could not be followed, or only by looking again and again. Each is reported once.
    pub problems: Vec<Error>,
    /// Whether the follower was stopped.
    pub is_stopped: bool,
}

impl Wake {
    /// Returns whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty() && self.problems.is_empty() && !self.is_stopped
    }
}

/// What an agent added to one of its sessions. The store has it already.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Followed {
    /// The agent's name on the command line and in sessions.
    pub agent: &'static str,
    /// The session.
    pub session: SessionId,
    /// The agent's own id of the session.
    pub agent_session_id: String,
    /// The agent's file. A session in a database is below the database's path.
    pub source: PathBuf,
    /// The directory that the session works in, if the agent tells.
    pub directory: Option<PathBuf>,
    /// Whether the session was not in the store before.
    pub is_new: bool,
    /// The tool call that started it, if it belongs to a sub-agent.
    pub spawned_by: Option<SpawnedBy>,
    /// Where it continues another session, if it does.
    pub forked_from: Option<ForkOrigin>,
    /// What was added, in order. One message may be several of these.
    pub records: Vec<FollowedRecord>,
}

/// A part of a record that was added to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FollowedRecord {
    /// The record's trail. It may belong to the session that this one continues.
    pub trail: u32,
    /// The record's number along the line.
    pub seq: u64,
    /// The record's id, which is the agent's own if the agent gives one.
    pub id: Option<String>,
    /// When the agent wrote it, by the agent's clock.
    pub at: Option<Timestamp>,
    /// What it is.
    pub kind: FollowedKind,
}

/// What a part of a record is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FollowedKind {
    /// The user's prompt. What the agent inserts in the user's name is [`Other`](Self::Other).
    Prompt,
    /// A text of the model.
    Answer,
    /// A tool call.
    Call {
        /// Its id.
        id: String,
        /// The tool.
        name: String,
    },
    /// The result of a tool call.
    Result {
        /// The call.
        id: String,
        /// Whether the tool failed.
        failed: bool,
    },
    /// The turn is over: the agent waits for the next prompt. Its record is the last one of
    /// the turn.
    TurnEnd,
    /// A summary in place of earlier messages.
    Compaction,
    /// Anything else: reasoning, instructions, usage.
    Other,
}
