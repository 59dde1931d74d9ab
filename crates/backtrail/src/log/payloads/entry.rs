//! The entries of a payload file: writes, finds and checks them.
//!
//! An entry is a line that names its content, the content, and a newline. A crash can
//! tear an entry and damage can hide one, so a name proves nothing: only the hash of the
//! bytes does.

use std::io;

use memchr::memmem::Finder;

use crate::ids::ObjectId;
use crate::storage::{StorageFile, Window, for_each_chunk, read_full};
use crate::trail::lines::STREAM_BUFFER;

/// The beginning of every entry.
pub(super) const BEGIN: &[u8] = b"{\"payload\":\"";
const MIDDLE: &[u8] = b"\",\"bytes\":";
const END: &[u8] = b"}\n";

/// The longest header, with a number of 20 digits.
const MAX_HEADER: usize = BEGIN.len() + ObjectId::HEX + MIDDLE.len() + 20 + END.len();

/// A header in a payload file; its content is not checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) hash: ObjectId,
    pub(super) bytes: u64,
    /// The offset of its header.
    pub(super) at: u64,
}

impl Entry {
    /// Returns where the content begins, if it ends within a file of `len` bytes.
    pub(super) fn content_within(&self, len: u64) -> Option<u64> {
        let begin = self.at.checked_add(self.header_len())?;
        (begin.checked_add(self.bytes)? <= len).then_some(begin)
    }

    /// Returns where the next entry begins, if this one ends within a file of
    /// `len` bytes.
    pub(super) fn end_within(&self, len: u64) -> Option<u64> {
        let end = self.content_within(len)? + self.bytes;
        (end < len).then_some(end + 1)
    }

    /// Returns the length of the entry.
    pub(super) fn len(&self) -> u64 {
        self.header_len() + self.bytes + 1
    }

    fn header_len(&self) -> u64 {
        let digits = self.bytes.checked_ilog10().unwrap_or(0) as usize + 1;
        (BEGIN.len() + ObjectId::HEX + MIDDLE.len() + digits + END.len()) as u64
    }

    /// Writes the header.
    pub(super) fn write_header(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(BEGIN);
        self.hash.write(out);
        out.extend_from_slice(MIDDLE);
        out.extend_from_slice(itoa::Buffer::new().format(self.bytes).as_bytes());
        out.extend_from_slice(END);
    }

    /// Parses the header at an offset of a file, if there is one.
    pub(super) fn read(file: &dyn StorageFile, at: u64) -> io::Result<Option<Self>> {
        let mut front = [0; MAX_HEADER];
        let n = read_full(file, &mut front, at)?;
        Ok(Self::parse(&front[..n], at))
    }

    pub(super) fn parse(front: &[u8], at: u64) -> Option<Self> {
        let (hex, rest) = front.strip_prefix(BEGIN)?.split_at_checked(ObjectId::HEX)?;
        let hash = ObjectId::from_hex(hex)?;
        let number = rest.strip_prefix(MIDDLE)?;
        let digits = number.iter().take_while(|byte| byte.is_ascii_digit());
        let digits = &number[..digits.count()];
        let bytes = std::str::from_utf8(digits).ok()?.parse().ok()?;
        let entry = Self { hash, bytes, at };
        let mut written = Vec::with_capacity(MAX_HEADER);
        entry.write_header(&mut written);
        front.starts_with(&written).then_some(entry)
    }
}

/// Calls `visit` with every possible entry in the first `len` bytes of a file, in order.
///
/// Contents are skipped by their length as long as one entry follows the other.
/// Elsewhere, after a torn entry or in garbage, the next header is searched for, which
/// may be part of a content.
pub(super) fn scan(
    file: &dyn StorageFile,
    len: u64,
    mut found: impl FnMut(Entry),
) -> io::Result<()> {
    let mut search = Search::new(file, BEGIN);
    let mut at = 0;
    while at < len {
        let mut next = None;
        if let Some(entry) = Entry::read(file, at)?
            && let Some(end) = entry.end_within(len)
        {
            found(entry);
            next = is_boundary(file, end, len)?.then_some(end);
        }
        at = match next {
            Some(end) => end,
            None => match search.next(at + 1)? {
                Some(begin) => begin,
                None => break,
            },
        };
    }
    Ok(())
}

/// Returns whether an entry ends right before `end` and nothing, or another one, begins
/// there.
fn is_boundary(file: &dyn StorageFile, end: u64, len: u64) -> io::Result<bool> {
    let mut around = [0; 1 + BEGIN.len()];
    let n = read_full(file, &mut around, end - 1)?;
    let (newline, begin) = around[..n].split_at(n.min(1));
    Ok(newline == b"\n" && (end == len || begin == BEGIN))
}

/// Finds bytes in a file, a buffer at a time.
#[derive(Debug)]
pub(super) struct Search<'a> {
    window: Window<'a>,
    finder: Finder<'a>,
}

impl<'a> Search<'a> {
    pub(super) fn new(file: &'a dyn StorageFile, wanted: &'a [u8]) -> Self {
        Self {
            window: Window::new(file, u64::MAX, STREAM_BUFFER),
            finder: Finder::new(wanted),
        }
    }

    /// Returns the next position of the bytes, at or after `from`.
    pub(super) fn next(&mut self, mut from: u64) -> io::Result<Option<u64>> {
        let wanted = self.finder.needle().len();
        loop {
            let bytes = self.window.from(from, wanted)?;
            if let Some(at) = self.finder.find(bytes) {
                return Ok(Some(from + at as u64));
            }
            if bytes.len() < wanted {
                return Ok(None);
            }
            // The end of the buffer may be the beginning of the bytes.
            from += (bytes.len() - (wanted - 1)) as u64;
        }
    }
}

/// Returns whether a content that begins at `from` hashes to its name, reading a little
/// at a time.
pub(super) fn is_content(
    file: &dyn StorageFile,
    from: u64,
    bytes: u64,
    hash: ObjectId,
) -> io::Result<bool> {
    let mut hasher = blake3::Hasher::new();
    let is_whole = for_each_chunk(file, from..from + bytes, |_, chunk| {
        hasher.update(chunk);
        Ok(true)
    })?;
    Ok(is_whole && ObjectId::finish(&hasher) == hash)
}

/// Returns whether a file contains these bytes at `from`.
pub(super) fn is_at(file: &dyn StorageFile, from: u64, content: &[u8]) -> io::Result<bool> {
    let range = from..from + content.len() as u64;
    for_each_chunk(file, range, |at, chunk| {
        Ok(content[(at - from) as usize..].starts_with(chunk))
    })
}
