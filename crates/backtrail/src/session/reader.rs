//! Reading a session, while others write it or not.

use std::path::{Path, PathBuf};

use super::chain::{Line, Segment, Walk};
use super::files::SessionFiles;
use super::follow::Follower;
use super::gap::{GoneTrail, HistoryGap};
use super::info::{SessionInfo, present_at};
use super::lock::{self, Holder};
use super::place;
use super::records::Records;
use super::steps::{self, Steps};
use super::verify::{self, VerifyReport};
use crate::error::Result;
use crate::ids::SessionId;
use crate::store::Store;
use crate::trail::lines::{PEEK_BUFFER, STREAM_BUFFER};
use crate::trail::present::Present;
use crate::trail::reader::TrailReader;
use crate::trail::{Because, Record, Sums};

/// A session to read from. It takes no lock and never waits.
///
/// What is read is what was whole when it was looked at. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SessionReader {
    store: Store,
    files: SessionFiles,
    /// The trail that is read as the head, where several looks belong together.
    pinned: Option<u32>,
}

impl SessionReader {
    pub(crate) fn new(store: &Store, files: SessionFiles) -> Self {
        Self {
            store: store.clone(),
            files,
            pinned: None,
        }
    }

    /// Returns a reader for which the conversation moves no more: so that several
    /// looks at it are looks at the same line.
    pub(crate) fn pinned(&self) -> Result<Self> {
        Ok(Self {
            pinned: Some(self.head()?),
            ..self.clone()
        })
    }

    /// Returns the trail that is the head.
    pub(super) fn head(&self) -> Result<u32> {
        match self.pinned {
            Some(head) => Ok(head),
            None => self.files.head(),
        }
    }

    /// Opens a reader, requiring that the session is there.
    pub(crate) fn open(store: &Store, files: SessionFiles) -> Result<Self> {
        files.head()?;
        Ok(Self::new(store, files))
    }

    /// Returns the session's id.
    pub fn id(&self) -> &SessionId {
        self.files.id()
    }

    /// Returns the directory that holds the session's files.
    pub fn dir(&self) -> PathBuf {
        self.files.dir().to_owned()
    }

    /// Returns the session at a glance, reading one opener and the last record.
    pub fn info(&self) -> Result<SessionInfo> {
        SessionInfo::read(&self.store, &self.files)
    }

    /// Returns who speaks in the session now: `None` if nobody does, `Some(None)`
    /// if the speaker left no word.
    pub fn speaker(&self) -> Result<Option<Option<Holder>>> {
        lock::speaker(&self.files)
    }

    /// Reads the history from its beginning, in constant memory.
    pub fn records(&self) -> Result<Records> {
        self.records_with(Sums::Check)
    }

    /// Reads the history from its beginning, with sums recomputed or not.
    pub fn records_with(&self, sums: Sums) -> Result<Records> {
        self.whole_line(self.walk()?, sums)
    }

    fn whole_line(&self, mut walk: Walk, sums: Sums) -> Result<Records> {
        let mut segments = Vec::new();
        while let Some(segment) = walk.next()? {
            segments.push(segment);
        }
        let gaps = std::mem::take(&mut walk.gaps);
        let (segments, damage) = walk.into_line(segments);
        let records = Records::forwards(segments, 0, STREAM_BUFFER, damage, sums);
        Ok(records.with_gaps(&gaps))
    }

    /// Reads the line that ended at record `seq` of a trail, from its beginning.
    pub(super) fn records_until(&self, trail: u32, seq: u64) -> Result<Records> {
        let walk = Walk::until(&self.store, &self.files, trail, seq);
        self.whole_line(walk, Sums::Check)
    }

