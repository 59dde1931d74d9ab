//! Decides how each name in a directory is handled.

use std::ffi::CStr;
use std::sync::Arc;

use rustix::fd::OwnedFd;
use rustix::io::Errno;

use super::super::entry::{FileKind, Skipped, SkippedReason};
use super::super::walk::MAX_DEPTH;
use super::cache::{self, CachedEntry, CachedNode};
use super::included::Inclusion;
use super::rules::{Rules, Verdict};
use super::sys::{self, Horizon, Seen, Stamp};
use super::walk::Jobs;
use super::{STAGING, ScanOptions};
use crate::error::Result;
use crate::objects::ObjectId;

/// A name in a directory that differs from the cache.
#[derive(Debug)]
pub(super) struct ScanItem {
    pub(super) name: Box<CStr>,
    pub(super) verdict: Verdict,
    pub(super) state: ItemState,
}

/// The state of a name.
#[derive(Debug, Clone)]
pub(super) enum ItemState {
    /// The number of the directory in this scan.
    Dir(u32),
    File {
        stamp: Stamp,
        racy: bool,
        content: ObjectId,
    },
    Link {
        stamp: Stamp,
        racy: bool,
        target: Box<[u8]>,
    },
    Skipped(Skipped),
    /// A file of this length that must be read.
    Unread(u64),
    /// It disappeared during the scan.
    Gone,
}

/// The result of inspecting a name.
pub(super) enum Inspected {
    /// Everything the cache has about it is still true.
    Same,
    /// A directory, with its number in this scan.
    Dir(Verdict, u32),
    Other(Verdict, ItemState),
}

impl ItemState {
    /// Creates the state from the cache; `dir` is the number of a directory that this
    /// scan walks.
    pub(super) fn known(known: &CachedEntry<'_>, dir: Option<u32>) -> Self {
        match (known.node, dir) {
            (_, Some(dir)) => Self::Dir(dir),
            // Every cached directory is walked, so it has a number.
            (CachedNode::Dir(_), None) => Self::Gone,
            (CachedNode::File { stamp, content }, None) => Self::File {
                stamp,
                racy: known.racy,
                content,
            },
            (CachedNode::Link { stamp, target }, None) => Self::Link {
                stamp,
                racy: known.racy,
                target: target.into(),
            },
            (CachedNode::Skipped(skipped), None) => Self::Skipped(skipped),
        }
    }

    pub(super) fn skipped(reason: SkippedReason, kind: FileKind, size: u64) -> Self {
        Self::Skipped(Skipped { reason, kind, size })
    }
}

/// The sizes that decide what is captured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// Larger files are skipped.
    pub(super) cap: u64,
    /// Larger ignored files are skipped.
    pub(super) small_ignored: u64,
}

impl Sizes {
    /// Returns the reason for skipping something that is not a directory, if there is
    /// one.
    pub(super) fn skip_reason(self, verdict: Verdict, seen: &Seen) -> Option<SkippedReason> {
        match (seen.kind, verdict) {
            (FileKind::File | FileKind::Link, Verdict::Excluded | Verdict::Inside) => {
                Some(SkippedReason::Ignored)
            }
            (FileKind::Link, _) => None,
            (FileKind::File, Verdict::Ignored) if seen.len() > self.small_ignored => {
                Some(SkippedReason::Ignored)
            }
            (FileKind::File, _) if seen.len() > self.cap => Some(SkippedReason::TooLarge),
            (FileKind::File, _) => None,
            _ => Some(SkippedReason::Special),
        }
    }
}

/// A directory that is being inspected.
pub(super) struct InspectedDir<'a> {
    pub(super) fd: &'a OwnedFd,
    pub(super) path: &'a [u8],
    /// How many directories it is nested in.
    pub(super) depth: usize,
    pub(super) rules: &'a Arc<Rules>,
    /// Whether the cached verdicts were decided by the same rules.
    pub(super) verdicts_hold: bool,
    /// Whether captured entries stay captured.
    pub(super) keep: bool,
    /// Whether files are read that the cache has.
    pub(super) reread: bool,
    /// Whether everything is captured regardless of rules.
    pub(super) all: bool,
    pub(super) options: &'a ScanOptions,
    pub(super) sizes: Sizes,
    pub(super) horizon: Horizon,
}

