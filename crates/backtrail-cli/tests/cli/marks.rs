//! Labels, and runs that failed, were interrupted or are running, are marked wherever they are
//! listed.

use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::kit::{Cli, finish};

fn sh(cli: &Cli, line: &str) {
    cli.run(&["run", "--", "sh", "-c", line]);
}

/// Runs a verb at a width.
fn at(cli: &Cli, columns: &str, args: &[&str]) -> String {
    let mut command = cli.command(args);
    command.env("COLUMNS", columns);
    let ran = finish(&mut command, b"");
    assert_eq!(ran.code, 0, "{args:?}: {ran:#?}");
    ran.stdout
}

/// A label is found in the log: as it is, or over several lines.
fn shows(text: &str, label: &str) -> bool {
    let without = |text: &str| {
        text.chars()
            .filter(|c| !c.is_whitespace())
            .collect::<String>()
    };
    without(text).contains(&without(label))
}

#[test]
fn a_label_is_always_visible_in_the_log() {
    let cli = Cli::new();
    let long = "a label that is much longer than the line of the log has room for it";
    let word = "x".repeat(90);
    assert_eq!(cli.run(&["checkpoint", "begin"]).code, 0);
    let command = "echo a command that is so long that nothing else fits beside it > out";
    for label in ["idle-1", "idle-2"] {
        assert_eq!(cli.run(&["run", "--label", label, "--", "true"]).code, 0);
        sh(&cli, "true");
    }
    for label in ["labelled", long, &word] {
        let args = ["run", "--label", label, "--", "sh", "-c", command];
        assert_eq!(cli.run(&args).code, 0);
        sh(&cli, "true");
        sh(&cli, "true");
    }
    cli.run(&[
        "run",
        "--label",
        "failed-run",
        "--",
        "sh",
        "-c",
        "echo >> out; exit 3",
    ]);
    // A label within a run is one, too.
    let program = env!("CARGO_BIN_EXE_backtrail");
    let inner = format!("{program} run --label inner -- sh -c 'echo >> out'");
    sh(&cli, &inner);
    sh(&cli, &format!("{program} checkpoint within; echo >> out"));
    std::fs::write(cli.work().join("out"), "mine").unwrap();
    assert_eq!(cli.run(&["checkpoint", "mine"]).code, 0);
    let mut labels = vec![
        "begin",
        "idle-1",
        "idle-2",
        "labelled",
        long,
        &word,
        "failed-run",
    ];
    labels.extend(["inner", "within", "mine"]);
    for columns in ["40", "60", "80", "200"] {
        for args in [
            &["log"][..],
            &["log", "--all", "-n", "100"],
            &["log", "-n", "100"],
        ] {
            let log = at(&cli, columns, args);
            for label in &labels {
                assert!(shows(&log, label), "{label} at {columns}: {log}");
            }
            let width: usize = columns.parse().unwrap();
            let wide = |line: &&str| line.chars().count() > width.max(60);
            assert_eq!(log.lines().find(wide), None, "{columns}: {log}");
        }
    }
    // And every label is in the list that asks for a point, if it is on a turn or run.
    let list = at_exit(&cli, &["rewind"]);
    for label in ["labelled", "failed-run"] {
        assert!(shows(&list, label), "{list}");
    }
}

fn at_exit(cli: &Cli, args: &[&str]) -> String {
    cli.run(args).stdout
}

/// Starts a run that waits until its input ends.
fn start(cli: &Cli, line: &str) -> Child {
    let line = format!("{line}; echo up; cat");
    let mut child = cli
        .command(&["run", "--", "sh", "-c", &line])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut up = [0; 3];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut up).unwrap();
    child
}

/// Returns the mark of the newest turn or run everywhere that it is listed.
fn everywhere(cli: &Cli) -> Vec<(&'static str, String)> {
    let line_with = |text: String, word: &str| {
        let found = text.lines().find(|line| line.contains(word));
        found.unwrap_or_default().to_owned()
    };
    vec![
        ("log", line_with(at(cli, "60", &["log"]), "  run ")),
        (
            "log --steps",
            line_with(at(cli, "80", &["log", "--steps"]), "→ undo"),
        ),
        ("overview", line_with(at(cli, "100", &[]), "Last step")),
        ("rewind", line_with(at_exit(cli, &["rewind"]), "last~1")),
    ]
}

