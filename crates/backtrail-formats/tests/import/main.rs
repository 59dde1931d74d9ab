//! What import promises, with a format made for it: nothing is lost and nothing comes twice,
//! in whatever order files come, grow, are rewritten or cut off.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails where it cannot go on, and its files are its own"
)]

mod promises;
mod random;
mod toy;
