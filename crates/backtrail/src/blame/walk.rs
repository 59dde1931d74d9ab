//! Follows the lines of a file back to the states in which they first appeared.
//!
//! The walk goes from newer states to older ones. A line that the state before has as well is
//! followed there, under the name that the file had. What Backtrail restored is followed to the
//! state that it restored, so that lines that came back keep their author. A state that cannot
//! be read is skipped: a line that is new after it came at some time in between.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use super::rename::renamed_from;
use super::states::{States, Version};
use crate::error::{ErrorKind, Result};
use crate::objects::ObjectId;
use crate::snapshot::common_lines::common_lines;
use crate::snapshot::patch::MAX_BYTES;

/// How many earlier versions a line is looked for in, if Backtrail restored it and neither
/// the state before nor the restored one has it.
const MAX_SEARCHED: usize = 200;
/// How many texts are kept in memory.
const KEPT_TEXTS: usize = 4;

/// Where a line comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Source {
    /// The state in which it first appeared.
    pub(super) state: usize,
    /// The last state before that is known.
    pub(super) since: Option<usize>,
    pub(super) kind: SourceKind,
    /// The name that the file had, as a position in `Walk::paths`.
    pub(super) path: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum SourceKind {
    /// It was there when the file was first saved.
    First,
    /// It was written.
    Written,
    /// Backtrail restored it from a state that is not known.
    Restored,
}

/// A line of the file that is blamed, and its number in an earlier version.
#[derive(Debug, Clone, Copy)]
struct FollowedLine {
    line: usize,
    then: usize,
}

/// A version: a state, and a position in `Walk::paths`.
type Place = (usize, usize);

/// The walk.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    states: &'a States,
    /// The names that the file had, the present one first.
    pub(super) paths: Vec<PathBuf>,
    /// For each name, what it was in every state.
    versions: Vec<Vec<Version>>,
    ahead: BTreeMap<Place, Vec<FollowedLine>>,
    /// Where each line comes from.
    sources: Vec<Source>,
    texts: Vec<(ObjectId, Arc<[u8]>)>,
}

impl<'a> Walk<'a> {
    /// Begins at the last state. `versions` are those of the path, `text` is the last one.
    pub(super) fn new(
        states: &'a States,
        path: PathBuf,
        versions: Vec<Version>,
        text: (ObjectId, Arc<[u8]>),
    ) -> Self {
        Self {
            states,
            paths: vec![path],
            versions: vec![versions],
            ahead: BTreeMap::new(),
            sources: Vec::new(),
            texts: vec![text],
        }
    }

    /// Finds where each of `count` lines comes from.
    pub(super) fn run(mut self, count: usize) -> Result<(Vec<Source>, Vec<PathBuf>)> {
        let first = Source {
            state: 0,
            since: None,
            kind: SourceKind::First,
            path: 0,
        };
        self.sources = vec![first; count];
        let lines = (0..count).map(|line| FollowedLine { line, then: line });
        self.ahead.insert((self.states.last, 0), lines.collect());
        while let Some((place, mut lines)) = self.ahead.pop_last() {
            lines.sort_unstable_by_key(|line| line.then);
            self.step(place, lines)?;
        }
        Ok((self.sources, self.paths))
    }

    /// Follows the lines of one version.
    fn step(&mut self, (state, path): Place, lines: Vec<FollowedLine>) -> Result<()> {
        let state = self.first_same((state, path));
        if state == 0 {
            self.settle(lines, SourceKind::First, (None, (state, path)));
            return Ok(());
        }
        if let Some(to) = self.states.restored(state) {
            return self.follow_restored((state, path), to, lines);
        }
        let is_known = |n: &usize| self.version((*n, path)) != Version::Unknown;
        let Some(before) = (0..state).rev().find(is_known) else {
            self.settle(lines, SourceKind::First, (None, (state, path)));
            return Ok(());
        };
        // Backtrail may have restored it in a state that is missing.
        let missing = (before + 1..state).rev();
        let mut restored = missing.filter_map(|n| self.states.restored(n).flatten());
        if let Some(to) = restored.find(|to| self.is_same((*to, path), (state, path))) {
            self.follow_all((to, path), lines);
            return Ok(());
        }
        let rest = self.follow_to_before(before, (state, path), lines)?;
        self.settle(rest, SourceKind::Written, (Some(before), (state, path)));
        Ok(())
    }

    /// Follows lines to a state before, also if the file had another name there. Returns the
    /// lines that are new.
    fn follow_to_before(
        &mut self,
        before: usize,
        (state, path): Place,
        lines: Vec<FollowedLine>,
    ) -> Result<Vec<FollowedLine>> {
        let old = match self.version((before, path)).is_file() {
            true => Some(path),
            false => self.old_name(before, (state, path))?,
        };
        match old {
            Some(old) => self.follow((state, path), (before, old), lines),
            None => Ok(lines),
        }
    }

