//! Iterates over a directory's listing, node by node.

use std::vec;

use super::entry::{DirEntry, Node};
use super::node::{Listing, read_listing};
use super::source::Nodes;
use crate::error::{Error, ErrorKind, Result};
use crate::objects::ObjectId;

/// No listing is this high, even if its names were chosen to make it so.
const MAX_HEIGHT: u32 = 64;

/// A position in a listing. Nodes are read only when they are opened.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    /// The nodes ahead, in reverse order.
    ahead: Vec<PendingNode>,
    leaf: vec::IntoIter<DirEntry>,
    /// The last name of the nodes opened or skipped so far.
    floor: Option<Box<[u8]>>,
}

#[derive(Debug)]
struct PendingNode {
    id: ObjectId,
    /// The last name below it; unknown for the topmost node.
    last: Option<Box<[u8]>>,
    depth: u32,
}

/// The next item of a listing.
#[derive(Debug)]
pub(crate) enum Next<'a> {
    Entry(&'a DirEntry),
    /// A node that is not open yet, and the last name below it.
    Node(ObjectId, Option<&'a [u8]>),
    End,
}

impl Cursor {
    pub(crate) fn new(listing: ObjectId) -> Self {
        Self {
            ahead: vec![PendingNode {
                id: listing,
                last: None,
                depth: 0,
            }],
            ..Self::default()
        }
    }

    pub(crate) fn peek(&self) -> Next<'_> {
        match (self.leaf.as_slice().first(), self.ahead.last()) {
            (Some(entry), _) => Next::Entry(entry),
            (None, Some(node)) => Next::Node(node.id, node.last.as_deref()),
            (None, None) => Next::End,
        }
    }

    /// Returns the next entry, if the cursor is at one.
    pub(crate) fn take(&mut self) -> Option<DirEntry> {
        self.leaf.next()
    }

    /// Returns whether all names up to `end` were opened or skipped.
    pub(crate) fn is_past(&self, end: &[u8]) -> bool {
        self.floor.as_deref().is_some_and(|floor| floor >= end)
    }

    /// Skips the next node.
    pub(crate) fn skip(&mut self) {
        if let Some(node) = self.ahead.pop() {
            self.floor = node.last;
        }
    }

    /// Opens the next node. One that cannot be read is skipped.
    pub(crate) fn open(&mut self, nodes: &dyn Nodes) -> Result<()> {
        let Some(node) = self.ahead.pop() else {
            return Ok(());
        };
        let opened = self.open_node(&node, nodes);
        if opened.is_err() {
            self.floor = node.last;
        }
        opened
    }

    fn open_node(&mut self, node: &PendingNode, nodes: &dyn Nodes) -> Result<()> {
        match read_listing(&node.id, &nodes.node(&node.id)?)? {
            Listing::Leaf(entries) => {
                let first = entries.first().map(|entry| &*entry.name);
                let last = entries.last().map(|entry| &*entry.name);
                self.check(node, first, last)?;
                self.floor = last.map(Into::into);
                self.leaf = entries.into_iter();
            }
            Listing::Branch(children) => {
                let first = children.first().map(|child| &*child.last);
                self.check(node, first, children.last().map(|child| &*child.last))?;
                let depth = node.depth + 1;
                self.ahead
                    .extend(children.into_iter().rev().map(|child| PendingNode {
                        id: child.id,
                        last: Some(child.last),
                        depth,
                    }));
            }
        }
        Ok(())
    }

    /// Returns the next entry, opening nodes as needed.
    pub(crate) fn advance(&mut self, nodes: &dyn Nodes) -> Result<Option<DirEntry>> {
        loop {
            match self.peek() {
                Next::Entry(_) => return Ok(self.take()),
                Next::Node(..) => self.open(nodes)?,
                Next::End => return Ok(None),
            }
        }
    }

    /// Checks that a node's names belong at this position.
    fn check(&self, node: &PendingNode, first: Option<&[u8]>, last: Option<&[u8]>) -> Result<()> {
        let follows = self.floor.is_none() || first > self.floor.as_deref();
        let ends = node.last.is_none() || last == node.last.as_deref();
        if follows && ends && node.depth < MAX_HEIGHT {
            Ok(())
        } else {
            Err(misplaced(&node.id))
        }
    }
}

/// Finds a name, reading only the nodes that lead to it.
pub(crate) fn find(nodes: &dyn Nodes, listing: ObjectId, name: &[u8]) -> Result<Option<Node>> {
    let mut id = listing;
    for _ in 0..MAX_HEIGHT {
        match read_listing(&id, &nodes.node(&id)?)? {
            Listing::Leaf(mut entries) => {
                let at = entries.binary_search_by(|entry| (*entry.name).cmp(name));
                return Ok(at.ok().map(|at| entries.swap_remove(at).node));
            }
            Listing::Branch(children) => {
                let at = children.partition_point(|child| *child.last < *name);
                match children.get(at) {
                    Some(child) => id = child.id,
                    None => return Ok(None),
                }
            }
        }
    }
    Err(misplaced(&listing))
}

fn misplaced(id: &ObjectId) -> Error {
    let what = format!("object {id} is in the wrong directory");
    Error::new(ErrorKind::Corrupt, what)
}
