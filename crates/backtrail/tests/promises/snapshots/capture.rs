//! What is captured, and what is said of the rest (F12, F13, F18, F28).

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use backtrail::snapshot::{ChangeKind, SkippedReason};
use backtrail::{CheckpointOptions, Store, StoreOptions, Workspace};

use super::desk::Desk;
use super::tree::{materialised, read_tree, same};

#[test]
fn f12_a_binary_file_is_captured_exactly_and_reported_as_binary() {
    let desk = Desk::new();
    let binary: Vec<u8> = (0..=255).cycle().take(10_000).collect();
    desk.write("image", &binary);
    desk.write("zeros", [0; 5000]);
    let before = desk.keep().snapshot().unwrap();
    assert_eq!(before.read("image").unwrap().unwrap(), binary);

    desk.write("image", &binary[1..]);
    let after = desk.keep().snapshot().unwrap();
    let diff = before.diff(&after).unwrap();
    let [change] = diff.changes() else {
        panic!("{diff:?}")
    };
    assert_eq!(change.kind, ChangeKind::Modified);
    assert_eq!(diff.before(change).unwrap().unwrap(), binary);
    assert_eq!(diff.after(change).unwrap().unwrap(), &binary[1..]);
    let text = diff.text(change, 3).unwrap();
    let unified = String::from_utf8_lossy(text.unified()).into_owned();
    assert!(unified.contains("Binary"), "{unified}");
}

#[test]
fn f12_a_skipped_file_is_neither_empty_nor_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("work");
    fs::create_dir(&root).unwrap();
    let options = StoreOptions::new().snapshot_cap(1000);
    let store = options.open_or_create(dir.path().join("store")).unwrap();
    let workspace = store.workspace(&root).unwrap();
    fs::write(root.join("grows"), vec![b'x'; 1000]).unwrap();
    let first = keep(&workspace);
    assert_eq!(first.skipped().count, 0);

    fs::write(root.join("grows"), vec![b'x'; 1001]).unwrap();
    let second = keep(&workspace);
    let snapshot = second.snapshot().unwrap();
    assert_eq!(snapshot.entry("grows").unwrap(), None);
    assert_eq!(snapshot.read("grows").unwrap(), None, "it is not empty");
    let reason = snapshot.skipped_reason("grows").unwrap();
    assert_eq!(reason, Some(SkippedReason::TooLarge));
    assert_eq!(second.skipped().count, 1);
    let told = &second.skipped().first[0];
    assert_eq!(
        (told.path.as_path(), told.bytes),
        (Path::new("grows"), 1001)
    );
    // Nobody knows what is in it now, so nothing is said of it.
    let diff = first.snapshot().unwrap().diff(&snapshot).unwrap();
    assert!(diff.is_empty(), "{diff:?}");
    assert_eq!(second.changed(), 0);
    let listed: Vec<PathBuf> = snapshot.skipped().map(|e| e.unwrap().path).collect();
    assert_eq!(listed, [PathBuf::from("grows")]);
}

fn keep(workspace: &Workspace) -> backtrail::Checkpoint {
    workspace.checkpoint(CheckpointOptions::new()).unwrap()
}

#[test]
fn f13_absent_files_and_empty_files_are_kept_apart() {
    let desk = Desk::new();
    let before = desk.keep().snapshot().unwrap();
    desk.write("empty", "");
    fs::create_dir_all(desk.path("dirs/empty")).unwrap();
    let after = desk.keep().snapshot().unwrap();
    for path in ["empty", "dirs", "dirs/empty"] {
        assert_eq!(before.entry(path).unwrap(), None, "{path} was absent");
        assert!(after.entry(path).unwrap().is_some(), "{path} is there");
    }
    assert_eq!(before.read("empty").unwrap(), None);
    assert_eq!(after.read("empty").unwrap(), Some(Vec::new()));
    let told = |diff: backtrail::snapshot::Diff| -> Vec<String> {
        diff.iter().map(ToString::to_string).collect()
    };
    let there = told(before.diff(&after).unwrap());
    assert_eq!(there, ["new dirs/empty/", "new empty"]);
    let back = told(after.diff(&before).unwrap());
    assert_eq!(back, ["deleted dirs/empty/", "deleted empty"]);
}

