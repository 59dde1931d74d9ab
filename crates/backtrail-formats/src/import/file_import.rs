//! Imports one file.

use backtrail::plumbing::{ImportWriter, KeptSource, SourceRecord};
use backtrail::{Json, SessionId, SessionInfo, SessionReader, Timestamp};
use serde::de::IgnoredAny;

use super::cache::CachedFile;
use super::combined::{FirstTime, NewFile, combine};
use super::destination::{
    Claim, Destination, RecordPlace, has_no_event_after, is_only_file, kept_file, newest_source_at,
};
use super::diff::OnDifference;
use super::file_note::FileNote;
use super::found::FoundFile;
use super::ids::{other_id, session_id};
use super::importer::{Imported, ImportedSessions, Importer, MainSession};
use super::report::{FileResult, Outcome, ReadSession};
use super::session_import::SessionImport;
use crate::compressed;
use crate::container::FileStamp;
use crate::error::Result;
use crate::event::{Details, Origin, ReadReport};
use crate::format::{Format, OpenFile, Resume, formats};
use crate::source::{Source, is_json_lines};

/// An earlier import of the file.
struct EarlierImport {
    reader: SessionReader,
    kept: KeptFile,
    /// Whether another process made it: the cache knows an older one.
    is_anothers: bool,
}

/// What a session keeps of the file.
#[derive(Clone)]
struct KeptFile {
    /// How many bytes.
    bytes: u64,
    place: RecordPlace,
    note: FileNote,
}

/// What happened to a file.
#[expect(clippy::large_enum_variant, reason = "it is taken apart at once")]
pub(super) enum Done {
    Imported(FileResult, Option<CachedFile>),
    /// Another file must be imported first, or is being imported now.
    Wait,
}

impl Done {
    fn without_session(outcome: Outcome) -> Self {
        Self::Imported(FileResult::from(outcome), None)
    }
}

/// Whether a file waits for another one, such as its parent's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    Wait,
    /// The other file does not come.
    ImportNow,
}

/// What to do with an opened file.
enum Choice<'d> {
    Import(MainSession, Claim<'d>),
    /// Other files contain parts of the same session: all are read as one.
    Combine(SessionId, Claim<'d>),
    Wait,
    /// The session was deleted here.
    Deleted,
}

/// Imports a file that is new or has changed.
pub(super) fn import_file(
    destination: &Destination<'_>,
    found: &FoundFile,
    cached: Option<&CachedFile>,
    patience: Patience,
) -> Result<Done> {
    let Some(raw) = found.open(destination)? else {
        return Ok(Done::without_session(Outcome::Unchanged));
    };
    if raw.is_empty() {
        let is_imported = cached.is_some_and(|cached| cached.session.is_some());
        return Ok(Done::without_session(match is_imported {
            true => Outcome::Unchanged,
            false => Outcome::NoConversation,
        }));
    }
    let file = FileImport {
        destination,
        found,
        stamp: match &found.contained {
            Some(_) => found.stamp,
            // Its length when it was opened, even if it has grown since.
            None => FileStamp {
                len: raw.len(),
                ..found.stamp
            },
        },
        raw: &raw,
        patience,
    };
    let earlier = match cached {
        Some(cached) => earlier_import(destination, found, cached)?,
        None => None,
    };
    match earlier {
        None => file.read_all(None),
        Some(earlier) if earlier.is_anothers && file.is_read_already(&earlier)? => {
            Ok(file.unchanged(&earlier))
        }
        Some(earlier) if raw.len() <= earlier.kept.bytes => {
            // If it only lost its end, what was imported stays.
            match file.starts_as_kept(&earlier.reader)? {
                true => Ok(file.unchanged(&earlier)),
                false => file.read_all(Some(&earlier)),
            }
        }
        Some(earlier) if file.has_grown(&earlier)? => file.read_appended(&earlier),
        Some(earlier) => file.read_all(Some(&earlier)),
    }
}

fn earlier_import(
    destination: &Destination<'_>,
    found: &FoundFile,
    cached: &CachedFile,
) -> Result<Option<EarlierImport>> {
    let Some(session) = &cached.session else {
        return Ok(None);
    };
    let Some(store) = destination.find_store(session)? else {
        return Ok(None);
    };
    let reader = store.read_session(session)?;
    let at_place = match cached.place {
        Some(place) => newest_source_at(&reader, &found.path, place)?,
        None => None,
    };
    let at_place = at_place.map(|(record, place)| KeptFile {
        bytes: record.to,
        place,
        note: FileNote::parse(record.note.as_ref()),
    });
    let is_anothers = at_place
        .as_ref()
        .is_some_and(|kept| Some(kept.place) != cached.place);
    let kept = match at_place {
        None => find_kept(&reader, found)?,
        kept => kept,
    };
    Ok(kept.map(|kept| EarlierImport {
        reader,
        kept,
        is_anothers,
    }))
}

fn find_kept(reader: &SessionReader, found: &FoundFile) -> Result<Option<KeptFile>> {
    let kept = kept_file(reader, &found.path)?;
    Ok(kept.map(|kept| KeptFile {
        bytes: kept.bytes,
        place: kept.place,
        note: FileNote::parse(kept.note.as_ref()),
    }))
}

/// One file under way.
struct FileImport<'f> {
    destination: &'f Destination<'f>,
    found: &'f FoundFile,
    stamp: FileStamp,
    raw: &'f Source,
    patience: Patience,
}

