//! Compaction: a summary in place of what was said, in the context alone.
//!
//! It is one more record. What it covers stays where it is, in history,
//! statistics and search; undo goes back to before it.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::{Session, SessionReader};
use crate::error::Result;
use crate::log::LogWriter;
use crate::log::tail::Entry;
use crate::message::{Block, Compaction, Covered, Message, Role};

/// What a compaction did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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
    ///
    /// # Errors
    ///
    /// Fails with `Invalid` where the summary is empty or nothing is left to summarise, with `Conflict`
    /// where the expected seq is not the last, and where the session cannot be written.
    pub fn compact(&self, compaction: &Compaction) -> Result<Compacted> {
        compaction.check()?;
        let live = &self.0;
        live.queue.alone(live, || live.write_compaction(compaction))
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
    /// How many results of an id stay whose calls were not met yet.
    unanswered: HashMap<String, u64>,
    /// The same of those before the boundary: they stay too if it moves here.
    between: HashMap<String, u64>,
    stretch: Stretch,
}

/// The last stretch of a conversation, in which a call may still wait for its
/// result: what the assistant said last, in one message or several, and the
/// results that came so far.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stretch {
    Results,
    Calls,
    /// The assistant went on, or somebody else spoke: no call waits any more.
    Over,
}

impl Stretch {
    /// Returns where the message before belongs.
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

    /// Returns whether nothing further back can move the boundary.
    fn is_settled(&self) -> bool {
        self.kept >= self.keep && self.unanswered.is_empty() && self.stretch == Stretch::Over
    }

    /// Goes back over one message.
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

    /// Takes in a message's results, and returns how often it calls each id.
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

    /// Returns whether calls of an id would be parted from a result that stays,
    /// or from one that is still to come. The first results are theirs: those
    /// behind them answer nothing.
    fn must_stay(&self, id: &str, calls: u64) -> bool {
        let kept = self.unanswered.get(id).copied().unwrap_or(0);
        let passed = self.between.get(id).copied().unwrap_or(0);
        let waits = self.stretch != Stretch::Over && kept + passed < calls;
        waits || (kept > 0 && passed < calls)
    }
}

/// Takes the results of calls out, as far as there are any.
fn answer(results: &mut HashMap<String, u64>, id: &str, calls: u64) {
    if let Some(count) = results.get_mut(id) {
        *count = count.saturating_sub(calls);
        if *count == 0 {
            results.remove(id);
        }
    }
}
