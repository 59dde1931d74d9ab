//! Reads a log without taking a lock or waiting.

use std::path::Path;

use super::chain::{Line, Segment, Walk};
use super::directory::LogDir;
use super::gap::{GoneTrail, HistoryGap};
use super::place;
use super::present::present_at;
use super::records::Records;
use super::verify::{self, VerifyReport};
use crate::error::Result;
use crate::store::Store;
use crate::trail::lines::{PEEK_BUFFER, STREAM_BUFFER};
use crate::trail::present::Present;
use crate::trail::reader::TrailReader;
use crate::trail::{Record, Sums, TrailReason};

/// Reads the line of history that ends in a log's head.
///
/// A read sees everything that was complete when it began. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct LogReader {
    pub(crate) store: Store,
    pub(crate) dir: LogDir,
    /// The trail that is read as the head, if several reads belong together.
    pinned: Option<u32>,
}

impl LogReader {
    pub(crate) fn new(store: &Store, dir: LogDir) -> Self {
        Self {
            store: store.clone(),
            dir,
            pinned: None,
        }
    }

    /// Returns a reader whose head does not move, so that several reads see the same
    /// line.
    pub(crate) fn pinned(&self) -> Result<Self> {
        Ok(Self {
            pinned: Some(self.head()?),
            ..self.clone()
        })
    }

    /// Returns the head trail.
    pub(crate) fn head(&self) -> Result<u32> {
        match self.pinned {
            Some(head) => Ok(head),
            None => self.dir.head(),
        }
    }

    /// Opens a reader of an existing session.
    pub(crate) fn open(store: &Store, dir: LogDir) -> Result<Self> {
        dir.head()?;
        Ok(Self::new(store, dir))
    }

    /// Reads the history from its beginning, in constant memory.
    pub(crate) fn records(&self) -> Result<Records> {
        self.records_with(Sums::Check)
    }

    /// Reads the history from its beginning, recomputing sums or not.
    pub(crate) fn records_with(&self, sums: Sums) -> Result<Records> {
        self.whole_line(self.walk()?, sums)
    }

    pub(crate) fn whole_line(&self, mut walk: Walk, sums: Sums) -> Result<Records> {
        let mut segments = Vec::new();
        while let Some(segment) = walk.next()? {
            segments.push(segment);
        }
        let gaps = std::mem::take(&mut walk.gaps);
        let (segments, damage) = walk.into_line(segments);
        let inherited = segments.iter().filter(|segment| !segment.is_of(&self.dir));
        let inherited = inherited.map(|segment| segment.until).max();
        let records = Records::forwards(segments, 0, STREAM_BUFFER, damage, sums);
        Ok(records.with_gaps(&gaps).with_inherited(inherited))
    }

    /// Reads the line that ended at record `seq` of a trail, from its beginning.
    pub(crate) fn records_until(&self, trail: u32, seq: u64) -> Result<Records> {
        let walk = Walk::until(&self.store, &self.dir, trail, seq);
        self.whole_line(walk, Sums::Check)
    }

    /// Reads the history from its beginning, to find the instructions; `None` if it is
    /// known that there are none.
    pub(crate) fn first_records(&self) -> Result<Option<Records>> {
        let (segments, damage) = self.walk()?.collect()?;
        if let Some(first) = segments.first()
            && first.is_uninstructed()?
        {
            return Ok(None);
        }
        let sums = Sums::Check;
        let records = Records::forwards(segments, 0, PEEK_BUFFER, damage, sums);
        Ok(Some(records))
    }

    /// Reads the history from record `seq` on. The cost does not depend on the records before
    /// it.
    pub(crate) fn records_from(&self, seq: u64) -> Result<Records> {
        let mut walk = self.walk()?;
        let mut segments = Vec::new();
        while let Some(segment) = walk.next()? {
            let reached = segment.after().is_some_and(|after| after < seq);
            segments.push(segment);
            if reached {
                break;
            }
        }
        let (segments, damage) = walk.into_line(segments);
        let sums = Sums::Check;
        Ok(Records::forwards(
            segments,
            seq,
            STREAM_BUFFER,
            damage,
            sums,
        ))
    }

    /// Reads the history backwards from its end. The cost does not depend on the length of the
    /// session.
    pub(crate) fn records_back(&self) -> Result<Records> {
        Ok(Records::backwards(self.walk()?, Sums::Check))
    }

    /// Reads the line that ended at record `seq` of a trail, backwards.
    pub(crate) fn records_back_from(&self, trail: u32, seq: u64) -> Result<Records> {
        let walk = Walk::until(&self.store, &self.dir, trail, seq);
        Ok(Records::backwards(walk, Sums::Check))
    }

    /// Returns the records that are gone from the history, or that will be once the trash
    /// is emptied; the oldest first. It reads one opener per trail.
    pub(crate) fn gaps(&self) -> Result<Vec<HistoryGap>> {
        let mut walk = self.walk()?;
        while walk.next()?.is_some() {}
        walk.gaps.reverse();
        Ok(walk.gaps)
    }

