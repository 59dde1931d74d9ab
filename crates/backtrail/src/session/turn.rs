//! What a turn is made of: prompts, answers, and calls of tools with their results.
//!
//! A call waits for its result until the next prompt, since by then the model
//! has gone on without it, and for no more than 1,000 messages: so what has to be
//! remembered is bounded, however many calls a session has that were never
//! answered. A result that comes later, or again, answers nothing.

use std::collections::{HashMap, VecDeque};

use crate::message::{Block, Message, Role, ToolResult, ToolUse};

/// How many messages a call waits.
const PATIENCE: u64 = 1_000;

/// Returns whether a message is an answer: one of the assistant's with text.
pub(crate) fn is_answer(message: &Message) -> bool {
    let has_text = |block: &Block| match block {
        Block::Text(block) => !block.text.trim().is_empty(),
        _ => false,
    };
    message.role == Role::Assistant && message.blocks.iter().any(has_text)
}

/// Something that a message does to the calls of tools.
#[derive(Debug)]
pub(crate) enum Event<'a> {
    /// It is a prompt: no call from before it waits any longer.
    Prompt,
    /// It calls a tool. Calls are numbered from 0 in this order.
    Call(&'a ToolUse),
    /// It answers the call of this number, for the first time.
    Result(u64, &'a ToolResult),
}

/// The calls that wait for their results.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// Oldest first, for ids that stand twice.
    waiting: HashMap<String, VecDeque<Waiting>>,
    messages: u64,
    calls: u64,
    /// How many calls there were when the last prompt came.
    before_prompt: u64,
}

#[derive(Debug)]
struct Waiting {
    call: u64,
    /// The message that made the call.
    message: u64,
}

impl Calls {
    /// Takes in the next message and tells what it does, in order. The results
    /// in a prompt come before it.
    pub(crate) fn take_in<'a>(&mut self, message: &'a Message, mut tell: impl FnMut(Event<'a>)) {
        self.messages += 1;
        if self.messages.is_multiple_of(PATIENCE) {
            self.forget();
        }
        let is_prompt = message.is_prompt();
        if is_prompt {
            self.answer_all(&message.blocks, &mut tell);
            self.waiting.clear();
            self.before_prompt = self.calls;
            tell(Event::Prompt);
        }
        for block in &message.blocks {
            match block {
                Block::ToolUse(call) => {
                    self.open(&call.id);
                    tell(Event::Call(call));
                }
                Block::ToolResult(_) if !is_prompt => {
                    self.answer_all(std::slice::from_ref(block), &mut tell);
                }
                _ => {}
            }
        }
    }

    /// Returns how many messages were taken in.
    pub(crate) fn messages(&self) -> u64 {
        self.messages
    }

    /// Returns whether a call that nobody answered still waits. `message` is how
    /// many messages there were when it was made, itself included.
    pub(crate) fn waits(&self, call: u64, message: u64) -> bool {
        call >= self.before_prompt && self.messages - message <= PATIENCE
    }

    fn open(&mut self, id: &str) {
        let waiting = Waiting {
            call: self.calls,
            message: self.messages,
        };
        self.calls += 1;
        match self.waiting.get_mut(id) {
            Some(same_id) => same_id.push_back(waiting),
            None => drop(self.waiting.insert(id.to_owned(), [waiting].into())),
        }
    }

    fn answer_all<'a>(&mut self, blocks: &'a [Block], tell: &mut impl FnMut(Event<'a>)) {
        for block in blocks {
            if let Block::ToolResult(result) = block
                && let Some(call) = self.answer(&result.tool_use_id)
            {
                tell(Event::Result(call, result));
            }
        }
    }

    /// Takes the oldest call of this id that still waits.
    fn answer(&mut self, id: &str) -> Option<u64> {
        let mut same_id = self.waiting.remove(id)?;
        let mut answered = None;
        while answered.is_none()
            && let Some(waiting) = same_id.pop_front()
        {
            answered = self
                .waits(waiting.call, waiting.message)
                .then_some(waiting.call);
        }
        if !same_id.is_empty() {
            self.waiting.insert(id.to_owned(), same_id);
        }
        answered
    }

    /// Forgets the calls that waited long enough.
    fn forget(&mut self) {
        let messages = self.messages;
        self.waiting.retain(|_, same_id| {
            same_id.retain(|waiting| messages - waiting.message <= PATIENCE);
            !same_id.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str) -> Message {
        let call = ToolUse::new(id, "bash", "ls").unwrap();
        Message::assistant([Block::from(call)])
    }

    fn result(id: &str) -> Message {
        Message::tool_result(ToolResult::ok("done").answers(id, "bash"))
    }

    /// Takes in a message and returns the numbers of the calls that it answers.
    fn answered(calls: &mut Calls, message: &Message) -> Vec<u64> {
        let mut answered = Vec::new();
        calls.take_in(message, |event| {
            if let Event::Result(call, _) = event {
                answered.push(call);
            }
        });
        answered
    }

    #[test]
    fn a_call_waits_for_a_thousand_messages_and_no_longer() {
        for (silence, expected) in [(999, vec![0]), (1_000, vec![])] {
            let mut calls = Calls::default();
            answered(&mut calls, &call("t1"));
            let made_at = calls.messages();
            for _ in 0..silence {
                answered(&mut calls, &Message::assistant([Block::text("hm")]));
            }
            assert!(calls.waits(0, made_at));
            assert_eq!(answered(&mut calls, &result("t1")), expected, "{silence}");
        }
    }

    #[test]
    fn calls_that_are_never_answered_are_forgotten() {
        let mut calls = Calls::default();
        for n in 0..10 * PATIENCE {
            answered(&mut calls, &call(&format!("t{n}")));
            answered(&mut calls, &call("the same"));
        }
        let waiting: usize = calls.waiting.values().map(VecDeque::len).sum();
        assert!(waiting as u64 <= 2 * PATIENCE + 2, "{waiting}");
        // Of those with one id, the oldest that still waits.
        let oldest = answered(&mut calls, &result("the same"))[0];
        assert_eq!(oldest, 20 * PATIENCE - PATIENCE + 1);
        answered(&mut calls, &Message::user_text("stop"));
        assert!(calls.waiting.is_empty());
    }
}
