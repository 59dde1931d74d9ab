//! Going back: rewind, restore, undo and redo, for the files of a workspace and the
//! conversation with them, and forks into a directory of their own.
//!
//! Plan, then apply. A plan says what would happen to each path, and who else changed it.
//! Applying it is one step that a crash leaves undone, or for the next command to finish.
//! Whatever is replaced or removed is in the store first, and nothing outside the
//! workspace's root is touched: no link is followed.

#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "tests change a workspace as programs do"
    )
)]

#[cfg(feature = "snapshots")]
mod actions;
#[cfg(feature = "snapshots")]
mod api;
#[cfg(feature = "snapshots")]
mod apply;
#[cfg(feature = "snapshots")]
pub(crate) mod authors;
mod chat;
#[cfg(feature = "snapshots")]
mod choose_parts;
#[cfg(feature = "snapshots")]
mod conflicts;
#[cfg(feature = "snapshots")]
mod damage;
#[cfg(feature = "snapshots")]
mod execution;
#[cfg(feature = "snapshots")]
mod fork_into;
#[cfg(feature = "snapshots")]
mod merge;
#[cfg(feature = "snapshots")]
mod options;
mod outcome;
#[cfg(feature = "snapshots")]
mod path_change;
#[cfg(feature = "snapshots")]
mod path_history;
#[cfg(feature = "snapshots")]
mod plan;
#[cfg(feature = "snapshots")]
mod recover;
#[cfg(feature = "snapshots")]
mod step_finder;
#[cfg(feature = "snapshots")]
mod target;
mod test_hook;

#[cfg(test)]
#[cfg(feature = "snapshots")]
mod actor_tests;
#[cfg(test)]
#[cfg(feature = "snapshots")]
mod capture_tests;
#[cfg(test)]
#[cfg(feature = "snapshots")]
mod crafted_tests;
#[cfg(test)]
#[cfg(feature = "snapshots")]
mod crash_tests;
#[cfg(test)]
#[cfg(feature = "snapshots")]
mod fault_tests;
#[cfg(test)]
#[cfg(feature = "snapshots")]
mod kit_tests;
#[cfg(test)]
#[cfg(feature = "snapshots")]
mod odd_tests;
#[cfg(test)]
#[cfg(feature = "snapshots")]
mod speed_tests;
#[cfg(test)]
#[cfg(feature = "snapshots")]
mod trees_tests;

#[cfg(feature = "snapshots")]
pub use choose_parts::{Choice, Part};
#[cfg(feature = "snapshots")]
pub use fork_into::{ForkCompanion, ForkInto, ForkIntoPlan, ForkedInto};
#[cfg(feature = "snapshots")]
pub use options::Rewind;
#[cfg(feature = "snapshots")]
pub use outcome::TargetPoint;
pub use outcome::{
    ChangedBy, ChatMove, Conflict, Kept, KeptReason, Merge, NotRestored, OnConflict, Outcome,
    Overlap, PathOutcome, PathOutcomeKind, Recovered, Stage, Unfinished, Unmerged, Verb,
};
#[cfg(feature = "snapshots")]
pub use plan::RewindPlan;
pub use test_hook::{Touch, TouchHook};

pub use crate::session::{Ending, Program};
