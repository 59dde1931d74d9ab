//! Sub-agents: sessions started by a tool call of another session.
//!
//! The new session's opener names the call that started it, and a record on the caller's
//! trail names the session. The record comes first: after a crash it may name a session
//! that was never created, which is ignored.

use serde::{Deserialize, Serialize};

use super::{Session, SessionOptions, SessionReader};
use crate::error::{Error, ErrorKind, Result, quoted};
use crate::ids::SessionId;
use crate::json::body;
use crate::log::tail::append_entry;
use crate::message::Block;
use crate::store::Store;
use crate::time::Timestamp;
use crate::trail::RecordKind;
use crate::trail::origin::SpawnedBy;

/// A session that was started by a tool call of this one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Spawned {
    /// The session of the sub-agent.
    pub session_id: SessionId,
    /// The seq of the call's record.
    pub call: u64,
    /// The id of the call.
    pub tool_use_id: String,
    /// The time of the call.
    pub at: Timestamp,
}

impl Session {
    /// Creates the session of a sub-agent that a tool call of this one starts, and opens
    /// it for writing.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be written.
    pub fn spawn(&self, tool_use_id: &str, options: SessionOptions) -> Result<Self> {
        spawn(&self.0.store, self.id(), tool_use_id, options)
    }
}

impl SessionReader {
    /// Returns the sessions of sub-agents that tool calls of this one started, in order.
    /// It reads the whole history.
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be read; damage is skipped and counted.
    pub fn spawned(&self) -> Result<Vec<Spawned>> {
        let store = &self.log.store;
        let mut all = Vec::new();
        let mut records = self.records()?;
        while let Some(record) = records.next()? {
            if record.kind() != RecordKind::Spawned {
                continue;
            }
            let Ok(spawned) = record.parse::<Spawned>() else {
                continue;
            };
            if !store.files(&spawned.session_id).trails()?.is_empty() {
                all.push(spawned);
            }
        }
        Ok(all)
    }

    /// Finds the record of a tool call, newest first.
    fn find_call(&self, tool_use_id: &str) -> Result<u64> {
        let mut back = self.records_back()?;
        while let Some(record) = back.next()? {
            // An unreadable record contains no call that could be named.
            let Ok(Some(message)) = record.stored_message() else {
                continue;
            };
            let calls = |block: &Block| match block {
                Block::ToolUse(call) => call.id.as_str() == tool_use_id,
                _ => false,
            };
            if message.blocks.iter().any(calls) {
                return Ok(record.seq());
            }
        }
        let what = format!(
            "session {} has no tool call {}",
            self.id(),
            quoted(tool_use_id)
        );
        Err(Error::new(ErrorKind::NotFound, what))
    }
}

/// Creates a session for a tool call of `parent`, even if another process writes to the parent.
pub(crate) fn spawn(
    store: &Store,
    parent: &SessionId,
    tool_use_id: &str,
    options: SessionOptions,
) -> Result<Session> {
    let call = store.read_session(parent)?.find_call(tool_use_id)?;
    options.check()?;
    let id = store.new_session_id()?;
    let spawned = SpawnedBody {
        at: store.now(),
        id: store.new_id()?,
        session_id: &id,
        call,
        tool_use_id,
    };
    append_entry(store, &store.files(parent), "spawned", &body(&spawned)?)?;
    let by = SpawnedBy {
        session_id: parent.clone(),
        seq: call,
        tool_use_id: tool_use_id.to_owned(),
    };
    Session::create_as(store, id, options, Some(by))
}

#[derive(Serialize)]
struct SpawnedBody<'a> {
    at: Timestamp,
    id: uuid::Uuid,
    session_id: &'a SessionId,
    call: u64,
    tool_use_id: &'a str,
}
