//! The system calls that change and read a workspace's files.
//!
//! The hook is asked before each change, and the directory of the change is opened only
//! then, so that a directory that was moved is noticed.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, RenameFlags};
use rustix::io::{Errno, Result};
use rustix::path::Arg;

use super::super::path_change::FileEntry;
use super::super::test_hook::{Touch, TouchHook};
use super::compare::errno;
use crate::error::{Error, ErrorKind};
use crate::objects::Objects;
use crate::snapshot::FileKind;
use crate::snapshot::name::{bytes_of, os_str, shown};
use crate::snapshot::restorable::{check_length, is_restorable_name};
use crate::snapshot::scan::split;
use crate::snapshot::scan::sys::{self, Root, Seen};

/// Blocks of so many zeros become holes.
const HOLE: usize = 32 * 1024;

/// Creates a directory that only we can use, and that we can use whatever the umask is.
pub(super) fn make_private_dir(dir: impl AsFd, name: impl Arg + Copy) -> Result<()> {
    rustix::fs::mkdirat(&dir, name, Mode::RWXU)?;
    let mode = Mode::from_raw_mode(sys::seen_at(&dir, name)?.stamp.mode);
    match mode.contains(Mode::RWXU) {
        true => Ok(()),
        false => rustix::fs::chmodat(&dir, name, mode | Mode::RWXU, AtFlags::empty()),
    }
}

/// A path within the workspace: its directory, and its name there.
#[derive(Debug, Clone, Copy)]
pub(super) struct SplitPath<'a> {
    pub(super) path: &'a Path,
    pub(super) dir: &'a [u8],
    pub(super) name: &'a [u8],
}

impl<'a> SplitPath<'a> {
    /// Splits a path. The workspace itself has no name.
    pub(super) fn of(path: &'a Path) -> Self {
        let (dir, name) = split(bytes_of(path));
        Self { path, dir, name }
    }

    /// Returns the path of its directory.
    pub(super) fn dir_path(self) -> PathBuf {
        PathBuf::from(os_str(self.dir))
    }

    /// Refuses paths that lead out of the workspace, into git's own state or into a staging
    /// directory, and names that no file system allows.
    pub(super) fn check(path: &Path) -> crate::error::Result<()> {
        let bytes = bytes_of(path);
        if bytes.is_empty() || bytes.split(|byte| *byte == b'/').all(is_restorable_name) {
            return Ok(());
        }
        let what = format!("{} is not a restorable path", shown(path));
        Err(Error::new(ErrorKind::Invalid, what).at_path(path))
    }
}

/// The root directory of a workspace, below which everything happens.
#[derive(Debug)]
pub(super) struct RootDir<'a> {
    root: Root,
    pub(super) path: &'a Path,
    pub(super) hook: Option<&'a dyn TouchHook>,
}

impl<'a> RootDir<'a> {
    pub(super) fn open(
        path: &'a Path,
        hook: Option<&'a dyn TouchHook>,
    ) -> crate::error::Result<Self> {
        let root = Root::open(path)?;
        Ok(Self { root, path, hook })
    }

    pub(super) fn root(&self) -> &OwnedFd {
        &self.root.fd
    }

    /// Opens a directory below the root.
    pub(super) fn open_dir(&self, path: &[u8]) -> Result<OwnedFd> {
        let fd = self.root.open_dir(path)?;
        if sys::seen(&fd)?.dev != self.root.dev {
            return Err(Errno::XDEV);
        }
        Ok(fd)
    }

    /// Asks the hook.
    pub(super) fn ask(&self, call: &'static str, path: &Path) -> Result<()> {
        ask(self.hook, call, path)
    }

    /// Creates a file that only we can use for now.
    pub(super) fn create_file(&self, dir: &OwnedFd, name: &[u8], path: &Path) -> Result<File> {
        self.ask("openat", path)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let private = Mode::RUSR | Mode::WUSR;
        rustix::fs::openat(dir, name, flags | OFlags::CLOEXEC, private).map(File::from)
    }

