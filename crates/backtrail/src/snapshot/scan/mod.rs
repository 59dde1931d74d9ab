//! Finding out what is in a workspace.
//!
//! In three steps: walk and look at every name; read and hash what changed; write
//! the listings from the bottom up. What the last scan knew saves most of it, and
//! decides nothing that the file system does not confirm.

mod build;
mod cache;
mod git;
mod limits;
mod look;
mod matcher;
mod pattern;
pub(crate) mod queue;
mod read;
mod rules;
pub(crate) mod sys;
mod walk;

#[cfg(test)]
mod cache_tests;
#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests change a workspace as programs do"
)]
mod changes_tests;
#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests change a workspace as programs do"
)]
mod keep_tests;
#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests change a workspace as programs do"
)]
mod kit_tests;
#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests change a workspace as programs do"
)]
mod odd_tests;
#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests change a workspace as programs do"
)]
mod rules_tests;
#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests change a workspace as programs do"
)]
mod speed_tests;

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use cache::StatCache;
pub use limits::{LargeDir, Limits, TooMuch};
pub(crate) use look::STAGING;
pub(crate) use read::Counts;
pub(super) use sys::open_root;
pub(crate) use walk::split;

use super::entry::{Dir, LeftOut};
use super::node::write_root;
use crate::error::Result;
use crate::objects::{ObjectId, ObjectWriter};
use crate::time::Timestamp;

/// How a scan is made.
#[derive(Debug, Clone)]
pub(crate) struct ScanOptions {
    /// A larger file is left out.
    pub(crate) cap: u64,
    /// A larger file that is ignored is left out.
    pub(crate) small_ignored: u64,
    /// The user's own ignore rules.
    pub(crate) global_excludes: Option<PathBuf>,
    /// The store's directory, which is never captured.
    pub(crate) store: PathBuf,
    /// What may be read; `None` goes on whatever it takes.
    pub(crate) limits: Option<Limits>,
    /// What the cache knows as captured is captured again, whatever rules say now;
    /// `.backtrailignore` excepted.
    pub(crate) keep: bool,
    /// Only the directory at this path, and all of it: no rules, no caps.
    pub(crate) all_of: Option<Vec<u8>>,
    pub(crate) threads: usize,
    pub(crate) progress: Option<Arc<dyn Progress>>,
    #[cfg(test)]
    pub(crate) hook: Option<Hook>,
}

impl ScanOptions {
    /// Returns the usual options for a store.
    pub(crate) fn new(store: PathBuf) -> Self {
        Self {
            cap: 256 << 20,
            small_ignored: 1 << 20,
            global_excludes: None,
            store,
            limits: None,
            keep: false,
            all_of: None,
            threads: std::thread::available_parallelism().map_or(2, usize::from),
            progress: None,
            #[cfg(test)]
            hook: None,
        }
    }

    /// Lets a test change the workspace at this step.
    fn step(&self, step: Step, path: &[u8]) {
        #[cfg(test)]
        if let Some(hook) = &self.hook {
            (hook.0)(step, path);
        }
        #[cfg(not(test))]
        let _ = (step, path);
    }
}

/// Steps of a scan between which tests change the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// A directory is about to be opened.
    OpenDir,
    /// A file was opened, and is about to be read.
    ReadFile,
}

#[cfg(test)]
type Act = dyn Fn(Step, &[u8]) + Send + Sync;

#[cfg(test)]
#[derive(Clone)]
pub(crate) struct Hook(pub(crate) Arc<Act>);

#[cfg(test)]
impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hook")
    }
}

/// Is told how far a scan is, by several threads and often.
pub trait Progress: fmt::Debug + Send + Sync {
    /// Takes note of how far it is. What comes later may tell of less.
    fn update(&self, at: ScanProgress);
}

/// How far a scan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScanProgress {
    /// What it does.
    pub stage: ScanStage,
    /// Names that were looked at, or files that were read.
    pub files: u64,
    /// Files that are to be read; 0 while that is not known.
    pub total_files: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// Bytes that are to be read; 0 while that is not known.
    pub total_bytes: u64,
}

/// What a scan does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScanStage {
    /// It waits: another snapshot of the workspace is under way.
    Waiting,
    /// It finds out what changed.
    Looking,
    /// It reads what changed.
    Reading,
    /// It is over, and files are about to be moved: what stops the process now leaves
    /// something to be finished.
    Moving,
}

impl ScanProgress {
    pub(crate) fn waiting() -> Self {
        Self {
            stage: ScanStage::Waiting,
            ..Self::looking(0)
        }
    }

    /// Says that so many paths are about to be moved.
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

/// Where what is found goes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sink<'a> {
    /// It is stored.
    Store(&'a ObjectWriter),
    /// It is only named. What is read is read again when it is to be stored.
    Look,
}

/// What a scan found.
#[derive(Debug)]
pub(crate) struct Scanned {
    pub(crate) root: Dir,
    /// The name of the snapshot.
    pub(crate) id: ObjectId,
    /// With [`Sink::Look`], the nodes that may not be in the store.
    pub(crate) nodes: HashMap<ObjectId, Vec<u8>>,
    /// The first few entries that were left out, what is ignored last, otherwise by
    /// reason and path; `.git` is not told.
    pub(crate) left_out: Vec<(PathBuf, LeftOut)>,
    /// Whether nothing was left out, `.git` included; known of a scan without cache.
    whole: bool,
    /// What the next scan may know; `None` if the cache that was given holds, or
    /// nothing was stored.
    pub(crate) cache: Option<StatCache>,
    #[cfg_attr(not(test), expect(dead_code, reason = "tests ask what was read"))]
    pub(crate) counts: Counts,
}

/// Finds out what is in the directory `root`, an absolute path without links.
///
/// `now` is the time of the system's own clock, and not later: it says which files'
/// times are old enough to be trusted. The new cache may be kept when all that was
/// put into the sink is durable, not before.
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

/// Stores the directory at `path` beneath `root` whole, whatever rules and caps say.
/// `None` if any of it cannot be stored.
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
    let walk = walk::Walk::new(&handle, root, options, cache, horizon);
    let mut tree = walk.run()?;
    let unread = read::unread(&tree.dirs);
    if let Some(limits) = options.limits {
        limits::check(limits, &options.store, &tree.dirs, &unread)?;
    }
    let mut counts = read::read_all(&walk, &mut tree.dirs, unread, &sink)?;
    counts.dirs = tree.dirs_read;
    let mut nodes = HashMap::new();
    let mut put = |bytes: &[u8]| match sink {
        Sink::Store(writer) => writer.put(bytes),
        Sink::Look => {
            let id = ObjectId::of(bytes);
            nodes.insert(id, bytes.to_vec());
            Ok(id)
        }
    };
    let Some(built) = build::build(tree.dirs, cache, handle.dev, &mut put)? else {
        return Ok(None);
    };
    let root = write_root(&built.root);
    let id = match sink {
        // To find out that it is there would cost as much as storing it.
        Sink::Store(_) if built.same => ObjectId::of(&root),
        _ => put(&root)?,
    };
    Ok(Some(Scanned {
        root: built.root,
        id,
        nodes,
        left_out: built.left_out,
        whole: built.whole,
        // What was only looked at is not stored, and the cache must not say so.
        cache: built.cache.filter(|_| matches!(sink, Sink::Store(_))),
        counts,
    }))
}
