//! What each page shows: HTML made of the answers of a site.
//!
//! Text is escaped by the templates. Only what a field of the contract says is HTML is passed on
//! as it is.

pub(crate) mod blame;
pub(crate) mod blocks;
pub(crate) mod changes;
mod code;
pub(crate) mod costs;
mod diff;
pub(crate) mod files;
pub(crate) mod health;
mod heat_map;
mod links;
pub(crate) mod search;
pub(crate) mod session;
pub(crate) mod sessions;
pub(crate) mod timeline;

#[cfg(test)]
#[path = "escaping_tests.rs"]
mod escaping_tests;
