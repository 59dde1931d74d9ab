//! Marks (B6): a file's first state is kept durably before an edit; what changed since is
//! reported for one file and for all; a checkpoint clears the marks.
//!
//! The truth is a plain map of what each file held when it was first marked.

#![expect(
    clippy::disallowed_methods,
    reason = "a workspace belongs to the user, who changes it as he likes"
)]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use backtrail::snapshot::{ChangeKind, FileKind};
use backtrail::workspace::FileChange;
use backtrail::{CheckpointOptions, ErrorKind, Point, Rewind, Store, StoreOptions};
use backtrail_testkit::{Count, Fault, FaultyStorage, Loss, MemoryStorage};

use crate::rewind::kit::{HOME, Lab, done, is_root, options, quick_dir, setting, turn};
use crate::snapshots::world::Dice;

fn before(change: &FileChange) -> Option<String> {
    let bytes = change.before().unwrap();
    bytes.map(|bytes| String::from_utf8(bytes).unwrap())
}

fn after(change: &FileChange) -> Option<String> {
    let bytes = change.after().unwrap();
    bytes.map(|bytes| String::from_utf8(bytes).unwrap())
}

fn told(changes: &[FileChange]) -> Vec<String> {
    changes.iter().map(ToString::to_string).collect()
}

#[test]
fn b6_the_first_state_since_the_last_checkpoint_is_kept_and_reported() {
    let lab = Lab::new(1);
    lab.write("a", "kept\n");
    lab.write("b", "kept\n");
    lab.keep();
    // You edit it, and only then it is marked.
    lab.write("a", "person's\n");
    lab.workspace.mark("a").unwrap();
    lab.write("a", "agent's\n");
    // Marking it again changes nothing.
    lab.workspace.mark("./a").unwrap();
    lab.write("a", "agent's once more\n");
    lab.write("b", "edited\n");
    let change = lab.workspace.change_of("a").unwrap().unwrap();
    assert!(change.is_marked());
    assert_eq!(change.change().kind, ChangeKind::Modified);
    assert_eq!(before(&change).as_deref(), Some("person's\n"));
    assert_eq!(after(&change).as_deref(), Some("agent's once more\n"));
    let text = change.text(3).unwrap();
    let text = String::from_utf8(text.unified().to_vec()).unwrap();
    assert!(text.contains("-person's\n+agent's once more"), "{text}");
    // Without a mark the last checkpoint counts.
    let other = lab.workspace.change_of("b").unwrap().unwrap();
    assert!(!other.is_marked());
    assert_eq!(before(&other).as_deref(), Some("kept\n"));
    assert!(other.since() < change.since());
    let all = lab.workspace.changes().unwrap();
    assert_eq!(told(&all), ["edited a", "edited b"]);
    assert_eq!(before(&all[0]).as_deref(), Some("person's\n"));
    assert_eq!(lab.workspace.marked().unwrap(), [Path::new("a")]);
    lab.verify();
}

#[test]
fn b6_a_file_that_is_as_it_was_marked_has_not_changed() {
    let lab = Lab::new(2);
    lab.write("a", "kept\n");
    lab.keep();
    lab.write("a", "person's\n");
    lab.workspace.mark("a").unwrap();
    assert!(lab.workspace.change_of("a").unwrap().is_none());
    assert!(lab.workspace.changes().unwrap().is_empty());
    lab.write("a", "kept\n");
    let change = lab.workspace.change_of("a").unwrap().unwrap();
    assert_eq!(before(&change).as_deref(), Some("person's\n"));
}

