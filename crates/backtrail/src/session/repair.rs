//! Repairing a session: plan, then act.
//!
//! A repair rewrites nothing. It begins a new trail that continues the last
//! record before the first damage, and holds every readable record after it, in
//! order. The old trails stay as they are; the new opener names the places that
//! were gone around.

use std::ops::RangeInclusive;
use std::path::Path;

use super::chain::{Segment, Walk, continues_at};
use super::examine::{Examiner, Finding};
use super::files::SessionFiles;
use super::info::present_at;
use super::lock::{AppendLock, SpeakerLock};
use super::tail::{SetAside, Tail};
use crate::error::{Error, Reason, Result};
use crate::storage::{StorageFile, append_all};
use crate::store::Store;
use crate::trail::opener::{Because, Continues, FORMAT_VERSION, Opener, Repaired};
use crate::trail::record::{Position, finish_line, split_prev, split_sum};
use crate::trail::sum::Sum;
use crate::trail::{Damage, DamageReport, RecordKind};

/// What a repair would do.
#[derive(Debug)]
pub struct RepairPlan {
    store: Store,
    files: SessionFiles,
    survey: Survey,
}

/// What a repair did.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RepairReport {
    /// The number of the new trail, or `None` where none was needed.
    pub trail: Option<u32>,
    /// How many records it holds; the others are reached where they were.
    pub copied: u64,
    /// What was gone around.
    pub damage: DamageReport,
    /// The seqs that no longer have a record.
    pub missing: Vec<RangeInclusive<u64>>,
    /// The unfinished last line, where there was one.
    pub set_aside: Vec<SetAside>,
}

/// Surveys a session's line of history.
pub(crate) fn plan(store: &Store, files: &SessionFiles) -> Result<RepairPlan> {
    Ok(RepairPlan {
        survey: Survey::take(store, files)?,
        store: store.clone(),
        files: files.clone(),
    })
}

impl RepairPlan {
    /// Returns what is damaged in the session's line of history.
    pub fn damage(&self) -> &DamageReport {
        &self.survey.damage
    }

    /// Returns how many records the new trail would hold.
    pub fn copied(&self) -> u64 {
        self.survey.copied
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

    /// Carries the repair out, on the session as it is now.
    pub fn apply(self) -> Result<RepairReport> {
        let Self { store, files, .. } = self;
        let _speaker = SpeakerLock::take(&files, &store.holder())?;
        let lock = AppendLock::open(&files)?;
        let _guard = lock.hold()?;
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
            version: FORMAT_VERSION,
            seq: survey.continues.as_ref().map_or(0, |from| from.seq),
            at: store.now(),
            session_id: files.id().clone(),
            trail: tail.trail + 1,
            because: Because::Repair,
            continues: survey.continues.clone(),
            repaired: survey.repaired.clone(),
            present: present_at(&store, &files, tail.trail, &tail.position)?,
        };
        let path = files.trail_path(opener.trail);
        files.create_trail(opener.trail, |file| {
            let mut copy = Copy::begin(file, &path, &opener)?;
            survey.replay(|record| copy.add(record))?;
            report.copied = copy.copied;
            copy.end()
        })?;
        report.trail = Some(opener.trail);
        Ok(report)
    }
}

/// The line of history, with where it is whole and where it is not.
#[derive(Debug)]
struct Survey {
    segments: Vec<Segment>,
    damage: DamageReport,
    repaired: Vec<Repaired>,
    /// The last record before the first damage.
    continues: Option<Continues>,
    copied: u64,
    missing: Vec<RangeInclusive<u64>>,
    unfinished: u64,
}

impl Survey {
    fn take(store: &Store, files: &SessionFiles) -> Result<Self> {
        let (segments, broken) = Walk::new(store, files, files.head()?).collect()?;
        let mut survey = Self {
            damage: DamageReport::default(),
            repaired: Vec::new(),
            continues: None,
            copied: 0,
            missing: Vec::new(),
            unfinished: 0,
            segments: Vec::new(),
        };
        let mut last_seq = 0;
        for segment in &segments {
            let link = broken
                .first()
                .iter()
                .find(|damage| damage.file == segment.path);
            if let Some(damage) = link {
                survey.add(files, segment, damage.clone());
            }
            survey.segment(files, segment, &mut last_seq)?;
        }
        survey.segments = segments;
        Ok(survey)
    }

