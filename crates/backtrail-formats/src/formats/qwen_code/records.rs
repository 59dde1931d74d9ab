//! What a record is.

use crate::json::Object;

/// What a record is, as far as the tree needs to know.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RecordKind {
    /// One message.
    Message,
    /// The usage of a model call.
    Usage,
    /// A summary of what came before.
    Summary,
    /// The title of the session.
    Title(String),
    /// The session that started this one.
    ParentSession(String),
    /// Something else that is known.
    Other,
    /// A note beside the conversation: no record continues it.
    Side,
    Unknown(String),
    Damaged(&'static str),
}

impl RecordKind {
    /// Returns whether the record becomes an event.
    pub(super) fn is_event(&self) -> bool {
        matches!(self, Self::Message | Self::Usage | Self::Summary)
    }
}

/// Returns whether the first object of a line is a record of this agent.
pub(super) fn is_record(line: &str) -> bool {
    let mut objects = serde_json::Deserializer::from_str(line.trim()).into_iter::<Object<'_>>();
    let Some(Ok(record)) = objects.next() else {
        return false;
    };
    let is_named = ["uuid", "sessionId", "timestamp"];
    let is_named = is_named.iter().all(|name| record.string(name).is_some());
    if !is_named || record.get("parentUuid").is_none() {
        return false;
    }
    match record.string("type").as_deref() {
        Some("user" | "assistant" | "tool_result") => parts(&record).is_some(),
        Some("system") => record.has("systemPayload") && record.has("subtype"),
        _ => false,
    }
}

/// Returns whether the beginning of a long line looks like a message of this agent.
pub(super) fn looks_like_record(line: &str) -> bool {
    let fields = ["\"parentUuid\":", "\"sessionId\":", "\"parts\":"];
    fields.iter().all(|field| line.contains(field))
}

/// Returns the parts of a record's message.
pub(super) fn parts<'a>(record: &Object<'a>) -> Option<Vec<&'a str>> {
    record.object("message")?.list("parts")
}

/// Returns what a record is.
pub(super) fn record_kind(record: &Object<'_>) -> RecordKind {
    let Some(kind) = record.string("type") else {
        return RecordKind::Damaged("record without a type");
    };
    if record.non_blank("uuid").is_none() {
        return RecordKind::Damaged("record without an id");
    }
    match kind.as_ref() {
        "user" | "assistant" | "tool_result" => match parts(record) {
            Some(parts) if parts.is_empty() => RecordKind::Other,
            Some(_) => RecordKind::Message,
            None => RecordKind::Damaged("message record without a message"),
        },
        "system" => system_kind(record),
        other => RecordKind::Unknown(other.to_owned()),
    }
}

fn system_kind(record: &Object<'_>) -> RecordKind {
    let payload = record.object("systemPayload").unwrap_or_default();
    let subtype = record.string("subtype").unwrap_or_default();
    match subtype.as_ref() {
        "chat_compression" => RecordKind::Summary,
        "ui_telemetry" => match model_call(&payload) {
            Some(_) => RecordKind::Usage,
            None => RecordKind::Other,
        },
        "custom_title" => match payload.trimmed("customTitle") {
            Some(title) => RecordKind::Title(title),
            None => RecordKind::Other,
        },
        "parent_session" => match payload.trimmed("parentSessionId") {
            Some(parent) => RecordKind::ParentSession(parent),
            None => RecordKind::Other,
        },
        "session_artifact_event"
        | "session_artifact_snapshot"
        | "session_sources_snapshot"
        | "managed_session_header_v1"
        | "managed_session_event_v1"
        | "managed_session_commit_v1" => RecordKind::Side,
        known if KNOWN.contains(&known) => RecordKind::Other,
        unknown => RecordKind::Unknown(format!("system: {unknown}")),
    }
}

/// Notes of the agent that are not part of the conversation.
const KNOWN: [&str; 28] = [
    "agent_bootstrap",
    "agent_launch_prompt",
    "agent_mention",
    "agent_message",
    "agent_retry",
    "agent_session_ready",
    "at_command",
    "attribution_snapshot",
    "background_task_completed",
    "branch_checkpoint",
    "code_mode_tool_result",
    "cron",
    "file_history_snapshot",
    "goal_runtime",
    "goal_state",
    "goal_turn_end",
    "notification",
    "omni_recall",
    "rewind",
    "session_approval_mode",
    "session_execution_engine",
    "session_model",
    "session_notes",
    "session_source",
    "slash_command",
    "turn_attempt",
    "turn_result",
    "user_text_elements",
];

/// Returns the note on a response of a model, with its usage.
pub(super) fn model_call<'a>(payload: &Object<'a>) -> Option<Object<'a>> {
    let event = payload.object("uiEvent")?;
    let is_response = event.string("event.name")?.ends_with("api_response");
    let has_usage =
        event.number("input_token_count").is_some() || event.number("output_token_count").is_some();
    (is_response && has_usage).then_some(event)
}
