//! Builds the snapshot from the walk: listings from the bottom up, and the next cache.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::super::entry::{Dir, DirEntry, FileKind, Node, Skipped, SkippedReason, Totals};
use super::super::node::write_listing;
use super::cache::{CacheWriter, CachedEntry, CachedHead, CachedNode, StatCache};
use super::inspect::{ItemState, ScanItem};
use super::rules::Verdict;
use super::walk::{ChangedDir, DirState, WalkedDir, join, replay};
use crate::error::Result;
use crate::objects::ObjectId;

/// How many entries are listed by name.
pub(crate) const NAMED: usize = 10;
/// How many skipped entries are returned at most.
const LISTED: usize = 1000;

/// Stores a node.
pub(super) type Put<'a> = dyn FnMut(&[u8]) -> Result<ObjectId> + 'a;

/// The result for all directories.
pub(super) struct Built {
    pub(super) root: Dir,
    /// Whether the cache has the same root, so that it is stored already.
    pub(super) same: bool,
    pub(super) skipped: Vec<(PathBuf, Skipped)>,
    pub(super) kept_ignored: KeptIgnored,
    /// Whether nothing that was inspected was skipped.
    pub(super) whole: bool,
    pub(super) cache: Option<StatCache>,
}

/// The result for one directory.
enum BuiltDir {
    /// A directory, with the numbers of the directories in it.
    Dir {
        dir: Dir,
        subdirs: Vec<u32>,
        record: Recorded,
        /// Whether the cache has the same.
        same: bool,
    },
    /// Something else, or nothing.
    Other(Option<ScanItem>),
}

/// A directory's bytes in the next cache.
enum Recorded {
    /// The same as in the last cache.
    As(u32),
    New(Vec<u8>),
}

/// Builds the listings of all directories, which must come before those in them. Returns
/// `None` if the root is no longer a directory.
pub(super) fn build(
    dirs: Vec<WalkedDir>,
    old: &StatCache,
    device: u64,
    put: &mut Put<'_>,
) -> Result<Option<Built>> {
    let mut outcomes: Vec<BuiltDir> = Vec::new();
    outcomes.resize_with(dirs.len(), || BuiltDir::Other(None));
    let mut skipped = SkippedList::default();
    let mut kept_ignored = KeptIgnored::default();
    for (number, walked) in dirs.into_iter().enumerate().rev() {
        let builder = Builder {
            old,
            outcomes: &outcomes,
            skipped: &mut skipped,
            kept_ignored: &mut kept_ignored,
        };
        outcomes[number] = builder.dir(walked, put)?;
    }
    let Some(BuiltDir::Dir { dir, same, .. }) = outcomes.first() else {
        return Ok(None);
    };
    Ok(Some(Built {
        root: *dir,
        same: *same,
        whole: !skipped.any,
        skipped: skipped.finish(),
        kept_ignored,
        cache: next_cache(&outcomes, old, device),
    }))
}

struct Builder<'a> {
    old: &'a StatCache,
    /// The outcomes of the directories below, which are complete.
    outcomes: &'a [BuiltDir],
    skipped: &'a mut SkippedList,
    kept_ignored: &'a mut KeptIgnored,
}

