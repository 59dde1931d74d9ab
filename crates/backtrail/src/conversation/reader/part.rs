//! Reads a part of a conversation, in a time that does not depend on the length of the session.

use super::{Assembler, Conversation, OpenTurn, Order, Source, is_prompt};
use crate::conversation::calls::PATIENCE;
use crate::error::Result;
use crate::session::SessionReader;
use crate::trail::RecordKind;

/// The memory limit for waiting items of a part.
const MOST_HELD: usize = 8 << 20;
/// How many bytes are read before a part.
const MOST_BEFORE: usize = 4 << 20;

impl SessionReader {
    /// Reads the conversation from a record on, and some of what comes before it, so that the
    /// items from that record on are those of the whole conversation: calls have their results,
    /// and turns their beginnings. It begins at the prompt before the record, or at most 1,000
    /// messages or 4 MiB before it, so the cost does not depend on the length of the session.
    ///
    /// # Errors
    ///
    /// Fails if the session's files cannot be read.
    pub fn conversation_from(&self, seq: u64) -> Result<Conversation> {
        let mut start = None;
        let (mut messages, mut bytes, mut is_prompt_there) = (0, 0, false);
        let mut back = self.records_back_from(seq)?;
        while messages < PATIENCE && bytes < MOST_BEFORE && !is_prompt_there {
            let Some(record) = back.next()? else {
                return self.conversation();
            };
            start = Some(record.seq());
            messages += u64::from(record.kind() == RecordKind::Message);
            bytes += record.bytes().len();
            is_prompt_there = is_prompt(&record);
        }
        let start = start.unwrap_or(seq);
        let mut assembler = Assembler::new(Order::AsWritten);
        assembler.most_held = MOST_HELD;
        assembler.known = self.log.present_before(start)?;
        assembler.fork = self.info()?.forked_from;
        assembler.turn = Some(OpenTurn {
            first: start,
            is_cut: false,
        });
        let records = self.records_from(start)?;
        Ok(Conversation::new(Source::Line(records), assembler))
    }

    /// Returns the nearest prompt after a record, or before it.
    ///
    /// # Errors
    ///
    /// Fails if the session's files cannot be read.
    pub fn prompt_from(&self, seq: u64, forwards: bool) -> Result<Option<u64>> {
        let mut records = match forwards {
            true => self.records_from(seq.saturating_add(1))?,
            false => self.records_back_from(seq)?,
        };
        while let Some(record) = records.next()? {
            if is_prompt(&record) {
                return Ok(Some(record.seq()));
            }
        }
        Ok(None)
    }
}