/// How much of a file is kept at a time.
const KEPT_AT_ONCE: u64 = 8 << 20;

impl FileImport<'_> {
    /// Returns whether the file and what a session keeps of it are the same, up to the end of
    /// the shorter one.
    fn starts_as_kept(&self, reader: &SessionReader) -> Result<bool> {
        let Some(kept) = kept_file(reader, &self.found.path)? else {
            return Ok(false);
        };
        let read = |buffer: &mut [u8], at: u64| {
            self.raw.read_at(buffer, at).map_err(std::io::Error::other)
        };
        Ok(reader.source_begins_as(&kept, read)?)
    }

    /// Returns whether the file starts as it was, judging by both ends, and the session ends
    /// where the file was read to.
    fn has_grown(&self, earlier: &EarlierImport) -> Result<bool> {
        Ok(self.has_kept_ends(&earlier.kept)?
            && has_no_event_after(&earlier.reader, earlier.kept.place)?)
    }

    /// Returns whether the file was read as long as it is, judging by both ends.
    fn is_read_already(&self, earlier: &EarlierImport) -> Result<bool> {
        Ok(self.raw.len() == earlier.kept.bytes && self.has_kept_ends(&earlier.kept)?)
    }

    fn has_kept_ends(&self, kept: &KeptFile) -> Result<bool> {
        kept.note.has_ends(self.raw, kept.bytes)
    }

    /// Imports what was appended, or all of it if that is not possible.
    fn read_appended(&self, earlier: &EarlierImport) -> Result<Done> {
        let kept = &earlier.kept;
        let can_resume = self.raw.can_resume_at(kept.note.read_to);
        let Some(state) = kept.note.state.clone().filter(|_| can_resume) else {
            return self.read_all(Some(earlier));
        };
        if compressed::is_compressed(&self.found.path) {
            return self.read_all(Some(earlier));
        }
        let resume = Resume {
            read_to: kept.note.read_to,
            state,
        };
        let Some(opened) = self.found.format.resume(self.raw, &resume)? else {
            return self.read_all(Some(earlier));
        };
        let id = earlier.reader.id().clone();
        let Some(_claim) = self.destination.claim(&id) else {
            return Ok(Done::Wait);
        };
        if self.destination.was_deleted(&id) {
            return Ok(Done::without_session(Outcome::Deleted));
        }
        let main = MainSession {
            id,
            name: opened.session().unwrap_or_default().to_owned(),
            on_difference: OnDifference::Rewind,
            is_resumed: true,
        };
        let name = main.name.clone();
        let (report, sessions) = match self.read(opened, main)? {
            (report, Imported::Sessions(sessions)) => (report, sessions),
            (report, other) => {
                return self.without_session(&other, self.raw, report, Some(earlier));
            }
        };
        let note = kept.note.after(&name, &report);
        self.finish(report, sessions, Some(earlier), note, Beginning::IsKept)
    }

    /// Imports all of the file.
    fn read_all(&self, earlier: Option<&EarlierImport>) -> Result<Done> {
        let decompressed = self.decompress()?;
        let (content, damage) = match &decompressed {
            Some((content, damage)) => (content, damage.clone()),
            None => (self.raw, None),
        };
        if earlier.is_none()
            && let Some(other) = self.other_format(content)
        {
            let title = other.title();
            let reason = format!("a session file of {title}; to import it, pass its path");
            return Ok(self.not_a_session(reason));
        }
        let opened = self.found.format.open(content)?;
        let Some(name) = opened.session().map(str::to_owned) else {
            let report = opened.read(&mut FirstTime::new())?;
            return self.without_session(&Imported::Nothing, content, report, earlier);
        };
        let (main, _claim) = match self.choose(&opened, &name, earlier)? {
            Choice::Import(main, claim) => (main, claim),
            Choice::Combine(id, _claim) => {
                return self.combine(&id, &name, content, opened, earlier);
            }
            Choice::Wait => return Ok(Done::Wait),
            Choice::Deleted => return Ok(Done::without_session(Outcome::Deleted)),
        };
        let mut read = self.read(opened, main.clone())?;
        while let Imported::Other(id) = read.1 {
            let main = self.other_session(id, &main)?;
            read = self.read(self.found.format.open(content)?, main)?;
        }
        let (mut report, sessions) = match read {
            (report, Imported::Sessions(sessions)) => (report, sessions),
            (report, other) => return self.without_session(&other, content, report, earlier),
        };
        if let Some(reason) = damage {
            report.add_damage(report.lines + 1, &(content.len()..content.len()), reason);
        }
        let note = FileNote::new(&name, &report);
        self.finish(report, sessions, earlier, note, Beginning::MayDiffer)
    }

    /// Decides what to do with the file, by the session that it names.
    fn choose(
        &self,
        opened: &OpenFile<'_>,
        name: &str,
        earlier: Option<&EarlierImport>,
    ) -> Result<Choice<'_>> {
        let agent = self.found.format.name();
        let mut id = match earlier {
            Some(earlier) => earlier.reader.id().clone(),
            None => session_id(agent, name),
        };
        let Some(claim) = self.destination.claim(&id) else {
            return Ok(Choice::Wait);
        };
        if self.destination.was_deleted(&id) {
            return Ok(Choice::Deleted);
        }
        let mut on_difference = OnDifference::Leave;
        if let Some(store) = self.destination.find_store(&id)? {
            let reader = store.read_session(&id)?;
            if earlier.is_none() && reader.info()?.belongs_to.as_deref() != Some(agent) {
                id = other_id(&id, agent);
            } else {
                let sources = reader.sources()?;
                if self.is_one_of_several(name, &sources) {
                    return Ok(Choice::Combine(id, claim));
                }
                on_difference = self.on_difference(earlier, &sources);
            }
        }
        if self.must_wait(&id, opened.origin())? {
            return Ok(Choice::Wait);
        }
        let main = MainSession {
            id,
            name: name.to_owned(),
            on_difference,
            is_resumed: false,
        };
        Ok(Choice::Import(main, claim))
    }

    /// Returns how the file is read into another session of the same name.
    fn other_session(&self, id: SessionId, taken: &MainSession) -> Result<MainSession> {
        let on_difference = match self.destination.find_store(&id)? {
            Some(store) => self.on_difference(None, &store.read_session(&id)?.sources()?),
            None => OnDifference::Leave,
        };
        Ok(MainSession {
            id,
            on_difference,
            ..taken.clone()
        })
    }

    /// Returns whether other files contain parts of the session that keeps these. Names that
    /// are not unique are given to more than one session.
    fn is_one_of_several(&self, name: &str, sources: &[KeptSource]) -> bool {
        let path = &self.found.path;
        let may_combine = self.found.format.joins_files() && is_json_lines(path);
        if !may_combine || uuid::Uuid::try_parse(name).is_err() {
            return false;
        }
        let is_other = |kept: &&KeptSource| kept.held_by.is_none() && kept.path != *path;
        let mut others = sources.iter().filter(is_other).peekable();
        others.peek().is_some() && others.all(|kept| is_json_lines(&kept.path))
    }

    /// Returns what to do where the file differs from a session that keeps these files. A
    /// session follows its only file, unless that file has become shorter.
    fn on_difference(
        &self,
        earlier: Option<&EarlierImport>,
        sources: &[KeptSource],
    ) -> OnDifference {
        let path = &self.found.path;
        let is_kept = |kept: &KeptSource| kept.path == *path && kept.held_by.is_none();
        if !is_only_file(path, sources) {
            return OnDifference::Leave;
        }
        match earlier {
            Some(earlier) if self.raw.len() >= earlier.kept.bytes => OnDifference::RewindAtEnd,
            Some(_) => OnDifference::Rewind,
            None if sources.iter().any(is_kept) => OnDifference::Rewind,
            None => OnDifference::Leave,
        }
    }

    /// Returns whether the parent of a new session must be imported first.
    fn must_wait(&self, id: &SessionId, origin: &Origin) -> Result<bool> {
        let (Origin::Continues { session, .. } | Origin::Spawned { session, .. }) = origin else {
            return Ok(false);
        };
        let Some(parent) = session else {
            return Ok(false);
        };
        if self.patience == Patience::ImportNow || self.destination.find_store(id)?.is_some() {
            return Ok(false);
        }
        let parent = session_id(self.found.format.name(), parent);
        Ok(self.destination.is_claimed(&parent) || self.destination.find_store(&parent)?.is_none())
    }

    /// Imports all files of a session as one, this one among them.
    fn combine(
        &self,
        id: &SessionId,
        name: &str,
        content: &Source,
        opened: OpenFile<'_>,
        earlier: Option<&EarlierImport>,
    ) -> Result<Done> {
        let mut first = FirstTime::new();
        let report = opened.read(&mut first)?;
        let Some(store) = self.destination.find_store(id)? else {
            return Ok(Done::Wait);
        };
        let new = NewFile {
            path: &self.found.path,
            content,
            first_at: first.at,
        };
        let mut combined = self.destination.temp_file()?;
        combine(&store.read_session(id)?, &new, &mut combined)?;
        let combined = Source::from_file(&self.found.path, combined)?;
        let main = MainSession {
            id: id.clone(),
            name: name.to_owned(),
            on_difference: OnDifference::Rewind,
            is_resumed: false,
        };
        let opened = self.found.format.open(&combined)?;
        let sessions = match self.read(opened, main)? {
            (_, Imported::Sessions(sessions)) => sessions,
            (_, other) => return self.without_session(&other, content, report, earlier),
        };
        let mut note = FileNote::new(name, &report);
        note.first_at = first.at;
        // It knows nothing of the other files: next time all are combined again.
        note.state = None;
        self.finish(report, sessions, earlier, note, Beginning::MayDiffer)
    }

    fn decompress(&self) -> Result<Option<(Source, Option<String>)>> {
        if !compressed::is_compressed(&self.found.path) {
            return Ok(None);
        }
        let mut file = self.destination.temp_file()?;
        let decompressed = compressed::decompress(&self.found.path, &mut file)?;
        let content = Source::from_file(&self.found.path, file)?;
        Ok(Some((content, decompressed.damage)))
    }

    /// Returns when the file was last modified.
    fn modified(&self) -> Timestamp {
        let millis = i64::try_from(self.found.modified_ns / 1_000_000).ok();
        let modified = millis.and_then(Timestamp::from_millis);
        modified.unwrap_or_else(|| std::time::SystemTime::now().into())
    }

    /// Reads the events into sessions.
    fn read(&self, opened: OpenFile<'_>, main: MainSession) -> Result<(ReadReport, Imported)> {
        let mut importer = Importer::new(
            self.destination,
            self.found.format,
            &self.found.path,
            main,
            self.modified(),
        );
        let report = opened.read(&mut importer)?;
        Ok((report, importer.finish()?))
    }

    /// Reports on a file in which nothing is said, or whose session was deleted here.
    fn without_session(
        &self,
        imported: &Imported,
        content: &Source,
        report: ReadReport,
        earlier: Option<&EarlierImport>,
    ) -> Result<Done> {
        if !matches!(imported, Imported::Nothing) {
            return Ok(Done::without_session(Outcome::Deleted));
        }
        if let Some(earlier) = earlier {
            // It was damaged since. What was imported stays.
            let note = FileNote::new("", &report);
            let cached = self.cached(earlier.reader.id(), Some(earlier.kept.place), &note);
            let result = self.result(Outcome::Unchanged, &note, report);
            return Ok(Done::Imported(result, Some(cached)));
        }
        let format = self.found.format;
        if !is_begun(content, &report)? && !format.recognises(content) {
            return Ok(self.not_a_session(not_a_session(format.title(), &report)));
        }
        // What is there is the beginning of a session, or what is left of one.
        let note = FileNote::new("", &report);
        let mut cached = CachedFile::new(self.stamp, None);
        cached.damaged = note.damaged;
        cached.unknown.clone_from(&note.unknown);
        let result = self.result(Outcome::NoConversation, &note, report);
        Ok(Done::Imported(result, Some(cached)))
    }

    /// Reports on a file that is not its agent's.
    fn not_a_session(&self, reason: String) -> Done {
        let mut cached = CachedFile::new(self.stamp, None);
        cached.not_a_session = Some(reason.clone());
        let result = FileResult {
            outcome: Outcome::NotASession(reason),
            bytes: self.raw.len(),
            ..FileResult::default()
        };
        Done::Imported(result, Some(cached))
    }

    /// Returns the format of a file that is another agent's, though it is where this one keeps
    /// its sessions.
    fn other_format(&self, content: &Source) -> Option<&'static dyn Format> {
        let own = self.found.format;
        if self.found.contained.is_some() || own.recognises(content) {
            return None;
        }
        let is_other =
            |other: &&dyn Format| !own.writes_format_of(other.name()) && other.recognises(content);
        formats().find(is_other)
    }

    fn unchanged(&self, earlier: &EarlierImport) -> Done {
        let note = &earlier.kept.note;
        let mut result = self.result(Outcome::Unchanged, note, ReadReport::default());
        result.sessions = vec![ReadSession {
            id: earlier.reader.id().clone(),
            created: false,
        }];
        let place = Some(earlier.kept.place);
        let cached = self.cached(earlier.reader.id(), place, note);
        Done::Imported(result, Some(cached))
    }

    /// Notes in the sessions which file they were imported from, and closes them.
    fn finish(
        &self,
        report: ReadReport,
        sessions: ImportedSessions,
        earlier: Option<&EarlierImport>,
        mut note: FileNote,
        beginning: Beginning,
    ) -> Result<Done> {
        let ImportedSessions { mut main, others } = sessions;
        let reader = match &main.store {
            Some(store) if !main.created && beginning == Beginning::MayDiffer => {
                Some(store.read_session(&main.id)?)
            }
            _ => None,
        };
        // The file may belong to another session than before.
        let kept = match (earlier, &reader) {
            (Some(earlier), _) if *earlier.reader.id() == main.id => Some(earlier.kept.clone()),
            (_, Some(reader)) => find_kept(reader, self.found)?,
            (_, None) => None,
        };
        let is_kept = match &reader {
            Some(reader) if kept.is_some() => self.starts_as_kept(reader)?,
            _ => beginning == Beginning::IsKept,
        };
        let (keep_from, all_is_kept) = match kept.as_ref().filter(|_| is_kept) {
            Some(kept) => (kept.bytes, self.raw.len() <= kept.bytes),
            None => (0, false),
        };
        if main.ends_early() || others.iter().any(SessionImport::ends_early) {
            // Next time the whole file is compared again.
            note.state = None;
        }
        let mut read = vec![read_session(&main)];
        read.extend(others.iter().map(read_session));
        for mut other in others {
            self.finish_other(&mut other, &main)?;
            main.messages += other.messages;
            main.changed |= other.changed;
        }
        note.first_at = note.first_at.or(main.first_at);
        let known_details = match (&kept, &reader) {
            (Some(kept), _) => kept.note.details(),
            (None, Some(reader)) => details_from_other_files(&reader.info()?, &mut main),
            (None, None) => Details::default(),
        };
        note.update_details(&known_details);
        note.update_details(&main.details);
        note.note_ends(self.raw)?;
        let outcome = match (main.created, main.changed || !all_is_kept) {
            (true, _) => Outcome::New,
            (false, true) => Outcome::Updated,
            (false, false) => Outcome::Unchanged,
        };
        let details = main.new_details(&known_details);
        let mut place = kept.map(|kept| kept.place);
        if !self.destination.is_dry_run() && (outcome != Outcome::Unchanged || details.is_some()) {
            main.open(self.destination, self.found.format.name(), None)?;
            if let (Some(details), Some(writer)) = (&details, &mut main.writer) {
                writer.note(details)?;
            }
            place = self.keep_file(&mut main, keep_from, &note)?.or(place);
        }
        main.close()?;
        let cached = self.cached(&main.id, place, &note);
        let mut result = self.result(outcome, &note, report);
        result.messages = main.messages;
        result.sessions = read;
        Ok(Done::Imported(result, Some(cached)))
    }

    /// Keeps the bytes of the file from a byte on. Returns where the record of that is.
    fn keep_file(
        &self,
        main: &mut SessionImport,
        from: u64,
        note: &FileNote,
    ) -> Result<Option<RecordPlace>> {
        let last_at = main.time_by_now();
        let last_at = main.details.ended_at.map_or(last_at, |at| at.max(last_at));
        let Some(writer) = &mut main.writer else {
            return Ok(None);
        };
        let mut source = SourceRecord::new(self.found.format.name(), &self.found.path)
            .from(from)
            .note(Json::from_value(note)?)
            .at(last_at);
        keep_bytes(writer, &mut source, self.raw)?;
        Ok(Some(writer.source(&source)?))
    }

    /// Notes in the session of a branch or a sub-agent which session keeps the file.
    fn finish_other(&self, other: &mut SessionImport, main: &SessionImport) -> Result<()> {
        if other.created {
            other.open(self.destination, self.found.format.name(), None)?;
            let source = SourceRecord::new(self.found.format.name(), &self.found.path)
                .held_by(&main.id)
                .at(other.time_by_now());
            if let Some(writer) = &mut other.writer {
                writer.source(&source)?;
            }
        }
        other.close()
    }

    fn cached(
        &self,
        session: &SessionId,
        place: Option<RecordPlace>,
        note: &FileNote,
    ) -> CachedFile {
        let mut cached = CachedFile::new(self.stamp, Some(session.clone()));
        cached.place = place;
        cached.damaged = note.damaged;
        cached.unknown = note.unknown.clone();
        cached
    }

    fn result(&self, outcome: Outcome, note: &FileNote, report: ReadReport) -> FileResult {
        FileResult {
            damaged: note.damaged,
            unknown: note.unknown.clone(),
            bytes: self.raw.len(),
            first_damaged: report.damage.first,
            // A session in a database has no lines that could be incomplete.
            is_unfinished: report.unfinished && self.found.contained.is_none(),
            messages: 0,
            sessions: Vec::new(),
            outcome,
        }
    }
}

