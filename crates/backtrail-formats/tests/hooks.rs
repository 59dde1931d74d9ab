//! What agents pass to their hooks becomes the event that its name promises, and the answer
//! is what the agent expects (F35). Payloads are invented, except for the recorded ones, which
//! are not part of the project: without them that test is skipped, and says so.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test may panic, and its files are only read"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use backtrail_formats::{
    HookError, HookEvent, HookKind, MAX_HOOK_PAYLOAD, MAX_HOOK_PROMPT, StartSource, ToolEffect,
    formats, hook_agents, hook_answer, hook_event, hook_shows, hook_takes_context,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const READS: ToolEffect = ToolEffect::ReadsOnly;
const CHANGES: ToolEffect = ToolEffect::MayChangeFiles;

/// Returns the kind that each event of an agent has, by name; all others are passed on.
fn expected(agent: &str, event: &str) -> &'static str {
    let known: &[(&str, &str)] = match agent {
        "claude-code" | "codex" | "qwen-code" => &[
            ("SessionStart", "start"),
            ("SessionEnd", "end"),
            ("UserPromptSubmit", "prompt"),
            ("PreToolUse", "tool start"),
            ("PostToolUse", "tool end"),
            ("PostToolUseFailure", "tool end"),
            ("Stop", "turn end"),
            ("Interrupt", "turn end"),
            ("notify", "turn end"),
            ("agent-turn-complete", "turn end"),
            ("SubagentStart", "sub-agent start"),
            ("SubagentStop", "sub-agent end"),
            ("PreCompact", "compaction"),
        ],
        "gemini-cli" => &[
            ("SessionStart", "start"),
            ("SessionEnd", "end"),
            ("BeforeAgent", "prompt"),
            ("BeforeTool", "tool start"),
            ("AfterTool", "tool end"),
            ("AfterAgent", "turn end"),
        ],
        "copilot-cli" => &[
            ("sessionStart", "start"),
            ("sessionEnd", "end"),
            ("userPromptSubmitted", "prompt"),
            ("preToolUse", "tool start"),
            ("PreToolUse", "tool start"),
            ("postToolUse", "tool end"),
            ("postToolUseFailure", "tool end"),
            ("agentStop", "turn end"),
            ("subagentStart", "sub-agent start"),
            ("subagentStop", "sub-agent end"),
            ("preCompact", "compaction"),
        ],
        "cline" => &[
            ("TaskStart", "start"),
            ("TaskResume", "start"),
            ("UserPromptSubmit", "prompt"),
            ("PreToolUse", "tool start"),
            ("PostToolUse", "tool end"),
            ("TaskComplete", "turn end"),
            ("TaskCancel", "turn end"),
            ("SessionShutdown", "end"),
        ],
        "opencode" => &[
            ("session.created", "start"),
            ("session.deleted", "end"),
            ("session.idle", "turn end"),
            ("session.compacted", "compaction"),
            ("chat.message", "prompt"),
            ("tool.execute.before", "tool start"),
            ("tool.execute.after", "tool end"),
        ],
        "pi" => &[
            ("session_start", "start"),
            ("session_shutdown", "end"),
            ("input", "prompt"),
            ("before_agent_start", "prompt"),
            ("tool_call", "tool start"),
            ("tool_result", "tool end"),
            ("agent_end", "turn end"),
            ("session_compact", "compaction"),
        ],
        agent => panic!("{agent} has hooks, but no expectation"),
    };
    let found = known.iter().find(|(name, _)| *name == event);
    found.map_or("other", |(_, kind)| kind)
}

fn label(kind: &HookKind) -> &'static str {
    match kind {
        HookKind::SessionStart { .. } => "start",
        HookKind::SessionEnd => "end",
        HookKind::Prompt { .. } => "prompt",
        HookKind::ToolStart { .. } => "tool start",
        HookKind::ToolEnd { .. } => "tool end",
        HookKind::TurnEnd => "turn end",
        HookKind::SubAgentStart => "sub-agent start",
        HookKind::SubAgentEnd => "sub-agent end",
        HookKind::Compaction => "compaction",
        HookKind::Other(_) => "other",
        kind => panic!("{kind:?} has no label"),
    }
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Reads a payload that has all that it needs.
fn event(agent: &str, payload: &Value) -> HookEvent {
    hook_event(agent, None, payload.to_string().as_bytes()).unwrap()
}

