//! Another snapshot of a tree: with no changes, or with ten changed files.

use super::subject::{Subject, Subjects};
use super::{CHANGES, GIT, walk};
use crate::Result;
use crate::args::Args;
use crate::measure::{Samples, interleave_after, time};
use crate::report::{Entry, Goal, Quantity, Unit};

/// What happens between two snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Between {
    Nothing,
    Edits,
}

impl Between {
    fn count(self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Edits => CHANGES,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing changed",
            Self::Edits => "10 files changed",
        }
    }

    /// Returns how many times the bare walk a large tree may take.
    fn goal(self) -> Goal {
        match self {
            Self::Nothing => Goal::CostAtMost(2.0),
            Self::Edits => Goal::CostAtMost(2.4),
        }
    }
}

pub(super) fn measure(args: &Args, subjects: &Subjects, between: Between) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for subject in subjects.each() {
        entries.extend(measure_tree(args, subject, between)?);
    }
    Ok(entries)
}

fn measure_tree(args: &Args, subject: &Subject, between: Between) -> Result<Vec<Entry>> {
    let kept = subject.kept()?;
    let expected = subject.expect(Some(between.count()));
    let mut change = || subject.change(between.count()).map(drop);
    let mut ours = || kept.ours.keep(expected);
    let mut git = || kept.git.keep();
    let mut floor = || time(|| walk::look(&subject.tree.root).map(drop));
    let lanes: [crate::measure::Lane<'_>; 3] = [&mut ours, &mut git, &mut floor];
    let times = interleave_after(args.pick(15, 4), &mut change, lanes)?;
    change()?;
    let peak = kept.ours.peak(expected)?;
    kept.git.keep()?;
    let mut entries = figures(subject, between, &times);
    entries.push(subject.memory(between.name(), peak));
    Ok(entries)
}

fn figures(subject: &Subject, between: Between, times: &[Samples; 3]) -> Vec<Entry> {
    let [ours, git, floor] = times
        .each_ref()
        .map(|samples| Quantity::best(samples, Unit::Seconds));
    let of_git = subject.pick(Goal::CostAtMost(0.6), Goal::CostAtMost(0.8));
    let of_walk = subject.pick(between.goal(), Goal::Open);
    let name = between.name();
    vec![
        subject.figure(name, &ours, Some((GIT, git)), of_git),
        subject.figure(name, &ours, Some(("bare walk, 2 threads", floor)), of_walk),
    ]
}
