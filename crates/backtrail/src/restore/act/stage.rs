//! Writing what is new aside, and reading what is old.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;

use super::super::thing::{Item, Thing};
use super::beneath::{Beneath, Place, is_gone};
use super::desk::{Desk, OPEN, new_name};
use super::hands::CHANGED;
use super::known::{Compared, Known, errno, horizon};
use super::perform::told;
use crate::error::{Error, ErrorKind, Result};
use crate::objects::Objects;
use crate::snapshot::FileKind;
use crate::snapshot::name::bytes_of;
use crate::snapshot::scan::queue::in_parallel;
use crate::snapshot::scan::split;
use crate::snapshot::scan::sys::{self, Horizon, Seen};

/// Up to so many files are synced one by one; more at once, with all that others
/// wrote.
pub(super) const FEW: usize = 16;
/// Fewer than so many are staged, and swept, by one thread.
pub(super) const MANY: usize = 64;
const SETGID: u32 = 0o2000;

/// What is ready for one item.
#[derive(Debug, Default)]
pub(super) struct Ready {
    /// The old file or link.
    pub(super) known: Option<Known>,
    /// The new one, as it was staged.
    pub(super) staged: Option<Known>,
    /// Why it is left alone.
    pub(super) left: Option<String>,
}

/// What becomes of a path that is not in its old state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnMoved {
    /// It stops everything.
    Stop,
    /// It is left alone.
    Leave,
}

/// What stages one step.
pub(super) struct Staging<'a> {
    pub(super) beneath: &'a Beneath<'a>,
    pub(super) desk: &'a Desk,
    pub(super) objects: &'a Objects,
    pub(super) on_moved: OnMoved,
    /// The workspace's own directory was made by this step.
    pub(super) made_root: bool,
    pub(super) horizon: Horizon,
    pub(super) few: bool,
}

impl<'a> Staging<'a> {
    pub(super) fn new(
        beneath: &'a Beneath<'a>,
        desk: &'a Desk,
        objects: &'a Objects,
        on_moved: OnMoved,
        made_root: bool,
    ) -> Self {
        Self {
            beneath,
            desk,
            objects,
            on_moved,
            made_root,
            horizon: horizon(),
            few: true,
        }
    }

    /// Stages all items, and makes durable what was written.
    pub(super) fn run(mut self, items: &[Item]) -> Result<Vec<Ready>> {
        let files = items.iter().filter(|item| item.stages_file()).count();
        self.few = files <= FEW;
        let ready = match items.len() >= MANY && !self.beneath.is_watched() {
            true => self.in_threads(items)?,
            false => items
                .iter()
                .map(|item| self.stage(item))
                .collect::<Result<_>>()?,
        };
        if !self.few {
            self.beneath
                .ask("syncfs", &self.desk.name)
                .and_then(|()| rustix::fs::syncfs(&self.desk.fd))
                .map_err(|error| {
                    let path = &self.desk.name;
                    self.beneath
                        .failed("sync the new files", "syncfs", path, error)
                })?;
        }
        Ok(ready)
    }

    fn in_threads(&self, items: &[Item]) -> Result<Vec<Ready>> {
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
        let mut all: Vec<(usize, Ready)> = parts.into_iter().flatten().collect();
        all.sort_unstable_by_key(|(n, _)| *n);
        Ok(all.into_iter().map(|(_, ready)| ready).collect())
    }

    fn stage(&self, item: &Item) -> Result<Ready> {
        let known = match self.old(item)? {
            Old::As(known) => known,
            Old::Moved if self.on_moved == OnMoved::Stop => {
                return Err(self.beneath.moved(&item.path));
            }
            Old::Moved => {
                return Ok(Ready {
                    left: Some(CHANGED.to_owned()),
                    ..Ready::default()
                });
            }
        };
        let mut ready = Ready {
            known,
            ..Ready::default()
        };
        if let Some(new) = item.new.as_ref().filter(|_| item.stages()) {
            match self.write(item, new, known.as_ref()) {
                Ok(staged) => ready.staged = Some(staged),
                // To fail here would be to fail for ever.
                Err(error) if self.is_lost(&error) => ready.left = Some(told(&error)),
                Err(error) => return Err(error),
            }
        }
        Ok(ready)
    }

