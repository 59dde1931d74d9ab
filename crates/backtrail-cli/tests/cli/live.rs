//! Agents at work: their hooks, and the sessions that `run` and `watch` follow.
//!
//! The agents here are scripts that write session files as real ones do, and wait for what they
//! need to be there, so that nothing depends on time. F33, F34, F35.

use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::kit::{Cli, Ran, finish};

/// Settings for machines that are busy: a hook waits for its snapshot however long that takes.
const PATIENT: &str = "hook_wait = \"60s\"\n";

const SESSION: &str = "e07e0366-c23a-4a59-839c-dbb261253011";

/// A session of Claude Code that is being written.
pub(crate) struct Claude {
    pub(crate) cli: Cli,
    pub(crate) home: PathBuf,
    pub(crate) session: String,
    /// The run that it is in.
    run: Option<String>,
    /// The id of the last line.
    last: Option<String>,
    lines: u32,
}

impl Claude {
    pub(crate) fn new() -> Self {
        Self::in_cli(Cli::new(), SESSION)
    }

    pub(crate) fn in_cli(cli: Cli, session: &str) -> Self {
        let home = cli.work().parent().unwrap().join("home");
        fs::create_dir_all(&home).unwrap();
        fs::create_dir_all(cli.store()).unwrap();
        fs::write(cli.store().join("config.toml"), PATIENT).unwrap();
        Self {
            cli,
            home,
            session: session.to_owned(),
            run: None,
            last: None,
            lines: 0,
        }
    }

    fn transcript(&self) -> PathBuf {
        let name = format!(".claude/projects/-work/{}.jsonl", self.session);
        self.home.join(name)
    }

    /// Appends a line to the session's file.
    fn line(&mut self, kind: &str, message: Value) {
        self.lines += 1;
        let id = format!("line-{}", self.lines);
        let now: jiff::Timestamp = jiff::Timestamp::now();
        let line = json!({
            "parentUuid": self.last, "type": kind, "uuid": id, "sessionId": self.session,
            "cwd": self.cli.work(), "version": "2.1.300", "timestamp": now.to_string(),
            "message": message,
        });
        let path = self.transcript();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let old = fs::read_to_string(&path).unwrap_or_default();
        fs::write(&path, format!("{old}{line}\n")).unwrap();
        self.last = Some(id);
    }

    pub(crate) fn prompt(&mut self, text: &str) {
        self.line("user", json!({"role": "user", "content": text}));
    }

    pub(crate) fn call(&mut self, id: &str) {
        let call = json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "x"}});
        let message = json!({"id": format!("msg-{id}"), "role": "assistant", "model": "m",
            "content": [call]});
        self.line("assistant", message);
    }

    pub(crate) fn result(&mut self, id: &str) {
        let result = json!({"type": "tool_result", "tool_use_id": id, "content": "ok"});
        self.line("user", json!({"role": "user", "content": [result]}));
    }

    pub(crate) fn answer(&mut self, text: &str) {
        let message = json!({"id": format!("msg-{text}"), "role": "assistant", "model": "m",
            "stop_reason": "end_turn", "content": [{"type": "text", "text": text}]});
        self.line("assistant", message);
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.cli.command(args);
        command.env("HOME", &self.home);
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        finish(&mut self.command(args), b"")
    }

    /// Calls the hook as Claude Code does.
    pub(crate) fn hook(&self, event: &str, more: Value) -> Ran {
        let mut payload = json!({
            "session_id": self.session, "transcript_path": self.transcript(),
            "cwd": self.cli.work(), "hook_event_name": event,
        });
        payload
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let payload = payload.to_string();
        let mut command = self.command(&["hook", "claude-code"]);
        command.envs(self.run.iter().map(|run| ("BACKTRAIL_RUN", run)));
        let ran = finish(&mut command, payload.as_bytes());
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:#?}");
        ran
    }

    /// One turn with a call that acts on the files, with hooks.
    pub(crate) fn turn(&mut self, text: &str, call: &str, act: impl FnOnce(&Path)) {
        self.hook("UserPromptSubmit", json!({"prompt": text}));
        self.prompt(text);
        self.call(call);
        let tool = json!({"tool_name": "Bash", "tool_use_id": call, "tool_input": {}});
        self.hook("PreToolUse", tool.clone());
        act(&self.cli.work());
        self.hook("PostToolUse", tool);
        self.result(call);
        self.answer("done");
        self.hook("Stop", json!({}));
    }

    pub(crate) fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.cli.work().join(name)).ok()
    }
}

