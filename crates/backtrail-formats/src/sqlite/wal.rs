//! The write-ahead log: newer versions of pages, in the order in which they were written.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use super::u32_at;
use crate::source::read_full;

const HEADER: u64 = 32;
const FRAME_HEADER: u64 = 24;
/// How much of the log is read at a time.
const BUFFER: usize = 1 << 20;

/// A log, as far as it was committed when it was read.
#[derive(Debug)]
pub(super) struct Wal {
    file: File,
    header: [u8; HEADER as usize],
    pub(super) page_size: u32,
    /// Where the newest version of each page starts.
    pages: HashMap<u32, u64>,
    /// How many pages the database has since the last commit.
    pub(super) page_count: u32,
    /// Where the next frame would start, and the checksum up to there.
    end: u64,
    checksum: Checksum,
}

/// The two running sums that a log has for all that comes before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Checksum {
    sums: (u32, u32),
    is_big_endian: bool,
}

impl Checksum {
    fn add(&mut self, bytes: &[u8]) {
        let word = |bytes: &[u8]| {
            let bytes = [bytes[0], bytes[1], bytes[2], bytes[3]];
            match self.is_big_endian {
                true => u32::from_be_bytes(bytes),
                false => u32::from_le_bytes(bytes),
            }
        };
        let (mut first, mut second) = self.sums;
        for pair in bytes.chunks_exact(8) {
            first = first.wrapping_add(word(&pair[..4])).wrapping_add(second);
            second = second.wrapping_add(word(&pair[4..])).wrapping_add(first);
        }
        self.sums = (first, second);
    }

    fn is(&self, bytes: &[u8], at: usize) -> bool {
        self.sums == (u32_at(bytes, at), u32_at(bytes, at + 4))
    }
}

impl Wal {
    /// Reads a log up to its last commit. `None` if it contains nothing that counts: it is
    /// empty, or from before the last checkpoint.
    pub(super) fn read(file: File) -> io::Result<Option<Self>> {
        let mut header = [0; HEADER as usize];
        if read_full(&file, &mut header, 0)? < header.len() {
            return Ok(None);
        }
        let magic = u32_at(&header, 0);
        let page_size = u32_at(&header, 8);
        let mut checksum = Checksum {
            sums: (0, 0),
            is_big_endian: magic & 1 == 1,
        };
        checksum.add(&header[..24]);
        let is_known = magic & !1 == 0x377f_0682 && u32_at(&header, 4) == 3_007_000;
        let is_size = (512..=65_536).contains(&page_size) && page_size.is_power_of_two();
        if !is_known || !is_size || !checksum.is(&header, 24) {
            return Ok(None);
        }
        let mut wal = Self {
            file,
            header,
            page_size,
            pages: HashMap::new(),
            page_count: 0,
            end: HEADER,
            checksum,
        };
        wal.pages = wal.committed()?;
        Ok((wal.page_count > 0).then_some(wal))
    }

    /// Reads the frames from `end` to the last commit.
    fn committed(&mut self) -> io::Result<HashMap<u32, u64>> {
        let mut committed = HashMap::new();
        let mut pending = Vec::new();
        let frame_len = (FRAME_HEADER + u64::from(self.page_size)) as usize;
        let mut frames = Frames::new(&self.file, self.end, frame_len);
        let mut checksum = self.checksum;
        while let Some((at, frame)) = frames.next()? {
            let number = u32_at(frame, 0);
            checksum.add(&frame[..8]);
            checksum.add(&frame[FRAME_HEADER as usize..]);
            let is_own = frame[8..16] == self.header[16..24];
            if !is_own || number == 0 || !checksum.is(frame, 16) {
                break;
            }
            pending.push((number, at + FRAME_HEADER));
            let pages_after_commit = u32_at(frame, 4);
            if pages_after_commit > 0 {
                committed.extend(pending.drain(..));
                self.page_count = pages_after_commit;
                self.end = at + frame_len as u64;
                self.checksum = checksum;
            }
        }
        Ok(committed)
    }

    /// Returns where a page is, if the log has it.
    pub(super) fn find(&self, page: u32) -> Option<u64> {
        self.pages.get(&page).copied()
    }

    /// Reads the log from `at` on; returns how much could be read.
    pub(super) fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        read_full(&self.file, buffer, at)
    }

    /// Returns whether what was read of the log is still there.
    pub(super) fn is_unchanged(&self) -> bool {
        let mut header = [0; HEADER as usize];
        read_full(&self.file, &mut header, 0).is_ok_and(|read| read == header.len())
            && header == self.header
    }

    /// Returns the pages that were written to the log since it was read. `None` if they cannot
    /// be told.
    pub(super) fn newer_pages(&self) -> Option<Vec<u32>> {
        let frame_len = FRAME_HEADER + u64::from(self.page_size);
        let mut newer = Vec::new();
        let mut at = self.end;
        let mut frame = [0; FRAME_HEADER as usize];
        // A checkpoint copies only complete frames of this log, so checksums need no look.
        while self.file.read_at(&mut frame, at).ok()? == frame.len() {
            if frame[8..16] != self.header[16..24] {
                break;
            }
            newer.push(u32_at(&frame, 0));
            at += frame_len;
        }
        Some(newer)
    }

    /// Returns the file's inode: another log may have taken its place.
    pub(super) fn inode(&self) -> Option<u64> {
        use std::os::unix::fs::MetadataExt as _;
        self.file.metadata().ok().map(|metadata| metadata.ino())
    }
}

/// Reads frames one after the other.
struct Frames<'f> {
    file: &'f File,
    frame_len: usize,
    buffer: Vec<u8>,
    /// Where the buffer starts in the file, and how much of it was returned.
    start: u64,
    used: usize,
}

impl<'f> Frames<'f> {
    fn new(file: &'f File, start: u64, frame_len: usize) -> Self {
        Self {
            file,
            frame_len,
            buffer: Vec::new(),
            start,
            used: 0,
        }
    }

    /// Returns the next complete frame and where it starts.
    fn next(&mut self) -> io::Result<Option<(u64, &[u8])>> {
        if self.buffer.len() - self.used < self.frame_len {
            self.start += self.used as u64;
            let frames = (BUFFER / self.frame_len).max(1);
            self.buffer.resize(frames * self.frame_len, 0);
            let read = read_full(self.file, &mut self.buffer, self.start)?;
            self.buffer.truncate(read);
            self.used = 0;
        }
        let Some(frame) = self.buffer.get(self.used..self.used + self.frame_len) else {
            return Ok(None);
        };
        let at = self.start + self.used as u64;
        self.used += self.frame_len;
        Ok(Some((at, frame)))
    }
}
