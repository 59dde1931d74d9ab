//! Reads what a replica lacks: the lines after the last one that it has.

use std::path::PathBuf;
use std::sync::Arc;

use super::super::directory::LogDir;
use super::super::version1::is_version_1;
use crate::error::{Error, ErrorKind, IoContext, Result};
use crate::message::parts::Reference;
use crate::replica::local::{LocalLine, key_of, local_line};
use crate::replica::{BlobKind, BlobName, End, Line, Refusal, Unsent};
use crate::storage::StorageFile;
use crate::trail::find::find_seq;
use crate::trail::lines::PEEK_BUFFER;
use crate::trail::reader::{Found, TrailReader};
use crate::trail::{RecordKind, Sums};

/// The end of what may be sent: a trail, and a byte of it up to which it is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Until {
    pub(crate) trail: u32,
    pub(crate) byte: u64,
}

/// About how many bytes of lines one request has.
const REQUEST_BYTES: usize = 1 << 20;

/// Where reading continues.
#[derive(Debug, Default)]
pub(super) struct UnsentLines {
    /// The last line that was read, and where the next one begins.
    last: Option<(End, u64)>,
    /// The payloads of the lines that were read last.
    pub(super) payloads: Vec<Reference>,
}

impl UnsentLines {
    /// Reads what comes after the line `after`, but nothing beyond `until`.
    pub(super) fn read(
        &mut self,
        dir: &LogDir,
        after: Option<End>,
        until: Until,
    ) -> Result<Unsent> {
        self.payloads.clear();
        let Some(after) = after else {
            return self.next_trail(dir, None, until);
        };
        let byte = match self.last {
            Some((end, byte)) if end == after => byte,
            _ => match find(dir, after)? {
                Some(byte) => byte,
                None => return absent(dir, after),
            },
        };
        self.last = Some((after, byte));
        let lines = self.lines(dir, (after, byte), until)?;
        match lines.is_empty() {
            true => self.next_trail(dir, Some(after.trail), until),
            false => Ok(Unsent::Lines(lines, self.names())),
        }
    }

    /// Reads lines of a trail from a byte on. What is damaged or out of order is skipped.
    fn lines(&mut self, dir: &LogDir, from: (End, u64), until: Until) -> Result<Vec<Line>> {
        let (End { trail, .. }, byte) = from;
        let mut lines = Vec::new();
        if trail > until.trail || (trail == until.trail && byte >= until.byte) {
            return Ok(lines);
        }
        let (path, file) = open(dir, trail)?;
        let mut reader = TrailReader::forwards(file, &path, byte, PEEK_BUFFER, Sums::Check);
        let (mut last, mut bytes) = (from, 0);
        while let Some(item) = reader.advance()? {
            let Some((_, end, true)) = reader.last_line() else {
                break;
            };
            // A damaged line can have several records.
            let is_full = bytes >= REQUEST_BYTES && end != last.1;
            if is_full || (trail == until.trail && end > until.byte) {
                break;
            }
            last.1 = end;
            if !matches!(item, Found::Record) {
                continue;
            }
            let record = reader.record();
            if record.seq() <= last.0.seq || record.kind() == RecordKind::Opener {
                continue;
            }
            let LocalLine { line, payloads, .. } = local_line(&record);
            self.payloads.extend(payloads);
            bytes += line.bytes.len();
            last.0 = end_of(trail, &line);
            lines.push(line);
        }
        self.last = Some(last);
        Ok(lines)
    }

    /// Reads the opener of the trail after another.
    fn next_trail(&mut self, dir: &LogDir, after: Option<u32>, until: Until) -> Result<Unsent> {
        if after.is_some_and(|after| after >= until.trail) {
            return Ok(Unsent::Nothing);
        }
        let trails = dir.readable_trails()?;
        let mut later = trails.into_iter().filter(|trail| Some(*trail) > after);
        let Some(trail) = later.next().filter(|trail| *trail <= until.trail) else {
            return Ok(Unsent::Nothing);
        };
        let (path, file) = open(dir, trail)?;
        let mut reader = TrailReader::forwards(file, &path, 0, PEEK_BUFFER, Sums::Check);
        let first = reader.advance()?;
        let opener = match (first, reader.last_line()) {
            (Some(Found::Record), Some((_, end, true))) => Some((reader.record(), end)),
            _ => None,
        };
        let opener = opener.filter(|(record, _)| record.kind() == RecordKind::Opener);
        let opener = opener.map(|(record, end)| (local_line(&record).line, end));
        let Some((opener, end)) = opener else {
            let what = "the trail has no readable beginning, so it cannot be sent; restore it \
                        from a backup";
            return Err(Error::new(ErrorKind::Corrupt, what).at_path(&path));
        };
        self.last = Some((end_of(trail, &opener), end));
        Ok(Unsent::Trail { trail, opener })
    }

    /// Returns the names of the payloads, each once.
    fn names(&self) -> Vec<BlobName> {
        let mut names: Vec<BlobName> = Vec::with_capacity(self.payloads.len());
        for reference in &self.payloads {
            let name = payload_name(reference);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

pub(super) fn payload_name(reference: &Reference) -> BlobName {
    BlobName {
        kind: BlobKind::Payload,
        hash: *reference.hash.as_bytes(),
    }
}

fn end_of(trail: u32, line: &Line) -> End {
    let Line { seq, sum, .. } = *line;
    End { trail, seq, sum }
}

fn open(dir: &LogDir, trail: u32) -> Result<(PathBuf, Arc<dyn StorageFile>)> {
    let (path, file) = dir.find_trail(trail)?;
    if trail == 0 && is_version_1(dir, &file)? {
        return Err(Refusal::Version1.of(&key_of(dir)));
    }
    Ok((path, file))
}

/// Returns where the line after this one begins; `None` if there is no such line.
fn find(dir: &LogDir, line: End) -> Result<Option<u64>> {
    if !dir.readable_trails()?.contains(&line.trail) {
        return Ok(None);
    }
    let (path, file) = open(dir, line.trail)?;
    let byte = find_seq(&file, &path, line.seq)?;
    let mut reader = TrailReader::forwards(file, &path, byte, PEEK_BUFFER, Sums::Check);
    while let Some(record) = reader.next_record()? {
        if record.seq() > line.seq {
            break;
        }
        if record.seq() == line.seq && record.sum_bytes() == line.sum {
            return Ok(reader.last_line().map(|(_, end, _)| end));
        }
    }
    Ok(None)
}

/// Decides what it means that a line is not here.
fn absent(dir: &LogDir, line: End) -> Result<Unsent> {
    let head = dir.head()?;
    if line.trail != head {
        return Ok(match line.trail > head {
            true => Unsent::Ahead,
            false => Unsent::Diverged,
        });
    }
    let (path, file) = open(dir, head)?;
    let len = file.len().context("cannot read the trail", &path)?;
    let beyond = find_seq(&file, &path, line.seq)?;
    Ok(match beyond >= len {
        true => Unsent::Ahead,
        false => Unsent::Diverged,
    })
}
