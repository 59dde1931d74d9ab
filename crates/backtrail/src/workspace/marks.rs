//! Marks files before an edit, so that their first state is kept.
//!
//! A checkpoint covers every file. A mark is for changes between checkpoints: it durably
//! saves the state of one file, or its absence. The first mark since the last checkpoint
//! counts, and the next checkpoint clears it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Workspace;
use super::path_lookup::{PathLookup, checked_path, lookup, node_at, path_in, unstable};
use crate::error::{Error, ErrorKind, Result};
use crate::hex::{path_of, to_hex};
use crate::objects::ObjectId;
use crate::snapshot::entry::Node;
use crate::snapshot::name::bytes_of;
use crate::snapshot::scan::capture;
use crate::snapshot::{Change, ChangeKind, Diff, FileKind, TextDiff, shown};
use crate::time::Timestamp;
use crate::trail::RecordKind;

const MARK: &str = "mark";
const MARKS_CLEARED: &str = "marks_cleared";

/// The record of a mark.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct MarkRecord {
    at: Timestamp,
    /// Lossy if there is a `path_hex`.
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path_hex: Option<String>,
    /// A snapshot of this path only.
    snapshot: ObjectId,
}

/// The record that clears all marks.
#[derive(Debug, Serialize)]
struct Cleared {
    at: Timestamp,
}

/// The change of one file since it was marked, or else since the last checkpoint.
#[derive(Debug, Clone, Serialize)]
pub struct FileChange {
    change: Change,
    since: Timestamp,
    marked: bool,
    #[serde(skip)]
    diff: Arc<Diff>,
}

impl FileChange {
    /// Returns the change.
    pub fn change(&self) -> &Change {
        &self.change
    }

    /// Returns when the earlier state was saved.
    pub fn since(&self) -> Timestamp {
        self.since
    }

    /// Returns whether the earlier state comes from a mark, not from the last checkpoint.
    pub fn is_marked(&self) -> bool {
        self.marked
    }

    /// Reads the earlier content: a file's bytes or a link's target.
    ///
    /// # Errors
    ///
    /// Fails if the stored content cannot be read.
    pub fn before(&self) -> Result<Option<Vec<u8>>> {
        self.diff.before(&self.change)
    }

    /// Reads the present content: a file's bytes or a link's target.
    ///
    /// # Errors
    ///
    /// Fails with [`Conflict`](ErrorKind::Conflict) if the file changed since it was
    /// compared, and if it cannot be read.
    pub fn after(&self) -> Result<Option<Vec<u8>>> {
        self.diff.after(&self.change)
    }

    /// Compares both line by line.
    ///
    /// # Errors
    ///
    /// Fails as [`before`](Self::before) and [`after`](Self::after) do.
    pub fn text(&self, context_lines: usize) -> Result<TextDiff> {
        self.diff.text(&self.change, context_lines)
    }
}

impl fmt::Display for FileChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.change.fmt(f)
    }
}

impl Workspace {
    /// Saves the state of one file or link before an edit, or its absence. It is durable when
    /// this returns. A path that is already marked since the last checkpoint keeps its first
    /// state. The path is relative to the workspace, or absolute and in it.
    ///
    /// # Errors
    ///
    /// Fails with [`Invalid`](ErrorKind::Invalid) for a directory, a file over the cap or a
    /// path outside the workspace, and if the file cannot be read or the store cannot be written.
    pub fn mark(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = checked_path(&path_in(self.root(), path.as_ref())?)?;
        let _guard = self.hold_recovered()?;
        if self.marks()?.contains_key(&path) {
            return Ok(());
        }
        let snapshot = self.store_one(&path)?;
        let marked = MarkRecord {
            at: self.store().now(),
            path: path.to_string_lossy().into_owned(),
            path_hex: path.to_str().is_none().then(|| to_hex(bytes_of(&path))),
            snapshot,
        };
        self.append(MARK, &marked).map(drop)
    }

    /// Returns the paths that are marked since the last checkpoint.
    ///
    /// # Errors
    ///
    /// Fails if the workspace's trail cannot be read.
    pub fn marked(&self) -> Result<Vec<PathBuf>> {
        Ok(self.marks()?.into_keys().collect())
    }

    /// Clears all marks.
    ///
    /// # Errors
    ///
    /// Fails if the workspace's trail cannot be written.
    pub fn clear_marks(&self) -> Result<()> {
        let _guard = self.hold_recovered()?;
        if self.marks()?.is_empty() {
            return Ok(());
        }
        let at = self.store().now();
        self.append(MARKS_CLEARED, &Cleared { at }).map(drop)
    }

    /// Returns the change of one file since it was marked, or else since the last checkpoint;
    /// `None` if it is unchanged.
    ///
    /// # Errors
    ///
    /// Fails with [`NotFound`](ErrorKind::NotFound) if the file was not marked and there
    /// is no checkpoint.
    pub fn change_of(&self, path: impl AsRef<Path>) -> Result<Option<FileChange>> {
        let path = checked_path(&path_in(self.root(), path.as_ref())?)?;
        match self.marks()?.remove(&path) {
            Some(marked) => self.change_since_mark(&path, &marked),
            None => self.change_since_last(&path),
        }
    }

