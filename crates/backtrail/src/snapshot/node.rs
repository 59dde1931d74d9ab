//! The encoding of directories as objects.
//!
//! A listing is a list of entries in byte order of their names. A long listing is split
//! into nodes after names whose hash says so, and the list of nodes is split the same
//! way. So a change in a directory of a hundred thousand files writes only a few small
//! nodes. The split depends on the names alone: the same listing always gives the same
//! objects.

use super::codec::{Input, is_name, write_bytes, write_number};
use super::entry::{Dir, DirEntry, Node, Skipped, Totals};
use crate::error::{Error, ErrorKind, Result};
use crate::objects::ObjectId;

/// The version of nodes that this version writes.
const VERSION: u8 = 1;
const MAGIC: &[u8] = b"btn";

const LEAF: u8 = 1;
const BRANCH: u8 = 2;
const ROOT: u8 = 3;

const FILE: u8 = 1;
const LINK: u8 = 2;
const DIR: u8 = 3;
const LEFT_OUT: u8 = 4;

const IGNORED: u8 = 1;

/// The number of hash bits that decide a split, and so the average node length.
const CUT_BITS: u32 = 5;

/// A child of a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Child {
    /// The last name below it.
    pub(crate) last: Box<[u8]>,
    pub(crate) id: ObjectId,
}

/// A decoded node of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Listing {
    Leaf(Vec<DirEntry>),
    Branch(Vec<Child>),
}

/// Writes a listing and returns its topmost node. `entries` must be sorted by name,
/// without duplicates.
pub(crate) fn write_listing(
    entries: &[DirEntry],
    put: &mut dyn FnMut(&[u8]) -> Result<ObjectId>,
) -> Result<ObjectId> {
    let mut level = Vec::new();
    let mut bytes = begin(LEAF);
    for (n, entry) in entries.iter().enumerate() {
        write_entry(&mut bytes, entry);
        if n + 1 == entries.len() || is_cut(&entry.name, 0) {
            level.push(Child {
                last: entry.name.clone(),
                id: put(&bytes)?,
            });
            bytes = begin(LEAF);
        }
    }
    if level.is_empty() {
        return put(&bytes);
    }
    let mut height = 1;
    while level.len() > 1 {
        level = write_branches(&level, height, put)?;
        height += 1;
    }
    Ok(level[0].id)
}

/// Writes a snapshot of an empty directory and returns its id.
pub(crate) fn write_empty(
    mode: u32,
    put: &mut dyn FnMut(&[u8]) -> Result<ObjectId>,
) -> Result<(ObjectId, Dir)> {
    let root = Dir {
        mode,
        listing: write_listing(&[], put)?,
        totals: Totals::default(),
    };
    Ok((put(&write_root(&root))?, root))
}

/// Writes one level of branches above `children`.
fn write_branches(
    children: &[Child],
    height: u32,
    put: &mut dyn FnMut(&[u8]) -> Result<ObjectId>,
) -> Result<Vec<Child>> {
    let mut level = Vec::new();
    let mut bytes = begin(BRANCH);
    let mut held = 0;
    for (n, child) in children.iter().enumerate() {
        write_bytes(&mut bytes, &child.last);
        bytes.extend_from_slice(child.id.as_bytes());
        held += 1;
        // At least two, so that every level is shorter than the one below.
        if n + 1 == children.len() || (held > 1 && is_cut(&child.last, height)) {
            level.push(Child {
                last: child.last.clone(),
                id: put(&bytes)?,
            });
            bytes = begin(BRANCH);
            held = 0;
        }
    }
    Ok(level)
}

/// Returns whether a node of this height ends after `name`.
fn is_cut(name: &[u8], height: u32) -> bool {
    let hash = blake3::hash(name);
    let bits = u64::from_le_bytes(hash.as_bytes()[..8].try_into().expect("eight bytes"));
    let shift = (height * CUT_BITS) % (u64::BITS - CUT_BITS);
    (bits >> shift).trailing_zeros() >= CUT_BITS
}

/// Encodes the root of a snapshot.
pub(crate) fn write_root(root: &Dir) -> Vec<u8> {
    let mut bytes = begin(ROOT);
    write_dir(&mut bytes, root);
    bytes
}

fn begin(kind: u8) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(64);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&[VERSION, kind]);
    bytes
}

