//! The blocks of a message.

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::Error;
use crate::json::{Fields, Json, Parts, Text};

/// One block of a message.
///
/// A block of an unknown kind, or of a known kind with unexpected fields, is an
/// [`Other`](Self::Other) and kept unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Block {
    /// Text.
    Text(TextBlock),
    /// The model's thinking, with the provider's signature.
    Thinking(Thinking),
    /// A tool call.
    ToolUse(ToolUse),
    /// The result of a tool call.
    ToolResult(ToolResult),
    /// An image or other media.
    Media(Media),
    /// Anything else, byte for byte.
    Other(Json),
}

impl Block {
    /// Creates a text block.
    pub fn text(text: impl Into<Text>) -> Self {
        Self::Text(TextBlock {
            text: text.into(),
            extra: Fields::default(),
        })
    }

    /// Creates a thinking block without a signature.
    pub fn thinking(thinking: impl Into<Text>) -> Self {
        Self::Thinking(Thinking {
            thinking: thinking.into(),
            signature: None,
            extra: Fields::default(),
        })
    }

    /// Creates a thinking block with the provider's signature.
    pub fn signed_thinking(thinking: impl Into<Text>, signature: impl Into<Text>) -> Self {
        Self::Thinking(Thinking {
            thinking: thinking.into(),
            signature: Some(signature.into()),
            extra: Fields::default(),
        })
    }

    /// Creates an image block from Base64 data.
    ///
    /// # Errors
    ///
    /// Fails with [`Invalid`](crate::ErrorKind::Invalid) if the data cannot be written as
    /// JSON.
    pub fn image(media_type: impl Into<Text>, base64: impl Into<Text>) -> Result<Self, Error> {
        Ok(Self::Media(Media {
            kind: "image".to_owned(),
            media_type: media_type.into(),
            data: Json::from_value(&base64.into())?,
            extra: Fields::default(),
        }))
    }
}

/// Text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "text")]
pub struct TextBlock {
    /// The text.
    pub text: Text,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Fields,
}

/// The model's thinking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "thinking")]
pub struct Thinking {
    /// The text; often empty, with only a signature.
    pub thinking: Text,
    /// The provider's signature of the thinking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<Text>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Fields,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "tool_use")]
pub struct ToolUse {
    /// The id of the call, which its result refers to.
    pub id: Text,
    /// The name of the tool.
    pub name: Text,
    /// The arguments of the call, byte for byte.
    pub input: Json,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Fields,
}

impl ToolUse {
    /// Creates a call whose input is serialized to JSON.
    ///
    /// # Errors
    ///
    /// Fails with [`Invalid`](crate::ErrorKind::Invalid) if the input cannot be
    /// serialized.
    pub fn new<T: Serialize + ?Sized>(
        id: impl Into<Text>,
        name: impl Into<Text>,
        input: &T,
    ) -> Result<Self, Error> {
        Ok(Self {
            id: id.into(),
            name: name.into(),
            input: Json::from_value(input)?,
            extra: Fields::default(),
        })
    }
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// The id of the call.
    pub tool_use_id: Text,
    /// The name of the tool, if given.
    pub tool_name: Option<Text>,
    /// The output: usually a string, sometimes a list of blocks.
    pub output: Json,
    /// Whether the tool failed.
    pub is_error: bool,
    /// Fields that this version does not know.
    pub extra: Fields,
}

impl ToolResult {
    /// Creates a successful result. [`answers`](Self::answers) sets the call.
    pub fn ok(output: impl Into<Text>) -> Self {
        Self {
            tool_use_id: Text::default(),
            tool_name: None,
            output: Json::from_value(&output.into()).expect("a string is always JSON"),
            is_error: false,
            extra: Fields::default(),
        }
    }

    /// Creates the result of a tool that failed.
    pub fn error(output: impl Into<Text>) -> Self {
        Self {
            is_error: true,
            ..Self::ok(output)
        }
    }

    /// Sets the call that this answers: its id and the tool's name.
    #[must_use]
    pub fn answers(mut self, tool_use_id: impl Into<Text>, tool_name: impl Into<Text>) -> Self {
        self.tool_use_id = tool_use_id.into();
        self.tool_name = Some(tool_name.into());
        self
    }

    /// Returns the output if it is a string.
    pub fn output_text(&self) -> Option<Text> {
        serde_json::from_str(self.output.as_str()).ok()
    }
}

/// An image or other media.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Media {
    /// `image`, `audio`, `video`, `document` or `file`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The media type, such as `image/png`.
    pub media_type: Text,
    /// The bytes in Base64, or a payload.
    pub data: Json,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Fields,
}

pub(super) const MEDIA_KINDS: [&str; 5] = ["image", "audio", "video", "document", "file"];

macro_rules! known_blocks {
    ($($variant:ident $block:ident),*) => {$(
        impl From<$block> for Block {
            fn from(block: $block) -> Self {
                Self::$variant(block)
            }
        }

        impl<'de> Deserialize<'de> for $block {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                match Block::deserialize(deserializer)? {
                    Block::$variant(block) => Ok(block),
                    _ => Err(serde::de::Error::custom("a block of another kind")),
                }
            }
        }
    )*};
}

known_blocks!(Text TextBlock, Thinking Thinking, ToolUse ToolUse, ToolResult ToolResult, Media Media);

impl Serialize for ToolResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "tool_result")?;
        map.serialize_entry("tool_use_id", &self.tool_use_id)?;
        if let Some(name) = &self.tool_name {
            map.serialize_entry("tool_name", name)?;
        }
        map.serialize_entry("output", &self.output)?;
        // A value that is not a boolean was kept in `extra`.
        if self.extra.get("is_error").is_none() {
            map.serialize_entry("is_error", &self.is_error)?;
        }
        for (name, value) in self.extra.iter() {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Block {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Json::deserialize(deserializer)?;
        Ok(known_block(&json).unwrap_or(Self::Other(json)))
    }
}

/// Parses a block of a known kind whose fields are all valid and unique.
fn known_block(json: &Json) -> Option<Block> {
    let mut parts = Parts::read(json.as_str())?;
    let kind = parts.take_text("type")?;
    Some(match kind.as_str() {
        "text" => Block::Text(TextBlock {
            text: parts.take_text("text")?,
            extra: parts.rest(),
        }),
        "thinking" => Block::Thinking(Thinking {
            thinking: parts.take_text("thinking")?,
            signature: parts.take_text("signature"),
            extra: parts.rest(),
        }),
        "tool_use" => Block::ToolUse(ToolUse {
            id: parts.take_text("id")?,
            name: parts.take_text("name")?,
            input: parts.take("input")?,
            extra: parts.rest(),
        }),
        "tool_result" => Block::ToolResult(ToolResult {
            tool_use_id: parts.take_text("tool_use_id")?,
            tool_name: parts.take_text("tool_name"),
            output: parts.take("output")?,
            is_error: parts.take_flag("is_error").unwrap_or(false),
            extra: parts.rest(),
        }),
        kind if MEDIA_KINDS.contains(&kind) => Block::Media(Media {
            kind: kind.to_owned(),
            media_type: parts.take_text("media_type")?,
            data: parts.take("data")?,
            extra: parts.rest(),
        }),
        _ => return None,
    })
}
