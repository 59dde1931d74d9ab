//! Files that contain many sessions.
//!
//! The importer takes such a file apart: each session is written out as lines of its own, and
//! these are imported as if they were a file in a directory with the container's name.

use std::collections::BTreeMap;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tempfile::{SpooledData, SpooledTempFile, spooled_tempfile_in};

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
    /// Where its temporary file is.
    dir: PathBuf,
    is_json_lines: bool,
}

/// How much of a session is held in memory.
const MAX_IN_MEMORY: usize = 8 << 20;

impl Spool {
    /// Creates an empty one. Its temporary file is in `dir`.
    pub(crate) fn new(dir: PathBuf) -> Self {
        Self {
            file: spooled_tempfile_in(MAX_IN_MEMORY, &dir),
            dir,
            is_json_lines: false,
        }
    }

    /// Promises that each line that is written is a JSON object: nobody checks that again.
    pub(crate) fn promise_json_lines(&mut self) {
        self.is_json_lines = true;
    }

    /// Drops what was written.
    ///
    /// # Errors
    ///
    /// Fails if its temporary file cannot be written, and names the directory of that.
    pub(crate) fn restart(&mut self) -> Result<()> {
        let start = self.file.seek(SeekFrom::Start(0));
        let restarted = start.and_then(|_| self.file.set_len(0));
        restarted.map_err(|error| self.failed(error))
    }

    /// Adds bytes.
    ///
    /// # Errors
    ///
    /// The same.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.file.write_all(bytes);
        written.map_err(|error| self.failed(error))
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

    fn failed(&self, error: io::Error) -> Error {
        Error::io("cannot write a temporary file in", &self.dir, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_file_that_cannot_be_written_is_named_by_its_directory() {
        let dir = tempfile::tempdir().unwrap();
        let gone = dir.path().join("gone");
        let mut spool = Spool::new(gone.clone());
        spool.add(b"what fits in memory needs no file").unwrap();
        let error = spool.add(&vec![b'x'; MAX_IN_MEMORY + 1]).unwrap_err();
        assert_eq!(error.path(), Some(gone.as_path()));
        assert!(error.to_string().contains("temporary file"), "{error}");
    }
}
