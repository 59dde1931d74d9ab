//! Reads and continues a file of version 1 as the first trail of a session in an old store.
//!
//! Earlier versions imported such files byte for byte, with a second trail that records
//! the import. New imports are trails of this version.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::chain::{Segment, continues_at};
use super::directory::LogDir;
use crate::error::{ErrorKind, IoContext, Reason, Result};
use crate::hex::to_hex;
use crate::message::{CompactionSummary, Role};
use crate::storage::{StorageFile, read_full};
use crate::store::Store;
use crate::time::Timestamp;
use crate::trail::envelope::Envelope;
use crate::trail::foreign::{ForeignKind, ForeignRecord, ForeignRecords};
use crate::trail::lines::{Ending, Forwards, PEEK_BUFFER, STREAM_BUFFER};
use crate::trail::opener::{Opener, TrailReason};
use crate::trail::origin::Imported;
use crate::trail::present::WorkspaceRef;
use crate::trail::reader::TrailReader;
use crate::trail::record::{split_prev, split_sum};
use crate::trail::{RecordKind, Sums};
use crate::version1::{V1Index, V1Line, V1Record, V1Session, hash, read, scan_object};

/// The beginning of every opener of a session.
pub(crate) const OPENING: &[u8] = b"{\"type\":\"session_meta\",\"version\":";
/// The longest name that notes and openers repeat.
const LONGEST_NAME: usize = 4096;

/// Returns whether the first trail of a session is a file of version 1.
///
/// The second trail records it. If that is missing or its opener is lost, the file itself
/// decides.
pub(crate) fn is_version_1(files: &LogDir, file: &Arc<dyn StorageFile>) -> Result<bool> {
    if files.is_of_workspace() {
        return Ok(false);
    }
    let path = files.trail_path(0);
    if let Some(version) = opening_version(file.as_ref(), &path)? {
        return Ok(version == 1);
    }
    match second_opener(files)?.map(|opener| opener.reason) {
        Some(TrailReason::Import) => Ok(true),
        // A repair replaces a lost opener with its own.
        None | Some(TrailReason::Repair) => looks_like_version_1(file, &path),
        Some(_) => Ok(false),
    }
}

/// Returns the version of a file that begins like a trail of a session.
fn opening_version(file: &dyn StorageFile, path: &Path) -> Result<Option<u64>> {
    let mut beginning = [0; OPENING.len() + 4];
    let n = read_full(file, &mut beginning, 0).context("cannot read the trail", path)?;
    let number = beginning[..n].strip_prefix(OPENING).map(|rest| {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit());
        digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
    });
    Ok(number)
}

/// Returns whether version 1 wrote the first line that can be read.
fn looks_like_version_1(file: &Arc<dyn StorageFile>, path: &Path) -> Result<bool> {
    if scan_object(file.as_ref(), path)?.is_some() {
        return Ok(true);
    }
    let mut lines = Forwards::new(Arc::clone(file), 0, STREAM_BUFFER);
    loop {
        let line = lines.next().context("cannot read the trail", path)?;
        let Some(line) = line else {
            return Ok(false);
        };
        let bytes = lines.bytes(&line);
        // A line of a trail, even with a wrong sum, must not pass for one of version 1.
        let sum = split_sum(bytes.trim_ascii_end());
        if sum.is_some_and(|(covered, _)| split_prev(covered).is_some()) {
            return Ok(false);
        }
        match V1Line::read(bytes, Ending::Newline).content {
            Err(_) | Ok(None | Some(V1Record::Other(_))) => {}
            Ok(Some(_)) => return Ok(true),
        }
    }
}

/// Reads the opener of a session's second trail, if there is one.
pub(crate) fn second_opener(files: &LogDir) -> Result<Option<Opener>> {
    let file = match files.open_read(1) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let path = files.trail_path(1);
    let mut reader = TrailReader::forwards(file, &path, 0, PEEK_BUFFER, Sums::Check);
    let Some(record) = reader.next_record()? else {
        return Ok(None);
    };
    if record.kind() != RecordKind::Opener {
        return Ok(None);
    }
    Ok(Opener::read(&record, files.id(), 1).ok())
}

