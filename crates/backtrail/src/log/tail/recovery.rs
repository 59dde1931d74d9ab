//! What a tail does when its end is not whole.
//!
//! The last line may be unfinished: its writer died. It may be blank or garbage:
//! the machine died. Either is copied to a file beside the trail, synced, and cut
//! off; what only lacks its newline gets one. A trail in which nothing can be read
//! gets an opener again.

use std::path::Path;
use std::sync::Arc;

use super::super::chain::{Segment, continues_at};
use super::super::present::present_at;
use super::{SetAside, Tail};
use crate::error::{Error, Reason, Result};
use crate::storage::{StorageFile, append_all, read_full};
use crate::trail::lines::Backwards;
use crate::trail::opener::{Because, Opener};
use crate::trail::reader::{Found, TrailReader};
use crate::trail::record::{MAX_WRITTEN, Position};
use crate::trail::{Damage, Sums};

/// How far from the end of a trail its numbers are looked at: what one read
/// brings anyway.
const NEAR_END: u64 = 32 << 10;
/// No record is shorter than this.
const SHORTEST_RECORD: u64 = 128;

impl Tail {
    /// Finds the last record from the end of the file.
    pub(super) fn reload(&mut self) -> Result<()> {
        let len = self.file_len()?;
        let end = End::of(&self.file, &self.path, len)?;
        let Some((position, whole)) = end.last else {
            return self.begin_again(len, &end);
        };
        self.position = position;
        self.len = if end.ended {
            len
        } else {
            self.mend(whole, len)?
        };
        Ok(())
    }

    /// Ends the file with a whole line again: what comes after the last newline
    /// (or after a record that only lacks its newline) is set aside.
    pub(super) fn mend(&mut self, last_record: u64, len: u64) -> Result<u64> {
        let line = self.start_of_last_line(len)?;
        // A record on the unfinished line is whole by its sum: it stays, and
        // gets the newline that it lacks.
        let keep = if last_record > line {
            last_record
        } else {
            line
        };
        if keep < len {
            self.cut(keep, len)?;
        }
        if keep == line {
            return Ok(keep);
        }
        append_all(self.file.as_ref(), b"\n")
            .map_err(|error| Error::io("cannot end the trail's last line", &self.path, error))?;
        Ok(keep + 1)
    }

    fn start_of_last_line(&self, len: u64) -> Result<u64> {
        let mut lines = Backwards::new(Arc::clone(&self.file), len);
        let line = lines
            .next()
            .map_err(|error| Error::io("cannot read the trail", &self.path, error))?;
        Ok(line.map_or(0, |line| line.offset))
    }

    /// Sets the bytes from `from` to `len` aside, then cuts them off.
    fn cut(&mut self, from: u64, len: u64) -> Result<()> {
        let torn = self.is_one_torn_record(from, len)?;
        let mut given = None;
        if !torn {
            // Records may have been there that somebody was told about: none of
            // their numbers, however many fit in, is given to another.
            let most = (len - from) / SHORTEST_RECORD + 1;
            self.position.seq = self.position.seq.saturating_add(most);
            given = Some(self.position.seq);
        }
        let source = self.file.as_ref();
        let file = self.files.set_aside(self.trail, source, from..len, given)?;
        self.file
            .truncate(from)
            .map_err(|error| Error::io("cannot cut off an unfinished line", &self.path, error))?;
        self.set_aside.push(SetAside {
            trail: self.path.clone(),
            byte: from,
            bytes: len - from,
            never_acknowledged: torn,
            file,
        });
        Ok(())
    }

    /// Returns whether an unfinished end is what a writer leaves that dies while
    /// it writes: the beginning of one record, and nothing else.
    fn is_one_torn_record(&self, from: u64, len: u64) -> Result<bool> {
        const BEGIN: &[u8] = b"{\"type\":\"";
        if len - from > MAX_WRITTEN as u64 {
            return Ok(false);
        }
        let mut bytes = vec![0; (len - from) as usize];
        let n = read_full(self.file.as_ref(), &mut bytes, from)
            .map_err(|error| Error::io("cannot read the trail", &self.path, error))?;
        let bytes = &bytes[..n];
        let begins = bytes.starts_with(BEGIN) || BEGIN.starts_with(bytes);
        Ok(begins && memchr::memchr(0, bytes).is_none())
    }

