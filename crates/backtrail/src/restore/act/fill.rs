//! Writing the files of a snapshot into a new directory.

use std::fs::File;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::super::thing::Thing;
use super::beneath::Place;
use super::fresh::Fresh;
use super::known::{errno, hash};
use super::stage::MANY;
use crate::error::{Error, ErrorKind, Result};
use crate::objects::{ObjectId, Objects};
use crate::snapshot::FileKind;
use crate::snapshot::scan::queue::in_parallel;
use crate::snapshot::scan::sys::{self, Root};

/// How many files a thread takes at a time.
const BATCH: usize = 32;

/// Something that shall be in the new directory.
#[derive(Debug)]
pub(in crate::restore) struct Planted {
    /// The new directory itself is the empty path.
    pub(in crate::restore) path: PathBuf,
    pub(in crate::restore) thing: Thing,
    /// Whether the same may lie in the other workspace still.
    pub(in crate::restore) is_alive: bool,
}

/// What fills a new directory.
#[derive(Debug)]
pub(in crate::restore) struct Filling<'a> {
    fresh: &'a Fresh<'a>,
    objects: &'a Objects,
    /// The workspace that the files come from, as long as its file system shares
    /// content between files.
    live: Option<&'a Root>,
    shares: AtomicBool,
    shared: AtomicU64,
}

/// The directory that files are being written in.
type Held = Option<(PathBuf, OwnedFd)>;

impl<'a> Filling<'a> {
    pub(in crate::restore) fn new(
        fresh: &'a Fresh<'a>,
        objects: &'a Objects,
        live: Option<&'a Root>,
    ) -> Self {
        Self {
            fresh,
            objects,
            live,
            shares: AtomicBool::new(live.is_some()),
            shared: AtomicU64::new(0),
        }
    }

    /// Writes all of it, a directory before what is in it, and returns how many files
    /// share their content with files of the other workspace.
    pub(in crate::restore) fn run(&self, all: &[Planted]) -> Result<u64> {
        for planted in all {
            Place::check(&planted.path)?;
        }
        let is_dir = |planted: &&Planted| planted.thing.is_dir();
        for planted in all.iter().filter(is_dir).filter(|dir| !dir.is_root()) {
            let made = self.fresh.beneath.make_dir(&planted.path);
            made.map_err(|error| self.fresh.failed("mkdirat", &planted.path, error))?;
        }
        let rest: Vec<&Planted> = all.iter().filter(|planted| !is_dir(planted)).collect();
        self.write_all(&rest)?;
        // The deepest first: a mode may keep us out.
        for planted in all.iter().rev().filter(is_dir) {
            self.set_mode(planted)?;
        }
        Ok(self.shared.load(Ordering::Relaxed))
    }

    fn write_all(&self, all: &[&Planted]) -> Result<()> {
        // Who wants to be asked is asked in one order.
        if all.len() < MANY || self.fresh.beneath.is_watched() {
            let mut held = None;
            return all
                .iter()
                .try_for_each(|planted| self.write(planted, &mut held));
        }
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        in_parallel(threads.min(8), || {
            let mut held = None;
            while !stop.load(Ordering::Relaxed) {
                let at = next.fetch_add(BATCH, Ordering::Relaxed);
                let Some(batch) = all.get(at..) else { break };
                for planted in batch.iter().take(BATCH) {
                    let written = self.write(planted, &mut held);
                    written.inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
                }
            }
            Ok(())
        })?;
        Ok(())
    }

    fn write(&self, planted: &Planted, held: &mut Held) -> Result<()> {
        let path = planted.path.as_path();
        let dir = self.hold(path, held)?;
        match &planted.thing {
            Thing::Link { target } => self.write_link(path, dir, target),
            Thing::File {
                mode,
                size,
                content,
            } => {
                let file = self.write_file(planted, dir, *size, content)?;
                let asked = self.fresh.beneath.ask("fchmod", path);
                let set =
                    asked.and_then(|()| rustix::fs::fchmod(&file, Mode::from_raw_mode(*mode)));
                set.map_err(|error| self.fresh.failed("fchmod", path, error))
            }
            Thing::Dir { .. } => Ok(()),
        }
    }

