//! The end of a session's head trail: where the next record goes.
//!
//! Everything here happens under the short lock. Whoever holds it may find that
//! the trail grew (a note of another process) or that it ends in a line that
//! nobody finished (a process that died while it wrote). The first is taken in;
//! the second is copied to a file beside the trail, synced, and cut off.

mod recovery;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use recovery::numbers_in;

use super::chain::{Segment, continues_at};
use super::directory::LogDir;
use super::lock::AppendLock;
use super::present::present_at;
use crate::error::{Error, ErrorKind, Result};
use crate::session::import;
use crate::storage::{StorageFile, append_all};
use crate::store::Store;
use crate::trail::Sums;
use crate::trail::lines::PEEK_BUFFER;
use crate::trail::opener::{Because, FORMAT_VERSION, Opener, Spot};
use crate::trail::reader::{Found, TrailReader};
use crate::trail::record::{Front, MAX_WRITTEN, Position, write_line};

/// An unfinished end of a trail that was set aside when the session was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// The trail that it was cut off from.
    pub trail: PathBuf,
    /// Where it was cut.
    pub byte: u64,
    /// How many bytes were set aside.
    pub bytes: u64,
    /// Whether it is the beginning of one record, whose writer died: then nobody
    /// was ever told that it is there. Of anything else that cannot be known.
    pub never_acknowledged: bool,
    /// The file that holds them now.
    pub file: PathBuf,
}

/// The end of the head trail, known as of the last look.
#[derive(Debug)]
pub(crate) struct Tail {
    store: Store,
    files: LogDir,
    pub(crate) trail: u32,
    path: PathBuf,
    file: Arc<dyn StorageFile>,
    /// All before it is whole lines.
    len: u64,
    pub(crate) position: Position,
    /// Set when a new trail may be there that this tail does not know of.
    stale: bool,
    /// Why nothing more is written through this tail.
    stopped: Option<Error>,
    /// The buffer of the last append, kept for the next.
    lines: Vec<u8>,
    pub(crate) set_aside: Vec<SetAside>,
}

/// A record on its way to disk: what stands between its numbers and `prev`.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) kind: &'a str,
    pub(crate) body: &'a [u8],
}

/// The longest buffer that is kept between appends.
const KEPT_BUFFER: usize = 64 << 10;

impl Tail {
    /// Looks at the end of a session's head trail, and mends it where needed.
    pub(crate) fn load(store: &Store, files: &LogDir) -> Result<Self> {
        // Whoever waited for the lock may find the session gone.
        let trail = files.head()?;
        files.sync_names()?;
        let path = files.trail_path(trail);
        let segment = Segment::open(files, trail, u64::MAX)?;
        if segment.is_legacy() {
            // Whoever took the file in died before saying so.
            import::finish(store, files)?;
            return Self::load(store, files);
        }
        let opener = segment.opener;
        refuse_newer(opener.as_ref(), &path)?;
        let file = files.open_append(trail)?;
        let mut tail = Self {
            store: store.clone(),
            files: files.clone(),
            trail,
            path,
            file,
            len: 0,
            position: Position::START,
            stale: false,
            stopped: None,
            lines: Vec::new(),
            set_aside: Vec::new(),
        };
        tail.reload()?;
        // Numbers whose records are lost, by a repair or a cut, stay given.
        let repaired = opener.and_then(|opener| opener.given);
        let given = repaired.max(files.given(trail)?).unwrap_or(0);
        tail.position.seq = tail.position.seq.max(given);
        Ok(tail)
    }

    /// Takes in what others appended since the last look.
    pub(crate) fn catch_up(&mut self) -> Result<()> {
        if self.stale {
            return self.start_over();
        }
        let len = self.file_len()?;
        if len == self.len {
            return Ok(());
        }
        if len < self.len {
            let lost = self.len - len;
            let what = format!("{lost} bytes that were written are gone from the end of the trail");
            return Err(self.stop(Error::new(ErrorKind::Corrupt, what).at_path(&self.path)));
        }
        let mut reader = TrailReader::forwards(
            Arc::clone(&self.file),
            &self.path,
            self.len,
            PEEK_BUFFER,
            Sums::Check,
        );
        let mut whole = self.len;
        let mut ended = true;
        let mut position = self.position;
        while let Some(found) = reader.advance()? {
            ended = reader.last_line().is_none_or(|(.., ended)| ended);
            match found {
                Found::Record => {
                    let numbered = position.seq;
                    position = Position::after(&reader.record());
                    position.seq = position.seq.max(numbered);
                    whole = reader.place().end;
                }
                // They were records once; their numbers are not given to others.
                Found::Damage(damage) if ended => {
                    position.seq = position.seq.saturating_add(numbers_in(&damage));
                }
                Found::Damage(_) => {}
            }
        }
        self.position = position;
        self.len = if ended { len } else { self.mend(whole, len)? };
        Ok(())
    }

    /// Opens the head anew: it may be another trail now.
    fn start_over(&mut self) -> Result<()> {
        let fresh = Self::load(&self.store, &self.files)?;
        let known = std::mem::take(&mut self.set_aside);
        *self = fresh;
        self.set_aside.splice(0..0, known);
        Ok(())
    }

