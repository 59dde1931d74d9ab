//! Appends entries to one pack.

use std::io;
use std::sync::Arc;

use super::ObjectId;
use super::entry::{proven_id, read_entry};
use super::format::{
    Block, BlockKind, MAGIC, PACK_HEADER, Record, Tail, encode_commit, encode_seal,
};
use super::pack::{Leftover, Pack, PackFile};
use super::pack_name::PackName;
use super::pack_set::PackSet;
use crate::error::{IoContext, Result};
use crate::storage::{StorageFile, append_all};

/// When packs are written, synced and sealed. Tests use other values.
#[derive(Debug, Clone, Copy)]
pub(super) struct PackLimits {
    /// The length at which a pack is sealed.
    pub(super) seal_at: u64,
    /// The number of commits at which a pack is sealed: opening it takes a read for each.
    pub(super) seal_commits: u32,
    /// Entries are buffered up to this many bytes before they are written.
    pub(super) buffered: usize,
    /// A commit that leaves more unsynced bytes than this syncs them before it names
    /// them. Entries in doubt are read before they are relied on.
    pub(super) in_doubt: u64,
}

impl PackLimits {
    pub(super) const DEFAULT: Self = Self {
        seal_at: 64 << 20,
        seal_commits: 256,
        buffered: 1 << 20,
        in_doubt: 1 << 20,
    };
}

/// A locked pack and the entries added to it.
///
/// If it is dropped without [`commit`](Self::commit) or [`seal`](Self::seal), or if
/// either fails, the bytes it wrote are removed.
#[derive(Debug)]
pub(super) struct PackWriter {
    pack_set: Arc<PackSet>,
    limits: PackLimits,
    name: PackName,
    file: Arc<dyn StorageFile>,
    /// The pack before anything was added.
    prior: Option<Arc<Pack>>,
    /// The length the file is truncated to when the entries are dropped.
    base: u64,
    /// Where the next entry begins, including buffered bytes.
    end: u64,
    buffered: Vec<u8>,
    records: Vec<Record>,
    is_done: bool,
}

impl PackWriter {
    /// Resumes a pack. The caller holds its lock and opened it since.
    ///
    /// Bytes that a dead writer left at its end are cut off: no commit names them. Bytes
    /// that no writer leaves are kept.
    pub(super) fn resume(
        pack_set: &Arc<PackSet>,
        limits: PackLimits,
        file: Arc<dyn StorageFile>,
        pack: Arc<Pack>,
    ) -> io::Result<Self> {
        let base = if pack.leftover == Leftover::Unknown {
            pack.len
        } else {
            pack.end
        };
        if base < pack.len {
            file.truncate(base)?;
        }
        let (name, is_damaged) = (pack.name, pack.is_damaged());
        let mut pack_writer = Self::new(pack_set, limits, file, name, Some(pack), base);
        if is_damaged {
            // Entries that were found in spite of the damage are named again.
            (pack_writer.records, _) = pack_writer.in_doubt()?;
        }
        Ok(pack_writer)
    }

    /// Starts a pack in an empty file. The caller holds its lock.
    pub(super) fn begin(
        pack_set: &Arc<PackSet>,
        limits: PackLimits,
        file: Arc<dyn StorageFile>,
        name: PackName,
    ) -> io::Result<Self> {
        if !file.is_empty()? {
            file.truncate(0)?;
        }
        let mut pack_writer = Self::new(pack_set, limits, file, name, None, 0);
        pack_writer.buffered.extend_from_slice(MAGIC);
        pack_writer.end = PACK_HEADER as u64;
        Ok(pack_writer)
    }

    fn new(
        pack_set: &Arc<PackSet>,
        limits: PackLimits,
        file: Arc<dyn StorageFile>,
        name: PackName,
        prior: Option<Arc<Pack>>,
        base: u64,
    ) -> Self {
        Self {
            pack_set: Arc::clone(pack_set),
            limits,
            name,
            file,
            prior,
            base,
            end: base,
            buffered: Vec::new(),
            records: Vec::new(),
            is_done: false,
        }
    }