    /// Returns the directory of a path, which is most often that of the path before.
    fn hold<'h>(&self, path: &Path, held: &'h mut Held) -> Result<&'h OwnedFd> {
        let parent = path.parent().unwrap_or(Path::new(""));
        if held.as_ref().is_none_or(|(path, _)| path != parent) {
            let opened = self.fresh.beneath.open_dir(Place::of(path).dir);
            let dir = opened.map_err(|error| self.fresh.failed("openat", path, error))?;
            *held = Some((parent.to_owned(), dir));
        }
        Ok(held
            .as_ref()
            .map(|(_, dir)| dir)
            .expect("it was just opened"))
    }

    fn write_link(&self, path: &Path, dir: &OwnedFd, target: &[u8]) -> Result<()> {
        let asked = self.fresh.beneath.ask("symlinkat", path);
        let made = asked.and_then(|()| rustix::fs::symlinkat(target, dir, Place::of(path).name));
        made.map_err(|error| self.fresh.failed("symlinkat", path, error))
    }

    fn write_file(
        &self,
        planted: &Planted,
        dir: &OwnedFd,
        size: u64,
        content: &ObjectId,
    ) -> Result<File> {
        let path = planted.path.as_path();
        let failed = |call: &'static str| move |error| self.fresh.failed(call, path, error);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let private = Mode::RUSR | Mode::WUSR;
        let asked = self.fresh.beneath.ask("openat", path);
        let opened = asked.and_then(|()| {
            rustix::fs::openat(dir, Place::of(path).name, flags | OFlags::CLOEXEC, private)
        });
        let mut file = File::from(opened.map_err(failed("openat"))?);
        if planted.is_alive && self.share(path, &mut file, (size, content))? {
            self.shared.fetch_add(1, Ordering::Relaxed);
            return Ok(file);
        }
        let mut written = 0;
        self.objects.read_to(content, &mut |piece| {
            written += piece.len() as u64;
            let asked = self.fresh.beneath.ask("write", path);
            let done = asked.and_then(|()| file.write_all(piece).map_err(errno));
            done.map_err(failed("write"))
        })?;
        if written != size {
            let what = format!("object {content} has {written} bytes, and should have {size}");
            return Err(Error::new(ErrorKind::Corrupt, what).at_path(path));
        }
        Ok(file)
    }

    /// Lets a new file share its content with the file of the other workspace, if
    /// that holds just this. Else the new file is empty.
    fn share(
        &self,
        path: &Path,
        file: &mut File,
        (size, content): (u64, &ObjectId),
    ) -> Result<bool> {
        let live = self.live.filter(|_| self.shares.load(Ordering::Relaxed));
        let Some(theirs) = live.and_then(|live| open_alive(live, path, size)) else {
            return Ok(false);
        };
        let asked = self.fresh.beneath.ask("ioctl", path);
        match asked.and_then(|()| rustix::fs::ioctl_ficlone(&*file, &theirs)) {
            Ok(()) => {}
            // That may be about this file alone.
            Err(Errno::TXTBSY | Errno::PERM) => return Ok(false),
            Err(_) => {
                self.shares.store(false, Ordering::Relaxed);
                return Ok(false);
            }
        }
        // Only what was shared counts: theirs may change at any moment.
        let is_it = hash(file, size).is_ok_and(|found| found == *content);
        let ready = match is_it {
            true => Ok(()),
            false => file.set_len(0).and_then(|()| file.rewind()),
        };
        ready.map_err(|error| self.fresh.failed("ftruncate", path, errno(error)))?;
        Ok(is_it)
    }

    fn set_mode(&self, planted: &Planted) -> Result<()> {
        let Thing::Dir { mode } = planted.thing else {
            return Ok(());
        };
        let path = planted.path.as_path();
        let is_dir = |seen: &sys::Seen| seen.kind == FileKind::Dir;
        let set = self.fresh.beneath.set_mode(path, mode, is_dir);
        set.map(drop)
            .map_err(|error| self.fresh.failed("fchmod", path, error))
    }
}

/// Opens the file at a path of the other workspace, if it has the right length.
fn open_alive(live: &Root, path: &Path, size: u64) -> Option<OwnedFd> {
    let place = Place::of(path);
    let dir = live.open_dir(place.dir).ok()?;
    let theirs = sys::open_file(&dir, place.name).ok()?;
    let seen = sys::seen(&theirs).ok()?;
    let fits = size > 0 && seen.kind == FileKind::File && seen.stamp.size == size;
    fits.then_some(theirs)
}

impl Planted {
    fn is_root(&self) -> bool {
        self.path.as_os_str().is_empty()
    }
}
