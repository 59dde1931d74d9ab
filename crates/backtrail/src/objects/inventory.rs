//! Which packs there were, so that who remembers objects knows if some are gone.

use super::Objects;
use crate::error::{Error, Result};

/// How long an entry is as bytes.
const ENTRY: usize = 16;

/// The packs that there were at a moment, and how long those were that grew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Inventory(Vec<(u64, u64)>);

impl Inventory {
    /// Returns whether everything that was in the packs of `before` can be in these.
    pub(crate) fn covers(&self, before: &Self) -> bool {
        before.0.iter().all(|(stem, len)| {
            let mut now = self.0.iter();
            now.any(|(other, now)| other == stem && (*now == SEALED || now >= len))
        })
    }

    /// Writes it as bytes.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        for (stem, len) in &self.0 {
            out.extend_from_slice(&stem.to_le_bytes());
            out.extend_from_slice(&len.to_le_bytes());
        }
    }

    /// Reads what was written.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let number = |bytes: &[u8]| Some(u64::from_le_bytes(bytes.try_into().ok()?));
        let entry = |entry: &[u8]| Some((number(&entry[..8])?, number(&entry[8..])?));
        let whole = bytes.len().is_multiple_of(ENTRY);
        let entries = bytes.chunks_exact(ENTRY).map(entry);
        entries.collect::<Option<_>>().filter(|_| whole).map(Self)
    }
}

/// Stands for the length of a pack that does not grow any more.
const SEALED: u64 = u64::MAX;

impl Objects {
    /// Returns which packs there are now.
    pub(crate) fn inventory(&self) -> Result<Inventory> {
        let shelf = &self.0.shelf;
        let mut packs = Vec::new();
        for name in shelf.names()? {
            let len = match name.is_sealed {
                true => SEALED,
                false => match shelf.file(name).and_then(|file| file.len()) {
                    Ok(len) => len,
                    // It was sealed just now, or is gone.
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                    Err(error) => {
                        let path = name.path(&shelf.dir);
                        return Err(Error::io("cannot look at a pack of objects", &path, error));
                    }
                },
            };
            packs.push((name.stem, len));
        }
        Ok(Inventory(packs))
    }
}
