//! Matches results with tool calls.
//!
//! A result answers the oldest open call with its id. A call stays open until the next
//! prompt, since by then the model has continued without it, and for at most 1,000
//! messages, so that memory stays bounded in a session whose calls are never answered.
//! A later or second result answers nothing.

use std::collections::{HashMap, VecDeque};

use crate::error::Result;
use crate::json::Text;
use crate::message::{Block, Message, ToolResult, ToolUse};
use crate::session::SessionReader;

/// How many messages a call stays open.
pub(super) const PATIENCE: u64 = 1_000;

/// Receives the blocks of messages, in order, from [`Calls::read`].
pub trait CallVisitor {
    /// What to remember of a call until its result comes.
    type Call;

    /// The message is a prompt: earlier calls are no longer open.
    fn prompt(&mut self) {}

    /// A tool call.
    fn call(&mut self, call: &ToolUse) -> Self::Call;

    /// A result, and the call that it answers, if any.
    fn result(&mut self, call: Option<Self::Call>, result: &ToolResult);

    /// Any other block.
    fn other(&mut self, _block: &Block) {}
}

/// The open calls.
#[derive(Debug)]
pub struct Calls<C> {
    /// The calls of each id, oldest first.
    waiting: HashMap<String, VecDeque<Waiting<C>>>,
    messages: u64,
    /// The number of the last message that was a prompt.
    prompt: u64,
}

#[derive(Debug)]
struct Waiting<C> {
    call: C,
    /// The number of the message that made the call.
    message: u64,
}

impl<C> Default for Calls<C> {
    fn default() -> Self {
        Self {
            waiting: HashMap::new(),
            messages: 0,
            prompt: 0,
        }
    }
}

impl<C> Calls<C> {
    /// Reads the next message of a conversation. The results in a prompt belong to the
    /// turn before it, so they come before [`CallVisitor::prompt`].
    pub fn read(&mut self, message: &Message, visitor: &mut impl CallVisitor<Call = C>) {
        self.messages += 1;
        if self.messages.is_multiple_of(PATIENCE) {
            self.forget();
        }
        let is_prompt = message.is_prompt();
        if is_prompt {
            for block in &message.blocks {
                if let Block::ToolResult(result) = block {
                    visitor.result(self.answer(&result.tool_use_id), result);
                }
            }
            self.waiting.clear();
            self.prompt = self.messages;
            visitor.prompt();
        }
        for block in &message.blocks {
            match block {
                Block::ToolUse(call) => {
                    let made = visitor.call(call);
                    self.open(&call.id, made);
                }
                Block::ToolResult(_) if is_prompt => {}
                Block::ToolResult(result) => {
                    visitor.result(self.answer(&result.tool_use_id), result);
                }
                other => visitor.other(other),
            }
        }
    }

    /// Returns whether a call with this id is open.
    pub fn has_waiting(&self, id: &str) -> bool {
        let waits = |waiting: &Waiting<C>| self.waits(waiting.message);
        self.waiting
            .get(id)
            .is_some_and(|same_id| same_id.iter().any(waits))
    }

    /// Returns the number of the message that was read last, counted from 1.
    pub(crate) fn messages(&self) -> u64 {
        self.messages
    }

    /// Returns whether a call in the message with this number may still be answered.
    pub(crate) fn waits(&self, message: u64) -> bool {
        message >= self.prompt && self.messages - message <= PATIENCE
    }

    fn open(&mut self, id: &str, call: C) {
        let waiting = Waiting {
            call,
            message: self.messages,
        };
        match self.waiting.get_mut(id) {
            Some(same_id) => same_id.push_back(waiting),
            None => drop(self.waiting.insert(id.to_owned(), [waiting].into())),
        }
    }

    /// Removes and returns the oldest open call with this id.
    fn answer(&mut self, id: &str) -> Option<C> {
        let mut same_id = self.waiting.remove(id)?;
        let mut answered = None;
        while answered.is_none()
            && let Some(waiting) = same_id.pop_front()
        {
            answered = self.waits(waiting.message).then_some(waiting.call);
        }
        if !same_id.is_empty() {
            self.waiting.insert(id.to_owned(), same_id);
        }
        answered
    }

