//! The tree that the lines of a file form, and which line belongs to which conversation.
//!
//! The parent of a line is always before it, so there are no cycles. The file's own
//! conversation ends at the last prompt or response. The lines that lead there are on the main
//! line, and so are their children that do not start a turn: results of parallel calls,
//! further lines of a response, additions of the agent. All others are branches. The events of
//! a conversation are in the order of the file.
//!
//! Lines are counted in *epochs*: each prompt and each response starts one, and the parent of
//! the next line of a conversation is in its last epoch.

use std::collections::{HashMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::entry::{Entry, LineKind, Parent};
use crate::formats::keys::push_limited;

/// No line, and no conversation.
pub(super) const NONE: u32 = u32::MAX;
/// The main line.
pub(super) const MAIN: u32 = 0;
/// The epoch of a line that cannot have new children.
const STALE: u32 = u32::MAX;
/// How many possible parents of the next line are kept.
const MAX_TIPS: usize = 48;
/// How many bytes branches of branches may repeat.
const MAX_REPEATED: u64 = 32 << 20;

/// A line that is needed.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// Where its line starts and ends.
    pub(super) at: u64,
    pub(super) end: u64,
    pub(super) number: u64,
    pub(super) kind: LineKind,
    /// Its conversation: [`MAIN`], a branch, or [`NONE`].
    pub(super) owner: u32,
    /// Whether an earlier line has the same uuid.
    pub(super) is_repeated: bool,
    pub(super) is_side: bool,
    pub(super) uuid: Option<u64>,
    parent: u32,
    /// Whether the line says that it has no parent. `parent` is used if that is not true.
    claims_root: bool,
    /// Whether it starts a turn: a prompt or a response.
    starts_turn: bool,
    is_meta: bool,
    response: Option<u64>,
    /// The nearest event on the main line, from this line up.
    nearest_event: u32,
    epoch: u32,
    /// The response that started its epoch.
    epoch_response: Option<u64>,
}

impl Node {
    /// Creates one that is in no conversation yet.
    pub(super) fn new(entry: &Entry, number: u64, place: &std::ops::Range<u64>) -> Self {
        Self {
            at: place.start,
            end: place.end,
            number,
            kind: entry.kind,
            owner: NONE,
            is_repeated: false,
            is_side: entry.is_side,
            uuid: entry.uuid,
            parent: NONE,
            claims_root: false,
            starts_turn: false,
            is_meta: entry.is_meta,
            response: entry.response,
            nearest_event: NONE,
            epoch: STALE,
            epoch_response: None,
        }
    }

    /// Returns whether its line is read a second time, for its content.
    pub(super) fn is_read_again(&self) -> bool {
        self.kind.is_event()
            || matches!(
                self.kind,
                LineKind::Boundary | LineKind::Agent | LineKind::Details | LineKind::Cost
            )
    }
}

/// An abandoned branch.
#[derive(Debug, Clone, Default)]
pub(super) struct Branch {
    /// The line of the main line after which it leaves.
    pub(super) after: Option<u32>,
    /// Lines of another branch that it continues, in order.
    pub(super) before: Vec<u32>,
    /// Its own events.
    own: Vec<u32>,
    /// How long all of them are.
    bytes: u64,
    /// Whether it has a message of the user or the model.
    pub(super) has_messages: bool,
    epoch: u32,
    response: Option<u64>,
}

/// The lines of a file.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    pub(super) branches: Vec<Branch>,
    by_uuid: HashMap<u64, u32>,
    last_turn_start: Option<u32>,
    last_event: Option<u32>,
    last: Option<u32>,
    /// Whether lines that claim to have no parent are wrong.
    ignores_roots: bool,
    epoch: u32,
    response: Option<u64>,
}

