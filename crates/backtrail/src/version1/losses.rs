//! What a session loses when it is written as version 1.

use std::fmt;

use serde::Serialize;

/// A kind of content that became text or was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LossKind {
    /// Thinking, which version 1 does not have.
    Thinking,
    /// Images and other media, which became a line of text.
    Media,
    /// Blocks of other kinds, which became the text of their JSON.
    UnknownBlock,
    /// Tool output that is not a string, which became the text of its JSON.
    Output,
    /// Roles that version 1 does not know.
    Role,
    /// Counts of tokens, and other numbers, past 2^32.
    Number,
    /// Fields that version 1 does not have.
    Fields,
    /// Lone surrogates, which UTF-8 cannot hold and which became U+FFFD.
    LoneSurrogate,
    /// Messages that a compaction's summary replaces.
    Summarised,
    /// Details of a message: model, response id, duration and cost.
    Details,
    /// Details of the session: title, tags, agent.
    Notes,
    /// Prompts that a version-1 file keeps beside its messages, which not every reader
    /// supports.
    Prompts,
    /// Messages and lines that cannot be read.
    Unreadable,
}

impl LossKind {
    fn sentence(self) -> &'static str {
        match self {
            Self::Thinking => "thinking was dropped",
            Self::Media => "media became a line of text",
            Self::UnknownBlock => "blocks of unknown kinds became text",
            Self::Output => "tool output that is not text became JSON text",
            Self::Role => "an unknown role became a known one",
            Self::Number => "a number over 32 bits became the largest that fits",
            Self::Fields => "fields that version 1 does not have were dropped",
            Self::LoneSurrogate => "a lone surrogate became U+FFFD",
            Self::Summarised => "dropped",
            Self::Details => "the model, response id, duration or cost was dropped",
            Self::Notes => "the title, tags or agent was dropped",
            Self::Prompts => "the prompt history was dropped",
            Self::Unreadable => "unreadable content was dropped",
        }
    }
}

/// One kind of loss, with a count and the first messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Loss {
    /// The kind of content.
    pub kind: LossKind,
    /// How many messages lost it.
    pub count: u64,
    /// The first few of them, by seq; 0 is the part before the messages.
    pub first: Vec<u64>,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let messages = match self.count {
            1 => "1 message".to_owned(),
            n => format!("{n} messages"),
        };
        match self.kind {
            LossKind::Summarised => {
                write!(f, "{messages} replaced by the summary (")?;
            }
            kind @ LossKind::Notes => return f.write_str(kind.sentence()),
            kind @ (LossKind::Prompts | LossKind::Unreadable) => {
                let places = if self.count == 1 { "place" } else { "places" };
                write!(f, "{} in {} {places} (", kind.sentence(), self.count)?;
            }
            kind => write!(f, "{} in {messages} (", kind.sentence())?,
        }
        for (n, seq) in self.first.iter().enumerate() {
            let comma = if n == 0 { "" } else { ", " };
            write!(f, "{comma}{seq}")?;
        }
        let more = self.count > self.first.len() as u64;
        f.write_str(if more { ", …)" } else { ")" })
    }
}

/// The losses of a session that was written as version 1.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Losses(Vec<Loss>);

/// How many messages are listed for each kind.
const KEPT: usize = 5;

impl Losses {
    /// Returns whether nothing was lost.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the losses, one for each kind, in the order in which they occurred.
    pub fn iter(&self) -> impl Iterator<Item = &Loss> {
        self.0.iter()
    }

    /// Counts a loss in a message.
    pub(crate) fn add(&mut self, kind: LossKind, seq: u64) {
        let at = self.0.iter().position(|loss| loss.kind == kind);
        let at = at.unwrap_or_else(|| {
            self.0.push(Loss {
                kind,
                count: 0,
                first: Vec::new(),
            });
            self.0.len() - 1
        });
        let loss = &mut self.0[at];
        loss.count += 1;
        if loss.first.len() < KEPT {
            loss.first.push(seq);
        }
    }
}