pub(crate) fn write(dir: &Path, name: &str, text: &str) {
    fs::write(dir.join(name), text).unwrap();
}

/// F33, F34: with hooks alone, each prompt is a step, and the words and the files are one session.
#[test]
fn with_hooks_each_prompt_and_each_call_can_be_undone() {
    let mut claude = Claude::new();
    write(&claude.cli.work(), "a", "0");
    let started = claude.hook("SessionStart", json!({"source": "startup"}));
    let shown: Value = serde_json::from_str(&started.stdout).unwrap();
    assert!(
        shown["systemMessage"]
            .as_str()
            .unwrap()
            .contains("first snapshot"),
        "{shown}"
    );
    claude.turn("add login", "toolu_1", |dir| write(dir, "a", "1"));
    write(&claude.cli.work(), "mine", "my edit");
    claude.turn("add logout", "toolu_2", |dir| {
        write(dir, "a", "2");
        write(dir, "b", "2");
    });

    let log = claude.run(&["log", "--json"]);
    for prompt in ["add login", "add logout"] {
        assert!(log.stdout.contains(prompt), "{log:#?}");
    }
    // It waits for hooks that are still importing; `list` does not.
    claude.run(&["log"]);
    let listed = claude.run(&["list", "--json"]).json();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(listed[0]["id"], SESSION);

    let undone = claude.run(&["undo"]);
    assert_eq!(undone.code, 0, "{undone:#?}");
    let said = "Undid prompt 2 \"add logout\" (Claude Code, just now): 2 files";
    assert!(undone.stdout.contains(said), "{undone:#?}");
    assert_eq!(
        (claude.read("a").as_deref(), claude.read("b")),
        (Some("1"), None)
    );
    assert_eq!(claude.read("mine").as_deref(), Some("my edit"));
    // The agent is told in its next prompt.
    let next = claude.hook("UserPromptSubmit", json!({"prompt": "go on"}));
    let told: Value = serde_json::from_str(&next.stdout).unwrap();
    let told = told["hookSpecificOutput"]["additionalContext"]
        .as_str()
        .unwrap();
    assert!(told.contains("add logout"), "{told}");
}

/// What was undone before a session began is no news to it.
#[test]
fn a_new_session_is_not_told_what_was_undone_before_it() {
    let mut claude = Claude::new();
    write(&claude.cli.work(), "a", "0");
    claude.turn("first", "toolu_1", |dir| write(dir, "a", "1"));
    claude.run(&["undo"]);
    let other = json!({"prompt": "hello", "session_id": "0b4f3c1a-1111-4222-8333-444455556666"});
    assert_eq!(claude.hook("UserPromptSubmit", other).stdout, "");
    let told = claude
        .hook("UserPromptSubmit", json!({"prompt": "go on"}))
        .stdout;
    assert!(told.contains("first"), "{told}");
}

/// The user interrupts the agent, which does not say so, and edits a file.
#[test]
fn an_edit_after_an_interrupt_stops_the_undo() {
    let mut claude = Claude::new();
    write(&claude.cli.work(), "a", "0");
    claude.hook("UserPromptSubmit", json!({"prompt": "first"}));
    claude.prompt("first");
    let tool = json!({"tool_name": "Bash", "tool_use_id": "toolu_1", "tool_input": {}});
    claude.hook("PreToolUse", tool.clone());
    write(&claude.cli.work(), "a", "1");
    claude.hook("PostToolUse", tool);
    write(&claude.cli.work(), "mine", "my edit");
    let stopped = claude.run(&["undo"]);
    assert_eq!(stopped.code, 1, "{stopped:#?}");
    let said = "1 file changed since the last sign of this turn, by you or Claude Code";
    assert!(stopped.stderr.contains(said), "{stopped:#?}");
    let kept = claude.run(&["undo", "--keep"]);
    assert_eq!(kept.code, 0, "{kept:#?}");
    assert!(
        kept.stderr.contains("Claude Code has been running here"),
        "{kept:#?}"
    );
    assert_eq!(claude.read("a").as_deref(), Some("0"));
    assert_eq!(claude.read("mine").as_deref(), Some("my edit"));
}

