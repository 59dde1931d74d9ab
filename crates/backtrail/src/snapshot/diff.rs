//! The differences between two snapshots.

use std::io;
use std::path::Path;

use serde::Serialize;

use super::change::{Change, ChangeKind};
use super::compare::Comparison;
use super::name::{bytes_of, names_of};
use super::patch::{self, TextDiff};
use super::renames;
use super::tree::Snapshot;
use super::walk::LeftOutEntry;
use crate::error::{Error, Result};

/// What differs between two snapshots, in the order of the paths' bytes.
#[derive(Debug, Clone)]
pub struct Diff {
    before: Snapshot,
    after: Snapshot,
    changes: Vec<Change>,
    lost: Vec<LeftOutEntry>,
}

/// How many changes of each sort there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct ChangeCounts {
    /// With another content, target or kind.
    pub edited: u64,
    /// New.
    pub new: u64,
    /// Gone.
    pub deleted: u64,
    /// At another path.
    pub renamed: u64,
    /// With another mode alone.
    pub modes: u64,
}

impl Diff {
    pub(super) fn between(
        before: &Snapshot,
        after: &Snapshot,
        only: Option<&[&Path]>,
    ) -> Result<Self> {
        let comparison = Comparison::new(before.source(), after.source());
        let (mut changes, mut lost) = comparison.run(before.root(), after.root(), only)?;
        lost.sort_unstable_by(|a, b| bytes_of(&a.path).cmp(bytes_of(&b.path)));
        changes.sort_unstable_by(|a, b| bytes_of(&a.path).cmp(bytes_of(&b.path)));
        Ok(Self {
            before: before.clone(),
            after: after.clone(),
            changes: renames::pair(changes),
            lost,
        })
    }

    /// Returns the changes.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Returns what was captured before and is left out after, with the reason: what
    /// became of it is not known, so it is no change.
    pub fn no_longer_captured(&self) -> &[LeftOutEntry] {
        &self.lost
    }

    /// Returns the changes, one after the other.
    pub fn iter(&self) -> std::slice::Iter<'_, Change> {
        self.changes.iter()
    }

    /// Returns whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Returns the changes at some paths and beneath them; a file that was renamed
    /// counts with both its paths. No path stands for all of them.
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

    /// Counts the changes.
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

    /// Reads what was there before: a file's bytes or a link's target.
    pub fn before(&self, change: &Change) -> Result<Option<Vec<u8>>> {
        match &change.before {
            Some(state) => self.before.bytes(change.old_path(), state),
            None => Ok(None),
        }
    }

    /// Reads what is there after: a file's bytes or a link's target.
    ///
    /// Where the later side is the present, a file that changed since it was
    /// compared is an error of the kind [`Conflict`](crate::ErrorKind::Conflict).
    pub fn after(&self, change: &Change) -> Result<Option<Vec<u8>>> {
        match &change.after {
            Some(state) => self.after.bytes(&change.path, state),
            None => Ok(None),
        }
    }

    /// Compares both sides of a change line by line.
    pub fn text(&self, change: &Change, context_lines: usize) -> Result<TextDiff> {
        patch::text(self, change, context_lines)
    }

    /// Writes all changes as a patch, which `git apply` takes where no file changed
    /// that is binary or over 16 MiB.
    ///
    /// Binary files and files over 16 MiB are only named, and directories are told
    /// in words, since a patch knows no directories.
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
