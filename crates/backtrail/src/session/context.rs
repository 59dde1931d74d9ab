//! The model's context, collected from the end of the history.

use std::collections::HashSet;

use super::reader::SessionReader;
use crate::context::{
    AddedTexts, Context, ContextInput, ContextMessage, HandOver, HandOverExtent, HandOverOptions,
    Shape, render,
};
use crate::error::Result;
use crate::log::chain::Walk;
use crate::log::place;
use crate::message::{Block, Message, Role, StoredCompaction};
use crate::trail::readable::Readable;
use crate::trail::{Damage, DamageReport, RecordKind, RecordRef};

impl SessionReader {
    /// Renders the context to send to a model now: the instructions, the last summary and
    /// the messages since.
    ///
    /// Reads only from the last compaction on. The same history always gives the same
    /// bytes.
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be read; damage is skipped and counted.
    pub fn context(&self, shape: Shape) -> Result<Context> {
        self.pinned()?.context_of_line(shape)
    }

    fn context_of_line(&self, shape: Shape) -> Result<Context> {
        let compaction = self.newest_compaction()?;
        let from = compaction
            .as_ref()
            .and_then(|(_, stored)| stored.keeps_from);
        let instructions = self.instructions()?;
        let mut gathered = Gathered {
            unreadable: instructions.in_part,
            ..Gathered::default()
        };
        gathered.input.instructions = instructions.said;
        gathered.input.summary = compaction.map(|(_, stored)| stored.summary.to_string());
        let mut records = self.records_from(from.unwrap_or(0))?;
        while let Some(record) = records.next()? {
            gathered.take(&record)?;
        }
        let skipped = gathered.unreadable + count_once(&instructions.damage, records.damage());
        Ok(render(shape, &gathered.input).with_skipped(skipped))
    }

    /// Returns the conversation for another program, which continues it.
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be read; damage is skipped and counted.
    pub fn hand_over(&self, options: HandOverOptions) -> Result<HandOver> {
        let reader = self.pinned()?;
        let mut gathered = Gathered::default();
        let is_whole = options.extent == HandOverExtent::Whole;
        if !is_whole && let Some((_, stored)) = reader.version_1_compaction()? {
            gathered.input.summary = Some(stored.summary.to_string());
        }
        let mut last_seq = 0;
        let mut records = reader.records()?;
        while let Some(record) = records.next()? {
            if options.up_to.is_some_and(|last| record.seq() > last) {
                break;
            }
            if matches!(record.kind(), RecordKind::Message | RecordKind::Compaction) {
                last_seq = record.seq();
            }
            match record.kind() {
                RecordKind::Compaction if is_whole => {}
                RecordKind::Compaction => match record.compaction() {
                    Ok(Some(stored)) => gathered.compact(&stored),
                    _ => gathered.unreadable += 1,
                },
                _ => gathered.take(&record)?,
            }
        }
        let skipped = gathered.unreadable + records.damage().count();
        let info = reader.info()?;
        // Only agents add texts in the name of others.
        let added = match info.agent.is_some() || info.belongs_to.is_some() {
            true => AddedTexts::StayBehind,
            false => AddedTexts::AreKept,
        };
        let mut hand_over = HandOver::new(gathered.input, added);
        hand_over.last_seq = last_seq;
        hand_over.skipped = skipped;
        Ok(hand_over)
    }

    /// Returns the system messages at the very beginning of the history. They stay in the
    /// context, whatever is compacted.
    pub(crate) fn instructions(&self) -> Result<Instructions> {
        let mut instructions = Instructions::default();
        let Some(mut records) = self.log.first_records()? else {
            return Ok(instructions);
        };
        // Damage to the trails as such does not affect the instructions.
        let known = records.damage().first().len();
        while let Some(record) = records.next()? {
            // The role is in the line itself; large parts are only loaded if they are
            // needed.
            if let Ok(Some(message)) = record.stored_message()
                && message.role != Role::System
            {
                break;
            }
            let readable = record.readable()?;
            let in_part = matches!(readable, Readable::InPart(_));
            match readable {
                Readable::NoMessage => {}
                Readable::Whole(message) | Readable::InPart(message)
                    if message.role == Role::System =>
                {
                    instructions.said.push(ContextMessage::of(&record, message));
                    instructions.in_part += u64::from(in_part);
                }
                _ => break,
            }
        }
        let passed = records.damage().first().iter().skip(known);
        instructions.damage = passed.cloned().collect();
        Ok(instructions)
    }

