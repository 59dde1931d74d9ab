//! Prompts, answers and tool calls, together and separately.

use serde::{Deserialize, Serialize};

use super::item::{Answer, Item, Prompt, ToolCall};
use super::reader::Conversation;
use crate::error::Result;
use crate::session::SessionReader;

/// A prompt, an answer or a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HistoryItem {
    /// A user message.
    Prompt(Prompt),
    /// The text of an assistant message.
    Answer(Answer),
    /// A tool call.
    ToolCall(ToolCall),
}

impl SessionReader {
    /// Reads prompts, answers and tool calls from the beginning on, each call with its
    /// result: the [`conversation`](Self::conversation) in its simplest form.
    ///
    /// Items come in the order of their records; the text of an assistant message is one
    /// answer, and comes before its calls. A call is returned when its result is known, and
    /// later items wait for it: until the next prompt, for 1,000 messages or 64 MiB, or until
    /// the history ends, whichever comes first. Then it is returned without a result, and a
    /// later result is not matched with it. Only waiting items are held in memory.
    ///
    /// # Errors
    ///
    /// Fails if the session's files cannot be read.
    pub fn history(&self) -> Result<History> {
        self.plain_conversation().map(History)
    }

    /// Reads the prompts from the beginning on.
    ///
    /// # Errors
    ///
    /// Fails if the session's files cannot be read.
    pub fn prompts(&self) -> Result<Prompts> {
        self.history().map(Prompts)
    }

    /// Reads the answers from the beginning on.
    ///
    /// # Errors
    ///
    /// Fails if the session's files cannot be read.
    pub fn answers(&self) -> Result<Answers> {
        self.history().map(Answers)
    }

    /// Reads the tool calls from the beginning on, in the order in which they were made;
    /// [`history`](Self::history) describes how they are matched with results.
    ///
    /// # Errors
    ///
    /// Fails if the session's files cannot be read.
    pub fn tool_calls(&self) -> Result<ToolCalls> {
        self.history().map(ToolCalls)
    }
}

/// Prompts, answers and tool calls, in order. An error ends the iteration.
#[derive(Debug)]
pub struct History(Conversation);

impl History {
    /// Returns how many places could not be read so far, including messages of unknown
    /// shape or with a lost part.
    pub fn damaged(&self) -> u64 {
        self.0.damaged()
    }
}

impl Iterator for History {
    type Item = Result<HistoryItem>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.find_map(|item| match item {
            Ok(Item::Prompt(item)) => Some(Ok(HistoryItem::Prompt(item))),
            Ok(Item::Answer(item)) => Some(Ok(HistoryItem::Answer(item))),
            Ok(Item::ToolCall(item)) => Some(Ok(HistoryItem::ToolCall(item))),
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        })
    }
}

macro_rules! parts_of_history {
    ($($(#[$doc:meta])* $iterator:ident $item:ident),*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $iterator(History);

        impl $iterator {
            /// Returns how many places could not be read so far, including messages of
            /// unknown shape or with a lost part.
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
    /// The prompts, in order. An error ends the iteration.
    Prompts Prompt,
    /// The answers, in order. An error ends the iteration.
    Answers Answer,
    /// The tool calls, in order. An error ends the iteration.
    ToolCalls ToolCall
);
