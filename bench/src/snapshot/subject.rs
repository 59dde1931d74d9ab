//! A tree, stored by Backtrail and by git.

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

/// Younger files are hashed again, whatever their times.
pub(crate) const RACY: Duration = Duration::from_millis(2_100);

/// The large tree and the small one.
#[derive(Debug)]
pub(crate) struct Subjects {
    pub(super) large: Subject,
    pub(super) small: Subject,
}

/// A tree and its stores.
#[derive(Debug)]
pub(crate) struct Subject {
    /// Its name in the table.
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

/// Both sides, with a first state stored.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(super) ours: Ours,
    pub(super) git: Shadow,
}

impl Subjects {
    /// Creates both trees; returns the reason if they cannot be measured.
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

    /// Returns a store with the large tree.
    pub(crate) fn large_store(&self) -> Result<PathBuf> {
        Ok(self.large.kept()?.ours.store.clone())
    }

    /// Returns a store with the small tree, the tree, and its number of files.
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

    /// Returns both sides in their steady state: everything is stored, and nothing is so
    /// recent that it is hashed again.
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

    /// Describes a store for this tree.
    pub(super) fn new_ours(&self, store: &Path) -> Ours {
        Ours::new(&self.bin, store, &self.tree.root)
    }

    /// Creates a repository for this tree.
    pub(super) fn new_shadow(&self, dir: &Path) -> Result<Shadow> {
        Shadow::create(dir, &self.tree.root)
    }

    /// Edits some files and returns which.
    pub(super) fn change(&self, count: usize) -> Result<Vec<Edited>> {
        self.tree.change(&mut self.random.borrow_mut(), count)
    }

    /// Returns what a checkpoint must find.
    pub(super) fn expect(&self, changed: Option<usize>) -> Expected {
        Expected {
            files: self.tree.extent.files,
            changed,
        }
    }

    /// Returns the target for the large or the small tree.
    pub(super) fn pick(&self, large: Goal, small: Goal) -> Goal {
        match self.which {
            Which::Large => large,
            Which::Small => small,
        }
    }

    /// Creates a figure about this tree.
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

    /// Creates a figure about the memory of the process.
    pub(super) fn memory(&self, what: &str, peak: f64) -> Entry {
        let ours = Quantity::single(peak, Unit::Bytes);
        let what = format!("{what}, peak memory");
        self.figure(&what, &ours, None, Goal::AtMost(f64::from(150 << 20)))
    }
}
