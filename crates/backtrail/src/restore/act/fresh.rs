//! A new directory with the files of a snapshot: written beside its place, and put
//! there in one step.
//!
//! What is written aside is locked for as long as somebody works on it, so that who
//! comes next can tell what a crash left behind and clear it away.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use uuid::Uuid;

use super::beneath::{Beneath, is_unsupported};
use super::desk::OPEN;
use super::{Touch, TouchHook};
use crate::error::{Error, ErrorKind, Result};
use crate::snapshot::FileKind;
use crate::snapshot::name::{bytes_of, os_str, shown};
use crate::snapshot::scan::STAGING;
use crate::snapshot::scan::sys::{self, Names};
use crate::workspace::outside::Outside;

/// What tells the directories of this module from those of steps.
const FORK: &[u8] = b"fork-";
const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Returns the name that a new directory has while it is written.
pub(in crate::restore) fn fresh_name(id: Uuid) -> OsString {
    let name = [STAGING, FORK, id.to_string().as_bytes()].concat();
    OsStr::from_bytes(&name).to_owned()
}

/// A new directory that is not in its place yet.
#[derive(Debug)]
pub(in crate::restore) struct Fresh<'a> {
    /// The directory that it lies in, and shall lie in.
    parent: OwnedFd,
    place: &'a Outside,
    /// Keeps others from taking it for left behind.
    _lock: OwnedFd,
    pub(super) beneath: Beneath<'a>,
}

impl<'a> Fresh<'a> {
    /// Makes it at `path`, beside its place.
    pub(in crate::restore) fn create(
        path: &'a Path,
        place: &'a Outside,
        hook: Option<&'a dyn TouchHook>,
    ) -> Result<Self> {
        let failed = |call: &str, error: Errno| {
            let doing = format!("cannot make a directory to write the files in ({call})");
            Error::io(doing, &place.parent, error.into())
        };
        let parent = rustix::fs::open(&place.parent, DIRECTORY, Mode::empty())
            .map_err(|error| failed("open", error))?;
        let name = path.file_name().unwrap_or_default();
        let make = || {
            ask(hook, "mkdirat", Path::new(""))?;
            rustix::fs::mkdirat(&parent, name, Mode::RWXU)
        };
        make().map_err(|error| failed("mkdirat", error))?;
        let mut locked = lock(&parent, name);
        // Somebody may take it for left behind just before it is locked.
        while let Err(Errno::NOENT) = locked {
            make().map_err(|error| failed("mkdirat", error))?;
            locked = lock(&parent, name);
        }
        let locked = locked.map_err(|error| failed("openat", error));
        let opened = locked.and_then(|lock| {
            let beneath = Beneath::open(path, hook)?;
            // Neither a group nor a bit that the parent hands on: modes are set later.
            beneath
                .set_mode(Path::new(""), OPEN, |_| true)
                .map_err(|error| failed("fchmod", error))?;
            Ok((lock, beneath))
        });
        match opened {
            Ok((_lock, beneath)) => Ok(Self {
                parent,
                place,
                _lock,
                beneath,
            }),
            Err(error) => {
                rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR).ok();
                Err(error)
            }
        }
    }

    /// Makes the error of a call that failed, about the place where it shall be.
    pub(super) fn failed(&self, call: &str, path: &Path, error: Errno) -> Error {
        let doing = format!("cannot write the new directory ({call})");
        Error::io(doing, &self.place.path().join(path), error.into())
    }

    /// Puts it in its place, in one step.
    pub(in crate::restore) fn put(&self) -> Result<()> {
        let name = self.name();
        let Self { parent, place, .. } = self;
        let renamed = self.beneath.ask("renameat2", Path::new("")).and_then(|()| {
            // Where an empty directory is, the system takes it away, and no other.
            if place.is_there {
                return rustix::fs::renameat(parent, name, parent, &place.name);
            }
            let flags = RenameFlags::NOREPLACE;
            match rustix::fs::renameat_with(parent, name, parent, &place.name, flags) {
                Err(error) if is_unsupported(error) => {
                    rustix::fs::renameat(parent, name, parent, &place.name)
                }
                done => done,
            }
        });
        renamed.map_err(|error| match error {
            Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR => {
                let path = place.path();
                let what = format!("somebody else made {} meanwhile", shown(&path));
                Error::new(ErrorKind::Conflict, what).at_path(&path)
            }
            Errno::BUSY | Errno::XDEV => {
                let path = place.path();
                let what = format!(
                    "{} cannot be replaced: something is mounted there; name a directory in it",
                    shown(&path)
                );
                Error::invalid(what).at_path(&path)
            }
            error => self.failed("renameat2", Path::new(""), error),
        })
    }

    /// Removes it with all that was written in it.
    pub(in crate::restore) fn clear(self) {
        // What cannot be removed now is removed by who comes next.
        remove_all(&self.beneath, &self.parent, self.name()).ok();
    }

    /// Removes what others left behind in the same directory when they crashed.
    pub(in crate::restore) fn clear_strays(&self) {
        let mut names = Names::default();
        let read = rustix::fs::openat(&self.parent, ".", DIRECTORY, Mode::empty())
            .and_then(|dir| names.read(&dir));
        if read.is_err() {
            return;
        }
        let own = sys::seen(self.beneath.root()).map(|seen| seen.uid).ok();
        for (name, _) in names.iter() {
            let name = os_str(name.to_bytes());
            let is_fork = |rest: &[u8]| rest.starts_with(FORK);
            let is_ours = name.as_bytes().strip_prefix(STAGING).is_some_and(is_fork);
            if is_ours && name != self.name() {
                self.clear_stray(name, own);
            }
        }
    }

    fn clear_stray(&self, name: &OsStr, own: Option<u32>) {
        let Ok(dir) = rustix::fs::openat(&self.parent, name, DIRECTORY, Mode::empty()) else {
            return;
        };
        let is_own = sys::seen(&dir).is_ok_and(|seen| Some(seen.uid) == own);
        let locked = rustix::fs::flock(&dir, FlockOperation::NonBlockingLockExclusive);
        if !is_own || locked.is_err() {
            return;
        }
        let path = self.place.parent.join(name);
        if let Ok(beneath) = Beneath::open(&path, None) {
            remove_all(&beneath, &self.parent, name).ok();
        }
    }

    fn name(&self) -> &OsStr {
        self.beneath.path.file_name().unwrap_or_default()
    }
}

