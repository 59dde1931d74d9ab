//! What a file says: who said what, in whose conversation.

use std::collections::BTreeMap;
use std::path::PathBuf;

use backtrail::{Json, Message, Timestamp, Usage};

use crate::error::Result;

/// Takes in what a file says.
///
/// [`session`](Self::session) comes first, then [`thread`](Self::thread), then what
/// belongs to that thread until another one is named. A format may come back to a thread.
pub trait Sink {
    /// Names the session that the file is of, as its agent does.
    fn session(&mut self, name: &str) -> Result<()>;

    /// Says whose conversation is told from here on.
    fn thread(&mut self, thread: &Thread) -> Result<()>;

    /// Says what is known of the present thread's session. A field that is set replaces
    /// what was known.
    fn about(&mut self, about: About) -> Result<()>;

    /// Tells what comes next in the present thread.
    fn item(&mut self, item: Item) -> Result<()>;

    /// Takes the present thread back: it goes on behind the item with this key, or from
    /// its beginning.
    fn back_to(&mut self, key: Option<&str>) -> Result<()>;
}

/// A conversation in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Which of those in the file.
    pub which: Which,
    /// Where it comes from.
    pub origin: Origin,
}

impl Thread {
    /// Returns the file's own conversation, begun by itself.
    pub fn main() -> Self {
        Self {
            which: Which::Main,
            origin: Origin::Start,
        }
    }
}

/// Which conversation in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Which {
    /// The file's own, at its end.
    Main,
    /// One that was left: by the key of its first own item.
    Branch(String),
    /// That of a sub-agent: by the agent's id. It is the same session as the one whose
    /// own file has the name [`agent_name`] gives.
    Agent(String),
}

/// Returns the name of a sub-agent's session.
pub fn agent_name(session: &str, agent: &str) -> String {
    format!("{session}/agent/{agent}")
}

/// Where a conversation comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// It began by itself.
    Start,
    /// It goes on from a place in another, and what came before is told there alone.
    Continues {
        /// The other session, as its agent names it; `None` for the main thread of this
        /// file.
        session: Option<String>,
        /// Where.
        after: After,
    },
    /// It began as a copy of another session, and tells what it copied itself.
    Copy {
        /// The other session, as its agent names it.
        session: String,
    },
    /// A tool call of another began it.
    Spawned {
        /// The session that called; `None` for the main thread of this file.
        session: Option<String>,
        /// The call, where it is known.
        tool_use_id: Option<String>,
    },
}

/// A place in another conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum After {
    /// Its beginning: nothing is shared.
    Nothing,
    /// Behind the item with this key.
    Key(String),
    /// Behind the last item whose key is as long as this one and not greater.
    LastUpTo(String),
}

/// What is known of a session beside what was said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// What it is called.
    pub title: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The directory that it works in.
    pub directory: Option<PathBuf>,
    /// When it began.
    pub began: Option<Timestamp>,
    /// When it was last gone on with, where no item says so.
    pub ended: Option<Timestamp>,
    /// What it is called as a copy of another.
    pub branch: Option<String>,
    /// What sub-agent speaks, and the like.
    pub tags: Option<Vec<String>>,
}

impl About {
    /// Takes in what is said later: a field that is set replaces what was known, save that a
    /// session begins once.
    pub(crate) fn learn(&mut self, later: Self) {
        self.title = later.title.or(self.title.take());
        self.model = later.model.or(self.model.take());
        self.directory = later.directory.or(self.directory.take());
        self.began = self.began.or(later.began);
        self.ended = later.ended.or(self.ended);
        self.branch = later.branch.or(self.branch.take());
        self.tags = later.tags.or(self.tags.take());
    }
}

/// Something in a conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// A message.
    Said(Said),
    /// What a model call used, told apart from its messages.
    Used(Used),
    /// A summary in place of what came before.
    Summarised(Summarised),
}

impl Item {
    /// Returns what names it: the same in every reading of the file, and no other's in its
    /// thread.
    pub fn key(&self) -> &str {
        match self {
            Self::Said(said) => &said.key,
            Self::Used(used) => &used.key,
            Self::Summarised(summarised) => &summarised.key,
        }
    }
}

/// A message, and what is known beside it.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    /// What names it: 1 to 256 bytes, no control characters.
    pub key: String,
    /// When, where the file says so.
    pub at: Option<Timestamp>,
    /// The model that said it.
    pub model: Option<String>,
    /// The provider's id of the response: the records of one response share it, and the
    /// last usage among them counts.
    pub response_id: Option<String>,
    /// How long the call took.
    pub duration_ms: Option<u64>,
    /// What the agent says it cost.
    pub cost_usd: Option<f64>,
    /// What was said.
    pub message: Message,
}

impl Said {
    /// Makes a message of which no more is known.
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
}

/// What a model call used.
#[derive(Debug, Clone, PartialEq)]
pub struct Used {
    /// What names it.
    pub key: String,
    /// When.
    pub at: Option<Timestamp>,
    /// The response; messages of it have the same.
    pub response_id: String,
    /// The model.
    pub model: Option<String>,
    /// How much.
    pub usage: Usage,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// What the agent says it cost.
    pub cost_usd: Option<f64>,
}

/// A summary in place of what was said before.
#[derive(Debug, Clone, PartialEq)]
pub struct Summarised {
    /// What names it.
    pub key: String,
    /// When.
    pub at: Option<Timestamp>,
    /// The summary. Blank where the agent keeps it to itself.
    pub summary: String,
    /// How many of the messages before it stay in the context.
    pub keep: u64,
    /// How many messages it stands for that are in no file any more.
    pub covers: Option<u64>,
    /// The model that made it.
    pub model: Option<String>,
    /// What making it used.
    pub usage: Option<Usage>,
}

/// What came of reading a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// The session, as its agent names it.
    pub session: String,
    /// How far the file was read: to the end of its last whole line.
    pub read_to: u64,
    /// What is needed to go on from there. `None`: the file is read whole each time.
    pub state: Option<Json>,
    /// How many lines were read by now, those of earlier readings included.
    pub lines: u64,
    /// What could not be read, this time.
    pub damage: Damages,
    /// Records of kinds that are not known, by kind, this time.
    pub unknown: BTreeMap<String, u64>,
    /// Whether the file ends in half a line, which its agent may still be writing.
    pub unfinished: bool,
}

/// Lines that could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Damages {
    /// How many.
    pub count: u64,
    /// The first of them.
    pub first: Vec<DamagedLine>,
}

/// How many damaged lines are told one by one.
const FIRST: usize = 20;

impl Damages {
    /// Adds one.
    pub fn add(&mut self, damaged: DamagedLine) {
        self.count += 1;
        if self.first.len() < FIRST {
            self.first.push(damaged);
        }
    }
}

/// A line that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedLine {
    /// Its number, from 1.
    pub line: u64,
    /// Where it begins.
    pub byte: u64,
    /// Its length.
    pub bytes: u64,
    /// Why.
    pub reason: String,
}
