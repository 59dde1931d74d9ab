//! The seam between the engine and the disk.
//!
//! Every file operation that the engine makes is a method of [`Storage`] or
//! [`StorageFile`]. [`LocalStorage`] is the real thing and the default; tests
//! put others in its place: one in memory, which loses and reorders what was not
//! synced when its power is cut, and one that fails, tears or drops the nth
//! operation. The traits are as small as the engine's needs: files that
//! grow at their end, directories that are listed, locks that die with their
//! process.

mod local;
mod unsynced;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

pub use local::LocalStorage;
pub(crate) use unsynced::Unsynced;

/// A file system, as far as the engine needs one.
///
/// Paths are absolute or relative to the process, and always lie inside the
/// store. Errors are plain [`io::Error`]s; the engine adds the path.
pub trait Storage: Send + Sync + fmt::Debug + 'static {
    /// Creates an empty file, readable and appendable, that did not exist.
    ///
    /// Fails with `AlreadyExists` otherwise. On Unix its mode is 0600.
    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>>;

    /// Opens an existing file to read and to append.
    fn open_append(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>>;

    /// Opens an existing file to read.
    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>>;

    /// Creates a directory that did not exist, mode 0700 on Unix.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Gives the file `from` the additional name `to`, which must be free.
    ///
    /// Afterwards `from` may or may not still exist; the caller removes it.
    /// Fails with `AlreadyExists` rather than replace anything.
    fn link_new(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes the name of a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Gives a file or a directory another name, which must be free, in one step:
    /// a crash leaves one of both names. Durable once both directories are synced.
    fn rename_new(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Puts the file `from` in the place of the file `to`, in one step.
    fn replace(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Removes a directory that is empty.
    fn remove_dir(&self, _path: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns the names in a directory, in no order.
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>>;

    /// Returns whether something of this name exists.
    fn exists(&self, path: &Path) -> io::Result<bool>;

    /// Returns whether something of this name is a directory. A link to one is none.
    fn is_dir(&self, path: &Path) -> io::Result<bool> {
        match self.list(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Makes the names in a directory durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Makes all that lies below a directory durable, however much that is.
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
pub trait StorageFile: Send + Sync + fmt::Debug {
    /// Returns the length in bytes, as it is now.
    fn len(&self) -> io::Result<u64>;

    /// Returns whether the file has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Reads up to `buf.len()` bytes at `offset`; 0 means the end of the file.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Appends with a single system call and returns how many bytes it took.
    fn append(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Cuts the file off at `len`.
    fn truncate(&self, len: u64) -> io::Result<()>;

    /// Makes the file's bytes and its length durable.
    fn sync(&self) -> io::Result<()>;

    /// Takes the exclusive lock on this file, waiting for it.
    ///
    /// Locks belong to the open file and are gone when it is closed, however
    /// its process ends.
    fn lock(&self) -> io::Result<()>;

    /// Takes the exclusive lock if it is free, and returns whether it was.
    fn try_lock(&self) -> io::Result<bool>;

    /// Takes the lock together with others that share it, waiting for whoever has
    /// it alone. Where locks cannot be shared it is taken alone.
    fn lock_shared(&self) -> io::Result<()> {
        self.lock()
    }

    /// Shares the lock if nobody has it alone, and returns whether it does.
    fn try_lock_shared(&self) -> io::Result<bool> {
        self.try_lock()
    }

    /// Gives the lock back.
    fn unlock(&self) -> io::Result<()>;

    /// Returns when the file was last written to, where that is known.
    fn modified(&self) -> io::Result<SystemTime> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Fills `buf` from `offset` on as far as the file goes, and returns how far.
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

/// Appends all of `bytes`, in one call unless the file takes only a part.
///
/// A file that takes a part is almost always a full disk: asking again for the
/// rest brings out the reason.
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
