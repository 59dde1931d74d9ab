//! Takes in one file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use backtrail::{Json, SessionId, SessionReader, SourceRecord, Timestamp};
use serde::{Deserialize, Serialize};

use super::cache::Known;
use super::found::{Found, Stamp};
use super::joined;
use super::report::{Outcome, Taken};
use super::shop::{Place, Shop, held, is_last, source_at};
use super::strand::{State, Strand};
use super::weave::{Mode, Stop, Weave, Woven};
use crate::error::{Error, Result};
use crate::format::{ReadError, Resume};
use crate::packed;
use crate::source::Source;
use crate::told::{About, DamagedLine, Told};

/// What a reading leaves in the session, for the next one.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ReadingNote {
    name: String,
    read_to: u64,
    lines: u64,
    /// What could not be read, or was not understood, in all readings.
    damaged: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    unknown: BTreeMap<String, u64>,
    /// What the agent says of the session: so that what a person notes is not overwritten.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    directory: Option<PathBuf>,
    /// When the first thing in it was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) first_at: Option<Timestamp>,
    /// What the beginning and the end of what was read hash to.
    head: String,
    tail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<Json>,
}

/// A reading that came before.
struct Before {
    reader: SessionReader,
    /// How much of the file the session holds.
    to: u64,
    place: Place,
    note: ReadingNote,
}

/// What becomes of a file.
#[expect(clippy::large_enum_variant, reason = "it is taken apart at once")]
pub(super) enum Done {
    Taken(Taken, Option<Known>),
    /// Another file must come first.
    Later,
}

/// How much of both ends of a file is compared.
const ENDS: u64 = 4 << 10;
/// How much is kept at once.
const KEPT_AT_ONCE: u64 = 8 << 20;

/// Takes in one file that is new or has changed.
pub(super) fn take(
    shop: &Shop<'_>,
    found: &Found,
    known: Option<&Known>,
    last_pass: bool,
) -> Result<Done> {
    let raw = Source::open(&found.path)?;
    // As it was when it was opened, whatever happens to it since.
    let stamp = Stamp {
        len: raw.len(),
        ..found.stamp
    };
    if raw.is_empty() {
        return Ok(Done::Taken(Taken::nothing(Outcome::Unchanged), None));
    }
    let before = match known {
        Some(known) => reading_before(shop, found, known)?,
        None => None,
    };
    let file = File {
        shop,
        found,
        stamp,
        raw: &raw,
        last_pass,
    };
    let Some(before) = before else {
        return file.whole(None, false);
    };
    let shrunk = raw.len() < before.to;
    if raw.len() <= before.to {
        // As it was, or cut off: what is known stays.
        if file.is_kept(&before.reader)? {
            let known = file.known(&before.reader, before.place, &before.note);
            let taken = file.taken(Outcome::Unchanged, &before.note);
            return Ok(Done::Taken(taken, Some(known)));
        }
        return file.whole(Some(&before), shrunk);
    }
    if file.has_grown(&before)? {
        return file.go_on(&before);
    }
    file.whole(Some(&before), false)
}

fn reading_before(shop: &Shop<'_>, found: &Found, known: &Known) -> Result<Option<Before>> {
    let Some(store) = shop.find(&known.session)? else {
        return Ok(None);
    };
    let reader = store.read_session(&known.session)?;
    let at_place = known.place.and_then(|place| {
        let record = source_at(&reader, &found.path, place)?;
        Some((record.to, place, note_of(record.note.as_ref())))
    });
    let read = match at_place {
        None => reading_of(&reader, found)?,
        read => read,
    };
    Ok(read.map(|(to, place, note)| Before {
        reader,
        to,
        place,
        note,
    }))
}

/// Returns how far a session holds a file, where that is said, and what was noted.
fn reading_of(reader: &SessionReader, found: &Found) -> Result<Option<(u64, Place, ReadingNote)>> {
    let kept = held(reader, &found.path)?;
    Ok(kept.map(|kept| (kept.bytes, kept.place, note_of(kept.note.as_ref()))))
}

fn note_of(note: Option<&Json>) -> ReadingNote {
    note.and_then(|note| note.parse().ok()).unwrap_or_default()
}

/// One file on its way in.
struct File<'f> {
    shop: &'f Shop<'f>,
    found: &'f Found,
    stamp: Stamp,
    raw: &'f Source,
    last_pass: bool,
}

