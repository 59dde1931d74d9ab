//! Files that the command reads itself: the user's, the system's and, only to look, the store's.

#![expect(
    clippy::disallowed_methods,
    reason = "the engine's own files are only looked at"
)]

use std::fs::{self, DirEntry, File};
use std::io;
use std::path::Path;

/// Opens a file for reading.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Reads a whole text.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    fs::read_to_string(path)
}

/// Returns the readable entries of a directory.
pub(crate) fn entries(dir: &Path) -> io::Result<impl Iterator<Item = DirEntry> + use<>> {
    Ok(fs::read_dir(dir)?.flatten())
}
