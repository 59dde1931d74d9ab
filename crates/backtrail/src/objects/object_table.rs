//! All copies of all objects, to decide which objects are still referenced and which copy
//! of each is kept.
//!
//! A copy takes 32 bytes and a few bits. Objects are distinguished by the first half of
//! their name, 128 bits, which is enough to rule out collisions.

use std::collections::HashSet;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::entry::{PackEntry, proven_id, read_entry};
use super::extents::Extent;
use super::format::{BlockKind, List};
use super::pack::Pack;
use super::pack_name::PackName;
use super::pack_set::UNREADABLE;
use super::{ObjectId, Objects};
use crate::error::{IoContext, Result};

/// A fact about an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Mark {
    /// Something refers to it.
    Live,
    /// The objects it refers to itself were marked.
    Walked,
    /// Its list of chunks, if it has one, was read.
    Opened,
    /// This sweep wrote and checked a copy that is now durable.
    Safe,
}

const MARKS: usize = 4;

/// A copy of an object.
#[derive(Debug, Clone, Copy)]
struct Row {
    /// The first half of the object's id.
    key: [u64; 2],
    /// The pack's index in `packs`.
    pack: u32,
    at: u32,
    len: u32,
}

/// A pack as it was when the table was built.
#[derive(Debug)]
pub(super) struct PackState {
    pub(super) name: PackName,
    /// `None` if the file holds nothing yet.
    pub(super) pack: Option<Arc<Pack>>,
    /// Whether another process appends to it.
    pub(super) is_busy: bool,
    pub(super) is_removed: bool,
    /// How many of its bytes belong to unreferenced objects.
    pub(super) dead: u64,
    pub(super) len: u64,
}

/// A mark set since [`ObjectTable::begin_trial`].
#[derive(Debug, Clone, Copy)]
enum Changed {
    Row(usize, Mark),
    Beyond(ObjectId, Mark),
}

/// All copies of all objects at a moment.
#[derive(Debug)]
pub(crate) struct ObjectTable {
    pub(super) objects: Objects,
    pub(super) packs: Vec<PackState>,
    rows: Vec<Row>,
    /// Where the rows for each two-byte id prefix begin.
    starts: Vec<u32>,
    /// Set on an object's first row.
    marks: [Bits; MARKS],
    /// Copies that were read and passed their check.
    checked: Bits,
    /// Copies that were read and failed it.
    broken: Bits,
    /// Marks of objects that are not in the table because they were stored later.
    beyond: HashSet<(ObjectId, Mark)>,
    trial: Option<Vec<Changed>>,
    /// Incremented whenever an object becomes live.
    pub(super) generation: u64,
    /// How many bytes left by dead writers were cut off.
    pub(super) cut: u64,
    /// A referenced object that could not be found anywhere.
    missing: Option<ObjectId>,
}

