//! Who changed which paths since a state, as far as it is still in effect.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::thing::Thing;
use super::traced::{Cause, Link, State, Traced};
use super::whose::{Doing, Interval};
use crate::error::{ErrorKind, Result};
use crate::objects::ObjectId;
use crate::snapshot::entry::{FileKind, Node, SkippedReason};
use crate::snapshot::{Difference, Snapshot};

/// What became of the paths that are looked at.
#[derive(Debug, Default)]
pub(super) struct Trace {
    paths: HashMap<PathBuf, Traced>,
    /// What is there now where no snapshot has it.
    stored: BTreeMap<PathBuf, Thing>,
    /// The last state of the workspace that somebody asked for.
    saved: usize,
    /// Where every path is looked at that changed at any time, if anywhere.
    every: Option<Vec<PathBuf>>,
}

impl Trace {
    /// Looks at the paths in which two snapshots differ, from the state that a third
    /// has on.
    pub(super) fn new(
        base: &Snapshot,
        between: [ObjectId; 2],
        differences: &[Difference],
    ) -> Result<Self> {
        let mut trace = Self::default();
        for difference in differences {
            let base = State::of(base.walk_down_to(difference, between)?.as_ref());
            trace
                .paths
                .insert(difference.path.clone(), Traced::new(base));
        }
        Ok(trace)
    }

    /// Takes note of what is there now where no snapshot has it.
    pub(super) fn know(&mut self, stored: &BTreeMap<PathBuf, Thing>) {
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
        let mut by: Vec<Doing> = Vec::new();
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
                    let cause = Cause {
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
        for known in states.filter_map(|traced| traced.states.last_mut()) {
            known.by.iter_mut().for_each(|doing| doing.unsaved = false);
        }
    }

    /// Takes in what differs. `asked` tells that somebody asked for the later state.
    fn take_in(&mut self, found: &[Difference], cause: Cause<'_>, asked: bool) {
        for difference in found {
            let unknown = [&difference.before, &difference.after]
                .into_iter()
                .any(|node| matches!(node, Some(Node::Skipped(_))));
            let was = difference.before.as_ref().and_then(Thing::of);
            let lost = matches!(difference.after, Some(Node::Skipped(_))) && was.is_some();
            if lost && self.stored.get(&difference.path) == was.as_ref() {
                // Only lost sight of: it is over the cap, say, and the same.
                continue;
            }
            self.meet(difference);
            if let Some(traced) = self.paths.get_mut(&difference.path) {
                if !asked && is_regained(difference) {
                    // Stored because it was in the way; it was there all the time.
                    traced.regain(State::of(difference.after.as_ref()), cause.n);
                    continue;
                }
                traced.change(State::of(difference.after.as_ref()), cause);
                if difference.before.is_none() && !cause.by.is_empty() {
                    traced.born_ignored = difference.after.as_ref().map(is_ignored);
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
            let traced = Traced::new(State::of(difference.before.as_ref()));
            self.paths.insert(path.clone(), traced);
        }
    }

    /// Returns all paths that are looked at.
    pub(super) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.paths.keys()
    }

    /// Notes that something above paths was left out, before or after.
    fn lose_sight(&mut self, difference: &Difference, cause: Cause<'_>) {
        let ignored = [&difference.before, &difference.after]
            .into_iter()
            .flatten()
            .any(is_ignored);
        for (path, traced) in &mut self.paths {
            if path.starts_with(&difference.path) && *path != difference.path {
                traced.change(State::Unknown, cause);
                if ignored {
                    traced.born_ignored = Some(true);
                }
            }
        }
    }

    /// Returns who changed a path, the last of them last.
    pub(super) fn by(&self, path: &Path) -> &[Doing] {
        self.paths.get(path).map_or(&[], Traced::by)
    }

    /// Returns the state of a path where everything is counted from.
    pub(super) fn base(&self, path: &Path) -> State {
        let traced = self.paths.get(path);
        traced.map_or(State::Unknown, |traced| traced.base.clone())
    }

    /// Returns the changes that led to what is at a path, the last one first.
    pub(super) fn chain(&self, path: &Path) -> Vec<&Link> {
        self.paths.get(path).map_or_else(Vec::new, Traced::chain)
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
        Err(error) if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::LetGo) => Ok(None),
        Err(error) => Err(error),
    }
}
