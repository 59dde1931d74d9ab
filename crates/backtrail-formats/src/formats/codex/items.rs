//! The items of a conversation, as Codex sends them to the model and writes them down, and the
//! events for the screen that repeat them.

use backtrail::{Block, Fields, Json, Message, Role, Text, Thinking};

use super::failures::{has_bad_exit, is_failure};
use crate::formats::blocks::{
    self, call_input, data_url_block, mark_meta, starts_with_any, tool_output, tool_use,
};
use crate::json::{Object, elements, is_string, to_json, to_text};

/// An item of the conversation.
#[derive(Debug)]
pub(super) enum Item {
    Message(Message),
    /// Known, but not part of the conversation.
    Ignored,
    Unknown,
}

/// Reads an item. `key` replaces an id that is missing.
pub(super) fn read(kind: &str, payload: &Object<'_>, key: &dyn Fn() -> String) -> Item {
    match kind {
        "message" => message(payload).map_or(Item::Unknown, Item::Message),
        "agent_message" => Item::Message(between_agents(payload)),
        "reasoning" => Item::Message(Message::assistant([reasoning(payload)])),
        "function_call" | "tool_call" => tool_call(payload, "arguments", "function", key),
        "custom_tool_call" => tool_call(payload, "input", "custom", key),
        "local_shell_call" => tool_call(payload, "action", "local_shell", key),
        "web_search_call" => tool_call(payload, "action", "web_search", key),
        "tool_search_call" => tool_call(payload, "arguments", "tool_search", key),
        "image_generation_call" => image_call(payload, key),
        "function_call_output" | "custom_tool_call_output" | "tool_result" | "function_result" => {
            tool_result(payload, &["output", "result"])
        }
        "tool_search_output" => tool_result(payload, &["tools", "output"]),
        // A summary that only the provider can read, and internal states.
        "compaction" | "context_compaction" | "compaction_summary" | "compaction_trigger"
        | "ghost_snapshot" | "additional_tools" | "other" => Item::Ignored,
        _ => Item::Unknown,
    }
}

/// Reads a message.
pub(super) fn message(payload: &Object<'_>) -> Option<Message> {
    let content = payload.get("content").or_else(|| payload.get("message"))?;
    let blocks = content_blocks(content);
    let role = payload.string("role")?;
    let role = match role.as_ref() {
        "developer" | "system" => Role::System,
        role => Role::from(role),
    };
    let meta = role == Role::User && is_meta(payload, &blocks);
    let mut message = Message::new(role, blocks);
    if meta {
        mark_meta(&mut message);
    }
    Some(message)
}

/// Returns whether a message is a prompt.
pub(super) fn is_prompt(payload: &Object<'_>) -> bool {
    message(payload).is_some_and(|message| message.is_prompt())
}

/// Returns the directory that a message of the agent itself names.
pub(super) fn directory(message: &Message) -> Option<&str> {
    message
        .is_meta()
        .then(|| context_directory(&message.blocks))
        .flatten()
}

/// Reads a message from one agent to another.
pub(super) fn between_agents(payload: &Object<'_>) -> Message {
    let mut content = payload.get("content").map_or_else(Vec::new, content_blocks);
    if let Some(encrypted) = payload.get("encrypted_content")
        && is_string(encrypted)
        && let Ok(block) = Json::new(format!(
            "{{\"type\":\"encrypted_content\",\"encrypted_content\":{encrypted}}}"
        ))
    {
        content.push(Block::Other(block));
    }
    let mut message = Message::new(Role::User, content);
    mark_meta(&mut message);
    for name in ["author", "recipient"] {
        if let Some(agent) = payload.string_json(name) {
            message.extra.push(name, agent);
        }
    }
    message
}

/// Reads a message that was spoken. `None` if it is blank.
pub(super) fn spoken(payload: &Object<'_>) -> Option<Message> {
    payload.non_blank("text")?;
    let text = payload.text("text")?;
    let role = Role::from(payload.string("role")?.as_ref());
    Some(Message::new(role, [Block::text(text)]))
}

