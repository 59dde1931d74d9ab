//! Content-addressed storage for snapshots.
//!
//! An object's name is the BLAKE3 hash of its content. Objects are kept in packs: files
//! that only grow, that one process at a time appends to, and that are sealed with a
//! sorted index when they are full. `docs/format.md` describes the bytes.
//!
//! Objects that [`ObjectWriter::finish`] acknowledged survive a power cut. Every read is
//! checked against the object's name, so wrong content is never returned. An object may
//! be in several packs; if one copy is damaged, another one is used. Whether an object is
//! stored is answered from the index alone, without reading the object: a damaged copy
//! counts as stored until this process has read it with [`Objects::read`] or
//! [`Objects::verify`]. From then on it does not count, and the next writer that puts the
//! object stores it again.
//!
//! Only a [`Sweep`] removes objects, and it removes whole packs. A reader that finds a
//! pack gone lists the packs again.

mod blocks;
mod checked_read;
mod cleanup;
mod codec;
mod entry;
mod extents;
mod format;
mod inventory;
mod object_table;
mod pack;
mod pack_locks;
mod pack_name;
mod pack_set;
mod pack_writer;
mod sweep;
mod verify;
mod writer;

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod objects_tests;
#[cfg(test)]
mod sweep_tests;
#[cfg(test)]
mod testing;

use std::path::Path;
use std::sync::Arc;

pub use crate::ids::ObjectId;
pub(crate) use inventory::Inventory;
pub(crate) use object_table::{Mark, ObjectTable};
pub(crate) use sweep::{LiveObjects, SkipReason, Sweep, Swept};
#[allow(unused_imports, reason = "named by those who call `verify`")]
pub(crate) use verify::{Depth, PackDamage, Verified};
pub(crate) use writer::{ObjectWriter, SHORT_STREAM};

use crate::error::{Error, ErrorKind, Result};
use crate::random::Randomness;
use crate::storage::Storage;
use entry::PackEntry;
use format::{Block, BlockKind, List};
use pack::Pack;
use pack_name::PackName;
use pack_set::{PackSet, Packs};
use pack_writer::PackLimits;

/// The most often that packs are listed to find one object.
const LISTINGS: u32 = 64;
/// How deep lists may refer to other lists. Lists written here refer to none.
const DEPTH: u32 = 4;

/// The store's objects. Cheap to clone, and shared between threads.
#[derive(Debug, Clone)]
pub(crate) struct Objects(Arc<ObjectsInner>);

#[derive(Debug)]
struct ObjectsInner {
    pack_set: Arc<PackSet>,
    random: Arc<dyn Randomness>,
    limits: PackLimits,
}

impl Objects {
    /// Opens the objects in `dir` with packs of the default length.
    #[cfg(test)]
    pub(crate) fn new(storage: Arc<dyn Storage>, random: Arc<dyn Randomness>, dir: &Path) -> Self {
        Self::with_packs_of(Self::DEFAULT_PACK, storage, random, dir)
    }

    /// The length at which a pack is sealed.
    pub(crate) const DEFAULT_PACK: u64 = PackLimits::DEFAULT.seal_at;

    /// Opens the objects in `dir`, which need not exist yet, with packs that are sealed
    /// at `pack` bytes. Nothing is read until an object is requested.
    pub(crate) fn with_packs_of(
        pack: u64,
        storage: Arc<dyn Storage>,
        random: Arc<dyn Randomness>,
        dir: &Path,
    ) -> Self {
        let limits = PackLimits {
            seal_at: pack,
            ..PackLimits::DEFAULT
        };
        Self::with_limits(storage, random, dir, limits)
    }

    fn with_limits(
        storage: Arc<dyn Storage>,
        random: Arc<dyn Randomness>,
        dir: &Path,
        limits: PackLimits,
    ) -> Self {
        let pack_set = Arc::new(PackSet::new(storage, dir));
        Self(Arc::new(ObjectsInner {
            pack_set,
            random,
            limits,
        }))
    }

    /// Reads an object and checks it.
    pub(crate) fn read(&self, id: &ObjectId) -> Result<Vec<u8>> {
        let mut content = Vec::new();
        match self.fetch(id)? {
            PackEntry::Piece(piece) => return Ok(piece),
            PackEntry::List(list) => self.read_list(&list, DEPTH, &mut |piece| {
                content.extend_from_slice(piece);
                Ok(())
            })?,
        }
        Ok(content)
    }

