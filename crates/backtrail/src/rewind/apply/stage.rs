//! Writing new files to the staging directory, and checking old ones.

use std::fs::File;
use std::path::Path;

use rustix::fs::{AtFlags, Gid, Mode, Uid};
use rustix::io::Errno;

use super::super::path_change::{FileEntry, PathChange, PathEntry};
use super::compare::KnownFile;
use super::in_batches;
use super::mover::{CHANGED, Mover, OnChanged, error_text};
use super::root_dir::{SplitPath, is_gone};
use super::staging_dir::{OPEN, Version};
use crate::error::{Error, ErrorKind, Result};
use crate::snapshot::FileKind;
use crate::snapshot::damage::{DamagedPart, name_damage};
use crate::snapshot::name::bytes_of;
use crate::snapshot::scan::split;
use crate::snapshot::scan::sys::{self, Seen};

/// Up to so many files are synced one by one; more with one sync of the file system.
pub(super) const FEW: usize = 16;
const SETGID: u32 = 0o2000;

/// What is prepared for one item.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    /// The old file or link.
    pub(super) known: Option<KnownFile>,
    /// The new one, as it was staged.
    pub(super) staged: Option<KnownFile>,
    /// The reason why it is left alone.
    pub(super) left: Option<String>,
}

impl Mover<'_> {
    /// Stages all items, and syncs what was written.
    pub(super) fn stage_and_sync(&mut self) -> Result<()> {
        let items = self.work.items;
        let files = items.iter().filter(|item| item.stages_file()).count();
        let few = files <= FEW;
        self.prepared = in_batches(items, &self.root_dir, |batch| {
            batch.iter().map(|item| self.stage(item, few)).collect()
        })?;
        if !few {
            let path = &self.staging.name;
            let asked = self.root_dir.ask("syncfs", path);
            let synced = asked.and_then(|()| rustix::fs::syncfs(&self.staging.fd));
            synced.map_err(|error| {
                self.root_dir
                    .failed("sync the new files", "syncfs", path, error)
            })?;
        }
        Ok(())
    }

    fn stage(&self, item: &PathChange, few: bool) -> Result<Prepared> {
        let mut prepared = Prepared::default();
        match self.old(item)? {
            Ok(known) => prepared.known = known,
            Err(Moved) if self.on_changed == OnChanged::Stop => {
                return Err(self.root_dir.moved(&item.path));
            }
            Err(Moved) => {
                prepared.left = Some(CHANGED.to_owned());
                return Ok(prepared);
            }
        }
        let old = prepared.known.as_ref();
        let path = item.path.as_path();
        let staged = match item.new.as_ref().filter(|_| item.stages()) {
            Some(PathEntry::Link { target }) => self.write_link(path, target, old),
            Some(PathEntry::File(new)) => self
                .write_file(path, new)
                .and_then(|file| self.finish_file(path, &file, (new.mode, few), old)),
            Some(PathEntry::Dir { .. }) | None => return Ok(prepared),
        };
        match staged {
            Ok(seen) => prepared.staged = Some(KnownFile::of(seen, self.horizon)),
            // The store lost it: failing here would mean to fail forever.
            Err(error)
                if self.on_changed == OnChanged::Leave && error.kind() == ErrorKind::Corrupt =>
            {
                prepared.left = Some(error_text(&error));
            }
            Err(error) => return Err(error),
        }
        Ok(prepared)
    }

    /// Checks whether a path is in its old state, and returns what is known of it.
    fn old(&self, item: &PathChange) -> Result<Result<Option<KnownFile>, Moved>> {
        let path = item.path.as_path();
        let failed = |error| {
            self.root_dir
                .failed("read a file that is to be replaced", "openat", path, error)
        };
        let is_old = match &item.old {
            None if item.is_root() && self.made_root => true,
            None => self.root_dir.look(path).map_err(failed)?.is_none(),
            Some(PathEntry::Dir { mode }) => {
                let seen = self.root_dir.look(path).map_err(failed)?;
                seen.is_some_and(|seen| self.is_old_dir(item, *mode, &seen))
            }
            Some(entry) => {
                let seen = self.old_file(path, entry).map_err(failed)?;
                let known = seen.map(|seen| KnownFile::of(seen, self.horizon));
                return Ok(known.map(Some).ok_or(Moved));
            }
        };
        Ok(is_old.then_some(None).ok_or(Moved))
    }

    fn old_file(&self, path: &Path, entry: &PathEntry) -> rustix::io::Result<Option<Seen>> {
        let place = SplitPath::of(path);
        let dir = match self.root_dir.open_dir(place.dir) {
            Err(error) if is_gone(error) => return Ok(None),
            dir => dir?,
        };
        self.root_dir.same((&dir, place.name), path, entry, None)
    }

    /// Returns whether a directory has its old mode, or is writable for now.
    pub(super) fn is_old_dir(&self, item: &PathChange, mode: u32, seen: &Seen) -> bool {
        let lent = |(path, was): &(_, u32)| *path == item.path && *was == mode;
        let opened = seen.stamp.mode == mode | OPEN
            && (self.on_changed == OnChanged::Leave || self.staging.made_writable.iter().any(lent));
        seen.kind == FileKind::Dir && (seen.stamp.mode == mode || opened)
    }

    fn unwritten(&self, call: &'static str, path: &Path, error: Errno) -> Error {
        self.root_dir.failed("write a new file", call, path, error)
    }

    fn write_link(&self, path: &Path, target: &[u8], old: Option<&KnownFile>) -> Result<Seen> {
        let name = Version::New.staged_name(path);
        let write = || {
            self.root_dir.ask("symlinkat", path)?;
            rustix::fs::symlinkat(target, &self.staging.fd, name.as_str())?;
            let seen = sys::seen_at(&self.staging.fd, name.as_str())?;
            if let Some((uid, gid)) = self.owner(path, old, &seen)? {
                self.root_dir.ask("fchownat", path)?;
                let flags = AtFlags::SYMLINK_NOFOLLOW;
                rustix::fs::chownat(&self.staging.fd, name.as_str(), uid, gid, flags).ok();
            }
            sys::seen_at(&self.staging.fd, name.as_str())
        };
        write().map_err(|error| self.unwritten("symlinkat", path, error))
    }

    fn write_file(&self, path: &Path, new: &FileEntry) -> Result<File> {
        let name = Version::New.staged_name(path);
        let file = self
            .root_dir
            .create_file(&self.staging.fd, name.as_bytes(), path)
            .map_err(|error| self.unwritten("openat", path, error))?;
        let failed = |error| self.unwritten("write", path, error);
        let filled = self
            .root_dir
            .fill((&file, path), self.work.objects, new, failed);
        filled.map_err(|error| name_damage(path, DamagedPart::Content, None, error))?;
        Ok(file)
    }

    /// Sets the owner and mode of a new file, and syncs it if there are few.
    fn finish_file(
        &self,
        path: &Path,
        file: &File,
        (mode, few): (u32, bool),
        old: Option<&KnownFile>,
    ) -> Result<Seen> {
        let failed = |call| move |error| self.unwritten(call, path, error);
        let seen = sys::seen(file).map_err(failed("fstat"))?;
        if let Some((uid, gid)) = self.owner(path, old, &seen).map_err(failed("fstat"))? {
            self.root_dir
                .ask("fchown", path)
                .map_err(failed("fchown"))?;
            // Not every user may give files away; then it stays ours.
            if rustix::fs::fchown(file, uid, gid).is_err() {
                rustix::fs::fchown(file, None, gid).ok();
            }
        }
        // After the owner: changing that clears bits.
        let asked = self.root_dir.ask("fchmod", path);
        let bits = Mode::from_raw_mode(mode);
        let set = asked.and_then(|()| rustix::fs::fchmod(file, bits));
        set.map_err(failed("fchmod"))?;
        if few {
            let asked = self.root_dir.ask("fsync", path);
            let synced = asked.and_then(|()| rustix::fs::fsync(file));
            synced.map_err(failed("fsync"))?;
        }
        let seen = sys::seen(file).map_err(failed("fstat"))?;
        if seen.stamp.mode != mode {
            return Err(self.unwritten("fchmod", path, Errno::PERM));
        }
        Ok(seen)
    }

    /// Returns the owner of a new file, if it is not right already: that of the old one,
    /// else the group that its directory gives.
    fn owner(
        &self,
        path: &Path,
        old: Option<&KnownFile>,
        new: &Seen,
    ) -> rustix::io::Result<Option<(Option<Uid>, Option<Gid>)>> {
        let (uid, gid) = match old {
            Some(old) => (old.seen.uid, old.seen.gid),
            None => (new.uid, self.group(path)?.unwrap_or(new.gid)),
        };
        let uid = (uid != new.uid).then(|| Uid::from_raw(uid));
        let gid = (gid != new.gid).then(|| Gid::from_raw(gid));
        Ok((uid.is_some() || gid.is_some()).then_some((uid, gid)))
    }

    /// Returns the group that a directory gives to new files in it.
    fn group(&self, path: &Path) -> rustix::io::Result<Option<u32>> {
        let mut dir = split(bytes_of(path)).0;
        loop {
            match self.root_dir.open_dir(dir) {
                Ok(fd) => {
                    let seen = sys::seen(&fd)?;
                    return Ok((seen.stamp.mode & SETGID != 0).then_some(seen.gid));
                }
                Err(error) if is_gone(error) && !dir.is_empty() => dir = split(dir).0,
                Err(error) => return Err(error),
            }
        }
    }
}

/// A path is not in its old state.
struct Moved;
