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
use super::pack_set::{PackSet, UNREADABLE};
use super::pack_writer::PackWriter;
use crate::error::{IoContext, Result};
use crate::storage::if_found;

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
        let names = pack_set.all_names()?;
        let sealed: HashSet<u64> = names
            .iter()
            .filter(|name| name.is_sealed)
            .map(|name| name.stem)
            .collect();
        for name in names.into_iter().filter(|name| !name.is_sealed) {
            let cleaned = match sealed.contains(&name.stem) {
                true => drop_second_name(pack_set, name).map(|()| Some(0)),
                false => finish_open_pack(pack_set, self, name),
            };
            let what = "cannot clean up an object pack";
            match if_found(cleaned).context(what, &pack_set.path(name))? {
                Some(Some(bytes)) => cut += bytes,
                Some(None) => _ = busy.insert(name.stem),
                None => {}
            }
        }
        if_found(pack_set.sync_names())
            .context("cannot sync the directory of object packs", &pack_set.dir)?;
        let mut table = self.build_table(&busy)?;
        table.cut = cut;
        Ok(table)
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
            let looked = rescan(pack_set, pack);
            let looked = looked.context(UNREADABLE, &pack_set.path(pack.name))?;
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

/// Removes the `.open` name of a pack that has its final name.
fn drop_second_name(pack_set: &PackSet, name: PackName) -> io::Result<()> {
    let Some(open) = try_lock_pack(pack_set, name)? else {
        return Ok(());
    };
    let sealed = pack_set.storage.open_read(&pack_set.path(name.sealed()))?;
    let look = Pack::open(sealed.as_ref(), name.sealed(), &pack_set.codec)?;
    let is_whole = matches!(look, PackFile::Pack(pack) if pack.damage.is_empty());
    if is_whole && sealed.len()? >= open.len()? {
        pack_set.storage.remove_file(&pack_set.path(name))?;
    }
    Ok(())
}

/// Completes what the writer of an unsealed pack did not finish, and makes its entries
/// durable. Returns how many bytes were cut off; `None` if another process appends to it.
fn finish_open_pack(
    pack_set: &Arc<PackSet>,
    objects: &Objects,
    name: PackName,
) -> io::Result<Option<u64>> {
    let Some(file) = try_lock_pack(pack_set, name)? else {
        // It is gone, was renamed, or is locked by another process.
        return Ok(None);
    };
    let PackFile::Pack(pack) = Pack::open(file.as_ref(), name, &pack_set.codec)? else {
        return Ok(Some(0));
    };
    if pack.is_sealed() {
        pack_set.promote(name, file.as_ref())?;
        return Ok(Some(0));
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
    Ok(Some(before.saturating_sub(file.len()?)))
}
