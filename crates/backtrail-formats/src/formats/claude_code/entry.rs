//! A line as the tree needs it: its kind and its parent. The rest of it is not read yet.

use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::json::{Key, Object, not_an_object, string};

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
    /// Known, but not needed.
    Ignored,
    Unknown,
    /// A message without a message.
    Broken,
}

impl LineKind {
    /// Returns whether lines of this kind are part of the tree.
    pub(super) fn is_in_tree(self) -> bool {
        !matches!(
            self,
            Self::Details | Self::Ignored | Self::Unknown | Self::Broken
        )
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

/// Types of lines that are known but not needed.
const IGNORED: [&str; 31] = [
    "agent-color",
    "agent-name",
    "agent-setting",
    "atis-latch",
    "attribution-snapshot",
    "bridge-session",
    "content-replacement",
    "effort",
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
    "worktree",
    "worktree-state",
];

/// Returns a hash of a name.
pub(super) fn hash(name: &str) -> u64 {
    let hash = blake3::hash(name.as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&hash.as_bytes()[..8]);
    u64::from_le_bytes(first)
}

/// Reads a line; the error is the reason why it is not one.
pub(super) fn scan(text: &str, want_session: bool) -> Result<Entry, String> {
    let raw: Raw<'_> = serde_json::from_str(text).map_err(|error| not_an_object(text, &error))?;
    let kind = raw.kind();
    let hashed = |value: Option<&RawValue>| string(value?.get()).map(|name| hash(&name));
    let owned = |value: Option<&RawValue>| string(value?.get()).map(Cow::into_owned);
    let forked = raw.forked.and_then(|raw| {
        let fork: Fork<'_> = serde_json::from_str(raw.get()).ok()?;
        owned(fork.session)
    });
    let unknown = (kind == LineKind::Unknown).then(|| owned(raw.kind));
    Ok(Entry {
        unknown: unknown.map(|name| name.unwrap_or_else(|| "(no type)".to_owned())),
        uuid: hashed(raw.uuid),
        parent: match raw.parent {
            None => Parent::Absent,
            Some(value) if value.get() == "null" => Parent::Null,
            Some(value) => hashed(Some(value)).map_or(Parent::Absent, Parent::Uuid),
        },
        source: hashed(raw.source),
        is_side: is_true(raw.side),
        is_meta: is_true(raw.meta),
        is_result: kind == LineKind::User && raw.is_result(),
        response: match kind {
            LineKind::Assistant => raw.response().map(|id| hash(&id)),
            _ => None,
        },
        session: want_session.then(|| owned(raw.session)).flatten(),
        forked,
        kind,
    })
}

/// The fields of a line that are needed.
#[derive(Default)]
struct Raw<'a> {
    kind: Option<&'a RawValue>,
    subtype: Option<&'a RawValue>,
    uuid: Option<&'a RawValue>,
    parent: Option<&'a RawValue>,
    source: Option<&'a RawValue>,
    side: Option<&'a RawValue>,
    meta: Option<&'a RawValue>,
    summary: Option<&'a RawValue>,
    session: Option<&'a RawValue>,
    forked: Option<&'a RawValue>,
    message: Option<&'a RawValue>,
    /// The field `attachment` or `data`.
    content: Option<&'a RawValue>,
    result: bool,
}

impl<'a> Raw<'a> {
    fn kind(&self) -> LineKind {
        let Some(name) = self.kind.and_then(|raw| string(raw.get())) else {
            return LineKind::Unknown;
        };
        let is_object = self.message.is_some_and(|raw| raw.get().starts_with('{'));
        match name.as_ref() {
            "user" | "assistant" if !is_object => LineKind::Broken,
            "user" if is_true(self.summary) => LineKind::Summary,
            "user" => LineKind::User,
            "assistant" => LineKind::Assistant,
            "system" => match self.subtype.and_then(|raw| string(raw.get())) {
                Some(subtype) if subtype == "compact_boundary" => LineKind::Boundary,
                _ => LineKind::Passive,
            },
            "attachment" if self.content_has(&QUEUED) => LineKind::Queued,
            "progress" if self.content_has(&MESSAGE) && self.content_has(&PROGRESS) => {
                LineKind::Agent
            }
            "attachment" | "progress" => LineKind::Passive,
            "summary" | "custom-title" | "ai-title" | "relocated" => LineKind::Details,
            name if IGNORED.contains(&name) => LineKind::Ignored,
            _ => LineKind::Unknown,
        }
    }

    fn content_has(&self, finder: &Finder<'_>) -> bool {
        let has = |raw: &RawValue| finder.find(raw.get().as_bytes()).is_some();
        self.content.is_some_and(has)
    }

    fn is_result(&self) -> bool {
        let has = |raw: &RawValue| RESULT.find(raw.get().as_bytes()).is_some();
        self.result || self.message.is_some_and(has)
    }

    fn response(&self) -> Option<Cow<'a, str>> {
        Object::from_json(self.message?.get())?.string("id")
    }
}

// A name in quotation marks is part of the JSON, not of a text, where they would be escaped.
static RESULT: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"tool_result\""));
static QUEUED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"queued_command\""));
static MESSAGE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"message\""));
static PROGRESS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("_progress\""));

fn is_true(value: Option<&RawValue>) -> bool {
    value.is_some_and(|raw| raw.get() == "true")
}

/// Reads an object field by field.
macro_rules! fields {
    ($type:ident, $expecting:literal, |$this:ident, $key:ident, $map:ident| $body:expr) => {
        impl<'de> Deserialize<'de> for $type<'de> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Fields;
                impl<'de> Visitor<'de> for Fields {
                    type Value = $type<'de>;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expecting)
                    }

                    fn visit_map<A: MapAccess<'de>>(
                        self,
                        mut $map: A,
                    ) -> Result<Self::Value, A::Error> {
                        let mut $this = $type::default();
                        while let Some(Key($key)) = $map.next_key::<Key<'de>>()? {
                            $body
                        }
                        Ok($this)
                    }
                }
                deserializer.deserialize_map(Fields)
            }
        }
    };
}

fields!(Raw, "a record", |raw, key, map| {
    let place = match key.as_ref() {
        "type" => &mut raw.kind,
        "subtype" => &mut raw.subtype,
        "uuid" => &mut raw.uuid,
        "parentUuid" => &mut raw.parent,
        "isSidechain" => &mut raw.side,
        "isMeta" => &mut raw.meta,
        "isCompactSummary" => &mut raw.summary,
        "sessionId" => &mut raw.session,
        "forkedFrom" => &mut raw.forked,
        "message" => &mut raw.message,
        "attachment" | "data" => &mut raw.content,
        "sourceToolAssistantUUID" => {
            raw.result = true;
            &mut raw.source
        }
        other => {
            raw.result |= other == "toolUseResult";
            map.next_value::<IgnoredAny>()?;
            continue;
        }
    };
    let value = map.next_value()?;
    place.get_or_insert(value);
});

/// The session that a line was copied from.
#[derive(Default)]
struct Fork<'a> {
    session: Option<&'a RawValue>,
}

fields!(Fork, "a session", |fork, key, map| {
    if key == "sessionId" && fork.session.is_none() {
        fork.session = Some(map.next_value()?);
    } else {
        map.next_value::<IgnoredAny>()?;
    }
});
