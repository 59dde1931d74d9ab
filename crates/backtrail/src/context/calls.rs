//! Finds which result answers which call, and assigns ids.
//!
//! Every decision depends only on earlier blocks, so that a longer history decides the
//! same for its beginning. One pass is enough.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};

use super::ContextMessage;
use super::mend::MendRule;
use super::shape::Shape;
use crate::message::{Block, Role, ToolResult, ToolUse};

/// All calls, and the fate of each block of each message.
pub(super) struct Calls<'a> {
    pub(super) calls: Vec<Matched<'a>>,
    /// The blocks of each message.
    pub(super) fates: Vec<Vec<BlockFate<'a>>>,
}

/// A call by the assistant.
pub(super) struct Matched<'a> {
    pub(super) block: &'a ToolUse,
    pub(super) id: Cow<'a, str>,
    /// The rule by which the id was changed, if it was.
    pub(super) id_mend: Option<MendRule>,
    /// The result that answers it, and its record.
    pub(super) result: Option<(u64, &'a ToolResult)>,
}

/// The fate of a block.
pub(super) enum BlockFate<'a> {
    /// A block that is neither a call nor a result.
    Plain(&'a Block),
    /// A call, with its number.
    Call(usize),
    /// A call that is not the assistant's.
    Misplaced(&'a ToolUse),
    /// A result, which moves to its call.
    Answers { late: bool },
    /// A second result for a call.
    Duplicate,
    /// A result without an earlier call.
    Orphan(&'a ToolResult),
}

impl<'a> Calls<'a> {
    pub(super) fn find(shape: Shape, messages: &'a [ContextMessage]) -> Self {
        let mut finder = CallFinder {
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

/// The unanswered calls of one message with one id.
struct OpenCalls {
    message: usize,
    calls: VecDeque<usize>,
}

struct CallFinder<'a> {
    calls: Vec<Matched<'a>>,
    ids: Ids<'a>,
    /// By id. Ids of earlier calls stay, even if none of them is open.
    open: HashMap<&'a str, Vec<OpenCalls>>,
    /// The last message with anything besides results.
    last_said: usize,
}

impl<'a> CallFinder<'a> {
    fn message(&mut self, n: usize, said: &'a ContextMessage) -> Vec<BlockFate<'a>> {
        let blocks = said.message.blocks.iter();
        blocks.map(|block| self.block(n, said, block)).collect()
    }

    fn block(&mut self, n: usize, said: &'a ContextMessage, block: &'a Block) -> BlockFate<'a> {
        let fate = match block {
            Block::ToolUse(call) if said.message.role == Role::Assistant => self.call(n, call),
            Block::ToolUse(call) => BlockFate::Misplaced(call),
            Block::ToolResult(result) => self.result(said.seq, result),
            other => BlockFate::Plain(other),
        };
        let says = match block {
            Block::Text(text) => !text.text.trim().is_empty(),
            _ => !matches!(fate, BlockFate::Answers { .. } | BlockFate::Duplicate),
        };
        if says {
            self.last_said = n;
        }
        fate
    }

    fn call(&mut self, message: usize, block: &'a ToolUse) -> BlockFate<'a> {
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
            _ => groups.push(OpenCalls {
                message,
                calls: VecDeque::from([number]),
            }),
        }
        BlockFate::Call(number)
    }

    /// A result answers the newest message with an open call of its id, because agents
    /// that restart their numbering in each turn mean that one. Among the calls of one
    /// message it answers the first.
    fn result(&mut self, seq: u64, result: &'a ToolResult) -> BlockFate<'a> {
        let Some(groups) = self.open.get_mut(result.tool_use_id.as_str()) else {
            return BlockFate::Orphan(result);
        };
        let Some(group) = groups.last_mut() else {
            return BlockFate::Duplicate;
        };
        let message = group.message;
        let number = group.calls.pop_front();
        if group.calls.is_empty() {
            groups.pop();
        }
        let Some(call) = number.and_then(|number| self.calls.get_mut(number)) else {
            return BlockFate::Duplicate;
        };
        call.result = Some((seq, result));
        let late = self.last_said > message;
        BlockFate::Answers { late }
    }
}

/// Gives each call a unique id that the shape accepts.
struct Ids<'a> {
    shape: Shape,
    given: HashSet<Cow<'a, str>>,
    /// How many ids were derived from an id. Each is tried once, whatever ids a history
    /// contains.
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

/// Derives an id of 37 characters, which every shape accepts.
fn derive(id: &str, nth: u64) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&nth.to_le_bytes());
    hasher.update(id.as_bytes());
    let hash = hasher.finalize().to_hex();
    format!("call_{}", &hash[..32])
}
