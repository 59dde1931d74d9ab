//! The items of a conversation.

use serde::{Deserialize, Serialize};

use super::responses::Response;
use crate::json::{Json, Text};
use crate::log::{HistoryGap, Moved};
use crate::message::output::output_text;
use crate::message::{Block, Role, StoredCompaction};
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
    /// Records that are gone from the history, or that are in the trash. Gaps come
    /// before everything else.
    Gap(HistoryGap),
    /// A message of the user's. It begins a turn.
    Prompt(Prompt),
    /// A message that is not part of the dialogue: instructions, or what an agent added
    /// in the user's name.
    Injected(InjectedMessage),
    /// The assistant begins to answer, once per turn.
    Reply(Reply),
    /// A text of the assistant's.
    Answer(Answer),
    /// What the assistant thought.
    Thinking(ThinkingItem),
    /// A call of a tool, with its result.
    ToolCall(ToolCall),
    /// A result that is not with its call: it came too late, again, or answers nothing.
    ToolResult(ToolResultItem),
    /// An image or another block that is not text.
    Attachment(Attachment),
    /// What a response of a provider used.
    Spending(SpendingItem),
    /// A turn is over.
    TurnEnd(TurnEnd),
    /// A summary took the place of earlier messages, for the model.
    Compaction(CompactionItem),
    /// A command ran.
    Run(RunItem),
    /// The title, the tags or the like changed.
    Note(NoteItem),
    /// A sub-agent began a session of its own.
    Spawned(SpawnedItem),
    /// The part that was forked from another session is over.
    Fork(ForkItem),
    /// The conversation continues from an earlier record; only while it is followed.
    Moved(Moved),
    /// Places of the history that could not be read.
    Damage(DamageItem),
    /// A record that could not be read, or not completely.
    Unreadable(UnreadableItem),
    /// A record of a kind that this version does not know.
    Other(OtherItem),
}

impl Item {
    /// Returns the number of the record that the item comes from.
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

    /// Returns roughly how much memory the texts of the item take.
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

/// A message of the user's that has anything in it but results of tools, and that no agent
/// put there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Prompt {
    /// The number of its record.
    pub seq: u64,
    /// When it was made, if the record says so.
    pub at: Option<Timestamp>,
    /// Its text blocks, joined by newlines; empty where it is an image alone.
    pub text: String,
    /// Its other blocks, such as images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Block>,
}

/// A message that is not part of the dialogue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InjectedMessage {
    /// The number of its record.
    pub seq: u64,
    /// When it was made, if the record says so.
    pub at: Option<Timestamp>,
    /// The role of the message. In one of the user's, an agent spoke in their name.
    pub role: Role,
    /// Its text blocks, joined by newlines.
    pub text: String,
    /// Its other blocks, calls and results of tools aside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Block>,
}

/// The beginning of an assistant's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Reply {
    /// The number of its first record.
    pub seq: u64,
    /// When that was made, if the record says so.
    pub at: Option<Timestamp>,
    /// The model, where the record says so.
    pub model: Option<String>,
}

/// A text of the assistant's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Answer {
    /// The number of its record.
    pub seq: u64,
    /// When it was made, if the record says so.
    pub at: Option<Timestamp>,
    /// The text. In a [`HistoryItem`](crate::conversation::HistoryItem) it is all text of a message,
    /// joined by newlines.
    pub text: String,
}

/// What the assistant thought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ThinkingItem {
    /// The number of its record.
    pub seq: u64,
    /// When it was made, if the record says so.
    pub at: Option<Timestamp>,
    /// The thought; empty where the provider does not show it.
    pub text: String,
}

/// A call of a tool and its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolCall {
    /// The number of the record with the call.
    pub seq: u64,
    /// When it was made, if the record says so.
    pub at: Option<Timestamp>,
    /// The call's id.
    pub id: Text,
    /// The tool.
    pub name: Text,
    /// What it was called with, byte for byte.
    pub arguments: Json,
    /// The first result that answers the call; `None` if there is none.
    pub result: Option<ToolOutcome>,
    /// Whether the tool succeeded; `None` as long as there is no result.
    pub success: Option<bool>,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolOutcome {
    /// The number of the record with the result.
    pub seq: u64,
    /// When it was made, if the record says so.
    pub at: Option<Timestamp>,
    /// The output, byte for byte: mostly a string, sometimes a list of blocks.
    pub output: Json,
    /// Whether its record holds nothing but results.
    #[serde(default)]
    pub is_alone: bool,
}

impl ToolOutcome {
    /// Returns the output as text: a string as it reads; of a list of blocks
    /// their texts, joined by newlines; anything else as its JSON.
    pub fn text(&self) -> String {
        output_text(&self.output).into_owned()
    }
}

/// A result that is not with its call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolResultItem {
    /// The number of its record.
    pub seq: u64,
    /// The id of the call.
    pub id: Text,
    /// The tool, where that is known.
    pub name: Option<Text>,
    /// The record of the call that it answers, where there is one that was given out
    /// before its result came.
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
    /// The number of its record.
    pub seq: u64,
    /// When it was made, if the record says so.
    pub at: Option<Timestamp>,
    /// The block.
    pub block: Block,
}

/// What a response used since it was last mentioned: it comes once, and again only if
/// later records of it say something else.
///
/// The sum of all `response`s less all `already`s is what the conversation used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SpendingItem {
    /// The response, by all records of it so far.
    pub response: Response,
    /// The response as it was mentioned before, if it was.
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
    /// The number of its record.
    pub seq: u64,
    /// When it was made, if the record says so.
    pub at: Option<Timestamp>,
    /// The summary and what it covers; `None` where that cannot be read.
    pub stored: Option<StoredCompaction>,
}

/// A command that ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RunItem {
    /// The number of its record.
    pub seq: u64,
    /// When it was made, if the record says so.
    pub at: Option<Timestamp>,
    /// The run; `None` where that cannot be read.
    pub run: Option<Run>,
}

/// A note that changed something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NoteItem {
    /// The number of its record.
    pub seq: u64,
    /// When it was made, if the record says so.
    pub at: Option<Timestamp>,
    /// What it changed.
    pub changes: Vec<NoteChange>,
}

/// Something that a note changed, as it is now.
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
    /// The model that the session is set to.
    Model(Option<String>),
    /// Whether it is pinned.
    Pinned(bool),
}

/// A session that a tool call began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SpawnedItem {
    /// The number of its record.
    pub seq: u64,
    /// The session; `None` where that cannot be read.
    pub spawned: Option<Spawned>,
}

/// Where the part that was forked ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ForkItem {
    /// The last record of that part.
    pub seq: u64,
    /// The session that it was forked from.
    pub origin: ForkOrigin,
}

/// Places of the history that could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DamageItem {
    /// The record behind them; the last record if they are at the end.
    pub seq: u64,
    /// Whether they are at the end.
    pub is_at_end: bool,
    /// How many there are.
    pub places: u64,
}

/// A record that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UnreadableItem {
    /// The number of the record.
    pub seq: u64,
    /// Whether a part of it can be read, and follows.
    pub in_part: bool,
}

/// A record of an unknown kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OtherItem {
    /// The number of the record.
    pub seq: u64,
    /// Its kind, as it is written.
    pub kind: String,
}