/// A first line longer than what a file is recognised by.
#[test]
fn a_session_that_begins_with_a_very_long_prompt_is_bound() {
    let mut claude = Claude::new();
    write(&claude.cli.work(), "a", "0");
    let long = "x".repeat(300 << 10);
    claude.turn(&long, "toolu_1", |dir| write(dir, "a", "1"));
    let undone = claude.run(&["undo"]);
    assert!(
        undone.stdout.contains("Undid prompt 1 \"xxx"),
        "{undone:#?}"
    );
}

/// F35: what a hook could not do is shown where people look for it.
#[test]
fn a_failed_call_is_shown_by_the_status_of_setup_and_at_the_next_start() {
    let mut claude = Claude::new();
    write(&claude.cli.work(), "a", "0");
    claude.turn("first", "toolu_1", |dir| write(dir, "a", "1"));
    let config = claude.cli.store().join("config.toml");
    fs::write(&config, "hook_wait = 7\n").unwrap();
    claude.hook("UserPromptSubmit", json!({"prompt": "second"}));
    fs::write(&config, PATIENT).unwrap();
    let status = claude.run(&["setup", "--status"]);
    assert!(
        status
            .stderr
            .contains("Claude Code: the last call failed: "),
        "{status:#?}"
    );
    let started = claude
        .hook("SessionStart", json!({"source": "startup"}))
        .stdout;
    assert!(started.contains("the last call failed"), "{started}");
    claude.turn("third", "toolu_3", |dir| write(dir, "a", "3"));
    let started = claude
        .hook("SessionStart", json!({"source": "startup"}))
        .stdout;
    assert!(started.contains("undo ready"), "{started}");
}

#[test]
fn the_last_call_is_undone_and_redone_by_the_command() {
    let mut claude = Claude::new();
    write(&claude.cli.work(), "a", "0");
    claude.turn("first", "toolu_1", |dir| write(dir, "a", "1"));
    let undone = claude.run(&["undo", "--tool"]);
    assert_eq!(undone.code, 0, "{undone:#?}");
    assert!(
        undone.stdout.contains("Undid Bash in prompt 1 \"first\""),
        "{undone:#?}"
    );
    assert_eq!(claude.read("a").as_deref(), Some("0"));
    let redone = claude.run(&["redo"]);
    assert_eq!(redone.code, 0, "{redone:#?}");
    assert_eq!(claude.read("a").as_deref(), Some("1"));
}

/// An agent is told in its next prompt what was undone; a new session has nothing to repeat.
#[test]
fn an_agent_is_told_what_was_undone_since_its_last_turn_and_a_new_session_is_not() {
    let mut claude = Claude::new();
    write(&claude.cli.work(), "a", "0");
    claude.turn("change a", "call-1", |work| write(work, "a", "1"));
    claude.run(&["undo"]);
    let new = claude.hook(
        "UserPromptSubmit",
        json!({"prompt": "hello", "session_id": "new"}),
    );
    assert!(!new.stdout.contains("undid"), "{new:#?}");
    let told = claude.hook("UserPromptSubmit", json!({"prompt": "go on"}));
    assert!(
        told.stdout
            .contains("The user undid this since your last turn"),
        "{told:#?}"
    );
    let again = claude.hook("UserPromptSubmit", json!({"prompt": "go on"}));
    assert!(!again.stdout.contains("undid"), "{again:#?}");
}

/// A call that was undone, and a turn that was undone while it was running, count as well.
#[test]
fn an_agent_is_told_of_an_undone_call_and_of_what_was_undone_during_its_turn() {
    let mut claude = Claude::new();
    write(&claude.cli.work(), "a", "0");
    claude.turn("change a", "call-1", |work| write(work, "a", "1"));
    assert_eq!(claude.run(&["undo", "--tool"]).code, 0);
    let told = claude.hook("UserPromptSubmit", json!({"prompt": "again"}));
    assert!(told.stdout.contains("The user undid this"), "{told:#?}");
    assert!(told.stdout.contains("Bash in the turn"), "{told:#?}");
    claude.prompt("again");
    claude.answer("done");
    claude.hook("Stop", json!({}));

    claude.hook("UserPromptSubmit", json!({"prompt": "change c"}));
    claude.prompt("change c");
    let tool = json!({"tool_name": "Bash", "tool_use_id": "call-3", "tool_input": {}});
    claude.hook("PreToolUse", tool.clone());
    write(&claude.cli.work(), "c", "1");
    let undone = claude.run(&["undo"]);
    assert!(undone.stdout.contains("change c"), "{undone:#?}");
    claude.hook("PostToolUse", tool);
    claude.hook("Stop", json!({}));
    let told = claude.hook("UserPromptSubmit", json!({"prompt": "go on"}));
    assert!(told.stdout.contains("change c"), "{told:#?}");
    claude.run(&["redo"]);
    let told = claude.hook("UserPromptSubmit", json!({"prompt": "go on"}));
    assert!(!told.stdout.contains("undid"), "{told:#?}");
}

