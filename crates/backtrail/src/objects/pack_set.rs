//! All packs of a store: which exist, and what this process knows about them.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::ObjectId;
use super::codec::Codec;
use super::entry::{PackEntry, proven_id, read_entry};
use super::extents::block_at;
use super::format::Block;
use super::pack::{Pack, PackFile};
use super::pack_name::PackName;
use crate::error::{Error, ErrorKind, IoContext, Result};
use crate::storage::{Storage, StorageFile, directory, if_found};
use crate::sync::lock;

/// How many packs are kept open; a store may have more packs than a process may open
/// files.
const OPEN_FILES: usize = 48;

/// The error for a pack that cannot be read.
pub(super) const UNREADABLE: &str = "cannot read an object pack";

pub(super) type Packs = Arc<[Arc<Pack>]>;

/// The packs in a directory.
#[derive(Debug)]
pub(super) struct PackSet {
    pub(super) storage: Arc<dyn Storage>,
    pub(super) dir: PathBuf,
    pub(super) codec: Codec,
    files: Mutex<VecDeque<(u64, Arc<dyn StorageFile>)>>,
    cache: Mutex<PackCache>,
    /// Held while the directory is listed, so that threads list it only once.
    listing: Mutex<()>,
}

#[derive(Debug, Default)]
struct PackCache {
    packs: Option<Packs>,
    /// Files without content, for the next writer to use.
    empty: Vec<PackName>,
    /// A pack in a newer format.
    newer: Option<PathBuf>,
    /// How far this process made each pack durable, or saw that it is.
    settled: HashMap<u64, u64>,
    /// Entries that were read and failed their check.
    broken: HashSet<(u64, u32)>,
    /// Packs that were rescanned, with their length at the time.
    rescanned: HashSet<(u64, u64)>,
}

impl PackSet {
    pub(super) fn new(storage: Arc<dyn Storage>, dir: &Path) -> Self {
        Self {
            storage,
            dir: dir.to_owned(),
            codec: Codec::default(),
            files: Mutex::default(),
            cache: Mutex::default(),
            listing: Mutex::default(),
        }
    }

    /// Returns the packs as last listed, listing them if that has not happened yet.
    pub(super) fn packs(&self) -> Result<Packs> {
        let known = lock(&self.cache).packs.clone();
        known.map_or_else(|| self.refresh(), Ok)
    }

    /// Lists the packs and opens those that are new or have changed.
    pub(super) fn refresh(&self) -> Result<Packs> {
        let _listing = lock(&self.listing);
        let before = lock(&self.cache).packs.clone().unwrap_or_default();
        let before: HashMap<u64, &Arc<Pack>> =
            before.iter().map(|pack| (pack.name.stem, pack)).collect();
        let (mut packs, mut empty, mut newer) = (Vec::new(), Vec::new(), None);
        for name in self.names()? {
            let known = before.get(&name.stem).copied();
            match self.open_pack(name, known) {
                Ok(Refreshed::Same(pack)) => packs.push(pack),
                Ok(Refreshed::New(PackFile::Pack(mut pack))) => {
                    self.apply_settled(&mut pack);
                    packs.push(Arc::from(pack));
                }
                Ok(Refreshed::New(PackFile::Empty)) if !name.is_sealed => empty.push(name),
                Ok(Refreshed::New(PackFile::Newer)) => newer = Some(self.path(name)),
                Ok(Refreshed::New(PackFile::Empty | PackFile::Foreign)) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(Error::io(UNREADABLE, &self.path(name), error)),
            }
        }
        let packs = Packs::from(packs);
        self.forget_others(&packs);
        let mut known = lock(&self.cache);
        known.packs = Some(Arc::clone(&packs));
        (known.empty, known.newer) = (empty, newer);
        Ok(packs)
    }

