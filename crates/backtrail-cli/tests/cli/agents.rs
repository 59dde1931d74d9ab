//! Session files as other agents write them, in their usual places.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::kit::{Cli, Ran, finish};

/// The session of Claude Code, its sub-agent's file, the rollout of Codex and its fork,
/// and the sessions of Gemini CLI and pi.
pub(crate) const CLAUDE: &str = "0b1c2d3e-0000-4000-8000-000000000001";
pub(crate) const CODEX: &str = "019b7c00-0000-7000-8000-0000000000c1";
pub(crate) const CODEX_FORK: &str = "019b7c11-0000-7000-8000-0000000000c2";
pub(crate) const GEMINI: &str = "4e5f6071-0000-4000-8000-000000000001";
pub(crate) const PI: &str = "019b7d00-0000-7000-8000-0000000000d1";

/// A person's home directory, beside the store.
pub(crate) fn home(cli: &Cli) -> PathBuf {
    cli.store().parent().unwrap().canonicalize().unwrap()
}

/// Returns the program, at home.
pub(crate) fn at_home(cli: &Cli, args: &[&str]) -> Command {
    let mut command = cli.command(args);
    command.env("HOME", home(cli));
    command
}

pub(crate) fn run(cli: &Cli, args: &[&str]) -> Ran {
    finish(&mut at_home(cli, args), b"")
}

/// Imports at home, and returns what came of one agent.
pub(crate) fn import(cli: &Cli, agent: &str) -> Value {
    let ran = run(cli, &["import", "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    ran.json()["agents"][agent].clone()
}

/// Returns the counts of an agent: found, new, updated, unchanged.
pub(crate) fn counts(agent: &Value) -> [u64; 4] {
    ["found", "new", "updated", "unchanged"].map(|name| agent[name].as_u64().unwrap())
}

pub(crate) fn write(path: &Path, text: impl AsRef<[u8]>) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Writes values as lines.
pub(crate) fn lines(values: &[Value]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}

/// A line of Claude Code's that somebody said.
pub(crate) fn claude_user(uuid: &str, parent: Option<&str>, text: &str) -> Value {
    json!({"parentUuid": parent, "isSidechain": false, "cwd": "/w/shop", "sessionId": CLAUDE,
        "type": "user", "message": {"role": "user", "content": text}, "uuid": uuid,
        "timestamp": "2026-01-02T03:04:05.000Z"})
}

/// A line of a response of Claude Code's, with one block. `output` is what was counted by
/// then.
pub(crate) fn claude_says(
    uuid: &str,
    parent: &str,
    response: &str,
    block: Value,
    output: u64,
) -> Value {
    json!({"parentUuid": parent, "isSidechain": false, "cwd": "/w/shop", "sessionId": CLAUDE,
        "type": "assistant", "uuid": uuid, "requestId": format!("req-{response}"),
        "message": {"id": response, "role": "assistant", "type": "message", "model": "claude-x",
            "content": [block],
            "usage": {"input_tokens": 3, "output_tokens": output,
                "cache_creation_input_tokens": 7, "cache_read_input_tokens": 11}},
        "timestamp": "2026-01-02T03:04:06.000Z"})
}

pub(crate) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// A session of Claude Code: a response on two lines, a tool's result, a way that was left,
/// and the way that was taken. Three responses, of 9, 20 and 30 tokens.
pub(crate) fn claude_lines() -> String {
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "Bash",
        "input": {"command": "ls"}});
    let result = json!({"parentUuid": "a2", "isSidechain": false, "sessionId": CLAUDE,
        "type": "user", "uuid": "x1", "message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": "cart.rs"}]},
        "timestamp": "2026-01-02T03:04:07.000Z"});
    lines(&[
        claude_user("u1", None, "why is the refund wrong?"),
        claude_says("a1", "u1", "r1", text("I look at the cart."), 2),
        claude_says("a2", "a1", "r1", call, 9),
        result,
        claude_says("a3", "x1", "r2", text("It is the rounding."), 20),
        claude_user("u2", Some("a3"), "a road not taken"),
        claude_user("u3", Some("a3"), "then mend it"),
        claude_says("a4", "u3", "r3", text("Mended."), 30),
        json!({"type": "custom-title", "sessionId": CLAUDE, "customTitle": "Refunds"}),
    ])
}

