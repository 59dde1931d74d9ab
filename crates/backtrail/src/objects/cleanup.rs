//! Cleans up what dead writers and a killed sweep left behind, and lists what remains in
//! an object table.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use super::Objects;
use super::object_table::{ObjectTable, PackState};
use super::pack::{Pack, PackFile};
use super::pack_locks::try_lock_pack;
use super::pack_name::PackName;
use super::pack_set::PackSet;
use super::pack_writer::PackWriter;
use crate::error::{Error, Result};

/// The state of a pack that is not sealed.
enum OpenPack {
    /// No process appends to it and its entries are durable. Holds how many bytes were
    /// cut off.
    Free(u64),
    Busy,
}

impl Objects {
    /// Lists all copies of all objects without changing anything.
    pub(crate) fn object_table(&self) -> Result<ObjectTable> {
        self.build_table(&HashSet::new())
    }

    /// Cuts off what dead writers left, makes all packs durable, and lists all copies of
    /// all objects.
    pub(crate) fn clean_up(&self) -> Result<ObjectTable> {
        let pack_set = &self.0.pack_set;
        let (mut busy, mut cut) = (HashSet::new(), 0);
        let names = self.all_names()?;
        let sealed: HashSet<u64> = names
            .iter()
            .filter(|name| name.is_sealed)
            .map(|name| name.stem)
            .collect();
        for name in names.into_iter().filter(|name| !name.is_sealed) {
            let cleaned = match sealed.contains(&name.stem) {
                true => drop_second_name(pack_set, name).map(|()| OpenPack::Free(0)),
                false => finish_open_pack(pack_set, self, name),
            };
            match cleaned {
                Ok(OpenPack::Free(bytes)) => cut += bytes,
                Ok(OpenPack::Busy) => {
                    busy.insert(name.stem);
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    let path = name.path(&pack_set.dir);
                    return Err(Error::io("cannot clean up a pack of objects", &path, error));
                }
            }
        }
        pack_set.sync_names().or_else(absent).map_err(|error| {
            let what = "cannot make the names of packs durable";
            Error::io(what, &pack_set.dir, error)
        })?;
        let mut table = self.build_table(&busy)?;
        table.cut = cut;
        Ok(table)
    }

    fn all_names(&self) -> Result<Vec<PackName>> {
        let pack_set = &self.0.pack_set;
        let listed = match pack_set.storage.list(&pack_set.dir) {
            Ok(listed) => listed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(Error::io("cannot list the objects", &pack_set.dir, error)),
        };
        let names = listed.iter().filter_map(|name| PackName::parse(name));
        Ok(names.collect())
    }

    fn build_table(&self, busy: &HashSet<u64>) -> Result<ObjectTable> {
        let pack_set = &self.0.pack_set;
        let packs = pack_set.refresh()?;
        // Objects stored by a newer version may be referenced in ways this version does
        // not know.
        if let Some(newer) = pack_set.newer() {
            return Err(newer);
        }
        let state = |name: PackName, pack: Option<Arc<Pack>>| PackState {
            name,
            is_busy: busy.contains(&name.stem),
            is_removed: false,
            dead: 0,
            len: pack.as_ref().map_or(0, |pack| pack.len),
            pack,
        };
        let mut all = Vec::new();
        for pack in packs.iter() {
            let looked = rescan(pack_set, pack).map_err(|error| {
                let path = pack.name.path(&pack_set.dir);
                Error::io("cannot read a pack of objects", &path, error)
            })?;
            all.push(state(pack.name, Some(looked)));
        }
        all.extend(pack_set.empty().into_iter().map(|name| state(name, None)));
        ObjectTable::new(self, all)
    }
}

/// Checks that the index of a sealed pack names what it did when it was written. Readers
/// notice when they miss something; here that would be too late.
fn rescan(pack_set: &PackSet, pack: &Arc<Pack>) -> io::Result<Arc<Pack>> {
    if !pack.is_sealed() {
        return Ok(Arc::clone(pack));
    }
    let file = pack_set.file(pack.name)?;
    let found = pack.rescan(file.as_ref(), &pack_set.codec)?;
    Ok(found.map_or_else(|| Arc::clone(pack), Arc::new))
}

fn absent(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    }
}

/// Removes the `.open` name of a pack that has its final name.
fn drop_second_name(pack_set: &PackSet, name: PackName) -> io::Result<()> {
    let Some(open) = try_lock_pack(pack_set, name)? else {
        return Ok(());
    };
    let sealed = pack_set
        .storage
        .open_read(&name.sealed().path(&pack_set.dir))?;
    let look = Pack::open(sealed.as_ref(), name.sealed(), &pack_set.codec)?;
    let is_whole = matches!(look, PackFile::Pack(pack) if pack.damage.is_empty());
    if is_whole && sealed.len()? >= open.len()? {
        pack_set.storage.remove_file(&name.path(&pack_set.dir))?;
    }
    Ok(())
}

/// Completes what the writer of an unsealed pack did not finish.
fn finish_open_pack(
    pack_set: &Arc<PackSet>,
    objects: &Objects,
    name: PackName,
) -> io::Result<OpenPack> {
    let Some(file) = try_lock_pack(pack_set, name)? else {
        // It is gone, was renamed, or is locked by another process.
        return Ok(OpenPack::Busy);
    };
    let PackFile::Pack(pack) = Pack::open(file.as_ref(), name, &pack_set.codec)? else {
        return Ok(OpenPack::Free(0));
    };
    if pack.is_sealed() {
        pack_set.promote(name, file.as_ref())?;
        return Ok(OpenPack::Free(0));
    }
    let before = pack.len;
    let pack = Arc::from(pack);
    // Cuts off bytes that no commit names.
    drop(PackWriter::resume(
        pack_set,
        objects.0.limits,
        Arc::clone(&file),
        pack,
    )?);
    file.sync()?;
    Ok(OpenPack::Free(before.saturating_sub(file.len()?)))
}
