//! A pack as a reader sees it.

use std::collections::{HashMap, HashSet};
use std::io;

use super::ObjectId;
use super::blocks::{Blocks, Segment};
use super::codec::Codec;
use super::entry::{proven_id, read_entry};
use super::format::{
    BLOCK_HEADER, Block, BlockKind, MAGIC, PACK_HEADER, RECORD, Record, Salt, SealIndex, TAIL,
    Tail, parse_commit,
};
use super::pack_name::PackName;
use crate::storage::{StorageFile, read_full, read_range};

/// Commits are mostly shorter than this.
const GUESS: u64 = 2 << 10;
/// Packs written here are far shorter; longer files are not read at all.
const LONGEST: u64 = 1 << 30;

/// A pack and its index when it was last opened.
#[derive(Debug)]
pub(super) struct Pack {
    pub(super) name: PackName,
    index: PackIndex,
    pub(super) len: u64,
    /// Where the last commit or the seal ends, or the end of the header if there is
    /// neither.
    pub(super) end: u64,
    /// The tail of the last commit or the seal.
    pub(super) last: Option<Tail>,
    /// Entries before this offset, and what names them, are certainly durable.
    pub(super) settled: u64,
    pub(super) leftover: Leftover,
    /// Offsets of damaged blocks that should have named entries.
    pub(super) damage: Vec<u64>,
    /// The last bytes of the file, to detect changes.
    ending: Vec<u8>,
}

#[derive(Debug)]
enum PackIndex {
    Sealed(SealIndex),
    Table(HashMap<ObjectId, u32>),
}

/// The bytes after the last commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leftover {
    Nothing,
    /// A commit that its writer has not finished, or never will.
    Unfinished,
    /// Bytes that no writer leaves, perhaps a damaged commit.
    Unknown,
}

/// A file with the name of a pack.
#[derive(Debug)]
pub(super) enum PackFile {
    Pack(Box<Pack>),
    /// At most the beginning of a header.
    Empty,
    /// A pack in a format that this version does not know.
    Newer,
    /// Not a pack.
    Foreign,
}

impl Pack {
    /// Reads a pack's index.
    pub(super) fn open(
        file: &dyn StorageFile,
        name: PackName,
        codec: &Codec,
    ) -> io::Result<PackFile> {
        let len = file.len()?;
        if len > LONGEST {
            return Ok(PackFile::Foreign);
        }
        if let Some(pack) = Self::from_end(file, name, len)? {
            return Ok(PackFile::Pack(Box::new(pack)));
        }
        let pack = Self::scan(file, name, len, codec, Orphans::IfDamaged)?;
        if pack.last.is_some() || !pack.is_empty() {
            return Ok(PackFile::Pack(Box::new(pack)));
        }
        let mut header = [0; PACK_HEADER];
        let n = read_full(file, &mut header, 0)?;
        Ok(match &header[..n] {
            header if header == MAGIC => PackFile::Pack(Box::new(pack)),
            header if is_header(header) => PackFile::Empty,
            header if header.starts_with(&MAGIC[..PACK_HEADER - 1]) => PackFile::Newer,
            _ => PackFile::Foreign,
        })
    }

    /// Reads every block to find entries hidden by damage.
    ///
    /// Returns `None` if the index is intact.
    pub(super) fn rescan(&self, file: &dyn StorageFile, codec: &Codec) -> io::Result<Option<Self>> {
        if let PackIndex::Sealed(seal) = &self.index {
            let at = u64::from(seal.tail.at) + BLOCK_HEADER as u64;
            let records = read_range(file, at..at + seal.shape.records_len() as u64)?;
            if seal.is_right(&records, self.salt()) {
                return Ok(None);
            }
        }
        let pack = Self::scan(file, self.name, file.len()?, codec, Orphans::Always)?;
        Ok(Some(pack))
    }

    /// Returns whether the file has changed since, judging by its length and its last
    /// bytes.
    pub(super) fn has_changed(&self, file: &dyn StorageFile) -> io::Result<bool> {
        Ok(file.len()? != self.len || ending(file, self.len)? != self.ending)
    }