/// The end of the main line, for what comes next.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Tips {
    /// The possible parents of the next line.
    #[serde(rename = "tips")]
    pub(super) uuids: VecDeque<u64>,
    pub(super) response: Option<u64>,
    /// Whether there is any line, and any that starts a turn.
    #[serde(rename = "any")]
    pub(super) has_lines: bool,
    #[serde(rename = "solid")]
    pub(super) has_turns: bool,
    #[serde(rename = "loose")]
    pub(super) ignores_roots: bool,
}

impl Tree {
    /// Adds a line.
    pub(super) fn add(&mut self, entry: &Entry, number: u64, place: &std::ops::Range<u64>) {
        let Ok(index) = u32::try_from(self.nodes.len()) else {
            return;
        };
        let in_tree = entry.kind.is_in_tree() && !entry.is_side;
        let starts_turn = in_tree && starts_turn(entry);
        let (parent, claims_root) = match in_tree {
            true => self.parent_of(entry),
            false => (NONE, false),
        };
        self.nodes.push(Node {
            parent,
            claims_root,
            starts_turn,
            ..Node::new(entry, number, place)
        });
        if let Some(uuid) = entry.uuid {
            // The last line with this uuid is the parent of later ones.
            self.by_uuid.insert(uuid, index);
        }
        if in_tree {
            self.ignores_roots |=
                claims_root && entry.kind == LineKind::Assistant && self.last.is_some();
            self.last = Some(index);
            if entry.kind.is_event() {
                self.last_event = Some(index);
            }
        }
        if starts_turn {
            self.last_turn_start = Some(index);
        }
    }

    /// Marks the last line as one whose uuid an earlier line has.
    pub(super) fn mark_repeated(&mut self) {
        if let Some(node) = self.nodes.last_mut() {
            node.is_repeated = true;
        }
    }

    /// Returns the parent of a line, and whether the line claims to have none. If its parent is
    /// not there, the last turn is.
    fn parent_of(&self, entry: &Entry) -> (u32, bool) {
        let in_tree = |uuid: u64| {
            let at = *self.by_uuid.get(&uuid)?;
            let node = &self.nodes[at as usize];
            (node.kind.is_in_tree() && !node.is_side).then_some(at)
        };
        let last = self.last_turn_start.unwrap_or(NONE);
        match entry.parent {
            Parent::Uuid(uuid) => {
                let source = || entry.source.and_then(in_tree);
                (in_tree(uuid).or_else(source).unwrap_or(last), false)
            }
            Parent::Absent => (last, false),
            Parent::Null => (last, can_be_root(entry)),
        }
    }

    /// Assigns the lines to conversations.
    pub(super) fn assign(&mut self) {
        if !self.ignores_roots {
            let roots = self.nodes.iter_mut().filter(|node| node.claims_root);
            roots.for_each(|node| node.parent = NONE);
        }
        self.branches = vec![Branch::default()];
        let on_path = self.path();
        let mut last_in_epoch: HashMap<u32, u32> = HashMap::new();
        let mut repeated = 0;
        for (index, on_path) in on_path.into_iter().enumerate() {
            if self.nodes[index].is_side || !self.nodes[index].kind.is_in_tree() {
                continue;
            }
            if on_path || self.is_absorbed(index, MAIN) {
                self.append_main(index);
                let node = &self.nodes[index];
                if node.kind.is_event() {
                    last_in_epoch.insert(node.epoch, index as u32);
                }
            } else {
                self.append_branch(index, &last_in_epoch, &mut repeated);
            }
        }
    }

    /// Returns which lines lead to the end of the conversation.
    fn path(&self) -> Vec<bool> {
        let mut on_path = vec![false; self.nodes.len()];
        let mut next = self
            .last_turn_start
            .or(self.last_event)
            .or(self.last)
            .unwrap_or(NONE);
        while let Some(node) = self.nodes.get(next as usize) {
            on_path[next as usize] = true;
            next = node.parent;
        }
        on_path
    }

