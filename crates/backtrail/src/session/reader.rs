//! Reads a session, even while it is written.

use std::path::PathBuf;

use super::info::SessionInfo;
use super::steps::{self, Steps};
use crate::error::Result;
use crate::ids::SessionId;
use crate::log::lock::{self, Holder};
use crate::log::{
    Follower, HistoryGap, LinePart, LogDir, LogReader, Records, TrailRecords, VerifyReport, place,
};
use crate::store::Store;
use crate::trail::{Record, Sums};

/// Reads a session. It takes no lock and never waits.
///
/// A read sees the records that were complete when it began. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SessionReader {
    pub(crate) log: LogReader,
}

impl SessionReader {
    pub(crate) fn new(store: &Store, dir: LogDir) -> Self {
        Self {
            log: LogReader::new(store, dir),
        }
    }

    /// Opens a reader of a session that exists.
    pub(crate) fn open(store: &Store, dir: LogDir) -> Result<Self> {
        let log = LogReader::open(store, dir)?;
        Ok(Self { log })
    }

    /// Returns a reader whose line of history does not change between reads.
    pub(crate) fn pinned(&self) -> Result<Self> {
        let log = self.log.pinned()?;
        Ok(Self { log })
    }

    /// Returns the session's id.
    pub fn id(&self) -> &SessionId {
        self.log.dir.id()
    }

    /// Returns the directory that holds the session's files.
    pub fn dir(&self) -> PathBuf {
        self.log.dir.path().to_owned()
    }

    /// Returns the session's details, reading one opener and the last record.
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be read; damage is skipped and counted.
    pub fn info(&self) -> Result<SessionInfo> {
        SessionInfo::read(&self.log.store, &self.log.dir)
    }

    /// Returns the process that is writing to the session: `None` if there is none,
    /// `Some(None)` if it is unknown.
    ///
    /// # Errors
    ///
    /// Fails if the lock cannot be checked.
    pub fn writer(&self) -> Result<Option<Option<Holder>>> {
        lock::writer(&self.log.dir)
    }

    /// Reads the history from its beginning, in constant memory.
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be read; damage is skipped and counted.
    pub fn records(&self) -> Result<Records> {
        self.log.records()
    }

    /// Reads the history from its beginning, recomputing sums or not.
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be read; damage is skipped and counted.
    pub fn records_with(&self, sums: Sums) -> Result<Records> {
        self.log.records_with(sums)
    }

    /// Reads the history from record `seq` on. The cost does not depend on the records
    /// before it.
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be read; damage is skipped and counted.
    pub fn records_from(&self, seq: u64) -> Result<Records> {
        self.log.records_from(seq)
    }

    /// Reads the history backwards from its end. The cost does not depend on the length of
    /// the session.
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be read; damage is skipped and counted.
    pub fn records_back(&self) -> Result<Records> {
        self.log.records_back()
    }

    /// Reads the history backwards from before record `seq`. The cost does not depend on the
    /// length of the session.
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be read; damage is skipped and counted.
    pub fn records_back_from(&self, seq: u64) -> Result<Records> {
        let head = self.log.head()?;
        self.log.records_back_from(head, seq.saturating_sub(1))
    }

    /// Returns the last `count` records, oldest first.
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be read; damage is skipped and counted.
    pub fn last_records(&self, count: usize) -> Result<Vec<Record>> {
        self.log.last_records(count)
    }

    /// Returns record `seq`, found by bisection.
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be read; damage is skipped and counted.
    pub fn record(&self, seq: u64) -> Result<Option<Record>> {
        self.log.record(seq)
    }

    /// Returns record `seq` of the line that ended in `trail`, even if the session moved
    /// since.
    pub(crate) fn record_at(&self, trail: u32, seq: u64) -> Result<Option<Record>> {
        self.log.record_at(trail, seq)
    }

    /// Returns the records that are gone from the history, or that will be once the
    /// trash is emptied; the oldest first. It reads one opener per trail.
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be read; damage is skipped and counted.
    pub fn gaps(&self) -> Result<Vec<HistoryGap>> {
        self.log.gaps()
    }

    /// Returns the steps of the conversation that undo and redo would apply to.
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be read; damage is skipped and counted.
    pub fn steps(&self) -> Result<Steps> {
        let head = self.log.head()?;
        let end = place::end(&self.log.store, &self.log.dir, head)?;
        steps::list(&self.log.dir, end.spot())
    }

    /// Follows the session: reads it from its beginning, then waits for new records.
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be read; damage is skipped and counted.
    pub fn follow(&self) -> Result<Follower> {
        Follower::new(&self.log.store, &self.log.dir)
    }

    /// Checks every line of every trail. It only reads.
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be read; damage is in the report.
    pub fn verify(&self) -> Result<VerifyReport> {
        self.log.verify()
    }

    /// Checks that the trails begin as they should and continue each other; their
    /// records are not read.
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be read; damage is in the report.
    pub fn verify_structure(&self) -> Result<VerifyReport> {
        self.log.verify_structure()
    }

    /// Reads the records of one of the session's own trails, from byte `from` on, which
    /// is 0 or the [`end`](crate::plumbing::TrailRecord::end) of a record.
    ///
    /// # Errors
    ///
    /// Fails if the trail cannot be opened.
    pub fn trail_records(&self, trail: u32, from: u64) -> Result<TrailRecords> {
        TrailRecords::open(&self.log.dir, trail, from)
    }

    /// Returns whether the last record before byte `end` of a trail has this sum, so that
    /// the part read up to there is unchanged.
    ///
    /// # Errors
    ///
    /// Fails if the trail cannot be read.
    pub fn trail_has(&self, trail: u32, end: u64, sum: [u8; 8]) -> Result<bool> {
        TrailRecords::is_there(&self.log.dir, trail, end, sum)
    }

    /// Reads record `seq` of one of the session's own trails, which is expected at a given
    /// byte of the file, whether it is on the line of history or not.
    ///
    /// # Errors
    ///
    /// Fails if the trail cannot be read.
    pub fn trail_record(&self, trail: u32, seq: u64, byte: u64) -> Result<Option<Record>> {
        TrailRecords::one(&self.log.dir, trail, seq, byte)
    }

    /// Returns the parts of trails that make up the line of history, oldest first.
    #[doc(hidden)]
    pub fn line_parts(&self) -> Result<Vec<LinePart>> {
        Ok(self.log.line()?.0)
    }
}