    fn segment(
        &mut self,
        files: &SessionFiles,
        segment: &Segment,
        last_seq: &mut u64,
    ) -> Result<()> {
        let mut lost = false;
        let mut examiner = Examiner::new(&segment.file, &segment.path);
        while *last_seq < segment.until
            && let Some(finding) = examiner.advance()?
        {
            let flaw = match finding {
                Finding::Lost(damage) if damage.reason == Reason::Unfinished => {
                    self.unfinished = damage.bytes;
                    continue;
                }
                Finding::Lost(damage) => {
                    lost = true;
                    self.add(files, segment, damage);
                    continue;
                }
                Finding::Record(flaw) => flaw,
            };
            let record = examiner.record();
            let position = Position::after(&record);
            if record.kind() == RecordKind::Opener {
                // Also a trail that nothing was said in yet can be continued.
                if flaw.is_none() && position.seq <= segment.until {
                    self.reach(files, segment, &position);
                }
                continue;
            }
            if position.seq > segment.until {
                break;
            }
            lost |= flaw.is_some();
            if let Some(flaw) = flaw {
                self.add(files, segment, flaw);
            }
            if position.seq <= *last_seq {
                continue;
            }
            if lost && position.seq > *last_seq + 1 {
                self.missing.push(*last_seq + 1..=position.seq - 1);
            }
            lost = false;
            *last_seq = position.seq;
            self.reach(files, segment, &position);
        }
        Ok(())
    }

    /// Notes a record: the last whole one so far, or one to copy.
    fn reach(&mut self, files: &SessionFiles, segment: &Segment, position: &Position) {
        if !self.damage.is_empty() {
            self.copied += u64::from(segment.after() != Some(position.seq));
        } else {
            // A trail of ours leads to what was inherited: see `chain`.
            let trail = if segment.is_of(files) {
                segment.trail
            } else {
                0
            };
            self.continues = Some(continues_at(files.id(), trail, position));
        }
    }

    fn add(&mut self, files: &SessionFiles, segment: &Segment, damage: Damage) {
        if segment.is_of(files) {
            self.repaired.push(Repaired {
                trail: segment.trail,
                byte: damage.byte,
                bytes: damage.bytes,
            });
        }
        self.damage.add(damage);
    }

    /// Hands out every readable record after the first damage, in order.
    fn replay(&self, mut each: impl FnMut(&crate::RecordRef<'_>) -> Result<()>) -> Result<()> {
        let from = self.continues.as_ref().map_or(0, |continues| continues.seq);
        let mut records = super::Records::forwards(
            self.segments.clone(),
            DamageReport::default(),
            crate::Sums::Check,
        );
        while let Some(record) = records.next()? {
            if record.seq() > from {
                each(&record)?;
            }
        }
        Ok(())
    }
}

/// The new trail while it is written.
struct Copy<'a> {
    file: &'a dyn StorageFile,
    path: &'a Path,
    buffer: Vec<u8>,
    prev: Sum,
    copied: u64,
}

/// How much is written at a time.
const CHUNK: usize = 1 << 20;

impl<'a> Copy<'a> {
    fn begin(file: &'a dyn StorageFile, path: &'a Path, opener: &Opener) -> Result<Self> {
        let mut buffer = Vec::with_capacity(CHUNK * 2);
        let prev = opener.write(&mut buffer)?;
        Ok(Self {
            file,
            path,
            buffer,
            prev,
            copied: 0,
        })
    }

    /// Writes a record as it is, save for what binds it to the one before.
    fn add(&mut self, record: &crate::RecordRef<'_>) -> Result<()> {
        let covered = split_sum(record.bytes()).map_or(record.bytes(), |(covered, _)| covered);
        let body = split_prev(covered).map_or(covered, |(body, _)| body);
        let start = self.buffer.len();
        self.buffer.extend_from_slice(body);
        self.prev = finish_line(&mut self.buffer, start, self.prev);
        self.copied += 1;
        if self.buffer.len() >= CHUNK {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        append_all(self.file, &self.buffer)
            .map_err(|error| Error::io("cannot write the new trail", self.path, error))?;
        self.buffer.clear();
        Ok(())
    }

    fn end(mut self) -> Result<()> {
        self.flush()
    }
}
