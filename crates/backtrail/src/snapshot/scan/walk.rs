//! The walk: opens every directory and inspects every name, by several threads.
//!
//! Nothing is hashed here. A directory that is unchanged since the last scan is not read
//! again, because its names are known.

use std::ffi::{CStr, OsStr};
use std::iter::Peekable;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::fd::OwnedFd;
use rustix::io::Errno;

use super::super::entry::{FileKind, SkippedReason};
use super::cache::{CachedDir, CachedEntries, CachedEntry, CachedNode, StatCache};
use super::included::Inclusion;
use super::inspect::{Inspected, InspectedDir, ItemState, ScanItem, Sizes};
use super::queue::Queue;
use super::rules::{RuleFiles, Rules, RulesKey, Verdict};
use super::sys::{self, Horizon, Names, Root, Seen, Stamp};
use super::{ScanOptions, ScanStep};
use crate::error::{Error, IoContext, Result};

/// A directory as the walk found it.
#[derive(Debug, Default)]
pub(super) struct WalkedDir {
    pub(super) path: Box<[u8]>,
    /// Its number in the cache, if cached.
    pub(super) record: Option<u32>,
    pub(super) found: DirState,
}

#[derive(Debug, Default)]
pub(super) enum DirState {
    #[default]
    Gone,
    Skipped(SkippedReason),
    /// It is something else now.
    Replaced(ScanItem),
    /// Everything except its subdirectories, which have these numbers, is as cached.
    Same(Vec<u32>),
    Changed(ChangedDir),
}

#[derive(Debug)]
pub(super) struct ChangedDir {
    pub(super) stamp: Stamp,
    pub(super) racy: bool,
    pub(super) files: RuleFiles,
    pub(super) key: RulesKey,
    pub(super) items: Vec<ScanItem>,
}

/// A directory to be walked.
#[derive(Debug)]
pub(super) struct Job {
    number: u32,
    path: Box<[u8]>,
    record: Option<u32>,
    /// The rules for its own name.
    rules: Arc<Rules>,
    /// It is ignored, but walked for entries that were captured before or are included.
    kept: bool,
    /// The user asked to include it.
    included: bool,
}

impl Job {
    /// Returns whether it is the workspace itself.
    fn is_root(&self) -> bool {
        self.path.is_empty()
    }
}

/// The subdirectories found in a directory.
pub(super) struct Jobs<'a> {
    walk: &'a TreeWalk<'a>,
    found: Vec<Job>,
}

impl Jobs<'_> {
    /// Adds a directory and returns its number.
    pub(super) fn add(
        &mut self,
        (dir, name): (&[u8], &CStr),
        record: Option<u32>,
        rules: &Arc<Rules>,
        verdict: Verdict,
    ) -> u32 {
        let number = self.walk.next.fetch_add(1, Ordering::Relaxed);
        self.found.push(Job {
            number,
            path: join(dir, name.to_bytes()),
            record,
            rules: rules.clone(),
            kept: verdict == Verdict::Kept,
            included: self.walk.options.inclusion(dir, name.to_bytes()) == Inclusion::Within,
        });
        number
    }

    pub(super) fn fatal(&self, dir: &[u8], name: &CStr, error: Errno) -> Error {
        self.walk.fatal(&join(dir, name.to_bytes()), error)
    }
}

pub(super) fn join(dir: &[u8], name: &[u8]) -> Box<[u8]> {
    match dir {
        b"" => name.into(),
        _ => [dir, b"/", name].concat().into_boxed_slice(),
    }
}

/// State shared by all threads of a walk.
pub(super) struct TreeWalk<'a> {
    pub(super) root: &'a Root,
    pub(super) path: &'a Path,
    pub(super) options: &'a ScanOptions,
    pub(super) cache: &'a StatCache,
    pub(super) horizon: Horizon,
    /// The store's device and inode.
    pub(super) store: Option<(u64, u64)>,
    next: AtomicU32,
    seen: AtomicU64,
    /// The number of directories whose names were read.
    pub(super) dirs_read: AtomicU64,
}

impl<'a> TreeWalk<'a> {
    pub(super) fn new(
        root: &'a Root,
        path: &'a Path,
        options: &'a ScanOptions,
        cache: &'a StatCache,
        horizon: Horizon,
    ) -> Self {
        let store = sys::seen_path(&options.store).ok();
        Self {
            root,
            path,
            options,
            cache,
            horizon,
            store: store.map(|seen| (seen.dev, seen.stamp.ino)),
            next: AtomicU32::new(1),
            seen: AtomicU64::new(0),
            dirs_read: AtomicU64::new(0),
        }
    }

