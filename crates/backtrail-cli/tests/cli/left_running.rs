//! Processes that outlive a run: what changes later may be theirs, and the run's environment,
//! which they still have, is not believed.

use std::fs;
use std::process::Command;

use crate::kit::{Cli, Ran, finish, line};

/// Runs a command that leaves a process behind, and returns the number of that.
fn run_that_leaves(cli: &Cli) -> (Ran, String) {
    let script = "echo run > a; tail -f /dev/null >/dev/null 2>&1 </dev/null & echo $!";
    let ran = cli.run(&["run", "--", "sh", "-c", script]);
    let pid = ran.stdout.trim().to_owned();
    (ran, pid)
}

/// Ends a process, and waits until it is gone.
fn end(pid: &str) {
    Command::new("kill").args(["-9", pid]).status().unwrap();
    let stat = || fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let is_gone = |stat: &str| stat.is_empty() || stat.contains(") Z ");
    while !is_gone(&stat()) {
        std::thread::yield_now();
    }
}

#[test]
fn what_changes_while_a_process_outlives_its_run_is_yours_or_its() {
    let cli = Cli::new();
    fs::write(cli.work().join("a"), "0").unwrap();
    let (ran, pid) = run_that_leaves(&cli);
    let said = format!("a process that it started still runs: tail -f /dev/null (process {pid})");
    assert!(ran.stderr.contains(&said), "{ran:#?}");
    fs::write(cli.work().join("a"), "either").unwrap();
    let stopped = cli.run(&["undo"]);
    let said =
        "1 file has changes since this run, by you or tail -f /dev/null; nothing was touched";
    assert!(stopped.stderr.contains(said), "{stopped:#?}");
    let row = "you or tail -f /dev/null, since the last checkpoint";
    assert!(stopped.stderr.contains(row), "{stopped:#?}");
    cli.run(&["run", "--", "true"]);
    let log = cli.run(&["log"]).stdout;
    assert!(log.contains("you or tail"), "{log}");

    end(&pid);
    cli.run(&["checkpoint"]);
    fs::write(cli.work().join("a"), "mine").unwrap();
    let stopped = cli.run(&["undo"]);
    let said = "1 file has your changes since this run";
    assert!(stopped.stderr.contains(said), "{stopped:#?}");
}

#[test]
fn the_environment_of_a_run_that_is_over_is_not_believed() {
    let cli = Cli::new();
    let print = "printf '%s ' $BACKTRAIL_RUN $BACKTRAIL_SESSION";
    let inner = format!("{print}; $0 checkpoint --json; $0 run -- sh -c \"echo; {print}\"");
    let program = env!("CARGO_BIN_EXE_backtrail");
    let ran = cli.run(&["run", "--", "sh", "-c", &inner, program]);
    let mut words = ran.stdout.split_whitespace();
    let (run, session) = (words.next().unwrap(), words.next().unwrap());
    assert_eq!(
        ran.stdout.matches(session).count(),
        3,
        "it is joined: {ran:#?}"
    );

    let daemon = |args: &[&str], stdin: &[u8]| {
        let mut command = cli.command(args);
        command.envs([("BACKTRAIL_RUN", run), ("BACKTRAIL_SESSION", session)]);
        let ran = finish(&mut command, stdin);
        assert_eq!(ran.code, 0, "{ran:#?}");
        ran
    };
    let checkpoint = daemon(&["checkpoint", "--json"], b"").json();
    assert!(checkpoint["session"].is_null(), "{checkpoint:#}");
    let nested = daemon(&["run", "--", "sh", "-c", "echo $BACKTRAIL_SESSION"], b"");
    assert_ne!(nested.stdout.trim(), session);
    let recorded = daemon(&["record"], line("hello").as_bytes());
    assert!(!recorded.stdout.contains(session), "{recorded:#?}");
    let log = cli.run(&["log", "--all", "--json"]).json();
    let starts = log.as_array().unwrap().iter();
    let starts = starts.filter(|it| it["reason"] == "run-start");
    let around: Vec<bool> = starts.map(|it| it["begun_by"].is_null()).collect();
    assert_eq!(around, [true, false, true], "newest first: {log:#}");
}
