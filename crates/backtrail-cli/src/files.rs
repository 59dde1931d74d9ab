//! Files that the command reads itself: the user's, the system's and, only to look, the store's.
//! And files that it writes for the user.

#![expect(
    clippy::disallowed_methods,
    reason = "the engine's own files are only looked at"
)]

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use backtrail::{LocalStorage, Storage as _};

/// Opens a file for reading.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Creates a file that only its owner can read. Fails if there is one, or a link.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Opens a file to write over, with the permissions that it has, or creates one that only its
/// owner can read. A link that leads nowhere is not followed.
pub(crate) fn replace_private(path: &Path) -> io::Result<File> {
    match OpenOptions::new().write(true).truncate(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => create_private(path),
        opened => opened,
    }
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

/// Removes a directory with everything in it. Links in it are removed, not followed.
pub(crate) fn remove_tree(dir: &Path) -> io::Result<()> {
    for path in entries(dir)? {
        match fs::symlink_metadata(&path)?.is_dir() {
            true => remove_tree(&path)?,
            false => fs::remove_file(&path)?,
        }
    }
    fs::remove_dir(dir)
}