/// Cline passes a line on only before a call.
#[test]
fn an_agent_that_takes_no_line_with_a_prompt_is_told_before_its_next_call() {
    let claude = Claude::new();
    write(&claude.cli.work(), "a", "0");
    let hook = |name: &str, call: &str, tool: &str| {
        let payload = json!({
            "hookName": name, "sessionContext": {"rootSessionId": "1794812937226_g3ngp"},
            "workspaceInfo": {"rootPath": claude.cli.work()},
            "tool_call": {"id": call, "name": tool}, "userPromptSubmit": {"prompt": "do it"},
        });
        let mut command = claude.command(&["hook", "cline"]);
        let ran = finish(&mut command, payload.to_string().as_bytes());
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:#?}");
        ran.stdout
    };
    hook("prompt_submit", "", "");
    let quiet = "{\"cancel\":false}\n";
    assert_eq!(hook("tool_call", "1", "run_commands"), quiet);
    write(&claude.cli.work(), "a", "1");
    hook("tool_result", "1", "run_commands");
    assert_eq!(claude.run(&["undo", "--tool"]).code, 0);
    assert_eq!(hook("prompt_submit", "", ""), "");
    assert_eq!(hook("tool_call", "2", "read_files"), quiet);
    let told = hook("tool_call", "3", "run_commands");
    assert!(told.contains("contextModification"), "{told}");
    assert_eq!(hook("tool_call", "4", "run_commands"), quiet);
}

/// F35: a payload that is larger than what is read is read to its end, so that the agent can
/// write it; what came before is kept.
#[test]
fn f35_a_huge_payload_is_taken_whole_and_costs_nothing_else() {
    let mut claude = Claude::new();
    write(&claude.cli.work(), "a", "0");
    claude.turn("first", "toolu_1", |dir| write(dir, "a", "1"));
    let mut hook = claude.command(&["hook", "claude-code", "--event", "PostToolUse"]);
    hook.stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut hook = hook.spawn().unwrap();
    let mut stdin = hook.stdin.take().unwrap();
    let part = vec![b'x'; 1 << 20];
    let start = format!("{{\"session_id\":\"{SESSION}\",\"tool_response\":\"");
    let mut written = stdin.write_all(start.as_bytes());
    for _ in 0..100 {
        written = written.and_then(|()| stdin.write_all(&part));
    }
    written.and_then(|()| stdin.write_all(b"\"}")).unwrap();
    drop(stdin);
    let done = hook.wait_with_output().unwrap();
    assert!(done.status.success(), "{done:?}");
    assert_eq!((done.stdout.len(), done.stderr.len()), (0, 0), "{done:?}");
    let undone = claude.run(&["undo"]);
    assert!(undone.stdout.contains("\"first\""), "{undone:#?}");
}

/// The state of any record of the agent's session can be restored.
#[test]
fn a_rewind_goes_to_a_record_of_the_agents_session() {
    let mut claude = Claude::new();
    write(&claude.cli.work(), "a", "0");
    claude.turn("first", "toolu_1", |dir| write(dir, "a", "1"));
    claude.turn("second", "toolu_2", |dir| write(dir, "a", "2"));
    let shown = claude.run(&["show", SESSION, "--json"]).json();
    let messages = shown["messages"].as_array().unwrap().iter();
    let records: Vec<u64> = messages.map(|it| it["seq"].as_u64().unwrap()).collect();
    // Each turn: the prompt, the call, the result, the answer.
    let states = ["0", "0", "1", "1", "1", "1", "2", "2"];
    assert_eq!(records.len(), states.len(), "{shown}");
    for (seq, expected) in records.into_iter().zip(states) {
        let point = format!("{SESSION}:{seq}");
        let cat = claude.run(&["cat", &point, "a"]);
        assert_eq!(cat.stdout, expected, "record {seq}: {cat:#?}");
    }
}