pub(crate) fn claude_file(cli: &Cli) -> PathBuf {
    let name = format!(".claude/projects/-w-shop/{CLAUDE}.jsonl");
    home(cli).join(name)
}

/// The file of a sub-agent of that session: one response of 40 tokens.
pub(crate) fn claude_agent_file(cli: &Cli) -> PathBuf {
    let name = format!(".claude/projects/-w-shop/{CLAUDE}/subagents/agent-abc123.jsonl");
    home(cli).join(name)
}

pub(crate) fn claude_agent_lines() -> String {
    let mut values = [
        claude_user("s1", None, "count the zebras"),
        claude_says("s2", "s1", "r9", text("There are none."), 40),
    ];
    for value in &mut values {
        value["isSidechain"] = true.into();
        value["agentId"] = "abc123".into();
    }
    lines(&values)
}

/// A rollout that is being written: each record a little later than the one before.
struct Rollout {
    at_ms: u64,
    lines: Vec<Value>,
}

impl Rollout {
    /// Begins so many minutes after the first.
    fn new(minutes: u64) -> Self {
        Self {
            at_ms: minutes * 60_000,
            lines: Vec::new(),
        }
    }

    fn add(mut self, kind: &str, payload: Value) -> Self {
        self.at_ms += 1;
        let (minutes, rest) = (self.at_ms / 60_000, self.at_ms % 60_000);
        let at = format!(
            "2026-01-02T03:{minutes:02}:{:02}.{:03}Z",
            rest / 1000,
            rest % 1000
        );
        self.lines
            .push(json!({"timestamp": at, "type": kind, "payload": payload}));
        self
    }

    fn says(self, role: &str, text: &str) -> Self {
        let kind = if role == "user" { "input" } else { "output" };
        self.add(
            "response_item",
            json!({"type": "message", "role": role,
                "content": [{"type": format!("{kind}_text"), "text": text}]}),
        )
    }

    /// What a call used, cached tokens among the input, and the total by then.
    fn count(self, last: [u64; 3], total: [u64; 3]) -> Self {
        let tokens = |[input, cached, output]: [u64; 3]| {
            json!({"input_tokens": input, "cached_input_tokens": cached,
                "output_tokens": output, "total_tokens": input + output})
        };
        let info = json!({"last_token_usage": tokens(last), "total_token_usage": tokens(total)});
        self.add("event_msg", json!({"type": "token_count", "info": info}))
    }

    fn pause(mut self) -> Self {
        self.at_ms += 5_000;
        self
    }

    fn first_turn(self) -> Self {
        self.add(
            "turn_context",
            json!({"cwd": "/w/shop", "model": "gpt-x", "approval_policy": "never"}),
        )
        .says("user", "which shelf is empty?")
        .says("assistant", "The third one.")
        .count([100, 60, 10], [100, 60, 10])
    }
}

/// A rollout of one call: 40 tokens in, 60 from the cache, 10 out.
pub(crate) fn codex_lines() -> String {
    let meta = json!({"id": CODEX, "timestamp": "2026-01-02T03:04:00.000Z", "cwd": "/w/shop",
        "originator": "codex_cli_rs", "cli_version": "0.146.0", "source": "cli"});
    let rollout = Rollout::new(4).add("session_meta", meta);
    lines(&rollout.pause().first_turn().lines)
}

