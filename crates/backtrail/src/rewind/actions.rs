//! What happens to each path: restored, deleted, kept, or not restorable.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::merge::LineCounts;
use super::outcome::{Kept, KeptReason, NotRestored, PathOutcome, PathOutcomeKind};
use super::path_change::{FileEntry, PathEntry, is_ignored};
use super::path_history::PathHistories;
use crate::error::Result;
use crate::snapshot::damage::{DamagedPart, DamagedPath};
use crate::snapshot::edit::Edit;
use crate::snapshot::entry::{FileKind, Node, Skipped, SkippedReason};
use crate::snapshot::{Difference, Snapshot, shown};

/// What happens to the paths that differ from the target.
#[derive(Debug, Default)]
pub(super) struct PathActions {
    /// The paths that change.
    pub(super) by_path: BTreeMap<PathBuf, PathAction>,
    pub(super) kept: Vec<Kept>,
    pub(super) not_restored: Vec<NotRestored>,
    /// What must be stored before it is replaced, since no snapshot has it.
    pub(super) to_capture: Vec<PathBuf>,
}

#[derive(Debug, Clone)]
pub(super) struct PathAction {
    pub(super) now: Option<Node>,
    pub(super) then: Option<Node>,
    /// How many lines change, if it is merged.
    pub(super) merged: Option<LineCounts>,
}

impl PathActions {
    /// Decides about paths that differ from the target. What is in `opened`, which no
    /// snapshot had until now, is not deleted.
    pub(super) fn on(
        changes: &[Difference],
        histories: &PathHistories,
        opened: &BTreeSet<PathBuf>,
    ) -> Self {
        let mut actions = Self::default();
        for want in changes {
            let in_opened = || opened.iter().any(|dir| want.path.starts_with(dir));
            if want.after.is_none() && in_opened() {
                continue;
            }
            actions.decide(want, histories);
        }
        actions
    }

    /// Decides about a path on its own.
    fn decide(&mut self, want: &Difference, histories: &PathHistories) {
        let path = &want.path;
        match (&want.before, &want.after) {
            (None, Some(Node::Skipped(then))) => {
                self.cannot(path, format!("was skipped: {}", then.reason));
            }
            (Some(_), Some(Node::Skipped(then))) if worth_naming(then.reason) => {
                self.cannot(path, format!("was skipped then: {}", then.reason));
            }
            (Some(Node::Skipped(now)), None) if worth_naming(now.reason) => {
                self.cannot(path, stays_uncaptured(now));
            }
            // It was skipped, and nobody asked for it.
            (Some(_), Some(Node::Skipped(_))) | (Some(Node::Skipped(_)), None) => {}
            (Some(Node::Skipped(now)), Some(then)) => match in_the_way(now, then) {
                Some(reason) => self.cannot(path, reason),
                None => {
                    self.to_capture.push(path.clone());
                    self.act(want);
                }
            },
            // If it is not known what the rules said then, they count as they are now.
            (Some(now @ (Node::File { .. } | Node::Link { .. })), None)
                if histories.born_ignored(path).unwrap_or(is_ignored(now)) =>
            {
                self.keep(path, KeptReason::BornIgnored);
            }
            _ => self.act(want),
        }
    }

    /// Makes a path as it was.
    pub(super) fn act(&mut self, want: &Difference) {
        let action = PathAction::new(want.before.clone(), want.after.clone());
        self.by_path.insert(want.path.clone(), action);
    }

    /// Keeps a path as it is.
    pub(super) fn keep(&mut self, path: &Path, reason: KeptReason) {
        self.by_path.remove(path);
        self.kept.push(Kept::new(named(path), reason));
    }

    /// Names a path that cannot be restored.
    pub(super) fn cannot(&mut self, path: &Path, reason: impl Into<String>) {
        self.by_path.remove(path);
        self.not_restored
            .push(NotRestored::new(named(path), reason));
    }

    /// Leaves what is damaged as it is. A directory of which nothing can be read is neither
    /// created nor replaced.
    pub(super) fn leave_damaged(&mut self, damaged: &[DamagedPath]) {
        for one in damaged {
            if one.part != DamagedPart::SomeNames {
                self.by_path.remove(&one.path);
            }
            if !self.is_not_restored(&one.name()) {
                self.not_restored.push(NotRestored::damaged(one.name()));
            }
        }
    }

    /// Leaves a file as it is of which a version is damaged.
    pub(super) fn leave_damaged_file(&mut self, path: &Path) {
        self.by_path.remove(path);
        self.not_restored.push(NotRestored::damaged(named(path)));
    }

    fn is_not_restored(&self, name: &Path) -> bool {
        self.not_restored.iter().any(|known| known.path == name)
    }