    /// Gives a trail in which nothing can be read an opener again.
    fn begin_again(&mut self, len: u64, end: &End) -> Result<()> {
        let before = self.position_before()?;
        let last = before.as_ref().map_or(0, |(_, position)| position.seq);
        // Known before the cut, which keeps the numbers that it leaves out.
        self.position.seq = last.saturating_add(end.lost);
        self.len = len;
        if !end.ended {
            let line = self.start_of_last_line(len)?;
            self.cut(line, len)?;
            self.len = line;
        }
        let mut opener = Opener {
            seq: self.position.seq,
            ..self
                .files
                .opener(self.trail, Because::Repair, self.store.now())
        };
        if let Some((trail, position)) = before {
            opener.continues = Some(continues_at(self.files.id(), trail, &position));
            opener.compacted = position.compacted;
            opener.present = present_at(&self.store, &self.files, trail, &position)?;
        }
        let mut line = Vec::new();
        self.position.sum = opener.write(&mut line)?;
        self.position.compacted = opener.compacted;
        self.write(&line)?;
        self.sync()
    }

    /// Returns the nearest trail below in which anything can be read, and its end.
    fn position_before(&self) -> Result<Option<(u32, Position)>> {
        for below in self.files.trails()?.into_iter().rev() {
            if below < self.trail
                && let Some(position) = self.end_of(below)?
            {
                return Ok(Some((below, position)));
            }
        }
        Ok(None)
    }

    /// Returns the position after the last record of a trail.
    fn end_of(&self, trail: u32) -> Result<Option<Position>> {
        let segment = Segment::open(&self.files, trail, u64::MAX)?;
        if segment.is_legacy() {
            return segment.last_position();
        }
        let file = segment.file()?;
        let len = file
            .len()
            .map_err(|error| Error::io("cannot read the trail", &segment.path, error))?;
        let end = End::of(&file, &segment.path, len)?;
        Ok(end.last.map(|(position, _)| position))
    }
}

/// Returns how many records a damaged line may have held: one, if it still looks
/// like one; else as many as fit in.
pub(super) fn numbers_in(damage: &Damage) -> u64 {
    match damage.reason {
        Reason::BadSum | Reason::MissingSum => 1,
        _ => damage.bytes / SHORTEST_RECORD + 1,
    }
}

/// What the end of a trail looks like.
struct End {
    /// The position after the last record, and where that record ends. Its seq
    /// counts lines that are lost behind it.
    last: Option<(Position, u64)>,
    /// How many records may be lost behind the last one.
    lost: u64,
    /// Whether the last line ends in a newline.
    ended: bool,
}

impl End {
    /// Looks at the end of a trail. A little more than the last record is looked
    /// at: lines that stand there twice must not make a number be given twice.
    fn of(file: &Arc<dyn StorageFile>, path: &Path, len: u64) -> Result<Self> {
        let mut reader = TrailReader::backwards(Arc::clone(file), path, len, Sums::Check);
        let mut end = Self {
            last: None,
            lost: 0,
            ended: true,
        };
        let mut highest = 0;
        while let Some(found) = reader.advance()? {
            let line_ended = reader.last_line().is_none_or(|(.., ended)| ended);
            end.ended &= line_ended;
            match found {
                Found::Damage(damage) if end.last.is_none() && line_ended => {
                    end.lost = end.lost.saturating_add(numbers_in(&damage));
                }
                Found::Damage(_) => {}
                Found::Record => {
                    let record = reader.record();
                    highest = highest.max(record.seq());
                    let place = reader.place();
                    end.last
                        .get_or_insert((Position::after(&record), place.end));
                    if place.start + NEAR_END < len {
                        break;
                    }
                }
            }
        }
        if let Some((position, _)) = &mut end.last {
            position.seq = highest.saturating_add(end.lost);
        }
        Ok(end)
    }
}
