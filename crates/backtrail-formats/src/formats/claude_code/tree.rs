//! The tree that the lines of a file form, and which line belongs to which conversation.
//!
//! A line hangs on a line before it, so there are no cycles. The conversation that the
//! file is of ends in the last line that somebody said something new in: a prompt, or a
//! response. What leads there from the beginning is on the main line, and so is what
//! hangs on it without being a turn of its own: results of calls that ran side by side,
//! further lines of one response, what the agent added. The rest are other branches.
//! A conversation is told in the order of the file.
//!
//! Lines are counted in *epochs*: each prompt and each response begins one, and whatever
//! comes next on the line hangs on a line of that epoch.

use std::collections::HashMap;

use super::entry::{Entry, Kind, Parent};

/// No line, and no conversation.
pub(super) const NONE: u32 = u32::MAX;
/// The main line.
pub(super) const MAIN: u32 = 0;
/// The epoch of a line that nothing new may hang on.
const STALE: u32 = u32::MAX;
/// How many bytes branches of branches may tell again.
const MAX_REPEATED: u64 = 32 << 20;

/// A line that is of interest.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// Where its line stands.
    pub(super) at: u64,
    pub(super) end: u64,
    pub(super) number: u64,
    pub(super) kind: Kind,
    /// The conversation that it is told in: [`MAIN`], a branch, or [`NONE`].
    pub(super) owner: u32,
    /// Whether its uuid was another line's before.
    pub(super) again: bool,
    pub(super) side: bool,
    pub(super) uuid: Option<u64>,
    parent: u32,
    /// It says itself that it has no parent; `parent` is what it hangs on where that is
    /// not to be believed.
    rootless: bool,
    /// It begins a turn: a prompt or a response.
    solid: bool,
    meta: bool,
    response: Option<u64>,
    /// The nearest line from this one up, on the main line, that something is told of.
    above: u32,
    epoch: u32,
    /// The response that began its epoch.
    epoch_response: Option<u64>,
}

impl Node {
    /// Makes one that is in no conversation yet.
    pub(super) fn new(entry: &Entry, number: u64, place: &std::ops::Range<u64>) -> Self {
        Self {
            at: place.start,
            end: place.end,
            number,
            kind: entry.kind,
            owner: NONE,
            again: false,
            side: entry.side,
            uuid: entry.uuid,
            parent: NONE,
            rootless: false,
            solid: false,
            meta: entry.meta,
            response: entry.response,
            above: NONE,
            epoch: STALE,
            epoch_response: None,
        }
    }

    /// Returns whether its line is read a second time, to tell what it says.
    pub(super) fn is_read_again(&self) -> bool {
        self.kind.is_told() || matches!(self.kind, Kind::Boundary | Kind::Agent | Kind::About)
    }
}

/// A way that was left.
#[derive(Debug, Clone, Default)]
pub(super) struct Branch {
    /// The line that it leaves the main line behind.
    pub(super) after: Option<u32>,
    /// Lines of another branch that it goes on from, in their order.
    pub(super) before: Vec<u32>,
    /// Its own lines that something is told of.
    own: Vec<u32>,
    /// How long all of them are.
    bytes: u64,
    /// Whether anything was said in it by the user or the model.
    pub(super) spoken: bool,
    epoch: u32,
    response: Option<u64>,
}

/// The lines of a file.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    pub(super) branches: Vec<Branch>,
    by_uuid: HashMap<u64, u32>,
    last_solid: Option<u32>,
    last_told: Option<u32>,
    last: Option<u32>,
    /// Whether lines that say they have no parent are not believed.
    loose: bool,
    epoch: u32,
    response: Option<u64>,
}

/// Where the main line stands, for what comes next.
#[derive(Debug, Clone, Default)]
pub(super) struct Tips {
    /// The lines that the next one may hang on.
    pub(super) uuids: Vec<u64>,
    pub(super) response: Option<u64>,
    /// Whether there is any line, and any that begins a turn.
    pub(super) any: bool,
    pub(super) solid: bool,
    pub(super) loose: bool,
}

