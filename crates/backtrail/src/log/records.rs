//! The records of a session along its line of history, in either direction.

use std::collections::VecDeque;

use super::chain::{Segment, Walk};
use super::gap::HistoryGap;
use crate::error::{Reason, Result};
use crate::trail::reader::{Found, TrailReader};
use crate::trail::sum::Sum;
use crate::trail::{Damage, DamageReport, Record, RecordKind, RecordRef, Sums};

/// How many records are remembered.
const RECENT: usize = 4096;

/// The records of a session, returned one after another from a buffer.
///
/// Openers are not among them: they link the files, and are not events. Damage is skipped,
/// and returned by [`damage`](Self::damage).
#[derive(Debug)]
pub struct Records {
    direction: Direction,
    sums: Sums,
    reader: Option<TrailReader>,
    /// The bounds of the current segment.
    after: Option<u64>,
    until: u64,
    is_head: bool,
    /// The highest seq so far; when reading backwards, the last one.
    last_seq: Option<u64>,
    /// Whether a record was out of order: then others may come twice.
    disorder: bool,
    /// The sums of the most recent records, to recognise duplicate lines. Remembering all
    /// would take memory in proportion to the history.
    recent: VecDeque<Sum>,
    damage: DamageReport,
    unfinished: u64,
    /// How many records are known to be gone.
    gone: u64,
    /// The last seq of the records that another session wrote.
    inherited_until: Option<u64>,
}

/// The direction of reading, with its state.
#[derive(Debug)]
enum Direction {
    Forwards(Forwards),
    Backwards(Backwards),
}

#[derive(Debug)]
struct Forwards {
    /// The segments still to read, oldest first.
    segments: VecDeque<Segment>,
    /// The first record to return.
    first: u64,
    buffer: usize,
    /// The sums of the last record and of its trail's opener, which the next segment must
    /// continue.
    last_sums: [Option<Sum>; 2],
    /// Whether seqs are missing in the current segment, so that their records may still
    /// come.
    gap: bool,
    /// Whether the segment's seqs are line numbers: then no record comes late.
    by_line: bool,
}

#[derive(Debug)]
struct Backwards {
    /// Opens trails as they are reached.
    walk: Box<Walk>,
    /// Whether the reader is still at the cut of the line.
    at_cut: bool,
    /// Damage that may be after the last record before the cut: only the record before it
    /// shows whether it belongs to the line.
    doubtful: DamageReport,
}

impl Records {
    /// Reads from record `first` on, or from the beginning if that is 0, `buffer` bytes at a
    /// time.
    pub(crate) fn forwards(
        segments: Vec<Segment>,
        first: u64,
        buffer: usize,
        damage: DamageReport,
        sums: Sums,
    ) -> Self {
        let forwards = Forwards {
            segments: segments.into(),
            first,
            buffer,
            last_sums: [None; 2],
            gap: false,
            by_line: false,
        };
        let mut records = Self::new(Direction::Forwards(forwards), damage, sums);
        records.last_seq = first.checked_sub(1);
        records
    }

    /// Reads backwards from the last record.
    pub(crate) fn backwards(walk: Walk, sums: Sums) -> Self {
        let backwards = Backwards {
            walk: Box::new(walk),
            at_cut: false,
            doubtful: DamageReport::default(),
        };
        let damage = DamageReport::default();
        Self::new(Direction::Backwards(backwards), damage, sums)
    }

    fn new(direction: Direction, damage: DamageReport, sums: Sums) -> Self {
        Self {
            direction,
            sums,
            reader: None,
            after: None,
            until: u64::MAX,
            is_head: false,
            last_seq: None,
            disorder: false,
            recent: VecDeque::new(),
            damage,
            unfinished: 0,
            gone: 0,
            inherited_until: None,
        }
    }

    /// Sets the records that are gone from the line.
    #[must_use]
    pub(crate) fn with_gaps(mut self, gaps: &[HistoryGap]) -> Self {
        let gone = gaps.iter().filter(|gap| gap.is_gone());
        self.gone = gone.map(HistoryGap::count).sum();
        self
    }

