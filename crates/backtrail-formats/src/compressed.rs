//! Files that their agent compressed with zstd.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use crate::error::{Error, Result};
use crate::source::Source;

/// The largest content of a compressed file. A few bytes can decompress to more than any
/// disk can hold.
const MAX_CONTENT: u64 = 64 << 30;

/// How much is decompressed at a time.
const BUFFER: usize = 256 << 10;

/// The result of decompressing a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decompressed {
    /// How many bytes there were.
    pub bytes: u64,
    /// Why decompression stopped early, if it did. Everything before the damage was kept.
    pub damage: Option<String>,
}

/// How much is decompressed to recognise a file.
const BEGINNING: u64 = 256 << 10;

/// Returns whether a file is compressed, by its name.
pub(crate) fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "zst")
}

/// Returns the decompressed beginning of a file.
pub(crate) fn beginning(path: &Path) -> Result<Source> {
    let opened = File::open(path).and_then(zstd::stream::read::Decoder::new);
    let decoder = opened.map_err(|error| Error::io("cannot decompress the file", path, error))?;
    let mut bytes = Vec::new();
    // Damage is reported when the file is read.
    decoder.take(BEGINNING).read_to_end(&mut bytes).ok();
    Ok(Source::from_bytes(path, bytes))
}

/// Decompresses a zstd file to the current position of `into`.
///
/// A damaged file is decompressed up to the damage.
///
/// # Errors
///
/// Fails if the file cannot be read, `into` cannot be written, or the content is larger than
/// 64 GiB.
pub fn decompress(path: &Path, into: &mut File) -> Result<Decompressed> {
    decompress_up_to(path, into, MAX_CONTENT)
}

fn decompress_up_to(path: &Path, into: &mut File, most: u64) -> Result<Decompressed> {
    let failed = |error| Error::io("cannot decompress the file", path, error);
    let compressed = File::open(path).map_err(failed)?;
    let mut decoder = zstd::stream::read::Decoder::new(compressed).map_err(failed)?;
    let mut buffer = vec![0; BUFFER];
    let mut bytes = 0;
    loop {
        let read = match decoder.read(&mut buffer) {
            Ok(0) => {
                return Ok(Decompressed {
                    bytes,
                    damage: None,
                });
            }
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // An error of the system is not damage of the file.
            Err(error) if error.raw_os_error().is_some() => return Err(failed(error)),
            Err(error) => {
                let damage = Some(format!("the compressed file is damaged: {error}"));
                return Ok(Decompressed { bytes, damage });
            }
        };
        bytes += read as u64;
        if bytes > most {
            let what = format!("the file holds more than {} GiB decompressed", most >> 30);
            return Err(Error::invalid(what, path));
        }
        let write = into.write_all(&buffer[..read]);
        write
            .map_err(|error| Error::io("cannot write the decompressed content of", path, error))?;
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, SeekFrom};

    use super::*;

    /// Compresses as an agent does, with a checksum at the end.
    fn compress(content: &[u8]) -> Vec<u8> {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
        encoder.include_checksum(true).unwrap();
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    /// Compresses, damages and decompresses.
    fn through(
        content: &[u8],
        most: u64,
        damage_it: impl Fn(&mut Vec<u8>),
    ) -> Result<(Decompressed, Vec<u8>)> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rollout.jsonl.zst");
        let mut compressed = compress(content);
        damage_it(&mut compressed);
        std::fs::write(&path, compressed).unwrap();
        let mut into = tempfile::tempfile().unwrap();
        let decompressed = decompress_up_to(&path, &mut into, most)?;
        into.seek(SeekFrom::Start(0)).unwrap();
        let mut back = Vec::new();
        into.read_to_end(&mut back).unwrap();
        Ok((decompressed, back))
    }

    fn lines() -> Vec<u8> {
        let line = |n: u32| format!("{{\"line\":{n},\"x\":{}}}\n", n.wrapping_mul(2_654_435_761));
        (0..60_000).map(line).collect::<String>().into_bytes()
    }

    #[test]
    fn a_compressed_file_is_decompressed() {
        let (decompressed, back) = through(&lines(), MAX_CONTENT, |_| {}).unwrap();
        assert_eq!(back, lines());
        assert_eq!(
            (decompressed.bytes, decompressed.damage),
            (back.len() as u64, None)
        );
    }

    #[test]
    fn several_frames_are_one_content() {
        let more = compress(b"more\n");
        let append = |compressed: &mut Vec<u8>| compressed.extend_from_slice(&more);
        let (decompressed, back) = through(b"one\n", MAX_CONTENT, append).unwrap();
        assert_eq!(
            (&back[..], decompressed.damage),
            (&b"one\nmore\n"[..], None)
        );
    }

    #[test]
    fn content_before_the_damage_is_kept() {
        for damage_it in [
            (|compressed: &mut Vec<u8>| compressed.truncate(compressed.len() * 2 / 3))
                as fn(&mut Vec<u8>),
            |compressed| {
                let at = compressed.len() * 2 / 3;
                compressed[at..at + 64].fill(0xA5);
            },
            |compressed| compressed.extend_from_slice(b"no frame"),
        ] {
            let (decompressed, back) = through(&lines(), MAX_CONTENT, damage_it).unwrap();
            assert!(decompressed.damage.is_some());
            assert!(back.len() > 100_000 && lines().starts_with(&back[..100_000]));
            assert_eq!(decompressed.bytes, back.len() as u64);
        }
    }

    #[test]
    fn a_file_that_is_not_compressed_is_damage() {
        let (decompressed, back) =
            through(b"", 0, |compressed| *compressed = b"{}\n".to_vec()).unwrap();
        assert!(back.is_empty() && decompressed.damage.is_some());
    }

    #[test]
    fn too_much_content_is_refused() {
        let error = through(&vec![0; 3 << 20], 1 << 20, |_| {}).unwrap_err();
        assert!(error.message().contains("more than"), "{error}");
    }
}
