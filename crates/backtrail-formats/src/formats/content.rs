//! Contents as providers write them: a text, or a list of blocks in the style of Anthropic or
//! OpenAI. Agents mix the two and spell the types differently, so one reader knows them all.

use backtrail::{Block, Json, Text, ToolResult, ToolUse, Usage};

use super::blocks::{
    self, call_input, data_url_block, media, media_block, string_json, text_block, thinking,
    tool_output, unknown_block,
};
use crate::json::{Object, elements, is_string, to_json, to_text};

/// Reads a content. `unknown` receives the types of blocks that are not known; they are kept.
pub(super) fn content_blocks(content: Option<&str>, unknown: &mut dyn FnMut(&str)) -> Vec<Block> {
    match content {
        None | Some("null") => Vec::new(),
        Some(json) if is_string(json) => to_text(json).map(Block::text).into_iter().collect(),
        Some(json) => {
            let list = elements(json).unwrap_or_else(|| vec![json]);
            let read = |json| content_block(json).unwrap_or_else(|| other_block(json, unknown));
            list.into_iter().map(read).collect()
        }
    }
}

/// Keeps a block that cannot be read, and counts it if its type is not known.
fn other_block(json: &str, unknown: &mut dyn FnMut(&str)) -> Block {
    let object = Object::from_json(json).unwrap_or_default();
    match object.string("type").as_deref() {
        Some("redacted_thinking") => {}
        Some(kind) => unknown(kind),
        None => unknown("(no type)"),
    }
    unknown_block("content", json)
}

fn content_block(json: &str) -> Option<Block> {
    if is_string(json) {
        return to_text(json).map(Block::text);
    }
    let object = Object::from_json(json)?;
    match object.string("type")?.as_ref() {
        "text" | "input_text" | "output_text" | "summary_text" => {
            Some(text_block(object.text("text")?, "signature", None))
        }
        "thinking" | "think" | "reasoning" => {
            let text = any_text(&object, &["thinking", "think", "text"])?;
            Some(thinking(text, object.text("signature")))
        }
        "tool_use" | "tool-use" | "tool_call" | "tool-call" => tool_call(&object).map(Block::from),
        "tool_result" | "tool-result" => Some(Block::ToolResult(tool_result(&object))),
        kind => media_content(kind, &object),
    }
}

/// Reads an image or another medium.
fn media_content(kind: &str, object: &Object<'_>) -> Option<Block> {
    let (kind, url) = match kind {
        "image" | "document" => (kind, object.text("url")),
        "image_url" | "audio_url" | "video_url" => {
            let nested = object.object(kind).and_then(|nested| nested.text("url"));
            let kind = kind.strip_suffix("_url")?;
            (kind, nested.or_else(|| object.text("url")))
        }
        "input_image" => ("image", object.text("image_url")),
        _ => return None,
    };
    if let Some(url) = url {
        return data_url_block(kind, &url);
    }
    let Some(source) = object.object("source") else {
        return Some(media_block(
            object.text("mimeType")?,
            object.string_json("data")?,
        ));
    };
    match source.text("url") {
        Some(url) => data_url_block(kind, &url),
        None => Some(media(
            kind,
            source.text("media_type")?,
            source.string_json("data")?,
        )),
    }
}

/// Reads a call of a tool, in any of the spellings.
pub(super) fn tool_call(object: &Object<'_>) -> Option<ToolUse> {
    let function = object.object("function").unwrap_or_default();
    let name = any_text(object, &["name", "toolName", "tool_name", "tool"]);
    let name = name.or_else(|| function.text("name"))?;
    let inputs = ["input", "args", "arguments", "parameters"];
    let input = inputs.iter().find_map(|field| object.get(field));
    let input = input.or_else(|| function.get("arguments"));
    let id = any_text(object, &["id", "toolCallId", "tool_call_id", "call_id"]);
    Some(blocks::tool_use(id, Some(name), call_input(input)))
}

/// Reads the calls of a message in the style of OpenAI. What is not a call is kept.
pub(super) fn tool_calls(message: &Object<'_>, field: &str) -> Vec<Block> {
    let list = message.list(field).unwrap_or_default();
    let read = |json| Object::from_json(json).and_then(|call| tool_call(&call));
    let keep = |json| read(json).map_or_else(|| unknown_block("tool_call", json), Block::from);
    list.into_iter().map(keep).collect()
}

/// Reads the result of a tool, in any of the spellings.
pub(super) fn tool_result(object: &Object<'_>) -> ToolResult {
    let ids = ["tool_use_id", "toolCallId", "tool_call_id"];
    let names = ["name", "toolName", "tool_name"];
    let is_error = object.is_true("is_error") || object.is_true("isError");
    let output = object.get("content").or_else(|| object.get("output"));
    ToolResult {
        is_error,
        ..blocks::tool_result(
            any_text(object, &ids),
            any_text(object, &names),
            output.and_then(result_output),
        )
    }
}

/// Returns an output as one text if it is nothing else.
pub(super) fn result_output(json: &str) -> Option<Json> {
    match elements(json) {
        Some(_) => {
            let blocks = content_blocks(Some(json), &mut |_| {});
            tool_output(&blocks)
        }
        None => to_json(json).filter(|_| json != "null"),
    }
}

