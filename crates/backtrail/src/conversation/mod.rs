//! The conversation of a session: turns, calls with their results, and spending.
//!
//! [`Conversation`] reads the records of a session once and yields [`Item`]s. Everything
//! that shows or counts a conversation is built on this module, so that all of it agrees: a
//! turn begins where [`Message::is_prompt`](crate::Message::is_prompt) says, `calls.rs`
//! decides which result answers which call, and `responses.rs` counts each response of a
//! provider once. `tools.rs` says what a call means, `files.rs` which
//! files it names, and `envelope.rs` what a tool put out:
//! both are worked out only when they are asked for. `title.rs` finds a session's title.
//!
//! The `context` module has its own rules for what a provider accepts in a request.

pub(crate) mod calls;
mod common_root;
mod envelope;
mod files;
mod history;
mod item;
mod patch;
mod reader;
pub(crate) mod record;
mod relative;
pub(crate) mod responses;
mod stats;
mod title;
mod tool_names;
mod tools;

pub use crate::log::Moved;
pub use crate::message::{Details, Injected, InjectedKind, Said, StoredCompaction};
pub use envelope::PlainOutput;
pub use history::{Answers, History, HistoryItem, Prompts, ToolCalls};
pub use item::{
    Answer, Attachment, CompactionItem, DamageItem, ForkItem, InjectedMessage, Item, NoteChange,
    NoteItem, OtherItem, Prompt, Reply, RunItem, SpawnedItem, SpendingItem, ThinkingItem, ToolCall,
    ToolOutcome, ToolResultItem, TurnEnd, UnreadableItem,
};
pub use patch::{FilePatch, LineChange, PatchKind, is_patch, parse_patch};
pub use reader::{Conversation, LiveConversation};
pub use relative::RelativePaths;
pub use responses::Response;
pub use stats::{MessageCounts, SessionSurvey, Stats, format_duration};
pub use title::TitleFinder;
pub use tool_names::{Argument, TOOLS, ToolKind, todo_text_in};
pub use tools::{Action, Question, ReadFile, Replacement, Todo, TodoState};