    pub(super) fn salt(&self) -> Salt {
        self.name.salt()
    }

    pub(super) fn is_sealed(&self) -> bool {
        matches!(self.index, PackIndex::Sealed(_)) || self.name.is_sealed
    }

    /// Returns whether something that named entries is no longer readable.
    pub(super) fn is_damaged(&self) -> bool {
        !self.damage.is_empty() || self.leftover == Leftover::Unknown
    }

    pub(super) fn is_empty(&self) -> bool {
        match &self.index {
            PackIndex::Sealed(seal) => seal.shape.count == 0,
            PackIndex::Table(known) => known.is_empty(),
        }
    }

    /// Returns the offset before which entries were durable before they were named, so
    /// that they are certainly present.
    pub(super) fn durable(&self) -> u64 {
        let last = self.last.map_or(0, |last| u64::from(last.durable));
        last.max(self.settled)
    }

    /// Returns the offsets at which the index lists an object.
    pub(super) fn find(
        &self,
        file: impl FnOnce() -> io::Result<std::sync::Arc<dyn StorageFile>>,
        id: &ObjectId,
    ) -> io::Result<Vec<u32>> {
        let seal = match &self.index {
            PackIndex::Table(known) => return Ok(known.get(id).copied().into_iter().collect()),
            PackIndex::Sealed(seal) => seal,
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

    /// Returns all entries that are named.
    pub(super) fn records(&self, file: &dyn StorageFile) -> io::Result<Vec<Record>> {
        let seal = match &self.index {
            PackIndex::Table(known) => {
                let records = known.iter().map(|(id, at)| Record { id: *id, at: *at });
                return Ok(records.collect());
            }
            PackIndex::Sealed(seal) => seal,
        };
        let at = u64::from(seal.tail.at) + BLOCK_HEADER as u64;
        let bytes = read_range(file, at..at + seal.shape.records_len() as u64)?;
        Ok(bytes
            .chunks_exact(RECORD)
            .filter_map(Record::parse)
            .collect())
    }

    /// Reads a pack from its end backwards, commit by commit. Returns `None` if a commit
    /// is damaged.
    fn from_end(file: &dyn StorageFile, name: PackName, len: u64) -> io::Result<Option<Self>> {
        let salt = name.salt();
        let Some(named) = LastBlock::ending_at(file, salt, len)? else {
            return Ok(None);
        };
        let mut pack = Self {
            name,
            index: PackIndex::Table(HashMap::new()),
            len,
            end: len,
            last: Some(named.tail()),
            settled: 0,
            leftover: Leftover::Nothing,
            damage: Vec::new(),
            ending: ending(file, len)?,
        };
        let (mut tail, mut records) = match named {
            LastBlock::Seal(seal) => {
                pack.index = PackIndex::Sealed(seal);
                pack.settled = if name.is_sealed { len } else { 0 };
                return Ok(Some(pack));
            }
            LastBlock::Commit(tail, records) => (tail, records),
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
            match LastBlock::ending_at(file, salt, end)? {
                Some(LastBlock::Commit(before, named)) if before.at < tail.at => {
                    (tail, records) = (before, named);
                }
                _ => return Ok(None),
            }
        }
        pack.index = PackIndex::Table(known);
        Ok(Some(pack))
    }

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
        let (mut rest, mut rest_at, mut damage) = (Leftover::Nothing, 0, Vec::new());
        let mut blocks = Blocks::new(file, salt, len);
        while let Some(found) = blocks.next()? {
            let commit = match found {
                Segment::Block { at, block } if block.kind == BlockKind::Commit => {
                    parse_commit(&read_range(file, at..block.end(at))?, salt, at)
                }
                _ => None,
            };
            let Some((tail, records)) = commit else {
                let left = left_by(file, found)?;
                if left == Leftover::Unknown && rest != Leftover::Unknown {
                    rest_at = found.at();
                }
                rest = rest.and(left);
                continue;
            };
            if rest == Leftover::Unknown {
                damage.push(rest_at);
            }
            rest = Leftover::Nothing;
            last = Some(tail);
            end = found.end();
            named.extend(records.iter().map(|record| record.at));
            known.extend(records.iter().map(|record| (record.id, record.at)));
        }
        if name.is_sealed {
            damage.push(if rest == Leftover::Unknown {
                rest_at
            } else {
                end
            });
        }
        if !damage.is_empty() || rest == Leftover::Unknown || orphans == Orphans::Always {
            let to = if name.is_sealed || rest == Leftover::Unknown {
                len
            } else {
                end
            };
            adopt(file, salt, to, codec, &named, &mut known)?;
        }
        let settled = if name.is_sealed { len } else { 0 };
        Ok(Self {
            name,
            index: PackIndex::Table(known),
            len,
            end,
            last,
            settled,
            leftover: rest,
            damage,
            ending: ending(file, len)?,
        })
    }
}

/// When to look for entries that nothing names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Orphans {
    IfDamaged,
    Always,
}

