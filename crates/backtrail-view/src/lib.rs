//! What the screens and the pages of `backtrail` show.
//!
//! [`library`] is their contract with the store. The rest is what both need to show it: code in
//! the colours of its language, and which words of a line changed.

pub mod clean;
pub mod diff_lines;
pub mod highlight;
pub mod library;
pub mod style_classes;
pub mod word_diff;

/// The style of a conversation, in the HTML export and in the pages.
pub const CONVERSATION_CSS: &str = include_str!("conversation.css");
