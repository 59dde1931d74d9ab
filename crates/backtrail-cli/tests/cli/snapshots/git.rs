//! The user's git is never touched: not its index, not its times, not for a moment.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use super::{picture, walk};
use crate::kit::{Cli, Ran, finish};

/// Runs git as nobody in particular, and without writing what it only looks at.
pub(crate) fn git(dir: &Path, args: &[&str]) -> Ran {
    let mut git = Command::new("git");
    git.args(args).current_dir(dir);
    let ran = finish(as_nobody(&mut git), b"");
    assert_eq!(ran.code, 0, "{args:?}: {ran:#?}");
    ran
}

/// Lets git, wherever a command runs it, be nobody in particular.
pub(crate) fn as_nobody(command: &mut Command) -> &mut Command {
    command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .envs([
            ("GIT_AUTHOR_NAME", "a"),
            ("GIT_AUTHOR_EMAIL", "a@b"),
            ("GIT_COMMITTER_NAME", "a"),
            ("GIT_COMMITTER_EMAIL", "a@b"),
        ])
}

/// Makes a repository with commits, staged and unstaged changes, untracked and
/// ignored files, a stash, a hook, a branch and a lock that somebody forgot.
pub(crate) fn make_repository(root: &Path) {
    let write = |name: &str, text: &str| fs::write(root.join(name), text).unwrap();
    git(root, &["init", "-q", "-b", "main"]);
    for name in ["tracked", "staged", "stashed"] {
        write(name, "committed\n");
    }
    write(".gitignore", "ignored\nbuild/\n");
    git(root, &["add", "-A"]);
    git(root, &["commit", "-qm", "first"]);
    git(root, &["branch", "other"]);
    write("stashed", "for later\n");
    git(root, &["stash", "-q"]);
    write("staged", "staged\n");
    git(root, &["add", "staged"]);
    write("tracked", "not staged\n");
    write("untracked", "new\n");
    write("ignored", "ignored\n");
    fs::create_dir(root.join("build")).unwrap();
    write("build/out", "built\n");
    let hook = root.join(".git/hooks/post-checkout");
    fs::write(&hook, "#!/bin/sh\ntouch hook-ran\n").unwrap();
    fs::set_permissions(&hook, Permissions::from_mode(0o755)).unwrap();
    write(".git/refs/heads/other.lock", "");
}

/// Runs everything that looks at files, with changes in between.
fn use_everything(cli: &Cli) {
    let run = |args: &[&str]| {
        let ran = cli.run(args);
        assert_eq!(ran.code, 0, "{args:?}: {ran:#?}");
        ran
    };
    run(&["checkpoint", "one"]);
    for round in 0..3 {
        fs::write(cli.work().join("tracked"), format!("round {round}\n")).unwrap();
        run(&["diff"]);
        run(&["diff", "one"]);
        run(&["diff", "--stat"]);
        run(&["status"]);
        run(&["checkpoint"]);
        run(&["log"]);
        run(&["log", "--", "tracked"]);
        run(&["cat", "one", "tracked"]);
        run(&["diff", "one", "last"]);
        run(&["verify"]);
    }
}

#[test]
fn checkpoints_and_diffs_leave_the_users_git_as_it_is() {
    let cli = Cli::new();
    make_repository(&cli.work());
    let dot_git = cli.work().join(".git");
    let look = || {
        let status = git(&cli.work(), &["status", "--porcelain=v2", "--branch"]);
        let refs = git(&cli.work(), &["for-each-ref"]);
        (picture(&dot_git), status.stdout, refs.stdout)
    };
    let before = look();
    use_everything(&cli);
    // As the file was to git at first.
    fs::write(cli.work().join("tracked"), "not staged\n").unwrap();
    let after = look();
    assert_eq!(before.1, after.1, "git status");
    assert_eq!(before.2, after.2, "refs");
    assert!(before.0 == after.0, "something in .git was touched");
    assert!(!cli.work().join("hook-ran").exists());
    git(&cli.work(), &["fsck", "--strict"]);
}

#[test]
fn a_git_directory_that_cannot_be_written_is_no_obstacle() {
    let cli = Cli::new();
    make_repository(&cli.work());
    let dot_git = cli.work().join(".git");
    let set = |mode: u32| {
        for path in walk(&dot_git).into_iter().chain([dot_git.clone()]) {
            let dir = if path.is_dir() { 0o111 } else { 0 };
            fs::set_permissions(path, Permissions::from_mode(mode | dir)).unwrap();
        }
    };
    set(0o444);
    let before = picture(&dot_git);
    use_everything(&cli);
    assert!(before == picture(&dot_git), "something in .git was touched");
    set(0o644);
}

#[test]
fn without_a_repository_everything_works_and_none_is_created() {
    let cli = Cli::new();
    fs::write(cli.work().join("tracked"), "first\n").unwrap();
    use_everything(&cli);
    let names: Vec<_> = walk(&cli.work());
    assert_eq!(names, [cli.work().join("tracked")]);
    // Nothing of git's is in the store either.
    let is_git = |path: &Path| path.file_name().is_some_and(|name| name == ".git");
    assert!(!walk(&cli.store()).iter().any(|path| is_git(path)));
}
