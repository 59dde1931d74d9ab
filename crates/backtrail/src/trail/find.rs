//! Finds a record by its seq, by bisection over the file's bytes.
//!
//! Seq grows within a trail. Damage is stepped over: a probe that lands in it
//! takes the next record that can be read.

use std::path::Path;
use std::sync::Arc;

use super::lines::{Forwards, PEEK_BUFFER};
use super::reader::TrailReader;
use super::record::Sums;
use crate::error::{Error, Result};
use crate::storage::StorageFile;

/// Below this many bytes, reading on is cheaper than another probe.
const NEAR: u64 = 32 << 10;

/// Returns where the line begins that holds the first record whose seq is at
/// least `seq`, or the length of the file.
pub(crate) fn find_seq(file: &Arc<dyn StorageFile>, path: &Path, seq: u64) -> Result<u64> {
    let len = file
        .len()
        .map_err(|error| Error::io("cannot read the trail", path, error))?;
    // Every readable record before `low` has a smaller seq, and the record at
    // `best` (or the end) has not.
    let (mut low, mut high, mut best) = (0, len, len);
    while high - low > NEAR {
        let middle = low + (high - low) / 2;
        let start = line_after(file, path, middle)?;
        let mut reader =
            TrailReader::forwards(Arc::clone(file), path, start, PEEK_BUFFER, Sums::Check);
        match next_seq(&mut reader)? {
            Some(found) if found.seq < seq => low = found.line,
            Some(found) => {
                best = found.line;
                high = middle;
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

struct Probe {
    seq: u64,
    /// Where the line begins that the record stands in.
    line: u64,
}

fn next_seq(reader: &mut TrailReader) -> Result<Option<Probe>> {
    let Some(seq) = reader.next_record()?.map(|record| record.seq()) else {
        return Ok(None);
    };
    let line = reader.last_line().map_or(0, |(start, ..)| start);
    Ok(Some(Probe { seq, line }))
}

/// Returns where the line ends that `offset` lies in, its newline included.
pub(crate) fn line_after(file: &Arc<dyn StorageFile>, path: &Path, offset: u64) -> Result<u64> {
    let mut lines = Forwards::new(Arc::clone(file), offset, PEEK_BUFFER);
    let line = lines
        .next()
        .map_err(|error| Error::io("cannot read the trail", path, error))?;
    Ok(line.map_or(offset, |line| line.end()))
}
