//! The state from which reading resumes: small, however long the rollout.
//!
//! The field names are stored with sessions, so they do not change.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::path::Path;

use backtrail::Json;
use serde::{Deserialize, Serialize};

use super::inherited::Inherited;
use super::lookahead::Duplicates;
use super::names;
use super::usage::UsageCounter;
use crate::event::{Details, ForkPoint, Origin};
use crate::formats::keys::{push_limited, valid_key};
use crate::json::Object;

/// The version of the state.
const VERSION: u32 = 1;

/// How many prompts can be rolled back without reading the rollout again.
const SAVED_PROMPTS: usize = 100;
/// How many can be rolled back at all, one by one.
const KEPT_PROMPTS: usize = 100_000;
/// How many calls without a result are remembered.
const MAX_CALLS: usize = 32;
/// The longest id or name that is kept.
const MAX_NAME: usize = 128;

/// What is known about a rollout so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CodexState {
    pub(super) version: u32,
    /// The session's name.
    pub(super) session: String,
    /// The thread's id.
    pub(super) thread: String,
    /// Where it comes from.
    pub(super) from: Predecessor,
    /// How many lines and records were read.
    pub(super) lines: u64,
    pub(super) records: u64,
    /// Whether the directory is known.
    pub(super) has_directory: bool,
    /// The last model.
    pub(super) model: Option<String>,
    /// The last key, and the last number among the keys.
    pub(super) last_key: Option<String>,
    pub(super) last_ordinal: Option<u64>,
    pub(super) prompts: Prompts,
    pub(super) calls: Calls,
    /// Those of them that failed.
    #[serde(default)]
    pub(super) failed: VecDeque<String>,
    pub(super) inherited: Inherited,
    pub(super) counting: UsageCounter,
    #[serde(rename = "twins")]
    pub(super) duplicates: Duplicates,
}

impl CodexState {
    /// Remembers that a call failed, if it has no result yet.
    pub(super) fn add_failed(&mut self, id: String) {
        if self.calls.contains(&id) {
            push_limited(&mut self.failed, id, MAX_CALLS);
        }
    }

    /// Returns whether a call failed that has a result now.
    pub(super) fn remove_failed(&mut self, id: &str) -> bool {
        let before = self.failed.len();
        self.failed.retain(|call| call != id);
        self.failed.len() < before
    }

    /// Loads a saved state.
    pub(super) fn load(json: &Json) -> Option<Self> {
        let state: Self = json.parse().ok()?;
        (state.version == VERSION).then_some(state)
    }

    /// Saves the state.
    pub(super) fn save(&self) -> Option<Json> {
        let saved = Self {
            version: VERSION,
            prompts: self.prompts.last(SAVED_PROMPTS),
            ..self.clone()
        };
        Json::from_value(&saved).ok()
    }
}

/// Where a session comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Predecessor {
    /// It has none.
    #[default]
    Start,
    /// It continues another one, after the records before this number.
    #[serde(rename = "Goes")]
    Continues(String, u64),
    /// It is a copy of another.
    Copy(String),
    /// Another session's agent started it.
    Spawned(String),
}

impl Predecessor {
    /// Returns the origin of the session's conversation.
    pub(super) fn origin(&self) -> Origin {
        match self {
            Self::Start => Origin::Start,
            Self::Continues(session, end) => Origin::Continues {
                session: Some(session.clone()),
                point: match end.checked_sub(1).and_then(ordinal_key) {
                    Some(key) => ForkPoint::AfterLastUpTo(key),
                    None => ForkPoint::Start,
                },
            },
            Self::Copy(session) => Origin::Copy {
                session: session.clone(),
            },
            Self::Spawned(session) => Origin::Spawned {
                session: Some(session.clone()),
                tool_use_id: None,
            },
        }
    }

    /// Returns whether there is one.
    pub(super) fn exists(&self) -> bool {
        *self != Self::Start
    }
}

/// Returns the key of a record with a number.
pub(super) fn ordinal_key(ordinal: u64) -> Option<String> {
    (ordinal < 1_000_000_000_000).then(|| format!("{ordinal:012}"))
}

/// Where the prompts are, so that turns can be rolled back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Prompts {
    /// The key before each.
    before: VecDeque<Option<String>>,
    /// How many earlier ones there were, and the key before the first.
    forgotten: u64,
    first: Option<String>,
}

