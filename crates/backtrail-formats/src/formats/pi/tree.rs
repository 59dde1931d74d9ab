//! The tree of a file's entries: a few bytes for each, nothing of what they say.

use std::collections::HashMap;
use std::ops::Range;

use super::super::pieces::{Seen, hash_of, key_of};
use super::entry::{Kind, kind};
use crate::json::Object;
use crate::reading::{Found, Reading};

/// Stands for no entry.
pub(super) const NONE: u32 = u32::MAX;

/// How many bytes branches may repeat, for each that there is: a file made so that
/// thousands of branches share a stem is told without it.
const REPEATED: u64 = 4;

/// One entry.
#[derive(Debug)]
struct Node {
    start: u64,
    len: u64,
    /// The entry before it, which always stands before it in the file.
    parent: u32,
    /// The first entry that a compaction keeps.
    kept: u32,
    /// How many messages a compaction keeps by itself.
    tail: u32,
    /// How many messages lead to it.
    said: u32,
    /// How many entries had its id before.
    again: u32,
    /// The last entry that is told, among those that lead to it and itself.
    told: u32,
    says: bool,
    on_main: bool,
}

/// The entries of a file, or those that came since it was read last.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    by_id: HashMap<[u8; 16], u32>,
    /// How many entries came before these, and how many messages.
    base: u64,
    base_said: u32,
    linear: bool,
    is_new: bool,
    pub(super) last_id: Option<String>,
    pub(super) seen: Seen,
    /// What the session is called, at the end of the file.
    pub(super) title: Option<String>,
}

/// A conversation that was left.
#[derive(Debug)]
pub(super) struct Branch {
    /// The entry on the file's own thread from which it goes on.
    pub(super) leaves: u32,
    /// What it shares with another branch.
    pub(super) stem: Vec<u32>,
    /// What is its own.
    pub(super) own: Vec<u32>,
}

impl Tree {
    pub(super) fn new() -> Self {
        Self {
            nodes: Vec::new(),
            by_id: HashMap::new(),
            base: 0,
            base_said: 0,
            linear: true,
            is_new: true,
            last_id: None,
            seen: Seen::default(),
            title: None,
        }
    }

