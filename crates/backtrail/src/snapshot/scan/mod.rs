//! Scans a workspace.
//!
//! A scan has three steps: walk and inspect every name; read and hash the files that
//! changed; write the listings from the bottom up. The cache of the last scan saves most
//! of the work, but decides nothing that the file system does not confirm.

mod build;
mod cache;
mod capture;
mod git;
mod included;
mod inspect;
mod limits;
mod matcher;
mod pattern;
pub(crate) mod queue;
mod read;
mod rules;
pub(crate) mod survey;
pub(crate) mod sys;
mod walk;

#[cfg(test)]
mod cache_tests;
#[cfg(test)]
mod changes_tests;
#[cfg(test)]
mod keep_tests;
#[cfg(test)]
mod odd_tests;
#[cfg(test)]
mod rules_tests;
#[cfg(test)]
mod speed_tests;
#[cfg(test)]
mod testing;

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

pub(crate) use super::restorable::STAGING;
pub(crate) use build::{KeptIgnored, NAMED, rank};
pub(crate) use cache::StatCache;
pub(crate) use capture::capture;
pub(crate) use limits::byte_size;
pub use limits::{LargeDir, SnapshotLimits, TooMuch};
pub(crate) use read::Counts;
pub(super) use sys::open_root;
pub(crate) use walk::split;

use super::entry::{Dir, Skipped};
use super::node::write_root;
use crate::error::Result;
use crate::objects::{ObjectId, ObjectWriter};
use crate::time::Timestamp;

/// Options for a scan.
#[derive(Debug, Clone)]
pub(crate) struct ScanOptions {
    /// Larger files are skipped.
    pub(crate) cap: u64,
    /// Larger ignored files are skipped.
    pub(crate) small_ignored: u64,
    /// The user's own ignore rules.
    pub(crate) global_excludes: Option<PathBuf>,
    /// The store's directory, which is never captured.
    pub(crate) store: PathBuf,
    /// How much may be read; `None` for no limit.
    pub(crate) limits: Option<SnapshotLimits>,
    /// Whether entries that the cache has as captured stay captured, whatever the rules
    /// say now, except those in `.backtrailignore`.
    pub(crate) keep: bool,
    /// Paths that are captured although they are ignored.
    pub(crate) included: Vec<Vec<u8>>,
    /// An included directory that holds more is not included.
    pub(crate) include_cap: u64,
    /// Whether every file is read and every listing written, also those that the cache has.
    pub(crate) reread: bool,
    /// Captures only the directory at this path, and all of it, without rules or caps.
    pub(crate) all_of: Option<Vec<u8>>,
    pub(crate) threads: usize,
    pub(crate) progress: Option<Arc<dyn Progress>>,
    #[cfg(test)]
    pub(crate) hook: Option<Hook>,
    #[cfg(test)]
    pub(crate) faults: Option<Faults>,
}

impl ScanOptions {
    /// Returns the default options for a store.
    pub(crate) fn new(store: PathBuf) -> Self {
        Self {
            cap: 256 << 20,
            small_ignored: 1 << 20,
            global_excludes: None,
            store,
            limits: None,
            keep: false,
            included: Vec::new(),
            include_cap: u64::MAX,
            reread: false,
            all_of: None,
            threads: std::thread::available_parallelism().map_or(2, usize::from),
            progress: None,
            #[cfg(test)]
            hook: None,
            #[cfg(test)]
            faults: None,
        }
    }

    /// Lets a test change the workspace at this step.
    fn step(&self, step: ScanStep, path: &[u8]) {
        #[cfg(test)]
        if let Some(hook) = &self.hook {
            (hook.0)(step, path);
        }
        #[cfg(not(test))]
        let _ = (step, path);
    }

    /// Lets a test make this step fail.
    fn fault(&self, step: ScanStep, path: &[u8]) -> rustix::io::Result<()> {
        #[cfg(test)]
        if let Some(faults) = &self.faults {
            return (faults.0)(step, path);
        }
        #[cfg(not(test))]
        let _ = (step, path);
        Ok(())
    }
}

/// Steps of a scan at which tests change the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScanStep {
    /// A directory is about to be opened.
    OpenDir,
    /// The names in a directory are about to be read.
    ListDir,
    /// A file was opened and is about to be read.
    ReadFile,
}

#[cfg(test)]
type Act = dyn Fn(ScanStep, &[u8]) + Send + Sync;

#[cfg(test)]
#[derive(Clone)]
pub(crate) struct Hook(pub(crate) Arc<Act>);

#[cfg(test)]
type Fail = dyn Fn(ScanStep, &[u8]) -> rustix::io::Result<()> + Send + Sync;

#[cfg(test)]
#[derive(Clone)]
pub(crate) struct Faults(pub(crate) Arc<Fail>);

#[cfg(test)]
impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faults")
    }
}

#[cfg(test)]
impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hook")
    }
}

/// Receives the progress of a scan, often and from several threads.
pub trait Progress: fmt::Debug + Send + Sync {
    /// Called with the progress so far. Later calls may report less than earlier ones.
    fn update(&self, at: ScanProgress);
}

/// The progress of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ScanProgress {
    /// The current stage.
    pub stage: ScanStage,
    /// The number of names inspected, or of files read.
    pub files: u64,
    /// The number of files to be read; 0 while unknown.
    pub total_files: u64,
    /// The number of bytes read.
    pub bytes: u64,
    /// The number of bytes to be read; 0 while unknown.
    pub total_bytes: u64,
}

/// A stage of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ScanStage {
    /// Waiting for another snapshot of the workspace.
    Waiting,
    /// Finding out what changed.
    Looking,
    /// Reading the files that changed.
    Reading,
    /// The scan is done and files are about to be moved. A process that is stopped now
    /// leaves an operation to be finished.
    Moving,
}

