//! System calls for reading the workspace's files.
//!
//! Everything is opened relative to a handle on the root, beneath it and without
//! following links: a name that is replaced by a link during the scan leads nowhere.

use std::ffi::{CStr, OsStr, OsString};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags, Stat};
use rustix::io::Errno;
use rustix::path::Arg;

use super::super::entry::FileKind;
use crate::error::{Error, ErrorKind, Result};
use crate::objects::ObjectId;

/// Longer paths are opened in parts, because the system limits the length.
const LONGEST_PATH: usize = 4000;

/// How often a call is retried if something moved meanwhile.
pub(crate) const TRIES: usize = 3;

/// Identifies a version of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stamp {
    pub(crate) ino: u64,
    pub(crate) size: u64,
    /// Nanoseconds, modulo 2^64: compared, never ordered.
    pub(crate) mtime: u64,
    pub(crate) ctime: u64,
    /// All twelve permission bits.
    pub(crate) mode: u32,
}

/// The metadata of a name or a handle.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    pub(crate) kind: FileKind,
    pub(crate) dev: u64,
    pub(crate) stamp: Stamp,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// The later of both times, in seconds and nanoseconds.
    newest: (i64, i64),
}

/// The latest time of change at which a file's times can be trusted.
///
/// A file changed more recently may change again within one tick of the file system's
/// clock and look the same.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Horizon(i64, i64);

impl Horizon {
    const AGE_MILLIS: i64 = 2000;

    /// Returns the horizon of a scan that starts now.
    pub(crate) fn of(now_millis: i64) -> Self {
        let at = now_millis.saturating_sub(Self::AGE_MILLIS);
        Self(at.div_euclid(1000), at.rem_euclid(1000) * 1_000_000)
    }
}

impl Seen {
    #[allow(
        clippy::unnecessary_cast,
        clippy::useless_conversion,
        reason = "the fields' types differ between platforms"
    )]
    fn new(stat: &Stat) -> Self {
        let mtime = (stat.st_mtime as i64, stat.st_mtime_nsec as i64);
        let ctime = (stat.st_ctime as i64, stat.st_ctime_nsec as i64);
        let nanos = |(s, n): (i64, i64)| s.wrapping_mul(1_000_000_000).wrapping_add(n) as u64;
        Self {
            kind: kind_of(FileType::from_raw_mode(stat.st_mode)),
            dev: stat.st_dev as u64,
            stamp: Stamp {
                ino: stat.st_ino as u64,
                size: u64::try_from(stat.st_size).unwrap_or(0),
                mtime: nanos(mtime),
                ctime: nanos(ctime),
                mode: stat.st_mode as u32 & 0o7777,
            },
            uid: stat.st_uid,
            gid: stat.st_gid,
            newest: mtime.max(ctime),
        }
    }

    /// Returns whether its times are too recent to detect a later change.
    pub(crate) fn is_racy(&self, horizon: Horizon) -> bool {
        self.newest > (horizon.0, horizon.1)
    }

    /// Returns the length of a file; 0 for anything else.
    pub(crate) fn len(&self) -> u64 {
        match self.kind {
            FileKind::File => self.stamp.size,
            _ => 0,
        }
    }
}

fn kind_of(kind: FileType) -> FileKind {
    match kind {
        FileType::RegularFile => FileKind::File,
        FileType::Symlink => FileKind::Link,
        FileType::Directory => FileKind::Dir,
        FileType::Socket => FileKind::Socket,
        FileType::Fifo => FileKind::Fifo,
        _ => FileKind::Device,
    }
}

/// A handle on the workspace's root directory.
#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) fd: OwnedFd,
    pub(crate) dev: u64,
    /// Whether the system can open a path beneath a handle in one call.
    whole: AtomicBool,
}

impl Root {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let fd = open_root(path)?;
        let dev = seen(&fd).map_err(|error| root_lost(path, error))?.dev;
        let whole = AtomicBool::new(true);
        Ok(Self { fd, dev, whole })
    }

    /// Opens a directory by its path beneath the root; the empty path is the root.
    pub(crate) fn open_dir(&self, path: &[u8]) -> rustix::io::Result<OwnedFd> {
        let mut rest = path;
        let mut held: Option<OwnedFd> = None;
        while rest.len() > LONGEST_PATH {
            let end = rest[..LONGEST_PATH].iter().rposition(|byte| *byte == b'/');
            let (head, tail) = rest.split_at(end.ok_or(Errno::NAMETOOLONG)?);
            held = Some(self.open_beneath(held.as_ref().unwrap_or(&self.fd), head)?);
            rest = &tail[1..];
        }
        let rest = if rest.is_empty() { b"." } else { rest };
        self.open_beneath(held.as_ref().unwrap_or(&self.fd), rest)
    }

    fn open_beneath(&self, dir: &OwnedFd, path: &[u8]) -> rustix::io::Result<OwnedFd> {
        if self.whole.load(Ordering::Relaxed) {
            match open_whole(dir, path, DIRECTORY) {
                Err(Errno::NOSYS) => self.whole.store(false, Ordering::Relaxed),
                // Sandboxes that do not know the call forbid it instead.
                Err(Errno::PERM) => {}
                done => return done,
            }
        }
        open_steps(dir, path)
    }
}