fn seed(name: &str) -> Value {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus-seeds/hooks");
    serde_json::from_slice(&std::fs::read(seeds.join(name)).unwrap()).unwrap()
}

/// Returns the agent and the event of each seed: `AGENT.EVENT.NUMBER.json`.
fn seeds() -> Vec<(String, String, PathBuf)> {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus-seeds/hooks");
    let seeds = files(&seeds).into_iter().map(|path| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let (agent, rest) = name.split_once('.').unwrap();
        let event = rest
            .strip_suffix(".json")
            .unwrap()
            .rsplit_once('.')
            .unwrap();
        (agent.to_owned(), event.0.to_owned(), path)
    });
    seeds.collect()
}

/// Events that are not what their name says: continued prompts, and sub-agents.
const ODD_SEEDS: [(&str, &str); 4] = [
    ("qwen-code.UserPromptSubmit.2.json", "other"),
    ("cline.TaskStart.2.json", "sub-agent start"),
    ("cline.TaskComplete.2.json", "sub-agent end"),
    ("opencode.session.created.2.json", "sub-agent start"),
];

#[test]
fn every_seed_gives_the_event_of_its_name() {
    for (agent, name, path) in seeds() {
        let payload = std::fs::read(&path).unwrap();
        let file = path.file_name().unwrap().to_str().unwrap();
        let odd = ODD_SEEDS.iter().find(|(odd, _)| *odd == file);
        let kind = odd.map_or_else(|| expected(&agent, &name), |(_, kind)| kind);
        for given in [None, Some(name.as_str())] {
            let event = hook_event(&agent, given, &payload).unwrap();
            assert_eq!(label(&event.kind), kind, "{file}");
            assert_eq!(event.agent, agent);
            if file != "pi.before_agent_start.1.json" {
                assert!(event.session.is_some(), "{file}");
            }
            if file != "opencode.session.idle.2.json" {
                assert_eq!(event.directory.as_deref(), Some(Path::new("/home/me/shop")));
            }
        }
    }
}

#[test]
fn agents_with_hooks_are_those_of_the_formats() {
    for agent in hook_agents() {
        assert!(formats().any(|format| format.name() == agent), "{agent}");
        assert!(seeds().iter().any(|(of, _, _)| of == agent), "{agent}");
    }
}

#[test]
fn every_recorded_payload_gives_the_event_of_its_name() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/agents/hooks");
    if !root.is_dir() {
        eprintln!(
            "SKIPPED: needs the samples; there are none in {}",
            root.display()
        );
        return;
    }
    let names = BTreeMap::from([
        ("claude", "claude-code"),
        ("cline", "cline"),
        ("codex", "codex"),
        ("copilot", "copilot-cli"),
        ("gemini", "gemini-cli"),
        ("opencode", "opencode"),
        ("pi", "pi"),
        ("qwen", "qwen-code"),
    ]);
    let mut kinds: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for dir in files(&root) {
        let agent = names[dir.file_name().unwrap().to_str().unwrap()];
        for path in files(&dir) {
            let kind = check_recorded(agent, &path);
            kinds.entry(agent).or_default().push(kind);
        }
    }
    assert_eq!(kinds.len(), names.len());
    for (agent, kinds) in kinds {
        assert!(
            kinds.contains(&"tool start") && kinds.contains(&"tool end"),
            "{agent}"
        );
    }
}

