//! Which paths others changed too, and what happens to them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::actions::{PathActions, named};
use super::authors::{Author, AuthorKind, Authors};
use super::merge::{MergeResult, Merger};
use super::outcome::OnConflict;
use super::outcome::{ChangedBy, Conflict, KeptReason, Merge};
use super::path_history::PathHistories;
use crate::error::Result;
use crate::store::Store;
use crate::time::Timestamp;

/// Finds the paths that others changed too.
pub(super) struct ConflictFinder<'a> {
    pub(super) histories: &'a PathHistories,
    pub(super) authors: &'a Authors,
    pub(super) moved_on: &'a BTreeSet<PathBuf>,
    /// The paths that differ from the target.
    pub(super) wanted: &'a BTreeSet<PathBuf>,
    pub(super) root: &'a Path,
    pub(super) store: &'a Store,
    pub(super) now: Timestamp,
}

impl ConflictFinder<'_> {
    /// Finds all conflicts, and treats them as asked for.
    pub(super) fn all(
        &self,
        actions: &mut PathActions,
        on_conflict: OnConflict,
        merger: &Merger<'_>,
    ) -> Result<Vec<Conflict>> {
        let as_they_were = match on_conflict {
            OnConflict::Merge => self.as_they_were(actions, merger)?,
            _ => BTreeSet::new(),
        };
        let other = |path: &Path| match on_conflict {
            OnConflict::Merge => merger.other(path),
            _ => None,
        };
        let paths = actions.by_path.keys();
        let conflicts = paths.filter_map(|path| self.one(path, other(path)));
        let mut conflicts: Vec<Conflict> = conflicts.collect();
        // A directory that is created or deleted is named by what is in it.
        let hides: BTreeSet<PathBuf> = conflicts
            .windows(2)
            .filter(|two| two[1].path.starts_with(&two[0].path))
            .filter(|two| actions.shows_by_content(&two[0].path))
            .map(|two| two[0].path.clone())
            .collect();
        for conflict in &mut conflicts {
            match on_conflict {
                OnConflict::Keep => actions.keep(&conflict.path, KeptReason::Conflict),
                OnConflict::Merge => {
                    let path = &conflict.path;
                    let is_named = !hides.contains(path) && !as_they_were.contains(path);
                    settle(conflict, is_named, actions, merger)?;
                }
                OnConflict::Stop | OnConflict::Overwrite => {}
            }
        }
        conflicts.retain(|one| {
            let stays = one.merge == Some(Merge::Kept) && as_they_were.contains(&one.path);
            !stays && (one.is_unmerged() || !hides.contains(&one.path))
        });
        for conflict in &mut conflicts {
            conflict.path = named(&conflict.path);
        }
        Ok(conflicts)
    }

    /// `other` is an author whose change was removed again.
    fn one(&self, path: &Path, other: Option<&Author>) -> Option<Conflict> {
        let by = self.histories.by(path);
        let moved_on = self.moved_on.contains(path);
        let is_other = |author: &&Author| !self.authors.is_own(author);
        let seen = match self.authors {
            Authors::Nobody => by.last().filter(|_| moved_on),
            _ => by.iter().rev().find(is_other),
        };
        let other = seen.or(by.last().filter(|_| moved_on)).or(other);
        // It changed even if no author is known.
        let unseen = Author {
            kind: AuthorKind::Person,
            at: self.now,
            unsaved: true,
            step: None,
        };
        let author = other.or(moved_on.then_some(&unseen))?;
        let own = by.iter().rev().find(|author| self.authors.is_own(author));
        Some(Conflict {
            path: path.to_owned(),
            changed_by: match &author.kind {
                AuthorKind::Session(place) => ChangedBy::Session(place.id.clone()),
                AuthorKind::Person | AuthorKind::Unnamed => ChangedBy::Person,
            },
            at: match author.unsaved {
                true => self.changed_at(path).unwrap_or(author.at),
                false => author.at,
            },
            unsaved: author.unsaved,
            also: own.and_then(|own| own.step.as_ref()?.read(self.store)),
            merge: None,
        })
    }

    /// Adds paths that are as they were although others had changed them: the work to
    /// undo removed those changes.
    fn as_they_were(
        &self,
        actions: &mut PathActions,
        merger: &Merger<'_>,
    ) -> Result<BTreeSet<PathBuf>> {
        let mut found = BTreeSet::new();
        for path in self.histories.paths() {
            if self.wanted.contains(path) || merger.other(path).is_none() {
                continue;
            }
            actions.look_at(path, merger.present.walk_down(path)?);
            found.insert(path.clone());
        }
        Ok(found)
    }

    /// Returns the modification time of a file.
    #[allow(
        clippy::unnecessary_cast,
        reason = "the fields' types differ between platforms"
    )]
    fn changed_at(&self, path: &Path) -> Option<Timestamp> {
        let stat = rustix::fs::lstat(self.root.join(path)).ok()?;
        let millis = (stat.st_mtime as i64).checked_mul(1000)?;
        Timestamp::from_millis(millis.checked_add(stat.st_mtime_nsec as i64 / 1_000_000)?)
    }
}

/// Merges a path that others changed too.
fn settle(
    conflict: &mut Conflict,
    is_named: bool,
    actions: &mut PathActions,
    merger: &Merger<'_>,
) -> Result<()> {
    let Some(action) = actions.by_path.get(&conflict.path) else {
        return Ok(());
    };
    let merging = merger.merge(&conflict.path, action.now.as_ref(), action.then.as_ref())?;
    conflict.merge = Some(merging.merge());
    match merging {
        MergeResult::Kept if is_named => actions.keep(&conflict.path, KeptReason::Conflict),
        MergeResult::Kept => drop(actions.by_path.remove(&conflict.path)),
        MergeResult::Node(node, lines) => actions.replace(&conflict.path, node, Some(lines)),
        MergeResult::AsItWas | MergeResult::Stopped(_) => {}
    }
    Ok(())
}
