//! Writing new files to the staging directory, and checking old ones.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;

use super::super::path_change::{PathChange, PathEntry};
use super::compare::{Compared, KnownFile, errno, horizon};
use super::mover::CHANGED;
use super::mover::error_text;
use super::root_dir::{RootDir, SplitPath, is_gone};
use super::staging_dir::{OPEN, StagingDir, new_name};
use crate::error::{Error, ErrorKind, Result};
use crate::objects::Objects;
use crate::snapshot::FileKind;
use crate::snapshot::name::bytes_of;
use crate::snapshot::scan::queue::in_parallel;
use crate::snapshot::scan::split;
use crate::snapshot::scan::sys::{self, Horizon, Seen};

/// Up to so many files are synced one by one; more with one sync of the file system.
pub(super) const FEW: usize = 16;
/// Fewer than so many files are staged, and swept, by one thread.
pub(super) const MANY: usize = 64;
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

/// What happens to a path that is not in its old state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnChanged {
    /// It stops everything.
    Stop,
    /// It is left alone.
    Leave,
}

/// Stages the files of one step.
pub(super) struct Stager<'a> {
    pub(super) root_dir: &'a RootDir<'a>,
    pub(super) staging: &'a StagingDir,
    pub(super) objects: &'a Objects,
    pub(super) on_changed: OnChanged,
    /// The root was created by this step.
    pub(super) made_root: bool,
    pub(super) horizon: Horizon,
    pub(super) few: bool,
}

impl<'a> Stager<'a> {
    pub(super) fn new(
        root_dir: &'a RootDir<'a>,
        staging: &'a StagingDir,
        objects: &'a Objects,
        on_changed: OnChanged,
        made_root: bool,
    ) -> Self {
        Self {
            root_dir,
            staging,
            objects,
            on_changed,
            made_root,
            horizon: horizon(),
            few: true,
        }
    }

    /// Stages all items, and syncs what was written.
    pub(super) fn run(mut self, items: &[PathChange]) -> Result<Vec<Prepared>> {
        let files = items.iter().filter(|item| item.stages_file()).count();
        self.few = files <= FEW;
        let ready = match items.len() >= MANY && !self.root_dir.is_watched() {
            true => self.in_threads(items)?,
            false => items
                .iter()
                .map(|item| self.stage(item))
                .collect::<Result<_>>()?,
        };
        if !self.few {
            self.root_dir
                .ask("syncfs", &self.staging.name)
                .and_then(|()| rustix::fs::syncfs(&self.staging.fd))
                .map_err(|error| {
                    let path = &self.staging.name;
                    self.root_dir
                        .failed("sync the new files", "syncfs", path, error)
                })?;
        }
        Ok(ready)
    }