/// Returns the first of these fields that is a text.
pub(super) fn any_text(object: &Object<'_>, names: &[&str]) -> Option<Text> {
    names.iter().find_map(|name| object.text(name))
}

/// Returns the text of an output, if it is one.
pub(super) fn output_text(result: &ToolResult) -> Option<Text> {
    to_text(result.output.as_str())
}

/// Reads usage in the style of Anthropic.
pub(super) fn anthropic_usage(counts: &Object<'_>) -> Option<Usage> {
    let count = |name: &str| counts.number(name);
    counts.has("output_tokens").then(|| {
        Usage::new(
            count("input_tokens").unwrap_or(0),
            count("output_tokens").unwrap_or(0),
        )
        .cache_read(count("cache_read_input_tokens").unwrap_or(0))
        .cache_creation(count("cache_creation_input_tokens").unwrap_or(0))
    })
}

/// Splits a prompt from what the agent wrote around it: `(around, prompt)`. `None` if there is
/// nothing around it.
pub(super) fn unwrap_prompt(text: &str, tag: &str) -> Option<(String, String)> {
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    let (before, rest) = text.split_once(&open)?;
    let (prompt, after) = rest.rsplit_once(&close)?;
    let around = [before.trim(), after.trim()].join("\n\n");
    Some((around.trim().to_owned(), prompt.trim().to_owned()))
}

/// Splits a prompt from reminders at its beginning: `(reminders, prompt)`. `None` if there are
/// none.
pub(super) fn split_reminders(text: &str, tag: &str) -> Option<(String, String)> {
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    let mut rest = text.trim();
    while rest.starts_with(&open) {
        let (_, after) = rest.split_once(&close)?;
        rest = after.trim_start();
    }
    let reminders = text.trim().strip_suffix(rest)?.trim_end();
    (!reminders.is_empty()).then(|| (reminders.to_owned(), rest.to_owned()))
}

/// Returns a text as the output of a tool.
pub(super) fn text_output(text: Option<Text>) -> Option<Json> {
    text.map(|text| string_json(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> (Vec<Block>, Vec<String>) {
        let mut unknown = Vec::new();
        let blocks = content_blocks(Some(json), &mut |kind| unknown.push(kind.to_owned()));
        (blocks, unknown)
    }

    #[test]
    fn blocks_of_both_styles_are_read_and_others_are_kept_and_counted() {
        let (blocks, unknown) = read(
            r#"["a",{"type":"text","text":"b"},{"type":"think","think":"c"},
            {"type":"tool-call","name":"t","input":{"x":1}},
            {"type":"tool_call","id":"2","function":{"name":"u","arguments":"{\"y\":2}"}},
            {"type":"tool-result","tool_use_id":"2","content":[{"type":"text","text":"d"}],"isError":true},
            {"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}},
            {"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}},
            {"type":"redacted_thinking","data":"x"},{"type":"hologram"},7]"#,
        );
        assert_eq!(unknown, ["hologram", "(no type)"]);
        assert_eq!(blocks.len(), 11);
        assert!(matches!(&blocks[2], Block::Thinking(block) if block.thinking.as_str() == "c"));
        assert!(matches!(&blocks[3], Block::ToolUse(call) if call.input.as_str() == r#"{"x":1}"#));
        assert!(matches!(&blocks[4], Block::ToolUse(call)
            if call.id.as_str() == "2" && call.name.as_str() == "u" && call.input.as_str() == r#"{"y":2}"#));
        assert!(matches!(&blocks[5], Block::ToolResult(result)
            if result.is_error && result.output.as_str() == "\"d\""));
        assert!(matches!(&blocks[6], Block::Media(media) if media.kind == "image"));
        assert!(matches!(&blocks[7], Block::Media(media) if media.kind == "image"));
        assert!(matches!(
            &blocks[8..],
            [Block::Other(_), Block::Other(_), Block::Other(_)]
        ));
        assert_eq!(read("null").0, []);
        assert_eq!(read("\"a\"").0, [Block::text("a")]);
    }

    #[test]
    fn a_prompt_is_split_from_what_surrounds_it() {
        let split = |around: &str, prompt: &str| Some((around.to_owned(), prompt.to_owned()));
        let unwrap = |text| unwrap_prompt(text, "q");
        assert_eq!(unwrap("<q>\nhi\n</q>"), split("", "hi"));
        assert_eq!(unwrap("x <q>a</q> b</q> y"), split("x\n\ny", "a</q> b"));
        assert_eq!(unwrap("<q>hi"), None);
        assert_eq!(unwrap("hi</q><q>"), None);
        let reminders = |text| split_reminders(text, "r");
        assert_eq!(
            reminders("<r>1</r>\n<r>2</r>\n\nhi <r>"),
            split("<r>1</r>\n<r>2</r>", "hi <r>")
        );
        assert_eq!(reminders("<r>1</r>"), split("<r>1</r>", ""));
        assert_eq!(reminders("hi <r>1</r>"), None);
        assert_eq!(reminders("<r>1"), None);
    }
}