    /// Returns all directories; each one comes before those in it.
    pub(super) fn run(&self) -> Result<Vec<WalkedDir>> {
        let settings = [
            self.options.cap.to_le_bytes(),
            self.options.small_ignored.to_le_bytes(),
        ];
        let excludes = self.options.global_excludes.as_deref();
        let rules = Rules::around(self.path, excludes, settings.as_flattened())
            .context("cannot read ignore rules", self.path)?;
        let queue = Queue::new(Job {
            number: 0,
            path: self.options.all_of.clone().unwrap_or_default().into(),
            record: self.cache.is_of(self.root.dev).then_some(0),
            rules,
            kept: false,
            included: false,
        });
        let parts = queue.work(self.options.threads, |queue| {
            let mut names = Names::default();
            let mut done = Vec::new();
            while let Some((job, running)) = queue.next() {
                let mut jobs = Jobs {
                    walk: self,
                    found: Vec::new(),
                };
                let found = self.found(&job, &mut names, &mut jobs)?;
                let walked = WalkedDir {
                    path: job.path,
                    record: job.record,
                    found,
                };
                done.push((job.number, walked));
                running.finish(jobs.found);
            }
            Ok(done)
        })?;
        // A number without a directory came from a broken cache.
        let mut dirs: Vec<WalkedDir> = Vec::new();
        dirs.resize_with(
            self.next.load(Ordering::Relaxed) as usize,
            WalkedDir::default,
        );
        for (number, walked) in parts.into_iter().flatten() {
            dirs[number as usize] = walked;
        }
        Ok(dirs)
    }

    fn found(&self, job: &Job, names: &mut Names, jobs: &mut Jobs<'_>) -> Result<DirState> {
        for tries in 1..=sys::TRIES {
            self.options.step(ScanStep::OpenDir, &job.path);
            let opened = self.options.fault(ScanStep::OpenDir, &job.path);
            match opened.and_then(|()| self.root.open_dir(&job.path)) {
                Ok(fd) => match self.opened(&fd, job, names, jobs)? {
                    // It may pass; the names are read from the beginning.
                    Err(error) if sys::is_passing(error) && tries < sys::TRIES => {}
                    Ok(found) => return Ok(found),
                    Err(error) if job.is_root() => return Err(self.failed(&job.path, error)),
                    Err(_) => break,
                },
                Err(error) if sys::is_passing(error) && tries < sys::TRIES => {}
                Err(error) if job.is_root() => return Err(sys::root_lost(self.path, error)),
                Err(Errno::NOENT) => return Ok(DirState::Gone),
                Err(Errno::XDEV) => return Ok(DirState::Skipped(SkippedReason::OtherFileSystem)),
                Err(error) if sys::is_fatal(error) => return Err(self.fatal(&job.path, error)),
                Err(Errno::NOTDIR | Errno::LOOP) => {
                    if let Some(found) = self.inspect_again(job, jobs)? {
                        return Ok(found);
                    }
                }
                Err(_) => break,
            }
        }
        Ok(DirState::Skipped(SkippedReason::Unreadable))
    }

    /// Inspects a name that was a directory and no longer is. Returns `None` if it is one
    /// again.
    fn inspect_again(&self, job: &Job, jobs: &mut Jobs<'_>) -> Result<Option<DirState>> {
        let (dir, name) = split(&job.path);
        let name = std::ffi::CString::new(name).unwrap_or_default();
        let fd = match self.root.open_dir(dir) {
            Ok(fd) => fd,
            Err(error) if sys::is_fatal(error) => return Err(self.fatal(dir, error)),
            // Then the directory that contained it is gone as well.
            Err(_) => return Ok(Some(DirState::Gone)),
        };
        match sys::seen_at(&fd, &name) {
            Ok(seen) if seen.kind == FileKind::Dir => return Ok(None),
            Err(_) => return Ok(Some(DirState::Gone)),
            Ok(_) => {}
        }
        let known = job.record.map(|record| CachedEntry {
            name: &name,
            verdict: Verdict::Plain,
            racy: true,
            node: CachedNode::Dir(record),
        });
        let here = self.here(&fd, dir, &job.rules, false);
        let inspected = here.inspect(&name, known.as_ref(), Some(FileKind::File), jobs)?;
        Ok(match inspected {
            Inspected::Other(_, ItemState::Gone) => Some(DirState::Gone),
            Inspected::Other(verdict, state) => Some(DirState::Replaced(ScanItem {
                name: name.into(),
                verdict,
                state,
            })),
            // It changes faster than it can be inspected.
            Inspected::Dir(..) | Inspected::Same => {
                Some(DirState::Skipped(SkippedReason::Unreadable))
            }
        })
    }

