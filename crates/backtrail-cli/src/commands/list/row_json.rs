//! Sessions as JSON. Lists are long, so a session is written as it is, without values in between.

use backtrail::{SessionId, Store, Timestamp};
use backtrail_index::{SessionRow, Spending};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::families::Family;
use crate::commands::short;
use crate::text::{cost_json, path_json};

/// Each family's first session.
pub(super) struct ListJson<'a>(pub(super) &'a [Family], pub(super) &'a Store);

impl Serialize for ListJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rows = self.0.iter().map(Family::head);
        serializer.collect_seq(rows.map(|row| RowJson::new(row, self.1)))
    }
}

/// Returns a session as JSON: with its counts and costs, or the reason that it cannot be read.
pub(in crate::commands) fn row_json(row: &SessionRow, store: &Store) -> Value {
    json!(RowJson::new(row, store))
}

#[derive(Serialize)]
#[serde(untagged)]
enum RowJson<'a> {
    Readable(Box<Readable<'a>>),
    Unreadable {
        id: &'a SessionId,
        short: String,
        error: &'a str,
    },
}

#[derive(Serialize)]
struct Readable<'a> {
    id: &'a SessionId,
    short: String,
    title: Option<&'a str>,
    begins: Option<&'a str>,
    agent: Option<&'a str>,
    model: Option<&'a str>,
    tags: &'a [String],
    pinned: bool,
    workspace: Option<Value>,
    project: Option<&'a str>,
    remote: Option<&'a str>,
    created_at: Option<Timestamp>,
    updated_at: Option<Timestamp>,
    times_from_file: bool,
    messages: u64,
    turns: u64,
    tool_calls: u64,
    run_count: u64,
    files_changed: u64,
    tokens: Option<Tokens>,
    cost_usd: Value,
    unpriced_calls: u64,
    last_seq: u64,
    damaged: u64,
    forked_from: Option<Fork<'a>>,
    spawned_by: Option<Value>,
    belongs_to: Option<&'a str>,
    original_id: Option<&'a str>,
}

/// The tokens of a session.
#[derive(Serialize)]
struct Tokens {
    input_tokens: u64,
    output_tokens: u64,
    cache_write_tokens: u64,
    cache_read_tokens: u64,
    reasoning_tokens: u64,
    total: u64,
}

#[derive(Serialize)]
struct Fork<'a> {
    parent_session_id: &'a str,
    branch_name: Option<&'a str>,
    seq: Option<u64>,
}

impl<'a> RowJson<'a> {
    fn new(row: &'a SessionRow, store: &Store) -> Self {
        match &row.error {
            Some(error) => Self::Unreadable {
                id: &row.id,
                short: short(&row.id),
                error,
            },
            None => Self::Readable(Box::new(Readable::new(row, store))),
        }
    }
}

impl<'a> Readable<'a> {
    fn new(row: &'a SessionRow, store: &Store) -> Self {
        let project = row.project.as_ref();
        let forked_from = row.family.forked_from.as_ref();
        Self {
            id: &row.id,
            short: short(&row.id),
            title: row.title.as_deref(),
            begins: row.begins.as_deref(),
            agent: row.agent.as_deref(),
            model: row.model.as_deref(),
            tags: &row.tags,
            pinned: row.pinned,
            workspace: row.workspace.as_deref().map(path_json),
            project: project.map(|project| project.name.as_str()),
            remote: project.and_then(|project| project.remote.as_deref()),
            created_at: row.created_at,
            updated_at: row.updated_at,
            times_from_file: row.times_from_file,
            messages: row.messages,
            turns: row.turns,
            tool_calls: row.tool_calls,
            run_count: row.runs,
            files_changed: row.files_changed,
            tokens: Tokens::of(&row.spending),
            cost_usd: cost_json(&row.spending),
            unpriced_calls: row.spending.unpriced_calls,
            last_seq: row.last_seq,
            damaged: row.damaged,
            forked_from: forked_from.map(|(parent, seq)| Fork {
                parent_session_id: parent,
                branch_name: row.family.branch.as_deref(),
                seq: *seq,
            }),
            spawned_by: spawned_by(row, store),
            belongs_to: row.belongs_to.as_deref(),
            original_id: row.original_id.as_deref(),
        }
    }
}

impl Tokens {
    /// Returns the tokens; `None` if no call says what it used.
    fn of(spent: &Spending) -> Option<Self> {
        (spent.calls > 0).then(|| Self {
            input_tokens: spent.input_tokens,
            output_tokens: spent.output_tokens,
            cache_write_tokens: spent.cache_write_tokens,
            cache_read_tokens: spent.cache_read_tokens,
            reasoning_tokens: spent.reasoning_tokens,
            total: spent.tokens(),
        })
    }
}

/// Returns the call that started a session. Only the session knows which one it was.
fn spawned_by(row: &SessionRow, store: &Store) -> Option<Value> {
    let parent = row.family.spawned_by.as_ref()?;
    let info = store.read_session(&row.id).and_then(|reader| reader.info());
    let call = info.ok().and_then(|info| info.spawned_by);
    Some(call.map_or_else(|| json!({"session_id": parent}), |call| json!(call)))
}
