//! Which result answers which call, and under which id.
//!
//! Everything is decided from what stands before, never from what comes after,
//! so that a longer history decides the same of its beginning. In one pass.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};

use super::Said;
use super::mend::MendRule;
use super::shape::Shape;
use crate::message::{Block, Role, ToolResult, ToolUse};

/// All calls, and what becomes of each block of each message.
pub(super) struct Calls<'a> {
    pub(super) calls: Vec<Matched<'a>>,
    /// For each message, its blocks.
    pub(super) fates: Vec<Vec<Fate<'a>>>,
}

/// A call of the assistant's.
pub(super) struct Matched<'a> {
    pub(super) block: &'a ToolUse,
    pub(super) id: Cow<'a, str>,
    /// Why the id is not the call's own.
    pub(super) id_mend: Option<MendRule>,
    /// The result that answers it, and its record.
    pub(super) result: Option<(u64, &'a ToolResult)>,
}

/// What becomes of a block.
pub(super) enum Fate<'a> {
    /// It has nothing to do with calls.
    Plain(&'a Block),
    /// A call: its number.
    Call(usize),
    /// A call that the assistant did not make.
    Misplaced(&'a ToolUse),
    /// A result that goes to its call.
    Answers { late: bool },
    /// A result of a call that has one already.
    Duplicate,
    /// A result without a call before it.
    Orphan(&'a ToolResult),
}

impl<'a> Calls<'a> {
    pub(super) fn find(shape: Shape, messages: &'a [Said]) -> Self {
        let mut finder = Finder {
            calls: Vec::new(),
            ids: Ids::new(shape),
            open: HashMap::new(),
            last_said: 0,
        };
        let fates = messages.iter().enumerate();
        let fates = fates.map(|(n, said)| finder.message(n, said)).collect();
        let calls = finder.calls;
        Self { calls, fates }
    }
}

/// The calls of one message under one id that have no result yet.
struct Open {
    message: usize,
    calls: VecDeque<usize>,
}

struct Finder<'a> {
    calls: Vec<Matched<'a>>,
    ids: Ids<'a>,
    /// By id. An id that was called stays, even when nothing of it is open.
    open: HashMap<&'a str, Vec<Open>>,
    /// The last message in which something other than a result was said.
    last_said: usize,
}

impl<'a> Finder<'a> {
    fn message(&mut self, n: usize, said: &'a Said) -> Vec<Fate<'a>> {
        let blocks = said.message.blocks.iter();
        blocks.map(|block| self.block(n, said, block)).collect()
    }

    fn block(&mut self, n: usize, said: &'a Said, block: &'a Block) -> Fate<'a> {
        let fate = match block {
            Block::ToolUse(call) if said.message.role == Role::Assistant => self.call(n, call),
            Block::ToolUse(call) => Fate::Misplaced(call),
            Block::ToolResult(result) => self.result(said.seq, result),
            other => Fate::Plain(other),
        };
        let says = match block {
            Block::Text(text) => !text.text.trim().is_empty(),
            _ => !matches!(fate, Fate::Answers { .. } | Fate::Duplicate),
        };
        if says {
            self.last_said = n;
        }
        fate
    }

    fn call(&mut self, message: usize, block: &'a ToolUse) -> Fate<'a> {
        let number = self.calls.len();
        let (id, id_mend) = self.ids.give(&block.id);
        self.calls.push(Matched {
            block,
            id,
            id_mend,
            result: None,
        });
        let groups = self.open.entry(&block.id).or_default();
        match groups.last_mut() {
            Some(group) if group.message == message => group.calls.push_back(number),
            _ => groups.push(Open {
                message,
                calls: VecDeque::from([number]),
            }),
        }
        Fate::Call(number)
    }

    /// A result answers the newest message that has an open call of its id:
    /// agents that count their calls anew in each turn mean that one. Among the
    /// calls of one message it is the first.
    fn result(&mut self, seq: u64, result: &'a ToolResult) -> Fate<'a> {
        let Some(groups) = self.open.get_mut(result.tool_use_id.as_str()) else {
            return Fate::Orphan(result);
        };
        let Some(group) = groups.last_mut() else {
            return Fate::Duplicate;
        };
        let message = group.message;
        let number = group.calls.pop_front();
        if group.calls.is_empty() {
            groups.pop();
        }
        let Some(call) = number.and_then(|number| self.calls.get_mut(number)) else {
            return Fate::Duplicate;
        };
        call.result = Some((seq, result));
        let late = self.last_said > message;
        Fate::Answers { late }
    }
}

/// Gives each call an id that the shape takes and that no other has.
struct Ids<'a> {
    shape: Shape,
    given: HashSet<Cow<'a, str>>,
    /// How many ids were derived from an id: each is tried once, whatever ids
    /// a history was made to contain.
    derived: HashMap<&'a str, u64>,
}

impl<'a> Ids<'a> {
    fn new(shape: Shape) -> Self {
        Self {
            shape,
            given: HashSet::new(),
            derived: HashMap::new(),
        }
    }

    fn give(&mut self, id: &'a str) -> (Cow<'a, str>, Option<MendRule>) {
        let taken = self.shape.takes_id(id);
        if taken && self.given.insert(Cow::Borrowed(id)) {
            return (Cow::Borrowed(id), None);
        }
        let rule = match taken {
            true => MendRule::DuplicateId,
            false => MendRule::RefusedId,
        };
        let count = self.derived.entry(id).or_default();
        loop {
            let derived = derive(id, *count);
            *count += 1;
            if self.given.insert(Cow::Owned(derived.clone())) {
                return (Cow::Owned(derived), Some(rule));
            }
        }
    }
}

/// Derives an id, 37 characters long, which every shape takes.
fn derive(id: &str, nth: u64) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&nth.to_le_bytes());
    hasher.update(id.as_bytes());
    let hash = hasher.finalize().to_hex();
    format!("call_{}", &hash[..32])
}