    /// Follows the lines of a version that Backtrail restored.
    fn follow_restored(
        &mut self,
        place: Place,
        to: Option<usize>,
        lines: Vec<FollowedLine>,
    ) -> Result<()> {
        let (state, path) = place;
        let is_same = |n: &usize| self.is_same((*n, path), place);
        let same = to
            .filter(is_same)
            .or_else(|| (0..state).rev().find(is_same));
        if let Some(same) = same {
            self.follow_all((same, path), lines);
            return Ok(());
        }
        // A merge, or chosen parts: each line comes from one of the sides.
        let mut rest = self.follow_to_before(state - 1, place, lines)?;
        let mut tried = HashSet::new();
        for n in to.into_iter().chain((0..state).rev()) {
            let Version::File { content, .. } = self.version((n, path)) else {
                continue;
            };
            if rest.is_empty() || tried.len() == MAX_SEARCHED {
                break;
            }
            if tried.insert(content) {
                rest = self.follow(place, (n, path), rest)?;
            }
        }
        self.settle(rest, SourceKind::Restored, (None, place));
        Ok(())
    }

    /// Returns the first of the states up to this one in which the file was the same all along.
    fn first_same(&self, (mut state, path): Place) -> usize {
        while state > 0 && self.is_same((state - 1, path), (state, path)) {
            state -= 1;
        }
        state
    }

    fn version(&self, (state, path): Place) -> Version {
        self.versions[path][state]
    }

    fn is_same(&self, one: Place, other: Place) -> bool {
        self.version(one) == self.version(other)
    }

    /// Follows all lines to a version with the same content.
    fn follow_all(&mut self, to: Place, lines: Vec<FollowedLine>) {
        self.ahead.entry(to).or_default().extend(lines);
    }

    /// Follows lines to an earlier version, as far as it has them. Returns the others.
    fn follow(
        &mut self,
        from: Place,
        to: Place,
        lines: Vec<FollowedLine>,
    ) -> Result<Vec<FollowedLine>> {
        let (Some(before), Some(after)) = (self.text(to)?, self.text(from)?) else {
            return Ok(lines);
        };
        let common = common_lines(&before, &after);
        let mut common = common.iter().peekable();
        let (mut known, mut rest) = (Vec::new(), Vec::new());
        for line in lines {
            while common
                .next_if(|run| run.after + run.len <= line.then)
                .is_some()
            {}
            match common.peek().and_then(|run| run.line_before(line.then)) {
                Some(then) => known.push(FollowedLine { then, ..line }),
                None => rest.push(line),
            }
        }
        if !known.is_empty() {
            self.ahead.entry(to).or_default().extend(known);
        }
        Ok(rest)
    }

    fn settle(
        &mut self,
        lines: Vec<FollowedLine>,
        kind: SourceKind,
        (since, (state, path)): (Option<usize>, Place),
    ) {
        for line in lines {
            self.sources[line.line] = Source {
                state,
                since,
                kind,
                path,
            };
        }
    }

    /// Reads a version; `None` if it is too large or damaged.
    fn text(&mut self, (state, path): Place) -> Result<Option<Arc<[u8]>>> {
        let Version::File { content, bytes } = self.version((state, path)) else {
            return Ok(None);
        };
        if bytes > MAX_BYTES {
            return Ok(None);
        }
        if let Some((_, text)) = self.texts.iter().find(|(id, _)| *id == content) {
            return Ok(Some(Arc::clone(text)));
        }
        let text = match self.states.text(state, &self.paths[path], &content) {
            Err(error) if error.kind() == ErrorKind::Corrupt => return Ok(None),
            text => text?,
        };
        if self.texts.len() == KEPT_TEXTS {
            self.texts.remove(0);
        }
        self.texts.push((content, Arc::clone(&text)));
        Ok(Some(text))
    }

    /// Returns the name that a file which is new in a state had before, if it was renamed.
    fn old_name(&mut self, before: usize, (state, path): Place) -> Result<Option<usize>> {
        let found = renamed_from(self.states, (before, state), &self.paths[path])?;
        let Some(old) = found else {
            return Ok(None);
        };
        if let Some(known) = self.paths.iter().position(|path| *path == old) {
            return Ok(Some(known));
        }
        let versions = self.states.versions(&old)?;
        self.paths.push(old);
        self.versions.push(versions);
        let path = self.paths.len() - 1;
        Ok(self.version((before, path)).is_file().then_some(path))
    }
}
