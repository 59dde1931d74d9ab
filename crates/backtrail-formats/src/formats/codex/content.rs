//! What Codex writes as content, as blocks.

use backtrail::{Block, Fields, Json, Media, Text};

use crate::json::{Object, is_string, list_of, text_of};

/// Reads a content: a string, or a list of parts.
pub(super) fn blocks(content: &Json) -> Vec<Block> {
    if let Some(text) = text_of(content) {
        return vec![Block::text(text)];
    }
    match list_of(content) {
        Some(parts) => parts.into_iter().map(block).collect(),
        None if content.as_str() == "null" => Vec::new(),
        None => vec![block(content.clone())],
    }
}

/// Reads a part of a content.
fn block(part: Json) -> Block {
    let Some(object) = Object::of(&part) else {
        return match text_of(&part) {
            Some(text) => Block::text(text),
            None => Block::Other(part),
        };
    };
    let kind = object.string("type");
    let known = match kind.as_deref() {
        Some("input_text" | "output_text" | "text" | "Text" | "summary_text") => {
            object.text("text").map(Block::text)
        }
        Some("refusal") => object.text("refusal").map(Block::text),
        Some("input_image" | "image") => {
            url_of(&object, "image_url").and_then(|url| media("image", &url))
        }
        Some("input_audio") => url_of(&object, "audio_url").and_then(|url| media("audio", &url)),
        _ => None,
    };
    known.unwrap_or(Block::Other(part))
}

/// Returns an address that is a string, or in an object.
fn url_of(object: &Object, name: &str) -> Option<Text> {
    let json = object.get(name)?;
    text_of(json).or_else(|| Object::of(json)?.text("url"))
}

/// Reads a `data:` address. Others name what is not here.
pub(super) fn media(kind: &str, url: &str) -> Option<Block> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    let media_type = head.strip_suffix(";base64")?;
    let media_type = match media_type.split(';').next() {
        Some("") | None => "application/octet-stream",
        Some(media_type) => media_type,
    };
    Some(Block::Media(Media {
        kind: kind.to_owned(),
        media_type: media_type.into(),
        data: Json::from_value(data).ok()?,
        extra: Fields::default(),
    }))
}

/// Reads what a tool gave back: its output as a reader wants it, and whether it failed.
pub(super) fn output(json: &Json) -> (Json, bool) {
    if is_string(json) {
        return string_output(json);
    }
    if let Some(object) = Object::of(json) {
        // `{"content":…,"success":…}` was written for a while.
        let failed = object
            .get("success")
            .is_some_and(|json| json.as_str() == "false");
        if let Some(content) = object.get("content") {
            let (output, failed_too) = output_of_parts(content);
            return (output, failed || failed_too);
        }
        if object.string("type").is_some() {
            return output_of_parts(json);
        }
        return (json.clone(), failed);
    }
    output_of_parts(json)
}

/// Reads an output that is a list of parts: a string where it is one text.
fn output_of_parts(json: &Json) -> (Json, bool) {
    if is_string(json) {
        return string_output(json);
    }
    let blocks = blocks(json);
    let output = match &blocks[..] {
        [Block::Text(only)] => Json::from_value(&only.text),
        [] => Ok(json.clone()),
        blocks => Json::from_value(blocks),
    };
    (output.unwrap_or_else(|_| json.clone()), false)
}

/// Reads an output that is a string. Commands were wrapped in JSON with their exit code
/// once, and later began with lines that tell it.
fn string_output(json: &Json) -> (Json, bool) {
    // Outputs are most of a rollout: they are looked at as they stand in it.
    let inside = json.as_str().trim_start_matches('"');
    if inside.starts_with("{\\\"output\\\":")
        && let Some(unwrapped) = unwrap(json)
    {
        return unwrapped;
    }
    let failed = FAILURES.iter().any(|begin| inside.starts_with(begin))
        || exit_code(inside).is_some_and(|code| code != 0);
    (json.clone(), failed)
}

/// Takes an output out of the JSON in a string.
fn unwrap(json: &Json) -> Option<(Json, bool)> {
    let wrapped = Object::parse(&text_of(json)?).ok()?;
    let code = wrapped.object("metadata")?.float("exit_code");
    let output = wrapped.get("output").filter(|output| is_string(output))?;
    Some((output.clone(), code.is_some_and(|code| code != 0.0)))
}

/// How outputs begin of commands that were not run to their end.
const FAILURES: [&str; 3] = [
    "failed in sandbox",
    "execution error: ",
    "failed to parse function arguments",
];

/// Returns the exit code that stands above the output of a command, in its JSON.
fn exit_code(inside: &str) -> Option<i64> {
    const MARKS: [&str; 2] = ["Exit code: ", "Process exited with code "];
    let lines = inside.split("\\n").take(6);
    for line in lines.take_while(|line| *line != "Output:") {
        if let Some(code) = MARKS.iter().find_map(|mark| line.strip_prefix(mark)) {
            return code.trim_end_matches('"').trim().parse().ok();
        }
    }
    None
}

/// Returns whether Codex put a message into the conversation by itself, in the user's
/// name.
pub(super) fn is_meta(payload: &Object, blocks: &[Block]) -> bool {
    if let Some(kinds) = kinds(payload) {
        if kinds.iter().any(|kind| kind.starts_with("user.")) {
            return false;
        }
        if !kinds.is_empty() && kinds.iter().all(|kind| *kind != *"unknown") {
            return true;
        }
    }
    let injected = |block: &Block| match block {
        Block::Text(block) => is_injected(&block.text),
        _ => false,
    };
    !blocks.is_empty() && blocks.iter().all(injected)
}

/// Returns what newer ones say the parts of a message are.
fn kinds(payload: &Object) -> Option<Vec<Text>> {
    let passed = payload.object("internal_chat_message_metadata_passthrough")?;
    let kinds = passed.list("content_item_kinds")?;
    Some(kinds.iter().filter_map(text_of).collect())
}

/// How texts begin that Codex writes in the user's name.
const INJECTED: &[&str] = &[
    "<environment_context>",
    "<environments_instructions>",
    "<user_instructions>",
    "<INSTRUCTIONS>",
    "# AGENTS.md instructions",
    "<permissions instructions>",
    "<turn_aborted>",
    "<user_shell_command>",
    "<user_action>",
    "<subagent_notification>",
    "<collaboration_mode>",
    "<model_switch>",
    "<personality_spec>",
    "<realtime_conversation>",
    "<skills_instructions>",
    "<skill>",
    "<plugins_instructions>",
    "<apps_instructions>",
    "<hook_prompt",
    "<hook_context>",
    "<external_context",
    "<goal_context>",
    "<codex_internal_context",
    "<token_budget>",
    "<recommended_plugins>",
    "Another language model started to solve this problem",
    "Warning: apply_patch was requested via exec_command",
    "Warning: The maximum number of unified exec processes",
];

fn is_injected(text: &str) -> bool {
    let text = text.trim_start();
    INJECTED.iter().any(|begin| text.starts_with(begin))
}

/// Returns the directory that a context names: the oldest rollouts tell it nowhere else.
pub(super) fn context_directory(blocks: &[Block]) -> Option<&str> {
    blocks.iter().find_map(|block| match block {
        Block::Text(block) => {
            let context = block.text.as_str().split_once("<environment_context>")?.1;
            let (_, rest) = context.split_once("<cwd>")?;
            let directory = rest.split_once("</cwd>")?.0.trim();
            (!directory.is_empty()).then_some(directory)
        }
        _ => None,
    })
}
