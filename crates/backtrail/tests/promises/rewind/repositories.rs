//! Repositories: git's files are the same before and after, also those of nested ones,
//! and no repository goes with a directory (F27).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use backtrail::{Checkpoint, Outcome, Point, Rewind};

use super::kit::{Lab, done, turn};

fn go(lab: &Lab, to: &Checkpoint) -> Outcome {
    let to = Point::checkpoint(to.id());
    done(lab.workspace.rewind(&to, Rewind::files()).unwrap())
}

/// What git and its files look like.
fn git_state(root: &Path) -> (String, Vec<(PathBuf, Vec<u8>)>) {
    let status = git(root, &["status", "--porcelain=v1", "--branch"]);
    let mut files = Vec::new();
    read_all(&root.join(".git"), &mut files);
    files.sort();
    (status, files)
}

fn read_all(dir: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => read_all(&path, files),
            false => files.push((path.clone(), fs::read(&path).unwrap())),
        }
    }
}

fn git(root: &Path, args: &[&str]) -> String {
    let out = Command::new("git")
        .args(["-c", "user.name=n", "-c", "user.email=e@example.org"])
        // Reading the status must not rewrite the index.
        .arg("--no-optional-locks")
        .args(args)
        .current_dir(root)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .expect("git is installed where the tests run");
    assert!(out.status.success(), "{args:?}: {out:?}");
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn f27_repositories_are_untouched() {
    let lab = Lab::new(15);
    let nested = lab.path("vendor/nested");
    fs::create_dir_all(&nested).unwrap();
    for root in [lab.root(), &nested] {
        git(root, &["init", "-q"]);
        fs::write(root.join("tracked"), "1").unwrap();
        git(root, &["add", "tracked"]);
        git(root, &["commit", "-q", "-m", "first"]);
        fs::write(root.join("tracked"), "staged").unwrap();
        git(root, &["add", "tracked"]);
        fs::write(root.join("untracked"), "1").unwrap();
        fs::write(root.join(".git/hooks/post-checkout"), "#!/bin/sh\nexit 1\n").unwrap();
    }
    let first = lab.keep();
    let before = [lab.root(), &nested].map(git_state);
    let session = lab.session();
    turn(&session, "work", || {
        lab.write("tracked", "edited");
        lab.write("vendor/nested/tracked", "edited");
        lab.write("untracked", "edited");
        lab.write("new", "1");
    });
    let files_of_git = |root: &Path| git_state(root).1;
    let during = [lab.root(), &nested].map(files_of_git);
    go(&lab, &first);
    assert_eq!([lab.root(), &nested].map(git_state), before, "as it was");
    assert_eq!(lab.read("vendor/nested/tracked"), "staged");
    done(lab.workspace.undo(Rewind::files()).unwrap().unwrap());
    assert_eq!([lab.root(), &nested].map(files_of_git), during);
    assert!(!lab.has(".git/index.lock"));
    // Nor does the removal of a directory take a repository with it.
    let empty = Lab::new(16);
    let first = empty.keep();
    fs::create_dir(empty.path("clone")).unwrap();
    git(&empty.path("clone"), &["init", "-q"]);
    empty.write("clone/file", "1");
    empty.keep();
    let report = go(&empty, &first);
    assert!(empty.has("clone/.git/HEAD") && !empty.has("clone/file"));
    let cannot: Vec<_> = report.not_restored.iter().map(|one| &*one.path).collect();
    assert!(cannot.contains(&Path::new("clone")), "{cannot:?}");
}
