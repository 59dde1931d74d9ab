//! The first snapshot of a tree: its time and its size on disk.

use std::cell::RefCell;
use std::fs;
use std::path::Path;

use super::git::Shadow;
use super::subject::{Subject, Subjects};
use super::{GIT, size, walk};
use crate::Result;
use crate::args::Args;
use crate::measure::{interleave, time};
use crate::parts::settle;
use crate::report::{Entry, Goal, Quantity, Unit};

pub(super) fn measure(args: &Args, dir: &Path, subjects: &Subjects) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for subject in subjects.each() {
        entries.extend(measure_tree(args, dir, subject)?);
    }
    Ok(entries)
}

fn measure_tree(args: &Args, dir: &Path, subject: &Subject) -> Result<Vec<Entry>> {
    let ours = subject.new_ours(&dir.join("store"));
    let shadow_dir = dir.join("shadow");
    let shadow: RefCell<Option<Shadow>> = RefCell::new(None);
    let root = &subject.tree.root;
    let mut keep = || {
        ours.forget()?;
        settle(dir)?;
        ours.keep(subject.expect(None))
    };
    let mut git = || {
        if shadow_dir.exists() {
            fs::remove_dir_all(&shadow_dir)?;
        }
        let made = subject.new_shadow(&shadow_dir)?;
        settle(dir)?;
        let took = made.keep()?;
        shadow.replace(Some(made));
        Ok(took)
    };
    let mut floor = || time(|| walk::hash(root).map(drop));
    let rounds = args.pick(3, 2);
    let [took, by_git, floor] = interleave(rounds, [&mut keep, &mut git, &mut floor])?;
    let seconds = |samples| Quantity::best(samples, Unit::Seconds);
    let floor = ("read + BLAKE3, 2 threads", seconds(&floor));
    let theirs = shadow.borrow().as_ref().map(Shadow::size);
    let theirs = theirs.ok_or("git kept nothing")??;
    let name = "first snapshot";
    let mut entries = vec![
        subject.figure(
            name,
            &seconds(&took),
            Some((GIT, seconds(&by_git))),
            Goal::SpeedAtLeast(3.0),
        ),
        subject.figure(name, &seconds(&took), Some(floor), Goal::Open),
    ];
    entries.extend(on_disk(subject, ours.size()?, theirs));
    ours.forget()?;
    entries.push(subject.memory(name, ours.peak(subject.expect(None))?));
    ours.forget()?;
    fs::remove_dir_all(&shadow_dir)?;
    Ok(entries)
}

/// Compares the stored files by length and by disk usage: one file per object takes whole
/// blocks.
fn on_disk(subject: &Subject, ours: size::Size, theirs: size::Size) -> [Entry; 2] {
    let bytes = |n: u64| Quantity::single(n as f64, Unit::Bytes);
    [
        subject.figure(
            "first snapshot, lengths of the files stored",
            &bytes(ours.bytes),
            Some(("git's objects", bytes(theirs.bytes))),
            Goal::CostAtMost(0.65),
        ),
        subject.figure(
            "first snapshot, blocks on disk",
            &bytes(ours.on_disk),
            Some(("git's objects", bytes(theirs.on_disk))),
            Goal::CostAtMost(0.65),
        ),
    ]
}