impl ScanProgress {
    pub(crate) fn waiting() -> Self {
        Self {
            stage: ScanStage::Waiting,
            ..Self::looking(0)
        }
    }

    /// The progress just before this many paths are moved.
    pub(crate) fn moving(files: u64) -> Self {
        Self {
            stage: ScanStage::Moving,
            total_files: files,
            ..Self::looking(0)
        }
    }

    fn looking(files: u64) -> Self {
        Self {
            stage: ScanStage::Looking,
            files,
            total_files: 0,
            bytes: 0,
            total_bytes: 0,
        }
    }

    fn reading((files, total_files): (u64, u64), (bytes, total_bytes): (u64, u64)) -> Self {
        Self {
            stage: ScanStage::Reading,
            files,
            total_files,
            bytes,
            total_bytes,
        }
    }
}

/// Where scanned contents go.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sink<'a> {
    /// They are stored.
    Store(&'a ObjectWriter),
    /// They are only hashed, and read again when they are to be stored.
    HashOnly,
}

/// The result of a scan.
#[derive(Debug)]
pub(crate) struct Scanned {
    pub(crate) root: Dir,
    /// The id of the snapshot.
    pub(crate) id: ObjectId,
    /// With [`Sink::HashOnly`], the nodes that may not be in the store.
    pub(crate) nodes: HashMap<ObjectId, Vec<u8>>,
    /// The first skipped entries, by reason and path with ignored ones last, without `.git`.
    pub(crate) skipped: Vec<(PathBuf, Skipped)>,
    /// The ignored files that were captured; only known without a cache.
    pub(crate) kept_ignored: KeptIgnored,
    /// Included directories that hold too much, and how much.
    pub(crate) over_cap: Vec<(Vec<u8>, u64)>,
    /// Whether nothing was skipped, not even `.git`; only known without a cache.
    whole: bool,
    /// The cache for the next scan; `None` if the given cache still holds or nothing was
    /// stored.
    pub(crate) cache: Option<StatCache>,
    #[cfg_attr(not(test), expect(dead_code, reason = "tests ask what was read"))]
    pub(crate) counts: Counts,
}

/// Scans the directory `root`, an absolute path without links.
///
/// `now` is the time of the system's clock, and not later: it decides which files' times
/// are old enough to be trusted. The new cache may be saved only after everything put
/// into the sink is durable.
pub(crate) fn scan(
    root: &Path,
    options: &ScanOptions,
    cache: &StatCache,
    sink: Sink<'_>,
    now: Timestamp,
) -> Result<Scanned> {
    let scanned = scan_from(root, options, cache, sink, now)?;
    scanned.ok_or_else(|| sys::root_lost(root, rustix::io::Errno::NOENT))
}

/// Stores the entire directory at `path` beneath `root`, regardless of rules and caps.
/// Returns `None` if any of it cannot be stored.
pub(crate) fn scan_all_of(
    root: &Path,
    path: &[u8],
    options: &ScanOptions,
    writer: &ObjectWriter,
    now: Timestamp,
) -> Result<Option<Dir>> {
    let options = ScanOptions {
        cap: u64::MAX,
        small_ignored: u64::MAX,
        limits: None,
        keep: false,
        all_of: Some(path.to_vec()),
        ..options.clone()
    };
    let (cache, sink) = (StatCache::empty(), Sink::Store(writer));
    let scanned = scan_from(root, &options, &cache, sink, now)?;
    Ok(scanned
        .filter(|scanned| scanned.whole)
        .map(|scanned| scanned.root))
}

fn scan_from(
    root: &Path,
    options: &ScanOptions,
    cache: &StatCache,
    sink: Sink<'_>,
    now: Timestamp,
) -> Result<Option<Scanned>> {
    let handle = sys::Root::open(root)?;
    let horizon = sys::Horizon::of(now.as_millis());
    let walk = walk::TreeWalk::new(&handle, root, options, cache, horizon);
    let mut dirs = walk.run()?;
    let over_cap = included::over_cap(options, &dirs, cache);
    if !over_cap.is_empty() {
        let scanned = scan_from(root, &options.without(&over_cap), cache, sink, now)?;
        return Ok(scanned.map(|scanned| Scanned {
            over_cap,
            ..scanned
        }));
    }
    let unread = read::unread(&dirs);
    if let Some(limits) = options.limits {
        limits::check(limits, &options.store, &dirs, &unread)?;
    }
    let counts = read::read_all(&walk, &mut dirs, unread, &sink)?;
    let mut nodes = HashMap::new();
    let mut put = |bytes: &[u8]| match sink {
        Sink::Store(writer) => writer.put(bytes),
        Sink::HashOnly => {
            let id = ObjectId::of(bytes);
            nodes.insert(id, bytes.to_vec());
            Ok(id)
        }
    };
    let Some(built) = build::build(dirs, cache, handle.dev, &mut put)? else {
        return Ok(None);
    };
    let root = write_root(&built.root);
    let id = match sink {
        // Checking whether it is stored would cost as much as storing it.
        Sink::Store(_) if built.same && !options.reread => ObjectId::of(&root),
        _ => put(&root)?,
    };
    Ok(Some(Scanned {
        root: built.root,
        id,
        nodes,
        skipped: built.skipped,
        kept_ignored: built.kept_ignored,
        over_cap: Vec::new(),
        whole: built.whole,
        // If nothing was stored, the cache must not claim that it was.
        cache: built.cache.filter(|_| matches!(sink, Sink::Store(_))),
        counts,
    }))
}
