//! All copies of all objects that there are, for who removes some: which are still
//! named by something, and which copy of each stays.
//!
//! A copy takes 32 bytes and a few bits: an object is told from others by half of
//! its name, which nobody makes two contents share.

use std::collections::HashSet;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::entry::{Entry, proven_id, read_entry};
use super::extents::{Extent, block_at};
use super::format::{Kind, List};
use super::name::PackName;
use super::pack::Pack;
use super::{ObjectId, Objects};
use crate::error::{Error, Result};

/// What is known of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Mark {
    /// Something names it.
    Live,
    /// What it names itself was looked at.
    Walked,
    /// Whether it is in chunks was looked at.
    Opened,
    /// A copy that was made and checked by this sweep is durable.
    Safe,
}

const MARKS: usize = 4;

/// A copy of an object.
#[derive(Debug, Clone, Copy)]
struct Row {
    /// The first half of the object's name.
    key: [u64; 2],
    /// Which pack it is in, by its number here.
    pack: u32,
    at: u32,
    len: u32,
}

/// A pack, as it was when stock was taken.
#[derive(Debug)]
pub(super) struct Stocked {
    pub(super) name: PackName,
    /// `None` where the file holds nothing yet.
    pub(super) pack: Option<Arc<Pack>>,
    /// Whether somebody appends to it.
    pub(super) is_busy: bool,
    pub(super) is_removed: bool,
    /// How many bytes of it nothing names.
    pub(super) dead: u64,
    pub(super) len: u64,
}

/// What was changed since [`Stock::begin_trial`].
#[derive(Debug, Clone, Copy)]
enum Changed {
    Row(usize, Mark),
    Beyond(ObjectId, Mark),
}

/// All copies of all objects, as of a moment.
#[derive(Debug)]
pub(crate) struct Stock {
    pub(super) objects: Objects,
    pub(super) packs: Vec<Stocked>,
    rows: Vec<Row>,
    /// Where the rows begin whose names begin with two bytes.
    starts: Vec<u32>,
    /// Of an object's first row.
    marks: [Bits; MARKS],
    /// Copies that were read and are right.
    checked: Bits,
    /// Copies that were read and are not.
    broken: Bits,
    /// Objects that came later.
    beyond: HashSet<(ObjectId, Mark)>,
    trial: Option<Vec<Changed>>,
    /// Grows whenever something comes to be live.
    pub(super) generation: u64,
    /// How many bytes were cut off that dead writers had left.
    pub(super) cut: u64,
    /// An object that is needed and could not be found anywhere.
    missing: Option<ObjectId>,
}

impl Stock {
    /// Takes stock of packs.
    pub(super) fn new(objects: &Objects, packs: Vec<Stocked>) -> Result<Self> {
        let mut rows = Vec::new();
        for (n, stocked) in packs.iter().enumerate() {
            let Some(pack) = &stocked.pack else { continue };
            let shelf = &objects.0.shelf;
            let file = shelf.file(pack.name);
            let extents = file.and_then(|file| pack.extents(file.as_ref()));
            let extents = extents.map_err(|error| {
                let path = pack.name.path(&shelf.dir);
                Error::io("cannot read a pack of objects", &path, error)
            })?;
            rows.reserve(extents.len());
            rows.extend(extents.into_iter().map(|Extent { record, len }| Row {
                key: key(&record.id),
                pack: n as u32,
                at: record.at,
                len,
            }));
        }
        rows.sort_unstable_by_key(|row| (row.key, row.pack, row.at));
        let mut starts = vec![0_u32; (1 << 16) + 1];
        for row in &rows {
            starts[bucket(row.key) + 1] += 1;
        }
        for n in 1..starts.len() {
            starts[n] += starts[n - 1];
        }
        let bits = || Bits::new(rows.len());
        Ok(Self {
            objects: objects.clone(),
            packs,
            starts,
            marks: [bits(), bits(), bits(), bits()],
            checked: bits(),
            broken: bits(),
            rows,
            beyond: HashSet::new(),
            trial: None,
            generation: 0,
            cut: 0,
            missing: None,
        })
    }