/// Keeps the bytes of a file from where `source` ends.
pub(super) fn keep_bytes(
    writer: &mut ImportWriter,
    source: &mut SourceRecord,
    raw: &Source,
) -> Result<()> {
    while source.to < raw.len() {
        let end = raw.len().min(source.to + KEPT_AT_ONCE);
        let bytes = raw.read_range(source.to..end)?;
        if bytes.is_empty() {
            // It was cut off meanwhile, and is imported again next time.
            break;
        }
        writer.keep(source, &bytes)?;
    }
    Ok(())
}

/// Returns whether a file is the beginning of a JSON value, which its agent may be writing.
fn is_begun(content: &Source, report: &ReadReport) -> Result<bool> {
    if !report.unfinished {
        return Ok(false);
    }
    let text = content.read_value()?;
    let is_value = text.trim_start().starts_with(['{', '[']);
    let parsed = serde_json::from_str::<IgnoredAny>(&text);
    Ok(is_value && parsed.is_err_and(|error| error.is_eof()))
}

/// Returns why a file is not a session of an agent.
fn not_a_session(agent: &str, report: &ReadReport) -> String {
    let why = match (report.damage.first.first(), report.unknown.keys().next()) {
        (Some(line), _) => format!("line {}: {}", line.line, line.reason),
        (None, Some(kind)) => format!("its records are of other types, such as {kind}"),
        (None, None) => "it has no record of one".to_owned(),
    };
    format!("not a session file of {agent}: {why}")
}

fn read_session(import: &SessionImport) -> ReadSession {
    ReadSession {
        id: import.id.clone(),
        created: import.created,
    }
}

/// Returns the details that a session has from other files: this one does not change them.
fn details_from_other_files(info: &SessionInfo, main: &mut SessionImport) -> Details {
    main.last_at = main.last_at.max(info.updated_at);
    let details = &main.details;
    Details {
        title: info.title.as_ref().and(details.title.clone()),
        model: info.model.as_ref().and(details.model.clone()),
        directory: info.workspace_root.as_ref().and(details.directory.clone()),
        tags: details.tags.clone(),
        ..Details::default()
    }
}

/// What is known about the part of a file that a session keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beginning {
    /// The file starts with it.
    IsKept,
    /// It must be compared.
    MayDiffer,
}