impl Tree {
    /// Adds a line.
    pub(super) fn add(&mut self, entry: &Entry, number: u64, place: &std::ops::Range<u64>) {
        let Ok(index) = u32::try_from(self.nodes.len()) else {
            return;
        };
        let in_tree = entry.kind.is_chained() && !entry.side;
        let solid = in_tree && is_solid(entry);
        let (parent, rootless) = match in_tree {
            true => self.parent_of(entry),
            false => (NONE, false),
        };
        self.nodes.push(Node {
            parent,
            rootless,
            solid,
            ..Node::new(entry, number, place)
        });
        if let Some(uuid) = entry.uuid {
            // What comes later hangs on the last of them.
            self.by_uuid.insert(uuid, index);
        }
        if in_tree {
            self.loose |= rootless && entry.kind == Kind::Assistant && self.last.is_some();
            self.last = Some(index);
            if entry.kind.is_told() {
                self.last_told = Some(index);
            }
        }
        if solid {
            self.last_solid = Some(index);
        }
    }

    /// Marks the last line as one whose uuid was another line's.
    pub(super) fn mark_again(&mut self) {
        if let Some(node) = self.nodes.last_mut() {
            node.again = true;
        }
    }

    /// Finds out what a line hangs on. One whose parent is not there hangs on what was
    /// said last.
    fn parent_of(&self, entry: &Entry) -> (u32, bool) {
        let in_tree = |uuid: u64| {
            let at = *self.by_uuid.get(&uuid)?;
            let node = &self.nodes[at as usize];
            (node.kind.is_chained() && !node.side).then_some(at)
        };
        let last = self.last_solid.unwrap_or(NONE);
        match entry.parent {
            Parent::Is(uuid) => {
                let source = || entry.source.and_then(in_tree);
                (in_tree(uuid).or_else(source).unwrap_or(last), false)
            }
            Parent::Absent => (last, false),
            Parent::Null => (last, believes_null(entry)),
        }
    }

    /// Finds out which line belongs to which conversation.
    pub(super) fn settle(&mut self) {
        if !self.loose {
            let rootless = self.nodes.iter_mut().filter(|node| node.rootless);
            rootless.for_each(|node| node.parent = NONE);
        }
        self.branches = vec![Branch::default()];
        let on_path = self.path();
        let mut told_in_epoch: HashMap<u32, u32> = HashMap::new();
        let mut repeated = 0;
        for (index, on_path) in on_path.into_iter().enumerate() {
            if self.nodes[index].side || !self.nodes[index].kind.is_chained() {
                continue;
            }
            if on_path || self.is_absorbed(index, MAIN) {
                self.append_main(index);
                let node = &self.nodes[index];
                if node.kind.is_told() {
                    told_in_epoch.insert(node.epoch, index as u32);
                }
            } else {
                self.append_branch(index, &told_in_epoch, &mut repeated);
            }
        }
    }

