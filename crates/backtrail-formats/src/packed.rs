//! Files that their agent packed: unpacked as far as they can be.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use crate::error::{Error, Result};
use crate::source::Source;

/// The most that a packed file may hold. A few bytes can be unpacked to more than any
/// disk has room for.
const MAX_UNPACKED: u64 = 64 << 30;

/// How much is unpacked at once.
const BUFFER: usize = 256 << 10;

/// What came of unpacking a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpacked {
    /// How many bytes were unpacked.
    pub bytes: u64,
    /// Why it was not unpacked to its end, where it was not. What came before the damage
    /// is there.
    pub damage: Option<String>,
}

/// How much is unpacked to tell what a file is.
const BEGINNING: u64 = 256 << 10;

/// Returns whether a file of this name is packed.
pub(crate) fn is_packed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "zst")
}

/// Returns the beginning of a packed file, unpacked.
pub(crate) fn beginning(path: &Path) -> Result<Source> {
    let opened = File::open(path).and_then(zstd::stream::read::Decoder::new);
    let decoder = opened.map_err(|error| Error::io("cannot unpack the file", path, error))?;
    let mut bytes = Vec::new();
    // What is damaged behind the beginning is told when the file is read.
    decoder.take(BEGINNING).read_to_end(&mut bytes).ok();
    Ok(Source::from_bytes(path, bytes))
}

/// Unpacks a file that is packed with zstd to the present position of `into`.
///
/// A damaged file is unpacked up to the damage. One that holds more than 64 GiB is
/// refused.
pub fn unpack(path: &Path, into: &mut File) -> Result<Unpacked> {
    unpack_up_to(path, into, MAX_UNPACKED)
}

fn unpack_up_to(path: &Path, into: &mut File, most: u64) -> Result<Unpacked> {
    let failed = |error| Error::io("cannot unpack the file", path, error);
    let packed = File::open(path).map_err(failed)?;
    let mut decoder = zstd::stream::read::Decoder::new(packed).map_err(failed)?;
    let mut buffer = vec![0; BUFFER];
    let mut bytes = 0;
    loop {
        let read = match decoder.read(&mut buffer) {
            Ok(0) => {
                return Ok(Unpacked {
                    bytes,
                    damage: None,
                });
            }
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // What the system says is no damage of the file.
            Err(error) if error.raw_os_error().is_some() => return Err(failed(error)),
            Err(error) => {
                let damage = Some(format!("the packed file is damaged: {error}"));
                return Ok(Unpacked { bytes, damage });
            }
        };
        bytes += read as u64;
        if bytes > most {
            let what = format!("refused: it holds more than {} GiB unpacked", most >> 30);
            return Err(Error::invalid(what, path));
        }
        let write = into.write_all(&buffer[..read]);
        write.map_err(|error| Error::io("cannot write what was unpacked of", path, error))?;
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, SeekFrom};

    use super::*;

    /// Packs as an agent does, with a checksum at the end.
    fn pack(content: &[u8]) -> Vec<u8> {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
        encoder.include_checksum(true).unwrap();
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    /// Packs, and unpacks what `spoil` made of it.
    fn through(
        content: &[u8],
        most: u64,
        spoil: impl Fn(&mut Vec<u8>),
    ) -> Result<(Unpacked, Vec<u8>)> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rollout.jsonl.zst");
        let mut packed = pack(content);
        spoil(&mut packed);
        std::fs::write(&path, packed).unwrap();
        let mut into = tempfile::tempfile().unwrap();
        let unpacked = unpack_up_to(&path, &mut into, most)?;
        into.seek(SeekFrom::Start(0)).unwrap();
        let mut back = Vec::new();
        into.read_to_end(&mut back).unwrap();
        Ok((unpacked, back))
    }

    fn lines() -> Vec<u8> {
        let line = |n: u32| format!("{{\"line\":{n},\"x\":{}}}\n", n.wrapping_mul(2_654_435_761));
        (0..60_000).map(line).collect::<String>().into_bytes()
    }

    #[test]
    fn what_was_packed_comes_back() {
        let (unpacked, back) = through(&lines(), MAX_UNPACKED, |_| {}).unwrap();
        assert_eq!(back, lines());
        assert_eq!((unpacked.bytes, unpacked.damage), (back.len() as u64, None));
    }

    #[test]
    fn several_frames_are_one_content() {
        let more = pack(b"more\n");
        let append = |packed: &mut Vec<u8>| packed.extend_from_slice(&more);
        let (unpacked, back) = through(b"one\n", MAX_UNPACKED, append).unwrap();
        assert_eq!((&back[..], unpacked.damage), (&b"one\nmore\n"[..], None));
    }

    #[test]
    fn what_came_before_the_damage_is_kept() {
        for spoil in [
            (|packed: &mut Vec<u8>| packed.truncate(packed.len() * 2 / 3)) as fn(&mut Vec<u8>),
            |packed| {
                let at = packed.len() * 2 / 3;
                packed[at..at + 64].fill(0xA5);
            },
            |packed| packed.extend_from_slice(b"no frame"),
        ] {
            let (unpacked, back) = through(&lines(), MAX_UNPACKED, spoil).unwrap();
            assert!(unpacked.damage.is_some());
            assert!(back.len() > 100_000 && lines().starts_with(&back[..100_000]));
            assert_eq!(unpacked.bytes, back.len() as u64);
        }
    }

    #[test]
    fn what_is_no_packed_file_is_damage_and_nothing_else() {
        let (unpacked, back) = through(b"", 0, |packed| *packed = b"{}\n".to_vec()).unwrap();
        assert!(back.is_empty() && unpacked.damage.is_some());
    }

    #[test]
    fn what_unpacks_to_too_much_is_refused() {
        let error = through(&vec![0; 3 << 20], 1 << 20, |_| {}).unwrap_err();
        assert!(error.what().contains("more than"), "{error}");
    }
}
