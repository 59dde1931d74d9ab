//! Files that contain many sessions.
//!
//! The importer takes such a file apart: each session is written out as lines of its own, and
//! these are imported as if they were a file in a directory with the container's name.

use std::collections::BTreeMap;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tempfile::{SpooledData, SpooledTempFile, spooled_tempfile, spooled_tempfile_in};

use crate::error::{Error, Result};
use crate::source::Source;

/// A file that contains many sessions, or a session that is spread over many files.
pub trait Container: Send + Sync {
    /// Lists the sessions.
    ///
    /// # Errors
    ///
    /// Fails if the container cannot be read. What is damaged in it is counted.
    fn contents(&self) -> Result<Contents>;

    /// Writes out a session. Returns whether it is still there.
    ///
    /// # Errors
    ///
    /// Fails if the container cannot be read, or `out` cannot be written.
    fn write(&self, session: &ContainedSession, out: &mut Spool) -> Result<bool>;
}

/// What a container contains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// The sessions.
    pub sessions: Vec<ContainedSession>,
    /// What belongs to no session: how much there is, by what it is.
    pub others: BTreeMap<String, u64>,
    /// How many damaged places there are.
    pub damaged: u64,
}

/// A session in a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainedSession {
    /// The path under which it is imported: no other file's.
    pub path: PathBuf,
    /// Shows whether it changed.
    pub stamp: FileStamp,
    /// Whether a sub-agent's, which is imported after all others.
    pub is_sub_agent: bool,
}

/// Shows whether a file changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FileStamp {
    /// How long it is; for a contained session, about.
    pub len: u64,
    /// When it was last modified.
    pub modified_ns: i128,
    /// Its inode; for a contained session, a hash of its content.
    pub inode: u64,
}

/// Receives the lines of a session: in memory, or in a temporary file if they are long.
#[derive(Debug)]
pub struct Spool {
    file: SpooledTempFile,
    is_json_lines: bool,
}

/// How much of a session is held in memory.
const MAX_IN_MEMORY: usize = 8 << 20;

impl Spool {
    /// Creates an empty one. Its temporary file is in `dir`, or else where those of all programs
    /// are.
    pub(crate) fn new(dir: Option<&Path>) -> Self {
        let file = match dir {
            Some(dir) => spooled_tempfile_in(MAX_IN_MEMORY, dir),
            None => spooled_tempfile(MAX_IN_MEMORY),
        };
        Self {
            file,
            is_json_lines: false,
        }
    }

    /// Promises that each line that is written is a JSON object: nobody checks that again.
    pub(crate) fn promise_json_lines(&mut self) {
        self.is_json_lines = true;
    }

    /// Drops what was written.
    pub(crate) fn restart(&mut self) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        self.file.set_len(0)
    }

    /// Returns what was written, as the file of this name.
    pub(crate) fn into_source(self, path: &Path) -> Result<Source> {
        let source = match self.file.into_inner() {
            SpooledData::InMemory(bytes) => Source::from_bytes(path, bytes.into_inner()),
            SpooledData::OnDisk(file) => Source::from_file(path, file)?,
        };
        Ok(match self.is_json_lines {
            true => source.with_checked_lines(),
            false => source,
        })
    }

    /// Makes an error of one that occurred in writing to it.
    pub(crate) fn failed(error: io::Error) -> Error {
        let what = "cannot write a temporary file";
        Error::io(what, &std::env::temp_dir(), error)
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