#[test]
fn b6_absence_links_modes_and_kinds_are_states_too() {
    let lab = Lab::new(3);
    lab.keep();
    symlink("there", lab.path("link")).unwrap();
    lab.write("dir/run", "#!/bin/sh\n");
    lab.write("becomes", "a file\n");
    for path in ["new", "no/such/dir", "link", "dir/run", "becomes"] {
        lab.workspace.mark(path).unwrap();
    }
    lab.write("new", "now\n");
    lab.write("no/such/dir", "now\n");
    fs::remove_file(lab.path("link")).unwrap();
    symlink("elsewhere", lab.path("link")).unwrap();
    fs::set_permissions(lab.path("dir/run"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(lab.path("becomes")).unwrap();
    lab.write("becomes/dir", "now\n");
    let kind = |path: &str| lab.workspace.change_of(path).unwrap().unwrap();
    for path in ["new", "no/such/dir"] {
        let change = kind(path);
        assert_eq!(change.change().kind, ChangeKind::Added);
        assert_eq!(
            (before(&change), after(&change).as_deref()),
            (None, Some("now\n"))
        );
    }
    let link = kind("link");
    assert_eq!(link.change().kind, ChangeKind::Modified);
    assert_eq!(before(&link).as_deref(), Some("there"));
    assert_eq!(after(&link).as_deref(), Some("elsewhere"));
    assert_eq!(kind("dir/run").change().kind, ChangeKind::Mode);
    let became = kind("becomes");
    assert_eq!(became.change().kind, ChangeKind::Kind);
    assert_eq!(became.change().after.as_ref().unwrap().kind, FileKind::Dir);
    assert_eq!(before(&became).as_deref(), Some("a file\n"));
    fs::remove_dir_all(lab.path("dir")).unwrap();
    assert_eq!(kind("dir/run").change().kind, ChangeKind::Deleted);
    // A path that leads elsewhere by now is gone from here.
    symlink("/etc", lab.path("dir")).unwrap();
    assert_eq!(kind("dir/run").change().kind, ChangeKind::Deleted);
}

#[test]
fn b6_a_checkpoint_clears_the_marks_and_so_does_clear_marks() {
    let lab = Lab::new(4);
    let marked = || lab.workspace.marked().unwrap().len();
    lab.write("a", "one\n");
    let first = lab.keep();
    lab.workspace.mark("a").unwrap();
    lab.write("a", "two\n");
    assert_eq!(marked(), 1);
    lab.keep();
    assert_eq!(marked(), 0);
    assert!(lab.workspace.change_of("a").unwrap().is_none());

    lab.workspace.mark("a").unwrap();
    lab.workspace.mark("b").unwrap();
    lab.write("a", "three\n");
    lab.workspace.clear_marks().unwrap();
    assert_eq!(marked(), 0);
    let change = lab.workspace.change_of("a").unwrap().unwrap();
    assert_eq!(before(&change).as_deref(), Some("two\n"));

    // A rewind ends with a checkpoint.
    lab.workspace.mark("a").unwrap();
    let to = Point::checkpoint(first.id());
    done(
        lab.workspace
            .rewind(&to, Rewind::files().overwrite())
            .unwrap(),
    );
    assert_eq!(marked(), 0);
    assert!(lab.workspace.change_of("a").unwrap().is_none());

    // A turn begins and ends with one.
    let session = lab.session();
    lab.workspace.mark("a").unwrap();
    turn(&session, "first", || {
        assert_eq!(marked(), 0);
        lab.workspace.mark("a").unwrap();
        lab.write("a", "four\n");
        assert_eq!(marked(), 1);
    });
    assert_eq!(marked(), 0);
    lab.verify();
}

#[test]
fn b6_without_a_checkpoint_only_marked_files_are_reported() {
    let lab = Lab::new(5);
    lab.write("a", "one\n");
    lab.write("b", "one\n");
    lab.workspace.mark("a").unwrap();
    lab.write("a", "two\n");
    lab.write("b", "two\n");
    assert_eq!(told(&lab.workspace.changes().unwrap()), ["edited a"]);
    let change = lab.workspace.change_of("a").unwrap().unwrap();
    assert_eq!(before(&change).as_deref(), Some("one\n"));
    let error = lab.workspace.change_of("b").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("was not marked"), "{error}");
    lab.workspace.clear_marks().unwrap();
    assert!(lab.workspace.changes().unwrap().is_empty());
}

#[test]
fn b6_files_that_snapshots_skip_can_be_marked() {
    let lab = Lab::new(6);
    lab.write(".gitignore", "target/\n");
    lab.write("target/out", "built\n");
    lab.keep();
    let error = lab.workspace.change_of("target/out").unwrap_err();
    assert!(
        error.to_string().contains("mark it before you edit it"),
        "{error}"
    );
    lab.workspace.mark("target/out").unwrap();
    lab.workspace.mark("target/new").unwrap();
    lab.write("target/out", "built again\n");
    lab.write("target/new", "built\n");
    lab.write("target/other", "built\n");
    let all = lab.workspace.changes().unwrap();
    assert_eq!(told(&all), ["new target/new", "edited target/out"]);
    assert_eq!(before(&all[1]).as_deref(), Some("built\n"));
    assert_eq!(after(&all[1]).as_deref(), Some("built again\n"));
}

#[test]
fn b6_a_renamed_file_is_reported_by_its_marks() {
    let lab = Lab::new(7);
    lab.write("old", "the same content, and enough of it\n");
    lab.keep();
    lab.workspace.mark("new").unwrap();
    fs::rename(lab.path("old"), lab.path("new")).unwrap();
    assert_eq!(
        told(&lab.workspace.changes().unwrap()),
        ["new new", "deleted old"]
    );
    lab.workspace.clear_marks().unwrap();
    assert_eq!(told(&lab.workspace.changes().unwrap()), ["old → new"]);
    fs::rename(lab.path("new"), lab.path("old")).unwrap();
    lab.workspace.mark("old").unwrap();
    fs::rename(lab.path("old"), lab.path("new")).unwrap();
    let all = lab.workspace.changes().unwrap();
    assert_eq!(told(&all), ["new new", "deleted old"]);
    assert!(before(&all[1]).is_some_and(|text| text.starts_with("the same")));
    assert!(after(&all[0]).is_some_and(|text| text.starts_with("the same")));
}

#[test]
fn b6_a_file_that_cannot_be_kept_is_refused_by_name() {
    let lab = Lab::with(StoreOptions::new().snapshot_cap(1000));
    lab.write("dir/a", "one\n");
    lab.write("large", vec![0; 1001]);
    lab.write(".git/config", "[core]\n");
    symlink("dir", lab.path("way")).unwrap();
    symlink("/etc", lab.path("out")).unwrap();
    let refused = |path: &str, why: &str| {
        for error in [
            lab.workspace.mark(path).unwrap_err(),
            lab.workspace.mark(path).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Invalid, "{path}: {error:?}");
            let text = error.to_string();
            assert!(text.contains(why), "{text}");
        }
    };
    refused("dir", "is a directory; mark the files in it");
    refused("large", "large has 1001 bytes, more than the cap of 1000");
    refused("way/a", "way/a goes through way, which is a link");
    refused("out/passwd", "goes through out");
    refused("../a", "is not a path within a workspace");
    refused("/etc/passwd", "/etc/passwd is outside the workspace");
    refused(".", "is the workspace itself");
    refused("", "is the workspace itself");
    refused(".git/config", "belongs to git");
    refused("a\0b", "contains a NUL");
    let pipe = lab.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    match made.is_ok_and(|status| status.success()) {
        true => refused("pipe", "is neither a file nor a link"),
        false => eprintln!("SKIPPED: needs mkfifo; no named pipe was marked"),
    }
    assert!(lab.workspace.marked().unwrap().is_empty());
    if is_root() {
        eprintln!("SKIPPED: needs a user other than root; no mode stops root");
        return;
    }
    lab.write("shut", "x");
    fs::set_permissions(lab.path("shut"), fs::Permissions::from_mode(0o000)).unwrap();
    let error = lab.workspace.mark("shut").unwrap_err();
    assert!(
        error.path().is_some_and(|path| path.ends_with("shut")),
        "{error:?}"
    );
    assert!(lab.workspace.marked().unwrap().is_empty());
}

