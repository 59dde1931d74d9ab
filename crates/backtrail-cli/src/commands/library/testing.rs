//! A store in a temporary directory, for the tests of what the screens ask.

use std::path::{Path, PathBuf};

use backtrail::{
    Block, Durability, Message, Session, SessionId, SessionOptions, Store, ToolResult, ToolUse,
};
use backtrail_formats::{Environment, ImportOptions, import};
use backtrail_view::library::{Line, Part};
use clap::ColorChoice;
use serde_json::{Value, json};
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

/// The name of a session of Claude Code.
const IMPORTED: &str = "0198c0de-1111-4000-8000-000000000000";

/// Returns a line of a file of Claude Code.
fn claude_line(n: u32, role: &str, content: &Value) -> String {
    let uuid = |n| format!("0198c0de-0000-4000-8000-00000000000{n}");
    let line = json!({
        "type": role,
        "uuid": uuid(n),
        "parentUuid": (n > 1).then(|| uuid(n - 1)),
        "sessionId": IMPORTED,
        "timestamp": format!("2026-11-18T10:00:0{n}.000Z"),
        "message": {"role": role, "content": content},
    });
    format!("{line}\n")
}

/// Imports a session of Claude Code, and the sub-agent that its only call started; returns both.
pub(super) fn imported_with_sub_agent(fixture: &Fixture) -> [SessionId; 2] {
    let call = json!([{"type": "tool_use", "id": "toolu_1", "name": "Task", "input": {}}]);
    let result = json!([{"type": "tool_result", "tool_use_id": "toolu_1", "content": "none"}]);
    let lines = [
        claude_line(1, "user", &json!("how many?")),
        claude_line(2, "assistant", &call),
        claude_line(3, "user", &result),
    ];
    let project = fixture.directory("home/.claude/projects/-work");
    write_file(&project.join(format!("{IMPORTED}.jsonl")), &lines.concat());
    let agents = project.join(IMPORTED).join("subagents");
    make_directory(&agents);
    let asked = claude_line(1, "user", &json!("count <the> zebras"));
    write_file(&agents.join("agent-a1.jsonl"), &asked);
    let meta = json!({"toolUseId": "toolu_1"}).to_string();
    write_file(&agents.join("agent-a1.meta.json"), &meta);
    let store = &fixture.library.store;
    let options = ImportOptions::new(Environment::new(fixture.directory("home")));
    import(store, &options.as_history(), &|_| {}).unwrap();
    fixture.library.fresh_index().unwrap().catch_up().unwrap();
    let mut ids = store.sessions().unwrap();
    ids.sort_by_key(|id| {
        let info = store.read_session(id).unwrap().info().unwrap();
        info.spawned_by.is_some()
    });
    ids.try_into().unwrap()
}
