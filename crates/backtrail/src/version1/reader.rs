//! Reads a version-1 file from its beginning to its end.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::names::{derived_id, named_ms};
use super::object::{CHUNK, V1Element, V1Object};
use super::record::{V1Line, V1Meta, V1Record, check_message};
use crate::error::{Error, IoContext, Reason, Result};
use crate::ids::SessionId;
use crate::message::CompactionSummary;
use crate::storage::{StorageFile, Window, for_each_chunk, read_full, read_range};
use crate::time::Timestamp;
use crate::trail::lines::Ending;
use crate::trail::record::MAX_READ;
use crate::trail::{Damage, DamageReport};

/// The details of a session in a version-1 file.
#[derive(Debug)]
pub(crate) struct V1Session {
    /// The id in the file, or one derived from the file's name.
    pub(crate) session_id: SessionId,
    /// The id in the file, if it is not a valid one.
    pub(crate) original_id: Option<String>,
    pub(crate) created_at_ms: i64,
    pub(crate) updated_at_ms: i64,
    /// The last meta; for a single object, its own fields.
    pub(crate) meta: Option<V1Meta>,
    /// The last compaction.
    pub(crate) compaction: Option<CompactionSummary>,
    pub(crate) damage: DamageReport,
    /// Records of unsupported types, and numbers that are out of range. The rest of such a
    /// record is read.
    pub(crate) odd: DamageReport,
    /// The lines that are prompts or of an unsupported type, each with the number of messages
    /// before it.
    pub(crate) kept: Vec<(usize, String)>,
}

/// The places of the records of a version-1 file, by seq: in JSON lines the number of the
/// line, in a single object the position in `messages`, both counted from 1.
#[derive(Debug)]
pub(crate) struct V1Index {
    records: Vec<V1Element>,
    /// The object, if the file is one; without its elements.
    object: Option<V1Object>,
    /// Whether the last line has no newline.
    is_torn: bool,
}

impl V1Index {
    /// Reads a file once, or twice if it only begins like one object.
    pub(crate) fn read(file: &dyn StorageFile, path: &Path) -> Result<Self> {
        if let Some(mut object) = scan_object(file, path)? {
            return Ok(Self {
                records: std::mem::take(&mut object.elements),
                object: Some(object),
                is_torn: false,
            });
        }
        let mut records = Vec::new();
        let mut start = 0;
        let mut add = |end: u64| {
            let line = records.len() as u64 + 1;
            let place = std::mem::replace(&mut start, end + 1)..end;
            records.push(V1Element { place, line });
        };
        let len = file.len().context(UNREADABLE, path)?;
        for_each_chunk(file, 0..len, |at, chunk| {
            memchr::memchr_iter(b'\n', chunk).for_each(|newline| add(at + newline as u64));
            Ok(true)
        })
        .context(UNREADABLE, path)?;
        let ended = records
            .last()
            .map_or(0, |last: &V1Element| last.place.end + 1);
        let is_torn = ended < len;
        if is_torn {
            let line = records.len() as u64 + 1;
            let place = ended..len;
            records.push(V1Element { place, line });
        }
        records.shrink_to_fit();
        Ok(Self {
            records,
            object: None,
            is_torn,
        })
    }

    /// Returns whether the records are lines.
    pub(crate) fn is_lines(&self) -> bool {
        self.object.is_none()
    }

    /// Returns the highest seq; 0 if there is none.
    pub(crate) fn last_seq(&self) -> u64 {
        self.records.len() as u64
    }

    /// Returns the place of a record. A line may turn out to hold none.
    pub(crate) fn place(&self, seq: u64) -> Option<Range<u64>> {
        let at = usize::try_from(seq.checked_sub(1)?).ok()?;
        Some(self.records.get(at)?.place.clone())
    }

