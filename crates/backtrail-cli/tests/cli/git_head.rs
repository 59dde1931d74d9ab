//! A run that moved git's HEAD says so, and how to go back. Nothing here runs git: a run must
//! be safe where git is not, and must leave the user's repository alone (F27).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::kit::{Cli, Ran, command, finish};
use crate::snapshots::git::{as_nobody, git};

/// A repository with two commits on main and another branch.
fn repository() -> Cli {
    let cli = Cli::new();
    let work = cli.work();
    git(&work, &["init", "-q", "-b", "main"]);
    for text in ["one\n", "two\n"] {
        fs::write(work.join("a"), text).unwrap();
        git(&work, &["add", "-A"]);
        git(&work, &["commit", "-qm", "a"]);
    }
    git(&work, &["branch", "other", "HEAD~1"]);
    cli
}

fn shell(dir: &Path, line: &str) -> Ran {
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(dir);
    finish(as_nobody(&mut shell), b"")
}

/// Runs a line under Backtrail in a directory; returns what it prints and its report.
fn run_in(cli: &Cli, dir: &Path, line: &str) -> (Ran, Value) {
    let report = dir.parent().unwrap().join("report.json");
    let path = report.to_str().unwrap();
    let args = ["run", "--report", path, "--", "sh", "-c", line];
    let mut run = command(&cli.store(), dir, &args);
    let ran = finish(as_nobody(&mut run), b"");
    assert_eq!(ran.code, 0, "{line}: {ran:#?}");
    let report = fs::read(&report).unwrap();
    (ran, serde_json::from_slice(&report).unwrap())
}

/// What HEAD is: its branch, if any, and its commit, if any.
fn head(dir: &Path) -> (String, String) {
    let line = "git symbolic-ref -q HEAD; echo; git rev-parse -q --verify HEAD";
    let told = shell(dir, line).stdout;
    let (branch, commit) = told.split_once("\n\n").unwrap_or((told.trim(), ""));
    (branch.trim().to_owned(), commit.trim().to_owned())
}

fn way_back(ran: &Ran) -> String {
    let (_, back) = ran.stderr.split_once("to go back: ").unwrap_or_else(|| {
        panic!("no way back in {ran:#?}");
    });
    back.lines().next().unwrap().to_owned()
}

#[test]
fn a_run_that_moved_head_says_so_and_the_printed_command_goes_back() {
    let commit = "echo three > a; git commit -qam new";
    let cases = [
        (commit.to_owned(), "git: main moved from "),
        (
            format!("git pack-refs --all; {commit}"),
            "git: main moved from ",
        ),
        (
            format!("{commit}; git pack-refs --all"),
            "git: main moved from ",
        ),
        (
            "git reset -q --hard HEAD~1".to_owned(),
            "git: main moved from ",
        ),
        (
            "git switch -q -c topic".to_owned(),
            "git: HEAD moved from main to topic",
        ),
        (
            "git switch -q other".to_owned(),
            "git: HEAD moved from main to other",
        ),
        (
            format!("git switch -q other; {commit}"),
            "git: HEAD moved from main to other",
        ),
        (
            format!("{commit}; git switch -q other"),
            "git: HEAD moved from main to other",
        ),
        ("git switch -q --detach HEAD~1".to_owned(), " (detached)"),
        (
            "git branch -m trunk".to_owned(),
            "git: HEAD moved from main to trunk",
        ),
        (
            "git switch -q other; git branch -qD main".to_owned(),
            "git: HEAD moved from main to other",
        ),
        (
            "git switch -q --orphan fresh".to_owned(),
            "git: HEAD moved from main to fresh",
        ),
    ];
    for (line, text) in cases {
        let cli = repository();
        let work = cli.work();
        let before = head(&work);
        let (ran, report) = run_in(&cli, &work, &line);
        assert_ne!(head(&work), before, "{line}");
        assert!(ran.stderr.contains(text), "{line}: {ran:#?}");
        let back = way_back(&ran);
        assert_eq!(report["git"]["back"], json!(back), "{line}");
        assert_eq!(report["git"]["before"]["branch"], json!("main"));
        assert_eq!(report["git"]["before"]["commit"], json!(before.1));
        let there = shell(&work, &back);
        assert_eq!(there.code, 0, "{line}: {back}: {there:#?}");
        assert_eq!(head(&work), before, "{line}: {back}");
        // Then the files go back, too, whatever git did to them.
        let undone = cli.run(&["undo", "--overwrite"]);
        assert_ne!(undone.code, 2, "{line}: {undone:#?}");
        assert_eq!(
            fs::read_to_string(work.join("a")).unwrap(),
            "two\n",
            "{line}"
        );
    }
}

