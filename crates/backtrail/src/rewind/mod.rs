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

mod actions;
mod api;
mod apply;
mod authors;
mod conflicts;
mod execution;
mod fork_into;
mod merge;
mod options;
mod outcome;
mod parts;
mod path_change;
mod path_history;
mod plan;
mod recover;
mod steps;
mod target;

#[cfg(test)]
mod actor_tests;
#[cfg(test)]
mod capture_tests;
#[cfg(test)]
mod crafted_tests;
#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod kit_tests;
#[cfg(test)]
mod odd_tests;
#[cfg(test)]
mod speed_tests;
#[cfg(test)]
mod trees_tests;

pub use apply::{Touch, TouchHook};
pub use fork_into::{ForkInto, ForkIntoPlan, ForkedInto};
pub use options::{OnConflict, Rewind};
pub use outcome::{
    ChangedBy, ChatMove, Conflict, Kept, KeptReason, Merge, NotRestored, Outcome, Overlap,
    PathOutcome, PathOutcomeKind, Recovered, Stage, TargetPoint, Unmerged, Verb,
};
pub use parts::{Choice, Part};
pub use plan::RewindPlan;
