//! What goose says of a session as a whole.

use std::path::PathBuf;

use backtrail::{Timestamp, Usage};

use super::super::keys::{hash, valid_key};
use super::super::rows::json_column;
use crate::event::{Details, Origin};
use crate::json::Object;

/// A session, from its row, its JSON value or the first line of its file.
#[derive(Debug, Default)]
pub(super) struct SessionInfo {
    pub(super) id: Option<String>,
    parent: Option<String>,
    /// The call that started it.
    call: Option<String>,
    title: Option<String>,
    directory: Option<PathBuf>,
    pub(super) model: Option<String>,
    /// What started it, if not the user.
    kind: Option<String>,
    created: Option<Timestamp>,
    /// What all calls used together.
    pub(super) total: Option<Spent>,
}

/// Tokens and cost. Input does not include the cache.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Spent {
    pub(super) usage: Usage,
    pub(super) cost: Option<f64>,
}

impl SessionInfo {
    /// Reads a session: all three forms have the same names, except for JSON in columns.
    pub(super) fn read(session: &Object<'_>) -> Self {
        let model = json_column(session, "model_config_json")
            .or_else(|| json_column(session, "model_config"))
            .and_then(|json| Object::from_json(&json)?.trimmed("model_name"));
        let delegation = json_column(session, "parent_delegation");
        let kind = session.trimmed("session_type");
        Self {
            id: session.trimmed("id"),
            parent: session.trimmed("parent_session_id"),
            call: delegation.and_then(|json| call_of(&Object::from_json(&json)?)),
            title: title(session),
            directory: session.path("working_dir"),
            model,
            kind: kind.filter(|kind| kind != "user"),
            created: session.string("created_at").and_then(|at| time(&at)),
            total: Spent::read(session, "accumulated_"),
        }
    }

    pub(super) fn origin(&self) -> Origin {
        match &self.parent {
            Some(parent) => Origin::Spawned {
                session: Some(valid_key(parent)),
                tool_use_id: self.call.clone(),
            },
            None => Origin::Start,
        }
    }

    pub(super) fn details(&self) -> Details {
        Details {
            title: self.title.clone(),
            model: self.model.clone(),
            directory: self.directory.clone(),
            started_at: self.created,
            tags: self.kind.clone().map(|kind| vec![kind]),
            ..Details::default()
        }
    }

    /// Returns the id under which the calls of the session are counted. Ids are only unique for
    /// one user and one day.
    pub(super) fn response_id(&self, name: &str) -> String {
        let at = self.created.map(Timestamp::as_millis);
        let all = format!("{name}\n{at:?}");
        format!("goose-{}", hash(all.as_bytes(), 24))
    }
}

impl Spent {
    /// Reads the columns of tokens and cost with this beginning. `None` if there are none.
    pub(super) fn read(row: &Object<'_>, prefix: &str) -> Option<Self> {
        let count = |name: &str| row.number(&format!("{prefix}{name}_tokens"));
        let (input, output) = (count("input"), count("output"));
        let cost = row.float(&format!("{prefix}cost"));
        if input.is_none() && output.is_none() && cost.is_none() {
            return None;
        }
        let read = count("cache_read").unwrap_or(0);
        let written = count("cache_write").unwrap_or(0);
        let cached = read.saturating_add(written);
        let input = input.unwrap_or(0).saturating_sub(cached);
        let usage = Usage::new(input, output.unwrap_or(0))
            .cache_read(read)
            .cache_creation(written);
        Some(Self { usage, cost })
    }

    /// Adds what another call used.
    pub(super) fn add(&mut self, other: &Self) {
        self.usage.add(&other.usage);
        if let Some(cost) = other.cost {
            self.cost = Some(self.cost.unwrap_or(0.0) + cost);
        }
    }

    /// Returns what remains without something that is included.
    pub(super) fn without(&self, part: &Self) -> Self {
        let (all, part_of) = (&self.usage, &part.usage);
        let input = all.input_tokens.saturating_sub(part_of.input_tokens);
        let output = all.output_tokens.saturating_sub(part_of.output_tokens);
        let read = all
            .cache_read_input_tokens
            .saturating_sub(part_of.cache_read_input_tokens);
        let written = all
            .cache_creation_input_tokens
            .saturating_sub(part_of.cache_creation_input_tokens);
        let cost = self.cost.map(|cost| cost - part.cost.unwrap_or(0.0));
        Self {
            usage: Usage::new(input, output)
                .cache_read(read)
                .cache_creation(written),
            // Sums of the same numbers in another order differ a little.
            cost: cost.map(|cost| if cost > 1e-9 { cost } else { 0.0 }),
        }
    }
}

/// Returns the title. Sessions start with names that say nothing.
fn title(session: &Object<'_>) -> Option<String> {
    let says_nothing = |name: &str| {
        matches!(name, "CLI Session" | "New Chat" | "New session")
            || name.starts_with("New session ")
            || session.string("id").is_some_and(|id| id == name)
    };
    let name = |field: &str| {
        let name = session.trimmed(field);
        name.filter(|name| !says_nothing(name))
    };
    name("name").or_else(|| name("description"))
}

/// Returns the call in the note on how a session was started.
fn call_of(delegation: &Object<'_>) -> Option<String> {
    let names = [
        "tool_call_id",
        "toolCallId",
        "tool_request_id",
        "toolRequestId",
        "request_id",
        "requestId",
    ];
    names.into_iter().find_map(|name| delegation.trimmed(name))
}

/// Returns a time as RFC 3339, or as SQLite writes it.
fn time(text: &str) -> Option<Timestamp> {
    let plain = || format!("{}Z", text.replacen(' ', "T", 1)).parse().ok();
    text.parse().ok().or_else(plain)
}
