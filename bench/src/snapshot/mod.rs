//! Snapshots of a workspace, compared with git as agents use it and with a bare walk over
//! all files.

mod again;
mod blame;
mod diff;
mod first;
pub(crate) mod git;
mod history;
mod memory;
mod ours;
pub(crate) mod random;
mod rewind;
mod round;
mod size;
mod source;
mod subject;
pub(crate) mod tree;
mod walk;

use again::Between;
pub(crate) use subject::{RACY, Subjects};

use crate::Result;
use crate::args::Args;
use crate::parts::{Part, Shared};
use crate::report::Entry;

/// Git's name in the table.
const GIT: &str = "git add, write-tree";
/// How many files are changed at a time.
const CHANGES: usize = 10;

/// The measured parts, in this order: later ones continue with what earlier ones stored.
pub(crate) const PARTS: [Part; 7] = [
    Part {
        name: "first",
        also: &[],
        measure: |args, dir, shared| {
            with(args, shared, "first snapshot", |subjects| {
                first::measure(args, dir, subjects)
            })
        },
    },
    Part {
        name: "unchanged",
        also: &[],
        measure: |args, _, shared| {
            with(args, shared, "nothing changed", |subjects| {
                again::measure(args, subjects, Between::Nothing)
            })
        },
    },
    Part {
        name: "changed",
        also: &[],
        measure: |args, _, shared| {
            with(args, shared, "10 files changed", |subjects| {
                again::measure(args, subjects, Between::Edits)
            })
        },
    },
    Part {
        name: "diff",
        also: &[],
        measure: |args, _, shared| {
            with(args, shared, "diff of two snapshots", |subjects| {
                diff::measure(args, subjects)
            })
        },
    },
    Part {
        name: "rewind",
        also: &[],
        measure: |args, _, shared| {
            with(args, shared, "rewind", |subjects| {
                rewind::measure(args, subjects)
            })
        },
    },
    Part {
        name: "history",
        also: &[],
        measure: |args, _, shared| {
            with(args, shared, "checkpoints, 10 changes each", |subjects| {
                history::measure(args, subjects)
            })
        },
    },
    Part {
        name: "blame",
        also: &[],
        measure: blame::measure,
    },
];

/// Measures with the trees, or reports the reason why they cannot be measured.
fn with(
    args: &Args,
    shared: &Shared,
    name: &str,
    measure: impl FnOnce(&Subjects) -> Result<Vec<Entry>>,
) -> Result<Vec<Entry>> {
    match shared.subjects(args)? {
        Ok(subjects) => measure(subjects),
        Err(why) => Ok(vec![Entry::skipped(name, why)]),
    }
}
