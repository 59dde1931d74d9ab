//! The records of a session along its line of history, either way.

use std::collections::VecDeque;

use super::chain::{Segment, Walk};
use super::shown::Recent;
use super::tail::from_end;
use crate::error::{Reason, Result};
use crate::trail::lines::STREAM_BUFFER;
use crate::trail::reader::{Found, TrailReader};
use crate::trail::sum::Sum;
use crate::trail::{Damage, DamageReport, Record, RecordKind, RecordRef, Sums};

/// The records of a session, lent one after the other.
///
/// Openers are not among them: they say how the files hang together, not what
/// happened. Damage is passed over, and told by [`damage`](Self::damage).
#[derive(Debug)]
pub struct Records {
    source: Source,
    sums: Sums,
    reader: Option<TrailReader>,
    /// The bounds of the segment that is being read.
    after: Option<u64>,
    until: u64,
    is_head: bool,
    /// The sums of the last record and of the opener of its trail: what the
    /// next segment must continue. Read forwards only.
    last_sums: [Option<Sum>; 2],
    /// Whether the reader, going backwards, is still where the line was cut.
    at_cut: bool,
    /// The highest seq so far; backwards, the last one.
    last_seq: Option<u64>,
    /// Whether numbers were left out in the segment that is being read.
    gap: bool,
    /// Whether a record came up out of order: then others may come up twice.
    disorder: bool,
    recent: Recent,
    damage: DamageReport,
    /// Damage at the end of a segment, read backwards: whether it belongs to
    /// the line shows only with the record before it.
    doubtful: Vec<Damage>,
    unfinished: u64,
}

/// Where the next segment comes from.
#[derive(Debug)]
enum Source {
    Forwards(VecDeque<Segment>),
    Backwards(Walk),
}

impl Records {
    /// Reads from the first record on.
    pub(crate) fn forwards(segments: Vec<Segment>, damage: DamageReport, sums: Sums) -> Self {
        let source = Source::Forwards(segments.into());
        Self::new(source, damage, sums)
    }

    /// Reads from the last record back, opening trails as it gets to them.
    pub(crate) fn backwards(walk: Walk, sums: Sums) -> Self {
        Self::new(Source::Backwards(walk), DamageReport::default(), sums)
    }

    fn new(source: Source, damage: DamageReport, sums: Sums) -> Self {
        Self {
            source,
            sums,
            reader: None,
            after: None,
            until: u64::MAX,
            is_head: false,
            last_sums: [None; 2],
            at_cut: false,
            last_seq: None,
            gap: false,
            disorder: false,
            recent: Recent::default(),
            damage,
            doubtful: Vec::new(),
            unfinished: 0,
        }
    }

    /// Returns the next record, or `None` at the end.
    ///
    /// What it lends is valid until the next call. For an ordinary iterator see
    /// [`owned`](Self::owned).
    #[expect(
        clippy::should_implement_trait,
        reason = "it lends, which Iterator cannot"
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

    /// Turns this into an iterator of records that stand by themselves.
    pub fn owned(self) -> OwnedRecords {
        OwnedRecords(self)
    }

    /// Returns what had to be passed over so far.
    pub fn damage(&self) -> &DamageReport {
        &self.damage
    }

    /// Returns the length of an unfinished last line, if there is one: a record
    /// that is being written now, or whose writer died.
    pub fn unfinished_bytes(&self) -> u64 {
        self.unfinished
    }

    /// Goes to the next record of any segment; false at the end.
    fn advance(&mut self) -> Result<bool> {
        loop {
            // What comes behind the cut is not of the line, whole or damaged;
            // only records that were left out may yet turn up.
            if self.goes_forwards() && self.last_seq.unwrap_or(0) >= self.until && !self.gap {
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
                None => {
                    self.reader = None;
                    self.count_doubtful();
                }
                Some(Found::Damage(damage))
                    if damage.reason == Reason::Unfinished && self.is_head =>
                {
                    self.unfinished = damage.bytes;
                }
                Some(Found::Damage(damage)) if self.at_cut => self.doubtful.push(damage),
                Some(Found::Damage(damage)) => self.damage.add(damage),
            }
        }
    }

    fn goes_forwards(&self) -> bool {
        matches!(self.source, Source::Forwards(_))
    }

    fn count_doubtful(&mut self) {
        for damage in self.doubtful.drain(..) {
            self.damage.add(damage);
        }
    }

    fn open_next(&mut self) -> Result<bool> {
        let (segment, reader) = match &mut self.source {
            Source::Forwards(segments) => {
                let Some(segment) = segments.pop_front() else {
                    return Ok(false);
                };
                let file = segment.file()?;
                let reader =
                    TrailReader::forwards(file, &segment.path, 0, STREAM_BUFFER, self.sums);
                if self.last_sums[0].is_some()
                    && let Some(reason) = segment.broken_link(&self.last_sums)
                {
                    self.damage.add(Damage::at_beginning(&segment.path, reason));
                }
                self.last_sums[1] = segment.opener_sum;
                (segment, reader)
            }
            Source::Backwards(walk) => {
                let segment = walk.next()?;
                // What is wrong with the links is found out along the way.
                self.damage.take_in(&mut walk.damage);
                let Some(segment) = segment else {
                    return Ok(false);
                };
                let reader = from_end(&segment, self.sums)?;
                (segment, reader)
            }
        };
        self.after = segment.after();
        self.until = segment.until;
        self.is_head = segment.is_head;
        self.at_cut = !self.goes_forwards() && segment.until != u64::MAX;
        self.gap = false;
        self.reader = Some(reader);
        Ok(true)
    }

    /// Decides about the record that was just found; ends the segment where the
    /// rest of it cannot belong to the line.
    fn belongs(&mut self) -> bool {
        let Some(reader) = &self.reader else {
            return false;
        };
        let record = reader.record();
        let seq = record.seq();
        if record.kind() == RecordKind::Opener {
            if self.at_cut && seq == self.until {
                // The line was cut before the trail's first record: all of the
                // damage lies beyond it.
                self.doubtful.clear();
            }
            return false;
        }
        let forwards = self.goes_forwards();
        if seq > self.until {
            if forwards && !self.gap {
                self.reader = None;
            }
            return false;
        }
        let in_order = match self.last_seq {
            None => true,
            Some(last) if forwards => seq > last,
            Some(last) => seq < last,
        };
        if self.after.is_some_and(|after| seq <= after) || !in_order {
            let after = self.last_seq.or(self.after).unwrap_or(0);
            let damage = reader.damage_here(Reason::OutOfOrder { seq, after });
            self.damage.add(damage);
        }
        // What is out of order is told as damage and shown all the same, once.
        let sum = record.sum();
        self.disorder |= !in_order;
        if self.disorder && self.recent.contains(sum) {
            return false;
        }
        self.recent.push(sum);
        if forwards {
            self.last_sums[0] = Some(sum);
            let before = self.last_seq.or(self.after).unwrap_or(0);
            self.gap |= seq > before.saturating_add(1);
            self.last_seq = self.last_seq.max(Some(seq));
            return true;
        }
        self.last_seq = Some(seq);
        if std::mem::take(&mut self.at_cut) {
            // Damage right after the last record of the cut lies beyond it.
            if seq == self.until {
                self.doubtful.clear();
            }
            self.count_doubtful();
        }
        true
    }
}

/// An iterator over records that stand by themselves.
#[derive(Debug)]
pub struct OwnedRecords(Records);

impl OwnedRecords {
    /// Returns what had to be passed over so far.
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
