//! The events of a rollout, which are for the screen: what is said, and what is done.

use backtrail::{Block, Json, Message, Role};

use super::content::{is_meta, media};
use crate::formats::pieces::mark_meta;
use crate::json::{Object, text_of};

/// Returns what kind of payload it is, where that stands first, as it does mostly.
pub(super) fn kind_of(payload: &Json) -> Option<&str> {
    let rest = payload.as_str().strip_prefix("{\"type\":\"")?;
    let (kind, _) = rest.split_once('"')?;
    (!kind.contains('\\')).then_some(kind)
}

/// Reads the message of an event, with its images.
pub(super) fn prompt(payload: &Object) -> Message {
    let mut message = Message::new(Role::User, payload.text("message").map(Block::text));
    let images = payload.list("images").unwrap_or_default();
    for url in images.iter().filter_map(text_of) {
        message.blocks.extend(media("image", &url));
    }
    let kind = payload.string("kind");
    if kind.is_some_and(|kind| kind != "plain") || is_meta(payload, &message.blocks) {
        mark_meta(&mut message);
    }
    message
}

/// Returns whether an event says nothing of the conversation which an item does not.
pub(super) fn is_silent(kind: &str) -> bool {
    SILENT.contains(&kind)
}

/// Returns whether what is said to be done is done in items of the conversation as well.
pub(super) fn is_done(kind: &str) -> bool {
    DONE.contains(&kind)
}

const DONE: &[&str] = &[
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

const SILENT: &[&str] = &[
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
    "exec_command_end",
    "terminal_interaction",
    "exec_approval_request",
    "request_permissions",
    "request_user_input",
    "elicitation_request",
    "apply_patch_approval_request",
    "patch_apply_begin",
    "patch_apply_updated",
    "patch_apply_end",
    "turn_diff",
    "mcp_tool_call_begin",
    "mcp_tool_call_end",
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