    /// Returns whether part of the line of history is in a directory.
    pub(crate) fn reads_in(&self, dir: &Path) -> Result<bool> {
        let (segments, _) = self.walk()?.collect()?;
        Ok(segments.iter().any(|segment| segment.path.starts_with(dir)))
    }

    /// Returns the last `count` records, oldest first.
    pub(crate) fn last_records(&self, count: usize) -> Result<Vec<Record>> {
        let mut records = Vec::new();
        let mut back = self.records_back()?;
        while records.len() < count
            && let Some(record) = back.next()?
        {
            records.push(record.to_owned());
        }
        records.reverse();
        Ok(records)
    }

    /// Returns record `seq` of the line, found by binary search.
    pub(crate) fn record(&self, seq: u64) -> Result<Option<Record>> {
        Self::find(self.walk()?, seq)
    }

    /// Returns record `seq` of the line that ended in a trail, found by binary search.
    pub(crate) fn record_at(&self, trail: u32, seq: u64) -> Result<Option<Record>> {
        Self::find(Walk::until(&self.store, &self.dir, trail, seq), seq)
    }

    fn find(mut walk: Walk, seq: u64) -> Result<Option<Record>> {
        while let Some(segment) = walk.next()? {
            if segment.after().is_none_or(|after| seq > after) && seq <= segment.until {
                if let Some(record) = segment.find(seq)? {
                    return Ok(Some(record));
                }
                if segment.opener.is_some() {
                    return Ok(None);
                }
            }
        }
        Ok(None)
    }

    /// Returns the session's metadata.
    pub(crate) fn present(&self) -> Result<Present> {
        let place = place::end(&self.store, &self.dir, self.head()?)?;
        present_at(&self.store, &self.dir, place.trail, &place.position)
    }

    /// Returns whether there are messages after a record. Notes do not count.
    pub(crate) fn is_spoken_after(&self, seq: u64) -> Result<bool> {
        let mut back = self.records_back()?;
        while let Some(record) = back.next()? {
            if record.seq() <= seq {
                return Ok(false);
            }
            if record.kind().is_spoken() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the parts of trails that make up the line.
    pub(crate) fn line(&self) -> Result<Line> {
        let (segments, _) = self.walk()?.collect()?;
        Ok(Line::new(&segments))
    }

    /// Finds the records of the line whose id begins with a text.
    pub(crate) fn records_by_id(&self, beginning: &str) -> Result<Vec<(u64, String)>> {
        let mut found = Vec::new();
        let mut records = self.records_with(Sums::Trust)?;
        while let Some(record) = records.next()? {
            if let Some(id) = record.id().filter(|id| id.starts_with(beginning)) {
                found.push((record.seq(), id.into_owned()));
            }
        }
        Ok(found)
    }

    /// Returns which of the session's own trails contains a record of the line.
    pub(crate) fn own_trail_of(&self, seq: u64) -> Result<Option<u32>> {
        let mut walk = self.walk()?;
        while let Some(segment) = walk.next()? {
            if segment.after().is_some_and(|after| after < seq) {
                return Ok(segment.is_of(&self.dir).then_some(segment.trail));
            }
        }
        Ok(None)
    }

    /// Returns the entry to keep for a trail that is removed; `None` if the trail must stay:
    /// the first one, and those with instructions up to record `instructed`.
    pub(crate) fn gone_trail(&self, trail: u32, instructed: u64) -> Result<Option<GoneTrail>> {
        let segment = Segment::open(&self.dir, trail, u64::MAX)?;
        // Without an opener it is unknown what the line continues.
        let goes = segment.opener.filter(|opener| {
            let first = trail == 0 || opener.reason == TrailReason::Import;
            !first && opener.seq >= instructed && !opener.is_newer()
        });
        Ok(goes.map(|opener| GoneTrail {
            trail,
            continues: opener.continues,
        }))
    }

    /// Checks every line of every trail, without changing anything.
    pub(crate) fn verify(&self) -> Result<VerifyReport> {
        verify::verify(&self.store, &self.dir)
    }

    /// Checks that each trail has a valid opener and continues another, without reading the
    /// records.
    pub(crate) fn verify_structure(&self) -> Result<VerifyReport> {
        verify::verify_structure(&self.store, &self.dir)
    }

    pub(crate) fn walk(&self) -> Result<Walk> {
        Ok(Walk::new(&self.store, &self.dir, self.head()?))
    }

    /// Reads one entire trail of a session.
    pub(crate) fn trail_of(dir: &LogDir, trail: u32) -> Result<TrailReader> {
        let segment = Segment::open(dir, trail, u64::MAX)?;
        segment.forwards(0, STREAM_BUFFER, Sums::Check)
    }
}
