//! The lengths of a pack's entries, from its index.

use std::io;

use super::format::{BLOCK_HEADER, Block, BlockKind, Record, TAIL, Tail};
use super::pack::Pack;
use crate::storage::{StorageFile, read_full, read_range};

/// An entry of a pack: its id and offset, and the length of its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) record: Record,
    /// 0 if unknown.
    pub(super) len: u32,
}

impl Extent {
    pub(super) fn end(self) -> u64 {
        u64::from(self.record.at) + u64::from(self.len)
    }
}

impl Pack {
    /// Returns all named entries by offset, with their lengths. Entries are only read if
    /// the pack is damaged.
    pub(super) fn extents(&self, file: &dyn StorageFile) -> io::Result<Vec<Extent>> {
        let mut records = self.records(file)?;
        records.sort_unstable_by_key(|record| (record.at, record.id));
        records.dedup();
        let borders = match self.is_damaged() {
            true => None,
            false => self.borders(file)?,
        };
        let Some(mut borders) = borders else {
            let extents = records.into_iter().map(|record| {
                let len = header_at(file, self, record.at)?;
                Ok(Extent { record, len })
            });
            return extents.collect();
        };
        borders.extend(records.iter().map(|record| record.at));
        borders.sort_unstable();
        let mut next = borders.into_iter().peekable();
        let extents = records.into_iter().map(|record| {
            while next.next_if(|border| *border <= record.at).is_some() {}
            let end = next.peek().copied().unwrap_or(record.at);
            let len = end - record.at;
            Extent { record, len }
        });
        Ok(extents.collect())
    }

    /// Returns where the commits and the seal begin, or `None` if they do not form a
    /// chain.
    fn borders(&self, file: &dyn StorageFile) -> io::Result<Option<Vec<u32>>> {
        let mut borders = Vec::new();
        let mut tail = self.last;
        while let Some(named) = tail {
            borders.push(named.at);
            if named.previous == 0 {
                break;
            }
            let end = u64::from(named.previous);
            let bytes = read_range(file, end.saturating_sub(TAIL as u64)..end)?;
            let before = Tail::parse(&bytes).filter(|before| before.at < named.at);
            let Some(before) = before else {
                return Ok(None);
            };
            let kind = block_at(file, self, before.at)?.map(|block| block.kind);
            if kind != Some(BlockKind::Commit) {
                return Ok(None);
            }
            tail = Some(before);
        }
        Ok(Some(borders))
    }
}

fn header_at(file: &dyn StorageFile, pack: &Pack, at: u32) -> io::Result<u32> {
    let block = block_at(file, pack, at)?.filter(|block| block.kind.is_entry());
    Ok(block.map_or(0, |block| BLOCK_HEADER as u32 + block.stored))
}

/// Reads the header of the block at an offset.
pub(super) fn block_at(file: &dyn StorageFile, pack: &Pack, at: u32) -> io::Result<Option<Block>> {
    let mut header = [0; BLOCK_HEADER];
    let n = read_full(file, &mut header, at.into())?;
    Ok(Block::parse(&header[..n], pack.salt(), at.into()))
}
