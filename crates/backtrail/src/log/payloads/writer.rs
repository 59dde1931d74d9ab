//! The end of a payload file, where the next payload goes.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::NAME;
use super::entry::{Entry, is_at, scan};
use crate::error::{Error, Result};
use crate::ids::ObjectId;
use crate::log::directory::LogDir;
use crate::storage::{StorageFile, append_all, read_full};

/// Appends payloads to a session; owned by the session's writer.
#[derive(Debug)]
pub(crate) struct PayloadWriter {
    files: LogDir,
    path: PathBuf,
    /// The known state of the file, dropped whenever something fails.
    tail: Option<Tail>,
    /// Entries that end after this are not referred to: a sync failed, and they may not survive
    /// a power cut.
    trusted: u64,
}

/// The state of a payload file.
#[derive(Debug)]
struct Tail {
    file: Arc<dyn StorageFile>,
    len: u64,
    /// Whether the file ends with a complete line.
    ends_line: bool,
    /// How much of the file is certainly durable.
    durable: u64,
    known: HashMap<ObjectId, Known>,
}

/// An entry of the file.
#[derive(Debug, Clone, Copy)]
struct Known {
    entry: Entry,
    /// Whether its content was compared. An entry found only by its header may be torn
    /// or damaged.
    checked: bool,
}

/// Contents that are not in the file yet, each once.
#[derive(Debug)]
struct Fresh<'a> {
    entries: Vec<(Entry, &'a [u8])>,
    places: HashMap<ObjectId, u64>,
    /// The offset of the next entry.
    end: u64,
}

/// A content, and where it is in another copy of the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placed<'a> {
    pub(crate) at: u64,
    pub(crate) content: &'a [u8],
}

/// How much longer than its contents a copy may become, so that they are where they are in the
/// other file.
const FILLED: u64 = 1 << 20;

/// Contents up to this length are buffered, so that one write is enough for many; a
/// longer one is written without copying.
pub(super) const GATHERED: usize = 256 << 10;

impl PayloadWriter {
    /// Creates a writer that has not opened the file yet.
    pub(crate) fn new(files: &LogDir) -> Self {
        Self {
            path: files.path().join(NAME),
            files: files.clone(),
            tail: None,
            trusted: u64::MAX,
        }
    }

    /// Stores the contents that are not stored yet, and makes all of them durable with
    /// one sync. Returns the name of each and where its entry begins.
    ///
    /// If this fails, none of them counts as stored, and the caller may try again.
    pub(crate) fn store(&mut self, contents: &[&[u8]]) -> Result<Vec<(ObjectId, u64)>> {
        if contents.is_empty() {
            return Ok(Vec::new());
        }
        let anywhere = |content| Placed { at: 0, content };
        let contents: Vec<_> = contents.iter().copied().map(anywhere).collect();
        self.try_store(&contents).map_err(|error| {
            let what = "cannot store the message's payloads; nothing was recorded, \
                        everything acknowledged before is safe";
            Error::io(what, &self.path, error)
        })
    }

    /// Stores contents of another session's file, each at the place that it has there if that is
    /// free: what nothing refers to in that file is filled with NULs. They are durable when this
    /// returns.
    pub(crate) fn store_placed(&mut self, contents: &[Placed<'_>]) -> Result<()> {
        if contents.is_empty() {
            return Ok(());
        }
        self.try_store(contents)
            .map(drop)
            .map_err(|error| Error::io("cannot store the session's payloads", &self.path, error))
    }

    fn try_store(&mut self, contents: &[Placed<'_>]) -> io::Result<Vec<(ObjectId, u64)>> {
        // Only a success sets it again.
        let mut tail = match self.tail.take() {
            Some(tail) if tail.file.len()? == tail.len => tail,
            _ => self.look()?,
        };
        let mut fresh = Fresh::after(&tail);
        let places = contents
            .iter()
            .map(|content| tail.place(content, &mut fresh))
            .collect::<io::Result<_>>()?;
        tail.write(&fresh)?;
        tail.sync(&fresh)
            .inspect_err(|_| self.trusted = self.trusted.min(tail.durable))?;
        tail.remember(fresh);
        self.tail = Some(tail);
        Ok(places)
    }

    /// Opens the file, creating it if it is missing, and reads its entries.
    fn look(&self) -> io::Result<Tail> {
        let storage = self.files.storage();
        let file = match storage.open_append(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                storage.create_new(&self.path)?
            }
            opened => opened?,
        };
        // Even if it existed: its creator may have died before this.
        storage.sync_dir(self.files.path())?;
        let len = file.len()?;
        let mut known = HashMap::new();
        scan(file.as_ref(), len, |entry| {
            let checked = false;
            if entry.end_within(len.min(self.trusted)).is_some() {
                known.insert(entry.hash, Known { entry, checked });
            }
        })?;
        Ok(Tail {
            ends_line: ends_line(file.as_ref(), len)?,
            file,
            len,
            durable: 0,
            known,
        })
    }
}

fn ends_line(file: &dyn StorageFile, len: u64) -> io::Result<bool> {
    let mut last = [b'\n'];
    if let Some(at) = len.checked_sub(1) {
        read_full(file, &mut last, at)?;
    }
    Ok(last == [b'\n'])
}

impl<'a> Fresh<'a> {
    fn after(tail: &Tail) -> Self {
        Self {
            entries: Vec::new(),
            places: HashMap::new(),
            end: tail.len + u64::from(!tail.ends_line),
        }
    }

