//! Wrong input: a clear error with the way on, and nothing touched.

use std::fs;

use super::{files, two_runs};
use crate::kit::{self, Cli, short};

/// Runs something that is refused, and returns what it said.
fn refused(cli: &Cli, args: &[&str]) -> String {
    let before = files(&cli.work());
    let ran = cli.run(args);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (2, ""),
        "{args:?}: {ran:#?}"
    );
    assert_eq!(files(&cli.work()), before, "{args:?}");
    ran.stderr
}

#[test]
fn a_wrong_point_suggests_the_nearest() {
    let (cli, _) = two_runs();
    for args in [
        &["rewind", "oen"][..],
        &["rewind", "oen", "--dry-run"],
        &["restore", "oen", "--", "a"],
    ] {
        let said = refused(&cli, args);
        assert!(
            said.starts_with("error: no checkpoint or label matches \"oen\"\n"),
            "{said}"
        );
    }
    let said = refused(&cli, &["rewind", "last~9"]);
    assert!(
        said.contains("there are only 2 turns and runs to go back to; the oldest is last~2"),
        "{said}"
    );
    let near = said.lines().last().unwrap();
    assert_eq!(near, "hint: see what there is: backtrail log", "{said}");
    for point in ["~1", "#1", ""] {
        refused(&cli, &["rewind", point]);
    }
}

#[test]
fn an_ambiguous_point_is_refused_with_both_candidates() {
    let (cli, _) = two_runs();
    let log = cli.run(&["log", "--all", "--json"]).json();
    let id = log[0]["id"].as_str().unwrap();
    assert_eq!(cli.run(&["checkpoint", &id[..6]]).code, 0);
    let said = refused(&cli, &["rewind", &id[..6]]);
    assert!(said.contains("matches 2 checkpoints or records"), "{said}");
    assert!(said.contains(&format!("hint: {id} (after ")), "{said}");
    assert!(
        said.contains(&format!("(checkpoint \"{}\", ", &id[..6])),
        "{said}"
    );
}

#[test]
fn options_that_exclude_each_other_are_refused() {
    let (cli, _) = two_runs();
    for args in [
        &["rewind", "one", "--keep", "--overwrite"][..],
        &["undo", "--keep", "--overwrite"],
        &["redo", "--files", "--chat"],
        &["rewind", "one", "--files", "--chat"],
        &["restore", "one"],
        &["restore", "one", "--"],
        &["restore", "one", "--files", "--", "a"],
        &["rewind", "one", "two"],
        &["rewind", "one", "--keep", "--merge"],
        &["undo", "--merge", "--overwrite"],
        &["undo", "--paths"],
        &["undo", "--chat", "--paths", "a"],
        &["redo", "--paths", "a"],
        &["rewind", "one", "--patch", "--merge"],
        &["rewind", "one", "--patch", "--chat"],
        &["rewind", "one", "--patch", "--dry-run"],
        &["restore", "one", "--patch", "--keep", "a"],
    ] {
        refused(&cli, args);
    }
}

#[test]
fn a_path_outside_the_workspace_is_refused() {
    let (cli, _) = two_runs();
    for path in ["/etc/passwd", "../outside", "src/../../x"] {
        let said = refused(&cli, &["restore", "one", "--", path]);
        assert!(said.contains("is outside the workspace"), "{said}");
    }
    let said = refused(&cli, &["restore", "one", "--", "a", "never"]);
    assert!(
        said.starts_with("error: never does not exist now or at that point\n"),
        "{said}"
    );
    assert!(said.contains("backtrail log -- never"), "{said}");
}

#[test]
fn without_checkpoints_the_first_command_is_suggested() {
    let cli = Cli::new();
    for args in [
        &["rewind"][..],
        &["rewind", "last"],
        &["restore", "last", "a"],
        &["undo"],
        &["redo"],
        &["log", "--steps"],
    ] {
        let said = refused(&cli, args);
        assert!(said.contains("no checkpoints in "), "{said}");
        assert!(said.contains("make one: backtrail checkpoint"), "{said}");
    }
    let said = refused(&cli, &["rewind", "latest:1"]);
    assert!(said.contains("no store in"), "{said}");
    cli.new_session("hello");
    let said = refused(&cli, &["undo", "--workspace", "."]);
    assert!(said.contains("no checkpoints in "), "{said}");
    assert!(!cli.store().join("workspaces").join("x").exists());
}

/// Files are moved only where somebody is, or says so.
#[test]
fn a_workspace_elsewhere_is_not_touched_unless_it_is_named() {
    let (cli, [_, second, third]) = two_runs();
    let session = cli.run(&["list", "--json"]).json()[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let elsewhere = cli.work().with_file_name("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let there = |args: &[&str]| kit::finish(&mut kit::command(&cli.store(), &elsewhere, args), b"");
    let root = cli.work().canonicalize().unwrap();
    let ran = there(&["undo"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("the newest session is in"), "{ran:#?}");
    let ran = there(&["rewind", &format!("{session}:0")]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(
        ran.stderr
            .contains(&format!("--workspace {}", root.display())),
        "{ran:#?}"
    );
    assert_eq!(files(&cli.work()), third);
    // By its session it is named.
    let ran = there(&["undo", &session]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(
        ran.stdout.contains(&format!(" in {}:\n", root.display())),
        "{ran:#?}"
    );
    assert_eq!(files(&cli.work()), second);
    let named = format!("to reverse: backtrail redo {}\n", short(&session));
    assert_eq!(ran.stderr, named);
    assert_eq!(there(&["redo", &session]).code, 0);
    assert_eq!(files(&cli.work()), third);
    let ran = there(&["undo", &session, "--workspace", "."]);
    assert_eq!(ran.code, 2, "{ran:#?}");
}
