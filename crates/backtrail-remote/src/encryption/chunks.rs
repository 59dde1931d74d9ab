//! Blobs, sealed in chunks, so that a part can be read without the rest.
//!
//! All chunks have the same size at the replica, so a part of the blob is in chunks that are
//! wholly there, and whoever reads it need not know where the blob ends. A chunk begins with how
//! many bytes it has: all that fit, except in the last one, which has fewer, perhaps none, and is
//! filled up with zeros. So a blob that was cut off between two chunks has no end.

use backtrail::replica::{BlobName, LogKey};

use super::place;
use super::seal::{OVERHEAD, Seal};

/// The bytes of a chunk at the replica.
pub(super) const SEALED_CHUNK: usize = 16 * 1024;

/// The number in front of the plain bytes.
const COUNT: usize = 2;

/// How many plain bytes fit into a chunk.
pub(super) const CHUNK: usize = SEALED_CHUNK - OVERHEAD - COUNT;

/// Seals and opens one blob.
pub(super) struct Chunks<'k> {
    pub(super) seal: &'k Seal,
    pub(super) log: &'k LogKey,
    pub(super) name: BlobName,
}

impl Chunks<'_> {
    pub(super) fn seal(&self, plain: &[u8]) -> Vec<u8> {
        let (whole, last) = plain.as_chunks::<CHUNK>();
        let mut sealed = Vec::with_capacity((whole.len() + 1) * SEALED_CHUNK);
        let all = whole.iter().map(|chunk| &chunk[..]).chain([last]);
        for (chunk, index) in all.zip(0..) {
            sealed.extend_from_slice(&self.seal.seal(&self.place(index), &filled_up(chunk)));
        }
        sealed
    }

    /// Opens a whole blob.
    pub(super) fn open(&self, sealed: &[u8]) -> Result<Vec<u8>, String> {
        let (plain, ended) = self.open_from(0, sealed)?;
        if ended {
            Ok(plain)
        } else {
            Err("its end is missing".to_owned())
        }
    }

    /// Opens chunks from the `first` on, and returns whether the last one of the blob is there.
    fn open_from(&self, first: u64, sealed: &[u8]) -> Result<(Vec<u8>, bool), String> {
        let mut plain = Vec::with_capacity(sealed.len());
        let mut ended = false;
        for (chunk, index) in sealed.chunks(SEALED_CHUNK).zip(first..) {
            let opened = self
                .seal
                .open(&self.place(index), chunk)
                .map_err(|why| format!("chunk {index}: {why}"))?;
            let content =
                content(&opened).ok_or_else(|| format!("chunk {index}: it has no such layout"))?;
            plain.extend_from_slice(content);
            ended = content.len() < CHUNK;
        }
        Ok((plain, ended))
    }

    fn place(&self, index: u64) -> Vec<u8> {
        place::of_chunk(self.log, self.name, index)
    }
}

fn filled_up(chunk: &[u8]) -> Vec<u8> {
    let count = u16::try_from(chunk.len()).expect("a chunk is smaller than 64 KiB");
    let mut filled = Vec::with_capacity(COUNT + CHUNK);
    filled.extend_from_slice(&count.to_le_bytes());
    filled.extend_from_slice(chunk);
    filled.resize(COUNT + CHUNK, 0);
    filled
}

fn content(opened: &[u8]) -> Option<&[u8]> {
    let (count, content) = opened.split_first_chunk::<COUNT>()?;
    content.get(..usize::from(u16::from_le_bytes(*count)))
}

/// A part of the plain bytes, and the sealed bytes that it is read from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    /// The first chunk.
    first: u64,
    /// Where the part begins in it.
    from: usize,
    bytes: usize,
    /// The part of the sealed bytes: from where, and how many.
    pub(super) sealed: (u64, u64),
}

impl Part {
    /// Returns `None` if no blob reaches that far.
    pub(super) fn new(from: u64, bytes: u64) -> Option<Self> {
        let chunk = CHUNK as u64;
        let end = from.checked_add(bytes)?;
        let first = from / chunk;
        // It is there: the last chunk is never full.
        let last = end / chunk;
        let sealed_at = |index: u64| index.checked_mul(SEALED_CHUNK as u64);
        Some(Self {
            first,
            from: usize::try_from(from % chunk).ok()?,
            bytes: usize::try_from(bytes).ok()?,
            sealed: (sealed_at(first)?, sealed_at(last - first + 1)?),
        })
    }

    /// Returns the plain part of what was read for it.
    pub(super) fn open(&self, chunks: &Chunks<'_>, sealed: &[u8]) -> Result<Vec<u8>, String> {
        let (mut plain, _) = chunks.open_from(self.first, sealed)?;
        let end = self.from.checked_add(self.bytes);
        if sealed.is_empty() || end.is_none_or(|end| end > plain.len()) {
            return Err("it does not have this part".to_owned());
        }
        plain.truncate(self.from + self.bytes);
        plain.drain(..self.from);
        Ok(plain)
    }
}
