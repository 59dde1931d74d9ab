//! `fork --into DIR --git`: the directory is a detached git worktree with the files of the
//! point. It is there whole or not at all, and the user's own git is not touched (F27).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::kit::{Cli, Ran, finish};
use crate::snapshots::git::{as_nobody, git, make_repository};
use crate::snapshots::picture;

fn beside(cli: &Cli, name: &str) -> PathBuf {
    cli.work().parent().unwrap().join(name)
}

fn fork_command(cli: &Cli, point: &str, dir: &Path, more: &[&str]) -> Command {
    let args = ["fork", point, "--into", dir.to_str().unwrap(), "--git"];
    let mut command = cli.command(&[&args, more].concat());
    as_nobody(&mut command);
    command
}

fn fork(cli: &Cli, point: &str, dir: &Path, more: &[&str]) -> Ran {
    finish(&mut fork_command(cli, point, dir, more), b"")
}

/// What differs from HEAD in a worktree, whatever is staged.
fn differs(dir: &Path) -> String {
    let tracked = git(dir, &["diff", "HEAD", "--no-renames"]).stdout;
    let untracked = git(dir, &["ls-files", "--others", "--exclude-standard"]).stdout;
    format!("{tracked}{untracked}")
}

fn commit_of(dir: &Path, name: &str) -> String {
    git(dir, &["rev-parse", name]).stdout.trim().to_owned()
}

/// Everything in the user's repository but the entries of worktrees.
fn users_git(cli: &Cli) -> Vec<String> {
    let dot_git = cli.work().join(".git");
    let own = format!("{dot_git:?} ");
    let mut seen = picture(&dot_git);
    seen.retain(|line| !line.contains(".git/worktrees") && !line.starts_with(&own));
    seen
}

/// The names in git's directory of worktrees.
fn entries(cli: &Cli) -> Vec<String> {
    let found = fs::read_dir(cli.work().join(".git/worktrees"));
    let names = found.into_iter().flatten().flatten();
    names
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect()
}

/// Temporary directories beside the workspace.
fn leftovers(cli: &Cli) -> Vec<PathBuf> {
    let beside = fs::read_dir(cli.work().parent().unwrap()).unwrap();
    let paths = beside.map(|entry| entry.unwrap().path());
    let is_left = |path: &PathBuf| path.to_str().unwrap().contains("backtrail-staging");
    paths.filter(is_left).collect()
}

/// A repository in the middle of work, with a checkpoint of it, and a commit after that.
fn desk() -> (Cli, String, String) {
    let cli = Cli::new();
    let work = cli.work();
    make_repository(&work);
    fs::remove_file(work.join(".git/refs/heads/other.lock")).unwrap();
    fs::remove_file(work.join("stashed")).unwrap();
    assert_eq!(cli.run(&["checkpoint", "base"]).code, 0);
    let (then, differed) = (commit_of(&work, "HEAD"), differs(&work));
    git(&work, &["add", "-A"]);
    git(&work, &["commit", "-qm", "later"]);
    fs::write(work.join("tracked"), "later\n").unwrap();
    (cli, then, differed)
}