#[test]
fn b6_names_that_are_no_text_are_marked_as_they_are() {
    let lab = Lab::new(9);
    let name = Path::new(OsStr::from_bytes(b"caf\xe9\n"));
    let other = Path::new("caf\u{fffd}\n");
    fs::write(lab.root().join(name), "one\n").unwrap();
    lab.workspace.mark(name).unwrap();
    fs::write(lab.root().join(name), "two\n").unwrap();
    assert_eq!(lab.workspace.marked().unwrap(), [name]);
    let change = lab.workspace.change_of(name).unwrap().unwrap();
    assert_eq!(before(&change).as_deref(), Some("one\n"));
    let error = lab.workspace.change_of(other).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

/// A mark that was acknowledged is there after a power cut, and one that was not
/// leaves the workspace as it was, at every operation.
#[test]
fn b6_a_mark_is_durable_at_once() {
    let dir = quick_dir();
    let root = dir.path().join("work");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a"), "one\n").unwrap();
    let memory = MemoryStorage::new();
    let store = options(1).storage(memory.clone()).open_or_create(HOME);
    let workspace = store.unwrap().workspace(&root).unwrap();
    workspace.checkpoint(CheckpointOptions::new()).unwrap();
    fs::write(root.join("a"), "two\n").unwrap();
    let mut acknowledged = false;
    for n in 0..200 {
        let memory = memory.kill();
        let disk = FaultyStorage::new(memory.clone()).counting(Count::Writes);
        let store = options(n + 2).storage(disk.clone()).open(HOME).unwrap();
        let workspace = store.workspace(&root).unwrap();
        disk.arm(
            n,
            Fault::Crash {
                when: backtrail_testkit::When::After,
            },
        );
        acknowledged = workspace.mark("a").is_ok();
        drop((workspace, store));
        let after = memory.crash(Loss::Unsynced);
        let store = options(999).storage(after).open(HOME).unwrap();
        let workspace = store.workspace(&root).unwrap();
        let marked = !workspace.marked().unwrap().is_empty();
        assert!(marked || !acknowledged, "operation {n}");
        fs::write(root.join("a"), "three\n").unwrap();
        let change = workspace.change_of("a").unwrap().unwrap();
        let expected = if marked { "two\n" } else { "one\n" };
        assert_eq!(before(&change).as_deref(), Some(expected), "operation {n}");
        assert!(store.verify_snapshots().unwrap().is_ok());
        fs::write(root.join("a"), "two\n").unwrap();
        if !disk.fired() {
            break;
        }
    }
    assert!(acknowledged);
}

#[test]
fn b6_marks_stand_on_the_trail_as_they_are_documented() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("work");
    fs::create_dir(&root).unwrap();
    let store = Store::open_or_create(dir.path().join("store")).unwrap();
    let workspace = store.workspace(&root).unwrap();
    fs::write(root.join("a"), "one\n").unwrap();
    workspace.mark("a").unwrap();
    // Already marked: nothing is written.
    workspace.mark("a").unwrap();
    workspace.mark(OsStr::from_bytes(b"\xff")).unwrap();
    workspace.clear_marks().unwrap();
    // Nothing to clear: nothing is written.
    workspace.clear_marks().unwrap();
    let trail = dir
        .path()
        .join("store/workspaces")
        .join(workspace.id().as_str());
    let lines = fs::read_to_string(trail.join("0000.jsonl")).unwrap();
    let records: Vec<serde_json::Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |kind: &str| {
        let fits = records.iter().filter(|record| record["type"] == kind);
        fits.collect::<Vec<_>>()
    };
    let [first, second] = of("mark")[..] else {
        panic!("{lines}")
    };
    assert_eq!(first["path"], "a");
    assert!(first.get("path_hex").is_none());
    assert_eq!(first["snapshot"].as_str().map(str::len), Some(64));
    assert_eq!(second["path"], "\u{fffd}");
    assert_eq!(second["path_hex"], "ff");
    assert_ne!(first["snapshot"], second["snapshot"]);
    assert_eq!(of("marks_cleared").len(), 1);
    assert!(of("marks_cleared")[0]["at"].is_string());
}

