//! Comparing a path with what it should be.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fd::OwnedFd;
use rustix::io::{Errno, Result};

use super::super::path_change::PathEntry;
use super::root_dir::RootDir;
use crate::objects::ObjectId;
use crate::snapshot::FileKind;
use crate::snapshot::scan::sys::{self, Horizon, Seen, Stamp};
use crate::time::{Clock, SystemClock};

/// How much of a file is read at a time.
const PIECE: usize = 256 * 1024;

/// What is known of a file or link since it was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownFile {
    pub(super) stamp: Stamp,
    /// It changed so recently that a later change may not show.
    pub(super) racy: bool,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

impl KnownFile {
    pub(super) fn of(seen: &Seen, horizon: Horizon) -> Self {
        Self {
            stamp: seen.stamp,
            racy: seen.is_racy(horizon),
            uid: seen.uid,
            gid: seen.gid,
        }
    }

    /// Returns whether it is certainly the same, moved or not.
    pub(super) fn is_still(&self, seen: &Seen) -> bool {
        !self.racy && self.is_unchanged(seen)
    }

    /// Returns whether nothing indicates a change. A rename changes the ctime.
    pub(super) fn is_unchanged(&self, seen: &Seen) -> bool {
        let moved = Stamp {
            ctime: self.stamp.ctime,
            ..seen.stamp
        };
        moved == self.stamp
    }
}

/// Returns the time since when changes may not show.
pub(super) fn horizon() -> Horizon {
    Horizon::of(SystemClock.now().as_millis())
}

/// The result of a comparison.
#[derive(Debug)]
pub(super) enum Compared {
    Same(Seen),
    Other,
}

impl RootDir<'_> {
    /// Returns whether a name in a directory is exactly this, including its mode. What is
    /// known of it saves reading it.
    pub(super) fn is(
        &self,
        (dir, name): (&OwnedFd, &[u8]),
        path: &Path,
        entry: &PathEntry,
        known: Option<&KnownFile>,
    ) -> Result<bool> {
        let compared = self.compare((dir, name), path, entry, known)?;
        Ok(matches!(compared, Compared::Same(_)))
    }

    pub(super) fn compare(
        &self,
        (dir, name): (&OwnedFd, &[u8]),
        path: &Path,
        entry: &PathEntry,
        known: Option<&KnownFile>,
    ) -> Result<Compared> {
        let seen = match sys::seen_at(dir, name) {
            Ok(seen) => seen,
            Err(Errno::NOENT) => return Ok(Compared::Other),
            Err(error) => return Err(error),
        };
        let same = match entry {
            PathEntry::Dir { mode } => seen.kind == FileKind::Dir && seen.stamp.mode == *mode,
            PathEntry::Link { target } => {
                seen.kind == FileKind::Link && is_link(dir, name, target)?
            }
            PathEntry::File { mode, .. }
                if seen.kind != FileKind::File || seen.stamp.mode != *mode =>
            {
                false
            }
            PathEntry::File { size, .. } if seen.stamp.size != *size => false,
            PathEntry::File { .. } if known.is_some_and(|known| known.is_still(&seen)) => true,
            PathEntry::File { content, .. } => {
                return self.call("read", path, || self.read_file((dir, name), content));
            }
        };
        Ok(if same {
            Compared::Same(seen)
        } else {
            Compared::Other
        })
    }

    /// Reads a file, which must not change meanwhile.
    fn read_file(&self, (dir, name): (&OwnedFd, &[u8]), content: &ObjectId) -> Result<Compared> {
        let fd = match sys::open_file(dir, name) {
            Ok(fd) => fd,
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(Compared::Other),
            Err(error) => return Err(error),
        };
        let before = sys::seen(&fd)?;
        if before.kind != FileKind::File {
            return Ok(Compared::Other);
        }
        let file = File::from(fd);
        let is_it = hash(&file, before.stamp.size).map_err(errno)? == *content;
        let after = sys::seen(&file)?;
        Ok(if is_it && after.stamp == before.stamp {
            Compared::Same(before)
        } else {
            Compared::Other
        })
    }
}

/// Hashes the content of a file; `size` is its expected length.
pub(super) fn hash(mut file: &File, size: u64) -> io::Result<ObjectId> {
    let room = usize::try_from(size).unwrap_or(PIECE).saturating_add(1);
    let mut buffer = vec![0; room.min(PIECE)];
    let mut hasher = blake3::Hasher::new();
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(ObjectId::finish(&hasher)),
            Ok(read) => _ = hasher.update(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

pub(super) fn errno(error: io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

/// Returns whether a name is a link to `target`.
pub(super) fn is_link(dir: &OwnedFd, name: &[u8], target: &[u8]) -> Result<bool> {
    match sys::link_target(dir, name) {
        Ok(found) => Ok(*found == *target),
        Err(Errno::NOENT | Errno::INVAL) => Ok(false),
        Err(error) => Err(error),
    }
}