/// Checks one recorded payload, with and without its event's name, and returns its kind.
fn check_recorded(agent: &str, path: &Path) -> &'static str {
    let stem = path.file_stem().unwrap().to_str().unwrap();
    let (name, number) = stem.rsplit_once('-').unwrap();
    let name = name.strip_prefix("event_").unwrap_or(name);
    let payload = std::fs::read(path).unwrap();
    let event = hook_event(agent, Some(name), &payload).unwrap();
    let kind = label(&event.kind);
    let is_continued = (agent, name, number) == ("qwen-code", "UserPromptSubmit", "2");
    let wanted = if is_continued {
        "other"
    } else {
        expected(agent, name)
    };
    assert_eq!(kind, wanted, "{}", path.display());
    if let HookKind::Other(other) = &event.kind {
        assert_eq!(other, name, "{}", path.display());
    }
    if kind != "other" {
        let alone = hook_event(agent, None, &payload);
        assert_eq!(alone.unwrap(), event, "{}", path.display());
        // What our own extension for pi adds is not in what it was given.
        let has_session = event.session.is_some() || agent == "pi";
        assert!(has_session, "{}", path.display());
    }
    kind
}

#[test]
fn the_four_alike_agents_tell_session_turn_transcript_and_call() {
    for (agent, turn) in [
        ("claude-code", "p-7"),
        ("codex", "t-7"),
        ("qwen-code", "p-7"),
    ] {
        let payload = seed(&format!("{agent}.PreToolUse.2.json"));
        let event = event(agent, &payload);
        assert_eq!(event.session.as_deref(), payload["session_id"].as_str());
        assert_eq!(event.turn.as_deref(), Some(turn));
        let transcript = payload["transcript_path"].as_str().map(Path::new);
        assert_eq!(event.transcript.as_deref(), transcript);
        assert_eq!(event.sub_agent, None);
        let HookKind::ToolStart { call, effect, .. } = event.kind else {
            panic!("{:?}", event.kind);
        };
        assert_eq!(
            (call.as_deref(), effect),
            (Some("call_1"), CHANGES),
            "{agent}"
        );
    }
    let gemini = event("gemini-cli", &seed("gemini-cli.BeforeTool.1.json"));
    assert_eq!(gemini.kind, tool_start(None, "read_file", READS));
}

fn tool_start(call: Option<&str>, name: &str, effect: ToolEffect) -> HookKind {
    HookKind::ToolStart {
        call: call.map(str::to_owned),
        name: name.to_owned(),
        effect,
    }
}

fn tool_end(call: Option<&str>, name: &str, failed: Option<bool>) -> HookKind {
    HookKind::ToolEnd {
        call: call.map(str::to_owned),
        name: name.to_owned(),
        effect: CHANGES,
        failed,
    }
}

#[test]
fn a_tool_that_only_reads_is_told_from_one_that_may_change_files() {
    for (seed_name, kind) in [
        (
            "claude-code.PreToolUse.1.json",
            tool_start(Some("call_1"), "Read", READS),
        ),
        (
            "codex.PreToolUse.1.json",
            tool_start(Some("call_1"), "update_plan", READS),
        ),
        (
            "codex.PreToolUse.2.json",
            tool_start(Some("call_1"), "Bash", CHANGES),
        ),
        (
            "qwen-code.PreToolUse.1.json",
            tool_start(Some("call_1"), "read_file", READS),
        ),
        // A tool of an MCP server that has the name of one that only reads.
        (
            "gemini-cli.BeforeTool.2.json",
            tool_start(None, "read_file", CHANGES),
        ),
        (
            "copilot-cli.preToolUse.1.json",
            tool_start(None, "view", READS),
        ),
        (
            "copilot-cli.preToolUse.2.json",
            tool_start(None, "create", CHANGES),
        ),
        (
            "cline.PreToolUse.1.json",
            tool_start(Some("call_1"), "read_files", READS),
        ),
        (
            "cline.PreToolUse.2.json",
            tool_start(None, "write_to_file", CHANGES),
        ),
        (
            "opencode.tool.execute.before.1.json",
            tool_start(Some("call_1"), "read", READS),
        ),
        (
            "opencode.tool.execute.before.2.json",
            tool_start(Some("call_2"), "bash", CHANGES),
        ),
        (
            "pi.tool_call.1.json",
            tool_start(Some("call_1"), "read", READS),
        ),
        (
            "pi.tool_call.2.json",
            tool_start(Some("call_2"), "write", CHANGES),
        ),
    ] {
        let agent = seed_name.split_once('.').unwrap().0;
        assert_eq!(event(agent, &seed(seed_name)).kind, kind, "{seed_name}");
    }
    for name in [
        "mcp__disk__Read",
        "read",
        "READ",
        "Read ",
        "",
        "Task",
        "NewTool",
    ] {
        let payload = json!({"hook_event_name": "PreToolUse", "tool_name": name});
        let HookKind::ToolStart { effect, .. } = event("claude-code", &payload).kind else {
            panic!("{name}");
        };
        assert_eq!(effect, CHANGES, "{name}");
    }
}