    /// Begins behind entries that were read before and followed one another.
    pub(super) fn behind(entries: u64, said: u32, last_id: Option<String>, seen: Seen) -> Self {
        Self {
            base: entries,
            base_said: said,
            is_new: entries == 0,
            last_id,
            seen,
            ..Self::new()
        }
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns how many messages lead to the end, those before these included.
    pub(super) fn said(&self) -> u32 {
        let last = self.nodes.last();
        last.map_or(self.base_said, |last| last.said + u32::from(last.says))
    }

    /// Returns whether every entry follows the one before it, so that no more than new
    /// entries need to be read when the file has grown.
    pub(super) fn is_linear(&self) -> bool {
        self.linear
    }

    /// Adds the next entry of the file.
    pub(super) fn add(&mut self, found: &Found, reading: &mut Reading<'_>) {
        let object = &found.object;
        let kind = kind(object);
        match &kind {
            Kind::Unknown(name) => reading.unknown(name),
            Kind::Damaged(reason) => reading.damaged(found, *reason),
            Kind::Title(title) => self.title = Some(title.clone()),
            _ => {}
        }
        let id = object.string("id").map(|id| id.into_owned());
        let parent = match kind {
            Kind::Leaf => self.target(object),
            _ => self.parent(object, id.is_some()),
        };
        let (said, told) = match self.nodes.get(parent as usize) {
            Some(parent) => (parent.said + u32::from(parent.says), parent.told),
            None => (self.base_said, NONE),
        };
        let tail = object.list("retainedTail").map(|tail| tail.len());
        let kept = match kind {
            // One that brings along what it keeps says no more than how much that is.
            Kind::Summary if tail.is_none() => self.kept(object),
            _ => NONE,
        };
        let again = self.remember(id.as_deref());
        self.nodes.push(Node {
            start: found.place.start,
            len: found.place.end - found.place.start,
            parent,
            kept,
            tail: u32::try_from(tail.unwrap_or(0)).unwrap_or(NONE),
            said,
            again,
            told: match kind {
                Kind::Says | Kind::Summary => self.nodes.len() as u32,
                _ => told,
            },
            says: matches!(kind, Kind::Says),
            on_main: false,
        });
        self.last_id = id;
    }

    /// Finds the entry before this one. It is among those that stand before it, so that
    /// no circle can be made.
    fn parent(&mut self, object: &Object, has_id: bool) -> u32 {
        let previous = match self.nodes.len() {
            0 => NONE,
            n => n as u32 - 1,
        };
        let named = object.get("parentId").filter(|_| has_id);
        let Some(named) = named else {
            return previous;
        };
        let name = object.string("parentId");
        let begins = self.is_new && self.nodes.is_empty();
        let follows = name.is_some() && name.as_deref() == self.last_id.as_deref();
        if begins || (follows && named.as_str() != "null") {
            return previous;
        }
        self.linear = false;
        let id = name.map(|name| short(&name));
        id.and_then(|id| self.by_id.get(&id).copied())
            .unwrap_or(NONE)
    }

    /// Finds the entry at which the conversation was set to stand.
    fn target(&mut self, object: &Object) -> u32 {
        self.linear = false;
        let id = object.string("targetId").map(|id| short(&id));
        let found = id.and_then(|id| self.by_id.get(&id).copied());
        found.unwrap_or(NONE)
    }

    /// Finds the first entry that a compaction keeps.
    fn kept(&mut self, object: &Object) -> u32 {
        if let Some(id) = object.string("firstKeptEntryId") {
            let found = self.by_id.get(&short(&id)).copied();
            // It may be among those that were read before.
            self.linear &= found.is_some() || self.base == 0;
            return found.unwrap_or(NONE);
        }
        // Version 1 counts entries, the header among them.
        let Some(index) = object.number("firstKeptEntryIndex") else {
            return NONE;
        };
        let Some(index) = index.checked_sub(1) else {
            return NONE;
        };
        self.linear &= index >= self.base;
        let index = index.saturating_sub(self.base);
        match usize::try_from(index) {
            Ok(index) if index < self.nodes.len() => index as u32,
            _ => NONE,
        }
    }

    /// Remembers an id, and returns how many entries had it before.
    fn remember(&mut self, id: Option<&str>) -> u32 {
        let Some(id) = id else {
            return 0;
        };
        let at = self.nodes.len() as u32;
        let before = self.by_id.insert(short(id), at);
        let again = before.map_or(0, |before| self.nodes[before as usize].again + 1);
        // Behind what was read before, nobody knows how often it was there.
        if before.is_none() && self.base > 0 && self.seen.may_have(id) {
            self.linear = false;
        }
        self.seen.add(id);
        again
    }

    /// Marks what leads to the last entry.
    pub(super) fn close(&mut self) {
        if self.linear {
            self.nodes.iter_mut().for_each(|node| node.on_main = true);
            return;
        }
        let mut at = self.nodes.len().wrapping_sub(1);
        while let Some(node) = self.nodes.get_mut(at) {
            node.on_main = true;
            at = node.parent as usize;
        }
    }

    pub(super) fn is_on_main(&self, at: u32) -> bool {
        self.nodes.get(at as usize).is_some_and(|node| node.on_main)
    }

    /// Returns whether an entry is told: it says something, or sums up.
    pub(super) fn tells(&self, at: u32) -> bool {
        self.telling_up_to(at) == Some(at)
    }

    /// Returns the last entry that is told, among those that lead to this one and itself.
    pub(super) fn telling_up_to(&self, at: u32) -> Option<u32> {
        let told = self.nodes.get(at as usize)?.told;
        (told != NONE).then_some(told)
    }

    /// Returns where an entry stands in the file.
    pub(super) fn place(&self, at: u32) -> Range<u64> {
        match self.nodes.get(at as usize) {
            Some(node) => node.start..node.start + node.len,
            None => 0..0,
        }
    }

    /// Returns how many messages stay when a compaction sums up.
    pub(super) fn keep(&self, at: u32, on_main: bool) -> u64 {
        let Some(node) = self.nodes.get(at as usize) else {
            return 0;
        };
        match self.nodes.get(node.kept as usize) {
            Some(kept) if kept.on_main || !on_main => node.said.saturating_sub(kept.said).into(),
            Some(_) => 0,
            None => node.tail.min(node.said).into(),
        }
    }

    /// Returns the key of an entry.
    pub(super) fn key(&self, at: u32, object: &Object) -> String {
        let again = self.nodes.get(at as usize).map_or(0, |node| node.again);
        match (object.string("id"), again) {
            (Some(id), 0) => key_of(&id),
            (Some(id), again) => format!("{}~{}", key_of(&id), again + 1),
            (None, _) => {
                let said = object.get("message").map_or("", |message| message.as_str());
                format!("n{}-{}", self.base + u64::from(at), hash_of(said, 8))
            }
        }
    }

    /// Returns the conversations that were left, in an order that does not change as the
    /// file grows: where entries part, the first one goes on with what came before.
    pub(super) fn branches(&self) -> Vec<Branch> {
        if self.linear {
            return Vec::new();
        }
        let mut next = vec![NONE; self.nodes.len()];
        let mut begins = Vec::new();
        for (at, node) in self.nodes.iter().enumerate() {
            if node.on_main {
                continue;
            }
            let at = at as u32;
            match next.get_mut(node.parent as usize) {
                Some(next) if *next == NONE && !self.is_on_main(node.parent) => *next = at,
                _ => begins.push(at),
            }
        }
        let mut left = REPEATED * self.nodes.iter().map(|node| node.len).sum::<u64>();
        let branch = |begin| self.branch(begin, &next, &mut left);
        begins.into_iter().map(branch).collect()
    }

    fn branch(&self, begin: u32, next: &[u32], left: &mut u64) -> Branch {
        let mut own = vec![begin];
        let mut at = begin;
        while let Some(following) = next.get(at as usize).filter(|next| **next != NONE) {
            at = *following;
            own.push(at);
        }
        let mut stem = Vec::new();
        let mut leaves = self.nodes[begin as usize].parent;
        let mut bytes = 0;
        while leaves != NONE && !self.is_on_main(leaves) && bytes <= *left {
            let node = &self.nodes[leaves as usize];
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

fn short(id: &str) -> [u8; 16] {
    let mut short = [0; 16];
    short.copy_from_slice(&blake3::hash(id.as_bytes()).as_bytes()[..16]);
    short
}
