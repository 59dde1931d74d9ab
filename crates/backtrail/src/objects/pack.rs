//! A pack, as a reader knows it.

use std::collections::{HashMap, HashSet};
use std::io;

use super::ObjectId;
use super::blocks::{Blocks, Found};
use super::codec::Codec;
use super::entry::{proven_id, read_entry};
use super::format::{
    BLOCK_HEADER, Block, Kind, MAGIC, PACK_HEADER, RECORD, Record, Salt, SealIndex, TAIL, Tail,
    parse_commit,
};
use super::name::PackName;
use crate::storage::{StorageFile, read_full};

/// Commits are mostly shorter than this.
const GUESS: u64 = 2 << 10;
/// Our packs are far shorter; what is longer is not read, whatever it says.
const LONGEST: u64 = 1 << 30;

/// A pack and what it holds, as of the last look.
#[derive(Debug)]
pub(super) struct Pack {
    pub(super) name: PackName,
    index: Index,
    /// How long the file was.
    pub(super) len: u64,
    /// Where the last commit or the seal ends; the header's end without one.
    pub(super) end: u64,
    /// What the last commit or the seal ends with.
    pub(super) last: Option<Tail>,
    /// Entries before this place, and what names them, are durable for sure.
    pub(super) settled: u64,
    pub(super) rest: Rest,
    /// Where something was that should have named entries.
    pub(super) damage: Vec<u64>,
    /// The last bytes of the file, by which to see that it is the same still.
    ending: Vec<u8>,
}

#[derive(Debug)]
enum Index {
    Sealed(SealIndex),
    Known(HashMap<ObjectId, u32>),
}

/// What stands behind the last commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    Nothing,
    /// What a writer has not finished, or never will.
    Unfinished,
    /// Bytes that no writer leaves: perhaps what was a commit once.
    Unknown,
}

/// What a file is that has the name of a pack.
#[derive(Debug)]
pub(super) enum Look {
    Pack(Box<Pack>),
    /// Nothing but the beginning of a header.
    Empty,
    /// A pack of a version that is not known here.
    Newer,
    /// Nothing of ours.
    Foreign,
}

impl Pack {
    /// Learns what is in a pack.
    pub(super) fn look(file: &dyn StorageFile, name: PackName, codec: &Codec) -> io::Result<Look> {
        let len = file.len()?;
        if len > LONGEST {
            return Ok(Look::Foreign);
        }
        if let Some(pack) = Self::from_end(file, name, len)? {
            return Ok(Look::Pack(Box::new(pack)));
        }
        let pack = Self::scan(file, name, len, codec, Orphans::IfDamaged)?;
        if pack.last.is_some() || !pack.is_empty() {
            return Ok(Look::Pack(Box::new(pack)));
        }
        let mut header = [0; PACK_HEADER];
        let n = read_full(file, &mut header, 0)?;
        Ok(match &header[..n] {
            header if header == MAGIC => Look::Pack(Box::new(pack)),
            header if is_header(header) => Look::Empty,
            header if header.starts_with(&MAGIC[..PACK_HEADER - 1]) => Look::Newer,
            _ => Look::Foreign,
        })
    }

    /// Looks again where damage hid something: every block is read.
    ///
    /// `None` if there is nothing wrong with what names the entries.
    pub(super) fn look_closely(
        &self,
        file: &dyn StorageFile,
        codec: &Codec,
    ) -> io::Result<Option<Self>> {
        if let Index::Sealed(seal) = &self.index {
            let at = u64::from(seal.tail.at) + BLOCK_HEADER as u64;
            let records = read_range(file, at, at + seal.shape.records_len() as u64)?;
            if seal.is_right(&records, self.salt()) {
                return Ok(None);
            }
        }
        let pack = Self::scan(file, self.name, file.len()?, codec, Orphans::Always)?;
        Ok(Some(pack))
    }

    /// Returns whether the file has changed since, by its length and its end.
    pub(super) fn has_changed(&self, file: &dyn StorageFile) -> io::Result<bool> {
        Ok(file.len()? != self.len || ending(file, self.len)? != self.ending)
    }

    pub(super) fn salt(&self) -> Salt {
        self.name.salt()
    }

    pub(super) fn is_sealed(&self) -> bool {
        matches!(self.index, Index::Sealed(_)) || self.name.is_sealed
    }

    /// Returns whether something that named entries is not readable any more.
    pub(super) fn is_damaged(&self) -> bool {
        !self.damage.is_empty() || self.rest == Rest::Unknown
    }

    pub(super) fn is_empty(&self) -> bool {
        match &self.index {
            Index::Sealed(seal) => seal.shape.count == 0,
            Index::Known(known) => known.is_empty(),
        }
    }

    /// Returns up to where the bytes of entries were durable before they were
    /// named: what is named there is there.
    pub(super) fn durable(&self) -> u64 {
        let last = self.last.map_or(0, |last| u64::from(last.durable));
        last.max(self.settled)
    }