    /// Writes an object to a new file; `failed` makes the error of a call. Long runs of zeros
    /// become holes, so that a sparse file needs no more space than it did.
    pub(super) fn fill(
        &self,
        (file, path): (&File, &Path),
        objects: &Objects,
        new: &FileEntry,
        failed: impl Fn(Errno) -> Error,
    ) -> crate::error::Result<()> {
        let mut written = 0;
        objects.read_to(&new.content, &mut |piece| {
            if written + piece.len() as u64 > new.size {
                check_length(&new.content, written + piece.len() as u64, new.size)?;
            }
            let asked = self.ask("write", path);
            let done = asked.and_then(|()| write_sparse(file, piece, written).map_err(errno));
            written += piece.len() as u64;
            done.map_err(&failed)
        })?;
        check_length(&new.content, written, new.size).map_err(|error| error.at_path(path))?;
        if sys::seen(file).map_err(&failed)?.len() < written {
            // It ends in a hole.
            let asked = self.ask("ftruncate", path);
            let set = asked.and_then(|()| rustix::fs::ftruncate(file, written));
            set.map_err(&failed)?;
        }
        Ok(())
    }

    /// Makes a call, and repeats it once if the system fails.
    pub(super) fn call<T>(
        &self,
        call: &'static str,
        path: &Path,
        make: impl Fn() -> Result<T>,
    ) -> Result<T> {
        let once = || {
            self.ask(call, path)?;
            make()
        };
        match once() {
            Err(error) if !is_answer(error) => once(),
            done => done,
        }
    }

    /// Makes the error of a call that failed.
    pub(super) fn failed(
        &self,
        doing: &str,
        call: &'static str,
        path: &Path,
        error: Errno,
    ) -> Error {
        let doing = format!("cannot {doing} ({call})");
        Error::io(doing, &self.path.join(path), error.into())
    }

    /// Makes the error of a path that changed meanwhile.
    pub(super) fn moved(&self, path: &Path) -> Error {
        let name = match bytes_of(path) {
            b"" => "the workspace's own directory".to_owned(),
            _ => shown(path),
        };
        let what = format!("{name} has just changed; try again");
        Error::new(ErrorKind::Conflict, what).at_path(&self.path.join(path))
    }

    /// Looks at a path; `None` if it does not exist, also because something on the way is
    /// not a directory.
    pub(super) fn look(&self, path: &Path) -> Result<Option<Seen>> {
        let place = SplitPath::of(path);
        if place.name.is_empty() {
            return sys::seen(self.root()).map(Some);
        }
        let seen = self
            .open_dir(place.dir)
            .and_then(|dir| sys::seen_at(&dir, place.name));
        match seen {
            Err(error) if is_gone(error) => Ok(None),
            seen => seen.map(Some),
        }
    }

    /// Moves a path into the staging directory, under a name that is free there, and
    /// returns the directory that it was in.
    pub(super) fn take(&self, place: SplitPath<'_>, to: &OwnedFd, name: &str) -> Result<OwnedFd> {
        let taken = self.call("renameat2", place.path, || {
            let dir = self.open_dir(place.dir)?;
            rename(&dir, place.name, to, name.as_bytes())?;
            Ok(dir)
        });
        match taken {
            Err(error) if is_unsupported(error) => {}
            done => return done,
        }
        // Nobody else creates names in the staging directory.
        self.call("renameat", place.path, || {
            match sys::seen_at(to, name) {
                Ok(_) => return Err(Errno::EXIST),
                Err(Errno::NOENT) => {}
                Err(error) => return Err(error),
            }
            let dir = self.open_dir(place.dir)?;
            rustix::fs::renameat(&dir, place.name, to, name)?;
            Ok(dir)
        })
    }

