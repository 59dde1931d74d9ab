//! The tree of a file's entries: a few bytes for each, without their content.

use std::collections::HashMap;
use std::ops::Range;

use super::super::keys::{SeenIds, hash_json, hash_name, short_hash, valid_key};
use super::{EntryKind, MissingParent, PiState, entry_kind};
use crate::event::ReadReport;
use crate::json::Object;
use crate::json_lines::JsonLine;

/// No entry.
const NONE: u32 = u32::MAX;

/// How many times the file's bytes branches may repeat. In a file in which thousands of
/// branches share a stem, the stem is omitted.
const MAX_REPEATED: u64 = 4;

/// One entry.
#[derive(Debug)]
struct Node {
    start: u64,
    len: u64,
    /// The parent, which is always earlier in the file.
    parent: u32,
    /// The first entry that a compaction keeps.
    kept: u32,
    /// How many messages a compaction keeps by itself.
    tail: u32,
    /// How many messages lead to it.
    messages: u32,
    /// How many earlier entries have the same id.
    duplicates: u32,
    /// The last entry that is an event, among those that lead to it and itself.
    last_event: u32,
    is_message: bool,
    on_main: bool,
}

/// The entries of a file, or those that were appended since it was last read.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    by_id: HashMap<[u8; 16], u32>,
    /// How many entries came before these, and how many messages.
    base: u64,
    base_messages: u32,
    is_linear: bool,
    is_new: bool,
    missing_parent: MissingParent,
    pub(super) last_id: Option<String>,
    pub(super) seen: SeenIds,
    /// The last title of the session.
    pub(super) title: Option<String>,
}

/// An abandoned conversation.
#[derive(Debug)]
pub(super) struct Branch {
    /// The entry of the file's own thread that it continues.
    pub(super) leaves: u32,
    /// The entries that it shares with another branch.
    pub(super) stem: Vec<u32>,
    /// Its own entries.
    pub(super) own: Vec<u32>,
}