fn ask(hook: Option<&dyn TouchHook>, call: &'static str, path: &Path) -> rustix::io::Result<()> {
    let asked = hook.map_or(Ok(()), |hook| hook.before(&Touch { call, path }));
    asked.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// Locks a directory that was just made, if it is still there. File systems without
/// locks go without: there nobody clears anything away either.
fn lock(parent: &OwnedFd, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    let dir = rustix::fs::openat(parent, name, DIRECTORY, Mode::empty())?;
    rustix::fs::flock(&dir, FlockOperation::LockExclusive).ok();
    sys::seen_at(parent, name)?;
    Ok(dir)
}

/// Removes a directory with all that is in it, through no link.
fn remove_all(beneath: &Beneath<'_>, parent: &OwnedFd, name: &OsStr) -> rustix::io::Result<()> {
    let mut ahead = vec![PathBuf::new()];
    let mut dirs = Vec::new();
    let mut names = Names::default();
    while let Some(path) = ahead.pop() {
        // One of ours may have got a mode that keeps us out.
        beneath.set_mode(&path, OPEN, |seen| seen.kind == FileKind::Dir)?;
        let dir = beneath.open_dir(bytes_of(&path))?;
        names.read(&dir)?;
        for (name, _) in names.iter() {
            let below = path.join(os_str(name.to_bytes()));
            match sys::seen_at(&dir, name)?.kind {
                FileKind::Dir => ahead.push(below),
                _ => beneath.call("unlinkat", &below, || {
                    rustix::fs::unlinkat(&dir, name, AtFlags::empty())
                })?,
            }
        }
        dirs.push(path);
    }
    for path in dirs.iter().skip(1).rev() {
        beneath.remove_dir(path)?;
    }
    beneath.ask("unlinkat", Path::new(""))?;
    rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)
}
