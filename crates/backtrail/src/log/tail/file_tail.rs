//! The end of one trail file: appends in one write, and sets an unfinished last line aside.
//! Logs and transcripts both write through it.
//!
//! The last line may be unfinished because its writer died, or blank or garbage because
//! the machine died. Either is copied to a file beside the trail, synced, and cut off; a
//! complete record that only lacks its newline gets one.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::SetAside;
use crate::error::{Error, IoContext, Reason, Result};
use crate::storage::{StorageFile, append_all, read_range};
use crate::trail::lines::{Backwards, PEEK_BUFFER};
use crate::trail::reader::{Found, TrailReader};
use crate::trail::record::{MAX_WRITTEN, Position};
use crate::trail::{Damage, Sums};

/// The end of a trail file, as last read.
#[derive(Debug)]
pub(crate) struct FileTail {
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn StorageFile>,
    /// The length, up to which there are only complete lines.
    pub(crate) len: u64,
    pub(crate) position: Position,
    /// Whether a failed write could not be undone: the file may end in a torn line.
    pub(crate) is_torn: bool,
}

/// What other writers appended to a file.
#[derive(Debug)]
pub(crate) struct Appended {
    /// The present length of the file.
    pub(crate) len: u64,
    /// The position after the last record. Its seq counts lost lines.
    position: Position,
    /// The end of the last record.
    whole: u64,
    /// Whether the file ends with a newline.
    pub(crate) ended: bool,
    /// Whether the last line is not blank, and does not end with a newline.
    is_torn: bool,
    /// Whether there is a complete line or record, and not just a torn one.
    pub(crate) has_lines: bool,
}

/// Sets a part of a file aside and returns its new path. The number is the highest seq that
/// may have been assigned there.
pub(crate) type KeepAside<'a> = &'a dyn Fn(Range<u64>, Option<u64>) -> Result<PathBuf>;

/// How far from the end of a trail its seqs are checked: one read fetches that much
/// anyway.
const NEAR_END: u64 = 32 << 10;
/// The length of the shortest possible record.
const SHORTEST_RECORD: u64 = 128;

impl FileTail {
    pub(crate) fn new(path: &Path, file: Arc<dyn StorageFile>) -> Self {
        Self {
            path: path.to_owned(),
            file,
            len: 0,
            position: Position::START,
            is_torn: false,
        }
    }

    /// Returns the present length of the file.
    pub(crate) fn file_len(&self) -> Result<u64> {
        self.file.len().context("cannot read the trail", &self.path)
    }

    /// Reads what other writers appended after the known end. The file must not be shorter.
    pub(crate) fn appended(&self) -> Result<Option<Appended>> {
        let len = self.file_len()?;
        if len == self.len {
            return Ok(None);
        }
        let file = Arc::clone(&self.file);
        let mut reader =
            TrailReader::forwards(file, &self.path, self.len, PEEK_BUFFER, Sums::Check);
        let mut appended = Appended {
            len,
            position: self.position,
            whole: self.len,
            ended: true,
            is_torn: false,
            has_lines: false,
        };
        while let Some(found) = reader.advance()? {
            let ended = reader.last_line().is_none_or(|(.., ended)| ended);
            appended.is_torn = !ended;
            let position = &mut appended.position;
            match found {
                Found::Record => {
                    let numbered = position.seq;
                    *position = Position::after(&reader.record());
                    position.seq = position.seq.max(numbered);
                    appended.whole = reader.place().end;
                    appended.has_lines = true;
                }
                // They were records once; their seqs are not assigned again.
                Found::Damage(damage) if ended => {
                    position.seq = position.seq.saturating_add(numbers_in(&damage));
                    appended.has_lines = true;
                }
                Found::Damage(_) => {}
            }
        }
        appended.ended = reader.last_line().is_none_or(|(.., ended)| ended);
        Ok(Some(appended))
    }

    /// Moves to the end of what other writers appended, and repairs the last line if needed.
    pub(crate) fn take(
        &mut self,
        appended: &Appended,
        keep_aside: KeepAside<'_>,
    ) -> Result<Option<SetAside>> {
        self.position = appended.position;
        if appended.is_torn {
            return self.mend(appended.whole, appended.len, keep_aside);
        }
        self.len = appended.len;
        if !appended.ended {
            // Blanks without a newline: nothing may be appended to that line.
            self.end_line()?;
        }
        Ok(None)
    }

    fn end_line(&mut self) -> Result<()> {
        append_all(self.file.as_ref(), b"\n")
            .context("cannot end the trail's last line", &self.path)?;
        self.len += 1;
        Ok(())
    }

