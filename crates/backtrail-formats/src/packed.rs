//! Files that are packed: unpacked aside, and read from there.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use crate::error::{Error, Result};
use crate::source::Source;

/// The most that a file may unpack to.
const MAX_UNPACKED: u64 = 64 << 30;
/// How much is unpacked to tell what a file is.
const BEGINNING: u64 = 256 << 10;

/// What a packed file gave.
#[derive(Debug)]
pub(crate) struct Unpacked {
    /// Why it ended early, where it did: what came before is there.
    pub(crate) damage: Option<String>,
}

/// Returns whether a file of this name is packed.
pub(crate) fn is_packed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "zst")
}

/// Returns the beginning of a packed file, unpacked.
pub(crate) fn beginning(source: &Source) -> Result<Source> {
    let path = source.path();
    let mut bytes = Vec::new();
    let opened = File::open(path).and_then(zstd::stream::Decoder::new);
    let decoder = opened.map_err(|error| Error::io("cannot unpack", path, error))?;
    // What is damaged behind the beginning is told when the file is read.
    decoder.take(BEGINNING).read_to_end(&mut bytes).ok();
    Ok(Source::from_bytes(path, bytes))
}

/// Unpacks a file into another.
pub(crate) fn unpack(path: &Path, into: &mut File) -> Result<Unpacked> {
    let opened = File::open(path).and_then(zstd::stream::Decoder::new);
    let mut decoder = opened.map_err(|error| Error::io("cannot unpack", path, error))?;
    let mut buffer = vec![0; 256 << 10];
    let mut unpacked = 0;
    loop {
        let n = match decoder.read(&mut buffer) {
            Ok(0) => return Ok(Unpacked { damage: None }),
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                let damage = Some(format!("the packed file ends early: {error}"));
                return Ok(Unpacked { damage });
            }
        };
        unpacked += n as u64;
        if unpacked > MAX_UNPACKED {
            let what = format!("this file unpacks to more than {} GiB", MAX_UNPACKED >> 30);
            return Err(Error::invalid(what, path));
        }
        into.write_all(&buffer[..n])
            .map_err(|error| Error::io("cannot unpack", path, error))?;
    }
}