    /// Reads the bytes of a record; the inner error is the record's damage.
    pub(crate) fn load(
        &self,
        file: &dyn StorageFile,
        path: &Path,
        seq: u64,
    ) -> Result<Result<Vec<u8>, Reason>> {
        let place = self.place(seq).unwrap_or(0..0);
        match too_long(&place) {
            Some(reason) => Ok(Err(reason)),
            None => read_range(file, place).context(UNREADABLE, path).map(Ok),
        }
    }

    /// Parses a loaded record.
    pub(crate) fn look<'b>(&self, seq: u64, bytes: &'b [u8]) -> V1Line<'b> {
        match (&self.object, self.is_torn && seq == self.last_seq()) {
            (Some(_), _) => V1Line::element(bytes),
            (None, true) => V1Line::read(bytes, Ending::Missing),
            (None, false) => V1Line::read(bytes, Ending::Newline),
        }
    }

    /// Returns the last compaction of the file.
    pub(crate) fn compaction(
        &self,
        file: &dyn StorageFile,
        path: &Path,
    ) -> Result<Option<CompactionSummary>> {
        if let Some(object) = &self.object {
            let load = |part| read_range(file, part).context(UNREADABLE, path);
            return Ok(object.about(load)?.compaction);
        }
        for seq in (1..=self.last_seq()).rev() {
            if let Ok(bytes) = self.load(file, path, seq)?
                && let Ok(Some(V1Record::Compaction(last))) = self.look(seq, &bytes).content
            {
                return Ok(Some(last));
            }
        }
        Ok(None)
    }
}

/// Reads a whole file. Only the places of its records and the longest record are in memory.
/// `each` gets the JSON of every message, in order.
pub(crate) fn read(
    file: &Arc<dyn StorageFile>,
    path: &Path,
    each: &mut dyn FnMut(&str) -> Result<()>,
) -> Result<V1Session> {
    let mut reading = Reading {
        file: file.as_ref(),
        path,
        each,
        messages: 0,
        meta: None,
        compaction: None,
        first_prompt_ms: None,
        damage: DamageReport::default(),
        odd: DamageReport::default(),
        kept: Vec::new(),
    };
    let index = V1Index::read(file.as_ref(), path)?;
    reading.records(&index)?;
    if let Some(object) = &index.object {
        reading.object(object)?;
    }
    reading.finish()
}

/// Scans a file as one object; `None` if it is lines.
pub(crate) fn scan_object(file: &dyn StorageFile, path: &Path) -> Result<Option<V1Object>> {
    V1Object::scan(|buffer, at| read_full(file, buffer, at)).context(UNREADABLE, path)
}

const UNREADABLE: &str = "cannot read the session file";

/// Returns the reason to skip a record at this place, if it is too long.
fn too_long(place: &Range<u64>) -> Option<Reason> {
    let (bytes, limit) = (place.end - place.start, MAX_READ as u64);
    (bytes > limit).then_some(Reason::TooLong { bytes, limit })
}

struct Reading<'a> {
    file: &'a dyn StorageFile,
    path: &'a Path,
    each: &'a mut dyn FnMut(&str) -> Result<()>,
    messages: u64,
    meta: Option<V1Meta>,
    compaction: Option<CompactionSummary>,
    first_prompt_ms: Option<i64>,
    damage: DamageReport,
    odd: DamageReport,
    kept: Vec<(usize, String)>,
}