    /// Closes the files of removed packs: an open file would keep its space in use.
    fn forget_others(&self, packs: &Packs) {
        let there: HashSet<u64> = packs.iter().map(|pack| pack.name.stem).collect();
        lock(&self.files).retain(|(stem, _)| there.contains(stem));
        let mut known = lock(&self.cache);
        known.settled.retain(|stem, _| there.contains(stem));
        known.broken.retain(|(stem, _)| there.contains(stem));
        known.rescanned.retain(|(stem, _)| there.contains(stem));
    }

    /// Closes the file of a removed pack.
    pub(super) fn forget(&self, name: PackName) {
        lock(&self.files).retain(|(stem, _)| *stem != name.stem);
    }

    /// Reads every block of every pack to find entries hidden by damage.
    pub(super) fn rescan(&self) -> Result<Packs> {
        let _listing = lock(&self.listing);
        let mut packs: Vec<_> = lock(&self.cache)
            .packs
            .iter()
            .flat_map(|p| p.to_vec())
            .collect();
        for pack in &mut packs {
            let seen = (pack.name.stem, pack.len);
            if lock(&self.cache).rescanned.contains(&seen) {
                continue;
            }
            let file = self.file(pack.name);
            let found = file.and_then(|file| pack.rescan(file.as_ref(), &self.codec));
            let Some(found) = if_found(found).context(UNREADABLE, &self.path(pack.name))? else {
                continue;
            };
            lock(&self.cache).rescanned.insert(seen);
            if let Some(mut found) = found {
                self.apply_settled(&mut found);
                *pack = Arc::new(found);
            }
        }
        let packs = Packs::from(packs);
        lock(&self.cache).packs = Some(Arc::clone(&packs));
        Ok(packs)
    }

    /// Returns the name of every pack once: the sealed name if it has both.
    pub(super) fn names(&self) -> Result<Vec<PackName>> {
        let mut names = self.all_names()?;
        names.sort_unstable_by_key(|name| (name.stem, !name.is_sealed));
        names.dedup_by_key(|name| name.stem);
        Ok(names)
    }

    /// Returns all names of packs, in no particular order.
    pub(super) fn all_names(&self) -> Result<Vec<PackName>> {
        let listed = if_found(self.storage.list(&self.dir));
        let listed = listed.context("cannot list the objects", &self.dir)?;
        let listed = listed.unwrap_or_default();
        Ok(listed
            .iter()
            .filter_map(|name| PackName::parse(name))
            .collect())
    }

    /// Returns a pack's path.
    pub(super) fn path(&self, name: PackName) -> PathBuf {
        name.path(&self.dir)
    }

    /// Returns a pack's length; `None` if it was removed.
    pub(super) fn len_of(&self, name: PackName) -> Result<Option<u64>> {
        let len = self.file(name).and_then(|file| file.len());
        if_found(len).context("cannot read the size of an object pack", &self.path(name))
    }

    fn open_pack(&self, name: PackName, known: Option<&Arc<Pack>>) -> io::Result<Refreshed> {
        if let Some(pack) = known.filter(|pack| pack.name.is_sealed) {
            return Ok(Refreshed::Same(Arc::clone(pack)));
        }
        let file = self.file(name)?;
        if let Some(pack) = known.filter(|pack| pack.name == name)
            && !pack.has_changed(file.as_ref())?
        {
            return Ok(Refreshed::Same(Arc::clone(pack)));
        }
        Pack::open(file.as_ref(), name, &self.codec).map(Refreshed::New)
    }

    pub(super) fn apply_settled(&self, pack: &mut Pack) {
        let settled = lock(&self.cache).settled.get(&pack.name.stem).copied();
        if let Some(settled) = settled.filter(|settled| *settled <= pack.end) {
            pack.settled = pack.settled.max(settled);
        }
    }

