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
enum State {
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
    fn check(&self, state: State) -> Result<()> {
        let [before, after] = &self.found;
        let expected = match state {
            State::Before => before,
            State::After => after,
        };
        check(&self.edits, state, &self.subject.tree.root, expected)
    }
}

fn check(edits: &[Edited], state: State, root: &Path, expected: &Found) -> Result<()> {
    for edited in edits {
        let content = match state {
            State::Before => &edited.before,
            State::After => &edited.after,
        };
        if fs::read(&edited.path)? != *content {
            let path = edited.path.display();
            return Err(format!("{path} is not what it was {state:?} the edits").into());
        }
    }
    match walk::look(root)? {
        found if found == *expected => Ok(()),
        found => Err(format!("{found:?} instead of {expected:?}").into()),
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

#[cfg(test)]
mod tests {
    use super::super::random::Random;
    use super::super::tree::{Extent, Tree};
    use super::*;

    const SMALL: Extent = Extent {
        files: 200,
        dirs: 20,
        bytes: 200_000,
    };

    #[test]
    fn a_tree_that_did_not_go_all_the_way_back_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let tree = Tree::make(&dir.path().join("tree"), SMALL).unwrap();
        let before = walk::look(&tree.root).unwrap();
        let edits = tree.change(&mut Random::new(1), 10).unwrap();
        let after = walk::look(&tree.root).unwrap();
        let check = |state, found| check(&edits, state, &tree.root, found).is_ok();
        assert!(check(State::After, &after));
        assert!(!check(State::Before, &before));
        for edited in &edits[1..] {
            fs::write(&edited.path, &edited.before).unwrap();
        }
        assert!(!check(State::Before, &before));
        fs::write(&edits[0].path, &edits[0].before).unwrap();
        assert!(check(State::Before, &before));
        fs::write(tree.root.join("more"), "").unwrap();
        assert!(!check(State::Before, &before));
    }

    #[test]
    fn plain_writes_put_the_same_into_new_files_and_leave_nothing_beside() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let tree = Tree::make(&dir.path().join("tree"), SMALL).unwrap();
        let edits = tree.change(&mut Random::new(1), 10).unwrap();
        let after = walk::look(&tree.root).unwrap();
        let inode = || fs::metadata(&edits[0].path).unwrap().ino();
        for plain in [Plain::Unsynced, Plain::Synced] {
            let was = inode();
            replace(&edits, &tree.root, plain).unwrap();
            assert_ne!(inode(), was);
            check(&edits, State::After, &tree.root, &after).unwrap();
        }
    }
}
