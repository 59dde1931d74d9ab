//! Real sessions of every agent read as one would tell them: no JSON of known tools, no
//! injected text, no absolute paths of the workspace, and a title for each. What people typed
//! is compared with a reader in Python that knows nothing of Backtrail.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::kit::Cli;

/// Tags that agents put around what they add, and lines that they add to outputs.
const RAW: [&str; 32] = [
    "<system-reminder>",
    "<environment_context>",
    "<local-command-",
    "<command-name>",
    "<command-message>",
    "<bash-stdout>",
    "<user_instructions>",
    "<INSTRUCTIONS>",
    "<session_context>",
    "<git-context>",
    "<user_info>",
    "<SYSTEM_NOTICE>",
    "<SYSTEM_MESSAGE>",
    "<USER_SETTINGS_CHANGE>",
    "<qwen:user-prompt-submit-context>",
    "<task-notification>",
    "<turn_aborted>",
    "<untrusted_context>",
    "<tool_use_error>",
    "<tool_use>",
    "<shellId:",
    "Chunk ID: ",
    "Wall time: ",
    "Process Group PGID: ",
    "[Request interrupted by user",
    "untitled",
    "## My request for Codex:",
    "thinking: **",
    "note: model",
    "note: title",
    "replaces 0 messages",
    "+0 −0",
];

/// Returns the directory of the samples, and a store with all of them.
fn imported() -> Option<(PathBuf, Cli, Vec<Value>)> {
    let shared = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    if !shared.join("samples").is_dir() || !shared.join("agents/samples").is_dir() {
        eprintln!("SKIPPED: needs the samples; there are none in {shared:?}");
        return None;
    }
    let cli = Cli::new();
    let dirs = [shared.join("samples"), shared.join("agents/samples")];
    let dirs = dirs.each_ref().map(|dir| dir.to_str().unwrap());
    // The hundreds of chats in one file of aider would take most of the time.
    let agents = [
        "claude-code",
        "codex",
        "gemini-cli",
        "opencode",
        "qwen-code",
        "copilot-cli",
        "cursor",
        "pi",
        "cline",
        "goose",
        "droid",
        "kimi-cli",
        "antigravity",
        "grok-cli",
        "openclaw",
        "hermes",
        "claw-code",
        "atif",
    ];
    let mut args = vec!["import", dirs[0], dirs[1]];
    args.extend(agents.iter().flat_map(|agent| ["--from", agent]));
    let ran = cli.run(&args);
    assert!(ran.code <= 1, "{ran:#?}");
    let ids = cli.run(&["list", "--all", "--json", "-n", "10000"]).json();
    let mut rows = Vec::new();
    collect(&ids, &mut rows);
    assert!(rows.len() > 150, "{}", rows.len());
    Some((shared, cli, rows))
}

/// Collects the rows of a list, also those that are folded into others.
fn collect(value: &Value, rows: &mut Vec<Value>) {
    match value {
        Value::Array(list) => list.iter().for_each(|value| collect(value, rows)),
        Value::Object(fields) => {
            if fields.contains_key("id") && fields.contains_key("turns") {
                rows.push(value.clone());
            }
            fields.values().for_each(|value| collect(value, rows));
        }
        _ => {}
    }
}

/// Returns the prompts of a session, as the records have them.
fn typed(shown: &Value) -> String {
    let messages = shown["messages"].as_array().unwrap().iter();
    let users = messages.filter(|message| message["role"] == "user");
    users.map(|message| message["blocks"].to_string()).collect()
}

/// One store for all checks: importing takes most of the time.
#[test]
fn every_sample_reads_as_one_would_tell_it() {
    let Some((shared, cli, rows)) = imported() else {
        return;
    };
    nothing_is_raw(&cli, &rows);
    prompts_are_those_that_were_typed(&shared, &rows);
}

fn nothing_is_raw(cli: &Cli, rows: &[Value]) {
    let mut wrong = Vec::new();
    for row in rows {
        let id = row["id"].as_str().unwrap();
        let ran = cli.run(&["show", id]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        assert!(has_title(row, &ran.stdout), "{row:#?} {}", ran.stdout);
        let root = row["workspace"]
            .as_str()
            .filter(|root| root.starts_with('/'));
        let home = root.filter(|root| root.starts_with("/Users/") || root.starts_with("/home/"));
        let home = home.map(|root| root.split('/').take(3).collect::<Vec<_>>().join("/") + "/");
        let root = root.map(|root| format!("{root}/"));
        let prompts = typed(&cli.run(&["show", id, "--json"]).json());
        for (n, line) in ran.stdout.lines().enumerate() {
            let raw = RAW.iter().find(|raw| line.contains(**raw));
            let is_call = line.trim_start().starts_with('⚙');
            // People may have pasted some.
            let was_typed = prompts.contains(r#"{\"type\""#);
            let is_json = !was_typed && line.trim_start().starts_with("{\"type\"")
                || is_call && (line.contains("{\"") || line.contains("\":"));
            // The head of the page names the workspace, and people name files as they like.
            let has_path = |root: &String| n > 4 && line.contains(root) && !prompts.contains(root);
            let has_path = root.as_ref().is_some_and(has_path)
                || is_call && home.as_ref().is_some_and(|home| line.contains(home));
            if raw.is_some() || is_json || has_path {
                wrong.push(format!("{id}: {line}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The title is the same in a list and on a page.
fn has_title(row: &Value, shown: &str) -> bool {
    let plain = |text: &str| text.split_whitespace().collect::<String>();
    let title = row["title"].as_str().unwrap_or("(nothing was said)");
    // A page cuts a very long one.
    let title: String = plain(title).chars().take(120).collect();
    plain(shown).starts_with(&title)
}

fn prompts_are_those_that_were_typed(shared: &Path, rows: &[Value]) {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/independent/prompts.py");
    let Ok(read) = Command::new("python3").arg(script).arg(shared).output() else {
        eprintln!("SKIPPED: needs python3; prompts were not compared");
        return;
    };
    assert!(read.status.success(), "{read:?}");
    let expected: Value = serde_json::from_slice(&read.stdout).unwrap();
    let expected = expected.as_object().unwrap();
    assert!(expected.len() > 10);
    for (id, expected) in expected {
        let row = rows.iter().find(|row| row["id"] == id.as_str()).unwrap();
        let prompts = expected["prompts"].as_array().unwrap();
        assert_eq!(row["turns"], prompts.len(), "{id}");
        let (title, whole) = (
            row["title"].as_str().unwrap(),
            expected["title"].as_str().unwrap(),
        );
        let is_same = match title.strip_suffix('…') {
            Some(start) => whole.starts_with(start),
            None => title == whole,
        };
        assert!(is_same, "{id}: {title:?} {whole:?}");
    }
}