    /// Returns a pack's file, under whichever of its names it has now.
    pub(super) fn file(&self, name: PackName) -> io::Result<Arc<dyn StorageFile>> {
        {
            let files = lock(&self.files);
            if let Some((_, file)) = files.iter().find(|(stem, _)| *stem == name.stem) {
                return Ok(Arc::clone(file));
            }
        }
        let file = match if_found(self.storage.open_read(&self.path(name)))? {
            Some(file) => file,
            None => self.storage.open_read(&self.path(name.sealed()))?,
        };
        let mut files = lock(&self.files);
        files.push_front((name.stem, Arc::clone(&file)));
        files.truncate(OPEN_FILES);
        Ok(file)
    }

    /// Reads the entry at an offset if its content matches `id`.
    pub(super) fn entry(
        &self,
        pack: &Pack,
        at: u32,
        id: &ObjectId,
    ) -> io::Result<Option<PackEntry>> {
        let file = self.file(pack.name)?;
        let entry = read_entry(file.as_ref(), pack.salt(), at.into(), &self.codec)?;
        let entry = entry.filter(|entry| proven_id(entry) == *id);
        if entry.is_none() {
            self.mark_broken(pack, at);
        }
        Ok(entry)
    }

    /// Returns the header of the entry at an offset.
    pub(super) fn header(&self, pack: &Pack, at: u32) -> io::Result<Option<Block>> {
        block_at(self.file(pack.name)?.as_ref(), pack, at)
    }

    /// Remembers that the entry at an offset failed its check.
    pub(super) fn mark_broken(&self, pack: &Pack, at: u32) {
        lock(&self.cache).broken.insert((pack.name.stem, at));
    }

    pub(super) fn find(&self, pack: &Pack, id: &ObjectId) -> io::Result<Vec<u32>> {
        pack.find(|| self.file(pack.name), id)
    }

    /// Returns where packs list an object. A pack that cannot be read lists nothing.
    pub(super) fn places<'a>(
        &'a self,
        packs: &'a [Arc<Pack>],
        id: &'a ObjectId,
    ) -> impl Iterator<Item = (&'a Arc<Pack>, u32)> {
        packs.iter().flat_map(move |pack| {
            let places = self.find(pack, id).unwrap_or_default();
            places.into_iter().map(move |at| (pack, at))
        })
    }

    pub(super) fn is_broken(&self, pack: &Pack, at: u32) -> bool {
        lock(&self.cache).broken.contains(&(pack.name.stem, at))
    }

    /// Remembers that a pack is durable up to `end`.
    pub(super) fn settle(&self, name: PackName, end: u64) {
        lock(&self.cache).settled.insert(name.stem, end);
    }

    /// Returns the files that hold nothing yet.
    pub(super) fn empty(&self) -> Vec<PackName> {
        lock(&self.cache).empty.clone()
    }

    /// Returns an error if a pack has a newer format, in which an object may be hidden.
    pub(super) fn newer(&self) -> Option<Error> {
        let path = lock(&self.cache).newer.clone()?;
        let what = "an object pack was written by a newer version; upgrade Backtrail";
        Some(Error::new(ErrorKind::NewerFormat, what).at_path(&path))
    }

    /// Gives a pack whose seal is written its final name.
    ///
    /// The caller holds its lock. At every moment the pack durably has at least one of
    /// its two names.
    pub(super) fn promote(&self, name: PackName, file: &dyn StorageFile) -> io::Result<()> {
        file.sync()?;
        let (open, sealed) = (self.path(name), self.path(name.sealed()));
        match self.storage.link_new(&open, &sealed) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            // A clean-up by another process removed it just now.
            Err(error)
                if error.kind() == io::ErrorKind::NotFound && self.storage.exists(&sealed)? => {}
            linked => linked?,
        }
        self.storage.sync_dir(&self.dir)?;
        if_found(self.storage.remove_file(&open)).map(drop)
    }

    /// Makes the directory entries of packs durable.
    pub(super) fn sync_names(&self) -> io::Result<()> {
        self.storage.sync_dir(&self.dir)?;
        self.storage.sync_dir(directory(&self.dir))
    }
}

enum Refreshed {
    Same(Arc<Pack>),
    New(PackFile),
}