    /// Appends bytes at the known end; a partial write is cut off.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if let Err(cause) = append_all(self.file.as_ref(), bytes) {
            let mut what = "cannot write to the trail; nothing was recorded, earlier \
                            records are safe";
            if self.file.truncate(self.len).is_err() {
                // The next read finds the unfinished line and sets it aside.
                self.is_torn = true;
                what = "cannot write to the trail, nor undo what was written";
            }
            return Err(Error::io(what, &self.path, cause));
        }
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Makes the file end with a complete line: bytes after the last newline (or after a
    /// record that only lacks its newline) are set aside.
    pub(crate) fn mend(
        &mut self,
        last_record: u64,
        len: u64,
        keep_aside: KeepAside<'_>,
    ) -> Result<Option<SetAside>> {
        let line = self.start_of_last_line(len)?;
        // A record on the unfinished line is intact by its sum: it stays, and gets the
        // missing newline.
        let keep = last_record.max(line);
        let set_aside = match keep < len {
            true => Some(self.cut(keep, len, keep_aside)?),
            false => None,
        };
        self.len = keep;
        if keep > line {
            self.end_line()?;
        }
        Ok(set_aside)
    }

    pub(super) fn start_of_last_line(&self, len: u64) -> Result<u64> {
        let mut lines = Backwards::new(Arc::clone(&self.file), len);
        let line = lines.next().context("cannot read the trail", &self.path)?;
        Ok(line.map_or(0, |line| line.offset))
    }

    /// Sets the bytes from `from` to `len` aside, then cuts them off.
    pub(super) fn cut(
        &mut self,
        from: u64,
        len: u64,
        keep_aside: KeepAside<'_>,
    ) -> Result<SetAside> {
        let torn = is_torn_record(self.file.as_ref(), &self.path, from..len)?;
        let mut given = None;
        if !torn {
            // Acknowledged records may have been there: none of their seqs, as many as could
            // fit, is assigned again.
            let most = (len - from) / SHORTEST_RECORD + 1;
            self.position.seq = self.position.seq.saturating_add(most);
            given = Some(self.position.seq);
        }
        let file = keep_aside(from..len, given)?;
        self.file
            .truncate(from)
            .context("cannot cut off an unfinished line", &self.path)?;
        Ok(SetAside {
            trail: self.path.clone(),
            byte: from,
            bytes: len - from,
            never_acknowledged: torn,
            file,
        })
    }
}

/// Returns whether an unfinished end is what a writer leaves when it dies while writing:
/// the beginning of one record, and nothing else.
pub(crate) fn is_torn_record(
    file: &dyn StorageFile,
    path: &Path,
    place: Range<u64>,
) -> Result<bool> {
    const BEGIN: &[u8] = b"{\"type\":\"";
    if place.end.saturating_sub(place.start) > MAX_WRITTEN as u64 {
        return Ok(false);
    }
    let bytes = read_range(file, place).context("cannot read the trail", path)?;
    let begins = bytes.starts_with(BEGIN) || BEGIN.starts_with(&bytes);
    Ok(begins && memchr::memchr(0, &bytes).is_none())
}

/// Returns how many records a damaged line may have contained: one if it still looks like
/// one, otherwise as many as fit.
pub(crate) fn numbers_in(damage: &Damage) -> u64 {
    match damage.reason {
        Reason::BadSum | Reason::MissingSum => 1,
        _ => damage.bytes / SHORTEST_RECORD + 1,
    }
}

/// The state of the end of a trail.
pub(super) struct End {
    /// The position after the last record, and the end of that record. The seq counts lost
    /// lines after it.
    pub(super) last: Option<(Position, u64)>,
    /// How many records may be lost after the last one.
    pub(super) lost: u64,
    /// Whether the file ends with a newline.
    pub(super) ended: bool,
}

impl End {
    /// Reads the end of a trail. It reads a little more than the last record: repeated lines
    /// must not cause a seq to be assigned twice.
    pub(super) fn of(file: &Arc<dyn StorageFile>, path: &Path, len: u64) -> Result<Self> {
        let mut reader = TrailReader::backwards(Arc::clone(file), path, len, Sums::Check);
        let mut end = Self {
            last: None,
            lost: 0,
            ended: true,
        };
        let mut highest = 0;
        while let Some(found) = reader.advance()? {
            let line_ended = reader.last_line().is_none_or(|(.., ended)| ended);
            end.ended &= line_ended;
            match found {
                Found::Damage(damage) if end.last.is_none() && line_ended => {
                    end.lost = end.lost.saturating_add(numbers_in(&damage));
                }
                Found::Damage(_) => {}
                Found::Record => {
                    let record = reader.record();
                    highest = highest.max(record.seq());
                    let place = reader.place();
                    end.last
                        .get_or_insert((Position::after(&record), place.end));
                    if place.start + NEAR_END < len {
                        break;
                    }
                }
            }
        }
        if let Some((position, _)) = &mut end.last {
            position.seq = highest.saturating_add(end.lost);
        }
        Ok(end)
    }
}
