//! A list of the packs, so that a cache of objects can tell whether some are gone.

use super::Objects;
use crate::error::Result;

/// The length of an encoded entry.
const ENTRY: usize = 16;

/// The packs that existed at a moment, with the lengths of those that still grow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Inventory(Vec<(u64, u64)>);

impl Inventory {
    /// Returns whether these packs can hold everything that was in the packs of `before`.
    pub(crate) fn covers(&self, before: &Self) -> bool {
        before.0.iter().all(|(stem, len)| {
            let mut now = self.0.iter();
            now.any(|(other, now)| other == stem && (*now == SEALED || now >= len))
        })
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        for (stem, len) in &self.0 {
            out.extend_from_slice(&stem.to_le_bytes());
            out.extend_from_slice(&len.to_le_bytes());
        }
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let number = |bytes: &[u8]| Some(u64::from_le_bytes(bytes.try_into().ok()?));
        let entry = |entry: &[u8]| Some((number(&entry[..8])?, number(&entry[8..])?));
        let whole = bytes.len().is_multiple_of(ENTRY);
        let entries = bytes.chunks_exact(ENTRY).map(entry);
        entries.collect::<Option<_>>().filter(|_| whole).map(Self)
    }
}

/// The length recorded for a pack that no longer grows.
const SEALED: u64 = u64::MAX;

impl Objects {
    /// Returns the packs that exist now.
    pub(crate) fn inventory(&self) -> Result<Inventory> {
        let pack_set = &self.0.pack_set;
        let mut packs = Vec::new();
        for name in pack_set.names()? {
            let len = match name.is_sealed {
                true => Some(SEALED),
                // `None` if it was sealed just now, or removed.
                false => pack_set.len_of(name)?,
            };
            packs.extend(len.map(|len| (name.stem, len)));
        }
        Ok(Inventory(packs))
    }
}