    /// Returns whether it is carried on without what the store lost.
    fn is_lost(&self, error: &Error) -> bool {
        self.on_moved == OnMoved::Leave && error.kind() == ErrorKind::Corrupt
    }

    /// Looks whether a path is in its old state.
    fn old(&self, item: &Item) -> Result<Old> {
        let path = item.path.as_path();
        let failed = |error| {
            self.beneath
                .failed("read what is to be replaced", "openat", path, error)
        };
        match &item.old {
            None if bytes_of(path).is_empty() && self.made_root => Ok(Old::As(None)),
            None => match self.beneath.look(path).map_err(failed)? {
                None => Ok(Old::As(None)),
                Some(_) => Ok(Old::Moved),
            },
            Some(Thing::Dir { mode }) => {
                let seen = self.beneath.look(path).map_err(failed)?;
                let same = seen.is_some_and(|seen| self.is_old_dir(item, *mode, &seen));
                Ok(if same { Old::As(None) } else { Old::Moved })
            }
            Some(thing) => self.old_file(path, thing).map_err(failed),
        }
    }

    fn is_old_dir(&self, item: &Item, mode: u32, seen: &Seen) -> bool {
        let lent = |(path, was): &(_, u32)| *path == item.path && *was == mode;
        let opened = seen.stamp.mode == mode | OPEN
            && (self.on_moved == OnMoved::Leave || self.desk.lent.iter().any(lent));
        seen.kind == FileKind::Dir && (seen.stamp.mode == mode || opened)
    }

    fn old_file(&self, path: &Path, thing: &Thing) -> rustix::io::Result<Old> {
        let place = Place::of(path);
        let dir = match self.beneath.open_dir(place.dir) {
            Err(error) if is_gone(error) => return Ok(Old::Moved),
            dir => dir?,
        };
        let compared = self
            .beneath
            .compare((&dir, place.name), path, thing, None)?;
        Ok(match compared {
            Compared::Same(seen) => Old::As(Some(Known::of(&seen, self.horizon))),
            Compared::Other => Old::Moved,
        })
    }

    fn write(&self, item: &Item, new: &Thing, old: Option<&Known>) -> Result<Known> {
        let path = item.path.as_path();
        let seen = match new {
            Thing::Link { target } => self.write_link(path, target, old),
            Thing::File { .. } => return self.write_file(path, new, old),
            Thing::Dir { .. } => unreachable!("a directory is not staged"),
        };
        let seen = seen.map_err(|error| self.unwritten("symlinkat", path, error))?;
        Ok(Known::of(&seen, self.horizon))
    }

    fn unwritten(&self, call: &'static str, path: &Path, error: Errno) -> Error {
        self.beneath.failed("write a new file", call, path, error)
    }

    fn write_link(
        &self,
        path: &Path,
        target: &[u8],
        old: Option<&Known>,
    ) -> rustix::io::Result<Seen> {
        let name = new_name(path);
        self.beneath.ask("symlinkat", path)?;
        rustix::fs::symlinkat(target, &self.desk.fd, name.as_str())?;
        let seen = sys::seen_at(&self.desk.fd, name.as_str())?;
        if let Some((uid, gid)) = self.owner(path, old, &seen)? {
            self.beneath.ask("fchownat", path)?;
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            rustix::fs::chownat(&self.desk.fd, name.as_str(), uid, gid, flags).ok();
        }
        sys::seen_at(&self.desk.fd, name.as_str())
    }

