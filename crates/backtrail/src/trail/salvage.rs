//! What can still be read in a damaged line.
//!
//! Damage shall cost just the bytes it hit. A line may hold whole records all
//! the same: behind a block of NULs, behind the torn beginning of another
//! record, or before a newline that turned into something else. Each record
//! carries its own sum, so a piece that checks is a record beyond doubt.

use std::ops::Range;

use memchr::memmem;

use super::envelope::Envelope;
use super::lines::Ending;
use super::record::{Sums, check_line};
use crate::error::Reason;

/// A part of a damaged line: a record that is whole after all, or bytes lost.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) range: Range<usize>,
    pub(crate) content: Result<Envelope, Reason>,
}

/// How each record begins, and how each record ends but for 16 digits.
const BEGIN: &[u8] = b"{\"type\":\"";
const END: &[u8] = b",\"sum\":\"";
const END_LEN: usize = END.len() + 16 + 2;

/// How often, on average, each byte of a line may be hashed before the line is
/// given up: it can hold millions of beginnings and ends that lead nowhere.
const EFFORT: usize = 16;

/// Takes a line apart that did not check as a whole for `reason`.
///
/// Only pieces whose sum is right count as records, whatever the reader trusts
/// otherwise.
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

/// Finds the records inside a line, in order and apart from each other.
fn whole_records(line: &[u8], ending: Ending) -> Vec<(Range<usize>, Envelope)> {
    let mut found = Vec::new();
    let mut effort = line.len().saturating_mul(EFFORT);
    let mut free_from = 0;
    for begin in memmem::find_iter(line, BEGIN) {
        if begin < free_from || !is_beginning(&line[begin + BEGIN.len()..]) {
            continue;
        }
        let Some((end, envelope)) = whole_record(&line[begin..], &mut effort, |end| {
            // Right at the line's beginning, or behind another record, it is
            // quoted by nobody.
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

/// Finds the end of the record that `bytes` begin with, if there is one.
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

/// Tells a record's beginning from a block's, which has a `type` first as well.
fn is_beginning(after_quote: &[u8]) -> bool {
    const LONGEST_NAME: usize = 64;
    let front = &after_quote[..after_quote.len().min(LONGEST_NAME)];
    memchr::memchr(b'"', front).is_some_and(|quote| {
        let rest = &after_quote[quote..];
        rest.starts_with(b"\",\"seq\":") || rest.starts_with(b"\",\"version\":")
    })
}

/// Tells a record that another one quotes, as the input of a tool, by what
/// stands around it: it must not come back as a record of this trail.
fn is_quoted(before: &[u8], after: &[u8], ending: Ending) -> bool {
    if after.is_empty() && ending == Ending::Newline {
        // Whatever quotes it would have to be closed behind it.
        return false;
    }
    let last = before.iter().rev().find(|byte| **byte != b' ');
    matches!(last, Some(b':' | b',' | b'[')) || matches!(after.first(), Some(b',' | b'}' | b']'))
}
