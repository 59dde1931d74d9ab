//! The index on disk: opening it, and telling whether it can be trusted.

use std::path::Path;

use backtrail::SessionId;

use crate::error::Result;

/// What is found where the index should be.
#[derive(Debug)]
pub(crate) enum Opened {
    /// It is as it was left.
    Ready(SearchDir),
    /// There is none.
    Missing,
    /// It is not to be trusted, and why. Build it anew.
    Unusable(String),
}

/// The index on disk as of one commit. What is committed later is not seen.
#[derive(Debug)]
pub(crate) struct SearchDir {}

/// A trail that is in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownTrail {
    pub(crate) session: SessionId,
    pub(crate) number: u32,
    /// The file's length and time when it was last looked at.
    pub(crate) bytes: u64,
    pub(crate) modified: i64,
    /// The byte behind the last record that is in the index, and that record's sum.
    pub(crate) end: u64,
    pub(crate) sum: [u8; 8],
    /// The number of the trail in the index.
    pub(crate) ordinal: u32,
    /// How many of its records are in the index.
    pub(crate) docs: u32,
}

impl SearchDir {
    /// Opens the index in the directory of derived data. Errors are the machine's.
    pub(crate) fn open(_derived: &Path) -> Result<Opened> {
        Ok(Opened::Missing)
    }

    /// Returns the trails that are in the index, by session and number.
    pub(crate) fn known(&self) -> &[KnownTrail] {
        &[]
    }

    /// Returns whether so much of it is of trails that are gone or were indexed anew that
    /// it should be built anew.
    pub(crate) fn is_worn(&self) -> bool {
        false
    }
}
