//! What is read of trails, for whoever derives something from it.

use backtrail::{Details, Message, RecordKind, SessionId, Timestamp};

use crate::error::Result;

/// A trail that is about to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TrailPlace {
    pub(crate) session: SessionId,
    pub(crate) number: u32,
    /// The byte that is read from: 0, or where the last look ended.
    pub(crate) from: u64,
}

/// A record, as it is read of a trail.
#[derive(Debug)]
pub(crate) struct Said<'a> {
    pub(crate) kind: RecordKind<'a>,
    pub(crate) seq: u64,
    /// Where the record begins in the file.
    pub(crate) byte: u64,
    pub(crate) at: Option<Timestamp>,
    /// The message, as far as it can be read. Large texts are there, media are references.
    pub(crate) message: Option<&'a Message>,
    /// The names of the tools whose results are in the message, block by block.
    pub(crate) answered: &'a [Option<String>],
    pub(crate) details: &'a Details,
    /// The whole line.
    pub(crate) bytes: &'a [u8],
}

/// Whoever derives something from trails.
pub(crate) trait Sink {
    /// A trail begins, or goes on where the last look ended.
    fn begin(&mut self, place: &TrailPlace) -> Result<()>;

    /// A record of it, openers included.
    fn record(&mut self, said: &Said<'_>) -> Result<()>;

    /// The trail was read up to byte `end`; `sum` is that of the last record before it.
    fn end(&mut self, end: u64, sum: [u8; 8]) -> Result<()>;
}
