//! Snapshots of a workspace: what was there, all of it, and nothing else.
//!
//! The truth is what `std::fs` reads. A snapshot is written to another directory by a small
//! reader of these tests, and both are compared byte by byte and mode by mode; a diff is
//! compared with two such readings.

#![expect(
    clippy::disallowed_methods,
    reason = "a workspace belongs to the user, who changes it as he likes"
)]

mod capture;
mod change;
pub(crate) mod desk;
mod faults;
mod lives;
mod once;
mod places;
mod relink;
mod repair;
pub(crate) mod tree;
mod truth;
pub(crate) mod world;
