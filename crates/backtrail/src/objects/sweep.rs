//! Removes unreferenced objects, pack by pack.
//!
//! The live objects of a pack are copied to a new pack, byte for byte and checked against
//! their ids, and are durable there before the old pack is removed. A pack is removed
//! only while no writer relies on an object that no record refers to yet, and after all
//! records written so far were read.

use std::any::Any;
use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::checked_read::{CheckedEntry, read_checked};
use super::extents::Extent;
use super::format::{BLOCK_HEADER, PACK_HEADER, RECORD, SealShape, TAIL};
use super::object_table::{Fate, Mark, ObjectTable};
use super::pack::{Leftover, Pack, PackFile};
use super::pack_locks::new_pack;
use super::pack_name::PackName;
use super::pack_set::UNREADABLE;
use super::pack_writer::{PackLimits, PackWriter};
use super::{ObjectId, Objects};
use crate::error::{IoContext, Result};
use crate::storage::{StorageFile, if_found};

/// How often a pack is retried if its objects become live meanwhile.
const TRIES: u32 = 5;

/// Knows which objects are referenced.
pub(crate) trait LiveObjects {
    /// Marks the objects referenced by records written since the last call.
    fn catch_up(&mut self, table: &mut ObjectTable) -> Result<()>;

    /// Waits until no writer relies on an object that no record refers to. That stays so
    /// until the returned guard is dropped. Returns `None` if it takes too long.
    fn wait_until_alone(&self) -> Result<Option<Box<dyn Any>>>;
}

/// What a sweep did, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Swept {
    /// Packs that were removed entirely.
    pub(crate) removed: u64,
    /// Packs whose live objects were copied before they were removed.
    pub(crate) rewritten: u64,
    /// Copies of objects that were removed.
    pub(crate) objects: u64,
    /// By how many bytes the packs shrank.
    pub(crate) freed: u64,
    /// How many bytes the packs have afterwards.
    pub(crate) left_bytes: u64,
    /// Packs that were not swept, and why.
    pub(crate) skipped: Vec<SkippedPack>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SkippedPack {
    pub(crate) path: PathBuf,
    pub(crate) reason: SkipReason,
}

/// The reason why a pack was not swept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SkipReason {
    /// Another process appends to it, or its objects became live meanwhile.
    Busy,
    /// A live object in it is damaged, or may be hidden by damage, and there is no other
    /// copy.
    Damaged(ObjectId),
}

pub(crate) struct Sweep<'a> {
    table: &'a mut ObjectTable,
    live: &'a mut dyn LiveObjects,
    pack_writer: Option<PackWriter>,
    /// The packs written by this sweep.
    new_packs: HashSet<u64>,
    /// The total length of the removed packs.
    gone: u64,
    /// Whether waiting for other writers took too long.
    gave_up: bool,
    swept: Swept,
}

/// A pack that is being emptied.
struct OldPack {
    number: usize,
    /// If the pack is not sealed, holds its lock.
    file: Arc<dyn StorageFile>,
    pack: Option<Arc<Pack>>,
    extents: Vec<Extent>,
}

impl<'a> Sweep<'a> {
    /// Removes the objects that are not marked live.
    pub(crate) fn run(table: &'a mut ObjectTable, live: &'a mut dyn LiveObjects) -> Result<Swept> {
        table.count_dead();
        let order = table.order();
        let mut sweep = Self {
            table,
            live,
            pack_writer: None,
            new_packs: HashSet::new(),
            gone: 0,
            gave_up: false,
            swept: Swept::default(),
        };
        for number in order {
            sweep.sweep_pack(number)?;
        }
        sweep.finish()
    }

    fn finish(mut self) -> Result<Swept> {
        self.commit()?;
        let objects = &self.table.objects;
        let pack_set = &objects.0.pack_set;
        let mut made = 0;
        for stem in &self.new_packs {
            let name = PackName::open(*stem);
            made += pack_set.len_of(name)?.unwrap_or(0);
        }
        self.swept.freed = (self.gone + self.table.cut).saturating_sub(made);
        self.pack_writer = None;
        let what = "cannot sync the removal of packs";
        pack_set.sync_names().context(what, &pack_set.dir)?;
        pack_set.refresh()?;
        self.swept.left_bytes = objects.size()?;
        Ok(self.swept)
    }