/// F35: whatever an agent passes, and whatever is wrong here, it is not disturbed.
#[test]
fn f35_a_hook_never_disturbs_its_agent() {
    let cli = Cli::new();
    let payloads: [&[u8]; 8] = [
        b"", b"{", b"[]", b"null", b"\xff\xfe", b"{\"hook_event_name\":7}",
        b"{\"hook_event_name\":\"PreToolUse\"}",
        br#"{"hook_event_name":"PreToolUse","session_id":"../../x","cwd":"/no/such/dir","tool_name":"Bash"}"#,
    ];
    let agents = [
        "claude-code",
        "codex",
        "gemini-cli",
        "qwen-code",
        "copilot-cli",
        "cline",
        "opencode",
        "pi",
        "no-such-agent",
        "../../etc/passwd",
    ];
    for agent in agents {
        for payload in payloads {
            let ran = cli.run_with(&["hook", agent], payload);
            assert_eq!(
                (ran.code, ran.stderr.as_str()),
                (0, ""),
                "{agent}: {ran:#?}"
            );
            let is_json = ran.stdout.is_empty()
                || serde_json::from_str::<Value>(&ran.stdout).is_ok_and(|it| it.is_object());
            assert!(is_json, "{agent}: {ran:#?}");
        }
    }
    for wrong in [
        &["hook"][..],
        &["hook", "claude-code", "--nonsense"],
        &["hook", "a", "b", "c"],
    ] {
        let ran = cli.run_with(wrong, b"{}");
        assert_eq!(
            (ran.code, ran.stdout.as_str(), ran.stderr.as_str()),
            (0, "", ""),
            "{wrong:?}"
        );
    }
}

/// F35: a store that cannot be written does not stop the agent either.
#[test]
fn f35_a_broken_store_does_not_stop_the_agent() {
    let claude = Claude::new();
    write(&claude.cli.work(), "a", "0");
    fs::remove_dir_all(claude.cli.store()).unwrap();
    // A file in the place of the store.
    fs::write(claude.cli.store(), "not a store").unwrap();
    for event in ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"] {
        claude.hook(event, json!({"prompt": "x"}));
    }
    let tool = json!({"tool_name": "Bash", "tool_use_id": "t", "tool_input": {}});
    claude.hook("PreToolUse", tool.clone());
    claude.hook("PostToolUse", tool);
    assert_eq!(
        fs::read_to_string(claude.cli.store()).unwrap(),
        "not a store"
    );
}

/// A snapshot that takes too long lets the agent continue, and that is shown.
#[test]
fn a_turn_that_could_not_be_protected_in_time_is_marked() {
    let mut claude = Claude::new();
    write(&claude.cli.work(), "a", "0");
    claude.turn("first", "toolu_1", |dir| write(dir, "a", "1"));
    let config = claude.cli.store().join("config.toml");
    fs::write(&config, "hook_wait = \"0ms\"\n").unwrap();
    claude.hook("UserPromptSubmit", json!({"prompt": "second"}));
    fs::write(&config, PATIENT).unwrap();
    let found = std::iter::repeat_with(|| claude.run(&["log"]))
        .take(2000)
        .any(|log| log.stdout.contains("NOT PROTECTED"));
    assert!(found, "{:#?}", claude.run(&["log", "--json"]));
    // The late turn lives as long as its agent, which is this test.
    let is_late = || {
        claude
            .run(&["log", "--json"])
            .stdout
            .contains("\"late\":true")
    };
    assert!((0..2000).any(|_| is_late()));
    let running = || claude.run(&["status", "--json"]).json()["running"].take();
    assert!(
        (0..2000).any(|_| running()[0]["pid"] == std::process::id()),
        "{}",
        running()
    );
}