    /// Returns the copies of an object.
    fn find(&self, id: &ObjectId) -> Range<usize> {
        let key = key(id);
        let bucket = bucket(key);
        let (from, to) = (
            self.starts[bucket] as usize,
            self.starts[bucket + 1] as usize,
        );
        let rows = &self.rows[from..to];
        let begin = rows.partition_point(|row| row.key < key);
        let count = rows[begin..]
            .iter()
            .take_while(|row| row.key == key)
            .count();
        from + begin..from + begin + count
    }

    /// Marks an object; returns whether it was not yet, and how many bytes one copy
    /// of it takes.
    pub(crate) fn mark(&mut self, id: &ObjectId, mark: Mark) -> Option<u64> {
        let rows = self.find(id);
        let (is_new, changed) = match rows.is_empty() {
            true => {
                let is_new = self.beyond.insert((*id, mark));
                (is_new, Changed::Beyond(*id, mark))
            }
            false => {
                let is_new = self.marks[mark as usize].set(rows.start);
                (is_new, Changed::Row(rows.start, mark))
            }
        };
        if !is_new {
            return None;
        }
        self.generation += u64::from(mark == Mark::Live);
        if let Some(trial) = &mut self.trial {
            trial.push(changed);
        }
        Some(rows.map(|row| self.rows[row].len).max().unwrap_or(0).into())
    }

    /// Returns whether an object is stored, in stock or since.
    pub(crate) fn is_stored(&self, id: &ObjectId) -> Result<bool> {
        Ok(self.holds(id) || self.objects.contains(id)?)
    }

    /// Returns whether a copy of an object is in stock.
    pub(crate) fn holds(&self, id: &ObjectId) -> bool {
        !self.find(id).is_empty()
    }

    /// Takes note of an object that is needed and could not be found.
    pub(crate) fn miss(&mut self, id: ObjectId) {
        self.missing.get_or_insert(id);
    }

    /// Returns what may be in a damaged pack, unseen, and keeps it from going.
    pub(super) fn hidden_in(&self, pack: Option<&Pack>) -> Option<ObjectId> {
        self.missing.filter(|_| pack.is_some_and(Pack::is_damaged))
    }

    /// Remembers from now on what is marked, so that it can be taken back.
    pub(crate) fn begin_trial(&mut self) {
        self.trial = Some(Vec::new());
    }

    /// Ends a trial; what was marked in it stays or is taken back.
    pub(crate) fn end_trial(&mut self, keep: bool) {
        for changed in self.trial.take().into_iter().flatten().filter(|_| !keep) {
            match changed {
                Changed::Row(row, mark) => self.marks[mark as usize].clear(row),
                Changed::Beyond(id, mark) => {
                    self.beyond.remove(&(id, mark));
                }
            }
        }
    }

    /// Reads an object in one piece that is in stock, or came later.
    pub(crate) fn read(&self, id: &ObjectId) -> Result<Vec<u8>> {
        for row in self.find(id) {
            // What is wrong with a copy is told by whoever looks everywhere.
            if let Ok(Some(Entry::Piece(piece))) = self.entry(row)
                && ObjectId::of(&piece) == *id
            {
                return Ok(piece);
            }
        }
        self.objects.read(id)
    }

    /// Returns the chunks that an object is in, by all its copies.
    pub(crate) fn chunks(&self, id: &ObjectId) -> Result<Vec<ObjectId>> {
        let rows = self.find(id);
        let (mut chunks, mut is_known) = (Vec::new(), false);
        for row in rows {
            let Row { pack, at, .. } = self.rows[row];
            let Some(pack) = &self.packs[pack as usize].pack else {
                continue;
            };
            let file = self.objects.0.shelf.file(pack.name);
            let block = file.and_then(|file| block_at(file.as_ref(), pack, at));
            match block.ok().flatten().map(|block| block.kind) {
                Some(Kind::List) => match self.entry(row) {
                    Ok(Some(Entry::List(list))) if list.id == *id => {
                        chunks.extend(list.chunks);
                        is_known = true;
                    }
                    _ => {}
                },
                Some(kind) => is_known |= kind.is_entry(),
                None => {}
            }
        }
        if is_known {
            return Ok(chunks);
        }
        Ok(match self.objects.fetch(id)? {
            Entry::List(List { chunks, .. }) => chunks,
            Entry::Piece(_) => Vec::new(),
        })
    }