impl Builder<'_> {
    fn dir(mut self, walked: WalkedDir, put: &mut Put<'_>) -> Result<BuiltDir> {
        let before = walked.record.and_then(|number| self.old.record(number));
        match walked.found {
            DirState::Gone => Ok(BuiltDir::Other(None)),
            DirState::Replaced(item) => Ok(BuiltDir::Other(Some(item))),
            DirState::Skipped(reason) => Ok(BuiltDir::Other(Some(ScanItem {
                name: Box::default(),
                verdict: Verdict::Plain,
                state: ItemState::skipped(reason, FileKind::Dir, 0),
            }))),
            DirState::Changed(changed) => {
                let before = before.map(|record| record.head.dir());
                self.changed(&walked.path, changed, before, put)
            }
            DirState::Same(subdirs) => {
                let (Some(number), Some(record)) = (walked.record, before) else {
                    unreachable!("only what the cache knows is the same")
                };
                if self.all_same(&record, &subdirs) {
                    self.list_skipped(&walked.path, &record, &subdirs);
                    let subdirs = self.only_dirs(subdirs);
                    return Ok(BuiltDir::Dir {
                        dir: record.head.dir(),
                        subdirs,
                        record: Recorded::As(number),
                        same: true,
                    });
                }
                let head = record.head;
                let changed = ChangedDir {
                    stamp: head.stamp,
                    racy: head.racy,
                    files: head.files,
                    key: head.key,
                    items: replay(&record, u64::MAX, &subdirs),
                };
                self.changed(&walked.path, changed, Some(head.dir()), put)
            }
        }
    }

    /// Returns whether every directory below is as the cache has it.
    fn all_same(&self, record: &super::cache::CachedDir<'_>, subdirs: &[u32]) -> bool {
        let is_same = |number: &u32| {
            let outcome = &self.outcomes[*number as usize];
            matches!(outcome, BuiltDir::Dir { same: true, .. })
        };
        if subdirs.iter().all(is_same) {
            return true;
        }
        let mut walked = record.entries().flatten().filter(CachedEntry::is_walked);
        subdirs.iter().all(|number| {
            let before = walked.next().map(|known| known.node);
            match (&self.outcomes[*number as usize], before) {
                (BuiltDir::Dir { same, .. }, Some(CachedNode::Dir(_))) => *same,
                (BuiltDir::Other(Some(item)), Some(CachedNode::Skipped(before))) => {
                    matches!(item.state, ItemState::Skipped(now) if now == before)
                }
                _ => false,
            }
        })
    }

    fn only_dirs(&self, mut subdirs: Vec<u32>) -> Vec<u32> {
        let is_dir = |number: &u32| matches!(self.outcomes[*number as usize], BuiltDir::Dir { .. });
        subdirs.retain(is_dir);
        subdirs
    }

    /// Lists the skipped entries of an unchanged directory.
    fn list_skipped(&mut self, path: &[u8], record: &super::cache::CachedDir<'_>, subdirs: &[u32]) {
        let below: u64 = subdirs
            .iter()
            .map(|number| match &self.outcomes[*number as usize] {
                BuiltDir::Dir { dir, .. } => dir.totals.skipped,
                BuiltDir::Other(_) => 0,
            })
            .sum();
        if record.head.totals.skipped == below {
            return;
        }
        for known in record.entries().flatten() {
            if let CachedNode::Skipped(skipped) = known.node {
                self.skipped.add(path, known.name.to_bytes(), skipped);
            }
        }
    }

    fn changed(
        self,
        path: &[u8],
        changed: ChangedDir,
        before: Option<Dir>,
        put: &mut Put<'_>,
    ) -> Result<BuiltDir> {
        let mut totals = Totals::default();
        let mut entries = Vec::with_capacity(changed.items.len());
        let mut known = Vec::with_capacity(changed.items.len() * 80);
        let mut subdirs = Vec::new();
        for mut item in changed.items {
            let mut below = None;
            if let ItemState::Dir(number) = item.state {
                match &self.outcomes[number as usize] {
                    BuiltDir::Dir { dir, .. } => {
                        subdirs.push(number);
                        below = Some(*dir);
                    }
                    BuiltDir::Other(Some(now)) => item = copy(now, item),
                    BuiltDir::Other(None) => continue,
                }
            }
            let Some(node) = node(&item, below) else {
                continue;
            };
            if let Node::Skipped(skipped) = node {
                self.skipped.add(path, item.name.to_bytes(), skipped);
            }
            if matches!(node, Node::File { ignored: true, .. }) {
                self.kept_ignored.add(path, item.name.to_bytes());
            }
            totals.add(&node);
            write_known(&item, &mut known);
            let name = item.name.to_bytes().into();
            entries.push(DirEntry { name, node });
        }
        let head = CachedHead {
            stamp: changed.stamp,
            racy: changed.racy,
            files: changed.files,
            key: changed.key,
            listing: write_listing(&entries, put)?,
            totals,
        };
        let mut record = Vec::with_capacity(known.len() + 128);
        head.write(&mut record);
        record.extend_from_slice(&known);
        Ok(BuiltDir::Dir {
            dir: head.dir(),
            subdirs,
            record: Recorded::New(record),
            same: before == Some(head.dir()),
        })
    }
}

/// Gives a directory's current state the name and verdict of its entry.
fn copy(now: &ScanItem, was: ScanItem) -> ScanItem {
    let verdict = match &now.state {
        // The rules apply as they did before it was opened.
        ItemState::Skipped(skipped) if skipped.kind == FileKind::Dir => was.verdict,
        _ => now.verdict,
    };
    let state = match &now.state {
        ItemState::Dir(_) | ItemState::Unread(_) => ItemState::Gone,
        state => state.clone(),
    };
    ScanItem {
        name: was.name,
        verdict,
        state,
    }
}