    /// Adds a content after the others and returns where its entry begins.
    fn add(&mut self, hash: ObjectId, placed: &Placed<'a>) -> u64 {
        *self.places.entry(hash).or_insert_with(|| {
            let content = placed.content;
            let bytes = content.len() as u64;
            let filled = placed.at.saturating_sub(self.end);
            let at = match filled <= FILLED {
                true => self.end + filled,
                false => self.end,
            };
            self.end = at;
            let entry = Entry { hash, bytes, at };
            self.end += entry.len();
            self.entries.push((entry, content));
            at
        })
    }
}

impl Tail {
    /// Returns a content's name and its offset, which may be in `fresh`.
    fn place<'a>(
        &mut self,
        placed: &Placed<'a>,
        fresh: &mut Fresh<'a>,
    ) -> io::Result<(ObjectId, u64)> {
        let content = placed.content;
        let hash = ObjectId::of(content);
        if let Some(known) = self.known.get_mut(&hash) {
            known.checked = known.checked || is_stored(self.file.as_ref(), known, content)?;
            if known.checked {
                return Ok((hash, known.entry.at));
            }
        }
        Ok((hash, fresh.add(hash, placed)))
    }

    /// Writes new entries at the end, or removes a partial write.
    fn write(&self, fresh: &Fresh<'_>) -> io::Result<()> {
        if fresh.entries.is_empty() {
            return Ok(());
        }
        self.append(fresh)
            .inspect_err(|_| self.cut_off_last_write())
    }

    fn append(&self, fresh: &Fresh<'_>) -> io::Result<()> {
        let file = self.file.as_ref();
        let mut gathered = Vec::new();
        if !self.ends_line {
            gathered.push(b'\n');
        }
        let mut end = self.len + u64::from(!self.ends_line);
        for (entry, content) in &fresh.entries {
            if let Some(before) = entry.at.checked_sub(end + 1) {
                gathered.resize(gathered.len() + before as usize, 0);
                gathered.push(b'\n');
            }
            end = entry.at + entry.len();
            entry.write_header(&mut gathered);
            if gathered.len() + content.len() > GATHERED {
                append_all(file, &gathered)?;
                append_all(file, content)?;
                gathered.clear();
            } else {
                gathered.extend_from_slice(content);
            }
            gathered.push(b'\n');
        }
        append_all(file, &gathered)
    }

    /// Syncs the file unless it is durable.
    fn sync(&self, fresh: &Fresh<'_>) -> io::Result<()> {
        if fresh.entries.is_empty() && self.durable == self.len {
            return Ok(());
        }
        self.file.sync().inspect_err(|_| self.cut_off_last_write())
    }

    /// Cuts off the last write. If this fails, the next writer skips it.
    fn cut_off_last_write(&self) {
        self.file.truncate(self.len).ok();
    }

    /// Records new entries, all of them durable.
    fn remember(&mut self, fresh: Fresh<'_>) {
        if !fresh.entries.is_empty() {
            self.len = fresh.end;
            self.ends_line = true;
        }
        self.durable = self.len;
        let checked = true;
        let entries = fresh.entries.into_iter();
        self.known
            .extend(entries.map(|(entry, _)| (entry.hash, Known { entry, checked })));
    }
}

/// Returns whether a known entry really contains a content.
fn is_stored(file: &dyn StorageFile, known: &Known, content: &[u8]) -> io::Result<bool> {
    let entry = known.entry;
    match entry.content_within(u64::MAX) {
        Some(from) if entry.bytes == content.len() as u64 => is_at(file, from, content),
        _ => Ok(false),
    }
}
