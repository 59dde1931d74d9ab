//! What was mended, and by which rule.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One place where what is sent is not what was said.
///
/// It is shown as one sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Mend {
    /// The record whose message it is about.
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

            /// Returns the rule's name, which stays the same.
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
        "a tool call has no result; one that says it was interrupted stands in its place"
    DuplicateResult "duplicate_result"
        "A second result of one call is left out."
        "a second result of one tool call was left out"
    OrphanResult "orphan_result"
        "A result whose call is not in the context, or not before it, becomes text of the user."
        "a tool result whose call is not in the context became text of the user"
    LateResult "late_result"
        "A result that came after something else was said goes to its place behind the call."
        "a tool result that came late was put in its place behind the call"
    DuplicateId "duplicate_id"
        "A call whose id an earlier call has gets a derived id, and so does its result."
        "a tool call has the id of an earlier one; it and its result got a derived id"
    RefusedId "refused_id"
        "A call whose id the provider would refuse gets a derived id, and so does its result."
        "the id of a tool call would be refused; it and its result got a derived id"
    RefusedName "refused_name"
        "A tool's name that the provider would refuse is spelled with what it takes."
        "the name of a tool would be refused; it was spelled with letters that are taken"
    MisplacedCall "misplaced_call"
        "A tool call in a message that is not the assistant's becomes text."
        "a tool call in a message that is not the assistant's became text"
    WrappedInput "wrapped_input"
        "Tool input that is no object, or nested too deeply, is wrapped in one."
        "the input of a tool call is no plain object; it was wrapped as `input` of one"
    EmptyMessage "empty_message"
        "A message without blocks is left out."
        "a message without blocks was left out"
    EmptyText "empty_text"
        "Text that is empty or only white space is left out."
        "text that is empty or only white space was left out"
    Thinking "thinking"
        "Thinking that the provider did not sign is left out."
        "thinking that this provider did not sign was left out"
    UnfinishedThinking "unfinished_thinking"
        "Thinking that the assistant did not go on from is left out."
        "thinking that nothing of the assistant's follows was left out"
    MiddleSystem "middle_system"
        "A system message in the middle becomes a user message in a tag."
        "a system message in the middle became a user message in a tag"
    OtherRole "other_role"
        "A message whose role the shape does not have is said by the user."
        "a message in a role of its own is said by the user"
    MediaPlaceholder "media_placeholder"
        "Media that the shape has no place for become a short text."
        "an image or another medium has no place here; a short text stands for it"
    UnknownBlock "unknown_block"
        "A block of an unknown kind is left out."
        "a block of an unknown kind was left out"
    FirstNotUser "first_not_user"
        "A short user message is put before an assistant message that comes first."
        "the first message is the assistant's; a short user message was put before it"
    LoneSurrogate "lone_surrogate"
        "Half a character that no UTF-8 text can hold is sent as U+FFFD."
        "half a character (a lone surrogate) is sent as U+FFFD"
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