    /// Hands out the places at which an object may stand, until one is taken.
    pub(super) fn find(
        &self,
        file: impl FnOnce() -> io::Result<std::sync::Arc<dyn StorageFile>>,
        id: &ObjectId,
    ) -> io::Result<Vec<u32>> {
        let seal = match &self.index {
            Index::Known(known) => return Ok(known.get(id).copied().into_iter().collect()),
            Index::Sealed(seal) => seal,
        };
        let mut positions = seal.positions(id).peekable();
        if positions.peek().is_none() {
            return Ok(Vec::new());
        }
        let file = file()?;
        let begin = u64::from(seal.tail.at) + BLOCK_HEADER as u64;
        let mut places = Vec::new();
        for position in positions {
            let mut bytes = [0; RECORD];
            let n = read_full(
                file.as_ref(),
                &mut bytes,
                begin + (position * RECORD) as u64,
            )?;
            let record = Record::parse(&bytes[..n]);
            places.extend(
                record
                    .filter(|record| record.id == *id)
                    .map(|record| record.at),
            );
        }
        Ok(places)
    }

    /// Returns all that is named.
    pub(super) fn records(&self, file: &dyn StorageFile) -> io::Result<Vec<Record>> {
        let seal = match &self.index {
            Index::Known(known) => {
                let records = known.iter().map(|(id, at)| Record { id: *id, at: *at });
                return Ok(records.collect());
            }
            Index::Sealed(seal) => seal,
        };
        let at = u64::from(seal.tail.at) + BLOCK_HEADER as u64;
        let bytes = read_range(file, at, at + seal.shape.records_len() as u64)?;
        Ok(bytes
            .chunks_exact(RECORD)
            .filter_map(Record::parse)
            .collect())
    }

    /// Reads a pack from its end backwards, commit by commit. `None` if one of
    /// them is not right.
    fn from_end(file: &dyn StorageFile, name: PackName, len: u64) -> io::Result<Option<Self>> {
        let salt = name.salt();
        let Some(named) = Named::ending_at(file, salt, len)? else {
            return Ok(None);
        };
        let mut pack = Self {
            name,
            index: Index::Known(HashMap::new()),
            len,
            end: len,
            last: Some(named.tail()),
            settled: 0,
            rest: Rest::Nothing,
            damage: Vec::new(),
            ending: ending(file, len)?,
        };
        let (mut tail, mut records) = match named {
            Named::Seal(seal) => {
                pack.index = Index::Sealed(seal);
                pack.settled = if name.is_sealed { len } else { 0 };
                return Ok(Some(pack));
            }
            Named::Commit(tail, records) => (tail, records),
        };
        let durable = u64::from(tail.durable);
        let mut known = HashMap::new();
        loop {
            for record in records.iter().rev() {
                known.entry(record.id).or_insert(record.at);
            }
            if tail.previous == 0 {
                break;
            }
            let end = u64::from(tail.previous);
            if pack.settled == 0 && end <= durable {
                pack.settled = end;
            }
            match Named::ending_at(file, salt, end)? {
                Some(Named::Commit(before, named)) if before.at < tail.at => {
                    (tail, records) = (before, named);
                }
                _ => return Ok(None),
            }
        }
        pack.index = Index::Known(known);
        Ok(Some(pack))
    }

    /// Reads a pack block by block.
    fn scan(
        file: &dyn StorageFile,
        name: PackName,
        len: u64,
        codec: &Codec,
        orphans: Orphans,
    ) -> io::Result<Self> {
        let salt = name.salt();
        let mut known = HashMap::new();
        let mut named = HashSet::new();
        let (mut end, mut last) = (PACK_HEADER as u64, None);
        let (mut rest, mut rest_at, mut damage) = (Rest::Nothing, 0, Vec::new());
        let mut blocks = Blocks::new(file, salt, len);
        while let Some(found) = blocks.next()? {
            let commit = match found {
                Found::Block { at, block } if block.kind == Kind::Commit => {
                    parse_commit(&read_range(file, at, block.end(at))?, salt, at)
                }
                _ => None,
            };
            let Some((tail, records)) = commit else {
                let left = left_by(file, found)?;
                if left == Rest::Unknown && rest != Rest::Unknown {
                    rest_at = found.at();
                }
                rest = rest.and(left);
                continue;
            };
            if rest == Rest::Unknown {
                damage.push(rest_at);
            }
            rest = Rest::Nothing;
            last = Some(tail);
            end = found.end();
            named.extend(records.iter().map(|record| record.at));
            known.extend(records.iter().map(|record| (record.id, record.at)));
        }
        if name.is_sealed {
            damage.push(if rest == Rest::Unknown { rest_at } else { end });
        }
        if !damage.is_empty() || rest == Rest::Unknown || orphans == Orphans::Always {
            let to = if name.is_sealed || rest == Rest::Unknown {
                len
            } else {
                end
            };
            adopt(file, salt, to, codec, &named, &mut known)?;
        }
        let settled = if name.is_sealed { len } else { 0 };
        Ok(Self {
            name,
            index: Index::Known(known),
            len,
            end,
            last,
            settled,
            rest,
            damage,
            ending: ending(file, len)?,
        })
    }
}

