//! The rows that queries return.

use std::fmt;
use std::path::PathBuf;

use backtrail::{SessionId, Timestamp, WorkspaceId};
use serde::{Serialize, Serializer};

use crate::projects::Project;

/// An amount of money in billionths of a US dollar, so that sums are exact in any order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Money(pub i64);

impl Money {
    /// Converts dollars; amounts beyond nine billion saturate.
    pub fn from_dollars(dollars: f64) -> Self {
        // A float cast saturates and turns NaN into 0.
        Self((dollars * 1e9).round() as i64)
    }

    /// Returns the amount in dollars.
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Adds an amount, saturating.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Serialize for Money {
    /// Writes the amount in dollars.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.dollars())
    }
}

/// Writes a path as text; bytes that are not UTF-8 become U+FFFD.
fn lossy_path<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    let text = path.as_ref().map(|path| path.to_string_lossy());
    text.serialize(serializer)
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${:.4}", self.dollars())
    }
}

/// The usage and cost of model calls. Tokens only include measured ones; calls without
/// usage are counted separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Spending {
    /// The number of calls with known usage or cost.
    pub calls: u64,
    /// Input tokens, without caches.
    pub input_tokens: u64,
    /// Output tokens, including reasoning.
    pub output_tokens: u64,
    /// Tokens written to a cache, including one-hour writes.
    pub cache_write_tokens: u64,
    /// The part of those written for an hour.
    pub cache_write_1h_tokens: u64,
    /// Tokens read from a cache.
    pub cache_read_tokens: u64,
    /// The part of the output that was reasoning.
    pub reasoning_tokens: u64,
    /// The cost of the calls that have a price.
    #[serde(rename = "cost_usd")]
    pub cost: Money,
    /// The number of calls whose cost the provider reported.
    pub reported_calls: u64,
    /// The number of calls without a price.
    pub unpriced_calls: u64,
    /// The number of further calls without usage.
    pub estimated_calls: u64,
    /// The usage of those calls, estimated from the length of their texts.
    pub estimated_tokens: u64,
    /// The number of calls that report fewer output tokens than there were.
    pub lower_bound_calls: u64,
}

impl Spending {
    /// Returns the sum of all measured tokens.
    pub fn tokens(&self) -> u64 {
        self.input_tokens
            .saturating_add(self.output_tokens)
            .saturating_add(self.cache_write_tokens)
            .saturating_add(self.cache_read_tokens)
    }

    /// Adds another spending.
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
        let mut other = *other;
        for (counter, other) in self.counters().into_iter().zip(other.counters()) {
            *counter = with(*counter, *other);
        }
    }

    /// Returns everything that is counted, in the order of the catalogue's columns.
    pub(crate) fn counters(&mut self) -> [&mut u64; 12] {
        [
            &mut self.calls,
            &mut self.input_tokens,
            &mut self.output_tokens,
            &mut self.cache_write_tokens,
            &mut self.cache_write_1h_tokens,
            &mut self.cache_read_tokens,
            &mut self.reasoning_tokens,
            &mut self.reported_calls,
            &mut self.unpriced_calls,
            &mut self.estimated_calls,
            &mut self.estimated_tokens,
            &mut self.lower_bound_calls,
        ]
    }
}

/// A session as listed in the catalogue.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SessionRow {
    /// The session's id.
    pub id: SessionId,
    /// The error if the session is unreadable; it is listed anyway.
    pub error: Option<String>,
    /// The title, by the engine's rule: the one that was given, else that of the first prompt.
    pub title: Option<String>,
    /// The beginning of the first prompt.
    pub begins: Option<String>,
    /// The agent that writes to it.
    pub agent: Option<String>,
    /// The agent that keeps the conversation itself.
    pub belongs_to: Option<String>,
    /// The model that it is set to.
    pub model: Option<String>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Whether it is pinned.
    pub pinned: bool,
    /// The working directory, at its current path as far as known.
    #[serde(serialize_with = "lossy_path")]
    pub workspace: Option<PathBuf>,
    /// The id of the workspace.
    pub workspace_id: Option<WorkspaceId>,
    /// The project of the workspace.
    pub project: Option<Project>,
    /// When it was created.
    pub created_at: Option<Timestamp>,
    /// When it was last active: notes such as a title, a tag or a pin do not count.
    pub updated_at: Option<Timestamp>,
    /// Whether these times are those of the file that it was imported from: approximate.
    pub times_from_file: bool,
    /// Its origin.
    pub family: Family,
    /// The number of messages on its line of history.
    pub messages: u64,
    /// The number of prompts on it.
    pub turns: u64,
    /// The number of tool calls on it.
    pub tool_calls: u64,
    /// The number of commands that ran in it.
    pub runs: u64,
    /// The number of different files that it changed, known from the checkpoints of its turns
    /// and runs and from its calls that edit.
    pub files_changed: u64,
    /// The spending of the session itself, including undone branches; what a fork
    /// inherits counts for its parent.
    pub spending: Spending,
    /// The number of unreadable places in its trails.
    pub damaged: u64,
    /// The seq of its last record.
    pub last_seq: u64,
    /// Its id in the file that it was imported from, if that differs.
    pub original_id: Option<String>,
}

