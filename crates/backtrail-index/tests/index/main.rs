//! The promises of derived data.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests harm files, and a panic is how they tell"
)]

mod activity;
mod catalogue;
mod damage;
mod kit;
mod known_spending;
mod ledger;
mod processes;
mod random;
