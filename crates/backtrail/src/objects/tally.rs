//! What a sweep would do, by the indexes alone.

use std::collections::HashSet;
use std::io;

use super::extents::Extent;
use super::format::{BLOCK_HEADER, PACK_HEADER, RECORD, SealShape, TAIL};
use super::outlet::Limits;
use super::pack::Rest;
use super::stock::{Fate, Mark, Stock};
use super::sweep::Swept;
use crate::error::{Error, Result};

impl Stock {
    /// Works out what a sweep would do. Nothing is changed but the stock itself.
    pub(crate) fn would_sweep(&mut self) -> Result<Swept> {
        self.weigh();
        let mut swept = Swept::default();
        let mut made = Made::new(self.objects.0.limits);
        let mut gone = 0;
        let all: u64 = self.packs.iter().map(|stocked| stocked.len).sum();
        for number in self.order() {
            let extents = self.extents_of(number)?;
            let staying = self.would_stay(number, &extents);
            let pack = self.packs[number].pack.as_deref();
            let is_sound = pack.is_some_and(|pack| !pack.is_damaged() && !pack.is_empty());
            let stays = is_sound && staying.len() == extents.len();
            if stays || self.hidden_in(pack).is_some() {
                gone += self.unfinished(number);
                continue;
            }
            for extent in &staying {
                made.append(extent.len);
                self.mark(&extent.record.id, Mark::Safe);
            }
            made.commit();
            match staying.len() {
                0 => swept.removed += 1,
                _ => swept.rewritten += 1,
            }
            swept.objects += (extents.len() - staying.len()) as u64;
            self.packs[number].is_removed = true;
            gone += self.packs[number].len;
        }
        swept.freed = gone.saturating_sub(made.bytes);
        swept.left_bytes = (all + made.bytes).saturating_sub(gone);
        Ok(swept)
    }

    fn extents_of(&self, number: usize) -> Result<Vec<Extent>> {
        let Some(pack) = &self.packs[number].pack else {
            return Ok(Vec::new());
        };
        let shelf = &self.objects.0.shelf;
        let file = shelf.file(pack.name);
        match file.and_then(|file| pack.extents(file.as_ref())) {
            // Somebody else removed it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            extents => extents.map_err(|error| {
                let path = pack.name.path(&shelf.dir);
                Error::io("cannot read a pack of objects", &path, error)
            }),
        }
    }

    fn would_stay(&self, number: usize, extents: &[Extent]) -> Vec<Extent> {
        let stays = |extent: &&Extent| {
            let record = extent.record;
            let fate = self.fate(number, &record.id, record.at);
            matches!(fate, Fate::Stays | Fate::StaysOf(_))
        };
        let mut seen = HashSet::new();
        let staying = extents.iter().filter(stays);
        staying
            .filter(|extent| seen.insert(extent.record.at))
            .copied()
            .collect()
    }

    /// Returns how many bytes would be cut off that a dead writer left.
    fn unfinished(&self, number: usize) -> u64 {
        let stocked = &self.packs[number];
        let pack = stocked.pack.as_ref().filter(|_| !stocked.name.is_sealed);
        let pack = pack.filter(|pack| pack.rest == Rest::Unfinished);
        pack.map_or(0, |pack| pack.len - pack.end)
    }
}

/// Packs that would be made.
struct Made {
    limits: Limits,
    bytes: u64,
    /// Of the pack that is open.
    end: u64,
    named: usize,
    uncommitted: usize,
    commits: u32,
}

impl Made {
    fn new(limits: Limits) -> Self {
        Self {
            limits,
            bytes: 0,
            end: 0,
            named: 0,
            uncommitted: 0,
            commits: 0,
        }
    }

    fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.end += bytes;
    }

    fn append(&mut self, len: u32) {
        if self.end == 0 {
            self.add(PACK_HEADER as u64);
        }
        self.add(len.into());
        self.named += 1;
        self.uncommitted += 1;
        if self.end >= self.limits.seal_at {
            self.seal();
        }
    }

    fn commit(&mut self) {
        if self.uncommitted == 0 {
            return;
        }
        self.commits += 1;
        if self.commits >= self.limits.seal_commits {
            return self.seal();
        }
        self.add((BLOCK_HEADER + self.uncommitted * RECORD + TAIL) as u64);
        self.uncommitted = 0;
    }

    fn seal(&mut self) {
        let index = SealShape::of(self.named).map_or(0, |shape| shape.len);
        self.bytes += (BLOCK_HEADER + index) as u64;
        *self = Self {
            bytes: self.bytes,
            ..Self::new(self.limits)
        };
    }
}