#[test]
fn a_failed_tool_is_told_where_the_agent_tells_it() {
    for (seed_name, kind) in [
        (
            "claude-code.PostToolUse.1.json",
            tool_end(Some("call_1"), "Write", Some(false)),
        ),
        (
            "claude-code.PostToolUseFailure.1.json",
            tool_end(Some("call_1"), "Write", Some(true)),
        ),
        (
            "codex.PostToolUse.1.json",
            tool_end(Some("call_1"), "Bash", None),
        ),
        (
            "gemini-cli.AfterTool.1.json",
            tool_end(None, "run_shell_command", Some(false)),
        ),
        (
            "gemini-cli.AfterTool.2.json",
            tool_end(None, "replace", Some(true)),
        ),
        (
            "copilot-cli.postToolUse.1.json",
            tool_end(None, "create", Some(false)),
        ),
        (
            "copilot-cli.postToolUse.2.json",
            tool_end(None, "bash", Some(true)),
        ),
        (
            "copilot-cli.postToolUseFailure.1.json",
            tool_end(None, "bash", Some(true)),
        ),
        (
            "cline.PostToolUse.1.json",
            tool_end(Some("call_2"), "editor", Some(false)),
        ),
        (
            "cline.PostToolUse.2.json",
            tool_end(Some("call_2"), "run_commands", Some(true)),
        ),
        (
            "opencode.tool.execute.after.1.json",
            tool_end(Some("call_2"), "bash", None),
        ),
        (
            "pi.tool_result.1.json",
            tool_end(Some("call_3"), "bash", Some(true)),
        ),
    ] {
        let agent = seed_name.split_once('.').unwrap().0;
        assert_eq!(event(agent, &seed(seed_name)).kind, kind, "{seed_name}");
    }
}

#[test]
fn a_prompt_has_its_text_and_a_continued_one_is_no_prompt() {
    let prompt = |text: &str| HookKind::Prompt {
        text: Some(text.to_owned()),
    };
    for (seed_name, text) in [
        ("claude-code.UserPromptSubmit.1.json", "add a login page"),
        ("gemini-cli.BeforeAgent.1.json", "add a login page"),
        ("cline.UserPromptSubmit.1.json", "add a login page"),
        ("opencode.chat.message.1.json", "add a\nlogin page"),
        ("pi.input.1.json", "add a login page"),
    ] {
        let agent = seed_name.split_once('.').unwrap().0;
        assert_eq!(
            event(agent, &seed(seed_name)).kind,
            prompt(text),
            "{seed_name}"
        );
    }
    // Qwen Code sends this after each batch of tools, with the turn of the prompt.
    let first = event("qwen-code", &seed("qwen-code.UserPromptSubmit.1.json"));
    let again = event("qwen-code", &seed("qwen-code.UserPromptSubmit.2.json"));
    assert_eq!(first.kind, prompt("add a login page"));
    assert_eq!(again.kind, HookKind::Other("UserPromptSubmit".to_owned()));
    assert_eq!(first.turn, again.turn);
    // A prompt of images alone has no text, and is still a prompt.
    let images = json!({"hook_event_name": "UserPromptSubmit", "prompt": ""});
    assert_eq!(
        event("claude-code", &images).kind,
        HookKind::Prompt { text: None }
    );
}

