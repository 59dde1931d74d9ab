//! A replica in memory, one that fails on command, and what every replica promises.
//!
//! - [`MemoryReplica`] is the model: it does what `backtrail::replica` says, one request after
//!   another, by a clock that the test sets.
//! - [`Unreliable`] wraps any replica and loses requests, answers and blobs, by a seed.
//! - [`promises`] are the sentences of the contract as functions over any replica. The tests of an
//!   implementation call [`promises::all`], or make a test of each of [`promises::PROMISES`].

mod memory;
pub mod promises;
mod unreliable;

#[cfg(test)]
mod replica_tests;

pub use memory::MemoryReplica;
pub use unreliable::{Mishaps, Unreliable};