impl Tree {
    /// Starts an empty file, or continues after entries that followed one another.
    pub(super) fn new(state: &mut PiState) -> Self {
        Self {
            nodes: Vec::new(),
            by_id: HashMap::new(),
            base: state.entries,
            base_messages: state.said,
            is_linear: true,
            is_new: state.entries == 0,
            missing_parent: state.missing_parent,
            last_id: state.last.take(),
            seen: std::mem::take(&mut state.ids),
            title: None,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns how many messages lead to the end, including earlier readings.
    pub(super) fn messages(&self) -> u32 {
        let last = self.nodes.last();
        last.map_or(self.base_messages, |last| {
            last.messages + u32::from(last.is_message)
        })
    }

    /// Returns whether every entry follows the one before it, so that only new entries need
    /// to be read when the file has grown.
    pub(super) fn is_linear(&self) -> bool {
        self.is_linear
    }

    /// Adds the next entry of the file.
    pub(super) fn add(&mut self, entry: &Object<'_>, line: &JsonLine<'_>, report: &mut ReadReport) {
        let kind = entry_kind(entry);
        match &kind {
            EntryKind::Unknown(name) => report.add_unknown(name),
            EntryKind::Damaged(reason) => report.add_damage(line.number, &line.range, *reason),
            EntryKind::Title(title) => self.title = Some(title.clone()),
            _ => {}
        }
        let id = entry.string("id").map(|id| id.into_owned());
        let parent = match kind {
            EntryKind::Leaf => self.leaf_target(entry),
            _ => self.parent(entry, id.is_some()),
        };
        let (messages, last_event) = match self.nodes.get(parent as usize) {
            Some(parent) => (
                parent.messages + u32::from(parent.is_message),
                parent.last_event,
            ),
            None => (self.base_messages, NONE),
        };
        let tail = entry.list("retainedTail").map(|tail| tail.len());
        let kept = match kind {
            // One that contains what it keeps only says how much that is.
            EntryKind::Summary if tail.is_none() => self.first_kept(entry),
            _ => NONE,
        };
        let duplicates = self.remember(id.as_deref());
        self.nodes.push(Node {
            start: line.range.start,
            len: line.range.end - line.range.start,
            parent,
            kept,
            tail: u32::try_from(tail.unwrap_or(0)).unwrap_or(NONE),
            messages,
            duplicates,
            last_event: match kind {
                EntryKind::Message | EntryKind::Summary => self.nodes.len() as u32,
                _ => last_event,
            },
            is_message: matches!(kind, EntryKind::Message),
            on_main: false,
        });
        self.last_id = id;
    }

    /// Returns the parent of an entry. It is earlier in the file, so there are no cycles.
    fn parent(&mut self, object: &Object<'_>, has_id: bool) -> u32 {
        let previous = match self.nodes.len() {
            0 => NONE,
            n => n as u32 - 1,
        };
        let named = object.get("parentId").filter(|_| has_id);
        let Some(named) = named else {
            return previous;
        };
        let name = object.string("parentId");
        let is_first = self.is_new && self.nodes.is_empty();
        let follows = name.is_some() && name.as_deref() == self.last_id.as_deref();
        if is_first || (follows && named != "null") {
            return previous;
        }
        self.is_linear = false;
        let missing = match self.missing_parent {
            MissingParent::IsPrevious if name.is_some() => previous,
            _ => NONE,
        };
        let id = name.map(|name| short_hash(name.as_bytes()));
        id.and_then(|id| self.by_id.get(&id).copied())
            .unwrap_or(missing)
    }

    /// Returns the entry at which the conversation continues.
    fn leaf_target(&mut self, object: &Object<'_>) -> u32 {
        self.is_linear = false;
        let id = object
            .string("targetId")
            .map(|id| short_hash(id.as_bytes()));
        let found = id.and_then(|id| self.by_id.get(&id).copied());
        found.unwrap_or(NONE)
    }

    /// Returns the first entry that a compaction keeps.
    fn first_kept(&mut self, object: &Object<'_>) -> u32 {
        if let Some(id) = object.string("firstKeptEntryId") {
            let found = self.by_id.get(&short_hash(id.as_bytes())).copied();
            // It may be among those that were read before.
            self.is_linear &= found.is_some() || self.base == 0;
            return found.unwrap_or(NONE);
        }
        // Version 1 counts entries, including the header.
        let Some(index) = object.number("firstKeptEntryIndex") else {
            return NONE;
        };
        let Some(index) = index.checked_sub(1) else {
            return NONE;
        };
        self.is_linear &= index >= self.base;
        let index = index.saturating_sub(self.base);
        match usize::try_from(index) {
            Ok(index) if index < self.nodes.len() => index as u32,
            _ => NONE,
        }
    }

    /// Remembers an id, and returns how many earlier entries have it.
    fn remember(&mut self, id: Option<&str>) -> u32 {
        let Some(id) = id else {
            return 0;
        };
        let at = self.nodes.len() as u32;
        let before = self.by_id.insert(short_hash(id.as_bytes()), at);
        let duplicates = before.map_or(0, |before| self.nodes[before as usize].duplicates + 1);
        // After resuming, the number of earlier entries with this id is not known.
        if before.is_none() && self.base > 0 && self.seen.may_have(hash_name(id)) {
            self.is_linear = false;
        }
        self.seen.add(hash_name(id));
        duplicates
    }

    /// Marks the entries that lead to the last one.
    pub(super) fn close(&mut self) {
        if self.is_linear {
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

    /// Returns whether an entry is an event: a message or a summary.
    pub(super) fn is_event(&self, at: u32) -> bool {
        self.last_event_up_to(at) == Some(at)
    }

    /// Returns the last entry that is an event, among those that lead to this one and itself.
    pub(super) fn last_event_up_to(&self, at: u32) -> Option<u32> {
        let event = self.nodes.get(at as usize)?.last_event;
        (event != NONE).then_some(event)
    }

    /// Returns where an entry is in the file.
    pub(super) fn range(&self, at: u32) -> Range<u64> {
        match self.nodes.get(at as usize) {
            Some(node) => node.start..node.start + node.len,
            None => 0..0,
        }
    }

    /// Returns how many messages a compaction keeps.
    pub(super) fn keep(&self, at: u32, on_main: bool) -> u64 {
        let Some(node) = self.nodes.get(at as usize) else {
            return 0;
        };
        match self.nodes.get(node.kept as usize) {
            Some(kept) if kept.on_main || !on_main => {
                node.messages.saturating_sub(kept.messages).into()
            }
            Some(_) => 0,
            None => node.tail.min(node.messages).into(),
        }
    }

    /// Returns the key of an entry.
    pub(super) fn key(&self, at: u32, entry: &Object<'_>) -> String {
        let node = self.nodes.get(at as usize);
        let duplicates = node.map_or(0, |node| node.duplicates);
        match (entry.string("id"), duplicates) {
            (Some(id), 0) => valid_key(&id),
            (Some(id), duplicates) => format!("{}~{}", valid_key(&id), duplicates + 1),
            (None, _) => {
                let message = entry.get("message").unwrap_or_default();
                format!("n{}-{}", self.base + u64::from(at), hash_json(message, 8))
            }
        }
    }

    /// Returns the abandoned conversations, in an order that does not change as the file grows:
    /// where entries part, the first one continues the conversation before them.
    pub(super) fn branches(&self) -> Vec<Branch> {
        if self.is_linear {
            return Vec::new();
        }
        let mut next = vec![NONE; self.nodes.len()];
        let mut starts = Vec::new();
        for (at, node) in self.nodes.iter().enumerate() {
            if node.on_main {
                continue;
            }
            let at = at as u32;
            match next.get_mut(node.parent as usize) {
                Some(next) if *next == NONE && !self.is_on_main(node.parent) => *next = at,
                _ => starts.push(at),
            }
        }
        let mut left = MAX_REPEATED * self.nodes.iter().map(|node| node.len).sum::<u64>();
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
        let mut leaves = self.nodes[start as usize].parent;
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
