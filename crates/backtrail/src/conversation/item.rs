//! The items of a conversation.

use serde::{Deserialize, Serialize};

use super::responses::Response;
use crate::json::{Json, Text};
use crate::log::{HistoryGap, Moved};
use crate::message::output::output_text;
use crate::message::{Block, InjectedKind, Role, StoredCompaction};
use crate::session::Run;
use crate::session::Spawned;
use crate::time::Timestamp;
use crate::trail::ForkOrigin;

/// One part of a conversation.
///
/// Items come in the order of their records. A turn is a [`Prompt`](Self::Prompt) and
/// everything up to its [`TurnEnd`](Self::TurnEnd).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Item {
    /// Records that are gone from the history, or are in the trash. Gaps come before
    /// everything else.
    Gap(HistoryGap),
    /// A user message, which begins a turn.
    Prompt(Prompt),
    /// A text that is not part of the dialogue: instructions, or one that an agent added in
    /// the name of another.
    Injected(InjectedMessage),
    /// The assistant begins to answer, once per turn.
    Reply(Reply),
    /// A text of the assistant.
    Answer(Answer),
    /// The assistant's thinking.
    Thinking(ThinkingItem),
    /// A tool call, with its result.
    ToolCall(ToolCall),
    /// A result that is not with its call: it came too late, or twice, or answers nothing.
    ToolResult(ToolResultItem),
    /// An image or another block that is not text.
    Attachment(Attachment),
    /// The usage of a provider's response.
    Spending(SpendingItem),
    /// A turn is over.
    TurnEnd(TurnEnd),
    /// A summary replaced earlier messages in the context.
    Compaction(CompactionItem),
    /// A command ran.
    Run(RunItem),
    /// The title, the tags or other details changed.
    Note(NoteItem),
    /// A sub-agent began its own session.
    Spawned(SpawnedItem),
    /// The part that was forked from another session ends.
    Fork(ForkItem),
    /// The conversation continues from an earlier record; only when following it.
    Moved(Moved),
    /// Damaged places in the history.
    Damage(DamageItem),
    /// A record that could not be read, completely or in part.
    Unreadable(UnreadableItem),
    /// A record of a kind that this version does not know.
    Other(OtherItem),
}

impl Item {
    /// Returns the seq of the item's record.
    pub fn seq(&self) -> u64 {
        match self {
            Self::Gap(gap) => gap.from,
            Self::Prompt(item) => item.seq,
            Self::Injected(item) => item.seq,
            Self::Reply(item) => item.seq,
            Self::Answer(item) => item.seq,
            Self::Thinking(item) => item.seq,
            Self::ToolCall(item) => item.seq,
            Self::ToolResult(item) => item.seq,
            Self::Attachment(item) => item.seq,
            Self::Spending(item) => item.response.seq,
            Self::TurnEnd(item) => item.last,
            Self::Compaction(item) => item.seq,
            Self::Run(item) => item.seq,
            Self::Note(item) => item.seq,
            Self::Spawned(item) => item.seq,
            Self::Fork(item) => item.seq,
            Self::Moved(moved) => moved.seq,
            Self::Damage(item) => item.seq,
            Self::Unreadable(item) => item.seq,
            Self::Other(item) => item.seq,
        }
    }

    /// Returns the approximate memory of the item's texts.
    pub(super) fn weight(&self) -> usize {
        let block = |block: &Block| match block {
            Block::Text(block) => block.text.len(),
            Block::Media(block) => block.data.as_str().len(),
            Block::Other(json) => json.as_str().len(),
            _ => 0,
        };
        let blocks = |blocks: &[Block]| blocks.iter().map(block).sum::<usize>();
        let texts = match self {
            Self::Prompt(item) => item.text.len() + blocks(&item.attachments),
            Self::Injected(item) => item.text.len() + blocks(&item.attachments),
            Self::Answer(item) => item.text.len(),
            Self::Thinking(item) => item.text.len(),
            Self::ToolCall(item) => {
                let output = item.result.as_ref().map_or("", |it| it.output.as_str());
                item.arguments.as_str().len() + output.len()
            }
            Self::ToolResult(item) => item.result.output.as_str().len(),
            Self::Attachment(item) => block(&item.block),
            _ => 0,
        };
        texts + size_of::<Self>()
    }
}

/// A user message with anything besides tool results, unless an agent inserted
/// it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Prompt {
    /// The seq of its record.
    pub seq: u64,
    /// When it was made, if known.
    pub at: Option<Timestamp>,
    /// What the user wrote, without what an agent added to it; that follows as
    /// [`InjectedMessage`]s. A slash command is as it was typed. Empty if it is only an
    /// image.
    pub text: String,
    /// Its other blocks, such as images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Block>,
}

/// A message, or a part of one, that is not part of the dialogue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InjectedMessage {
    /// The seq of its record.
    pub seq: u64,
    /// When it was made, if known.
    pub at: Option<Timestamp>,
    /// The role of the message. A user message was written by an agent in the user's name.
    pub role: Role,
    /// What it is.
    pub kind: InjectedKind,
    /// Its text, without the tags that the agent put around it.
    pub text: String,
    /// Its other blocks, without tool calls and results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Block>,
}

