//! Who changed which paths since a state, as far as the changes are still in effect.
//!
//! The history of a path has its states, who had changed it by then, and the changes that
//! led there.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::authors::{Author, Interval, MergeUndid};
use super::path_change::{FileEntry, PathEntry, is_ignored};
use crate::error::{ErrorKind, Result};
use crate::objects::ObjectId;
use crate::snapshot::entry::{FileKind, Node, SkippedReason};
use crate::snapshot::{Difference, Snapshot};

/// The histories of some paths.
#[derive(Debug, Default)]
pub(super) struct PathHistories {
    pub(super) paths: HashMap<PathBuf, PathHistory>,
    /// Present content that no snapshot has.
    pub(super) stored: BTreeMap<PathBuf, PathEntry>,
    /// What was made readable to be read now: it did not change since it could not be read.
    pub(super) opened: BTreeSet<PathBuf>,
    /// The index of the last state that the user asked to be saved; 0 for none.
    pub(super) last_held: usize,
    /// Below which paths every change counts, also of what is as it was, if anywhere; empty
    /// means everywhere.
    pub(super) every: Option<Vec<PathBuf>>,
}

impl PathHistories {
    /// Begins the histories of the paths in which two snapshots differ, at the state that
    /// a third has, as far as that can be read.
    pub(super) fn begin(
        &mut self,
        base: Option<&Snapshot>,
        between: [ObjectId; 2],
        differences: &[Difference],
    ) -> Result<()> {
        for difference in differences {
            let found = base.map(|base| readable(base.walk_down_to(difference, between)));
            let base = match found.transpose()?.flatten() {
                Some(node) => PathState::of(node.as_ref()),
                None => PathState::Unknown,
            };
            let history = PathHistory::new(base);
            self.paths.insert(difference.path.clone(), history);
        }
        Ok(())
    }

    /// Follows the paths. A state that cannot be read is skipped: the changes after it may
    /// be by any author in between. So may those in a directory that is damaged.
    pub(super) fn follow(
        &mut self,
        intervals: Vec<Interval>,
        open: &dyn Fn(&ObjectId) -> Result<Snapshot>,
    ) -> Result<()> {
        let mut before: Option<(ObjectId, Snapshot)> = None;
        let mut by: Vec<Author> = Vec::new();
        for mut interval in intervals {
            if interval.before == interval.after {
                // Nobody changed anything, whether it can be read or not.
                if by.is_empty() {
                    self.save(&interval);
                }
                continue;
            }
            by.extend_from_slice(&interval.by);
            let start = match before.take() {
                Some(kept) => Some(kept),
                None => readable(open(&interval.before))?.map(|found| (interval.before, found)),
            };
            let Some((id, start)) = start else {
                continue;
            };
            if id == interval.after {
                by.clear();
                before = Some((id, start));
            } else {
                let Some(end) = readable(open(&interval.after))? else {
                    before = Some((id, start));
                    continue;
                };
                let (found, damaged) = start.readable_differences(&end, None)?;
                interval.by = Rc::from(std::mem::take(&mut by));
                self.add(&found, &interval);
                for one in damaged.all() {
                    self.lose_sight(&one.path, false, &interval);
                }
                before = Some((interval.after, end));
            }
            self.save(&interval);
        }
        Ok(())
    }

    /// Marks all changes so far as saved on request.
    fn save(&mut self, interval: &Interval) {
        if !interval.saves {
            return;
        }
        if interval.is_users {
            self.last_held = interval.n;
        }
        let states = self.paths.values_mut();
        for known in states.filter_map(|history| history.states.last_mut()) {
            for author in &mut known.by {
                author.unsaved = false;
                author.held |= interval.is_users;
            }
        }
    }