/// Creates the entry of an item; `below` is the result for a directory.
fn node(item: &ScanItem, below: Option<Dir>) -> Option<Node> {
    let ignored = item.verdict.is_ignored();
    match &item.state {
        ItemState::Dir(_) => below.map(Node::Dir),
        ItemState::File { stamp, content, .. } => Some(Node::File {
            mode: stamp.mode,
            size: stamp.size,
            content: *content,
            ignored,
        }),
        ItemState::Link { target, .. } => Some(Node::Link {
            target: target.clone(),
            ignored,
        }),
        ItemState::Skipped(skipped) => Some(Node::Skipped(*skipped)),
        ItemState::Unread(_) | ItemState::Gone => None,
    }
}

/// Writes the cache entry of an item.
fn write_known(item: &ScanItem, out: &mut Vec<u8>) {
    let (racy, node) = match &item.state {
        ItemState::Dir(_) => (false, CachedNode::Dir(0)),
        ItemState::File {
            stamp,
            racy,
            content,
        } => (
            *racy,
            CachedNode::File {
                stamp: *stamp,
                content: *content,
            },
        ),
        ItemState::Link {
            stamp,
            racy,
            target,
        } => (
            *racy,
            CachedNode::Link {
                stamp: *stamp,
                target,
            },
        ),
        ItemState::Skipped(skipped) => (false, CachedNode::Skipped(*skipped)),
        ItemState::Unread(_) | ItemState::Gone => return,
    };
    let known = CachedEntry {
        name: &item.name,
        verdict: item.verdict,
        racy,
        node,
    };
    known.write(out);
}

/// Assembles the next cache; `None` if it would be the same.
fn next_cache(outcomes: &[BuiltDir], old: &StatCache, device: u64) -> Option<StatCache> {
    let is_new = |outcome: &BuiltDir| {
        let recorded = |record: &Recorded| matches!(record, Recorded::New(_));
        matches!(outcome, BuiltDir::Dir { record, .. } if recorded(record))
    };
    if !outcomes.iter().any(is_new) {
        return None;
    }
    let mut writer = CacheWriter::default();
    let mut line = VecDeque::from([0_u32]);
    let mut next = 1_u32;
    while let Some(number) = line.pop_front() {
        let BuiltDir::Dir {
            subdirs, record, ..
        } = &outcomes[number as usize]
        else {
            return None;
        };
        let bytes = match record {
            Recorded::As(number) => old.raw(*number)?,
            Recorded::New(bytes) => bytes,
        };
        writer.add(bytes, next)?;
        next = next.checked_add(u32::try_from(subdirs.len()).ok()?)?;
        line.extend(subdirs);
    }
    writer.finish(device)
}

/// The first skipped entries, ordered by importance and then by path.
#[derive(Default)]
struct SkippedList {
    entries: Vec<(PathBuf, Skipped)>,
    any: bool,
}

impl SkippedList {
    fn add(&mut self, dir: &[u8], name: &[u8], skipped: Skipped) {
        self.any = true;
        if skipped.reason == SkippedReason::Git {
            return;
        }
        let path = PathBuf::from(OsStr::from_bytes(&join(dir, name)));
        self.entries.push((path, skipped));
        if self.entries.len() >= 2 * LISTED {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.entries
            .sort_by(|a, b| (rank(a.1.reason), &a.0).cmp(&(rank(b.1.reason), &b.0)));
        self.entries.truncate(LISTED);
    }

    fn finish(mut self) -> Vec<(PathBuf, Skipped)> {
        self.cut();
        self.entries
    }
}

/// The ignored files that were captured because they are small: the first few by path.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeptIgnored {
    pub(crate) count: u64,
    pub(crate) first: Vec<PathBuf>,
}

impl KeptIgnored {
    fn add(&mut self, dir: &[u8], name: &[u8]) {
        self.count += 1;
        let path = PathBuf::from(OsStr::from_bytes(&join(dir, name)));
        let at = self.first.partition_point(|known| *known < path);
        self.first.insert(at, path);
        self.first.truncate(NAMED);
    }
}

/// Orders reasons by importance: what users may miss comes before what they ignored.
pub(crate) fn rank(reason: SkippedReason) -> u8 {
    match reason {
        SkippedReason::TooLarge => 0,
        SkippedReason::Unreadable => 1,
        SkippedReason::TooDeep => 2,
        SkippedReason::Unstable => 3,
        SkippedReason::Special => 4,
        SkippedReason::OtherFileSystem => 5,
        SkippedReason::Store => 6,
        SkippedReason::Ignored => 7,
        SkippedReason::Git => 8,
    }
}