impl SessionRow {
    /// Creates the row of a session of which nothing else is known.
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
            times_from_file: false,
            messages: 0,
            turns: 0,
            tool_calls: 0,
            runs: 0,
            files_changed: 0,
            spending: Spending::default(),
            damaged: 0,
            last_seq: 0,
            original_id: None,
        }
    }
}

/// The origin of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Family {
    /// The id of the first session of the family, which may be gone.
    pub root: String,
    /// The session that it was forked from, and the record if known.
    pub forked_from: Option<(String, Option<u64>)>,
    /// The name of its branch.
    pub branch: Option<String>,
    /// The session whose tool call started it.
    pub spawned_by: Option<String>,
}

/// How spending is grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// By the day of the call, in the caller's time zone.
    Day,
    /// By the ISO week of the call.
    Week,
    /// By the month of the call.
    Month,
    /// By the hour of the day of the call, over all days.
    Hour,
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
    /// By tag of the session; one with two tags is in two groups.
    Tag,
    /// By the git branch at the time of the call.
    Branch,
    /// By tool: for [`Index::tool_calls`](crate::Index::tool_calls). What models used cannot be
    /// divided among the tools that they called.
    Tool,
}

impl Group {
    /// Returns whether groups are times, which have an order.
    pub fn is_time(self) -> bool {
        matches!(self, Self::Day | Self::Week | Self::Month | Self::Hour)
    }
}

/// How often tools were called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct ToolCount {
    /// The number of calls.
    pub calls: u64,
    /// The number of calls that failed.
    pub failed: u64,
    /// The number of calls without a result.
    pub open: u64,
    /// The number of calls whose call and result have a time.
    pub timed: u64,
    /// How long those took from the call to the result, in milliseconds, added up.
    pub ms: u64,
}

impl ToolCount {
    /// Adds other calls.
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.failed += other.failed;
        self.open += other.open;
        self.timed += other.timed;
        self.ms = self.ms.saturating_add(other.ms);
    }
}

/// Calls of tools, in total and by group.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct ToolReport {
    /// The total.
    pub total: ToolCount,
    /// The groups.
    pub by: Vec<ToolRow>,
}

/// The calls of one group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ToolRow {
    /// The group of the first dimension; `None` if unknown.
    pub key: Option<String>,
    /// The group of the second dimension, if there is one.
    pub second: Option<String>,
    /// The calls.
    #[serde(flatten)]
    pub count: ToolCount,
    /// The number of sessions with such calls.
    pub sessions: u64,
}

/// Spending, in total and by group.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct SpendingReport {
    /// The total.
    pub total: Spending,
    /// The number of sessions that contribute.
    pub sessions: u64,
    /// The times of the first and the last call.
    pub span: Option<(Timestamp, Timestamp)>,
    /// The groups: times in order, everything else by cost, the most expensive first.
    pub by: Vec<SpendingRow>,
}

/// The spending of one group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SpendingRow {
    /// The day (`2026-11-15`), week (`2026-W46`), month (`2026-11`) or hour (`14:00`), the model, agent, project or
    /// session; `None` if unknown.
    pub key: Option<String>,
    /// The same in the second dimension, if there is one.
    pub second: Option<String>,
    /// The spending of the group.
    pub spending: Spending,
    /// The number of sessions that contribute.
    pub sessions: u64,
}

impl SpendingRow {
    /// Creates an empty row.
    pub fn new(key: Option<String>) -> Self {
        Self {
            key,
            second: None,
            spending: Spending::default(),
            sessions: 0,
        }
    }
}

/// What a turn cost.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TurnRow {
    /// The trail of its prompt.
    pub trail: u32,
    /// The record of its prompt.
    pub seq: u64,
    /// The beginning of its prompt.
    pub prompt: String,
    /// What its calls spent.
    pub spending: Spending,
}

/// The calls of a model without a price.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UnpricedModel {
    /// The model; `None` if neither the calls nor their sessions name one.
    pub model: Option<String>,
    /// The number of calls.
    pub calls: u64,
    /// Their tokens.
    pub tokens: u64,
}

/// A field whose values can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "snake_case")]
pub enum Field {
    /// The agents that write to sessions.
    Agents,
    /// The projects of sessions.
    Projects,
    /// The models that were called.
    Models,
    /// The tags of sessions.
    Tags,
    /// The ids of sessions, in order.
    Sessions,
}