    /// Moves a name from the staging directory to a path that does not exist. `dir` is the
    /// path's directory; `None` opens it.
    pub(super) fn put(
        &self,
        from: &OwnedFd,
        name: &str,
        place: SplitPath<'_>,
        dir: Option<&OwnedFd>,
    ) -> Result<()> {
        let within = |act: &dyn Fn(&OwnedFd) -> Result<()>| match dir {
            Some(dir) => act(dir),
            None => act(&self.open_dir(place.dir)?),
        };
        let moved = self.call("renameat2", place.path, || {
            within(&|dir| rename(from, name.as_bytes(), dir, place.name))
        });
        match moved {
            Err(error) if is_unsupported(error) => {}
            done => return done,
        }
        self.call("linkat", place.path, || {
            within(&|dir| rustix::fs::linkat(from, name, dir, place.name, AtFlags::empty()))
        })?;
        self.call("unlinkat", place.path, || {
            rustix::fs::unlinkat(from, name, AtFlags::empty())
        })
    }

    /// Exchanges a name in the staging directory with a path, and returns the path's
    /// directory.
    pub(super) fn exchange(
        &self,
        ours: &OwnedFd,
        name: &str,
        place: SplitPath<'_>,
    ) -> Result<OwnedFd> {
        self.call("renameat2", place.path, || {
            let dir = self.open_dir(place.dir)?;
            exchange(ours, name.as_bytes(), &dir, place.name)?;
            Ok(dir)
        })
    }

    /// Reverses an exchange in this directory.
    pub(super) fn exchange_back(
        &self,
        ours: &OwnedFd,
        name: &str,
        place: SplitPath<'_>,
        dir: &OwnedFd,
    ) -> Result<()> {
        self.call("renameat2", place.path, || {
            exchange(ours, name.as_bytes(), dir, place.name)
        })
    }

