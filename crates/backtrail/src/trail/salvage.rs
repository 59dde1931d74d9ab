//! Finds the readable records in a damaged line.
//!
//! Damage must cost only the bytes it hit. A damaged line may still contain complete
//! records: after a block of NULs, after the torn beginning of another record, or before
//! a newline that turned into something else. Each record has its own sum, so a piece
//! that passes the check is certainly a record.

use std::ops::Range;

use memchr::memmem;

use super::envelope::Envelope;
use super::lines::Ending;
use super::record::{Sums, check_line};
use crate::error::Reason;

/// A part of a damaged line: an intact record, or lost bytes.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) range: Range<usize>,
    pub(crate) content: Result<Envelope, Reason>,
}

/// The beginning of each record, and its end except for 16 digits.
const BEGIN: &[u8] = b"{\"type\":\"";
const END: &[u8] = b",\"sum\":\"";
const END_LEN: usize = END.len() + 16 + 2;

/// How often, on average, each byte of a line may be hashed before giving up: a line can
/// contain millions of beginnings and ends that lead nowhere.
const EFFORT: usize = 16;

/// Splits a line that failed its check for `reason` into pieces.
///
/// Only pieces with a correct sum count as records, even if the reader trusts sums.
pub(crate) fn take_apart(line: &[u8], ending: Ending, reason: Reason) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut lost_from = 0;
    for (range, envelope) in whole_records(line, ending) {
        push_lost(&mut pieces, line, lost_from..range.start, &reason);
        lost_from = range.end;
        pieces.push(Piece {
            range,
            content: Ok(envelope),
        });
    }
    push_lost(&mut pieces, line, lost_from..line.len(), &reason);
    pieces
}

fn push_lost(pieces: &mut Vec<Piece>, line: &[u8], range: Range<usize>, reason: &Reason) {
    let lost = &line[range.clone()];
    if lost.is_empty() {
        return;
    }
    let reason = if lost.iter().all(|byte| *byte == 0) {
        Reason::NulBlock
    } else if lost.len() == line.len() {
        reason.clone()
    } else {
        Reason::NotARecord
    };
    pieces.push(Piece {
        range,
        content: Err(reason),
    });
}

/// Finds the records inside a line, in order and not overlapping.
fn whole_records(line: &[u8], ending: Ending) -> Vec<(Range<usize>, Envelope)> {
    let mut found = Vec::new();
    let mut effort = line.len().saturating_mul(EFFORT);
    let mut free_from = 0;
    for begin in memmem::find_iter(line, BEGIN) {
        if begin < free_from || !is_beginning(&line[begin + BEGIN.len()..]) {
            continue;
        }
        let Some((end, envelope)) = whole_record(&line[begin..], &mut effort, |end| {
            // At the line's beginning, or right after another record, it is not quoted.
            let lone = begin <= free_from + 1;
            !lone && is_quoted(&line[..begin], &line[begin + end..], ending)
        }) else {
            continue;
        };
        let end = begin + end;
        found.push((begin..end, envelope));
        free_from = end;
    }
    found
}

/// Finds the end of the record at the start of `bytes`.
fn whole_record(
    bytes: &[u8],
    effort: &mut usize,
    is_quoted: impl Fn(usize) -> bool,
) -> Option<(usize, Envelope)> {
    for at in memmem::find_iter(bytes, END) {
        let end = at + END_LEN;
        let record = bytes.get(..end)?;
        *effort = effort.checked_sub(record.len())?;
        if is_quoted(end) {
            continue;
        }
        if let Ok(envelope) = check_line(record, Sums::Check) {
            return Some((end, envelope));
        }
    }
    None
}

/// Returns whether this is the beginning of a record, not of a block, which also begins
/// with its `type`.
fn is_beginning(after_quote: &[u8]) -> bool {
    const LONGEST_NAME: usize = 64;
    let front = &after_quote[..after_quote.len().min(LONGEST_NAME)];
    memchr::memchr(b'"', front).is_some_and(|quote| {
        let rest = &after_quote[quote..];
        rest.starts_with(b"\",\"seq\":") || rest.starts_with(b"\",\"version\":")
    })
}

/// Recognises, by the text around it, a record that another record quotes (in the input of
/// a tool, for example): it must not become a record of this trail.
fn is_quoted(before: &[u8], after: &[u8], ending: Ending) -> bool {
    if after.is_empty() && ending == Ending::Newline {
        // A quotation would have to be closed after it.
        return false;
    }
    let last = before.iter().rev().find(|byte| **byte != b' ');
    matches!(last, Some(b':' | b',' | b'[')) || matches!(after.first(), Some(b',' | b'}' | b']'))
}
