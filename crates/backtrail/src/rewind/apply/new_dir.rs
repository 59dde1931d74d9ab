//! A new directory with the files of a snapshot: written under another name beside its
//! path, and renamed in one step.
//!
//! It is locked while it is written, so that the next fork can tell what a crash left
//! behind and remove it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Seek;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use uuid::Uuid;

use super::super::path_change::{FileEntry, PathEntry};
use super::super::test_hook::TouchHook;
use super::compare::errno;
use super::in_batches;
use super::root_dir::{RootDir, SplitPath, ask, is_unsupported, make_private_dir};
use super::staging_dir::OPEN;
use crate::error::{Error, ErrorKind, Result};
use crate::objects::{ObjectId, Objects};
use crate::snapshot::FileKind;
use crate::snapshot::name::{bytes_of, os_str, shown};
use crate::snapshot::scan::STAGING;
use crate::snapshot::scan::sys::{self, Names, Root};
use crate::workspace::new_directory::NewDirectory;

/// Distinguishes these directories from the staging directories of steps.
const FORK: &[u8] = b"fork-";
const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Returns the name that a new directory has while it is written.
pub(in crate::rewind) fn new_dir_name(id: Uuid) -> OsString {
    let name = [STAGING, FORK, id.to_string().as_bytes()].concat();
    OsStr::from_bytes(&name).to_owned()
}

/// A new directory that does not have its final name yet.
#[derive(Debug)]
pub(in crate::rewind) struct NewDir<'a> {
    /// The directory that it is in.
    parent: OwnedFd,
    place: &'a NewDirectory,
    /// Shows others that it is in use.
    _lock: OwnedFd,
    root_dir: RootDir<'a>,
}

impl<'a> NewDir<'a> {
    /// Creates it at `path`, beside its final path.
    pub(in crate::rewind) fn create(
        path: &'a Path,
        place: &'a NewDirectory,
        hook: Option<&'a dyn TouchHook>,
    ) -> Result<Self> {
        let failed = |call: &str, error: Errno| {
            let doing = format!("cannot create a directory for the files ({call})");
            Error::io(doing, &place.parent, error.into())
        };
        let parent = rustix::fs::open(&place.parent, DIRECTORY, Mode::empty())
            .map_err(|error| failed("open", error))?;
        let name = path.file_name().unwrap_or_default();
        let make = || {
            ask(hook, "mkdirat", Path::new(""))?;
            make_private_dir(&parent, name)
        };
        make().map_err(|error| failed("mkdirat", error))?;
        let mut locked = lock(&parent, name);
        // Another process may remove it just before it is locked.
        while let Err(Errno::NOENT) = locked {
            make().map_err(|error| failed("mkdirat", error))?;
            locked = lock(&parent, name);
        }
        let locked = locked.map_err(|error| failed("openat", error));
        let opened = locked.and_then(|lock| {
            let root_dir = RootDir::open(path, hook)?;
            // No group or bit inherited from the parent: modes are set later.
            root_dir
                .set_mode(Path::new(""), OPEN, |_| true)
                .map_err(|error| failed("fchmod", error))?;
            Ok((lock, root_dir))
        });
        match opened {
            Ok((_lock, root_dir)) => Ok(Self {
                parent,
                place,
                _lock,
                root_dir,
            }),
            Err(error) => {
                rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR).ok();
                Err(error)
            }
        }
    }

    /// Makes the error of a call that failed, with its final path.
    fn failed(&self, call: &str, path: &Path, error: Errno) -> Error {
        let doing = format!("cannot write the new directory ({call})");
        Error::io(doing, &self.place.path().join(path), error.into())
    }

    /// Gives it its final name, in one step.
    pub(in crate::rewind) fn put(&self) -> Result<()> {
        let name = self.name();
        let Self { parent, place, .. } = self;
        let renamed = self
            .root_dir
            .ask("renameat2", Path::new(""))
            .and_then(|()| {
                // The system replaces an empty directory, and nothing else.
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
                let what = format!("another process has created {}", shown(&path));
                Error::new(ErrorKind::Conflict, what).at_path(&path)
            }
            Errno::BUSY | Errno::XDEV => {
                let path = place.path();
                let what = format!(
                    "{} cannot be replaced: it is a mount point; name a directory in it",
                    shown(&path)
                );
                Error::invalid(what).at_path(&path)
            }
            error => self.failed("renameat2", Path::new(""), error),
        })
    }

    /// Removes it with everything in it.
    pub(in crate::rewind) fn clear(self) {
        // What cannot be removed now is removed by the next fork.
        remove_all(&self.root_dir, &self.parent, self.name()).ok();
    }

    /// Removes what crashed forks left behind in the same directory.
    pub(in crate::rewind) fn clear_strays(&self) {
        let mut names = Names::default();
        let read = rustix::fs::openat(&self.parent, ".", DIRECTORY, Mode::empty())
            .and_then(|dir| names.read(&dir));
        if read.is_err() {
            return;
        }
        let own = sys::seen(self.root_dir.root()).map(|seen| seen.uid).ok();
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
        if let Ok(root_dir) = RootDir::open(&path, None) {
            remove_all(&root_dir, &self.parent, name).ok();
        }
    }

    fn name(&self) -> &OsStr {
        self.root_dir.path.file_name().unwrap_or_default()
    }
}