#[test]
fn a_detached_and_an_unborn_head_are_found_again() {
    let cli = repository();
    let work = cli.work();
    git(&work, &["switch", "-q", "--detach"]);
    let before = head(&work);
    let (ran, report) = run_in(&cli, &work, "echo three > a; git commit -qam new");
    assert!(ran.stderr.contains("git: HEAD moved from "), "{ran:#?}");
    assert_eq!(report["git"]["before"]["branch"], json!(null));
    assert_eq!(shell(&work, &way_back(&ran)).code, 0);
    assert_eq!(head(&work), before);

    let cli = Cli::new();
    let work = cli.work();
    git(&work, &["init", "-q", "-b", "main"]);
    fs::write(work.join("a"), "one\n").unwrap();
    let before = head(&work);
    let (ran, _) = run_in(&cli, &work, "git add a; git commit -qm first");
    assert!(
        ran.stderr.contains("git: main has a first commit, "),
        "{ran:#?}"
    );
    assert_eq!(shell(&work, &way_back(&ran)).code, 0);
    assert_eq!(head(&work), before);
    assert_eq!(fs::read_to_string(work.join("a")).unwrap(), "one\n");
}

#[test]
fn a_worktree_has_a_head_of_its_own() {
    let cli = repository();
    let dir = cli.work().parent().unwrap().join("linked");
    let there = dir.to_str().unwrap();
    git(
        &cli.work(),
        &["worktree", "add", "-q", "-b", "linked", there],
    );
    let before = head(&dir);
    let (ran, _) = run_in(&cli, &dir, "echo three > a; git commit -qam new");
    assert!(ran.stderr.contains("git: linked moved from "), "{ran:#?}");
    assert_eq!(shell(&dir, &way_back(&ran)).code, 0);
    assert_eq!(head(&dir), before);
    // What happens there does not move the HEAD here.
    let line = format!("cd {there} && echo four > a && git commit -qam new");
    let (ran, report) = run_in(&cli, &cli.work(), &line);
    assert!(!ran.stderr.contains("git:"), "{ran:#?}");
    assert_eq!(report["git"], json!(null));
}

#[test]
fn a_head_that_stays_is_not_mentioned() {
    let cli = repository();
    for line in [
        "git pack-refs --all; git gc -q",
        "echo three > a; git add a; git stash -q",
        "git branch new; git tag t; git branch -qD other",
        "git commit -qm empty --allow-empty; git reset -q --hard HEAD~1",
        "git switch -q new; git switch -q main",
    ] {
        let (ran, report) = run_in(&cli, &cli.work(), line);
        assert!(!ran.stderr.contains("git:"), "{line}: {ran:#?}");
        assert_eq!(report["git"], json!(null), "{line}");
    }
    // Neither is a repository that only begins.
    let cli = Cli::new();
    let (ran, _) = run_in(&cli, &cli.work(), "git init -q");
    assert!(!ran.stderr.contains("git:"), "{ran:#?}");
}

/// The repository of the workspace is named where the command would run elsewhere.
#[test]
fn the_way_back_names_the_repository_from_elsewhere() {
    let cli = repository();
    let work = cli.work();
    let before = head(&work);
    let elsewhere = work.parent().unwrap().join("else where");
    fs::create_dir(&elsewhere).unwrap();
    let root = work.to_str().unwrap();
    let line = format!("cd {root}; echo three > a; git commit -qam new");
    let args = ["run", "--workspace", root, "--", "sh", "-c", &line];
    let mut run = command(&cli.store(), &elsewhere, &args);
    let ran = finish(as_nobody(&mut run), b"");
    assert_eq!(shell(&elsewhere, &way_back(&ran)).code, 0, "{ran:#?}");
    assert_eq!(head(&work), before);
}

/// F27: git is not run, whatever is asked for.
#[test]
fn no_verb_runs_git() {
    let cli = repository();
    let work = cli.work();
    let trap = work.parent().unwrap().join("trap");
    fs::create_dir(&trap).unwrap();
    let sprung = trap.join("sprung");
    fs::write(
        trap.join("git"),
        format!("#!/bin/sh\ntouch {}\n", sprung.display()),
    )
    .unwrap();
    fs::set_permissions(trap.join("git"), PermissionsExt::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let (into, line) = (
        trap.join("fork"),
        format!("PATH='{path}' git commit -qam new"),
    );
    fs::write(work.join("a"), "three\n").unwrap();
    let verbs: [&[&str]; 8] = [
        &["checkpoint", "base"],
        &["run", "--", "sh", "-c", &line],
        &["status"],
        &["log"],
        &["diff", "base"],
        &["undo", "--dry-run"],
        &["rewind", "base", "--dry-run"],
        &["fork", "base", "--into", into.to_str().unwrap()],
    ];
    for args in verbs {
        let mut verb = cli.command(args);
        verb.env("PATH", format!("{}:{path}", trap.display()));
        let ran = finish(as_nobody(&mut verb), b"");
        assert!(ran.code <= 1, "{args:?}: {ran:#?}");
        assert!(!sprung.exists(), "{args:?}");
    }
}
