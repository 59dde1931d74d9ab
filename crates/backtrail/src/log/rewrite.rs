//! Rewriting trails, to remove text from them.
//!
//! This is the one exception to the rule that nothing already written changes, and only a
//! purge uses it. The records keep their numbers; their sums and links are computed again.

use std::io;
use std::path::{Path, PathBuf};

use super::chain::{Segment, Walk};
use super::directory::LogDir;
use super::lock::{AppendLock, WriterLock};
use super::present::present_at;
use super::tail::Tail;
use crate::error::{Error, Reason, Result};
use crate::json::Fields;
use crate::storage::{StorageFile, append_all, read_full};
use crate::store::Store;
use crate::trail::lines::STREAM_BUFFER;
use crate::trail::opener::{Opener, TrailReason};
use crate::trail::reader::Found;
use crate::trail::record::{finish_line, split_prev, split_sum};
use crate::trail::sum::Sum;
use crate::trail::{RecordKind, RecordRef, Sums};

/// What becomes of a record.
pub(crate) enum Rewritten {
    AsItIs,
    /// These fields instead, from `type` on.
    Fields(Fields),
}

/// Decides what becomes of each record, and which bytes must go.
pub(crate) trait Editor {
    fn edit(&self, record: &RecordRef<'_>) -> Result<Rewritten>;

    /// Returns whether bytes that are not a record may stay beside the trail.
    fn may_stay(&self, bytes: &[u8]) -> bool;
}

/// Rewrites the trails of a workspace as one, and removes the old ones. Where the editor
/// changes no record, the trails stay as they are. A crash leaves the old line or the new
/// one.
pub(crate) fn rewrite_line(store: &Store, files: &LogDir, editor: &dyn Editor) -> Result<()> {
    let lock = AppendLock::open(files)?;
    let _guard = lock.hold()?;
    remove_superseded(files)?;
    remove_asides(files, editor)?;
    let mut tail = Tail::load(store, files)?;
    let (segments, _) = Walk::new(store, files, tail.trail).collect()?;
    if !changes_any(&segments, editor)? {
        return Ok(());
    }
    let opener = Opener {
        given: Some(tail.position().seq),
        present: present_at(store, files, tail.trail, tail.position())?,
        ..files.opener(tail.trail + 1, TrailReason::Purge, store.now())
    };
    tail.sync()?;
    let path = files.trail_path(opener.trail);
    files.create_trail(opener.trail, |file| {
        let mut copy = Copy::begin(file, &path);
        copy.opener(&opener)?;
        for segment in &segments {
            copy.segment(files, segment, editor)?;
        }
        copy.flush()
    })?;
    remove_superseded(files)
}

fn changes_any(segments: &[Segment], editor: &dyn Editor) -> Result<bool> {
    for segment in segments {
        let mut reader = segment.forwards(0, STREAM_BUFFER, Sums::Check)?;
        while let Some(record) = reader.next_record()? {
            if matches!(editor.edit(&record)?, Rewritten::Fields(_)) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Removes the trails that a rewritten one replaces.
fn remove_superseded(files: &LogDir) -> Result<()> {
    let trails = files.trails()?;
    let mut newest = None;
    for trail in trails.iter().rev() {
        let opener = Segment::open(files, *trail, u64::MAX)?.opener;
        if opener.is_some_and(|opener| opener.reason == TrailReason::Purge) {
            newest = Some(*trail);
            break;
        }
    }
    let Some(newest) = newest else {
        return Ok(());
    };
    let failed = |path: &Path, error| Error::io("cannot remove the old trail", path, error);
    for trail in trails.into_iter().filter(|trail| *trail < newest) {
        let path = files.trail_path(trail);
        match files.storage().remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed(&path, error));
            }
            _ => {}
        }
    }
    let dir = files.path();
    let synced = files.storage().sync_dir(dir);
    synced.map_err(|error| failed(dir, error))
}

/// Removes the bytes that were set aside and must go.
fn remove_asides(files: &LogDir, editor: &dyn Editor) -> Result<()> {
    let failed = |path: &Path, error| Error::io("cannot remove the old bytes", path, error);
    for path in files.asides()? {
        if !editor.may_stay(&read_all(files, &path)?) {
            let removed = files.storage().remove_file(&path);
            removed.map_err(|error| failed(&path, error))?;
        }
    }
    let dir = files.path();
    let synced = files.storage().sync_dir(dir);
    synced.map_err(|error| failed(dir, error))
}

/// Rewrites the only trail of a session, in its own place. The caller knows that no
/// other trail continues it. Fails where another process is writing to it.
pub(crate) fn rewrite_only_trail(store: &Store, files: &LogDir, editor: &dyn Editor) -> Result<()> {
    let _speaker = WriterLock::take(files, &store.holder())?;
    let lock = AppendLock::open(files)?;
    let _guard = lock.hold()?;
    let mut tail = Tail::load(store, files)?;
    tail.sync()?;
    let segment = Segment::open(files, tail.trail, u64::MAX)?;
    let path = files.trail_path(tail.trail);
    let aside = files.path().join("new-trail");
    let failed = |error| Error::io("cannot rewrite the trail", &path, error);
    match files.storage().remove_file(&aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let file = files.storage().create_new(&aside).map_err(failed)?;
    let mut copy = Copy::begin(file.as_ref(), &path);
    copy.with_opener = true;
    copy.segment(files, &segment, editor)?;
    copy.flush()?;
    file.sync().map_err(failed)?;
    files.storage().replace(&aside, &path).map_err(failed)?;
    files.storage().sync_dir(files.path()).map_err(failed)
}

fn read_all(files: &LogDir, path: &Path) -> Result<Vec<u8>> {
    let failed = |error| Error::io("cannot read what was set aside", path, error);
    let file = files.storage().open_read(path).map_err(failed)?;
    let len = file.len().map_err(failed)?;
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
    let n = read_full(file.as_ref(), &mut bytes, 0).map_err(failed)?;
    bytes.truncate(n);
    Ok(bytes)
}

/// The new trail while it is written.
struct Copy<'a> {
    file: &'a dyn StorageFile,
    path: PathBuf,
    buffer: Vec<u8>,
    prev: Sum,
    with_opener: bool,
}

/// How much is written at a time.
const CHUNK: usize = 1 << 20;

impl<'a> Copy<'a> {
    fn begin(file: &'a dyn StorageFile, path: &Path) -> Self {
        Self {
            file,
            path: path.to_owned(),
            buffer: Vec::with_capacity(CHUNK * 2),
            prev: Sum::ZERO,
            with_opener: false,
        }
    }

