//! The end of a log's head trail: where the next record goes.
//!
//! Everything here happens under the short lock. Its holder may find that the trail grew
//! (a note of another process) or that it ends in an unfinished line (a process died while
//! writing); see [`FileTail`]. A trail without any readable record gets a new opener.

mod file_tail;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use file_tail::{FileTail, is_torn_record, numbers_in};

use file_tail::End;

use serde::Serialize;

use super::chain::{Segment, continues_at};
use super::directory::LogDir;
use super::lock::LockFile;
use super::present::present_at;
use super::version1;
use crate::error::{Error, ErrorKind, IoContext, Result};
use crate::hex::lossy_path;
use crate::store::Store;
use crate::trail::opener::{FORMAT_VERSION, Opener, Spot, TrailReason};
use crate::trail::record::Position;

/// An unfinished end of a trail that was set aside when the session was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SetAside {
    /// The trail that it was cut off.
    #[serde(serialize_with = "lossy_path")]
    pub trail: PathBuf,
    /// Where it was cut.
    pub byte: u64,
    /// How many bytes were set aside.
    pub bytes: u64,
    /// Whether it is the beginning of one record, whose writer died: then it was never
    /// acknowledged. Otherwise that is unknown.
    pub never_acknowledged: bool,
    /// The file that contains them now.
    #[serde(serialize_with = "lossy_path")]
    pub file: PathBuf,
}

/// The end of the head trail, as last read.
#[derive(Debug)]
pub(crate) struct Tail {
    store: Store,
    files: LogDir,
    pub(crate) trail: u32,
    end: FileTail,
    /// Set when there may be a new trail that this tail has not seen.
    stale: bool,
    /// The error after which nothing more is written through this tail.
    stopped: Option<Error>,
    /// The buffer of the last append, kept for the next.
    lines: Vec<u8>,
    pub(crate) set_aside: Vec<SetAside>,
}

/// A record on its way to disk: the part between its numbers and `prev`.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) kind: &'a str,
    pub(crate) body: &'a [u8],
}

/// The longest buffer that is kept between appends.
const KEPT_BUFFER: usize = 64 << 10;

impl Tail {
    /// Reads the end of a log's head trail, and repairs it if needed.
    pub(crate) fn load(store: &Store, files: &LogDir) -> Result<Self> {
        // The session may have been deleted while the caller waited for the lock.
        let trail = files.head()?;
        files.sync_names()?;
        let path = files.trail_path(trail);
        let segment = Segment::open(files, trail, u64::MAX)?;
        if segment.is_version_1() {
            // Its import was interrupted before the second trail.
            version1::begin_second(store, files)?;
            return Self::load(store, files);
        }
        let opener = segment.opener;
        refuse_newer(opener.as_ref(), &path)?;
        let mut tail = Self {
            store: store.clone(),
            files: files.clone(),
            trail,
            end: FileTail::new(&path, files.open_append(trail)?),
            stale: false,
            stopped: None,
            lines: Vec::new(),
            set_aside: Vec::new(),
        };
        tail.reload()?;
        // Seqs whose records were lost, by a repair or a cut, are not assigned again.
        let repaired = opener.and_then(|opener| opener.given);
        let given = repaired.max(files.given(trail)?).unwrap_or(0);
        tail.end.position.seq = tail.end.position.seq.max(given);
        Ok(tail)
    }

    /// Finds the last record from the end of the file.
    fn reload(&mut self) -> Result<()> {
        let len = self.end.file_len()?;
        let end = End::of(&self.end.file, &self.end.path, len)?;
        let Some((position, whole)) = end.last else {
            return self.begin_again(len, &end);
        };
        self.end.position = position;
        self.end.len = len;
        if end.ended {
            return Ok(());
        }
        self.mending(|end, keep_aside| end.mend(whole, len, keep_aside))
    }