/// No tool is asked and none is trusted: a shell command changes files as it likes.
#[test]
fn f18_whatever_a_shell_command_does_is_seen() {
    let desk = Desk::new();
    desk.write("old/keep", "same");
    desk.write("old/gone", "to be deleted\n");
    desk.write("script", "#!/bin/sh\n");
    desk.write("moved", "a content to be found elsewhere\n");
    let before = desk.keep().snapshot().unwrap();
    let shell = "rm old/gone; chmod 755 script; mkdir -p new/deep; mv moved new/deep/here; \
                 echo more >> script; ln -s nowhere link; : > empty; mkdir void";
    let status = Command::new("sh")
        .args(["-c", shell])
        .current_dir(desk.root())
        .status()
        .unwrap();
    assert!(status.success());
    let tree = read_tree(desk.root());
    let after = desk.keep();
    same(&materialised(&after.snapshot().unwrap()), &tree).unwrap();
    let diff = before.diff(&after.snapshot().unwrap()).unwrap();
    let told: Vec<String> = diff.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "new empty",
            "new link",
            "moved → new/deep/here",
            "deleted old/gone",
            "edited script",
            "new void/",
        ]
    );
}

#[test]
fn f28_a_nested_repository_a_large_file_and_no_git_do_not_stop_a_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("work");
    fs::create_dir_all(root.join("nested/.git/objects")).unwrap();
    fs::create_dir_all(root.join("worktree")).unwrap();
    fs::write(root.join("nested/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(root.join("nested/code"), "fn main() {}\n").unwrap();
    // A worktree or a submodule has a file of that name.
    fs::write(root.join("worktree/.git"), "gitdir: /elsewhere\n").unwrap();
    fs::write(root.join("worktree/code"), "fn other() {}\n").unwrap();
    fs::write(root.join("after-it"), "captured all the same\n").unwrap();
    let large = File::create(root.join("large")).unwrap();
    large.set_len(10 << 20).unwrap();
    let options = StoreOptions::new().snapshot_cap(1 << 20);
    let store = options.open_or_create(dir.path().join("store")).unwrap();
    let kept = keep(&store.workspace(&root).unwrap());
    let mut expected = read_tree(&root);
    expected.remove(Path::new("large"));
    let snapshot = kept.snapshot().unwrap();
    same(&materialised(&snapshot), &expected).unwrap();
    // What is missing is said; git's own state is nobody's loss.
    assert_eq!(kept.skipped().count, 1);
    let told = &kept.skipped().first[0];
    assert_eq!(told.path, Path::new("large"));
    assert_eq!(told.reason, SkippedReason::TooLarge);
    let git = snapshot.skipped_reason("nested/.git/HEAD").unwrap();
    assert_eq!(git, Some(SkippedReason::Git));
    let git = snapshot.skipped_reason("worktree/.git").unwrap();
    assert_eq!(git, Some(SkippedReason::Git));
    // It is captured as soon as it fits.
    large.set_len(1 << 20).unwrap();
    let kept = keep(&store.workspace(&root).unwrap());
    assert_eq!(kept.skipped().count, 0);
    let snapshot = kept.snapshot().unwrap();
    assert_eq!(snapshot.read("large").unwrap().unwrap(), vec![0; 1 << 20]);
}

#[test]
fn sockets_and_pipes_are_reported_and_never_opened() {
    let desk = Desk::new();
    let _socket = UnixListener::bind(desk.path("socket")).unwrap();
    // Whoever opened it to read would wait for ever.
    let made = Command::new("mkfifo").arg(desk.path("pipe")).status();
    assert!(made.unwrap().success());
    desk.write("file", "x");
    let kept = keep(&desk.workspace);
    assert_eq!(kept.files(), 1);
    let told = kept.skipped();
    let first: Vec<_> = told
        .first
        .iter()
        .map(|e| (e.path.to_str(), e.reason))
        .collect();
    let special = SkippedReason::Special;
    assert_eq!(first, [(Some("pipe"), special), (Some("socket"), special)]);
    assert_eq!(told.count, 2);
}

#[test]
fn a_link_is_kept_as_a_link_wherever_it_leads() {
    let desk = Desk::new();
    let outside = desk.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "not ours").unwrap();
    symlink(&outside, desk.path("out")).unwrap();
    symlink("/nowhere/at/all", desk.path("dangling")).unwrap();
    symlink(".", desk.path("circle")).unwrap();
    let kept = desk.keep();
    assert_eq!(kept.files(), 3);
    let snapshot = kept.snapshot().unwrap();
    assert_eq!(snapshot.entry("out/secret").unwrap(), None);
    // What changes behind a link changes nothing here.
    fs::write(outside.join("secret"), "still not ours").unwrap();
    assert_eq!(desk.keep().snapshot_id(), kept.snapshot_id());
}

