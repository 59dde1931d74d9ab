//! Who changed which paths since a state, as far as it is still in effect.
//!
//! What became of one path: its states, who had changed it in each, and the changes
//! that led there.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::authors::{Author, Interval, MergeUndid};
use super::path_change::PathEntry;
use crate::error::{ErrorKind, Result};
use crate::objects::ObjectId;
use crate::snapshot::entry::{FileKind, Node, SkippedReason};
use crate::snapshot::{Difference, Snapshot};

/// What became of the paths that are looked at.
#[derive(Debug, Default)]
pub(super) struct PathHistories {
    paths: HashMap<PathBuf, PathHistory>,
    /// What is there now where no snapshot has it.
    stored: BTreeMap<PathBuf, PathEntry>,
    /// The last state of the workspace that somebody asked for.
    saved: usize,
    /// Where every path is looked at that changed at any time, if anywhere.
    every: Option<Vec<PathBuf>>,
}

impl PathHistories {
    /// Looks at the paths in which two snapshots differ, from the state that a third
    /// has on.
    pub(super) fn new(
        base: &Snapshot,
        between: [ObjectId; 2],
        differences: &[Difference],
    ) -> Result<Self> {
        let mut histories = Self::default();
        for difference in differences {
            let base = PathState::of(base.walk_down_to(difference, between)?.as_ref());
            histories
                .paths
                .insert(difference.path.clone(), PathHistory::new(base));
        }
        Ok(histories)
    }

    /// Takes note of what is there now where no snapshot has it.
    pub(super) fn know(&mut self, stored: &BTreeMap<PathBuf, PathEntry>) {
        self.stored.clone_from(stored);
    }

    /// Looks also at what changed at any time and is as it was: at some paths and
    /// beneath them, or everywhere where none is named.
    pub(super) fn look_at_every(&mut self, paths: &[PathBuf]) {
        self.every = Some(paths.to_vec());
    }

    /// Follows what became of the paths. A state that cannot be read is passed over:
    /// what comes after it may be the doing of all who were there meanwhile.
    pub(super) fn follow(
        &mut self,
        intervals: &[Interval],
        open: &dyn Fn(&ObjectId) -> Result<Snapshot>,
    ) -> Result<()> {
        let mut before: Option<(ObjectId, Snapshot)> = None;
        let mut by: Vec<Author> = Vec::new();
        for interval in intervals {
            by.extend(interval.by.iter().cloned());
            let start = match before.take() {
                Some(kept) => Some(kept),
                None => readable(open(&interval.before))?.map(|found| (interval.before, found)),
            };
            let Some((id, start)) = start else {
                continue;
            };
            if id == interval.after {
                before = Some((id, start));
                by.clear();
                self.save(interval);
                continue;
            }
            let compared = readable(open(&interval.after))?
                .map(|end| start.differences(&end, None).map(|found| (end, found)));
            match compared.map(readable).transpose()?.flatten() {
                Some((end, found)) => {
                    let cause = ChangeCause {
                        by: &Rc::from(std::mem::take(&mut by)),
                        n: interval.n,
                        to: interval.to,
                        took: interval.took.as_ref(),
                    };
                    self.take_in(&found, cause, interval.saves);
                    self.save(interval);
                    before = Some((interval.after, end));
                }
                None => before = Some((id, start)),
            }
        }
        Ok(())
    }

    /// Takes note that somebody asked for all that is there to be kept.
    fn save(&mut self, interval: &Interval) {
        if !interval.saves {
            return;
        }
        self.saved = interval.n;
        let states = self.paths.values_mut();
        for known in states.filter_map(|history| history.states.last_mut()) {
            known
                .by
                .iter_mut()
                .for_each(|author| author.unsaved = false);
        }
    }

    /// Takes in what differs. `asked` tells that somebody asked for the later state.
    fn take_in(&mut self, found: &[Difference], cause: ChangeCause<'_>, asked: bool) {
        for difference in found {
            let unknown = [&difference.before, &difference.after]
                .into_iter()
                .any(|node| matches!(node, Some(Node::Skipped(_))));
            let was = difference.before.as_ref().and_then(PathEntry::of);
            let lost = matches!(difference.after, Some(Node::Skipped(_))) && was.is_some();
            if lost && self.stored.get(&difference.path) == was.as_ref() {
                // Only lost sight of: it is over the cap, say, and the same.
                continue;
            }
            self.meet(difference);
            if let Some(history) = self.paths.get_mut(&difference.path) {
                if !asked && is_regained(difference) {
                    // Stored because it was in the way; it was there all the time.
                    history.regain(PathState::of(difference.after.as_ref()), cause.n);
                    continue;
                }
                history.change(PathState::of(difference.after.as_ref()), cause);
                if difference.before.is_none() && !cause.by.is_empty() {
                    history.born_ignored = difference.after.as_ref().map(is_ignored);
                }
            }
            if unknown {
                self.lose_sight(difference, cause);
            }
        }
    }

