//! Copies of agents' sessions that end at a record: what is in them, and what an import makes of
//! them.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test may panic, and its files are its own"
)]

mod forks;
mod properties;
mod samples;
mod sessions;