fn reasoning(payload: &Object<'_>) -> Block {
    let mut thoughts = texts(payload, "summary");
    thoughts.extend(texts(payload, "content"));
    let mut extra = Fields::default();
    if let Some(encrypted) = payload.string_json("encrypted_content") {
        extra.push("encrypted_content", encrypted);
    }
    Block::Thinking(Thinking {
        thinking: join(thoughts),
        signature: None,
        extra,
    })
}

/// Returns the texts of a list, whose elements are strings or contain one.
pub(super) fn texts(payload: &Object<'_>, name: &str) -> Vec<Text> {
    let text = |part: &str| to_text(part).or_else(|| Object::from_json(part)?.text("text"));
    let Some(list) = payload.list(name) else {
        return Vec::new();
    };
    list.into_iter().filter_map(text).collect()
}

/// Joins texts with blank lines. A single one is unchanged, byte for byte.
pub(super) fn join(mut texts: Vec<Text>) -> Text {
    match texts.len() {
        1 => texts.remove(0),
        _ => {
            let texts: Vec<&str> = texts.iter().map(Text::as_str).collect();
            texts.join("\n\n").into()
        }
    }
}

/// Reads a call whose input is in the field `input`.
fn tool_call(payload: &Object<'_>, input: &str, tool: &str, key: &dyn Fn() -> String) -> Item {
    let name = payload
        .text("name")
        .or_else(|| payload.object("function")?.text("name"));
    let Some(input) = call_input(payload.get(input)) else {
        return Item::Unknown;
    };
    let name = name.unwrap_or_else(|| tool.into());
    let mut call = tool_use(Some(call_id(payload, key)), Some(name), Some(input));
    if let Some(namespace) = payload.string_json("namespace") {
        call.extra.push("namespace", namespace);
    }
    Item::Message(Message::assistant([call.into()]))
}

/// Returns the id of a call.
fn call_id(payload: &Object<'_>, key: &dyn Fn() -> String) -> Text {
    let id = payload.text("call_id").or_else(|| payload.text("id"));
    id.unwrap_or_else(|| key().into())
}

fn image_call(payload: &Object<'_>, key: &dyn Fn() -> String) -> Item {
    let prompt = payload.get("revised_prompt").filter(|json| is_string(json));
    let input = prompt.map_or_else(
        || "{}".to_owned(),
        |prompt| format!("{{\"prompt\":{prompt}}}"),
    );
    let Ok(input) = Json::new(input) else {
        return Item::Unknown;
    };
    let name = Text::from("image_generation");
    let call = tool_use(Some(call_id(payload, key)), Some(name), Some(input));
    let mut message = Message::assistant([call.into()]);
    if let Some(result) = payload.text("result").filter(|result| !result.is_empty())
        && let Ok(image) = Block::image("image/png", result)
    {
        message.blocks.push(image);
    }
    Item::Message(message)
}

fn tool_result(payload: &Object<'_>, names: &[&str]) -> Item {
    let id = payload.text("call_id").or_else(|| payload.text("id"));
    let json = names.iter().find_map(|name| payload.get(name));
    let (output, failed) = match json {
        Some(json) if names[0] == "tools" && elements(json).is_some() => (to_json(json), false),
        Some(json) => output(json),
        None => (None, false),
    };
    if json.is_some() && output.is_none() {
        return Item::Unknown;
    }
    let mut result = blocks::tool_result(id, payload.text("name"), output);
    result.is_error = match payload.get("success") {
        Some("true") => false,
        Some("false") => true,
        _ => failed,
    };
    Item::Message(Message::tool_result(result))
}

/// Reads a content: a string, or a list of parts.
pub(super) fn content_blocks(content: &str) -> Vec<Block> {
    if let Some(text) = to_text(content) {
        return vec![Block::text(text)];
    }
    match elements(content) {
        Some(parts) => parts.into_iter().filter_map(block).collect(),
        None if content == "null" => Vec::new(),
        None => block(content).into_iter().collect(),
    }
}

