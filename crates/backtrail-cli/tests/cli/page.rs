//! No arguments at all: a short page about this workspace, and what helps on from a
//! wrong word.

use std::fs;

use crate::kit::{Cli, snapshot};

#[test]
fn where_nothing_is_known_it_says_what_this_is_and_how_to_begin() {
    let cli = Cli::new();
    snapshot("page-new", &cli, &[], &[]);
    assert!(!cli.store().exists(), "to look makes nothing");
    let page = cli.run(&["--json"]).json();
    assert_eq!(page["workspace"], serde_json::Value::Null);
    assert_eq!(
        (&page["sessions"], &page["checkpoints"]),
        (&0.into(), &0.into())
    );
}

#[test]
fn where_something_happened_it_says_what_and_what_to_do() {
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
        shown.contains("1 session, 2 checkpoints; the store takes "),
        "{shown}"
    );
    let last = format!("Last: run \"sh -c 'echo 2 > a'\" in {}, ", &session[..8]);
    assert!(shown.contains(&last), "{shown}");
    assert!(shown.contains("; 2 files changed since."), "{shown}");
    for line in page.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    // What it names is understood.
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
    let last = format!("Last: session {} \"a talk\", ", &id[..8]);
    assert!(shown.contains(&last), "{shown}");
    assert!(shown.contains("backtrail show latest"), "{shown}");
    assert!(
        !shown.contains("backtrail undo"),
        "nothing to take back: {shown}"
    );
    // Elsewhere, it is known that there is something.
    let elsewhere = cli.work().join("elsewhere");
    fs::create_dir_all(elsewhere.join(".git")).unwrap();
    let mut command = cli.command(&[]);
    let ran = crate::kit::finish(command.current_dir(&elsewhere), b"");
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(ran.stdout.contains("1 session elsewhere"), "{ran:#?}");
}

#[test]
fn a_store_that_is_named_is_named_in_what_helps_on() {
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
    assert!(shown.stdout.contains("Last: run"), "{shown:#?}");
}

#[test]
fn a_word_that_is_nearly_right_brings_up_the_right_one() {
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
