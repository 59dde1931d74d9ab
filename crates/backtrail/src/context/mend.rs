//! Mends and the rules by which they are made.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A place where the context differs from what was recorded.
///
/// `Display` gives one sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Mend {
    /// The record of the message.
    pub seq: u64,
    /// The rule that was applied.
    pub rule: MendRule,
}

impl fmt::Display for Mend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {}: {}", self.seq, self.rule.sentence())
    }
}

macro_rules! rules {
    ($($variant:ident $name:literal $doc:literal $sentence:literal)*) => {
        /// A rule by which a context is mended.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum MendRule {
            $(#[doc = $doc] $variant,)*
        }

        impl MendRule {
            /// All rules.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the rule's name, which is stable.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            fn sentence(self) -> &'static str {
                match self {
                    $(Self::$variant => $sentence,)*
                }
            }
        }
    };
}

rules! {
    DanglingCall "dangling_call"
        "A tool call without a result gets one that says it was interrupted."
        "a tool call without a result got one saying it was interrupted"
    DuplicateResult "duplicate_result"
        "A second result of one call is dropped."
        "a second result of one tool call was dropped"
    OrphanResult "orphan_result"
        "A result without an earlier call in the context becomes user text."
        "a tool result whose call is not in the context became user text"
    LateResult "late_result"
        "A result that came after other messages moves to its place after the call."
        "a late tool result was moved to its place after the call"
    DuplicateId "duplicate_id"
        "A call with the id of an earlier call gets a derived id, and so does its result."
        "a tool call has the id of an earlier one; it and its result got a derived id"
    RefusedId "refused_id"
        "A call whose id the provider would refuse gets a derived id, and so does its result."
        "the id of a tool call would be refused; it and its result got a derived id"
    RefusedName "refused_name"
        "A tool name that the provider would refuse is respelled."
        "the name of a tool would be refused; it was respelled"
    MisplacedCall "misplaced_call"
        "A tool call in a message that is not the assistant's becomes text."
        "a tool call in a message that is not the assistant's became text"
    WrappedInput "wrapped_input"
        "Tool input that is not an object, or is nested too deeply, is wrapped in an object."
        "the input of a tool call is not a plain object; it was wrapped in one as `input`"
    EmptyMessage "empty_message"
        "A message without blocks is dropped."
        "a message without blocks was dropped"
    EmptyText "empty_text"
        "Text that is empty or only white space is dropped."
        "text that is empty or only white space was dropped"
    Thinking "thinking"
        "Thinking that the provider did not sign is dropped."
        "thinking that this provider did not sign was dropped"
    UnfinishedThinking "unfinished_thinking"
        "Thinking that no assistant content follows is dropped."
        "thinking with no content after it was dropped"
    MiddleSystem "middle_system"
        "A system message in the middle becomes a user message in a tag."
        "a later system message became a tagged user message"
    OtherRole "other_role"
        "A message with a role that the shape does not have becomes a user message."
        "a message with an unknown role became a user message"
    MediaPlaceholder "media_placeholder"
        "Media that the shape does not accept become a short text."
        "an image or other media is not accepted here; a short text replaces it"
    UnknownBlock "unknown_block"
        "A block of an unknown kind is dropped."
        "a block of an unknown kind was dropped"
    FirstNotUser "first_not_user"
        "A short user message is inserted before an assistant message that comes first."
        "the first message is the assistant's; a short user message was inserted before it"
    LoneSurrogate "lone_surrogate"
        "A lone surrogate, which no UTF-8 text can hold, is sent as U+FFFD."
        "a lone surrogate is sent as U+FFFD"
}

impl fmt::Display for MendRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mend_is_one_sentence_with_its_record_and_rules_have_one_name_everywhere() {
        for &rule in MendRule::ALL {
            let sentence = Mend { seq: 41, rule }.to_string();
            assert!(sentence.starts_with("record 41: "), "{sentence}");
            let json = serde_json::to_string(&rule).unwrap();
            assert_eq!(json, format!("\"{}\"", rule.as_str()));
        }
    }
}
