//! Places in the sessions of other programs, by those programs' own ids.
//!
//! A checkpoint is often made before the session, or the record, that it belongs to is here.

use serde::{Deserialize, Serialize};

use crate::hex::to_hex;
use crate::ids::CheckpointId;

/// How many bytes of a prompt's hash are kept.
const PROMPT_BYTES: usize = 8;
/// How much of a prompt is hashed: an agent may report less of a long one.
const MAX_PROMPT: usize = 32 << 10;

/// A place in a session that another program keeps.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AgentPlace {
    /// The agent, such as `claude-code`.
    pub name: String,
    /// The agent's id of the session.
    pub session: String,
    /// The agent's id of the tool call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The tool's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The file that the agent writes the session to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// A hash of the prompt that a turn began with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

impl AgentPlace {
    /// Returns a place in a session of an agent.
    pub fn new(name: impl Into<String>, session: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            session: session.into(),
            call: None,
            tool: None,
            source: None,
            prompt: None,
        }
    }

    /// Sets the tool call.
    #[must_use]
    pub fn call(mut self, id: impl Into<String>) -> Self {
        self.call = Some(id.into());
        self
    }

    /// Sets the tool's name. It tells which call is meant if the agent does not say.
    #[must_use]
    pub fn tool(mut self, name: impl Into<String>) -> Self {
        self.tool = Some(name.into());
        self
    }

    /// Sets the file that the agent writes the session to.
    #[must_use]
    pub fn source(mut self, path: impl Into<String>) -> Self {
        self.source = Some(path.into());
        self
    }

    /// Returns it without what the session's files or messages say.
    pub(super) fn without_text(&self) -> Self {
        Self {
            source: None,
            prompt: None,
            ..self.clone()
        }
    }

    /// Returns whether both are places in the same session.
    pub fn is_in_session_of(&self, other: &Self) -> bool {
        self.name == other.name && self.session == other.session
    }
}

/// Returns the hash of a prompt that a checkpoint keeps. It says nothing without the
/// checkpoint's id, and white space around the prompt does not matter.
pub(super) fn prompt_hash(checkpoint: CheckpointId, prompt: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(checkpoint.to_string().as_bytes());
    let prompt = prompt.trim().as_bytes();
    hasher.update(&prompt[..prompt.len().min(MAX_PROMPT)]);
    to_hex(&hasher.finalize().as_bytes()[..PROMPT_BYTES])
}
