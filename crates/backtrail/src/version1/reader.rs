//! Reads a version-1 file from its beginning to its end.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::names::{derived_id, named_ms};
use super::object::{CHUNK, V1Object};
use super::record::{LineContent, V1Line, V1Meta, V1Record, check_message};
use crate::error::{Error, Reason, Result};
use crate::ids::SessionId;
use crate::message::CompactionSummary;
use crate::storage::{StorageFile, read_full};
use crate::time::Timestamp;
use crate::trail::lines::{Ending, Forwards, STREAM_BUFFER};
use crate::trail::record::MAX_READ;
use crate::trail::{Damage, DamageReport};

/// What a version-1 file says about its session as a whole.
#[derive(Debug)]
pub(crate) struct V1Session {
    /// The id that the file names, or one made of the file's name.
    pub(crate) session_id: SessionId,
    /// The id that the file names, where that is not a valid one.
    pub(crate) original_id: Option<String>,
    pub(crate) created_at_ms: i64,
    pub(crate) updated_at_ms: i64,
    /// The last meta; of a single object, its own fields.
    pub(crate) meta: Option<V1Meta>,
    /// The last compaction.
    pub(crate) compaction: Option<CompactionSummary>,
    pub(crate) damage: DamageReport,
}

/// Reads a whole file in constant memory, save that the longest record is held whole.
/// `each` gets the JSON of every message, in order.
pub(crate) fn read(
    file: &Arc<dyn StorageFile>,
    path: &Path,
    each: &mut dyn FnMut(&str) -> Result<()>,
) -> Result<V1Session> {
    let mut reading = Reading {
        file,
        path,
        each,
        messages: 0,
        meta: None,
        compaction: None,
        first_prompt_ms: None,
        damage: DamageReport::default(),
    };
    match scan_object(file.as_ref(), path)? {
        Some(object) => reading.object(&object)?,
        None => reading.lines()?,
    }
    reading.finish()
}

/// Scans a file as one object; `None` where it is lines.
pub(crate) fn scan_object(file: &dyn StorageFile, path: &Path) -> Result<Option<V1Object>> {
    V1Object::scan(|buffer, at| read_full(file, buffer, at))
        .map_err(|error| unreadable(path, error))
}

/// Reads a part of a file. It may be shorter now than when it was scanned.
pub(super) fn read_part(file: &dyn StorageFile, path: &Path, part: Range<u64>) -> Result<Vec<u8>> {
    let mut bytes = vec![0; (part.end - part.start) as usize];
    let n = read_full(file, &mut bytes, part.start).map_err(|error| unreadable(path, error))?;
    bytes.truncate(n);
    Ok(bytes)
}

pub(super) fn unreadable(path: &Path, error: io::Error) -> Error {
    Error::io("cannot read the session file", path, error)
}

/// Returns why a record of so many bytes is not read, if it is too long.
pub(super) fn too_long(bytes: u64) -> Option<Reason> {
    let limit = MAX_READ as u64;
    (bytes > limit).then_some(Reason::TooLong { bytes, limit })
}

struct Reading<'a> {
    file: &'a Arc<dyn StorageFile>,
    path: &'a Path,
    each: &'a mut dyn FnMut(&str) -> Result<()>,
    messages: u64,
    meta: Option<V1Meta>,
    compaction: Option<CompactionSummary>,
    first_prompt_ms: Option<i64>,
    damage: DamageReport,
}

