//! Lines of a file, from any position forwards or backwards, in bounded memory.
//!
//! Both directions return a line from their buffer. A line that is too long is skipped:
//! its length is returned, but not its bytes.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::record::MAX_READ;
use crate::storage::{StorageFile, read_full};

/// A line: where it begins in the file, and where its bytes are in the buffer.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) offset: u64,
    /// Its length on disk, without the newline.
    pub(crate) len: u64,
    /// Whether a newline ends it; only a file's last line can lack one.
    pub(crate) terminated: bool,
    /// Its bytes in the buffer; `None` if the line is too long.
    range: Option<Range<usize>>,
}

impl Line {
    /// Creates a line that fills a buffer.
    pub(crate) fn filling(offset: u64, bytes: usize) -> Self {
        Self {
            offset,
            len: bytes as u64,
            terminated: true,
            range: Some(0..bytes),
        }
    }

    /// Returns where the next line begins.
    pub(crate) fn end(&self) -> u64 {
        self.offset + self.len + u64::from(self.terminated)
    }
}

/// Reads lines forwards.
#[derive(Debug)]
pub(crate) struct Forwards {
    file: Arc<dyn StorageFile>,
    buffer: Vec<u8>,
    /// The bytes in the buffer that were not returned yet.
    unread: Range<usize>,
    /// The offset of `unread` in the file.
    offset: u64,
    max_line: usize,
}

/// The buffer for reading all of a trail.
pub(crate) const STREAM_BUFFER: usize = 256 << 10;
/// The buffer for reading a line or two.
pub(crate) const PEEK_BUFFER: usize = 8 << 10;

impl Forwards {
    /// Starts at `offset`, which must be the beginning of a line.
    pub(crate) fn new(file: Arc<dyn StorageFile>, offset: u64, buffer: usize) -> Self {
        Self {
            file,
            buffer: vec![0; buffer],
            unread: 0..0,
            offset,
            max_line: MAX_READ,
        }
    }

    /// Returns the bytes of the last line.
    pub(crate) fn bytes(&self, line: &Line) -> &[u8] {
        line.range.clone().map_or(&[], |range| &self.buffer[range])
    }

    /// Continues at `offset`, discarding the buffer.
    pub(crate) fn seek(&mut self, offset: u64) {
        self.unread = 0..0;
        self.offset = offset;
    }

    /// Returns whether the last line may have changed, reading no more than that line.
    pub(crate) fn has_changed(&self, line: &Line) -> io::Result<bool> {
        if !line.terminated {
            return Ok(true);
        }
        let mut now = vec![0; PEEK_BUFFER];
        let mut at = line.offset;
        for chunk in self.bytes(line).chunks(PEEK_BUFFER) {
            let now = &mut now[..chunk.len()];
            if read_full(self.file.as_ref(), now, at)? < chunk.len() || now != chunk {
                return Ok(true);
            }
            at += chunk.len() as u64;
        }
        Ok(false)
    }

    /// Returns the next line, or `None` at the end of the file.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line>> {
        let mut searched = 0;
        loop {
            let unread = &self.buffer[self.unread.clone()];
            if let Some(at) = memchr::memchr(b'\n', &unread[searched..]) {
                return Ok(Some(self.take(searched + at, Ending::Newline)));
            }
            searched = unread.len();
            if searched > self.max_line {
                return self.pass_over().map(Some);
            }
            if !self.fill()? {
                let rest = (searched > 0).then(|| self.take(searched, Ending::Missing));
                return Ok(rest);
            }
        }
    }

    fn take(&mut self, len: usize, ending: Ending) -> Line {
        let start = self.unread.start;
        let line = Line {
            offset: self.offset,
            len: len as u64,
            terminated: ending == Ending::Newline,
            range: Some(start..start + len),
        };
        self.advance(len + usize::from(line.terminated));
        line
    }

    fn advance(&mut self, bytes: usize) {
        self.unread.start += bytes;
        self.offset += bytes as u64;
    }

    /// Reads more into the buffer; returns whether there was any.
    fn fill(&mut self) -> io::Result<bool> {
        if self.unread.start > 0 {
            self.buffer.copy_within(self.unread.clone(), 0);
            self.unread = 0..self.unread.len();
        }
        if self.unread.end == self.buffer.len() {
            let longer = (self.buffer.len() * 2).min(self.max_line + STREAM_BUFFER);
            self.buffer.resize(longer.max(self.unread.end + 1), 0);
        }
        let at = self.offset + self.unread.len() as u64;
        let free = &mut self.buffer[self.unread.end..];
        let n = read_full(self.file.as_ref(), free, at)?;
        self.unread.end += n;
        Ok(n > 0)
    }

    /// Skips the rest of a line that is too long.
    fn pass_over(&mut self) -> io::Result<Line> {
        let offset = self.offset;
        loop {
            let unread = &self.buffer[self.unread.clone()];
            let newline = memchr::memchr(b'\n', unread);
            let passed = newline.unwrap_or(unread.len());
            self.advance(passed);
            if newline.is_some() || !self.fill()? {
                let line = Line {
                    offset,
                    len: self.offset - offset,
                    terminated: newline.is_some(),
                    range: None,
                };
                self.advance(usize::from(line.terminated));
                return Ok(line);
            }
        }
    }
}

