//! Goes through a version-1 file once, and says what it is as a whole.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::index::{read_chunk, read_place};
use super::look::{
    Found, Looked, Meta, V1Compaction, first_prompt_ms, look_closely, read_compaction, read_meta,
};
use super::names::{derived_id, named_ms};
use super::scan::{Event, Scanner, Verdict};
use super::{CHUNK, Form};
use crate::error::{Error, ErrorKind, Reason, Result};
use crate::ids::SessionId;
use crate::message::{Message, Role};
use crate::storage::StorageFile;
use crate::trail::lines::Ending;
use crate::trail::record::MAX_READ;
use crate::trail::{Damage, DamageReport, FORMAT_VERSION};

/// What is known of a version-1 file as a whole.
#[derive(Debug)]
#[cfg_attr(not(test), expect(dead_code, reason = "some of it only tests ask for"))]
pub(crate) struct Summary {
    pub(crate) form: Form,
    /// The id that the file names, or one made of the file's name.
    pub(crate) session_id: SessionId,
    /// The id that the file names, where that is not one.
    pub(crate) original_id: Option<String>,
    pub(crate) created_at_ms: i64,
    pub(crate) updated_at_ms: i64,
    /// The last meta; of a single object, what it says itself.
    pub(crate) meta: Option<Meta>,
    /// The last compaction.
    pub(crate) compaction: Option<V1Compaction>,
    pub(crate) messages: u64,
    /// All that could be read, messages included.
    pub(crate) records: u64,
    /// The highest seq, be there a record under it or not.
    pub(crate) last_seq: u64,
    /// The last record that says something in the conversation.
    pub(crate) last_record: Option<At>,
    pub(crate) first_prompt_ms: Option<i64>,
    /// How the user began.
    pub(crate) begins: Option<String>,
    /// Whether the first message, if there is one, is anybody's but the system's.
    pub(crate) uninstructed: bool,
    /// BLAKE3 of all bytes.
    pub(crate) hash: [u8; 32],
    pub(crate) bytes: u64,
    pub(crate) damage: DamageReport,
}

impl Summary {
    /// Returns whether the file says that it is of our own version.
    pub(crate) fn is_ours(&self) -> bool {
        let version = self.meta.as_ref().and_then(|meta| meta.version);
        version == Some(u64::from(FORMAT_VERSION))
    }
}

/// Where a record stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) seq: u64,
    pub(crate) line: u64,
    pub(crate) place: Range<u64>,
}

/// Sees each record of a file as [`walk`] comes to it.
pub(crate) trait Visit {
    /// Takes a record. Damage and blank lines do not come here.
    fn found(&mut self, at: &At, found: &Found<'_>) -> Result<()>;

    /// Forgets everything: the file turned out to be lines after all.
    fn start_over(&mut self);
}

/// Goes through a file and says what it is. Memory is constant, save that the
/// longest record is held whole.
pub(crate) fn survey(file: &Arc<dyn StorageFile>, path: &Path) -> Result<Summary> {
    struct Nobody;
    impl Visit for Nobody {
        fn found(&mut self, _: &At, _: &Found<'_>) -> Result<()> {
            Ok(())
        }

        fn start_over(&mut self) {}
    }
    walk(file.as_ref(), path, &mut Nobody)
}

/// As [`survey`], and shows each record to `visit` on the way.
pub(crate) fn walk(file: &dyn StorageFile, path: &Path, visit: &mut dyn Visit) -> Result<Summary> {
    let mut walk = Walk::new(file, path, &mut *visit, Form::Object);
    if walk.object()? {
        return walk.finish();
    }
    visit.start_over();
    let mut walk = Walk::new(file, path, visit, Form::Lines);
    walk.lines()?;
    walk.finish()
}

struct Walk<'a> {
    file: &'a dyn StorageFile,
    path: &'a Path,
    visit: &'a mut dyn Visit,
    form: Form,
    hasher: blake3::Hasher,
    /// The bytes of the file that are at hand, and where they begin.
    chunk: Vec<u8>,
    at: u64,
    /// A record that does not lie in one chunk.
    record: Vec<u8>,
    seq: u64,
    seen: Seen,
}

