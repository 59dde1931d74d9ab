//! What a text in the user's name is, and whether a call failed.

use backtrail::{Block, Text, ToolResult};

use crate::formats::blocks::{
    self, call_input, media_block, starts_with_any, thinking, tool_output, unknown_block,
};
use crate::json::{Object, elements, is_string, string, to_text};

/// Tags around what the user wrote.
const USER_TAGS: [&str; 6] = [
    "user_input",
    "user_command",
    "task",
    "feedback",
    "user_message",
    "answer",
];
/// Tags around what the agent added to it.
const NOTICES: [&str; 3] = ["environment_details", "mode_notice", "environment_notice"];
/// How texts start that the agent wrote itself.
const META: [&str; 13] = [
    "<environment_details>",
    "<SYSTEM_NOTICE>",
    "<mode_notice>",
    "<environment_notice>",
    "<explicit_instructions",
    "<file_content",
    "<folder_content",
    "[ERROR]",
    "[TASK RESUMPTION]",
    "[Sliding window truncation",
    "[[NOTE]",
    "# TODO LIST",
    "# task_progress",
];
/// How the output of a call starts in which the user answers.
const ANSWERS: [&str; 6] = [
    "The user ",
    "[The user ",
    "<user_message>",
    "<feedback>",
    "<answer>",
    "You seem to be having trouble",
];
/// How the output of a call starts that failed or was refused.
const FAILURES: [&str; 7] = [
    "The tool execution failed",
    "The user denied this operation",
    "Error executing",
    "Error reading",
    "Command execution was not successful",
    "Missing value for required parameter",
    "<error>",
];

/// A text in the user's name, taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct UserText {
    /// What the user wrote.
    pub(super) prompt: Option<Text>,
    /// What the agent added.
    pub(super) rest: Option<String>,
}

/// Takes a text in the user's name apart.
pub(super) fn user_text(text: Text) -> UserText {
    if starts_with_any(&text, &META) {
        let rest = Some(text.as_str().to_owned());
        return UserText { prompt: None, rest };
    }
    let (prompt, mut rest) = match unwrapped(&text) {
        Some((prompt, rest)) => (prompt, rest),
        None if NOTICES.iter().any(|tag| opening(&text, tag).is_some()) => {
            (text.as_str().to_owned(), String::new())
        }
        None => {
            let prompt = (!text.trim().is_empty()).then_some(text);
            return UserText { prompt, rest: None };
        }
    };
    let prompt = without_notices(&prompt, &mut rest);
    UserText {
        prompt: (!prompt.trim().is_empty()).then(|| Text::from(prompt)),
        rest: (!rest.trim().is_empty()).then(|| rest.trim().to_owned()),
    }
}

/// Returns what is inside the outermost tags of the user, and what is around them.
fn unwrapped(text: &str) -> Option<(String, String)> {
    let text = text.trim();
    let opened = USER_TAGS.into_iter().filter_map(|tag| {
        let (from, inner) = opening(text, tag)?;
        Some((from, inner, tag))
    });
    let (from, inner, tag) = opened.min()?;
    let end = text.rfind(&format!("</{tag}>"))?;
    let raw = text.get(inner..end)?;
    let within = raw.trim();
    let attributes = text.get(from..inner)?;
    let prompt = match (tag, attribute(attributes, "slash")) {
        ("user_command", Some(slash)) => format!("/{slash} {within}"),
        // A command can be inside of an input.
        ("user_input", _) if within.starts_with("<user_command") => {
            unwrapped(within).map_or_else(|| within.to_owned(), |(inner, _)| inner)
        }
        // Cline adds no spaces there: they are the user's.
        ("user_input", _) => raw.to_owned(),
        _ => within.to_owned(),
    };
    let after = text.get(end + tag.len() + 3..)?;
    Some((prompt, format!("{}{after}", text.get(..from)?)))
}

/// Returns where a tag opens, and where what is inside of it starts.
fn opening(text: &str, tag: &str) -> Option<(usize, usize)> {
    let from = text.find(&format!("<{tag}"))?;
    let rest = text.get(from + tag.len() + 1..)?;
    if !rest.starts_with(['>', ' ']) {
        return None;
    }
    Some((from, from + tag.len() + 2 + rest.find('>')?))
}

fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    let value = tag.split_once(&format!("{name}=\""))?.1;
    Some(value.split_once('"')?.0)
}

/// Returns a text without the elements that the agent added, which are moved to `rest`.
fn without_notices(text: &str, rest: &mut String) -> String {
    let mut text = text.to_owned();
    let before = rest.len();
    for tag in NOTICES {
        let close = format!("</{tag}>");
        let mut kept = String::new();
        let mut left = text.as_str();
        while let Some((from, inner)) = opening(left, tag) {
            let end = left[inner..].find(&close);
            let end = end.map_or(left.len(), |end| inner + end + close.len());
            kept.push_str(&left[..from]);
            rest.push_str(&left[from..end]);
            left = &left[end..];
        }
        text = kept + left;
    }
    match rest.len() == before {
        true => text,
        false => text.trim().to_owned(),
    }
}