/// The rules of the moment decide, whoever wrote them.
#[test]
fn an_ignore_file_that_the_agent_changes_hides_no_file_that_was_captured() {
    let desk = Desk::new();
    desk.write("src/code", "fn main() {}\n");
    desk.write("secret.env", "KEY=1\n");
    let before = desk.keep().snapshot().unwrap();
    desk.write(".gitignore", "*.env\nsrc/\n");
    desk.write("secret.env", "KEY=2\n");
    desk.write("src/code", "fn main() { panic!() }\n");
    let kept = keep(&desk.workspace);
    let snapshot = kept.snapshot().unwrap();
    // A small file is captured though it is ignored; a directory is said to be left out.
    assert_eq!(snapshot.read("secret.env").unwrap().unwrap(), b"KEY=2\n");
    let reason = snapshot.skipped_reason("src/code").unwrap();
    assert_eq!(reason, Some(SkippedReason::Ignored));
    assert_eq!(kept.skipped().count, 1);
    assert_eq!(kept.skipped().first[0].path, Path::new("src"));
    let diff = before.diff(&snapshot).unwrap();
    let told: Vec<String> = diff.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["new .gitignore", "edited secret.env"]);
    // What was captured before is there still, and seen again without the rule.
    assert_eq!(before.read("src/code").unwrap().unwrap(), b"fn main() {}\n");
    fs::remove_file(desk.path(".gitignore")).unwrap();
    let diff = before.diff(&desk.keep().snapshot().unwrap()).unwrap();
    let told: Vec<String> = diff.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["edited secret.env", "edited src/code"]);
}

#[test]
fn the_store_is_never_captured_and_has_no_workspace_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join(".backtrail");
    let store = Store::open_or_create(&home).unwrap();
    fs::write(dir.path().join("file"), "x").unwrap();
    let workspace = store.workspace(dir.path()).unwrap();
    let first = keep(&workspace);
    assert_eq!(first.files(), 1);
    let snapshot = first.snapshot().unwrap();
    let reason = snapshot.skipped_reason(".backtrail/objects").unwrap();
    assert_eq!(reason, Some(SkippedReason::Store));
    // So a second one finds nothing new.
    assert_eq!(keep(&workspace).snapshot_id(), first.snapshot_id());
    let error = store.workspace(&home).unwrap_err();
    assert!(error.to_string().contains("is in the store"), "{error}");
    let link = dir.path().join("link");
    symlink(&home, &link).unwrap();
    assert!(store.workspace(&link).is_err(), "by another name either");
}

/// Only where permissions mean something: root may read everything.
#[test]
fn f12_a_directory_without_permission_is_reported_as_unreadable() {
    let desk = Desk::new();
    desk.write("closed/file", "x");
    desk.write("open", "x");
    let closed = desk.path("closed");
    fs::set_permissions(&closed, Permissions::from_mode(0o000)).unwrap();
    let is_root = fs::read_dir(&closed).is_ok();
    let kept = keep(&desk.workspace);
    fs::set_permissions(&closed, Permissions::from_mode(0o755)).unwrap();
    if is_root {
        assert_eq!((kept.files(), kept.skipped().count), (2, 0));
    } else {
        assert_eq!((kept.files(), kept.skipped().count), (1, 1));
        let reason = kept.skipped().first[0].reason;
        assert_eq!(reason, SkippedReason::Unreadable);
    }
}
