//! Removing objects that nothing names, pack by pack.
//!
//! What stays of a pack is copied to a pack of the sweep's own, byte for byte and
//! checked against its name, and is durable there before the old pack goes. A pack
//! goes while nobody relies on an object that no record names, and after what was
//! recorded until then was read.

use std::any::Any;
use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::carry::{Carried, Failed, carry};
use super::extents::Extent;
use super::held::begin;
use super::name::PackName;
use super::outlet::Outlet;
use super::pack::{Look, Pack};
use super::stock::{Fate, Mark, Stock};
use super::{ObjectId, Objects};
use crate::error::{Error, Result};
use crate::storage::StorageFile;

/// How often a pack is tried whose objects come to be named meanwhile.
const TRIES: u32 = 5;

/// Who knows what names objects.
pub(crate) trait Watch {
    /// Marks what was recorded since it was asked last.
    fn catch_up(&mut self, stock: &mut Stock) -> Result<()>;

    /// Waits until nobody relies on an object that no record names; that stays so
    /// until what is returned is dropped. `None` if it takes too long.
    fn alone(&self) -> Result<Option<Box<dyn Any>>>;
}

/// What a sweep did, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Swept {
    /// Packs that went and left nothing behind.
    pub(crate) removed: u64,
    /// Packs of which something was copied before they went.
    pub(crate) rewritten: u64,
    /// Copies of objects that went.
    pub(crate) objects: u64,
    /// How many bytes less the packs have.
    pub(crate) freed: u64,
    /// How many bytes the packs have then.
    pub(crate) left_bytes: u64,
    /// Packs that were left as they are, and why.
    pub(crate) left: Vec<LeftPack>,
}

/// A pack that was left as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeftPack {
    pub(crate) path: PathBuf,
    pub(crate) why: LeftBecause,
}

/// Why a pack was left as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LeftBecause {
    /// Somebody appends to it, or what is in it came to be used meanwhile.
    Busy,
    /// An object that is still named is damaged in it, or may be hidden by damage, and
    /// there is no other copy.
    Damaged(ObjectId),
}

/// A sweep under way.
pub(crate) struct Sweep<'a> {
    stock: &'a mut Stock,
    watch: &'a mut dyn Watch,
    outlet: Option<Outlet>,
    /// The packs that were begun.
    own: HashSet<u64>,
    /// How long the packs were that went.
    gone: u64,
    /// Whether somebody kept the sweep waiting too long.
    is_tired: bool,
    swept: Swept,
}

/// A pack that is being emptied.
struct Source {
    number: usize,
    /// Its lock is held as long as this is there, where it is not sealed.
    file: Arc<dyn StorageFile>,
    pack: Option<Arc<Pack>>,
    extents: Vec<Extent>,
}

impl<'a> Sweep<'a> {
    /// Removes what is not marked.
    pub(crate) fn run(stock: &'a mut Stock, watch: &'a mut dyn Watch) -> Result<Swept> {
        stock.weigh();
        let order = stock.order();
        let mut sweep = Self {
            stock,
            watch,
            outlet: None,
            own: HashSet::new(),
            gone: 0,
            is_tired: false,
            swept: Swept::default(),
        };
        for number in order {
            sweep.pack(number)?;
        }
        sweep.finish()
    }

    fn finish(mut self) -> Result<Swept> {
        self.commit()?;
        let objects = &self.stock.objects;
        let shelf = &objects.0.shelf;
        let mut made = 0;
        for stem in &self.own {
            let name = PackName::open(*stem);
            let len = shelf.file(name).and_then(|file| file.len());
            made += len.map_err(|error| {
                let path = name.path(&shelf.dir);
                Error::io("cannot measure a pack of objects", &path, error)
            })?;
        }
        self.swept.freed = (self.gone + self.stock.cut).saturating_sub(made);
        self.outlet = None;
        shelf.sync_names().map_err(|error| {
            let what = "cannot make durable that packs of objects are gone";
            Error::io(what, &shelf.dir, error)
        })?;
        shelf.refresh()?;
        self.swept.left_bytes = objects.size()?;
        Ok(self.swept)
    }