/// The beginning of an assistant's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Reply {
    /// The seq of its first record.
    pub seq: u64,
    /// When that was made, if known.
    pub at: Option<Timestamp>,
    /// The model, if known.
    pub model: Option<String>,
}

/// A text of the assistant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Answer {
    /// The seq of its record.
    pub seq: u64,
    /// When it was made, if known.
    pub at: Option<Timestamp>,
    /// The text. In a [`HistoryItem`](crate::conversation::HistoryItem) it is all text of a message,
    /// joined by newlines.
    pub text: String,
}

/// The assistant's thinking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ThinkingItem {
    /// The seq of its record.
    pub seq: u64,
    /// When it was made, if known.
    pub at: Option<Timestamp>,
    /// The text; empty if the provider does not show it.
    pub text: String,
}

/// A tool call and its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolCall {
    /// The seq of the call's record.
    pub seq: u64,
    /// When it was made, if known.
    pub at: Option<Timestamp>,
    /// The call's id.
    pub id: Text,
    /// The tool.
    pub name: Text,
    /// The arguments, byte for byte.
    pub arguments: Json,
    /// The first result that answers the call; `None` if there is none.
    pub result: Option<ToolOutcome>,
    /// Whether the tool succeeded; `None` without a result.
    pub success: Option<bool>,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolOutcome {
    /// The seq of the result's record.
    pub seq: u64,
    /// When it was made, if known.
    pub at: Option<Timestamp>,
    /// The output, byte for byte: usually a string, sometimes a list of blocks.
    pub output: Json,
    /// Whether its record contains only results.
    #[serde(default)]
    pub is_alone: bool,
}

impl ToolOutcome {
    /// Returns the output as text: a string's content, the texts of a list of blocks
    /// joined by newlines, or the JSON of anything else.
    pub fn text(&self) -> String {
        output_text(&self.output).into_owned()
    }
}

/// A result that is not with its call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolResultItem {
    /// The seq of its record.
    pub seq: u64,
    /// The id of the call.
    pub id: Text,
    /// The tool, if known.
    pub name: Option<Text>,
    /// The record of the call that it answers, if that call was returned before its result
    /// came.
    pub call: Option<u64>,
    /// The result.
    pub result: ToolOutcome,
    /// Whether the tool succeeded.
    pub success: bool,
}

/// A block that is neither text nor a call, in a message of the dialogue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Attachment {
    /// The seq of its record.
    pub seq: u64,
    /// When it was made, if known.
    pub at: Option<Timestamp>,
    /// The block.
    pub block: Block,
}

/// The usage of a response since it was last reported. It is reported once, and again only
/// if later records change it.
///
/// The sum of all `response`s minus all `already`s is the usage of the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SpendingItem {
    /// The response, from all its records so far.
    pub response: Response,
    /// The response as it was last reported, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub already: Option<Box<Response>>,
}

/// The end of a turn, or of the part of it that a compaction cuts off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TurnEnd {
    /// The first record of the turn: its prompt, or the compaction before it.
    pub first: u64,
    /// The last record of the turn.
    pub last: u64,
}

/// A compaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompactionItem {
    /// The seq of its record.
    pub seq: u64,
    /// When it was made, if known.
    pub at: Option<Timestamp>,
    /// The summary and what it covers; `None` if it cannot be read.
    pub stored: Option<StoredCompaction>,
}

/// A command that ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RunItem {
    /// The seq of its record.
    pub seq: u64,
    /// When it was made, if known.
    pub at: Option<Timestamp>,
    /// The run; `None` if it cannot be read.
    pub run: Option<Run>,
}

/// A note that changed something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NoteItem {
    /// The seq of its record.
    pub seq: u64,
    /// When it was made, if known.
    pub at: Option<Timestamp>,
    /// The changes.
    pub changes: Vec<NoteChange>,
}

/// A detail that a note changed, with its new value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NoteChange {
    /// The title.
    Title(Option<String>),
    /// The tags.
    Tags(Vec<String>),
    /// The agent.
    Agent(Option<String>),
    /// The session's model.
    Model(Option<String>),
    /// Whether the session is pinned.
    Pinned(bool),
}

/// A session that a tool call started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SpawnedItem {
    /// The seq of its record.
    pub seq: u64,
    /// The session; `None` if it cannot be read.
    pub spawned: Option<Spawned>,
}

/// The end of the part that was forked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ForkItem {
    /// The last record of that part.
    pub seq: u64,
    /// The session that it was forked from.
    pub origin: ForkOrigin,
}

/// Damaged places in the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DamageItem {
    /// The record after them; the last record if they are at the end.
    pub seq: u64,
    /// Whether they are at the end.
    pub is_at_end: bool,
    /// How many there are.
    pub places: u64,
}

/// A record that could not be read, completely or in part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UnreadableItem {
    /// The seq of the record.
    pub seq: u64,
    /// Whether a part of it can be read, and follows.
    pub in_part: bool,
}

/// A record of an unknown kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OtherItem {
    /// The seq of the record.
    pub seq: u64,
    /// Its kind, as it is written.
    pub kind: String,
}
