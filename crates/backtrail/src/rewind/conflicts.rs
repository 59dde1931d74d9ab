//! Which paths others changed too, and what happens to them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::actions::{PathAction, PathActions, named};
use super::authors::{Author, AuthorKind, WhoseWork};
use super::merge::{MergeResult, Merger, unmerged};
use super::outcome::OnConflict;
use super::outcome::{ChangedBy, Conflict, KeptReason, Merge};
use crate::error::Result;
use crate::time::Timestamp;

impl Merger<'_> {
    /// Finds the paths that others changed too, and treats them as asked for.
    pub(super) fn conflicts(
        &self,
        actions: &mut PathActions,
        on_conflict: OnConflict,
    ) -> Result<Vec<Conflict>> {
        let merges = on_conflict == OnConflict::Merge;
        let as_they_were = match merges {
            true => self.as_they_were(actions)?,
            false => BTreeSet::new(),
        };
        let other = |path: &Path| self.other(path).filter(|_| merges);
        let paths = actions.by_path.keys();
        let conflicts = paths.filter_map(|path| self.conflict(path, other(path)));
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
                    self.settle(conflict, is_named, actions)?;
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
    fn conflict(&self, path: &Path, other: Option<&Author>) -> Option<Conflict> {
        let by = self.histories.by(path);
        let moved_on = self.moved_on.contains(path);
        let is_other = |author: &&Author| !self.authors.is_own(author);
        let seen = match self.authors {
            WhoseWork::Nobody => by.last().filter(|_| moved_on),
            _ => by.iter().rev().find(is_other),
        };
        let other = seen.or(by.last().filter(|_| moved_on)).or(other);
        // It changed even if no author is known.
        let store = self.workspace.store();
        let unseen = Author {
            unsaved: true,
            ..Author::new(AuthorKind::Person, (usize::MAX, store.now()))
        };
        let author = other.or(moved_on.then_some(&unseen))?;
        let own = by.iter().rev().find(|author| self.authors.is_own(author));
        let changed_by = match &author.kind {
            AuthorKind::Session(place) => ChangedBy::Session(place.id.clone()),
            AuthorKind::Person => ChangedBy::Person,
            AuthorKind::Agent(..) | AuthorKind::Unnamed | AuthorKind::Process => ChangedBy::Run,
        };
        let or = by
            .iter()
            .find(|other| other.n == author.n && other.program.is_some());
        let or = or.filter(|_| author.kind == AuthorKind::Person);
        let at = match author.unsaved {
            true => self.changed_at(path).unwrap_or(author.at),
            false => author.at,
        };
        Some(Conflict {
            or: or.and_then(|or| or.program.clone()),
            unsaved: author.unsaved,
            also: own.and_then(|own| own.step.as_ref()?.read(store)),
            overlapped: own.is_some_and(|own| own.n == author.n),
            named: self.named_files.iter().any(|file| path.starts_with(file)),
            ..Conflict::new(path, changed_by, at)
        })
    }

    /// Adds paths that are as they were although others had changed them: the work to
    /// undo removed those changes.
    fn as_they_were(&self, actions: &mut PathActions) -> Result<BTreeSet<PathBuf>> {
        let mut found = BTreeSet::new();
        for path in self.histories.paths.keys() {
            if self.wanted.contains(path) || self.other(path).is_none() {
                continue;
            }
            let now = self.present.walk_down(path)?;
            let action = PathAction::new(now.clone(), now);
            actions.by_path.insert(path.clone(), action);
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
        let stat = rustix::fs::lstat(self.workspace.root().join(path)).ok()?;
        let millis = (stat.st_mtime as i64).checked_mul(1000)?;
        Timestamp::from_millis(millis.checked_add(stat.st_mtime_nsec as i64 / 1_000_000)?)
    }

    /// Merges a path that others changed too.
    fn settle(
        &self,
        conflict: &mut Conflict,
        is_named: bool,
        actions: &mut PathActions,
    ) -> Result<()> {
        let path = &conflict.path;
        let Some(action) = actions.by_path.get_mut(path) else {
            return Ok(());
        };
        let merged = self.merge(path, action.now.as_ref(), action.then.as_ref())?;
        conflict.merge = Some(match merged {
            MergeResult::AsItWas => Merge::Merged,
            MergeResult::Node(node, lines) => {
                action.then = node;
                action.merged = Some(lines);
                Merge::Merged
            }
            MergeResult::Kept => {
                match is_named {
                    true => actions.keep(path, KeptReason::Conflict),
                    false => drop(actions.by_path.remove(path)),
                }
                Merge::Kept
            }
            MergeResult::Stopped(unmerged) => Merge::Stopped(unmerged),
            MergeResult::Damaged if self.skips_damaged => {
                actions.leave_damaged_file(path);
                Merge::Kept
            }
            MergeResult::Damaged => Merge::Stopped(unmerged("a version in between is damaged")),
        });
        Ok(())
    }
}
