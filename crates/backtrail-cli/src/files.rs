//! Files that the command reads itself: the user's, the system's and, only to look, the store's.

#![expect(
    clippy::disallowed_methods,
    reason = "the engine's own files are only looked at"
)]

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use backtrail::{LocalStorage, Storage as _};

/// Opens a file for reading.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Reads a whole text.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    fs::read_to_string(path)
}

/// Returns the paths in a directory.
pub(crate) fn entries(dir: &Path) -> io::Result<impl Iterator<Item = PathBuf> + use<>> {
    let (names, dir) = (LocalStorage.list(dir)?, dir.to_owned());
    Ok(names.into_iter().map(move |name| dir.join(name)))
}
