//! How long a thousand files take, and what git needs for the same. Run alone:
//! `cargo test --release -p backtrail --lib rewind::speed_tests -- --ignored --nocapture`.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::kit_tests::*;

fn trees(files: usize, changed: usize) -> (Tree, Tree) {
    let (mut old, mut new) = (tree([]), tree([]));
    let text = "some line of a file\n".repeat(100);
    for n in 0..files {
        for tree in [&mut old, &mut new] {
            tree.insert(format!("d{}", n % 60).into_bytes(), dir());
        }
        let path = format!("d{}/f{n}", n % 60).into_bytes();
        old.insert(path.clone(), file(&format!("{text}{n}")));
        let now = if n < changed { "changed" } else { "" };
        new.insert(path, file(&format!("{text}{n}{now}")));
    }
    (old, new)
}

fn git(dir: &Path, args: &[&str]) -> Duration {
    let before = Instant::now();
    let mut command = Command::new("git");
    let identity = [
        "-c",
        "user.name=x",
        "-c",
        "user.email=x@x",
        "-c",
        "gc.auto=0",
    ];
    let done = command
        .arg("-C")
        .arg(dir)
        .args(identity)
        .args(args)
        .output();
    let done = done.unwrap();
    assert!(done.status.success(), "{args:?}: {done:?}");
    before.elapsed()
}

#[test]
#[ignore = "takes time; prints figures"]
fn a_thousand_files_against_git() {
    let (old, new) = trees(2000, 1000);
    let of_git = Ground::on_disk();
    let dir = of_git.root();
    git(&dir, &["init", "-q"]);
    build_over(&dir, &new);
    git(&dir, &["add", "-A"]);
    git(&dir, &["commit", "-qm", "new"]);
    build_over(&dir, &old);
    git(&dir, &["add", "-A"]);
    git(&dir, &["commit", "-qm", "old"]);
    let ground = Ground::on_disk();
    ground.build(&old);
    let (there, back) = (ground.items(&old, &new), ground.items(&new, &old));
    for round in 0..4 {
        let forth = git(&dir, &["read-tree", "-u", "-m", "HEAD", "HEAD^"]);
        let and_back = git(&dir, &["read-tree", "-u", "-m", "HEAD^", "HEAD"]);
        let mut took = Vec::new();
        for items in [&there, &back] {
            let root = ground.root();
            let before = Instant::now();
            let staged = ground.work(&root, items, None).stage().unwrap();
            let at_staged = before.elapsed();
            staged.check().unwrap();
            let at_checked = before.elapsed();
            assert_eq!(staged.move_files().unwrap().left, []);
            took.push((at_staged, at_checked, before.elapsed()));
        }
        eprintln!("round {round}: git {forth:?}, back {and_back:?}; ours {took:?}");
    }
    assert!(ground.read() == old);
}

/// Writes the files of a tree over another one.
fn build_over(root: &Path, tree: &Tree) {
    for (path, stuff) in tree {
        let at = root.join(String::from_utf8_lossy(path).as_ref());
        match stuff {
            Stuff::File(_, bytes) => std::fs::write(at, bytes).unwrap(),
            _ => std::fs::create_dir_all(at).unwrap(),
        }
    }
}
