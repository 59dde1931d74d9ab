//! The stat cache: what the last scan knew. It is a hint, never the truth.
//!
//! The cache is one buffer, read in place. Directories are in breadth-first order, so
//! that those of one parent follow each other, and an unchanged directory has the same
//! bytes in the next cache, wherever it is. A check over everything comes first; a cache
//! that fails it is ignored.

use std::ffi::CStr;

use super::super::codec::{Input, is_name, write_bytes, write_number};
use super::super::entry::{Dir, FileKind, Skipped, SkippedReason, Totals};
use super::rules::{RuleFiles, RulesKey, Verdict};
use super::sys::Stamp;
use crate::objects::ObjectId;

const MAGIC: &[u8; 4] = b"btsc";
const VERSION: u8 = 1;
const CHECK: usize = 32;
/// Magic, version, check, device, number of directories.
const FRONT: usize = MAGIC.len() + 1 + CHECK + 8 + 4;
/// A directory's length, and the number of its first child.
const PLACE: usize = 8;

const FILE: u8 = 0;
const LINK: u8 = 1;
const DIR: u8 = 2;
const LEFT_OUT: u8 = 3;
const KIND_BITS: u8 = 0b0000_0011;
const VERDICT_SHIFT: u8 = 2;
const VERDICT_BITS: u8 = 0b0000_1100;
const RACY: u8 = 0b0001_0000;
/// Both times are equal and stored once.
const ONE_TIME: u8 = 0b0010_0000;

/// The stat cache of one workspace.
#[derive(Debug)]
pub(crate) struct StatCache {
    bytes: Vec<u8>,
    device: u64,
    places: Vec<DirSpan>,
}

#[derive(Debug, Clone, Copy)]
struct DirSpan {
    at: usize,
    len: usize,
    first_child: u32,
}

impl StatCache {
    /// Returns an empty cache.
    pub(crate) fn empty() -> Self {
        Self {
            bytes: Vec::new(),
            device: 0,
            places: Vec::new(),
        }
    }

    /// Reads a cache; `None` if it has another version or is damaged. The caller must
    /// know whether the objects it names are still stored.
    pub(crate) fn decode(bytes: Vec<u8>) -> Option<Self> {
        let mut input = Input(bytes.get(..FRONT)?);
        let right = input.take(MAGIC.len())? == MAGIC && input.byte()? == VERSION;
        let check = input.take(CHECK)?;
        let checked = &bytes[MAGIC.len() + 1 + CHECK..];
        if !right || blake3::hash(checked).as_bytes() != check {
            return None;
        }
        let device = input.fixed()?;
        let count = u32::from_le_bytes(input.take(4)?.try_into().ok()?) as usize;
        let places = places(bytes.get(FRONT..)?, count)?;
        Some(Self {
            bytes,
            device,
            places,
        })
    }

    /// Returns the encoded cache.
    pub(crate) fn encode(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns whether the cache was made on the file system of the root.
    pub(super) fn is_of(&self, device: u64) -> bool {
        !self.places.is_empty() && self.device == device
    }

    /// Returns the record of a directory; 0 is the root.
    pub(super) fn record(&self, number: u32) -> Option<CachedDir<'_>> {
        let place = self.places.get(number as usize)?;
        CachedDir::read(self.raw(number)?, place.first_child)
    }

    /// Returns a directory's bytes.
    pub(super) fn raw(&self, number: u32) -> Option<&[u8]> {
        let place = self.places.get(number as usize)?;
        self.bytes.get(place.at..place.at + place.len)
    }
}

/// Finds where each directory's record is.
fn places(body: &[u8], count: usize) -> Option<Vec<DirSpan>> {
    let table = body.get(..count.checked_mul(PLACE)?)?;
    let mut at = FRONT + table.len();
    let end = FRONT + body.len();
    let mut places = Vec::with_capacity(count);
    for place in table.chunks_exact(PLACE) {
        let number = |from: usize| Some(u32::from_le_bytes(place[from..from + 4].try_into().ok()?));
        let len = number(0)? as usize;
        places.push(DirSpan {
            at,
            len,
            first_child: number(4)?,
        });
        at = at.checked_add(len).filter(|at| *at <= end)?;
    }
    (at == end).then_some(places)
}

/// Assembles a cache, directory by directory, breadth first.
#[derive(Debug, Default)]
pub(super) struct CacheWriter {
    table: Vec<u8>,
    body: Vec<u8>,
    count: u32,
}

