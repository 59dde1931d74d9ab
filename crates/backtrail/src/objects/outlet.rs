//! The pack that a writer appends to.

use std::io;
use std::sync::Arc;

use super::ObjectId;
use super::entry::{proven_id, read_entry};
use super::format::{Block, Kind, MAGIC, PACK_HEADER, Record, Tail, encode_commit, encode_seal};
use super::name::PackName;
use super::pack::{Look, Pack, Rest};
use super::shelf::Shelf;
use crate::error::{Error, Result};
use crate::storage::{StorageFile, append_all};

/// When things happen; other numbers are for tests.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// A pack of this length is sealed.
    pub(super) seal_at: u64,
    /// A pack with this many commits is sealed: opening it takes a read for each.
    pub(super) seal_commits: u32,
    /// Entries are gathered up to this many bytes before they are written.
    pub(super) gathered: usize,
    /// A commit that leaves more bytes than this in doubt syncs them before it
    /// names them; what is in doubt is read before anybody relies on it.
    pub(super) in_doubt: u64,
}

impl Limits {
    pub(super) const DEFAULT: Self = Self {
        seal_at: 64 << 20,
        seal_commits: 256,
        gathered: 1 << 20,
        in_doubt: 1 << 20,
    };
}

/// A pack whose lock is held, and what was added to it.
///
/// Dropped without [`commit`](Self::commit) or [`seal`](Self::seal), or after
/// either has failed, it takes back what it wrote.
#[derive(Debug)]
pub(super) struct Outlet {
    shelf: Arc<Shelf>,
    limits: Limits,
    name: PackName,
    file: Arc<dyn StorageFile>,
    /// What was there before.
    prior: Option<Arc<Pack>>,
    /// Where the file is cut off to take everything back.
    base: u64,
    /// Where the next entry begins, gathered bytes counted.
    end: u64,
    gathered: Vec<u8>,
    records: Vec<Record>,
    is_done: bool,
}

impl Outlet {
    /// Goes on with a pack; its lock is held and it was looked at since.
    ///
    /// What a dead writer left at its end is cut off: nothing names it. Bytes
    /// that no writer leaves stay.
    pub(super) fn go_on(
        shelf: &Arc<Shelf>,
        limits: Limits,
        file: Arc<dyn StorageFile>,
        pack: Arc<Pack>,
    ) -> io::Result<Self> {
        let base = if pack.rest == Rest::Unknown {
            pack.len
        } else {
            pack.end
        };
        if base < pack.len {
            file.truncate(base)?;
        }
        let (name, is_damaged) = (pack.name, pack.is_damaged());
        let mut outlet = Self::new(shelf, limits, file, name, Some(pack), base);
        if is_damaged {
            // What was found in spite of the damage is named anew.
            (outlet.records, _) = outlet.in_doubt()?;
        }
        Ok(outlet)
    }

    /// Begins a pack in a file without any; its lock is held.
    pub(super) fn begin(
        shelf: &Arc<Shelf>,
        limits: Limits,
        file: Arc<dyn StorageFile>,
        name: PackName,
    ) -> io::Result<Self> {
        if !file.is_empty()? {
            file.truncate(0)?;
        }
        let mut outlet = Self::new(shelf, limits, file, name, None, 0);
        outlet.gathered.extend_from_slice(MAGIC);
        outlet.end = PACK_HEADER as u64;
        Ok(outlet)
    }

    fn new(
        shelf: &Arc<Shelf>,
        limits: Limits,
        file: Arc<dyn StorageFile>,
        name: PackName,
        prior: Option<Arc<Pack>>,
        base: u64,
    ) -> Self {
        Self {
            shelf: Arc::clone(shelf),
            limits,
            name,
            file,
            prior,
            base,
            end: base,
            gathered: Vec::new(),
            records: Vec::new(),
            is_done: false,
        }
    }

    /// Adds an entry.
    pub(super) fn append(
        &mut self,
        id: ObjectId,
        kind: Kind,
        raw: usize,
        stored: &[u8],
    ) -> io::Result<()> {
        let at = self.place()?;
        let block = Block {
            kind,
            stored: u32::try_from(stored.len()).map_err(io::Error::other)?,
            raw: u32::try_from(raw).map_err(io::Error::other)?,
        };
        self.gathered
            .extend_from_slice(&block.encode(self.name.salt(), at.into()));
        self.gathered.extend_from_slice(stored);
        self.end = block.end(at.into());
        self.records.push(Record { id, at });
        if self.gathered.len() >= self.limits.gathered {
            self.write()?;
        }
        Ok(())
    }

    pub(super) fn name(&self) -> PackName {
        self.name
    }

    pub(super) fn is_full(&self) -> bool {
        self.end >= self.limits.seal_at
    }

    /// Makes all that was added durable, and then what names it.
    pub(super) fn commit(mut self) -> Result<()> {
        let committed = if self.commits() >= self.limits.seal_commits {
            self.try_seal()
        } else {
            self.try_commit()
        };
        self.finished(committed)
    }

