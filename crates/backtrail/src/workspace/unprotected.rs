//! What is not protected: how much it is, what happened to it during a turn or run, and
//! what the user asked to include.
//!
//! A snapshot says that something was skipped, not how much is in it, so that a build
//! directory that grows changes no snapshot. Its contents are surveyed when a turn or run
//! begins and again when it ends, and compared in memory. What is gone or smaller cannot be
//! undone, so the last checkpoint of the turn or run says so.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Workspace;
use super::checkpoint::Checkpoint;
use crate::error::{Error, ErrorKind, Result};
use crate::hex::path_fields;
use crate::ids::CheckpointId;
use crate::snapshot::entry::{FileKind, Node, Skipped, SkippedReason};
use crate::snapshot::name::{bytes_of, names_of, os_str};
use crate::snapshot::scan::survey::{Difference, Survey, Surveyed};
use crate::snapshot::scan::{NAMED, STAGING, byte_size, rank};
use crate::snapshot::{Amount, Snapshot, shown};
use crate::sync::lock;

/// The surveys at the beginning of turns and runs.
pub(super) type Surveys = HashMap<CheckpointId, Arc<Survey>>;

/// An ignored path that snapshots include.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Included {
    /// The path relative to the workspace.
    #[serde(flatten, with = "path_fields")]
    pub path: PathBuf,
}

/// What a checkpoint protects, and what not.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Protection {
    /// Whether it is the first checkpoint of the workspace.
    pub first: bool,
    /// What is not protected, the most important first; at most a thousand. Empty if the
    /// checkpoint is neither the first nor begins or ends a turn or run.
    pub unprotected: Vec<UnprotectedEntry>,
    /// In a first checkpoint: how many ignored files it holds because they are small.
    pub ignored_files: u64,
    /// The first few of them.
    pub ignored_first: Vec<PathBuf>,
    /// Included directories that hold too much and are therefore not protected.
    pub over_cap: Vec<UnprotectedEntry>,
}

/// Something that is not protected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UnprotectedEntry {
    /// The path relative to the workspace.
    #[serde(flatten, with = "path_fields")]
    pub path: PathBuf,
    /// The kind of entry.
    pub kind: FileKind,
    /// The reason why it is not protected.
    pub reason: SkippedReason,
    /// How much it is; `None` if that is not known.
    pub amount: Option<Amount>,
}

/// What happened to unprotected files during a turn or run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UnprotectedChanges {
    /// How many are gone or smaller, which cannot be undone.
    pub count: u64,
    /// The first few of them.
    pub lost: Vec<Lost>,
    /// The first few of those that changed otherwise.
    pub changed: Vec<ChangedPath>,
}

/// Something that is not protected and changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChangedPath {
    /// The path relative to the workspace.
    #[serde(flatten, with = "path_fields")]
    pub path: PathBuf,
}

/// Something that was not protected and is gone or smaller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Lost {
    /// The path relative to the workspace.
    #[serde(flatten, with = "path_fields")]
    pub path: PathBuf,
    /// What it was.
    pub kind: FileKind,
    /// The reason why it was not protected.
    pub reason: SkippedReason,
    /// How much it was; `None` if that is not known.
    pub before: Option<Amount>,
    /// How much is left; `None` if it is gone.
    pub after: Option<Amount>,
}

impl UnprotectedEntry {
    /// Returns what was skipped, with how much a survey found.
    pub(super) fn all(skipped: &[(PathBuf, Skipped)], survey: &Survey) -> Vec<Self> {
        let entry = |(path, skipped): &(PathBuf, Skipped)| Self {
            path: path.clone(),
            kind: skipped.kind,
            reason: skipped.reason,
            amount: survey.0.get(path).and_then(Surveyed::amount),
        };
        skipped.iter().map(entry).collect()
    }

    /// Returns an included directory that holds too much.
    pub(super) fn over_cap((path, bytes): &(Vec<u8>, u64)) -> Self {
        Self {
            path: PathBuf::from(os_str(path)),
            kind: FileKind::Dir,
            reason: SkippedReason::TooLarge,
            amount: Some(Amount {
                files: 0,
                bytes: *bytes,
                at_least: false,
            }),
        }
    }
}

