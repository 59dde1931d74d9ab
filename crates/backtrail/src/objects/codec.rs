//! Compression, where it helps.

use std::fmt;
use std::io;
use std::sync::{Mutex, PoisonError};

use zstd::bulk::{Compressor, Decompressor};

use super::format::Kind;

/// Of sources, level 1 leaves 27 % and level 3 leaves 26 %, for more time.
const LEVEL: i32 = 1;
/// Contents below this cannot shrink by much more than a frame takes.
const SMALLEST: usize = 48;
/// A long content is tried with this much of its middle first.
const SAMPLE: usize = 16 << 10;
const LONG: usize = 128 << 10;

/// Contexts to compress with, which are costly to make; threads share them.
#[derive(Default)]
pub(super) struct Codec {
    compressors: Mutex<Vec<Compressor<'static>>>,
    decompressors: Mutex<Vec<Decompressor<'static>>>,
}

impl Codec {
    /// Compresses a content into `out`, or says to store it as it is.
    pub(super) fn compress(&self, content: &[u8], out: &mut Vec<u8>) -> io::Result<Kind> {
        out.clear();
        if content.len() < SMALLEST {
            return Ok(Kind::Plain);
        }
        let mut compressor = match take(&self.compressors) {
            Some(compressor) => compressor,
            None => new_compressor()?,
        };
        let kind = compress(&mut compressor, content, out)?;
        give_back(&self.compressors, compressor);
        Ok(kind)
    }

    /// Returns a content that was compressed, of exactly `raw` bytes.
    ///
    /// Anything else is `None`; no more than `raw` bytes are ever taken up.
    pub(super) fn decompress(&self, stored: &[u8], raw: usize) -> io::Result<Option<Vec<u8>>> {
        let mut content = Vec::new();
        let whole = self.decompress_to(stored, raw, &mut content)?;
        Ok(whole.then_some(content))
    }

    /// Puts a content that was compressed into `content`, in the place of what is
    /// there, and returns whether it is one of exactly `raw` bytes.
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
    // The header of the block says how long the content is, and its name checks it.
    compressor.set_parameter(zstd::zstd_safe::CParameter::ContentSizeFlag(false))?;
    Ok(compressor)
}

fn compress(
    compressor: &mut Compressor<'_>,
    content: &[u8],
    out: &mut Vec<u8>,
) -> io::Result<Kind> {
    if content.len() >= LONG {
        let from = (content.len() - SAMPLE) / 2;
        let sample = &content[from..from + SAMPLE];
        if !try_compress(compressor, sample, out)? {
            return Ok(Kind::Plain);
        }
    }
    let helps = try_compress(compressor, content, out)?;
    Ok(if helps { Kind::Zstd } else { Kind::Plain })
}

/// Compresses, and returns whether that saves at least one part in 32.
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
    pool.lock().unwrap_or_else(PoisonError::into_inner).pop()
}

fn give_back<T>(pool: &Mutex<Vec<T>>, context: T) {
    let mut pool = pool.lock().unwrap_or_else(PoisonError::into_inner);
    pool.push(context);
}

impl fmt::Debug for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Codec").finish_non_exhaustive()
    }
}
