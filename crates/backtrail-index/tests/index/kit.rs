//! Stores for the tests of derived data.

use backtrail::{
    Block, Draft, Message, Session, SessionOptions, Store, ToolResult, ToolUse, Usage,
};
use backtrail_index::{Filter, Index, IndexOptions, SessionRow};
use tempfile::TempDir;

/// A store in a directory of its own.
pub(crate) struct Home {
    dir: TempDir,
    pub(crate) store: Store,
}

impl Home {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(dir.path().join("store")).unwrap();
        Self { dir, store }
    }

    pub(crate) fn dir(&self) -> &std::path::Path {
        self.dir.path()
    }

    pub(crate) fn index(&self) -> Index {
        Index::open(&self.store, IndexOptions::new()).unwrap()
    }

    pub(crate) fn session(&self) -> Session {
        self.store
            .create_session(SessionOptions::new().agent("mine"))
            .unwrap()
    }

    /// Lists all sessions with a newly opened index.
    pub(crate) fn rows(&self) -> Vec<SessionRow> {
        self.index().sessions(&Filter::default()).unwrap()
    }

    /// Lists all sessions with a newly built catalogue.
    pub(crate) fn rebuilt_rows(&self) -> Vec<SessionRow> {
        let index = self.index();
        index.rebuild().unwrap();
        index.sessions(&Filter::default()).unwrap()
    }
}

/// Appends a response with usage.
pub(crate) fn respond(session: &Session, id: &str, tokens: (u64, u64), text: &str) -> u64 {
    let reply = Message::assistant([Block::text(text)]).usage(Usage::new(tokens.0, tokens.1));
    session
        .append(Draft::from(reply).model("m-1").response_id(id))
        .unwrap()
}

/// Calls a tool and records its result.
pub(crate) fn call_tool(session: &Session, id: &str, output: &str) {
    let call = ToolUse::new(id, "bash", &serde_json::json!({"command": "ls"})).unwrap();
    session.append(Message::assistant([call.into()])).unwrap();
    let result = ToolResult::ok(output).answers(id, "bash");
    session.append(Message::tool_result(result)).unwrap();
}