/// An agent that writes the session file of Codex, and waits before each change until `log` has
/// the prompt, unless it is `ALONE`. In each turn it also runs `DURING`.
const CODEX: &str = r#"#!/bin/bash
set -e
file="$HOME/.codex/sessions/2026/11/18/rollout-2026-11-18T00-00-00-$ID.jsonl"
mkdir -p "$(dirname "$file")"
now() { date -u +%Y-%m-%dT%H:%M:%S.%3NZ; }
add() { printf '{"timestamp":"%s","type":"%s","payload":%s}\n' "$(now)" "$1" "$2" >> "$file"; }
wait_for() { [ -z "$ALONE" ] || return 0; for n in $(seq 3000); do "$BACKTRAIL" log --json 2>/dev/null | grep -q "$1" && return; done; exit 9; }
[ -e "$file" ] || add session_meta "{\"id\":\"$ID\",\"timestamp\":\"$(now)\",\"cwd\":\"$PWD\",\"originator\":\"codex_exec\",\"cli_version\":\"0.166.0\",\"source\":${SOURCE:-\"exec\"}}"
for turn in "$@"; do
    add event_msg '{"type":"task_started","turn_id":"t-'$turn'"}'
    add response_item '{"type":"message","role":"user","content":[{"type":"input_text","text":"prompt '$turn'"}]}'
    add event_msg '{"type":"user_message","message":"prompt '$turn'"}'
    wait_for "prompt $turn"
    add response_item '{"type":"function_call","name":"shell","arguments":"{}","call_id":"call-'$turn'"}'
    echo "$turn" > file
    echo "$turn" > "file-$turn"
    eval "$DURING"
    add response_item '{"type":"function_call_output","call_id":"call-'$turn'","output":"ok"}'
    add response_item '{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done '$turn'"}]}'
    add event_msg '{"type":"agent_message","message":"done '$turn'"}'
    add event_msg '{"type":"task_complete","turn_id":"t-'$turn'"}'
done
"#;

pub(crate) const ID: &str = "01a1e32f-3193-7ec2-ba12-3f42cfc4ab7c";

/// Makes the agent, and returns its path.
pub(crate) fn codex(claude: &Claude) -> PathBuf {
    let path = claude.home.join("codex");
    fs::write(&path, CODEX).unwrap();
    fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    path
}

pub(crate) fn with_agent(claude: &Claude, args: &[&str]) -> Command {
    let mut command = claude.command(args);
    command.env("ID", ID);
    command.env("BACKTRAIL", env!("CARGO_BIN_EXE_backtrail"));
    command.env("BACKTRAIL_HOME", claude.cli.store());
    command
}

/// F33, F34: `run` knows the agent by its name and follows its session.
#[test]
fn run_follows_the_agents_session_and_each_prompt_is_a_step() {
    let claude = Claude::new();
    write(&claude.cli.work(), "file", "0\n");
    let agent = codex(&claude);
    let agent = agent.to_str().unwrap();
    let ran = finish(
        &mut with_agent(&claude, &["run", "--", agent, "one", "two"]),
        b"",
    );
    assert_eq!(ran.code, 0, "{ran:#?}");
    // It waits for hooks that are still importing; `list` does not.
    claude.run(&["log"]);
    let listed = claude.run(&["list", "--json"]).json();
    assert_eq!(
        listed.as_array().unwrap().len(),
        1,
        "the run has no session of its own: {listed}"
    );
    assert_eq!(listed[0]["id"], ID, "{listed}");
    let undone = claude.run(&["undo"]);
    assert!(
        undone
            .stdout
            .contains("Undid prompt 2 \"prompt two\" (Codex, "),
        "{undone:#?}"
    );
    assert_eq!(claude.read("file").as_deref(), Some("one\n"));
    assert_eq!(claude.read("file-two"), None);
    claude.run(&["undo"]);
    assert_eq!(claude.read("file").as_deref(), Some("0\n"));
    let redone = claude.run(&["redo"]);
    assert_eq!(redone.code, 0, "{redone:#?}");
    assert_eq!(claude.read("file-one").as_deref(), Some("one\n"));
    // The session is the same as an import alone makes.
    let other = claude.home.join("other-store");
    let other = other.to_str().unwrap();
    let imported = claude.run(&["--store", other, "import"]);
    assert_eq!(imported.code, 0, "{imported:#?}");
    let texts = |args: &[&str]| {
        let mut messages = claude.run(args).json()["messages"].take();
        // The kept bytes of the file come in other portions.
        for message in messages.as_array_mut().unwrap() {
            message.as_object_mut().unwrap().remove("seq");
        }
        messages
    };
    let expected = texts(&["--store", other, "show", ID, "--json"]);
    assert_eq!(texts(&["show", ID, "--json"]), expected);
}

