//! The ends of turns: where the agent's file tells them, or else an answer without calls.

use std::path::Path;

use backtrail::Timestamp;

use super::followed::{FollowedKind, FollowedRecord};
use super::progress::Progress;
use crate::error::Result;
use crate::format::Format;
use crate::json::Object;
use crate::lines::Lines;
use crate::source::{Source, is_json_lines};

/// Returns the times of the ends of turns that a file tells from a byte on, and how far it was
/// read. A line without a time ends what came before it.
pub(super) fn told_ends(
    format: &dyn Format,
    path: &Path,
    from: u64,
) -> Result<(Vec<Option<Timestamp>>, u64)> {
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
            let object = Object::parse(&text).ok();
            ends.push(object.and_then(|object| object.time("timestamp")));
        }
    }
    Ok((ends, read_to))
}

/// Inserts the ends that the file told, each after the records that are not newer.
pub(super) fn insert_told(
    records: &mut Vec<FollowedRecord>,
    ends: Vec<Option<Timestamp>>,
    progress: &Progress,
) {
    for at in ends {
        let is_before = |record: &FollowedRecord| match (record.at, at) {
            (Some(record), Some(end)) => record <= end,
            _ => true,
        };
        let index = records.iter().rposition(is_before).map_or(0, |at| at + 1);
        let before = index.checked_sub(1).map(|before| &records[before]);
        let (trail, seq) = match before {
            Some(before) => (before.trail, before.seq),
            None => progress.end(),
        };
        let is_told = before.is_some_and(|before| before.kind == FollowedKind::TurnEnd);
        if !is_told {
            let kind = FollowedKind::TurnEnd;
            let end = FollowedRecord {
                trail,
                seq,
                at,
                kind,
            };
            records.insert(index, end);
        }
    }
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
