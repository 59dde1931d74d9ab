//! Sessions that are handed over: written as new sessions of another agent, which continues them.
//!
//! What that agent adds comes back by import, into a session that continues the original. That
//! session is created at the hand-over. It has no events of its own; the first record in it keeps
//! the agent's file and notes which events of the file are copies, so that every later import
//! skips them.
//!
//! The order matters, since an importer may run at any time, and the process may die at any time.
//! If the file were first, an import would take it for a session of its own, and all that it
//! copies would count twice. So the session is created before the file has its name. A process
//! that dies in between leaves an empty fork, to which nothing is ever added. A session in a
//! database can be created from the file that its agent imports, if the agent keeps its name and
//! its keys (opencode). Otherwise (goose) the agent must write to the database first, and no
//! process imports from before until after that ([`PausedImports`]).

use std::path::Path;

use backtrail::plumbing::{ImportWriterOptions, SourceRecord, Staging};
use backtrail::{Json, SessionId, SessionOptions, SessionReader, Store};

use super::cache::{Cache, CachedFile};
use super::copies::{CopiedEvents, noted_copies};
use super::file_import::keep_bytes;
use super::file_note::FileNote;
use super::ids::session_id;
use super::session_import::{short, valid_name};
use crate::container::{FileStamp, Spool};
use crate::error::{Error, Result};
use crate::event::{Details, Event, EventSink, ReadReport, Thread, ThreadId};
use crate::format::Format;
use crate::source::Source;

/// A session that was written as a new session of another agent.
pub struct HandOver<'h> {
    /// The agent that continues it.
    pub agent: &'static dyn Format,
    /// The agent's name for the new session, which the file must give it.
    pub name: &'h str,
    /// The agent's file, as an import finds it. For a session in a database, see
    /// [`contained_file`](crate::contained_file).
    pub file: &'h Path,
    /// What will be in the file, if it does not have its name yet; for a session in a database,
    /// another file with the same events.
    pub content: Option<&'h Source>,
    /// The session that is handed over.
    pub parent: &'h SessionId,
    /// Its last record that is.
    pub seq: u64,
    /// The title of the new session.
    pub title: Option<&'h str>,
    /// The directory that it continues in; by default the one that the file names.
    pub directory: Option<&'h Path>,
}

/// Hands a session over: creates the session here that continues `parent`, and to which imports
/// add what the agent adds to its file.
///
/// Call it before the file gets its name, with `content`. For a session in a database whose name
/// is not known before, use [`PausedImports`]. It waits while another process imports.
///
/// # Errors
///
/// Fails if the file is not a complete session of that name, with `Conflict` if that session
/// exists, with `NotFound` if there is no such record, and if the store does. Then nothing is in
/// the store, unless the store failed: an empty fork may be left.
pub fn hand_over(store: &Store, new: &HandOver<'_>) -> Result<SessionId> {
    PausedImports::begin(store)?.hand_over(new)
}

/// Returns whether a session began as a copy of another agent's. Its agent's file then has more
/// than the session.
///
/// # Errors
///
/// Fails if the session cannot be read.
pub fn is_handed_over(reader: &SessionReader) -> Result<bool> {
    Ok(noted_copies(reader)?.is_some())
}

/// Keeps every process from importing until it is dropped: also this one, whose imports would
/// wait for ever.
#[derive(Debug)]
pub struct PausedImports {
    store: Store,
    staging: Staging,
}

impl PausedImports {
    /// Waits until no other process imports, and pauses all imports.
    ///
    /// # Errors
    ///
    /// Fails if the store does.
    pub fn begin(store: &Store) -> Result<Self> {
        Ok(Self {
            store: store.clone(),
            staging: store.stage()?,
        })
    }

