//! Checks a log: every line of every trail, and their links. It only reads.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;

use super::chain::{Segment, Walk};
use super::directory::LogDir;
use super::examine::{Examiner, Finding};
use super::gap::{self, HistoryGap};
use super::lock::LockFile;
use super::reader::LogReader;
use super::tail::is_torn_record;
use super::version1::{hash_of, second_opener};
use crate::error::{ErrorKind, IoContext, Reason, Result};
use crate::store::Store;
use crate::trail::lines::PEEK_BUFFER;
use crate::trail::opener::{Continues, Repaired};
use crate::trail::reader::{Found, TrailReader};
use crate::trail::{Damage, DamageReport, Sums};

/// The outcome of checking a session.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct VerifyReport {
    /// How many records are intact, on all branches, openers included.
    pub records: u64,
    /// The head's last line, if it is the beginning of a record that a writer did not
    /// finish. It was never acknowledged, and the next writer sets it aside: not damage.
    pub unfinished: Option<Damage>,
    /// The damage.
    pub damage: DamageReport,
    /// The damage that a repair bypassed.
    pub repaired: DamageReport,
    /// The records that are gone from the line of history, or in the trash: not damage.
    pub gaps: Vec<HistoryGap>,
    /// Files of parts that were set aside, with their lengths.
    pub set_aside: Vec<(PathBuf, u64)>,
}

impl VerifyReport {
    /// Returns whether all damage was repaired.
    pub fn is_ok(&self) -> bool {
        self.damage.is_empty()
    }
}

/// Checks all trails of a session.
pub(crate) fn verify(store: &Store, files: &LogDir) -> Result<VerifyReport> {
    check(store, files, |check, segment| check.trail(segment))
}

/// Checks the openers and links of all trails of a session. Their records are not
/// read.
pub(crate) fn verify_structure(store: &Store, files: &LogDir) -> Result<VerifyReport> {
    check(store, files, |check, segment| {
        check.opener(segment);
        Ok(())
    })
}

fn check(
    store: &Store,
    files: &LogDir,
    one: impl Fn(&mut Check<'_>, &Segment) -> Result<()>,
) -> Result<VerifyReport> {
    let head = files.head()?;
    let mut segments = Vec::new();
    for trail in files.trails()? {
        let mut segment = Segment::open(files, trail, u64::MAX)?;
        segment.is_head = trail == head;
        segments.push(segment);
    }
    let mut check = Check {
        store,
        files,
        repaired: repaired_places(&segments),
        report: VerifyReport::default(),
    };
    for segment in &segments {
        one(&mut check, segment)?;
    }
    check.links(&segments)?;
    check.circles(head)?;
    check.set_aside()?;
    check.report.gaps = LogReader::new(store, files.clone()).gaps()?;
    Ok(check.report)
}

/// Collects the places that repairs bypassed.
fn repaired_places(segments: &[Segment]) -> Vec<Repaired> {
    let openers = segments
        .iter()
        .filter_map(|segment| segment.opener.as_ref());
    openers
        .flat_map(|opener| opener.repaired.iter().cloned())
        .collect()
}

struct Check<'a> {
    store: &'a Store,
    files: &'a LogDir,
    repaired: Vec<Repaired>,
    report: VerifyReport,
}

