//! Repairs a session: plans, then applies.
//!
//! A repair rewrites nothing. It begins a new trail that continues the last record before
//! the first damage, and contains every readable record after it, in order. The old trails
//! stay unchanged; the new opener names the places that were bypassed, and the damage
//! beside the line, which cannot be repaired.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Range, RangeInclusive};

use serde::Serialize;

use super::chain::{Segment, Walk, continues_at};
use super::directory::LogDir;
use super::examine::{Examiner, Finding};
use super::lock::{LockFile, hold_writer};
use super::payloads::PayloadWriter;
use super::payloads::adopt;
use super::present::present_at;
use super::tail::{SetAside, Tail};
use super::trail_copy::TrailCopy;
use super::verify::verify;
use crate::error::{IoContext, Reason, Result};
use crate::storage::read_range;
use crate::store::Store;
use crate::trail::opener::{Continues, Opener, Repaired, TrailReason};
use crate::trail::record::Position;
use crate::trail::sum::Sum;
use crate::trail::{Damage, DamageReport, RecordKind, trail_number};

/// A planned repair.
#[derive(Debug)]
pub struct RepairPlan {
    store: Store,
    files: LogDir,
    survey: Survey,
}

/// The outcome of a repair.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RepairReport {
    /// The number of the new trail, or `None` if none was needed.
    pub trail: Option<u32>,
    /// How many records it contains; the others stay in their trails.
    pub copied: u64,
    /// The damage that was bypassed.
    pub damage: DamageReport,
    /// The seqs that no longer have a record.
    pub missing: Vec<RangeInclusive<u64>>,
    /// The unfinished last line, if there was one.
    pub set_aside: Vec<SetAside>,
}

/// Surveys a session's line of history.
pub(crate) fn plan(store: &Store, files: &LogDir) -> Result<RepairPlan> {
    Ok(RepairPlan {
        survey: Survey::take(store, files)?,
        store: store.clone(),
        files: files.clone(),
    })
}

impl RepairPlan {
    /// Returns the damage in the session's line of history.
    pub fn damage(&self) -> &DamageReport {
        &self.survey.damage
    }

    /// Returns how many records the new trail would contain.
    pub fn copied(&self) -> u64 {
        self.survey.kept.len() as u64
    }

    /// Returns the seqs that no longer have a record.
    pub fn missing(&self) -> &[RangeInclusive<u64>] {
        &self.survey.missing
    }

    /// Returns the length of an unfinished last line that would be set aside.
    pub fn unfinished_bytes(&self) -> u64 {
        self.survey.unfinished
    }

    /// Returns whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.survey.damage.is_empty() && self.survey.unfinished == 0
    }

    /// Applies the repair to the session in its present state.
    ///
    /// # Errors
    ///
    /// Fails with `Locked` if another process is writing to the session, and if the store cannot
    /// be written.
    pub fn apply(self) -> Result<RepairReport> {
        let Self { store, files, .. } = self;
        let _writer = hold_writer(&store, &files)?;
        let _guard = LockFile::append(&files)?.hold()?;
        let mut tail = Tail::load(&store, &files)?;
        let survey = Survey::take(&store, &files)?;
        let mut report = RepairReport {
            trail: None,
            copied: 0,
            missing: survey.missing.clone(),
            set_aside: std::mem::take(&mut tail.set_aside),
            damage: survey.damage.clone(),
        };
        if survey.damage.is_empty() {
            return Ok(report);
        }
        let opener = Opener {
            repaired: survey.repaired.clone(),
            given: Some(tail.position().seq),
            // Steps before the repair can still be undone.
            as_at: Some(tail.spot()),
            present: present_at(&store, &files, tail.trail, tail.position())?,
            ..files.opener(tail.trail + 1, TrailReason::Repair, store.now())
        };
        let opener = match survey.continues.clone() {
            Some((from, compacted)) => opener.continuing(from, compacted),
            None => opener,
        };
        // The records that the new trail continues must be at least as durable as the trail,
        // and a line that was cut off must not reappear where no reader looks.
        tail.sync()?;
        let path = files.trail_path(opener.trail);
        files.create_trail(opener.trail, |file| {
            let mut copy = TrailCopy::new(file, &path);
            copy.opener(&opener)?;
            survey.copy_to(copy, &files)
        })?;
        report.trail = Some(opener.trail);
        report.copied = survey.kept.len() as u64;
        Ok(report)
    }
}

/// The line of history, with its intact and damaged parts.
#[derive(Debug)]
struct Survey {
    segments: Vec<Segment>,
    damage: DamageReport,
    repaired: Vec<Repaired>,
    /// The last record before the first damage, and the newest compaction there.
    continues: Option<(Continues, Option<u64>)>,
    kept: Vec<ReadableRecord>,
    missing: Vec<RangeInclusive<u64>>,
    unfinished: u64,
}

