//! Reads changed files: each is opened, hashed, and compared before and after, by several
//! threads.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use rustix::fd::OwnedFd;
use rustix::io::Errno;

use super::super::entry::{FileKind, SkippedReason};
use super::inspect::{ItemState, ScanItem};
use super::queue::in_parallel;
use super::rules::Verdict;
use super::sys::{self, Seen};
use super::walk::{DirState, TreeWalk, WalkedDir, join};
use super::{ScanProgress, ScanStep, Sink};
use crate::error::Result;
use crate::objects::ObjectId;

/// Longer files are read piece by piece.
const WHOLE: u64 = 2 * 1024 * 1024;
/// How much one thread takes at a time.
const BATCH_BYTES: u64 = 4 * 1024 * 1024;
const BATCH_FILES: usize = 256;

/// A file to be read: the number of its directory, and its position there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unread {
    pub(super) dir: u32,
    item: u32,
    pub(super) size: u64,
}

#[derive(Debug, Clone, Copy, Default)]
#[cfg_attr(not(test), expect(dead_code, reason = "tests ask what was read"))]
pub(crate) struct Counts {
    /// The number of files read.
    pub(crate) files: u64,
    /// The bytes of those files.
    pub(crate) bytes: u64,
    /// The number of directories whose names were read.
    pub(crate) dirs: u64,
}

/// Lists the files to be read.
pub(super) fn unread(dirs: &[WalkedDir]) -> Vec<Unread> {
    let mut all = Vec::new();
    for (dir, walked) in dirs.iter().enumerate() {
        for (item, found) in items(&walked.found).iter().enumerate() {
            if let ItemState::Unread(size) = found.state {
                let (dir, item) = (dir as u32, item as u32);
                all.push(Unread { dir, item, size });
            }
        }
    }
    all
}

fn items(found: &DirState) -> &[ScanItem] {
    match found {
        DirState::Changed(changed) => &changed.items,
        DirState::Replaced(item) => std::slice::from_ref(item),
        _ => &[],
    }
}

fn items_mut(found: &mut DirState) -> &mut [ScanItem] {
    match found {
        DirState::Changed(changed) => &mut changed.items,
        DirState::Replaced(item) => std::slice::from_mut(item),
        _ => &mut [],
    }
}

/// Reads all files and records their state in `dirs`.
pub(super) fn read_all(
    walk: &TreeWalk<'_>,
    dirs: &mut [WalkedDir],
    mut all: Vec<Unread>,
    sink: &Sink<'_>,
) -> Result<Counts> {
    let batches = batches(&mut all);
    let reading = Reader {
        walk,
        dirs,
        sink,
        all: &all,
        total_bytes: all.iter().map(|unread| unread.size).sum(),
        files: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
    };
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let threads = walk.options.threads.min(batches.len());
    let done = in_parallel(threads, || {
        let mut thread = ThreadState::default();
        while let Some(batch) = batches.get(next.fetch_add(1, Ordering::Relaxed))
            && !stop.load(Ordering::Relaxed)
        {
            let read = reading.batch(batch.clone(), &mut thread);
            read.inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
        }
        Ok(thread.done)
    })?;
    let counts = Counts {
        files: reading.files.load(Ordering::Relaxed),
        bytes: reading.bytes.load(Ordering::Relaxed),
        dirs: walk.dirs_read.load(Ordering::Relaxed),
    };
    for (unread, state) in done.into_iter().flatten() {
        items_mut(&mut dirs[unread.dir as usize].found)[unread.item as usize].state = state;
    }
    Ok(counts)
}

/// Splits the list into batches for threads. Long files come first, so that none is
/// started when the other threads are done.
fn batches(all: &mut [Unread]) -> Vec<Range<usize>> {
    all.sort_by_key(|unread| std::cmp::Reverse(if unread.size > WHOLE { unread.size } else { 0 }));
    let mut batches = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (n, unread) in all.iter().enumerate() {
        bytes += unread.size;
        if bytes >= BATCH_BYTES || unread.size > WHOLE || n + 1 - start >= BATCH_FILES {
            batches.push(start..n + 1);
            (start, bytes) = (n + 1, 0);
        }
    }
    if start < all.len() {
        batches.push(start..all.len());
    }
    batches
}

