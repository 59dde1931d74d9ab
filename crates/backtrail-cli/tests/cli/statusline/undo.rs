//! `undo ready` is what undo would do, and `NOT PROTECTED` is said where it could do nothing.

use std::fs;

use serde_json::{Value, json};

use super::{line, status};
use crate::find::ok;
use crate::kit::Cli;
use crate::live::Claude;

fn write(cli: &Cli, name: &str, text: &str) {
    fs::write(cli.work().join(name), text).unwrap();
}

/// Returns how many files undo would change.
fn planned(cli: &Cli) -> usize {
    let plan = ok(cli.run(&["undo", "--dry-run", "--json"])).json();
    let changes = plan["files"].as_array().or(plan["changes"].as_array());
    changes.unwrap_or_else(|| panic!("{plan}")).len()
}

#[test]
fn it_counts_the_files_of_the_step_that_undo_takes() {
    let cli = Cli::new();
    let none = line(&cli, &json!({}));
    assert_eq!(none, "NOT PROTECTED (no checkpoint yet)");
    ok(cli.run(&["checkpoint"]));
    assert_eq!(line(&cli, &json!({})), "undo ready");
    ok(cli.run(&["run", "--", "sh", "-c", "echo a > a; echo b > b"]));
    ok(cli.run(&["run", "--", "sh", "-c", "echo c >> a"]));
    assert_eq!(line(&cli, &json!({})), "undo ready: 1 file");
    ok(cli.run(&["undo"]));
    assert_eq!(line(&cli, &json!({})), "undo ready: 2 files");
    ok(cli.run(&["undo"]));
    assert_eq!(
        line(&cli, &json!({})),
        "undo ready",
        "nothing is left to undo"
    );
    ok(cli.run(&["redo"]));
    assert_eq!(line(&cli, &json!({})), "undo ready: 2 files");
    assert_eq!(planned(&cli), 2);
    // A directory inside belongs to the workspace.
    fs::create_dir(cli.work().join("deep")).unwrap();
    let inside = json!({"cwd": cli.work().join("deep")});
    assert_eq!(line(&cli, &inside), "undo ready: 2 files");
    let json = status(&cli, &json!({}), &["--json"]).json();
    assert_eq!(
        json["undo"],
        json!({"ready": true, "files": 2, "source": "computed"})
    );
}

/// What Claude Code reports of the session that calls the hooks.
fn report(claude: &Claude) -> Value {
    json!({"session_id": "e07e0366-c23a-4a59-839c-dbb261253011", "cwd": claude.cli.work(),
        "cost": {"total_cost_usd": 1}})
}

#[test]
fn a_turn_of_an_agent_is_counted_while_it_works() {
    let claude = Claude::new();
    let cli = &claude.cli;
    write(cli, "mine", "1");
    let shown = || line(cli, &report(&claude)).replace("$1.00 · ", "");
    ok(cli.run(&["checkpoint"]));
    assert_eq!(shown(), "NOT PROTECTED (no checkpoint in this session)");
    claude.hook("UserPromptSubmit", json!({"prompt": "go"}));
    assert_eq!(shown(), "undo ready");
    let tool = |id: &str| json!({"tool_name": "Bash", "tool_use_id": id, "tool_input": {}});
    claude.hook("PreToolUse", tool("t-1"));
    write(cli, "a", "1");
    write(cli, "b", "1");
    claude.hook("PostToolUse", tool("t-1"));
    assert_eq!(shown(), "undo ready: 2 files");
    claude.hook("PreToolUse", tool("t-2"));
    write(cli, "a", "2");
    claude.hook("PostToolUse", tool("t-2"));
    // One of them twice: at most three.
    assert_eq!(shown(), "undo ready: ~3 files");
    claude.hook("Stop", json!({}));
    assert_eq!(shown(), "undo ready: ~3 files");
    let json = status(cli, &report(&claude), &["--json"]).json();
    assert_eq!(json["undo"]["source"], "estimated");

    // Another session of the agent, whose hooks do not come.
    let other = json!({"session_id": "another", "cwd": cli.work(),
        "cost": {"total_api_duration_ms": 5}});
    assert_eq!(
        line(cli, &other),
        "NOT PROTECTED (no checkpoint in this session)"
    );
    let new = json!({"session_id": "another", "cwd": cli.work()});
    assert_eq!(
        line(cli, &new),
        "undo ready: ~3 files",
        "it did nothing yet"
    );
}

#[test]
fn what_is_dropped_cannot_be_undone_and_what_is_not_known_is_not_said() {
    let cli = Cli::new();
    ok(cli.run(&["run", "--", "sh", "-c", "echo a > a"]));
    assert_eq!(line(&cli, &json!({})), "undo ready: 1 file");
    ok(cli.run(&["gc", "--older-than", "0d"]));
    assert_eq!(line(&cli, &json!({})), "undo ready");
    // Without the notes of where workspaces are, this one may be any of them.
    fs::remove_dir_all(cli.store().join("derived")).unwrap();
    let shown = line(&cli, &json!({"model": "m-1"}));
    assert_eq!(shown, "m-1");
    assert!(!cli.store().join("derived").exists());
}

#[test]
fn a_home_directory_is_not_protected() {
    let cli = Cli::new();
    let shown = line(&cli, &json!({"cwd": "/"}));
    assert_eq!(shown, "NOT PROTECTED (not a project directory)");
}