impl UnprotectedChanges {
    /// Returns whether nothing is known to have changed.
    pub fn is_empty(&self) -> bool {
        self.count == 0 && self.changed.is_empty()
    }
}

impl Workspace {
    /// Returns the ignored paths that snapshots include.
    ///
    /// # Errors
    ///
    /// Fails if the workspace's trail cannot be read.
    pub fn included(&self) -> Result<Vec<Included>> {
        let last = self.last_checkpoint()?;
        Ok(last.map_or_else(Vec::new, |last| last.included().to_vec()))
    }

    /// Remembers what a turn or run found when it began.
    pub(super) fn remember_survey(&self, start: CheckpointId, survey: Arc<Survey>) {
        lock(&self.0.surveys).insert(start, survey);
    }

    pub(super) fn forget_survey(&self, start: CheckpointId) {
        lock(&self.0.surveys).remove(&start);
    }

    /// Returns what happened to unprotected files since a turn or run began. Nothing here is
    /// worth failing for: the files are saved.
    pub(super) fn unprotected_since(
        &self,
        start: CheckpointId,
        end: &Snapshot,
        now: &Survey,
    ) -> UnprotectedChanges {
        let before = lock(&self.0.surveys).get(&start).cloned();
        let before = before.unwrap_or_default();
        let start = self.checkpoint_by_id(start).ok().flatten();
        let mut found = Found::default();
        if let Some(start) = start.and_then(|start| start.snapshot().ok()) {
            found.compare_trees(&start, end, (&before, now));
        }
        found.compare_surveys(&before, now);
        found.finish()
    }
}

/// What is found to have changed.
#[derive(Default)]
struct Found {
    lost: Vec<Lost>,
    changed: Vec<PathBuf>,
}

impl Found {
    /// Compares what two snapshots skipped.
    fn compare_trees(&mut self, start: &Snapshot, end: &Snapshot, surveys: (&Survey, &Survey)) {
        if start.id() == end.id() {
            return;
        }
        for difference in start.differences(end, None).unwrap_or_default() {
            if let Some(Node::Skipped(before)) = &difference.before
                && holds_data(before)
            {
                let path = &difference.path;
                self.compare_entry(path, before, difference.after.as_ref(), surveys);
            }
        }
    }

    fn compare_entry(
        &mut self,
        path: &Path,
        before: &Skipped,
        after: Option<&Node>,
        (then, now): (&Survey, &Survey),
    ) {
        let known = then.0.get(path);
        let left = match (before.kind, after) {
            (_, None) if known.is_some_and(|known| now.moved_to(known)) => {
                return self.changed.push(path.to_owned());
            }
            (_, None) => None,
            (FileKind::Dir, Some(Node::Dir(_))) => return,
            (FileKind::File, Some(Node::File { size, .. })) => Some(*size),
            (kind, Some(Node::Skipped(after))) if kind == after.kind => Some(after.size),
            // Something else is there now.
            (_, Some(_)) => None,
        };
        match left {
            Some(left) if left >= before.size => {
                if left > before.size {
                    self.changed.push(path.to_owned());
                }
            }
            left => {
                let of_file = |bytes| Amount {
                    files: 1,
                    bytes,
                    at_least: false,
                };
                let amount = known.and_then(|known| known.amount());
                self.lost.push(Lost {
                    path: path.to_owned(),
                    kind: before.kind,
                    reason: before.reason,
                    before: match before.kind {
                        FileKind::File => Some(of_file(before.size)),
                        _ => amount,
                    },
                    after: left.map(of_file),
                });
            }
        }
    }

    /// Compares what was in skipped entries with what is in them.
    fn compare_surveys(&mut self, before: &Survey, now: &Survey) {
        for (path, was) in &before.0 {
            let is_named = self.lost.iter().any(|lost| lost.path == *path);
            let Some(is) = now.0.get(path).filter(|_| !is_named) else {
                continue;
            };
            match was.compare(is) {
                Difference::Same => {}
                Difference::Changed => self.changed.push(path.clone()),
                Difference::Smaller => self.lost.push(Lost {
                    path: path.clone(),
                    kind: was.skipped.kind,
                    reason: was.skipped.reason,
                    before: was.amount(),
                    after: is.amount(),
                }),
            }
        }
    }