    /// Returns which lines lead to the end of the conversation.
    fn path(&self) -> Vec<bool> {
        let mut on_path = vec![false; self.nodes.len()];
        let mut next = self
            .last_solid
            .or(self.last_told)
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

    /// Returns whether a line hangs on a conversation without being a turn of its own.
    fn is_absorbed(&self, index: usize, owner: u32) -> bool {
        let node = &self.nodes[index];
        self.parent(index).is_some_and(|parent| {
            let same = node.response.is_some() && node.response == parent.epoch_response;
            parent.owner == owner && (!node.solid || same)
        })
    }

    fn append_main(&mut self, index: usize) {
        let parent = self.parent(index);
        let first = self.epoch == 0 && parent.is_none();
        let current = first || parent.is_some_and(|parent| parent.epoch == self.epoch);
        let of_parent = parent.and_then(|parent| parent.epoch_response);
        let above = parent.map_or(NONE, |parent| parent.above);
        let node = &mut self.nodes[index];
        node.owner = MAIN;
        node.above = match node.kind.is_told() {
            true => index as u32,
            false => above,
        };
        let same = node.response.is_some() && node.response == self.response;
        if node.solid && !(same && current) && !is_late(node, of_parent) {
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

    fn append_branch(&mut self, index: usize, told: &HashMap<u32, u32>, repeated: &mut u64) {
        let parent = self.parent(index);
        let owner = parent.map_or(NONE, |parent| parent.owner);
        let branch = match (parent, self.branches.get(owner as usize)) {
            (Some(parent), Some(branch)) if owner != MAIN => {
                let absorbed = self.is_absorbed(index, owner);
                (absorbed || parent.epoch == branch.epoch).then_some(owner)
            }
            _ => None,
        };
        let branch = branch.unwrap_or_else(|| self.new_branch(index, told, repeated));
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
        if node.solid && !same || line.own.is_empty() {
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
        line.spoken |= node.kind.is_told() && !node.meta && node.kind != Kind::Summary;
        if node.kind.is_told() {
            line.own.push(index as u32);
            line.bytes += node.end - node.at;
        }
    }

    /// Begins a branch with a line.
    fn new_branch(&mut self, index: usize, told: &HashMap<u32, u32>, repeated: &mut u64) -> u32 {
        let mut branch = Branch::default();
        if let Some(parent) = self.parent(index) {
            let at = self.nodes[index].parent;
            if parent.owner == MAIN {
                let in_epoch = told.get(&parent.epoch).filter(|_| parent.epoch != STALE);
                let above = (parent.above != NONE).then_some(parent.above);
                branch.after = in_epoch.copied().or(above);
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

    /// Returns where the main line stands.
    pub(super) fn tips(&self, most: usize) -> Tips {
        // Where a uuid is that of several lines, what comes next hangs on the last.
        let is_last = |at: usize, uuid: &u64| self.by_uuid.get(uuid) == Some(&(at as u32));
        let is_tip = |node: &Node| node.owner == MAIN && node.epoch == self.epoch;
        let tips = self.nodes.iter().enumerate().rev();
        let tips = tips.filter(|(_, node)| is_tip(node));
        let uuids = tips.filter_map(|(at, node)| node.uuid.filter(|uuid| is_last(at, uuid)));
        let mut uuids: Vec<u64> = uuids.take(most).collect();
        uuids.reverse();
        Tips {
            uuids,
            response: self.response,
            any: self.last.is_some(),
            solid: self.last_solid.is_some(),
            loose: self.loose,
        }
    }
}

/// Returns whether a line is a further one of the response that its parent is of, which
/// came when the conversation had gone on.
fn is_late(node: &Node, of_parent: Option<u64>) -> bool {
    node.response.is_some() && node.response == of_parent
}

/// Returns whether a line begins a turn.
fn is_solid(entry: &Entry) -> bool {
    match entry.kind {
        Kind::Assistant => true,
        Kind::User => !entry.result && !entry.meta,
        _ => false,
    }
}

/// Returns whether a line that says it has no parent is believed. What the user says may
/// begin a conversation anew. Hooks that run when one is resumed say so too, and do not.
fn believes_null(entry: &Entry) -> bool {
    match entry.kind {
        Kind::User => !entry.result,
        // No response begins one: the file is not to be believed at all.
        Kind::Assistant => true,
        _ => false,
    }
}

impl Tips {
    /// Puts the next line behind the others; `None` where that cannot be done without
    /// the whole tree.
    pub(super) fn push(&mut self, entry: &Entry, most: usize) -> Option<()> {
        if self.any && !self.solid {
            // Where nobody said anything, there is no line yet that something hangs on.
            return None;
        }
        let solid = is_solid(entry);
        let same = entry.response.is_some() && entry.response == self.response;
        let hangs_on = |uuid: &u64| self.uuids.contains(uuid);
        let current = match entry.parent {
            Parent::Is(uuid) => hangs_on(&uuid),
            Parent::Null if !self.loose && believes_null(entry) => !self.any,
            Parent::Null | Parent::Absent => true,
        };
        if entry.parent == Parent::Null && entry.kind == Kind::Assistant && !self.loose && self.any
        {
            return None;
        }
        self.any = true;
        if !current {
            self.forget(entry.uuid);
            let quiet = matches!(entry.kind, Kind::Passive | Kind::Agent);
            return quiet.then_some(());
        }
        if solid && !same {
            self.uuids.clear();
            self.response = entry.response;
        }
        self.solid |= solid;
        if let Some(uuid) = entry.uuid {
            if self.uuids.len() >= most {
                self.uuids.remove(0);
            }
            self.uuids.push(uuid);
        }
        Some(())
    }

    /// Takes out a line whose uuid another one has now, that is not on the line.
    pub(super) fn forget(&mut self, uuid: Option<u64>) {
        self.uuids.retain(|tip| Some(*tip) != uuid);
    }
}