fn newest_run(cli: &Cli) -> Value {
    let log = cli.run(&["log", "--json"]).json();
    let rows = log.as_array().unwrap();
    let is_run = |row: &&Value| {
        let reason = row["reason"].as_str().unwrap();
        reason.starts_with("run-") || reason == "interrupted"
    };
    rows.iter().find(is_run).unwrap().clone()
}

fn picks(row: &Value) -> [Value; 3] {
    ["result", "exit_code", "signal"].map(|name| row[name].clone())
}

#[test]
fn a_run_that_failed_is_marked_wherever_it_is_listed() {
    let cases = [
        (
            "echo > new; exit 3",
            "(failed, exit 3)",
            json!(["failed", 3, null]),
        ),
        (
            "echo > new; kill -9 $$",
            "(failed, signal 9)",
            json!(["failed", null, 9]),
        ),
    ];
    for (line, mark, fields) in cases {
        let cli = Cli::new();
        sh(&cli, line);
        for (place, shown) in everywhere(&cli) {
            assert!(shown.contains(mark), "{place}: {shown:?}");
        }
        let status = cli.run(&["status"]).stdout;
        assert!(
            status
                .lines()
                .any(|line| line.starts_with("last ") && line.contains(mark))
        );
        let steps = cli.run(&["log", "--steps", "--json"]).json();
        let status = cli.run(&["status", "--json"]).json();
        let overview = cli.run(&["--json"]).json();
        let picker = cli.run(&["rewind", "--json"]).json();
        for row in [
            &newest_run(&cli),
            &steps["undo"][0],
            &status["last"],
            &overview["last"],
            &picker[0],
        ] {
            assert_eq!(json!(picks(row)), fields, "{row}");
        }
    }
}

#[test]
fn a_run_that_is_done_has_no_mark() {
    let cli = Cli::new();
    sh(&cli, "echo > new");
    for (place, shown) in everywhere(&cli) {
        assert!(!shown.is_empty(), "{place}");
        assert!(
            !shown.contains("(failed") && !shown.contains("(interr"),
            "{place}: {shown}"
        );
    }
    assert_eq!(newest_run(&cli)["result"], "done");
}

/// A failed run that changed nothing is not a step, but it is not hidden either.
#[test]
fn a_failed_run_is_never_folded() {
    let cli = Cli::new();
    for line in ["true", "true", "exit 7", "true", "true"] {
        sh(&cli, line);
    }
    let log = at(&cli, "60", &["log"]);
    assert_eq!(log.matches("2 runs without changes").count(), 2, "{log}");
    assert_eq!(log.matches("(failed, exit 7)").count(), 1, "{log}");
}

#[test]
fn an_interrupted_run_and_a_running_one_are_marked_as_what_they_are() {
    let cli = Cli::new();
    let mut child = start(&cli, "echo > new");
    let log = at(&cli, "60", &["log"]);
    assert!(
        log.contains("(running)") && !log.contains("(interrupted)"),
        "{log}"
    );
    assert_eq!(newest_run(&cli)["result"], "running");
    let steps = at(&cli, "80", &["log", "--steps"]);
    assert!(steps.contains("(running)"), "{steps}");
    child.kill().unwrap();
    child.wait().unwrap();
    drop(child);
    for (place, shown) in everywhere(&cli) {
        assert!(shown.contains("(interrupted)"), "{place}: {shown:?}");
    }
    let status = cli.run(&["status"]).stdout;
    assert!(status.contains("(interrupted)"), "{status}");
    assert_eq!(newest_run(&cli)["result"], "interrupted");
    let status = cli.run(&["status", "--json"]).json();
    assert_eq!(status["last"]["result"], "interrupted", "{status}");
}
