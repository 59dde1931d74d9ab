//! Messages, their blocks and their usage.
//!
//! Content is byte-exact. Nothing is cut, redacted or normalised, and anything this
//! version does not know (roles, kinds of blocks, fields) is kept and written back
//! unchanged.

mod block;
mod compaction;
mod draft;
pub(crate) mod output;
pub(crate) mod parts;
mod said;
mod usage;

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::escape::write_str;
use crate::json::{Fields, Json, Key, Text};

pub use block::{Block, Media, TextBlock, Thinking, ToolResult, ToolUse};
pub(crate) use compaction::Covered;
pub use compaction::{Compaction, CompactionSummary, StoredCompaction};
pub use draft::{Details, Draft};
pub(crate) use draft::{read_object, take};
use output::{joined_texts, output_len};
pub use said::{Injected, InjectedKind, Said};
pub(crate) use said::{is_added, without_tags};
pub use usage::Usage;

/// The role of a message's author.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// Instructions above the conversation.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// A tool, for its result.
    Tool,
    /// Another role, kept unchanged.
    Other(String),
}

impl Role {
    /// Returns the role as it is written.
    pub fn as_str(&self) -> &str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::Other(name) => name,
        }
    }
}

impl From<&str> for Role {
    fn from(name: &str) -> Self {
        match name {
            "system" => Self::System,
            "user" => Self::User,
            "assistant" => Self::Assistant,
            "tool" => Self::Tool,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for Role {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Role {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Cow::<'de, str>::deserialize(deserializer)?.as_ref().into())
    }
}

/// A message: its role, its blocks and its usage.
///
/// ```
/// use backtrail::{Block, Message, ToolUse, Usage};
///
/// let ask = Message::user_text("what is in here?");
/// let reply = Message::assistant([
///     Block::text("Let me look."),
///     Block::from(ToolUse::new("t1", "bash", &serde_json::json!({"command": "ls"}))?),
/// ])
/// .usage(Usage::new(10, 4).cache_read(2));
/// assert_eq!(reply.usage.as_ref().map(Usage::total), Some(16));
/// # Ok::<(), backtrail::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Message {
    /// The role of the author.
    pub role: Role,
    /// The content, in order.
    pub blocks: Vec<Block>,
    /// The usage of the model call that produced the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Fields,
}

impl Message {
    /// Creates a message from blocks.
    pub fn new(role: Role, blocks: impl IntoIterator<Item = Block>) -> Self {
        Self {
            role,
            blocks: blocks.into_iter().collect(),
            usage: None,
            extra: Fields::default(),
        }
    }

    /// Creates a system message with one text.
    pub fn system_text(text: impl Into<Text>) -> Self {
        Self::new(Role::System, [Block::text(text)])
    }

    /// Creates a user message with one text.
    pub fn user_text(text: impl Into<Text>) -> Self {
        Self::new(Role::User, [Block::text(text)])
    }

    /// Creates an assistant message; [`usage`](Self::usage) adds its usage.
    pub fn assistant(blocks: impl IntoIterator<Item = Block>) -> Self {
        Self::new(Role::Assistant, blocks)
    }

    /// Creates an assistant message with its usage.
    pub fn assistant_with_usage(blocks: impl IntoIterator<Item = Block>, usage: Usage) -> Self {
        Self::assistant(blocks).usage(usage)
    }

    /// Creates a tool message with one result.
    pub fn tool_result(result: ToolResult) -> Self {
        Self::new(Role::Tool, [Block::ToolResult(result)])
    }

    /// Sets the usage.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// Returns whether this is a prompt, which begins a turn: a user message with
    /// anything besides tool results that the agent did not insert itself.
    pub fn is_prompt(&self) -> bool {
        let is_result = |block: &Block| matches!(block, Block::ToolResult(_));
        self.role == Role::User
            && !self.blocks.iter().all(is_result)
            && !self.is_meta()
            && !self.is_all_injected()
    }

    /// Returns whether a user message has text that an agent added, and nothing else.
    fn is_all_injected(&self) -> bool {
        let mut injected = false;
        for block in &self.blocks {
            match block {
                Block::Text(block) if said::is_all_injected(&block.text) => injected = true,
                Block::Text(block) if block.text.trim().is_empty() => {}
                Block::ToolResult(_) => {}
                _ => return false,
            }
        }
        injected
    }

    /// Returns whether the text of an assistant message stands in for an answer that no model
    /// gave.
    pub(crate) fn is_stand_in(&self) -> bool {
        self.role == Role::Assistant
            && matches!(self.blocks.as_slice(), [Block::Text(only)] if said::stand_in(&only.text).is_some())
    }

    /// Returns whether the agent inserted the message in the user's name: a reminder, or
    /// the output of a command. Such a message has `"meta":true`.
    pub fn is_meta(&self) -> bool {
        let meta = self.extra.get("meta");
        meta.is_some_and(|meta| meta.as_str() == "true")
    }

    /// Estimates the number of tokens: one for every four bytes that a model reads or
    /// writes, without media.
    pub fn estimated_tokens(&self) -> u64 {
        let bytes = |block: &Block| match block {
            Block::Text(block) => block.text.len(),
            Block::Thinking(block) => block.thinking.len(),
            Block::ToolUse(call) => call.input.as_str().len(),
            Block::ToolResult(result) => output_len(&result.output),
            // The length of Base64 data says nothing about tokens.
            Block::Media(_) | Block::Other(_) => 0,
        };
        tokens_in(self.blocks.iter().map(bytes).sum())
    }

    /// Returns the text blocks, joined by newlines.
    pub fn text(&self) -> Cow<'_, str> {
        joined_texts(&self.blocks)
    }

    /// Returns whether all content is strings, so that nothing is media or could be
    /// mistaken for a payload.
    fn is_all_text(&self) -> bool {
        let no_more = |usage: &Usage| usage.extra.is_empty();
        self.extra.is_empty()
            && self.usage.as_ref().is_none_or(no_more)
            && self.blocks.iter().all(|block| match block {
                Block::Text(block) => block.extra.is_empty(),
                Block::Thinking(block) => block.extra.is_empty(),
                Block::ToolResult(block) => {
                    block.extra.is_empty() && block.output.as_str().starts_with('"')
                }
                Block::ToolUse(_) | Block::Media(_) | Block::Other(_) => false,
            })
    }

    /// Writes the same JSON as `Serialize`, but faster for plain text.
    pub(crate) fn write_json(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        out.extend_from_slice(b"{\"role\":");
        write_str(out, self.role.as_str());
        out.extend_from_slice(b",\"blocks\":[");
        for (n, block) in self.blocks.iter().enumerate() {
            if n > 0 {
                out.push(b',');
            }
            match block {
                Block::Text(block) if !block.text.is_lossy() && block.extra.is_empty() => {
                    out.extend_from_slice(b"{\"type\":\"text\",\"text\":");
                    write_str(out, &block.text);
                    out.push(b'}');
                }
                block => serde_json::to_writer(&mut *out, block)?,
            }
        }
        out.push(b']');
        if let Some(usage) = &self.usage {
            out.extend_from_slice(b",\"usage\":");
            serde_json::to_writer(&mut *out, usage)?;
        }
        for (name, value) in self.extra.iter() {
            out.push(b',');
            write_str(out, name);
            out.push(b':');
            out.extend_from_slice(value.as_str().as_bytes());
        }
        out.push(b'}');
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MessageVisitor)
    }
}

