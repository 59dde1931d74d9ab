//! One line of what comes in, whatever it is.

use serde::Deserialize;

use super::{Compaction, Draft};
use crate::error::Result;
use crate::workspace::CheckpointOptions;

/// What a line of input asks for.
#[derive(Debug, Clone)]
pub enum Spoken {
    /// A message.
    Message(Draft),
    /// A compaction.
    Compaction(Compaction),
    /// A checkpoint of the session's workspace.
    Checkpoint(CheckpointOptions),
}

impl Spoken {
    /// Reads one JSON object: a compaction or a checkpoint where its `type` says
    /// so, else a message. See [`Draft::from_json`], [`Compaction::from_json`] and
    /// [`CheckpointOptions::from_json`].
    pub fn from_json(line: &str) -> Result<Self> {
        // Most lines are messages; the words are looked for before a line is read
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

    /// Returns the seq that is last for the caller, where one was set.
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
