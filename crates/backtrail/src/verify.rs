//! Checking a store, and repairing what is damaged.
//!
//! [`SessionReader::verify`](crate::SessionReader::verify) checks a session and
//! [`Store::verify_snapshots`](crate::Store::verify_snapshots) the workspaces; both only
//! read. [`Store::repair_plan`](crate::Store::repair_plan) and
//! [`Store::repair_snapshots_plan`](crate::Store::repair_snapshots_plan) plan a repair.

pub use crate::log::{GapReason, HistoryGap, RepairPlan, RepairReport, SetAside, VerifyReport};
pub use crate::trail::{Damage, DamageReport, Sums};
#[cfg(feature = "snapshots")]
pub use crate::workspace::repair::{
    Recaptured, SnapshotsRepair, SnapshotsRepairOptions, SnapshotsRepairPlan,
};
#[cfg(feature = "snapshots")]
pub use crate::workspace::verify::{
    Incomplete, LostState, ObjectDamage, SnapshotsReport, VerifyOptions,
};
