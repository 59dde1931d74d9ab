//! What had no place in the target, and what had to be changed.

use std::collections::BTreeMap;
use std::fmt;

use backtrail::context::{HandOver, MendRule};
use serde::Serialize;

/// What a conversion lost or changed, and how often.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Losses(BTreeMap<LossKind, u64>);

/// One row of [`Losses`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// What it is; the name is stable.
    pub kind: &'static str,
    /// How many there are.
    pub count: u64,
    /// The same as a phrase.
    pub text: String,
}

/// What is lost or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LossKind {
    Instructions,
    Injected,
    Thoughts,
    Media,
    OpenCalls,
    StrayResults,
    MovedResults,
    Names,
    Ids,
    Inputs,
    Characters,
    Blocks,
    Roles,
    Unreadable,
}

impl LossKind {
    /// Returns the stable name, and what happened to one and to several of them.
    fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Instructions => (
                "instructions",
                "instruction of the agent stays behind",
                "instructions of the agent stay behind",
            ),
            Self::Injected => (
                "injected",
                "text that the agent added stays behind",
                "texts that the agent added stay behind",
            ),
            Self::Thoughts => (
                "thoughts",
                "part of the model's reasoning stays behind",
                "parts of the model's reasoning stay behind",
            ),
            Self::Media => (
                "media",
                "image or document is not taken; a short text replaces it",
                "images or documents are not taken; short texts replace them",
            ),
            Self::OpenCalls => (
                "open_calls",
                "tool call without a result is answered as interrupted",
                "tool calls without a result are answered as interrupted",
            ),
            Self::StrayResults => (
                "stray_results",
                "tool result without its call, or after another one, is text or left out",
                "tool results without their call, or after another one, are text or left out",
            ),
            Self::MovedResults => (
                "moved_results",
                "late tool result is moved to its call",
                "late tool results are moved to their calls",
            ),
            Self::Names => (
                "names",
                "name of a tool is respelled, as providers demand",
                "names of tools are respelled, as providers demand",
            ),
            Self::Ids => (
                "ids",
                "id of a call is replaced, as providers demand",
                "ids of calls are replaced, as providers demand",
            ),
            Self::Inputs => (
                "inputs",
                "input of a call that is not an object is wrapped in one",
                "inputs of calls that are not objects are wrapped in one",
            ),
            Self::Characters => (
                "characters",
                "text has half a character, which is replaced",
                "texts have half a character, which is replaced",
            ),
            Self::Blocks => (
                "blocks",
                "empty text, or block of an unknown kind, is left out",
                "empty texts, or blocks of unknown kinds, are left out",
            ),
            Self::Roles => (
                "roles",
                "message of another role becomes the user's",
                "messages of other roles become the user's",
            ),
            Self::Unreadable => (
                "unreadable",
                "place of the session could not be read completely",
                "places of the session could not be read completely",
            ),
        }
    }

    fn of(rule: MendRule) -> Self {
        match rule {
            MendRule::DanglingCall => Self::OpenCalls,
            MendRule::DuplicateResult | MendRule::OrphanResult | MendRule::MisplacedCall => {
                Self::StrayResults
            }
            MendRule::LateResult => Self::MovedResults,
            MendRule::DuplicateId | MendRule::RefusedId => Self::Ids,
            MendRule::RefusedName => Self::Names,
            MendRule::WrappedInput => Self::Inputs,
            MendRule::MediaPlaceholder => Self::Media,
            MendRule::LoneSurrogate => Self::Characters,
            MendRule::Thinking | MendRule::UnfinishedThinking => Self::Thoughts,
            MendRule::MiddleSystem | MendRule::OtherRole | MendRule::FirstNotUser => Self::Roles,
            _ => Self::Blocks,
        }
    }
}

impl Losses {
    /// Returns what stays behind before the target is known.
    pub(super) fn of(hand_over: &HandOver) -> Self {
        let mut losses = Self::default();
        let left = &hand_over.left;
        losses.add(LossKind::Instructions, left.instructions);
        losses.add(LossKind::Injected, left.injected);
        losses.add(LossKind::Thoughts, left.thoughts);
        losses.add(LossKind::Unreadable, hand_over.skipped);
        for mend in &hand_over.mends {
            losses.add(LossKind::of(mend.rule), 1);
        }
        losses
    }

    pub(super) fn add(&mut self, kind: LossKind, count: u64) {
        if count > 0 {
            *self.0.entry(kind).or_default() += count;
        }
    }

    /// Returns whether nothing was lost or changed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns each kind with its count.
    pub fn rows(&self) -> Vec<Loss> {
        let row = |(kind, count): (&LossKind, &u64)| {
            let (name, one, many) = kind.words();
            let words = if *count == 1 { one } else { many };
            Loss {
                kind: name,
                count: *count,
                text: format!("{count} {words}"),
            }
        };
        self.0.iter().map(row).collect()
    }
}

impl Serialize for Losses {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.rows().serialize(serializer)
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
