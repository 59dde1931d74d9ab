//! One line of input: a message, a compaction or a checkpoint.

use serde::Deserialize;

use crate::error::Result;
use crate::json::Fields;
use crate::message::{Block, Compaction, Draft, Message, Role};
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

    /// Returns what this version does not know of it. It is kept as it is. The other kinds of
    /// line are refused if they have unknown fields.
    pub fn unknown(&self) -> Unknown {
        match self {
            Self::Message(draft) => Unknown::of(draft),
            Self::Compaction(_) | Self::Checkpoint(_) => Unknown::default(),
        }
    }
}

/// What is kept of a line without being used.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Unknown {
    /// The fields, as `usage`, `message.mood` or `message.blocks[0].size`; a block of an unknown
    /// type is `message.blocks[0]`.
    pub fields: Vec<String>,
    /// The role, if it is none of the four.
    pub role: Option<String>,
}

/// How many unknown fields are named.
const MAX_NAMED: usize = 100;

impl Unknown {
    fn of(draft: &Draft) -> Self {
        let mut fields: Vec<String> = names(draft.unknown_fields(), "").collect();
        let message = draft.message();
        let role = message.as_deref().and_then(|message| match &message.role {
            Role::Other(name) => Some(name.clone()),
            _ => None,
        });
        if let Some(message) = &message {
            fields.extend(in_message(message));
        }
        fields.truncate(MAX_NAMED);
        Self { fields, role }
    }
}

/// Returns the names of fields of an object.
fn names<'f>(fields: &'f Fields, of: &'f str) -> impl Iterator<Item = String> + 'f {
    fields.iter().map(move |(name, _)| format!("{of}{name}"))
}

fn in_message(message: &Message) -> Vec<String> {
    let mut found: Vec<String> = names(&message.extra, "message.").collect();
    // It marks a message that an agent added.
    found.retain(|name| name != "message.meta");
    if let Some(usage) = &message.usage {
        found.extend(names(&usage.extra, "message.usage."));
    }
    for (n, block) in message.blocks.iter().enumerate() {
        let block_name = format!("message.blocks[{n}]");
        let extra = match block {
            Block::Text(block) => &block.extra,
            Block::Thinking(block) => &block.extra,
            Block::ToolUse(block) => &block.extra,
            Block::ToolResult(block) => &block.extra,
            Block::Media(block) => &block.extra,
            Block::Other(_) => {
                found.push(block_name);
                continue;
            }
        };
        found.extend(names(extra, &format!("{block_name}.")));
    }
    found
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