#[test]
fn a_session_starts_in_the_way_that_the_agent_says() {
    for (seed_name, source) in [
        ("claude-code.SessionStart.1.json", StartSource::Startup),
        ("codex.SessionStart.2.json", StartSource::Resume),
        ("gemini-cli.SessionStart.1.json", StartSource::Clear),
        ("copilot-cli.sessionStart.1.json", StartSource::Startup),
        ("cline.TaskStart.1.json", StartSource::Startup),
        ("cline.TaskResume.1.json", StartSource::Resume),
        ("opencode.session.created.1.json", StartSource::Startup),
        ("pi.session_start.2.json", StartSource::Other),
    ] {
        let agent = seed_name.split_once('.').unwrap().0;
        let kind = event(agent, &seed(seed_name)).kind;
        assert_eq!(kind, HookKind::SessionStart { source }, "{seed_name}");
    }
}

#[test]
fn a_sub_agent_is_named_and_the_agent_itself_is_not_one() {
    let sub_agent = |seed_name: &str| {
        let agent = seed_name.split_once('.').unwrap().0;
        event(agent, &seed(seed_name)).sub_agent
    };
    assert_eq!(
        sub_agent("claude-code.SubagentStop.1.json").as_deref(),
        Some("a5")
    );
    assert_eq!(
        sub_agent("codex.SubagentStart.1.json").as_deref(),
        Some("a5")
    );
    assert_eq!(
        sub_agent("copilot-cli.subagentStart.1.json").as_deref(),
        Some("explore")
    );
    assert_eq!(
        sub_agent("cline.TaskStart.2.json").as_deref(),
        Some("agent_1770091506000_x")
    );
    assert_eq!(sub_agent("cline.TaskStart.1.json"), None);
    assert_eq!(
        sub_agent("opencode.session.created.2.json").as_deref(),
        Some("ses_1")
    );
    assert_eq!(sub_agent("opencode.session.created.1.json"), None);
}

#[test]
fn the_session_of_cline_is_the_one_that_its_directory_is_named_after() {
    let new = event("cline", &seed("cline.PreToolUse.1.json"));
    assert_eq!(new.session.as_deref(), Some("1770091506000_ab1cd"));
    // The editor's extension has no root.
    let old = event("cline", &seed("cline.PreToolUse.2.json"));
    assert_eq!(old.session.as_deref(), Some("1770091506000"));
    assert_eq!(old.directory.as_deref(), Some(Path::new("/home/me/shop")));
}

#[test]
fn what_is_not_a_payload_is_an_error_that_says_why() {
    let error = |agent, payload: &[u8]| hook_event(agent, None, payload).unwrap_err();
    assert_eq!(error("claude-code", b""), HookError::Empty);
    assert_eq!(error("claude-code", b"\xef\xbb\xbf \n"), HookError::Empty);
    let unknown = error("emacs", b"{}").to_string();
    assert!(
        unknown.contains("\"emacs\"") && unknown.contains("claude-code"),
        "{unknown}"
    );
    let no_event = error("copilot-cli", b"{\"cwd\":\"/a\"}");
    assert_eq!(
        no_event,
        HookError::NoEvent {
            agent: "copilot-cli"
        }
    );
    assert!(no_event.to_string().contains("--event"), "{no_event}");
    for payload in [
        "[]", "null", "1", "\"a\"", "{", "{}{}", "{\"a\":}", "{'a':1}", "\0", "{}\0",
    ] {
        for agent in hook_agents() {
            let error = error(agent, payload.as_bytes());
            let is_expected = matches!(error, HookError::NotAnObject { .. });
            assert!(is_expected, "{agent} {payload:?}: {error}");
        }
    }
    let large = vec![b' '; MAX_HOOK_PAYLOAD + 1];
    assert_eq!(error("pi", &large), HookError::Empty);
    let large = [b"{\"type\":\"input\"}".as_slice(), &large].concat();
    assert!(matches!(error("pi", &large), HookError::TooLarge { .. }));
}