/// Whether to look for entries that nothing names any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Orphans {
    IfDamaged,
    Always,
}

impl Rest {
    fn and(self, other: Self) -> Self {
        if self == Self::Unknown || other == Self::Unknown {
            return Self::Unknown;
        }
        Self::Unfinished
    }
}

/// Returns what a block, or what is none, says about who left it.
fn left_by(file: &dyn StorageFile, found: Found) -> io::Result<Rest> {
    Ok(match found {
        Found::Block { block, .. } if block.kind.is_entry() => Rest::Unfinished,
        Found::Block { .. } => Rest::Unknown,
        Found::Torn { .. } => Rest::Unfinished,
        Found::Gap { from, to } => {
            if is_zero(file, from, to)? {
                Rest::Unfinished
            } else {
                Rest::Unknown
            }
        }
    })
}

/// Takes in the entries that nothing names, by what their content says.
fn adopt(
    file: &dyn StorageFile,
    salt: Salt,
    len: u64,
    codec: &Codec,
    named: &HashSet<u32>,
    known: &mut HashMap<ObjectId, u32>,
) -> io::Result<()> {
    let mut blocks = Blocks::new(file, salt, len);
    while let Some(found) = blocks.next()? {
        let Found::Block { at, block } = found else {
            continue;
        };
        let Ok(place) = u32::try_from(at) else { break };
        if !block.kind.is_entry() || named.contains(&place) {
            continue;
        }
        if let Some(entry) = read_entry(file, salt, at, codec)? {
            known.entry(proven_id(&entry)).or_insert(place);
        }
    }
    Ok(())
}

/// What a pack, or the beginning of one, ends with.
enum Named {
    Commit(Tail, Vec<Record>),
    Seal(SealIndex),
}

impl Named {
    fn tail(&self) -> Tail {
        match self {
            Self::Commit(tail, _) => *tail,
            Self::Seal(seal) => seal.tail,
        }
    }

    /// Reads the commit or the seal that ends at a place, if one does.
    fn ending_at(file: &dyn StorageFile, salt: Salt, end: u64) -> io::Result<Option<Self>> {
        let from = end.saturating_sub(GUESS).max(PACK_HEADER as u64);
        if from >= end {
            return Ok(None);
        }
        let near = read_range(file, from, end)?;
        let Some(tail) = Tail::parse(&near).filter(|_| near.len() as u64 == end - from) else {
            return Ok(None);
        };
        let at = u64::from(tail.at);
        let begin = if at >= from {
            near.get((at - from) as usize..).unwrap_or_default()
        } else {
            &read_range(file, at, at + BLOCK_HEADER as u64)?
        };
        let Some(block) = Block::parse(begin, salt, at).filter(|block| block.end(at) == end) else {
            return Ok(None);
        };
        Ok(match block.kind {
            Kind::Commit if at >= from => parse_commit(begin, salt, at),
            Kind::Commit => parse_commit(&read_range(file, at, end)?, salt, at),
            Kind::Seal => return Self::seal(file, salt, at, block, end),
            _ => None,
        }
        .map(|(tail, records)| Self::Commit(tail, records)))
    }

    fn seal(
        file: &dyn StorageFile,
        salt: Salt,
        at: u64,
        block: Block,
        end: u64,
    ) -> io::Result<Option<Self>> {
        let header = block.encode(salt, at);
        let records = (block.raw as usize * RECORD) as u64;
        let index = read_range(file, at + BLOCK_HEADER as u64 + records, end)?;
        Ok(SealIndex::parse(&header, &index, salt, at).map(Self::Seal))
    }
}

/// Returns whether these bytes are a pack's header as far as they go, with NUL
/// bytes where a power cut may have left some. Nothing is read from there.
pub(super) fn is_header(bytes: &[u8]) -> bool {
    let mut pairs = bytes.iter().zip(MAGIC);
    pairs.all(|(byte, right)| byte == right || *byte == 0)
}

fn ending(file: &dyn StorageFile, len: u64) -> io::Result<Vec<u8>> {
    read_range(file, len.saturating_sub(TAIL as u64), len)
}

fn is_zero(file: &dyn StorageFile, mut from: u64, to: u64) -> io::Result<bool> {
    while from < to {
        let bytes = read_range(file, from, to.min(from + (64 << 10)))?;
        if bytes.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        from += bytes.len().max(1) as u64;
    }
    Ok(true)
}

/// Reads a part of a file, as far as it goes.
///
/// The part lies within the file as it was measured, so no number in it can ask
/// for more memory than the file is long.
pub(super) fn read_range(file: &dyn StorageFile, from: u64, to: u64) -> io::Result<Vec<u8>> {
    let len = usize::try_from(to.saturating_sub(from)).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let mut bytes = vec![0; len];
    let n = read_full(file, &mut bytes, from)?;
    bytes.truncate(n);
    Ok(bytes)
}