    /// Hands a session over, as [`hand_over`] does.
    ///
    /// # Errors
    ///
    /// The same.
    pub fn hand_over(&self, new: &HandOver<'_>) -> Result<SessionId> {
        let (contained, stamp);
        let content = match new.content {
            Some(content) => {
                stamp = FileStamp::default();
                content
            }
            None => {
                (contained, stamp) = self.read(new)?;
                &contained
            }
        };
        let copy = Copy::read(new, content)?;
        let id = session_id(new.agent.name(), new.name);
        let mut writer = self.store.begin_import(&id, copy.options(new, &id))?;
        let mut source = SourceRecord::new(new.agent.name(), new.file)
            .note(Json::from_value(&copy.note(new.name, content)?)?);
        keep_bytes(&mut writer, &mut source, content)?;
        if source.to < content.len() {
            return Err(Error::invalid(
                "the file was cut off while it was read",
                new.file,
            ));
        }
        let place = writer.source(&source)?;
        writer.close()?;
        // A cache that is missing or cannot be saved is rebuilt next time.
        if let Some(mut cache) = Cache::load_saved(&self.store) {
            let mut cached = CachedFile::new(stamp, Some(id.clone()));
            cached.place = Some(place);
            cache.set(new.file, cached);
            cache.save(&self.store).ok();
        }
        Ok(id)
    }

    /// Reads a file that is there, or a session in a container.
    fn read(&self, new: &HandOver<'_>) -> Result<(Source, FileStamp)> {
        let container = match new.file.parent() {
            Some(container) if container.is_file() => new.agent.container(container)?,
            _ => None,
        };
        let Some(container) = container else {
            // Its stamp is not known, so that it is compared once.
            return Ok((Source::open(new.file)?, FileStamp::default()));
        };
        let mut sessions = container.contents()?.sessions.into_iter();
        let session = sessions.find(|session| session.path == new.file);
        let missing = || Error::invalid("the database does not have the session", new.file);
        let session = session.ok_or_else(missing)?;
        let mut spool = Spool::new(self.staging.scratch_dir().to_owned());
        match container.write(&session, &mut spool)? {
            true => Ok((spool.into_source(new.file)?, session.stamp)),
            false => Err(missing()),
        }
    }
}

/// The copy of a session in the other agent's file.
struct Copy {
    events: CopiedEvents,
    details: Details,
    report: ReadReport,
}

impl Copy {
    /// Reads the file as an import will.
    fn read(new: &HandOver<'_>, content: &Source) -> Result<Self> {
        let opened = new.agent.open(content)?;
        let invalid = |what: String| Err(Error::invalid(what, new.file));
        match opened.session() {
            Some(name) if name == new.name => {}
            Some(name) => return invalid(format!("the file is of session {name}")),
            None => return invalid("the file names no session".to_owned()),
        }
        let mut reader = CopyReader::default();
        let report = opened.read(&mut reader)?;
        if let Some(line) = report.damage.first.first() {
            return invalid(format!("line {} is damaged: {}", line.line, line.reason));
        }
        if reader.events.is_empty() || report.unfinished {
            return invalid("the file has no complete conversation".to_owned());
        }
        Ok(Self {
            events: reader.events,
            details: reader.details,
            report,
        })
    }

    fn options(&self, new: &HandOver<'_>, id: &SessionId) -> ImportWriterOptions {
        let mut options = SessionOptions::new();
        if let Some(title) = new.title.or(self.details.title.as_deref()).and_then(short) {
            options = options.title(title);
        }
        if let Some(model) = self.details.model.as_deref().and_then(valid_name) {
            options = options.model(model);
        }
        if let Some(directory) = new.directory.or(self.details.directory.as_deref()) {
            options = options.workspace_root(directory);
        }
        let options = ImportWriterOptions::new(new.agent.name(), options);
        let options = options.continues(new.parent, new.seq, None);
        match new.name == id.as_str() {
            true => options,
            false => options.original_id(short(new.name).unwrap_or_default()),
        }
    }

    fn note(&self, name: &str, content: &Source) -> Result<FileNote> {
        let mut note = FileNote::new(name, &self.report);
        note.update_details(&self.details);
        note.note_ends(content)?;
        note.handed_over = Some(self.events.clone());
        Ok(note)
    }
}

/// Receives the events of the copy.
#[derive(Default)]
struct CopyReader {
    events: CopiedEvents,
    details: Details,
    is_other: bool,
}

impl EventSink for CopyReader {
    fn thread(&mut self, thread: &Thread) -> Result<()> {
        self.is_other = thread.id != ThreadId::Main;
        Ok(())
    }

    fn details(&mut self, details: Details) -> Result<()> {
        if !self.is_other {
            self.details.update(details);
        }
        Ok(())
    }

    fn event(&mut self, event: Event) -> Result<()> {
        if !self.is_other {
            self.events.add(&event);
        }
        Ok(())
    }

    fn rewind_to(&mut self, _key: Option<&str>) -> Result<()> {
        Ok(())
    }
}
