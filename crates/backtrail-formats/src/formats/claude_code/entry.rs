//! A line as the tree needs it: what kind it is and where it hangs. Messages are not
//! looked into further than that.

use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::lent::{Key, Lent, string};

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// What the user said, a tool gave back or the agent said in the user's name.
    User,
    /// What the model said.
    Assistant,
    /// The summary behind a compact boundary.
    Summary,
    /// A compact boundary.
    Boundary,
    /// A prompt that was typed while the model was at work.
    Queued,
    /// Progress that carries the message of a sub-agent.
    Agent,
    /// Part of the tree, but nothing was said.
    Passive,
    /// A title or a directory.
    About,
    /// Known, and of no interest.
    Nothing,
    /// Not known.
    Unknown,
    /// A message without a message.
    Broken,
}

impl Kind {
    /// Returns whether records of this kind are part of the tree.
    pub(super) fn is_chained(self) -> bool {
        !matches!(
            self,
            Self::About | Self::Nothing | Self::Unknown | Self::Broken
        )
    }

    /// Returns whether something in a conversation is told of it.
    pub(super) fn is_told(self) -> bool {
        matches!(
            self,
            Self::User | Self::Assistant | Self::Summary | Self::Queued
        )
    }
}

/// The parent that a line names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parent {
    /// It says nothing about one.
    Absent,
    /// It says that there is none.
    Null,
    /// The hash of its uuid.
    Is(u64),
}

/// A line.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) kind: Kind,
    /// What it calls itself, where that is not known.
    pub(super) unknown: Option<String>,
    pub(super) uuid: Option<u64>,
    pub(super) parent: Parent,
    /// The message whose call a tool's result answers.
    pub(super) source: Option<u64>,
    pub(super) side: bool,
    pub(super) meta: bool,
    /// Whether it is the result of a tool.
    pub(super) result: bool,
    /// The provider's id of the response.
    pub(super) response: Option<u64>,
    /// `sessionId`, and that of the session it was copied from.
    pub(super) session: Option<String>,
    pub(super) forked: Option<String>,
}

/// Kinds of records that are known, and say nothing of what was said.
const KNOWN: [&str; 31] = [
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

/// Returns a number for a name: nobody finds two names with the same one.
pub(super) fn hash(name: &str) -> u64 {
    let hash = blake3::hash(name.as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&hash.as_bytes()[..8]);
    u64::from_le_bytes(first)
}

/// Reads a line; the error says why it is none.
pub(super) fn scan(text: &str, want_session: bool) -> Result<Entry, String> {
    let raw: Raw<'_> =
        serde_json::from_str(text).map_err(|error| match text.trim_start().starts_with('{') {
            true => error.to_string(),
            false => "not a JSON object".to_owned(),
        })?;
    let kind = raw.kind();
    let hashed = |value: Option<&RawValue>| string(value?.get()).map(|name| hash(&name));
    let owned = |value: Option<&RawValue>| string(value?.get()).map(Cow::into_owned);
    let forked = raw.forked.and_then(|raw| {
        let fork: Fork<'_> = serde_json::from_str(raw.get()).ok()?;
        owned(fork.session)
    });
    let unknown = (kind == Kind::Unknown).then(|| owned(raw.kind));
    Ok(Entry {
        unknown: unknown.map(|name| name.unwrap_or_else(|| "(no type)".to_owned())),
        uuid: hashed(raw.uuid),
        parent: match raw.parent {
            None => Parent::Absent,
            Some(value) if value.get() == "null" => Parent::Null,
            Some(value) => hashed(Some(value)).map_or(Parent::Absent, Parent::Is),
        },
        source: hashed(raw.source),
        side: is_true(raw.side),
        meta: is_true(raw.meta),
        result: kind == Kind::User && raw.is_result(),
        response: match kind {
            Kind::Assistant => raw.response().map(|id| hash(&id)),
            _ => None,
        },
        session: want_session.then(|| owned(raw.session)).flatten(),
        forked,
        kind,
    })
}

/// The fields of a line that are looked at, as they stand.
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
    /// What `attachment` or `data` holds.
    load: Option<&'a RawValue>,
    result: bool,
}

impl<'a> Raw<'a> {
    fn kind(&self) -> Kind {
        let Some(name) = self.kind.and_then(|raw| string(raw.get())) else {
            return Kind::Unknown;
        };
        let is_object = self.message.is_some_and(|raw| raw.get().starts_with('{'));
        match name.as_ref() {
            "user" | "assistant" if !is_object => Kind::Broken,
            "user" if is_true(self.summary) => Kind::Summary,
            "user" => Kind::User,
            "assistant" => Kind::Assistant,
            "system" => match self.subtype.and_then(|raw| string(raw.get())) {
                Some(subtype) if subtype == "compact_boundary" => Kind::Boundary,
                _ => Kind::Passive,
            },
            "attachment" if self.load_has(&QUEUED) => Kind::Queued,
            "progress" if self.load_has(&MESSAGE) && self.load_has(&PROGRESS) => Kind::Agent,
            "attachment" | "progress" => Kind::Passive,
            "summary" | "custom-title" | "ai-title" | "relocated" => Kind::About,
            name if KNOWN.contains(&name) => Kind::Nothing,
            _ => Kind::Unknown,
        }
    }

    fn load_has(&self, finder: &Finder<'_>) -> bool {
        let has = |raw: &RawValue| finder.find(raw.get().as_bytes()).is_some();
        self.load.is_some_and(has)
    }

    fn is_result(&self) -> bool {
        let has = |raw: &RawValue| RESULT.find(raw.get().as_bytes()).is_some();
        self.result || self.message.is_some_and(has)
    }

    fn response(&self) -> Option<Cow<'a, str>> {
        Lent::parse(self.message?.get())?.string("id")
    }
}

// A name in quotation marks is one in the JSON, not in a text: there the mark behind it
// would be escaped.
static RESULT: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"tool_result\""));
static QUEUED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"queued_command\""));
static MESSAGE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"message\""));
static PROGRESS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("_progress\""));

fn is_true(value: Option<&RawValue>) -> bool {
    value.is_some_and(|raw| raw.get() == "true")
}

/// Reads an object field by field: `$field` of each `$name`, the first where it stands
/// more than once.
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
        "attachment" | "data" => &mut raw.load,
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

/// Where a session was copied from.
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
