//! Undo and redo over the steps of a workspace, and how they show in the log.

use serde_json::json;

use super::{files, run, seen, two_runs, write};
use crate::kit::{Cli, short};

#[test]
fn undo_and_redo_go_from_run_to_run() {
    let (cli, [first, second, third]) = two_runs();
    let ran = cli.run(&["log", "--steps"]);
    assert_eq!(
        seen(&ran, &cli),
        "\
exit 0
out: → undo  <when>       the run `sh -c 'echo 3 >> a'`
out:   undo  <when>       the run `sh -c 'echo 2 >> a; echo new > n; rm src/x'`
"
    );
    let ran = cli.run(&["undo", "--dry-run"]);
    assert!(
        ran.stdout
            .starts_with("Would undo the run `sh -c 'echo 3 >> a'` ("),
        "{ran:#?}"
    );
    assert_eq!(ran.stderr, "to do it: backtrail undo\n");
    assert_eq!(files(&cli.work()), third);
    for expected in [&second, &first] {
        let ran = cli.run(&["undo"]);
        assert!(ran.stdout.starts_with("Undid the run `sh -c"), "{ran:#?}");
        assert_eq!(files(&cli.work()), *expected);
    }
    let ran = cli.run(&["undo"]);
    assert_eq!(seen(&ran, &cli), "exit 1\nerr: nothing to undo here\n");
    assert!(
        cli.run(&["redo", "--dry-run"])
            .stdout
            .starts_with("Would redo the run")
    );
    for expected in [&second, &third] {
        let ran = cli.run(&["redo"]);
        assert!(ran.stdout.starts_with("Redid the run `sh -c"), "{ran:#?}");
        assert_eq!(files(&cli.work()), *expected);
    }
    let ran = cli.run(&["redo", "--json"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    let told = ran.json();
    assert_eq!(
        (&told["changes"], &told["step"]),
        (&json!([]), &json!(null))
    );
}

#[test]
fn a_new_step_ends_redo() {
    let (cli, _) = two_runs();
    assert_eq!(cli.run(&["undo"]).code, 0);
    run(&cli, "echo other > o");
    let ran = cli.run(&["redo"]);
    assert_eq!(seen(&ran, &cli), "exit 1\nerr: nothing to redo here\n");
}

#[test]
fn the_log_shows_rewinds_and_hides_the_checkpoints_before_them() {
    let (cli, _) = two_runs();
    write(&cli, "mine", "m\n");
    assert_eq!(cli.run(&["rewind", "one", "--keep"]).code, 0);
    assert_eq!(cli.run(&["undo"]).code, 0);
    assert_eq!(cli.run(&["redo"]).code, 0);
    let log = cli.run(&["log", "--json"]).json();
    let mut log = log.as_array().unwrap().iter();
    let ended = log.find(|one| one["reason"] == "run-end").unwrap()["id"].clone();
    assert_eq!(cli.run(&["restore", ended.as_str().unwrap(), "n"]).code, 0);
    let ran = cli.run(&["log"]);
    let kinds: Vec<&str> = ran
        .stdout
        .lines()
        .map(|line| line[7..].split(' ').next().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "restore",
            "redo",
            "undo",
            "rewind",
            "you",
            "run",
            "run",
            "checkpoint"
        ],
        "{ran:#?}"
    );
    assert!(
        ran.stdout.contains("rewind      to checkpoint \"one\" "),
        "{ran:#?}"
    );
    let whys = |args: &[&str]| {
        let log = cli.run(&[&["log", "--json"], args].concat()).json();
        let all = log.as_array().unwrap().iter();
        all.map(|one| one["reason"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert!(!whys(&[]).contains(&"before-rewind".to_owned()));
    assert!(whys(&["--all"]).contains(&"before-rewind".to_owned()));
    assert!(cli.run(&["log", "--all"]).stdout.contains("before-rewind"));
}

#[test]
fn files_and_conversation_are_undone_separately_on_request() {
    let (cli, [_, second, third]) = two_runs();
    let ran = cli.run(&["undo", "--files"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(!ran.stdout.contains("The conversation"), "{ran:#?}");
    assert_eq!(files(&cli.work()), second);
    cli.reverse(&ran);
    assert_eq!(files(&cli.work()), third);
}

/// A conversation that has no files beside it is moved as ever, in a workspace too.
#[test]
fn a_conversation_without_files_moves_alone() {
    let cli = Cli::new();
    let id = cli.talk();
    let before = cli.conversation(&id);
    let ran = cli.run(&["rewind", &format!("{id}:1"), "--chat", "--dry-run"]);
    assert_eq!(
        ran.stdout,
        "The conversation would end before: \"what is here?\"\n"
    );
    let named = format!("to do it: backtrail rewind {}:1 --chat\n", short(&id));
    assert_eq!(ran.stderr, named);
    assert_eq!(cli.conversation(&id), before);
    let ran = cli.run(&["rewind", &format!("{id}:9"), "--chat", "--dry-run"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert_eq!(cli.run(&["rewind", &format!("{id}:1"), "--chat"]).code, 0);
    let ran = cli.run(&["undo", "--dry-run"]);
    assert!(
        ran.stdout
            .starts_with("Would undo the rewind from record 5"),
        "{ran:#?}"
    );
    assert_eq!(
        ran.stderr,
        format!("to do it: backtrail undo {}\n", short(&id))
    );
    let told = cli.run(&["undo", "--dry-run", "--json"]).json();
    assert_eq!(told["chat"]["to"], 5);
    assert_eq!(told["step"]["kind"], "rewind");
    let ran = cli.run(&["undo", &id, "--files"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("has no file checkpoints"), "{ran:#?}");
    assert_eq!(cli.run(&["undo"]).code, 0);
    assert_eq!(cli.conversation(&id), before);
}

fn idle(cli: &Cli, count: usize) {
    for _ in 0..count {
        run(cli, "true");
    }
}

/// Runs that change nothing are no steps: they do not count, and do not end redo.
#[test]
fn runs_without_changes_are_no_steps() {
    let (cli, [_, second, third]) = two_runs();
    let before =
        |point: &str| cli.run(&["rewind", point, "--dry-run", "--json"]).json()["to"].clone();
    let points = [before("last~1"), before("last~2")];
    idle(&cli, 2);
    assert_eq!([before("last~1"), before("last~2")], points);
    assert_eq!(cli.run(&["rewind", "last~3"]).code, 2);
    let steps = cli.run(&["log", "--steps", "--json"]).json();
    assert_eq!(steps["undo"].as_array().unwrap().len(), 2);
    let picker = cli.run(&["rewind", "--json"]).json();
    assert_eq!(picker.as_array().unwrap().len(), 2);
    assert_eq!(cli.run(&["undo"]).code, 0);
    assert_eq!(files(&cli.work()), second);
    idle(&cli, 1);
    let ran = cli.run(&["redo"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(files(&cli.work()), third);
}

/// The log folds them, and hides no label and no failure.
#[test]
fn the_log_folds_runs_without_changes() {
    let (cli, _) = two_runs();
    idle(&cli, 5);
    run(&cli, "echo 4 >> a");
    idle(&cli, 2);
    assert_eq!(cli.run(&["run", "--label", "here", "--", "true"]).code, 0);
    idle(&cli, 1);
    assert_eq!(cli.run(&["run", "--", "false"]).code, 1);
    idle(&cli, 3);
    let ran = cli.run(&["log"]);
    let abouts: Vec<&str> = ran.stdout.lines().map(|line| line[7..].trim()).collect();
    let wanted = [
        "run         3 runs without changes",
        "run         false",
        "run         sh -c true",
        "run         [here] true",
        "run         2 runs without changes",
        "run         sh -c 'echo 4 >> a'",
        "run         5 runs without changes",
        "run         sh -c 'echo 3 >> a'",
    ];
    for (about, wanted) in abouts.iter().zip(wanted) {
        assert!(about.starts_with(wanted), "{about}, not {wanted}: {ran:#?}");
    }
    // As many lines as are asked for, and all with --all.
    let ran = cli.run(&["log", "-n", "1"]);
    assert_eq!(ran.stdout.lines().count(), 1, "{ran:#?}");
    assert!(ran.stdout.contains("3 runs without changes"), "{ran:#?}");
    let all = cli.run(&["log", "--all", "-n", "100"]).stdout;
    assert!(!all.contains("without changes"), "{all}");
    assert_eq!(all.matches("run-end").count(), 16, "{all}");
}