/// Opens a workspace's root directory. Its path was resolved without links, so a link in
/// its place now is not followed.
pub(crate) fn open_root(path: &Path) -> Result<OwnedFd> {
    let flags = DIRECTORY | OFlags::NOFOLLOW;
    rustix::fs::open(path, flags, Mode::empty()).map_err(|error| root_lost(path, error))
}

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// Opens a path beneath a handle in one call.
fn open_whole(dir: &OwnedFd, path: &[u8], flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    let mut tries = 0;
    loop {
        match rustix::fs::openat2(dir, path, flags, Mode::empty(), resolve) {
            // Something was renamed meanwhile; the call must be repeated.
            Err(Errno::AGAIN | Errno::INTR) if tries < 100 => tries += 1,
            done => return done,
        }
    }
}

/// Opens a path beneath a handle name by name.
fn open_steps(dir: &OwnedFd, path: &[u8]) -> rustix::io::Result<OwnedFd> {
    let flags = DIRECTORY | OFlags::NOFOLLOW;
    let mut held: Option<OwnedFd> = None;
    for name in path.split(|byte| *byte == b'/') {
        let at = held.as_ref().unwrap_or(dir);
        held = Some(rustix::fs::openat(at, name, flags, Mode::empty())?);
    }
    held.ok_or(Errno::NOENT)
}

/// Repeats a call that failed and may succeed the next time.
fn retried<T>(call: impl Fn() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    let mut tries = 1;
    loop {
        match call() {
            Err(error) if is_passing(error) && tries < TRIES => tries += 1,
            done => return done,
        }
    }
}

/// Returns whether an error may pass: the call was interrupted, or the disk failed.
pub(crate) fn is_passing(error: Errno) -> bool {
    matches!(error, Errno::INTR | Errno::IO)
}

/// Returns the metadata of a handle.
pub(crate) fn seen(fd: impl AsFd) -> rustix::io::Result<Seen> {
    retried(|| rustix::fs::fstat(&fd)).map(|stat| Seen::new(&stat))
}

/// Returns the metadata of a name in a directory, without following links.
pub(crate) fn seen_at(dir: impl AsFd, name: impl Arg + Copy) -> rustix::io::Result<Seen> {
    let stat = retried(|| rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW));
    stat.map(|stat| Seen::new(&stat))
}

/// Returns the metadata of a path.
pub(crate) fn seen_path(path: &Path) -> rustix::io::Result<Seen> {
    rustix::fs::stat(path).map(|stat| Seen::new(&stat))
}

pub(crate) fn link_target(dir: impl AsFd, name: impl Arg + Copy) -> rustix::io::Result<Box<[u8]>> {
    let target = retried(|| rustix::fs::readlinkat(&dir, name, Vec::new()))?;
    Ok(target.into_bytes().into_boxed_slice())
}

/// Opens a file for reading, without following links or waiting for a writer.
pub(crate) fn open_file(dir: impl AsFd, name: impl Arg + Copy) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let open = |flags| retried(|| rustix::fs::openat(&dir, name, flags, Mode::empty()));
    match open(flags | OFlags::NOATIME) {
        // Only a file's owner may suppress updates of its access time.
        Err(Errno::PERM) => open(flags),
        done => done,
    }
}

/// Reads a file for its metadata and content. `None` if there is none, or if it changed
/// meanwhile.
pub(crate) fn read_unchanging(
    dir: impl AsFd,
    name: impl Arg + Copy,
) -> io::Result<Option<(Seen, ObjectId)>> {
    let fd = match open_file(dir, name) {
        Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(None),
        fd => fd?,
    };
    let before = seen(&fd)?;
    if before.kind != FileKind::File {
        return Ok(None);
    }
    let file = File::from(fd);
    let content = ObjectId::of_reader(&file)?;
    let is_still = seen(&file)?.stamp == before.stamp;
    Ok(is_still.then_some((before, content)))
}

/// Reads a small regular file beneath a directory, without following links. `None` if
/// there is none, or if it is longer than `longest`.
pub(super) fn read_beneath(
    dir: &OwnedFd,
    path: &CStr,
    longest: u64,
) -> io::Result<Option<Vec<u8>>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = match open_whole(dir, path.to_bytes(), flags) {
        Err(Errno::NOSYS | Errno::PERM) => rustix::fs::openat(dir, path, flags, Mode::empty()),
        done => done,
    };
    read_opened(opened, longest)
}

/// Returns the names in a directory, in order; none if it cannot be read.
pub(crate) fn names_in(path: &Path) -> Vec<OsString> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut names = Names::default();
    let read = rustix::fs::open(path, flags, Mode::empty()).and_then(|dir| names.read(&dir));
    let all = names.iter().filter(|_| read.is_ok());
    all.map(|(name, _)| OsStr::from_bytes(name.to_bytes()).to_owned())
        .collect()
}

