//! What is in an agent's usual place and is not a session does not become one: it is skipped
//! and named (F8), and whatever is whole in a damaged session is read (F19).

use std::path::PathBuf;

use backtrail::Store;
use backtrail_formats::{Environment, ImportOptions, formats, import};
use serde_json::{Value, json};

/// A file where each agent that keeps sessions in files has them.
const PLACES: &[(&str, &str)] = &[
    (
        "claude-code",
        ".claude/projects/-w/0b1c2d3e-0000-4000-8000-000000000001.jsonl",
    ),
    ("claude-code", ".claude/projects/-w/notes.jsonl"),
    (
        "claude-code",
        ".claude/projects/-w/0b1c2d3e-0000-4000-8000-000000000001/subagents/agent-a1.jsonl",
    ),
    (
        "codex",
        ".codex/sessions/2026/01/02/rollout-2026-01-02T03-04-05-019b7c00-0000-7000-8000-0000000000c1.jsonl",
    ),
    ("codex", ".codex/sessions/rollout-2026-01-02-x.json"),
    (
        "gemini-cli",
        ".gemini/tmp/shop/chats/session-2026-01-02T03-04-4e5f6071.jsonl",
    ),
    (
        "gemini-cli",
        ".gemini/tmp/shop/chats/session-2026-01-02T03-04-4e5f6072.json",
    ),
    (
        "qwen-code",
        ".qwen/projects/-w/chats/4e5f6071-0000-4000-8000-000000000001.jsonl",
    ),
    ("copilot-cli", ".copilot/session-state/abc/events.jsonl"),
    ("cursor", ".cursor/projects/w/agent-transcripts/abc.jsonl"),
    ("pi", ".pi/agent/sessions/--w--/abc.jsonl"),
    ("cline", ".cline/data/sessions/abc/abc.messages.json"),
    (
        "cline",
        ".cline/data/tasks/1767323100000/api_conversation_history.json",
    ),
    (
        "roo-code",
        ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline/tasks/abc/api_conversation_history.json",
    ),
    (
        "kilo-code",
        ".kilocode/cli/global/tasks/abc/api_conversation_history.json",
    ),
    ("goose", ".local/share/goose/sessions/20250102_030405.jsonl"),
    ("droid", ".factory/sessions/abc.jsonl"),
    ("kimi-cli", ".kimi/sessions/abc/def/context.jsonl"),
    (
        "kimi-cli",
        ".kimi-code/sessions/w/abc/agents/main/wire.jsonl",
    ),
    (
        "antigravity",
        ".gemini/antigravity/brain/abc/.system_generated/logs/transcript.jsonl",
    ),
    ("grok-cli", ".grok/sessions/w/abc/chat_history.jsonl"),
    ("openclaw", ".openclaw/agents/main/sessions/abc.jsonl"),
    ("hermes", ".hermes/sessions/session_abc.json"),
    ("claw-code", ".claw/sessions/session-abc.jsonl"),
    ("claw-code", ".claw/sessions/session-abc.json"),
];

struct Kit {
    dir: tempfile::TempDir,
    store: Store,
}

impl Kit {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(dir.path().join("store")).unwrap();
        Self { dir, store }
    }

    fn write(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.dir.path().join("home").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Imports what is at home, and returns what the report says of an agent.
    fn import(&self, agent: &str) -> Value {
        let environment = Environment::new(self.dir.path().join("home"));
        let report = import(&self.store, &ImportOptions::new(environment), &|_| {}).unwrap();
        assert!(report.errors.is_empty(), "{:?}", report.errors);
        let agents = serde_json::to_value(&report.agents).unwrap();
        let mut agents = agents.as_array().unwrap().iter();
        agents.find(|it| it["agent"] == agent).unwrap().clone()
    }
}

/// Returns bytes that are the same every time.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    };
    (0..len).map(|_| next()).collect()
}

