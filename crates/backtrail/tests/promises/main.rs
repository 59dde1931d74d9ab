//! The engine's promises, one module each.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod basics;
mod concurrency;
mod faults;
mod kit;
mod power;
