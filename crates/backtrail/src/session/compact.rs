//! Compaction: replaces earlier messages with a summary, in the model's context only.
//!
//! A compaction is one more record. The messages it covers stay in the history, in
//! statistics and in search; undo returns to the state before it.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::{Session, SessionReader};
use crate::error::Result;
use crate::log::LogWriter;
use crate::log::tail::Entry;
use crate::message::{Block, Compaction, Covered, Message, Role};

/// The outcome of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Compacted {
    /// Its record.
    pub seq: u64,
    /// Its number among the compactions, counted from 1.
    pub count: u64,
    /// How many messages it covers that no earlier compaction did.
    pub removed_message_count: u64,
    /// How many messages stay in the context after the summary.
    pub kept: u64,
    /// The first record that stays; the compaction's own if none does.
    pub keeps_from: u64,
}

impl Session {
    /// Replaces earlier messages with a summary, and returns what it covers once the record
    /// is as durable as the session's durability asks for.
    ///
    /// More messages than asked for stay if a tool call would otherwise be separated from its
    /// result, or from a result that is still to come.
    ///
    /// # Errors
    ///
    /// Fails with `Invalid` if the summary is empty or nothing is left to summarise, with `Conflict`
    /// if the expected seq is not the last, and if the session cannot be written.
    pub fn compact(&self, compaction: &Compaction) -> Result<Compacted> {
        compaction.check()?;
        let live = &self.0;
        live.alone(|| live.write_compaction(compaction))
    }
}

impl LogWriter {
    fn write_compaction(&self, compaction: &Compaction) -> Result<Compacted> {
        let mut tail = self.lock_tail();
        let guard = self.begin_write(&mut tail)?;
        self.check_expected(&tail, compaction.expected(), 0)?;
        let reader = SessionReader::new(&self.store, self.dir.clone());
        let seq = tail.position().seq.saturating_add(1);
        let (covered, kept) = cover(&reader, compaction.kept(), seq)?;
        let body = compaction.encode(self.store.now(), self.new_id()?, &covered)?;
        let entry = Entry {
            kind: "compaction",
            body: &body,
        };
        self.write(&mut tail, &[entry])?;
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
/// messages stay.
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
                // Of an unknown shape: it is counted, and contains no calls or results.
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

/// The point where the context will begin, found by walking back from the end.
struct Boundary {
    keep: u64,
    /// The first record that stays.
    seq: u64,
    /// How many messages stay, and how many were passed on the way back.
    kept: u64,
    passed: u64,
    /// How many results per id stay whose calls were not reached yet.
    unanswered: HashMap<String, u64>,
    /// The same for results before the boundary: they stay too if it moves here.
    between: HashMap<String, u64>,
    stretch: Stretch,
}

/// The last stretch of a conversation, in which a call may still be without its
/// result: the assistant's last output, in one message or several, and the
/// results so far.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stretch {
    Results,
    Calls,
    /// Earlier messages: none of their calls can still be open.
    Over,
}

impl Stretch {
    /// Returns the stretch that the message before belongs to.
    fn before(self, message: &Message) -> Self {
        let is_result = |block: &Block| matches!(block, Block::ToolResult(_));
        let is_results = !message.blocks.is_empty() && message.blocks.iter().all(is_result);
        match self {
            Self::Results if is_results => Self::Results,
            Self::Results | Self::Calls if message.role == Role::Assistant => Self::Calls,
            _ => Self::Over,
        }
    }
}

impl Boundary {
    fn new(keep: u64, seq: u64) -> Self {
        Self {
            keep,
            seq,
            kept: 0,
            passed: 0,
            unanswered: HashMap::new(),
            between: HashMap::new(),
            stretch: Stretch::Results,
        }
    }

    /// Returns whether no earlier message can move the boundary.
    fn is_settled(&self) -> bool {
        self.kept >= self.keep && self.unanswered.is_empty() && self.stretch == Stretch::Over
    }

    /// Walks back over one message.
    fn pass(&mut self, seq: u64, message: &Message) {
        self.passed += 1;
        self.stretch = self.stretch.before(message);
        let calls = self.count(message);
        let holds = |(id, count): (&&str, &u64)| self.must_stay(id, *count);
        let stays = self.kept < self.keep || calls.iter().any(holds);
        if stays {
            self.seq = seq;
            self.kept = self.passed;
            for (id, count) in self.between.drain() {
                *self.unanswered.entry(id).or_default() += count;
            }
        }
        let results = match stays {
            true => &mut self.unanswered,
            false => &mut self.between,
        };
        for (id, count) in calls {
            answer(results, id, count);
        }
    }

    /// Counts a message's results, and returns how often it calls each id.
    fn count<'m>(&mut self, message: &'m Message) -> HashMap<&'m str, u64> {
        let mut calls = HashMap::new();
        for block in &message.blocks {
            let count = match block {
                Block::ToolUse(call) => calls.entry(call.id.as_str()).or_default(),
                Block::ToolResult(result) => {
                    let id = result.tool_use_id.to_string();
                    self.between.entry(id).or_default()
                }
                _ => continue,
            };
            *count += 1;
        }
        calls
    }

    /// Returns whether calls of an id would be separated from a result that stays, or from
    /// one that is still to come. The first results belong to these calls; later ones answer
    /// nothing.
    fn must_stay(&self, id: &str, calls: u64) -> bool {
        let kept = self.unanswered.get(id).copied().unwrap_or(0);
        let passed = self.between.get(id).copied().unwrap_or(0);
        let waits = self.stretch != Stretch::Over && kept + passed < calls;
        waits || (kept > 0 && passed < calls)
    }
}

/// Removes the results of calls, as far as there are any.
fn answer(results: &mut HashMap<String, u64>, id: &str, calls: u64) {
    if let Some(count) = results.get_mut(id) {
        *count = count.saturating_sub(calls);
        if *count == 0 {
            results.remove(id);
        }
    }
}