    /// Begins to look at a path that changes for the first time, if it is to be.
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

    /// Returns all paths that are looked at.
    pub(super) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.paths.keys()
    }

    /// Notes that something above paths was left out, before or after.
    fn lose_sight(&mut self, difference: &Difference, cause: ChangeCause<'_>) {
        let ignored = [&difference.before, &difference.after]
            .into_iter()
            .flatten()
            .any(is_ignored);
        for (path, history) in &mut self.paths {
            if path.starts_with(&difference.path) && *path != difference.path {
                history.change(PathState::Unknown, cause);
                if ignored {
                    history.born_ignored = Some(true);
                }
            }
        }
    }

    /// Returns who changed a path, the last of them last.
    pub(super) fn by(&self, path: &Path) -> &[Author] {
        self.paths.get(path).map_or(&[], PathHistory::by)
    }

    /// Returns the state of a path where everything is counted from.
    pub(super) fn base(&self, path: &Path) -> PathState {
        let history = self.paths.get(path);
        history.map_or(PathState::Unknown, |history| history.base.clone())
    }

    /// Returns the changes that led to what is at a path, the last one first.
    pub(super) fn chain(&self, path: &Path) -> Vec<&AuthoredChange> {
        self.paths
            .get(path)
            .map_or_else(Vec::new, PathHistory::chain)
    }

    /// Returns whether what is at a path was stored because no snapshot had it.
    pub(super) fn is_stored(&self, path: &Path) -> bool {
        self.stored.contains_key(path)
    }

    /// Returns the last state of the workspace that somebody asked for.
    pub(super) fn saved(&self) -> usize {
        self.saved
    }

    /// Returns whether ignore rules named a path when it came into being, where that
    /// was seen.
    pub(super) fn born_ignored(&self, path: &Path) -> Option<bool> {
        self.paths.get(path)?.born_ignored
    }
}

fn is_ignored(node: &Node) -> bool {
    match node {
        Node::File { ignored, .. } | Node::Link { ignored, .. } => *ignored,
        Node::Skipped(skipped) => skipped.reason == SkippedReason::Ignored,
        Node::Dir(_) => false,
    }
}

/// Returns whether a file was left out before and is captured after, and nothing tells
/// that it is another.
fn is_regained(difference: &Difference) -> bool {
    may_be(difference.after.as_ref(), difference.before.as_ref())
}

/// Returns whether a file may be the one that was left out.
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

/// Takes what can be read; what is damaged or was let go is passed over.
fn readable<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Dropped) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What became of one path.
#[derive(Debug, Default)]
pub(super) struct PathHistory {
    /// Its state where everything is counted from.
    pub(super) base: PathState,
    /// Its states since.
    pub(super) states: Vec<PastState>,
    /// All changes; each says which one came before it.
    links: Vec<AuthoredChange>,
    /// Whether ignore rules named it when it came into being.
    pub(super) born_ignored: Option<bool>,
}

/// A state that a path had.
#[derive(Debug, Clone)]
pub(super) struct PastState {
    pub(super) state: PathState,
    /// Who had changed it then, the last of them last.
    pub(super) by: Vec<Author>,
    /// The last of the changes that led to it, as far as they are in effect.
    link: Option<usize>,
    /// The state of the workspace that it was first seen in.
    n: usize,
}

/// A change of a path.
#[derive(Debug, Clone)]
pub(super) struct AuthoredChange {
    pub(super) before: PathState,
    pub(super) after: PathState,
    /// Who made it; nobody where Backtrail itself restored something.
    pub(super) by: Rc<[Author]>,
    /// The state of the workspace that it led to.
    pub(super) n: usize,
    /// Whether a merge took it back: nothing of it is in what is there.
    pub(super) is_gone: bool,
    /// The state that Backtrail went to with it.
    to: Option<usize>,
    earlier: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum PathState {
    #[default]
    Absent,
    There(PathEntry),
    /// Something that was left out was there, or above it.
    Unknown,
}

impl PathState {
    pub(super) fn of(node: Option<&Node>) -> Self {
        match node {
            None => Self::Absent,
            Some(node) => PathEntry::of(node).map_or(Self::Unknown, Self::There),
        }
    }
}

/// What led from one state of the workspace to the next.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChangeCause<'a> {
    pub(super) by: &'a Rc<[Author]>,
    /// The state that it led to.
    pub(super) n: usize,
    /// The state that Backtrail went to.
    pub(super) to: Option<usize>,
    /// What a merge took back.
    pub(super) took: Option<&'a MergeUndid>,
}

impl AuthoredChange {
    /// Returns whether Backtrail went back with it to before a state.
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