    /// Repairs the file's end, and remembers what was set aside.
    fn mending(
        &mut self,
        mend: impl FnOnce(&mut FileTail, file_tail::KeepAside<'_>) -> Result<Option<SetAside>>,
    ) -> Result<()> {
        let (files, trail) = (&self.files, self.trail);
        let source = Arc::clone(&self.end.file);
        let keep_aside = |part, given| files.set_aside(trail, source.as_ref(), part, given);
        let set_aside = mend(&mut self.end, &keep_aside)?;
        self.set_aside.extend(set_aside);
        Ok(())
    }

    /// Reads what other writers appended since the last read.
    pub(crate) fn catch_up(&mut self) -> Result<()> {
        if self.stale || self.end.is_torn {
            return self.start_over();
        }
        let len = self.end.file_len()?;
        if len < self.end.len {
            let lost = self.end.len - len;
            let what = format!("{lost} bytes that were written are gone from the end of the trail");
            let error = Error::new(ErrorKind::Corrupt, what).at_path(&self.end.path);
            return Err(self.stop(error));
        }
        match self.end.appended()? {
            Some(appended) => self.mending(|end, keep_aside| end.take(&appended, keep_aside)),
            None => Ok(()),
        }
    }

    /// Opens the head again, which may be another trail now.
    fn start_over(&mut self) -> Result<()> {
        let fresh = Self::load(&self.store, &self.files)?;
        let known = std::mem::take(&mut self.set_aside);
        *self = fresh;
        self.set_aside.splice(0..0, known);
        Ok(())
    }

    /// Gives a trail without any readable record a new opener.
    fn begin_again(&mut self, len: u64, end: &End) -> Result<()> {
        let before = self.position_before()?;
        let last = before.as_ref().map_or(0, |(_, position)| position.seq);
        // Set before the cut, which records the seqs that it drops.
        self.end.position.seq = last.saturating_add(end.lost);
        self.end.len = len;
        if !end.ended {
            let line = self.end.start_of_last_line(len)?;
            self.mending(|end, keep_aside| end.cut(line, len, keep_aside).map(Some))?;
            self.end.len = line;
        }
        let mut opener = Opener {
            seq: self.end.position.seq,
            ..self
                .files
                .opener(self.trail, TrailReason::Repair, self.store.now())
        };
        if let Some((trail, position)) = before {
            opener.continues = Some(continues_at(self.files.id(), trail, &position));
            opener.compacted = position.compacted;
            opener.present = present_at(&self.store, &self.files, trail, &position)?;
        }
        let mut line = Vec::new();
        self.end.position.sum = opener.write(&mut line)?;
        self.end.position.compacted = opener.compacted;
        self.end.write(&line)?;
        self.sync()
    }

    /// Returns the nearest lower trail with a readable record, and its end.
    fn position_before(&self) -> Result<Option<(u32, Position)>> {
        for below in self.files.trails()?.into_iter().rev() {
            if below < self.trail
                && let Some(position) = self.end_of(below)?
            {
                return Ok(Some((below, position)));
            }
        }
        Ok(None)
    }

    /// Returns the position after the last record of a trail.
    fn end_of(&self, trail: u32) -> Result<Option<Position>> {
        let segment = Segment::open(&self.files, trail, u64::MAX)?;
        if segment.is_version_1() {
            return segment.last_position();
        }
        let file = segment.file()?;
        let len = file.len().context("cannot read the trail", &segment.path)?;
        let end = End::of(&file, &segment.path, len)?;
        Ok(end.last.map(|(position, _)| position))
    }

    /// Writes records in one `write` and moves after them. On failure none of them was
    /// recorded, and the error reports it.
    pub(crate) fn append(&mut self, entries: &[Entry<'_>]) -> Result<()> {
        let mut lines = std::mem::take(&mut self.lines);
        lines.clear();
        let mut position = self.end.position;
        for entry in entries {
            position = position
                .write_next(&mut lines, entry.kind, entry.body)
                .map_err(|error| error.at_path(&self.end.path))?;
        }
        self.end.write(&lines)?;
        self.end.position = position;
        if lines.capacity() <= KEPT_BUFFER {
            self.lines = lines;
        }
        Ok(())
    }

    /// Writes lines that were written elsewhere, the last of which ends at `position`. The caller
    /// has checked that they follow.
    pub(crate) fn append_lines(&mut self, lines: &[u8], position: Position) -> Result<()> {
        self.end.write(lines)?;
        self.end.position = position;
        Ok(())
    }

    /// Syncs all appended records. After a failure nothing more is acknowledged: it is
    /// unknown which records reached the disk.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.end.file.sync().map_err(|error| {
            let what = "cannot make the trail durable; nothing more is acknowledged \
                        until the session is opened again";
            self.stop(Error::io(what, &self.end.path, error))
        })
    }

    /// Sets everything from a byte on aside, which was never acknowledged. From byte 0 on, that
    /// is the trail itself, and the log ends with the one below. The caller holds the short
    /// lock.
    pub(crate) fn set_aside_from(&mut self, from: u64) -> Result<()> {
        let len = self.end.len;
        if from > 0 {
            self.mending(|end, keep_aside| end.cut(from, len, keep_aside).map(Some))?;
            self.sync()?;
        } else if self.files.trails()?.len() > 1 {
            let file = Arc::clone(&self.end.file);
            let path = self
                .files
                .set_aside(self.trail, file.as_ref(), 0..len, None)?;
            self.files.remove_trail(self.trail)?;
            self.set_aside.push(SetAside {
                trail: self.end.path.clone(),
                byte: 0,
                bytes: len,
                never_acknowledged: true,
                file: path,
            });
        }
        self.start_over()
    }

    /// Returns the place of the last record.
    pub(crate) fn spot(&self) -> Spot {
        Spot {
            trail: self.trail,
            seq: self.end.position.seq,
            sum: self.end.position.sum,
        }
    }

    /// Returns the position after the last record.
    pub(crate) fn position(&self) -> &Position {
        &self.end.position
    }

    /// Returns the error that stopped this tail, if any.
    pub(crate) fn stopped(&self) -> Option<Error> {
        self.stopped.as_ref().map(Error::duplicate)
    }

    /// Writes nothing more through this tail.
    pub(crate) fn stop(&mut self, error: Error) -> Error {
        self.stopped = Some(error.duplicate());
        error
    }

    /// Returns the length of the trail, as last read.
    pub(crate) fn len(&self) -> u64 {
        self.end.len
    }

    /// Returns whether the trail has grown past `limit`.
    pub(crate) fn is_past(&self, limit: u64) -> bool {
        self.end.len >= limit
    }

    /// Continues in a new trail.
    pub(crate) fn rotate(&mut self) -> Result<()> {
        let position = &self.end.position;
        let present = present_at(&self.store, &self.files, self.trail, position)?;
        let id = self.files.id();
        let from = continues_at(id, self.trail, position);
        let opener = self
            .files
            .opener(self.trail + 1, TrailReason::Rotation, self.store.now());
        let opener = Opener { present, ..opener }.continuing(from, position.compacted);
        // The records that the new trail continues must be at least as durable as the trail.
        self.sync()?;
        self.begin(&opener)
    }

    /// Creates the trail that `opener` opens, and continues there.
    pub(crate) fn begin(&mut self, opener: &Opener) -> Result<()> {
        // From here on the head may be the new trail, even after a failure.
        self.stale = true;
        let created = self.files.create_opened(opener)?;
        self.stale = false;
        let path = self.files.trail_path(opener.trail);
        self.trail = opener.trail;
        self.end = FileTail::new(&path, created.file);
        self.end.len = created.len;
        self.end.position = created.position;
        Ok(())
    }
}