    /// Sets the last seq of the records that another session wrote.
    #[must_use]
    pub(crate) fn with_inherited(mut self, until: Option<u64>) -> Self {
        self.inherited_until = until;
        self
    }

    /// Returns the last seq of the records that another session wrote, if a line is read from
    /// its beginning: this session is a fork, and continues the other.
    pub(crate) fn inherited_until(&self) -> Option<u64> {
        self.inherited_until
    }

    /// Returns how many records are known to be gone from a line that is read from its
    /// beginning.
    pub(crate) fn gone(&self) -> u64 {
        self.gone
    }

    /// Returns the next record, or `None` at the end.
    ///
    /// The record borrows from the reader until the next call. [`owned`](Self::owned) gives
    /// an ordinary iterator.
    ///
    /// # Errors
    ///
    /// Fails if a trail cannot be read; damage is skipped.
    #[expect(
        clippy::should_implement_trait,
        reason = "the record borrows from the reader, which Iterator cannot express"
    )]
    pub fn next(&mut self) -> Result<Option<RecordRef<'_>>> {
        while self.advance()? {
            if self.belongs() {
                let reader = self.reader.as_ref().expect("a record was found in it");
                return Ok(Some(reader.record()));
            }
        }
        Ok(None)
    }

    /// Turns this into an iterator of owned records.
    #[doc(hidden)]
    pub fn owned(self) -> OwnedRecords {
        OwnedRecords(self)
    }

    /// Returns the damage that was skipped so far.
    pub fn damage(&self) -> &DamageReport {
        &self.damage
    }

    /// Returns the length of an unfinished last line, if there is one: its record is being
    /// written, or its writer died.
    pub fn unfinished_bytes(&self) -> u64 {
        self.unfinished
    }

    /// Advances to the next record of any segment; false at the end.
    fn advance(&mut self) -> Result<bool> {
        loop {
            if self.is_past_cut() {
                self.reader = None;
            }
            let Some(reader) = &mut self.reader else {
                if !self.open_next()? {
                    return Ok(false);
                }
                continue;
            };
            match reader.advance()? {
                Some(Found::Record) => return Ok(true),
                Some(Found::Damage(damage)) => self.pass_over(damage),
                None => {
                    self.reader = None;
                    if let Direction::Backwards(backwards) = &mut self.direction {
                        self.damage.append(&mut backwards.doubtful);
                    }
                }
            }
        }
    }

    /// Returns whether the rest of the segment, readable or damaged, is not part of the line.
    /// Only missing records may still come.
    fn is_past_cut(&self) -> bool {
        match &self.direction {
            Direction::Forwards(forwards) => {
                self.last_seq.unwrap_or(0) >= self.until && !forwards.gap
            }
            Direction::Backwards(_) => false,
        }
    }

    fn pass_over(&mut self, damage: Damage) {
        match &mut self.direction {
            _ if damage.reason == Reason::Unfinished && self.is_head => {
                self.unfinished = damage.bytes;
            }
            Direction::Backwards(backwards) if backwards.at_cut => backwards.doubtful.add(damage),
            _ => self.damage.add(damage),
        }
    }

    fn open_next(&mut self) -> Result<bool> {
        let segment = match &mut self.direction {
            Direction::Forwards(forwards) => forwards.segments.pop_front(),
            Direction::Backwards(backwards) => {
                let segment = backwards.walk.next()?;
                // Broken links are found along the way.
                self.damage.append(&mut backwards.walk.damage);
                segment
            }
        };
        let Some(segment) = segment else {
            return Ok(false);
        };
        self.after = segment.after();
        self.until = segment.until;
        self.is_head = segment.is_head;
        match self.open_segment(&segment) {
            Err(error) if segment.is_replaced(&error) => {
                self.begin_again(&segment)?;
                self.open_next()
            }
            opened => opened.map(|()| true),
        }
    }

    fn open_segment(&mut self, segment: &Segment) -> Result<()> {
        self.reader = Some(match &mut self.direction {
            Direction::Forwards(forwards) => {
                let begins_before = segment.after().is_none_or(|after| after < forwards.first);
                let first = if begins_before { forwards.first } else { 0 };
                let reader = segment.forwards(first, forwards.buffer, self.sums)?;
                if forwards.last_sums[0].is_some()
                    && let Some(reason) = segment.broken_link(&forwards.last_sums)
                {
                    self.damage.add(Damage::at_beginning(&segment.path, reason));
                }
                forwards.last_sums[1] = segment.opener_sum;
                forwards.gap = false;
                forwards.by_line = segment.is_version_1();
                reader
            }
            Direction::Backwards(backwards) => {
                backwards.at_cut = segment.until != u64::MAX;
                segment.backwards(self.sums)?
            }
        });
        Ok(())
    }

    /// Continues in the line with which a purge replaced a segment and those after it: the
    /// records keep their seqs.
    fn begin_again(&mut self, segment: &Segment) -> Result<()> {
        match &mut self.direction {
            Direction::Forwards(forwards) => {
                let until = forwards
                    .segments
                    .back()
                    .map_or(segment.until, |it| it.until);
                forwards.segments = segment.line_instead(until)?.into();
                forwards.first = self.last_seq.map_or(forwards.first, |last| last + 1);
                // Their links were rewritten too.
                forwards.last_sums = [None; 2];
            }
            Direction::Backwards(backwards) => backwards.walk.again_at(segment),
        }
        Ok(())
    }

    /// Returns whether the record just found belongs to the line.
    fn belongs(&mut self) -> bool {
        let Some(reader) = &self.reader else {
            return false;
        };
        let record = reader.record();
        let seq = record.seq();
        if record.kind() == RecordKind::Opener {
            if let Direction::Backwards(backwards) = &mut self.direction
                && backwards.at_cut
                && seq == self.until
            {
                // The line was cut before the trail's first record: all of the damage is
                // after the cut.
                backwards.doubtful = DamageReport::default();
            }
            return false;
        }
        if seq > self.until {
            if matches!(&self.direction, Direction::Forwards(forwards) if !forwards.gap) {
                self.reader = None;
            }
            return false;
        }
        let in_order = match (self.last_seq, &self.direction) {
            (None, _) => true,
            (Some(last), Direction::Forwards(_)) => seq > last,
            (Some(last), Direction::Backwards(_)) => seq < last,
        };
        if self.after.is_some_and(|after| seq <= after) || !in_order {
            let after = self.last_seq.or(self.after).unwrap_or(0);
            let damage = reader.damage_here(Reason::OutOfOrder { seq, after });
            self.damage.add(damage);
        }
        // A record out of order is reported as damage, but still returned once.
        let sum = record.sum();
        self.disorder |= !in_order;
        if self.disorder && self.recent.contains(&sum) {
            return false;
        }
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(sum);
        self.move_on(seq, sum);
        true
    }

    /// Remembers a record that is returned.
    fn move_on(&mut self, seq: u64, sum: Sum) {
        match &mut self.direction {
            Direction::Forwards(forwards) => {
                let before = self.last_seq.or(self.after).unwrap_or(0);
                forwards.gap |= !forwards.by_line && seq > before.saturating_add(1);
                forwards.last_sums[0] = Some(sum);
                self.last_seq = self.last_seq.max(Some(seq));
            }
            Direction::Backwards(backwards) => {
                self.last_seq = Some(seq);
                if std::mem::take(&mut backwards.at_cut) {
                    let mut doubtful = std::mem::take(&mut backwards.doubtful);
                    // Damage directly after the last record before the cut is after the cut.
                    if seq != self.until {
                        self.damage.append(&mut doubtful);
                    }
                }
            }
        }
    }
}

/// An iterator over owned records.
#[derive(Debug)]
pub struct OwnedRecords(Records);

impl OwnedRecords {
    /// Returns the damage that was skipped so far.
    pub fn damage(&self) -> &DamageReport {
        self.0.damage()
    }
}

impl Iterator for OwnedRecords {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0
            .next()
            .map(|record| record.map(|record| record.to_owned()))
            .transpose()
    }
}
