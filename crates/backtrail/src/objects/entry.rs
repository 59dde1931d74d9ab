//! The entries of a pack: contents and lists of chunks.

use std::io;

use super::ObjectId;
use super::codec::Codec;
use super::format::{BLOCK_HEADER, Block, BlockKind, List, Salt};
use crate::storage::{StorageFile, read_full};

/// Most entries are shorter than this.
const GUESS: usize = 8 << 10;

/// A decoded entry.
#[derive(Debug)]
pub(super) enum PackEntry {
    Piece(Vec<u8>),
    List(List),
}

/// An entry as stored in a pack.
#[derive(Debug, Clone, Copy)]
pub(super) struct RawEntry<'a> {
    pub(super) block: Block,
    pub(super) stored: &'a [u8],
}

impl<'a> RawEntry<'a> {
    /// Parses the entry at the start of `bytes`, which are at offset `at` of the pack.
    /// Returns `None` if they do not contain a complete entry.
    pub(super) fn parse(bytes: &'a [u8], salt: Salt, at: u64) -> Option<Self> {
        let block = Block::parse(bytes, salt, at).filter(|block| block.kind.is_entry())?;
        let stored = bytes.get(BLOCK_HEADER..BLOCK_HEADER + block.stored as usize)?;
        Some(Self { block, stored })
    }

    /// Returns the id of the content. `scratch` is used for decompression. A list is
    /// returned as it is, because only its chunks can prove its id.
    pub(super) fn identify(self, codec: &Codec, scratch: &mut Vec<u8>) -> io::Result<Identity> {
        Ok(match self.block.kind {
            BlockKind::List => List::parse(self.stored).map_or(Identity::Nothing, Identity::List),
            BlockKind::Zstd => {
                let raw = self.block.raw as usize;
                match codec.decompress_to(self.stored, raw, scratch)? {
                    true => Identity::Piece(ObjectId::of(scratch)),
                    false => Identity::Nothing,
                }
            }
            _ => Identity::Piece(ObjectId::of(self.stored)),
        })
    }
}

/// What an entry contains, according to its bytes.
#[derive(Debug)]
pub(super) enum Identity {
    Piece(ObjectId),
    List(List),
    Nothing,
}

/// Reads the entry at an offset. Returns `None` if there is no complete entry.
///
/// Use [`proven_id`] to check that it is the expected one.
pub(super) fn read_entry(
    file: &dyn StorageFile,
    salt: Salt,
    at: u64,
    codec: &Codec,
) -> io::Result<Option<PackEntry>> {
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
    let Some(RawEntry { block, stored }) = RawEntry::parse(&bytes, salt, at) else {
        return Ok(None);
    };
    Ok(match block.kind {
        BlockKind::Zstd => codec
            .decompress(stored, block.raw as usize)?
            .map(PackEntry::Piece),
        BlockKind::List => List::parse(stored).map(PackEntry::List),
        _ => Some(PackEntry::Piece(stored.to_vec())),
    })
}

/// Returns the id of an entry's content. For a list this is the id it claims, which its
/// chunks have to prove.
pub(super) fn proven_id(entry: &PackEntry) -> ObjectId {
    match entry {
        PackEntry::Piece(content) => ObjectId::of(content),
        PackEntry::List(list) => list.id,
    }
}
