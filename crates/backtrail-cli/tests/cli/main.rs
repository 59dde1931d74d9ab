//! The command's promises, proven on the real program.

#![expect(
    clippy::disallowed_methods,
    reason = "tests look at files from outside, and damage them"
)]
#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod copy;
mod disk;
mod follow;
mod house;
mod kill;
mod kit;
mod processes;
mod record;
mod words;
