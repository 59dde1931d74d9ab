//! What opencode says of a session as a whole.

use std::path::PathBuf;

use backtrail::Timestamp;

use super::super::keys::valid_key;
use super::super::rows::json_column;
use crate::event::{Details, Origin};
use crate::json::Object;

/// A session, from its row or from its JSON value.
#[derive(Debug, Default)]
pub(super) struct SessionInfo {
    pub(super) id: Option<String>,
    parent: Option<String>,
    /// The session that it is a copy of.
    fork: Option<String>,
    title: Option<String>,
    directory: Option<PathBuf>,
    /// The current model.
    model: Option<String>,
    /// The kind of agent that it started with.
    agent: Option<String>,
    created: Option<Timestamp>,
    /// When it was last changed, in milliseconds.
    pub(super) updated: Option<u64>,
    pub(super) revert: Option<Revert>,
}

/// From where on the conversation is undone, until the next prompt removes it.
#[derive(Debug)]
pub(super) struct Revert {
    pub(super) message: String,
    /// The first part of that message that is undone; without it, all of it is.
    pub(super) part: Option<String>,
}

impl SessionInfo {
    /// Returns what its responses have in common with their copies: a session may be copied as a
    /// fork, but a sub-agent's never is, and several of them work in the same moment.
    pub(super) fn response_scope(&self) -> &str {
        let id = self.id.as_deref().filter(|_| self.parent.is_some());
        id.unwrap_or_default()
    }

    /// Reads a row of the table `session`.
    pub(super) fn from_row(row: &Object<'_>) -> Self {
        let name = |name: &str| row.trimmed(name);
        let model = json_column(row, "model");
        let revert = json_column(row, "revert");
        Self {
            id: name("id"),
            parent: name("parent_id"),
            fork: name("fork_session_id"),
            title: row.trimmed("title").filter(|title| !is_default(title)),
            directory: row.path("directory"),
            model: model.and_then(|json| Object::from_json(&json)?.trimmed("id")),
            agent: name("agent"),
            created: row.time("time_created"),
            updated: row.number("time_updated"),
            revert: revert.and_then(|json| Revert::read(&Object::from_json(&json)?)),
        }
    }

    /// Reads a session's JSON value.
    pub(super) fn from_value(info: &Object<'_>) -> Self {
        let time = info.object("time").unwrap_or_default();
        Self {
            id: info.trimmed("id"),
            parent: info.trimmed("parentID"),
            fork: info.trimmed("forkSessionID"),
            title: info.trimmed("title").filter(|title| !is_default(title)),
            directory: info.path("directory"),
            model: info.object("model").and_then(|model| model.trimmed("id")),
            agent: info.trimmed("agent"),
            created: time.time("created"),
            updated: time.number("updated"),
            revert: info
                .object("revert")
                .and_then(|revert| Revert::read(&revert)),
        }
    }

    /// Returns where it comes from. The call that started it names it, and not the reverse.
    pub(super) fn origin(&self) -> Origin {
        match (&self.parent, &self.fork) {
            (Some(parent), _) => Origin::Spawned {
                session: Some(valid_key(parent)),
                tool_use_id: None,
            },
            (None, Some(session)) => Origin::Copy {
                session: valid_key(session),
            },
            (None, None) => Origin::Start,
        }
    }

    pub(super) fn details(&self) -> Details {
        let is_sub_agent = self.parent.is_some();
        let kind = self.agent.as_ref().filter(|_| is_sub_agent);
        Details {
            title: self.title.clone(),
            model: self.model.clone(),
            directory: self.directory.clone(),
            started_at: self.created,
            tags: kind.map(|kind| vec![kind.clone()]),
            ..Details::default()
        }
    }
}

impl Revert {
    fn read(revert: &Object<'_>) -> Option<Self> {
        Some(Self {
            message: revert.trimmed("messageID")?,
            part: revert.trimmed("partID"),
        })
    }
}

/// Returns whether a title is the one that a session has before it gets its own.
fn is_default(title: &str) -> bool {
    let time = title
        .strip_prefix("New session - ")
        .or_else(|| title.strip_prefix("Child session - "));
    time.is_some_and(|time| time.parse::<Timestamp>().is_ok())
}