    /// Adds the differences of an interval.
    fn add(&mut self, found: &[Difference], cause: &Interval) {
        for difference in found {
            let unknown = [&difference.before, &difference.after]
                .into_iter()
                .any(|node| matches!(node, Some(Node::Skipped(_))));
            let was = difference.before.as_ref().and_then(PathEntry::of);
            let lost = matches!(difference.after, Some(Node::Skipped(_))) && was.is_some();
            if lost && self.stored.get(&difference.path) == was.as_ref() {
                // It is the same, but was skipped: over the size limit, for example.
                continue;
            }
            self.meet(difference);
            if !cause.saves && self.opened.contains(&difference.path) && only_opened(difference) {
                if let Some(history) = self.paths.get_mut(&difference.path) {
                    history.regain(PathState::of(difference.after.as_ref()), cause.n);
                }
                continue;
            }
            if let Some(history) = self.paths.get_mut(&difference.path) {
                let may_be = may_be(difference.after.as_ref(), difference.before.as_ref());
                if !cause.saves && may_be {
                    // It was stored only because it was in the way; it did not change.
                    history.regain(PathState::of(difference.after.as_ref()), cause.n);
                    continue;
                }
                history.change(PathState::of(difference.after.as_ref()), cause);
                if difference.before.is_none() && !cause.by.is_empty() {
                    history.born_ignored = difference.after.as_ref().map(is_ignored);
                }
            }
            if unknown {
                let ignored = [&difference.before, &difference.after]
                    .into_iter()
                    .flatten()
                    .any(is_ignored);
                self.lose_sight(&difference.path, ignored, cause);
            }
        }
    }

    /// Begins the history of a path that changes for the first time, if it counts.
    fn meet(&mut self, difference: &Difference) {
        let Some(paths) = &self.every else {
            return;
        };
        let path = &difference.path;
        let is_asked = paths.is_empty() || paths.iter().any(|one| path.starts_with(one));
        if is_asked && !self.paths.contains_key(path) {
            let history = PathHistory::new(PathState::of(difference.before.as_ref()));
            self.paths.insert(path.clone(), history);
        }
    }

    /// Records that a directory above paths was skipped or damaged, before or after.
    fn lose_sight(&mut self, dir: &Path, ignored: bool, cause: &Interval) {
        for (path, history) in &mut self.paths {
            if path.starts_with(dir) && path != dir {
                history.change(PathState::Unknown, cause);
                if ignored {
                    history.born_ignored = Some(true);
                }
            }
        }
    }

    /// Returns the authors of a path, the last one last.
    pub(super) fn by(&self, path: &Path) -> &[Author] {
        self.paths.get(path).map_or(&[], PathHistory::by)
    }

    /// Returns the state of a path that changes are counted from.
    pub(super) fn base(&self, path: &Path) -> PathState {
        let history = self.paths.get(path);
        history.map_or(PathState::Unknown, |history| history.base.clone())
    }

    /// Returns the author of a change of a path with whether a checkpoint of the user's own
    /// has it.
    pub(super) fn by_now(&self, path: &Path, author: &Author) -> Author {
        match self.paths.get(path) {
            Some(history) => history.by_now(author, self.last_held),
            None => author.clone(),
        }
    }

    /// Returns the changes that led to the present state of a path, the last one first.
    pub(super) fn chain(&self, path: &Path) -> Vec<&AuthoredChange> {
        self.paths
            .get(path)
            .map_or_else(Vec::new, PathHistory::chain)
    }

    /// Returns whether ignore rules matched a path when it was created, if that is known.
    pub(super) fn born_ignored(&self, path: &Path) -> Option<bool> {
        self.paths.get(path)?.born_ignored
    }
}

/// Returns whether a file may be the one that was skipped.
pub(super) fn may_be(file: Option<&Node>, skipped: Option<&Node>) -> bool {
    match (file, skipped) {
        (Some(Node::File { size, .. }), Some(Node::Skipped(then))) => {
            let by_rule = matches!(
                then.reason,
                SkippedReason::TooLarge | SkippedReason::Ignored
            );
            by_rule && then.kind == FileKind::File && then.size == *size
        }
        _ => false,
    }
}

/// Returns whether making a path readable explains how it differs.
fn only_opened(difference: &Difference) -> bool {
    const OWNER: u32 = 0o700;
    match (&difference.before, &difference.after) {
        (_, None | Some(Node::Skipped(_))) => false,
        (Some(Node::Skipped(_)), Some(_)) => true,
        (Some(Node::Dir(before)), Some(Node::Dir(after))) => {
            before.mode & !OWNER == after.mode & !OWNER && before.mode & !after.mode == 0
        }
        _ => false,
    }
}

/// Skips what is damaged or was dropped.
pub(super) fn readable<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Dropped) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The history of one path.
#[derive(Debug, Default)]
pub(super) struct PathHistory {
    /// Its state that changes are counted from.
    base: PathState,
    /// Its states since.
    states: Vec<PastState>,
    /// All changes; each names the one before it.
    links: Vec<AuthoredChange>,
    /// Whether ignore rules matched it when it was created.
    born_ignored: Option<bool>,
}

