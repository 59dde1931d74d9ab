//! The rollback journal: pages as they were before a transaction that did not end.

use std::collections::HashMap;
use std::fs::File;
use std::io;

use super::u32_at;
use crate::source::read_full;

const MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
const HEADER: usize = 28;

/// The pages that a transaction changed, as they were before it.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    pub(super) page_size: u32,
    /// Where the old version of each page starts.
    pages: HashMap<u32, u64>,
    /// How many pages the database had.
    pub(super) page_count: u32,
}

impl Journal {
    /// Reads a journal. `None` if it does not count: it is empty or was ended.
    pub(super) fn read(file: File, len: u64) -> io::Result<Option<Self>> {
        let Some(first) = Segment::read(&file, 0, len)? else {
            return Ok(None);
        };
        let mut journal = Self {
            page_size: first.page_size,
            page_count: first.page_count,
            pages: HashMap::new(),
            file,
        };
        let mut next = Some(first);
        while let Some(segment) = next {
            let end = journal.add(&segment)?;
            let end = end.next_multiple_of(u64::from(segment.sector_size));
            next = Segment::read(&journal.file, end, len)?;
        }
        Ok(Some(journal))
    }

    /// Adds the pages of a segment; returns where it ends.
    fn add(&mut self, segment: &Segment) -> io::Result<u64> {
        let size = self.page_size as usize;
        let mut record = vec![0; size + 8];
        let mut at = segment.start + u64::from(segment.sector_size);
        for _ in 0..segment.records {
            if read_full(&self.file, &mut record, at)? < record.len() {
                break;
            }
            let (number, page) = (u32_at(&record, 0), &record[4..4 + size]);
            if u32_at(&record, 4 + size) != segment.checksum(page) {
                break;
            }
            // The first version is the oldest.
            self.pages.entry(number).or_insert(at + 4);
            at += record.len() as u64;
        }
        Ok(at)
    }

    /// Returns where the old version of a page is, if the journal has it.
    pub(super) fn find(&self, page: u32) -> Option<u64> {
        self.pages.get(&page).copied()
    }

    /// Reads the journal from `at` on; returns how much could be read.
    pub(super) fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        read_full(&self.file, buffer, at)
    }
}

/// A part of a journal, which begins with a header.
struct Segment {
    start: u64,
    records: u64,
    nonce: u32,
    page_count: u32,
    sector_size: u32,
    page_size: u32,
}

impl Segment {
    fn read(file: &File, start: u64, len: u64) -> io::Result<Option<Self>> {
        let mut header = [0; HEADER];
        if read_full(file, &mut header, start)? < HEADER || header[..8] != MAGIC {
            return Ok(None);
        }
        let segment = Self {
            start,
            records: u64::from(u32_at(&header, 8)),
            nonce: u32_at(&header, 12),
            page_count: u32_at(&header, 16),
            sector_size: u32_at(&header, 20),
            page_size: u32_at(&header, 24),
        };
        let is_size = |size: u32, most| (512..=most).contains(&size) && size.is_power_of_two();
        let is_sound = is_size(segment.sector_size, 1 << 24) && is_size(segment.page_size, 65_536);
        if !is_sound {
            return Ok(None);
        }
        // Without a count, the records go on to the end of the file.
        let left = len.saturating_sub(start + u64::from(segment.sector_size));
        let fit = left / (u64::from(segment.page_size) + 8);
        let is_counted = !matches!(segment.records, 0 | 0xffff_ffff);
        Ok(Some(Self {
            records: if is_counted {
                segment.records.min(fit)
            } else {
                fit
            },
            ..segment
        }))
    }

    /// Sums up every 200th byte of a page from its end, as SQLite does.
    fn checksum(&self, page: &[u8]) -> u32 {
        let mut sum = self.nonce;
        let mut at = page.len().checked_sub(200);
        while let Some(index) = at.filter(|index| *index > 0) {
            sum = sum.wrapping_add(u32::from(page[index]));
            at = index.checked_sub(200);
        }
        sum
    }
}
