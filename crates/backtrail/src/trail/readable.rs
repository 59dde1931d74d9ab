//! What can be read of a message, where parts of it are lost.

use super::record::{RecordKind, RecordRef};
use crate::error::{ErrorKind, Result};
use crate::message::Message;

/// A record's message, as far as it can be read.
#[derive(Debug)]
pub(crate) enum Readable {
    /// The record is none of a message.
    NoMessage,
    /// All of it.
    Whole(Message),
    /// What stands in its line; a part that stood elsewhere is lost.
    InPart(Message),
    /// Nothing: it is of a shape that this version does not know.
    Nothing,
}

impl RecordRef<'_> {
    /// Reads the message as far as that goes. An error is one of the disk, and
    /// never damage.
    pub(crate) fn readable(&self) -> Result<Readable> {
        if self.kind() != RecordKind::Message {
            return Ok(Readable::NoMessage);
        }
        match self.message() {
            Ok(Some(message)) => Ok(Readable::Whole(message)),
            Err(error) if error.kind() != ErrorKind::Corrupt => Err(error),
            Ok(None) | Err(_) => Ok(match self.stored_message() {
                Ok(Some(message)) => Readable::InPart(message),
                _ => Readable::Nothing,
            }),
        }
    }
}
