//! Checking a store, and repairing what is damaged.
//!
//! [`SessionReader::verify`](crate::SessionReader::verify) checks a session and
//! [`Store::verify_snapshots`](crate::Store::verify_snapshots) the workspaces; both only
//! read. [`Store::repair_plan`](crate::Store::repair_plan) and
//! [`Store::repair_snapshots_plan`](crate::Store::repair_snapshots_plan) plan a repair.

pub use crate::log::{RepairPlan, RepairReport, VerifyReport};
pub use crate::workspace::{
    Incomplete, LostState, ObjectDamage, Recaptured, SnapshotsRepair, SnapshotsRepairOptions,
    SnapshotsRepairPlan, SnapshotsReport, VerifyOptions,
};
