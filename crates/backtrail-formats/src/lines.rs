//! The lines of a file, one at a time, in memory that does not grow with the file.

use std::borrow::Cow;
use std::ops::Range;

use crate::error::Result;
use crate::source::{Source, lossy_text, trim};

/// The longest line that is read. A longer one is skipped and reported as damaged.
pub const MAX_LINE: usize = 256 << 20;

/// How much is read at a time.
const BUFFER: usize = 256 << 10;

/// Iterates over the lines of a file.
///
/// Blank lines are skipped. A line that a crash surrounded with NUL bytes is returned without
/// them, and marked.
#[derive(Debug)]
pub struct Lines<'s> {
    source: &'s Source,
    buffer: Vec<u8>,
    /// The part of the buffer that was not returned yet.
    start: usize,
    end: usize,
    /// Where in the file the buffer starts.
    offset: u64,
    number: u64,
    blank_to: u64,
    /// The longest line that is read.
    longest: usize,
    current: Option<LinePlace>,
}

/// A line of a file.
#[derive(Debug)]
pub struct Line<'l> {
    /// The line's number, from 1.
    pub number: u64,
    /// Where the line starts in the file and where the next one does.
    pub range: Range<u64>,
    /// The line without its line break and surrounding NUL bytes. Empty if it is too long.
    pub bytes: &'l [u8],
    /// Whether it was surrounded by NUL bytes.
    pub nulls: bool,
    /// Whether it is longer than [`MAX_LINE`].
    pub too_long: bool,
    /// Whether it ends in a line break. The last line of a file that is being written may
    /// not, and may be incomplete.
    pub ended: bool,
}

impl<'l> Line<'l> {
    /// Returns the line as text. Invalid UTF-8 shows as U+FFFD.
    pub fn text(&self) -> Cow<'l, str> {
        lossy_text(self.bytes)
    }
}

impl<'s> Lines<'s> {
    /// Iterates over the lines of `source` from the byte `from`, after `number` lines that
    /// were read before. If the last of them had no line break then, its rest keeps its
    /// number.
    pub fn new(source: &'s Source, from: u64, number: u64) -> Self {
        let within = from < source.len() && !source.begins_line(from);
        let number = number.saturating_sub(u64::from(within));
        Self {
            source,
            buffer: vec![0; room_for(source.len().saturating_sub(from))],
            start: 0,
            end: 0,
            offset: from,
            number,
            blank_to: from,
            longest: MAX_LINE,
            current: None,
        }
    }

    /// Skips lines that are longer than this.
    #[cfg(test)]
    fn up_to(mut self, longest: usize) -> Self {
        self.longest = longest;
        self
    }

    /// Returns whether each line is known to be a JSON object.
    pub(crate) fn are_checked(&self) -> bool {
        self.source.has_checked_lines()
    }

    /// Returns how many lines there were so far.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns where the last blank line ended.
    pub(crate) fn blank_to(&self) -> u64 {
        self.blank_to
    }

