//! Comparing a path with what it should be.

use std::io;
use std::path::Path;

use rustix::fd::OwnedFd;
use rustix::io::{Errno, Result};

use super::super::path_change::PathEntry;
use super::root_dir::{RootDir, SplitPath, is_gone};
use crate::snapshot::FileKind;
use crate::snapshot::scan::sys::{self, Horizon, Seen, Stamp};

/// What is known of a file or link since it was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownFile {
    pub(super) seen: Seen,
    /// It changed so recently that a later change may not show.
    racy: bool,
}

impl KnownFile {
    pub(super) fn of(seen: Seen, horizon: Horizon) -> Self {
        let racy = seen.is_racy(horizon);
        Self { seen, racy }
    }

    /// Returns whether it is certainly the same, moved or not.
    pub(super) fn is_still(&self, seen: &Seen) -> bool {
        !self.racy && self.is_unchanged(seen)
    }

    /// Returns whether nothing indicates a change. A rename changes the ctime.
    pub(super) fn is_unchanged(&self, seen: &Seen) -> bool {
        let moved = Stamp {
            ctime: self.seen.stamp.ctime,
            ..seen.stamp
        };
        moved == self.seen.stamp
    }
}

impl RootDir<'_> {
    /// Returns whether a path is exactly this.
    pub(super) fn is_at(&self, place: SplitPath<'_>, entry: &PathEntry) -> Result<bool> {
        let dir = match self.open_dir(place.dir) {
            Err(error) if is_gone(error) => return Ok(false),
            dir => dir?,
        };
        let same = self.same((&dir, place.name), place.path, entry, None)?;
        Ok(same.is_some())
    }

    /// Returns what a name in a directory is, if it is exactly this, including its mode.
    /// What is known of it saves reading it.
    pub(super) fn same(
        &self,
        (dir, name): (&OwnedFd, &[u8]),
        path: &Path,
        entry: &PathEntry,
        known: Option<&KnownFile>,
    ) -> Result<Option<Seen>> {
        let seen = match sys::seen_at(dir, name) {
            Err(Errno::NOENT) => return Ok(None),
            seen => seen?,
        };
        let same = match entry {
            PathEntry::Dir { mode } => seen.kind == FileKind::Dir && seen.stamp.mode == *mode,
            PathEntry::Link { target } => {
                seen.kind == FileKind::Link && is_link(dir, name, target)?
            }
            PathEntry::File(file) => {
                let is_alike = seen.kind == FileKind::File
                    && (seen.stamp.mode, seen.stamp.size) == (file.mode, file.size);
                if is_alike && !known.is_some_and(|known| known.is_still(&seen)) {
                    let read = || sys::read_unchanging(dir, name).map_err(errno);
                    let read = self.call("read", path, read)?;
                    return Ok(read
                        .filter(|(_, content)| *content == file.content)
                        .map(|it| it.0));
                }
                is_alike
            }
        };
        Ok(same.then_some(seen))
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