/// Reads a small regular file by its path; see [`read_beneath`].
pub(crate) fn read_path(path: &Path, longest: u64) -> io::Result<Option<Vec<u8>>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    read_opened(rustix::fs::open(path, flags, Mode::empty()), longest)
}

/// Reads an opened file. Errors about the file itself mean that there is none; only fatal
/// ones are returned.
fn read_opened(opened: rustix::io::Result<OwnedFd>, longest: u64) -> io::Result<Option<Vec<u8>>> {
    let fd = match opened {
        Ok(fd) => fd,
        Err(error) if is_fatal(error) => return Err(error.into()),
        Err(_) => return Ok(None),
    };
    match seen(&fd) {
        Ok(seen) if seen.kind == FileKind::File && seen.stamp.size <= longest => {}
        _ => return Ok(None),
    }
    let mut bytes = Vec::new();
    let file = File::from(fd);
    match io::Read::read_to_end(&mut io::Read::take(file, longest + 1), &mut bytes) {
        Ok(len) if len as u64 <= longest => Ok(Some(bytes)),
        _ => Ok(None),
    }
}

/// Returns whether an error concerns this process or machine and not the file. Skipping
/// the file would hide such an error.
pub(crate) fn is_fatal(error: Errno) -> bool {
    matches!(error, Errno::MFILE | Errno::NFILE | Errno::NOMEM)
}

/// Describes a fatal error and how to solve it.
pub(super) fn fatal(path: &Path, error: Errno) -> Error {
    let doing = match error {
        Errno::MFILE => "cannot open more files; raise the limit (`ulimit -n`), then try again",
        Errno::NFILE => "cannot open more files: too many are open on this system",
        _ => "cannot inspect a file of the workspace",
    };
    Error::io(doing, path, error.into())
}

/// Returns how many bytes can still be written at `path`.
pub(super) fn free_space(path: &Path) -> Result<u64> {
    // The store may not exist yet; the nearest existing directory will hold it.
    let mut at = path;
    loop {
        match rustix::fs::statvfs(at) {
            Ok(stat) => return Ok(stat.f_bavail.saturating_mul(stat.f_frsize)),
            Err(Errno::NOENT) if at.parent().is_some() => at = at.parent().unwrap_or(at),
            Err(error) => {
                let doing = "cannot read how much space is free";
                return Err(Error::io(doing, path, error.into()));
            }
        }
    }
}

/// The names in a directory, in byte order.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Names, each followed by a NUL.
    bytes: Vec<u8>,
    found: Vec<(u32, u32, FileType)>,
    buffer: Vec<u8>,
}

impl Names {
    const BUFFER: usize = 64 * 1024;

    /// Replaces the names with those of a directory.
    pub(crate) fn read(&mut self, dir: &OwnedFd) -> rustix::io::Result<()> {
        self.bytes.clear();
        self.found.clear();
        self.buffer.reserve(Self::BUFFER);
        let space: &mut [MaybeUninit<u8>] = self.buffer.spare_capacity_mut();
        let mut raw = RawDir::new(dir, space);
        while let Some(entry) = raw.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes_with_nul();
            if matches!(name, b".\0" | b"..\0") {
                continue;
            }
            let at = u32::try_from(self.bytes.len()).map_err(|_| Errno::OVERFLOW)?;
            self.bytes.extend_from_slice(name);
            self.found.push((at, name.len() as u32, entry.file_type()));
        }
        let bytes = &self.bytes;
        let name = |(at, len, _): &(u32, u32, FileType)| &bytes[*at as usize..][..*len as usize];
        self.found.sort_unstable_by(|a, b| name(a).cmp(name(b)));
        // A name may be returned twice while the directory changes.
        self.found.dedup_by(|a, b| name(a) == name(b));
        Ok(())
    }

    /// Returns the names, with their kinds where the directory listing has them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&CStr, Option<FileKind>)> {
        self.found.iter().filter_map(|(at, len, kind)| {
            let name = &self.bytes[*at as usize..][..*len as usize];
            let kind = (*kind != FileType::Unknown).then(|| kind_of(*kind));
            CStr::from_bytes_with_nul(name)
                .ok()
                .map(|name| (name, kind))
        })
    }
}

/// Creates the error for a workspace root that is not a directory.
pub(crate) fn root_lost(path: &Path, error: Errno) -> Error {
    let is_link = || {
        let stat = rustix::fs::lstat(path);
        stat.is_ok_and(|stat| Seen::new(&stat).kind == FileKind::Link)
    };
    match error {
        Errno::NOTDIR | Errno::LOOP if is_link() => {
            let path_shown = path.display();
            let what = format!(
                "the workspace {path_shown} is now a link; restore the directory, or pass the one you mean"
            );
            Error::new(ErrorKind::Conflict, what).at_path(path)
        }
        Errno::NOENT | Errno::NOTDIR => Error::new(
            ErrorKind::NotFound,
            "the workspace no longer exists or is not a directory",
        )
        .at_path(path),
        _ => Error::io("cannot read the workspace", path, error.into()),
    }
}
