//! The lines of a trail that can be sent.

use crate::error::{Reason, Result};
use crate::ids::SessionId;
use crate::log::LogDir;
use crate::message::parts::Reference;
use crate::replica::wire::Line;
use crate::session::Spawned;
use crate::trail::find::find_seq;
use crate::trail::lines::STREAM_BUFFER;
use crate::trail::reader::{Found, TrailReader};
use crate::trail::{Damage, DamageReport, RecordKind, RecordRef, Sums};

/// Lines that follow each other in a trail.
#[derive(Debug, Default)]
pub(crate) struct LinesPart {
    pub(crate) lines: Vec<LocalLine>,
    /// Whether there may be more.
    pub(crate) more: bool,
}

/// A line, and what it names.
#[derive(Debug, Clone)]
pub(crate) struct LocalLine {
    pub(crate) line: Line,
    /// The payloads that it names.
    pub(crate) payloads: Vec<Reference>,
}

/// Reads the lines of one trail whose seqs rise, and skips damage.
#[derive(Debug)]
pub(crate) struct TrailLines {
    reader: TrailReader,
    /// The seq of the line before.
    after: Option<u64>,
    /// Only lines after this one.
    first: Option<u64>,
    /// Where the trail ended when the log was opened.
    until: u64,
    /// Whether a line was read that begins after it.
    at_end: bool,
    /// Damaged lines, and lines that are out of order.
    skipped: DamageReport,
}

impl TrailLines {
    pub(super) fn open(files: &LogDir, trail: u32, after: Option<u64>, until: u64) -> Result<Self> {
        let (path, file) = files.find_trail(trail)?;
        let from = match after {
            Some(seq) => find_seq(&file, &path, seq.saturating_add(1))?,
            None => 0,
        };
        Ok(Self {
            reader: TrailReader::forwards(file, &path, from, STREAM_BUFFER, Sums::Check),
            after,
            first: after,
            until,
            at_end: false,
            skipped: DamageReport::default(),
        })
    }

    /// Returns what was skipped: damaged lines, and lines that are out of order.
    pub(crate) fn into_skipped(self) -> DamageReport {
        self.skipped
    }

    /// Reads lines of about `max_bytes`, and at least one.
    pub(crate) fn read(&mut self, max_bytes: u64) -> Result<LinesPart> {
        let mut part = LinesPart::default();
        let mut bytes = 0;
        while bytes < max_bytes {
            let Some(line) = self.next()? else {
                return Ok(part);
            };
            bytes += line.line.bytes.len() as u64;
            part.lines.push(line);
        }
        part.more = true;
        Ok(part)
    }

    /// Returns the next line; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<LocalLine>> {
        loop {
            if self.at_end {
                return Ok(None);
            }
            match self.reader.advance()? {
                None => return Ok(None),
                Some(_) if self.reader.place().start >= self.until => self.at_end = true,
                // A writer died, or is writing: it was never acknowledged.
                Some(Found::Damage(damage)) if damage.reason == Reason::Unfinished => {}
                Some(Found::Damage(damage)) => self.skip(damage),
                Some(Found::Record) => {
                    if let Some(line) = self.take() {
                        return Ok(Some(line));
                    }
                }
            }
        }
    }

    fn skip(&mut self, damage: Damage) {
        self.skipped.add(damage);
    }

    /// Returns the record as a line, if it comes after the line before.
    fn take(&mut self) -> Option<LocalLine> {
        let record = self.reader.record();
        let seq = record.seq();
        if self.first.is_some_and(|first| seq <= first) {
            // It shares its line with the first that counts.
            return None;
        }
        // The opener has the number that it continues at, so only the first line may be one.
        let reason = match self.after {
            _ if self.after.is_some() && record.kind() == RecordKind::Opener => {
                Some(Reason::UnsupportedType("session_meta".to_owned()))
            }
            Some(after) if seq <= after => Some(Reason::OutOfOrder { seq, after }),
            None if record.kind() != RecordKind::Opener => Some(Reason::BadOpener),
            _ => None,
        };
        if let Some(reason) = reason {
            let damage = self.reader.damage_here(reason);
            self.skip(damage);
            return None;
        }
        let line = local_line(&record);
        self.after = Some(seq);
        Some(line)
    }
}

/// Copies a record as a line.
pub(crate) fn local_line(record: &RecordRef<'_>) -> LocalLine {
    LocalLine {
        line: Line {
            seq: record.seq(),
            sum: record.sum_bytes(),
            bytes: record.bytes().to_vec(),
        },
        // A message that cannot be read names nothing.
        payloads: record.references().unwrap_or_default(),
    }
}

/// Returns the session of a sub-agent that a record names.
pub(super) fn spawned(record: &RecordRef<'_>) -> Option<SessionId> {
    if record.kind() != RecordKind::Spawned {
        return None;
    }
    record.parse::<Spawned>().ok().map(|it| it.session_id)
}