/// A state that a path had.
#[derive(Debug, Clone)]
pub(super) struct PastState {
    pub(super) state: PathState,
    /// Its authors by then, the last one last.
    pub(super) by: Vec<Author>,
    /// The last change that led to it, as far as changes are in effect.
    link: Option<usize>,
    /// The index of the state that it was first seen in.
    n: usize,
}

/// A change of a path.
#[derive(Debug, Clone)]
pub(super) struct AuthoredChange {
    pub(super) before: PathState,
    pub(super) after: PathState,
    /// Its authors; empty if Backtrail itself restored something.
    pub(super) by: Rc<[Author]>,
    /// The index of the state that it led to.
    pub(super) n: usize,
    /// Whether a merge undid it: nothing of it is left.
    pub(super) is_gone: bool,
    /// The state that Backtrail restored with it.
    to: Option<usize>,
    earlier: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum PathState {
    #[default]
    Absent,
    There(PathEntry),
    /// It, or a directory above it, was skipped or is damaged.
    Unknown,
}

impl PathState {
    pub(super) fn of(node: Option<&Node>) -> Self {
        match node {
            None => Self::Absent,
            Some(node) => PathEntry::of(node).map_or(Self::Unknown, Self::There),
        }
    }

    /// Returns the file, if it is one.
    pub(super) fn file(&self) -> Option<FileEntry> {
        match self {
            Self::There(entry) => entry.file(),
            Self::Absent | Self::Unknown => None,
        }
    }
}

impl AuthoredChange {
    /// Returns whether Backtrail went back to before a state with it.
    pub(super) fn is_behind(&self, since: usize) -> bool {
        self.by.is_empty() && self.to.is_some_and(|to| to < since)
    }
}

impl PathHistory {
    pub(super) fn new(base: PathState) -> Self {
        Self {
            base,
            ..Self::default()
        }
    }

    fn change(&mut self, state: PathState, cause: &Interval) {
        let known = if state == self.base {
            // Whoever restored it: no changes are left in it.
            let earlier = self.last_link().filter(|_| !cause.by.is_empty());
            let link =
                earlier.map(|at| self.link(state.clone(), Rc::clone(&cause.by), Some(at), cause));
            PastState {
                state,
                by: Vec::new(),
                link,
                n: cause.n,
            }
        } else if let Some(then) = self.as_it_was(&state) {
            then
        } else if cause.by.is_empty() || self.is_as_agent_left_it(&state, cause) {
            // Restored: its authors are those of that state.
            let then = self.states.iter().rev().find(|known| known.state == state);
            match then.cloned() {
                Some(then) => PastState { n: cause.n, ..then },
                None => self.restored(state, cause),
            }
        } else {
            let mut by = self.by().to_vec();
            by.retain(|known| !cause.by.contains(known));
            by.extend_from_slice(&cause.by);
            let earlier = self.last_link();
            let link = self.link(state.clone(), Rc::clone(&cause.by), earlier, cause);
            PastState {
                state,
                by,
                link: Some(link),
                n: cause.n,
            }
        };
        self.states.push(known);
    }

    /// Returns whether a state is the one that an agent went back to in its own session.
    fn is_as_agent_left_it(&self, state: &PathState, cause: &Interval) -> bool {
        let Some(to) = cause.agent_went_to else {
            return false;
        };
        let then = self.states.iter().rev().find(|known| known.n <= to);
        then.is_some_and(|then| then.state == *state)
    }

    /// Adds a change to the last state.
    fn link(
        &mut self,
        after: PathState,
        by: Rc<[Author]>,
        earlier: Option<usize>,
        cause: &Interval,
    ) -> usize {
        let last = self.states.last();
        self.links.push(AuthoredChange {
            before: last.map_or(&self.base, |known| &known.state).clone(),
            after,
            by,
            n: cause.n,
            is_gone: false,
            to: cause.to,
            earlier,
        });
        self.links.len() - 1
    }

    fn last_link(&self) -> Option<usize> {
        self.states.last().and_then(|known| known.link)
    }