#[test]
fn the_new_directory_is_a_detached_worktree_with_the_files_of_the_point() {
    let (cli, then, differed) = desk();
    // Somebody else's git is at work, or died.
    fs::write(cli.work().join(".git/index.lock"), "").unwrap();
    fs::write(cli.work().join(".git/HEAD.lock"), "").unwrap();
    let before = users_git(&cli);
    let dir = beside(&cli, "fork");
    let ran = fork(&cli, "base", &dir, &["--name", "try"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let line = format!("git: a detached worktree at {}\n", &then[..12]);
    assert!(ran.stderr.contains(&line), "{ran:#?}");
    assert!(!ran.stderr.contains(".git is not copied"), "{ran:#?}");
    assert!(users_git(&cli) == before, "something in .git was touched");
    assert!(!dir.join("hook-ran").exists() && !cli.work().join("hook-ran").exists());

    assert_eq!(commit_of(&dir, "HEAD"), then);
    assert_eq!(git(&dir, &["branch", "--show-current"]).stdout, "");
    assert_eq!(differs(&dir), differed);
    assert!(!differed.is_empty());
    // Nothing is staged, and what is ignored is ignored there, too.
    assert_eq!(git(&dir, &["diff", "--cached"]).stdout, "");
    assert_eq!(
        fs::read_to_string(dir.join("ignored")).unwrap(),
        "ignored\n"
    );
    let listed = git(&cli.work(), &["worktree", "list", "--porcelain"]).stdout;
    assert!(
        listed.contains(&format!("worktree {}\n", dir.display())),
        "{listed}"
    );
    assert!(
        !listed.contains("locked") && !listed.contains("prunable"),
        "{listed}"
    );
    // It works as any worktree does, and Backtrail works in it.
    git(&dir, &["switch", "-q", "-c", "attempt"]);
    git(&dir, &["commit", "-qam", "more"]);
    fs::remove_file(cli.work().join(".git/index.lock")).unwrap();
    fs::remove_file(cli.work().join(".git/HEAD.lock")).unwrap();
    git(&cli.work(), &["fsck", "--strict"]);
    let args = ["run", "--session", "try", "--", "sh", "-c", "echo > made"];
    let mut run = crate::kit::command(&cli.store(), &dir, &args);
    assert_eq!(finish(&mut run, b"").code, 0);
    git(
        &cli.work(),
        &["worktree", "remove", "--force", dir.to_str().unwrap()],
    );
    assert_eq!(entries(&cli), [""; 0]);
}

#[test]
fn a_dry_run_and_json_name_the_commit() {
    let (cli, then, _) = desk();
    let dir = beside(&cli, "fork");
    let before = users_git(&cli);
    let ran = fork(&cli, "base", &dir, &["--dry-run"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let line = format!(
        "to do it: backtrail fork base --into {} --git\n",
        dir.display()
    );
    assert!(ran.stderr.ends_with(&line), "{ran:#?}");
    assert!(!dir.exists() && entries(&cli).is_empty() && users_git(&cli) == before);
    let told = fork(&cli, "base", &dir, &["--json"]).json();
    assert_eq!(told["worktree"], json!({"commit": then, "of_point": true}));
    assert_eq!(commit_of(&dir, "HEAD"), then);
}

#[test]
fn an_unknown_commit_is_replaced_by_the_present_one_and_that_is_said() {
    let cli = Cli::new();
    let work = cli.work();
    fs::write(work.join("a"), "before git\n").unwrap();
    assert_eq!(cli.run(&["checkpoint", "before"]).code, 0);
    git(&work, &["init", "-q", "-b", "main"]);
    // There is nothing to be at yet.
    let ran = fork(&cli, "before", &beside(&cli, "none"), &[]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("has no commit yet"), "{ran:#?}");
    git(&work, &["add", "-A"]);
    git(&work, &["commit", "-qm", "first"]);
    let dir = beside(&cli, "fork");
    let told = fork(&cli, "before", &dir, &["--json"]).json();
    assert_eq!(told["worktree"]["of_point"], json!(false), "{told}");
    assert_eq!(commit_of(&dir, "HEAD"), commit_of(&work, "HEAD"));

    // A commit that is gone is not known either.
    assert_eq!(cli.run(&["checkpoint", "first"]).code, 0);
    let gone = commit_of(&work, "HEAD");
    git(
        &work,
        &["worktree", "remove", "--force", dir.to_str().unwrap()],
    );
    git(&work, &["commit", "-q", "--amend", "-m", "another"]);
    git(&work, &["reflog", "expire", "--expire=now", "--all"]);
    git(&work, &["gc", "-q", "--prune=now"]);
    let ran = fork(&cli, "first", &beside(&cli, "fork-2"), &[]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let said = format!("{} is no longer in the repository", &gone[..12]);
    assert!(ran.stderr.contains("at the current commit, "), "{ran:#?}");
    assert!(ran.stderr.contains(&said), "{ran:#?}");
}

/// Where there is no worktree to be had, that is said, and nothing is left.
#[test]
fn what_git_cannot_do_is_refused_before_anything_is_made() {
    let cli = Cli::new();
    let work = cli.work();
    fs::write(work.join("a"), "a\n").unwrap();
    fs::create_dir(work.join("sub")).unwrap();
    assert_eq!(cli.run(&["checkpoint", "base"]).code, 0);
    let dir = beside(&cli, "fork");
    let sessions = cli.run(&["list", "--all", "--json"]).stdout;
    let refused = |ran: Ran, words: &str| {
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:#?}");
        assert!(ran.stderr.contains(words), "{ran:#?}");
        assert!(!dir.exists() && leftovers(&cli).is_empty(), "{words}");
        assert_eq!(cli.run(&["list", "--all", "--json"]).stdout, sessions);
    };
    refused(
        fork(&cli, "base", &dir, &[]),
        "is not the top of a git repository",
    );
    refused(cli.run(&["fork", "base", "--git"]), "--into");
    // A bare repository, and one that calls itself bare.
    git(&work, &["init", "-q", "--bare", "."]);
    refused(fork(&cli, "base", &dir, &[]), "is a bare git repository");
    for name in ["HEAD", "config", "description"] {
        fs::remove_file(work.join(name)).unwrap();
    }
    for name in ["objects", "refs", "hooks", "info", "branches"] {
        fs::remove_dir_all(work.join(name)).ok();
    }
    git(&work, &["init", "-q", "-b", "main"]);
    git(&work, &["commit", "-q", "--allow-empty", "-m", "first"]);
    git(&work, &["config", "core.bare", "true"]);
    refused(fork(&cli, "base", &dir, &[]), "is a bare git repository");
    git(&work, &["config", "core.bare", "false"]);
    // Without git there is a clear word, too.
    let mut without = fork_command(&cli, "base", &dir, &[]);
    let empty = beside(&cli, "empty");
    fs::create_dir(&empty).unwrap();
    refused(finish(without.env("PATH", &empty), b""), "--git needs git");
    // A workspace below the top has no worktree of its own.
    let below = beside(&cli, "top");
    fs::create_dir_all(below.join("sub")).unwrap();
    git(&below, &["init", "-q", "-b", "main"]);
    let sub = below.join("sub");
    let at = ["--workspace", sub.to_str().unwrap()];
    assert_eq!(cli.run(&[&["checkpoint", "low"], &at[..]].concat()).code, 0);
    refused(
        fork(&cli, "low", &dir, &at),
        "is not the top of a git repository",
    );
    // A directory that is taken stays as it is.
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("mine"), "mine").unwrap();
    let ran = fork(&cli, "base", &dir, &[]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("is not empty"), "{ran:#?}");
    assert_eq!(entries(&cli), [""; 0]);
}

/// A git that does its work, and something else at its nth call.
struct OddGit {
    dir: PathBuf,
}

impl OddGit {
    fn new(cli: &Cli) -> Self {
        let dir = beside(cli, "odd");
        fs::create_dir(&dir).unwrap();
        let script = "#!/bin/sh\n\
            n=$(($(cat \"$ODD/calls\" 2>/dev/null || echo 0) + 1)); echo $n > \"$ODD/calls\"\n\
            [ $n = \"$ODD_AT\" ] && eval \"$ODD_BEFORE\"\n\
            PATH=$ODD_PATH git \"$@\"; code=$?\n\
            [ $n = \"$ODD_AT\" ] && eval \"$ODD_AFTER\"\n\
            exit $code\n";
        fs::write(dir.join("git"), script).unwrap();
        fs::set_permissions(dir.join("git"), PermissionsExt::from_mode(0o755)).unwrap();
        Self { dir }
    }

    /// Runs a command with this git, which does odd things around call `at`.
    fn run(&self, mut command: Command, at: u32, before: &str, after: &str) -> Ran {
        fs::remove_file(self.dir.join("calls")).ok();
        let path = std::env::var("PATH").unwrap();
        command
            .env("PATH", format!("{}:{path}", self.dir.display()))
            .env("ODD", &self.dir)
            .env("ODD_PATH", path)
            .env("ODD_AT", at.to_string())
            .env("ODD_BEFORE", before)
            .env("ODD_AFTER", after);
        finish(&mut command, b"")
    }

    fn calls(&self) -> u32 {
        let calls = fs::read_to_string(self.dir.join("calls")).unwrap();
        calls.trim().parse().unwrap()
    }
}

/// Whenever git fails, nothing is left of the fork, in the repository and beside it.
#[test]
fn a_git_that_fails_leaves_nothing_behind() {
    let (cli, ..) = desk();
    let odd = OddGit::new(&cli);
    let users = users_git(&cli);
    let remove = |dir: &Path| {
        let path = dir.to_str().unwrap();
        git(&cli.work(), &["worktree", "remove", "--force", path]);
    };
    let whole = beside(&cli, "whole");
    let ran = odd.run(fork_command(&cli, "base", &whole, &[]), 0, "", "");
    assert_eq!(ran.code, 0, "{ran:#?}");
    let calls = odd.calls();
    assert!(calls >= 3, "{calls} calls");
    remove(&whole);
    let sessions = || cli.run(&["list", "--all", "--json"]).json();
    for at in 1..=calls {
        for (n, (before, after)) in [
            ("echo fatal: no >&2; exit 128", ""),
            ("", "echo fatal: no >&2; exit 128"),
        ]
        .into_iter()
        .enumerate()
        {
            let (dir, known) = (beside(&cli, &format!("fork-{at}-{n}")), sessions());
            let command = fork_command(&cli, "base", &dir, &["--json"]);
            let ran = odd.run(command, at, before, after);
            // Whether a commit is known is a question; the answer may be no.
            if ran.code == 0 {
                assert_eq!(
                    ran.json()["worktree"]["of_point"],
                    json!(false),
                    "{at}: {ran:#?}"
                );
                remove(&dir);
                continue;
            }
            assert_eq!(ran.code, 2, "{at}: {ran:#?}");
            assert!(ran.stderr.contains("fatal: no"), "{at}: {ran:#?}");
            assert!(!dir.exists(), "{at}");
            assert_eq!(leftovers(&cli), [""; 0].map(PathBuf::from), "{at}");
            assert_eq!(entries(&cli), [""; 0], "{at}");
            assert_eq!(sessions(), known, "{at}");
        }
    }
    assert!(users_git(&cli) == users, "something in .git was touched");
    // Somebody is faster: their directory stays, and git knows nothing of ours.
    let dir = beside(&cli, "theirs");
    let theirs = format!("mkdir {0}; touch {0}/theirs", dir.display());
    let ran = odd.run(fork_command(&cli, "base", &dir, &[]), calls, "", &theirs);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(
        ran.stderr.contains("another process has created"),
        "{ran:#?}"
    );
    assert!(dir.join("theirs").exists() && !dir.join("tracked").exists());
    assert_eq!(entries(&cli), [""; 0]);
}

/// Killed at any call of git, a fork leaves nothing under its name; the next one removes the
/// rest, in the repository and beside it.
#[test]
fn the_next_fork_removes_what_a_killed_one_left() {
    let (cli, then, differed) = desk();
    let odd = OddGit::new(&cli);
    let before = users_git(&cli);
    for at in 1..=4 {
        for (n, kill) in [("kill -9 $PPID; exit 1", ""), ("", "kill -9 $PPID")]
            .into_iter()
            .enumerate()
        {
            let dir = beside(&cli, &format!("killed-{at}-{n}"));
            let ran = odd.run(fork_command(&cli, "base", &dir, &[]), at, kill.0, kill.1);
            assert_eq!(ran.code, -1, "call {at}: {ran:#?}");
            assert!(!dir.exists());
            // git does not mistake what is left for something of the user's.
            git(&cli.work(), &["worktree", "prune"]);
            let next = beside(&cli, &format!("next-{at}-{n}"));
            let ran = fork(&cli, "base", &next, &[]);
            assert_eq!(ran.code, 0, "{ran:#?}");
            assert_eq!(leftovers(&cli), [""; 0].map(PathBuf::from), "call {at}");
            assert_eq!(entries(&cli).len(), 1, "call {at}: {:?}", entries(&cli));
            assert_eq!(
                (commit_of(&next, "HEAD"), differs(&next)),
                (then.clone(), differed.clone())
            );
            git(
                &cli.work(),
                &["worktree", "remove", "--force", next.to_str().unwrap()],
            );
        }
    }
    assert!(users_git(&cli) == before, "something in .git was touched");
}

/// A fork that was killed when it was whole stays; only its lock goes. Worktrees of the user's
/// are not touched, whatever they look like.
#[test]
fn whole_worktrees_stay_and_so_do_the_users() {
    let (cli, then, _) = desk();
    let work = cli.work();
    let (first, users) = (beside(&cli, "first"), beside(&cli, "users"));
    assert_eq!(fork(&cli, "base", &first, &[]).code, 0);
    let entry = work.join(".git/worktrees").join(&entries(&cli)[0]);
    let lock = "backtrail is making this worktree in /nowhere/.backtrail-staging-fork-1\n";
    fs::write(entry.join("locked"), lock).unwrap();
    git(
        &work,
        &[
            "worktree",
            "add",
            "-q",
            "--lock",
            "--detach",
            users.to_str().unwrap(),
        ],
    );
    fs::remove_dir_all(&users).unwrap();
    let second = beside(&cli, "second");
    let ran = fork(&cli, "base", &second, &[]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(!entry.join("locked").exists());
    assert_eq!(commit_of(&first, "HEAD"), then);
    assert_eq!(entries(&cli).len(), 3, "{:?}", entries(&cli));
}
