//! Finds a record by its seq, by binary search over the file's bytes.
//!
//! The seq increases within a trail. Damage is skipped: a probe that lands in it uses the
//! next readable record.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::lines::{PEEK_BUFFER, STREAM_BUFFER};
use super::reader::TrailReader;
use super::record::Sums;
use crate::error::{IoContext, Result};
use crate::storage::{StorageFile, read_full};

/// Below this many bytes, reading on is cheaper than another probe.
const NEAR: u64 = 32 << 10;

/// Returns where the line begins that contains the first record whose seq is at least
/// `seq`, or the length of the file.
pub(crate) fn find_seq(file: &Arc<dyn StorageFile>, path: &Path, seq: u64) -> Result<u64> {
    let len = file.len().context("cannot read the trail", path)?;
    // Every readable record before `low` has a smaller seq, and the record at
    // `best` (or the end) does not.
    let (mut low, mut high, mut best) = (0, len, len);
    let mut seqs = [None, None];
    let mut passed = 0..0;
    let mut probes = 0;
    while high - low > NEAR {
        let middle = probe_at(low..high, seqs, seq, probes);
        probes += 1;
        let start = line_after_within(file, path, middle, &passed)?;
        passed = middle..start;
        let mut reader =
            TrailReader::forwards(Arc::clone(file), path, start, PEEK_BUFFER, Sums::Check);
        match next_seq(&mut reader)? {
            Some(found) if found.seq < seq => {
                low = found.line;
                seqs[0] = Some(found.seq);
            }
            Some(found) => {
                best = found.line;
                high = middle;
                seqs[1] = Some(found.seq);
            }
            None => high = middle,
        }
    }
    let mut reader = TrailReader::forwards(Arc::clone(file), path, low, PEEK_BUFFER, Sums::Check);
    while let Some(found) = next_seq(&mut reader)? {
        if found.seq >= seq {
            return Ok(found.line);
        }
        if found.line > high {
            break;
        }
    }
    Ok(best)
}

/// Returns where to probe next. Records have similar lengths, so the numbers at both ends
/// suggest where it is; every other time the middle is used, so that any file is halved.
fn probe_at(place: Range<u64>, seqs: [Option<u64>; 2], seq: u64, probes: u32) -> u64 {
    let len = place.end - place.start;
    let middle = place.start + len / 2;
    let [Some(first), Some(last)] = seqs else {
        return middle;
    };
    if probes % 2 == 1 || last <= first {
        return middle;
    }
    let share = seq.saturating_sub(first) as f64 / (last - first) as f64;
    let guess = place.start + (len as f64 * share) as u64;
    // A little before the guess, so that the record follows closely.
    guess
        .saturating_sub(NEAR / 4)
        .clamp(place.start + len / 64 + 1, place.end - len / 64 - 1)
}

struct Probe {
    seq: u64,
    /// Where the line of the record begins.
    line: u64,
}

fn next_seq(reader: &mut TrailReader) -> Result<Option<Probe>> {
    let Some(seq) = reader.next_record()?.map(|record| record.seq()) else {
        return Ok(None);
    };
    let line = reader.last_line().map_or(0, |(start, ..)| start);
    Ok(Some(Probe { seq, line }))
}

/// Returns where the first line after `offset` begins, or the end of the file.
pub(crate) fn line_after(file: &Arc<dyn StorageFile>, path: &Path, offset: u64) -> Result<u64> {
    line_after_within(file, path, offset, &(offset..offset))
}

/// As [`line_after`], where `passed` is known to be the rest of one line, so that a line
/// of any length is read once, however many probes land in it.
fn line_after_within(
    file: &Arc<dyn StorageFile>,
    path: &Path,
    offset: u64,
    passed: &Range<u64>,
) -> Result<u64> {
    let mut buffer = vec![0; PEEK_BUFFER];
    let mut at = offset;
    loop {
        if passed.contains(&at) {
            return Ok(passed.end);
        }
        let n = read_full(file.as_ref(), &mut buffer, at).context("cannot read the trail", path)?;
        if let Some(newline) = memchr::memchr(b'\n', &buffer[..n]) {
            return Ok(at + newline as u64 + 1);
        }
        at += n as u64;
        if n < buffer.len() {
            return Ok(at);
        }
        if buffer.len() < STREAM_BUFFER {
            buffer = vec![0; buffer.len() * 2];
        }
    }
}