/// A fork of it, which begins with a copy of it, and has one call of its own: 150 in, 50
/// from the cache, 5 out.
pub(crate) fn codex_fork_lines() -> String {
    let meta = |id: &str| {
        json!({"id": id, "timestamp": "2026-01-02T03:20:00.000Z", "cwd": "/w/shop",
        "originator": "codex_cli_rs", "cli_version": "0.146.0", "source": "cli"})
    };
    let mut own = meta(CODEX_FORK);
    own["forked_from_id"] = CODEX.into();
    let rollout = Rollout::new(20)
        .add("session_meta", own)
        .add("session_meta", meta(CODEX))
        .first_turn()
        .pause()
        .says("user", "and the fourth?")
        .says("assistant", "Half full.")
        .pause()
        .count([200, 50, 5], [300, 110, 15]);
    lines(&rollout.lines)
}

pub(crate) fn codex_file(codex_home: &Path, id: &str) -> PathBuf {
    let name = format!("sessions/2026/01/02/rollout-2026-01-02T03-04-05-{id}.jsonl");
    codex_home.join(name)
}

/// A session of Gemini CLI: 40 tokens in, 60 from the cache, 10 out, of which 3 of thoughts.
pub(crate) fn gemini_lines() -> String {
    lines(&[
        json!({"sessionId": GEMINI, "projectHash": "ffee", "startTime": "2026-01-02T03:04:05.000Z",
            "lastUpdated": "2026-01-02T03:04:05.000Z", "kind": "main"}),
        json!({"id": "g1", "timestamp": "2026-01-02T03:04:06.000Z", "type": "user",
            "content": [{"text": "weigh the parcel"}]}),
        json!({"id": "g2", "timestamp": "2026-01-02T03:04:08.000Z", "type": "gemini",
            "content": "Two pounds.", "thoughts": [], "model": "gemini-x",
            "tokens": {"input": 100, "output": 7, "cached": 60, "thoughts": 3, "tool": 0,
                "total": 110}}),
    ])
}

pub(crate) fn gemini_file(cli: &Cli) -> PathBuf {
    home(cli).join(".gemini/tmp/shop/chats/session-2026-01-02T03-04-4e5f6071.jsonl")
}

/// A session of pi: 10 tokens in, 5 out, 100 from the cache, 7 to it.
pub(crate) fn pi_lines() -> String {
    lines(&[
        json!({"type": "session", "version": 3, "id": PI, "timestamp": "2026-01-02T03:04:05.000Z",
            "cwd": "/w/shop"}),
        json!({"type": "message", "id": "aaaa0001", "parentId": null,
            "timestamp": "2026-01-02T03:04:06.000Z",
            "message": {"role": "user", "content": "paint the door", "timestamp": 1_767_323_046_000_u64}}),
        json!({"type": "message", "id": "aaaa0002", "parentId": "aaaa0001",
            "timestamp": "2026-01-02T03:04:07.000Z",
            "message": {"role": "assistant", "content": [{"type": "text", "text": "Blue?"}],
                "api": "anthropic-messages", "provider": "acme", "model": "acme-1",
                "usage": {"input": 10, "output": 5, "cacheRead": 100, "cacheWrite": 7,
                    "totalTokens": 122},
                "stopReason": "stop", "timestamp": 1_767_323_047_000_u64}}),
    ])
}

pub(crate) fn pi_file(cli: &Cli) -> PathBuf {
    home(cli).join(format!(
        ".pi/agent/sessions/--w-shop--/2026-01-02T03-04-05-000Z_{PI}.jsonl"
    ))
}

/// Writes all of them, and returns the files.
pub(crate) fn fill(cli: &Cli) -> Vec<PathBuf> {
    let codex = home(cli).join(".codex");
    let files = [
        (claude_file(cli), claude_lines()),
        (claude_agent_file(cli), claude_agent_lines()),
        (codex_file(&codex, CODEX), codex_lines()),
        (codex_file(&codex, CODEX_FORK), codex_fork_lines()),
        (gemini_file(cli), gemini_lines()),
        (pi_file(cli), pi_lines()),
    ];
    for (path, text) in &files {
        write(path, text);
    }
    files.into_iter().map(|(path, _)| path).collect()
}
