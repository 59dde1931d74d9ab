//! The pages of a database as of one moment.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::journal::Journal;
use super::wal::Wal;
use super::{is_database, u16_at, u32_at};
use crate::error::{Error, Result};
use crate::source::read_full;

/// A file that changes may keep its time for as long.
const CLOCK_STEP: Duration = Duration::from_millis(20);
/// The same on file systems that keep only seconds, some of them only even ones.
const SECONDS_STEP: Duration = Duration::from_secs(2);

/// The pages of a database as of one moment.
#[derive(Debug)]
pub(super) struct Pages {
    path: PathBuf,
    file: File,
    wal: Option<Wal>,
    journal: Option<Journal>,
    page_size: usize,
    /// How much of a page is used.
    pub(super) usable: usize,
    pub(super) count: u32,
    pub(super) encoding: Encoding,
    /// The pages that were read from the database itself, one bit each.
    read: Vec<AtomicU64>,
    stamp: DatabaseStamp,
    opened_at: SystemTime,
}

/// How a database stores text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Utf8,
    Utf16Le,
    Utf16Be,
}

impl Pages {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let failed = |error| Error::io("cannot read the database", path, error);
        let opened_at = SystemTime::now();
        let stamp = database_stamp(path);
        let file = File::open(path).map_err(failed)?;
        let wal = match open_beside(path, "-wal").map_err(failed)? {
            Some((wal, _)) => Wal::read(wal).map_err(failed)?,
            None => None,
        };
        let journal = match open_beside(path, "-journal").map_err(failed)? {
            Some((journal, len)) if wal.is_none() => Journal::read(journal, len).map_err(failed)?,
            _ => None,
        };
        let mut pages = Self {
            path: path.to_owned(),
            file,
            wal,
            journal,
            page_size: 0,
            usable: 0,
            count: 1,
            encoding: Encoding::Utf8,
            read: Vec::new(),
            stamp,
            opened_at,
        };
        pages.read_header()?;
        Ok(pages)
    }

    /// Reads the header, which may be in the log.
    fn read_header(&mut self) -> Result<()> {
        let mut header = vec![0; 100];
        let read = read_full(&self.file, &mut header, 0).map_err(|error| self.failed(error))?;
        self.page_size = match (&self.wal, &self.journal) {
            (Some(wal), _) => wal.page_size as usize,
            (None, Some(journal)) => journal.page_size as usize,
            (None, None) => match u16_at(&header, 16) {
                1 => 65_536,
                size => usize::from(size),
            },
        };
        let is_size = (512..=65_536).contains(&self.page_size) && self.page_size.is_power_of_two();
        if !is_size || (read < header.len() && self.wal.is_none()) {
            return Err(self.damaged("it is not an SQLite database"));
        }
        let first = self.page(1)?;
        let reserved = usize::from(first[20]);
        if !is_database(&first) || reserved + 480 > self.page_size {
            return Err(self.damaged("it is not an SQLite database"));
        }
        self.usable = self.page_size - reserved;
        self.encoding = match u32_at(&first, 56) {
            2 => Encoding::Utf16Le,
            3 => Encoding::Utf16Be,
            _ => Encoding::Utf8,
        };
        self.count = self.page_count(&first)?;
        let words = self.count as usize / 64 + 1;
        self.read = (0..words).map(|_| AtomicU64::new(0)).collect();
        Ok(())
    }

    fn page_count(&self, first: &[u8]) -> Result<u32> {
        if let Some(wal) = &self.wal {
            return Ok(wal.page_count);
        }
        if let Some(journal) = &self.journal {
            return Ok(journal.page_count);
        }
        let metadata = self.file.metadata().map_err(|error| self.failed(error))?;
        let fit = u32::try_from(metadata.len() / self.page_size as u64).unwrap_or(u32::MAX);
        let told = u32_at(first, 28);
        let is_told = told > 0 && u32_at(first, 24) == u32_at(first, 92);
        Ok(if is_told { told.min(fit) } else { fit }.max(1))
    }

    /// Reads a page.
    pub(super) fn page(&self, number: u32) -> Result<Arc<[u8]>> {
        if number == 0 || number > self.count {
            return Err(self.damaged(format!("it has no page {number}")));
        }
        let mut page = vec![0; self.page_size];
        let read = match self.newer_or_older(number) {
            Some((Overlay::Wal(wal), at)) => wal.read_at(&mut page, at),
            Some((Overlay::Journal(journal), at)) => journal.read_at(&mut page, at),
            None => {
                if let Some(word) = self.read.get(number as usize / 64) {
                    word.fetch_or(1 << (number % 64), Ordering::Relaxed);
                }
                let at = u64::from(number - 1) * self.page_size as u64;
                read_full(&self.file, &mut page, at)
            }
        };
        match read.map_err(|error| self.failed(error))? == page.len() {
            true => Ok(page.into()),
            false => Err(self.damaged(format!("page {number} is cut off"))),
        }
    }

    /// Returns where a page is, if not in the database itself.
    fn newer_or_older(&self, page: u32) -> Option<(Overlay<'_>, u64)> {
        if let Some(wal) = &self.wal {
            return Some((Overlay::Wal(wal), wal.find(page)?));
        }
        let journal = self.journal.as_ref()?;
        Some((Overlay::Journal(journal), journal.find(page)?))
    }

    fn was_read(&self, page: u32) -> bool {
        let word = self.read.get(page as usize / 64);
        word.is_some_and(|word| word.load(Ordering::Relaxed) >> (page % 64) & 1 == 1)
    }

    /// Forgets which pages were read: they are known to be right.
    pub(super) fn forget_read(&self) {
        for word in &self.read {
            word.store(0, Ordering::Relaxed);
        }
    }

    /// Returns whether all pages that were read are as of the same moment.
    ///
    /// All is well if the database itself did not change, which its time shows. With a log, it
    /// changes only by copying pages from there: then all is also well if none of the pages that
    /// were added to the log since was read from the database. A log that was started anew has
    /// lost what was read from it.
    pub(super) fn is_valid(&self) -> bool {
        let now = database_stamp(&self.path);
        if self.wal.as_ref().is_some_and(|wal| !wal.is_unchanged()) {
            return false;
        }
        let is_same = now.file == self.stamp.file && now.journal == self.stamp.journal;
        if is_same && self.stamp.file.is_settled(self.opened_at) {
            return true;
        }
        let Some(wal) = &self.wal else {
            return false;
        };
        let is_same_log = wal.inode() == Some(now.wal.inode);
        let newer = wal.newer_pages().filter(|_| is_same_log);
        newer.is_some_and(|newer| !newer.into_iter().any(|page| self.was_read(page)))
    }

    pub(super) fn damaged(&self, what: impl AsRef<str>) -> Error {
        let what = format!("the database is damaged: {}", what.as_ref());
        Error::invalid(what, &self.path)
    }

    fn failed(&self, error: io::Error) -> Error {
        Error::io("cannot read the database", &self.path, error)
    }
}