    fn parent(&self, index: usize) -> Option<&Node> {
        self.nodes.get(self.nodes[index].parent as usize)
    }

    /// Returns whether a line belongs to the conversation of its parent without starting a turn.
    fn is_absorbed(&self, index: usize, owner: u32) -> bool {
        let node = &self.nodes[index];
        self.parent(index).is_some_and(|parent| {
            let same = node.response.is_some() && node.response == parent.epoch_response;
            parent.owner == owner && (!node.starts_turn || same)
        })
    }

    fn append_main(&mut self, index: usize) {
        let parent = self.parent(index);
        let first = self.epoch == 0 && parent.is_none();
        let current = first || parent.is_some_and(|parent| parent.epoch == self.epoch);
        let of_parent = parent.and_then(|parent| parent.epoch_response);
        let nearest_event = parent.map_or(NONE, |parent| parent.nearest_event);
        let node = &mut self.nodes[index];
        node.owner = MAIN;
        node.nearest_event = match node.kind.is_event() {
            true => index as u32,
            false => nearest_event,
        };
        let same = node.response.is_some() && node.response == self.response;
        if node.starts_turn && !(same && current) && !is_late(node, of_parent) {
            self.epoch += 1;
            self.response = node.response;
            node.epoch = self.epoch;
            node.epoch_response = node.response;
        } else if current {
            node.epoch = self.epoch;
            node.epoch_response = self.response;
        } else {
            node.epoch_response = of_parent;
        }
    }

    fn append_branch(
        &mut self,
        index: usize,
        last_in_epoch: &HashMap<u32, u32>,
        repeated: &mut u64,
    ) {
        let parent = self.parent(index);
        let owner = parent.map_or(NONE, |parent| parent.owner);
        let branch = match (parent, self.branches.get(owner as usize)) {
            (Some(parent), Some(branch)) if owner != MAIN => {
                let absorbed = self.is_absorbed(index, owner);
                (absorbed || parent.epoch == branch.epoch).then_some(owner)
            }
            _ => None,
        };
        let branch = branch.unwrap_or_else(|| self.new_branch(index, last_in_epoch, repeated));
        let parent_epoch = self.parent(index).map(|parent| parent.epoch);
        let of_parent = self.parent(index).and_then(|parent| parent.epoch_response);
        let (Some(node), Some(line)) = (
            self.nodes.get_mut(index),
            self.branches.get_mut(branch as usize),
        ) else {
            return;
        };
        let current = parent_epoch == Some(line.epoch) && owner == branch;
        let same = node.response.is_some() && node.response == of_parent;
        node.owner = branch;
        if node.starts_turn && !same || line.own.is_empty() {
            line.epoch += 1;
            line.response = node.response;
            node.epoch = line.epoch;
        } else if current {
            node.epoch = line.epoch;
        }
        node.epoch_response = match node.epoch {
            STALE => of_parent,
            _ => line.response,
        };
        line.has_messages |=
            node.kind.is_event() && !node.is_meta && node.kind != LineKind::Summary;
        if node.kind.is_event() {
            line.own.push(index as u32);
            line.bytes += node.end - node.at;
        }
    }

    /// Starts a branch with a line.
    fn new_branch(
        &mut self,
        index: usize,
        last_in_epoch: &HashMap<u32, u32>,
        repeated: &mut u64,
    ) -> u32 {
        let mut branch = Branch::default();
        if let Some(parent) = self.parent(index) {
            let at = self.nodes[index].parent;
            if parent.owner == MAIN {
                let in_epoch = last_in_epoch
                    .get(&parent.epoch)
                    .filter(|_| parent.epoch != STALE);
                let nearest = (parent.nearest_event != NONE).then_some(parent.nearest_event);
                branch.after = in_epoch.copied().or(nearest);
            } else if let Some(other) = self.branches.get(parent.owner as usize) {
                branch.after = other.after;
                let upto = |line: &&u32| {
                    let node = &self.nodes[**line as usize];
                    **line <= at || (parent.epoch != STALE && node.epoch == parent.epoch)
                };
                if *repeated + other.bytes <= MAX_REPEATED {
                    *repeated += other.bytes;
                    branch.bytes = other.bytes;
                    let own = other.own.iter().filter(upto);
                    branch.before = other.before.iter().chain(own).copied().collect();
                }
            }
        }
        self.branches.push(branch);
        u32::try_from(self.branches.len() - 1).unwrap_or(NONE)
    }

