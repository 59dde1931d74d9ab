//! The interface between the engine and the disk.
//!
//! Every file operation of the engine is a method of [`Storage`] or [`StorageFile`].
//! [`LocalStorage`] is the default. Tests use others: one in memory, which loses and
//! reorders unsynced writes when its power is cut, and one that fails, tears or drops the
//! nth operation. The traits are no larger than the engine needs: files that grow at
//! their end, directories that are listed, and locks that end with their process.

mod link_refused;
mod local;
mod unsynced;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

pub use link_refused::LinkRefused;
pub use local::LocalStorage;
pub(crate) use unsynced::Unsynced;

/// A file system with the operations the engine needs.
///
/// Paths are absolute or relative to the process, and always inside the store.
///
/// # Errors
///
/// Every method fails with the plain [`io::Error`] of its operation; the engine adds the
/// path. The kinds `NotFound` and `AlreadyExists` must be exact, because the engine relies
/// on them.
pub trait Storage: Send + Sync + fmt::Debug + 'static {
    /// Returns a storage for the files below `root` that follows no link there. The way to
    /// `root` itself may lead through links.
    ///
    /// `None` if this storage has no links, or follows none anyway.
    fn within(&self, _root: &Path) -> Option<Arc<dyn Storage>> {
        None
    }

    /// Creates a new empty file for reading and appending.
    ///
    /// Fails with `AlreadyExists` if it exists. On Unix its mode is 0600.
    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>>;

    /// Opens an existing file for reading and appending.
    fn open_append(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>>;

    /// Opens an existing file for reading.
    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>>;

    /// Creates a new directory, with mode 0700 on Unix.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Gives the file `from` the additional name `to`, which must not exist.
    ///
    /// Afterwards `from` may or may not still exist; the caller removes it. Fails with
    /// `AlreadyExists` rather than replacing anything.
    fn link_new(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes the name of a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Renames a file or a directory atomically to a name that must not exist. Durable
    /// once both directories are synced.
    fn rename_new(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Atomically replaces the file `to` with the file `from`.
    fn replace(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Removes an empty directory.
    fn remove_dir(&self, _path: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns the names in a directory, in no particular order.
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>>;

    /// Returns whether a path exists.
    fn exists(&self, path: &Path) -> io::Result<bool>;

    /// Returns whether a path is a directory, not following links.
    fn is_dir(&self, path: &Path) -> io::Result<bool> {
        match self.list(path) {
            Ok(_) => Ok(true),
            Err(error) if is_absent(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns whether a path is a symbolic link.
    fn is_link(&self, _path: &Path) -> io::Result<bool> {
        Ok(false)
    }

    /// Makes the names in a directory durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Makes everything below a directory durable.
    fn sync_tree(&self, dir: &Path) -> io::Result<()> {
        for name in self.list(dir)? {
            let path = dir.join(name);
            if self.is_dir(&path)? {
                self.sync_tree(&path)?;
            } else {
                self.open_read(&path)?.sync()?;
            }
        }
        self.sync_dir(dir)
    }
}

/// An open file.
///
/// # Errors
///
/// Every method fails with the plain [`io::Error`] of its operation.
pub trait StorageFile: Send + Sync + fmt::Debug {
    /// Returns the current length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Returns whether the file has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Reads up to `buf.len()` bytes at `offset`; 0 means the end of the file.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Appends with a single system call and returns how many bytes were written.
    fn append(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Truncates the file to `len`.
    fn truncate(&self, len: u64) -> io::Result<()>;

    /// Replaces everything after the first `len` bytes. For signs of life only: a process
    /// that dies meanwhile leaves the file shorter.
    fn replace_end(&self, len: u64, bytes: &[u8]) -> io::Result<()> {
        self.truncate(len)?;
        self.append(bytes).map(drop)
    }

    /// Makes the file's bytes and its length durable.
    fn sync(&self) -> io::Result<()>;

    /// Takes the exclusive lock on this file, waiting for it.
    ///
    /// Locks belong to the open file and are released when it is closed, however its
    /// process ends.
    fn lock(&self) -> io::Result<()>;

    /// Takes the exclusive lock if it is free, and returns whether it was.
    fn try_lock(&self) -> io::Result<bool>;

    /// Takes a shared lock, waiting for an exclusive holder. If locks cannot be shared,
    /// it is exclusive.
    fn lock_shared(&self) -> io::Result<()> {
        self.lock()
    }

    /// Takes a shared lock unless another holder has it exclusively, and returns whether
    /// it did.
    fn try_lock_shared(&self) -> io::Result<bool> {
        self.try_lock()
    }

    /// Releases the lock.
    fn unlock(&self) -> io::Result<()>;

    /// Returns when the file was last written to, if known.
    fn modified(&self) -> io::Result<SystemTime> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Returns the directory of a file.
pub(crate) fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if dir != Path::new("") => dir,
        _ => Path::new("."),
    }
}

/// Fills `buf` from `offset` on as far as the file goes, and returns how many bytes were
/// read.
pub(crate) fn read_full(
    file: &dyn StorageFile,
    buf: &mut [u8],
    mut offset: u64,
) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buf.len() {
        match file.read_at(&mut buf[filled..], offset) {
            Ok(0) => break,
            Ok(n) => {
                filled += n;
                offset += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Appends all of `bytes`, in one call unless the file accepts only a part.
///
/// A partial write almost always means a full disk: writing the rest returns the reason.
pub(crate) fn append_all(file: &dyn StorageFile, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.append(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => bytes = &bytes[n..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads a range of a file, or as much of it as exists.
///
/// The range is within the measured length of the file, so no number in a file can
/// make it allocate more memory than the file is long.
pub(crate) fn read_range(file: &dyn StorageFile, range: Range<u64>) -> io::Result<Vec<u8>> {
    let len = range.end.saturating_sub(range.start);
    let len = usize::try_from(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let mut bytes = vec![0; len];
    let n = read_full(file, &mut bytes, range.start)?;
    bytes.truncate(n);
    Ok(bytes)
}

/// Calls `each` with a range of a file chunk by chunk, each with its offset, while it
/// returns true. Returns whether it did until the end, and the file was long enough.
pub(crate) fn for_each_chunk(
    file: &dyn StorageFile,
    range: Range<u64>,
    mut each: impl FnMut(u64, &[u8]) -> io::Result<bool>,
) -> io::Result<bool> {
    const CHUNK: usize = 256 << 10;
    let left = |at: u64| usize::try_from(range.end - at).map_or(CHUNK, |left| left.min(CHUNK));
    let mut chunk = vec![0; left(range.start)];
    let mut at = range.start;
    while at < range.end {
        let wanted = &mut chunk[..left(at)];
        let n = read_full(file, wanted, at)?;
        let is_whole = n == wanted.len();
        if !each(at, &wanted[..n])? || !is_whole {
            return Ok(false);
        }
        at += n as u64;
    }
    Ok(true)
}

/// Creates a directory unless it exists.
pub(crate) fn make_dir(storage: &dyn Storage, path: &Path) -> io::Result<()> {
    match storage.create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        created => created,
    }
}

/// Creates a directory, and those above it that are missing. Their names are durable when
/// this returns.
pub(crate) fn make_dirs(storage: &dyn Storage, path: &Path) -> io::Result<()> {
    let mut missing = Vec::new();
    for dir in path.ancestors().filter(|dir| *dir != Path::new("")) {
        if storage.exists(dir)? {
            break;
        }
        missing.push(dir);
    }
    for dir in missing.into_iter().rev() {
        make_dir(storage, dir)?;
        storage.sync_dir(directory(dir))?;
    }
    Ok(())
}

/// Returns the names in a directory; none if it does not exist.
pub(crate) fn names_in(storage: &dyn Storage, dir: &Path) -> io::Result<Vec<OsString>> {
    match storage.list(dir) {
        Err(error) if is_absent(&error) => Ok(Vec::new()),
        names => names,
    }
}

/// Returns whether an error means that a file or its directory does not exist.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Returns what was found, or `None` if it does not exist.
pub(crate) fn if_found<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

/// A part of a file in memory, so that short reads near each other cost one.
#[derive(Debug)]
pub(crate) struct Window<'a> {
    file: &'a dyn StorageFile,
    /// The assumed length of the file.
    len: u64,
    /// The size of a read.
    size: usize,
    start: u64,
    bytes: Vec<u8>,
}

impl<'a> Window<'a> {
    pub(crate) fn new(file: &'a dyn StorageFile, len: u64, size: usize) -> Self {
        Self {
            file,
            len,
            size,
            start: 0,
            bytes: Vec::new(),
        }
    }

    /// Returns the bytes from an offset on: at least `least`, unless the file ends.
    pub(crate) fn from(&mut self, at: u64, least: usize) -> io::Result<&[u8]> {
        let skipped = at
            .checked_sub(self.start)
            .and_then(|skipped| usize::try_from(skipped).ok())
            .filter(|skipped| skipped + least <= self.bytes.len());
        if let Some(skipped) = skipped {
            return Ok(&self.bytes[skipped..]);
        }
        let rest = usize::try_from(self.len.saturating_sub(at)).unwrap_or(usize::MAX);
        self.bytes.resize(rest.min(least.max(self.size)), 0);
        self.start = at;
        let n = read_full(self.file, &mut self.bytes, at)?;
        self.bytes.truncate(n);
        Ok(&self.bytes)
    }
}
