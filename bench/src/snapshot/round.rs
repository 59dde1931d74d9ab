//! One round of going back: a state, the edits that lead away from it, and both sides
//! that stored it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::subject::{Kept, Subject};
use super::tree::Edited;
use super::walk::{self, Found};
use crate::Result;
use crate::measure::time;
use crate::parts::settle;

/// The suffix of a new file that waits beside its path.
const BESIDE: &str = ".beside";

/// A state and the edits since then, both stored by both sides. Each way back ends where
/// it began.
pub(super) struct Round<'a> {
    subject: &'a Subject,
    kept: &'a Kept,
    edits: Vec<Edited>,
    /// The checkpoint before the edits.
    point: String,
    /// Git's trees before and after the edits.
    trees: [String; 2],
    /// What a walk finds before and after the edits.
    found: [Found; 2],
}

/// Whether files are as before or as after the edits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Before,
    After,
}

/// Whether plain writes are synced like Backtrail's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plain {
    Unsynced,
    /// All new files before the first is renamed, and all directories after the last.
    Synced,
}

impl<'a> Round<'a> {
    /// Stores the state, edits this many files, and stores that.
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

    /// Goes back by a rewind and returns the time it took.
    pub(super) fn rewind(&self) -> Result<Duration> {
        self.ready()?;
        let took = self.kept.ours.rewind(&self.point, self.edits.len())?;
        self.check(State::Before)?;
        self.kept.ours.undo(self.edits.len())?;
        Ok(took)
    }

    /// Goes back by a rewind, undoes that, and returns the time of the undo.
    pub(super) fn undo(&self) -> Result<Duration> {
        self.ready()?;
        self.kept.ours.rewind(&self.point, self.edits.len())?;
        settle(&self.subject.tree.root)?;
        let took = self.kept.ours.undo(self.edits.len())?;
        self.check(State::After)?;
        Ok(took)
    }

    /// Goes back with git and returns the time it took.
    pub(super) fn read_tree(&self) -> Result<Duration> {
        self.ready()?;
        let [before, after] = &self.trees;
        let took = self.kept.git.go(after, before)?;
        self.check(State::Before)?;
        self.kept.git.go(before, after)?;
        Ok(took)
    }

    /// Walks over everything and returns the time it took.
    pub(super) fn walk(&self) -> Result<Duration> {
        time(|| walk::look(&self.subject.tree.root).map(drop))
    }

    /// Rewrites the edited files as any program could and returns the time it took.
    pub(super) fn write(&self, plain: Plain) -> Result<Duration> {
        self.ready()?;
        let root = self.subject.tree.root.as_path();
        let took = time(|| replace(&self.edits, root, plain))?;
        self.check(State::After)?;
        Ok(took)
    }

    /// Lets both sides know the files as they are, and leaves nothing for the next sync
    /// to write.
    fn ready(&self) -> Result<()> {
        self.check(State::After)?;
        self.kept.ours.keep(self.subject.expect(Some(0)))?;
        self.kept.git.refresh()?;
        settle(&self.subject.tree.root)
    }

    /// Checks that all edited files are in a state, and that nothing was added or
    /// removed.
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

/// Writes each file beside its path and renames it.
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
