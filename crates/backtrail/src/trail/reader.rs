//! Reads the records of one trail, forwards or backwards, and skips damage.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::damage::Damage;
use super::envelope::Envelope;
use super::foreign::ForeignRecords;
use super::lines::{Backwards, Ending, Forwards, Line};
use super::record::{MAX_READ, PayloadSource, RecordRef, Sums, check_line};
use super::salvage::{Piece, take_apart};
use crate::error::{IoContext, Reason, Result};
use crate::storage::StorageFile;

/// An item of a trail: a record or damage.
#[derive(Debug)]
pub(crate) enum Found {
    /// A record; [`TrailReader::record`] returns it.
    Record,
    Damage(Damage),
}

/// The source of a reader's lines.
#[derive(Debug)]
enum Lines {
    Forwards(Forwards),
    Backwards(Backwards),
    /// The records of another format, in either direction.
    Foreign(Box<dyn ForeignRecords>),
}

impl Lines {
    fn next(&mut self) -> io::Result<Option<Line>> {
        match self {
            Self::Forwards(lines) => lines.next(),
            Self::Backwards(lines) => lines.next(),
            Self::Foreign(_) => Ok(None),
        }
    }

    fn bytes(&self, line: &Line) -> &[u8] {
        match self {
            Self::Forwards(lines) => lines.bytes(line),
            Self::Backwards(lines) => lines.bytes(line),
            Self::Foreign(records) => records.bytes(),
        }
    }
}

/// Reads the records of one trail.
#[derive(Debug)]
pub(crate) struct TrailReader {
    path: PathBuf,
    lines: Lines,
    sums: Sums,
    /// The number of the last line, if known.
    line_number: Option<u64>,
    line: Option<Line>,
    /// The remaining pieces of a damaged line, last piece first.
    pieces: Vec<Piece>,
    /// Whether the current line was read a second time.
    reread: bool,
    /// The place of the last item in the file.
    place: Range<u64>,
    /// The last record, by its place in the line.
    record: Option<(Range<usize>, Envelope)>,
    /// The source of the large parts of messages.
    payloads: Option<Arc<dyn PayloadSource>>,
}

impl TrailReader {
    /// Reads forwards from `offset`, the beginning of a line.
    pub(crate) fn forwards(
        file: Arc<dyn StorageFile>,
        path: &Path,
        offset: u64,
        buffer: usize,
        sums: Sums,
    ) -> Self {
        let lines = Lines::Forwards(Forwards::new(file, offset, buffer));
        let line_number = (offset == 0).then_some(0);
        Self::new(path, lines, line_number, sums)
    }

    /// Reads backwards from `end`, the end of a line or of the file.
    pub(crate) fn backwards(file: Arc<dyn StorageFile>, path: &Path, end: u64, sums: Sums) -> Self {
        Self::new(
            path,
            Lines::Backwards(Backwards::new(file, end)),
            None,
            sums,
        )
    }

    /// Reads the records of a file of another format.
    pub(crate) fn foreign(path: &Path, records: impl ForeignRecords + 'static) -> Self {
        Self::new(path, Lines::Foreign(Box::new(records)), None, Sums::Check)
    }

    fn new(path: &Path, lines: Lines, line_number: Option<u64>, sums: Sums) -> Self {
        Self {
            path: path.to_owned(),
            lines,
            sums,
            line_number,
            line: None,
            pieces: Vec::new(),
            reread: false,
            place: 0..0,
            record: None,
            payloads: None,
        }
    }

    /// Sets the source of the large parts of messages.
    #[must_use]
    pub(crate) fn with_payloads(mut self, payloads: Arc<dyn PayloadSource>) -> Self {
        self.payloads = Some(payloads);
        self
    }

    /// Returns the place of the last item in the file.
    pub(crate) fn place(&self) -> Range<u64> {
        self.place.clone()
    }

    /// Describes damage at the place of the last item.
    pub(crate) fn damage_here(&self, reason: Reason) -> Damage {
        Damage {
            file: self.path.clone(),
            line: self.line_number,
            byte: self.place.start,
            bytes: self.place.end - self.place.start,
            reason,
        }
    }

    /// Returns the last line that was read: its beginning, its end, and whether it ends with a
    /// newline.
    pub(crate) fn last_line(&self) -> Option<(u64, u64, bool)> {
        self.line
            .as_ref()
            .map(|line| (line.offset, line.end(), line.terminated))
    }

    /// Continues at `offset` and discards what was read, for a file that grew.
    pub(crate) fn seek(&mut self, offset: u64) {
        if let Lines::Forwards(lines) = &mut self.lines {
            lines.seek(offset);
            self.line = None;
            self.pieces.clear();
        }
    }

