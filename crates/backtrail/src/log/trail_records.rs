//! The records of single trails, by their place in the file, for derived data.
//!
//! An index of a store reads every trail once, however many lines of history share it, and
//! continues from where it stopped.

use std::sync::Arc;

use super::chain::Segment;
use super::directory::LogDir;
use super::payloads::Payloads;
use super::version1::is_version_1;
use crate::error::{ErrorKind, Reason, Result};
use crate::ids::SessionId;
use crate::trail::lines::{PEEK_BUFFER, STREAM_BUFFER};
use crate::trail::reader::{Found, TrailReader};
use crate::trail::{DamageReport, Record, RecordRef, Sums};

/// A part of a line of history: the records of one trail up to a seq.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinePart {
    /// The session that owns the trail.
    pub session: SessionId,
    /// The trail.
    pub trail: u32,
    /// The last seq of it that is on the line; later ones may be on other lines.
    pub until: u64,
}

/// The records of one trail, returned one after another from a buffer, openers included.
#[derive(Debug)]
pub struct TrailRecords {
    reader: TrailReader,
    damage: DamageReport,
    is_version_1: bool,
}

/// A record, and its place in the file.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct TrailRecord<'a> {
    /// The record.
    pub record: RecordRef<'a>,
    /// The byte at which it begins.
    pub byte: u64,
    /// The end of its line, newline included: a later read continues there.
    pub end: u64,
    /// How many places before it could not be read, since reading began.
    pub damaged: u64,
}

impl TrailRecords {
    /// Returns the next record, or `None` at the end. Damage is skipped, and returned by
    /// [`damage`](Self::damage).
    ///
    /// # Errors
    ///
    /// Fails if the trail cannot be read.
    #[expect(
        clippy::should_implement_trait,
        reason = "the record borrows from the reader, which Iterator cannot express"
    )]
    pub fn next(&mut self) -> Result<Option<TrailRecord<'_>>> {
        loop {
            match self.reader.advance()? {
                None => return Ok(None),
                // A line that is being written does not count yet.
                Some(Found::Damage(damage)) if damage.reason == Reason::Unfinished => {}
                Some(Found::Damage(damage)) => self.damage.add(damage),
                Some(Found::Record) => break,
            }
        }
        let place = self.reader.place();
        let end = match self.reader.last_line() {
            Some((_, end, _)) if !self.is_version_1 => end,
            _ => place.end,
        };
        Ok(Some(TrailRecord {
            record: self.reader.record(),
            byte: place.start,
            end,
            damaged: self.damage.count(),
        }))
    }

    /// Returns whether it is a file of version 1, which never grows and can only be read from
    /// its beginning.
    pub fn is_version_1(&self) -> bool {
        self.is_version_1
    }

    /// Returns the damage that was skipped so far.
    pub fn damage(&self) -> &DamageReport {
        &self.damage
    }

    /// Reads a trail from byte `from` on.
    pub(crate) fn open(files: &LogDir, trail: u32, from: u64) -> Result<Self> {
        let segment = Segment::open(files, trail, u64::MAX)?;
        let is_version_1 = segment.is_version_1();
        let reader = if is_version_1 || from == 0 {
            segment.forwards(0, STREAM_BUFFER, Sums::Check)?
        } else {
            let file = segment.file()?;
            let reader =
                TrailReader::forwards(file, &segment.path, from, STREAM_BUFFER, Sums::Check);
            reader.with_payloads(Arc::new(segment.payloads()))
        };
        Ok(Self {
            reader,
            damage: DamageReport::default(),
            is_version_1,
        })
    }

    /// Returns whether a record with this sum ends at byte `end` of a trail.
    pub(crate) fn is_there(files: &LogDir, trail: u32, end: u64, sum: [u8; 8]) -> Result<bool> {
        let segment = Segment::open(files, trail, u64::MAX)?;
        let mut reader = if segment.is_version_1() {
            segment.backwards(Sums::Check)?
        } else {
            TrailReader::backwards(segment.file()?, &segment.path, end, Sums::Check)
        };
        let found = reader.next_record()?;
        Ok(found.is_some_and(|record| record.sum_bytes() == sum))
    }

    /// Reads record `seq` of a trail, which is expected at a given byte of the file.
    pub(crate) fn one(files: &LogDir, trail: u32, seq: u64, byte: u64) -> Result<Option<Record>> {
        if let Some(record) = Self::at_byte(files, trail, seq, byte)? {
            return Ok(Some(record));
        }
        // The trail was rewritten since, or is of version 1.
        Segment::open(files, trail, u64::MAX)?.find(seq)
    }

    /// Reads record `seq` if it begins at a given byte, without looking at the opener.
    fn at_byte(files: &LogDir, trail: u32, seq: u64, byte: u64) -> Result<Option<Record>> {
        let (path, file) = match files.find_trail(trail) {
            // A purge may have replaced it.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            found => found?,
        };
        if trail == 0 && is_version_1(files, &file)? {
            return Ok(None);
        }
        let mut reader = TrailReader::forwards(file, &path, byte, PEEK_BUFFER, Sums::Check)
            .with_payloads(Arc::new(Payloads::new(files)));
        let found = reader.next_record()?;
        let found = found.filter(|record| record.seq() == seq);
        Ok(found.map(|record| record.to_owned()))
    }
}
