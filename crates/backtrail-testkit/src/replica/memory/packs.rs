//! Packs: which objects they have, who relies on them, and which are condemned.

use std::collections::BTreeMap;
use std::ops::Bound;

use backtrail::replica::{Answer, ObjectPlace, PackStatus, ReplicaError};

use super::{Blob, refused};

/// The name of a pack or an object.
type Name = [u8; 32];

/// All packs, and where objects are.
#[derive(Default)]
pub(super) struct Packs {
    packs: BTreeMap<Name, Pack>,
    /// Where each object is: the pack that was sealed last comes last.
    places: BTreeMap<Name, Vec<ObjectPlace>>,
}

struct Pack {
    /// `None` if a bucket lost them.
    blob: Option<Blob>,
    bytes: u64,
    uses: u64,
    condemned_at_ms: Option<i64>,
}

impl Packs {
    pub(super) fn bytes(&self, name: &Name) -> Option<&Blob> {
        self.packs.get(name)?.blob.as_ref()
    }

    pub(super) fn bytes_mut(&mut self, name: &Name) -> Option<&mut Blob> {
        self.packs.get_mut(name)?.blob.as_mut()
    }

    pub(super) fn lose_bytes(&mut self, name: &Name) {
        if let Some(pack) = self.packs.get_mut(name) {
            pack.blob = None;
        }
    }

    pub(super) fn put(&mut self, name: Name, blob: Blob) {
        let bytes = blob.bytes.len() as u64;
        let pack = self.packs.entry(name).or_insert(Pack {
            blob: None,
            bytes,
            uses: 0,
            condemned_at_ms: None,
        });
        pack.blob = Some(blob);
    }

    pub(super) fn seal(&mut self, objects: &[ObjectPlace]) -> Result<Answer, ReplicaError> {
        let Some(name) = objects.first().map(|place| place.pack) else {
            return Ok(Answer::Done);
        };
        let Some(pack) = self.packs.get_mut(&name).filter(|pack| pack.blob.is_some()) else {
            return Ok(Answer::PacksGone(vec![name]));
        };
        let is_inside = |place: &ObjectPlace| {
            let end = place.from.checked_add(place.bytes);
            place.pack == name && end.is_some_and(|end| end <= pack.bytes)
        };
        if !objects.iter().all(is_inside) {
            return Err(refused("an object is not in the pack"));
        }
        pack.uses += 1;
        for place in objects {
            let places = self.places.entry(place.id).or_default();
            places.retain(|other| other.pack != name);
            places.push(*place);
        }
        Ok(Answer::Done)
    }

    /// Returns where an object is read from.
    fn place(&self, places: &[ObjectPlace]) -> Option<ObjectPlace> {
        let stays = |place: &&ObjectPlace| {
            let pack = self.packs.get(&place.pack);
            pack.is_some_and(|pack| pack.condemned_at_ms.is_none())
        };
        let place = places.iter().rfind(stays).or(places.last());
        place.copied()
    }

    pub(super) fn locate(&self, ids: &[Name]) -> Answer {
        let places = ids.iter().filter_map(|id| self.places.get(id));
        Answer::Objects(places.filter_map(|places| self.place(places)).collect())
    }

    /// Counts a use of each pack, and takes back those that were condemned, unless one is gone.
    pub(super) fn rely_on(&mut self, names: &[Name]) -> Result<(), Vec<Name>> {
        let is_gone = |name: &&Name| !self.packs.contains_key(*name);
        let gone: Vec<Name> = names.iter().filter(is_gone).copied().collect();
        if !gone.is_empty() {
            return Err(gone);
        }
        for name in names {
            if let Some(pack) = self.packs.get_mut(name) {
                pack.uses += 1;
                pack.condemned_at_ms = None;
            }
        }
        Ok(())
    }

    fn status(&self, name: &Name, now_ms: i64) -> Option<PackStatus> {
        let pack = self.packs.get(name)?;
        let is_read_here =
            |places: &&Vec<ObjectPlace>| places.last().is_some_and(|place| place.pack == *name);
        let objects = self.places.values().filter(is_read_here).count();
        Some(PackStatus {
            pack: *name,
            bytes: pack.bytes,
            objects: u32::try_from(objects).unwrap_or(u32::MAX),
            uses: pack.uses,
            condemned_ms: pack.condemned_at_ms.map(|at_ms| waited(at_ms, now_ms)),
        })
    }

    fn statuses<'a>(&self, names: impl IntoIterator<Item = &'a Name>, now_ms: i64) -> Answer {
        let statuses = names
            .into_iter()
            .filter_map(|name| self.status(name, now_ms));
        Answer::Packs(statuses.collect())
    }

    pub(super) fn list(&self, after: Option<Name>, limit: u32, now_ms: i64) -> Answer {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let names = self
            .packs
            .range((from, Bound::Unbounded))
            .map(|(name, _)| name);
        self.statuses(names.take(limit as usize), now_ms)
    }

    pub(super) fn condemn(&mut self, packs: &[(Name, u64)], now_ms: i64) -> Answer {
        let mut condemned = Vec::new();
        for (name, uses) in packs {
            let pack = self.packs.get_mut(name);
            if let Some(pack) = pack.filter(|pack| pack.uses == *uses) {
                pack.condemned_at_ms.get_or_insert(now_ms);
                condemned.push(*name);
            }
        }
        self.statuses(&condemned, now_ms)
    }

    pub(super) fn remove(&mut self, condemned_ms: u64, limit: u32, now_ms: i64) -> Answer {
        let is_due = |(_, pack): &(&Name, &Pack)| {
            let at_ms = pack.condemned_at_ms;
            at_ms.is_some_and(|at_ms| waited(at_ms, now_ms) >= condemned_ms)
        };
        let due = self.packs.iter().filter(is_due).map(|(name, _)| *name);
        let due: Vec<Name> = due.take(limit as usize).collect();
        let answer = self.statuses(&due, now_ms);
        for name in &due {
            self.packs.remove(name);
        }
        self.places.retain(|_, places| {
            places.retain(|place| !due.contains(&place.pack));
            !places.is_empty()
        });
        answer
    }
}

/// Returns how long ago something was; a clock that went back counts as none.
fn waited(at_ms: i64, now_ms: i64) -> u64 {
    u64::try_from(now_ms.saturating_sub(at_ms)).unwrap_or(0)
}
