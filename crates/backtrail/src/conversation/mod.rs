//! The conversation of a session: turns, calls with their results, and spending.
//!
//! [`Conversation`] reads the records of a session once and yields [`Item`]s. Everything
//! that shows or counts a conversation is built on this module, so that all of it agrees: a
//! turn begins where [`Message::is_prompt`](crate::Message::is_prompt) says, `calls.rs`
//! decides which result answers which call, and `responses.rs` counts each response of a
//! provider once.
//!
//! The `context` module has its own rules for what a provider accepts in a request.

pub(crate) mod calls;
mod history;
mod item;
mod reader;
pub(crate) mod record;
pub(crate) mod responses;
mod stats;

pub use crate::message::Details;
pub use crate::message::StoredCompaction;
pub use history::{Answers, History, HistoryItem, Prompts, ToolCalls};
pub use item::{
    Answer, Attachment, CompactionItem, DamageItem, ForkItem, InjectedMessage, Item, NoteChange,
    NoteItem, OtherItem, Prompt, Reply, RunItem, SpawnedItem, SpendingItem, ThinkingItem, ToolCall,
    ToolOutcome, ToolResultItem, TurnEnd, UnreadableItem,
};
pub use reader::{Conversation, LiveConversation};
pub use responses::Response;
pub use stats::{MessageCounts, SessionSurvey, Stats, format_duration};