    fn finish(mut self) -> UnprotectedChanges {
        let order = |a: &Lost, b: &Lost| (rank(a.reason), &a.path).cmp(&(rank(b.reason), &b.path));
        self.lost.sort_by(order);
        let count = self.lost.len() as u64;
        self.lost.truncate(NAMED);
        self.changed.sort();
        self.changed.dedup();
        self.changed.truncate(NAMED);
        let changed = self.changed.into_iter().map(|path| ChangedPath { path });
        UnprotectedChanges {
            count,
            lost: self.lost,
            changed: changed.collect(),
        }
    }
}

/// Returns whether something that was skipped holds data of the user.
fn holds_data(skipped: &Skipped) -> bool {
    !matches!(
        skipped.reason,
        SkippedReason::Special | SkippedReason::Store
    )
}

/// Returns the included paths after a request, sorted.
pub(super) fn included_after(
    before: Option<&Checkpoint>,
    include: &[PathBuf],
    exclude: &[PathBuf],
) -> Result<Vec<Included>> {
    let mut all = before.map_or_else(Vec::new, |before| before.included().to_vec());
    for path in exclude {
        let count = all.len();
        all.retain(|known| known.path != *path);
        if all.len() == count {
            let what = format!("{} is not included", shown(path));
            return Err(Error::new(ErrorKind::NotFound, what).at_path(path));
        }
    }
    for path in include {
        check_path(path)?;
        let path = path.clone();
        if !all.iter().any(|known| known.path == path) {
            all.push(Included { path });
        }
    }
    all.sort();
    Ok(all)
}

/// Refuses a path that cannot be included.
fn check_path(path: &Path) -> Result<()> {
    let names = names_of(path)?;
    let refuse = |what: &str| Err(Error::invalid(format!("{} {what}", shown(path))).at_path(path));
    match names.iter().find(|name| is_own(name)) {
        _ if names.is_empty() => {
            let what = "the workspace as a whole cannot be included; name an ignored directory";
            Err(Error::invalid(what))
        }
        Some(_) => refuse("cannot be included: git's own data is never captured"),
        None => Ok(()),
    }
}

fn is_own(name: &[u8]) -> bool {
    name == b".git" || name.starts_with(STAGING)
}

/// Refuses newly included paths that the snapshot does not have.
pub(super) fn must_be_captured(
    snapshot: &Snapshot,
    include: &[PathBuf],
    over_cap: &[(Vec<u8>, u64)],
    cap: u64,
) -> Result<()> {
    for path in include {
        let refuse = |kind, what: String| {
            let what = format!("{} {what}", shown(path));
            Err(Error::new(kind, what).at_path(path))
        };
        let over = over_cap.iter().find(|(over, _)| over == bytes_of(path));
        if let Some((_, bytes)) = over {
            let (bytes, cap) = (byte_size(*bytes), byte_size(cap));
            let what =
                format!("cannot be included: it holds {bytes}, more than include_cap ({cap})");
            return refuse(ErrorKind::Invalid, what);
        }
        match snapshot.walk_down(path)? {
            None => return refuse(ErrorKind::NotFound, "does not exist".to_owned()),
            Some(Node::Link { .. }) => {
                let what = "is a link; name the directory that it leads to";
                return refuse(ErrorKind::Invalid, what.to_owned());
            }
            Some(Node::Skipped(skipped)) => {
                let what = match skipped.reason {
                    SkippedReason::Ignored => {
                        "cannot be included: .backtrailignore lists it".to_owned()
                    }
                    reason => format!("cannot be included: {reason}"),
                };
                return refuse(ErrorKind::Invalid, what);
            }
            Some(Node::File { .. } | Node::Dir(_)) => {}
        }
    }
    Ok(())
}
