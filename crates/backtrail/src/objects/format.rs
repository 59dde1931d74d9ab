//! The bytes of a pack: its header, its blocks, and how each is checked.
//!
//! A pack is a header followed by blocks. Entries hold content; a *commit* names the
//! entries since the previous commit, and the *seal* at the end of a full pack names all
//! of them, sorted. Every check includes the pack's salt and the block's offset, so that
//! a pack stored as content is never mistaken for blocks.

use super::ObjectId;

/// The first bytes of every pack; the digit is the version.
pub(super) const MAGIC: &[u8; 16] = b"backtrail pack 1";
/// The length of a pack's header.
pub(super) const PACK_HEADER: usize = MAGIC.len();
/// The length of a block's header.
pub(super) const BLOCK_HEADER: usize = 16;
/// The length of the tail of a commit or a seal.
pub(super) const TAIL: usize = 24;
/// The length of an id with its offset.
pub(super) const RECORD: usize = ObjectId::LEN + 4;
/// The first bytes of every block, by which blocks are found after damage.
pub(super) const MARK: [u8; 2] = [0xba, 0x7c];

/// The longest content of an entry. Longer contents are lists of chunks.
pub(super) const MAX_RAW: usize = 16 << 20;
const CHECK: usize = 8;

/// The random bytes in a pack's name.
pub(super) type Salt = [u8; 8];

/// The kind of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockKind {
    /// Uncompressed content.
    Plain = 1,
    /// Content compressed with zstd.
    Zstd = 2,
    /// The chunks of a content.
    List = 3,
    Commit = 4,
    Seal = 5,
}

impl BlockKind {
    fn from_byte(byte: u8) -> Option<Self> {
        [
            Self::Plain,
            Self::Zstd,
            Self::List,
            Self::Commit,
            Self::Seal,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == byte)
    }

    pub(super) fn is_entry(self) -> bool {
        matches!(self, Self::Plain | Self::Zstd | Self::List)
    }
}

/// A block's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) kind: BlockKind,
    /// How many bytes follow the header.
    pub(super) stored: u32,
    /// The length of the content; for a commit or a seal, the number of entries it names.
    pub(super) raw: u32,
}

impl Block {
    pub(super) fn encode(self, salt: Salt, at: u64) -> [u8; BLOCK_HEADER] {
        let mut bytes = [0; BLOCK_HEADER];
        bytes[..2].copy_from_slice(&MARK);
        bytes[2] = self.kind as u8;
        bytes[4..8].copy_from_slice(&self.stored.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.raw.to_le_bytes());
        let check = check(salt, at, &[&bytes[..12]]);
        bytes[12..].copy_from_slice(&check[..4]);
        bytes
    }

    /// Parses the header of the block at `at`, if it is valid and claims nothing that no
    /// writer would.
    pub(super) fn parse(bytes: &[u8], salt: Salt, at: u64) -> Option<Self> {
        let bytes: &[u8; BLOCK_HEADER] = bytes.first_chunk()?;
        let block = Self {
            kind: BlockKind::from_byte(bytes[2])?,
            stored: number(bytes, 4)?,
            raw: number(bytes, 8)?,
        };
        (block.encode(salt, at) == *bytes && block.is_sound()).then_some(block)
    }

    fn is_sound(self) -> bool {
        let (stored, raw) = (self.stored as usize, self.raw as usize);
        match self.kind {
            BlockKind::Plain | BlockKind::List => stored == raw && raw <= MAX_RAW,
            BlockKind::Zstd => stored < raw && raw <= MAX_RAW,
            BlockKind::Commit => Some(stored) == commit_len(raw),
            BlockKind::Seal => Some(stored) == SealShape::of(raw).map(|shape| shape.len),
        }
    }

    /// Returns where a block that begins at `at` ends.
    pub(super) fn end(self, at: u64) -> u64 {
        at + (BLOCK_HEADER as u64) + u64::from(self.stored)
    }
}

/// The offset of a named object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Record {
    pub(super) id: ObjectId,
    pub(super) at: u32,
}

impl Record {
    pub(super) fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.id.as_bytes());
        out.extend_from_slice(&self.at.to_le_bytes());
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            id: ObjectId::from_bytes(*bytes.first_chunk()?),
            at: number(bytes, ObjectId::LEN)?,
        })
    }
}

/// The end of a commit or a seal, by which it is found from the end of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tail {
    /// Where the block begins.
    pub(super) at: u32,
    /// Where the previous commit ends, or 0.
    pub(super) previous: u32,
    /// All bytes before this offset were durable when the block was written.
    pub(super) durable: u32,
    /// The number of commits so far.
    pub(super) commits: u32,
    pub(super) check: [u8; CHECK],
}