impl Reading<'_> {
    fn lines(&mut self) -> Result<()> {
        let mut lines = Forwards::new(Arc::clone(self.file), 0, STREAM_BUFFER);
        let mut number = 0;
        loop {
            let next = lines.next().map_err(|error| unreadable(self.path, error))?;
            let Some(line) = next else {
                return Ok(());
            };
            number += 1;
            let place = line.offset..line.offset + line.len;
            if let Some(reason) = too_long(line.len) {
                self.add_damage(number, place, reason);
                continue;
            }
            let ending = match line.terminated {
                true => Ending::Newline,
                false => Ending::Missing,
            };
            self.take(number, place, V1Line::read(lines.bytes(&line), ending))?;
        }
    }

    fn object(&mut self, object: &V1Object) -> Result<()> {
        let mut window = Window::default();
        for element in &object.elements {
            let place = element.place.clone();
            if let Some(reason) = too_long(place.end - place.start) {
                self.add_damage(element.line, place, reason);
                continue;
            }
            let bytes = window.read(self.file.as_ref(), self.path, &place)?;
            self.take(element.line, place, V1Line::element(bytes))?;
        }
        let load = |part| read_part(self.file.as_ref(), self.path, part);
        let about = object.about(load)?;
        for (place, reason) in about.damage {
            self.add_damage(1, place, reason);
        }
        if let Some(flaw) = object.flaw.clone() {
            let end = self.file.len();
            let end = end.map_err(|error| unreadable(self.path, error))?;
            self.add_damage(flaw.line, flaw.byte..end.max(flaw.byte), flaw.reason);
        }
        // An object without a known field or a readable message is another program's.
        let is_foreign = about.meta.is_none() && self.messages == 0 && !self.damage.is_empty();
        if object.has_messages() && !is_foreign {
            self.meta = Some(about.meta.unwrap_or_default());
            self.compaction = about.compaction;
            self.first_prompt_ms = about.first_prompt_ms;
        }
        Ok(())
    }

    fn take(&mut self, number: u64, place: Range<u64>, line: V1Line<'_>) -> Result<()> {
        if let Some((bytes, reason)) = line.lost {
            let start = place.start;
            self.add_damage(number, start..start + bytes as u64, reason);
        }
        let record = match line.content {
            LineContent::Record(record) => record,
            LineContent::Blank => return Ok(()),
            LineContent::Damage(reason) => {
                self.add_damage(number, place, reason);
                return Ok(());
            }
        };
        match record {
            V1Record::Meta(meta) => self.meta = Some(meta),
            V1Record::Compaction(compaction) => self.compaction = Some(compaction),
            V1Record::Message(json) => {
                self.messages += 1;
                (self.each)(json)?;
            }
            V1Record::Object(messages) => {
                for json in messages {
                    match check_message(json) {
                        Ok(()) => {
                            self.messages += 1;
                            (self.each)(json)?;
                        }
                        Err(reason) => self.add_damage(number, place.clone(), reason),
                    }
                }
            }
            V1Record::Prompt { at_ms } => self.first_prompt_ms = self.first_prompt_ms.or(at_ms),
            V1Record::Other(_) => {}
        }
        Ok(())
    }

    fn add_damage(&mut self, line: u64, place: Range<u64>, reason: Reason) {
        self.damage.add(Damage {
            file: self.path.to_owned(),
            line: Some(line),
            byte: place.start,
            bytes: place.end - place.start,
            reason,
        });
    }

    fn finish(self) -> Result<V1Session> {
        if self.messages == 0 && self.meta.is_none() && self.compaction.is_none() {
            return Err(self.not_a_session()?);
        }
        let meta = self.meta.as_ref();
        let named = meta.and_then(|meta| meta.session_id.clone());
        let valid = named.as_deref().and_then(|id| id.parse().ok());
        let original_id = named.filter(|_| valid.is_none());
        let session_id = match valid {
            Some(id) => id,
            None => derived_id(self.path, || hash(self.file.as_ref(), self.path))?,
        };
        let created_at_ms = self.created_at_ms();
        let updated_at_ms = meta.and_then(|meta| meta.updated_at_ms);
        Ok(V1Session {
            session_id,
            original_id,
            created_at_ms,
            updated_at_ms: updated_at_ms.unwrap_or(created_at_ms),
            meta: self.meta,
            compaction: self.compaction,
            damage: self.damage,
        })
    }

    /// Returns when the session began: what the file says, else the first prompt's time,
    /// else its name's, else when it was last modified.
    fn created_at_ms(&self) -> i64 {
        let meta = self.meta.as_ref();
        meta.and_then(|meta| meta.created_at_ms).unwrap_or_else(|| {
            let known = self.first_prompt_ms.or_else(|| named_ms(self.path));
            let modified = || {
                let modified = self.file.modified().ok()?;
                Some(Timestamp::from(modified).as_millis())
            };
            let ms = known.or_else(modified).unwrap_or(0);
            let updated = meta.and_then(|meta| meta.updated_at_ms);
            updated.map_or(ms, |updated| ms.min(updated))
        })
    }

    fn not_a_session(&self) -> Result<Error> {
        let len = self.file.len();
        if len.map_err(|error| unreadable(self.path, error))? == 0 {
            let reason = Reason::Syntax("the file is empty".to_owned());
            return Ok(Error::invalid("this is not a session file")
                .at_path(self.path)
                .at_line(Some(1))
                .with_reason(reason));
        }
        let what = "this is not a session file: no record in it can be read";
        let error = Error::invalid(what).at_path(self.path);
        Ok(match self.damage.first().first() {
            Some(first) => error
                .at_line(first.line)
                .at_byte(first.byte)
                .with_reason(first.reason.clone()),
            None => error
                .at_line(Some(1))
                .with_reason(Reason::MissingField("message")),
        })
    }
}

/// Returns the BLAKE3 hash of all bytes of a file.
pub(crate) fn hash(file: &dyn StorageFile, path: &Path) -> Result<[u8; 32]> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; CHUNK];
    let mut at = 0;
    loop {
        let n = read_full(file, &mut buffer, at).map_err(|error| unreadable(path, error))?;
        hasher.update(&buffer[..n]);
        at += n as u64;
        if n < buffer.len() {
            return Ok(*hasher.finalize().as_bytes());
        }
    }
}

/// A part of a file in memory, so that short elements do not cost a read each.
#[derive(Default)]
struct Window {
    bytes: Vec<u8>,
    at: u64,
}

impl Window {
    fn read(&mut self, file: &dyn StorageFile, path: &Path, part: &Range<u64>) -> Result<&[u8]> {
        let end = self.at + self.bytes.len() as u64;
        if part.start < self.at || end < part.end {
            let len = (part.end - part.start).max(CHUNK as u64);
            self.bytes = read_part(file, path, part.start..part.start + len)?;
            self.at = part.start;
        }
        let start = (part.start - self.at) as usize;
        let end = ((part.end - self.at) as usize).min(self.bytes.len());
        Ok(&self.bytes[start.min(end)..end])
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