fn garbage() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("random bytes", noise(5_000)),
        ("random bytes without a line break", {
            let bytes = noise(600).into_iter();
            bytes.filter(|byte| *byte != b'\n').collect()
        }),
        ("text", b"eggs\nmilk\nbread\n".to_vec()),
        ("a word", b"eggs".to_vec()),
        ("an empty object", b"{}".to_vec()),
        ("empty objects", b"{}\n{}\n".to_vec()),
        ("an empty list", b"[]\n".to_vec()),
        ("numbers", b"1\n2\n".to_vec()),
        (
            "other JSON",
            b"{\"price\":3,\"name\":\"eggs\"}\n{\"price\":4,\"name\":\"milk\"}\n".to_vec(),
        ),
        (
            "a list of other JSON",
            b"[{\"price\":3},{\"price\":4}]".to_vec(),
        ),
        ("zeros", vec![0; 5_000]),
        (
            "a line that was cut",
            b"{\"type\":\"user\",\"mess\n".to_vec(),
        ),
    ]
}

#[test]
fn f8_garbage_in_an_agents_place_is_skipped_and_named() {
    for (agent, place) in PLACES {
        for (what, content) in garbage() {
            if what == "a line that was cut" && place.ends_with(".json") {
                // It may be the beginning of the one value that such a file is.
                continue;
            }
            let kit = Kit::new();
            let path = kit.write(place, &content);
            let case = format!("{what} in {place}");
            for _ in 0..2 {
                let report = kit.import(agent);
                assert_eq!(report["errors"], json!([]), "{case}");
                assert_eq!(report["found"], 1, "{case}");
                assert_eq!(kit.store.sessions().unwrap(), [], "{case}");
                let skipped = report["skipped"].as_array().cloned().unwrap_or_default();
                assert_eq!(skipped.len(), 1, "{case}: {report:#}");
                assert_eq!(skipped[0]["file"], json!(path), "{case}");
                let title = report["title"].as_str().unwrap();
                let reason = skipped[0]["reason"].as_str().unwrap();
                let begin = format!("not a session file of {title}: ");
                assert!(reason.starts_with(&begin), "{case}: {reason}");
                assert_eq!(report["damaged_lines"], 0, "{case}");
            }
        }
    }
}

#[test]
fn a_file_that_was_only_begun_is_counted_as_without_a_conversation() {
    let begun = r#"{"type":"user","mess"#;
    for (agent, place) in PLACES {
        for content in ["", begun] {
            let kit = Kit::new();
            kit.write(place, content.as_bytes());
            let report = kit.import(agent);
            assert_eq!(kit.store.sessions().unwrap(), [], "{content} in {place}");
            assert_eq!(
                (&report["without_conversation"], &report["skipped"]),
                (&json!(1), &json!([])),
                "{content} in {place}: {report:#}"
            );
        }
    }
}

#[test]
fn f8_a_session_of_another_agent_is_not_read_as_ones_own() {
    for agent in ["antigravity", "grok-cli", "claude-code"] {
        let kit = Kit::new();
        let (_, place) = PLACES.iter().find(|(name, _)| *name == agent).unwrap();
        kit.write(place, codex_lines().concat().as_bytes());
        for _ in 0..2 {
            let report = kit.import(agent);
            let reason = report["skipped"][0]["reason"].as_str();
            let expected = "a session file of Codex; to import it, pass its path";
            assert_eq!(reason, Some(expected), "{report:#}");
            assert_eq!(kit.store.sessions().unwrap(), [], "{agent}");
        }
    }
}

#[test]
fn every_agent_with_files_has_a_place_here() {
    let has_files = |name: &&str| {
        // They have databases, or no place of their own.
        let others = [
            "opencode",
            "crush",
            "aider",
            "atif",
            "hf-traces",
            "checkpoint-files",
        ];
        !others.contains(name)
    };
    for agent in formats().map(|format| format.name()).filter(has_files) {
        assert!(PLACES.iter().any(|(name, _)| *name == agent), "{agent}");
    }
}

const CLAUDE: &str = "0b1c2d3e-0000-4000-8000-000000000001";

fn claude_line(uuid: &str, parent: Option<&str>) -> String {
    let line = json!({"parentUuid": parent, "isSidechain": false, "sessionId": CLAUDE,
        "type": "user", "message": {"role": "user", "content": "count the pears"},
        "uuid": uuid, "timestamp": "2026-01-02T03:04:05.000Z"});
    format!("{line}\n")
}

fn codex_lines() -> [String; 2] {
    let meta = json!({"timestamp": "2026-01-02T03:04:05.000Z", "type": "session_meta",
        "payload": {"id": "019b7c00-0000-7000-8000-0000000000c1", "cwd": "/w",
            "timestamp": "2026-01-02T03:04:05.000Z"}});
    let said = json!({"timestamp": "2026-01-02T03:04:06.000Z", "type": "response_item",
        "payload": {"type": "message", "role": "user",
            "content": [{"type": "input_text", "text": "count the pears"}]}});
    [format!("{meta}\n"), format!("{said}\n")]
}

