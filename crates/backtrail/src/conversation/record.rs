//! A record, parsed once for everything that is built on it.

use crate::error::{ErrorKind, Result};
use crate::json::Text;
use crate::message::{Block, Details, Message, Role, Usage, parts};
use crate::time::Timestamp;
use crate::trail::{RecordKind, RecordRef};

/// Which separately stored parts of a message to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageParts {
    /// All of them.
    All,
    /// Large texts only; media stay references to their payloads.
    Texts,
}

/// A record, as far as it can be read.
#[derive(Debug)]
pub struct ReadRecord<'a> {
    /// Its kind.
    pub kind: RecordKind<'a>,
    /// Its seq.
    pub seq: u64,
    /// When it was made, if known.
    pub at: Option<Timestamp>,
    /// Its line.
    pub bytes: &'a [u8],
    /// Its message. `None` if it has none, or one of an unknown shape.
    pub message: Option<Message>,
    /// Whether its message is lost, completely or in part.
    pub is_incomplete: bool,
    /// The model call that it comes from.
    pub details: Details,
    /// The usage of a compaction, or of a separate usage record.
    pub usage: Option<Usage>,
    /// The summary of a compaction.
    pub summary: Option<Text>,
}

impl<'a> ReadRecord<'a> {
    /// Reads a record. Its line is parsed once, unless parts of it are stored elsewhere.
    ///
    /// # Errors
    ///
    /// Fails if payloads cannot be read from disk. Damage is not an error: the record is
    /// then incomplete.
    pub fn of(record: &RecordRef<'a>, parts: MessageParts) -> Result<Self> {
        let mut read = Self {
            kind: record.kind(),
            seq: record.seq(),
            at: record.at(),
            bytes: record.bytes(),
            message: None,
            is_incomplete: false,
            details: Details::default(),
            usage: None,
            summary: None,
        };
        match read.kind {
            RecordKind::Message => read.read_message(record, parts)?,
            RecordKind::Compaction | RecordKind::Usage => {
                let beside = record.beside();
                read.details = beside.details;
                read.usage = beside.usage;
                read.summary = beside.summary;
            }
            _ => {}
        }
        Ok(read)
    }

    fn read_message(&mut self, record: &RecordRef<'a>, parts: MessageParts) -> Result<()> {
        let (stored, details) = record.stored_message_and_details();
        self.details = details;
        self.message = stored;
        let Some(stored) = &self.message else {
            self.is_incomplete = true;
            return Ok(());
        };
        let is_whole = match parts {
            MessageParts::All => !parts::may_have_references(self.bytes),
            MessageParts::Texts => !stored.blocks.iter().any(lacks_text),
        };
        if is_whole {
            return Ok(());
        }
        match record.message() {
            Ok(Some(message)) => self.message = Some(message),
            // The part in the line is still there.
            Ok(None) => self.is_incomplete = true,
            Err(error) if error.kind() == ErrorKind::Corrupt => self.is_incomplete = true,
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// Returns whether a text of the block may be in the payload file.
fn lacks_text(block: &Block) -> bool {
    match block {
        Block::ToolUse(call) => call.input.as_str().contains("\"payload\""),
        Block::ToolResult(result) => result.output.as_str().contains("\"payload\""),
        // A text that is not a string is kept as another block.
        Block::Other(other) => other.as_str().contains("\"payload\""),
        _ => false,
    }
}

/// Returns whether a message is an answer: an assistant message with text.
pub(super) fn is_answer(message: &Message) -> bool {
    let has_text = |block: &Block| match block {
        Block::Text(block) => !block.text.trim().is_empty(),
        _ => false,
    };
    message.role == Role::Assistant && !message.is_stand_in() && message.blocks.iter().any(has_text)
}