struct MessageVisitor;

impl<'de> Visitor<'de> for MessageVisitor {
    type Value = Message;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message: an object with `role` and `blocks`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Message, A::Error> {
        let mut role = None;
        let mut blocks = None;
        let mut usage = None;
        let mut extra = Fields::default();
        while let Some(Key(key)) = map.next_key::<Key<'de>>()? {
            match key.as_ref() {
                "role" => role = Some(map.next_value()?),
                "blocks" => blocks = Some(map.next_value()?),
                // Invalid usage must not hide the message.
                "usage" => {
                    let raw: Json = map.next_value()?;
                    match serde_json::from_str(raw.as_str()) {
                        Ok(read) => usage = read,
                        Err(_) => extra.push("usage", raw),
                    }
                }
                _ => extra.push(key, map.next_value()?),
            }
        }
        Ok(Message {
            role: role.ok_or_else(|| de::Error::missing_field("role"))?,
            blocks: blocks.ok_or_else(|| de::Error::missing_field("blocks"))?,
            usage,
            extra,
        })
    }
}

/// Estimates the number of tokens of a text; see [`Message::estimated_tokens`].
pub fn estimated_tokens(text: &str) -> u64 {
    tokens_in(text.len())
}

fn tokens_in(bytes: usize) -> u64 {
    bytes.div_ceil(4) as u64
}

/// Checks that JSON is a message without building one, so that JSON passed by the caller
/// can be written to disk unchanged.
pub(crate) fn check_message(json: &str) -> Result<(), serde_json::Error> {
    #[derive(Deserialize)]
    #[serde(expecting = "a message: an object with `role` and `blocks`")]
    #[expect(dead_code, reason = "parsed for the sake of the check")]
    struct Shape<'a> {
        #[serde(borrow)]
        role: Cow<'a, str>,
        blocks: Vec<BlockShape<'a>>,
    }

    #[derive(Deserialize)]
    #[serde(expecting = "a block: an object with a `type`")]
    #[expect(dead_code, reason = "parsed for the sake of the check")]
    struct BlockShape<'a> {
        #[serde(borrow, rename = "type")]
        kind: Cow<'a, str>,
    }

    serde_json::from_str::<Shape<'_>>(json).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_way_writes_what_serde_writes() {
        let json = r#"{"role":"od\"d","blocks":[
            {"type":"text","text":"plain \" \n \u0001 é"},
            {"type":"text","text":"lone \ud83d"},
            {"type":"text","text":"x","cache_control":{"type":"ephemeral"}},
            {"type":"tool_use","id":"t","name":"n","input":{"a":[1.0]}},
            {"type":"hologram"}],
            "usage":{"input_tokens":1,"more":2},"na\nme":null,"b":[]}"#;
        let bare = Message::new(Role::Tool, []);
        for message in [serde_json::from_str(json).unwrap(), bare] {
            let mut fast = Vec::new();
            Message::write_json(&message, &mut fast).unwrap();
            let text = String::from_utf8(fast).unwrap();
            assert_eq!(text, serde_json::to_string(&message).unwrap());
        }
    }
}
