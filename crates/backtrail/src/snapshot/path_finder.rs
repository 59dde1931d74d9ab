//! One path in many snapshots. Directories that are the same in several of them are read once,
//! and no content is read.

use std::collections::HashMap;
use std::path::Path;

use super::cursor::find;
use super::entry::Node;
use super::name::names_of;
use super::node::read_root;
use super::source::Nodes;
use crate::error::Result;
use crate::objects::ObjectId;

/// Finds a path in snapshots.
#[derive(Debug)]
pub(crate) struct PathFinder<'a> {
    nodes: &'a dyn Nodes,
    names: Vec<&'a [u8]>,
    /// What is at the path below a listing, by how deep that is.
    known: HashMap<(usize, ObjectId), Option<Node>>,
}

impl<'a> PathFinder<'a> {
    pub(crate) fn new(nodes: &'a dyn Nodes, path: &'a Path) -> Result<Self> {
        Ok(Self {
            nodes,
            names: names_of(path)?,
            known: HashMap::new(),
        })
    }

    /// Returns what a snapshot has at the path, or the skipped entry that leads to it.
    pub(crate) fn find(&mut self, snapshot: &ObjectId) -> Result<Option<Node>> {
        let root = read_root(snapshot, &self.nodes.node(snapshot)?)?;
        self.below(0, root.listing)
    }

    fn below(&mut self, depth: usize, listing: ObjectId) -> Result<Option<Node>> {
        if let Some(known) = self.known.get(&(depth, listing)) {
            return Ok(known.clone());
        }
        let found = match find(self.nodes, listing, self.names[depth])? {
            found if depth + 1 == self.names.len() => found,
            Some(Node::Dir(dir)) => self.below(depth + 1, dir.listing)?,
            found @ Some(Node::Skipped(_)) => found,
            _ => None,
        };
        self.known.insert((depth, listing), found.clone());
        Ok(found)
    }
}
