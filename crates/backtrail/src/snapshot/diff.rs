//! The differences between two snapshots.

use std::io;
use std::path::Path;

use serde::Serialize;

use super::change::{Change, ChangeKind};
use super::compare::Comparison;
use super::damage::damage_error;
use super::name::{bytes_of, names_of};
use super::patch::{self, TextDiff};
use super::renames;
use super::tree::Snapshot;
use super::walk::SkippedEntry;
use crate::error::{Error, Result};

/// The differences between two snapshots, in byte order of their paths.
#[derive(Debug, Clone, Serialize)]
pub struct Diff {
    #[serde(skip)]
    before: Snapshot,
    #[serde(skip)]
    after: Snapshot,
    changes: Vec<Change>,
    lost: Vec<SkippedEntry>,
}

/// The number of changes of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct ChangeCounts {
    /// Files and links with different content, target or kind.
    pub edited: u64,
    /// New paths.
    pub new: u64,
    /// Deleted paths.
    pub deleted: u64,
    /// Renamed files.
    pub renamed: u64,
    /// Paths that differ only in their mode.
    pub modes: u64,
}

impl Diff {
    pub(super) fn between(
        before: &Snapshot,
        after: &Snapshot,
        only: Option<&[&Path]>,
    ) -> Result<Self> {
        let compared = Comparison::new(before, after).run(only)?;
        if let Some(error) = damage_error(&compared.damaged.all()) {
            return Err(error);
        }
        let (mut changes, mut lost) = (compared.changes, compared.lost);
        lost.sort_unstable_by(|a, b| bytes_of(&a.path).cmp(bytes_of(&b.path)));
        changes.sort_unstable_by(|a, b| bytes_of(&a.path).cmp(bytes_of(&b.path)));
        Ok(Self {
            before: before.clone(),
            after: after.clone(),
            changes: renames::detect(changes),
            lost,
        })
    }

    /// Returns the changes.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Returns the entries that were captured before and are skipped after, with the
    /// reason. Their state is unknown, so they are not changes.
    pub fn no_longer_captured(&self) -> &[SkippedEntry] {
        &self.lost
    }

    /// Returns an iterator over the changes.
    pub fn iter(&self) -> std::slice::Iter<'_, Change> {
        self.changes.iter()
    }

    /// Returns whether there are no changes.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Keeps only the changes at or below `paths`. A renamed file counts under both its
    /// paths. An empty list keeps everything.
    ///
    /// # Errors
    ///
    /// Fails if a path is absolute or contains `..`.
    pub fn only<P: AsRef<Path>>(mut self, paths: &[P]) -> Result<Self> {
        if paths.is_empty() {
            return Ok(self);
        }
        let mut wanted = Vec::new();
        for path in paths {
            wanted.push(names_of(path.as_ref())?);
        }
        let is_wanted = |path: &Path| {
            let names = names_of(path).unwrap_or_default();
            wanted.iter().any(|wanted| names.starts_with(wanted))
        };
        self.changes.retain(|change| {
            let mut paths = [&change.path, change.old_path()].into_iter();
            paths.any(|path| is_wanted(path))
        });
        self.lost.retain(|entry| is_wanted(&entry.path));
        Ok(self)
    }

    /// Counts the changes by kind.
    pub fn counts(&self) -> ChangeCounts {
        let mut counts = ChangeCounts::default();
        for change in &self.changes {
            *match change.kind {
                ChangeKind::Added => &mut counts.new,
                ChangeKind::Deleted => &mut counts.deleted,
                ChangeKind::Modified | ChangeKind::Kind => &mut counts.edited,
                ChangeKind::Mode => &mut counts.modes,
                ChangeKind::Renamed => &mut counts.renamed,
            } += 1;
        }
        counts
    }

    /// Reads the content before the change: a file's bytes or a link's target.
    ///
    /// # Errors
    ///
    /// Fails if the content is damaged or cannot be read.
    pub fn before(&self, change: &Change) -> Result<Option<Vec<u8>>> {
        match &change.before {
            Some(state) => self.before.bytes(change.old_path(), state),
            None => Ok(None),
        }
    }

    /// Reads the content after the change: a file's bytes or a link's target.
    ///
    /// # Errors
    ///
    /// Fails if the content is damaged or cannot be read. If the later side is the
    /// present workspace and the file changed since the comparison, the error kind is
    /// [`Conflict`](crate::ErrorKind::Conflict).
    pub fn after(&self, change: &Change) -> Result<Option<Vec<u8>>> {
        match &change.after {
            Some(state) => self.after.bytes(&change.path, state),
            None => Ok(None),
        }
    }

    /// Compares both sides of a change line by line.
    ///
    /// # Errors
    ///
    /// Fails if the content of either side cannot be read.
    pub fn text(&self, change: &Change, context_lines: usize) -> Result<TextDiff> {
        patch::text(self, change, context_lines)
    }

    /// Writes all changes as a patch. `git apply` accepts it unless a changed file is
    /// binary or over 16 MiB.
    ///
    /// Such files are only named, and directories are described in words, because patches
    /// cannot express them.
    ///
    /// # Errors
    ///
    /// Fails if the content of a file cannot be read or `out` cannot be written.
    pub fn write_unified(&self, out: &mut dyn io::Write, context_lines: usize) -> Result<()> {
        for change in &self.changes {
            let text = self.text(change, context_lines)?;
            out.write_all(text.unified())
                .map_err(|error| Error::machine("cannot write the diff", error))?;
        }
        Ok(())
    }
}

impl<'a> IntoIterator for &'a Diff {
    type Item = &'a Change;
    type IntoIter = std::slice::Iter<'a, Change>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
