//! What import promises, with a format made for it: nothing is lost and nothing is imported
//! twice, in whatever order files come, grow, are rewritten or truncated.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test may panic, and its files are its own"
)]

mod agents;
mod database;
mod garbage;
mod hand_over;
mod new;
mod promises;
mod random;
mod toy;
