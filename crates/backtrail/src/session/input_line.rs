//! One line of input: a message, a compaction or a checkpoint.

use serde::Deserialize;

use crate::error::Result;
use crate::message::{Compaction, Draft};
use crate::workspace::CheckpointOptions;

/// A parsed line of input.
#[derive(Debug, Clone)]
pub enum InputLine {
    /// A message.
    Message(Draft),
    /// A compaction.
    Compaction(Compaction),
    /// A checkpoint of the session's workspace.
    Checkpoint(CheckpointOptions),
}

impl InputLine {
    /// Parses one JSON object: a compaction or a checkpoint if its `type` says so,
    /// otherwise a message.
    ///
    /// # Errors
    ///
    /// Fails with [`Invalid`](crate::ErrorKind::Invalid) as [`Draft::from_json`],
    /// [`Compaction::from_json`] and [`CheckpointOptions::from_json`] do.
    pub fn from_json(line: &str) -> Result<Self> {
        // Most lines are messages. Searching for the words first saves parsing them
        // twice.
        let says = |word: &[u8]| memchr::memmem::find(line.as_bytes(), word).is_some();
        let kind = if says(b"\"compaction\"") || says(b"\"checkpoint\"") {
            kind_of(line)
        } else {
            None
        };
        match kind.as_deref() {
            Some("compaction") => Compaction::from_json(line).map(Self::Compaction),
            Some("checkpoint") => CheckpointOptions::from_json(line).map(Self::Checkpoint),
            _ => Draft::from_json(line).map(Self::Message),
        }
    }

    /// Returns the seq that the caller expects to be last, if set.
    pub fn expected(&self) -> Option<u64> {
        match self {
            Self::Message(draft) => draft.expected(),
            Self::Compaction(compaction) => compaction.expected(),
            Self::Checkpoint(_) => None,
        }
    }
}

fn kind_of(line: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Kind {
        #[serde(rename = "type")]
        kind: String,
    }
    let kind: Kind = serde_json::from_str(line).ok()?;
    Some(kind.kind)
}
