//! A tree of lines, of which each names the one before it: the conversation that is at the end
//! of the file, and the branches that were abandoned.

use std::ops::Range;

/// No node.
pub(super) const NONE: u32 = u32::MAX;

/// How many times the file's bytes branches may repeat. In a file in which thousands of
/// branches share a stem, the stem is omitted.
const MAX_REPEATED: u64 = 4;

/// Where a line is, and what it continues.
#[derive(Debug)]
struct Node {
    start: u64,
    len: u64,
    /// The parent, which is always earlier in the file, so there are no cycles.
    parent: u32,
    on_main: bool,
}

/// Lines that continue each other.
#[derive(Debug, Default)]
pub(super) struct Forest(Vec<Node>);

/// An abandoned conversation.
#[derive(Debug)]
pub(super) struct Branch {
    /// The node of the file's own thread that it continues.
    pub(super) leaves: u32,
    /// The nodes that it shares with another branch.
    pub(super) stem: Vec<u32>,
    /// Its own nodes.
    pub(super) own: Vec<u32>,
}

impl Forest {
    /// Adds a line that continues an earlier one, or none.
    pub(super) fn push(&mut self, range: &Range<u64>, parent: u32) {
        self.0.push(Node {
            start: range.start,
            len: range.end - range.start,
            parent,
            on_main: false,
        });
    }

    /// Marks the nodes that lead to a leaf as the file's own thread.
    pub(super) fn mark_main(&mut self, leaf: u32) {
        let mut at = leaf as usize;
        while let Some(node) = self.0.get_mut(at) {
            node.on_main = true;
            at = node.parent as usize;
        }
    }

    pub(super) fn is_on_main(&self, at: u32) -> bool {
        self.0.get(at as usize).is_some_and(|node| node.on_main)
    }

    /// Returns where a node is in the file.
    pub(super) fn range(&self, at: u32) -> Range<u64> {
        match self.0.get(at as usize) {
            Some(node) => node.start..node.start + node.len,
            None => 0..0,
        }
    }

    /// Returns the abandoned conversations, in an order that does not change as the file grows:
    /// where nodes part, the first one continues the conversation before them.
    pub(super) fn branches(&self) -> Vec<Branch> {
        let mut next = vec![NONE; self.0.len()];
        let mut starts = Vec::new();
        for (at, node) in self.0.iter().enumerate() {
            if node.on_main {
                continue;
            }
            let at = at as u32;
            match next.get_mut(node.parent as usize) {
                Some(next) if *next == NONE && !self.is_on_main(node.parent) => *next = at,
                _ => starts.push(at),
            }
        }
        let mut left = MAX_REPEATED * self.0.iter().map(|node| node.len).sum::<u64>();
        let branch = |start| self.branch(start, &next, &mut left);
        starts.into_iter().map(branch).collect()
    }

    fn branch(&self, start: u32, next: &[u32], left: &mut u64) -> Branch {
        let mut own = vec![start];
        let mut at = start;
        while let Some(following) = next.get(at as usize).filter(|next| **next != NONE) {
            at = *following;
            own.push(at);
        }
        let mut stem = Vec::new();
        let mut leaves = self.0[start as usize].parent;
        let mut bytes = 0;
        while leaves != NONE && !self.is_on_main(leaves) && bytes <= *left {
            let node = &self.0[leaves as usize];
            bytes += node.len + 1;
            stem.push(leaves);
            leaves = node.parent;
        }
        if bytes > *left {
            stem.clear();
            leaves = NONE;
        }
        *left = left.saturating_sub(bytes);
        stem.reverse();
        Branch { leaves, stem, own }
    }
}