    /// Finds out about an opened directory. The inner error is that of reading its names.
    fn opened(
        &self,
        fd: &OwnedFd,
        job: &Job,
        names: &mut Names,
        jobs: &mut Jobs<'_>,
    ) -> Result<std::result::Result<DirState, Errno>> {
        let seen = sys::seen(fd).map_err(|error| self.failed(&job.path, error))?;
        if seen.dev != self.root.dev {
            return Ok(Ok(DirState::Skipped(SkippedReason::OtherFileSystem)));
        }
        if self.store == Some((seen.dev, seen.stamp.ino)) && !job.is_root() {
            return Ok(Ok(DirState::Skipped(SkippedReason::Store)));
        }
        let record = job.record.and_then(|number| self.cache.record(number));
        let known = record.filter(|record| is_same(record, &seen));
        if let Some(record) = known
            && let Some(found) = self.known(fd, job, &record, &seen, jobs)?
        {
            return Ok(Ok(found));
        }
        self.dirs_read.fetch_add(1, Ordering::Relaxed);
        let listed = self.options.fault(ScanStep::ListDir, &job.path);
        match listed.and_then(|()| names.read(fd)) {
            Ok(()) => {}
            Err(Errno::NOENT) if !job.is_root() => return Ok(Ok(DirState::Gone)),
            Err(error) if sys::is_fatal(error) => return Err(self.failed(&job.path, error)),
            Err(error) => return Ok(Err(error)),
        }
        let found = self.read(fd, job, record.as_ref(), &seen, names, jobs);
        found.map(Ok)
    }

    /// Inspects the cached names of an unchanged directory. Returns `None` if the cache
    /// is invalid.
    fn known(
        &self,
        fd: &OwnedFd,
        job: &Job,
        record: &CachedDir<'_>,
        seen: &Seen,
        jobs: &mut Jobs<'_>,
    ) -> Result<Option<DirState>> {
        let files = record.head.files;
        let rules = self.rules(fd, job, files)?;
        let verdicts_hold = *rules.key() == record.head.key;
        let here = self.here(fd, &job.path, &rules, verdicts_hold);
        let mut items = (!verdicts_hold || self.options.reread).then(Vec::new);
        let mut subdirs = Vec::new();
        let mut count = 0;
        for known in record.entries() {
            let Some(known) = known else {
                jobs.found.clear();
                return Ok(None);
            };
            let inspected = here.inspect(known.name, Some(&known), None, jobs)?;
            let was_walked = known.is_walked();
            match inspected {
                Inspected::Same if items.is_none() => {}
                Inspected::Dir(_, number) if items.is_none() && was_walked => subdirs.push(number),
                inspected => {
                    let items = items.get_or_insert_with(|| replay(record, count, &subdirs));
                    push(items, known.name, Some(&known), inspected);
                }
            }
            count += 1;
        }
        self.count(count);
        Ok(Some(match items {
            None => DirState::Same(subdirs),
            Some(items) => self.changed(seen, files, &rules, items),
        }))
    }

    /// Inspects the names that were read from a directory.
    fn read(
        &self,
        fd: &OwnedFd,
        job: &Job,
        record: Option<&CachedDir<'_>>,
        seen: &Seen,
        names: &Names,
        jobs: &mut Jobs<'_>,
    ) -> Result<DirState> {
        let mut files = RuleFiles::default();
        names.iter().for_each(|(name, _)| files.note(name));
        let rules = self.rules(fd, job, files)?;
        let verdicts_hold = record.is_some_and(|record| record.head.key == *rules.key());
        let here = self.here(fd, &job.path, &rules, verdicts_hold);
        let mut before = record.map(|record| record.entries().peekable());
        let mut items = Vec::new();
        let mut count = 0;
        for (name, hint) in names.iter() {
            let known = before.as_mut().and_then(|before| find(before, name));
            let inspected = here.inspect(name, known.as_ref(), hint, jobs)?;
            push(&mut items, name, known.as_ref(), inspected);
            count += 1;
        }
        self.count(count);
        Ok(self.changed(seen, files, &rules, items))
    }