/// Reads the opener that records a session's origin: that of its first trail, or of the
/// second if the first is a file of version 1. `None` if it is unreadable.
pub(crate) fn first_opener(files: &LogDir) -> Result<Option<Opener>> {
    let Some(first) = files.trails()?.first().copied() else {
        return Ok(None);
    };
    let segment = Segment::open(files, first, u64::MAX)?;
    if segment.is_version_1() {
        second_opener(files)
    } else {
        Ok(segment.opener)
    }
}

/// Hashes a session's first trail.
pub(crate) fn hash_of(files: &LogDir) -> Result<String> {
    let hash = hash(files.open_read(0)?.as_ref(), &files.trail_path(0))?;
    Ok(to_hex(&hash))
}

/// The places of the records of a version-1 file, found on first use.
#[derive(Debug, Clone, Default)]
pub(crate) struct V1Trail(Arc<OnceLock<Arc<V1Index>>>);

impl V1Trail {
    fn index(&self, file: &dyn StorageFile, path: &Path) -> Result<Arc<V1Index>> {
        if let Some(index) = self.0.get() {
            return Ok(Arc::clone(index));
        }
        let index = Arc::new(V1Index::read(file, path)?);
        Ok(Arc::clone(self.0.get_or_init(|| index)))
    }

    /// Reads the records whose seqs are in `seqs`, in one direction.
    pub(super) fn reader(
        &self,
        file: Arc<dyn StorageFile>,
        path: &Path,
        seqs: Range<u64>,
        direction: Direction,
    ) -> Result<TrailReader> {
        let index = self.index(file.as_ref(), path)?;
        let end = seqs.end.min(index.last_seq().saturating_add(1));
        let records = V1Records {
            coming: seqs.start.max(1).min(end)..end,
            file,
            index,
            direction,
            buffer: Vec::new(),
            found: Vec::new(),
        };
        Ok(TrailReader::foreign(path, records))
    }

    /// Returns the last compaction of the file.
    pub(super) fn compaction(
        &self,
        file: &dyn StorageFile,
        path: &Path,
    ) -> Result<Option<CompactionSummary>> {
        self.index(file, path)?.compaction(file, path)
    }
}

/// The direction of reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Forwards,
    Backwards,
}

/// The records of a version-1 file, read as those of a trail.
#[derive(Debug)]
struct V1Records {
    file: Arc<dyn StorageFile>,
    index: Arc<V1Index>,
    /// The seqs still to read.
    coming: Range<u64>,
    direction: Direction,
    buffer: Vec<u8>,
    /// The items of the last line, in reverse order.
    found: Vec<ForeignRecord>,
}

impl ForeignRecords for V1Records {
    fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// Returns the next record or damage. A meta is not a record of the conversation.
    fn next(&mut self, path: &Path) -> Result<Option<ForeignRecord>> {
        loop {
            if let Some(found) = self.found.pop() {
                return Ok(Some(found));
            }
            let next = match self.direction {
                Direction::Forwards => self.coming.next(),
                Direction::Backwards => self.coming.next_back(),
            };
            let Some(seq) = next else {
                return Ok(None);
            };
            self.found = self.look(path, seq)?;
            if self.direction == Direction::Forwards {
                self.found.reverse();
            }
        }
    }
}

impl V1Records {
    /// Returns the damage of a line, and then its record.
    fn look(&mut self, path: &Path, seq: u64) -> Result<Vec<ForeignRecord>> {
        let Some(place) = self.index.place(seq) else {
            return Ok(Vec::new());
        };
        let line = match self.index.load(self.file.as_ref(), path, seq)? {
            Ok(bytes) => {
                self.buffer = bytes;
                self.index.look(seq, &self.buffer)
            }
            Err(reason) => Err(reason).into(),
        };
        let number = self.index.is_lines().then_some(seq);
        let lost = line.lost.map(|(bytes, reason)| ForeignRecord {
            place: place.start..place.start + bytes as u64,
            line: number,
            content: Err(reason),
        });
        let too_long = || Reason::TooLong {
            bytes: place.end - place.start,
            limit: u64::from(u32::MAX),
        };
        let record = content(&self.buffer, line.content).map(|content| ForeignRecord {
            place: place.clone(),
            line: number,
            content: content
                .and_then(|(kind, body)| Envelope::foreign(seq, kind, body).ok_or_else(too_long)),
        });
        Ok(lost.into_iter().chain(record).collect())
    }
}