    fn pack(&mut self, number: usize) -> Result<()> {
        if self.is_tired || self.stock.packs[number].is_busy {
            return self.leave(number, LeftBecause::Busy);
        }
        let source = match self.source(number) {
            Ok(Some(source)) => source,
            Ok(None) => return self.leave(number, LeftBecause::Busy),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => {
                let path = self.path(number);
                return Err(Error::io("cannot read a pack of objects", &path, error));
            }
        };
        let pack = source.pack.as_deref();
        if let Some(id) = self.stock.hidden_in(pack) {
            return self.leave(number, LeftBecause::Damaged(id));
        }
        // A damaged one is written anew: all that can be found in it was.
        let is_sound = pack.is_some_and(|pack| !pack.is_damaged() && !pack.is_empty());
        if is_sound && self.staying(&source).len() == source.extents.len() {
            return Ok(());
        }
        self.empty(&source)
    }

    /// Copies what stays of a pack, and removes it.
    fn empty(&mut self, source: &Source) -> Result<()> {
        let mut copied: HashSet<u32> = HashSet::new();
        for _ in 0..TRIES {
            let known = self.stock.generation;
            let mut staying = self.staying(source);
            staying.retain(|extent| !copied.contains(&extent.record.at));
            let broken = self.copy(source, &staying)?;
            self.commit()?;
            copied.extend(staying.iter().map(|extent| extent.record.at));
            for extent in staying {
                let id = extent.record.id;
                if !broken.contains(&id) {
                    self.stock.mark(&id, Mark::Safe);
                } else if !self.is_elsewhere(source, extent)? {
                    return self.leave(source.number, LeftBecause::Damaged(id));
                }
            }
            // Most of what there is to read is read while nobody waits.
            self.watch.catch_up(self.stock)?;
            let Some(alone) = self.watch.alone()? else {
                self.is_tired = true;
                return self.leave(source.number, LeftBecause::Busy);
            };
            self.watch.catch_up(self.stock)?;
            if self.stock.generation == known || self.is_done(source, &copied) {
                self.remove(source)?;
                drop(alone);
                self.count(source, copied.len());
                return Ok(());
            }
        }
        self.leave(source.number, LeftBecause::Busy)
    }

    /// Returns whether a pack other than this one has an object of which the copy in
    /// this one is damaged.
    fn is_elsewhere(&mut self, source: &Source, extent: Extent) -> Result<bool> {
        let (id, at) = (extent.record.id, extent.record.at);
        self.stock.set_broken(source.number, &id, at);
        while let Fate::DoubleOf(row) = self.stock.fate(source.number, &id, at) {
            if self.stock.check(row, &id) {
                return Ok(true);
            }
        }
        // One that came later, or is busy.
        let name = self.stock.packs[source.number].name;
        self.stock.objects.is_beside(&id, name)
    }

    /// Returns whether everything that stays of a pack was copied.
    fn is_done(&mut self, source: &Source, copied: &HashSet<u32>) -> bool {
        let staying = self.staying(source);
        let mut staying = staying.iter();
        staying.all(|extent| copied.contains(&extent.record.at))
    }

    fn count(&mut self, source: &Source, copied: usize) {
        match copied {
            0 => self.swept.removed += 1,
            _ => self.swept.rewritten += 1,
        }
        self.swept.objects += (source.extents.len() - copied) as u64;
    }

    fn leave(&mut self, number: usize, why: LeftBecause) -> Result<()> {
        // What was not committed is taken back.
        self.outlet = None;
        let path = self.path(number);
        self.swept.left.push(LeftPack { path, why });
        Ok(())
    }

    fn path(&self, number: usize) -> PathBuf {
        let name = self.stock.packs[number].name;
        name.path(&self.stock.objects.0.shelf.dir)
    }