/// Reads a part of a content.
fn block(part: &str) -> Option<Block> {
    let other = || to_json(part).map(Block::Other);
    let Some(object) = Object::from_json(part) else {
        return to_text(part).map(Block::text).or_else(other);
    };
    let kind = object.string("type");
    let known = match kind.as_deref() {
        Some("input_text" | "output_text" | "text" | "Text" | "summary_text") => {
            object.text("text").map(Block::text)
        }
        Some("refusal") => object.text("refusal").map(Block::text),
        Some("input_image" | "image") => {
            url_of(&object, "image_url").and_then(|url| data_url_block("image", &url))
        }
        Some("input_audio") => {
            url_of(&object, "audio_url").and_then(|url| data_url_block("audio", &url))
        }
        _ => None,
    };
    known.or_else(other)
}

/// Returns a URL that is a string, or in an object.
fn url_of(object: &Object<'_>, name: &str) -> Option<Text> {
    let json = object.get(name)?;
    to_text(json).or_else(|| Object::from_json(json)?.text("url"))
}

/// Reads the output of a tool, and whether it failed.
fn output(json: &str) -> (Option<Json>, bool) {
    if is_string(json) {
        return string_output(json);
    }
    if let Some(object) = Object::from_json(json) {
        // `{"content":…,"success":…}` was written for a while.
        let failed = object.get("success") == Some("false");
        if let Some(content) = object.get("content") {
            let (output, failed_too) = output_of_parts(content);
            return (output, failed || failed_too);
        }
        if object.string("type").is_some() {
            return output_of_parts(json);
        }
        let metadata = object.object("metadata");
        let failed =
            failed || has_bad_exit(&object) || metadata.is_some_and(|it| has_bad_exit(&it));
        return (to_json(json), failed);
    }
    output_of_parts(json)
}

/// Reads an output that is a list of parts; a single text becomes a string.
fn output_of_parts(json: &str) -> (Option<Json>, bool) {
    if is_string(json) {
        return string_output(json);
    }
    let blocks = content_blocks(json);
    let failed = match blocks.first() {
        Some(Block::Text(first)) => is_failure(first.text.lines()),
        _ => false,
    };
    (tool_output(&blocks).or_else(|| to_json(json)), failed)
}

/// Reads an output that is a string. The output of commands used to be wrapped in JSON with
/// the exit code, and later started with lines that contain it.
fn string_output(json: &str) -> (Option<Json>, bool) {
    // Outputs are most of a rollout, so they are not decoded.
    let inside = json.trim_start_matches('"');
    if starts_with_any(inside, &WRAPPED)
        && let Some(unwrapped) = unwrap(json)
    {
        return unwrapped;
    }
    let lines = inside.trim_end_matches('"').split("\\n");
    (to_json(json), is_failure(lines))
}

/// How JSON with an output starts in a string.
const WRAPPED: [&str; 2] = ["{\\\"output\\\":", "{\\\"metadata\\\":"];

/// Takes an output out of the JSON in a string.
fn unwrap(json: &str) -> Option<(Option<Json>, bool)> {
    let text = to_text(json)?;
    let wrapped = Object::parse(&text).ok()?;
    let failed = has_bad_exit(&wrapped.object("metadata")?);
    let output = wrapped.string_json("output")?;
    Some((Some(output), failed))
}

/// Returns whether Codex itself wrote a message in the user's name.
fn is_meta(payload: &Object<'_>, blocks: &[Block]) -> bool {
    if let Some(kinds) = kinds(payload) {
        if kinds.iter().any(|kind| kind.starts_with("user.")) {
            return false;
        }
        if !kinds.is_empty() && kinds.iter().all(|kind| *kind != *"unknown") {
            return true;
        }
    }
    let injected = |block: &Block| match block {
        Block::Text(block) => starts_with_any(&block.text, INJECTED),
        _ => false,
    };
    !blocks.is_empty() && blocks.iter().all(injected)
}

/// Returns the kinds of a message's parts, which newer versions write.
fn kinds(payload: &Object<'_>) -> Option<Vec<Text>> {
    let passed = payload.object("internal_chat_message_metadata_passthrough")?;
    let kinds = passed.list("content_item_kinds")?;
    Some(kinds.into_iter().filter_map(to_text).collect())
}

/// How texts start that Codex writes in the user's name.
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