/// State shared by all reading threads.
struct Reader<'a> {
    walk: &'a TreeWalk<'a>,
    dirs: &'a [WalkedDir],
    sink: &'a Sink<'a>,
    all: &'a [Unread],
    total_bytes: u64,
    files: AtomicU64,
    bytes: AtomicU64,
}

/// A directory whose files are to be read.
enum OpenedDir {
    Dir(OwnedFd),
    Gone,
    /// It exists, and so do its files as far as is known.
    Unreadable,
}

/// State of one thread.
#[derive(Default)]
struct ThreadState {
    buffer: Vec<u8>,
    done: Vec<(Unread, ItemState)>,
}

impl Reader<'_> {
    fn batch(&self, batch: Range<usize>, thread: &mut ThreadState) -> Result<()> {
        let mut open: Option<(u32, OpenedDir)> = None;
        let (mut files, mut bytes) = (0, 0);
        for unread in &self.all[batch] {
            let dir = &self.dirs[unread.dir as usize];
            // The state of a replaced directory is kept in its parent's item.
            let path = match dir.found {
                DirState::Replaced(_) => super::walk::split(&dir.path).0,
                _ => &dir.path,
            };
            if open
                .as_ref()
                .is_none_or(|(number, _)| *number != unread.dir)
            {
                open = Some((unread.dir, self.open_dir(path)?));
            }
            let item = &items(&dir.found)[unread.item as usize];
            let state = match &open {
                Some((_, OpenedDir::Dir(fd))) => self.file(fd, path, item, &mut thread.buffer)?,
                Some((_, OpenedDir::Unreadable)) => {
                    skipped_file(SkippedReason::Unreadable, unread.size)
                }
                Some((_, OpenedDir::Gone)) | None => ItemState::Gone,
            };
            files += 1;
            if let ItemState::File { stamp, .. } = &state {
                bytes += stamp.size;
            }
            thread.done.push((*unread, state));
        }
        self.count(files, bytes);
        Ok(())
    }

    /// Opens a directory again.
    fn open_dir(&self, path: &[u8]) -> Result<OpenedDir> {
        match self.walk.root.open_dir(path) {
            Ok(fd) => Ok(OpenedDir::Dir(fd)),
            Err(error) if sys::is_fatal(error) => Err(self.walk.fatal(path, error)),
            // Something replaced it, or a directory above it.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(OpenedDir::Gone),
            Err(_) => Ok(OpenedDir::Unreadable),
        }
    }

    fn count(&self, files: u64, bytes: u64) {
        let files = self.files.fetch_add(files, Ordering::Relaxed) + files;
        let bytes = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if let Some(progress) = &self.walk.options.progress {
            let total_files = self.all.len() as u64;
            progress.update(ScanProgress::reading(
                (files, total_files),
                (bytes, self.total_bytes),
            ));
        }
    }

    /// Reads a file until it does not change while being read.
    fn file(
        &self,
        dir: &OwnedFd,
        path: &[u8],
        item: &ScanItem,
        buffer: &mut Vec<u8>,
    ) -> Result<ItemState> {
        let mut size = 0;
        let mut reason = SkippedReason::Unstable;
        for _ in 0..sys::TRIES {
            let fd = match sys::open_file(dir, &*item.name) {
                Ok(fd) => fd,
                Err(Errno::NOENT) => return Ok(ItemState::Gone),
                Err(error) if sys::is_fatal(error) => {
                    return Err(self.walk.fatal(&join(path, item.name.to_bytes()), error));
                }
                Err(error) => match self.not_opened(dir, item, error) {
                    Some(state) => return Ok(state),
                    None => continue,
                },
            };
            let Ok(before) = sys::seen(&fd) else { continue };
            if before.kind != FileKind::File {
                match self.not_opened(dir, item, Errno::LOOP) {
                    Some(state) => return Ok(state),
                    None => continue,
                }
            }
            size = before.len();
            if let Some(reason) = self.walk.sizes().skip_reason(item.verdict, &before) {
                return Ok(skipped_file(reason, size));
            }
            self.step(path, &item.name);
            let file = File::from(fd);
            let fault = self.fault(path, &item.name);
            let read = match size {
                _ if fault.is_err() => fault.map(|()| None).map_err(Into::into),
                ..=WHOLE => self.whole(&file, size, buffer)?,
                _ => self.pieces(&file, size)?,
            };
            match read {
                Ok(Some(content)) if is_still(&file, &before) => {
                    return Ok(ItemState::File {
                        stamp: before.stamp,
                        racy: before.is_racy(self.walk.horizon),
                        content,
                    });
                }
                Ok(_) => reason = SkippedReason::Unstable,
                // It may pass.
                Err(_) => reason = SkippedReason::Unreadable,
            }
        }
        Ok(skipped_file(reason, size))
    }

    fn step(&self, path: &[u8], name: &CStr) {
        if cfg!(test) {
            let path = join(path, name.to_bytes());
            self.walk.options.step(ScanStep::ReadFile, &path);
        }
    }

    fn fault(&self, path: &[u8], name: &CStr) -> rustix::io::Result<()> {
        match cfg!(test) {
            true => {
                let path = join(path, name.to_bytes());
                self.walk.options.fault(ScanStep::ReadFile, &path)
            }
            false => Ok(()),
        }
    }

    /// Returns the state of a name that could not be opened as a file; `None` if it is a
    /// file now.
    fn not_opened(&self, dir: &OwnedFd, item: &ScanItem, error: Errno) -> Option<ItemState> {
        let seen = match sys::seen_at(dir, &*item.name) {
            Ok(seen) => seen,
            Err(Errno::NOENT) => return Some(ItemState::Gone),
            Err(_) => return Some(skipped_file(SkippedReason::Unreadable, 0)),
        };
        match seen.kind {
            FileKind::File if error == Errno::LOOP => None,
            FileKind::File => Some(skipped_file(SkippedReason::Unreadable, seen.len())),
            // The walk is over; the next scan will walk it.
            kind @ FileKind::Dir => Some(ItemState::skipped(SkippedReason::Unstable, kind, 0)),
            FileKind::Link => self.link(dir, item, &seen),
            kind => Some(ItemState::skipped(SkippedReason::Special, kind, 0)),
        }
    }

    fn link(&self, dir: &OwnedFd, item: &ScanItem, seen: &Seen) -> Option<ItemState> {
        if matches!(item.verdict, Verdict::Excluded | Verdict::Inside) {
            let reason = SkippedReason::Ignored;
            return Some(ItemState::skipped(reason, FileKind::Link, 0));
        }
        let target = sys::link_target(dir, &*item.name).ok()?;
        Some(ItemState::Link {
            stamp: seen.stamp,
            racy: seen.is_racy(self.walk.horizon),
            target,
        })
    }

    /// Reads a file at once; `None` if its length is not `size`.
    fn whole(&self, file: &File, size: u64, buffer: &mut Vec<u8>) -> Content {
        buffer.clear();
        // One more byte than expected, to notice a file that grew.
        buffer.reserve(size as usize + 1);
        let len = match file.take(size + 1).read_to_end(buffer) {
            Ok(len) => len,
            Err(error) => return Ok(Err(error)),
        };
        if len as u64 != size {
            return Ok(Ok(None));
        }
        let id = match self.sink {
            Sink::Store(writer) => writer.put(buffer)?,
            Sink::HashOnly => ObjectId::of(buffer),
        };
        Ok(Ok(Some(id)))
    }

    /// Reads a long file piece by piece.
    fn pieces(&self, file: &File, size: u64) -> Content {
        let mut bounded = file.take(size + 1);
        let read = match self.sink {
            Sink::Store(writer) => writer.put_stream(&mut bounded)?,
            Sink::HashOnly => hash(&mut bounded),
        };
        Ok(read.map(|(id, len)| (len == size).then_some(id)))
    }
}

fn skipped_file(reason: SkippedReason, size: u64) -> ItemState {
    ItemState::skipped(reason, FileKind::File, size)
}

/// A file's content. The inner error concerns the file, the outer one the store.
type Content = Result<io::Result<Option<ObjectId>>>;

fn hash(file: &mut impl Read) -> io::Result<(ObjectId, u64)> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file)?;
    Ok((ObjectId::finish(&hasher), hasher.count()))
}

/// Returns whether a file is unchanged since before it was read.
fn is_still(file: &File, before: &Seen) -> bool {
    sys::seen(file).is_ok_and(|after| after.stamp == before.stamp)
}