/// The last record that a survey found.
#[derive(Default)]
struct Last {
    seq: u64,
    /// Its sum, and that of its trail's opener.
    sums: [Option<Sum>; 2],
    /// Whether there is damage after it.
    lost: bool,
    /// Whether seqs are missing in this segment: their records may still come.
    gap: bool,
    shown: Shown,
}

impl Survey {
    fn take(store: &Store, files: &LogDir) -> Result<Self> {
        let (segments, broken) = Walk::new(store, files, files.head()?).collect()?;
        let mut survey = Self {
            damage: DamageReport::default(),
            repaired: Vec::new(),
            continues: None,
            kept: Vec::new(),
            missing: Vec::new(),
            unfinished: 0,
            segments: Vec::new(),
        };
        let mut last = Last::default();
        for (index, segment) in segments.iter().enumerate() {
            let named = broken
                .first()
                .iter()
                .find(|damage| damage.file == segment.path);
            let unlinked = || {
                let reason = segment.broken_link(&last.sums)?;
                Some(Damage::at_beginning(&segment.path, reason))
            };
            if let Some(damage) = named.cloned().or_else(unlinked) {
                last.lost = true;
                survey.add(files, segment, damage);
            }
            last.sums[1] = segment.opener_sum;
            survey.segment(files, index, segment, &mut last)?;
        }
        survey.segments = segments;
        survey.put_in_order();
        survey.look_beyond(store, files)?;
        Ok(survey)
    }

    /// Copies the records to the new trail.
    fn copy_to(&self, mut copy: TrailCopy<'_>, files: &LogDir) -> Result<()> {
        let mut payloads = PayloadWriter::new(files);
        let mut source = None;
        for kept in &self.kept {
            let segment = &self.segments[kept.segment];
            let file = match source.take() {
                Some((segment, file)) if segment == kept.segment => file,
                _ => segment.file()?,
            };
            let line = read_range(file.as_ref(), kept.place.clone());
            let mut line = line.context("cannot read the trail", &segment.path)?;
            if !segment.is_of(files) {
                line = adopt(&line, &segment.payloads(), &mut payloads)?;
            }
            copy.add(&line, copy.prev)?;
            source = Some((kept.segment, file));
        }
        copy.flush()
    }

    /// Adds damage that is beside the line: in records that were undone, or after a cut. It
    /// cannot be repaired, but is recorded.
    fn look_beyond(&mut self, store: &Store, files: &LogDir) -> Result<()> {
        let report = verify(store, files)?;
        let head = files.trail_path(files.head()?);
        for damage in report.damage.first() {
            let trail = damage.file.file_name().and_then(trail_number);
            let known = |place: &Repaired| trail.is_some_and(|trail| place.covers(trail, damage));
            // Neither a lost payload nor a changed file of version 1 can be
            // bypassed.
            let imported = trail == Some(0) && self.segments.iter().any(Segment::is_version_1);
            let mended = damage.reason == Reason::Unfinished && damage.file == head
                || matches!(damage.reason, Reason::LostPayload(_))
                || imported;
            if let Some(trail) = trail
                && !mended
                && !self.repaired.iter().any(known)
            {
                self.go_around(trail, damage);
                self.damage.add(damage.clone());
            }
        }
        Ok(())
    }

    fn segment(
        &mut self,
        files: &LogDir,
        index: usize,
        segment: &Segment,
        last: &mut Last,
    ) -> Result<()> {
        if segment.is_version_1() {
            return self.version_1(files, segment, last);
        }
        let mut examiner = Examiner::new(segment)?;
        last.gap = false;
        while (last.seq < segment.until || last.gap)
            && let Some(finding) = examiner.advance()?
        {
            let flaw = match finding {
                Finding::Lost(damage) if damage.reason == Reason::Unfinished && segment.is_head => {
                    self.unfinished = damage.bytes;
                    continue;
                }
                Finding::Lost(damage) => {
                    last.lost = true;
                    self.add(files, segment, damage);
                    continue;
                }
                Finding::Record(flaw) => flaw,
            };
            let record = examiner.record();
            let position = Position::after(&record);
            if record.kind() == RecordKind::Opener {
                // A trail without messages can be continued too.
                if flaw.is_none() && position.seq <= segment.until {
                    self.reach(files, segment, &position);
                }
                continue;
            }
            if position.seq > segment.until {
                break;
            }
            // A lost payload cannot be bypassed: the record stays.
            let flaw = flaw.filter(|flaw| !matches!(flaw.reason, Reason::LostPayload(_)));
            if let Some(flaw) = flaw {
                last.lost = true;
                self.add(files, segment, flaw);
            }
            if !last.shown.insert(position.seq) {
                continue;
            }
            if last.lost && position.seq > last.seq + 1 {
                self.missing.push(last.seq + 1..=position.seq - 1);
            }
            last.gap |= position.seq > last.seq + 1;
            last.lost = false;
            last.seq = last.seq.max(position.seq);
            last.sums[0] = Some(position.sum);
            let place = examiner.place();
            self.reach(files, segment, &position);
            if !self.damage.is_empty() {
                self.kept.push(ReadableRecord {
                    seq: position.seq,
                    segment: index,
                    place,
                });
            }
        }
        Ok(())
    }

