//! The packs whose locks a writer holds: to rely on what is in them, or to
//! append.
//!
//! What another writer committed may not be durable yet, and is taken back if
//! it cannot be made so. Whoever holds the lock decides; so a writer relies on
//! such an entry only with the lock in its hands, and syncs before it finishes.
//! Where the lock is not free it stores the object itself, once more. Locks are
//! only ever tried for, so nobody waits for anybody.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

use super::Objects;
use super::name::PackName;
use super::outlet::{Limits, Outlet};
use super::pack::{Look, Pack};
use super::shelf::{Packs, Shelf, lock};
use crate::error::{Error, Result};
use crate::storage::StorageFile;

/// Packs by their names.
#[derive(Debug, Default)]
pub(super) struct Held(Mutex<HashMap<u64, Hold>>);

#[derive(Debug)]
enum Hold {
    /// Its lock is held, and it is as it was when it was looked at.
    Here(Arc<dyn StorageFile>, Arc<Pack>),
    /// The same, and it is the one that is appended to, which syncs it.
    Outlet,
    /// It could not be had.
    Not,
}

impl Held {
    /// Takes a pack's lock if it can be had, and returns whether it is held and
    /// the pack is as it was when it was looked at.
    pub(super) fn hold(&self, shelf: &Shelf, pack: &Arc<Pack>) -> bool {
        let mut held = lock(&self.0);
        let hold = held.entry(pack.name.stem).or_insert_with(|| {
            // A pack that cannot be read or locked is one that is not relied on.
            let Ok(Some(file)) = take(shelf, pack.name) else {
                return Hold::Not;
            };
            match pack.has_changed(file.as_ref()) {
                Ok(false) => Hold::Here(file, Arc::clone(pack)),
                _ => Hold::Not,
            }
        });
        !matches!(hold, Hold::Not)
    }

    /// Makes durable what was relied on, save in the pack that is appended to,
    /// whose commit does that.
    pub(super) fn sync(&self, shelf: &Shelf) -> Result<()> {
        for hold in lock(&self.0).values() {
            let Hold::Here(file, pack) = hold else {
                continue;
            };
            let (name, end) = (pack.name, pack.end);
            let synced = if pack.is_sealed() {
                shelf.promote(name, file.as_ref())
            } else {
                file.sync()
            };
            synced.map_err(|error| {
                let what = "cannot make objects durable that were found";
                Error::io(what, &name.path(&shelf.dir), error)
            })?;
            shelf.settle(name, end);
        }
        Ok(())
    }

    /// Finds a pack to append to, or begins one.
    pub(super) fn outlet(
        &self,
        objects: &Objects,
        limits: Limits,
        packs: &Packs,
    ) -> Result<Outlet> {
        let shelf = &objects.0.shelf;
        let failed = |name: PackName| {
            let path = name.path(&shelf.dir);
            move |error| Error::io("cannot append to a pack of objects", &path, error)
        };
        let mut held = lock(&self.0);
        if let Some((file, pack)) = take_appendable(&mut held) {
            let name = pack.name;
            return Outlet::go_on(shelf, limits, file, pack).map_err(failed(name));
        }
        let open = packs.iter().filter(|pack| !pack.name.is_sealed);
        for pack in open {
            let hold = held.entry(pack.name.stem).or_insert(Hold::Not);
            if let Hold::Not = hold
                && let Some(outlet) =
                    try_open(shelf, limits, pack, hold).map_err(failed(pack.name))?
            {
                return Ok(outlet);
            }
        }
        for name in shelf.empty() {
            if let Some(outlet) = try_begin(shelf, limits, name).map_err(failed(name))? {
                return Ok(outlet);
            }
        }
        begin(objects, limits)
    }
}

/// Takes out a pack that is not sealed, leaving word that it was there.
fn take_appendable(held: &mut HashMap<u64, Hold>) -> Option<(Arc<dyn StorageFile>, Arc<Pack>)> {
    let is_open = |hold: &&mut Hold| matches!(hold, Hold::Here(_, pack) if !pack.is_sealed());
    let hold = held.values_mut().find(is_open)?;
    match std::mem::replace(hold, Hold::Outlet) {
        Hold::Here(file, pack) => Some((file, pack)),
        Hold::Outlet | Hold::Not => None,
    }
}

/// Opens a pack and takes its lock, if it is there and nobody has it.
pub(super) fn take(shelf: &Shelf, name: PackName) -> io::Result<Option<Arc<dyn StorageFile>>> {
    let file = match shelf.storage.open_append(&name.path(&shelf.dir)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    Ok(file.try_lock()?.then_some(file))
}

/// Goes on with a pack, unless somebody else has it or it is full.
fn try_open(
    shelf: &Arc<Shelf>,
    limits: Limits,
    pack: &Arc<Pack>,
    hold: &mut Hold,
) -> io::Result<Option<Outlet>> {
    let Some(file) = take(shelf, pack.name)? else {
        return Ok(None);
    };
    let mut pack = Arc::clone(pack);
    let has_changed = pack.has_changed(file.as_ref())?;
    if has_changed {
        match Pack::look(file.as_ref(), pack.name, &shelf.codec)? {
            Look::Pack(mut changed) => {
                shelf.apply_settled(&mut changed);
                pack = Arc::from(changed);
            }
            Look::Empty | Look::Newer | Look::Foreign => return Ok(None),
        }
    }
    if pack.is_sealed() {
        // Its writer died between the seal and the name.
        return match shelf.promote(pack.name, file.as_ref()) {
            // It had its name since, and is gone: another clean-up was faster.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            promoted => promoted.map(|()| None),
        };
    }
    if !has_changed {
        *hold = Hold::Outlet;
    }
    Outlet::go_on(shelf, limits, file, pack).map(Some)
}

/// Begins a pack in a file that a dead writer left empty.
fn try_begin(shelf: &Arc<Shelf>, limits: Limits, name: PackName) -> io::Result<Option<Outlet>> {
    let Some(file) = take(shelf, name)? else {
        return Ok(None);
    };
    match Pack::look(file.as_ref(), name, &shelf.codec)? {
        Look::Empty => Outlet::begin(shelf, limits, file, name).map(Some),
        _ => Ok(None),
    }
}

/// Begins a pack, and the directory with the first one.
pub(super) fn begin(objects: &Objects, limits: Limits) -> Result<Outlet> {
    let shelf = &objects.0.shelf;
    let failed = |error| Error::io("cannot begin a pack of objects", &shelf.dir, error);
    match shelf.storage.create_dir(&shelf.dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
        _ => {}
    }
    let mut stem = [0; 8];
    objects.0.random.fill(&mut stem).map_err(failed)?;
    let name = PackName::open(u64::from_be_bytes(stem));
    let file = shelf.storage.create_new(&name.path(&shelf.dir));
    let file = file.map_err(failed)?;
    match file.try_lock() {
        Ok(true) => Outlet::begin(shelf, limits, file, name).map_err(failed),
        // Somebody took the empty file at once; there is another name.
        Ok(false) => begin(objects, limits),
        Err(error) => Err(failed(error)),
    }
}
