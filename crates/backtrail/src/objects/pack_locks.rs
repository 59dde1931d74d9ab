//! The packs that a writer has locked, to rely on their entries or to append.
//!
//! Entries that another writer committed may not be durable yet, and are rolled back if
//! they cannot be made so. The holder of the pack's lock decides. So a writer relies on
//! such an entry only while it holds that lock, and syncs the pack before it finishes. If
//! the lock is not free, the writer stores the object again itself. Locks are only ever
//! tried, so no writer waits for another.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

use super::Objects;
use super::pack::{Pack, PackFile};
use super::pack_name::PackName;
use super::pack_set::{PackSet, Packs};
use super::pack_writer::{PackLimits, PackWriter};
use crate::error::{Error, IoContext, Result};
use crate::storage::{StorageFile, if_found, make_dir};
use crate::sync::lock;

/// Packs by the stem of their name.
#[derive(Debug, Default)]
pub(super) struct PackLocks(Mutex<HashMap<u64, PackLock>>);

#[derive(Debug)]
enum PackLock {
    /// The lock is held, and the pack is unchanged since it was opened.
    Held(Arc<dyn StorageFile>, Arc<Pack>),
    /// The same, and the pack is the one being appended to, whose commit syncs it.
    Writer,
    /// The lock could not be taken.
    NotHeld,
}

impl PackLocks {
    /// Takes a pack's lock if it is free. Returns whether it is held and the pack is
    /// unchanged since it was opened.
    pub(super) fn try_lock(&self, pack_set: &PackSet, pack: &Arc<Pack>) -> bool {
        let mut locks = lock(&self.0);
        let state = locks.entry(pack.name.stem).or_insert_with(|| {
            // A pack that cannot be read or locked is not relied on.
            let Ok(Some(file)) = try_lock_pack(pack_set, pack.name) else {
                return PackLock::NotHeld;
            };
            match pack.has_changed(file.as_ref()) {
                Ok(false) => PackLock::Held(file, Arc::clone(pack)),
                _ => PackLock::NotHeld,
            }
        });
        !matches!(state, PackLock::NotHeld)
    }

    /// Makes the entries that were relied on durable, except in the pack being appended
    /// to, whose commit does that.
    pub(super) fn sync(&self, pack_set: &PackSet) -> Result<()> {
        for state in lock(&self.0).values() {
            let PackLock::Held(file, pack) = state else {
                continue;
            };
            let (name, end) = (pack.name, pack.end);
            let synced = if pack.is_sealed() {
                pack_set.promote(name, file.as_ref())
            } else {
                file.sync()
            };
            let what = "cannot sync existing objects";
            synced.context(what, &pack_set.path(name))?;
            pack_set.settle(name, end);
        }
        Ok(())
    }

    /// Finds a pack to append to, or creates one.
    pub(super) fn pack_writer(
        &self,
        objects: &Objects,
        limits: PackLimits,
        packs: &Packs,
    ) -> Result<PackWriter> {
        let pack_set = &objects.0.pack_set;
        let failed = |name: PackName| {
            let path = pack_set.path(name);
            move |error| Error::io("cannot append to an object pack", &path, error)
        };
        let mut locks = lock(&self.0);
        if let Some((file, pack)) = take_appendable(&mut locks) {
            let name = pack.name;
            return PackWriter::resume(pack_set, limits, file, pack).map_err(failed(name));
        }
        let open = packs.iter().filter(|pack| !pack.name.is_sealed);
        for pack in open {
            let state = locks.entry(pack.name.stem).or_insert(PackLock::NotHeld);
            if let PackLock::NotHeld = state
                && let Some(pack_writer) =
                    try_resume(pack_set, limits, pack, state).map_err(failed(pack.name))?
            {
                return Ok(pack_writer);
            }
        }
        for name in pack_set.empty() {
            if let Some(pack_writer) = try_new_in(pack_set, limits, name).map_err(failed(name))? {
                return Ok(pack_writer);
            }
        }
        new_pack(objects, limits)
    }
}

/// Takes out a locked pack that is not sealed and records it as the one being written.
fn take_appendable(
    locks: &mut HashMap<u64, PackLock>,
) -> Option<(Arc<dyn StorageFile>, Arc<Pack>)> {
    let is_open =
        |state: &&mut PackLock| matches!(state, PackLock::Held(_, pack) if !pack.is_sealed());
    let state = locks.values_mut().find(is_open)?;
    match std::mem::replace(state, PackLock::Writer) {
        PackLock::Held(file, pack) => Some((file, pack)),
        PackLock::Writer | PackLock::NotHeld => None,
    }
}

/// Opens a pack and takes its lock, if it exists and the lock is free.
pub(super) fn try_lock_pack(
    pack_set: &PackSet,
    name: PackName,
) -> io::Result<Option<Arc<dyn StorageFile>>> {
    match if_found(pack_set.storage.open_append(&pack_set.path(name)))? {
        Some(file) => Ok(file.try_lock()?.then_some(file)),
        None => Ok(None),
    }
}

/// Resumes a pack unless it is locked or full.
fn try_resume(
    pack_set: &Arc<PackSet>,
    limits: PackLimits,
    pack: &Arc<Pack>,
    state: &mut PackLock,
) -> io::Result<Option<PackWriter>> {
    let Some(file) = try_lock_pack(pack_set, pack.name)? else {
        return Ok(None);
    };
    let mut pack = Arc::clone(pack);
    let has_changed = pack.has_changed(file.as_ref())?;
    if has_changed {
        match Pack::open(file.as_ref(), pack.name, &pack_set.codec)? {
            PackFile::Pack(mut changed) => {
                pack_set.apply_settled(&mut changed);
                pack = Arc::from(changed);
            }
            PackFile::Empty | PackFile::Newer | PackFile::Foreign => return Ok(None),
        }
    }
    if pack.is_sealed() {
        // Its writer died between writing the seal and renaming the pack.
        // Another clean-up may have renamed and removed it meanwhile.
        return if_found(pack_set.promote(pack.name, file.as_ref())).map(|_| None);
    }
    if !has_changed {
        *state = PackLock::Writer;
    }
    PackWriter::resume(pack_set, limits, file, pack).map(Some)
}

/// Starts a pack in a file that a dead writer left empty.
fn try_new_in(
    pack_set: &Arc<PackSet>,
    limits: PackLimits,
    name: PackName,
) -> io::Result<Option<PackWriter>> {
    let Some(file) = try_lock_pack(pack_set, name)? else {
        return Ok(None);
    };
    match Pack::open(file.as_ref(), name, &pack_set.codec)? {
        PackFile::Empty => PackWriter::begin(pack_set, limits, file, name).map(Some),
        _ => Ok(None),
    }
}

/// Creates a pack, and the directory if it is the first one.
pub(super) fn new_pack(objects: &Objects, limits: PackLimits) -> Result<PackWriter> {
    let pack_set = &objects.0.pack_set;
    let failed = |error| Error::io("cannot create an object pack", &pack_set.dir, error);
    make_dir(pack_set.storage.as_ref(), &pack_set.dir).map_err(failed)?;
    let mut stem = [0; 8];
    objects.0.random.fill(&mut stem).map_err(failed)?;
    let name = PackName::open(u64::from_be_bytes(stem));
    let file = pack_set.storage.create_new(&pack_set.path(name));
    let file = file.map_err(failed)?;
    match file.try_lock() {
        Ok(true) => PackWriter::begin(pack_set, limits, file, name).map_err(failed),
        // Another writer locked the empty file first; use another name.
        Ok(false) => new_pack(objects, limits),
        Err(error) => Err(failed(error)),
    }
}
