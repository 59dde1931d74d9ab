//! The look for new sessions before each command that reads them, when there is nothing new.

use std::fs;
use std::path::Path;

use backtrail::Store;
use backtrail_formats::{Environment, ImportOptions, import, import_new};

use super::OTHERS;
use super::agent::Agent;
use crate::Result;
use crate::args::Args;
use crate::measure::{interleave, time};
use crate::parts::{Shared, settle};
use crate::report::{Entry, Figure, Goal, Quantity, Unit};

/// Looks for something new among many known files, against a walk that only asks for their stamps.
pub(super) fn measure(args: &Args, dir: &Path, _shared: &Shared) -> Result<Vec<Entry>> {
    let home = dir.join("home");
    for n in 1..=OTHERS {
        let mut other = Agent::create(&home, n)?;
        (0..20).try_for_each(|_| other.write().map(drop))?;
    }
    let store = Store::open_or_create(dir.join("store"))?;
    let options = ImportOptions::new(Environment::new(&home)).as_history();
    import(&store, &options, &|_| {})?;
    settle(dir)?;
    let look = || {
        let report = import_new(&store, &options, &|| false)?;
        match report.imported + report.left {
            0 => Ok(()),
            _ => Err(format!("something was new: {report:?}").into()),
        }
    };
    let [ours, floor] = interleave(
        args.pick(50, 5),
        [&mut || time(look), &mut || time(|| walk(&home))],
    )?;
    Ok(vec![Entry::Figure(Figure {
        name: format!("nothing new among {OTHERS} known files"),
        ours: Quantity::of(&ours, Unit::Seconds),
        baseline: Some(("a walk with stat", Quantity::of(&floor, Unit::Seconds))),
        goal: Goal::AtMost(0.03),
    })])
}

fn walk(dir: &Path) -> Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if fs::symlink_metadata(&path)?.is_dir() {
            walk(&path)?;
        }
    }
    Ok(())
}
