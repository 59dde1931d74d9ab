//! Reads a pack block by block, skipping damage.

use std::io;

use memchr::memmem;

use super::format::{BLOCK_HEADER, Block, MARK, PACK_HEADER, Salt};
use crate::storage::{StorageFile, Window};

const WINDOW: usize = 64 << 10;

/// An iterator over the blocks of a pack.
#[derive(Debug)]
pub(super) struct Blocks<'a> {
    window: Window<'a>,
    salt: Salt,
    at: u64,
    len: u64,
}

/// A block, or the bytes between blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Segment {
    Block {
        at: u64,
        block: Block,
    },
    /// Bytes that are not a block, up to the next block or the end.
    Gap {
        from: u64,
        to: u64,
    },
    /// A block that extends past the end.
    Torn {
        at: u64,
    },
}

impl Segment {
    pub(super) fn at(self) -> u64 {
        match self {
            Self::Block { at, .. } | Self::Torn { at } | Self::Gap { from: at, .. } => at,
        }
    }

    /// Returns where it ends; a torn block ends where it begins.
    pub(super) fn end(self) -> u64 {
        match self {
            Self::Block { at, block } => block.end(at),
            Self::Gap { to, .. } => to,
            Self::Torn { at } => at,
        }
    }
}

impl<'a> Blocks<'a> {
    pub(super) fn new(file: &'a dyn StorageFile, salt: Salt, len: u64) -> Self {
        Self {
            window: Window::new(file, len, WINDOW),
            salt,
            at: PACK_HEADER as u64,
            len,
        }
    }

    pub(super) fn next(&mut self) -> io::Result<Option<Segment>> {
        let at = self.at;
        if at >= self.len {
            return Ok(None);
        }
        if at + BLOCK_HEADER as u64 > self.len {
            self.at = self.len;
            return Ok(Some(Segment::Torn { at }));
        }
        if let Some(block) = self.block(at)? {
            self.at = block.end(at);
            if self.at > self.len {
                return Ok(Some(Segment::Torn { at }));
            }
            return Ok(Some(Segment::Block { at, block }));
        }
        self.at = self.search(at + 1)?;
        Ok(Some(Segment::Gap {
            from: at,
            to: self.at,
        }))
    }

    fn block(&mut self, at: u64) -> io::Result<Option<Block>> {
        let bytes = self.window.from(at, BLOCK_HEADER)?;
        Ok(Block::parse(bytes, self.salt, at))
    }

    /// Returns where the next block begins, at or after `from`.
    fn search(&mut self, mut from: u64) -> io::Result<u64> {
        loop {
            let bytes = self.window.from(from, MARK.len())?;
            if bytes.len() < MARK.len() {
                return Ok(self.len);
            }
            let Some(skip) = memmem::find(bytes, &MARK) else {
                from += (bytes.len() - 1) as u64;
                continue;
            };
            from += skip as u64;
            if self.block(from)?.is_some() {
                return Ok(from);
            }
            from += 1;
        }
    }
}