#[test]
fn f19_whole_records_after_a_damaged_beginning_are_read() {
    let [_, codex] = codex_lines();
    for (agent, place, whole) in [
        ("claude-code", PLACES[0].1, claude_line("u1", None)),
        ("codex", PLACES[3].1, codex),
    ] {
        for (what, mut content) in garbage() {
            if content.last() != Some(&b'\n') {
                content.push(b'\n');
            }
            let kit = Kit::new();
            content.extend_from_slice(whole.as_bytes());
            kit.write(place, &content);
            let report = kit.import(agent);
            let case = format!("{what} before a record in {place}");
            assert_eq!(
                (&report["new"], &report["messages"]),
                (&json!(1), &json!(1)),
                "{case}"
            );
            assert_eq!(report["skipped"], json!([]), "{case}");
        }
    }
}

#[test]
fn f21_a_session_stays_when_its_file_becomes_garbage() {
    for (what, content) in garbage() {
        let kit = Kit::new();
        let whole = codex_lines().concat();
        kit.write(PLACES[3].1, whole.as_bytes());
        assert_eq!(kit.import("codex")["new"], 1);
        // As long as it was: a shorter one may only be cut off.
        let content = content.repeat(whole.len() / content.len() + 1);
        kit.write(PLACES[3].1, &content);
        for _ in 0..2 {
            let report = kit.import("codex");
            assert_eq!(counts(&report), [1, 0, 0, 1], "{what}");
            assert_eq!(report["without_conversation"], 0, "{what}");
        }
        kit.write(PLACES[3].1, whole.as_bytes());
        kit.import("codex");
        let ids = kit.store.sessions().unwrap();
        assert_eq!(ids.len(), 1, "{what}");
        let stats = kit.store.read_session(&ids[0]).unwrap().stats().unwrap();
        assert_eq!(stats.turns, 1, "{what}");
    }
}

/// Returns how many files were found, and are new, updated and unchanged.
fn counts(agent: &Value) -> [u64; 4] {
    ["found", "new", "updated", "unchanged"].map(|name| agent[name].as_u64().unwrap())
}

#[test]
fn a_file_becomes_a_session_with_its_own_times_when_it_has_a_conversation() {
    let kit = Kit::new();
    let queued = json!({"type": "queue-operation", "operation": "enqueue", "sessionId": CLAUDE,
        "timestamp": "2026-01-02T03:04:04.000Z", "content": "count the pears"});
    let queued = format!("{queued}\n");
    kit.write(PLACES[0].1, queued.as_bytes());
    let report = kit.import("claude-code");
    assert_eq!(
        (&report["new"], &report["without_conversation"]),
        (&json!(0), &json!(1))
    );
    let content = queued + &claude_line("u1", None);
    kit.write(PLACES[0].1, content.as_bytes());
    assert_eq!(kit.import("claude-code")["new"], 1);
    let id = CLAUDE.parse().unwrap();
    let info = kit.store.read_session(&id).unwrap().info().unwrap();
    assert!(!info.times_from_file);
    let at = "2026-01-02T03:04:05.000Z".parse().unwrap();
    assert_eq!((info.created_at, info.updated_at), (Some(at), Some(at)));
}

#[test]
fn a_session_never_ends_before_it_began() {
    let kit = Kit::new();
    let mut timeless: Value = serde_json::from_str(&claude_line("u1", None)).unwrap();
    timeless.as_object_mut().unwrap().remove("timestamp");
    let first = format!("{timeless}\n");
    kit.write(PLACES[0].1, first.as_bytes());
    kit.import("claude-code");
    let id = CLAUDE.parse().unwrap();
    let info = || kit.store.read_session(&id).unwrap().info().unwrap();
    assert!(info().times_from_file);
    kit.write(
        PLACES[0].1,
        (first + &claude_line("u2", Some("u1"))).as_bytes(),
    );
    assert_eq!(kit.import("claude-code")["updated"], 1);
    let at: backtrail::Timestamp = "2026-01-02T03:04:05.000Z".parse().unwrap();
    assert_eq!((info().created_at, info().updated_at), (Some(at), Some(at)));
}
