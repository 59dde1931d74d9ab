//! Content-addressed pieces of snapshots.
//!
//! An object's name is the BLAKE3 hash of its content. Objects stand in packs:
//! files that only grow, to which one process at a time appends, and which are
//! sealed with a sorted index when they are full. `docs/format.md` has the bytes.
//!
//! What [`ObjectWriter::finish`] acknowledged is there after a power cut. What
//! is read is checked against its name, so nothing wrong is ever returned. An
//! object may stand in several packs; where one copy is damaged another one is
//! taken. Whether an object is stored is answered by the index alone, without
//! reading it: a copy that damage broke counts as stored until this process has
//! read it, by [`Objects::read`] or [`Objects::verify`]; from then on it does
//! not, and is stored again by whoever puts it.
//!
//! Objects are removed by a [`Sweep`] alone, and by pack: readers that find one gone
//! list the packs again.

mod blocks;
mod carry;
mod codec;
mod entry;
mod extents;
mod format;
mod held;
mod id;
mod inventory;
mod name;
mod outlet;
mod pack;
mod shelf;
mod stock;
mod sweep;
mod tally;
mod tidy;
mod verify;
mod writer;

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod kit;
#[cfg(test)]
mod objects_tests;
#[cfg(test)]
mod sweep_tests;

use std::path::Path;
use std::sync::Arc;

pub use id::ObjectId;
pub(crate) use inventory::Inventory;
pub(crate) use stock::{Mark, Stock};
pub(crate) use sweep::{LeftBecause, Sweep, Swept, Watch};
#[allow(unused_imports, reason = "named by those who call `verify`")]
pub(crate) use verify::{Damage, Depth, Verified};
pub(crate) use writer::{ObjectWriter, SHORT_STREAM};

use crate::error::{Error, ErrorKind, Result};
use crate::random::Randomness;
use crate::storage::Storage;
use entry::Entry;
use format::{Kind, List};
use name::PackName;
use outlet::Limits;
use shelf::{Packs, Shelf};

/// How often packs are listed for one object, at the most.
const LISTINGS: u32 = 64;
/// How deep lists may name lists. Ours name none.
const DEPTH: u32 = 4;

/// The store's objects. Cheap to clone, and shared between threads.
#[derive(Debug, Clone)]
pub(crate) struct Objects(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    shelf: Arc<Shelf>,
    random: Arc<dyn Randomness>,
    limits: Limits,
}

impl Objects {
    /// Opens the objects in `dir`, with packs as long as usual.
    #[cfg(test)]
    pub(crate) fn new(storage: Arc<dyn Storage>, random: Arc<dyn Randomness>, dir: &Path) -> Self {
        Self::with_packs_of(Self::DEFAULT_PACK, storage, random, dir)
    }

    /// The length of a pack that is sealed.
    pub(crate) const DEFAULT_PACK: u64 = Limits::DEFAULT.seal_at;

    /// Opens the objects in `dir`, which need not be there yet; nothing is read
    /// before something is asked for. Packs are sealed at a length.
    pub(crate) fn with_packs_of(
        pack: u64,
        storage: Arc<dyn Storage>,
        random: Arc<dyn Randomness>,
        dir: &Path,
    ) -> Self {
        let limits = Limits {
            seal_at: pack,
            ..Limits::DEFAULT
        };
        Self::with_limits(storage, random, dir, limits)
    }

    fn with_limits(
        storage: Arc<dyn Storage>,
        random: Arc<dyn Randomness>,
        dir: &Path,
        limits: Limits,
    ) -> Self {
        let shelf = Arc::new(Shelf::new(storage, dir));
        Self(Arc::new(Inner {
            shelf,
            random,
            limits,
        }))
    }

    /// Reads an object and checks it.
    pub(crate) fn read(&self, id: &ObjectId) -> Result<Vec<u8>> {
        let mut content = Vec::new();
        match self.fetch(id)? {
            Entry::Piece(piece) => return Ok(piece),
            Entry::List(list) => self.read_list(&list, DEPTH, &mut |piece| {
                content.extend_from_slice(piece);
                Ok(())
            })?,
        }
        Ok(content)
    }

    /// Reads an object piece by piece, each checked, in constant memory.
    ///
    /// That the pieces are the object as a whole is known at the end: what was
    /// taken before an error is right, but may not be what was asked for.
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

