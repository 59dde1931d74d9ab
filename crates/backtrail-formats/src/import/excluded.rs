//! Tells which files the user excludes by the directory that their session works in.

use std::path::{Path, PathBuf};

use backtrail::SessionReader;

use super::destination::Destination;
use super::found::FoundFile;
use crate::error::{Error, Result};
use crate::event::{Details, Event, EventSink, Thread, ThreadId};
use crate::exclude::Exclude;

/// Returns whether the session of a file works in a directory that the user excludes. Without a
/// pattern of a path, no file is opened.
pub(super) fn is_excluded(
    exclude: &Exclude,
    destination: &Destination<'_>,
    found: &FoundFile,
    session: Option<&SessionReader>,
) -> Result<bool> {
    if !exclude.has_paths() {
        return Ok(false);
    }
    let directory = match session {
        Some(session) => session.info()?.workspace_root,
        // The import tells why it cannot be read.
        None => directory_of(destination, found).unwrap_or_default(),
    };
    Ok(directory.is_some_and(|directory| exclude.has_path(&directory)))
}

/// Returns the directory that a file's own conversation works in, if the file names it.
pub(super) fn directory_of(
    destination: &Destination<'_>,
    found: &FoundFile,
) -> Result<Option<PathBuf>> {
    let Some(source) = found.open(destination)? else {
        return Ok(None);
    };
    let mut finder = DirectoryFinder {
        path: &found.path,
        is_main: true,
        directory: None,
    };
    match found.format.open(&source)?.read(&mut finder) {
        Err(error) if finder.directory.is_none() => Err(error),
        _ => Ok(finder.directory),
    }
}

/// Reads a file until it names its directory.
struct DirectoryFinder<'f> {
    path: &'f Path,
    is_main: bool,
    directory: Option<PathBuf>,
}

impl EventSink for DirectoryFinder<'_> {
    fn thread(&mut self, thread: &Thread) -> Result<()> {
        self.is_main = thread.id == ThreadId::Main;
        Ok(())
    }

    fn details(&mut self, details: Details) -> Result<()> {
        if self.is_main && details.directory.is_some() {
            self.directory = details.directory;
            // The format stops reading.
            return Err(Error::invalid("the directory is known", self.path));
        }
        Ok(())
    }

    fn event(&mut self, _event: Event) -> Result<()> {
        Ok(())
    }

    fn rewind_to(&mut self, _key: Option<&str>) -> Result<()> {
        Ok(())
    }
}
