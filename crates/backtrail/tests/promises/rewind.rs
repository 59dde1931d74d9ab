//! Taking files and conversation back: exactly, in one step, and never at anybody
//! else's expense.
//!
//! The truth is what `std::fs` says, and a plain model that every test keeps for
//! itself. `BACKTRAIL_TEST_LIVES` multiplies the heavy ones, `BACKTRAIL_TEST_SEED`
//! says where seeds begin; a failing case is reported by its seed.

#![expect(
    clippy::disallowed_methods,
    reason = "a workspace belongs to the user, who changes it as he likes"
)]

pub(crate) mod actors;
mod counting;
mod cut_off;
mod damaged;
mod elsewhere;
mod every_step;
mod killed;
pub(crate) mod kit;
mod merge;
mod merge_lives;
mod odd;
mod oracle;
mod others;
mod plans;
mod repositories;
mod review;
mod scene;
mod stuck;
mod three_actors;
mod unprotected;
mod unreadable;
mod workspace_points;
