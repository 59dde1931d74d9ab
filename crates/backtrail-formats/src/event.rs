//! What a session file says, as events in the order of the conversation.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use backtrail::{Json, Message, Timestamp, Usage};
use serde::Serialize;

use crate::error::Result;

/// Receives the events of a file.
///
/// The file's own conversation is the current thread until another one is named. A format
/// may come back to a thread.
pub trait EventSink {
    /// Makes a thread the current one: the following events belong to it.
    ///
    /// # Errors
    ///
    /// Fails if the receiver does, as do the other methods; the format stops reading then.
    fn thread(&mut self, thread: &Thread) -> Result<()>;

    /// Describes the session of the current thread. A field that is set replaces the
    /// earlier value.
    #[expect(clippy::missing_errors_doc, reason = "see `thread`")]
    fn details(&mut self, details: Details) -> Result<()>;

    /// Adds an event to the current thread.
    #[expect(clippy::missing_errors_doc, reason = "see `thread`")]
    fn event(&mut self, event: Event) -> Result<()>;

    /// Rewinds the current thread: it continues after the event with this key, or from its
    /// beginning.
    #[expect(clippy::missing_errors_doc, reason = "see `thread`")]
    fn rewind_to(&mut self, key: Option<&str>) -> Result<()>;
}

/// A conversation in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Identifies it within the file.
    pub id: ThreadId,
    /// Where it comes from.
    pub origin: Origin,
}

impl Thread {
    /// Returns the file's own conversation.
    pub fn main(origin: Origin) -> Self {
        Self {
            id: ThreadId::Main,
            origin,
        }
    }

    /// Returns an abandoned branch, by the keys of its first own event and of the event of the
    /// main thread that it continues.
    pub(crate) fn branch(first: String, after: Option<String>) -> Self {
        Self {
            id: ThreadId::Branch(first),
            origin: Origin::Continues {
                session: None,
                point: after.map_or(ForkPoint::Start, ForkPoint::After),
            },
        }
    }
}

/// Identifies a conversation within a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ThreadId {
    /// The file's own conversation, as it is at the end of the file.
    Main,
    /// An abandoned branch, by the key of its first own event.
    Branch(String),
    /// A sub-agent's conversation, by the sub-agent's id. It is the same session as the one
    /// whose own file has the name that [`sub_agent_name`] returns.
    SubAgent(String),
}

/// Returns the name of a sub-agent's session.
pub fn sub_agent_name(session: &str, agent: &str) -> String {
    format!("{session}/agent/{agent}")
}

/// The field of a call, or of its result, that names the session that the call started, for
/// agents whose sub-agents do not name the call.
pub(crate) const STARTED_SESSION: &str = "started_session";

/// Where a conversation comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// It has no predecessor.
    Start,
    /// It continues another conversation. The shared events are in the other one only.
    Continues {
        /// The other session, by its agent's name for it; `None` for the main thread of
        /// this file.
        session: Option<String>,
        /// Where the two part.
        point: ForkPoint,
    },
    /// It started as a copy of another session and contains the copied events itself.
    Copy {
        /// The other session, by its agent's name for it.
        session: String,
    },
    /// A tool call of another session started it.
    Spawned {
        /// The calling session; `None` for the main thread of this file.
        session: Option<String>,
        /// The call, if known.
        tool_use_id: Option<String>,
    },
}

/// A position in another conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForkPoint {
    /// Its beginning: nothing is shared.
    Start,
    /// After the event with this key.
    After(String),
    /// After the last event whose key has the length of this one and is not greater.
    AfterLastUpTo(String),
}

/// Describes a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details {
    /// The session's title.
    pub title: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The directory that the session works in.
    pub directory: Option<PathBuf>,
    /// When the session started.
    pub started_at: Option<Timestamp>,
    /// When the session was last changed, if no event says so.
    pub ended_at: Option<Timestamp>,
    /// The name of the branch, for a copy of another session.
    pub branch: Option<String>,
    /// Tags, such as the kind of sub-agent.
    pub tags: Option<Vec<String>>,
}

impl Details {
    /// Adds later details: a field that is set replaces the earlier value, except that a
    /// session starts only once.
    pub(crate) fn update(&mut self, later: Self) {
        self.title = later.title.or(self.title.take());
        self.model = later.model.or(self.model.take());
        self.directory = later.directory.or(self.directory.take());
        self.started_at = self.started_at.or(later.started_at);
        self.ended_at = later.ended_at.or(self.ended_at);
        self.branch = later.branch.or(self.branch.take());
        self.tags = later.tags.or(self.tags.take());
    }
}

/// One event of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A message.
    Message(MessageEvent),
    /// The usage of a model call, apart from its messages.
    Usage(UsageEvent),
    /// A summary that replaces earlier messages.
    Summary(SummaryEvent),
}

impl Event {
    /// Returns the key: the same whenever the file is read, and unique in its thread.
    pub fn key(&self) -> &str {
        match self {
            Self::Message(event) => &event.key,
            Self::Usage(event) => &event.key,
            Self::Summary(event) => &event.key,
        }
    }

    /// Returns the time, if the file has one.
    pub fn at(&self) -> Option<Timestamp> {
        match self {
            Self::Message(event) => event.at,
            Self::Usage(event) => event.at,
            Self::Summary(event) => event.at,
        }
    }
}