impl Check<'_> {
    /// Checks the lines of one trail.
    fn trail(&mut self, segment: &Segment) -> Result<()> {
        if segment.is_version_1() {
            return self.version_1(segment);
        }
        let mut examiner = Examiner::new(segment)?;
        while let Some(finding) = examiner.advance()? {
            let damage = match finding {
                Finding::Lost(damage) => damage,
                Finding::Record(flaw) => {
                    self.report.records += 1;
                    let Some(flaw) = flaw else { continue };
                    flaw
                }
            };
            // Only the head's last line may still be completed.
            if damage.reason == Reason::Unfinished && segment.is_head {
                self.last_line(segment.trail, damage)?;
            } else {
                self.add(segment.trail, damage);
            }
        }
        self.opener(segment);
        Ok(())
    }

    fn opener(&mut self, segment: &Segment) {
        if segment.opener.is_none() && !segment.is_version_1() {
            let damage = Damage::at_beginning(&segment.path, Reason::BadOpener);
            self.add(segment.trail, damage);
        }
    }

    /// Checks that a file of version 1 is as it was imported. Damage that it had then does
    /// not count: the import reported it.
    fn version_1(&mut self, segment: &Segment) -> Result<()> {
        let mut reader = segment.forwards(0, PEEK_BUFFER, Sums::Check)?;
        while reader.next_record()?.is_some() {
            self.report.records += 1;
        }
        let known = second_opener(self.files)?.and_then(|opener| opener.imported);
        if let Some(known) = known
            && hash_of(self.files)? != known.hash
        {
            let damage = Damage::at_beginning(&segment.path, Reason::BadSum);
            self.add(segment.trail, damage);
        }
        Ok(())
    }

    /// Reads an unfinished last line again while no process can be writing it. The
    /// beginning of a record is what a killed writer leaves; anything else is damage.
    fn last_line(&mut self, trail: u32, damage: Damage) -> Result<()> {
        let lock = LockFile::existing(self.files)?;
        let guard = match &lock {
            Some(lock) => match lock.try_hold()? {
                // Another process is writing, perhaps this line.
                None => return Ok(()),
                held => held,
            },
            None => None,
        };
        let path = damage.file.as_path();
        let file = self.files.storage().open_read(path);
        let file = file.context("cannot open the trail", path)?;
        let mut reader = TrailReader::forwards(
            Arc::clone(&file),
            path,
            damage.byte,
            PEEK_BUFFER,
            Sums::Check,
        );
        let found = reader.advance()?;
        drop(guard);
        if !matches!(&found, Some(Found::Damage(now)) if now.reason == Reason::Unfinished) {
            return Ok(());
        }
        let end = damage.byte.saturating_add(damage.bytes);
        match is_torn_record(file.as_ref(), path, damage.byte..end)? {
            true => self.report.unfinished = Some(damage),
            false => self.add(trail, damage),
        }
        Ok(())
    }

    /// Checks that each trail continues a record that exists where its opener says.
    fn links(&mut self, segments: &[Segment]) -> Result<()> {
        for segment in segments {
            let Some(continues) = segment
                .opener
                .as_ref()
                .and_then(|opener| opener.continues.as_ref())
            else {
                continue;
            };
            if !self.is_linked(continues)? {
                let what = continues.to_string();
                self.add(
                    segment.trail,
                    Damage::at_beginning(&segment.path, Reason::BrokenLink(what)),
                );
            }
        }
        Ok(())
    }

    fn is_linked(&self, continues: &Continues) -> Result<bool> {
        let files = self.files.of(self.store, &continues.session_id);
        match files.open_read(continues.trail) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                // A trail that is known to be gone is not damage.
                let gone = gap::look(&files, continues.trail, continues.seq)?;
                return Ok(gone.is_some());
            }
            opened => drop(opened?),
        }
        let mut walk = Walk::until(self.store, &files, continues.trail, continues.seq);
        while let Some(segment) = walk.next()? {
            let named = segment.find(continues.seq)?;
            if named.is_some_and(|record| record.as_ref().sum() == continues.sum) {
                return Ok(true);
            }
            // The seq may count lost lines: then it means the last record before
            // them.
            match segment.last_position()? {
                Some(position) if position.sum == continues.sum => return Ok(true),
                Some(position) if segment.after() != Some(position.seq) => return Ok(false),
                // Only an opener: the record itself is in an earlier trail.
                _ => {}
            }
        }
        Ok(walk.gaps.iter().any(HistoryGap::is_gone))
    }

    /// Checks that the head's line has a beginning.
    fn circles(&mut self, head: u32) -> Result<()> {
        let (_, damage) = Walk::new(self.store, self.files, head).collect()?;
        for damage in damage.first() {
            if damage.reason == Reason::Loop {
                self.add(head, damage.clone());
            }
        }
        Ok(())
    }

    fn set_aside(&mut self) -> Result<()> {
        for path in self.files.asides()? {
            let len = self
                .files
                .storage()
                .open_read(&path)
                .and_then(|file| file.len())
                .context("cannot read what was set aside", &path)?;
            self.report.set_aside.push((path, len));
        }
        Ok(())
    }

    fn add(&mut self, trail: u32, damage: Damage) {
        let covers = |place: &Repaired| place.covers(trail, &damage);
        if self.repaired.iter().any(covers) {
            self.report.repaired.add(damage);
        } else {
            self.report.damage.add(damage);
        }
    }
}