impl ObjectTable {
    pub(super) fn new(objects: &Objects, packs: Vec<PackState>) -> Result<Self> {
        let mut rows = Vec::new();
        for (n, state) in packs.iter().enumerate() {
            let Some(pack) = &state.pack else { continue };
            let pack_set = &objects.0.pack_set;
            let file = pack_set.file(pack.name);
            let extents = file.and_then(|file| pack.extents(file.as_ref()));
            let extents = extents.context(UNREADABLE, &pack_set.path(pack.name))?;
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

    /// Returns the rows of an object's copies.
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

    /// Marks an object. If it did not have the mark, returns how many bytes one copy of
    /// it takes.
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

    /// Returns whether an object is stored, in the table or since.
    pub(crate) fn is_stored(&self, id: &ObjectId) -> Result<bool> {
        Ok(self.has(id) || self.objects.contains(id)?)
    }

    /// Returns whether a copy of an object is in the table.
    pub(crate) fn has(&self, id: &ObjectId) -> bool {
        !self.find(id).is_empty()
    }

    /// Records a referenced object that could not be found.
    pub(crate) fn add_missing(&mut self, id: ObjectId) {
        self.missing.get_or_insert(id);
    }

    /// Returns the missing object that a damaged pack may still hold, which keeps the
    /// pack.
    pub(super) fn hidden_in(&self, pack: Option<&Pack>) -> Option<ObjectId> {
        self.missing.filter(|_| pack.is_some_and(Pack::is_damaged))
    }

    /// Starts recording marks so that they can be removed again.
    pub(crate) fn begin_trial(&mut self) {
        self.trial = Some(Vec::new());
    }

    /// Ends a trial, keeping or removing the marks set during it.
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

    /// Reads an object stored in one piece, from the table or stored later.
    pub(crate) fn read(&self, id: &ObjectId) -> Result<Vec<u8>> {
        for row in self.find(id) {
            // `Objects::read` reports what is wrong with a copy.
            if let Ok(Some(PackEntry::Piece(piece))) = self.entry(row)
                && ObjectId::of(&piece) == *id
            {
                return Ok(piece);
            }
        }
        self.objects.read(id)
    }

    /// Returns the chunks of an object according to all its copies.
    pub(crate) fn chunks(&self, id: &ObjectId) -> Result<Vec<ObjectId>> {
        let rows = self.find(id);
        let (mut chunks, mut is_known) = (Vec::new(), false);
        for row in rows {
            let Row { pack, at, .. } = self.rows[row];
            let Some(pack) = &self.packs[pack as usize].pack else {
                continue;
            };
            let header = self.objects.0.pack_set.header(pack, at).ok().flatten();
            match header.map(|block| block.kind) {
                Some(BlockKind::List) => match self.entry(row) {
                    Ok(Some(PackEntry::List(list))) if list.id == *id => {
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
            PackEntry::List(List { chunks, .. }) => chunks,
            PackEntry::Piece(_) => Vec::new(),
        })
    }

    fn entry(&self, row: usize) -> io::Result<Option<PackEntry>> {
        let Row { pack, at, .. } = self.rows[row];
        let Some(pack) = &self.packs[pack as usize].pack else {
            return Ok(None);
        };
        let pack_set = &self.objects.0.pack_set;
        let file = pack_set.file(pack.name)?;
        read_entry(file.as_ref(), pack.salt(), at.into(), &pack_set.codec)
    }

    /// Counts the unreferenced bytes of each pack. Called once, after everything is
    /// marked.
    pub(super) fn count_dead(&mut self) {
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

    /// Returns what happens to the copy at an offset of a pack.
    pub(super) fn fate(&self, pack: usize, id: &ObjectId, at: u32) -> Fate {
        let rows = self.find(id);
        let is_it = |row: &usize| {
            let row = &self.rows[*row];
            row.pack as usize == pack && row.at == at
        };
        if !rows.clone().any(|row| is_it(&row)) {
            // It was stored since, and a reference to it may follow.
            return Fate::Stays;
        }
        if !self.marks[Mark::Live as usize].get(rows.start) {
            return Fate::Dead;
        }
        if self.marks[Mark::Safe as usize].get(rows.start) {
            return Fate::Redundant;
        }
        let is_only = rows.len() == 1;
        let candidates = rows.filter(|row| {
            let state = &self.packs[self.rows[*row].pack as usize];
            !state.is_busy && !state.is_removed && !self.broken.get(*row)
        });
        // The copy in the pack that has the least reason to be rewritten.
        let best = candidates.min_by_key(|row| {
            let row = &self.rows[*row];
            let state = &self.packs[row.pack as usize];
            (state.dead, !state.name.is_sealed, row.pack, row.at)
        });
        match best {
            Some(best) if is_it(&best) && !is_only => Fate::StaysOf(best),
            Some(best) if is_it(&best) => Fate::Stays,
            Some(best) => Fate::RedundantTo(best),
            // All copies are broken: this one is left as it is.
            None => Fate::Stays,
        }
    }

    /// Remembers that a copy is damaged.
    pub(super) fn set_broken(&mut self, pack: usize, id: &ObjectId, at: u32) {
        for row in self.find(id) {
            let found = &self.rows[row];
            if found.pack as usize == pack && found.at == at {
                self.broken.set(row);
            }
        }
    }

    /// Reads and checks the copy that is to be kept.
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

/// What happens to a copy of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Nothing refers to it.
    Dead,
    /// It is the only copy and is kept.
    Stays,
    /// It is the one of several copies that is kept, if it is intact.
    StaysOf(usize),
    /// Another copy was written and checked.
    Redundant,
    /// Another copy is kept, and must be checked before this one is removed.
    RedundantTo(usize),
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

/// A bit set of fixed length.
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
