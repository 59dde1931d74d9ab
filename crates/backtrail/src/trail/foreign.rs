//! Reads the records of a file in another format as if it were a trail.

use std::fmt;
use std::ops::Range;
use std::path::Path;

use super::envelope::Envelope;
use crate::error::{Reason, Result};

/// Reads the records of a file of another format.
pub(crate) trait ForeignRecords: fmt::Debug + Send + Sync {
    /// Returns the next record or damage.
    fn next(&mut self, path: &Path) -> Result<Option<ForeignRecord>>;

    /// Returns the bytes of the last record.
    fn bytes(&self) -> &[u8];
}

/// A record of another format, or its damage.
#[derive(Debug)]
pub(crate) struct ForeignRecord {
    pub(crate) place: Range<u64>,
    /// Its line number, if the file has lines.
    pub(crate) line: Option<u64>,
    pub(crate) content: Result<Envelope, Reason>,
}

/// The kinds of record that other formats have in common with a trail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ForeignKind {
    Message,
    Compaction,
    Other,
}