/// Returns the kind of a record, and the place of its message in `buffer`. `None` for a line
/// that is not a record of the conversation.
fn content(
    buffer: &[u8],
    content: Result<Option<V1Record<'_>>, Reason>,
) -> Option<Result<(ForeignKind, Range<usize>), Reason>> {
    match content.transpose()? {
        Ok(V1Record::Meta(_)) => None,
        Ok(V1Record::Message(json)) => {
            let start = json.as_ptr() as usize - buffer.as_ptr() as usize;
            Some(Ok((ForeignKind::Message, start..start + json.len())))
        }
        Ok(V1Record::Compaction(_)) => Some(Ok((ForeignKind::Compaction, 0..0))),
        Ok(V1Record::Prompt { .. } | V1Record::Other(_)) => Some(Ok((ForeignKind::Other, 0..0))),
        // One seq cannot name several messages.
        Ok(V1Record::Object(_)) => Some(Err(Reason::MissingType)),
        Err(reason) => Some(Err(reason)),
    }
}

/// Begins the second trail of a session whose import was interrupted after the first.
pub(super) fn begin_second(store: &Store, files: &LogDir) -> Result<()> {
    // The file's original name is unknown; the id was often derived from it.
    let path = files.path().with_extension("jsonl");
    let file = files.open_read(0)?;
    let session = read(&file, &path, &mut |_| Ok(()))?;
    let mut opener = Opener::new(files.id(), 1, TrailReason::Import, store.now());
    let segment = Segment::version_1(files, u64::MAX);
    opener.imported = Some(imported(store, files, &session, &segment)?);
    if let Some(meta) = &session.meta {
        opener.present.model = short(&meta.model);
        let root = short(&meta.workspace_root);
        opener.present.workspace = root.map(|root| WorkspaceRef::new(Path::new(&root)));
        opener.fork = meta
            .fork
            .clone()
            .filter(|fork| is_short(&fork.parent_session_id));
        if let Some(fork) = &mut opener.fork {
            fork.branch_name = short(&fork.branch_name);
        }
    }
    if let Some(last) = segment.last_position()? {
        opener = opener.continuing(continues_at(files.id(), 0, &last), None);
    }
    files.create_opened(&opener).map(drop)
}

fn imported(
    store: &Store,
    files: &LogDir,
    session: &V1Session,
    segment: &Segment,
) -> Result<Imported> {
    let millis = |ms: i64| Timestamp::from_millis(ms).unwrap_or_else(|| store.now());
    let len = files.open_read(0)?.len();
    let other = || (session.session_id != *files.id()).then(|| session.session_id.to_string());
    let (uninstructed, begins) = beginning(segment)?;
    Ok(Imported {
        hash: hash_of(files)?,
        bytes: len.context("cannot read the trail", &files.trail_path(0))?,
        original_id: short(&session.original_id).or_else(other),
        uninstructed,
        begins,
        created_at: millis(session.created_at_ms),
        updated_at: millis(session.updated_at_ms),
    })
}

/// Returns whether a conversation begins without instructions, and its first prompt.
fn beginning(segment: &Segment) -> Result<(bool, Option<String>)> {
    /// How many messages are searched for a prompt.
    const LOOKED_AT: usize = 50;
    const SHOWN: usize = 200;
    let mut reader = segment.forwards(0, STREAM_BUFFER, Sums::Check)?;
    let (mut messages, mut uninstructed) = (0, false);
    while messages < LOOKED_AT
        && let Some(record) = reader.next_record()?
    {
        let Ok(Some(message)) = record.stored_message() else {
            continue;
        };
        uninstructed |= messages == 0 && message.role != Role::System;
        messages += 1;
        let text = message.text();
        if message.role == Role::User && !text.trim().is_empty() {
            return Ok((uninstructed, Some(text.chars().take(SHOWN).collect())));
        }
    }
    Ok((uninstructed, None))
}

/// Returns a name that notes can repeat. A longer one stays in the file only.
fn short(name: &Option<String>) -> Option<String> {
    name.clone().filter(|name| is_short(name))
}

fn is_short(name: &str) -> bool {
    name.len() <= LONGEST_NAME
}