impl Leftover {
    fn and(self, other: Self) -> Self {
        if self == Self::Unknown || other == Self::Unknown {
            return Self::Unknown;
        }
        Self::Unfinished
    }
}

/// Returns whether a writer could have left these bytes.
fn left_by(file: &dyn StorageFile, found: Segment) -> io::Result<Leftover> {
    Ok(match found {
        Segment::Block { block, .. } if block.kind.is_entry() => Leftover::Unfinished,
        Segment::Block { .. } => Leftover::Unknown,
        Segment::Torn { .. } => Leftover::Unfinished,
        Segment::Gap { from, to } => {
            if is_zero(file, from, to)? {
                Leftover::Unfinished
            } else {
                Leftover::Unknown
            }
        }
    })
}

/// Adds the entries that nothing names, under the id of their content.
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
        let Segment::Block { at, block } = found else {
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

/// The last block of a pack, or of the part before an offset.
enum LastBlock {
    Commit(Tail, Vec<Record>),
    Seal(SealIndex),
}

impl LastBlock {
    fn tail(&self) -> Tail {
        match self {
            Self::Commit(tail, _) => *tail,
            Self::Seal(seal) => seal.tail,
        }
    }

    /// Reads the commit or the seal that ends at an offset.
    fn ending_at(file: &dyn StorageFile, salt: Salt, end: u64) -> io::Result<Option<Self>> {
        let from = end.saturating_sub(GUESS).max(PACK_HEADER as u64);
        if from >= end {
            return Ok(None);
        }
        let near = read_range(file, from..end)?;
        let Some(tail) = Tail::parse(&near).filter(|_| near.len() as u64 == end - from) else {
            return Ok(None);
        };
        let at = u64::from(tail.at);
        let begin = if at >= from {
            near.get((at - from) as usize..).unwrap_or_default()
        } else {
            &read_range(file, at..at + BLOCK_HEADER as u64)?
        };
        let Some(block) = Block::parse(begin, salt, at).filter(|block| block.end(at) == end) else {
            return Ok(None);
        };
        Ok(match block.kind {
            BlockKind::Commit if at >= from => parse_commit(begin, salt, at),
            BlockKind::Commit => parse_commit(&read_range(file, at..end)?, salt, at),
            BlockKind::Seal => return Self::seal(file, salt, at, block, end),
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
        let index = read_range(file, at + BLOCK_HEADER as u64 + records..end)?;
        Ok(SealIndex::parse(&header, &index, salt, at).map(Self::Seal))
    }
}

/// Returns whether bytes are a pack's header as far as they go, allowing for NUL bytes
/// left by a power cut. Nothing is read from the header itself.
pub(super) fn is_header(bytes: &[u8]) -> bool {
    let mut pairs = bytes.iter().zip(MAGIC);
    pairs.all(|(byte, right)| byte == right || *byte == 0)
}

fn ending(file: &dyn StorageFile, len: u64) -> io::Result<Vec<u8>> {
    read_range(file, len.saturating_sub(TAIL as u64)..len)
}

fn is_zero(file: &dyn StorageFile, mut from: u64, to: u64) -> io::Result<bool> {
    while from < to {
        let bytes = read_range(file, from..to.min(from + (64 << 10)))?;
        if bytes.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        from += bytes.len().max(1) as u64;
    }
    Ok(true)
}