impl Tail {
    /// Parses the last bytes of a block, which are not checked yet.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; TAIL] = bytes.last_chunk()?;
        Some(Self {
            at: number(bytes, 0)?,
            previous: number(bytes, 4)?,
            durable: number(bytes, 8)?,
            commits: number(bytes, 12)?,
            check: *bytes.last_chunk()?,
        })
    }

    fn write(self, out: &mut Vec<u8>) {
        for number in [self.at, self.previous, self.durable, self.commits] {
            out.extend_from_slice(&number.to_le_bytes());
        }
    }
}

/// Encodes the block that names the entries of one commit.
pub(super) fn encode_commit(salt: Salt, tail: Tail, records: &[Record]) -> Option<Vec<u8>> {
    let block = Block {
        kind: BlockKind::Commit,
        stored: u32::try_from(commit_len(records.len())?).ok()?,
        raw: u32::try_from(records.len()).ok()?,
    };
    let mut out = Vec::with_capacity(BLOCK_HEADER + block.stored as usize);
    out.extend_from_slice(&block.encode(salt, tail.at.into()));
    for record in records {
        record.write(&mut out);
    }
    tail.write(&mut out);
    let check = check(salt, tail.at.into(), &[&out]);
    out.extend_from_slice(&check);
    Some(out)
}

/// Returns the tail and the records of a commit block, if it is intact.
pub(super) fn parse_commit(bytes: &[u8], salt: Salt, at: u64) -> Option<(Tail, Vec<Record>)> {
    let block = Block::parse(bytes, salt, at).filter(|block| block.kind == BlockKind::Commit)?;
    let (body, sum) = bytes.split_last_chunk::<CHECK>()?;
    let tail = Tail::parse(bytes).filter(|tail| u64::from(tail.at) == at)?;
    let whole = bytes.len() as u64 == block.end(0) && check(salt, at, &[body]) == *sum;
    let records = body.get(BLOCK_HEADER..)?.chunks_exact(RECORD);
    let records = records.take(block.raw as usize).map(Record::parse);
    whole.then(|| Some((tail, records.collect::<Option<_>>()?)))?
}

fn commit_len(count: usize) -> Option<usize> {
    count.checked_mul(RECORD)?.checked_add(TAIL)
}

/// The layout of a seal's body: the sorted records, a two-byte tag of each id, the end of
/// each bucket of ids, the check of the records, and the tail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SealShape {
    pub(super) count: usize,
    /// The number of leading id bits that choose the bucket.
    pub(super) bits: u32,
    pub(super) len: usize,
}

impl SealShape {
    /// The approximate number of ids in a bucket.
    const BUCKET: usize = 16;

    pub(super) fn of(count: usize) -> Option<Self> {
        let buckets = count.div_ceil(Self::BUCKET).checked_next_power_of_two()?;
        let fixed = buckets.checked_mul(4)?.checked_add(CHECK + TAIL)?;
        Some(Self {
            count,
            bits: buckets.trailing_zeros(),
            len: count.checked_mul(RECORD + 2)?.checked_add(fixed)?,
        })
    }

    /// Returns the length of the records, which follow the header.
    pub(super) fn records_len(self) -> usize {
        self.count * RECORD
    }

    pub(super) fn bucket(self, id: &ObjectId) -> usize {
        let lead = number(id.as_bytes(), 0).map_or(0, u32::swap_bytes);
        lead.checked_shr(32 - self.bits).unwrap_or(0) as usize
    }

    pub(super) fn tag(id: &ObjectId) -> u16 {
        let [.., a, b] = *id.as_bytes();
        u16::from_le_bytes([a, b])
    }
}

/// Encodes the block that names all entries of a pack.
pub(super) fn encode_seal(salt: Salt, tail: Tail, records: &mut Vec<Record>) -> Option<Vec<u8>> {
    records.sort_unstable();
    records.dedup();
    let shape = SealShape::of(records.len())?;
    let block = Block {
        kind: BlockKind::Seal,
        stored: u32::try_from(shape.len).ok()?,
        raw: u32::try_from(records.len()).ok()?,
    };
    let at = u64::from(tail.at);
    let mut out = Vec::with_capacity(BLOCK_HEADER + shape.len);
    out.extend_from_slice(&block.encode(salt, at));
    for record in &*records {
        record.write(&mut out);
    }
    let records_check = check(salt, at, &[&out[BLOCK_HEADER..]]);
    let index_at = out.len();
    for record in &*records {
        out.extend_from_slice(&SealShape::tag(&record.id).to_le_bytes());
    }
    let mut reach = vec![0_u32; 1 << shape.bits];
    for record in &*records {
        reach[shape.bucket(&record.id)] += 1;
    }
    let mut sum = 0;
    for count in reach {
        sum += count;
        out.extend_from_slice(&sum.to_le_bytes());
    }
    out.extend_from_slice(&records_check);
    tail.write(&mut out);
    let check = check(salt, at, &[&out[..BLOCK_HEADER], &out[index_at..]]);
    out.extend_from_slice(&check);
    Some(out)
}

