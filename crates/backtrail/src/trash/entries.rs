//! The entries of the trash.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::Named;
use super::deleted::Deleted;
use super::family::Family;
use crate::error::{Error, Result, quoted};
use crate::hex::lossy_paths;
use crate::ids::SessionId;
use crate::log::TRAILS;
use crate::session::SessionReader;
use crate::store::Store;
use crate::time::Timestamp;

/// The kind of a trash entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "snake_case")]
pub enum TrashKind {
    /// A session.
    Session,
    /// Older trails of a session that has too many.
    Trails,
}

/// The name of a trash entry: `ID`, or `ID.trails`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct TrashName {
    /// The session.
    pub id: SessionId,
    /// The whole session, or older trails of it.
    pub kind: TrashKind,
}

impl fmt::Display for TrashName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            TrashKind::Session => f.pad(self.id.as_str()),
            TrashKind::Trails => f.pad(&format!("{}{TRAILS}", self.id)),
        }
    }
}

impl Serialize for TrashName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for TrashName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match Named::of(text.as_ref()) {
            Named::Entry(name) => Ok(name),
            _ => Err(Error::invalid(format!(
                "{} is not the name of a trash entry",
                quoted(text)
            ))),
        }
    }
}

/// An entry of the trash.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct TrashEntry {
    /// Its name.
    pub name: TrashName,
    /// When it was deleted, if known.
    pub deleted_at: Option<Timestamp>,
    /// The program that deleted it, if known.
    pub deleted_by: Option<String>,
    /// How many bytes its files have.
    pub bytes: u64,
    /// The sessions that read it here.
    pub continued_by: Vec<SessionId>,
    #[serde(skip)]
    reader: SessionReader,
}

impl TrashEntry {
    /// Returns the session to read.
    pub fn reader(&self) -> &SessionReader {
        &self.reader
    }
}

/// The content of the trash.
#[derive(Debug, Default, Serialize)]
#[non_exhaustive]
pub struct TrashContents {
    /// What can be restored, sorted by name.
    pub entries: Vec<TrashEntry>,
    /// Leftovers of an interrupted emptying or purge.
    #[serde(serialize_with = "lossy_paths")]
    pub leftovers: Vec<PathBuf>,
    /// Foreign files, which are left alone.
    #[serde(serialize_with = "lossy_paths")]
    pub unknown: Vec<PathBuf>,
}

impl Store {
    /// Returns the content of the trash.
    ///
    /// # Errors
    ///
    /// Fails where the trash cannot be read.
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
        let files = match name.kind {
            TrashKind::Session => files.deleted(),
            // The session itself may be deleted, too.
            TrashKind::Trails if files.trails()?.is_empty() => files.deleted(),
            TrashKind::Trails => files,
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
        let names = names.map_err(|error| Error::io("cannot read the trash", dir, error))?;
        let len = |path: PathBuf| self.storage().open_read(&path).and_then(|file| file.len());
        // What cannot be opened is a foreign file.
        let lens = names.iter().map(|name| len(dir.join(name)).unwrap_or(0));
        Ok(lens.sum())
    }

    /// Opens a session in the trash to read it.
    ///
    /// # Errors
    ///
    /// Fails with [`NotFound`](crate::ErrorKind::NotFound) where it is not there.
    pub fn read_deleted(&self, id: &SessionId) -> Result<SessionReader> {
        SessionReader::open(self, self.files(id).deleted())
    }
}

impl Family {
    /// Returns the sessions that read an entry of the trash.
    pub(super) fn reading(&self, store: &Store, name: &TrashName) -> Result<Vec<SessionId>> {
        let mut reading = Vec::new();
        for relative in self.continuing(&name.id) {
            let reads = match name.kind {
                TrashKind::Session => true,
                TrashKind::Trails => {
                    let trails = store.files(&name.id).trails_in_trash();
                    let reader = SessionReader::new(store, relative.files.clone());
                    reader.log.reads_in(&trails)?
                }
            };
            if reads {
                reading.push(relative.id.clone());
            }
        }
        Ok(reading)
    }
}
