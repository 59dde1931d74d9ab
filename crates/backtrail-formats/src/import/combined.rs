//! Several files of one session, read as one.
//!
//! Each may contain a part of it: the oldest comes first. A file that another one starts with
//! adds nothing.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use backtrail::plumbing::KeptSource;
use backtrail::{SessionReader, Timestamp};

use super::file_note::FileNote;
use super::session_import::earliest;
use crate::error::{Error, Result};
use crate::event::{Details, Event, EventSink, Thread, ThreadId};
use crate::source::Source;

/// Finds the time of the first event in a file's own conversation.
pub(super) struct FirstTime {
    pub(super) at: Option<Timestamp>,
    is_main: bool,
}

impl FirstTime {
    pub(super) fn new() -> Self {
        Self {
            at: None,
            is_main: true,
        }
    }
}

impl EventSink for FirstTime {
    fn thread(&mut self, thread: &Thread) -> Result<()> {
        self.is_main = thread.id == ThreadId::Main;
        Ok(())
    }

    fn details(&mut self, _details: Details) -> Result<()> {
        Ok(())
    }

    fn event(&mut self, event: Event) -> Result<()> {
        if self.is_main {
            self.at = earliest(self.at, event.at());
        }
        Ok(())
    }

    fn rewind_to(&mut self, _key: Option<&str>) -> Result<()> {
        Ok(())
    }
}

/// The file that is being imported.
pub(super) struct NewFile<'f> {
    pub(super) path: &'f Path,
    pub(super) content: &'f Source,
    pub(super) first_at: Option<Timestamp>,
}

/// Writes all files of a session one after the other, the oldest first.
pub(super) fn combine(reader: &SessionReader, new: &NewFile<'_>, into: &mut File) -> Result<()> {
    for part in parts(reader, new)? {
        match part {
            Some(kept) => drop(reader.write_source(&kept, into)?),
            None => copy(new.content, into)?,
        }
        into.write_all(b"\n")
            .map_err(|error| failed(new.content, error))?;
    }
    Ok(())
}

/// Returns the files of a session; `None` for the new one.
fn parts(reader: &SessionReader, new: &NewFile<'_>) -> Result<Vec<Option<KeptSource>>> {
    let mut parts = Vec::new();
    let mut adds_something = true;
    for kept in reader.sources()? {
        if kept.held_by.is_some() || kept.path == new.path {
            continue;
        }
        let read =
            |buffer: &mut [u8], at: u64| new.content.read_at(buffer, at).map_err(io::Error::other);
        if reader.source_begins_as(&kept, read)? {
            if kept.bytes < new.content.len() {
                continue;
            }
            adds_something = false;
        }
        let note = FileNote::parse(kept.note.as_ref());
        parts.push((note.first_at, kept.path.clone(), Some(kept)));
    }
    if adds_something {
        parts.push((new.first_at, new.path.to_owned(), None));
    }
    parts.sort_by(|(a, a_path, _), (b, b_path, _)| (a, a_path).cmp(&(b, b_path)));
    Ok(parts.into_iter().map(|(.., part)| part).collect())
}

fn copy(new: &Source, into: &mut File) -> Result<()> {
    let mut at = 0;
    while at < new.len() {
        let bytes = new.read_range(at..at + (1 << 20))?;
        if bytes.is_empty() {
            break;
        }
        into.write_all(&bytes).map_err(|error| failed(new, error))?;
        at += bytes.len() as u64;
    }
    Ok(())
}

fn failed(new: &Source, error: io::Error) -> Error {
    Error::io("cannot combine the files of a session", new.path(), error)
}