    fn sweep_pack(&mut self, number: usize) -> Result<()> {
        if self.gave_up || self.table.packs[number].is_busy {
            return self.skip(number, SkipReason::Busy);
        }
        let opened = if_found(self.open_pack(number));
        let source = match opened.context(UNREADABLE, &self.path(number))? {
            Some(Some(source)) => source,
            Some(None) => return self.skip(number, SkipReason::Busy),
            None => return Ok(()),
        };
        let pack = source.pack.as_deref();
        if let Some(id) = self.table.hidden_in(pack) {
            return self.skip(number, SkipReason::Damaged(id));
        }
        // A damaged pack is rewritten with everything that could be found in it.
        let is_sound = pack.is_some_and(|pack| !pack.is_damaged() && !pack.is_empty());
        if is_sound && self.staying(&source).len() == source.extents.len() {
            return Ok(());
        }
        self.copy_live_and_remove(&source)
    }

    /// Copies the live objects of a pack, then removes it.
    fn copy_live_and_remove(&mut self, source: &OldPack) -> Result<()> {
        let mut copied: HashSet<u32> = HashSet::new();
        for _ in 0..TRIES {
            let known = self.table.generation;
            let mut staying = self.staying(source);
            staying.retain(|extent| !copied.contains(&extent.record.at));
            let broken = self.copy(source, &staying)?;
            self.commit()?;
            copied.extend(staying.iter().map(|extent| extent.record.at));
            for extent in staying {
                let id = extent.record.id;
                if !broken.contains(&id) {
                    self.table.mark(&id, Mark::Safe);
                } else if !self.is_elsewhere(source, extent)? {
                    return self.skip(source.number, SkipReason::Damaged(id));
                }
            }
            // Most of the reading happens before the exclusive lock is taken.
            self.live.catch_up(self.table)?;
            let Some(alone) = self.live.wait_until_alone()? else {
                self.gave_up = true;
                return self.skip(source.number, SkipReason::Busy);
            };
            self.live.catch_up(self.table)?;
            if self.table.generation == known || self.is_done(source, &copied) {
                self.remove(source)?;
                drop(alone);
                self.count(source, copied.len());
                return Ok(());
            }
        }
        self.skip(source.number, SkipReason::Busy)
    }

    /// Returns whether another pack has an intact copy of an object that is damaged in
    /// this one.
    fn is_elsewhere(&mut self, source: &OldPack, extent: Extent) -> Result<bool> {
        let (id, at) = (extent.record.id, extent.record.at);
        self.table.set_broken(source.number, &id, at);
        while let Fate::RedundantTo(row) = self.table.fate(source.number, &id, at) {
            if self.table.check(row, &id) {
                return Ok(true);
            }
        }
        // A copy that was stored later, or is in a busy pack.
        let name = self.table.packs[source.number].name;
        self.table.objects.is_in_another_pack(&id, name)
    }

    /// Returns whether every live object of a pack was copied.
    fn is_done(&mut self, source: &OldPack, copied: &HashSet<u32>) -> bool {
        let staying = self.staying(source);
        let mut staying = staying.iter();
        staying.all(|extent| copied.contains(&extent.record.at))
    }

    fn count(&mut self, source: &OldPack, copied: usize) {
        match copied {
            0 => self.swept.removed += 1,
            _ => self.swept.rewritten += 1,
        }
        self.swept.objects += (source.extents.len() - copied) as u64;
    }

    fn skip(&mut self, number: usize, reason: SkipReason) -> Result<()> {
        // Entries that were not committed are dropped.
        self.pack_writer = None;
        let path = self.path(number);
        self.swept.skipped.push(SkippedPack { path, reason });
        Ok(())
    }

    fn path(&self, number: usize) -> PathBuf {
        let name = self.table.packs[number].name;
        self.table.objects.0.pack_set.path(name)
    }