impl Prompts {
    /// Adds a prompt after a key.
    pub(super) fn push(&mut self, before: Option<&str>) {
        if self.len() == 0 {
            self.first = before.map(str::to_owned);
        }
        self.before.push_back(before.map(str::to_owned));
        if self.before.len() > KEPT_PROMPTS {
            self.before.pop_front();
            self.forgotten += 1;
        }
    }

    /// Rolls turns back. Returns the last key then, `Some(None)` if there is none; `None` if
    /// there was no prompt.
    pub(super) fn roll_back(&mut self, turns: u64) -> Option<Option<String>> {
        let turns = turns.min(self.len());
        if turns == 0 {
            return None;
        }
        if turns == self.len() {
            self.before.clear();
            self.forgotten = 0;
            return Some(self.first.take());
        }
        let kept = self.before.len() as u64;
        if let Some(left) = kept.checked_sub(turns) {
            let removed = self.before.split_off(usize::try_from(left).unwrap_or(0));
            return removed.into_iter().next();
        }
        self.forgotten -= turns - kept;
        std::mem::take(&mut self.before).into_iter().next()
    }

    /// Returns whether the places of some are not known any more.
    pub(super) fn are_incomplete(&self) -> bool {
        self.forgotten > 0
    }

    /// Returns whether so many turns can be rolled back one by one.
    pub(super) fn can_roll_back(&self, turns: u64) -> bool {
        !self.are_incomplete() || turns <= self.before.len() as u64
    }

    pub(super) fn len(&self) -> u64 {
        self.forgotten + self.before.len() as u64
    }

    fn last(&self, most: usize) -> Self {
        let skipped = self.before.len().saturating_sub(most);
        Self {
            before: self.before.iter().skip(skipped).cloned().collect(),
            forgotten: self.forgotten + skipped as u64,
            first: self.first.clone(),
        }
    }
}

/// The tools of calls that have no result yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Calls(VecDeque<(String, String)>);

impl Calls {
    /// Adds a call.
    pub(super) fn push(&mut self, id: &str, tool: &str) {
        if id.len() <= MAX_NAME && tool.len() <= MAX_NAME {
            push_limited(&mut self.0, (id.to_owned(), tool.to_owned()), MAX_CALLS);
        }
    }

    /// Returns whether a call has no result yet.
    pub(super) fn contains(&self, id: &str) -> bool {
        self.0.iter().any(|(call, _)| call == id)
    }

    /// Removes a call that has a result, and returns its tool.
    pub(super) fn remove(&mut self, id: &str) -> Option<String> {
        let at = self.0.iter().rposition(|(call, _)| call == id)?;
        self.0.remove(at).map(|(_, tool)| tool)
    }
}

/// Reads the first record: a `session_meta`, the head of an old rollout, or anything else.
/// `copied` is the thread whose head comes next.
pub(super) fn begin(
    record: &Object<'_>,
    path: &Path,
    copied: Option<String>,
) -> (CodexState, Details) {
    let kind = record.string("type");
    let is_meta = kind.as_deref() == Some("session_meta");
    // The oldest have no envelope: the record itself is the head.
    let is_head = kind.is_none() && record.has("id") && record.has("timestamp");
    let head = match (is_meta, is_head) {
        (true, _) => record.object("payload").unwrap_or_default(),
        (_, true) => record.clone(),
        _ => Object::default(),
    };
    let (thread_in_name, rollout) = names::ids_in(path);
    let thread = head.non_blank("id").or(head.non_blank("session_id"));
    let thread = thread.or(thread_in_name.map(Cow::Owned));
    let thread = thread.map_or_else(|| hashed_name(record), valid_key);
    let session = match rollout {
        Some(rollout) => format!("{thread}_{rollout}"),
        None => thread.clone(),
    };
    let started_at = head.time("timestamp").or_else(|| record.time("timestamp"));
    let directory = head.path("cwd");
    let is_copy = copied.as_deref().is_some_and(|copied| copied != thread);
    let from = predecessor(&head, &thread, copied);
    let mut state = CodexState {
        inherited: match inherited(&head, &from) {
            Some(inherited) => inherited,
            None => Inherited::open(&thread, started_at, is_copy),
        },
        has_directory: directory.is_some(),
        session,
        thread,
        ..CodexState::default()
    };
    state.counting.follows = from.exists();
    state.from = from;
    let details = Details {
        directory,
        started_at,
        tags: tags(&head),
        ..Details::default()
    };
    (state, details)
}

