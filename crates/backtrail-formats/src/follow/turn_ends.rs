//! The ends of turns: where the agent's file tells them, or else an answer without calls.

use std::borrow::Cow;
use std::path::Path;

use backtrail::Timestamp;

use super::followed::{FollowedKind, FollowedRecord};
use super::progress::Progress;
use crate::error::Result;
use crate::format::Format;
use crate::json::Object;
use crate::lines::Lines;
use crate::source::{Source, is_json_lines};

/// The end of a turn, as a line of a file tells it.
#[derive(Debug, Default)]
pub(super) struct ToldEnd {
    /// The record that the line became, if it did.
    id: Option<String>,
    at: Option<Timestamp>,
}

/// Returns the ends of turns that a file tells from a byte on, and how far it was read.
pub(super) fn told_ends(
    format: &dyn Format,
    path: &Path,
    from: u64,
) -> Result<(Vec<ToldEnd>, u64)> {
    let (mut ends, mut read_to) = (Vec::new(), from);
    let Some(ends_turn) = format.turn_end().filter(|_| is_json_lines(path)) else {
        return Ok((ends, read_to));
    };
    let source = Source::open(path)?;
    if source.len() < from {
        // It was rewritten: what it tells now is not new.
        return Ok((ends, source.len()));
    }
    let mut lines = Lines::new(&source, from, 0);
    while let Some(line) = lines.next()? {
        if !line.ended {
            break;
        }
        read_to = line.range.end;
        let text = line.text();
        if ends_turn(&text) {
            let object = Object::parse(&text).unwrap_or_default();
            ends.push(ToldEnd {
                id: object.string("uuid").map(Cow::into_owned),
                at: object.time("timestamp"),
            });
        }
    }
    Ok((ends, read_to))
}

/// Inserts the ends that the file told: each after its own record, or else before what is newer.
pub(super) fn insert_told(
    records: &mut Vec<FollowedRecord>,
    ends: Vec<ToldEnd>,
    progress: &Progress,
) {
    for end in ends {
        let index = place_of(&end, records);
        let before = index.checked_sub(1).map(|before| records[before].clone());
        let is_told = |before: &FollowedRecord| before.kind == FollowedKind::TurnEnd;
        if before.as_ref().is_some_and(is_told) {
            continue;
        }
        let (trail, seq) = match &before {
            Some(before) => (before.trail, before.seq),
            None => progress.end(),
        };
        let record = FollowedRecord {
            trail,
            seq,
            id: before.and_then(|before| before.id),
            at: end.at,
            kind: FollowedKind::TurnEnd,
        };
        records.insert(index, record);
    }
}

fn place_of(end: &ToldEnd, records: &[FollowedRecord]) -> usize {
    let is_own = |record: &FollowedRecord| end.id.is_some() && record.id == end.id;
    if let Some(own) = records.iter().rposition(is_own) {
        return own + 1;
    }
    let is_after = |record: &FollowedRecord| match (record.at, end.at) {
        (Some(at), Some(end)) if record.kind == FollowedKind::Prompt => at >= end,
        (Some(at), Some(end)) => at > end,
        _ => false,
    };
    let after = records.iter().position(is_after);
    after.unwrap_or(records.len())
}

/// Adds an end if the last thing that was said is an answer and no call is open. What comes in
/// one piece is looked at as a whole: a call may follow its text in a message of its own.
pub(super) fn add_inferred(records: &mut Vec<FollowedRecord>, progress: &Progress) {
    let said = |record: &&FollowedRecord| record.kind != FollowedKind::Other;
    let last = records.iter().rev().find(said);
    let Some(last) = last.filter(|last| last.kind == FollowedKind::Answer) else {
        return;
    };
    if progress.has_no_open_call() {
        let end = FollowedRecord {
            kind: FollowedKind::TurnEnd,
            ..last.clone()
        };
        records.push(end);
    }
}
