//! Taking stock: which packs there are, after what dead writers and a killed sweep
//! left behind was cleared away.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use super::Objects;
use super::held::take;
use super::name::PackName;
use super::outlet::Outlet;
use super::pack::{Look, Pack};
use super::shelf::Shelf;
use super::stock::{Stock, Stocked};
use crate::error::{Error, Result};

/// How a pack that is not sealed was found.
enum Found {
    /// Nobody appends to it, and what it names is durable. So many bytes were cut off.
    Free(u64),
    Busy,
}

impl Objects {
    /// Takes stock of all packs, and changes nothing.
    pub(crate) fn look_over(&self) -> Result<Stock> {
        self.stock(&HashSet::new())
    }

    /// Takes stock of all packs, and makes durable what is in them. What dead writers
    /// left behind is cut off.
    pub(crate) fn take_stock(&self) -> Result<Stock> {
        let shelf = &self.0.shelf;
        let (mut busy, mut cut) = (HashSet::new(), 0);
        let names = self.all_names()?;
        let sealed: HashSet<u64> = names
            .iter()
            .filter(|name| name.is_sealed)
            .map(|name| name.stem)
            .collect();
        for name in names.into_iter().filter(|name| !name.is_sealed) {
            let tidied = match sealed.contains(&name.stem) {
                true => drop_second_name(shelf, name).map(|()| Found::Free(0)),
                false => tidy(shelf, self, name),
            };
            match tidied {
                Ok(Found::Free(bytes)) => cut += bytes,
                Ok(Found::Busy) => {
                    busy.insert(name.stem);
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    let path = name.path(&shelf.dir);
                    return Err(Error::io("cannot tidy up a pack of objects", &path, error));
                }
            }
        }
        shelf.sync_names().or_else(absent).map_err(|error| {
            let what = "cannot make the names of packs durable";
            Error::io(what, &shelf.dir, error)
        })?;
        let mut stock = self.stock(&busy)?;
        stock.cut = cut;
        Ok(stock)
    }

    fn all_names(&self) -> Result<Vec<PackName>> {
        let shelf = &self.0.shelf;
        let listed = match shelf.storage.list(&shelf.dir) {
            Ok(listed) => listed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(Error::io("cannot list the objects", &shelf.dir, error)),
        };
        let names = listed.iter().filter_map(|name| PackName::parse(name));
        Ok(names.collect())
    }

    fn stock(&self, busy: &HashSet<u64>) -> Result<Stock> {
        let shelf = &self.0.shelf;
        let packs = shelf.refresh()?;
        // What a newer version stored may be named in ways that are not known here.
        if let Some(newer) = shelf.newer() {
            return Err(newer);
        }
        let stocked = |name: PackName, pack: Option<Arc<Pack>>| Stocked {
            name,
            is_busy: busy.contains(&name.stem),
            is_removed: false,
            dead: 0,
            len: pack.as_ref().map_or(0, |pack| pack.len),
            pack,
        };
        let mut all = Vec::new();
        for pack in packs.iter() {
            let looked = look_closely(shelf, pack).map_err(|error| {
                let path = pack.name.path(&shelf.dir);
                Error::io("cannot read a pack of objects", &path, error)
            })?;
            all.push(stocked(pack.name, Some(looked)));
        }
        all.extend(shelf.empty().into_iter().map(|name| stocked(name, None)));
        Stock::new(self, all)
    }
}

/// Makes sure that the index of a sealed pack names what it did when it was written:
/// readers find out when they miss something, and here that would be too late.
fn look_closely(shelf: &Shelf, pack: &Arc<Pack>) -> io::Result<Arc<Pack>> {
    if !pack.is_sealed() {
        return Ok(Arc::clone(pack));
    }
    let file = shelf.file(pack.name)?;
    let found = pack.look_closely(file.as_ref(), &shelf.codec)?;
    Ok(found.map_or_else(|| Arc::clone(pack), Arc::new))
}

fn absent(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    }
}

/// Removes the name `.open` of a pack that has its final one.
fn drop_second_name(shelf: &Shelf, name: PackName) -> io::Result<()> {
    let Some(open) = take(shelf, name)? else {
        return Ok(());
    };
    let sealed = shelf.storage.open_read(&name.sealed().path(&shelf.dir))?;
    let look = Pack::look(sealed.as_ref(), name.sealed(), &shelf.codec)?;
    let is_whole = matches!(look, Look::Pack(pack) if pack.damage.is_empty());
    if is_whole && sealed.len()? >= open.len()? {
        shelf.storage.remove_file(&name.path(&shelf.dir))?;
    }
    Ok(())
}

/// Does for a pack that is not sealed what its writer did not come to.
fn tidy(shelf: &Arc<Shelf>, objects: &Objects, name: PackName) -> io::Result<Found> {
    let Some(file) = take(shelf, name)? else {
        // It is gone, or has its final name, or somebody has it.
        return Ok(Found::Busy);
    };
    let Look::Pack(pack) = Pack::look(file.as_ref(), name, &shelf.codec)? else {
        return Ok(Found::Free(0));
    };
    if pack.is_sealed() {
        shelf.promote(name, file.as_ref())?;
        return Ok(Found::Free(0));
    }
    let before = pack.len;
    let pack = Arc::from(pack);
    // Cuts off what nothing names.
    drop(Outlet::go_on(
        shelf,
        objects.0.limits,
        Arc::clone(&file),
        pack,
    )?);
    file.sync()?;
    Ok(Found::Free(before.saturating_sub(file.len()?)))
}