    /// Reads the history from its beginning, for who wants the instructions;
    /// `None` where it is known that there are none.
    pub(super) fn first_records(&self) -> Result<Option<Records>> {
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

    /// Reads the history from record `seq` on. The cost is that of what is read,
    /// however much lies before it.
    pub fn records_from(&self, seq: u64) -> Result<Records> {
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

    /// Returns the steps that undo would take back and redo bring forward.
    pub fn steps(&self) -> Result<Steps> {
        let head = self.head()?;
        let end = place::end(&self.store, &self.files, head)?;
        steps::list(&self.files, end.spot())
    }

    /// Reads the history from its end backwards. The cost is that of what is
    /// read, however long the session is.
    pub fn records_back(&self) -> Result<Records> {
        Ok(Records::backwards(self.walk()?, Sums::Check))
    }

    /// Returns what the line of history has no more, or only as long as the trash is
    /// not emptied; the oldest first. It reads one opener per trail.
    pub fn gaps(&self) -> Result<Vec<HistoryGap>> {
        let mut walk = self.walk()?;
        while walk.next()?.is_some() {}
        walk.gaps.reverse();
        Ok(walk.gaps)
    }

    /// Returns whether the line of history is read in a directory, in part.
    pub(crate) fn reads_in(&self, dir: &Path) -> Result<bool> {
        let (segments, _) = self.walk()?.collect()?;
        Ok(segments.iter().any(|segment| segment.path.starts_with(dir)))
    }

    /// Returns the last `count` records, oldest first.
    pub fn last_records(&self, count: usize) -> Result<Vec<Record>> {
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

    /// Returns the record `seq` of the line, found by bisection.
    pub fn record(&self, seq: u64) -> Result<Option<Record>> {
        Self::find(self.walk()?, seq)
    }

    /// Returns the record `seq` of the line that ended in a trail, whatever the session
    /// moved to since.
    pub(crate) fn record_at(&self, trail: u32, seq: u64) -> Result<Option<Record>> {
        Self::find(Walk::until(&self.store, &self.files, trail, seq), seq)
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

    /// Returns what is known of the session and may change.
    pub(crate) fn present(&self) -> Result<Present> {
        let place = place::end(&self.store, &self.files, self.head()?)?;
        present_at(&self.store, &self.files, place.trail, &place.position)
    }

    /// Returns whether anything was said after a record. Notes are not said.
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

    /// Returns which parts of which trails make up the line.
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

    /// Follows the session from its beginning into the future.
    pub fn follow(&self) -> Result<Follower> {
        Follower::new(&self.store, &self.files)
    }

    /// Checks every line of every trail. It only reads.
    pub fn verify(&self) -> Result<VerifyReport> {
        verify::verify(&self.store, &self.files)
    }

    /// Checks that the trails begin as they should and hang together; their records
    /// are not read.
    pub fn verify_structure(&self) -> Result<VerifyReport> {
        verify::verify_structure(&self.store, &self.files)
    }

    /// Reads one trail of a session, whole.
    pub(crate) fn trail_of(files: &SessionFiles, trail: u32) -> Result<TrailReader> {
        let segment = Segment::open(files, trail, u64::MAX)?;
        segment.forwards(0, STREAM_BUFFER, Sums::Check)
    }

    /// Returns which of the session's own trails holds a record of the line.
    pub(crate) fn own_trail_of(&self, seq: u64) -> Result<Option<u32>> {
        let mut walk = self.walk()?;
        while let Some(segment) = walk.next()? {
            if segment.after().is_some_and(|after| after < seq) {
                return Ok(segment.is_of(&self.files).then_some(segment.trail));
            }
        }
        Ok(None)
    }

    /// Returns what is to be kept of a trail that goes; `None` where it must stay: the
    /// first, and those with instructions up to record `instructed`.
    pub(crate) fn gone_trail(&self, trail: u32, instructed: u64) -> Result<Option<GoneTrail>> {
        let segment = Segment::open(&self.files, trail, u64::MAX)?;
        // Without an opener nobody knows what the line goes on from.
        let goes = segment.opener.filter(|opener| {
            let first = trail == 0 || opener.because == Because::Import;
            !first && opener.seq >= instructed && !opener.is_newer()
        });
        Ok(goes.map(|opener| GoneTrail {
            trail,
            continues: opener.continues,
        }))
    }

    pub(super) fn parts(&self) -> (&Store, &SessionFiles) {
        (&self.store, &self.files)
    }

    fn walk(&self) -> Result<Walk> {
        Ok(Walk::new(&self.store, &self.files, self.head()?))
    }
}