    fn opener(&mut self, opener: &Opener) -> Result<()> {
        self.prev = opener.write(&mut self.buffer)?;
        Ok(())
    }

    fn segment(&mut self, files: &LogDir, segment: &Segment, editor: &dyn Editor) -> Result<()> {
        let mut reader = segment.forwards(0, STREAM_BUFFER, Sums::Check)?;
        while let Some(found) = reader.advance()? {
            match found {
                Found::Damage(damage) => {
                    // It stays beside the trail, as far as it may.
                    let place = damage.byte..damage.byte + damage.bytes;
                    let source = segment.file()?;
                    let bytes = read_place(source.as_ref(), &segment.path, &place)?;
                    if editor.may_stay(&bytes) {
                        files.set_aside(segment.trail, source.as_ref(), place, None)?;
                    }
                }
                Found::Record => {
                    let record = reader.record();
                    let is_opener = record.kind() == RecordKind::Opener;
                    if record.seq() <= segment.until && (!is_opener || self.with_opener) {
                        self.add(&record, editor.edit(&record)?)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, record: &RecordRef<'_>, rewritten: Rewritten) -> Result<()> {
        let start = self.buffer.len();
        let is_opener = record.kind() == RecordKind::Opener;
        let prev = match record.prev() {
            // What it continues is as it was.
            Some(prev) if is_opener => prev,
            _ => self.prev,
        };
        match rewritten {
            Rewritten::AsItIs => {
                let line = record.bytes();
                let covered = split_sum(line).map_or(line, |(covered, _)| covered);
                let body = split_prev(covered).map_or(covered, |(body, _)| body);
                self.buffer.extend_from_slice(body);
            }
            Rewritten::Fields(fields) => write_body(&mut self.buffer, &fields)?,
        }
        self.prev = finish_line(&mut self.buffer, start, prev);
        if self.buffer.len() >= CHUNK {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        append_all(self.file, &self.buffer)
            .map_err(|error| Error::io("cannot write the new trail", &self.path, error))?;
        self.buffer.clear();
        Ok(())
    }
}

fn read_place(
    file: &dyn StorageFile,
    path: &Path,
    place: &std::ops::Range<u64>,
) -> Result<Vec<u8>> {
    let len = usize::try_from(place.end - place.start).unwrap_or(0);
    let mut bytes = vec![0; len];
    let n = read_full(file, &mut bytes, place.start)
        .map_err(|error| Error::io("cannot read the trail", path, error))?;
    bytes.truncate(n);
    Ok(bytes)
}

/// Writes the fields of a record up to `prev`.
fn write_body(out: &mut Vec<u8>, fields: &Fields) -> Result<()> {
    let mut separator = b'{';
    for (name, value) in fields.iter() {
        if name == "prev" || name == "sum" {
            continue;
        }
        out.push(separator);
        serde_json::to_writer(&mut *out, name).map_err(|error| {
            Error::invalid("cannot write the record").with_reason(Reason::Syntax(error.to_string()))
        })?;
        out.push(b':');
        out.extend_from_slice(value.as_str().as_bytes());
        separator = b',';
    }
    Ok(())
}

/// Reads the fields of a record, to change some of them.
pub(crate) fn fields_of(record: &RecordRef<'_>) -> Result<Fields, Reason> {
    serde_json::from_slice(record.bytes()).map_err(|error| Reason::Syntax(error.to_string()))
}