/// How a line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Newline,
    /// The file ends before it.
    Missing,
}

/// Reads lines backwards.
#[derive(Debug)]
pub(crate) struct Backwards {
    file: Arc<dyn StorageFile>,
    /// The bytes of the file from `start` to `end`.
    buffer: Vec<u8>,
    start: u64,
    /// The end of the lines that were not returned yet.
    end: u64,
    max_line: usize,
}

/// The size of a block that is read backwards.
const BLOCK: usize = 64 << 10;

impl Backwards {
    /// Starts before `end`, which must be the end of a line or of the file.
    pub(crate) fn new(file: Arc<dyn StorageFile>, end: u64) -> Self {
        Self {
            file,
            buffer: Vec::new(),
            start: end,
            end,
            max_line: MAX_READ,
        }
    }

    /// Returns the bytes of the last line.
    pub(crate) fn bytes(&self, line: &Line) -> &[u8] {
        line.range.clone().map_or(&[], |range| &self.buffer[range])
    }

    /// Returns the previous line, or `None` at the beginning of the file.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line>> {
        while self.start == self.end && self.end > 0 {
            self.fill()?;
        }
        if self.end == 0 {
            return Ok(None);
        }
        let terminated = self.unread().last() == Some(&b'\n');
        let line_end = self.end - u64::from(terminated);
        let mut searched_from = line_end;
        loop {
            let before = (searched_from - self.start) as usize;
            if let Some(at) = memchr::memrchr(b'\n', &self.buffer[..before]) {
                let offset = self.start + at as u64 + 1;
                return Ok(Some(self.take(offset, line_end, terminated)));
            }
            if self.start == 0 {
                return Ok(Some(self.take(0, line_end, terminated)));
            }
            if line_end - self.start > self.max_line as u64 {
                return self.pass_over(line_end, terminated).map(Some);
            }
            searched_from = self.start;
            self.fill()?;
        }
    }

    fn unread(&self) -> &[u8] {
        &self.buffer[..(self.end - self.start) as usize]
    }

    fn take(&mut self, offset: u64, line_end: u64, terminated: bool) -> Line {
        let from = (offset - self.start) as usize;
        self.end = offset;
        Line {
            offset,
            len: line_end - offset,
            terminated,
            range: Some(from..from + (line_end - offset) as usize),
        }
    }

    /// Reads a block before the buffer, larger each time a line is not complete, so that a
    /// long line costs no more than its length.
    fn fill(&mut self) -> io::Result<()> {
        let kept = (self.end - self.start) as usize;
        let more = BLOCK.max(kept).min(self.start as usize);
        let mut buffer = vec![0; more + kept];
        let from = self.start - more as u64;
        let n = read_full(self.file.as_ref(), &mut buffer[..more], from)?;
        if n < more && kept > 0 {
            // The file was truncated while being read.
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if n < more {
            // A writer removed its last write since the length was read.
            buffer.truncate(n);
            self.end = from + n as u64;
        } else {
            buffer[more..].copy_from_slice(self.unread());
        }
        self.buffer = buffer;
        self.start = from;
        Ok(())
    }

    fn pass_over(&mut self, line_end: u64, terminated: bool) -> io::Result<Line> {
        let offset = loop {
            match memchr::memrchr(b'\n', self.unread()) {
                // The newline that ends the long line itself does not count.
                Some(at) if self.start + at as u64 != line_end => {
                    break self.start + at as u64 + 1;
                }
                _ if self.start == 0 => break 0,
                _ => {
                    self.end = self.start;
                    self.fill()?;
                }
            }
        };
        self.end = offset;
        Ok(Line {
            offset,
            len: line_end - offset,
            terminated,
            range: None,
        })
    }
}
