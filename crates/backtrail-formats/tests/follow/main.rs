//! What following promises: a record in the store soon after its write, what a later import
//! would make, nothing twice and nothing lost, whatever happens to the files.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test may panic, and its files are its own"
)]

mod agents;
mod hostile;
mod kit;
mod promises;