    /// Removes what cannot be done to a tree: a directory is deleted only with all that
    /// is in it, and something is created only in a directory.
    pub(super) fn fit(&mut self, present: &Snapshot, target: &Snapshot) -> Result<()> {
        self.keep_what_holds(present)?;
        self.make_room(present, target)?;
        self.kept.sort_by(|a, b| a.path.cmp(&b.path));
        self.not_restored.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(())
    }

    fn keep_what_holds(&mut self, present: &Snapshot) -> Result<()> {
        let is_dir = |node: &Option<Node>| matches!(node, Some(Node::Dir(_)));
        let going = self.by_path.iter();
        let going = going.filter(|(_, action)| is_dir(&action.now) && !is_dir(&action.then));
        let mut going: Vec<PathBuf> = going.map(|(path, _)| path.clone()).collect();
        // Paths sort after their directories: the deepest first.
        going.reverse();
        for path in going {
            let Some((name, node)) = self.first_that_stays(present, &path)? else {
                continue;
            };
            let stays = path.join(&name);
            let action = self.by_path.get(&path);
            let comes = action.is_some_and(|action| action.then.is_some());
            let is_skipped = matches!(node, Node::Skipped(_));
            if let Node::Skipped(skipped) = &node
                && !self.is_not_restored(&stays)
            {
                self.cannot(&stays, stays_uncaptured(skipped));
            }
            if comes || is_skipped {
                let holds = format!("still contains {}", shown(&stays));
                self.cannot(&path, holds);
            } else {
                self.by_path.remove(&path);
            }
        }
        Ok(())
    }

    /// Finds something in a directory that is not deleted with it.
    fn first_that_stays(&self, present: &Snapshot, dir: &Path) -> Result<Option<(PathBuf, Node)>> {
        for (name, node) in present.children(dir)? {
            let action = self.by_path.get(&dir.join(&name));
            if action.is_none_or(|action| action.then.is_some()) {
                return Ok(Some((name, node)));
            }
        }
        Ok(None)
    }

    fn make_room(&mut self, present: &Snapshot, target: &Snapshot) -> Result<()> {
        let coming = self.by_path.iter();
        let coming = coming.filter(|(_, action)| action.then.is_some());
        let coming: Vec<PathBuf> = coming.map(|(path, _)| path.clone()).collect();
        for path in coming {
            if let Some(reason) = self.no_room(present, target, &path)? {
                self.cannot(&path, reason);
            }
        }
        Ok(())
    }

    /// Ensures that a path's directory will exist, or returns the reason why not.
    fn no_room(
        &mut self,
        present: &Snapshot,
        target: &Snapshot,
        path: &Path,
    ) -> Result<Option<String>> {
        let Some(dir) = path.parent().filter(|dir| *dir != Path::new("")) else {
            return Ok(None);
        };
        if let Some(action) = self.by_path.get(dir) {
            let is_dir = matches!(action.then, Some(Node::Dir(_)));
            return Ok((!is_dir).then(|| no_directory(dir)));
        }
        let now = self
            .by_path
            .get(path)
            .and_then(|action| action.now.as_ref());
        if now.is_some_and(|now| !matches!(now, Node::Skipped(_))) {
            // It exists, and so does its directory.
            return Ok(None);
        }
        match present.walk_down(dir)? {
            Some(Node::Dir(_)) => return Ok(None),
            None => {}
            Some(_) => return Ok(Some(no_directory(dir))),
        }
        let Some(then @ Node::Dir(_)) = target.walk_down(dir)? else {
            return Ok(Some(no_directory(dir)));
        };
        let reason = self.no_room(present, target, dir)?;
        if reason.is_none() {
            let action = PathAction::new(None, Some(then));
            self.by_path.insert(dir.to_owned(), action);
        }
        Ok(reason)
    }

    /// Returns the actions as changes to a snapshot.
    pub(super) fn edits(&self) -> BTreeMap<PathBuf, Edit> {
        let edit = |action: &PathAction| match &action.then {
            None => Edit::Remove,
            Some(Node::Dir(dir)) => Edit::Dir(dir.mode),
            Some(node) => Edit::Put(node.clone()),
        };
        let edits = self.by_path.iter();
        edits
            .map(|(path, action)| (path.clone(), edit(action)))
            .collect()
    }

    /// Returns the actions as they are shown: a directory by what is in it, and itself
    /// only if it is empty.
    pub(super) fn changes(&self) -> Vec<PathOutcome> {
        let mut changes = Vec::new();
        let mut actions = self.by_path.iter().peekable();
        while let Some((path, action)) = actions.next() {
            let below = actions
                .peek()
                .is_some_and(|(next, _)| next.starts_with(path));
            if below && action.shows_by_content() {
                continue;
            }
            changes.push(PathOutcome {
                path: named(path),
                kind: action.kind(),
                is_dir: action.is_dir(),
            });
        }
        changes
    }