#[test]
fn a_field_of_another_type_is_absent_and_the_rest_is_read() {
    let long = "x".repeat(40 << 10);
    let odd = [
        "1",
        "1e99999",
        "null",
        "true",
        "[]",
        "{}",
        "[[[]]]",
        "{\"a\":[1]}",
        "\"\"",
        "\" \"",
        "\"\\u0000\"",
        &format!("\"{long}\""),
    ];
    for value in odd {
        let payload = format!(
            "{{\"hook_event_name\":\"PreToolUse\",\"session_id\":{value},\"prompt_id\":{value},\
             \"transcript_path\":{value},\"cwd\":{value},\"agent_id\":{value},\
             \"tool_use_id\":{value},\"tool_name\":{value},\"unknown\":{value}}}"
        );
        let event = hook_event("claude-code", None, payload.as_bytes()).unwrap();
        assert_eq!(event.kind, tool_start(None, "", CHANGES), "{value:.40}");
        let ids = [&event.session, &event.turn, &event.sub_agent];
        assert_eq!(ids, [&None; 3], "{value:.40}");
        assert_eq!(
            (event.transcript, event.directory),
            (None, None),
            "{value:.40}"
        );
    }
    // The name of the event is one of these fields too: then the given one counts.
    let nameless = br#"{"hook_event_name":7,"session_id":"s"}"#;
    let event = hook_event("claude-code", Some("Stop"), nameless).unwrap();
    assert_eq!(
        (event.kind, event.session.as_deref()),
        (HookKind::TurnEnd, Some("s"))
    );
}

#[test]
fn of_a_field_that_is_there_twice_the_last_counts() {
    let payload =
        br#"{"hook_event_name":"Stop","cwd":"/a","cwd":"/b","session_id":"1","session_id":2}"#;
    let event = hook_event("claude-code", None, payload).unwrap();
    assert_eq!(event.directory.as_deref(), Some(Path::new("/b")));
    assert_eq!(event.session, None);
}

#[test]
fn bytes_that_are_not_text_cost_only_the_path_that_has_them() {
    let payload = b"{\"hook_event_name\":\"PreToolUse\",\"cwd\":\"/a\xff\",\"session_id\":\"s\",\
        \"transcript_path\":\"/b\",\"tool_input\":\"\xc3\"}";
    let event = hook_event("codex", None, payload).unwrap();
    assert_eq!(event.directory, None);
    assert_eq!(event.transcript.as_deref(), Some(Path::new("/b")));
    assert_eq!(event.session.as_deref(), Some("s"));
    // The same character in a text that was whole is just a character.
    let whole = json!({"hook_event_name": "Stop", "cwd": "/a\u{fffd}"});
    let event = self::event("codex", &whole);
    assert_eq!(event.directory.as_deref(), Some(Path::new("/a\u{fffd}")));
    // And so is a half of a surrogate pair that an agent cut.
    let half = br#"{"hook_event_name":"Stop","last_assistant_message":"\ud83d","cwd":"/c"}"#;
    let event = hook_event("codex", None, half).unwrap();
    assert_eq!(event.directory.as_deref(), Some(Path::new("/c")));
}