/// What has other versions of pages than the database.
enum Overlay<'p> {
    Wal(&'p Wal),
    Journal(&'p Journal),
}

/// Opens a file whose name continues a database's.
fn open_beside(path: &Path, suffix: &str) -> io::Result<Option<(File, u64)>> {
    match File::open(beside(path, suffix)) {
        Ok(file) => {
            let metadata = file.metadata()?;
            let has_content = metadata.is_file() && metadata.len() > 0;
            Ok(has_content.then_some((file, metadata.len())))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// Shows whether a database changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DatabaseStamp {
    pub(crate) file: Stamp,
    pub(crate) wal: Stamp,
    journal: Stamp,
}

/// Shows whether one of its files changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    pub(crate) len: u64,
    pub(crate) modified_ns: i128,
    changed_ns: i128,
    inode: u64,
}

impl DatabaseStamp {
    /// Returns whether every later change shows in a stamp that was taken after a moment.
    pub(crate) fn is_settled(&self, before: SystemTime) -> bool {
        let all = [&self.file, &self.wal, &self.journal];
        all.into_iter().all(|stamp| stamp.is_settled(before))
    }
}

impl Stamp {
    /// Creates the stamp of a file that was last changed in a second since 1970.
    #[cfg(test)]
    pub(super) fn at_second(second: i128) -> Self {
        Self {
            modified_ns: second * 1_000_000_000,
            changed_ns: second * 1_000_000_000,
            ..Self::default()
        }
    }

    /// Returns whether the times are so far from a moment before the stamp was taken that
    /// another change shows in them. They may be in the future, if a clock was wrong.
    fn is_settled(&self, before: SystemTime) -> bool {
        let before = before.duration_since(UNIX_EPOCH);
        let before_ns = before.map_or(0, |since| since.as_nanos().cast_signed());
        let has_seconds_only = self.changed_ns % 1_000_000_000 == 0;
        let step = if has_seconds_only {
            SECONDS_STEP
        } else {
            CLOCK_STEP
        };
        let is_far = |time: i128| time.abs_diff(before_ns) > step.as_nanos();
        is_far(self.modified_ns) && is_far(self.changed_ns)
    }
}

/// Returns the stamp of a database and the files beside it.
pub(crate) fn database_stamp(path: &Path) -> DatabaseStamp {
    DatabaseStamp {
        file: stamp(path),
        wal: stamp(&beside(path, "-wal")),
        journal: stamp(&beside(path, "-journal")),
    }
}

fn stamp(path: &Path) -> Stamp {
    let Ok(metadata) = fs::metadata(path) else {
        return Stamp::default();
    };
    let nanos = |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    Stamp {
        len: metadata.len(),
        modified_ns: nanos(metadata.mtime(), metadata.mtime_nsec()),
        changed_ns: nanos(metadata.ctime(), metadata.ctime_nsec()),
        inode: metadata.ino(),
    }
}
