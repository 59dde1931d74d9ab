//! A log of the store, as a replica sees logs: trails of lines with sums, and payloads.

mod lines;
mod write;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use lines::spawned;
pub(crate) use lines::{LinesPart, LocalLine, TrailLines, local_line};
pub(crate) use write::{CheckedLines, PulledLog, is_intact, is_payload, references_in};

use super::compare::{Here, HereTrail};
use super::refusal::Refusal;
use super::wire::{End, LogKey, LogOwner};
use crate::error::{Error, ErrorKind, IoContext, Result};
use crate::ids::SessionId;
use crate::log::lock::LockFile;
use crate::log::payloads::Payloads;
use crate::log::version1::is_version_1;
use crate::log::{GoneTrails, LogDir};
use crate::message::parts::Reference;
use crate::storage::StorageFile;
use crate::trail::find::find_seq;
use crate::trail::lines::{PEEK_BUFFER, STREAM_BUFFER};
use crate::trail::reader::{Found, TrailReader};
use crate::trail::{RecordKind, RecordRef, Sums};

/// A log of the store, up to where it ended when it was opened.
#[derive(Debug)]
pub(crate) struct LocalLog {
    files: LogDir,
    trails: BTreeMap<u32, LocalTrail>,
    /// The trails that a keep count moved away, and that are gone by now.
    gone: Vec<u32>,
}

/// A trail of the store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalTrail {
    /// Its length when the log was opened.
    pub(crate) len: u64,
    /// The first line; `None` if it cannot be read.
    pub(crate) opener: Option<End>,
    /// The last line that can be read.
    pub(crate) end: Option<End>,
    /// Whether something after that line cannot be read.
    lost_end: bool,
}

/// What the records of a log name.
#[derive(Debug, Default)]
pub(crate) struct Named {
    /// The sessions of sub-agents.
    pub(crate) sub_agents: Vec<SessionId>,
    /// Payloads, each once.
    pub(crate) payloads: Vec<Reference>,
}

/// How far from the end of a trail its seqs are compared: one read fetches that much anyway.
const NEAR_END: u64 = 32 << 10;

impl LocalLog {
    /// Opens a log for reading, at the moment between two appends. A session in the trash is
    /// read there if `files` are those of the trash.
    pub(crate) fn open(files: &LogDir) -> Result<Self> {
        files.head()?;
        // A group of lines that is being written may still be cut off.
        let lock = LockFile::existing(files)?;
        let guard = lock.map(|lock| lock.hold()).transpose()?;
        let mut opened = Vec::new();
        for trail in files.readable_trails()? {
            let (path, file) = files.find_trail(trail)?;
            let len = file.len().context("cannot read the trail", &path)?;
            opened.push((trail, path, file, len));
        }
        drop(guard);
        let mut trails = BTreeMap::new();
        for (trail, path, file, len) in opened {
            if trail == 0 && is_version_1(files, &file)? {
                return Err(Refusal::Version1.of(&key_of(files)));
            }
            let (end, lost_end) = last_line(&file, &path, trail, len)?;
            let found = LocalTrail {
                opener: first_line(&file, &path, trail)?,
                end,
                lost_end,
                len,
            };
            trails.insert(trail, found);
        }
        let gone = GoneTrails::read(files)?.trails.into_iter();
        let gone = gone.map(|gone| gone.trail);
        let gone = gone.filter(|trail| !trails.contains_key(trail)).collect();
        Ok(Self {
            files: files.clone(),
            trails,
            gone,
        })
    }

    /// Returns its name at a replica.
    pub(crate) fn key(&self) -> LogKey {
        key_of(&self.files)
    }

    pub(crate) fn files(&self) -> &LogDir {
        &self.files
    }

    /// Returns what a comparison needs to know.
    pub(crate) fn here(&self) -> Here {
        let trail = |(number, trail): (&u32, &LocalTrail)| {
            let here = HereTrail {
                opener: trail.opener,
                end: trail.end,
                lost_end: trail.lost_end,
            };
            (*number, here)
        };
        Here {
            trails: self.trails.iter().map(trail).collect(),
            gone: self.gone.clone(),
        }
    }

    /// Makes a trail as durable here as it will be at the replica: a line that is there must not
    /// be lost here.
    pub(crate) fn make_durable(&self, trail: u32) -> Result<()> {
        let (path, file) = self.files.find_trail(trail)?;
        file.sync()
            .context("cannot make the session durable", &path)?;
        match path.starts_with(self.files.path()) {
            true => self.files.sync_names(),
            false => Ok(()),
        }
    }

    /// Reads the lines of a trail whose seq is higher than `after`; `None` for all of them, with
    /// the opener.
    pub(crate) fn lines(&self, trail: u32, after: Option<u64>) -> Result<TrailLines> {
        let known = self.known(trail)?;
        TrailLines::open(&self.files, trail, after, known.len)
    }

    /// Returns about how many bytes the lines after a seq have.
    pub(crate) fn bytes_after(&self, trail: u32, after: Option<u64>) -> Result<u64> {
        let known = self.known(trail)?;
        let Some(beyond) = after.map(|seq| seq.saturating_add(1)) else {
            return Ok(known.len);
        };
        let (path, file) = self.files.find_trail(trail)?;
        let from = find_seq(&file, &path, beyond)?;
        Ok(known.len.saturating_sub(from))
    }

