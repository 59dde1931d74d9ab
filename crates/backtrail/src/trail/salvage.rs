//! What can still be read in a damaged line.
//!
//! Damage shall cost just the bytes it hit. A line may hold whole records all
//! the same: behind a block of NULs, behind the torn beginning of another
//! record, or before a newline that turned into something else. Each record
//! carries its own sum, so a piece that checks is a record beyond doubt.

use std::ops::Range;

use super::record::{Envelope, Sums, check_line};
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

/// How many beginnings and ends are tried before the line is given up. A line
/// can hold millions that lead nowhere, and each try hashes.
const TRIES: usize = 64;

/// Takes a line apart that did not check as a whole for `reason`.
///
/// Only pieces whose sum is right count as records, whatever the reader trusts
/// otherwise.
pub(crate) fn take_apart(line: &[u8], reason: Reason) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut lost_from = 0;
    for (range, envelope) in whole_records(line) {
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
fn whole_records(line: &[u8]) -> Vec<(Range<usize>, Envelope)> {
    let begins = occurrences(line, BEGIN, |at| is_beginning(&line[at + BEGIN.len()..]));
    let ends: Vec<usize> = occurrences(line, END, |at| at + END_LEN <= line.len())
        .into_iter()
        .map(|at| at + END_LEN)
        .collect();
    let mut found = Vec::new();
    let mut free_from = 0;
    let mut tries = TRIES;
    for begin in begins {
        if begin < free_from {
            continue;
        }
        for end in ends.iter().copied().filter(|end| *end > begin) {
            if tries == 0 {
                return found;
            }
            tries -= 1;
            if begin > free_from + 1 && is_inside(&line[end..]) {
                continue;
            }
            if let Ok(envelope) = check_line(&line[begin..end], Sums::Check) {
                found.push((begin..end, envelope));
                free_from = end;
                break;
            }
        }
    }
    found
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

/// Tells a record that another one quotes, as the input of a tool, by what comes
/// after it. (A record that only lost its newline stands right behind another.)
fn is_inside(after: &[u8]) -> bool {
    matches!(after.first(), Some(b',' | b'}' | b']'))
}

/// Finds where `needle` stands and may count: the first few places and the last
/// few.
fn occurrences(line: &[u8], needle: &[u8], counts: impl Fn(usize) -> bool) -> Vec<usize> {
    let half = TRIES / 2;
    let mut places: Vec<usize> = memchr::memmem::find_iter(line, needle)
        .filter(|at| counts(*at))
        .take(half)
        .collect();
    let after = places.last().map_or(0, |last| last + 1);
    let mut late: Vec<usize> = memchr::memmem::rfind_iter(&line[after..], needle)
        .map(|at| at + after)
        .filter(|at| counts(*at))
        .take(half)
        .collect();
    late.reverse();
    places.extend(late);
    places
}
