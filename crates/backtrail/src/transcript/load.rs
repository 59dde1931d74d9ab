//! Loads a transcript from a file of either version, in one pass.

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::Transcript;
use super::content::{Compacted, Content, KEPT_LINE, KeptLine};
use super::place::{Known, Place, Refusal};
use crate::error::{Error, ErrorKind, IoContext, Reason, Result};
use crate::ids::SessionId;
use crate::json::Json;
use crate::log::{OPENING, lies_in_store, numbers_in};
use crate::message::Message;
use crate::storage::{Storage, StorageFile, read_full};
use crate::time::Timestamp;
use crate::trail::lines::STREAM_BUFFER;
use crate::trail::reader::{Found, TrailReader};
use crate::trail::record::{Position, check_line};
use crate::trail::{Damage, DamageReport, FORMAT_VERSION, RecordKind, RecordRef, Sums};
use crate::version1::{self, derived_id, find_file};

/// The kind of a file, by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Trail,
    Version1,
}

/// What was read from a trail.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) content: Content,
    pub(super) known: Known,
    pub(super) skipped: DamageReport,
    pub(super) refusal: Option<Refusal>,
}

pub(super) fn load(path: &Path, storage: Arc<dyn Storage>) -> Result<Transcript> {
    let path = find_file(storage.as_ref(), path)?;
    let file = storage
        .open_read(&path)
        .context("cannot open the session file", &path)?;
    if kind_of(file.as_ref(), &path)? == Kind::Version1 {
        return load_version_1(&file, &path, storage);
    }
    let Some(loaded) = read_trail(&file, &path)? else {
        let what = "this is not a session file yet: its first record was never finished";
        return Err(Error::new(ErrorKind::Corrupt, what)
            .at_path(&path)
            .at_line(Some(1))
            .with_reason(Reason::Unfinished));
    };
    let in_store = lies_in_store(storage.as_ref(), &path)?;
    let refusal = loaded.refusal.or(in_store.then_some(Refusal::InStore));
    Ok(Transcript {
        content: loaded.content,
        place: Some(Place::loaded(path, storage, Some(loaded.known), refusal)),
        skipped: loaded.skipped,
    })
}

/// Recognises a trail by its opener, or by a record near its beginning that has a sum,
/// which version 1 never had.
pub(crate) fn kind_of(file: &dyn StorageFile, path: &Path) -> Result<Kind> {
    let mut front = vec![0; 64 << 10];
    let n = read_full(file, &mut front, 0).context("cannot read the session file", path)?;
    let front = &front[..n];
    let is_trail = match front.strip_prefix(OPENING) {
        Some(version) => !version.starts_with(b"1,") && !version.starts_with(b"1}"),
        None => {
            let torn = !front.is_empty() && OPENING.starts_with(front);
            let mut lines = front.split(|byte| *byte == b'\n');
            torn || lines.any(|line| check_line(line.trim_ascii_end(), Sums::Check).is_ok())
        }
    };
    Ok(if is_trail {
        Kind::Trail
    } else {
        Kind::Version1
    })
}

impl From<(usize, String)> for KeptLine {
    fn from((after, line): (usize, String)) -> Self {
        Self { after, line }
    }
}

/// Reads a whole trail; `None` if it ends inside its very first record.
pub(super) fn read_trail(file: &Arc<dyn StorageFile>, path: &Path) -> Result<Option<Loaded>> {
    let mut reader = TrailReader::forwards(Arc::clone(file), path, 0, STREAM_BUFFER, Sums::Check);
    let mut reading = Reading::new(path);
    while let Some(found) = reader.advance()? {
        let (_, end, ended) = reader.last_line().unwrap_or((0, 0, true));
        reading.any_line_ended |= ended;
        match found {
            Found::Damage(damage) => reading.damage(damage, ended),
            Found::Record => {
                reading.known.lacks_newline = !ended;
                reading.known.len = reader.place().end;
                reading.record(&reader)?;
            }
        }
        if ended {
            reading.known.len = end;
            reading.known.lacks_newline = false;
        }
    }
    reading.finish()
}

struct Reading<'a> {
    path: &'a Path,
    content: Option<Content>,
    known: Known,
    skipped: DamageReport,
    refusal: Option<Refusal>,
    last: Option<Position>,
    highest: u64,
    /// How many numbers may be lost since the last record.
    lost: u64,
    /// Whether the last item was damage: then a gap after it is already reported.
    after_damage: bool,
    any_line_ended: bool,
}

/// The fields of an opener that matter here.
#[derive(Deserialize)]
struct RawOpener {
    version: u32,
    session_id: SessionId,
    #[serde(default)]
    trail: u32,
    at: Timestamp,
    #[serde(default)]
    continues: Option<IgnoredAny>,
    #[serde(default)]
    fork: Option<Json>,
    #[serde(default)]
    updated_at_ms: Option<i64>,
}

impl<'a> Reading<'a> {
    fn new(path: &'a Path) -> Self {
        Self {
            path,
            content: None,
            known: Known::nothing(),
            skipped: DamageReport::default(),
            refusal: None,
            last: None,
            highest: 0,
            lost: 0,
            after_damage: false,
            any_line_ended: false,
        }
    }

    fn damage(&mut self, damage: Damage, ended: bool) {
        if ended {
            self.lost = self.lost.saturating_add(numbers_in(&damage));
        }
        self.skipped.add(damage);
        self.after_damage = true;
    }