    pub(super) fn append(
        &mut self,
        id: ObjectId,
        kind: BlockKind,
        raw: usize,
        stored: &[u8],
    ) -> io::Result<()> {
        let at = self.place()?;
        let block = Block {
            kind,
            stored: u32::try_from(stored.len()).map_err(io::Error::other)?,
            raw: u32::try_from(raw).map_err(io::Error::other)?,
        };
        self.buffered
            .extend_from_slice(&block.encode(self.name.salt(), at.into()));
        self.buffered.extend_from_slice(stored);
        self.end = block.end(at.into());
        self.records.push(Record { id, at });
        if self.buffered.len() >= self.limits.buffered {
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

    /// Makes all added entries durable, then the commit that names them.
    pub(super) fn commit(mut self) -> Result<()> {
        let committed = if self.commits() >= self.limits.seal_commits {
            self.try_seal()
        } else {
            self.try_commit()
        };
        self.finished(committed)
    }

    /// Commits, and resumes the pack without releasing its lock. Returns `None` if it was
    /// sealed.
    pub(super) fn commit_and_resume(self) -> Result<Option<Self>> {
        if self.records.is_empty() {
            return Ok(Some(self));
        }
        let (pack_set, limits) = (Arc::clone(&self.pack_set), self.limits);
        let (file, name) = (Arc::clone(&self.file), self.name);
        self.commit()?;
        let resume = || match Pack::open(file.as_ref(), name, &pack_set.codec)? {
            PackFile::Pack(mut pack) if !pack.is_sealed() => {
                pack_set.apply_settled(&mut pack);
                let pack = Arc::from(pack);
                Self::resume(&pack_set, limits, Arc::clone(&file), pack).map(Some)
            }
            _ => Ok(None),
        };
        resume().context("cannot append to an object pack", &pack_set.path(name))
    }

    /// Makes all added entries durable and writes the sorted index by which the pack is
    /// searched in place. Nothing is appended afterwards.
    pub(super) fn seal(mut self) -> Result<()> {
        let sealed = self.try_seal();
        self.finished(sealed)
    }

    fn finished(self, done: io::Result<()>) -> Result<()> {
        let what = "cannot store objects; nothing that was stored before is lost";
        done.context(what, &self.pack_set.path(self.name))
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
        self.pack_set.settle(self.name, self.end);
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
        // From here on readers may know the pack by its new name.
        self.is_done = true;
        self.pack_set.promote(self.name, self.file.as_ref())
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

    /// Returns the entries the pack named before: those certainly present, and those that
    /// are lost.
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
        let entry = read_entry(file, salt, record.at.into(), &self.pack_set.codec)?;
        Ok(entry.is_some_and(|entry| proven_id(&entry) == record.id))
    }

    fn durable(&self) -> u64 {
        let prior = self.prior.as_ref().map_or(0, |prior| prior.durable());
        prior.max(PACK_HEADER as u64)
    }

    /// Makes the pack's name durable. If the pack has a commit, its writer did that
    /// before.
    fn sync_name(&self) -> io::Result<()> {
        match self.prior.as_ref().and_then(|prior| prior.last) {
            Some(_) => Ok(()),
            None => self.pack_set.sync_names(),
        }
    }

    fn place(&self) -> io::Result<u32> {
        u32::try_from(self.end).map_err(|_| io::ErrorKind::FileTooLarge.into())
    }

    fn write(&mut self) -> io::Result<()> {
        append_all(self.file.as_ref(), &self.buffered)?;
        self.buffered.clear();
        Ok(())
    }
}

impl Drop for PackWriter {
    fn drop(&mut self) {
        if !self.is_done {
            // If this fails, the next writer does it.
            self.file.truncate(self.base).ok();
        }
    }
}
