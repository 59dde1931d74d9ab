//! The readable part of a message of which parts are lost.

use super::record::{RecordKind, RecordRef};
use crate::error::{ErrorKind, Result};
use crate::message::Message;

/// A record's message, as far as it can be read.
#[derive(Debug)]
pub(crate) enum Readable {
    /// The record is not a message.
    NoMessage,
    /// The message is complete.
    Whole(Message),
    /// The message is incomplete: a part stored elsewhere is lost.
    InPart(Message),
    /// Nothing is readable: this version does not know its shape.
    Nothing,
}

impl RecordRef<'_> {
    /// Reads the message as far as possible. An error is an I/O error, never damage.
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