    /// Drops the calls that are no longer open.
    fn forget(&mut self) {
        let messages = self.messages;
        self.waiting.retain(|_, same_id| {
            same_id.retain(|waiting| messages - waiting.message <= PATIENCE);
            !same_id.is_empty()
        });
    }
}

/// A call, by its place in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallPlace {
    /// The number of its record.
    pub seq: u64,
    /// How many calls come before it in the record.
    pub n: u32,
    /// The tool.
    pub name: Text,
}

/// Collects calls by their places.
struct Places {
    seq: u64,
    n: u32,
}

impl CallVisitor for Places {
    type Call = CallPlace;

    fn call(&mut self, call: &ToolUse) -> CallPlace {
        self.n += 1;
        CallPlace {
            seq: self.seq,
            n: self.n - 1,
            name: call.name.clone(),
        }
    }

    fn result(&mut self, _call: Option<CallPlace>, _result: &ToolResult) {}
}

impl SessionReader {
    /// Returns the calls that are open before record `seq` of one of the session's own
    /// trails. It reads back to the last prompt, and no further than 1,000 messages.
    ///
    /// # Errors
    ///
    /// Fails if the session's files cannot be read.
    pub fn calls_before(&self, trail: u32, seq: u64) -> Result<Calls<CallPlace>> {
        let mut messages = Vec::new();
        let mut back = self.log.records_back_from(trail, seq.saturating_sub(1))?;
        while (messages.len() as u64) < PATIENCE
            && let Some(record) = back.next()?
        {
            // An unreadable message has no call that could be answered.
            let Ok(Some(message)) = record.stored_message() else {
                continue;
            };
            let is_prompt = message.is_prompt();
            messages.push((record.seq(), message));
            if is_prompt {
                break;
            }
        }
        let mut calls = Calls::default();
        for (seq, message) in messages.iter().rev() {
            calls.read(message, &mut Places { seq: *seq, n: 0 });
        }
        Ok(calls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers the calls from 0, and records which of them are answered.
    #[derive(Default)]
    struct Numbers {
        calls: u64,
        answered: Vec<u64>,
    }

    impl CallVisitor for Numbers {
        type Call = u64;

        fn call(&mut self, _call: &ToolUse) -> u64 {
            self.calls += 1;
            self.calls - 1
        }

        fn result(&mut self, call: Option<u64>, _result: &ToolResult) {
            self.answered.extend(call);
        }
    }

    fn call(id: &str) -> Message {
        let call = ToolUse::new(id, "bash", "ls").unwrap();
        Message::assistant([Block::from(call)])
    }

    fn result(id: &str) -> Message {
        Message::tool_result(ToolResult::ok("done").answers(id, "bash"))
    }

    #[test]
    fn a_call_waits_for_a_thousand_messages_and_no_longer() {
        for (silence, expected) in [(999, vec![0]), (1_000, vec![])] {
            let (mut calls, mut seen) = (Calls::default(), Numbers::default());
            calls.read(&call("t1"), &mut seen);
            let made_at = calls.messages();
            for _ in 0..silence {
                calls.read(&Message::assistant([Block::text("hm")]), &mut seen);
            }
            assert!(calls.waits(made_at));
            calls.read(&result("t1"), &mut seen);
            assert_eq!(seen.answered, expected, "{silence}");
        }
    }

    #[test]
    fn calls_that_are_never_answered_are_forgotten() {
        let (mut calls, mut seen) = (Calls::default(), Numbers::default());
        for n in 0..10 * PATIENCE {
            calls.read(&call(&format!("t{n}")), &mut seen);
            calls.read(&call("the same"), &mut seen);
        }
        let waiting: usize = calls.waiting.values().map(VecDeque::len).sum();
        assert!(waiting as u64 <= 2 * PATIENCE + 2, "{waiting}");
        // With several of one id, the oldest open one.
        calls.read(&result("the same"), &mut seen);
        assert_eq!(seen.answered, [20 * PATIENCE - PATIENCE + 1]);
        calls.read(&Message::user_text("stop"), &mut seen);
        assert!(calls.waiting.is_empty());
    }
}
