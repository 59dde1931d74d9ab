//! What the catalogue and the ledger answer.

use std::fmt;
use std::path::PathBuf;

use backtrail::{SessionId, Timestamp, WorkspaceId};

use crate::projects::Project;

/// An amount of money in billionths of a US dollar: sums are exact in whatever order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Money(pub i64);

impl Money {
    /// Makes an amount of dollars; more than nine billion, or less, is that much.
    pub fn from_dollars(dollars: f64) -> Self {
        // A cast of a float saturates, and makes 0 of what is no number.
        Self((dollars * 1e9).round() as i64)
    }

    /// Returns the amount in dollars.
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Adds an amount; a sum that is too large is the largest there is.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${:.4}", self.dollars())
    }
}

/// What model calls used and cost. Only what was measured is in the tokens; calls of
/// which nothing is known but their text are apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Spending {
    /// How many calls say what they used or cost.
    pub calls: u64,
    /// Tokens read, caches aside.
    pub input_tokens: u64,
    /// Tokens written, reasoning included.
    pub output_tokens: u64,
    /// Tokens written to a cache, those for an hour included.
    pub cache_write_tokens: u64,
    /// Of those, written for an hour.
    pub cache_write_1h_tokens: u64,
    /// Tokens read from a cache.
    pub cache_read_tokens: u64,
    /// Of the tokens written, those of reasoning.
    pub reasoning_tokens: u64,
    /// What the calls cost that have a price.
    pub cost: Money,
    /// How many of the calls have a cost that their provider said.
    pub reported_calls: u64,
    /// How many of the calls have no price.
    pub unpriced_calls: u64,
    /// How many further calls say nothing of what they used.
    pub estimated_calls: u64,
    /// What those used, estimated by the length of their texts.
    pub estimated_tokens: u64,
    /// How many of the calls tell fewer output tokens than there were.
    pub lower_bound_calls: u64,
}

impl Spending {
    /// Returns all tokens that were measured.
    pub fn tokens(&self) -> u64 {
        self.input_tokens
            .saturating_add(self.output_tokens)
            .saturating_add(self.cache_write_tokens)
            .saturating_add(self.cache_read_tokens)
    }

    /// Adds what other calls used and cost.
    pub fn add(&mut self, other: &Self) {
        self.cost = self.cost.plus(other.cost);
        self.combine(other, u64::saturating_add);
    }

    /// Removes what was added before.
    pub fn remove(&mut self, other: &Self) {
        self.cost = self.cost.plus(Money(other.cost.0.saturating_neg()));
        self.combine(other, u64::saturating_sub);
    }

    fn combine(&mut self, other: &Self, with: impl Fn(u64, u64) -> u64) {
        let counters = [
            (&mut self.calls, other.calls),
            (&mut self.input_tokens, other.input_tokens),
            (&mut self.output_tokens, other.output_tokens),
            (&mut self.cache_write_tokens, other.cache_write_tokens),
            (&mut self.cache_write_1h_tokens, other.cache_write_1h_tokens),
            (&mut self.cache_read_tokens, other.cache_read_tokens),
            (&mut self.reasoning_tokens, other.reasoning_tokens),
            (&mut self.reported_calls, other.reported_calls),
            (&mut self.unpriced_calls, other.unpriced_calls),
            (&mut self.estimated_calls, other.estimated_calls),
            (&mut self.estimated_tokens, other.estimated_tokens),
            (&mut self.lower_bound_calls, other.lower_bound_calls),
        ];
        for (counter, other) in counters {
            *counter = with(*counter, other);
        }
    }
}

/// A session as the catalogue knows it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SessionRow {
    /// Its id.
    pub id: SessionId,
    /// Why it cannot be read, if it cannot: it is listed all the same.
    pub error: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// The beginning of its first prompt.
    pub begins: Option<String>,
    /// The agent that speaks in it.
    pub agent: Option<String>,
    /// The agent that keeps the conversation itself.
    pub belongs_to: Option<String>,
    /// The model that it is set to.
    pub model: Option<String>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Whether it is pinned.
    pub pinned: bool,
    /// The directory that it works in: where it is now, as far as that is known.
    pub workspace: Option<PathBuf>,
    /// The workspace.
    pub workspace_id: Option<WorkspaceId>,
    /// The project of that workspace.
    pub project: Option<Project>,
    /// When it began.
    pub created_at: Option<Timestamp>,
    /// When its last record was made.
    pub updated_at: Option<Timestamp>,
    /// What it comes from.
    pub family: Family,
    /// How many messages its line of history has.
    pub messages: u64,
    /// How many prompts there are on it.
    pub turns: u64,
    /// How often tools were called on it.
    pub tool_calls: u64,
    /// How many files its turns and runs changed, added up.
    pub files_changed: u64,
    /// What was spent in the session itself, on branches that were taken back, too; what
    /// a fork inherits counts for the one it was forked from.
    pub spending: Spending,
    /// How many places of its trails could not be read.
    pub damaged: u64,
    /// The seq of its last record.
    pub last_seq: u64,
    /// The id that it had in the file it was taken in from, where that is another.
    pub original_id: Option<String>,
}

impl SessionRow {
    /// Makes the row of a session of which nothing else is known.
    pub fn new(id: SessionId) -> Self {
        Self {
            family: Family {
                root: id.to_string(),
                ..Family::default()
            },
            id,
            error: None,
            title: None,
            begins: None,
            agent: None,
            belongs_to: None,
            model: None,
            tags: Vec::new(),
            pinned: false,
            workspace: None,
            workspace_id: None,
            project: None,
            created_at: None,
            updated_at: None,
            messages: 0,
            turns: 0,
            tool_calls: 0,
            files_changed: 0,
            spending: Spending::default(),
            damaged: 0,
            last_seq: 0,
            original_id: None,
        }
    }
}

/// What a session comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Family {
    /// The id of the session that it all began with, which may be gone.
    pub root: String,
    /// The session that it was forked from, and the record, where that is known.
    pub forked_from: Option<(String, Option<u64>)>,
    /// The name of the branch that it is.
    pub branch: Option<String>,
    /// The session whose tool call began it.
    pub spawned_by: Option<String>,
}

/// By what spending is told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Group {
    /// By the day of the call, in the time zone of the one who asks.
    Day,
    /// By the month of the call.
    Month,
    /// By model.
    Model,
    /// By agent.
    Agent,
    /// By project.
    Project,
    /// By session.
    Session,
    /// By family of sessions.
    Family,
}

/// What was spent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SpendingReport {
    /// All of it.
    pub total: Spending,
    /// How many sessions have a part in it.
    pub sessions: u64,
    /// When the first and the last of the calls were made.
    pub span: Option<(Timestamp, Timestamp)>,
    /// The parts: days and months the oldest first, everything else the most expensive
    /// first.
    pub by: Vec<SpendingRow>,
}

/// What was spent on one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpendingRow {
    /// The day (`2026-11-15`), the month (`2026-11`), the model, agent, project or session;
    /// `None` where it is not known.
    pub key: Option<String>,
    /// What was spent on it.
    pub spending: Spending,
    /// How many sessions have a part in it.
    pub sessions: u64,
}

impl SpendingRow {
    /// Makes the row of something that nothing was spent on yet.
    pub fn new(key: Option<String>) -> Self {
        Self {
            key,
            spending: Spending::default(),
            sessions: 0,
        }
    }
}

/// What values can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Field {
    /// The agents that speak in sessions.
    Agents,
    /// The projects that sessions belong to.
    Projects,
    /// The models that were called.
    Models,
    /// The tags of sessions.
    Tags,
    /// The ids of sessions, in order.
    Sessions,
}
