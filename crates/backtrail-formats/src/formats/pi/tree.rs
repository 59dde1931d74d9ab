//! The tree of a file's entries: a few bytes for each, without their content.

use std::collections::HashMap;
use std::ops::Range;

use super::super::forest::{Branch, Forest, NONE};
use super::super::keys::{SeenIds, hash_json, hash_name, short_hash, valid_key};
use super::{EntryKind, MissingParent, PiState, entry_kind};
use crate::event::ReadReport;
use crate::json::Object;
use crate::json_lines::JsonLine;

/// One entry.
#[derive(Debug)]
struct Node {
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
}

/// The entries of a file, or those that were appended since it was last read.
#[derive(Debug)]
pub(super) struct Tree {
    forest: Forest,
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

impl Tree {
    /// Starts an empty file, or continues after entries that followed one another.
    pub(super) fn new(state: &mut PiState) -> Self {
        Self {
            forest: Forest::default(),
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
        self.forest.push(&line.range, parent);
        self.nodes.push(Node {
            kept,
            tail: u32::try_from(tail.unwrap_or(0)).unwrap_or(NONE),
            messages,
            duplicates,
            last_event: match kind {
                EntryKind::Message | EntryKind::Summary => self.nodes.len() as u32,
                _ => last_event,
            },
            is_message: matches!(kind, EntryKind::Message),
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
        self.forest
            .mark_main((self.nodes.len() as u32).wrapping_sub(1));
    }

    pub(super) fn is_on_main(&self, at: u32) -> bool {
        self.forest.is_on_main(at)
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
        self.forest.range(at)
    }

    /// Returns how many messages a compaction keeps.
    pub(super) fn keep(&self, at: u32, on_main: bool) -> u64 {
        let Some(node) = self.nodes.get(at as usize) else {
            return 0;
        };
        match self.nodes.get(node.kept as usize) {
            Some(kept) if self.is_on_main(node.kept) || !on_main => {
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

    /// Returns the abandoned conversations.
    pub(super) fn branches(&self) -> Vec<Branch> {
        match self.is_linear {
            true => Vec::new(),
            false => self.forest.branches(),
        }
    }
}