    fn entry(&self, row: usize) -> io::Result<Option<Entry>> {
        let Row { pack, at, .. } = self.rows[row];
        let Some(pack) = &self.packs[pack as usize].pack else {
            return Ok(None);
        };
        let shelf = &self.objects.0.shelf;
        let file = shelf.file(pack.name)?;
        read_entry(file.as_ref(), pack.salt(), at.into(), &shelf.codec)
    }

    /// Works out how much of each pack nothing names. Done once, when everything
    /// is marked.
    pub(super) fn weigh(&mut self) {
        let mut first = 0;
        for (n, row) in self.rows.iter().enumerate() {
            if self.rows[first].key != row.key {
                first = n;
            }
            if !self.marks[Mark::Live as usize].get(first) {
                self.packs[row.pack as usize].dead += u64::from(row.len);
            }
        }
    }

    /// Returns what becomes of a copy in a pack.
    pub(super) fn fate(&self, pack: usize, id: &ObjectId, at: u32) -> Fate {
        let rows = self.find(id);
        let is_it = |row: &usize| {
            let row = &self.rows[*row];
            row.pack as usize == pack && row.at == at
        };
        if !rows.clone().any(|row| is_it(&row)) {
            // It came since, and what names it may come yet.
            return Fate::Stays;
        }
        if !self.marks[Mark::Live as usize].get(rows.start) {
            return Fate::Dead;
        }
        if self.marks[Mark::Safe as usize].get(rows.start) {
            return Fate::Double;
        }
        let is_only = rows.len() == 1;
        let candidates = rows.filter(|row| {
            let stocked = &self.packs[self.rows[*row].pack as usize];
            !stocked.is_busy && !stocked.is_removed && !self.broken.get(*row)
        });
        // The one in the pack that has the least reason to be written anew.
        let best = candidates.min_by_key(|row| {
            let row = &self.rows[*row];
            let stocked = &self.packs[row.pack as usize];
            (stocked.dead, !stocked.name.is_sealed, row.pack, row.at)
        });
        match best {
            Some(best) if is_it(&best) && !is_only => Fate::StaysOf(best),
            Some(best) if is_it(&best) => Fate::Stays,
            Some(best) => Fate::DoubleOf(best),
            // All are broken: this one stays what it is.
            None => Fate::Stays,
        }
    }

    /// Remembers that a copy in a pack is damaged.
    pub(super) fn set_broken(&mut self, pack: usize, id: &ObjectId, at: u32) {
        for row in self.find(id) {
            let found = &self.rows[row];
            if found.pack as usize == pack && found.at == at {
                self.broken.set(row);
            }
        }
    }

    /// Reads and checks a copy that is to be the one that stays.
    pub(super) fn check(&mut self, row: usize, id: &ObjectId) -> bool {
        if self.checked.get(row) {
            return true;
        }
        let entry = self.entry(row).ok().flatten();
        let is_right = entry.is_some_and(|entry| proven_id(&entry) == *id);
        match is_right {
            true => self.checked.set(row),
            false => self.broken.set(row),
        };
        is_right
    }
}

/// What becomes of a copy of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Nothing names it.
    Dead,
    /// It is the one copy that there is, and stays.
    Stays,
    /// It is the one of several that stays, if it is right.
    StaysOf(usize),
    /// Another copy was made and checked.
    Double,
    /// Another one stays, which is to be checked before this one goes.
    DoubleOf(usize),
}

fn key(id: &ObjectId) -> [u64; 2] {
    let bytes = id.as_bytes();
    let half = |from: usize| {
        let mut eight = [0; 8];
        eight.copy_from_slice(&bytes[from..from + 8]);
        u64::from_be_bytes(eight)
    };
    [half(0), half(8)]
}

fn bucket(key: [u64; 2]) -> usize {
    (key[0] >> 48) as usize
}

/// A bit for each of a number of things.
#[derive(Debug)]
struct Bits(Vec<u64>);

impl Bits {
    fn new(len: usize) -> Self {
        Self(vec![0; len.div_ceil(64)])
    }

    fn get(&self, n: usize) -> bool {
        self.0[n / 64] & (1 << (n % 64)) != 0
    }

    /// Sets a bit, and returns whether it was not set.
    fn set(&mut self, n: usize) -> bool {
        let is_new = !self.get(n);
        self.0[n / 64] |= 1 << (n % 64);
        is_new
    }

    fn clear(&mut self, n: usize) {
        self.0[n / 64] &= !(1 << (n % 64));
    }
}
