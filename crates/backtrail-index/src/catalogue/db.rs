//! The catalogue's file: opens it, checks whether it can be trusted, commits to it and
//! replaces it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension, Params, Row};

use super::{Catalogue, schema};
use crate::error::{Error, Result};
use crate::files::{self, create_file};
use crate::seal::Seal;

/// The oldest SQLite that is safe to use: earlier versions can damage a database.
const OLDEST_SQLITE: i32 = 3_051_003;

/// How long a statement waits for another process that is committing.
const BUSY: Duration = Duration::from_secs(5);

/// The paths of the catalogue's files.
#[derive(Debug, Clone)]
pub(crate) struct Paths {
    dir: PathBuf,
    name: String,
}

/// The result of opening the catalogue.
#[derive(Debug)]
pub(crate) enum Opened {
    Trusted(Catalogue),
    /// Missing or not to be trusted, with the reason.
    Not(&'static str),
}

impl Paths {
    pub(crate) fn new(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            name: format!("catalogue-{}.db", schema::VERSION),
        }
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.dir.join(&self.name)
    }

    /// Returns a file beside the database, by its ending: `lock`, `seal`, `new`, or `busy`,
    /// which exists while a commit is running, or since one was interrupted.
    pub(crate) fn beside(&self, ending: &str) -> PathBuf {
        self.database().with_extension(ending)
    }

    fn journal(&self) -> PathBuf {
        self.dir.join(format!("{}-journal", self.name))
    }

    fn sealed(&self) -> Option<bool> {
        let now = Seal::of(&self.dir, &[self.name.as_str()]).ok()?;
        let sealed = Seal::read(&self.beside("seal")).ok()??;
        Some(now == sealed)
    }

    /// Opens the catalogue if it is as it was left. `alone` means that no other process
    /// is writing, so that an unfinished commit was interrupted and SQLite rolls it back.
    pub(crate) fn open(&self, alone: bool) -> Result<Opened> {
        if !self.database().is_file() {
            return Ok(Opened::Not("it was missing"));
        }
        let busy = self.beside("busy").exists();
        if !busy && self.sealed() != Some(true) {
            return Ok(Opened::Not("another program changed it"));
        }
        let db = match self.connect() {
            Ok(db) => db,
            Err(_) => return Ok(Opened::Not("it could not be opened")),
        };
        if busy && alone {
            if !is_whole(&db) {
                return Ok(Opened::Not("it was damaged"));
            }
            self.write_seal()?;
        }
        match version(&db) {
            Ok(schema::VERSION) => Ok(Opened::Trusted(Catalogue { db })),
            _ => Ok(Opened::Not("it had another version or was damaged")),
        }
    }

    /// Opens the catalogue as it was last committed, to look at it at once: without writing,
    /// and without waiting for a process that is committing. `None` if that is not possible.
    pub(crate) fn open_at_once(&self) -> Option<Catalogue> {
        let path = self.database();
        // Nothing in a store is read through a link.
        path.symlink_metadata().ok().filter(fs::Metadata::is_file)?;
        if !self.beside("busy").exists() && self.sealed() != Some(true) {
            return None;
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(path, flags).ok()?;
        db.busy_timeout(Duration::ZERO).ok()?;
        // Everything is read under one lock: each statement would take its own.
        db.execute_batch("BEGIN").ok()?;
        Some(Catalogue { db })
    }

    fn connect(&self) -> rusqlite::Result<Connection> {
        let path = self.database();
        let no_mutex = OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | no_mutex;
        let db = match Connection::open_with_flags(&path, flags) {
            Ok(db) => db,
            Err(_) => {
                let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | no_mutex;
                Connection::open_with_flags(&path, flags)?
            }
        };
        set_up(&db)?;
        db.pragma_update(None, "journal_mode", "TRUNCATE").ok();
        Ok(db)
    }

    /// Marks that a commit is running: until it is sealed, no other process trusts the
    /// file.
    pub(crate) fn begin_commit(&self) -> Result<()> {
        let path = self.beside("busy");
        let made = create_file(&path).map(drop);
        made.map_err(|error| Error::io("cannot write", &path, error))
    }

    /// Marks the catalogue as complete.
    pub(crate) fn write_seal(&self) -> Result<()> {
        let failed = |error| Error::io("cannot seal the catalogue", &self.database(), error);
        let seal = Seal::of(&self.dir, &[self.name.as_str()]).map_err(failed)?;
        seal.write(&self.beside("seal")).map_err(failed)?;
        remove(&self.beside("busy"))
    }

    /// Creates an empty catalogue beside the existing one.
    pub(crate) fn create_beside(&self) -> Result<Catalogue> {
        let path = self.beside("new");
        remove(&path)?;
        let opening = failed("cannot create a catalogue");
        let db = Connection::open(&path).map_err(&opening)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))
            .map_err(|error| Error::io("cannot create a catalogue", &path, error))?;
        set_up(&db).map_err(&opening)?;
        // It only counts once it is complete, and is discarded until then.
        db.pragma_update(None, "journal_mode", "OFF")
            .and_then(|()| db.pragma_update(None, "synchronous", "OFF"))
            .and_then(|()| db.pragma_update(None, "cache_spill", true))
            .map_err(&opening)?;
        make_tables(&db)?;
        Ok(Catalogue { db })
    }

    /// Replaces the old catalogue with the new one and opens it.
    pub(crate) fn put_in_place(&self, new_catalogue: Catalogue) -> Result<Catalogue> {
        let (new, path) = (self.beside("new"), self.database());
        let failed_io = |error| Error::io("cannot replace the catalogue", &path, error);
        let closed = new_catalogue.db.close();
        closed.map_err(|(_, error)| failed("cannot close the new catalogue")(error))?;
        fs::File::open(&new)
            .and_then(|file| file.sync_all())
            .map_err(failed_io)?;
        remove(&self.beside("seal"))?;
        remove(&self.beside("busy"))?;
        // The journal of an interrupted commit belongs only to the old file.
        remove(&self.journal())?;
        if path.is_dir() {
            remove(&path)?;
        }
        fs::rename(&new, &path).map_err(failed_io)?;
        self.write_seal()?;
        let db = self.connect();
        let db = db.map_err(failed("cannot open the new catalogue"))?;
        Ok(Catalogue { db })
    }
}

