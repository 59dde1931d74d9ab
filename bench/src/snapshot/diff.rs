//! The diff of two snapshots with ten changes, in process.

use std::path::Path;

use backtrail::{Snapshot, Store, Workspace};

use super::CHANGES;
use super::subject::{Subject, Subjects};
use crate::Result;
use crate::args::Args;
use crate::measure::{Lane, interleave, time};
use crate::report::{Entry, Goal, Quantity, Unit};

pub(super) fn measure(args: &Args, subjects: &Subjects) -> Result<Vec<Entry>> {
    let large = Compared::make(&subjects.large)?;
    let small = Compared::make(&subjects.small)?;
    let mut in_large = || time(|| large.compare());
    let mut in_small = || time(|| small.compare());
    let mut from_scratch = || time(|| large.open_and_compare());
    let mut small_from_scratch = || time(|| small.open_and_compare());
    let lanes: [Lane<'_>; 4] = [
        &mut in_large,
        &mut in_small,
        &mut from_scratch,
        &mut small_from_scratch,
    ];
    let times = interleave(args.pick(100, 20), lanes)?;
    let [in_large, in_small, from_scratch, small_from_scratch] =
        times.map(|samples| Quantity::best(&samples, Unit::Seconds));
    let than = "in the small tree";
    let (name, opened) = (
        "diff of two snapshots, 10 changes",
        "the same, the store opened for it",
    );
    let most = Goal::AtMost(10e-3);
    let (large, small) = (&subjects.large, &subjects.small);
    Ok(vec![
        large.figure(name, &in_large, Some((than, in_small.clone())), most),
        small.figure(name, &in_small, None, most),
        large.figure(
            opened,
            &from_scratch,
            Some((than, small_from_scratch)),
            Goal::Open,
        ),
    ])
}

/// Two snapshots of one tree.
struct Compared<'a> {
    subject: &'a Subject,
    store: &'a Path,
    before: Snapshot,
    after: Snapshot,
}

impl<'a> Compared<'a> {
    fn make(subject: &'a Subject) -> Result<Self> {
        let kept = subject.kept()?;
        subject.change(CHANGES)?;
        kept.ours.keep(subject.expect(Some(CHANGES)))?;
        kept.git.keep()?;
        let store = kept.ours.store.as_path();
        let [after, before] = last_two(&open(store, &subject.tree.root)?)?;
        Ok(Self {
            subject,
            store,
            before,
            after,
        })
    }

    fn compare(&self) -> Result<()> {
        check(&self.before, &self.after)
    }

    fn open_and_compare(&self) -> Result<()> {
        let [after, before] = last_two(&open(self.store, &self.subject.tree.root)?)?;
        check(&before, &after)
    }
}

fn check(before: &Snapshot, after: &Snapshot) -> Result<()> {
    match before.diff(after)?.changes().len() {
        CHANGES => Ok(()),
        other => Err(format!("{other} changes instead of {CHANGES}").into()),
    }
}

fn open(store: &Path, tree: &Path) -> Result<Workspace> {
    let found = Store::open(store)?.find_workspace(tree)?;
    Ok(found.ok_or("the store does not know the tree")?)
}

/// Returns the newest snapshot and the one before it.
fn last_two(workspace: &Workspace) -> Result<[Snapshot; 2]> {
    let mut checkpoints = workspace.checkpoints_back()?;
    let mut next = || -> Result<Snapshot> {
        let checkpoint = checkpoints.next().ok_or("a checkpoint is missing")??;
        Ok(checkpoint.snapshot()?)
    };
    Ok([next()?, next()?])
}

#[cfg(test)]
mod tests {
    use backtrail::CheckpointOptions;

    use super::*;
    use crate::snapshot::random::Random;
    use crate::snapshot::tree::{Extent, Tree};

    #[test]
    fn two_snapshots_differ_in_as_many_files_as_were_changed() {
        let dir = tempfile::tempdir().unwrap();
        let extent = Extent {
            files: 200,
            dirs: 20,
            bytes: 200_000,
        };
        let tree = Tree::make(&dir.path().join("tree"), extent).unwrap();
        let store = dir.path().join("store");
        let workspace = Store::open_or_create(&store).unwrap();
        let workspace = workspace.workspace(&tree.root).unwrap();
        let keep = || workspace.checkpoint(CheckpointOptions::new()).unwrap();
        assert_eq!(keep().files(), 200);
        tree.change(&mut Random::new(1), CHANGES).unwrap();
        assert_eq!(keep().changed(), CHANGES as u64);
        let [after, before] = last_two(&open(&store, &tree.root).unwrap()).unwrap();
        check(&before, &after).unwrap();
        assert!(check(&after, &after).is_err());
    }
}
