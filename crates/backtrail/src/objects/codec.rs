//! Compresses contents where that saves space.

use std::fmt;
use std::io;
use std::sync::Mutex;

use zstd::bulk::{Compressor, Decompressor};

use super::format::BlockKind;
use crate::sync::lock;

/// On source code, level 1 compresses to 27 % and level 3 to 26 %, but takes longer.
const LEVEL: i32 = 1;
/// Shorter contents hardly shrink by more than the size of a frame.
const SMALLEST: usize = 48;
/// For a long content, this much of its middle is compressed first as a sample.
const SAMPLE: usize = 16 << 10;
const LONG: usize = 128 << 10;

/// Compression contexts, which are costly to create, shared by threads.
#[derive(Default)]
pub(super) struct Codec {
    compressors: Mutex<Vec<Compressor<'static>>>,
    decompressors: Mutex<Vec<Decompressor<'static>>>,
}

impl Codec {
    /// Compresses a content into `out`, or returns that it should be stored plain.
    pub(super) fn compress(&self, content: &[u8], out: &mut Vec<u8>) -> io::Result<BlockKind> {
        out.clear();
        if content.len() < SMALLEST {
            return Ok(BlockKind::Plain);
        }
        let mut compressor = match take(&self.compressors) {
            Some(compressor) => compressor,
            None => new_compressor()?,
        };
        let kind = compress(&mut compressor, content, out)?;
        give_back(&self.compressors, compressor);
        Ok(kind)
    }

    /// Returns a decompressed content of exactly `raw` bytes.
    ///
    /// Returns `None` for any other length. Never allocates more than `raw` bytes.
    pub(super) fn decompress(&self, stored: &[u8], raw: usize) -> io::Result<Option<Vec<u8>>> {
        let mut content = Vec::new();
        let whole = self.decompress_to(stored, raw, &mut content)?;
        Ok(whole.then_some(content))
    }

    /// Replaces `content` with the decompressed content, and returns whether it has
    /// exactly `raw` bytes.
    pub(super) fn decompress_to(
        &self,
        stored: &[u8],
        raw: usize,
        content: &mut Vec<u8>,
    ) -> io::Result<bool> {
        let mut decompressor = match take(&self.decompressors) {
            Some(decompressor) => decompressor,
            None => Decompressor::new()?,
        };
        content.clear();
        content.reserve_exact(raw);
        let whole = decompressor.decompress_to_buffer(stored, content);
        give_back(&self.decompressors, decompressor);
        Ok(whole.is_ok_and(|len| len == raw))
    }
}

fn new_compressor() -> io::Result<Compressor<'static>> {
    let mut compressor = Compressor::new(LEVEL)?;
    // The block header stores the length, and the object's id checks the content.
    compressor.set_parameter(zstd::zstd_safe::CParameter::ContentSizeFlag(false))?;
    Ok(compressor)
}

fn compress(
    compressor: &mut Compressor<'_>,
    content: &[u8],
    out: &mut Vec<u8>,
) -> io::Result<BlockKind> {
    if content.len() >= LONG {
        let from = (content.len() - SAMPLE) / 2;
        let sample = &content[from..from + SAMPLE];
        if !try_compress(compressor, sample, out)? {
            return Ok(BlockKind::Plain);
        }
    }
    let helps = try_compress(compressor, content, out)?;
    Ok(if helps {
        BlockKind::Zstd
    } else {
        BlockKind::Plain
    })
}

/// Compresses, and returns whether that saves at least 1/32.
fn try_compress(
    compressor: &mut Compressor<'_>,
    content: &[u8],
    out: &mut Vec<u8>,
) -> io::Result<bool> {
    out.clear();
    out.reserve(zstd::zstd_safe::compress_bound(content.len()));
    let len = compressor.compress_to_buffer(content, out)?;
    Ok(len + content.len() / 32 < content.len())
}

fn take<T>(pool: &Mutex<Vec<T>>) -> Option<T> {
    lock(pool).pop()
}

fn give_back<T>(pool: &Mutex<Vec<T>>, context: T) {
    lock(pool).push(context);
}

impl fmt::Debug for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Codec").finish_non_exhaustive()
    }
}