    /// Returns the newest compaction of the line, with its seq.
    pub(crate) fn newest_compaction(&self) -> Result<Option<(u64, StoredCompaction)>> {
        let (store, files) = (&self.log.store, &self.log.dir);
        let head = self.log.head()?;
        let mut at = place::end(store, files, head)?.position.compacted;
        while let Some(seq) = at {
            if let Some(record) = self.record(seq)?
                && let Ok(Some(stored)) = record.as_ref().compaction()
            {
                return Ok(Some((seq, stored)));
            }
            // It is lost: the record before it refers to the compaction before.
            at = place::last_before(store, files, head, seq)?
                .and_then(|position| position.compacted)
                .filter(|before| *before < seq);
        }
        self.version_1_compaction()
    }

    /// Returns the compaction of a version-1 file that the history begins with. The
    /// messages it covers are not in the file: all others stay in the context.
    fn version_1_compaction(&self) -> Result<Option<(u64, StoredCompaction)>> {
        let (store, files) = (&self.log.store, &self.log.dir);
        let (segments, _) = Walk::new(store, files, self.log.head()?).collect()?;
        let Some(first) = segments.first() else {
            return Ok(None);
        };
        let first = match first.imported_without_records() {
            Some(first) => first,
            None if first.is_version_1() => first.clone(),
            None => return Ok(None),
        };
        let last = first.version_1_compaction()?;
        Ok(last.map(|last| {
            let stored = StoredCompaction {
                count: last.count,
                removed_message_count: last.removed_message_count,
                keeps_from: None,
                summary: last.summary,
            };
            (0, stored)
        }))
    }
}

/// Counts the damage at the beginning and in the rest; damage that is in both counts
/// once.
fn count_once(beginning: &[Damage], rest: &DamageReport) -> u64 {
    let place = |damage: &Damage| (damage.file.clone(), damage.byte);
    let known: HashSet<_> = rest.first().iter().map(place).collect();
    let more = beginning.iter().map(place);
    rest.count() + more.filter(|place| !known.contains(place)).count() as u64
}

/// The system messages at the very beginning.
#[derive(Debug, Default)]
pub(crate) struct Instructions {
    pub(crate) said: Vec<ContextMessage>,
    /// How many of them are not whole.
    in_part: u64,
    /// What could not be read there; it may have been instructions.
    damage: Vec<Damage>,
}

#[derive(Default)]
struct Gathered {
    input: ContextInput,
    unreadable: u64,
    /// The last response, and its message: since then there were only results.
    response: Option<(String, usize)>,
    /// Whether there were results since its last record.
    is_answered: bool,
}

impl Gathered {
    /// Puts a summary in the place of the messages that it covers.
    fn compact(&mut self, stored: &StoredCompaction) {
        let from = stored.keeps_from.unwrap_or(0);
        self.input.messages.retain(|said| said.seq >= from);
        self.input.summary = Some(stored.summary.to_string());
        self.response = None;
    }

    fn take(&mut self, record: &RecordRef<'_>) -> Result<()> {
        let is_instruction = |said: &ContextMessage| said.seq == record.seq();
        if self.input.instructions.iter().any(is_instruction) {
            return Ok(());
        }
        let readable = record.readable()?;
        if matches!(readable, Readable::InPart(_) | Readable::Nothing) {
            self.unreadable += 1;
        }
        // If only a part of it is lost, the rest is sent.
        if let Readable::Whole(message) | Readable::InPart(message) = readable {
            let response = record.details().response_id;
            self.push(ContextMessage::of(record, message), response);
        }
        Ok(())
    }

    /// Adds a message. The records of one response are one message, as the provider sent it,
    /// even if results of its first calls are between them. A text after such results begins
    /// another one: some agents have one id for several responses.
    fn push(&mut self, said: ContextMessage, response: Option<String>) {
        let messages = &mut self.input.messages;
        let is_answered = std::mem::take(&mut self.is_answered);
        if said.message.role == Role::Assistant {
            let begins = is_answered && said.message.blocks.first().is_some_and(is_text);
            if let Some((last, at)) = &self.response
                && response.as_ref() == Some(last)
                && !begins
            {
                messages[*at].join(said);
                return;
            }
            self.response = response.map(|response| (response, messages.len()));
        } else if said.message.blocks.iter().all(is_result) {
            self.is_answered = true;
        } else {
            self.response = None;
        }
        messages.push(said);
    }
}

impl ContextMessage {
    fn of(record: &RecordRef<'_>, message: Message) -> Self {
        Self::new(record.seq(), record.details().model, message).at(record.at())
    }
}

fn is_result(block: &Block) -> bool {
    matches!(block, Block::ToolResult(_))
}

fn is_text(block: &Block) -> bool {
    matches!(block, Block::Text(_) | Block::Thinking(_))
}
