//! Snapshots of a workspace: what was there, all of it, and nothing else.
//!
//! The truth is what `std::fs` says. A snapshot is written out into another
//! directory by a small reader of these tests, and both are compared byte by
//! byte, mode by mode; what a diff says is compared with two such readings.

#![expect(
    clippy::disallowed_methods,
    reason = "a workspace belongs to the user, who changes it as he likes"
)]

mod capture;
mod change;
pub(crate) mod desk;
mod faults;
mod lives;
mod mending;
mod once;
mod places;
mod relink;
pub(crate) mod tree;
mod truth;
pub(crate) mod world;
