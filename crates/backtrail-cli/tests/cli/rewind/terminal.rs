//! Without a point: the last turns and runs, and on a terminal the question which.

use std::fs;

use serde_json::json;

use super::{files, run, seen, two_runs, write};
use crate::kit::Cli;
use crate::pty::{self, Terminal};

#[test]
fn without_a_terminal_the_points_are_listed_and_the_answer_is_no() {
    let (cli, [.., third]) = two_runs();
    let ran = cli.run(&["rewind"]);
    assert_eq!(
        seen(&ran, &cli),
        "\
exit 1
out:  1  <when>  run  sh -c 'echo 3 >> a'                          +1      1 file  last~1
out:  2  <when>  run  sh -c 'echo 2 >> a; echo new > n; rm src/x'  +2 −1  3 files  last~2
err: choose one: backtrail rewind last~1
"
    );
    assert_eq!(files(&cli.work()), third);
    let ran = cli.run(&["rewind", "--json"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    let listed = ran.json();
    assert_eq!(listed[1]["point"], "last~2");
    assert_eq!(listed[0]["about"], "sh -c 'echo 3 >> a'");
    assert_eq!(listed[0]["kind"], "run");
    assert_eq!(listed[0]["ended"], true);
}

/// What was undone and left for another way does not count, and is not listed.
#[test]
fn the_points_that_are_listed_are_the_ones_to_type() {
    let (cli, _) = two_runs();
    assert_eq!(cli.run(&["undo"]).code, 0);
    run(&cli, "echo another way >> a");
    let listed = cli.run(&["rewind", "--json"]).json();
    let listed = listed.as_array().unwrap();
    assert_eq!(listed.len(), 2, "{listed:#?}");
    assert_eq!(listed[0]["about"], "sh -c 'echo another way >> a'");
    for entry in listed {
        let point = entry["point"].as_str().unwrap();
        let to = cli.run(&["rewind", point, "--dry-run", "--json"]).json()["to"].clone();
        assert_eq!(entry["checkpoint"], to["checkpoint"]);
    }
}

#[test]
fn at_most_ten_are_listed_and_an_empty_list_is_reported() {
    let cli = Cli::new();
    write(&cli, "a", "0\n");
    assert_eq!(cli.run(&["checkpoint"]).code, 0);
    let ran = cli.run(&["rewind"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    assert!(ran.stderr.starts_with("no turns or runs in "), "{ran:#?}");
    assert_eq!(cli.run(&["rewind", "--json"]).json(), json!([]));
    for n in 0..12 {
        run(&cli, &format!("echo {n} > a"));
    }
    let ran = cli.run(&["rewind"]);
    assert_eq!(ran.stdout.lines().count(), 10, "{ran:#?}");
    assert!(
        ran.stdout.lines().last().unwrap().ends_with("  last~10"),
        "{ran:#?}"
    );
}

#[test]
fn on_a_terminal_a_number_chooses_and_a_wrong_one_is_asked_again() {
    if !pty::is_there() {
        return;
    }
    let (cli, [first, ..]) = two_runs();
    let mut terminal = Terminal::start(&cli.command(&["rewind"]));
    terminal.wait_for("(1-2, Enter to cancel) ");
    terminal.type_keys("7\n");
    terminal.wait_for("not in the list");
    terminal.wait_for("(1-2, Enter to cancel) ");
    terminal.type_keys("2\n");
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("Back to before the run `sh -c"), "{screen}");
    assert!(screen.contains("to reverse: backtrail undo"), "{screen}");
    assert_eq!(files(&cli.work()), first);
}

#[test]
fn on_a_terminal_enter_and_q_cancel() {
    if !pty::is_there() {
        return;
    }
    let (cli, [.., third]) = two_runs();
    for keys in ["\n", "q\n", "\u{4}"] {
        let mut terminal = Terminal::start(&cli.command(&["rewind"]));
        terminal.wait_for("Enter to cancel) ");
        terminal.type_keys(keys);
        let (code, screen) = terminal.end();
        assert_eq!(code, 1, "{keys:?}: {screen}");
        assert_eq!(files(&cli.work()), third);
    }
}

/// Readable without colours, and in a narrow terminal.
#[test]
fn lists_wrap_at_the_width_of_the_terminal() {
    if !pty::is_there() {
        return;
    }
    let cli = Cli::new();
    write(&cli, "a", "0\n");
    assert_eq!(cli.run(&["checkpoint", "one"]).code, 0);
    for n in 0..9 {
        let dir = cli.work().join("a rather long directory");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(format!("file-{n}.rs")), "x").unwrap();
    }
    assert_eq!(cli.run(&["checkpoint"]).code, 0);
    let mut command = cli.command(&["rewind", "one", "--dry-run"]);
    command.env("NO_COLOR", "1");
    let (code, screen) = Terminal::start(&command).end();
    assert_eq!(code, 0, "{screen}");
    assert!(!screen.contains('\u{1b}'), "{screen:?}");
    for line in screen.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert!(
        screen.contains("\r\n                a rather long directory/"),
        "{screen:?}"
    );
}

/// Whoever begins something meanwhile does not change what was chosen.
#[test]
fn what_is_chosen_is_what_was_listed() {
    if !pty::is_there() {
        return;
    }
    let (cli, _) = two_runs();
    let mut terminal = Terminal::start(&cli.command(&["rewind"]));
    terminal.wait_for("Enter to cancel) ");
    run(&cli, "echo 4 >> a");
    let now = files(&cli.work());
    terminal.type_keys("1\n");
    let (code, screen) = terminal.end();
    assert_eq!(code, 2, "{screen}");
    assert!(
        screen.contains("another turn or run has begun; nothing was touched"),
        "{screen}"
    );
    assert_eq!(files(&cli.work()), now);
}
