//! Taking the files of a workspace back, and the conversation with them.
//!
//! Plan, then act. A plan says what would become of each path, and who else changed
//! it; acting is one step that a crash leaves undone or carried forward by whoever
//! comes next. What is replaced or removed is in the store first, and nothing is
//! reached but beneath the workspace's root, through no link.

mod act;
mod api;
pub(crate) mod capture;
mod decide;
mod draft;
mod execute;
mod fork;
mod goal;
mod judge;
mod merge;
mod options;
mod parts;
mod plan;
mod recover;
mod steps;
mod thing;
mod trace;
mod traced;
mod whose;

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

pub use act::{Touch, TouchHook};
pub(crate) use capture::capture;
pub use fork::{ForkInto, ForkIntoPlan, ForkedInto};
pub use options::{OnConflict, Rewind};
pub use parts::{Choice, Part};
pub use plan::{
    Attempt, ChangedBy, ChatMove, Conflict, Kept, KeptBecause, Merge, NotRestored, Overlap,
    PlannedChange, PlannedKind, Recovered, RewindPlan, RewindReport, Unmerged, Verb,
};
