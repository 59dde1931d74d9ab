//! The lines of a file, one at a time, in memory that does not grow with the file.

use std::borrow::Cow;

use crate::error::Result;
use crate::source::Source;

/// The longest line that is read. A longer one is passed over and told as damage.
pub const MAX_LINE: usize = 256 << 20;

/// How much is read at once.
const BUFFER: usize = 256 << 10;

/// Goes through the lines of a file.
///
/// Blank lines are passed over. A line that a crash filled with NUL bytes is told without
/// them, and marked.
#[derive(Debug)]
pub struct Lines<'s> {
    source: &'s Source,
    buffer: Vec<u8>,
    /// What of the buffer is not told yet.
    start: usize,
    end: usize,
    /// Where in the file the buffer begins.
    offset: u64,
    number: u64,
    blank_to: u64,
    /// The longest line that is read.
    longest: usize,
}

/// A line of a file.
#[derive(Debug)]
pub struct Line<'l> {
    /// Its number, from 1.
    pub number: u64,
    /// Where it begins in the file, and where the next one does.
    pub place: std::ops::Range<u64>,
    /// What it says, without the line break and without NUL bytes around it. Empty where
    /// the line is too long.
    pub bytes: &'l [u8],
    /// Whether NUL bytes were around it.
    pub nulls: bool,
    /// Whether it is longer than [`MAX_LINE`].
    pub too_long: bool,
    /// Whether it ends in a line break. The last line of a file that is being written may
    /// not, and may be half a line.
    pub ended: bool,
}

impl<'l> Line<'l> {
    /// Returns the line as text. A byte that is no UTF-8 shows as U+FFFD.
    pub fn text(&self) -> Cow<'l, str> {
        // Nearly all lines are UTF-8, and finding that out is far quicker than repairing.
        match std::str::from_utf8(self.bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(self.bytes),
        }
    }
}

impl<'s> Lines<'s> {
    /// Goes through the lines of `source` from the byte `from` on, behind `number` lines that
    /// were read. Where the last of them had no line break then, what is left of it is it
    /// still.
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
        }
    }

    /// Reads no line that is longer than this.
    #[cfg(test)]
    fn up_to(mut self, longest: usize) -> Self {
        self.longest = longest;
        self
    }

    /// Returns how many lines were passed by now.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns where the last blank line ended.
    pub(crate) fn blank_to(&self) -> u64 {
        self.blank_to
    }

    /// Returns the next line that is not blank.
    #[expect(clippy::should_implement_trait, reason = "a line is lent")]
    pub fn next(&mut self) -> Result<Option<Line<'_>>> {
        loop {
            let Some(found) = self.find()? else {
                return Ok(None);
            };
            let bytes = &self.buffer[found.range.clone()];
            let trimmed = trim(bytes);
            let nulls = memchr::memchr(0, bytes).is_some() && trimmed.len() < bytes.len();
            if trimmed.is_empty() && !nulls && !found.too_long {
                if found.ended {
                    self.blank_to = found.place.end;
                } else if self.source.begins_line(found.place.start) {
                    // It is no line yet.
                    self.number -= 1;
                }
                continue;
            }
            let from = found.range.start + (trimmed.as_ptr() as usize - bytes.as_ptr() as usize);
            let range = from..from + trimmed.len();
            return Ok(Some(Line {
                number: self.number,
                place: found.place,
                bytes: &self.buffer[range],
                nulls,
                too_long: found.too_long,
                ended: found.ended,
            }));
        }
    }

    /// Finds the next line, blank or not.
    fn find(&mut self) -> Result<Option<Found>> {
        let mut searched = self.start;
        loop {
            let window = &self.buffer[searched..self.end];
            if let Some(at) = memchr::memchr(b'\n', window) {
                let end = searched + at;
                return Ok(Some(self.found(end, end + 1, true)));
            }
            searched = self.end - self.start;
            if searched > self.longest {
                return self.pass_over().map(Some);
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

    /// Moves what is left to the front of the buffer, and makes it longer where it is full.
    fn make_room(&mut self) {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.offset += self.start as u64;
            self.end -= self.start;
            self.start = 0;
        }
        // A buffer that one long line swelled is not kept.
        if self.end < BUFFER / 2 && self.buffer.len() > 4 * BUFFER {
            self.buffer.truncate(BUFFER);
            self.buffer.shrink_to_fit();
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
    }

    fn found(&mut self, end: usize, next: usize, ended: bool) -> Found {
        let range = self.start..end;
        let place = self.offset + self.start as u64..self.offset + next as u64;
        self.start = next;
        self.number += 1;
        // A buffer may hold more than that by the time its end is found.
        let too_long = range.len() > self.longest;
        Found {
            range: if too_long { 0..0 } else { range },
            place,
            too_long,
            ended,
        }
    }

    /// Passes over a line that is too long to be read.
    fn pass_over(&mut self) -> Result<Found> {
        let begin = self.offset + self.start as u64;
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
        Ok(Found {
            range: 0..0,
            place: begin..at,
            too_long: true,
            ended,
        })
    }
}

/// Returns how large a buffer is to begin with: no larger than a short file needs, with
/// room left to see that it ends.
fn room_for(bytes: u64) -> usize {
    usize::try_from(bytes.saturating_add(1)).map_or(BUFFER, |bytes| bytes.min(BUFFER))
}

struct Found {
    range: std::ops::Range<usize>,
    place: std::ops::Range<u64>,
    too_long: bool,
    ended: bool,
}

/// Takes blanks and NUL bytes away at both ends, and a byte order mark at the beginning.
pub(crate) fn trim(bytes: &[u8]) -> &[u8] {
    let is_blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0;
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let Some(first) = bytes.iter().position(|byte| !is_blank(byte)) else {
        return &bytes[..0];
    };
    let last = bytes.iter().rposition(|byte| !is_blank(byte));
    &bytes[first..=last.unwrap_or(first)]
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