/// Returns where a session comes from.
fn predecessor(head: &Object<'_>, thread: &str, copied: Option<String>) -> Predecessor {
    let forked = head.non_blank("forked_from_id").map(valid_key);
    if let Some(parent) = spawned_by(head, forked.as_deref(), thread) {
        return Predecessor::Spawned(parent);
    }
    let base = head.object("history_base");
    if let Some(base) = base
        && let (Some(rollout), Some(end)) = (
            base.non_blank("thread_id"),
            base.number("end_ordinal_exclusive"),
        )
    {
        // A thread that was rolled back has several rollouts; the first has its id.
        let owner = forked.as_deref().unwrap_or(thread);
        let rollout = valid_key(rollout);
        return match rollout == owner {
            true => Predecessor::Continues(rollout, end),
            false => Predecessor::Continues(format!("{owner}_{rollout}"), end),
        };
    }
    let parent = forked.or(copied.map(valid_key));
    match parent.filter(|parent| parent != thread) {
        Some(parent) => Predecessor::Copy(parent),
        None => Predecessor::Start,
    }
}

/// Returns the thread whose agent started this one.
fn spawned_by(head: &Object<'_>, forked: Option<&str>, thread: &str) -> Option<String> {
    let named = head.non_blank("parent_thread_id").or_else(|| {
        let spawn = subagent(head)?.object("thread_spawn")?;
        spawn.non_blank("parent_thread_id")
    });
    let is_agent = || {
        let source = head.string("thread_source");
        subagent(head).is_some() || source.is_some_and(|source| source == "subagent")
    };
    let parent = match named {
        Some(parent) => valid_key(parent),
        None if !is_agent() => return None,
        // Otherwise it is the session that the thread belongs to.
        None => match forked {
            Some(parent) => parent.to_owned(),
            None => valid_key(head.non_blank("session_id")?),
        },
    };
    (parent != thread).then_some(parent)
}

/// Returns the description of a sub-agent; empty if the head only says that it is one.
fn subagent<'a>(head: &Object<'a>) -> Option<Object<'a>> {
    let source = head.object("source")?;
    source
        .has("subagent")
        .then(|| source.object("subagent").unwrap_or_default())
}

/// Returns which part of a rollout is copied. `None` if its records must show it.
fn inherited(head: &Object<'_>, from: &Predecessor) -> Option<Inherited> {
    if let Some(start) = head.number("subagent_history_start_ordinal") {
        return Some(Inherited::Before(start));
    }
    // If the shared part is in the other file, nothing is copied.
    let is_own =
        matches!(from, Predecessor::Start | Predecessor::Continues(..)) || head.has("history_base");
    is_own.then_some(Inherited::Over)
}

/// Returns the kind of agent.
fn tags(head: &Object<'_>) -> Option<Vec<String>> {
    let agent = subagent(head);
    let spawn = agent.and_then(|agent| agent.object("thread_spawn"));
    let field = |name: &str| {
        let tag = head.non_blank(name);
        short_tag(tag.or_else(|| spawn.as_ref()?.non_blank(name)))
    };
    let mut tags: Vec<String> = ["agent_role", "agent_nickname"]
        .into_iter()
        .filter_map(field)
        .collect();
    if tags.is_empty() {
        // A review, a compaction, a guardian.
        let source = head.object("source");
        let named = source.and_then(|source| source.non_blank("subagent"));
        let other = || subagent(head)?.non_blank("other");
        tags.extend(short_tag(named.or_else(other)));
    }
    (!tags.is_empty()).then_some(tags)
}

fn short_tag(tag: Option<Cow<'_, str>>) -> Option<String> {
    tag.filter(|tag| tag.len() <= MAX_NAME).map(Cow::into_owned)
}

/// Returns a name for a session that has none, from its first record.
fn hashed_name(record: &Object<'_>) -> String {
    let mut hasher = blake3::Hasher::new();
    for (name, json) in record.fields() {
        hasher.update(name.as_bytes());
        hasher.update(json.as_bytes());
    }
    format!("unnamed-{}", &hasher.finalize().to_hex()[..16])
}