    fn in_threads(&self, items: &[PathChange]) -> Result<Vec<Prepared>> {
        const BATCH: usize = 32;
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let parts = in_parallel(threads.min(8), || {
            let mut done = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let at = next.fetch_add(BATCH, Ordering::Relaxed);
                let Some(batch) = items.get(at..) else { break };
                for (n, item) in batch.iter().take(BATCH).enumerate() {
                    let ready = self.stage(item);
                    let ready = ready.inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
                    done.push((at + n, ready));
                }
            }
            Ok(done)
        })?;
        let mut all: Vec<(usize, Prepared)> = parts.into_iter().flatten().collect();
        all.sort_unstable_by_key(|(n, _)| *n);
        Ok(all.into_iter().map(|(_, ready)| ready).collect())
    }

    fn stage(&self, item: &PathChange) -> Result<Prepared> {
        let known = match self.old(item)? {
            OldState::As(known) => known,
            OldState::Moved if self.on_changed == OnChanged::Stop => {
                return Err(self.root_dir.moved(&item.path));
            }
            OldState::Moved => {
                return Ok(Prepared {
                    left: Some(CHANGED.to_owned()),
                    ..Prepared::default()
                });
            }
        };
        let mut ready = Prepared {
            known,
            ..Prepared::default()
        };
        if let Some(new) = item.new.as_ref().filter(|_| item.stages()) {
            match self.write(item, new, known.as_ref()) {
                Ok(staged) => ready.staged = Some(staged),
                // Failing here would mean to fail forever.
                Err(error) if self.is_lost(&error) => ready.left = Some(error_text(&error)),
                Err(error) => return Err(error),
            }
        }
        Ok(ready)
    }

    /// Returns whether the step resumes without a file that the store lost.
    fn is_lost(&self, error: &Error) -> bool {
        self.on_changed == OnChanged::Leave && error.kind() == ErrorKind::Corrupt
    }

    /// Checks whether a path is in its old state.
    fn old(&self, item: &PathChange) -> Result<OldState> {
        let path = item.path.as_path();
        let failed = |error| {
            self.root_dir
                .failed("read a file that is to be replaced", "openat", path, error)
        };
        match &item.old {
            None if bytes_of(path).is_empty() && self.made_root => Ok(OldState::As(None)),
            None => match self.root_dir.look(path).map_err(failed)? {
                None => Ok(OldState::As(None)),
                Some(_) => Ok(OldState::Moved),
            },
            Some(PathEntry::Dir { mode }) => {
                let seen = self.root_dir.look(path).map_err(failed)?;
                let same = seen.is_some_and(|seen| self.is_old_dir(item, *mode, &seen));
                Ok(if same {
                    OldState::As(None)
                } else {
                    OldState::Moved
                })
            }
            Some(entry) => self.old_file(path, entry).map_err(failed),
        }
    }

    fn is_old_dir(&self, item: &PathChange, mode: u32, seen: &Seen) -> bool {
        let lent = |(path, was): &(_, u32)| *path == item.path && *was == mode;
        let opened = seen.stamp.mode == mode | OPEN
            && (self.on_changed == OnChanged::Leave || self.staging.made_writable.iter().any(lent));
        seen.kind == FileKind::Dir && (seen.stamp.mode == mode || opened)
    }

    fn old_file(&self, path: &Path, entry: &PathEntry) -> rustix::io::Result<OldState> {
        let place = SplitPath::of(path);
        let dir = match self.root_dir.open_dir(place.dir) {
            Err(error) if is_gone(error) => return Ok(OldState::Moved),
            dir => dir?,
        };
        let compared = self
            .root_dir
            .compare((&dir, place.name), path, entry, None)?;
        Ok(match compared {
            Compared::Same(seen) => OldState::As(Some(KnownFile::of(&seen, self.horizon))),
            Compared::Other => OldState::Moved,
        })
    }

    fn write(
        &self,
        item: &PathChange,
        new: &PathEntry,
        old: Option<&KnownFile>,
    ) -> Result<KnownFile> {
        let path = item.path.as_path();
        let seen = match new {
            PathEntry::Link { target } => self.write_link(path, target, old),
            PathEntry::File { .. } => return self.write_file(path, new, old),
            PathEntry::Dir { .. } => unreachable!("a directory is not staged"),
        };
        let seen = seen.map_err(|error| self.unwritten("symlinkat", path, error))?;
        Ok(KnownFile::of(&seen, self.horizon))
    }

    fn unwritten(&self, call: &'static str, path: &Path, error: Errno) -> Error {
        self.root_dir.failed("write a new file", call, path, error)
    }

    fn write_link(
        &self,
        path: &Path,
        target: &[u8],
        old: Option<&KnownFile>,
    ) -> rustix::io::Result<Seen> {
        let name = new_name(path);
        self.root_dir.ask("symlinkat", path)?;
        rustix::fs::symlinkat(target, &self.staging.fd, name.as_str())?;
        let seen = sys::seen_at(&self.staging.fd, name.as_str())?;
        if let Some((uid, gid)) = self.owner(path, old, &seen)? {
            self.root_dir.ask("fchownat", path)?;
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            rustix::fs::chownat(&self.staging.fd, name.as_str(), uid, gid, flags).ok();
        }
        sys::seen_at(&self.staging.fd, name.as_str())
    }

    fn write_file(
        &self,
        path: &Path,
        new: &PathEntry,
        old: Option<&KnownFile>,
    ) -> Result<KnownFile> {
        let PathEntry::File {
            mode,
            size,
            content,
        } = new
        else {
            unreachable!("only files have content")
        };
        let name = new_name(path);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let private = Mode::RUSR | Mode::WUSR;
        let asked = self.root_dir.ask("openat", path);
        let opened = asked.and_then(|()| {
            rustix::fs::openat(
                &self.staging.fd,
                name.as_str(),
                flags | OFlags::CLOEXEC,
                private,
            )
        });
        let mut file = File::from(opened.map_err(|error| self.unwritten("openat", path, error))?);
        let mut written = 0;
        self.objects.read_to(content, &mut |piece| {
            written += piece.len() as u64;
            let asked = self.root_dir.ask("write", path);
            let done = asked.and_then(|()| file.write_all(piece).map_err(errno));
            done.map_err(|error| self.unwritten("write", path, error))
        })?;
        if written != *size {
            let what = format!("object {content} has {written} bytes, expected {size}");
            return Err(Error::new(ErrorKind::Corrupt, what).at_path(path));
        }
        self.finish_file(path, &file, *mode, old)
    }

    /// Sets the owner and mode of a new file, and syncs it.
    fn finish_file(
        &self,
        path: &Path,
        file: &File,
        mode: u32,
        old: Option<&KnownFile>,
    ) -> Result<KnownFile> {
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
        if self.few {
            let asked = self.root_dir.ask("fsync", path);
            let synced = asked.and_then(|()| rustix::fs::fsync(file));
            synced.map_err(failed("fsync"))?;
        }
        let seen = sys::seen(file).map_err(failed("fstat"))?;
        if seen.stamp.mode != mode {
            return Err(self.unwritten("fchmod", path, Errno::PERM));
        }
        Ok(KnownFile::of(&seen, self.horizon))
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
            Some(old) => (old.uid, old.gid),
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

/// Whether a path is in its old state.
enum OldState {
    As(Option<KnownFile>),
    Moved,
}

impl PathChange {
    /// Returns whether a file becomes the same file with another mode.
    pub(super) fn is_mode_only(&self) -> bool {
        match (&self.old, &self.new) {
            (
                Some(PathEntry::File { content: a, .. }),
                Some(PathEntry::File { content: b, .. }),
            ) => a == b,
            _ => false,
        }
    }

    /// Returns whether a new file or link is staged for it.
    pub(in crate::rewind) fn stages(&self) -> bool {
        let is_new = self.new.as_ref().is_some_and(|new| !new.is_dir());
        is_new && self.old != self.new && !self.is_mode_only()
    }

    fn stages_file(&self) -> bool {
        self.stages() && matches!(self.new, Some(PathEntry::File { .. }))
    }

    pub(super) fn was_dir(&self) -> bool {
        self.old.as_ref().is_some_and(PathEntry::is_dir)
    }

    pub(super) fn becomes_dir(&self) -> bool {
        self.new.as_ref().is_some_and(PathEntry::is_dir)
    }

    /// Returns whether the old entry is removed, whatever takes its place.
    pub(super) fn removes(&self) -> bool {
        self.old.is_some() && (self.new.is_none() || self.was_dir() != self.becomes_dir())
    }
}