fn write_entry(out: &mut Vec<u8>, entry: &DirEntry) {
    write_bytes(out, &entry.name);
    match &entry.node {
        Node::File {
            mode,
            size,
            content,
            ignored,
        } => {
            out.extend_from_slice(&[FILE, flags(*ignored)]);
            write_number(out, u64::from(*mode));
            write_number(out, *size);
            out.extend_from_slice(content.as_bytes());
        }
        Node::Link { target, ignored } => {
            out.extend_from_slice(&[LINK, flags(*ignored)]);
            write_bytes(out, target);
        }
        Node::Dir(dir) => {
            out.push(DIR);
            write_dir(out, dir);
        }
        Node::Skipped(skipped) => {
            out.extend_from_slice(&[LEFT_OUT, skipped.reason as u8, skipped.kind as u8]);
            write_number(out, skipped.size);
        }
    }
}

fn write_dir(out: &mut Vec<u8>, dir: &Dir) {
    write_number(out, u64::from(dir.mode));
    write_number(out, dir.totals.files);
    write_number(out, dir.totals.bytes);
    write_number(out, dir.totals.skipped);
    out.extend_from_slice(dir.listing.as_bytes());
}

fn flags(ignored: bool) -> u8 {
    if ignored { IGNORED } else { 0 }
}

/// Decodes a node of a listing.
pub(crate) fn read_listing(id: &ObjectId, bytes: &[u8]) -> Result<Listing> {
    let mut input = Input(bytes);
    let listing = match input.node_kind(id)? {
        LEAF => input.entries().map(Listing::Leaf),
        BRANCH => input.children().map(Listing::Branch),
        _ => None,
    };
    listing.ok_or_else(|| malformed(id))
}

/// Decodes the root of a snapshot.
pub(crate) fn read_root(id: &ObjectId, bytes: &[u8]) -> Result<Dir> {
    let mut input = Input(bytes);
    match input.node_kind(id)? {
        ROOT => input.dir().filter(|_| input.0.is_empty()),
        _ => None,
    }
    .ok_or_else(|| malformed(id))
}

fn malformed(id: &ObjectId) -> Error {
    let what = format!("object {id} is not the expected part of a snapshot");
    Error::new(ErrorKind::Corrupt, what)
}

impl Input<'_> {
    /// Reads the start of a node and returns its kind.
    fn node_kind(&mut self, id: &ObjectId) -> Result<u8> {
        let header = self.take(MAGIC.len() + 2).ok_or_else(|| malformed(id))?;
        let (magic, rest) = header.split_at(MAGIC.len());
        if magic != MAGIC {
            return Err(malformed(id));
        }
        if rest[0] > VERSION {
            let what = format!(
                "object {id} has version {}, but this program knows {VERSION}; upgrade Backtrail",
                rest[0]
            );
            return Err(Error::new(ErrorKind::NewerFormat, what));
        }
        Ok(rest[1])
    }

    fn entries(&mut self) -> Option<Vec<DirEntry>> {
        let mut entries: Vec<DirEntry> = Vec::new();
        while !self.0.is_empty() {
            let name = self.name()?;
            if entries.last().is_some_and(|last| last.name >= name) {
                return None;
            }
            let node = self.node()?;
            entries.push(DirEntry { name, node });
        }
        Some(entries)
    }

    fn children(&mut self) -> Option<Vec<Child>> {
        let mut children: Vec<Child> = Vec::new();
        while !self.0.is_empty() {
            let last = self.name()?;
            if children.last().is_some_and(|child| child.last >= last) {
                return None;
            }
            let id = self.id()?;
            children.push(Child { last, id });
        }
        (!children.is_empty()).then_some(children)
    }

    fn node(&mut self) -> Option<Node> {
        match self.byte()? {
            FILE => {
                let ignored = self.ignored()?;
                Some(Node::File {
                    mode: self.mode()?,
                    size: self.number()?,
                    content: self.id()?,
                    ignored,
                })
            }
            LINK => {
                let ignored = self.ignored()?;
                let target = self.bytes()?.into();
                Some(Node::Link { target, ignored })
            }
            DIR => self.dir().map(Node::Dir),
            LEFT_OUT => {
                let reason = self.reason()?;
                let kind = self.file_kind()?;
                let size = self.number()?;
                Some(Node::Skipped(Skipped { reason, kind, size }))
            }
            _ => None,
        }
    }

    fn dir(&mut self) -> Option<Dir> {
        let mode = self.mode()?;
        let totals = Totals {
            files: self.number()?,
            bytes: self.number()?,
            skipped: self.number()?,
        };
        let listing = self.id()?;
        Some(Dir {
            mode,
            listing,
            totals,
        })
    }

    /// Reads a name, rejecting names that lead elsewhere.
    fn name(&mut self) -> Option<Box<[u8]>> {
        self.bytes().filter(|name| is_name(name)).map(Into::into)
    }

    fn ignored(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            IGNORED => Some(true),
            _ => None,
        }
    }
}
