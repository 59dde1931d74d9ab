//! The promises of derived data.

mod catalogue;
mod kit;
