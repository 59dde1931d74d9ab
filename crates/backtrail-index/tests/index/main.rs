//! The promises of derived data.

mod catalogue;
mod damage;
mod kit;
mod ledger;
mod processes;
mod random;
