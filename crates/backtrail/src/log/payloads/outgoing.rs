//! Moves the large and binary parts of a message to the payload file before its record is
//! written.

use std::borrow::Cow;

use super::super::writer::{LogWriter, Pending};
use super::PayloadWriter;
use crate::error::{Error, Reason, Result};
use crate::message::parts::{self, MAX_INLINE};
use crate::sync::lock;
use crate::trail::record::MAX_WRITTEN;

/// More than the numbers, `prev` and `sum` around a body take.
const AROUND: usize = 256;
/// The longest part that stays if the message is still too long for a line.
const MAX_INLINE_IN_LONG: usize = 16 << 10;

impl LogWriter {
    /// Returns the body of a record, after making its payloads durable.
    pub(crate) fn body_of<'p>(&self, pending: &'p Pending) -> Result<Cow<'p, [u8]>> {
        let Some(at) = pending.message_at else {
            return checked(Cow::Borrowed(&pending.body));
        };
        let (front, message) = pending.body.split_at(at);
        let message = std::str::from_utf8(message).map_err(|error| {
            let reason = Reason::NotUtf8(error.valid_up_to() as u64);
            Error::invalid("this message cannot be recorded").with_reason(reason)
        })?;
        let mut payloads = lock(&self.payloads);
        move_out(&mut payloads, front, message).map(Cow::Owned)
    }
}

/// Returns the body of a record, `front` and then the message, after moving its large
/// parts to the payload file.
pub(crate) fn move_out(
    payloads: &mut PayloadWriter,
    front: &[u8],
    message: &str,
) -> Result<Vec<u8>> {
    let body = without_parts(payloads, front, message, MAX_INLINE)?;
    if body.len() + AROUND <= MAX_WRITTEN {
        return Ok(body);
    }
    let body = without_parts(payloads, front, message, MAX_INLINE_IN_LONG)?;
    checked(Cow::Owned(body)).map(Cow::into_owned)
}

fn without_parts(
    payloads: &mut PayloadWriter,
    front: &[u8],
    message: &str,
    limit: usize,
) -> Result<Vec<u8>> {
    let parts = parts::parts(message, limit);
    let moved: usize = parts.iter().map(|part| part.range.len()).sum();
    let remaining = front.len() + message.len() - moved;
    let mut body = front.to_vec();
    // A message that would be refused anyway stores nothing.
    if parts.is_empty() || remaining + AROUND > MAX_WRITTEN {
        body.extend_from_slice(message.as_bytes());
        return Ok(body);
    }
    let contents: Vec<&[u8]> = parts.iter().map(|part| part.content.bytes()).collect();
    let stored = payloads.store(&contents)?;
    let references: Vec<_> = parts
        .iter()
        .zip(stored)
        .map(|(part, (hash, at))| part.content.reference(hash, at))
        .collect();
    body.extend_from_slice(&parts::splice(message, &parts, &references));
    Ok(body)
}

/// Rejects a body that is too long for a line.
fn checked(body: Cow<'_, [u8]>) -> Result<Cow<'_, [u8]>> {
    let bytes = body.len() + AROUND;
    if bytes <= MAX_WRITTEN {
        return Ok(body);
    }
    let reason = Reason::TooLong {
        bytes: bytes as u64,
        limit: MAX_WRITTEN as u64,
    };
    Err(Error::invalid("the message is too large to record").with_reason(reason))
}
