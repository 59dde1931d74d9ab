//! The names in one directory, in the page cache and on disk.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use super::disk::Entry;
use super::loss::{Dice, Loss};

/// A directory's names, and the changes that are not on disk yet.
///
/// `live` is always `durable` with all of `pending` applied in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    live: BTreeMap<OsString, Entry>,
    durable: BTreeMap<OsString, Entry>,
    pending: Vec<Change>,
}

/// A name and its new target; `None` if it was removed.
type Change = (OsString, Option<Entry>);

impl Names {
    /// Returns names that are all on disk.
    pub(super) fn durable(names: BTreeMap<OsString, Entry>) -> Self {
        Self {
            live: names.clone(),
            durable: names,
            pending: Vec::new(),
        }
    }

    pub(super) fn live(&self) -> &BTreeMap<OsString, Entry> {
        &self.live
    }

    pub(super) fn insert(&mut self, name: OsString, entry: Entry) {
        self.pending.push((name.clone(), Some(entry)));
        self.live.insert(name, entry);
    }

    pub(super) fn remove(&mut self, name: &OsStr) {
        self.pending.push((name.to_owned(), None));
        self.live.remove(name);
    }

    /// Writes all pending changes to disk.
    pub(super) fn sync(&mut self) {
        for (name, entry) in self.pending.drain(..) {
            apply(&mut self.durable, name, entry);
        }
    }

    /// Writes one name to disk as it is now.
    pub(super) fn sync_name(&mut self, name: &OsStr) {
        self.pending.retain(|(pending, _)| pending != name);
        let entry = self.live.get(name).copied();
        apply(&mut self.durable, name.to_owned(), entry);
    }

    /// Returns the names that survive a loss.
    pub(super) fn survivor(&self, loss: Loss, dice: &mut Dice) -> BTreeMap<OsString, Entry> {
        match loss {
            Loss::Unsynced => self.durable.clone(),
            Loss::Nothing | Loss::Tail { .. } => self.live.clone(),
            Loss::Shuffled { .. } => {
                let mut survivor = self.durable.clone();
                for (name, entry) in &self.pending {
                    if dice.survives() {
                        apply(&mut survivor, name.clone(), *entry);
                    }
                }
                survivor
            }
        }
    }
}

fn apply(names: &mut BTreeMap<OsString, Entry>, name: OsString, entry: Option<Entry>) {
    match entry {
        Some(entry) => names.insert(name, entry),
        None => names.remove(&name),
    };
}
