//! Forking a moment into a new directory, compared with copying the directory.

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::process::{backtrail, run};
use crate::Result;
use crate::args::Args;
use crate::command::{self, run_quietly};
use crate::measure::{Lane, interleave};
use crate::parts::{Shared, settle};
use crate::report::{Entry, Figure, Goal, Quantity, Unit};

pub(super) fn measure(args: &Args, dir: &Path, shared: &Shared) -> Result<Vec<Entry>> {
    let bin = match command::find(args) {
        Ok(bin) => bin,
        Err(why) => return Ok(vec![Entry::skipped("fork", &why)]),
    };
    let subjects = match shared.subjects(args)? {
        Ok(subjects) => subjects,
        Err(why) => return Ok(vec![Entry::skipped("fork", why)]),
    };
    let (store, tree, files) = subjects.small_kept()?;
    let round = Cell::new(0);
    let fresh = |name: &str| {
        round.set(round.get() + 1);
        dir.join(format!("{name}-{}", round.get()))
    };
    let mut ours = || {
        let into = fresh("fork");
        settle(dir)?;
        let mut command = backtrail(&bin, &store, &["fork", "last", "--into"]);
        let ran = run(command.arg(&into).arg("--workspace").arg(&tree))?;
        check(&into, files)?;
        Ok(ran.took)
    };
    let mut theirs = || {
        let into = fresh("copy");
        settle(dir)?;
        let took = run_quietly(Command::new("cp").arg("-r").arg(&tree).arg(&into))?;
        fs::remove_dir_all(&into)?;
        Ok(took)
    };
    let lanes: [Lane<'_>; 2] = [&mut ours, &mut theirs];
    let [ours, theirs] = interleave(args.pick(7, 3), lanes)?;
    let seconds = |samples| Quantity::of(samples, Unit::Seconds);
    Ok(vec![Entry::Figure(Figure {
        name: format!("fork --into of {files} files"),
        ours: seconds(&ours),
        baseline: Some(("cp -r", seconds(&theirs))),
        goal: Goal::CostAtMost(1.5),
    })])
}

/// Rejects a directory that lacks files.
fn check(dir: &Path, files: usize) -> Result<()> {
    let mut found = 0;
    let mut left = vec![dir.to_owned()];
    while let Some(at) = left.pop() {
        for entry in fs::read_dir(&at)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => left.push(entry.path()),
                false => found += 1,
            }
        }
    }
    match found == files {
        true => Ok(()),
        false => Err(format!("{found} files where {files} should be").into()),
    }
}