    /// Returns whether a path is a directory that is shown by what is in it.
    pub(super) fn shows_by_content(&self, path: &Path) -> bool {
        self.by_path
            .get(path)
            .is_some_and(PathAction::shows_by_content)
    }

    /// Returns whether a path changes; the workspace itself is `.`.
    pub(super) fn is_touched(&self, shown: &Path) -> bool {
        let path = match shown == Path::new(".") {
            true => Path::new(""),
            false => shown,
        };
        self.by_path.contains_key(path)
    }

    /// Returns the files whose content is written.
    pub(super) fn restored_files(&self) -> Vec<(&Path, FileEntry)> {
        self.files(|action| (&action.then, &action.now))
    }

    /// Returns the files whose content is replaced or deleted.
    pub(super) fn replaced_files(&self) -> Vec<(&Path, FileEntry)> {
        self.files(|action| (&action.now, &action.then))
    }

    /// Returns the files on one side whose content the other side does not have.
    fn files(
        &self,
        sides: impl Fn(&PathAction) -> (&Option<Node>, &Option<Node>),
    ) -> Vec<(&Path, FileEntry)> {
        let file = |node: &Option<Node>| PathEntry::of(node.as_ref()?)?.file();
        let files = self.by_path.iter().filter_map(|(path, action)| {
            let (one, other) = sides(action);
            let one = file(one)?;
            let is_same = file(other).is_some_and(|other| other.content == one.content);
            (!is_same).then_some((path.as_path(), one))
        });
        files.collect()
    }

    /// Returns how many existing files and links change.
    pub(super) fn touched(&self) -> u64 {
        let is_file =
            |node: &Option<Node>| matches!(node, Some(Node::File { .. } | Node::Link { .. }));
        let touched = self.by_path.values().filter(|action| is_file(&action.now));
        touched.count() as u64
    }
}

impl PathAction {
    pub(super) fn new(now: Option<Node>, then: Option<Node>) -> Self {
        Self {
            now,
            then,
            merged: None,
        }
    }

    fn kind(&self) -> PathOutcomeKind {
        let [now, then] = [&self.now, &self.then].map(|node| node.as_ref().and_then(PathEntry::of));
        match (now, then) {
            (_, None) => PathOutcomeKind::Delete,
            (None, Some(_)) if self.now.is_none() => PathOutcomeKind::Create,
            (Some(PathEntry::Dir { .. }), Some(PathEntry::Dir { .. })) => PathOutcomeKind::Mode,
            (Some(PathEntry::File(now)), Some(PathEntry::File(then)))
                if now.content == then.content =>
            {
                PathOutcomeKind::Mode
            }
            _ => match self.merged {
                Some(LineCounts { removed, returned }) => {
                    PathOutcomeKind::Merge { removed, returned }
                }
                None => PathOutcomeKind::Restore,
            },
        }
    }

    /// Returns whether it only creates or deletes a directory.
    fn shows_by_content(&self) -> bool {
        self.is_dir() && self.kind() != PathOutcomeKind::Mode
    }

    fn is_dir(&self) -> bool {
        let there = self.now.iter().chain(&self.then);
        there.into_iter().all(|node| matches!(node, Node::Dir(_)))
    }
}

/// Returns why something that no snapshot has cannot be replaced, if so.
fn in_the_way(now: &Skipped, then: &Node) -> Option<String> {
    let is_dir = matches!(then, Node::Dir(_));
    Some(match (now.reason, now.kind) {
        (SkippedReason::Git, _) => "now a git repository".to_owned(),
        (SkippedReason::Store, _) => "now holds the store".to_owned(),
        (SkippedReason::OtherFileSystem, _) => "now on another file system".to_owned(),
        (_, FileKind::File | FileKind::Link) => return None,
        (SkippedReason::Ignored, FileKind::Dir) if is_dir => return None,
        (reason, FileKind::Dir) => {
            format!("now a directory that is skipped ({reason})")
        }
        _ => "no longer a regular file".to_owned(),
    })
}

/// Returns whether something skipped for this reason should be named.
fn worth_naming(reason: SkippedReason) -> bool {
    !matches!(
        reason,
        SkippedReason::Ignored | SkippedReason::Git | SkippedReason::Store
    )
}

fn stays_uncaptured(skipped: &Skipped) -> String {
    format!("not protected ({}), so kept", skipped.reason)
}

fn no_directory(path: &Path) -> String {
    format!("{} is not a directory now", shown(path))
}

/// Returns a path as it is shown: the workspace itself is `.`.
pub(super) fn named(path: &Path) -> PathBuf {
    match path.as_os_str().is_empty() {
        true => PathBuf::from("."),
        false => path.to_owned(),
    }
}
