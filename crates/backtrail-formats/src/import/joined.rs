//! Several files of one session, read as one.
//!
//! Each may tell a part of it: the oldest comes first. One that another begins with adds
//! nothing.

use std::fs::File as Scratch;
use std::io::{self, Write};
use std::path::Path;

use backtrail::{KeptSource, SessionReader, Timestamp};

use super::strand::earliest;
use super::take::ReadingNote;
use crate::error::{Error, Result};
use crate::format::{Format, ReadError};
use crate::source::Source;
use crate::told::{About, Item, Sink, Thread, Told, Which};

/// What a file tells by itself.
pub(super) struct Probed {
    pub(super) told: Told,
    pub(super) first_at: Option<Timestamp>,
}

/// Reads a file for what it counts alone.
pub(super) fn probe(format: &dyn Format, content: &Source) -> Result<Probed> {
    let mut first = First {
        at: None,
        is_main: true,
    };
    let told = match format.read(content, None, &mut first) {
        Ok(told) => told,
        Err(ReadError::Failed(error)) => return Err(error),
        Err(ReadError::StartOver) => {
            let what = "the reader would not begin at the beginning";
            return Err(Error::invalid(what, content.path()));
        }
    };
    Ok(Probed {
        told,
        first_at: first.at,
    })
}

/// Notes when the first thing was said in the file's own conversation.
struct First {
    at: Option<Timestamp>,
    is_main: bool,
}

impl Sink for First {
    fn session(&mut self, _name: &str) -> Result<()> {
        Ok(())
    }

    fn thread(&mut self, thread: &Thread) -> Result<()> {
        self.is_main = thread.which == Which::Main;
        Ok(())
    }

    fn about(&mut self, _about: About) -> Result<()> {
        Ok(())
    }

    fn item(&mut self, item: Item) -> Result<()> {
        let at = match item {
            Item::Said(said) => said.at,
            Item::Used(used) => used.at,
            Item::Summarised(summarised) => summarised.at,
        };
        if self.is_main {
            self.at = earliest(self.at, at);
        }
        Ok(())
    }

    fn back_to(&mut self, _key: Option<&str>) -> Result<()> {
        Ok(())
    }
}

/// The file that is taken in now.
pub(super) struct File<'f> {
    pub(super) path: &'f Path,
    pub(super) content: &'f Source,
    pub(super) first_at: Option<Timestamp>,
}

/// A part of a session.
pub(super) enum Part {
    /// The file that is taken in now.
    This,
    /// One that the session holds.
    Held(KeptSource),
}

/// Returns the files that together tell a session, the oldest first.
pub(super) fn parts(reader: &SessionReader, file: &File<'_>) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    let mut adds = true;
    for kept in reader.sources()? {
        if kept.held_by.is_some() || kept.path == file.path {
            continue;
        }
        let read =
            |buffer: &mut [u8], at: u64| file.content.read_at(buffer, at).map_err(io::Error::other);
        if reader.source_begins_as(&kept, read)? {
            if kept.bytes < file.content.len() {
                continue;
            }
            adds = false;
        }
        let note: ReadingNote = kept
            .note
            .as_ref()
            .and_then(|note| note.parse().ok())
            .unwrap_or_default();
        parts.push((note.first_at, kept.path.clone(), Part::Held(kept)));
    }
    if adds {
        parts.push((file.first_at, file.path.to_owned(), Part::This));
    }
    parts.sort_by(|(a, a_path, _), (b, b_path, _)| (a, a_path).cmp(&(b, b_path)));
    Ok(parts.into_iter().map(|(.., part)| part).collect())
}

/// Returns whether a file is one object per line: only such files
/// can be put one behind the other.
pub(super) fn can_be_joined(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "jsonl")
}

/// Writes the parts one behind the other.
pub(super) fn write(
    reader: &SessionReader,
    parts: &[Part],
    content: &Source,
    scratch: &mut Scratch,
) -> Result<()> {
    let failed = |error| Error::io("cannot put the files together aside", content.path(), error);
    for part in parts {
        match part {
            Part::Held(kept) => {
                reader.write_source(kept, scratch)?;
            }
            Part::This => {
                let mut at = 0;
                loop {
                    let bytes = content.read_range(at..at + (1 << 20))?;
                    if bytes.is_empty() {
                        break;
                    }
                    scratch.write_all(&bytes).map_err(failed)?;
                    at += bytes.len() as u64;
                }
            }
        }
        scratch.write_all(b"\n").map_err(failed)?;
    }
    Ok(())
}
