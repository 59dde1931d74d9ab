//! Any old moment continues in a directory of its own: with just the files of that
//! moment, whoever is interrupted, and at nobody else's expense.
//!
//! The truth is what `std::fs` says. `BACKTRAIL_TEST_LIVES` multiplies the heavy
//! ones, `BACKTRAIL_TEST_SEED` says where seeds begin.

#![expect(
    clippy::disallowed_methods,
    reason = "a workspace belongs to the user, who changes it as he likes"
)]

mod crash;
mod into;
mod wrong;