    /// Surveys a file of version 1, which is as it was imported.
    fn version_1(&mut self, files: &LogDir, segment: &Segment, last: &mut Last) -> Result<()> {
        if let Some(position) = segment.last_position()? {
            last.seq = position.seq;
            last.sums[0] = Some(position.sum);
            self.reach(files, segment, &position);
        }
        Ok(())
    }

    /// Records the last intact record before the first damage.
    fn reach(&mut self, files: &LogDir, segment: &Segment, position: &Position) {
        if self.damage.is_empty() {
            // One of the session's own trails leads to inherited records: see `chain`.
            let trail = if segment.is_of(files) {
                segment.trail
            } else {
                0
            };
            let from = continues_at(files.id(), trail, position);
            self.continues = Some((from, position.compacted));
        }
    }

    fn add(&mut self, files: &LogDir, segment: &Segment, damage: Damage) {
        if segment.is_of(files) {
            self.go_around(segment.trail, &damage);
        }
        self.damage.add(damage);
    }

    /// Adds a place that is bypassed. Adjacent places become one, so that a file of garbage
    /// does not make the opener as long as the file.
    fn go_around(&mut self, trail: u32, damage: &Damage) {
        let end = damage.byte + damage.bytes;
        if let Some(last) = self.repaired.last_mut()
            && last.trail == trail
            && (last.byte..=last.byte + last.bytes + 1).contains(&damage.byte)
        {
            last.bytes = last.bytes.max(end - last.byte);
            return;
        }
        self.repaired.push(Repaired {
            trail,
            byte: damage.byte,
            bytes: damage.bytes,
        });
    }

    /// Sorts the records to copy, and removes those that came out of order from the missing
    /// ones.
    fn put_in_order(&mut self) {
        self.kept.sort_by_key(|kept| kept.seq);
        let found: BTreeSet<u64> = self.kept.iter().map(|kept| kept.seq).collect();
        let missing = std::mem::take(&mut self.missing);
        for range in missing {
            let (mut first, last) = range.into_inner();
            for seq in found.range(first..=last) {
                if first < *seq {
                    self.missing.push(first..=*seq - 1);
                }
                first = *seq + 1;
            }
            if first <= last {
                self.missing.push(first..=last);
            }
        }
    }
}

/// A readable record after the first damage.
#[derive(Debug)]
struct ReadableRecord {
    seq: u64,
    /// The index of its segment.
    segment: usize,
    place: Range<u64>,
}

/// A set of seqs, as ranges that do not touch. Read in order it is one range; only gaps
/// and disorder, which are damage, create more.
#[derive(Debug, Default)]
struct Shown(BTreeMap<u64, u64>);

impl Shown {
    /// Adds a seq; returns false if it is already there.
    fn insert(&mut self, seq: u64) -> bool {
        let before = self.0.range(..=seq).next_back();
        let before = before.map(|(first, last)| (*first, *last));
        if before.is_some_and(|(_, last)| last >= seq) {
            return false;
        }
        let first = match before {
            Some((first, last)) if last + 1 == seq => first,
            _ => seq,
        };
        let after = seq.checked_add(1).and_then(|next| self.0.remove(&next));
        self.0.insert(first, after.unwrap_or(seq));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_seq_is_new_once_in_whatever_order_it_comes() {
        let orders: [&[u64]; 4] = [
            &[1, 2, 3, 4, 5],
            &[5, 4, 3, 2, 1],
            &[3, 1, 5, 2, 4],
            &[u64::MAX, 0, u64::MAX - 1, 7, 1],
        ];
        for order in orders {
            let mut shown = Shown::default();
            assert!(order.iter().all(|seq| shown.insert(*seq)), "{order:?}");
            assert!(!order.iter().any(|seq| shown.insert(*seq)), "{order:?}");
        }
        let mut shown = Shown::default();
        assert!((1..1000).all(|seq| shown.insert(seq)));
        assert_eq!(shown.0.len(), 1, "in order it is one range");
    }
}