impl Reading<'_> {
    fn records(&mut self, index: &V1Index) -> Result<()> {
        let mut window = Window::new(self.file, self.len()?, CHUNK);
        for (seq, V1Element { place, line }) in (1..).zip(&index.records) {
            if let Some(reason) = too_long(place) {
                self.add_damage(*line, place.clone(), reason);
                continue;
            }
            let len = (place.end - place.start) as usize;
            let bytes = window.from(place.start, len);
            let bytes = bytes.context(UNREADABLE, self.path)?;
            // The file may be shorter now than when it was indexed.
            let bytes = &bytes[..len.min(bytes.len())];
            self.take(*line, place.clone(), index.look(seq, bytes), bytes)?;
        }
        Ok(())
    }

    /// Reads the fields beside the messages.
    fn object(&mut self, object: &V1Object) -> Result<()> {
        let (file, path) = (self.file, self.path);
        let about = object.about(|part| read_range(file, part).context(UNREADABLE, path))?;
        for (place, reason) in about.damage {
            self.add_damage(1, place, reason);
        }
        if let Some(flaw) = object.flaw.clone() {
            let end = self.len()?.max(flaw.byte);
            self.add_damage(flaw.line, flaw.byte..end, flaw.reason);
        }
        // An object without a known field or a readable message belongs to another program.
        let is_foreign = about.meta.is_none() && self.messages == 0 && !self.damage.is_empty();
        if object.has_messages() && !is_foreign {
            self.meta = Some(about.meta.unwrap_or_default());
            self.compaction = about.compaction;
            self.first_prompt_ms = about.first_prompt_ms;
            // In an object the prompts are beside all messages.
            let prompts = about.prompts.into_iter();
            self.kept.extend(prompts.map(|line| (0, line)));
        }
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        self.file.len().context(UNREADABLE, self.path)
    }

    fn take(
        &mut self,
        number: u64,
        place: Range<u64>,
        line: V1Line<'_>,
        bytes: &[u8],
    ) -> Result<()> {
        let lost = line.lost.as_ref().map_or(0, |(bytes, _)| *bytes);
        if let Some((bytes, reason)) = line.lost {
            let start = place.start;
            self.add_damage(number, start..start + bytes as u64, reason);
        }
        if let Ok(Some(record)) = &line.content {
            let text = std::str::from_utf8(bytes.get(lost..).unwrap_or_default());
            self.keep(record, text.unwrap_or_default());
            if let Some(reason) = record.oddity(text.unwrap_or_default()) {
                self.odd.add(self.damage_at(number, place.clone(), reason));
            }
        }
        match line.content {
            Err(reason) => self.add_damage(number, place, reason),
            Ok(Some(V1Record::Meta(meta))) => self.meta = Some(meta),
            Ok(Some(V1Record::Compaction(compaction))) => self.compaction = Some(compaction),
            Ok(Some(V1Record::Message(json))) => {
                self.messages += 1;
                (self.each)(json)?;
            }
            Ok(Some(V1Record::Object(messages))) => {
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
            Ok(Some(V1Record::Prompt { at_ms })) => {
                self.first_prompt_ms = self.first_prompt_ms.or(at_ms);
            }
            Ok(None | Some(V1Record::Other(_))) => {}
        }
        Ok(())
    }

    /// Keeps a line that is neither a message nor about the session.
    fn keep(&mut self, record: &V1Record<'_>, line: &str) {
        if matches!(record, V1Record::Prompt { .. } | V1Record::Other(_)) {
            let before = usize::try_from(self.messages).unwrap_or(usize::MAX);
            self.kept.push((before, line.to_owned()));
        }
    }

    fn add_damage(&mut self, line: u64, place: Range<u64>, reason: Reason) {
        let damage = self.damage_at(line, place, reason);
        self.damage.add(damage);
    }

    fn damage_at(&self, line: u64, place: Range<u64>, reason: Reason) -> Damage {
        Damage {
            file: self.path.to_owned(),
            line: Some(line),
            byte: place.start,
            bytes: place.end - place.start,
            reason,
        }
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
            None => derived_id(self.path, || hash(self.file, self.path))?,
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
            odd: self.odd,
            kept: self.kept,
        })
    }

    /// Returns when the session began: the time in the file, else the first prompt's, else
    /// the one in the file's name, else when the file was last modified.
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
        if self.len()? == 0 {
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
    let mut add = |_, chunk: &[u8]| {
        hasher.update(chunk);
        Ok(true)
    };
    let hashed = file
        .len()
        .and_then(|len| for_each_chunk(file, 0..len, &mut add));
    hashed.context(UNREADABLE, path)?;
    Ok(*hasher.finalize().as_bytes())
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
