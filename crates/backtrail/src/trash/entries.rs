//! What is in the trash.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::Named;
use super::deleted::Deleted;
use super::kin::Family;
use crate::error::{Error, Result, quoted};
use crate::ids::SessionId;
use crate::log::TRAILS;
use crate::session::SessionReader;
use crate::store::Store;
use crate::time::Timestamp;

/// What an entry of the trash is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Trashed {
    /// A session.
    Session,
    /// Older trails of a session, which a keep count let go of.
    Trails,
}

/// What an entry of the trash is called: `ID`, or `ID.trails`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct TrashName {
    /// The session.
    pub id: SessionId,
    /// The whole of it, or older trails of it.
    pub what: Trashed,
}

impl fmt::Display for TrashName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.what {
            Trashed::Session => f.pad(self.id.as_str()),
            Trashed::Trails => f.pad(&format!("{}{TRAILS}", self.id)),
        }
    }
}

impl FromStr for TrashName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match Named::of(text.as_ref()) {
            Named::Entry(name) => Ok(name),
            _ => Err(Error::invalid(format!(
                "{} is nothing that is kept in the trash",
                quoted(text)
            ))),
        }
    }
}

/// Something in the trash.
#[derive(Debug)]
#[non_exhaustive]
pub struct TrashEntry {
    /// What it is called.
    pub name: TrashName,
    /// When it was deleted, where that can be read.
    pub deleted_at: Option<Timestamp>,
    /// The program that deleted it, where it said so.
    pub deleted_by: Option<String>,
    /// How many bytes its files have.
    pub bytes: u64,
    /// The sessions that go on reading it here.
    pub continued_by: Vec<SessionId>,
    reader: SessionReader,
}

impl TrashEntry {
    /// Returns the session to read from.
    pub fn reader(&self) -> &SessionReader {
        &self.reader
    }
}

/// What is in the trash.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct TrashContents {
    /// What can be restored, in the order of the names.
    pub entries: Vec<TrashEntry>,
    /// What is left of an emptying or a purge that was interrupted.
    pub leftovers: Vec<PathBuf>,
    /// What is not ours, and is left alone.
    pub unknown: Vec<PathBuf>,
}

impl Store {
    /// Returns what is in the trash.
    pub fn trash(&self) -> Result<TrashContents> {
        let family = Family::read(self)?;
        let mut contents = TrashContents::default();
        for (path, named) in self.names_in_trash()? {
            match named {
                Named::Entry(name) if self.is_dir(&path)? => {
                    contents.entries.push(self.entry(name, &path, &family)?);
                }
                Named::Emptying(_) | Named::Purging(_) => contents.leftovers.push(path),
                Named::Lock | Named::Purged(_) => {}
                Named::Entry(_) | Named::Unknown => contents.unknown.push(path),
            }
        }
        Ok(contents)
    }

    fn entry(&self, name: TrashName, dir: &Path, family: &Family) -> Result<TrashEntry> {
        let deleted = Deleted::read(self.storage(), dir);
        let files = self.files(&name.id);
        let files = match name.what {
            Trashed::Session => files.deleted(),
            // The session itself may be deleted, too.
            Trashed::Trails if files.trails()?.is_empty() => files.deleted(),
            Trashed::Trails => files,
        };
        Ok(TrashEntry {
            bytes: self.bytes_in(dir)?,
            continued_by: family.reading(self, &name)?,
            deleted_at: deleted.as_ref().map(|deleted| deleted.at),
            deleted_by: deleted.and_then(|deleted| deleted.program),
            reader: SessionReader::new(self, files),
            name,
        })
    }

    /// Returns how many bytes the files in a directory have.
    fn bytes_in(&self, dir: &Path) -> Result<u64> {
        let names = self.storage().list(dir);
        let names = names.map_err(|error| Error::io("cannot look into the trash", dir, error))?;
        let len = |path: PathBuf| self.storage().open_read(&path).and_then(|file| file.len());
        // What cannot be opened is nothing of ours.
        let lens = names.iter().map(|name| len(dir.join(name)).unwrap_or(0));
        Ok(lens.sum())
    }

    /// Opens a session in the trash to read it.
    pub fn read_deleted(&self, id: &SessionId) -> Result<SessionReader> {
        SessionReader::open(self, self.files(id).deleted())
    }
}

impl Family {
    /// Returns the sessions that go on reading an entry of the trash.
    pub(super) fn reading(&self, store: &Store, name: &TrashName) -> Result<Vec<SessionId>> {
        let mut reading = Vec::new();
        for kin in self.continuing(&name.id) {
            let reads = match name.what {
                Trashed::Session => true,
                Trashed::Trails => {
                    let trails = store.files(&name.id).trails_in_trash();
                    let reader = SessionReader::new(store, kin.files.clone());
                    reader.log.reads_in(&trails)?
                }
            };
            if reads {
                reading.push(kin.id.clone());
            }
        }
        Ok(reading)
    }
}
