//! A line as the tree needs it: its kind and its parent. The rest of it is not read yet.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::names::Naming;
use crate::formats::keys::hash_name as hash;
use crate::json::Object;

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineKind {
    /// A prompt, a tool result or a message of the agent in the user's name.
    User,
    /// A message of the model.
    Assistant,
    /// The summary after a compact boundary.
    Summary,
    /// A compact boundary.
    Boundary,
    /// A prompt that was typed while the model was working.
    Queued,
    /// Progress that carries the message of a sub-agent.
    Agent,
    /// Part of the tree, but not of the conversation.
    Passive,
    /// A title or a directory.
    Details,
    /// The agent's own cost.
    Cost,
    /// Known, but not needed.
    Ignored,
    Unknown,
    /// A message without a message.
    Broken,
}

impl LineKind {
    /// Returns whether lines of this kind are part of the tree.
    pub(super) fn is_in_tree(self) -> bool {
        self.is_needed() && !matches!(self, Self::Details | Self::Cost)
    }

    /// Returns whether lines of this kind say anything that is needed.
    pub(super) fn is_needed(self) -> bool {
        !matches!(self, Self::Ignored | Self::Unknown | Self::Broken)
    }

    /// Returns whether lines of this kind are events.
    pub(super) fn is_event(self) -> bool {
        matches!(
            self,
            Self::User | Self::Assistant | Self::Summary | Self::Queued
        )
    }
}

/// The parent of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parent {
    /// The line does not have the field.
    Absent,
    /// The line says that there is none.
    Null,
    /// The hash of its uuid.
    Uuid(u64),
}

/// A line.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) kind: LineKind,
    /// Its type, if that is unknown.
    pub(super) unknown: Option<String>,
    pub(super) uuid: Option<u64>,
    pub(super) parent: Parent,
    /// For the summary of a conversation: its last message.
    pub(super) leaf: Option<u64>,
    /// The message with the call that a tool result belongs to.
    pub(super) source: Option<u64>,
    /// Whether it belongs to a sub-agent.
    pub(super) is_side: bool,
    pub(super) is_meta: bool,
    pub(super) is_result: bool,
    /// The provider's id of the response.
    pub(super) response: Option<u64>,
    /// The session, and the one that the line was copied from.
    pub(super) session: Option<String>,
    pub(super) forked: Option<String>,
}

impl Entry {
    /// Corrects what the line of a sub-agent's own file says: its conversation is the file's,
    /// and a cost there is not its own.
    pub(super) fn belongs_to(&mut self, naming: &Naming) {
        if naming.is_agent() {
            self.is_side = false;
            if self.kind == LineKind::Cost {
                self.kind = LineKind::Ignored;
            }
        }
    }
}

/// Types of lines that are known but not needed.
const IGNORED: [&str; 36] = [
    "agent-color",
    "agent-name",
    "agent-setting",
    "api-request",
    "api-request-blob",
    "api-request-shape",
    "atis-latch",
    "attribution-snapshot",
    "bridge-session",
    "content-replacement",
    "effort",
    "file-history-delta",
    "file-history-snapshot",
    "frame-link",
    "last-prompt",
    "marble-origami-commit",
    "marble-origami-snapshot",
    "mode",
    "output-style",
    "permission-mode",
    "plan-mode",
    "pr-link",
    "prompt-suggestion",
    "queue-operation",
    "rate_limit_event",
    "result",
    "saved_hook_context",
    "speculation-accept",
    "started",
    "stream_event",
    "tag",
    "task-summary",
    "todo",
    "tools-used",
    "worktree",
    "worktree-state",
];

/// Reads a line; the error is the reason why it is not one.
pub(super) fn scan(text: &str, want_session: bool) -> Result<Entry, String> {
    let line = Object::parse(text)?;
    let kind = kind(&line);
    let hashed = |name: &str| line.string(name).map(|name| hash(&name));
    let forked = line.object("forkedFrom");
    let message = || line.object("message");
    Ok(Entry {
        unknown: (kind == LineKind::Unknown).then(|| {
            line.string("type")
                .unwrap_or("(no type)".into())
                .into_owned()
        }),
        uuid: hashed("uuid"),
        parent: match line.get("parentUuid") {
            Some("null") => Parent::Null,
            _ => hashed("parentUuid").map_or(Parent::Absent, Parent::Uuid),
        },
        leaf: match kind {
            LineKind::Details => hashed("leafUuid"),
            _ => None,
        },
        source: hashed("sourceToolAssistantUUID"),
        is_side: line.is_true("isSidechain"),
        is_meta: line.is_true("isMeta"),
        is_result: kind == LineKind::User && is_result(&line),
        response: match kind {
            LineKind::Assistant => message().and_then(|message| message.string("id")),
            _ => None,
        }
        .map(|id| hash(&id)),
        session: match want_session {
            true => line.string("sessionId").map(Cow::into_owned),
            false => None,
        },
        forked: forked
            .and_then(|fork| fork.string("sessionId"))
            .map(Cow::into_owned),
        kind,
    })
}

fn kind(line: &Object<'_>) -> LineKind {
    let Some(name) = line.string("type") else {
        return LineKind::Unknown;
    };
    let is_object = || line.get("message").is_some_and(|it| it.starts_with('{'));
    let attached = line.get("attachment").or_else(|| line.get("data"));
    let has = |finder: &Finder<'_>| attached.is_some_and(|it| finder.find(it.as_bytes()).is_some());
    match name.as_ref() {
        "user" | "assistant" if !is_object() => LineKind::Broken,
        "user" if line.is_true("isCompactSummary") => LineKind::Summary,
        "user" => LineKind::User,
        "assistant" => LineKind::Assistant,
        "system" => match line.string("subtype").as_deref() {
            Some("compact_boundary") => LineKind::Boundary,
            _ => LineKind::Passive,
        },
        "attachment" if has(&QUEUED) => LineKind::Queued,
        "progress" if has(&MESSAGE) && has(&PROGRESS) => LineKind::Agent,
        "attachment" | "progress" => LineKind::Passive,
        "cost-state" => LineKind::Cost,
        "summary" | "custom-title" | "ai-title" | "relocated" => LineKind::Details,
        name if IGNORED.contains(&name) => LineKind::Ignored,
        _ => LineKind::Unknown,
    }
}

fn is_result(line: &Object<'_>) -> bool {
    let has = |message: &str| RESULT.find(message.as_bytes()).is_some();
    line.get("sourceToolAssistantUUID").is_some()
        || line.get("toolUseResult").is_some()
        || line.get("message").is_some_and(has)
}

// A name in quotation marks is part of the JSON, not of a text, where they would be escaped.
static RESULT: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"tool_result\""));
static QUEUED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"queued_command\""));
static MESSAGE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"message\""));
static PROGRESS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("_progress\""));
