//! What is measured: a tree, kept by us and by git.

use std::cell::{OnceCell, RefCell};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::git::{self, Shadow};
use super::ours::{self, Expected, Ours};
use super::random::Random;
use super::tree::{Edited, Extent, Tree};
use crate::Result;
use crate::args::Args;
use crate::command;
use crate::parts::settle;
use crate::report::{Entry, Figure, Goal, Quantity, Unit};

/// Files younger than this are hashed again, whatever their times say.
const RACY: Duration = Duration::from_millis(2_100);

/// The large tree and the small one.
#[derive(Debug)]
pub(crate) struct Subjects {
    pub(super) large: Subject,
    pub(super) small: Subject,
}

/// A tree, and those who keep it.
#[derive(Debug)]
pub(crate) struct Subject {
    /// What it is called in the table.
    pub(super) name: String,
    pub(super) which: Which,
    pub(super) tree: Tree,
    dir: PathBuf,
    bin: PathBuf,
    random: RefCell<Random>,
    kept: OnceCell<Kept>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    Large,
    Small,
}

/// Both sides, with a first state kept.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(super) ours: Ours,
    pub(super) git: Shadow,
}

impl Subjects {
    /// Makes both trees; says why they cannot be measured.
    pub(crate) fn make(args: &Args, dir: &Path) -> Result<Result<Self, String>> {
        let found = git::version().and_then(|_| ours::find(args));
        let bin = match found {
            Ok(bin) => bin,
            Err(why) => return Ok(Err(why)),
        };
        command::announce(&bin);
        std::fs::create_dir(dir)?;
        let make = |which| Subject::make(which, args, dir, &bin);
        let subjects = Self {
            large: make(Which::Large)?,
            small: make(Which::Small)?,
        };
        settle(dir)?;
        std::thread::sleep(RACY);
        Ok(Ok(subjects))
    }

    /// Returns a store that keeps the large tree.
    pub(crate) fn large_store(&self) -> Result<PathBuf> {
        Ok(self.large.kept()?.ours.store.clone())
    }

    /// Returns a store that keeps the small tree, the tree, and how many files it has.
    pub(crate) fn small_kept(&self) -> Result<(PathBuf, PathBuf, usize)> {
        let tree = &self.small.tree;
        let store = self.small.kept()?.ours.store.clone();
        Ok((store, tree.root.clone(), tree.extent.files))
    }

    pub(super) fn each(&self) -> [&Subject; 2] {
        [&self.large, &self.small]
    }
}

impl Which {
    fn extent(self, args: &Args) -> Extent {
        let files = match self {
            Self::Large => args.pick(60_000, 6_000),
            Self::Small => args.pick(6_000, 600),
        };
        Extent {
            files,
            dirs: files / 12,
            bytes: files as u64 * 10_000,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Large => "large",
            Self::Small => "small",
        }
    }
}

impl Subject {
    fn make(which: Which, args: &Args, dir: &Path, bin: &Path) -> Result<Self> {
        let dir = dir.join(which.name());
        std::fs::create_dir(&dir)?;
        let tree = Tree::make(&dir.join("tree"), which.extent(args))?;
        Ok(Self {
            name: format!("{} files", tree.extent.files),
            which,
            tree,
            dir,
            bin: bin.to_owned(),
            random: RefCell::new(Random::new(0)),
            kept: OnceCell::new(),
        })
    }

    /// Returns both sides in their steady state: everything is kept, and nothing
    /// is so young that it is hashed again.
    pub(super) fn kept(&self) -> Result<&Kept> {
        if self.kept.get().is_none() {
            let kept = Kept {
                ours: self.new_ours(&self.dir.join("store")),
                git: self.new_shadow(&self.dir.join("shadow"))?,
            };
            kept.ours.keep(self.expect(None))?;
            kept.git.keep()?;
            drop(self.kept.set(kept));
        }
        let kept = self.kept.get().ok_or("nothing is kept")?;
        std::thread::sleep(RACY);
        kept.ours.keep(self.expect(None))?;
        kept.git.keep()?;
        settle(&self.dir)?;
        Ok(kept)
    }

    /// Names a store for this tree.
    pub(super) fn new_ours(&self, store: &Path) -> Ours {
        Ours::new(&self.bin, store, &self.tree.root)
    }

    /// Makes a repository for this tree.
    pub(super) fn new_shadow(&self, dir: &Path) -> Result<Shadow> {
        Shadow::create(dir, &self.tree.root)
    }

    /// Edits some files; returns which.
    pub(super) fn change(&self, count: usize) -> Result<Vec<Edited>> {
        self.tree.change(&mut self.random.borrow_mut(), count)
    }

    /// Says what a checkpoint must come by.
    pub(super) fn expect(&self, changed: Option<usize>) -> Expected {
        Expected {
            files: self.tree.extent.files,
            changed,
        }
    }

    /// Returns the target of the large tree for it, and the small one's for that.
    pub(super) fn pick(&self, large: Goal, small: Goal) -> Goal {
        match self.which {
            Which::Large => large,
            Which::Small => small,
        }
    }

    /// Tells a figure about this tree.
    pub(super) fn figure(
        &self,
        what: &str,
        ours: &Quantity,
        baseline: Option<(&'static str, Quantity)>,
        goal: Goal,
    ) -> Entry {
        Entry::Figure(Figure {
            name: format!("{}: {what}", self.name),
            ours: ours.clone(),
            baseline,
            goal,
        })
    }

    /// Tells how much memory our process took.
    pub(super) fn memory(&self, what: &str, peak: f64) -> Entry {
        let ours = Quantity::single(peak, Unit::Bytes);
        let what = format!("{what}, peak memory");
        self.figure(&what, &ours, None, Goal::AtMost(f64::from(150 << 20)))
    }
}