    /// Returns whether an object is stored with all its chunks. Their bytes are
    /// not looked at.
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
        let Entry::List(list) = self.fetch(id)? else {
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

    /// Returns whether a copy of an object is a list of chunks. Only its header is
    /// read.
    fn is_list(&self, id: &ObjectId) -> Result<bool> {
        let shelf = &self.0.shelf;
        for pack in self.0.shelf.packs()?.iter() {
            let places = shelf.find(pack, id).unwrap_or_default();
            for at in places {
                let kind = shelf.kind(pack, at);
                if kind.is_ok_and(|kind| kind == Some(Kind::List)) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Returns whether there is a copy of an object that can be read to its end.
    pub(crate) fn is_whole(&self, id: &ObjectId) -> Result<bool> {
        match self.read_to(id, &mut |_| Ok(())) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Corrupt => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns how many bytes the objects take on disk.
    pub(crate) fn size(&self) -> Result<u64> {
        let shelf = &self.0.shelf;
        let mut size = 0;
        for name in shelf.names()? {
            match shelf.file(name).and_then(|file| file.len()) {
                Ok(len) => size += len,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    let path = name.path(&shelf.dir);
                    return Err(Error::io("cannot measure a pack of objects", &path, error));
                }
            }
        }
        Ok(size)
    }

    /// Begins to write. Nothing counts as stored before [`ObjectWriter::finish`].
    pub(crate) fn writer(&self) -> Result<ObjectWriter> {
        ObjectWriter::new(self, self.0.limits)
    }

    fn is_in(&self, packs: &Packs, id: &ObjectId) -> bool {
        let shelf = &self.0.shelf;
        packs.iter().any(|pack| {
            let places = shelf.find(pack, id).unwrap_or_default();
            places.into_iter().any(|at| {
                let sure = u64::from(at) < pack.durable() && !shelf.is_broken(pack, at);
                sure || matches!(shelf.entry(pack, at, id), Ok(Some(_)))
            })
        })
    }

    fn read_at_depth(
        &self,
        id: &ObjectId,
        depth: u32,
        take: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        match self.fetch(id)? {
            Entry::Piece(piece) => take(&piece),
            Entry::List(list) => self.read_list(&list, depth, take),
        }
    }

    fn read_list(
        &self,
        list: &List,
        depth: u32,
        take: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let damaged = || {
            let what = format!("object {} is damaged: its chunks are not it", list.id);
            Error::new(ErrorKind::Corrupt, what).at_path(&self.0.shelf.dir)
        };
        let depth = depth.checked_sub(1).ok_or_else(damaged)?;
        let mut hasher = blake3::Hasher::new();
        for chunk in &list.chunks {
            self.read_at_depth(chunk, depth, &mut |piece| {
                hasher.update(piece);
                take(piece)
            })
            .map_err(|error| part_of(&list.id, error))?;
        }
        if hasher.count() != list.len || ObjectId::finish(&hasher) != list.id {
            return Err(damaged());
        }
        Ok(())
    }

    /// Looks for something in the packs that are known, then in those that there are
    /// now.
    ///
    /// A pack that is gone was removed after what is needed of it was copied, but the
    /// copy may be in one that the listing did not have yet. So they are listed until
    /// the listing stays the same.
    fn look_up<T>(&self, mut find: impl FnMut(&Packs) -> Option<T>) -> Result<Option<T>> {
        let mut packs = self.0.shelf.packs()?;
        // Where others write without a pause, it never does.
        for _ in 0..LISTINGS {
            if let Some(found) = find(&packs) {
                return Ok(Some(found));
            }
            let now = self.0.shelf.refresh()?;
            if is_same(&now, &packs) {
                break;
            }
            packs = now;
        }
        Ok(None)
    }

    /// Finds an object: in the packs that are known, in those that there are
    /// now, and at last in what damage has left of them.
    fn fetch(&self, id: &ObjectId) -> Result<Entry> {
        let shelf = &self.0.shelf;
        let mut worst = None;
        let found = self.look_up(|packs| self.fetch_from(packs, id, &mut worst));
        if let Some(entry) = found? {
            return Ok(entry);
        }
        if let Some(entry) = self.fetch_from(&shelf.look_closely()?, id, &mut worst) {
            return Ok(entry);
        }
        Err(worst.or_else(|| shelf.newer()).unwrap_or_else(|| {
            let what = format!("object {id} is not there");
            Error::new(ErrorKind::Corrupt, what).at_path(&shelf.dir)
        }))
    }

    /// Returns whether a pack other than one has an object whole.
    fn is_beside(&self, id: &ObjectId, but: PackName) -> Result<bool> {
        let shelf = &self.0.shelf;
        let packs = shelf.refresh()?;
        let mut others = packs.iter().filter(|pack| pack.name.stem != but.stem);
        Ok(others.any(|pack| {
            let places = shelf.find(pack, id).unwrap_or_default();
            let mut places = places.into_iter();
            places.any(|at| matches!(shelf.entry(pack, at, id), Ok(Some(_))))
        }))
    }

    /// Finds an object in packs; what is wrong with a copy goes to `worst`.
    fn fetch_from(&self, packs: &Packs, id: &ObjectId, worst: &mut Option<Error>) -> Option<Entry> {
        let shelf = &self.0.shelf;
        for pack in packs.iter() {
            let path = pack.name.path(&shelf.dir);
            let unreadable = |error| Error::io(format!("cannot read object {id}"), &path, error);
            let places = shelf.find(pack, id);
            let places = places.map_err(|error| *worst = Some(unreadable(error)));
            for at in places.unwrap_or_default() {
                match shelf.entry(pack, at, id) {
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

/// Returns whether two listings are of the same packs, as they were.
fn is_same(a: &Packs, b: &Packs) -> bool {
    a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| Arc::ptr_eq(a, b))
}

/// Says which object it was whose chunk could not be read.
fn part_of(id: &ObjectId, error: Error) -> Error {
    if error.kind() != ErrorKind::Corrupt {
        return error;
    }
    let mut whole = Error::new(ErrorKind::Corrupt, format!("object {id}: {error}"));
    if let Some(path) = error.path() {
        whole = whole.at_path(path);
    }
    error.byte().into_iter().fold(whole, Error::at_byte)
}