/// A quadratic reader would take hours for these.
#[test]
fn a_payload_of_64_mib_is_read_whatever_it_is_made_of() {
    let head = "{\"hook_event_name\":\"PreToolUse\",\"session_id\":\"s\",\"tool_input\":";
    let tail = ",\"tool_name\":\"Write\",\"cwd\":\"/a\"}";
    let room = MAX_HOOK_PAYLOAD - head.len() - tail.len() - 8;
    for (open, filling, close) in [
        ("\"", "x", "\""),
        ("\"", "\\\\", "\""),
        ("\"", "\\\"", "\""),
        ("\"", "\\u0000", "\""),
        ("[0", ",0", "]"),
        ("{\"a\":0", ",\"session_id\":0", "}"),
        ("0", ",\"session_id\":\"s\"", ""),
    ] {
        let filling = filling.repeat((room - open.len() - close.len()) / filling.len());
        let payload = format!("{head}{open}{filling}{close}{tail}");
        let event = hook_event("claude-code", None, payload.as_bytes()).unwrap();
        assert_eq!(event.session.as_deref(), Some("s"));
        assert_eq!(event.directory.as_deref(), Some(Path::new("/a")));
    }
    let deep = (room / 2).min(8 << 20);
    let payload = format!("{head}{}{}{tail}", "[".repeat(deep), "]".repeat(deep));
    let event = hook_event("claude-code", None, payload.as_bytes()).unwrap();
    assert_eq!(event.kind, tool_start(None, "Write", CHANGES));
    let unclosed = format!("{head}{}", "{\"a\":".repeat(4 << 20));
    assert!(hook_event("claude-code", None, unclosed.as_bytes()).is_err());
}

#[test]
fn a_long_prompt_is_cut_between_two_characters() {
    let text = "ü".repeat(MAX_HOOK_PROMPT);
    let cut = |kind| match kind {
        HookKind::Prompt { text: Some(text) } => text,
        kind => panic!("{kind:?}"),
    };
    let payload = json!({"hook_event_name": "BeforeAgent", "prompt": format!("x{text}")});
    let kept = cut(event("gemini-cli", &payload).kind);
    assert_eq!(kept.len(), MAX_HOOK_PROMPT - 1);
    assert!(format!("x{text}").starts_with(&kept));
    let part = json!({"type": "text", "text": text});
    let payload = json!({"input": {}, "output": {"message": {}, "parts": [part, part]}});
    assert_eq!(cut(event("opencode", &payload).kind).len(), MAX_HOOK_PROMPT);
}

#[test]
fn the_answer_is_what_the_agent_expects() {
    let start = HookKind::SessionStart {
        source: StartSource::Startup,
    };
    let prompt = HookKind::Prompt { text: None };
    let tool = tool_start(None, "Write", CHANGES);
    let other = HookKind::Other("x".to_owned());
    let answer = |agent, kind: &HookKind, shown, context| {
        let answer: Option<String> = hook_answer(agent, kind, shown, context);
        answer.map(|answer| serde_json::from_str::<Value>(&answer).unwrap())
    };
    for (agent, event, nothing) in [
        ("claude-code", "UserPromptSubmit", None),
        ("codex", "UserPromptSubmit", None),
        ("qwen-code", "UserPromptSubmit", Some(json!({}))),
        ("gemini-cli", "BeforeAgent", Some(json!({}))),
    ] {
        let shown = json!({"systemMessage": "undo ready"});
        assert_eq!(answer(agent, &start, Some("undo ready"), None), Some(shown));
        let context = json!({"hookSpecificOutput":
            {"hookEventName": event, "additionalContext": "undid"}});
        assert_eq!(answer(agent, &prompt, None, Some("undid")), Some(context));
        for kind in [&start, &prompt, &tool, &other] {
            assert_eq!(answer(agent, kind, None, None), nothing, "{agent}");
        }
        assert_eq!(answer(agent, &tool, None, Some("undid")), nothing);
        assert_eq!(
            answer(agent, &HookKind::SessionEnd, Some("bye"), None),
            nothing
        );
    }
    let context = json!({"additionalContext": "undid"});
    assert_eq!(
        answer("copilot-cli", &prompt, Some("x"), Some("undid")),
        Some(context)
    );
    assert_eq!(answer("copilot-cli", &tool, Some("x"), Some("undid")), None);
    let go_on = json!({"cancel": false});
    assert_eq!(answer("cline", &tool, Some("x"), None), Some(go_on));
    let context = json!({"cancel": false, "contextModification": "undid"});
    assert_eq!(answer("cline", &tool, None, Some("undid")), Some(context));
    assert_eq!(answer("cline", &start, Some("x"), Some("undid")), None);
    for agent in ["opencode", "pi"] {
        let both = json!({"show": "x", "context": "undid"});
        assert_eq!(answer(agent, &prompt, Some("x"), Some("undid")), Some(both));
        assert_eq!(answer(agent, &tool, Some("x"), Some("undid")), None);
    }
    assert_eq!(answer("emacs", &start, Some("x"), Some("y")), None);
    assert!(!hook_shows("emacs", &start) && !hook_takes_context("emacs", &prompt));
}

