//! The catalogue: sessions, turns, calls and what they cost, in SQLite.

/// The catalogue.
#[derive(Debug)]
pub struct Catalogue {}
