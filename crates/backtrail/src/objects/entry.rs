//! Entries of a pack: content, and lists of chunks.

use std::io;

use super::ObjectId;
use super::codec::Codec;
use super::format::{BLOCK_HEADER, Block, Kind, List, Salt};
use crate::storage::{StorageFile, read_full};

/// Entries are mostly shorter than this.
const GUESS: usize = 8 << 10;

/// What an entry holds.
#[derive(Debug)]
pub(super) enum Entry {
    Piece(Vec<u8>),
    List(List),
}

/// An entry as it stands in a pack.
#[derive(Debug, Clone, Copy)]
pub(super) struct Raw<'a> {
    pub(super) block: Block,
    pub(super) stored: &'a [u8],
}

impl<'a> Raw<'a> {
    /// Finds the entry that bytes from `at` on begin with. `None` if they begin with
    /// none, or do not have all of it.
    pub(super) fn parse(bytes: &'a [u8], salt: Salt, at: u64) -> Option<Self> {
        let block = Block::parse(bytes, salt, at).filter(|block| block.kind.is_entry())?;
        let stored = bytes.get(BLOCK_HEADER..BLOCK_HEADER + block.stored as usize)?;
        Some(Self { block, stored })
    }

    /// Returns the name that its content has. `scratch` is for what is compressed.
    /// A list has none: it is given back, for its chunks have to prove it.
    pub(super) fn named(self, codec: &Codec, scratch: &mut Vec<u8>) -> io::Result<Named> {
        Ok(match self.block.kind {
            Kind::List => List::parse(self.stored).map_or(Named::Nothing, Named::List),
            Kind::Zstd => {
                let raw = self.block.raw as usize;
                match codec.decompress_to(self.stored, raw, scratch)? {
                    true => Named::Piece(ObjectId::of(scratch)),
                    false => Named::Nothing,
                }
            }
            _ => Named::Piece(ObjectId::of(self.stored)),
        })
    }
}

/// What the bytes of an entry say that it is.
#[derive(Debug)]
pub(super) enum Named {
    Piece(ObjectId),
    List(List),
    Nothing,
}

/// Reads the entry at a place. `None` if none stands there that is whole.
///
/// That it is the one that is wanted, only [`proven_id`] says.
pub(super) fn read_entry(
    file: &dyn StorageFile,
    salt: Salt,
    at: u64,
    codec: &Codec,
) -> io::Result<Option<Entry>> {
    let mut bytes = vec![0; GUESS];
    let n = read_full(file, &mut bytes, at)?;
    bytes.truncate(n);
    let block = Block::parse(&bytes, salt, at).filter(|block| block.kind.is_entry());
    let Some(block) = block else {
        return Ok(None);
    };
    let len = BLOCK_HEADER + block.stored as usize;
    if len > n {
        bytes.resize(len, 0);
        let more = read_full(file, &mut bytes[n..], at + n as u64)?;
        bytes.truncate(n + more);
    }
    let Some(Raw { block, stored }) = Raw::parse(&bytes, salt, at) else {
        return Ok(None);
    };
    Ok(match block.kind {
        Kind::Zstd => codec
            .decompress(stored, block.raw as usize)?
            .map(Entry::Piece),
        Kind::List => List::parse(stored).map(Entry::List),
        _ => Some(Entry::Piece(stored.to_vec())),
    })
}

/// Returns the name that an entry has by its content. That of a list is what it
/// says itself, which its chunks have to prove.
pub(super) fn proven_id(entry: &Entry) -> ObjectId {
    match entry {
        Entry::Piece(content) => ObjectId::of(content),
        Entry::List(list) => list.id,
    }
}