/// Random edits, marks, checkpoints and clearings against a plain map.
#[test]
fn b6_after_any_edits_every_change_is_reported_from_the_first_state() {
    const PATHS: [&str; 4] = ["a", "d/b", "d/c", "target/x"];
    let first = setting("BACKTRAIL_TEST_SEED", 0);
    for seed in first..first + 10 * setting("BACKTRAIL_TEST_LIVES", 1) {
        let lab = Lab::new(seed);
        lab.write(".gitignore", "target/\n");
        let mut dice = Dice::new(seed);
        let read = |path: &str| fs::read_to_string(lab.path(path)).ok();
        let mut kept: BTreeMap<&str, Option<String>> = BTreeMap::new();
        let mut marks: BTreeMap<&str, Option<String>> = BTreeMap::new();
        let mut has_checkpoint = false;
        for step in 0..40 {
            let path = dice.pick(&PATHS).unwrap();
            match dice.below(8) {
                0..3 => lab.write(path, format!("{step}\n")),
                3 => _ = fs::remove_file(lab.path(path)),
                4 | 5 => {
                    lab.workspace.mark(path).unwrap();
                    marks.entry(path).or_insert_with(|| read(path));
                }
                6 => {
                    lab.keep();
                    marks.clear();
                    has_checkpoint = true;
                    let seen = PATHS.iter().filter(|path| !path.starts_with("target"));
                    kept = seen.map(|path| (*path, read(path))).collect();
                }
                _ => {
                    lab.workspace.clear_marks().unwrap();
                    marks.clear();
                }
            }
            let mut first_states = kept.clone();
            first_states.extend(marks.clone());
            let mut expected: Vec<(String, Option<String>, Option<String>)> = first_states
                .into_iter()
                .map(|(path, before)| (path.to_owned(), before, read(path)))
                .filter(|(_, before, after)| before != after)
                .collect();
            expected.sort();
            let mut found = Vec::new();
            for change in lab.workspace.changes().unwrap() {
                let path = change.change().path.display().to_string();
                if let Some(from) = &change.change().from {
                    found.push((from.display().to_string(), before(&change), None));
                    found.push((path, None, after(&change)));
                } else if !change
                    .change()
                    .before
                    .iter()
                    .chain(&change.change().after)
                    .any(|state| state.kind == FileKind::Dir)
                {
                    found.push((path, before(&change), after(&change)));
                }
            }
            found.sort();
            assert_eq!(found, expected, "seed {seed}, step {step}");
            if has_checkpoint || marks.contains_key(path) {
                let one = match lab.workspace.change_of(path) {
                    Ok(change) => change.map(|change| (before(&change), after(&change))),
                    Err(error) => {
                        assert!(
                            path.starts_with("target") && !marks.contains_key(path),
                            "{error}"
                        );
                        continue;
                    }
                };
                if path.starts_with("target") && !marks.contains_key(path) {
                    continue;
                }
                let expected = expected.into_iter().find(|(name, ..)| name == path);
                let expected = expected.map(|(_, before, after)| (before, after));
                assert_eq!(one, expected, "seed {seed}, step {step}, {path}");
            }
        }
        lab.verify();
    }
}

