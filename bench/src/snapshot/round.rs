//! One round of going back: a state, the edits that lead away from it, and both
//! sides that know the way.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::subject::{Kept, Subject};
use super::tree::Edited;
use super::walk::{self, Found};
use crate::Result;
use crate::measure::time;
use crate::parts::settle;

/// What is behind a path while a new file waits beside it.
const BESIDE: &str = ".beside";

/// A state that both sides know, and what was edited since, which they know too.
/// Each way back ends where it began.
pub(super) struct Round<'a> {
    subject: &'a Subject,
    kept: &'a Kept,
    edits: Vec<Edited>,
    /// Our checkpoint of the state before the edits.
    point: String,
    /// Git's trees before the edits and after them.
    trees: [String; 2],
    /// What a walk comes by before the edits and after them.
    found: [Found; 2],
}

/// Whether files are as they were before the edits, or after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Before,
    After,
}

/// Whether plain writes are synced as ours are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plain {
    Unsynced,
    /// All new files before the first is put in its place, and all places after
    /// the last.
    Synced,
}

impl<'a> Round<'a> {
    /// Keeps the state as it is, edits so many files, and keeps that.
    pub(super) fn begin(subject: &'a Subject, kept: &'a Kept, count: usize) -> Result<Self> {
        let before = kept.git.keep_tree()?;
        let point = kept.ours.mark(subject.expect(None))?;
        let found = walk::look(&subject.tree.root)?;
        let edits = subject.change(count)?;
        kept.ours.keep(subject.expect(Some(count)))?;
        let after = kept.git.keep_tree()?;
        Ok(Self {
            subject,
            kept,
            edits,
            point,
            trees: [before, after],
            found: [found, walk::look(&subject.tree.root)?],
        })
    }

    /// Goes back by our rewind; returns what that took.
    pub(super) fn rewind(&self) -> Result<Duration> {
        self.ready()?;
        let took = self.kept.ours.rewind(&self.point, self.edits.len())?;
        self.check(State::Before)?;
        self.kept.ours.undo(self.edits.len())?;
        Ok(took)
    }

    /// Goes back by our rewind, and takes that back; returns what the latter took.
    pub(super) fn undo(&self) -> Result<Duration> {
        self.ready()?;
        self.kept.ours.rewind(&self.point, self.edits.len())?;
        settle(&self.subject.tree.root)?;
        let took = self.kept.ours.undo(self.edits.len())?;
        self.check(State::After)?;
        Ok(took)
    }

    /// Goes back by git; returns what that took.
    pub(super) fn read_tree(&self) -> Result<Duration> {
        self.ready()?;
        let [before, after] = &self.trees;
        let took = self.kept.git.go(after, before)?;
        self.check(State::Before)?;
        self.kept.git.go(before, after)?;
        Ok(took)
    }

    /// Looks at everything; returns what that took.
    pub(super) fn walk(&self) -> Result<Duration> {
        time(|| walk::look(&self.subject.tree.root).map(drop))
    }

    /// Writes the edited files anew as any program could; returns what that took.
    pub(super) fn write(&self, plain: Plain) -> Result<Duration> {
        self.ready()?;
        let root = self.subject.tree.root.as_path();
        let took = time(|| replace(&self.edits, root, plain))?;
        self.check(State::After)?;
        Ok(took)
    }

    /// Lets both sides know the files as they lie there, whoever wrote them last,
    /// and leaves nothing for the next sync to write.
    fn ready(&self) -> Result<()> {
        self.check(State::After)?;
        self.kept.ours.keep(self.subject.expect(Some(0)))?;
        self.kept.git.refresh()?;
        settle(&self.subject.tree.root)
    }

    /// Finds out whether all edited files are in a state, and nothing came or went.
    pub(super) fn check(&self, state: State) -> Result<()> {
        let which = usize::from(state == State::After);
        for edited in &self.edits {
            let expected = [&edited.before, &edited.after][which];
            if fs::read(&edited.path)? != *expected {
                return Err(format!("{} is not {state:?}", edited.path.display()).into());
            }
        }
        match walk::look(&self.subject.tree.root)? {
            found if found == self.found[which] => Ok(()),
            found => Err(format!("{found:?} instead of {:?}", self.found[which]).into()),
        }
    }
}

/// Writes each file beside its place, and renames it there.
fn replace(edits: &[Edited], root: &Path, plain: Plain) -> Result<()> {
    let sync = || match plain {
        Plain::Unsynced => Ok(()),
        Plain::Synced => settle(root),
    };
    for edited in edits {
        fs::write(beside(&edited.path), &edited.after)?;
    }
    sync()?;
    for edited in edits {
        fs::rename(beside(&edited.path), &edited.path)?;
    }
    sync()
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(BESIDE);
    name.into()
}