    fn write_file(&self, path: &Path, new: &Thing, old: Option<&Known>) -> Result<Known> {
        let Thing::File {
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
        let asked = self.beneath.ask("openat", path);
        let opened = asked.and_then(|()| {
            rustix::fs::openat(
                &self.desk.fd,
                name.as_str(),
                flags | OFlags::CLOEXEC,
                private,
            )
        });
        let mut file = File::from(opened.map_err(|error| self.unwritten("openat", path, error))?);
        let mut written = 0;
        self.objects.read_to(content, &mut |piece| {
            written += piece.len() as u64;
            let asked = self.beneath.ask("write", path);
            let done = asked.and_then(|()| file.write_all(piece).map_err(errno));
            done.map_err(|error| self.unwritten("write", path, error))
        })?;
        if written != *size {
            let what = format!("object {content} has {written} bytes, and should have {size}");
            return Err(Error::new(ErrorKind::Corrupt, what).at_path(path));
        }
        self.finish_file(path, &file, *mode, old)
    }

    /// Gives a new file its owner and mode, and makes it durable.
    fn finish_file(
        &self,
        path: &Path,
        file: &File,
        mode: u32,
        old: Option<&Known>,
    ) -> Result<Known> {
        let failed = |call| move |error| self.unwritten(call, path, error);
        let seen = sys::seen(file).map_err(failed("fstat"))?;
        if let Some((uid, gid)) = self.owner(path, old, &seen).map_err(failed("fstat"))? {
            self.beneath.ask("fchown", path).map_err(failed("fchown"))?;
            // Not everybody may give files away; then it is ours.
            if rustix::fs::fchown(file, uid, gid).is_err() {
                rustix::fs::fchown(file, None, gid).ok();
            }
        }
        // After the owner: to change that takes bits away.
        let asked = self.beneath.ask("fchmod", path);
        let bits = Mode::from_raw_mode(mode);
        let set = asked.and_then(|()| rustix::fs::fchmod(file, bits));
        set.map_err(failed("fchmod"))?;
        if self.few {
            let asked = self.beneath.ask("fsync", path);
            let synced = asked.and_then(|()| rustix::fs::fsync(file));
            synced.map_err(failed("fsync"))?;
        }
        let seen = sys::seen(file).map_err(failed("fstat"))?;
        if seen.stamp.mode != mode {
            return Err(self.unwritten("fchmod", path, Errno::PERM));
        }
        Ok(Known::of(&seen, self.horizon))
    }

    /// Returns whom a new file shall belong to, where that is not so already: to
    /// whom the old one belongs, else to the group that its directory says.
    fn owner(
        &self,
        path: &Path,
        old: Option<&Known>,
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

    /// Returns the group that a directory gives to what is made in it.
    fn group(&self, path: &Path) -> rustix::io::Result<Option<u32>> {
        let mut dir = split(bytes_of(path)).0;
        loop {
            match self.beneath.open_dir(dir) {
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
enum Old {
    As(Option<Known>),
    Moved,
}

impl Item {
    /// Returns whether a file becomes the same file with another mode.
    pub(super) fn is_mode_only(&self) -> bool {
        match (&self.old, &self.new) {
            (Some(Thing::File { content: a, .. }), Some(Thing::File { content: b, .. })) => a == b,
            _ => false,
        }
    }

    /// Returns whether something is to be put in place.
    pub(in crate::restore) fn stages(&self) -> bool {
        let is_new = self.new.as_ref().is_some_and(|new| !new.is_dir());
        is_new && self.old != self.new && !self.is_mode_only()
    }

    fn stages_file(&self) -> bool {
        self.stages() && matches!(self.new, Some(Thing::File { .. }))
    }

    pub(super) fn was_dir(&self) -> bool {
        self.old.as_ref().is_some_and(Thing::is_dir)
    }

    pub(super) fn becomes_dir(&self) -> bool {
        self.new.as_ref().is_some_and(Thing::is_dir)
    }

    /// Returns whether what stands there is removed, whatever comes in its place.
    pub(super) fn removes(&self) -> bool {
        self.old.is_some() && (self.new.is_none() || self.was_dir() != self.becomes_dir())
    }
}