impl CacheWriter {
    /// Adds a directory; `None` if the cache would grow too large.
    pub(super) fn add(&mut self, record: &[u8], first_child: u32) -> Option<()> {
        let len = u32::try_from(record.len()).ok()?;
        self.table.extend_from_slice(&len.to_le_bytes());
        self.table.extend_from_slice(&first_child.to_le_bytes());
        self.body.extend_from_slice(record);
        self.count = self.count.checked_add(1)?;
        Some(())
    }

    pub(super) fn finish(self, device: u64) -> Option<StatCache> {
        let mut bytes = Vec::with_capacity(FRONT + self.table.len() + self.body.len());
        bytes.extend_from_slice(MAGIC);
        bytes.push(VERSION);
        bytes.extend_from_slice(&[0; CHECK]);
        bytes.extend_from_slice(&device.to_le_bytes());
        bytes.extend_from_slice(&self.count.to_le_bytes());
        bytes.extend_from_slice(&self.table);
        bytes.extend_from_slice(&self.body);
        let (front, checked) = bytes.split_at_mut(MAGIC.len() + 1 + CHECK);
        front[MAGIC.len() + 1..].copy_from_slice(blake3::hash(checked).as_bytes());
        let places = places(&bytes[FRONT..], self.count as usize)?;
        Some(StatCache {
            bytes,
            device,
            places,
        })
    }
}

/// The cached state of one directory.
#[derive(Debug, Clone, Copy)]
pub(super) struct CachedDir<'a> {
    pub(super) head: CachedHead,
    /// The number of its first subdirectory with a record.
    pub(super) first_child: u32,
    entries: &'a [u8],
}

/// The part of a record before the entries.
#[derive(Debug, Clone, Copy)]
pub(super) struct CachedHead {
    /// Its inode and times; the size is ignored.
    pub(super) stamp: Stamp,
    pub(super) racy: bool,
    pub(super) files: RuleFiles,
    pub(super) key: RulesKey,
    pub(super) listing: ObjectId,
    pub(super) totals: Totals,
}

impl CachedHead {
    /// Returns the directory as its parent lists it.
    pub(super) fn dir(&self) -> Dir {
        Dir {
            mode: self.stamp.mode,
            listing: self.listing,
            totals: self.totals,
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.racy));
        out.push(self.files.bits());
        out.extend_from_slice(&self.key);
        out.extend_from_slice(self.listing.as_bytes());
        out.extend_from_slice(&self.stamp.mtime.to_le_bytes());
        out.extend_from_slice(&self.stamp.ctime.to_le_bytes());
        write_number(out, self.stamp.ino);
        write_number(out, u64::from(self.stamp.mode));
        write_number(out, self.totals.files);
        write_number(out, self.totals.bytes);
        write_number(out, self.totals.skipped);
    }
}

impl<'a> CachedDir<'a> {
    fn read(bytes: &'a [u8], first_child: u32) -> Option<Self> {
        let mut input = Input(bytes);
        let racy = input.byte()? != 0;
        let files = RuleFiles::from_bits(input.byte()?)?;
        let key = input.take(size_of::<RulesKey>())?.try_into().ok()?;
        let listing = input.id()?;
        let mut stamp = Stamp {
            mtime: input.fixed()?,
            ctime: input.fixed()?,
            ino: input.number()?,
            ..Stamp::default()
        };
        stamp.mode = input.mode()?;
        let totals = Totals {
            files: input.number()?,
            bytes: input.number()?,
            skipped: input.number()?,
        };
        let head = CachedHead {
            stamp,
            racy,
            files,
            key,
            listing,
            totals,
        };
        Some(Self {
            head,
            first_child,
            entries: input.0,
        })
    }

    /// Returns its entries by name. An item is `None` if the bytes are invalid; then
    /// nothing in the record can be trusted.
    pub(super) fn entries(&self) -> CachedEntries<'a> {
        CachedEntries {
            input: Input(self.entries),
            next_child: self.first_child,
        }
    }
}

/// The cached state of one name.
#[derive(Debug, Clone, Copy)]
pub(super) struct CachedEntry<'a> {
    pub(super) name: &'a CStr,
    pub(super) verdict: Verdict,
    /// Whether its times were too recent to detect a later change.
    pub(super) racy: bool,
    pub(super) node: CachedNode<'a>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum CachedNode<'a> {
    File {
        stamp: Stamp,
        content: ObjectId,
    },
    Link {
        stamp: Stamp,
        target: &'a [u8],
    },
    /// The number of its record.
    Dir(u32),
    Skipped(Skipped),
}