    /// Reads an object piece by piece in constant memory, checking each piece.
    ///
    /// Whether the pieces make up the whole object is only known at the end: pieces
    /// passed to `take` before an error have correct content, but may not belong to the
    /// object.
    pub(crate) fn read_to(
        &self,
        id: &ObjectId,
        take: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        self.read_at_depth(id, DEPTH, take)
    }

    /// Returns whether an object is stored.
    pub(crate) fn contains(&self, id: &ObjectId) -> Result<bool> {
        let found = self.look_up(|packs| self.is_in(packs, id).then_some(()))?;
        Ok(found.is_some())
    }

    /// Returns whether an object is stored with all its chunks, without reading their
    /// bytes.
    pub(crate) fn contains_whole(&self, id: &ObjectId) -> Result<bool> {
        self.contains_at_depth(id, DEPTH)
    }

    fn contains_at_depth(&self, id: &ObjectId, depth: u32) -> Result<bool> {
        if !self.contains(id)? {
            return Ok(false);
        }
        if !self.is_list(id)? {
            return Ok(true);
        }
        let PackEntry::List(list) = self.fetch(id)? else {
            return Ok(true);
        };
        let Some(depth) = depth.checked_sub(1) else {
            return Ok(false);
        };
        for chunk in &list.chunks {
            if !self.contains_at_depth(chunk, depth)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the length of an object's content, reading as little as possible; `None` if
    /// it is not stored.
    pub(crate) fn length(&self, id: &ObjectId) -> Result<Option<u64>> {
        let header = self.headers(id)?.into_iter().next();
        Ok(match header {
            Some(block) if block.kind == BlockKind::List => match self.fetch(id)? {
                PackEntry::Piece(piece) => Some(piece.len() as u64),
                PackEntry::List(list) => Some(list.len),
            },
            header => header.map(|block| block.raw.into()),
        })
    }

    /// Returns whether a copy of an object is a list of chunks, reading only its header.
    fn is_list(&self, id: &ObjectId) -> Result<bool> {
        let headers = self.headers(id)?;
        Ok(headers.iter().any(|block| block.kind == BlockKind::List))
    }

    /// Returns the headers of an object's copies.
    fn headers(&self, id: &ObjectId) -> Result<Vec<Block>> {
        let pack_set = &self.0.pack_set;
        let packs = pack_set.packs()?;
        let places = pack_set.places(&packs, id);
        let header = |(pack, at): (&Arc<Pack>, u32)| pack_set.header(pack, at).ok().flatten();
        Ok(places.filter_map(header).collect())
    }

    /// Returns whether some copy of an object can be read completely.
    pub(crate) fn is_whole(&self, id: &ObjectId) -> Result<bool> {
        match self.read_to(id, &mut |_| Ok(())) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Corrupt => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns how many bytes the objects take on disk.
    pub(crate) fn size(&self) -> Result<u64> {
        let mut size = 0;
        for name in self.0.pack_set.names()? {
            size += self.0.pack_set.len_of(name)?.unwrap_or(0);
        }
        Ok(size)
    }

    /// Starts a writer. Nothing counts as stored before [`ObjectWriter::finish`].
    pub(crate) fn writer(&self) -> Result<ObjectWriter> {
        ObjectWriter::new(self, self.0.limits)
    }

    fn is_in(&self, packs: &Packs, id: &ObjectId) -> bool {
        let pack_set = &self.0.pack_set;
        pack_set.places(packs, id).any(|(pack, at)| {
            let sure = u64::from(at) < pack.durable() && !pack_set.is_broken(pack, at);
            sure || matches!(pack_set.entry(pack, at, id), Ok(Some(_)))
        })
    }

    fn read_at_depth(
        &self,
        id: &ObjectId,
        depth: u32,
        take: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        match self.fetch(id)? {
            PackEntry::Piece(piece) => take(&piece),
            PackEntry::List(list) => self.read_list(&list, depth, take),
        }
    }

    fn read_list(
        &self,
        list: &List,
        depth: u32,
        take: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let damaged = || {
            let what = format!("object {} is damaged: its chunks do not match", list.id);
            Error::new(ErrorKind::Corrupt, what).at_path(&self.0.pack_set.dir)
        };
        let depth = depth.checked_sub(1).ok_or_else(damaged)?;
        let mut hasher = blake3::Hasher::new();
        for chunk in &list.chunks {
            self.read_at_depth(chunk, depth, &mut |piece| {
                hasher.update(piece);
                if hasher.count() > list.len {
                    return Err(damaged());
                }
                take(piece)
            })
            .map_err(|error| part_of(&list.id, error))?;
        }
        if hasher.count() != list.len || ObjectId::finish(&hasher) != list.id {
            return Err(damaged());
        }
        Ok(())
    }

    /// Searches the packs that are known, then the packs that exist now.
    ///
    /// A pack is removed only after everything needed from it was copied, but the copy
    /// may be in a pack that the listing did not include yet. So packs are listed until
    /// the listing stays the same.
    fn look_up<T>(&self, mut find: impl FnMut(&Packs) -> Option<T>) -> Result<Option<T>> {
        let mut packs = self.0.pack_set.packs()?;
        // Limited, because with other writers constantly at work the listing never
        // settles.
        for _ in 0..LISTINGS {
            if let Some(found) = find(&packs) {
                return Ok(Some(found));
            }
            let now = self.0.pack_set.refresh()?;
            if is_same(&now, &packs) {
                break;
            }
            packs = now;
        }
        Ok(None)
    }

    /// Finds an object: in the packs that are known, in those that exist now, and finally
    /// in the readable parts of damaged packs.
    fn fetch(&self, id: &ObjectId) -> Result<PackEntry> {
        let pack_set = &self.0.pack_set;
        let mut worst = None;
        let found = self.look_up(|packs| self.fetch_from(packs, id, &mut worst));
        if let Some(entry) = found? {
            return Ok(entry);
        }
        if let Some(entry) = self.fetch_from(&pack_set.rescan()?, id, &mut worst) {
            return Ok(entry);
        }
        Err(worst.or_else(|| pack_set.newer()).unwrap_or_else(|| {
            let what = format!("object {id} is missing");
            Error::new(ErrorKind::Corrupt, what).at_path(&pack_set.dir)
        }))
    }

    /// Returns whether a pack other than `but` has an intact copy of an object.
    fn is_in_another_pack(&self, id: &ObjectId, but: PackName) -> Result<bool> {
        let pack_set = &self.0.pack_set;
        let packs = pack_set.refresh()?;
        Ok(pack_set.places(&packs, id).any(|(pack, at)| {
            let is_other = pack.name.stem != but.stem;
            is_other && matches!(pack_set.entry(pack, at, id), Ok(Some(_)))
        }))
    }

    /// Finds an object in `packs`; the last problem with a copy is stored in `worst`.
    fn fetch_from(
        &self,
        packs: &Packs,
        id: &ObjectId,
        worst: &mut Option<Error>,
    ) -> Option<PackEntry> {
        let pack_set = &self.0.pack_set;
        for pack in packs.iter() {
            let path = pack_set.path(pack.name);
            let unreadable = |error| Error::io(format!("cannot read object {id}"), &path, error);
            let places = pack_set.find(pack, id);
            let places = places.map_err(|error| *worst = Some(unreadable(error)));
            for at in places.unwrap_or_default() {
                match pack_set.entry(pack, at, id) {
                    Ok(Some(entry)) => return Some(entry),
                    Ok(None) => {
                        let what = format!("object {id} is damaged");
                        let error = Error::new(ErrorKind::Corrupt, what).at_path(&path);
                        *worst = Some(error.at_byte(at.into()));
                    }
                    Err(error) => *worst = Some(unreadable(error)),
                }
            }
        }
        None
    }
}

/// Returns whether two listings contain the same packs in the same state.
fn is_same(a: &Packs, b: &Packs) -> bool {
    a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| Arc::ptr_eq(a, b))
}

/// Adds the object's id to an error about one of its chunks.
fn part_of(id: &ObjectId, error: Error) -> Error {
    if error.kind() != ErrorKind::Corrupt {
        return error;
    }
    let mut whole = Error::new(
        ErrorKind::Corrupt,
        format!("object {id}: {}", error.message()),
    );
    if let Some(path) = error.path() {
        whole = whole.at_path(path);
    }
    error.byte().into_iter().fold(whole, Error::at_byte)
}