    /// Returns the end of the main line.
    pub(super) fn tips(&self) -> Tips {
        // If several lines have the same uuid, the last is the parent of later ones.
        let is_last = |at: usize, uuid: &u64| self.by_uuid.get(uuid) == Some(&(at as u32));
        let is_tip = |node: &Node| node.owner == MAIN && node.epoch == self.epoch;
        let tips = self.nodes.iter().enumerate().rev();
        let tips = tips.filter(|(_, node)| is_tip(node));
        let uuids = tips.filter_map(|(at, node)| node.uuid.filter(|uuid| is_last(at, uuid)));
        let uuids: Vec<u64> = uuids.take(MAX_TIPS).collect();
        Tips {
            uuids: uuids.into_iter().rev().collect(),
            response: self.response,
            has_lines: self.last.is_some(),
            has_turns: self.last_turn_start.is_some(),
            ignores_roots: self.ignores_roots,
        }
    }
}

/// Returns whether a line belongs to the response of its parent, but came after the next turn
/// had started.
fn is_late(node: &Node, of_parent: Option<u64>) -> bool {
    node.response.is_some() && node.response == of_parent
}

/// Returns whether a line starts a turn.
fn starts_turn(entry: &Entry) -> bool {
    match entry.kind {
        LineKind::Assistant => true,
        LineKind::User => !entry.is_result && !entry.is_meta,
        _ => false,
    }
}

/// Returns whether a line without a parent can be a root. A message of the user can restart a
/// conversation. Hooks that run when a session is resumed have no parent either, but do not.
fn can_be_root(entry: &Entry) -> bool {
    match entry.kind {
        LineKind::User => !entry.is_result,
        // A response cannot start a conversation: the whole file is wrong about its roots.
        LineKind::Assistant => true,
        _ => false,
    }
}

impl Tips {
    /// Adds the next line; `None` if that needs the whole tree.
    pub(super) fn push(&mut self, entry: &Entry) -> Option<()> {
        if self.has_lines && !self.has_turns {
            // Without a turn there is no possible parent yet.
            return None;
        }
        let starts_turn = starts_turn(entry);
        let same = entry.response.is_some() && entry.response == self.response;
        let is_tip = |uuid: &u64| self.uuids.contains(uuid);
        let current = match entry.parent {
            Parent::Uuid(uuid) => is_tip(&uuid),
            Parent::Null if !self.ignores_roots && can_be_root(entry) => !self.has_lines,
            Parent::Null | Parent::Absent => true,
        };
        let is_root_response = entry.parent == Parent::Null && entry.kind == LineKind::Assistant;
        if is_root_response && !self.ignores_roots && self.has_lines {
            return None;
        }
        self.has_lines = true;
        if !current {
            self.remove(entry.uuid);
            let quiet = matches!(entry.kind, LineKind::Passive | LineKind::Agent);
            return quiet.then_some(());
        }
        if starts_turn && !same {
            self.uuids.clear();
            self.response = entry.response;
        }
        self.has_turns |= starts_turn;
        if let Some(uuid) = entry.uuid {
            push_limited(&mut self.uuids, uuid, MAX_TIPS);
        }
        Some(())
    }

    /// Removes a line whose uuid another one has now that is not on the main line.
    pub(super) fn remove(&mut self, uuid: Option<u64>) {
        self.uuids.retain(|tip| Some(*tip) != uuid);
    }
}