impl InspectedDir<'_> {
    /// Inspects one name. `hint` is its kind, if the directory listing has it.
    pub(super) fn inspect(
        &self,
        name: &CStr,
        known: Option<&CachedEntry<'_>>,
        hint: Option<FileKind>,
        jobs: &mut Jobs<'_>,
    ) -> Result<Inspected> {
        if name == c".git" {
            return Ok(self.git(name, known, hint));
        }
        if name.to_bytes().starts_with(STAGING) && self.all {
            let state =
                ItemState::skipped(SkippedReason::Special, hint.unwrap_or(FileKind::Dir), 0);
            return Ok(Inspected::Other(Verdict::Kept, state));
        }
        if name.to_bytes().starts_with(STAGING) {
            return Ok(Inspected::Other(Verdict::Plain, ItemState::Gone));
        }
        let walked = known.is_some_and(CachedEntry::is_walked);
        if hint == Some(FileKind::Dir) || (hint.is_none() && walked) {
            return Ok(self.dir(name, known, jobs));
        }
        match sys::seen_at(self.fd, name) {
            Ok(seen) if seen.kind == FileKind::Dir => Ok(self.dir(name, known, jobs)),
            Ok(seen) => self.file(name, known, &seen),
            Err(Errno::NOENT) => Ok(Inspected::Other(Verdict::Plain, ItemState::Gone)),
            Err(error) if sys::is_fatal(error) => Err(jobs.fatal(self.path, name, error)),
            Err(_) => {
                let kind = hint.unwrap_or(FileKind::File);
                let state = ItemState::skipped(SkippedReason::Unreadable, kind, 0);
                Ok(Inspected::Other(Verdict::Plain, state))
            }
        }
    }

    /// Handles `.git`: it is recorded but never opened. Its length says nothing about the
    /// workspace.
    fn git(
        &self,
        name: &CStr,
        known: Option<&CachedEntry<'_>>,
        hint: Option<FileKind>,
    ) -> Inspected {
        let kind = hint.or_else(|| match known?.node {
            CachedNode::Skipped(skipped) => Some(skipped.kind),
            _ => None,
        });
        let kind = kind.or_else(|| sys::seen_at(self.fd, name).ok().map(|seen| seen.kind));
        match kind {
            Some(kind) => {
                let state = ItemState::skipped(SkippedReason::Git, kind, 0);
                same_or(known, Verdict::Plain, state)
            }
            None => Inspected::Other(Verdict::Plain, ItemState::Gone),
        }
    }

    fn dir(&self, name: &CStr, known: Option<&CachedEntry<'_>>, jobs: &mut Jobs<'_>) -> Inspected {
        let record = known.and_then(|known| match known.node {
            CachedNode::Dir(record) => Some(record),
            _ => None,
        });
        let verdict = self.verdict(name, known, true);
        let verdict = match record {
            Some(_) if self.keep => verdict.keep(),
            _ => verdict,
        };
        let verdict = match self.options.inclusion(self.path, name.to_bytes()) {
            Inclusion::Within => verdict.include(),
            // It is walked for what is included in it.
            Inclusion::Leads => verdict.keep(),
            Inclusion::No => verdict,
        };
        match verdict {
            Verdict::Plain | Verdict::Kept | Verdict::Included if self.depth + 1 >= MAX_DEPTH => {
                let state = ItemState::skipped(SkippedReason::TooDeep, FileKind::Dir, 0);
                same_or(known, verdict.by_rules(), state)
            }
            Verdict::Plain | Verdict::Kept | Verdict::Included => {
                let number = jobs.add((self.path, name), record, self.rules, verdict);
                Inspected::Dir(verdict, number)
            }
            verdict => {
                let state = ItemState::skipped(SkippedReason::Ignored, FileKind::Dir, 0);
                same_or(known, verdict, state)
            }
        }
    }

    fn file(&self, name: &CStr, known: Option<&CachedEntry<'_>>, seen: &Seen) -> Result<Inspected> {
        // For special files only the kind matters.
        let verdict = match seen.kind {
            FileKind::File | FileKind::Link => self.verdict(name, known, false),
            _ => Verdict::Plain,
        };
        let verdict = match known {
            Some(known) if self.keep && known.is_captured() => verdict.keep(),
            _ => verdict,
        };
        let verdict = match self.options.inclusion(self.path, name.to_bytes()) {
            Inclusion::Within => verdict.include(),
            Inclusion::Leads | Inclusion::No => verdict,
        };
        if let Some(reason) = self.sizes.skip_reason(verdict, seen) {
            let state = ItemState::skipped(reason, seen.kind, seen.len());
            return Ok(same_or(known, verdict, state));
        }
        if let Some(known) = known.filter(|known| !known.racy && !self.reread) {
            let kept = match known.node {
                CachedNode::File { stamp, .. } => {
                    seen.kind == FileKind::File && stamp == seen.stamp
                }
                CachedNode::Link { stamp, .. } => {
                    seen.kind == FileKind::Link && stamp == seen.stamp
                }
                _ => false,
            };
            if kept && known.verdict == verdict.by_rules() {
                return Ok(Inspected::Same);
            }
            if kept {
                return Ok(Inspected::Other(verdict, ItemState::known(known, None)));
            }
        }
        let state = match seen.kind {
            FileKind::Link => self.link(name, seen),
            _ => ItemState::Unread(seen.len()),
        };
        Ok(Inspected::Other(verdict, state))
    }

    fn link(&self, name: &CStr, seen: &Seen) -> ItemState {
        match sys::link_target(self.fd, name) {
            Ok(target) => ItemState::Link {
                stamp: seen.stamp,
                racy: seen.is_racy(self.horizon),
                target,
            },
            Err(Errno::NOENT) => ItemState::Gone,
            // Something replaced it; the next scan will see that the directory changed.
            Err(Errno::INVAL) => ItemState::skipped(SkippedReason::Unstable, FileKind::Link, 0),
            Err(_) => ItemState::skipped(SkippedReason::Unreadable, FileKind::Link, 0),
        }
    }

    fn verdict(&self, name: &CStr, known: Option<&CachedEntry<'_>>, is_dir: bool) -> Verdict {
        if self.all {
            return Verdict::Kept;
        }
        match known.filter(|known| self.verdicts_hold && known.is_dir() == is_dir) {
            Some(known) => known.verdict,
            None => self.rules.verdict(self.path, name.to_bytes(), is_dir),
        }
    }
}

/// Returns `Same` if the cache has the same skipped state.
fn same_or(known: Option<&CachedEntry<'_>>, verdict: Verdict, state: ItemState) -> Inspected {
    let same = match (known.map(|known| (known.verdict, known.node)), &state) {
        (Some((was, CachedNode::Skipped(before))), ItemState::Skipped(now)) => {
            was == verdict && before == *now && !cache::is_walked(&before)
        }
        _ => false,
    };
    if same {
        Inspected::Same
    } else {
        Inspected::Other(verdict, state)
    }
}
