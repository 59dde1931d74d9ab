//! What is left to write once all rules are applied.

use std::borrow::Cow;

use super::mend::Mend;
use crate::message::{Block, ToolResult, ToolUse};

/// A mended context: a writer puts it into the form of its shape, and decides
/// nothing.
pub(super) struct Mended<'a> {
    /// The instructions, each with its texts.
    pub(super) front: Vec<Turn<'a>>,
    pub(super) items: Vec<Item<'a>>,
    pub(super) mends: Vec<Mend>,
}

pub(super) enum Item<'a> {
    Turn(Turn<'a>),
    /// The results of all calls of the turn before, in the order of the calls.
    Results(Vec<Answer<'a>>),
}

/// One message. It has at least one part.
pub(super) struct Turn<'a> {
    pub(super) who: Who,
    /// The role as it was written, which only the neutral shape shows.
    pub(super) role: &'a str,
    pub(super) parts: Vec<Part<'a>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    System,
    User,
    Assistant,
}

pub(super) enum Part<'a> {
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
    Call(Call<'a>),
    /// A block with the bytes it has; only in the neutral shape.
    Own(&'a Block),
}

pub(super) struct Call<'a> {
    pub(super) id: Cow<'a, str>,
    pub(super) name: Cow<'a, str>,
    /// The JSON text of an object.
    pub(super) input: Cow<'a, str>,
    pub(super) block: &'a ToolUse,
}

pub(super) struct Answer<'a> {
    pub(super) id: Cow<'a, str>,
    /// Texts and media.
    pub(super) parts: Vec<Part<'a>>,
    pub(super) is_error: bool,
    /// The call, and the result as it was given, if it was.
    pub(super) block: &'a ToolUse,
    pub(super) given: Option<&'a ToolResult>,
}

/// An image or another medium.
pub(super) struct Medium<'a> {
    /// `image`, `audio`, `video`, `document` or `file`.
    pub(super) kind: Cow<'a, str>,
    pub(super) media_type: Cow<'a, str>,
    /// Its bytes in Base64; `None` where they are not at hand.
    pub(super) data: Option<Cow<'a, str>>,
    /// How many bytes it has, about.
    pub(super) bytes: u64,
}

/// Joins the texts of parts that have been brought down to texts.
pub(super) fn join<'p>(parts: &'p [Part<'_>], between: &str) -> Cow<'p, str> {
    let mut texts = parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_ref()),
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