    /// Renames something in the root to a name that is free.
    pub(super) fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.call("renameat2", from, || {
            rename(self.root(), bytes_of(from), self.root(), bytes_of(to))
        })
    }

    /// Creates a directory that only we can use for now.
    pub(super) fn make_dir(&self, path: &Path) -> Result<()> {
        let place = SplitPath::of(path);
        self.call("mkdirat", path, || {
            let dir = self.open_dir(place.dir)?;
            make_private_dir(&dir, place.name)
        })
    }

    /// Removes an empty directory.
    pub(super) fn remove_dir(&self, path: &Path) -> Result<()> {
        let place = SplitPath::of(path);
        self.call("unlinkat", path, || {
            let dir = self.open_dir(place.dir)?;
            rustix::fs::unlinkat(&dir, place.name, AtFlags::REMOVEDIR)
        })
    }

    /// Sets the mode of a file or directory if `is_expected`, and returns the earlier one;
    /// `None` if it was not expected, or is neither.
    pub(super) fn set_mode(
        &self,
        path: &Path,
        mode: u32,
        is_expected: impl Fn(&Seen) -> bool,
    ) -> Result<Option<u32>> {
        self.call("fchmod", path, || {
            let Some((fd, is_readable)) = self.open_for_mode(path)? else {
                return Ok(None);
            };
            let seen = sys::seen(&fd)?;
            if !is_expected(&seen) {
                return Ok(None);
            }
            if seen.stamp.mode != mode {
                let bits = Mode::from_raw_mode(mode);
                match seen.kind {
                    _ if is_readable => rustix::fs::fchmod(&fd, bits)?,
                    FileKind::File | FileKind::Dir => {
                        let name = format!("/proc/self/fd/{}", fd.as_raw_fd());
                        rustix::fs::chmodat(CWD, name, bits, AtFlags::empty())?;
                    }
                    _ => return Err(Errno::LOOP),
                }
            }
            Ok(Some(seen.stamp.mode))
        })
    }

    /// Opens a path to set its mode, and returns whether it can be read.
    fn open_for_mode(&self, path: &Path) -> Result<Option<(OwnedFd, bool)>> {
        let place = SplitPath::of(path);
        if place.name.is_empty() {
            return Ok(Some((self.open_dir(b"")?, true)));
        }
        let opened = self.open_dir(place.dir).and_then(|dir| {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match sys::open_file(&dir, place.name) {
                Err(Errno::ACCESS) => {
                    let fd = rustix::fs::openat(&dir, place.name, flags, Mode::empty());
                    fd.map(|fd| (fd, false))
                }
                fd => fd.map(|fd| (fd, true)),
            }
        });
        match opened {
            Err(error) if is_gone(error) || error == Errno::NXIO => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// Syncs the names in a directory, or a file and its mode.
    pub(super) fn sync(&self, path: &Path) -> Result<()> {
        self.call("fsync", path, || {
            let place = SplitPath::of(path);
            let opened = match self.open_dir(bytes_of(path)) {
                Err(Errno::NOTDIR) => self
                    .open_dir(place.dir)
                    .and_then(|dir| sys::open_file(&dir, place.name)),
                dir => dir,
            };
            match opened {
                Ok(fd) => rustix::fs::fsync(&fd),
                // It is gone or cannot be read: its directory is synced as well.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => Ok(()),
                Err(error) => Err(error),
            }
        })
    }

    /// Syncs the whole file system.
    pub(super) fn sync_all(&self) -> Result<()> {
        self.call("syncfs", Path::new(""), || rustix::fs::syncfs(self.root()))
    }
}

/// Writes bytes at an offset of a new file, without blocks of zeros.
fn write_sparse(file: &File, bytes: &[u8], offset: u64) -> std::io::Result<()> {
    let (mut at, mut rest) = (offset, bytes);
    while !rest.is_empty() {
        let to_block = HOLE - (at % HOLE as u64) as usize;
        let (block, after) = rest.split_at(to_block.min(rest.len()));
        let is_hole = block.len() == HOLE && block.iter().all(|byte| *byte == 0);
        if !is_hole {
            file.write_all_at(block, at)?;
        }
        at += block.len() as u64;
        rest = after;
    }
    Ok(())
}

/// Asks a hook before a change.
pub(super) fn ask(hook: Option<&dyn TouchHook>, call: &'static str, path: &Path) -> Result<()> {
    let asked = hook.map_or(Ok(()), |hook| hook.before(&Touch { call, path }));
    asked.map_err(errno)
}

/// Returns whether names may be created and removed in a directory.
pub(super) fn may_write(dir: impl AsFd) -> Result<bool> {
    let access = Access::WRITE_OK | Access::EXEC_OK;
    match rustix::fs::accessat(dir, ".", access, AtFlags::EACCESS) {
        Ok(()) => Ok(true),
        Err(Errno::ACCESS | Errno::PERM) => Ok(false),
        Err(error) => Err(error),
    }
}

fn rename(from: &OwnedFd, name: &[u8], to: &OwnedFd, new: &[u8]) -> Result<()> {
    rustix::fs::renameat_with(from, name, to, new, RenameFlags::NOREPLACE)
}

fn exchange(ours: &OwnedFd, name: &[u8], dir: &OwnedFd, theirs: &[u8]) -> Result<()> {
    rustix::fs::renameat_with(ours, name, dir, theirs, RenameFlags::EXCHANGE)
}

/// Returns whether a file system does not support the call.
pub(super) fn is_unsupported(error: Errno) -> bool {
    matches!(error, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)
}

/// Returns whether an error is an answer, and not a failure of the machine.
fn is_answer(error: Errno) -> bool {
    let of_names = matches!(
        error,
        Errno::NOENT | Errno::EXIST | Errno::NOTDIR | Errno::LOOP | Errno::NOTEMPTY | Errno::ISDIR
    );
    of_names || is_unsupported(error)
}

/// Returns whether an error says that a path, or a directory on the way, is gone.
pub(super) fn is_gone(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
}
