//! Reads SQLite databases that other programs are using.
//!
//! A [`Snapshot`] is a consistent view of a database and its write-ahead log, or of a database
//! and the journal that a killed program left behind. SQLite itself cannot give one on these
//! terms: it takes locks and writes to the `-shm` file, or it ignores the log. So the pages are
//! read here, as <https://www.sqlite.org/fileformat2.html> describes them. Nothing is written
//! and nothing is locked; instead, [`Snapshot::is_valid`] tells afterwards whether the program
//! changed a page that was read meanwhile. Then what was read is dropped and read again.
//!
//! | module | what it does |
//! |---|---|
//! | `pages` | pages as of one moment, from the database, its log and its journal |
//! | `wal` | the write-ahead log |
//! | `journal` | the rollback journal |
//! | `btree` | the rows of a table |
//! | `record` | the values of a row |
//! | `schema` | tables and their columns |

mod btree;
mod journal;
mod pages;
mod record;
mod schema;
mod wal;

use std::path::Path;
use std::time::Duration;

use crate::error::{Error, Result};

pub(crate) use btree::{Cursor, Row};
pub(crate) use pages::{DatabaseStamp, database_stamp};
pub(crate) use record::Value;
pub(crate) use schema::Table;

use pages::Pages;
use schema::Schema;

/// How every database begins.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// How often a database is read that changes meanwhile, and how long to wait at first.
const MAX_TRIES: u32 = 8;
const FIRST_WAIT: Duration = Duration::from_millis(21);

/// Returns whether a file is a database, by its first bytes.
pub(crate) fn is_database(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

/// A database as it was at one moment.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pages: Pages,
    schema: Schema,
}

impl Snapshot {
    /// Takes a snapshot.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        retry(path, || {
            let before = database_stamp(path);
            let pages = match Pages::open(path) {
                Ok(pages) => pages,
                Err(_) if database_stamp(path) != before => return Ok(None),
                Err(error) => return Err(error),
            };
            let schema = Schema::read(&pages);
            match pages.is_valid() {
                true => {
                    // They are right, whatever happens to them now.
                    pages.forget_read();
                    schema.map(|schema| Some(Self { pages, schema }))
                }
                false => Ok(None),
            }
        })
    }

    /// Returns a table, if there is one with this name.
    pub(crate) fn table(&self, name: &str) -> Option<&Table> {
        self.schema.table(name)
    }

    /// Returns a cursor over a table's rows.
    pub(crate) fn cursor<'s>(&'s self, table: &'s Table) -> Cursor<'s> {
        Cursor::new(&self.pages, table)
    }

    /// Returns whether everything that was read so far is as of the same moment.
    pub(crate) fn is_valid(&self) -> bool {
        self.pages.is_valid()
    }
}

/// Reads all rows of the first tables, whether they change or not; returns how many there are.
pub(crate) fn read_everything(path: &Path) -> u64 {
    const MOST_TABLES: usize = 4;
    let mut rows = 0;
    let Ok(pages) = Pages::open(path) else {
        return rows;
    };
    let schema = Schema::read(&pages);
    for table in schema.iter().flat_map(Schema::tables).take(MOST_TABLES) {
        let mut cursor = Cursor::new(&pages, table);
        cursor.rewind().ok();
        loop {
            match cursor.next() {
                Ok(None) => break,
                Ok(Some(row)) => {
                    rows += 1;
                    for column in 0..table.columns.len() {
                        row.value(column).ok();
                    }
                    Cursor::new(&pages, table).find(row.rowid).ok();
                }
                Err(_) => {}
            }
        }
    }
    rows
}

/// Tries to read a database until its program leaves it alone for as long as that takes: at
/// most for a few seconds.
pub(crate) fn retry<T>(path: &Path, mut read: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    for attempt in 0..MAX_TRIES {
        if attempt > 0 {
            std::thread::sleep(FIRST_WAIT * (1 << (attempt - 1)));
        }
        if let Some(found) = read()? {
            return Ok(found);
        }
    }
    let what = "its program changes the database all the time; try again later";
    Err(Error::invalid(what, path))
}

/// Reads a big-endian number of two bytes; 0 beyond the end.
fn u16_at(bytes: &[u8], at: usize) -> u16 {
    let number = bytes.get(at..).and_then(|rest| rest.first_chunk());
    number.map_or(0, |bytes| u16::from_be_bytes(*bytes))
}

/// Reads a big-endian number of four bytes; 0 beyond the end.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let number = bytes.get(at..).and_then(|rest| rest.first_chunk());
    number.map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

/// Reads a number of one to nine bytes, and returns it with its length. `None` beyond the end.
fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut number = 0_u64;
    for (at, byte) in bytes.iter().take(9).enumerate() {
        if at == 8 {
            return Some((number << 8 | u64::from(*byte), 9));
        }
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((number, at + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests;