/// The part of a seal that is kept in memory.
#[derive(Debug)]
pub(super) struct SealIndex {
    pub(super) shape: SealShape,
    pub(super) tail: Tail,
    tags: Vec<u16>,
    reach: Vec<u32>,
    records_check: [u8; CHECK],
}

impl SealIndex {
    /// Parses a seal from its header and the bytes after its records, if it is intact.
    pub(super) fn parse(header: &[u8], index: &[u8], salt: Salt, at: u64) -> Option<Self> {
        let block = Block::parse(header, salt, at).filter(|block| block.kind == BlockKind::Seal)?;
        let shape = SealShape::of(block.raw as usize)?;
        let (body, sum) = index.split_last_chunk::<CHECK>()?;
        let right = index.len() == shape.len - shape.records_len()
            && check(salt, at, &[&header[..BLOCK_HEADER], body]) == *sum;
        let tail = Tail::parse(index).filter(|tail| right && u64::from(tail.at) == at)?;
        let (tags, rest) = body.split_at_checked(shape.count * 2)?;
        let (reach, rest) = rest.split_at_checked(4 << shape.bits)?;
        Some(Self {
            shape,
            tail,
            tags: tags
                .chunks_exact(2)
                .map(|tag| u16::from_le_bytes([tag[0], tag[1]]))
                .collect(),
            reach: reach
                .chunks_exact(4)
                .filter_map(|bytes| number(bytes, 0))
                .collect(),
            records_check: *rest.first_chunk()?,
        })
    }

    /// Returns the positions among the records at which an id may be.
    pub(super) fn positions<'a>(&'a self, id: &ObjectId) -> impl Iterator<Item = usize> + 'a {
        let (bucket, tag) = (self.shape.bucket(id), SealShape::tag(id));
        let reach = |bucket: usize| self.reach.get(bucket).map_or(0, |reach| *reach as usize);
        let from = bucket.checked_sub(1).map_or(0, reach);
        let tags = self.tags.get(from..reach(bucket)).unwrap_or_default();
        let hits = tags.iter().enumerate().filter(move |(_, own)| **own == tag);
        hits.map(move |(position, _)| from + position)
    }

    /// Returns whether these are the records that were sealed.
    pub(super) fn is_right(&self, records: &[u8], salt: Salt) -> bool {
        check(salt, self.tail.at.into(), &[records]) == self.records_check
    }
}

fn check(salt: Salt, at: u64, parts: &[&[u8]]) -> [u8; CHECK] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&salt).update(&at.to_le_bytes());
    for part in parts {
        hasher.update(part);
    }
    let mut check = [0; CHECK];
    check.copy_from_slice(&hasher.finalize().as_bytes()[..CHECK]);
    check
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The chunks of a content, stored as an object of its own.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct List {
    pub(super) id: ObjectId,
    pub(super) len: u64,
    pub(super) chunks: Vec<ObjectId>,
}

impl List {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(48 + self.chunks.len() * ObjectId::LEN);
        out.extend_from_slice(self.id.as_bytes());
        out.extend_from_slice(&self.len.to_le_bytes());
        for chunk in &self.chunks {
            out.extend_from_slice(chunk.as_bytes());
        }
        let check = check([0; 8], 0, &[&out]);
        out.extend_from_slice(&check);
        out
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let (body, sum) = bytes.split_last_chunk::<CHECK>()?;
        let (id, rest) = body.split_first_chunk()?;
        let (len, chunks) = rest.split_first_chunk()?;
        let (chunks, []) = chunks.as_chunks::<{ ObjectId::LEN }>() else {
            return None;
        };
        (check([0; 8], 0, &[body]) == *sum).then(|| Self {
            id: ObjectId::from_bytes(*id),
            len: u64::from_le_bytes(*len),
            chunks: chunks.iter().copied().map(ObjectId::from_bytes).collect(),
        })
    }
}
