//! Writes pulled lines: a session that is new here, or more of one that is.

use super::LocalLog;
use super::lines::spawned;
use crate::error::{Error, ErrorKind, IoContext, Reason, Result};
use crate::ids::{ObjectId, SessionId};
use crate::log::lock::LockFile;
use crate::log::payloads::{PayloadWriter, Placed};
use crate::log::tail::Tail;
use crate::log::{HeldLock, LogDir, hold_writer};
use crate::message::parts::Reference;
use crate::replica::wire::{End, Line};
use crate::storage::{append_all, make_dir};
use crate::store::Store;
use crate::trail::opener::Opener;
use crate::trail::record::{Position, check_line};
use crate::trail::{RecordKind, RecordRef, Sums};

/// Writes a pulled log.
#[derive(Debug)]
pub(crate) struct PulledLog {
    store: Store,
    files: LogDir,
    payloads: PayloadWriter,
    append_lock: LockFile,
    /// Held while it is written: nobody else may continue it meanwhile.
    _writer: HeldLock,
    /// Where it must end; `None` for a log without a trail.
    end: Option<End>,
    tail: Option<Tail>,
    /// Lines that are damaged at the replica, and were skipped.
    pub(crate) damaged: u64,
}

/// Lines that were checked, with what they name.
#[derive(Debug, Default)]
pub(crate) struct CheckedLines {
    bytes: Vec<u8>,
    pub(crate) count: u64,
    last: Option<Position>,
    pub(crate) payloads: Vec<Reference>,
    pub(crate) spawned: Vec<SessionId>,
}

impl CheckedLines {
    /// Returns how many bytes they have, newlines included.
    pub(crate) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }
}

impl PulledLog {
    /// Creates the directory of a session in a store where it is staged.
    pub(crate) fn create(staged: &Store, id: &SessionId) -> Result<Self> {
        let files = staged.files(id);
        make_dir(staged.storage(), files.path())
            .context("cannot create the session", files.path())?;
        Self::of(staged, files, None)
    }

    /// Opens a session that continues after `end`. Nobody else writes to it until this is
    /// dropped.
    pub(crate) fn open(store: &Store, log: &LocalLog, end: Option<End>) -> Result<Self> {
        Self::of(store, log.files().clone(), end)
    }

    fn of(store: &Store, files: LogDir, end: Option<End>) -> Result<Self> {
        Ok(Self {
            _writer: hold_writer(store, &files)?,
            payloads: PayloadWriter::new(&files),
            append_lock: LockFile::append(&files)?,
            store: store.clone(),
            files,
            end,
            tail: None,
            damaged: 0,
        })
    }

    /// Begins a trail with an opener.
    pub(crate) fn begin(&mut self, trail: u32, opener: &Line) -> Result<()> {
        let record = record_in(opener);
        let known = record.filter(|record| record.kind() == RecordKind::Opener);
        let Some(record) = known else {
            return Err(self.bad_opener(trail, &Reason::BadOpener));
        };
        Opener::read(&record, self.files.id(), trail)
            .map_err(|reason| self.bad_opener(trail, &reason))?;
        let _guard = self.append_lock.hold()?;
        self.check_end()?;
        let path = self.files.trail_path(trail);
        self.files.create_trail(trail, |file| {
            append_all(file, &[&opener.bytes[..], b"\n"].concat())
                .context("cannot create the trail", &path)
        })?;
        self.tail = None;
        self.end = Some(End {
            trail,
            seq: opener.seq,
            sum: opener.sum,
        });
        Ok(())
    }

    fn bad_opener(&self, trail: u32, reason: &Reason) -> Error {
        let id = self.files.id();
        let what = format!("trail {trail} of session {id} has no readable opener there");
        Error::new(ErrorKind::Corrupt, what).with_reason(reason.clone())
    }

    /// Checks lines, which come after the end; damaged ones are counted and left out.
    pub(crate) fn checked(&mut self, lines: &[Line]) -> CheckedLines {
        let mut checked = CheckedLines::default();
        for line in lines {
            let Some(record) = record_in(line) else {
                self.damaged += 1;
                continue;
            };
            checked.bytes.extend_from_slice(&line.bytes);
            checked.bytes.push(b'\n');
            checked.count += 1;
            checked.last = Some(Position::after(&record));
            checked
                .payloads
                .extend(record.references().unwrap_or_default());
            checked.spawned.extend(spawned(&record));
        }
        checked
    }

    /// Stores payloads durably, each where it is in the file that it comes from, if possible.
    pub(crate) fn store_payloads(&mut self, contents: &[(Reference, Vec<u8>)]) -> Result<()> {
        let placed: Vec<Placed<'_>> = contents
            .iter()
            .map(|(reference, content)| Placed {
                at: reference.at,
                content,
            })
            .collect();
        self.payloads.store_placed(&placed)
    }

    /// Appends lines to the newest trail. They are durable when this returns.
    pub(crate) fn append(&mut self, trail: u32, lines: &CheckedLines) -> Result<()> {
        let Some(last) = lines.last else {
            return Ok(());
        };
        let guard = self.append_lock.hold()?;
        self.check_end()?;
        let tail = match &mut self.tail {
            Some(tail) => tail,
            none => none.insert(Tail::load(&self.store, &self.files)?),
        };
        tail.append_lines(&lines.bytes, last)?;
        drop(guard);
        tail.sync()?;
        self.end = Some(End {
            trail,
            seq: last.seq,
            sum: last.sum.to_bytes(),
        });
        Ok(())
    }

    /// Checks that the log still ends where it must, under the short lock. Another process may
    /// have added a note.
    fn check_end(&mut self) -> Result<()> {
        let Some(end) = self.end else {
            return match self.files.trails()?.is_empty() {
                true => Ok(()),
                false => Err(self.moved()),
            };
        };
        let tail = match &mut self.tail {
            Some(tail) => {
                tail.catch_up()?;
                tail
            }
            none => none.insert(Tail::load(&self.store, &self.files)?),
        };
        let spot = tail.spot();
        match (spot.trail, spot.sum.to_bytes()) == (end.trail, end.sum) {
            true => Ok(()),
            false => Err(self.moved()),
        }
    }

    fn moved(&self) -> Error {
        let id = self.files.id();
        let what = format!("session {id} was changed by another process; pull again");
        Error::new(ErrorKind::Conflict, what).at_path(self.files.path())
    }
}

/// Returns whether a payload is the content that a reference names.
pub(crate) fn is_payload(reference: &Reference, content: &[u8]) -> bool {
    content.len() as u64 == reference.bytes && ObjectId::of(content) == reference.hash
}

/// Returns a line as the record that it must be.
fn record_in(line: &Line) -> Option<RecordRef<'_>> {
    if line.bytes.contains(&b'\n') {
        return None;
    }
    let envelope = check_line(&line.bytes, Sums::Check).ok()?;
    let record = RecordRef::new(&line.bytes, envelope, None);
    let is_it = record.seq() == line.seq && record.sum_bytes() == line.sum;
    is_it.then_some(record)
}

/// Returns whether a line is a whole record, with its number and sum.
pub(crate) fn is_intact(line: &Line) -> bool {
    record_in(line).is_some()
}

/// Returns the payloads that a line names.
pub(crate) fn references_in(line: &Line) -> Vec<Reference> {
    let references = record_in(line).map(|record| record.references());
    references.and_then(Result::ok).unwrap_or_default()
}
