//! Compaction: a summary in place of what was said, in the context alone.
//!
//! It is one more record. What it covers stays where it is, in history,
//! statistics and search; undo goes back to before it.

use std::collections::HashSet;

use super::tail::Entry;
use super::{Live, Session, SessionReader};
use crate::error::{Error, Result};
use crate::message::{Block, Compaction, Covered, Message, Role};

/// What a compaction did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compacted {
    /// Its record.
    pub seq: u64,
    /// The how many-th it is.
    pub count: u64,
    /// How many messages it covers that none before it did.
    pub removed_message_count: u64,
    /// How many messages stay in the context behind the summary.
    pub kept: u64,
    /// The first record that stays; that of the compaction where none does.
    pub keeps_from: u64,
}

impl Session {
    /// Puts a summary in the place of what was said before, and returns what it
    /// covers once that is durable, as far as the session's durability goes.
    ///
    /// More messages than asked for stay where a tool call would otherwise be
    /// parted from its result, or from one that is still to come.
    pub fn compact(&self, compaction: &Compaction) -> Result<Compacted> {
        compaction.check()?;
        let live = &self.0;
        live.queue.alone(live, || live.write_compaction(compaction))
    }
}

impl Live {
    fn write_compaction(&self, compaction: &Compaction) -> Result<Compacted> {
        let mut tail = self.lock_tail();
        let guard = self.begin_write(&mut tail)?;
        self.check_expected(&tail, compaction.expected(), 0)?;
        let reader = SessionReader::new(&self.store, self.files.clone());
        let seq = tail.position.seq.saturating_add(1);
        let (covered, kept) = cover(&reader, compaction.kept(), seq)?;
        let id = self
            .ids
            .next(self.store.random())
            .map_err(|error| Error::machine("cannot make an id", error))?;
        let body = compaction.encode(self.store.now(), id, &covered)?;
        tail.append(&[Entry {
            kind: "compaction",
            body: &body,
        }])?;
        drop(guard);
        self.end_write(&mut tail)?;
        Ok(Compacted {
            seq,
            count: covered.count,
            removed_message_count: covered.removed_message_count,
            kept,
            keeps_from: covered.keeps_from,
        })
    }
}

/// Decides what a compaction with the number `seq` covers, and returns how many
/// messages it leaves.
fn cover(reader: &SessionReader, keep: u64, seq: u64) -> Result<(Covered, u64)> {
    let last = reader.newest_compaction()?;
    let start = last
        .as_ref()
        .and_then(|(_, stored)| stored.keeps_from)
        .unwrap_or(0);
    let instructions = reader.instructions()?.said;
    let instructions: HashSet<u64> = instructions.iter().map(|said| said.seq).collect();
    let mut boundary = Boundary::new(keep, seq);
    let mut messages = 0;
    let mut back = reader.records_back()?;
    while let Some(record) = back.next()? {
        if record.seq() < start {
            break;
        }
        if record.kind() != crate::trail::RecordKind::Message
            || instructions.contains(&record.seq())
        {
            continue;
        }
        messages += 1;
        if !boundary.is_settled() {
            match record.stored_message() {
                Ok(Some(message)) => boundary.pass(record.seq(), &message),
                // Of an unknown shape: it counts, and belongs to nothing.
                _ => boundary.pass(record.seq(), &Message::new(Role::User, [])),
            }
        }
    }
    let covered = Covered {
        count: last.map_or(0, |(_, stored)| stored.count).saturating_add(1),
        removed_message_count: messages - boundary.kept,
        keeps_from: boundary.seq,
    };
    Ok((covered, boundary.kept))
}

/// Where the context shall begin, found by going back from the end.
struct Boundary {
    keep: u64,
    /// The first record that stays.
    seq: u64,
    /// How many messages stay, and how many were passed.
    kept: u64,
    passed: u64,
    /// Results that stay and whose calls were not met yet.
    unanswered: HashSet<String>,
    /// Results between the boundary and where we are: they stay too if the
    /// boundary moves here.
    between: HashSet<String>,
    /// Whether only results came so far: then a call may still wait for its own.
    at_end: bool,
}

impl Boundary {
    fn new(keep: u64, seq: u64) -> Self {
        Self {
            keep,
            seq,
            kept: 0,
            passed: 0,
            unanswered: HashSet::new(),
            between: HashSet::new(),
            at_end: true,
        }
    }

    /// Returns whether nothing further back can move the boundary.
    fn is_settled(&self) -> bool {
        self.kept >= self.keep && self.unanswered.is_empty() && !self.at_end
    }

    /// Goes back over one message.
    fn pass(&mut self, seq: u64, message: &Message) {
        self.passed += 1;
        let mut results = 0;
        for block in &message.blocks {
            if let Block::ToolResult(result) = block {
                self.between.insert(result.tool_use_id.to_string());
                results += 1;
            }
        }
        let mut must_stay = self.kept < self.keep;
        for block in &message.blocks {
            if let Block::ToolUse(call) = block {
                let id = call.id.as_str();
                let waits = self.at_end && !self.between.contains(id);
                must_stay |= waits || self.unanswered.contains(id);
            }
        }
        if must_stay {
            self.seq = seq;
            self.kept = self.passed;
            self.unanswered.extend(self.between.drain());
            for block in &message.blocks {
                if let Block::ToolUse(call) = block {
                    self.unanswered.remove(call.id.as_str());
                }
            }
        } else {
            // A call whose result lies on the same side is not parted from it.
            for block in &message.blocks {
                if let Block::ToolUse(call) = block {
                    self.between.remove(call.id.as_str());
                }
            }
        }
        // Anything but a message of results says that no call waits any more.
        self.at_end &= results > 0 && results == message.blocks.len();
    }
}