/// B6: agents name files as they find them.
#[test]
fn b6_a_path_may_be_absolute_if_it_is_in_the_workspace() {
    let lab = Lab::new(1);
    lab.write("src/a", "kept\n");
    lab.keep();
    let link = lab.dir.path().join("link");
    symlink(lab.root(), &link).unwrap();
    for (n, path) in [
        lab.path("src/a"),
        link.join("src/a"),
        lab.path("not there"),
        link.join("src/not there"),
    ]
    .iter()
    .enumerate()
    {
        lab.workspace.mark(path).unwrap();
        assert_eq!(lab.workspace.marked().unwrap().len(), [1, 1, 2, 3][n]);
    }
    let marked = lab.workspace.marked().unwrap();
    let expected = ["not there", "src/a", "src/not there"].map(Path::new);
    assert_eq!(marked, expected);
    lab.write("src/a", "edited\n");
    let change = lab
        .workspace
        .change_of(link.join("src/a"))
        .unwrap()
        .unwrap();
    assert!(change.is_marked());
    assert_eq!(change.change().path, Path::new("src/a"));
    // Outside, or back out of it, nothing is marked.
    let outside = lab.dir.path().join("elsewhere");
    let out = lab.path("src/../../elsewhere");
    for path in [&outside, &out, lab.dir.path(), lab.root()] {
        let error = lab.workspace.mark(path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
    let error = lab.workspace.mark(&outside).unwrap_err();
    assert!(
        error.to_string().contains("is outside the workspace"),
        "{error}"
    );
}