/// What has been seen so far.
#[derive(Default)]
struct Seen {
    begins: Option<String>,
    uninstructed: bool,
    meta: Option<Meta>,
    compaction: Option<V1Compaction>,
    messages: u64,
    records: u64,
    last_record: Option<At>,
    first_prompt_ms: Option<i64>,
    damage: DamageReport,
}

impl<'a> Walk<'a> {
    fn new(
        file: &'a dyn StorageFile,
        path: &'a Path,
        visit: &'a mut dyn Visit,
        form: Form,
    ) -> Self {
        Self {
            file,
            path,
            visit,
            form,
            hasher: blake3::Hasher::new(),
            chunk: Vec::new(),
            at: 0,
            record: Vec::new(),
            seq: 0,
            seen: Seen::default(),
        }
    }

    /// Reads the next chunk; returns whether there was a whole one.
    fn next_chunk(&mut self) -> Result<bool> {
        self.at += self.chunk.len() as u64;
        self.chunk.resize(CHUNK, 0);
        let n = read_chunk(self.file, self.path, &mut self.chunk, self.at)?;
        self.chunk.truncate(n);
        self.hasher.update(&self.chunk);
        Ok(n == CHUNK)
    }

    fn end(&self) -> u64 {
        self.at + self.chunk.len() as u64
    }

    /// Goes through the file as one object; returns whether it is one.
    fn object(&mut self) -> Result<bool> {
        let mut scanner = Scanner::new();
        let mut fields = ObjectFields::default();
        loop {
            let more = self.next_chunk()?;
            scanner.feed(&self.chunk);
            if scanner.is_lines() {
                return Ok(false);
            }
            for event in scanner.take_events() {
                match event {
                    Event::Element { place, line } => self.element(place, line)?,
                    Event::Field { name, place } => fields.take(self, name, place)?,
                }
            }
            if !more {
                break;
            }
        }
        let Verdict::Object(flaw) = scanner.finish() else {
            return Ok(false);
        };
        for (place, reason) in std::mem::take(&mut fields.flaws) {
            self.damage(1, place, reason);
        }
        let is_session = flaw.as_ref().is_none_or(|flaw| flaw.leaves_messages());
        if let Some(flaw) = flaw {
            let place = flaw.byte..self.end();
            self.damage(flaw.line, place, flaw.reason);
        }
        if is_session {
            fields.tell(&mut self.seen);
        }
        Ok(true)
    }

    fn element(&mut self, place: Range<u64>, line: u64) -> Result<()> {
        self.seq += 1;
        let at = At {
            seq: self.seq,
            line,
            place: place.clone(),
        };
        let inside = self.at <= place.start && place.end <= self.end();
        if inside {
            let (start, end) = (place.start - self.at, place.end - self.at);
            let chunk = std::mem::take(&mut self.chunk);
            let taken = self.take(&at, &chunk[start as usize..end as usize], Ending::Newline);
            self.chunk = chunk;
            return taken;
        }
        let mut record = std::mem::take(&mut self.record);
        let taken = match read_place(self.file, self.path, place.clone(), &mut record)? {
            Ok(()) => self.take(&at, &record, Ending::Newline),
            Err(reason) => {
                self.damage(line, place, reason);
                Ok(())
            }
        };
        self.record = record;
        taken
    }

    fn lines(&mut self) -> Result<()> {
        // The beginning of a line whose end is in a later chunk. One that is
        // too long is not kept: only its length counts.
        let mut begun = Vec::new();
        let mut offset = 0;
        loop {
            let more = self.next_chunk()?;
            let chunk = std::mem::take(&mut self.chunk);
            let mut from = 0;
            for newline in memchr::memchr_iter(b'\n', &chunk) {
                let end = self.at + newline as u64;
                if begun.is_empty() {
                    self.line(offset..end, &chunk[from..newline], Ending::Newline)?;
                } else {
                    keep(&mut begun, &chunk[from..newline]);
                    self.line(offset..end, &begun, Ending::Newline)?;
                    begun = Vec::new();
                }
                from = newline + 1;
                offset = end + 1;
            }
            keep(&mut begun, &chunk[from..]);
            self.chunk = chunk;
            if !more {
                break;
            }
        }
        if offset < self.end() {
            self.line(offset..self.end(), &begun, Ending::Missing)?;
        }
        Ok(())
    }

