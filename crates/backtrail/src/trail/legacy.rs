//! A version-1 file as the first trail of a session: its records, one after the
//! other, as if they had numbers.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::envelope::{Envelope, LegacyKind};
use crate::error::{Reason, Result};
use crate::legacy::{Form, Found, Index, Looked};
use crate::storage::StorageFile;

/// Reads the records of a version-1 file.
#[derive(Debug)]
pub(crate) struct LegacyLines {
    file: Arc<dyn StorageFile>,
    index: Arc<Index>,
    /// The seqs that are to come.
    coming: Range<u64>,
    direction: Direction,
    buffer: Vec<u8>,
    /// What else stands in the line that was looked at last.
    pending: Option<LegacyEntry>,
}

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Forwards,
    Backwards,
}

/// A record of a version-1 file, or what is wrong with it.
#[derive(Debug)]
pub(crate) struct LegacyEntry {
    pub(crate) place: Range<u64>,
    /// The line, where the file has lines.
    pub(crate) line: Option<u64>,
    pub(crate) content: Result<Envelope, Reason>,
}

impl LegacyLines {
    /// Reads the records whose seqs are in `seqs`.
    pub(crate) fn new(
        file: Arc<dyn StorageFile>,
        index: Arc<Index>,
        seqs: Range<u64>,
        direction: Direction,
    ) -> Self {
        let end = seqs.end.min(index.last_seq().saturating_add(1));
        Self {
            coming: seqs.start.max(1).min(end)..end,
            file,
            index,
            direction,
            buffer: Vec::new(),
            pending: None,
        }
    }

    /// Returns the bytes of the record that was handed out last.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// Returns the next record or damage; what says nothing of its own is passed
    /// over.
    pub(crate) fn next(&mut self, path: &Path) -> Result<Option<LegacyEntry>> {
        if let Some(pending) = self.pending.take() {
            return Ok(Some(pending));
        }
        loop {
            let next = match self.direction {
                Direction::Forwards => self.coming.next(),
                Direction::Backwards => self.coming.next_back(),
            };
            let Some(seq) = next else {
                return Ok(None);
            };
            if let Some(entry) = self.look(path, seq)? {
                return Ok(Some(entry));
            }
        }
    }

    fn look(&mut self, path: &Path, seq: u64) -> Result<Option<LegacyEntry>> {
        let Some(place) = self.index.place(seq) else {
            return Ok(None);
        };
        let file = self.file.as_ref();
        let loaded = self.index.load(file, path, seq, &mut self.buffer)?;
        let Looked { found, lost } = match loaded {
            Ok(()) => self.index.look(seq, &self.buffer),
            Err(reason) => Looked {
                found: Found::Damage(reason),
                lost: None,
            },
        };
        let content = self.content(found);
        let too_long = || Reason::TooLong {
            bytes: place.end - place.start,
            limit: u64::from(u32::MAX),
        };
        let line = (self.index.form == Form::Lines).then_some(seq);
        let lost = lost.map(|(bytes, reason)| LegacyEntry {
            line,
            content: Err(reason),
            place: place.start..place.start + bytes as u64,
        });
        let record = content.map(|content| LegacyEntry {
            line,
            content: content
                .and_then(|(kind, body)| Envelope::legacy(seq, kind, body).ok_or_else(too_long)),
            place: place.clone(),
        });
        Ok(self.in_order(lost, record))
    }

    /// Returns what a record is and where its message stands; `None` for what says
    /// nothing of its own.
    fn content(&self, found: Found<'_>) -> Option<Result<(LegacyKind, Range<usize>), Reason>> {
        match found {
            Found::Blank | Found::Meta(_) => None,
            Found::Damage(reason) => Some(Err(reason)),
            Found::Message { json } => {
                let start = json.as_ptr() as usize - self.buffer.as_ptr() as usize;
                Some(Ok((LegacyKind::Message, start..start + json.len())))
            }
            Found::Compaction(_) => Some(Ok((LegacyKind::Compaction, 0..0))),
            Found::Prompt { .. } | Found::Other { .. } => Some(Ok((LegacyKind::Other, 0..0))),
        }
    }

    /// Returns what comes first of a line: what is lost stands before its record.
    fn in_order(
        &mut self,
        lost: Option<LegacyEntry>,
        record: Option<LegacyEntry>,
    ) -> Option<LegacyEntry> {
        let (first, second) = match self.direction {
            Direction::Forwards => (lost, record),
            Direction::Backwards => (record, lost),
        };
        match first {
            Some(first) => {
                self.pending = second;
                Some(first)
            }
            None => second,
        }
    }
}
