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
    let Some(stored) = bytes.get(BLOCK_HEADER..len) else {
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
