//! The operating system's file system.
//!
//! A store's root may be reached through links. Below it none is followed: a link would
//! let a write, a read or a removal happen somewhere else.

use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use super::{LinkRefused, Storage, StorageFile};

/// The operating system's file system: the default [`Storage`].
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalStorage;

/// Follows links, except to a file that is opened: a transcript may be anywhere.
static ANYWHERE: Disk = Disk { root: None };

impl Storage for LocalStorage {
    fn within(&self, root: &Path) -> Option<Arc<dyn Storage>> {
        let root = Some(root.to_owned());
        Some(Arc::new(Disk { root }))
    }

    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        ANYWHERE.create_new(path)
    }

    fn open_append(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        ANYWHERE.open_append(path)
    }

    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        ANYWHERE.open_read(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        ANYWHERE.create_dir(path)
    }

    fn link_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        ANYWHERE.link_new(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        ANYWHERE.remove_file(path)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        ANYWHERE.rename_new(from, to)
    }

    fn replace(&self, from: &Path, to: &Path) -> io::Result<()> {
        ANYWHERE.replace(from, to)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        ANYWHERE.remove_dir(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        ANYWHERE.list(dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        ANYWHERE.exists(path)
    }

    fn is_dir(&self, path: &Path) -> io::Result<bool> {
        ANYWHERE.is_dir(path)
    }

    fn is_link(&self, path: &Path) -> io::Result<bool> {
        ANYWHERE.is_link(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        ANYWHERE.sync_dir(dir)
    }

    fn sync_tree(&self, dir: &Path) -> io::Result<()> {
        ANYWHERE.sync_tree(dir)
    }
}

/// The files of a store, or of the whole system.
#[derive(Debug)]
struct Disk {
    /// The directory below which no link is followed.
    root: Option<PathBuf>,
}

impl Storage for Disk {
    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL;
        let file = self.open(path, flags, PRIVATE_FILE)?;
        let mode = Mode::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
        if !mode.contains(PRIVATE_FILE) {
            rustix::fs::fchmod(&file, mode | PRIVATE_FILE)?;
        }
        Ok(Arc::new(LocalFile(file.into())))
    }

    fn open_append(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        self.open_regular(path, OFlags::RDWR | OFlags::APPEND)
    }

    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        self.open_regular(path, OFlags::RDONLY)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let place = self.place(path)?;
        rustix::fs::mkdirat(place.dir(), place.name, PRIVATE_DIR)?;
        // A strict umask must not make a directory that even its owner cannot use.
        let mode = Mode::from_raw_mode(place.stat()?.st_mode);
        if !mode.contains(PRIVATE_DIR) {
            let mode = mode | PRIVATE_DIR;
            rustix::fs::chmodat(place.dir(), place.name, mode, AtFlags::empty())?;
        }
        Ok(())
    }

    fn link_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (old, new) = (self.place(from)?, self.place(to)?);
        let linked = rustix::fs::linkat(old.dir(), old.name, new.dir(), new.name, AtFlags::empty());
        match linked {
            Err(error) if links_unsupported(error) => rename_new(&old, &new),
            linked => Ok(linked?),
        }
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let place = self.place(path)?;
        self.refuse_link(path, &place)?;
        Ok(rustix::fs::unlinkat(
            place.dir(),
            place.name,
            AtFlags::empty(),
        )?)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (old, new) = (self.place(from)?, self.place(to)?);
        self.refuse_link(from, &old)?;
        rename_new(&old, &new)
    }

    fn replace(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (old, new) = (self.place(from)?, self.place(to)?);
        self.refuse_link(from, &old)?;
        self.refuse_link(to, &new)?;
        Ok(rustix::fs::renameat(
            old.dir(),
            old.name,
            new.dir(),
            new.name,
        )?)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let place = self.place(path)?;
        self.refuse_link(path, &place)?;
        Ok(rustix::fs::unlinkat(
            place.dir(),
            place.name,
            AtFlags::REMOVEDIR,
        )?)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        // Not by `std::fs::read_dir`, which panics if the directory cannot be closed.
        let mut names = Vec::new();
        for entry in Dir::new(self.open(dir, DIRECTORY, Mode::empty())?)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if !matches!(name, b"." | b"..") {
                names.push(OsStr::from_bytes(name).to_owned());
            }
        }
        Ok(names)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let place = self.place(path);
        let found = place.and_then(|place| match place.dir {
            Some(_) => self
                .refuse_link(path, &place)
                .and_then(|()| place.stat().map(drop)),
            None => Ok(rustix::fs::stat(path).map(drop)?),
        });
        match found {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn is_dir(&self, path: &Path) -> io::Result<bool> {
        Ok(self.kind(path)? == Some(FileType::Directory))
    }

    fn is_link(&self, path: &Path) -> io::Result<bool> {
        Ok(self.kind(path)? == Some(FileType::Symlink))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::from(self.open(dir, DIRECTORY, Mode::empty())?).sync_all()
    }

    #[cfg(target_os = "linux")]
    fn sync_tree(&self, dir: &Path) -> io::Result<()> {
        // One call for the whole file system, because thousands of small files would each
        // wait for the disk.
        Ok(rustix::fs::syncfs(self.open(
            dir,
            DIRECTORY,
            Mode::empty(),
        )?)?)
    }
}

