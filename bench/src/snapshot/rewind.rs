//! Rewinding files: Backtrail, git, and the least it can cost.

use std::cell::RefCell;

use super::round::{Plain, Round};
use super::subject::{Subject, Subjects};
use crate::Result;
use crate::args::Args;
use crate::measure::{Lane, Samples, interleave_after};
use crate::report::{Entry, Goal, Quantity, Unit};

/// Git's name in the table.
const GIT: &str = "git read-tree -m -u";
/// A file system in memory.
const IN_MEMORY: &str = "/dev/shm";

/// Where the files are, which determines what syncs cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Medium {
    Disk,
    /// Syncs cost nothing there.
    Memory,
}

/// A measured case: this many files in one tree.
struct Case<'a> {
    subject: &'a Subject,
    medium: Medium,
    count: usize,
    /// The target relative to git's time.
    goal: Goal,
}

/// The times of each side.
struct Times {
    ours: Samples,
    undo: Samples,
    git: Samples,
    walk: Samples,
    plain: Samples,
}

pub(super) fn measure(args: &Args, subjects: &Subjects) -> Result<Vec<Entry>> {
    let many = args.pick(1_000, 100);
    let mut entries = Vec::new();
    for subject in subjects.each() {
        let few = subject.pick(Goal::CostAtMost(0.5), Goal::CostAtMost(0.8));
        for (count, goal) in [(super::CHANGES, few), (many, Goal::CostAtMost(1.0))] {
            let case = Case {
                subject,
                medium: Medium::Disk,
                count,
                goal,
            };
            entries.extend(case.measure(args)?);
        }
    }
    entries.extend(in_memory(args, many).unwrap_or_else(|error| {
        eprintln!("error: rewind in memory: {error}");
        vec![Entry::Failed {
            name: "rewind in memory".to_owned(),
            why: error.to_string(),
        }]
    }));
    Ok(entries)
}

/// Measures the same where syncs cost nothing: trees, store and repository.
fn in_memory(args: &Args, count: usize) -> Result<Vec<Entry>> {
    let name = "rewind in memory";
    let dir = match tempfile::tempdir_in(IN_MEMORY) {
        Ok(dir) => dir,
        Err(error) => {
            let why = format!("cannot write to {IN_MEMORY}: {error}");
            return Ok(vec![Entry::skipped(name, &why)]);
        }
    };
    let subjects = match Subjects::make(args, &dir.path().join("trees"))? {
        Ok(subjects) => subjects,
        Err(why) => return Ok(vec![Entry::skipped(name, &why)]),
    };
    let mut entries = Vec::new();
    for subject in subjects.each() {
        let case = Case {
            subject,
            medium: Medium::Memory,
            count,
            goal: Goal::CostAtMost(0.5),
        };
        entries.extend(case.measure(args)?);
    }
    Ok(entries)
}

impl Case<'_> {
    fn measure(&self, args: &Args) -> Result<Vec<Entry>> {
        let rounds = args.pick(9, 3);
        Ok(self.figures(&self.times(rounds)?))
    }

    fn times(&self, rounds: usize) -> Result<Times> {
        let kept = self.subject.kept()?;
        let round = RefCell::new(Round::begin(self.subject, kept, self.count)?);
        let mut next = || {
            round.replace(Round::begin(self.subject, kept, self.count)?);
            Ok(())
        };
        let mut ours = || round.borrow().rewind();
        let mut undo = || round.borrow().undo();
        let mut git = || round.borrow().read_tree();
        let mut walk = || round.borrow().walk();
        let mut plain = || round.borrow().write(self.medium.plain());
        let lanes: [Lane<'_>; 5] = [&mut ours, &mut undo, &mut git, &mut walk, &mut plain];
        let [ours, undo, git, walk, plain] = interleave_after(rounds, &mut next, lanes)?;
        Ok(Times {
            ours,
            undo,
            git,
            walk,
            plain,
        })
    }

    fn figures(&self, times: &Times) -> Vec<Entry> {
        let seconds = |samples| Quantity::of(samples, Unit::Seconds);
        let (count, medium) = (self.count, self.medium.name());
        let name = format!("rewind of {count} files{medium}");
        let undone = format!("undo of that{medium}");
        let ours = seconds(&times.ours);
        let against = |what, samples, goal| {
            let baseline = Some((what, seconds(samples)));
            self.subject.figure(&name, &ours, baseline, goal)
        };
        let rewind = Some(("the rewind", ours.clone()));
        let most = Goal::CostAtMost(1.2);
        let undo = seconds(&times.undo);
        vec![
            against(GIT, &times.git, self.goal),
            against("bare walk, 2 threads", &times.walk, Goal::Open),
            against(self.medium.plain().name(), &times.plain, Goal::Open),
            self.subject.figure(&undone, &undo, rewind, most),
        ]
    }
}

impl Medium {
    fn name(self) -> &'static str {
        match self {
            Self::Disk => "",
            Self::Memory => ", in memory",
        }
    }

    fn plain(self) -> Plain {
        match self {
            Self::Disk => Plain::Synced,
            Self::Memory => Plain::Unsynced,
        }
    }
}

impl Plain {
    fn name(self) -> &'static str {
        match self {
            Self::Unsynced => "write + rename",
            Self::Synced => "write + rename, 2 syncfs",
        }
    }
}