    /// Returns the next line that is not blank.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read.
    #[expect(clippy::should_implement_trait, reason = "the line is borrowed")]
    pub fn next(&mut self) -> Result<Option<Line<'_>>> {
        self.current = loop {
            let Some(mut found) = self.find()? else {
                break None;
            };
            let bytes = &self.buffer[found.buffered.clone()];
            let trimmed = trim(bytes);
            found.nulls = memchr::memchr(0, bytes).is_some() && trimmed.len() < bytes.len();
            if trimmed.is_empty() && !found.nulls && !found.too_long {
                if found.ended {
                    self.blank_to = found.range.end;
                } else if self.source.begins_line(found.range.start) {
                    // It is not a line yet.
                    self.number -= 1;
                }
                continue;
            }
            let skipped = trimmed.as_ptr() as usize - bytes.as_ptr() as usize;
            let from = found.buffered.start + skipped;
            found.buffered = from..from + trimmed.len();
            break Some(found);
        };
        Ok(self.current())
    }

    /// Returns the line that [`next`](Self::next) returned last.
    pub(crate) fn current(&self) -> Option<Line<'_>> {
        let found = self.current.as_ref()?;
        Some(Line {
            number: self.number,
            range: found.range.clone(),
            bytes: &self.buffer[found.buffered.clone()],
            nulls: found.nulls,
            too_long: found.too_long,
            ended: found.ended,
        })
    }

    /// Returns where the bytes of that line start in the file.
    pub(crate) fn current_start(&self) -> u64 {
        let found = self.current.as_ref();
        self.offset + found.map_or(0, |found| found.buffered.start as u64)
    }

    /// Finds the next line, blank or not.
    fn find(&mut self) -> Result<Option<LinePlace>> {
        let mut searched = self.start;
        loop {
            let window = &self.buffer[searched..self.end];
            if let Some(at) = memchr::memchr(b'\n', window) {
                let end = searched + at;
                return Ok(Some(self.found(end, end + 1, true)));
            }
            searched = self.end - self.start;
            if searched > self.longest {
                return self.skip_long_line().map(Some);
            }
            self.make_room();
            let at = self.offset + (self.end as u64);
            let n = self.source.read_at(&mut self.buffer[self.end..], at)?;
            self.end += n;
            if n == 0 {
                if self.start == self.end {
                    return Ok(None);
                }
                return Ok(Some(self.found(self.end, self.end, false)));
            }
        }
    }

    /// Moves the rest to the front of the buffer, and extends the buffer if it is full.
    fn make_room(&mut self) {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.offset += self.start as u64;
            self.end -= self.start;
            self.start = 0;
        }
        // One long line must not keep the buffer large.
        if self.end < BUFFER / 2 && self.buffer.len() > 4 * BUFFER {
            self.buffer.truncate(BUFFER);
            self.buffer.shrink_to_fit();
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
    }

    fn found(&mut self, end: usize, next: usize, ended: bool) -> LinePlace {
        let buffered = self.start..end;
        let range = self.offset + self.start as u64..self.offset + next as u64;
        self.start = next;
        self.number += 1;
        // The buffer may hold more than that when the end of the line is found.
        let too_long = buffered.len() > self.longest;
        LinePlace {
            buffered: if too_long { 0..0 } else { buffered },
            range,
            nulls: false,
            too_long,
            ended,
        }
    }

    /// Skips a line that is too long to be read.
    fn skip_long_line(&mut self) -> Result<LinePlace> {
        let start = self.offset + self.start as u64;
        let mut at = self.offset + self.end as u64;
        self.buffer.truncate(BUFFER);
        self.buffer.shrink_to_fit();
        let ended = loop {
            let n = self.source.read_at(&mut self.buffer, at)?;
            if let Some(found) = memchr::memchr(b'\n', &self.buffer[..n]) {
                at += found as u64 + 1;
                break true;
            }
            at += n as u64;
            if n == 0 {
                break false;
            }
        };
        self.offset = at;
        self.start = 0;
        self.end = 0;
        self.number += 1;
        Ok(LinePlace {
            buffered: 0..0,
            range: start..at,
            nulls: false,
            too_long: true,
            ended,
        })
    }
}

/// Returns the initial size of the buffer: no larger than a short file needs, with room left
/// to notice its end.
fn room_for(bytes: u64) -> usize {
    usize::try_from(bytes.saturating_add(1)).map_or(BUFFER, |bytes| bytes.min(BUFFER))
}

/// Where a line is, in the buffer and in the file.
#[derive(Debug)]
struct LinePlace {
    buffered: Range<usize>,
    range: Range<u64>,
    nulls: bool,
    too_long: bool,
    ended: bool,
}

/// Returns the first line that is not blank, as text.
pub(crate) fn first_line(bytes: &[u8]) -> Cow<'_, str> {
    let mut lines = bytes.split(|byte| *byte == b'\n').map(trim);
    let line = lines.find(|line| !line.is_empty());
    String::from_utf8_lossy(line.unwrap_or_default())
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
