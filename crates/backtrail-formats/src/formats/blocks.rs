//! Blocks and messages that several formats need.

use backtrail::{
    Block, Fields, Json, Media, Message, Text, TextBlock, Thinking, ToolResult, ToolUse,
};

use crate::error::Result;
use crate::event::{Details, EventSink};
use crate::json::{Object, elements, is_string, to_json, to_text};

/// Tells the model of the messages that follow, if it is another one than before.
pub(crate) fn send_model(
    sink: &mut dyn EventSink,
    current: &mut Option<String>,
    model: Option<&str>,
) -> Result<()> {
    if model.is_none() || current.as_deref() == model {
        return Ok(());
    }
    *current = model.map(str::to_owned);
    sink.details(Details {
        model: current.clone(),
        ..Details::default()
    })
}

/// Returns the blocks of a content: a string, or a list of parts that `part` reads. Others are
/// kept as blocks of type `kind`; an empty string is nothing.
pub(crate) fn content_blocks(
    json: Option<&str>,
    kind: &str,
    part: impl Fn(&str) -> Option<Block>,
) -> Vec<Block> {
    let Some(json) = json.filter(|json| *json != "null") else {
        return Vec::new();
    };
    if is_string(json) {
        let text = to_text(json).filter(|text| !text.is_empty());
        return text.map(Block::text).into_iter().collect();
    }
    let Some(parts) = elements(json) else {
        return vec![unknown_block(kind, json)];
    };
    let block = |json: &str| part(json).unwrap_or_else(|| unknown_block(kind, json));
    parts.into_iter().map(block).collect()
}

/// Marks a message as written by the agent in the user's name.
pub(crate) fn mark_meta(message: &mut Message) {
    if !message.is_meta() {
        let yes = Json::from_value(&true).expect("a boolean is always JSON");
        message.extra.push("meta", yes);
    }
}

/// Returns a message as one that the agent wrote in the user's name.
pub(crate) fn meta(mut message: Message) -> Message {
    mark_meta(&mut message);
    message
}

/// Creates a text message that the agent wrote in the user's name.
pub(crate) fn meta_text(text: impl Into<Text>) -> Message {
    meta(Message::user_text(text))
}

/// Returns a text as a JSON string.
pub(crate) fn string_json(text: &Text) -> Json {
    Json::from_value(text).expect("a string is always JSON")
}

/// Returns an empty JSON object.
pub(crate) fn empty_object() -> Json {
    Json::new("{}").expect("this is JSON")
}

/// Returns the input of a call. An object inside a string is taken out of it. `None` if it is
/// not JSON.
pub(crate) fn call_input(json: Option<&str>) -> Option<Json> {
    let Some(json) = json else {
        return Some(empty_object());
    };
    if let Some(text) = to_text(json)
        && text.trim_start().starts_with('{')
        && !text.is_lossy()
        && let Ok(inner) = Json::new(text.trim())
    {
        return Some(inner);
    }
    to_json(json)
}

/// Creates a block of a medium in a `data:` URL. The content of other URLs is not in the file.
pub(crate) fn data_url_block(kind: &str, url: &str) -> Option<Block> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    let media_type = head.strip_suffix(";base64")?;
    let media_type = match media_type.split(';').next() {
        Some("") | None => "application/octet-stream",
        Some(media_type) => media_type,
    };
    Some(media(kind, media_type.into(), Json::from_value(data).ok()?))
}

/// Creates a block of a medium.
pub(crate) fn media(kind: &str, media_type: Text, data: Json) -> Block {
    Block::Media(Media {
        kind: kind.to_owned(),
        media_type,
        data,
        extra: Fields::default(),
    })
}

/// Creates a block of thinking.
pub(crate) fn thinking(thinking: Text, signature: Option<Text>) -> Block {
    Block::Thinking(Thinking {
        thinking,
        signature,
        extra: Fields::default(),
    })
}

/// Creates a call of a tool. What is missing is empty.
pub(crate) fn tool_use(id: Option<Text>, name: Option<Text>, input: Option<Json>) -> ToolUse {
    ToolUse {
        id: id.unwrap_or_default(),
        name: name.unwrap_or_default(),
        input: input.unwrap_or_else(empty_object),
        extra: Fields::default(),
    }
}

/// Creates a successful result of a tool. What is missing is empty.
pub(crate) fn tool_result(
    id: Option<Text>,
    name: Option<Text>,
    output: Option<Json>,
) -> ToolResult {
    ToolResult {
        tool_use_id: id.unwrap_or_default(),
        tool_name: name,
        output: output.unwrap_or_else(|| string_json(&Text::default())),
        is_error: false,
        extra: Fields::default(),
    }
}

/// Returns whether a text starts with one of these, apart from blanks.
pub(crate) fn starts_with_any(text: &str, starts: &[&str]) -> bool {
    let text = text.trim_start();
    starts.iter().any(|start| text.starts_with(start))
}

/// Creates a text block with another field.
pub(crate) fn text_block(text: Text, name: &str, value: Option<Json>) -> Block {
    let mut block = TextBlock {
        text,
        extra: Fields::default(),
    };
    if let Some(value) = value {
        block.extra.push(name, value);
    }
    block.into()
}

/// Keeps a block of an unknown type. A block without a `type` gets one.
pub(crate) fn unknown_block(kind: &str, json: &str) -> Block {
    let has_type = Object::from_json(json).is_some_and(|object| object.string("type").is_some());
    let wrapped = (!has_type).then(|| format!("{{\"type\":\"{kind}\",\"value\":{json}}}"));
    let block = to_json(wrapped.as_deref().unwrap_or(json));
    Block::Other(block.unwrap_or_else(empty_object))
}

/// Creates a block of a medium in Base64.
pub(crate) fn media_block(media_type: Text, data: Json) -> Block {
    media(media_kind(&media_type), media_type, data)
}

/// Returns the kind of a medium by its type.
pub(crate) fn media_kind(media_type: &str) -> &'static str {
    match media_type.split('/').next() {
        Some("image") => "image",
        Some("audio") => "audio",
        Some("video") => "video",
        _ if media_type == "application/pdf" => "document",
        _ => "file",
    }
}

/// Returns blocks as the output of a tool: a single text as a string, none as nothing.
pub(crate) fn tool_output(blocks: &[Block]) -> Option<Json> {
    match blocks {
        [Block::Text(block)] => Some(string_json(&block.text)),
        [] => None,
        blocks => Json::from_value(blocks).ok(),
    }
}
