//! Snapshots: the content of a workspace at one moment.

mod change;
mod check;
mod codec;
pub(crate) mod common_lines;
mod compare;
mod cursor;
pub(crate) mod damage;
mod diff;
#[cfg(test)]
mod diff_tests;
pub(crate) mod edit;
#[cfg(test)]
mod edit_tests;
pub(crate) mod entry;
mod hunks;
pub(crate) mod merge;
pub(crate) mod name;
pub(crate) mod node;
pub(crate) mod node_cache;
#[cfg(test)]
mod node_tests;
pub(crate) mod patch;
#[cfg(test)]
mod patch_tests;
pub(crate) mod path_finder;
mod renames;
mod repeats;
pub(crate) mod restorable;
pub(crate) mod scan;
pub(crate) mod source;
#[cfg(test)]
mod testing;
pub(crate) mod text;
pub(crate) mod text_change;
mod tree;
#[cfg(test)]
mod tree_tests;
mod walk;

pub use crate::objects::ObjectId;
pub use change::{Change, ChangeKind, FileState};
pub(crate) use check::{Missing, WholeListings, find_missing};
pub(crate) use compare::Difference;
pub use diff::{ChangeCounts, Diff};
pub use entry::{FileKind, SkippedReason, Totals};
pub(crate) use name::shown;
pub use patch::TextDiff;
pub use scan::survey::Amount;
pub use scan::{LargeDir, Progress, ScanProgress, ScanStage, SnapshotLimits, TooMuch};
pub use tree::Snapshot;
pub use walk::{Entries, SkippedEntries, SkippedEntry};