    /// Does the same, and goes on with the pack without giving its lock back; `None`
    /// where it was sealed.
    pub(super) fn commit_and_go_on(self) -> Result<Option<Self>> {
        if self.records.is_empty() {
            return Ok(Some(self));
        }
        let (shelf, limits) = (Arc::clone(&self.shelf), self.limits);
        let (file, name) = (Arc::clone(&self.file), self.name);
        self.commit()?;
        let go_on = || match Pack::look(file.as_ref(), name, &shelf.codec)? {
            Look::Pack(mut pack) if !pack.is_sealed() => {
                shelf.apply_settled(&mut pack);
                let pack = Arc::from(pack);
                Self::go_on(&shelf, limits, Arc::clone(&file), pack).map(Some)
            }
            _ => Ok(None),
        };
        go_on().map_err(|error| {
            let what = "cannot append to a pack of objects";
            Error::io(what, &name.path(&shelf.dir), error)
        })
    }

    /// Makes all that was added durable, and gives the pack the sorted index that
    /// lets it be searched in place. It is not appended to again.
    pub(super) fn seal(mut self) -> Result<()> {
        let sealed = self.try_seal();
        self.finished(sealed)
    }

    fn finished(self, done: io::Result<()>) -> Result<()> {
        done.map_err(|error| {
            let path = self.name.path(&self.shelf.dir);
            let what = "cannot store objects; nothing that was stored before is lost";
            Error::io(what, &path, error)
        })
    }

    fn try_commit(&mut self) -> io::Result<()> {
        self.write()?;
        self.sync_name()?;
        let mut durable = self.durable();
        if self.end - durable > self.limits.in_doubt && self.in_doubt()?.1.is_empty() {
            self.file.sync()?;
            durable = self.end;
        }
        let tail = self.tail(durable)?;
        let commit = encode_commit(self.name.salt(), tail, &self.records);
        self.append_last(commit)?;
        self.is_done = true;
        self.shelf.settle(self.name, self.end);
        Ok(())
    }

    fn try_seal(&mut self) -> io::Result<()> {
        self.write()?;
        self.sync_name()?;
        self.file.sync()?;
        let (mut records, _) = self.in_doubt()?;
        records.append(&mut self.records);
        let tail = self.tail(self.end)?;
        let seal = encode_seal(self.name.salt(), tail, &mut records);
        self.append_last(seal)?;
        // Readers may know it by its new name from here on.
        self.is_done = true;
        self.shelf.promote(self.name, self.file.as_ref())
    }

    fn append_last(&mut self, block: Option<Vec<u8>>) -> io::Result<()> {
        let block = block.ok_or(io::ErrorKind::FileTooLarge)?;
        append_all(self.file.as_ref(), &block)?;
        self.end += block.len() as u64;
        self.file.sync()
    }

    fn tail(&self, durable: u64) -> io::Result<Tail> {
        let last = self.prior.as_ref();
        let last = last.filter(|prior| prior.last.is_some() && !prior.is_damaged());
        let place = |at: u64| u32::try_from(at).map_err(|_| io::ErrorKind::FileTooLarge);
        Ok(Tail {
            at: self.place()?,
            previous: place(last.map_or(0, |prior| prior.end))?,
            durable: place(durable)?,
            commits: self.commits(),
            check: [0; 8],
        })
    }

    fn commits(&self) -> u32 {
        let last = self.prior.as_ref().and_then(|prior| prior.last);
        last.map_or(0, |last| last.commits).saturating_add(1)
    }

    /// Returns what the pack named before: what is surely there, and what turned
    /// out not to be.
    fn in_doubt(&self) -> io::Result<(Vec<Record>, Vec<Record>)> {
        let Some(prior) = &self.prior else {
            return Ok((Vec::new(), Vec::new()));
        };
        let (mut there, mut lost) = (Vec::new(), Vec::new());
        for record in prior.records(self.file.as_ref())? {
            let is_there = u64::from(record.at) < prior.durable() || self.is_there(record)?;
            if is_there {
                there.push(record);
            } else {
                lost.push(record);
            }
        }
        Ok((there, lost))
    }

    fn is_there(&self, record: Record) -> io::Result<bool> {
        let (file, salt) = (self.file.as_ref(), self.name.salt());
        let entry = read_entry(file, salt, record.at.into(), &self.shelf.codec)?;
        Ok(entry.is_some_and(|entry| proven_id(&entry) == record.id))
    }

    fn durable(&self) -> u64 {
        let prior = self.prior.as_ref().map_or(0, |prior| prior.durable());
        prior.max(PACK_HEADER as u64)
    }

    /// Makes the pack's name durable. Where there is a commit, whoever wrote it
    /// had done so before.
    fn sync_name(&self) -> io::Result<()> {
        match self.prior.as_ref().and_then(|prior| prior.last) {
            Some(_) => Ok(()),
            None => self.shelf.sync_names(),
        }
    }

    fn place(&self) -> io::Result<u32> {
        u32::try_from(self.end).map_err(|_| io::ErrorKind::FileTooLarge.into())
    }

    fn write(&mut self) -> io::Result<()> {
        append_all(self.file.as_ref(), &self.gathered)?;
        self.gathered.clear();
        Ok(())
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        if !self.is_done {
            // Where even that fails, the next writer does it.
            self.file.truncate(self.base).ok();
        }
    }
}
