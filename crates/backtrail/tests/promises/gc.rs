//! The store stays small, and no kept state ever lacks an object (F21, F30).

#![expect(
    clippy::disallowed_methods,
    reason = "a workspace belongs to the user, who changes it as he likes"
)]

mod choosing;
mod crashes;
mod kit;
mod stops;
mod stress;
mod waiting;
mod whole;