impl File<'_> {
    /// Returns whether the file and what a session holds of it begin alike, as far as both go.
    fn is_kept(&self, reader: &SessionReader) -> Result<bool> {
        let Some(kept) = held(reader, &self.found.path)? else {
            return Ok(false);
        };
        let read = |buffer: &mut [u8], at: u64| {
            self.raw.read_at(buffer, at).map_err(std::io::Error::other)
        };
        Ok(reader.source_begins_as(&kept, read)?)
    }

    /// Returns whether the file begins as it was, as far as its ends tell, and the session
    /// ends where it was read to.
    fn has_grown(&self, before: &Before) -> Result<bool> {
        let ends = self.ends(before.to)?;
        Ok(ends == (before.note.head.clone(), before.note.tail.clone())
            && is_last(&before.reader, before.place)?)
    }

    /// Hashes the first and the last of so many bytes.
    fn ends(&self, len: u64) -> Result<(String, String)> {
        let hash = |bytes: Vec<u8>| blake3::hash(&bytes).to_hex()[..16].to_owned();
        let head = self.raw.read_range(0..len.min(ENDS))?;
        let tail = self.raw.read_range(len.saturating_sub(ENDS)..len)?;
        Ok((hash(head), hash(tail)))
    }

    /// Reads what was appended.
    fn go_on(&self, before: &Before) -> Result<Done> {
        let Some(state) = &before.note.state else {
            return self.whole(Some(before), false);
        };
        let goes_on = self.raw.can_go_on(before.note.read_to);
        if packed::is_packed(&self.found.path) || !goes_on {
            return self.whole(Some(before), false);
        }
        let mode = Mode::GoOn(before.reader.id().clone());
        let resume = Resume {
            read_to: before.note.read_to,
            state: state.clone(),
        };
        match self.read(self.raw, mode, Some(&resume))? {
            Read::Told(told, woven) => {
                let mut note = before.note.clone();
                note.add(&told);
                self.finish(told, *woven, Some(before), note, true)
            }
            Read::Nothing(told) => Ok(self.nothing(told)),
            Read::Stopped(Stop::StartOver) | Read::Join(_) => self.whole(Some(before), false),
            Read::Stopped(stop) => Ok(self.stopped(stop)),
        }
    }

    /// Reads all of it.
    fn whole(&self, before: Option<&Before>, shrunk: bool) -> Result<Done> {
        let unpacked = self.unpack()?;
        let (content, damage) = match &unpacked {
            Some((content, damage)) => (content, damage.clone()),
            None => (self.raw, None),
        };
        let mode = Mode::Whole {
            known: before.map(|before| before.reader.id().clone()),
            shrunk,
            joined: false,
        };
        match self.read(content, mode, None)? {
            Read::Told(mut told, woven) => {
                if let Some(reason) = damage {
                    told.damage.add(DamagedLine {
                        line: told.lines + 1,
                        byte: content.len(),
                        bytes: 0,
                        reason,
                    });
                }
                let mut note = ReadingNote::default();
                note.add(&told);
                self.finish(told, *woven, before, note, false)
            }
            Read::Nothing(told) => Ok(self.nothing(told)),
            Read::Join(id) => self.join(&id, content, before),
            Read::Stopped(Stop::StartOver) => {
                let what = "the reader would not begin at the beginning";
                Err(Error::invalid(what, &self.found.path))
            }
            Read::Stopped(stop) => Ok(self.stopped(stop)),
        }
    }

    /// Reads all files of a session as one, this one among them.
    fn join(&self, id: &SessionId, content: &Source, before: Option<&Before>) -> Result<Done> {
        let probed = joined::probe(self.found.format, content)?;
        let Some(store) = self.shop.find(id)? else {
            return Ok(Done::Later);
        };
        let reader = store.read_session(id)?;
        let file = joined::File {
            path: &self.found.path,
            content,
            first_at: probed.first_at,
        };
        let parts = joined::parts(&reader, &file)?;
        let mut scratch = self.shop.scratch()?;
        joined::write(&reader, &parts, content, &mut scratch)?;
        let all = Source::from_file(&self.found.path, scratch)?;
        let mode = Mode::Whole {
            known: Some(id.clone()),
            shrunk: true,
            joined: true,
        };
        match self.read(&all, mode, None)? {
            Read::Told(_, woven) => {
                let mut note = ReadingNote::default();
                note.add(&probed.told);
                note.first_at = probed.first_at;
                // It says nothing of the others: next time all are read as one again.
                note.state = None;
                self.finish(probed.told, *woven, before, note, false)
            }
            Read::Nothing(told) => Ok(self.nothing(told)),
            Read::Stopped(stop) => Ok(self.stopped(stop)),
            Read::Join(_) => Ok(Done::Later),
        }
    }

    fn unpack(&self) -> Result<Option<(Source, Option<String>)>> {
        if !packed::is_packed(&self.found.path) {
            return Ok(None);
        }
        let mut file = self.shop.scratch()?;
        let unpacked = packed::unpack(&self.found.path, &mut file)?;
        let content = Source::from_file(&self.found.path, file)?;
        Ok(Some((content, unpacked.damage)))
    }

    /// Returns when the file was last written to.
    fn modified(&self) -> Timestamp {
        let millis = i64::try_from(self.stamp.modified_ns / 1_000_000).ok();
        let modified = millis.and_then(Timestamp::from_millis);
        modified.unwrap_or_else(|| std::time::SystemTime::now().into())
    }

    fn read<'r>(
        &'r self,
        content: &'r Source,
        mode: Mode,
        resume: Option<&Resume>,
    ) -> Result<Read<'r>> {
        let format = self.found.format;
        let (last_pass, modified) = (self.last_pass, self.modified());
        let mut weave = Weave::new(self.shop, format, content, mode, last_pass, modified);
        match format.read(content, resume, &mut weave) {
            Ok(told) => {
                // Half a line may be all there is yet; whose it is, nobody can tell.
                if told.session.is_empty() {
                    return Ok(Read::Nothing(told));
                }
                let woven = match weave.finish(&told.session) {
                    Ok(woven) => woven,
                    Err(error) => return weave.stop.map(Read::Stopped).ok_or(error),
                };
                Ok(Read::Told(told, Box::new(woven)))
            }
            Err(ReadError::StartOver) => Ok(Read::Stopped(Stop::StartOver)),
            Err(ReadError::Failed(error)) => match (weave.stop, weave.main()) {
                (Some(Stop::Join), Some(id)) => Ok(Read::Join(id.clone())),
                (stop, _) => stop.map(Read::Stopped).ok_or(error),
            },
        }
    }

    /// Says that a file tells nothing that could be kept, and what is wrong with it.
    fn nothing(&self, told: Told) -> Done {
        let mut note = ReadingNote::default();
        note.add(&told);
        let mut taken = self.taken(Outcome::Unchanged, &note);
        taken.lines = told.damage.first;
        taken.unfinished = told.unfinished;
        Done::Taken(taken, None)
    }

    fn stopped(&self, stop: Stop) -> Done {
        match stop {
            Stop::Deleted => Done::Taken(Taken::nothing(Outcome::Deleted), None),
            Stop::Later | Stop::StartOver | Stop::Join => Done::Later,
        }
    }

    /// Says in the sessions what they were taken in from, and closes them. With `grown`, what
    /// the session holds of the file is known to be how it begins.
    fn finish(
        &self,
        told: Told,
        woven: Woven<'_>,
        before: Option<&Before>,
        mut note: ReadingNote,
        grown: bool,
    ) -> Result<Done> {
        let Woven {
            mut main,
            others,
            name,
            claim: _claim,
        } = woven;
        // It may have come into another session than before.
        let known = match before {
            Some(before) if before.reader.id() == &main.id => {
                Some((before.to, before.place, before.note.clone()))
            }
            _ => self.earlier(&main)?,
        };
        let (from, kept_all) = match &known {
            Some((to, ..)) if grown || self.is_kept_by(&main)? => (*to, self.raw.len() <= *to),
            _ => (0, false),
        };
        for mut other in others {
            self.finish_other(&mut other, &main)?;
            main.messages += other.messages;
            main.changed |= other.changed;
        }
        note.name = name;
        note.first_at = note.first_at.or(main.first_at);
        let known_about = match &known {
            Some((.., note)) => note.about(),
            None => self.known_already(&mut main)?,
        };
        note.learn(&known_about);
        note.learn(&main.about);
        (note.head, note.tail) = self.ends(self.raw.len())?;
        let outcome = match (main.created, main.changed || !kept_all) {
            (true, _) => Outcome::New,
            (false, true) => Outcome::Updated,
            (false, false) => Outcome::Unchanged,
        };
        let news = main.news(&known_about);
        let mut place = known.as_ref().map(|(_, place, _)| *place);
        if !self.shop.is_dry() && (outcome != Outcome::Unchanged || news.is_some()) {
            main.open(self.shop, self.found.format.name(), None)?;
            if let State::Writing(Some(intake), _) = &mut main.state {
                if let Some(news) = &news {
                    intake.note(news)?;
                }
                let mut source = SourceRecord::new(self.found.format.name(), &self.found.path)
                    .from(from)
                    .note(Json::from_value(&note)?);
                let last_at = main.last_at.max(main.about.ended);
                source = source.at(last_at.unwrap_or(self.modified()));
                let mut at = from;
                while at < self.raw.len() {
                    let end = self.raw.len().min(at + KEPT_AT_ONCE);
                    let bytes = self.raw.read_range(at..end)?;
                    if bytes.is_empty() {
                        // Cut off while it was read: next time it is looked at anew.
                        break;
                    }
                    intake.keep(&mut source, &bytes)?;
                    at += bytes.len() as u64;
                }
                place = Some(intake.source(&source)?);
            }
        }
        main.park()?;
        let mut known = Known::new(self.stamp, main.id.clone());
        known.place = place;
        known.damaged = note.damaged;
        known.unknown = note.unknown.clone();
        let mut taken = self.taken(outcome, &note);
        taken.lines = told.damage.first;
        taken.unfinished = told.unfinished;
        taken.messages = main.messages;
        Ok(Done::Taken(taken, Some(known)))
    }

    fn earlier(&self, main: &Strand) -> Result<Option<(u64, Place, ReadingNote)>> {
        match main.store().filter(|_| !main.created) {
            Some(store) => reading_of(&store.read_session(&main.id)?, self.found),
            None => Ok(None),
        }
    }

    /// Returns what a session knows of itself that other files told: this one changes
    /// nothing of it.
    fn known_already(&self, main: &mut Strand) -> Result<About> {
        let Some(store) = main.store().filter(|_| !main.created) else {
            return Ok(About::default());
        };
        let info = store.read_session(&main.id)?.info()?;
        main.last_at = main.last_at.max(info.updated_at);
        let told = &main.about;
        Ok(About {
            title: info.title.and(told.title.clone()),
            model: info.model.and(told.model.clone()),
            directory: info.workspace_root.and(told.directory.clone()),
            tags: told.tags.clone(),
            ..About::default()
        })
    }

    fn is_kept_by(&self, main: &Strand) -> Result<bool> {
        match main.store() {
            Some(store) => self.is_kept(&store.read_session(&main.id)?),
            None => Ok(false),
        }
    }

    /// Says in the session of a branch or a sub-agent who holds the file that tells it.
    fn finish_other(&self, other: &mut Strand, main: &Strand) -> Result<()> {
        if other.created {
            other.open(self.shop, self.found.format.name(), None)?;
        }
        if other.created
            && let State::Writing(Some(intake), _) = &mut other.state
        {
            let mut source =
                SourceRecord::new(self.found.format.name(), &self.found.path).held_by(&main.id);
            if let Some(at) = other.last_at {
                source = source.at(at);
            }
            intake.source(&source)?;
        }
        other.park()
    }

    fn known(&self, reader: &SessionReader, place: Place, note: &ReadingNote) -> Known {
        let mut known = Known::new(self.stamp, reader.id().clone());
        known.place = Some(place);
        known.damaged = note.damaged;
        known.unknown = note.unknown.clone();
        known
    }

    fn taken(&self, outcome: Outcome, note: &ReadingNote) -> Taken {
        Taken {
            damaged: note.damaged,
            unknown: note.unknown.clone(),
            bytes: self.raw.len(),
            ..Taken::nothing(outcome)
        }
    }
}

impl ReadingNote {
    fn add(&mut self, told: &Told) {
        self.read_to = told.read_to;
        self.lines = told.lines;
        self.damaged += told.damage.count;
        for (kind, count) in &told.unknown {
            *self.unknown.entry(kind.clone()).or_default() += count;
        }
        self.state.clone_from(&told.state);
    }

    fn about(&self) -> About {
        About {
            title: self.title.clone(),
            model: self.model.clone(),
            directory: self.directory.clone(),
            ..About::default()
        }
    }

    fn learn(&mut self, about: &About) {
        self.title = about.title.clone().or(self.title.take());
        self.model = about.model.clone().or(self.model.take());
        self.directory = about.directory.clone().or(self.directory.take());
    }
}

enum Read<'w> {
    Told(Told, Box<Woven<'w>>),
    /// It is not known whose it is.
    Nothing(Told),
    /// It is one of several files of this session.
    Join(SessionId),
    Stopped(Stop),
}