/// Returns the directory that a context names; the oldest rollouts have it nowhere else.
fn context_directory(blocks: &[Block]) -> Option<&str> {
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

/// Returns the type of an event, if that is its first field, as it usually is.
pub(super) fn event_type(payload: &str) -> Option<&str> {
    let rest = payload.strip_prefix("{\"type\":\"")?;
    let (kind, _) = rest.split_once('"')?;
    (!kind.contains('\\')).then_some(kind)
}

/// Reads the prompt of an event, with its images.
pub(super) fn event_prompt(payload: &Object<'_>) -> Message {
    let mut message = Message::new(Role::User, payload.text("message").map(Block::text));
    let images = payload.list("images").unwrap_or_default();
    for url in images.into_iter().filter_map(to_text) {
        message.blocks.extend(data_url_block("image", &url));
    }
    let kind = payload.string("kind");
    if kind.is_some_and(|kind| kind != "plain") || is_meta(payload, &message.blocks) {
        mark_meta(&mut message);
    }
    message
}

/// The types of completed items that are items of the conversation as well.
pub(super) const DUPLICATE_ITEMS: &[&str] = &[
    "CommandExecution",
    "FileChange",
    "McpToolCall",
    "DynamicToolCall",
    "CollabAgentToolCall",
    "SubAgentActivity",
    "WebSearch",
    "ImageView",
    "ImageGeneration",
    "EnteredReviewMode",
    "ExitedReviewMode",
    "ContextCompaction",
    "HookPrompt",
    "Sleep",
    "Extension",
];

/// Returns whether a line ends a turn.
pub(super) fn ends_turn(line: &str) -> bool {
    const ENDS: [&str; 3] = ["task_complete", "turn_complete", "turn_aborted"];
    let has = |end: &&str| memchr::memmem::find(line.as_bytes(), end.as_bytes()).is_some();
    if !ENDS.iter().any(has) {
        return false;
    }
    let record = Object::parse(line).unwrap_or_default();
    let payload = record.object("payload").unwrap_or_default();
    record.string("type").as_deref() == Some("event_msg")
        && payload
            .string("type")
            .is_some_and(|kind| ENDS.contains(&&*kind))
}

/// The types of events that contain nothing that no item does.
pub(super) const IGNORED_EVENTS: &[&str] = &[
    "task_started",
    "turn_started",
    "task_complete",
    "turn_complete",
    "turn_aborted",
    "context_compacted",
    "entered_review_mode",
    "exited_review_mode",
    "thread_settings_applied",
    "thread_goal_updated",
    "session_configured",
    "injected_message",
    "undo_started",
    "undo_completed",
    "error",
    "warning",
    "guardian_warning",
    "guardian_assessment",
    "stream_error",
    "background_event",
    "deprecation_notice",
    "model_reroute",
    "model_verification",
    "turn_moderation_metadata",
    "safety_buffering",
    "exec_command_begin",
    "exec_command_output_delta",
    "terminal_interaction",
    "exec_approval_request",
    "request_permissions",
    "request_user_input",
    "elicitation_request",
    "apply_patch_approval_request",
    "patch_apply_begin",
    "patch_apply_updated",
    "turn_diff",
    "mcp_tool_call_begin",
    "mcp_startup_update",
    "mcp_startup_complete",
    "web_search_begin",
    "web_search_end",
    "image_generation_begin",
    "image_generation_end",
    "view_image_tool_call",
    "dynamic_tool_call_request",
    "dynamic_tool_call_response",
    "plan_update",
    "item_started",
    "raw_response_item",
    "hook_started",
    "hook_completed",
    "agent_message_delta",
    "agent_message_content_delta",
    "agent_reasoning_delta",
    "agent_reasoning_raw_content_delta",
    "agent_reasoning_section_break",
    "reasoning_content_delta",
    "reasoning_raw_content_delta",
    "plan_delta",
    "sub_agent_activity",
    "collab_agent_spawn_begin",
    "collab_agent_spawn_end",
    "collab_agent_interaction_begin",
    "collab_agent_interaction_end",
    "collab_waiting_begin",
    "collab_waiting_end",
    "collab_close_begin",
    "collab_close_end",
    "collab_resume_begin",
    "collab_resume_end",
    "shutdown_complete",
];
