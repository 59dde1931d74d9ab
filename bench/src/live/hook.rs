//! Calls of `backtrail hook` as Claude Code makes them.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use backtrail::workspace::AgentPlace;
use backtrail::{Checkpoint, CheckpointOptions, Store, Workspace};
use serde_json::{Value, json};

use crate::Result;
use crate::snapshot::tree::Tree;

/// The agent's name.
const AGENT: &str = "claude-code";

/// A tree that an agent works in, and the store of its checkpoints.
pub(super) struct Hooked {
    bin: PathBuf,
    store: PathBuf,
    pub(super) tree: Tree,
    pub(super) workspace: Workspace,
    calls: u32,
}

impl Hooked {
    /// Opens the workspace of a tree, and saves its state.
    pub(super) fn new(bin: &Path, store: &Path, tree: Tree) -> Result<Self> {
        let workspace = Store::open_or_create(store)?.workspace(&tree.root)?;
        workspace.checkpoint(CheckpointOptions::new())?;
        Ok(Self {
            bin: bin.to_owned(),
            store: store.to_owned(),
            tree,
            workspace,
            calls: 0,
        })
    }

    /// Reports a prompt of a session, and returns how long that took.
    pub(super) fn prompt(&self, session: &str) -> Result<Duration> {
        self.call(session, "UserPromptSubmit", json!({"prompt": "add a test"}))
    }

    /// Reports that a tool that only reads begins or ends, and returns how long that took.
    pub(super) fn note(&mut self, session: &str) -> Result<Duration> {
        self.calls += 1;
        let event = ["PreToolUse", "PostToolUse"][self.calls as usize % 2];
        let took = self.tool(session, event, "Read", self.calls / 2)?;
        self.must_have_worked()?;
        Ok(took)
    }

    /// Reports a tool that may change files, and returns how long its beginning took.
    pub(super) fn change(&mut self, session: &str, changed: u64) -> Result<Duration> {
        self.calls += 1;
        let took = self.tool(session, "PreToolUse", "Bash", self.calls)?;
        let made = self.last()?;
        let call = made.agent().and_then(|it| it.call.clone());
        if call != Some(call_id(self.calls)) || made.changed() != changed {
            let n = made.changed();
            return Err(format!("{n} changes for {call:?}, where {changed} were").into());
        }
        self.tool(session, "PostToolUse", "Bash", self.calls)?;
        self.must_have_worked()?;
        Ok(took)
    }

    /// Ends the turn of a session.
    pub(super) fn end(&self, session: &str) -> Result<()> {
        let place = AgentPlace::new(AGENT, session);
        let turn = self.workspace.agent_turn(&place)?;
        let turn = turn.ok_or("the prompt began no turn")?;
        turn.end(&place, CheckpointOptions::new())?;
        self.must_have_worked()
    }

    fn last(&self) -> Result<Checkpoint> {
        let last = self.workspace.last_checkpoint()?;
        Ok(last.ok_or("there is no checkpoint")?)
    }

    fn tool(&self, session: &str, event: &str, tool: &str, call: u32) -> Result<Duration> {
        let more = json!({
            "tool_name": tool, "tool_use_id": call_id(call),
            "tool_input": {"command": "cargo test", "description": "Run the tests"},
        });
        self.call(session, event, more)
    }

    /// Calls the hook and returns the time from start to exit.
    fn call(&self, session: &str, event: &str, more: Value) -> Result<Duration> {
        let mut payload = json!({
            "session_id": session, "cwd": self.tree.root, "hook_event_name": event,
            "transcript_path": format!("/home/me/.claude/projects/-work/{session}.jsonl"),
            "permission_mode": "default",
        });
        for (name, value) in more.as_object().into_iter().flatten() {
            payload[name] = value.clone();
        }
        let payload = payload.to_string();
        let mut command = Command::new(&self.bin);
        command
            .env_remove("BACKTRAIL_HOME")
            .env_remove("BACKTRAIL_RUN")
            .arg("--store")
            .arg(&self.store)
            .args(["hook", AGENT, "--event", event]);
        pipe(&mut command, payload.as_bytes())
    }

    /// A hook never fails, so a fast but wrong one is told by what it leaves.
    fn must_have_worked(&self) -> Result<()> {
        let hooks = self.store.join("derived/hooks");
        if let Ok(why) = fs::read_to_string(hooks.join(format!("{AGENT}.failed"))) {
            return Err(format!("the hook failed: {why}").into());
        }
        match hooks.join(AGENT).is_file() {
            true => Ok(()),
            false => Err("the hook was not called".into()),
        }
    }
}

fn call_id(call: u32) -> String {
    format!("toolu_{call:08}")
}

/// Runs a command with some input, and returns the time from start to exit.
pub(super) fn pipe(command: &mut Command, input: &[u8]) -> Result<Duration> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let start = Instant::now();
    let mut child = command.spawn()?;
    let mut stdin = child.stdin.take().ok_or("no stdin")?;
    // A baseline does not read it.
    stdin.write_all(input).ok();
    drop(stdin);
    let status = child.wait()?;
    let took = start.elapsed();
    match status.success() {
        true => Ok(took),
        false => Err(format!("{command:?} failed: {status}").into()),
    }
}
