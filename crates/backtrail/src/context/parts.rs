//! The result of applying all rules, ready to be written.

use std::borrow::Cow;

use super::mend::Mend;
use crate::message::{Block, ToolResult, ToolUse};

/// A mended context. The writers only put it into the form of their shape.
pub(super) struct Mended<'a> {
    /// The instructions, each with its texts.
    pub(super) front: Vec<ContextTurn<'a>>,
    pub(super) items: Vec<ContextItem<'a>>,
    pub(super) mends: Vec<Mend>,
}

pub(super) enum ContextItem<'a> {
    Turn(ContextTurn<'a>),
    /// The results of all calls of the previous turn, in the order of the calls.
    Results(Vec<SentResult<'a>>),
}

/// One message. It has at least one part.
pub(super) struct ContextTurn<'a> {
    /// The record of the message.
    pub(super) seq: u64,
    pub(super) author: Author,
    /// The role as it was written, which only the neutral shape shows.
    pub(super) role: &'a str,
    pub(super) parts: Vec<TurnPart<'a>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Author {
    System,
    User,
    Assistant,
}

pub(super) enum TurnPart<'a> {
    Text(Cow<'a, str>),
    Medium(Medium<'a>),
    /// Thinking with its signature; only the assistant's.
    Thought {
        text: &'a str,
        signature: &'a str,
    },
    /// Thinking that only the provider can read; only the assistant's.
    Redacted(Cow<'a, str>),
    /// A call; only the assistant's.
    Call(SentCall<'a>),
    /// A block with its original bytes; only in the neutral shape.
    Own(&'a Block),
}

pub(super) struct SentCall<'a> {
    pub(super) id: Cow<'a, str>,
    pub(super) name: Cow<'a, str>,
    /// The JSON text of an object.
    pub(super) input: Cow<'a, str>,
    pub(super) block: &'a ToolUse,
}

pub(super) struct SentResult<'a> {
    pub(super) id: Cow<'a, str>,
    /// Texts and media.
    pub(super) parts: Vec<TurnPart<'a>>,
    pub(super) is_error: bool,
    /// The call, and its result if it has one.
    pub(super) block: &'a ToolUse,
    pub(super) given: Option<&'a ToolResult>,
}

/// An image or other media.
pub(super) struct Medium<'a> {
    /// `image`, `audio`, `video`, `document` or `file`.
    pub(super) kind: Cow<'a, str>,
    pub(super) media_type: Cow<'a, str>,
    /// The bytes in Base64; `None` if they are not available.
    pub(super) data: Option<Cow<'a, str>>,
    /// The approximate number of bytes.
    pub(super) bytes: u64,
}

/// Joins the texts of parts that are all texts.
pub(super) fn join<'p>(parts: &'p [TurnPart<'_>], between: &str) -> Cow<'p, str> {
    let mut texts = parts.iter().filter_map(|part| match part {
        TurnPart::Text(text) => Some(text.as_ref()),
        _ => None,
    });
    let first = texts.next().unwrap_or("");
    let Some(second) = texts.next() else {
        return Cow::Borrowed(first);
    };
    let mut all = String::from(first);
    for text in std::iter::once(second).chain(texts) {
        all.push_str(between);
        all.push_str(text);
    }
    Cow::Owned(all)
}