    /// Returns the sum of a line: its own, or the one that the next line repeats if the line
    /// itself is damaged.
    pub(crate) fn sum_at(&self, trail: u32, seq: u64) -> Result<Option<[u8; 8]>> {
        let Some(known) = self.trails.get(&trail) else {
            return Ok(None);
        };
        if let Some(opener) = known.opener.filter(|opener| opener.seq == seq) {
            return Ok(Some(opener.sum));
        }
        let (path, file) = self.files.find_trail(trail)?;
        let from = find_seq(&file, &path, seq)?;
        let mut reader = TrailReader::forwards(file, &path, from, PEEK_BUFFER, Sums::Check);
        while let Some(record) = reader.next_record()? {
            if record.seq() == seq && record.kind() != RecordKind::Opener {
                return Ok(Some(record.sum_bytes()));
            }
            if record.seq() > seq {
                return Ok(record.prev().map(|prev| prev.to_bytes()));
            }
        }
        Ok(None)
    }

    /// Returns the content of a payload; `None` if it is lost here.
    pub(crate) fn payload(&self, reference: &Reference) -> Result<Option<Vec<u8>>> {
        let Reference {
            hash, bytes, at, ..
        } = *reference;
        match Payloads::new(&self.files).fetch(hash, bytes, at) {
            Err(error) if error.kind() == ErrorKind::Corrupt => Ok(None),
            fetched => fetched.map(Some),
        }
    }

    /// Returns whether a payload is here.
    pub(crate) fn has_payload(&self, reference: &Reference) -> Result<bool> {
        let Reference {
            hash, bytes, at, ..
        } = *reference;
        Payloads::new(&self.files).check(hash, bytes, at)
    }

    /// Returns how many bytes the trails have.
    pub(crate) fn bytes(&self) -> u64 {
        self.trails.values().map(|trail| trail.len).sum()
    }

    /// Returns what its records name, on any branch.
    pub(crate) fn named(&self) -> Result<Named> {
        let mut named = Named::default();
        let mut seen = HashSet::new();
        for trail in self.trails.keys() {
            let (path, file) = self.files.find_trail(*trail)?;
            let mut reader = TrailReader::forwards(file, &path, 0, STREAM_BUFFER, Sums::Trust);
            while let Some(record) = reader.next_record()? {
                let sub_agents = &mut named.sub_agents;
                sub_agents.extend(spawned(&record).filter(|id| !sub_agents.contains(id)));
                let mut payloads = record.references().unwrap_or_default();
                payloads.retain(|payload| seen.insert(payload.hash));
                named.payloads.extend(payloads);
            }
        }
        Ok(named)
    }

    /// Returns those of some payloads that are lost here. What the file has at their places is
    /// not read.
    pub(crate) fn lost(&self, mut payloads: Vec<Reference>) -> Result<Vec<Reference>> {
        let file = Payloads::new(&self.files);
        let mut failed = None;
        payloads.retain(|it| match file.is_there(it.hash, it.bytes, it.at) {
            Ok(there) => !there,
            Err(error) => {
                failed.get_or_insert(error);
                false
            }
        });
        failed.map_or(Ok(payloads), Err)
    }

    fn known(&self, trail: u32) -> Result<&LocalTrail> {
        self.trails.get(&trail).ok_or_else(|| {
            let what = format!("session {} has no trail {trail}", self.files.id());
            Error::new(ErrorKind::NotFound, what).at_path(self.files.path())
        })
    }
}

/// Returns the name of a log at a replica.
pub(crate) fn key_of(files: &LogDir) -> LogKey {
    LogKey {
        owner: match files.is_of_workspace() {
            true => LogOwner::Workspace,
            false => LogOwner::Session,
        },
        id: files.id().clone(),
    }
}

fn end_of(trail: u32, record: &RecordRef<'_>) -> End {
    End {
        trail,
        seq: record.seq(),
        sum: record.sum_bytes(),
    }
}

fn first_line(file: &Arc<dyn StorageFile>, path: &Path, trail: u32) -> Result<Option<End>> {
    let mut reader = TrailReader::forwards(Arc::clone(file), path, 0, PEEK_BUFFER, Sums::Check);
    let first = reader.next_record()?;
    let opener = first.filter(|record| record.kind() == RecordKind::Opener);
    Ok(opener.map(|record| end_of(trail, &record)))
}

/// Returns the readable line with the highest seq near the end of a trail, and whether something
/// after it cannot be read.
fn last_line(
    file: &Arc<dyn StorageFile>,
    path: &Path,
    trail: u32,
    len: u64,
) -> Result<(Option<End>, bool)> {
    let mut reader = TrailReader::backwards(Arc::clone(file), path, len, Sums::Check);
    let mut last: Option<End> = None;
    let mut lost_end = false;
    while let Some(found) = reader.advance()? {
        if let Found::Damage(_) = found {
            lost_end |= last.is_none();
            continue;
        }
        let end = end_of(trail, &reader.record());
        if last.is_none_or(|last| last.seq < end.seq) {
            last = Some(end);
        }
        if reader.place().start + NEAR_END < len {
            break;
        }
    }
    Ok((last, lost_end))
}