    fn changed(
        &self,
        seen: &Seen,
        files: RuleFiles,
        rules: &Rules,
        items: Vec<ScanItem>,
    ) -> DirState {
        DirState::Changed(ChangedDir {
            stamp: seen.stamp,
            racy: seen.is_racy(self.horizon),
            files,
            key: *rules.key(),
            items,
        })
    }

    fn rules(&self, fd: &OwnedFd, job: &Job, files: RuleFiles) -> Result<Arc<Rules>> {
        let above = match (job.included, job.kept) {
            (true, _) => &job.rules.included(),
            (_, true) => &job.rules.inside(),
            _ => &job.rules,
        };
        let rules = above.of_dir(fd, &job.path, files);
        rules.context("cannot read ignore rules", &self.whole(&job.path))
    }

    fn here<'b>(
        &'b self,
        fd: &'b OwnedFd,
        path: &'b [u8],
        rules: &'b Arc<Rules>,
        verdicts_hold: bool,
    ) -> InspectedDir<'b> {
        InspectedDir {
            fd,
            path,
            depth: depth(path),
            rules,
            verdicts_hold,
            keep: self.options.keep,
            reread: self.options.reread,
            all: self.options.all_of.is_some(),
            options: self.options,
            sizes: self.sizes(),
            horizon: self.horizon,
        }
    }

    pub(super) fn sizes(&self) -> Sizes {
        Sizes {
            cap: self.options.cap,
            small_ignored: self.options.small_ignored,
        }
    }

    fn count(&self, names: u64) {
        if let Some(progress) = &self.options.progress {
            let files = self.seen.fetch_add(names, Ordering::Relaxed) + names;
            progress.update(super::ScanProgress::looking(files));
        }
    }

    pub(super) fn whole(&self, path: &[u8]) -> std::path::PathBuf {
        self.path.join(OsStr::from_bytes(path))
    }

    pub(super) fn fatal(&self, path: &[u8], error: Errno) -> Error {
        sys::fatal(&self.whole(path), error)
    }

    fn failed(&self, path: &[u8], error: Errno) -> Error {
        if sys::is_fatal(error) {
            return self.fatal(path, error);
        }
        Error::io("cannot read the directory", &self.whole(path), error.into())
    }
}

/// Returns the number of names in a path.
fn depth(path: &[u8]) -> usize {
    match path {
        b"" => 0,
        _ => 1 + path.iter().filter(|byte| **byte == b'/').count(),
    }
}

/// Splits a path into its directory and its last name.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

/// Returns whether a directory still has the cached names.
fn is_same(record: &CachedDir<'_>, seen: &Seen) -> bool {
    let (was, is) = (&record.head.stamp, &seen.stamp);
    let same = was.ino == is.ino && was.mtime == is.mtime && was.ctime == is.ctime;
    same && was.mode == is.mode && !record.head.racy
}

/// Finds a name among the cached ones; both are in the same order.
fn find<'a>(before: &mut Peekable<CachedEntries<'a>>, name: &CStr) -> Option<CachedEntry<'a>> {
    loop {
        let known = (*before.peek()?)?;
        match known.name.cmp(name) {
            std::cmp::Ordering::Greater => return None,
            std::cmp::Ordering::Equal => return before.next()?,
            std::cmp::Ordering::Less => before.next(),
        };
    }
}

/// Creates items from the first entries of a record, which are unchanged.
pub(super) fn replay(record: &CachedDir<'_>, count: u64, subdirs: &[u32]) -> Vec<ScanItem> {
    let mut subdirs = subdirs.iter();
    let entries = record
        .entries()
        .take(usize::try_from(count).unwrap_or(usize::MAX));
    let item = |known: CachedEntry<'_>| ScanItem {
        name: known.name.into(),
        verdict: known.verdict,
        state: ItemState::known(
            &known,
            known.is_walked().then(|| subdirs.next().copied()).flatten(),
        ),
    };
    entries.flatten().map(item).collect()
}

/// Adds the result of inspecting a name.
fn push(
    items: &mut Vec<ScanItem>,
    name: &CStr,
    known: Option<&CachedEntry<'_>>,
    inspected: Inspected,
) {
    let (verdict, state) = match (inspected, known) {
        (Inspected::Same, Some(known)) => (known.verdict, ItemState::known(known, None)),
        (Inspected::Same, None) => return,
        (Inspected::Dir(verdict, number), _) => (verdict, ItemState::Dir(number)),
        (Inspected::Other(_, ItemState::Gone), _) => return,
        (Inspected::Other(verdict, state), _) => (verdict, state),
    };
    let name = name.into();
    items.push(ScanItem {
        name,
        verdict,
        state,
    });
}
