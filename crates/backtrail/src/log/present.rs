//! A log's metadata (title, tags and so on) at a position.

use super::chain::{Segment, Walk};
use super::directory::LogDir;
use super::reader::LogReader;
use crate::error::Result;
use crate::store::Store;
use crate::trail::present::Present;
use crate::trail::record::Position;
use crate::trail::{RecordKind, Sums};

/// Returns the metadata of a session at a position in one of its trails: from the newest
/// note there, otherwise from the opener; if that is lost, from the trail that it
/// continues.
pub(crate) fn present_at(
    store: &Store,
    files: &LogDir,
    trail: u32,
    position: &Position,
) -> Result<Present> {
    let mut walk = Walk::new(store, files, trail);
    let mut noted = position.noted;
    let Some(mut segment) = walk.next()? else {
        return Ok(Present::default());
    };
    loop {
        if let Some(seq) = noted
            && let Some(present) = read_note(&segment, seq)?
        {
            return Ok(present);
        }
        if let Some(opener) = segment.opener {
            return Ok(opener.present);
        }
        // The opener is lost: use the trail before it.
        match walk.next()? {
            Some(before) => segment = before,
            None => return Ok(Present::default()),
        }
        noted = segment.last_position()?.and_then(|position| position.noted);
    }
}

impl LogReader {
    /// Returns the metadata of the session before record `seq` of its line of history;
    /// with 0, when it was created.
    pub(crate) fn present_before(&self, seq: u64) -> Result<Present> {
        let mut walk = self.walk()?;
        let mut holder = None;
        while let Some(segment) = walk.next()? {
            let is_found = segment.after().is_some_and(|after| after < seq);
            holder = Some(segment);
            if is_found {
                break;
            }
        }
        let Some(segment) = holder else {
            return Ok(Present::default());
        };
        let record = segment.find(seq)?;
        let noted = record.and_then(|record| record.as_ref().noted());
        let note = noted.map(|noted| read_note(&segment, noted)).transpose()?;
        let opener = segment.opener.map(|opener| opener.present);
        Ok(note.flatten().or(opener).unwrap_or_default())
    }
}

/// Reads the note `seq`, or the newest readable one before it.
fn read_note(segment: &Segment, seq: u64) -> Result<Option<Present>> {
    if let Some(note) = segment.find(seq)? {
        return Ok(note.as_ref().parse().ok());
    }
    let mut before = segment.clone();
    before.until = seq;
    let mut reader = before.backwards(Sums::Check)?;
    while let Some(record) = reader.next_record()? {
        if record.seq() < seq && record.kind() == RecordKind::Note {
            return Ok(record.parse().ok());
        }
    }
    Ok(None)
}