    /// Opens a pack; `None` where somebody appends to it.
    fn source(&self, number: usize) -> io::Result<Option<Source>> {
        let shelf = &self.stock.objects.0.shelf;
        let stocked = &self.stock.packs[number];
        let (file, pack) = if stocked.name.is_sealed {
            (shelf.file(stocked.name)?, stocked.pack.clone())
        } else {
            let file = shelf.storage.open_append(&stocked.name.path(&shelf.dir))?;
            if !file.try_lock()? {
                return Ok(None);
            }
            let pack = match Pack::look(file.as_ref(), stocked.name, &shelf.codec)? {
                Look::Pack(pack) if pack.is_sealed() => return Ok(None),
                Look::Pack(pack) => Some(Arc::from(pack)),
                Look::Empty => None,
                Look::Newer | Look::Foreign => return Ok(None),
            };
            (file, pack)
        };
        let extents = match &pack {
            Some(pack) => pack.extents(file.as_ref())?,
            None => Vec::new(),
        };
        Ok(Some(Source {
            number,
            file,
            pack,
            extents,
        }))
    }

    /// Returns what stays of a pack. Where there are several copies, the one that
    /// stays is read and checked.
    fn staying(&mut self, source: &Source) -> Vec<Extent> {
        let mut staying = Vec::new();
        for extent in &source.extents {
            let record = extent.record;
            let stays = loop {
                match self.stock.fate(source.number, &record.id, record.at) {
                    Fate::Dead | Fate::Double => break false,
                    Fate::Stays => break true,
                    Fate::StaysOf(row) if self.stock.check(row, &record.id) => break true,
                    Fate::DoubleOf(row) if self.stock.check(row, &record.id) => break false,
                    // That one is broken, and will not be proposed again.
                    Fate::DoubleOf(_) | Fate::StaysOf(_) => {}
                }
            };
            if stays {
                staying.push(*extent);
            }
        }
        staying
    }

    /// Copies entries to a pack of our own. Returns the objects that are damaged here.
    fn copy(&mut self, source: &Source, staying: &[Extent]) -> Result<HashSet<ObjectId>> {
        let Some(pack) = &source.pack else {
            return Ok(HashSet::new());
        };
        let objects = self.stock.objects.clone();
        let shelf = &objects.0.shelf;
        let path = pack.name.path(&shelf.dir);
        let file = source.file.as_ref();
        let mut append = |carried: Carried<'_>| self.append(&objects, carried);
        let broken = carry(file, pack, staying, &shelf.codec, &mut append);
        let broken = broken.map_err(|error| match error {
            Failed::Reading(error) => Error::io("cannot read a pack of objects", &path, error),
            Failed::Writing(error) => error,
        })?;
        Ok(broken.into_iter().collect())
    }

    fn append(&mut self, objects: &Objects, carried: Carried<'_>) -> Result<()> {
        let mut outlet = match self.outlet.take() {
            Some(outlet) => outlet,
            None => {
                let outlet = begin(objects, objects.0.limits)?;
                self.own.insert(outlet.name().stem);
                outlet
            }
        };
        let Carried { id, raw } = carried;
        let (kind, len) = (raw.block.kind, raw.block.raw as usize);
        outlet.append(id, kind, len, raw.stored).map_err(|error| {
            let what = "cannot copy objects; nothing that was stored before is lost";
            Error::io(what, &objects.0.shelf.dir, error)
        })?;
        if outlet.is_full() {
            return outlet.seal();
        }
        self.outlet = Some(outlet);
        Ok(())
    }

    /// Makes durable what was copied.
    fn commit(&mut self) -> Result<()> {
        if let Some(outlet) = self.outlet.take() {
            self.outlet = outlet.commit_and_go_on()?;
        }
        Ok(())
    }

    /// Removes a pack. Nobody relies on anything in it.
    fn remove(&mut self, source: &Source) -> Result<()> {
        let shelf = &self.stock.objects.0.shelf;
        let name = self.stock.packs[source.number].name;
        let path = name.path(&shelf.dir);
        let len = source.file.len();
        self.gone += len.map_err(|error| Error::io("cannot measure a pack", &path, error))?;
        match shelf.storage.remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let what = "cannot remove a pack of objects";
                return Err(Error::io(what, &path, error));
            }
            _ => {}
        }
        shelf.forget(name);
        self.stock.packs[source.number].is_removed = true;
        Ok(())
    }
}

impl Stock {
    /// Returns the packs in the order in which they are looked at: first those of
    /// which the least has to be copied.
    pub(super) fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.packs.len()).collect();
        order.sort_by_key(|n| {
            let stocked = &self.packs[*n];
            (stocked.len.saturating_sub(stocked.dead), stocked.name.stem)
        });
        order
    }
}