/// Locks a directory that was just created, if it still exists. On file systems without
/// locks nothing is removed either.
fn lock(parent: &OwnedFd, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    let dir = rustix::fs::openat(parent, name, DIRECTORY, Mode::empty())?;
    rustix::fs::flock(&dir, FlockOperation::LockExclusive).ok();
    sys::seen_at(parent, name)?;
    Ok(dir)
}

/// Removes a directory with everything in it, following no link.
fn remove_all(root_dir: &RootDir<'_>, parent: &OwnedFd, name: &OsStr) -> rustix::io::Result<()> {
    let mut ahead = vec![PathBuf::new()];
    let mut dirs = Vec::new();
    let mut names = Names::default();
    while let Some(path) = ahead.pop() {
        // A mode that we set may keep us out.
        root_dir.set_mode(&path, OPEN, |seen| seen.kind == FileKind::Dir)?;
        let dir = root_dir.open_dir(bytes_of(&path))?;
        names.read(&dir)?;
        for (name, _) in names.iter() {
            let below = path.join(os_str(name.to_bytes()));
            match sys::seen_at(&dir, name)?.kind {
                FileKind::Dir => ahead.push(below),
                _ => root_dir.call("unlinkat", &below, || {
                    rustix::fs::unlinkat(&dir, name, AtFlags::empty())
                })?,
            }
        }
        dirs.push(path);
    }
    for path in dirs.iter().skip(1).rev() {
        root_dir.remove_dir(path)?;
    }
    root_dir.ask("unlinkat", Path::new(""))?;
    rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)
}

/// An entry of the new directory.
#[derive(Debug)]
pub(in crate::rewind) struct NewEntry {
    /// The new directory itself is the empty path.
    pub(in crate::rewind) path: PathBuf,
    pub(in crate::rewind) entry: PathEntry,
    /// Whether the original workspace may still have the same file.
    pub(in crate::rewind) is_alive: bool,
}

/// What was written.
#[derive(Debug)]
pub(in crate::rewind) struct WrittenFiles {
    /// How many files share their content with files of the original workspace.
    pub(in crate::rewind) shared: u64,
    /// The files whose content is damaged, which were not written.
    pub(in crate::rewind) damaged: Vec<(PathBuf, Error)>,
}

/// The original workspace, whose files new ones may share their content with.
#[derive(Debug)]
struct Original<'a> {
    /// `None` if it cannot be opened.
    root: Option<&'a Root>,
    /// Whether the file system can share content.
    shares: AtomicBool,
    /// How many files share their content.
    shared: AtomicU64,
}

/// The directory that files are being written in.
type OpenDir = Option<(PathBuf, OwnedFd)>;