impl CachedEntry<'_> {
    /// Returns whether the scan walks this directory to find its state.
    pub(super) fn is_walked(&self) -> bool {
        match self.node {
            CachedNode::Dir(_) => true,
            CachedNode::Skipped(skipped) => is_walked(&skipped),
            _ => false,
        }
    }

    pub(super) fn is_captured(&self) -> bool {
        !matches!(self.node, CachedNode::Skipped(_))
    }

    pub(super) fn is_dir(&self) -> bool {
        match self.node {
            CachedNode::Dir(_) => true,
            CachedNode::Skipped(skipped) => skipped.kind == FileKind::Dir,
            _ => false,
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let verdict = (self.verdict.by_rules() as u8) << VERDICT_SHIFT;
        let racy = if self.racy { RACY } else { 0 };
        let (kind, stamp) = match self.node {
            CachedNode::File { stamp, .. } => (FILE, Some(stamp)),
            CachedNode::Link { stamp, .. } => (LINK, Some(stamp)),
            CachedNode::Dir(_) => (DIR, None),
            CachedNode::Skipped(_) => (LEFT_OUT, None),
        };
        let one_time = stamp.is_some_and(|stamp| stamp.mtime == stamp.ctime);
        out.push(kind | verdict | racy | if one_time { ONE_TIME } else { 0 });
        out.extend_from_slice(self.name.to_bytes_with_nul());
        if let Some(stamp) = stamp {
            write_stamp(out, &stamp, one_time);
        }
        match self.node {
            CachedNode::File { content, .. } => out.extend_from_slice(content.as_bytes()),
            CachedNode::Link { target, .. } => write_bytes(out, target),
            CachedNode::Dir(_) => {}
            CachedNode::Skipped(skipped) => {
                out.push(skipped.reason as u8);
                out.push(skipped.kind as u8);
                write_number(out, skipped.size);
            }
        }
    }
}

/// Returns whether a directory must be opened to find out that it is skipped.
pub(super) fn is_walked(skipped: &Skipped) -> bool {
    use SkippedReason::{OtherFileSystem, Store, Unreadable};
    let reason = matches!(skipped.reason, Unreadable | OtherFileSystem | Store);
    skipped.kind == FileKind::Dir && reason
}

/// The entries of one directory, by name.
#[derive(Debug, Clone)]
pub(super) struct CachedEntries<'a> {
    input: Input<'a>,
    next_child: u32,
}

impl<'a> Iterator for CachedEntries<'a> {
    type Item = Option<CachedEntry<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.input.0.is_empty() {
            return None;
        }
        let known = self.input.known(self.next_child);
        match known {
            Some(known) if matches!(known.node, CachedNode::Dir(_)) => {
                self.next_child = self.next_child.saturating_add(1);
            }
            Some(_) => {}
            None => self.input.0 = &[],
        }
        Some(known)
    }
}

fn write_stamp(out: &mut Vec<u8>, stamp: &Stamp, one_time: bool) {
    out.extend_from_slice(&stamp.mtime.to_le_bytes());
    if !one_time {
        out.extend_from_slice(&stamp.ctime.to_le_bytes());
    }
    write_number(out, stamp.ino);
    write_number(out, stamp.size);
    write_number(out, u64::from(stamp.mode));
}

impl<'a> Input<'a> {
    fn known(&mut self, next_child: u32) -> Option<CachedEntry<'a>> {
        let flags = self.byte()?;
        let name = CStr::from_bytes_until_nul(self.0).ok()?;
        self.take(name.count_bytes() + 1)?;
        if !is_name(name.to_bytes()) {
            return None;
        }
        let node = match flags & KIND_BITS {
            FILE => CachedNode::File {
                stamp: self.stamp(flags)?,
                content: self.id()?,
            },
            LINK => {
                let stamp = self.stamp(flags)?;
                let target = self.bytes()?;
                CachedNode::Link { stamp, target }
            }
            DIR => CachedNode::Dir(next_child),
            _ => CachedNode::Skipped(Skipped {
                reason: self.reason()?,
                kind: self.file_kind()?,
                size: self.number()?,
            }),
        };
        Some(CachedEntry {
            name,
            verdict: match (flags & VERDICT_BITS) >> VERDICT_SHIFT {
                0 => Verdict::Plain,
                1 => Verdict::Ignored,
                2 => Verdict::Excluded,
                _ => Verdict::Inside,
            },
            racy: flags & RACY != 0,
            node,
        })
    }

    fn stamp(&mut self, flags: u8) -> Option<Stamp> {
        let mtime = self.fixed()?;
        let ctime = match flags & ONE_TIME {
            0 => self.fixed()?,
            _ => mtime,
        };
        Some(Stamp {
            mtime,
            ctime,
            ino: self.number()?,
            size: self.number()?,
            mode: self.mode()?,
        })
    }

    fn fixed(&mut self) -> Option<u64> {
        let bytes = self.take(8)?;
        bytes.try_into().ok().map(u64::from_le_bytes)
    }
}
