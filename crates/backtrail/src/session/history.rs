//! What was said and done in a session: prompts, answers and calls of tools,
//! apart and together.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::output::output_text;
use super::reader::SessionReader;
use super::turn::{Calls, Event, is_answer};
use crate::error::Result;
use crate::json::{Json, Text};
use crate::log::Records;
use crate::message::{Message, ToolResult, ToolUse};
use crate::time::Timestamp;
use crate::trail::readable::Readable;

/// Something that the user said: a message that has anything in it but results
/// of tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Prompt {
    /// The number of its record.
    pub seq: u64,
    /// When it was said, where the record says so.
    pub at: Option<Timestamp>,
    /// Its text blocks, joined by newlines; empty where it is an image alone.
    pub text: String,
}

/// Something that the assistant said: a message with text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Answer {
    /// The number of its record.
    pub seq: u64,
    /// When it was said, where the record says so.
    pub at: Option<Timestamp>,
    /// Its text blocks, joined by newlines.
    pub text: String,
}

/// A call of a tool, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolCall {
    /// The number of the record with the call.
    pub seq: u64,
    /// When it was called, where the record says so.
    pub at: Option<Timestamp>,
    /// The call's id.
    pub id: Text,
    /// The tool.
    pub name: Text,
    /// What it was called with, byte for byte.
    pub arguments: Json,
    /// The first result that answers the call; `None` if there is none.
    pub result: Option<ToolOutcome>,
    /// Whether the tool did its work; `None` as long as there is no result.
    pub success: Option<bool>,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolOutcome {
    /// The number of the record with the result.
    pub seq: u64,
    /// When it came, where the record says so.
    pub at: Option<Timestamp>,
    /// The output, byte for byte: mostly a string, sometimes a list of blocks.
    pub output: Json,
}

impl ToolOutcome {
    /// Returns the output as text: a string as it reads; of a list of blocks
    /// their texts, joined by newlines; anything else as its JSON.
    pub fn text(&self) -> String {
        output_text(&self.output).into_owned()
    }
}

/// One thing that was said or done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HistoryItem {
    /// The user said something.
    Prompt(Prompt),
    /// The assistant said something.
    Answer(Answer),
    /// A tool was called.
    ToolCall(ToolCall),
}

impl SessionReader {
    /// Reads what was said and done from the beginning on, each call of a tool
    /// with its result.
    ///
    /// Items come in the order of their records; what an assistant's message
    /// says comes before the calls in it. A call is given out when its result is
    /// there, and what follows it waits for that. It waits until the next prompt,
    /// for 1,000 messages, or until the history ends, whichever comes first, and
    /// is then given out without a result; a result that comes later is not taken
    /// for its own. Only what waits is held in memory.
    pub fn history(&self) -> Result<History> {
        History::new(self, Select::All)
    }

    /// Reads what the user said from the beginning on.
    pub fn prompts(&self) -> Result<Prompts> {
        History::new(self, Select::Prompts).map(Prompts)
    }

    /// Reads what the assistant said from the beginning on.
    pub fn answers(&self) -> Result<Answers> {
        History::new(self, Select::Answers).map(Answers)
    }

    /// Reads the calls of tools from the beginning on, in the order in which they
    /// were made; [`history`](Self::history) says how they find their results.
    pub fn tool_calls(&self) -> Result<ToolCalls> {
        History::new(self, Select::ToolCalls).map(ToolCalls)
    }
}

/// Prompts, answers and calls of tools, in order. An error ends it.
#[derive(Debug)]
pub struct History {
    records: Records,
    select: Select,
    calls: Calls,
    /// What is to be given out, with the calls that are still open.
    queue: VecDeque<Entry>,
    /// The calls in the queue, oldest first.
    open: VecDeque<OpenCall>,
    /// How many calls were given out.
    given: u64,
    unreadable: u64,
    is_at_end: bool,
}

/// What is wanted of the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Select {
    All,
    Prompts,
    Answers,
    ToolCalls,
}

#[derive(Debug)]
enum Entry {
    Said(HistoryItem),
    /// The next one of the calls.
    Call,
}

#[derive(Debug)]
struct OpenCall {
    call: ToolCall,
    /// How many messages there were when it was made.
    message: u64,
}

impl History {
    fn new(reader: &SessionReader, select: Select) -> Result<Self> {
        Ok(Self {
            records: reader.records()?,
            select,
            calls: Calls::default(),
            queue: VecDeque::new(),
            open: VecDeque::new(),
            given: 0,
            unreadable: 0,
            is_at_end: false,
        })
    }

    /// Returns how many places could not be read so far, messages of unknown
    /// shape or with a lost part included.
    pub fn damaged(&self) -> u64 {
        self.records.damage().count() + self.unreadable
    }