/// Strings as ids, names and paths may be, and stranger.
fn word() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9_./ \"\\\\üß漢🦀-]{0,40}[a-z]"
}

/// A value that is nobody's business.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z_]{1,8}", inner, 0..4)
                .prop_map(|fields| Value::from(serde_json::Map::from_iter(fields))),
        ]
    })
}

/// Writes an object with its fields in another order, blanks between them, and others around.
fn shuffled(fields: &Value, others: &[(String, Value)], turn: usize, pretty: bool) -> String {
    let fields = fields.as_object().unwrap().iter();
    let mut all: Vec<(String, Value)> = fields
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let others = others
        .iter()
        .map(|(name, value)| (format!("zz{name}"), value.clone()));
    all.extend(others);
    let turn = turn % all.len();
    all.rotate_left(turn);
    let blank = if pretty { "\n\t " } else { "" };
    let fields = all.iter().map(|(name, value)| {
        let value = match pretty {
            true => serde_json::to_string_pretty(value).unwrap(),
            false => value.to_string(),
        };
        format!(
            "{blank}{}{blank}:{blank}{value}",
            Value::from(name.as_str())
        )
    });
    format!("{{{}{blank}}}", fields.collect::<Vec<_>>().join(","))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        rng_seed: prop::test_runner::RngSeed::Fixed(35),
        ..ProptestConfig::default()
    })]

    #[test]
    fn fields_are_found_wherever_they_are(
        session in word(), directory in word(), call in word(), tool in word(),
        others in prop::collection::vec(("[a-z_]{1,8}", anything()), 0..6),
        big in anything(), turn in 0_usize..20, pretty in any::<bool>(),
    ) {
        let payloads = [
            ("claude-code", json!({"hook_event_name": "PreToolUse", "session_id": session,
                "cwd": directory, "tool_use_id": call, "tool_name": tool, "tool_input": big})),
            ("codex", json!({"hook_event_name": "PreToolUse", "session_id": session,
                "cwd": directory, "tool_use_id": call, "tool_name": tool, "tool_input": big})),
            ("qwen-code", json!({"hook_event_name": "PreToolUse", "session_id": session,
                "cwd": directory, "tool_call_id": call, "tool_use_id": "own", "tool_name": tool})),
            ("cline", json!({"hookName": "tool_call", "taskId": "own",
                "sessionContext": {"rootSessionId": session, "zz": big},
                "workspaceRoots": [directory, big],
                "tool_call": {"id": call, "name": tool, "input": big}})),
            ("opencode", json!({"directory": directory, "output": {"args": big},
                "input": {"tool": tool, "sessionID": session, "callID": call}})),
            ("pi", json!({"type": "tool_call", "session_id": session, "cwd": directory,
                "toolCallId": call, "toolName": tool, "input": big})),
        ];
        for (agent, payload) in payloads {
            let payload = shuffled(&payload, &others, turn, pretty);
            let event = hook_event(agent, None, payload.as_bytes()).unwrap();
            prop_assert_eq!(event.session.as_deref(), Some(session.as_str()), "{}", agent);
            prop_assert_eq!(event.directory.as_deref(), Some(Path::new(&directory)), "{}", agent);
            let HookKind::ToolStart { call: found, name, .. } = event.kind else {
                panic!("{agent}: {:?}", event.kind);
            };
            prop_assert_eq!(found.as_deref(), Some(call.as_str()), "{}", agent);
            prop_assert_eq!(name.as_str(), tool.as_str(), "{}", agent);
        }
    }
}