    /// Adds a state that Backtrail made and that did not exist before: a merge, chosen
    /// parts, or an even earlier state.
    fn restored(&mut self, state: PathState, cause: &Interval) -> PastState {
        let came = cause.to.map_or_else(|| Rc::from([]), |to| self.came(to));
        let earlier = match &cause.merge_undid {
            Some(undid) if came.is_empty() => self.without(undid, cause.last_held),
            // A redo may be undone itself, and then all that it undid returns.
            _ => self.last_link(),
        };
        let mut by = self.still_by(earlier);
        by.retain(|known| !has(&came, known));
        by.extend(came.iter().cloned());
        let link = self.link(state.clone(), came, earlier, cause);
        PastState {
            state,
            by,
            link: Some(link),
            n: cause.n,
        }
    }

    /// Returns the authors of changes that a state had and that are not in effect now:
    /// restoring that state returns them.
    fn came(&self, to: usize) -> Rc<[Author]> {
        let is_in_effect = |link: &&&AuthoredChange| !link.is_gone;
        let now: Vec<&AuthoredChange> = self.chain();
        let now: HashSet<usize> = now.iter().filter(is_in_effect).map(|link| link.n).collect();
        let then = self.states.iter().rev().find(|known| known.n <= to);
        let then = self.chain_to(then.and_then(|known| known.link));
        let back = then.iter().rev().filter(is_in_effect);
        let back = back.filter(|link| !now.contains(&link.n));
        let mut came: Vec<Author> = Vec::new();
        for author in back.flat_map(|link| link.by.iter()) {
            if !has(&came, author) {
                came.push(author.clone());
            }
        }
        came.into()
    }

    /// Copies the changes that led to the present state, with those marked that a merge
    /// undid, and returns the last. The originals stay: an earlier state may return.
    fn without(&mut self, undid: &MergeUndid, last_held: usize) -> Option<usize> {
        let mut chain: Vec<AuthoredChange> = self.chain().into_iter().cloned().collect();
        chain.reverse();
        let mut earlier = None;
        for mut link in chain {
            link.is_gone |= undid.holds(&link, |author| self.by_now(author, last_held));
            link.earlier = earlier;
            self.links.push(link);
            earlier = Some(self.links.len() - 1);
        }
        earlier
    }

    /// Returns the authors whose changes are still in effect.
    fn still_by(&self, last: Option<usize>) -> Vec<Author> {
        let chain = self.chain_to(last);
        let is_in_effect = |author: &&Author| {
            let mut links = chain.iter().filter(|link| !link.is_gone);
            links.any(|link| has(&link.by, author))
        };
        self.by().iter().filter(is_in_effect).cloned().collect()
    }

    /// Sets the state of a path that did not change.
    fn regain(&mut self, state: PathState, n: usize) {
        let by = self.by().to_vec();
        let link = self.last_link().map(|at| {
            let known = AuthoredChange {
                after: state.clone(),
                ..self.links[at].clone()
            };
            self.links.push(known);
            self.links.len() - 1
        });
        self.states.push(PastState { state, by, link, n });
    }

    /// Returns the earlier state of a path that was skipped and is the same again.
    fn as_it_was(&self, state: &PathState) -> Option<PastState> {
        let is_lost = |known: &&PastState| known.state == PathState::Unknown;
        self.states.last().filter(is_lost)?;
        let seen = self.states.iter().rev().find(|known| !is_lost(known));
        seen.filter(|known| known.state == *state).cloned()
    }

    /// Returns the author of a change with whether a checkpoint of the user's own has it by
    /// now. Where nothing of the change is left, any such checkpoint after it counts.
    pub(super) fn by_now(&self, author: &Author, last_held: usize) -> Author {
        let known = self.by().iter().find(|known| known.is(author));
        Author {
            held: known.map_or(author.n <= last_held, |known| known.held),
            ..author.clone()
        }
    }

    /// Returns its authors, the last one last.
    pub(super) fn by(&self) -> &[Author] {
        self.states.last().map_or(&[], |known| &known.by)
    }

    /// Returns the changes that led to the present state, the last one first.
    pub(super) fn chain(&self) -> Vec<&AuthoredChange> {
        self.chain_to(self.last_link())
    }

    fn chain_to(&self, last: Option<usize>) -> Vec<&AuthoredChange> {
        let links = std::iter::successors(last, |at| self.links[*at].earlier);
        links.map(|at| &self.links[at]).collect()
    }
}

/// Returns whether an author is among others, saved or not.
fn has(by: &[Author], author: &Author) -> bool {
    by.iter().any(|known| known.is(author))
}
