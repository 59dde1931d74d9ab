//! A store in a temporary directory, for the tests of what the screens ask.

use std::path::{Path, PathBuf};

use backtrail::{
    Block, Durability, Message, Session, SessionId, SessionOptions, Store, ToolResult, ToolUse,
};
use backtrail_view::library::{Line, Part};
use clap::ColorChoice;
use serde_json::json;
use tempfile::TempDir;

use super::StoreLibrary;
use crate::ui::Ui;

/// A store, and a directory to work in.
pub(super) struct Fixture {
    pub(super) library: StoreLibrary,
    pub(super) root: PathBuf,
    dir: TempDir,
}

impl Fixture {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("shop");
        make_directory(&root);
        let store = Store::open_or_create(dir.path().join("store")).unwrap();
        Self {
            library: StoreLibrary::new(store, Some(root.clone()), quiet()),
            root,
            dir,
        }
    }

    /// Makes a directory beside the one to work in.
    pub(super) fn directory(&self, name: &str) -> PathBuf {
        let directory = self.dir.path().join(name);
        make_directory(&directory);
        directory
    }

    /// Creates a session that works here.
    pub(super) fn session(&self, options: SessionOptions) -> Session {
        let options = options.workspace_root(&self.root);
        self.create(options)
    }

    /// Opens the same store again, as another process does.
    pub(super) fn again(&self) -> StoreLibrary {
        let store = Store::open(self.library.store.root()).unwrap();
        StoreLibrary::new(store, Some(self.root.clone()), quiet())
    }

    /// Damages the first trail of a session.
    #[expect(clippy::disallowed_methods, reason = "the test damages a file")]
    pub(super) fn damage(&self, id: &SessionId) {
        let dir = self.library.store.read_session(id).unwrap().dir();
        let mut trails = std::fs::read_dir(dir).unwrap().map(|it| it.unwrap().path());
        let trail = trails.find(|it| it.extension().is_some_and(|it| it == "jsonl"));
        let trail = trail.unwrap();
        let mut bytes = std::fs::read(&trail).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle..middle + 8].fill(b'\n');
        std::fs::write(&trail, bytes).unwrap();
    }

    pub(super) fn create(&self, options: SessionOptions) -> Session {
        let options = options.durability(Durability::Os);
        self.library.store.create_session(options).unwrap()
    }
}

fn quiet() -> Ui {
    Ui::new(false, ColorChoice::Never).quiet()
}

#[expect(clippy::disallowed_methods, reason = "a directory of the test")]
pub(super) fn make_directory(path: &Path) {
    std::fs::create_dir_all(path).unwrap();
}

#[expect(clippy::disallowed_methods, reason = "a file of the test")]
pub(super) fn write_file(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}

/// Makes a call of a command.
pub(super) fn call(id: &str, command: &str) -> Block {
    let input = json!({"command": command});
    ToolUse::new(id, "bash", &input).unwrap().into()
}

/// Makes the result of a call.
pub(super) fn result(id: &str, output: &str) -> Message {
    Message::tool_result(ToolResult::ok(output.to_owned()).answers(id, "bash"))
}

/// Makes a text of the assistant.
pub(super) fn answer(text: &str) -> Message {
    Message::assistant([Block::text(text)])
}

/// Returns lines without their styles.
pub(super) fn plain(lines: &[Line]) -> Vec<String> {
    let text = |line: &Line| {
        line.iter()
            .map(|span| span.text.as_str())
            .collect::<String>()
    };
    let lines = lines.iter().map(text);
    lines.map(|line| line.trim_end().to_owned()).collect()
}

/// Returns the lines of parts without their styles.
pub(super) fn plain_parts(parts: &[Part]) -> Vec<String> {
    parts.iter().flat_map(|part| plain(&part.lines)).collect()
}
