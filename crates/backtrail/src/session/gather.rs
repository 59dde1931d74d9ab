//! What a model should be sent now: gathered from the end of the history.

use super::chain::Walk;
use super::place;
use super::reader::SessionReader;
use crate::context::{Context, ContextInput, Said, Shape, render};
use crate::error::Result;
use crate::legacy;
use crate::message::{Message, Role, StoredCompaction};
use crate::trail::{RecordKind, RecordRef};

impl SessionReader {
    /// Renders what a model should be sent now: the instructions, the last
    /// summary and what was said since.
    ///
    /// It reads from the last compaction on and no more of the history. The same
    /// history gives the same bytes.
    pub fn context(&self, shape: Shape) -> Result<Context> {
        let mut gathered = Gathered::default();
        let compaction = self.newest_compaction()?;
        gathered.input.instructions = self.instructions()?;
        let from = compaction
            .as_ref()
            .and_then(|(_, stored)| stored.keeps_from);
        gathered.input.summary = compaction.map(|(_, stored)| stored.summary.to_string());
        let mut records = self.records_from(from.unwrap_or(0))?;
        while let Some(record) = records.next()? {
            gathered.take(&record);
        }
        let skipped = records.damage().count() + gathered.unreadable;
        Ok(render(shape, &gathered.input).with_skipped(skipped))
    }

    /// Returns the system messages at the very beginning of the history: they
    /// stay in the context, whatever is compacted.
    pub(crate) fn instructions(&self) -> Result<Vec<Said>> {
        let mut instructions = Vec::new();
        let mut records = self.first_records()?;
        while let Some(record) = records.next()? {
            match said(&record) {
                Some(Ok(said)) if said.message.role == Role::System => instructions.push(said),
                None => {}
                _ => break,
            }
        }
        Ok(instructions)
    }

    /// Returns the newest compaction of the line, by number.
    pub(crate) fn newest_compaction(&self) -> Result<Option<(u64, StoredCompaction)>> {
        let (store, files) = self.parts();
        let head = files.head()?;
        let mut at = place::end(store, files, head)?.position.compacted;
        while let Some(seq) = at {
            if let Some(record) = self.record(seq)?
                && record.as_ref().kind() == RecordKind::Compaction
                && let Ok(stored) = StoredCompaction::read(&record.as_ref())
            {
                return Ok(Some((seq, stored)));
            }
            // It is lost: the record before it knows of the one before.
            at = place::last_before(store, files, head, seq)?
                .and_then(|position| position.compacted)
                .filter(|before| *before < seq);
        }
        self.version_1_compaction()
    }

    /// Returns the compaction of a version-1 file that the history begins with.
    /// What it covers is not there: all that is stays in the context.
    fn version_1_compaction(&self) -> Result<Option<(u64, StoredCompaction)>> {
        let (store, files) = self.parts();
        let (segments, _) = Walk::new(store, files, files.head()?).collect()?;
        let Some(first) = segments.first().filter(|first| first.is_legacy()) else {
            return Ok(None);
        };
        let summary = legacy::survey(&first.file()?, &first.path)?;
        Ok(summary.compaction.map(|compaction| {
            let stored = StoredCompaction {
                count: compaction.count,
                removed_message_count: compaction.removed_message_count,
                keeps_from: None,
                summary: compaction.summary,
            };
            (0, stored)
        }))
    }
}

#[derive(Default)]
struct Gathered {
    input: ContextInput,
    unreadable: u64,
}

impl Gathered {
    fn take(&mut self, record: &RecordRef<'_>) {
        let is_instruction = |said: &Said| said.seq == record.seq();
        if self.input.instructions.iter().any(is_instruction) {
            return;
        }
        match said(record) {
            Some(Ok(said)) => self.input.messages.push(said),
            Some(Err(_)) => {
                self.unreadable += 1;
                // Where only a part of it is lost, the rest is sent.
                self.input.messages.extend(stored(record));
            }
            None => {}
        }
    }
}

/// Reads what was said in a record; `None` where it is not a message.
fn said(record: &RecordRef<'_>) -> Option<Result<Said>> {
    let message = record.message().transpose()?;
    Some(message.map(|message| Said::of(record, message)))
}

/// Reads what stands of a message in its line.
fn stored(record: &RecordRef<'_>) -> Option<Said> {
    let message = record.stored_message().ok()??;
    Some(Said::of(record, message))
}

impl Said {
    fn of(record: &RecordRef<'_>, message: Message) -> Self {
        Self {
            seq: record.seq(),
            model: record.details().model,
            message,
        }
    }
}