/// An agent that ends without writing the end of its turn has ended all the same: what you change
/// afterwards is yours.
#[test]
fn a_turn_without_an_end_ends_with_its_run() {
    let claude = Claude::new();
    write(&claude.cli.work(), "file", "0\n");
    let agent = codex(&claude);
    let mut run = with_agent(&claude, &["run", "--", agent.to_str().unwrap(), "one"]);
    let ran = finish(run.env("DURING", "exit 0"), b"");
    assert_eq!(ran.code, 0, "{ran:#?}");
    write(&claude.cli.work(), "notes", "mine\n");
    let log = claude.run(&["log"]).stdout;
    assert!(log.contains("prompt one"), "{log}");
    assert!(!log.contains("interrupted"), "{log}");
    let undone = claude.run(&["undo"]);
    assert_eq!(undone.code, 0, "{undone:#?}");
    assert_eq!(claude.read("file").as_deref(), Some("0\n"));
    assert_eq!(claude.read("notes").as_deref(), Some("mine\n"));
}

/// Without an agent's session, a run is a run as ever.
#[test]
fn a_run_of_an_agent_without_a_session_is_one_step() {
    let claude = Claude::new();
    write(&claude.cli.work(), "file", "0");
    let ran = claude.run(&["run", "--agent", "codex", "--", "sh", "-c", "echo 1 > file"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    // It waits for hooks that are still importing; `list` does not.
    claude.run(&["log"]);
    let listed = claude.run(&["list", "--json"]).json();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    assert!(
        listed[0]["title"].as_str().unwrap().starts_with("sh -c"),
        "{listed}"
    );
    let undone = claude.run(&["undo"]);
    assert!(undone.stdout.contains("Undid the run"), "{undone:#?}");
    assert_eq!(claude.read("file").as_deref(), Some("0"));
}

/// Agents that were started without Backtrail are watched.
#[test]
fn watch_protects_agents_that_were_started_elsewhere() {
    let claude = Claude::new();
    write(&claude.cli.work(), "file", "0\n");
    let agent = codex(&claude);
    let mut watch = with_agent(&claude, &["watch"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(watch.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("watching") {
        line.clear();
        assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "it ended");
    }
    let mut started = Command::new(agent);
    started
        .args(["one", "two"])
        .current_dir(claude.cli.work())
        .env("HOME", &claude.home)
        .env("ID", ID)
        .env("BACKTRAIL", env!("CARGO_BIN_EXE_backtrail"))
        .env("BACKTRAIL_HOME", claude.cli.store());
    let ran = finish(&mut started, b"");
    assert_eq!(ran.code, 0, "{ran:#?}");
    let pid = rustix::process::Pid::from_child(&watch);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let mut printed = String::new();
    std::io::Read::read_to_string(&mut watch.stdout.take().unwrap(), &mut printed).unwrap();
    assert!(watch.wait().unwrap().success());
    assert!(
        printed.contains("\"prompt one\"") && printed.contains("\"prompt two\""),
        "{printed}"
    );
    let undone = claude.run(&["undo"]);
    assert!(
        undone.stdout.contains("Undid prompt 2 \"prompt two\""),
        "{undone:#?}"
    );
    assert_eq!(claude.read("file").as_deref(), Some("one\n"));
}

/// With hooks and `run` together, nothing happens twice.
#[test]
fn hooks_within_a_run_make_the_only_checkpoints() {
    let mut claude = Claude::new();
    write(&claude.cli.work(), "a", "0");
    // The "agent" waits for the test, which plays its part.
    let fifo = claude.home.join("go");
    let made = Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let script = format!("read x < {}", fifo.display());
    let mut run = claude
        .command(&["run", "--agent", "claude-code", "--", "sh", "-c", &script])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The run has begun when its first checkpoint is there.
    let running = || {
        let status = claude.run(&["status", "--json"]);
        let status = (status.code == 0).then(|| status.json())?;
        status["running"][0]["checkpoint"]
            .as_str()
            .map(str::to_owned)
    };
    let run_id = (0..2000).find_map(|_| running()).unwrap();
    claude.run = Some(run_id);
    claude.turn("first", "toolu_1", |dir| write(dir, "a", "1"));
    fs::write(&fifo, "go\n").unwrap();
    assert!(run.wait().unwrap().success());
    let log = claude.run(&["log", "--json", "--all"]);
    assert_eq!(log.stdout.matches("turn-start").count(), 1, "{log:#?}");
    assert_eq!(
        claude
            .run(&["list", "--json"])
            .json()
            .as_array()
            .unwrap()
            .len(),
        1
    );
    claude.run(&["undo"]);
    assert_eq!(claude.read("a").as_deref(), Some("0"));
}