    fn record(&mut self, reader: &TrailReader) -> Result<()> {
        let record = reader.record();
        if !self.follows(reader, &record) {
            return Ok(());
        }
        self.last = Some(Position::after(&record));
        self.highest = self.highest.max(record.seq());
        self.lost = 0;
        self.after_damage = false;
        let flaw = match record.kind() {
            RecordKind::Opener if self.content.is_none() => self.opener(&record)?,
            kind if kind.is_spoken() || kind == RecordKind::Other(KEPT_LINE) => {
                self.content(&record)?
            }
            _ => None,
        };
        if let Some(reason) = flaw {
            self.skipped.add(reader.damage_here(reason));
        }
        Ok(())
    }

    /// Checks that a record follows the previous one; returns whether it is new.
    fn follows(&mut self, reader: &TrailReader, record: &RecordRef<'_>) -> bool {
        let Some(last) = self.last else {
            return true;
        };
        let (seq, after) = (record.seq(), last.seq);
        if seq <= after && record.kind() != RecordKind::Opener {
            let reason = Reason::OutOfOrder { seq, after };
            self.skipped.add(reader.damage_here(reason));
            return record.sum() != last.sum;
        }
        if !self.after_damage && record.prev() != Some(last.sum) {
            self.skipped.add(reader.damage_here(Reason::Gap));
        }
        true
    }

    fn opener(&mut self, record: &RecordRef<'_>) -> Result<Option<Reason>> {
        let Ok(raw) = serde_json::from_slice::<RawOpener>(record.bytes()) else {
            self.begin_without_opener(record);
            return Ok(Some(Reason::BadOpener));
        };
        if raw.continues.is_some() || raw.trail > 0 {
            let what = "the file is only a part of a session; open its store to read all of it";
            return Err(Error::invalid(what).at_path(self.path));
        }
        if raw.version > FORMAT_VERSION {
            self.refusal = Some(Refusal::Newer(raw.version));
        }
        let mut content = Content::empty(raw.session_id, raw.at.as_millis());
        content.updated_at_ms = raw.updated_at_ms.unwrap_or(content.created_at_ms);
        content.fork = raw
            .fork
            .and_then(|fork| serde_json::from_str(fork.as_str()).ok());
        self.content = Some(content);
        Ok(None)
    }

    /// Continues although no record has the session's id: it is derived from the file's name.
    fn begin_without_opener(&mut self, record: &RecordRef<'_>) {
        self.refusal = Some(Refusal::NoOpener);
        let hash = *blake3::hash(record.bytes()).as_bytes();
        let id = derived_id(self.path, || Ok(hash)).expect("the hash is known");
        let at_ms = record.at().map_or(0, Timestamp::as_millis);
        self.content = Some(Content::empty(id, at_ms));
    }

    /// Adds a message or compaction.
    fn content(&mut self, record: &RecordRef<'_>) -> Result<Option<Reason>> {
        if self.content.is_none() {
            self.begin_without_opener(record);
        }
        let content = self.content.as_mut().expect("it was just set");
        let flaw = content.add_record(record, &mut self.known.lines.seqs)?;
        self.known.lines.compactions = content.compactions();
        self.known.lines.kept = content.kept.len();
        Ok(flaw)
    }

    fn finish(mut self) -> Result<Option<Loaded>> {
        let Some(mut content) = self.content else {
            if !self.any_line_ended {
                return Ok(None);
            }
            let first = self.skipped.first().first().cloned();
            let beginning = || Damage::at_beginning(self.path, Reason::BadOpener);
            return Err(first.unwrap_or_else(beginning).into());
        };
        content.shrink();
        if let Some(mut last) = self.last {
            last.seq = self.highest.saturating_add(self.lost);
            self.known.lines.position = last;
        }
        Ok(Some(Loaded {
            content,
            known: self.known,
            skipped: self.skipped,
            refusal: self.refusal,
        }))
    }
}

fn load_version_1(
    file: &Arc<dyn StorageFile>,
    path: &Path,
    storage: Arc<dyn Storage>,
) -> Result<Transcript> {
    let mut messages = Vec::new();
    let mut session = version1::read(file, path, &mut |json| {
        let mut message: Message = serde_json::from_str(json).map_err(|error| {
            let reason = Reason::Syntax(error.to_string());
            Error::new(ErrorKind::Corrupt, "cannot read a message")
                .at_path(path)
                .with_reason(reason)
        })?;
        message.blocks.shrink_to_fit();
        messages.push(message);
        Ok(())
    })?;
    let compaction = session.compaction.map(|mut summary| {
        summary.covered = summary.covered.min(messages.len());
        Compacted {
            summary,
            after: messages.len(),
            at_ms: session.updated_at_ms,
        }
    });
    let mut content = Content {
        session_id: session.session_id,
        created_at_ms: session.created_at_ms,
        updated_at_ms: session.updated_at_ms,
        pushed_at_ms: vec![session.updated_at_ms; messages.len()],
        messages,
        compaction,
        fork: session.meta.and_then(|meta| meta.fork),
        kept: session.kept.into_iter().map(KeptLine::from).collect(),
    };
    content.shrink();
    session.damage.append(&mut session.odd);
    let refusal = Some(Refusal::Version1);
    Ok(Transcript {
        content,
        place: Some(Place::loaded(path.to_owned(), storage, None, refusal)),
        skipped: session.damage,
    })
}