    /// Opens a pack, or returns `None` if another process appends to it.
    fn open_pack(&self, number: usize) -> io::Result<Option<OldPack>> {
        let pack_set = &self.table.objects.0.pack_set;
        let state = &self.table.packs[number];
        let (file, pack) = if state.name.is_sealed {
            (pack_set.file(state.name)?, state.pack.clone())
        } else {
            let file = pack_set.storage.open_append(&pack_set.path(state.name))?;
            if !file.try_lock()? {
                return Ok(None);
            }
            let pack = match Pack::open(file.as_ref(), state.name, &pack_set.codec)? {
                PackFile::Pack(pack) if pack.is_sealed() => return Ok(None),
                PackFile::Pack(pack) => Some(Arc::from(pack)),
                PackFile::Empty => None,
                PackFile::Newer | PackFile::Foreign => return Ok(None),
            };
            (file, pack)
        };
        let extents = match &pack {
            Some(pack) => pack.extents(file.as_ref())?,
            None => Vec::new(),
        };
        Ok(Some(OldPack {
            number,
            file,
            pack,
            extents,
        }))
    }

    /// Returns the entries of a pack that are kept. If an object has several copies, the
    /// one that is kept is read and checked.
    fn staying(&mut self, source: &OldPack) -> Vec<Extent> {
        let mut staying = Vec::new();
        for extent in &source.extents {
            let record = extent.record;
            let stays = loop {
                match self.table.fate(source.number, &record.id, record.at) {
                    Fate::Dead | Fate::Redundant => break false,
                    Fate::Stays => break true,
                    Fate::StaysOf(row) if self.table.check(row, &record.id) => break true,
                    Fate::RedundantTo(row) if self.table.check(row, &record.id) => break false,
                    // That copy is broken and will not be proposed again.
                    Fate::RedundantTo(_) | Fate::StaysOf(_) => {}
                }
            };
            if stays {
                staying.push(*extent);
            }
        }
        staying
    }

    /// Copies entries to a new pack. Returns the objects that are damaged here.
    fn copy(&mut self, source: &OldPack, staying: &[Extent]) -> Result<HashSet<ObjectId>> {
        let Some(pack) = &source.pack else {
            return Ok(HashSet::new());
        };
        let objects = self.table.objects.clone();
        let pack_set = &objects.0.pack_set;
        let file = source.file.as_ref();
        let mut append = |checked: CheckedEntry<'_>| self.append(&objects, checked);
        let broken = read_checked(file, pack, staying, pack_set, &mut append)?;
        Ok(broken.into_iter().collect())
    }

    fn append(&mut self, objects: &Objects, checked: CheckedEntry<'_>) -> Result<()> {
        let mut pack_writer = match self.pack_writer.take() {
            Some(pack_writer) => pack_writer,
            None => {
                let pack_writer = new_pack(objects, objects.0.limits)?;
                self.new_packs.insert(pack_writer.name().stem);
                pack_writer
            }
        };
        let CheckedEntry { id, raw } = checked;
        let (kind, len) = (raw.block.kind, raw.block.raw as usize);
        let what = "cannot copy objects; nothing that was stored before is lost";
        let appended = pack_writer.append(id, kind, len, raw.stored);
        appended.context(what, &objects.0.pack_set.dir)?;
        if pack_writer.is_full() {
            return pack_writer.seal();
        }
        self.pack_writer = Some(pack_writer);
        Ok(())
    }

    /// Makes the copied entries durable.
    fn commit(&mut self) -> Result<()> {
        if let Some(pack_writer) = self.pack_writer.take() {
            self.pack_writer = pack_writer.commit_and_resume()?;
        }
        Ok(())
    }

    /// Removes a pack. No writer relies on anything in it.
    fn remove(&mut self, source: &OldPack) -> Result<()> {
        let pack_set = &self.table.objects.0.pack_set;
        let name = self.table.packs[source.number].name;
        let path = name.path(&pack_set.dir);
        let len = source.file.len();
        self.gone += len.context("cannot read the size of an object pack", &path)?;
        let removed = if_found(pack_set.storage.remove_file(&path));
        removed.context("cannot remove an object pack", &path)?;
        pack_set.forget(name);
        self.table.packs[source.number].is_removed = true;
        Ok(())
    }
}

impl ObjectTable {
    /// Returns the packs in the order in which they are swept: those with the least to
    /// copy first.
    pub(super) fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.packs.len()).collect();
        order.sort_by_key(|n| {
            let state = &self.packs[*n];
            (state.len.saturating_sub(state.dead), state.name.stem)
        });
        order
    }
}