impl Catalogue {
    /// Creates an empty catalogue in memory.
    pub(crate) fn empty_in_memory() -> Result<Self> {
        let db = in_memory()?;
        make_tables(&db)?;
        Ok(Self { db })
    }

    /// Copies a catalogue to memory.
    pub(crate) fn copy_to_memory(&self) -> Result<Self> {
        let mut db = in_memory()?;
        rusqlite::backup::Backup::new(&self.db, &mut db)
            .and_then(|backup| backup.run_to_completion(i32::MAX, Duration::ZERO, None))
            .map_err(failed("cannot copy the catalogue to memory"))?;
        Ok(Self { db })
    }
}

/// Statements, each of which is prepared once.
impl Catalogue {
    /// Runs a statement that has no result.
    pub(super) fn run(&self, sql: &str, values: impl Params) -> Result<()> {
        self.db
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(values))
            .map(drop)
            .map_err(failed("cannot write to the catalogue"))
    }

    /// Inserts a row and returns its key.
    pub(super) fn insert(&self, sql: &str, values: impl Params) -> Result<i64> {
        self.run(sql, values)?;
        Ok(self.db.last_insert_rowid())
    }

    /// Returns the first row, if there is one.
    pub(super) fn first<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        self.db
            .prepare_cached(sql)
            .and_then(|mut statement| statement.query_row(values, read).optional())
            .map_err(failed("cannot read the catalogue"))
    }

    /// Returns all rows.
    pub(super) fn rows<T, A: FromIterator<T>>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<A> {
        self.db
            .prepare_cached(sql)
            .and_then(|mut statement| statement.query_map(values, read)?.collect())
            .map_err(failed("cannot read the catalogue"))
    }
}

/// Converts an SQLite error.
fn failed(doing: &'static str) -> impl Fn(rusqlite::Error) -> Error {
    move |source| Error::Database { doing, source }
}

fn in_memory() -> Result<Connection> {
    let opening = failed("cannot create a catalogue in memory");
    let db = Connection::open_in_memory().map_err(&opening)?;
    set_up(&db).map_err(&opening)?;
    Ok(db)
}

fn make_tables(db: &Connection) -> Result<()> {
    db.execute_batch(&schema::tables())
        .and_then(|()| db.pragma_update(None, "user_version", schema::VERSION))
        .map_err(failed("cannot create the tables of the catalogue"))
}

fn set_up(db: &Connection) -> rusqlite::Result<()> {
    // Versions that can damage databases must not write one.
    assert!(
        rusqlite::version_number() >= OLDEST_SQLITE,
        "SQLite {} is too old",
        rusqlite::version()
    );
    db.busy_timeout(BUSY)?;
    db.set_prepared_statement_cache_capacity(64);
    db.pragma_update(None, "cache_size", -32 * 1024)?;
    db.pragma_update(None, "cache_spill", false)?;
    db.pragma_update(None, "temp_store", "MEMORY")?;
    db.pragma_update(None, "cell_size_check", true)?;
    db.pragma_update(None, "trusted_schema", false)?;
    db.pragma_update(None, "synchronous", "NORMAL")
}

fn version(db: &Connection) -> rusqlite::Result<u32> {
    db.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn is_whole(db: &Connection) -> bool {
    let check = db.pragma_query_value(None, "quick_check", |row| row.get::<_, String>(0));
    check.is_ok_and(|answer| answer == "ok")
}

/// Removes a file or directory with one of the catalogue's names.
fn remove(path: &Path) -> Result<()> {
    match files::remove_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("cannot remove", path, error))
        }
        _ => Ok(()),
    }
}