    fn line(&mut self, place: Range<u64>, bytes: &[u8], ending: Ending) -> Result<()> {
        self.seq += 1;
        let len = place.end - place.start;
        if len > MAX_READ as u64 {
            let limit = MAX_READ as u64;
            let reason = Reason::TooLong { bytes: len, limit };
            self.damage(self.seq, place, reason);
            return Ok(());
        }
        let at = At {
            seq: self.seq,
            line: self.seq,
            place,
        };
        self.take(&at, bytes, ending)
    }

    /// Takes in what stands at one place.
    fn take(&mut self, at: &At, bytes: &[u8], ending: Ending) -> Result<()> {
        let Looked { found, lost } = look_closely(self.form, bytes, ending);
        if let Some((lost, reason)) = lost {
            let place = at.place.start..at.place.start + lost as u64;
            self.damage(at.line, place, reason);
        }
        match &found {
            Found::Blank => return Ok(()),
            Found::Damage(reason) => {
                self.damage(at.line, at.place.clone(), reason.clone());
                return Ok(());
            }
            Found::Meta(meta) => self.seen.meta = Some(meta.clone()),
            Found::Compaction(compaction) => self.seen.compaction = Some(compaction.clone()),
            Found::Message { json } => {
                self.seen.messages += 1;
                if self.seen.messages == 1 {
                    self.seen.uninstructed = !is_of_system(json);
                }
                if self.seen.begins.is_none() && self.seen.messages <= LOOKED_AT {
                    self.seen.begins = user_words(json);
                }
            }
            Found::Prompt { at_ms, .. } => {
                self.seen.first_prompt_ms = self.seen.first_prompt_ms.or(*at_ms);
            }
            Found::Other { .. } => {}
        }
        self.seen.records += 1;
        if !matches!(found, Found::Meta(_)) {
            self.seen.last_record = Some(at.clone());
        }
        self.visit.found(at, &found)
    }

    fn damage(&mut self, line: u64, place: Range<u64>, reason: Reason) {
        self.seen.damage.add(Damage {
            file: self.path.to_owned(),
            line: Some(line),
            byte: place.start,
            bytes: place.end - place.start,
            reason,
        });
    }

    fn finish(self) -> Result<Summary> {
        let seen = self.seen;
        if seen.messages == 0 && seen.meta.is_none() && seen.compaction.is_none() {
            if self.at == 0 && self.chunk.is_empty() {
                let reason = Reason::Syntax("the file is empty".to_owned());
                return Err(Error::invalid("this is not a session file")
                    .at_path(self.path)
                    .at_line(Some(1))
                    .with_reason(reason));
            }
            return Err(not_a_session(self.path, &seen.damage));
        }
        let hash = *self.hasher.finalize().as_bytes();
        let named = seen.meta.as_ref().and_then(|meta| meta.session_id.clone());
        let valid = named.as_deref().and_then(|id| id.parse().ok());
        let original_id = named.filter(|_| valid.is_none());
        let times = Times::of(&seen, self.file, self.path);
        Ok(Summary {
            form: self.form,
            session_id: valid.unwrap_or_else(|| derived_id(self.path, &hash)),
            original_id,
            created_at_ms: times.created_at_ms,
            updated_at_ms: times.updated_at_ms,
            meta: seen.meta,
            compaction: seen.compaction,
            messages: seen.messages,
            records: seen.records,
            last_seq: self.seq,
            last_record: seen.last_record,
            first_prompt_ms: seen.first_prompt_ms,
            begins: seen.begins,
            uninstructed: seen.uninstructed,
            hash,
            bytes: self.at + self.chunk.len() as u64,
            damage: seen.damage,
        })
    }
}

/// Returns whether a message is the system's, or may be.
fn is_of_system(json: &str) -> bool {
    #[derive(Deserialize)]
    struct Said {
        role: Role,
    }
    serde_json::from_str(json).is_ok_and(|said: Said| said.role == Role::System)
}

/// A file in which nobody asks anything for so long is not searched to its end.
const LOOKED_AT: u64 = 50;

/// Returns how a message of the user's begins; `None` if it is another's.
fn user_words(json: &str) -> Option<String> {
    const SHOWN: usize = 200;
    let message: Message = serde_json::from_str(json).ok()?;
    let text = message.text();
    let is_prompt = message.role == Role::User && !text.trim().is_empty();
    is_prompt.then(|| text.chars().take(SHOWN).collect())
}

