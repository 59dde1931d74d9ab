//! A store and a workspace with sessions, for the tests of the library.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests look at files and change them"
)]

use std::fs;
use std::path::PathBuf;

use backtrail::{
    Block, Checkpoint, CheckpointOptions, Message, Session, SessionOptions, StoreOptions,
    ToolResult, ToolUse, Workspace,
};
use backtrail_view::library::{Between, Moment, Place};
use tempfile::TempDir;

use super::StoreLibrary;
use crate::ui::Ui;

/// A library over a store of its own, and a directory to change.
pub(super) struct Lab {
    pub(super) library: StoreLibrary,
    pub(super) workspace: Workspace,
    pub(super) dir: TempDir,
}

impl Lab {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("store");
        let store = StoreOptions::new().open_or_create(&home).unwrap();
        let root = dir.path().join("work");
        fs::create_dir(&root).unwrap();
        let workspace = store.workspace(&root).unwrap();
        let ui = Ui::new(false, clap::ColorChoice::Never).store(Some(&home));
        let mut library = StoreLibrary::open(&ui).unwrap();
        library.root = Some(workspace.root().to_owned());
        Self {
            library,
            workspace,
            dir,
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.workspace.root().join(name)
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Returns the text of a file; `-` if there is none.
    pub(super) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|_| "-".to_owned())
    }

    pub(super) fn checkpoint(&self) -> Checkpoint {
        self.workspace.checkpoint(CheckpointOptions::new()).unwrap()
    }

    pub(super) fn session(&self) -> Session {
        let options = SessionOptions::new().workspace(&self.workspace);
        self.library.store.create_session(options).unwrap()
    }

    /// Makes a session with a turn that writes a file, and returns its id.
    pub(super) fn turn(&self, prompt: &str, name: &str, text: &str) -> String {
        let session = self.session();
        self.turn_of(&session, prompt, name, text);
        let id = session.id().to_string();
        session.close().unwrap();
        id
    }

    /// Makes a turn that writes a file, in three records: a prompt, a call and its result.
    pub(super) fn turn_of(&self, session: &Session, prompt: &str, name: &str, text: &str) {
        let turn = session.begin_turn(Message::user_text(prompt)).unwrap();
        let call = ToolUse::new("t1", "edit", "{}").unwrap();
        turn.append(Message::assistant([Block::from(call)]))
            .unwrap();
        // The state before the turn is kept when this returns.
        let tool = turn.begin_tool("t1").unwrap();
        self.write(name, text);
        tool.finish(ToolResult::ok("done")).unwrap();
        turn.end().unwrap();
    }

    /// Makes a session without checkpoints, whose agent edited a file by itself.
    pub(super) fn edited(&self, path: &str, old: &str, new: &str) -> String {
        let options = SessionOptions::new().workspace_root(self.workspace.root());
        let session = self.library.store.create_session(options).unwrap();
        session.append(Message::user_text("edit it")).unwrap();
        let path = self.path(path);
        let arguments = serde_json::json!({
            "file_path": path, "old_string": old, "new_string": new,
        });
        let call = ToolUse::new("call-1", "Edit", &arguments).unwrap();
        session
            .append(Message::assistant([Block::from(call)]))
            .unwrap();
        let id = session.id().to_string();
        session.close().unwrap();
        id
    }

    /// Returns the name of the workspace.
    pub(super) fn id(&self) -> String {
        self.workspace.id().to_string()
    }

    pub(super) fn between(&self, from: &Checkpoint, to: Moment) -> Between {
        Between {
            workspace: self.id(),
            from: at(from),
            to,
        }
    }
}

/// Returns a checkpoint as a moment.
pub(super) fn at(checkpoint: &Checkpoint) -> Moment {
    Moment::Checkpoint(checkpoint.id().to_string())
}

/// Returns a record on the line of its session.
pub(super) fn place(session: &str, seq: u64) -> Place {
    Place {
        session: session.to_owned(),
        seq,
        trail: None,
    }
}
