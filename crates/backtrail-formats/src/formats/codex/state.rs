//! What is known of a rollout when it was read so far: small, however long the rollout.

use std::collections::VecDeque;

use backtrail::Json;
use serde::{Deserialize, Serialize};

use super::ahead::Twins;
use super::inherited::Inherited;
use super::tokens::Counting;
use crate::told::{After, Origin};

/// Which shape of state this is.
const VERSION: u32 = 1;

/// How many prompts can be taken back without reading the rollout again.
const SAVED_PROMPTS: usize = 100;
/// How many can be taken back at all, one by one.
const KEPT_PROMPTS: usize = 100_000;
/// How many calls wait for their answer.
const WAITING_CALLS: usize = 32;
/// The longest id or name that is kept.
const MAX_NAME: usize = 128;

/// What is known of a rollout.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) version: u32,
    /// The session's name.
    pub(super) session: String,
    /// The thread's id.
    pub(super) thread: String,
    /// Where it comes from.
    pub(super) from: From,
    /// How many lines were read, and how many records.
    pub(super) lines: u64,
    pub(super) records: u64,
    /// Whether its directory is known.
    pub(super) has_directory: bool,
    /// The newest model.
    pub(super) model: Option<String>,
    /// The newest key, and the newest number among the keys.
    pub(super) last_key: Option<String>,
    pub(super) last_ordinal: Option<u64>,
    pub(super) prompts: Prompts,
    pub(super) calls: Calls,
    pub(super) inherited: Inherited,
    pub(super) counting: Counting,
    pub(super) twins: Twins,
}

impl State {
    /// Reads one that was saved.
    pub(super) fn load(json: &Json) -> Option<Self> {
        let state: Self = serde_json::from_str(json.as_str()).ok()?;
        (state.version == VERSION).then_some(state)
    }

    /// Saves it.
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
pub(super) enum From {
    /// It began by itself.
    #[default]
    Start,
    /// It goes on behind the records of another that come before this number.
    Goes(String, u64),
    /// It is a copy of another.
    Copy(String),
    /// Another one's agent began it.
    Spawned(String),
}

impl From {
    /// Returns it as it is told.
    pub(super) fn origin(&self) -> Origin {
        match self {
            Self::Start => Origin::Start,
            Self::Goes(session, end) => Origin::Continues {
                session: Some(session.clone()),
                after: match end.checked_sub(1).and_then(ordinal_key) {
                    Some(key) => After::LastUpTo(key),
                    None => After::Nothing,
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

    /// Returns whether another rollout came before.
    pub(super) fn follows(&self) -> bool {
        *self != Self::Start
    }
}

/// Returns the key of a record that has a number.
pub(super) fn ordinal_key(ordinal: u64) -> Option<String> {
    (ordinal < 1_000_000_000_000).then(|| format!("{ordinal:012}"))
}

/// Where the prompts are, so that they can be taken back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Prompts {
    /// For each, what came before it.
    before: VecDeque<Option<String>>,
    /// How many more there were before these, and what came before the first.
    forgotten: u64,
    first: Option<String>,
}

impl Prompts {
    /// Adds one, behind an item.
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

    /// Takes back the last so many. Returns what is the last item then: `Some(None)` for
    /// none. `None`: there was no prompt.
    pub(super) fn take_back(&mut self, turns: u64) -> Option<Option<String>> {
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
            // What is left is shorter than what was there.
            let taken = self.before.split_off(usize::try_from(left).unwrap_or(0));
            return taken.into_iter().next();
        }
        self.forgotten -= turns - kept;
        std::mem::take(&mut self.before).into_iter().next()
    }

    /// Returns whether it is not known any more where all of them are.
    pub(super) fn have_forgotten(&self) -> bool {
        self.forgotten > 0
    }

    /// Returns whether so many can be taken back one by one.
    pub(super) fn can_take_back(&self, turns: u64) -> bool {
        !self.have_forgotten() || turns <= self.before.len() as u64
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

/// The tools of the calls that have no answer yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Calls(VecDeque<(String, String)>);

impl Calls {
    /// Adds one.
    pub(super) fn push(&mut self, id: &str, tool: &str) {
        if id.len() > MAX_NAME || tool.len() > MAX_NAME {
            return;
        }
        if self.0.len() == WAITING_CALLS {
            self.0.pop_front();
        }
        self.0.push_back((id.to_owned(), tool.to_owned()));
    }

    /// Takes out the tool of a call that is answered.
    pub(super) fn take(&mut self, id: &str) -> Option<String> {
        let at = self.0.iter().rposition(|(call, _)| call == id)?;
        self.0.remove(at).map(|(_, tool)| tool)
    }
}