    /// Writes records in one `write` and moves on behind them. On failure none of
    /// them is there, and the error says so.
    pub(crate) fn append(&mut self, entries: &[Entry<'_>]) -> Result<()> {
        let mut lines = std::mem::take(&mut self.lines);
        lines.clear();
        let mut position = self.position;
        for entry in entries {
            position.seq = position.seq.checked_add(1).ok_or_else(|| {
                Error::new(ErrorKind::Corrupt, "the trail's numbers are used up")
                    .at_path(&self.path)
            })?;
            let front = Front {
                kind: entry.kind,
                version: None,
                seq: position.seq,
                noted: position.noted,
                compacted: position.compacted,
            };
            let start = lines.len();
            position.sum = write_line(&mut lines, front, entry.body, position.sum);
            if lines.len() - start > MAX_WRITTEN {
                let what = "the record is too large for a trail";
                return Err(Error::invalid(what).at_path(&self.path));
            }
            match entry.kind {
                "note" => position.noted = Some(position.seq),
                "compaction" => position.compacted = Some(position.seq),
                _ => {}
            }
        }
        self.write(&lines)?;
        self.position = position;
        if lines.capacity() <= KEPT_BUFFER {
            self.lines = lines;
        }
        Ok(())
    }

    /// Appends bytes at the known end, or takes back what was written of them.
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if let Err(cause) = append_all(self.file.as_ref(), bytes) {
            let mut what = "cannot write to the trail; the record was not taken, \
                            everything acknowledged before it is safe";
            if self.file.truncate(self.len).is_err() {
                // The next look finds the unfinished line and sets it aside.
                self.stale = true;
                what = "cannot write to the trail, nor take back what was written";
            }
            return Err(Error::io(what, &self.path, cause));
        }
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Makes all that was appended durable. After a failure nothing more is
    /// acknowledged: nobody can tell what of it reached the disk.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.file.sync().map_err(|error| {
            let what = "cannot make the trail durable; nothing more is acknowledged \
                        until the session is opened again";
            self.stop(Error::io(what, &self.path, error))
        })
    }

    /// Returns where the next record goes, as a place.
    pub(crate) fn spot(&self) -> Spot {
        Spot {
            trail: self.trail,
            seq: self.position.seq,
            sum: self.position.sum,
        }
    }

    /// Returns why this tail was given up, if it was.
    pub(crate) fn stopped(&self) -> Option<Error> {
        self.stopped.as_ref().map(Error::duplicate)
    }

    fn stop(&mut self, error: Error) -> Error {
        self.stopped = Some(error.duplicate());
        error
    }

    /// Returns how long the trail is, as of the last look.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether the trail has grown past `limit`.
    pub(crate) fn is_past(&self, limit: u64) -> bool {
        self.len >= limit
    }

    /// Goes on in a new trail.
    pub(crate) fn rotate(&mut self) -> Result<()> {
        let present = present_at(&self.store, &self.files, self.trail, &self.position)?;
        let id = self.files.id();
        let from = continues_at(id, self.trail, &self.position);
        let opener = self
            .files
            .opener(self.trail + 1, Because::Rotation, self.store.now());
        let opener = Opener { present, ..opener }.continuing(from, self.position.compacted);
        // What the new trail continues must not be less durable than itself.
        self.sync()?;
        self.begin(&opener)
    }

    /// Creates the trail that `opener` opens, and goes on there.
    pub(crate) fn begin(&mut self, opener: &Opener) -> Result<()> {
        // From here on the head may be the new trail, whatever goes wrong.
        self.stale = true;
        let created = self.files.create_opened(opener)?;
        self.stale = false;
        self.path = self.files.trail_path(opener.trail);
        self.trail = opener.trail;
        self.file = created.file;
        self.len = created.len;
        self.position = created.position;
        Ok(())
    }

    fn file_len(&self) -> Result<u64> {
        self.file
            .len()
            .map_err(|error| Error::io("cannot read the trail", &self.path, error))
    }
}

/// Appends one record under the short lock alone, whoever speaks; it is durable
/// when its seq is returned.
pub(crate) fn append_entry(store: &Store, files: &LogDir, kind: &str, body: &[u8]) -> Result<u64> {
    append_entries(store, files, &[Entry { kind, body }])
}

/// Appends records in one write under the short lock alone, whoever speaks; they are
/// durable when the seq of the last is returned.
pub(crate) fn append_entries(store: &Store, files: &LogDir, entries: &[Entry<'_>]) -> Result<u64> {
    let lock = AppendLock::open(files)?;
    let guard = lock.hold()?;
    let mut tail = Tail::load(store, files)?;
    // A session's trails are made by its speaker alone, who would not know of this.
    if files.is_of_workspace() && tail.is_past(store.rotation()) {
        tail.rotate()?;
    }
    tail.append(entries)?;
    drop(guard);
    tail.sync()?;
    Ok(tail.position.seq)
}

fn refuse_newer(opener: Option<&Opener>, path: &Path) -> Result<()> {
    match opener {
        Some(opener) if opener.is_newer() => Err(Error::new(
            ErrorKind::NewerFormat,
            format!(
                "the trail has format version {}, and this program writes {FORMAT_VERSION}; \
                 it can be read, not changed",
                opener.version
            ),
        )
        .at_path(path)),
        _ => Ok(()),
    }
}