const PRIVATE_FILE: Mode = Mode::RUSR.union(Mode::WUSR);
const PRIVATE_DIR: Mode = Mode::RWXU;
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);
/// A directory on the way to something else.
const WAY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A name in a directory.
struct NameInDir<'p> {
    /// `None` if the name is a path that may lead through links.
    dir: Option<OwnedFd>,
    name: &'p Path,
}

impl NameInDir<'_> {
    fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_ref().map_or(CWD, AsFd::as_fd)
    }

    fn stat(&self) -> io::Result<rustix::fs::Stat> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        Ok(rustix::fs::statat(self.dir(), self.name, flags)?)
    }
}

impl Disk {
    /// Returns the root and the path below it; `None` for the root itself and everything
    /// outside.
    fn below<'a>(&'a self, path: &'a Path) -> Option<(&'a Path, &'a Path)> {
        let root = self.root.as_deref()?;
        let inner = path.strip_prefix(root).ok()?;
        let root = if root == Path::new("") {
            Path::new(".")
        } else {
            root
        };
        (inner != Path::new("")).then_some((root, inner))
    }

    fn open(&self, path: &Path, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::CLOEXEC;
        match self.below(path) {
            Some((root, inner)) => open_below(root, inner, flags, mode),
            None => Ok(retry_on_intr(|| rustix::fs::open(path, flags, mode))?),
        }
    }

    /// Opens a regular file. A link could lead out of the store, and a pipe would block
    /// forever.
    fn open_regular(&self, path: &Path, flags: OFlags) -> io::Result<Arc<dyn StorageFile>> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = self.open(path, flags, Mode::empty())?;
        if FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) != FileType::RegularFile {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not a regular file",
            ));
        }
        Ok(Arc::new(LocalFile(file.into())))
    }

    /// Opens the directory of a path.
    fn place<'p>(&self, path: &'p Path) -> io::Result<NameInDir<'p>> {
        let whole = NameInDir {
            dir: None,
            name: path,
        };
        let Some((root, inner)) = self.below(path) else {
            return Ok(whole);
        };
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let dir = match inner.parent() {
            Some(parent) if parent != Path::new("") => {
                open_below(root, parent, WAY, Mode::empty())?
            }
            _ => retry_on_intr(|| rustix::fs::open(root, WAY, Mode::empty()))?,
        };
        Ok(NameInDir {
            dir: Some(dir),
            name: Path::new(name),
        })
    }

    /// Refuses to remove or rename a link in a store: what it leads to would stay.
    fn refuse_link(&self, path: &Path, place: &NameInDir<'_>) -> io::Result<()> {
        if place.dir.is_none() {
            return Ok(());
        }
        match place.stat() {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode).is_symlink() => {
                Err(LinkRefused::at(path))
            }
            // The operation itself reports what is missing.
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Returns what a path is, not following links; `None` if it does not exist.
    fn kind(&self, path: &Path) -> io::Result<Option<FileType>> {
        match self.place(path).and_then(|place| place.stat()) {
            Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Opens a path below a directory without following a link.
fn open_below(root: &Path, inner: &Path, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
    let is_plain = |part| matches!(part, Component::Normal(_));
    if !inner.components().all(is_plain) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let top = retry_on_intr(|| rustix::fs::open(root, WAY, Mode::empty()))?;
    let flags = flags | OFlags::NOFOLLOW;
    let opened = match open_whole(&top, inner, flags, mode) {
        // Sandboxes that do not know the call forbid it instead.
        Err(Errno::NOSYS | Errno::PERM) => open_steps(&top, inner, flags, mode),
        opened => opened,
    };
    opened.map_err(|error| match error {
        Errno::LOOP | Errno::NOTDIR => link_on(root, inner).unwrap_or_else(|| error.into()),
        _ => error.into(),
    })
}

/// Opens a path in one call.
#[cfg(target_os = "linux")]
fn open_whole(
    dir: &OwnedFd,
    path: &Path,
    flags: OFlags,
    mode: Mode,
) -> rustix::io::Result<OwnedFd> {
    let resolve = rustix::fs::ResolveFlags::NO_SYMLINKS;
    retry_on_intr(|| rustix::fs::openat2(dir, path, flags, mode, resolve))
}

#[cfg(not(target_os = "linux"))]
fn open_whole(_: &OwnedFd, _: &Path, _: OFlags, _: Mode) -> rustix::io::Result<OwnedFd> {
    Err(Errno::NOSYS)
}

/// Opens a path name by name.
fn open_steps(
    dir: &OwnedFd,
    path: &Path,
    flags: OFlags,
    mode: Mode,
) -> rustix::io::Result<OwnedFd> {
    let mut held: Option<OwnedFd> = None;
    let mut names = path.iter().peekable();
    while let Some(name) = names.next() {
        let (flags, mode) = match names.peek() {
            Some(_) => (WAY | OFlags::NOFOLLOW, Mode::empty()),
            None => (flags, mode),
        };
        let at = held.as_ref().unwrap_or(dir);
        held = Some(retry_on_intr(|| rustix::fs::openat(at, name, flags, mode))?);
    }
    held.ok_or(Errno::NOENT)
}

/// Returns the error for the first link on a path below a directory, if there is one.
fn link_on(root: &Path, inner: &Path) -> Option<io::Error> {
    let mut path = root.to_owned();
    inner.iter().find_map(|name| {
        path.push(name);
        let stat = rustix::fs::lstat(&path).ok()?;
        let is_link = FileType::from_raw_mode(stat.st_mode).is_symlink();
        is_link.then(|| LinkRefused::at(&path))
    })
}

/// Returns whether the file system has no hard links (FAT, some network file systems).
fn links_unsupported(error: Errno) -> bool {
    let error = io::Error::from(error);
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported
    )
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn rename_new(old: &NameInDir<'_>, new: &NameInDir<'_>) -> io::Result<()> {
    use rustix::fs::{RenameFlags, renameat_with};
    Ok(renameat_with(
        old.dir(),
        old.name,
        new.dir(),
        new.name,
        RenameFlags::NOREPLACE,
    )?)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn rename_new(_old: &NameInDir<'_>, _new: &NameInDir<'_>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[derive(Debug)]
struct LocalFile(File);

impl StorageFile for LocalFile {
    fn len(&self) -> io::Result<u64> {
        // Cheaper than a `stat`, and every append needs it. Nothing depends on the file
        // position: reads specify theirs, and writes append.
        (&self.0).seek(SeekFrom::End(0))
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(&self.0, buf, offset)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        (&self.0).write(bytes)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn lock(&self) -> io::Result<()> {
        self.0.lock()
    }

    fn try_lock(&self) -> io::Result<bool> {
        was_free(self.0.try_lock())
    }

    fn lock_shared(&self) -> io::Result<()> {
        self.0.lock_shared()
    }

    fn try_lock_shared(&self) -> io::Result<bool> {
        was_free(self.0.try_lock_shared())
    }

    fn unlock(&self) -> io::Result<()> {
        self.0.unlock()
    }

    fn modified(&self) -> io::Result<SystemTime> {
        self.0.metadata()?.modified()
    }
}

fn was_free(locked: Result<(), TryLockError>) -> io::Result<bool> {
    match locked {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
#[path = "local_tests.rs"]
mod tests;
