//! Taking the files of a workspace back, and the conversation with them.
//!
//! Plan, then act. A plan says what would become of each path, and who else changed
//! it; acting is one step that a crash leaves undone or carried forward by whoever
//! comes next. What is replaced or removed is in the store first, and nothing is
//! reached but beneath the workspace's root, through no link.

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
#[expect(
    clippy::disallowed_methods,
    reason = "tests change a workspace as programs do"
)]
mod actor_tests;
#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests change a workspace as programs do"
)]
mod capture_tests;
#[cfg(test)]
mod crash_tests;

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests change a workspace as programs do"
)]
mod crafted_tests;
#[cfg(test)]
mod fault_tests;
#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests change a workspace as programs do"
)]
mod kit_tests;
#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests change a workspace as programs do"
)]
mod odd_tests;
#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests change a workspace as programs do"
)]
mod speed_tests;
#[cfg(test)]
mod trees_tests;

pub use apply::{Touch, TouchHook};
pub use fork_into::{ForkInto, ForkIntoPlan, ForkedInto};
pub use options::{OnConflict, Rewind};
pub use outcome::{
    Attempt, ChangedBy, ChatMove, Conflict, Kept, KeptBecause, Merge, NotRestored, Overlap,
    PlannedChange, PlannedKind, Recovered, RewindPlan, RewindReport, Unmerged, Verb,
};
pub use parts::{Choice, Part};