impl ObjectTable {
    /// Computes what a sweep would do. Only the table itself changes.
    pub(crate) fn sweep_plan(&mut self) -> Result<Swept> {
        self.count_dead();
        let mut swept = Swept::default();
        let mut made = NewPacks::new(self.objects.0.limits);
        let mut gone = 0;
        let all: u64 = self.packs.iter().map(|state| state.len).sum();
        for number in self.order() {
            let extents = self.extents_of(number)?;
            let staying = self.would_keep(number, &extents);
            let pack = self.packs[number].pack.as_deref();
            let is_sound = pack.is_some_and(|pack| !pack.is_damaged() && !pack.is_empty());
            let stays = is_sound && staying.len() == extents.len();
            if stays || self.hidden_in(pack).is_some() {
                gone += self.unfinished(number);
                continue;
            }
            for extent in &staying {
                made.append(extent.len);
                self.mark(&extent.record.id, Mark::Safe);
            }
            made.commit();
            match staying.len() {
                0 => swept.removed += 1,
                _ => swept.rewritten += 1,
            }
            swept.objects += (extents.len() - staying.len()) as u64;
            self.packs[number].is_removed = true;
            gone += self.packs[number].len;
        }
        swept.freed = gone.saturating_sub(made.bytes);
        swept.left_bytes = (all + made.bytes).saturating_sub(gone);
        Ok(swept)
    }

    fn extents_of(&self, number: usize) -> Result<Vec<Extent>> {
        let Some(pack) = &self.packs[number].pack else {
            return Ok(Vec::new());
        };
        let pack_set = &self.objects.0.pack_set;
        let file = pack_set.file(pack.name);
        let extents = file.and_then(|file| pack.extents(file.as_ref()));
        let extents = if_found(extents).context(UNREADABLE, &pack_set.path(pack.name))?;
        // Without any, another process removed it meanwhile.
        Ok(extents.unwrap_or_default())
    }

    fn would_keep(&self, number: usize, extents: &[Extent]) -> Vec<Extent> {
        let stays = |extent: &&Extent| {
            let record = extent.record;
            let fate = self.fate(number, &record.id, record.at);
            matches!(fate, Fate::Stays | Fate::StaysOf(_))
        };
        let mut seen = HashSet::new();
        let staying = extents.iter().filter(stays);
        staying
            .filter(|extent| seen.insert(extent.record.at))
            .copied()
            .collect()
    }

    /// Returns how many bytes left by a dead writer would be cut off.
    fn unfinished(&self, number: usize) -> u64 {
        let state = &self.packs[number];
        let pack = state.pack.as_ref().filter(|_| !state.name.is_sealed);
        let pack = pack.filter(|pack| pack.leftover == Leftover::Unfinished);
        pack.map_or(0, |pack| pack.len - pack.end)
    }
}

/// Sizes of the packs that a sweep would write.
struct NewPacks {
    limits: PackLimits,
    bytes: u64,
    /// The length of the pack being written.
    end: u64,
    named: usize,
    uncommitted: usize,
    commits: u32,
}

impl NewPacks {
    fn new(limits: PackLimits) -> Self {
        Self {
            limits,
            bytes: 0,
            end: 0,
            named: 0,
            uncommitted: 0,
            commits: 0,
        }
    }

    fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.end += bytes;
    }

    fn append(&mut self, len: u32) {
        if self.end == 0 {
            self.add(PACK_HEADER as u64);
        }
        self.add(len.into());
        self.named += 1;
        self.uncommitted += 1;
        if self.end >= self.limits.seal_at {
            self.seal();
        }
    }

    fn commit(&mut self) {
        if self.uncommitted == 0 {
            return;
        }
        self.commits += 1;
        if self.commits >= self.limits.seal_commits {
            return self.seal();
        }
        self.add((BLOCK_HEADER + self.uncommitted * RECORD + TAIL) as u64);
        self.uncommitted = 0;
    }

    fn seal(&mut self) {
        let index = SealShape::of(self.named).map_or(0, |shape| shape.len);
        self.bytes += (BLOCK_HEADER + index) as u64;
        *self = Self {
            bytes: self.bytes,
            ..Self::new(self.limits)
        };
    }
}