    pub(super) fn change(&mut self, state: PathState, cause: ChangeCause<'_>) {
        let known = if state == self.base {
            // Whoever brought it back: nothing of anybody's is in it.
            let earlier = self.last_link().filter(|_| !cause.by.is_empty());
            let link =
                earlier.map(|at| self.link(state.clone(), Rc::clone(cause.by), Some(at), cause));
            self.known(state, Vec::new(), link, cause.n)
        } else if let Some(then) = self.as_it_was(&state) {
            then
        } else if cause.by.is_empty() {
            // Restored: it is again whose it was then.
            let then = self.states.iter().rev().find(|known| known.state == state);
            match then.cloned() {
                Some(then) => PastState { n: cause.n, ..then },
                None => self.restored(state, cause),
            }
        } else {
            let mut by = self.by().to_vec();
            by.retain(|known| !cause.by.contains(known));
            by.extend_from_slice(cause.by);
            let earlier = self.last_link();
            let link = self.link(state.clone(), Rc::clone(cause.by), earlier, cause);
            self.known(state, by, Some(link), cause.n)
        };
        self.states.push(known);
    }

    fn known(&self, state: PathState, by: Vec<Author>, link: Option<usize>, n: usize) -> PastState {
        PastState { state, by, link, n }
    }

    /// Notes a change on top of what is there.
    fn link(
        &mut self,
        after: PathState,
        by: Rc<[Author]>,
        earlier: Option<usize>,
        cause: ChangeCause<'_>,
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

    /// Takes in a state that Backtrail made, and that was not there before: what a
    /// merge came to, or what somebody chose, or what was there even earlier.
    fn restored(&mut self, state: PathState, cause: ChangeCause<'_>) -> PastState {
        let came = cause.to.map_or_else(|| Rc::from([]), |to| self.came(to));
        let earlier = match cause.took {
            Some(took) if came.is_empty() => self.without(took),
            // What brings something back may be undone itself, and then all that it
            // took back is there again.
            _ => self.last_link(),
        };
        let mut by = self.still_by(earlier);
        by.retain(|known| !has(&came, known));
        by.extend(came.iter().cloned());
        let link = self.link(state.clone(), came, earlier, cause);
        self.known(state, by, Some(link), cause.n)
    }

    /// Returns who made changes that a state of the workspace had and that are not in
    /// effect now: going there, they come back.
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

    /// Writes the changes that led to what is there down again, as they are after a
    /// merge took some of them back, and returns the last. Those that led to earlier
    /// states stay as they are: such a state may come back.
    fn without(&mut self, took: &MergeUndid) -> Option<usize> {
        let mut chain: Vec<AuthoredChange> = self.chain().into_iter().cloned().collect();
        chain.reverse();
        let mut earlier = None;
        for mut link in chain {
            link.is_gone |= took.holds(&link);
            link.earlier = earlier;
            self.links.push(link);
            earlier = Some(self.links.len() - 1);
        }
        earlier
    }

    /// Returns who of those who changed it made changes that are still in effect.
    fn still_by(&self, last: Option<usize>) -> Vec<Author> {
        let chain = self.chain_to(last);
        let is_in_effect = |author: &&Author| {
            let mut links = chain.iter().filter(|link| !link.is_gone);
            links.any(|link| has(&link.by, author))
        };
        self.by().iter().filter(is_in_effect).cloned().collect()
    }

    /// Takes note of what a path is that was there all the time.
    pub(super) fn regain(&mut self, state: PathState, n: usize) {
        let last = self.states.last();
        let by = last.map_or_else(Vec::new, |known| known.by.clone());
        let mut link = last.and_then(|known| known.link);
        if let Some(at) = link {
            let known = AuthoredChange {
                after: state.clone(),
                ..self.links[at].clone()
            };
            self.links.push(known);
            link = Some(self.links.len() - 1);
        }
        self.states.push(PastState { state, by, link, n });
    }

    /// Returns who had changed a path that was lost sight of and is the same again.
    fn as_it_was(&self, state: &PathState) -> Option<PastState> {
        let is_lost = |known: &&PastState| known.state == PathState::Unknown;
        self.states.last().filter(is_lost)?;
        let seen = self.states.iter().rev().find(|known| !is_lost(known));
        seen.filter(|known| known.state == *state).cloned()
    }

    /// Returns who changed it, the last of them last.
    pub(super) fn by(&self) -> &[Author] {
        self.states.last().map_or(&[], |known| &known.by)
    }

    /// Returns the changes that led to what is there, the last one first.
    pub(super) fn chain(&self) -> Vec<&AuthoredChange> {
        self.chain_to(self.last_link())
    }

    fn chain_to(&self, last: Option<usize>) -> Vec<&AuthoredChange> {
        let links = std::iter::successors(last, |at| self.links[*at].earlier);
        links.map(|at| &self.links[at]).collect()
    }
}

/// Returns whether somebody is among others, whether or not it was saved meanwhile.
fn has(by: &[Author], author: &Author) -> bool {
    let is_it = |known: &Author| {
        known.who == author.who && known.at == author.at && known.words == author.words
    };
    by.iter().any(is_it)
}