/// Returns what the user wrote in the output of a call: an answer, or why it is refused.
pub(super) fn answer(output: &str) -> Option<Text> {
    if !starts_with_any(output, &ANSWERS) {
        return None;
    }
    let (prompt, _) = unwrapped(output)?;
    (!prompt.is_empty()).then(|| Text::from(prompt))
}

/// Returns the blocks of a content: a string, or a list of blocks.
pub(super) fn blocks(content: Option<&str>) -> Vec<Block> {
    let Some(content) = content else {
        return Vec::new();
    };
    if is_string(content) {
        return to_text(content).map(Block::text).into_iter().collect();
    }
    let list = elements(content).unwrap_or_default().into_iter();
    list.map(|json| block(json).unwrap_or_else(|| unknown_block("cline", json)))
        .collect()
}

/// Returns a block of the model or the user. `None` if its type is not known.
pub(super) fn block(json: &str) -> Option<Block> {
    let object = Object::from_json(json)?;
    Some(match object.string("type")?.as_ref() {
        "text" => Block::text(object.text("text")?),
        "thinking" => thinking(object.text("thinking")?, object.text("signature")),
        "reasoning" => thinking(object.text("text")?, None),
        "tool_use" => Block::ToolUse(blocks::tool_use(
            object.text("id"),
            object.text("name"),
            call_input(object.get("input")),
        )),
        "image" | "document" => image(&object)?,
        "tool_result" => Block::ToolResult(tool_result(&object)),
        _ => return None,
    })
}

/// Returns an image: in a `source` like that of Anthropic, or beside its type.
fn image(object: &Object<'_>) -> Option<Block> {
    if let Some(source) = object.object("source") {
        return Some(media_block(
            source.text("media_type")?,
            source.string_json("data")?,
        ));
    }
    let media_type = object.text("mediaType").or_else(|| object.text("mimeType"));
    Some(media_block(media_type?, object.string_json("data")?))
}

/// Returns the result of a call.
pub(super) fn tool_result(object: &Object<'_>) -> ToolResult {
    let content = object.get("content").filter(|content| *content != "null");
    let name = object.text("name");
    let is_typed = |json: &&str| Object::from_json(json).is_some_and(|part| part.has("type"));
    let parts = content.and_then(elements).unwrap_or_default();
    let output = match !parts.is_empty() && parts.iter().all(is_typed) {
        true => tool_output(&blocks(content)),
        false => object.json("content").filter(|_| content.is_some()),
    };
    let failed = content.is_some_and(has_failed);
    ToolResult {
        is_error: object.is_true("is_error") || failed,
        ..blocks::tool_result(object.text("tool_use_id"), name, output)
    }
}

/// Returns whether the output of a call says that it failed.
pub(super) fn has_failed(output: &str) -> bool {
    match string(output) {
        Some(text) => text_has_failed(&text),
        None => elements(output)
            .unwrap_or_default()
            .into_iter()
            .any(part_has_failed),
    }
}

fn part_has_failed(part: &str) -> bool {
    let Some(part) = Object::from_json(part) else {
        return false;
    };
    match part.string("type") {
        Some(_) => part
            .string("text")
            .is_some_and(|text| text_has_failed(&text)),
        None => part.get("success") == Some("false"),
    }
}

/// Returns whether a text is the output of a call that failed.
pub(super) fn text_has_failed(text: &str) -> bool {
    let text = text.trim_start();
    if text.starts_with('{')
        && let Ok(object) = Object::parse(text)
    {
        let status = object.string("status");
        return object.get("success") == Some("false")
            || matches!(status.as_deref(), Some("error" | "denied"));
    }
    starts_with_any(text, &FAILURES) || exit_code(text).is_some_and(|code| code != 0)
}

/// Returns the exit code that the output of a command starts with.
fn exit_code(text: &str) -> Option<i64> {
    let is_command = starts_with_any(text, &["Command ", "Exit code:"]);
    let first = text
        .lines()
        .take(3)
        .find(|line| line.to_ascii_lowercase().contains("exit code"));
    let line = first.filter(|_| is_command)?.to_ascii_lowercase();
    let (_, code) = line.split_once("exit code")?;
    let code = code.trim_start_matches([':', ' ', '(']);
    let end = code
        .find(|c: char| !c.is_ascii_digit() && c != '-')
        .unwrap_or(code.len());
    code[..end].parse().ok()
}