    /// Takes the next item that waits for nothing.
    fn take_ready(&mut self) -> Option<HistoryItem> {
        if matches!(self.queue.front()?, Entry::Call) && self.first_call_waits() {
            return None;
        }
        match self.queue.pop_front()? {
            Entry::Said(item) => Some(item),
            Entry::Call => {
                self.given += 1;
                let open = self.open.pop_front()?;
                Some(HistoryItem::ToolCall(open.call))
            }
        }
    }

    fn first_call_waits(&self) -> bool {
        let waits = |open: &OpenCall| {
            open.call.result.is_none() && self.calls.waits(self.given, open.message)
        };
        !self.is_at_end && self.open.front().is_some_and(waits)
    }

    /// Reads one more record; at the end it only notes that.
    fn read_on(&mut self) -> Result<()> {
        let Some(record) = self.records.next()? else {
            self.is_at_end = true;
            return Ok(());
        };
        let (seq, at) = (record.seq(), record.at());
        let readable = record.readable()?;
        if matches!(readable, Readable::InPart(_) | Readable::Nothing) {
            self.unreadable += 1;
        }
        if let Readable::Whole(message) | Readable::InPart(message) = readable {
            self.take_in(Place { seq, at }, &message);
        }
        Ok(())
    }

    fn take_in(&mut self, place: Place, said: &Message) {
        if self.wants(Select::Answers) && is_answer(said) {
            self.queue.push_back(place.answer(said));
        }
        let mut calls = std::mem::take(&mut self.calls);
        let message = calls.messages() + 1;
        calls.take_in(said, |event| match event {
            Event::Prompt if self.wants(Select::Prompts) => {
                self.queue.push_back(place.prompt(said));
            }
            Event::Call(call) if self.wants(Select::ToolCalls) => {
                let call = place.call(call);
                self.queue.push_back(Entry::Call);
                self.open.push_back(OpenCall { call, message });
            }
            Event::Result(call, result) if self.wants(Select::ToolCalls) => {
                self.answer(call, place.outcome(result), result);
            }
            _ => {}
        });
        self.calls = calls;
    }

    fn wants(&self, part: Select) -> bool {
        self.select == Select::All || self.select == part
    }

    /// Gives a call its result, if it was not given out.
    fn answer(&mut self, call: u64, outcome: ToolOutcome, result: &ToolResult) {
        let index = call
            .checked_sub(self.given)
            .and_then(|n| usize::try_from(n).ok());
        if let Some(open) = index.and_then(|n| self.open.get_mut(n)) {
            open.call.success = Some(!result.is_error);
            open.call.result = Some(outcome);
        }
    }
}

impl Iterator for History {
    type Item = Result<HistoryItem>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.take_ready() {
                return Some(Ok(item));
            }
            if self.is_at_end {
                return None;
            }
            if let Err(error) = self.read_on() {
                self.is_at_end = true;
                self.queue.clear();
                return Some(Err(error));
            }
        }
    }
}

/// Where something was said.
#[derive(Debug, Clone, Copy)]
struct Place {
    seq: u64,
    at: Option<Timestamp>,
}

impl Place {
    fn prompt(self, message: &Message) -> Entry {
        let Self { seq, at } = self;
        let text = message.text().into_owned();
        Entry::Said(HistoryItem::Prompt(Prompt { seq, at, text }))
    }

    fn answer(self, message: &Message) -> Entry {
        let Self { seq, at } = self;
        let text = message.text().into_owned();
        Entry::Said(HistoryItem::Answer(Answer { seq, at, text }))
    }

    fn call(self, call: &ToolUse) -> ToolCall {
        ToolCall {
            seq: self.seq,
            at: self.at,
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.input.clone(),
            result: None,
            success: None,
        }
    }

    fn outcome(self, result: &ToolResult) -> ToolOutcome {
        ToolOutcome {
            seq: self.seq,
            at: self.at,
            output: result.output.clone(),
        }
    }
}

macro_rules! parts_of_history {
    ($($(#[$doc:meta])* $iterator:ident $item:ident),*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $iterator(History);

        impl $iterator {
            /// Returns how many places could not be read so far, messages of
            /// unknown shape or with a lost part included.
            pub fn damaged(&self) -> u64 {
                self.0.damaged()
            }
        }

        impl Iterator for $iterator {
            type Item = Result<$item>;

            fn next(&mut self) -> Option<Self::Item> {
                self.0.find_map(|item| match item {
                    Ok(HistoryItem::$item(item)) => Some(Ok(item)),
                    Ok(_) => None,
                    Err(error) => Some(Err(error)),
                })
            }
        }
    )*};
}

parts_of_history!(
    /// What the user said, in order. An error ends it.
    Prompts Prompt,
    /// What the assistant said, in order. An error ends it.
    Answers Answer,
    /// The calls of tools, in order. An error ends it.
    ToolCalls ToolCall
);
