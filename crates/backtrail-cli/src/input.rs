//! Lines of standard input as they come, and texts in files.

use std::io::{self, Read};
use std::path::Path;

use crate::error::{CommandError, Result};
use crate::text::size;

/// A line of the input.
#[derive(Debug)]
pub(crate) struct RawLine<'a> {
    /// Counted from 1.
    pub(crate) number: u64,
    pub(crate) len: u64,
    /// Its bytes without the newline, or the limit that it exceeds.
    pub(crate) bytes: std::result::Result<&'a [u8], u64>,
}

/// Reads lines without waiting for more than the next bytes, so that every line can be
/// answered before the next one is read.
#[derive(Debug)]
pub(crate) struct LineReader<R> {
    input: R,
    buffer: Vec<u8>,
    /// The part of the buffer that was not returned yet.
    start: usize,
    end: usize,
    /// There is no newline before this.
    searched: usize,
    number: u64,
    /// How much of a line that is too long was dropped.
    dropped: u64,
    ended: bool,
}

/// The longest line that is accepted. Large parts of a message are stored outside the trail,
/// so this is far above the limit of a trail's line.
const MAX_LINE: usize = 64 << 20;
/// Some editors put this before the first line.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
const READ_SIZE: usize = 256 << 10;

impl<R: Read> LineReader<R> {
    pub(crate) fn new(input: R) -> Self {
        Self {
            input,
            buffer: vec![0; READ_SIZE],
            start: 0,
            end: 0,
            searched: 0,
            number: 0,
            dropped: 0,
            ended: false,
        }
    }

    /// Returns the next line if it is complete. At the end of the input, the rest is a line.
    pub(crate) fn next_ready(&mut self) -> Option<RawLine<'_>> {
        let newline = self.buffer[self.searched..self.end]
            .iter()
            .position(|byte| *byte == b'\n')
            .map(|at| self.searched + at);
        let end = match newline {
            Some(at) => at,
            None if self.ended && (self.start < self.end || self.dropped > 0) => self.end,
            None => {
                self.searched = self.end;
                return None;
            }
        };
        let mut start = self.start;
        if self.number == 0 && self.buffer[start..end].starts_with(BYTE_ORDER_MARK) {
            start += BYTE_ORDER_MARK.len();
        }
        self.start = (end + 1).min(self.end);
        self.searched = self.start;
        self.number += 1;
        let dropped = std::mem::take(&mut self.dropped);
        Some(RawLine {
            number: self.number,
            len: dropped + (end - start) as u64,
            bytes: if dropped == 0 && end - start <= MAX_LINE {
                Ok(&self.buffer[start..end])
            } else {
                Err(MAX_LINE as u64)
            },
        })
    }

    /// Waits for more input; returns false at its end.
    pub(crate) fn fill(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        if self.end - self.start > MAX_LINE {
            self.dropped += (self.end - self.start) as u64;
            self.start = self.end;
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.searched -= self.start.min(self.searched);
        self.start = 0;
        if self.buffer.len() - self.end < READ_SIZE / 2 {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    self.ended = true;
                    return Ok(self.start < self.end || self.dropped > 0);
                }
                Ok(n) => {
                    self.end += n;
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Reads a text from a file, or from standard input for `-`.
pub(crate) fn read_text(path: &Path, what: &str) -> Result<String> {
    /// The limit of a record.
    const LIMIT: u64 = 16 << 20;
    let failed =
        |error: &io::Error| CommandError::io(format!("cannot read {what}"), Some(path), error);
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        let mut input = io::stdin().lock().take(LIMIT + 1);
        input
            .read_to_end(&mut bytes)
            .map_err(|error| failed(&error))?;
    } else {
        let file = open(path).map_err(|error| failed(&error))?;
        let mut input = file.take(LIMIT + 1);
        input
            .read_to_end(&mut bytes)
            .map_err(|error| failed(&error))?;
    }
    if bytes.len() as u64 > LIMIT {
        let text = format!("{what} is longer than {}", size(LIMIT));
        return Err(CommandError::invalid(text).at_path(path));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        CommandError::invalid(format!("{what} is not UTF-8 at byte {at}")).at_path(path)
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "the user's file is not one of the store's"
)]
fn open(path: &Path) -> io::Result<std::fs::File> {
    std::fs::File::open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns one byte at a time.
    struct Trickle<'a>(&'a [u8]);

    impl Read for Trickle<'_> {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let n = self.0.len().min(1);
            buf[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    fn all_lines(input: impl Read) -> Vec<(u64, Result<Vec<u8>, u64>)> {
        let mut lines = LineReader::new(input);
        let mut all = Vec::new();
        loop {
            while let Some(line) = lines.next_ready() {
                all.push((line.len, line.bytes.map(<[u8]>::to_vec)));
            }
            if !lines.fill().unwrap() {
                return all;
            }
        }
    }

    #[test]
    fn lines_come_out_however_the_bytes_come_in() {
        let text = b"\xef\xbb\xbfone\n\nthree\nno newline";
        let expected: Vec<_> = [&b"one"[..], b"", b"three", b"no newline"]
            .map(|line| (line.len() as u64, Ok(line.to_vec())))
            .into();
        assert_eq!(all_lines(Trickle(text)), expected);
        assert_eq!(all_lines(&text[..]), expected);
        assert_eq!(all_lines(&b""[..]), []);
    }

    #[test]
    fn a_line_that_is_too_long_is_dropped_and_the_next_is_read() {
        let len = MAX_LINE as u64 + (3 << 20);
        let long = || io::repeat(b'x').take(len);
        let lines = all_lines(long().chain(&b"\nnext\n"[..]));
        assert_eq!(lines[0], (len, Err(MAX_LINE as u64)));
        assert_eq!(lines[1], (4, Ok(b"next".to_vec())));
        assert_eq!(all_lines(long()).len(), 1);
    }
}
