//! What a session loses on its way into version 1.

use std::fmt;

/// What was turned into text or left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum LossKind {
    /// Thinking, which version 1 has no place for.
    Thinking,
    /// Images and other media, of which only a line of text is left.
    Media,
    /// Blocks of other kinds, which became the text of their JSON.
    UnknownBlock,
    /// Tool output that is no string, which became the text of its JSON.
    Output,
    /// Roles that version 1 does not know.
    Role,
    /// Counts of tokens, and other numbers, past 2^32.
    Number,
    /// Fields that version 1 does not have.
    Fields,
    /// Lone surrogates, which no UTF-8 can hold, and which became U+FFFD.
    LoneSurrogate,
    /// Messages that a compaction's summary stands for.
    Summarised,
    /// What stands beside a message: model, response id, duration and cost.
    Details,
    /// What is known of the session: title, tags, agent.
    Notes,
    /// Prompts that a version-1 file keeps beside its messages, which not all
    /// readers of it know.
    Prompts,
    /// Messages and places that cannot be read.
    Unreadable,
}

impl LossKind {
    fn sentence(self) -> &'static str {
        match self {
            Self::Thinking => "thinking was left out",
            Self::Media => "media became a line of text",
            Self::UnknownBlock => "blocks of unknown kinds became text",
            Self::Output => "tool output that is no text became the text of its JSON",
            Self::Role => "an unknown role was changed to one that is known",
            Self::Number => "a number past 32 bits became the largest that fits",
            Self::Fields => "fields that version 1 does not have were left out",
            Self::LoneSurrogate => "half a character became U+FFFD",
            Self::Summarised => "left out",
            Self::Details => "model, response id, duration or cost were left out",
            Self::Notes => "title, tags or agent were left out",
            Self::Prompts => "the history of prompts was left out",
            Self::Unreadable => "what cannot be read was left out",
        }
    }
}

/// One kind of loss: how often, and where first.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// What was lost.
    pub kind: LossKind,
    /// How many messages lost it.
    pub count: u64,
    /// The first few of them, by seq; 0 is what stands before the messages.
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
                write!(f, "{messages} that the summary stands for left out (")?;
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

/// All that a session lost on its way into version 1.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Losses(Vec<Loss>);

/// How many places of each kind are kept.
const KEPT: usize = 5;

impl Losses {
    /// Returns whether nothing was lost.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the losses, one for each kind, in the order they came up.
    pub fn iter(&self) -> impl Iterator<Item = &Loss> {
        self.0.iter()
    }

    /// Counts a loss; once for each message, however often it has it.
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