impl NewDir<'_> {
    /// Writes all entries, directories first, except files whose content is damaged.
    pub(in crate::rewind) fn write_all(
        &self,
        all: &[NewEntry],
        objects: &Objects,
        original: Option<&Root>,
    ) -> Result<WrittenFiles> {
        for new in all {
            SplitPath::check(&new.path)?;
        }
        let is_dir = |new: &&NewEntry| new.entry.is_dir();
        let is_root = |new: &&NewEntry| new.path.as_os_str().is_empty();
        for new in all.iter().filter(is_dir).filter(|dir| !is_root(dir)) {
            let made = self.root_dir.make_dir(&new.path);
            made.map_err(|error| self.failed("mkdirat", &new.path, error))?;
        }
        let original = Original {
            root: original,
            shares: AtomicBool::new(true),
            shared: AtomicU64::new(0),
        };
        let rest: Vec<&NewEntry> = all.iter().filter(|new| !is_dir(new)).collect();
        let damaged = in_batches(&rest, &self.root_dir, |batch| {
            let mut held = None;
            let mut damaged = Vec::new();
            for new in batch {
                let written = self.write(new, &mut held, objects, &original)?;
                damaged.extend(written.err().map(|error| (new.path.clone(), error)));
            }
            Ok(damaged)
        })?;
        // The deepest first: a mode may keep us out.
        for new in all.iter().rev() {
            if let PathEntry::Dir { mode } = new.entry {
                let is_dir = |seen: &sys::Seen| seen.kind == FileKind::Dir;
                let set = self.root_dir.set_mode(&new.path, mode, is_dir);
                set.map_err(|error| self.failed("fchmod", &new.path, error))?;
            }
        }
        Ok(WrittenFiles {
            shared: original.shared.into_inner(),
            damaged,
        })
    }

    /// Writes a file or link. The inner error is damage, and nothing is left then.
    fn write(
        &self,
        new: &NewEntry,
        held: &mut OpenDir,
        objects: &Objects,
        original: &Original<'_>,
    ) -> Result<Result<()>> {
        let path = new.path.as_path();
        let failed = |call| move |error| self.failed(call, path, error);
        let place = SplitPath::of(path);
        let dir = match held {
            // It is most often the directory of the last path.
            Some((parent, dir)) if bytes_of(parent) == place.dir => dir,
            _ => {
                let dir = self
                    .root_dir
                    .open_dir(place.dir)
                    .map_err(failed("openat"))?;
                let parent = PathBuf::from(os_str(place.dir));
                &mut held.insert((parent, dir)).1
            }
        };
        match &new.entry {
            PathEntry::Link { target } => {
                let asked = self.root_dir.ask("symlinkat", path);
                let made = asked.and_then(|()| rustix::fs::symlinkat(&**target, dir, place.name));
                made.map_err(failed("symlinkat")).map(Ok)
            }
            PathEntry::File(entry) => {
                let file = self.root_dir.create_file(dir, place.name, path);
                let mut file = file.map_err(failed("openat"))?;
                if !(new.is_alive && self.share(path, &mut file, entry, original)?) {
                    let filled = self
                        .root_dir
                        .fill((&file, path), objects, entry, failed("write"));
                    match filled {
                        Err(error) if error.kind() == ErrorKind::Corrupt => {
                            let asked = self.root_dir.ask("unlinkat", path);
                            let gone = asked.and_then(|()| {
                                rustix::fs::unlinkat(&*dir, place.name, AtFlags::empty())
                            });
                            gone.map_err(failed("unlinkat"))?;
                            return Ok(Err(error));
                        }
                        filled => filled?,
                    }
                }
                let asked = self.root_dir.ask("fchmod", path);
                let bits = Mode::from_raw_mode(entry.mode);
                let set = asked.and_then(|()| rustix::fs::fchmod(&file, bits));
                set.map_err(failed("fchmod")).map(Ok)
            }
            PathEntry::Dir { .. } => Ok(Ok(())),
        }
    }

    /// Lets a new file share its content with the file of the original workspace, if that
    /// is the same. Else the new file stays empty.
    fn share(
        &self,
        path: &Path,
        file: &mut File,
        entry: &FileEntry,
        original: &Original<'_>,
    ) -> Result<bool> {
        let root = original.root;
        let root = root.filter(|_| original.shares.load(Ordering::Relaxed));
        let Some(theirs) = root.and_then(|root| open_alive(root, path, entry.size)) else {
            return Ok(false);
        };
        let asked = self.root_dir.ask("ioctl", path);
        match asked.and_then(|()| rustix::fs::ioctl_ficlone(&*file, &theirs)) {
            Ok(()) => {}
            // That may concern this file alone.
            Err(Errno::TXTBSY | Errno::PERM) => return Ok(false),
            Err(_) => {
                original.shares.store(false, Ordering::Relaxed);
                return Ok(false);
            }
        }
        // Only the shared content counts: the original may change at any moment.
        if ObjectId::of_reader(&*file).is_ok_and(|found| found == entry.content) {
            original.shared.fetch_add(1, Ordering::Relaxed);
            return Ok(true);
        }
        let emptied = file.set_len(0).and_then(|()| file.rewind());
        emptied.map_err(|error| self.failed("ftruncate", path, errno(error)))?;
        Ok(false)
    }
}

/// Opens the file at a path of the original workspace, if it has the right length.
fn open_alive(live: &Root, path: &Path, size: u64) -> Option<OwnedFd> {
    let place = SplitPath::of(path);
    let dir = live.open_dir(place.dir).ok()?;
    let theirs = sys::open_file(&dir, place.name).ok()?;
    let seen = sys::seen(&theirs).ok()?;
    let fits = size > 0 && seen.kind == FileKind::File && seen.stamp.size == size;
    fits.then_some(theirs)
}
