//! No arguments at all: an overview of this workspace; and the hint after a wrong word.

use std::fs;

use crate::kit::{Cli, short, snapshot};

#[test]
fn a_new_user_sees_what_this_is_and_how_to_begin() {
    let cli = Cli::new();
    snapshot("overview-new", &cli, &[], &[]);
    assert!(!cli.store().exists(), "looking creates nothing");
    let page = cli.run(&["--json"]).json();
    assert_eq!(page["workspace"], serde_json::Value::Null);
    assert_eq!(
        (&page["sessions"], &page["checkpoints"]),
        (&0.into(), &0.into())
    );
}

#[test]
fn the_overview_shows_the_last_step_and_what_to_do_next() {
    let cli = Cli::new();
    fs::write(cli.work().join("a"), "1\n").unwrap();
    let ran = cli.run(&["run", "--", "sh", "-c", "echo 2 > a"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    fs::write(cli.work().join("a"), "3\n").unwrap();
    fs::write(cli.work().join("b"), "4\n").unwrap();
    let data = cli.run(&["--json"]).json();
    assert_eq!(data["sessions"], 1, "{data}");
    assert_eq!(data["checkpoints"], 2, "{data}");
    assert_eq!(data["changed"], 2, "{data}");
    assert_eq!(data["last"]["kind"], "run", "{data}");
    assert_eq!(data["last"]["about"], "sh -c 'echo 2 > a'", "{data}");
    let session = data["last"]["session"].as_str().unwrap().to_owned();
    // How large the store is differs from run to run.
    let bytes = data["store"]["bytes"].as_u64().unwrap();
    assert!(bytes > 0, "{data}");
    let page = cli.run(&[]).stdout;
    let shown = page.replace('\n', " ");
    assert!(
        shown.contains(" · 1 session, 2 checkpoints since ") && shown.contains(" · store "),
        "{shown}"
    );
    let last = format!(
        "Last step: run \"sh -c 'echo 2 > a'\" in {} (",
        short(&session)
    );
    assert!(shown.contains(&last), "{shown}");
    assert!(shown.contains("). 2 files changed since."), "{shown}");
    for line in page.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    // Every command it suggests exists.
    for command in data["commands"].as_array().unwrap() {
        let command = command["command"].as_str().unwrap();
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        let verb = [words[0], "--help"];
        assert_eq!(cli.run(&verb).code, 0, "{command}");
    }
}

#[test]
fn a_session_without_checkpoints_is_known_too() {
    let cli = Cli::new();
    let id = cli.talk();
    let shown = cli.run(&[]).stdout;
    assert!(shown.contains("1 session, 0 checkpoints"), "{shown}");
    let last = format!("Last session: {} \"a talk\" (", short(&id));
    assert!(shown.contains(&last), "{shown}");
    assert!(shown.contains("backtrail show latest"), "{shown}");
    assert!(
        !shown.contains("backtrail undo"),
        "nothing to undo: {shown}"
    );
    // Another directory hears of the session.
    let elsewhere = cli.work().join("elsewhere");
    fs::create_dir_all(elsewhere.join(".git")).unwrap();
    let mut command = cli.command(&[]);
    let ran = crate::kit::finish(command.current_dir(&elsewhere), b"");
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(ran.stdout.contains("1 session elsewhere"), "{ran:#?}");
}

#[test]
fn sessions_of_other_agents_are_counted_by_their_names() {
    let cli = Cli::new();
    let home = cli.work().join("home");
    let dir = home.join(".codex/sessions/2026/11/16");
    fs::create_dir_all(&dir).unwrap();
    for n in 1..=3 {
        let name =
            format!("rollout-2026-11-16T06-40-0{n}-0199a213-81a0-7800-8aa1-bbab2a035a5{n}.jsonl");
        fs::write(dir.join(name), "never read").unwrap();
    }
    let run = |args: &[&str]| {
        let mut command = cli.command(args);
        crate::kit::finish(command.env("HOME", &home), b"")
    };
    let ran = run(&[]);
    let found = "Found on this machine: 3 sessions from Codex.\n";
    assert!(ran.stdout.contains(found), "{ran:#?}");
    assert!(ran.stdout.contains("backtrail import"), "{ran:#?}");
    let data = run(&["--json"]).json();
    assert_eq!(data["agents"][0]["agent"], "codex", "{data}");
    assert_eq!(data["agents"][0]["sessions"], 3, "{data}");
    assert!(!cli.store().exists(), "looking creates nothing");
}

#[test]
fn suggested_commands_name_the_store() {
    let cli = Cli::new();
    let other = cli.work().join("other store");
    let ran = cli.run(&["--store", other.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let command = format!("backtrail --store '{}' checkpoint", other.display());
    assert!(ran.stdout.contains(&command), "{ran:#?}");
    assert!(!other.exists());
}

#[test]
fn hostile_titles_and_prompts_stay_off_the_screen() {
    let cli = Cli::new();
    let title = "\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}txt";
    let ran = cli.run(&["record", "--title", title, "--text", "x"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let shown = cli.run(&[]);
    let is_unsafe = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!shown.stdout.contains(is_unsafe), "{shown:#?}");
    assert!(shown.stdout.contains("txt"), "{shown:#?}");
    let hostile = format!(": '{title}'");
    cli.run(&["run", "--", "sh", "-c", &hostile]);
    let shown = cli.run(&[]);
    assert!(!shown.stdout.contains(is_unsafe), "{shown:#?}");
    assert!(shown.stdout.contains("Last step: run"), "{shown:#?}");
}

#[test]
fn a_misspelled_word_brings_up_the_right_one() {
    let cli = Cli::new();
    for (wrong, right) in [
        (&["shwo"][..], "'show'"),
        (&["serach", "x"], "'search'"),
        (&["show", "latest", "--folow"], "'--follow'"),
        (&["list", "--jsn"], "'--json'"),
        (&["completions", "bsh"], "'bash'"),
    ] {
        let ran = cli.run(wrong);
        assert_eq!((ran.code, &*ran.stdout), (2, ""), "{ran:#?}");
        assert!(ran.stderr.contains(right), "{wrong:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("--help"), "{wrong:?}: {}", ran.stderr);
    }
    // What is like nothing is refused all the same.
    let ran = cli.run(&["frobnicate"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("try '--help'"), "{}", ran.stderr);
}

#[test]
fn a_database_of_many_sessions_is_not_called_one_session() {
    let cli = Cli::new();
    let home = cli.work().join("home");
    let goose = home.join(".local/share/goose/sessions");
    let opencode = home.join(".local/share/opencode");
    // What its snapshots contain is not its own.
    for dir in [&goose, &opencode.join("snapshot/a")] {
        fs::create_dir_all(dir).unwrap();
    }
    for path in [
        goose.join("sessions.db"),
        goose.join("20250102_030405.jsonl"),
        goose.join("20250102_030406.jsonl"),
        opencode.join("opencode.db"),
        opencode.join("opencode-dev.db"),
        opencode.join("snapshot/a/opencode.db"),
    ] {
        fs::write(path, "never read").unwrap();
    }
    let run = |args: &[&str]| {
        let mut command = cli.command(args);
        crate::kit::finish(command.env("HOME", &home), b"")
    };
    let ran = run(&[]);
    let found = "Found on this machine: 2 databases from opencode, 2 sessions and 1 database from\n\
                 goose.\n";
    assert!(ran.stdout.contains(found), "{}", ran.stdout);
    let agents = run(&["--json"]).json()["agents"].clone();
    assert_eq!(
        agents,
        serde_json::json!([
            {"agent": "opencode", "sessions": 0, "databases": 2},
            {"agent": "goose", "sessions": 2, "databases": 1},
        ])
    );
}