/// A message, with facts about the call that produced it.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageEvent {
    /// The key: 1 to 256 bytes, no control characters.
    pub key: String,
    /// The time, if the file has one.
    pub at: Option<Timestamp>,
    /// The model that wrote the message.
    pub model: Option<String>,
    /// The provider's id of the response. The records of one response share it, and the
    /// last usage among them counts.
    pub response_id: Option<String>,
    /// How long the call took.
    pub duration_ms: Option<u64>,
    /// The cost of the call, as reported by the agent.
    pub cost_usd: Option<f64>,
    /// The message.
    pub message: Message,
}

impl MessageEvent {
    /// Creates an event with nothing but a message.
    pub fn new(key: impl Into<String>, message: Message) -> Self {
        Self {
            key: key.into(),
            at: None,
            model: None,
            response_id: None,
            duration_ms: None,
            cost_usd: None,
            message,
        }
    }

    /// Sets the time.
    pub(crate) fn at(mut self, at: Option<Timestamp>) -> Self {
        self.at = at;
        self
    }
}

/// The usage of a model call.
#[derive(Debug, Clone, PartialEq)]
pub struct UsageEvent {
    /// The key.
    pub key: String,
    /// The time, if the file has one.
    pub at: Option<Timestamp>,
    /// The id of the response, shared by its messages.
    pub response_id: String,
    /// The model.
    pub model: Option<String>,
    /// The tokens used.
    pub usage: Usage,
    /// How long the call took.
    pub duration_ms: Option<u64>,
    /// The cost of the call, as reported by the agent.
    pub cost_usd: Option<f64>,
}

impl UsageEvent {
    /// The end of the key of usage that belongs to no place in the conversation: it is added
    /// at the end, once, wherever the file has it.
    pub const ANYWHERE: &'static str = "~usage";
}

/// A summary that replaces earlier messages in the model's context.
#[derive(Debug, Clone, PartialEq)]
pub struct SummaryEvent {
    /// The key.
    pub key: String,
    /// The time, if the file has one.
    pub at: Option<Timestamp>,
    /// The summary. Blank if the agent does not reveal it.
    pub summary: String,
    /// How many of the messages before it stay in the context.
    pub keep: u64,
    /// How many messages it replaces that are no longer in any file.
    pub covers: Option<u64>,
    /// The model that wrote it.
    pub model: Option<String>,
    /// The tokens used for it.
    pub usage: Option<Usage>,
}

impl SummaryEvent {
    /// Creates an event with nothing but a summary.
    pub(crate) fn new(key: impl Into<String>, summary: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            at: None,
            summary: summary.into(),
            keep: 0,
            covers: None,
            model: None,
            usage: None,
        }
    }
}

/// The result of reading a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReadReport {
    /// How far the file was read: to the end of its last complete line.
    pub read_to: u64,
    /// The state from which reading can resume there. `None` if the file is always read
    /// from the beginning.
    pub state: Option<Json>,
    /// How many lines have been read, including earlier readings.
    pub lines: u64,
    /// The lines that could not be read this time.
    pub damage: DamagedLines,
    /// The number of unknown records this time, by type.
    pub unknown: BTreeMap<String, u64>,
    /// Whether the file ends in an incomplete line, which its agent may still be writing.
    pub unfinished: bool,
}

impl ReadReport {
    /// Creates a report on a file that is one JSON value.
    pub(crate) fn for_single_value(bytes: u64) -> Self {
        Self {
            read_to: bytes,
            lines: 1,
            ..Self::default()
        }
    }

    /// Counts an unknown record.
    pub(crate) fn add_unknown(&mut self, kind: &str) {
        // A file with random types must not fill the memory.
        const MAX_TYPES: usize = 1_000;
        let kind: String = kind.chars().take(64).collect();
        if self.unknown.len() < MAX_TYPES || self.unknown.contains_key(&kind) {
            *self.unknown.entry(kind).or_default() += 1;
        } else {
            *self.unknown.entry("(others)".to_owned()).or_default() += 1;
        }
    }

    /// Counts a damaged line, or a part of a file that is one JSON value.
    pub(crate) fn add_damage(&mut self, line: u64, range: &Range<u64>, reason: impl Into<String>) {
        self.damage.add(DamagedLine {
            line,
            byte: range.start,
            bytes: range.end - range.start,
            reason: reason.into(),
        });
    }
}

/// Lines that could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DamagedLines {
    /// How many there are.
    pub count: u64,
    /// The first of them.
    pub first: Vec<DamagedLine>,
}

impl DamagedLines {
    /// How many damaged lines are listed one by one.
    pub(crate) const MAX_LISTED: usize = 20;

    /// Adds a line.
    pub fn add(&mut self, line: DamagedLine) {
        self.count += 1;
        if self.first.len() < Self::MAX_LISTED {
            self.first.push(line);
        }
    }
}

/// A line that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DamagedLine {
    /// The line's number, from 1.
    pub line: u64,
    /// Where the line starts.
    pub byte: u64,
    /// The line's length.
    pub bytes: u64,
    /// Why it could not be read.
    pub reason: String,
}
