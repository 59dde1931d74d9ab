//! How far the sessions were reported, and what was added to them since.

use std::collections::HashSet;

use backtrail::plumbing::LinePart;
use backtrail::{Block, Message, Record, RecordKind, Role, SessionReader, Timestamp};

use super::followed::{FollowedKind, FollowedRecord};
use crate::error::Result;

/// How far a session was reported.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The line of history then.
    parts: Vec<LinePart>,
    /// Its last record.
    seq: u64,
    /// The calls without a result.
    open: HashSet<String>,
}

/// Which records of a session are reported the first time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Since {
    /// When following began.
    pub(super) started: Timestamp,
    /// The last record that the session had before, if its file is older than the follower.
    pub(super) after: Option<u64>,
}

impl Progress {
    /// Begins with a session: returns what was added to it since the follower started. The
    /// records' own times decide. If even the newest is older, although its file was written
    /// just now, they cannot be trusted: then all that is new in the store counts, but nothing
    /// of a fork, which begins as a copy. What it shares with its parent never counts.
    pub(super) fn begin(
        reader: &SessionReader,
        since: Since,
    ) -> Result<(Self, Vec<FollowedRecord>)> {
        let mut progress = Self {
            parts: reader.line_parts()?,
            ..Self::default()
        };
        let fork = reader.info()?.forked_from;
        let shared_to = fork.as_ref().and_then(|fork| fork.seq).unwrap_or(0);
        let mut back = reader.records_back()?;
        let mut records = Vec::new();
        let mut is_current = true;
        while let Some(record) = back.next()? {
            progress.seq = progress.seq.max(record.seq());
            if record.seq() <= shared_to {
                break;
            }
            if !is_conversation(record.kind()) {
                continue;
            }
            let is_recent = record.at().is_some_and(|at| at >= since.started);
            if records.is_empty() {
                is_current = is_recent;
            }
            let is_over = match is_current {
                true => !is_recent,
                false => since.after.is_some_and(|after| record.seq() <= after),
            };
            if is_over {
                break;
            }
            records.push(record.to_owned());
        }
        if !is_current && fork.is_some() {
            records.clear();
        }
        records.reverse();
        let added = progress.note(&records);
        Ok((progress, added))
    }

    /// Returns what was added since the last time.
    pub(super) fn advance(&mut self, reader: &SessionReader) -> Result<Vec<FollowedRecord>> {
        let parts = reader.line_parts()?;
        let common = common_seq(&self.parts, &parts).min(self.seq);
        self.parts = parts;
        let mut records = reader.records_from(common + 1)?;
        let mut added = Vec::new();
        self.seq = common;
        while let Some(record) = records.next()? {
            if record.seq() <= common {
                continue;
            }
            self.seq = record.seq();
            if is_conversation(record.kind()) {
                added.push(record.to_owned());
            }
        }
        Ok(self.note(&added))
    }

    /// Returns whether no call waits for its result.
    pub(super) fn has_no_open_call(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns the last record.
    pub(super) fn end(&self) -> (u32, u64) {
        (self.trail_of(self.seq), self.seq)
    }

    fn note(&mut self, records: &[Record]) -> Vec<FollowedRecord> {
        let mut noted = Vec::new();
        for record in records {
            let record = record.as_ref();
            for kind in kinds(record.kind(), record.stored_message().ok().flatten()) {
                match &kind {
                    FollowedKind::Call { id, .. } => drop(self.open.insert(id.clone())),
                    FollowedKind::Result { id, .. } => drop(self.open.remove(id)),
                    // Calls of an interrupted turn never get a result.
                    FollowedKind::Prompt => self.open.clear(),
                    _ => {}
                }
                noted.push(FollowedRecord {
                    trail: self.trail_of(record.seq()),
                    seq: record.seq(),
                    id: record.id().map(std::borrow::Cow::into_owned),
                    at: record.at(),
                    kind,
                });
            }
        }
        noted
    }

    fn trail_of(&self, seq: u64) -> u32 {
        let part = self.parts.iter().find(|part| part.until >= seq);
        part.or(self.parts.last()).map_or(0, |part| part.trail)
    }
}

/// Returns the last record that two lines of history have in common.
fn common_seq(a: &[LinePart], b: &[LinePart]) -> u64 {
    let mut common = 0;
    for (a, b) in a.iter().zip(b) {
        if (&a.session, a.trail) != (&b.session, b.trail) {
            break;
        }
        common = a.until.min(b.until);
        if a.until != b.until {
            break;
        }
    }
    common
}

fn is_conversation(kind: RecordKind<'_>) -> bool {
    matches!(
        kind,
        RecordKind::Message | RecordKind::Compaction | RecordKind::Usage
    )
}

/// Returns what a record is; a message may be several things.
fn kinds(kind: RecordKind<'_>, message: Option<Message>) -> Vec<FollowedKind> {
    let mut kinds = match (kind, message) {
        (RecordKind::Compaction, _) => vec![FollowedKind::Compaction],
        (RecordKind::Message, Some(message)) => message_kinds(&message),
        _ => Vec::new(),
    };
    if kinds.is_empty() {
        kinds.push(FollowedKind::Other);
    }
    kinds
}

fn message_kinds(message: &Message) -> Vec<FollowedKind> {
    let mut kinds = Vec::new();
    let mut answers = message.role == Role::Assistant;
    for block in &message.blocks {
        match block {
            Block::Text(text) if answers && !text.text.as_str().trim().is_empty() => {
                kinds.push(FollowedKind::Answer);
                answers = false;
            }
            Block::ToolUse(call) => kinds.push(FollowedKind::Call {
                id: call.id.as_str().to_owned(),
                name: call.name.as_str().to_owned(),
            }),
            Block::ToolResult(result) => kinds.push(FollowedKind::Result {
                id: result.tool_use_id.as_str().to_owned(),
                failed: result.is_error,
            }),
            _ => {}
        }
    }
    if message.is_prompt() {
        kinds.push(FollowedKind::Prompt);
    }
    kinds
}