/// Keeps a part of a line, unless the line is too long for a record.
fn keep(begun: &mut Vec<u8>, bytes: &[u8]) {
    if begun.len() <= MAX_READ {
        begun.extend_from_slice(bytes);
    }
}

fn not_a_session(path: &Path, damage: &DamageReport) -> Error {
    let error = Error::new(
        ErrorKind::Invalid,
        "this is not a session file: nothing in it can be read as one",
    )
    .at_path(path);
    match damage.first().first() {
        Some(first) => error
            .at_line(first.line)
            .at_byte(first.byte)
            .with_reason(first.reason.clone()),
        None => error
            .at_line(Some(1))
            .with_reason(Reason::MissingField("message")),
    }
}

/// When a session began and when it was last added to.
struct Times {
    created_at_ms: i64,
    updated_at_ms: i64,
}

impl Times {
    /// Takes what the file says, else the first prompt's time, else its name's,
    /// else when it was last modified.
    fn of(seen: &Seen, file: &dyn StorageFile, path: &Path) -> Self {
        let meta = seen.meta.as_ref();
        let updated = meta.and_then(|meta| meta.updated_at_ms);
        let created = meta.and_then(|meta| meta.created_at_ms);
        let guessed = || {
            let known = seen.first_prompt_ms.or_else(|| named_ms(path));
            let ms = known.or_else(|| modified_ms(file)).unwrap_or(0);
            updated.map_or(ms, |updated| ms.min(updated))
        };
        let created_at_ms = created.unwrap_or_else(guessed);
        Self {
            created_at_ms,
            updated_at_ms: updated.unwrap_or(created_at_ms),
        }
    }
}

fn modified_ms(file: &dyn StorageFile) -> Option<i64> {
    let modified = file.modified().ok()?;
    Some(crate::Timestamp::from(modified).as_millis())
}

/// What a single object says about its session.
#[derive(Default)]
struct ObjectFields {
    /// The known fields as they stand: `"version":1`.
    meta: Vec<String>,
    compaction: Option<V1Compaction>,
    first_prompt_ms: Option<i64>,
    flaws: Vec<(Range<u64>, Reason)>,
}

impl ObjectFields {
    fn take(&mut self, walk: &Walk<'_>, name: &'static str, place: Range<u64>) -> Result<()> {
        let mut bytes = Vec::new();
        let read = read_place(walk.file, walk.path, place.clone(), &mut bytes)?;
        let taken = read.and_then(|()| self.take_value(name, &bytes));
        if let Err(reason) = taken {
            self.flaws.push((place, reason));
        }
        Ok(())
    }

    fn take_value(&mut self, name: &'static str, bytes: &[u8]) -> Result<(), Reason> {
        let text = std::str::from_utf8(bytes)
            .map_err(|error| Reason::NotUtf8(error.valid_up_to() as u64))?;
        serde_json::from_str::<IgnoredAny>(text)
            .map_err(|error| Reason::Syntax(error.to_string()))?;
        match name {
            "compaction" if text == "null" => {}
            "compaction" => self.compaction = Some(read_compaction(text)?),
            "prompt_history" => self.first_prompt_ms = first_prompt_ms(text),
            _ if text.len() <= LONGEST_NAME => self.meta.push(format!("\"{name}\":{text}")),
            _ => return Err(Reason::OutOfRange(name)),
        }
        Ok(())
    }

    /// Tells what was found. An object of which nothing is known, and none of
    /// whose messages can be read, is some other program's.
    fn tell(self, seen: &mut Seen) {
        if self.meta.is_empty() && seen.messages == 0 && !seen.damage.is_empty() {
            return;
        }
        let meta = format!("{{{}}}", self.meta.join(","));
        seen.meta = Some(read_meta(&meta).unwrap_or_default());
        seen.first_prompt_ms = self.first_prompt_ms;
        seen.compaction = self.compaction;
    }
}

/// The longest value that may stand for an id, a name or a time.
const LONGEST_NAME: usize = 1 << 20;

#[cfg(test)]
#[path = "survey_tests.rs"]
mod tests;