    /// Returns the changes since the last checkpoint, and of marked files since the mark,
    /// sorted by path. Without a checkpoint, only marked files are compared.
    ///
    /// # Errors
    ///
    /// Fails if the directory or the store cannot be read.
    pub fn changes(&self) -> Result<Vec<FileChange>> {
        let marks = self.marks()?;
        let mut all = Vec::new();
        for (path, marked) in &marks {
            all.extend(self.change_since_mark(path, marked)?);
        }
        if let Some(last) = self.last_checkpoint()? {
            let diff = Arc::new(self.changes_since(&last.snapshot()?)?);
            let changes = diff.changes().iter();
            let changes = changes.flat_map(|change| unmarked(change, &marks));
            all.extend(changes.map(|change| FileChange {
                change,
                since: last.at(),
                marked: false,
                diff: Arc::clone(&diff),
            }));
        }
        all.sort_by(|a, b| bytes_of(&a.change.path).cmp(bytes_of(&b.change.path)));
        Ok(all)
    }

    /// Returns the marks since the last checkpoint, the first of each path.
    fn marks(&self) -> Result<BTreeMap<PathBuf, MarkRecord>> {
        let mut marks = BTreeMap::new();
        let Some(mut back) = self.records_back()? else {
            return Ok(marks);
        };
        while let Some(record) = back.next()? {
            match record.kind() {
                RecordKind::Checkpoint | RecordKind::Done | RecordKind::MarksCleared => break,
                RecordKind::Mark => {
                    // `verify` reports an unreadable one.
                    if let Ok(marked) = record.parse::<MarkRecord>() {
                        // An earlier mark, which is read later, replaces it.
                        marks.insert(marked.path(), marked);
                    }
                }
                _ => {}
            }
        }
        Ok(marks)
    }

    /// Stores a snapshot of one path durably.
    fn store_one(&self, path: &Path) -> Result<ObjectId> {
        let writer = self.objects().writer()?;
        let (seen, node) = self.capture_one(path, &writer)?;
        let (id, _) = self.write_one(path, &seen.dirs, node, &mut |bytes| writer.put(bytes))?;
        writer.finish()?;
        Ok(id)
    }

    fn capture_one(
        &self,
        path: &Path,
        writer: &crate::objects::ObjectWriter,
    ) -> Result<(PathLookup, Option<Node>)> {
        let options = self.scan_options(&self.included()?, None, None);
        if self.root().join(path).starts_with(&options.store) {
            return Err(refused(path, "is in the store"));
        }
        let seen = lookup(self.root(), path)?;
        seen.must_lead_there(path)?;
        match seen.kind() {
            None => return Ok((seen, None)),
            Some(FileKind::Dir) => {
                return Err(refused(path, "is a directory; mark the files in it"));
            }
            Some(FileKind::File) if seen.len() > options.cap => {
                let (len, cap) = (seen.len(), options.cap);
                let why = format!("has {len} bytes, more than the cap of {cap}");
                return Err(refused(path, &why));
            }
            Some(FileKind::File | FileKind::Link) => {}
            Some(_) => return Err(refused(path, "is neither a file nor a link")),
        }
        match capture(self.root(), path, &options, writer)? {
            Some(node @ (Node::File { .. } | Node::Link { .. })) => Ok((seen, Some(node))),
            _ => match node_at(self.root(), path)? {
                (seen, None) => Ok((seen, None)),
                _ => Err(unstable(self.root(), path)),
            },
        }
    }

    fn change_since_mark(&self, path: &Path, marked: &MarkRecord) -> Result<Option<FileChange>> {
        let before = self.open_snapshot(&marked.snapshot)?;
        let diff = before.diff_paths(&self.present_at(path)?, &[path])?;
        Ok(one(diff, marked.at, true))
    }

    fn change_since_last(&self, path: &Path) -> Result<Option<FileChange>> {
        let Some(last) = self.last_checkpoint()? else {
            let what = format!(
                "{} was not marked, and {} has no checkpoint yet",
                shown(path),
                shown(self.root())
            );
            return Err(Error::new(ErrorKind::NotFound, what).at_path(path));
        };
        let snapshot = last.snapshot()?;
        if let Some(reason) = snapshot.skipped_reason(path)? {
            let why = format!("was skipped ({reason}); mark it before you edit it");
            return Err(refused(path, &why));
        }
        if snapshot
            .entry(path)?
            .is_some_and(|state| state.kind == FileKind::Dir)
        {
            return Err(refused(path, "is a directory; name the files in it"));
        }
        let diff = snapshot.diff_paths(&self.present_at(path)?, &[path])?;
        Ok(one(diff, last.at(), false))
    }
}

impl MarkRecord {
    fn path(&self) -> PathBuf {
        path_of(&self.path, self.path_hex.as_deref())
    }
}

fn refused(path: &Path, why: &str) -> Error {
    Error::invalid(format!("{} {why}", shown(path))).at_path(path)
}

/// Returns the only change of a diff.
fn one(diff: Diff, since: Timestamp, marked: bool) -> Option<FileChange> {
    let change = diff.changes().first().cloned()?;
    Some(FileChange {
        change,
        since,
        marked,
        diff: Arc::new(diff),
    })
}

/// Returns the part of a change that affects unmarked paths.
fn unmarked(change: &Change, marks: &BTreeMap<PathBuf, MarkRecord>) -> Vec<Change> {
    let is_marked = |path: &Path| marks.contains_key(path);
    let Some(from) = &change.from else {
        let stays = !is_marked(&change.path);
        return stays.then(|| change.clone()).into_iter().collect();
    };
    match (is_marked(from), is_marked(&change.path)) {
        (false, false) => vec![change.clone()],
        (true, true) => Vec::new(),
        (true, false) => {
            let (path, after) = (change.path.clone(), change.after.clone());
            vec![Change::new(path, ChangeKind::Added, None, after)]
        }
        (false, true) => {
            let before = change.before.clone();
            vec![Change::new(from.clone(), ChangeKind::Deleted, before, None)]
        }
    }
}