    /// Returns the record that [`advance`](Self::advance) found last.
    pub(crate) fn record(&self) -> RecordRef<'_> {
        let (range, envelope) = self.record.clone().expect("advance found a record");
        let line = self.line.as_ref().expect("every record is in a line");
        let bytes = &self.lines.bytes(line)[range];
        RecordRef::new(bytes, envelope, self.payloads.as_ref())
    }

    /// Advances to the next record, skipping damage.
    pub(crate) fn next_record(&mut self) -> Result<Option<RecordRef<'_>>> {
        loop {
            match self.advance()? {
                Some(Found::Damage(_)) => {}
                Some(Found::Record) => return Ok(Some(self.record())),
                None => return Ok(None),
            }
        }
    }

    /// Advances to the next record or damage; `None` at the end.
    pub(crate) fn advance(&mut self) -> Result<Option<Found>> {
        if let Lines::Foreign(records) = &mut self.lines {
            let Some(entry) = records.next(&self.path)? else {
                return Ok(None);
            };
            // Shorter than its place if the file was cut since it was indexed.
            let len = records.bytes().len();
            self.line = Some(Line::filling(entry.place.start, len));
            self.line_number = entry.line;
            self.place = entry.place;
            return Ok(Some(match entry.content {
                Ok(envelope) => {
                    self.record = Some((0..len, envelope));
                    Found::Record
                }
                Err(reason) => Found::Damage(self.damage_here(reason)),
            }));
        }
        loop {
            if let Some(piece) = self.pieces.pop() {
                return Ok(Some(self.take_piece(piece)));
            }
            if self.is_at_unfinished_end() {
                return Ok(None);
            }
            let line = self
                .lines
                .next()
                .context("cannot read the trail", &self.path)?;
            let Some(line) = line else {
                return Ok(None);
            };
            if let Some(number) = &mut self.line_number
                && !self.reread
            {
                *number += 1;
            }
            let look = self
                .look(&line)
                .context("cannot read the trail", &self.path)?;
            self.line = Some(line);
            match look {
                Look::Blank => {}
                Look::Again(offset) => {
                    self.reread = true;
                    if let Lines::Forwards(lines) = &mut self.lines {
                        lines.seek(offset);
                    }
                    continue;
                }
                Look::Found(found) => {
                    self.reread = false;
                    return Ok(Some(found));
                }
                Look::Pieces(mut pieces) => {
                    if matches!(self.lines, Lines::Forwards(_)) {
                        pieces.reverse();
                    }
                    self.pieces = pieces;
                }
            }
            self.reread = false;
        }
    }

    /// Returns whether the last line had no newline. Bytes that are written after it
    /// meanwhile are the rest of that line, not a new one.
    fn is_at_unfinished_end(&self) -> bool {
        matches!(self.lines, Lines::Forwards(_))
            && !self.reread
            && self.line.as_ref().is_some_and(|line| !line.terminated)
    }

    fn look(&mut self, line: &Line) -> io::Result<Look> {
        if line.len > MAX_READ as u64 {
            let reason = Reason::TooLong {
                bytes: line.len,
                limit: MAX_READ as u64,
            };
            let place = line.offset..line.offset + line.len;
            return Ok(Look::Found(self.damage(place, reason)));
        }
        let all = self.lines.bytes(line);
        let bytes = trim(all);
        if bytes.is_empty() {
            return Ok(Look::Blank);
        }
        // Without a newline the end is uncertain, even if the reader trusts sums.
        let sums = if line.terminated {
            self.sums
        } else {
            Sums::Check
        };
        let reason = match check_line(bytes, sums) {
            Ok(envelope) => {
                let len = bytes.len();
                self.place = line.offset..line.offset + len as u64;
                self.record = Some((0..len, envelope));
                return Ok(Look::Found(Found::Record));
            }
            Err(reason) => reason,
        };
        // A writer that removes a line and writes another can leave half of each in the
        // buffer: before this counts as damage, the line is read again.
        if !self.reread
            && let Lines::Forwards(lines) = &self.lines
            && lines.has_changed(line)?
        {
            return Ok(Look::Again(line.offset));
        }
        let (ending, reason) = if line.terminated {
            (Ending::Newline, reason)
        } else {
            (Ending::Missing, Reason::Unfinished)
        };
        Ok(Look::Pieces(take_apart(bytes, ending, reason)))
    }

    fn take_piece(&mut self, piece: Piece) -> Found {
        let offset = self.line.as_ref().map_or(0, |line| line.offset);
        let place = offset + piece.range.start as u64..offset + piece.range.end as u64;
        match piece.content {
            Err(reason) => self.damage(place, reason),
            Ok(envelope) => {
                self.place = place;
                self.record = Some((piece.range, envelope));
                Found::Record
            }
        }
    }

    fn damage(&mut self, place: Range<u64>, reason: Reason) -> Found {
        self.place = place;
        Found::Damage(self.damage_here(reason))
    }
}

enum Look {
    Blank,
    Again(u64),
    Found(Found),
    Pieces(Vec<Piece>),
}

/// Trims what editors and other systems add at the end of a line.
fn trim(mut line: &[u8]) -> &[u8] {
    while let Some((b' ' | b'\r' | b'\t', rest)) = line.split_last() {
        line = rest;
    }
    line
}