/// Appends one record under the short lock only, even if another process is writing to the
/// log; it is durable when its seq is returned.
pub(crate) fn append_entry(store: &Store, files: &LogDir, kind: &str, body: &[u8]) -> Result<u64> {
    append_entries(store, files, &[Entry { kind, body }])
}

/// Appends records in one write under the short lock only, even if another process is
/// writing to the log; they are durable when the seq of the last is returned.
pub(crate) fn append_entries(store: &Store, files: &LogDir, entries: &[Entry<'_>]) -> Result<u64> {
    let guard = LockFile::append(files)?.hold()?;
    let mut tail = Tail::load(store, files)?;
    // Only a session's writer creates its trails: it would not see this one.
    if files.is_of_workspace() && tail.is_past(store.rotation()) {
        tail.rotate()?;
    }
    tail.append(entries)?;
    drop(guard);
    tail.sync()?;
    Ok(tail.position().seq)
}

fn refuse_newer(opener: Option<&Opener>, path: &Path) -> Result<()> {
    match opener {
        Some(opener) if opener.is_newer() => Err(Error::new(
            ErrorKind::NewerFormat,
            format!(
                "the trail has format version {}, but this program writes {FORMAT_VERSION}; it can only be read",
                opener.version
            ),
        )
        .at_path(path)),
        _ => Ok(()),
    }
}
