//! Lines of standard input as they come, and texts in files.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use crate::error::{CommandError, Result};
use crate::files;
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
    input: BufReader<R>,
    /// The line so far; empty if it is too long.
    line: Vec<u8>,
    /// How long the line is so far.
    len: u64,
    number: u64,
    /// Whether the line was returned, and the next one begins.
    returned: bool,
    ended: bool,
}

/// The longest line that is accepted. Large parts of a message are stored outside the trail,
/// so this is far above the limit of a trail's line.
const MAX_LINE: u64 = 64 << 20;
/// Some editors put this before the first line.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
const READ_SIZE: usize = 256 << 10;

impl<R: Read> LineReader<R> {
    pub(crate) fn new(input: R) -> Self {
        Self {
            input: BufReader::with_capacity(READ_SIZE, input),
            line: Vec::new(),
            len: 0,
            number: 0,
            returned: false,
            ended: false,
        }
    }

    /// Returns the next line if it is complete. At the end of the input, the rest is a line.
    pub(crate) fn next_ready(&mut self) -> Option<RawLine<'_>> {
        if std::mem::take(&mut self.returned) {
            self.line.clear();
            self.len = 0;
        }
        let buffered = self.input.buffer();
        let newline = buffered.iter().position(|byte| *byte == b'\n');
        let part = &buffered[..newline.unwrap_or(buffered.len())];
        self.len += part.len() as u64;
        match self.len <= MAX_LINE {
            true => self.line.extend_from_slice(part),
            false => self.line = Vec::new(),
        }
        let read = part.len() + usize::from(newline.is_some());
        self.input.consume(read);
        if newline.is_none() && !(self.ended && self.len > 0) {
            return None;
        }
        if self.number == 0 && self.line.starts_with(BYTE_ORDER_MARK) {
            self.line.drain(..BYTE_ORDER_MARK.len());
            self.len -= BYTE_ORDER_MARK.len() as u64;
        }
        self.returned = true;
        self.number += 1;
        Some(RawLine {
            number: self.number,
            len: self.len,
            bytes: match self.len <= MAX_LINE {
                true => Ok(&self.line),
                false => Err(MAX_LINE),
            },
        })
    }

    /// Waits for more input; returns false at its end.
    pub(crate) fn fill(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        loop {
            match self.input.fill_buf() {
                Ok(bytes) => {
                    self.ended = bytes.is_empty();
                    return Ok(!self.ended || self.len > 0);
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
    let read = match path == Path::new("-") {
        true => io::stdin().lock().take(LIMIT + 1).read_to_end(&mut bytes),
        false => files::open(path).and_then(|file| file.take(LIMIT + 1).read_to_end(&mut bytes)),
    };
    read.map_err(|error| failed(&error))?;
    if bytes.len() as u64 > LIMIT {
        let text = format!("{what} is longer than {}", size(LIMIT));
        return Err(CommandError::invalid(text).at_path(path));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        CommandError::invalid(format!("{what} is not UTF-8 at byte {at}")).at_path(path)
    })
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
        let len = MAX_LINE + (3 << 20);
        let long = || io::repeat(b'x').take(len);
        let lines = all_lines(long().chain(&b"\nnext\n"[..]));
        assert_eq!(lines[0], (len, Err(MAX_LINE)));
        assert_eq!(lines[1], (4, Ok(b"next".to_vec())));
        assert_eq!(all_lines(long()).len(), 1);
    }
}
