//! Odd cases, each by itself: kinds and names that change, ignore rules that change,
//! modes, ten thousand files, files that are held open, and a directory that is gone
//! (B4, B5, B7, F13, F14, F16, F17, F28, F29).

use std::fs::{self, File, Permissions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use backtrail::rewind::{KeptReason, PathOutcomeKind, Verb};
use backtrail::workspace::CheckpointReason;
use backtrail::{
    Checkpoint, CheckpointOptions, ErrorKind, Message, Outcome, Point, Rewind, StoreOptions,
};

use super::kit::{
    Lab, done, is_root, is_tree, options, run, run_end, run_start, stamps, stopped, untouched,
};

fn go(lab: &Lab, to: &Checkpoint) -> Outcome {
    go_with(lab, to, Rewind::files().overwrite())
}

fn go_with(lab: &Lab, to: &Checkpoint, options: Rewind) -> Outcome {
    done(
        lab.workspace
            .rewind(&Point::checkpoint(to.id()), options)
            .unwrap(),
    )
}

fn undo(lab: &Lab) -> Outcome {
    done(lab.workspace.undo(Rewind::files()).unwrap().unwrap())
}

fn names<P: AsRef<Path>>(paths: &[P]) -> Vec<&str> {
    let paths = paths.iter().map(AsRef::as_ref);
    paths.map(|path| path.to_str().unwrap()).collect()
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn f13_f14_an_older_checkpoint_is_that_state_whatever_came_later() {
    let lab = Lab::new(1);
    let mut states = Vec::new();
    for n in 0..6 {
        lab.write("edited", format!("state {n}"));
        lab.write(&format!("made-{n}"), "");
        fs::create_dir(lab.path(&format!("empty-{n}"))).unwrap();
        if n > 0 {
            fs::remove_file(lab.path(&format!("made-{}", n - 1))).unwrap();
        }
        states.push((lab.keep(), lab.tree()));
    }
    for n in [0, 3, 1, 5, 2, 4, 0] {
        let (checkpoint, tree) = &states[n];
        go_with(&lab, checkpoint, Rewind::files());
        is_tree(lab.root(), tree, "to an older state");
    }
    lab.verify();
}

#[test]
fn b4_b5_b7_f17_checkpoints_have_ids_times_and_places_and_a_rewind_says_what_it_restored() {
    let lab = Lab::new(2);
    lab.write("file", "1");
    let session = lab.session();
    session.append(Message::user_text("hello")).unwrap();
    let labelled = || CheckpointOptions::new().label("same name");
    let kept: Vec<Checkpoint> = (0..12)
        .map(|n| {
            lab.write("file", format!("{n}"));
            session.checkpoint(labelled()).unwrap()
        })
        .collect();
    // A label is not an id: none of them takes the place of another.
    let listed: Vec<_> = lab
        .workspace
        .checkpoints()
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let ids = |all: &[Checkpoint]| all.iter().map(Checkpoint::id).collect::<Vec<_>>();
    assert_eq!(ids(&listed), ids(&kept));
    assert!(listed.is_sorted_by(|a, b| a.at() < b.at() && a.seq() < b.seq()));
    let third = lab
        .workspace
        .checkpoint_by_id(kept[2].id())
        .unwrap()
        .unwrap();
    assert_eq!(third.stats().unwrap().unwrap().messages.user, 1);
    assert_eq!(third.session().unwrap().seq, 1);
    let report = go_with(&lab, &third, Rewind::files());
    assert_eq!(
        (report.verb, names(&report.restored())),
        (Verb::Rewind, vec!["file"])
    );
    assert_eq!(report.to.as_ref().map(|to| to.checkpoint), Some(third.id()));
    assert_eq!(lab.read("file"), "2");
    let now = lab.workspace.last_checkpoint().unwrap().unwrap();
    assert_eq!(
        (report.now, now.snapshot_id()),
        (Some(now.id()), third.snapshot_id())
    );
    // Once more there is nothing to do, and nothing is noted.
    let again = go_with(&lab, &third, Rewind::files());
    assert!(again.now.is_none() && again.restored().is_empty());
    assert_eq!(
        lab.workspace.last_checkpoint().unwrap().unwrap().id(),
        now.id()
    );
}

#[test]
fn a_file_becomes_a_directory_and_a_directory_a_file() {
    let lab = Lab::new(3);
    lab.write("a", "a file");
    lab.write("d/deep/file", "in a directory");
    lab.write("l", "a file");
    let first = (lab.keep(), lab.tree());
    fs::remove_file(lab.path("a")).unwrap();
    lab.write("a/deep/file", "in a directory");
    fs::remove_dir_all(lab.path("d")).unwrap();
    lab.write("d", "a file");
    fs::remove_file(lab.path("l")).unwrap();
    symlink("d", lab.path("l")).unwrap();
    let second = (lab.keep(), lab.tree());
    for (to, tree) in [&first, &second, &first] {
        go_with(&lab, to, Rewind::files());
        is_tree(lab.root(), tree, "kinds");
    }
    undo(&lab);
    is_tree(lab.root(), &second.1, "undone");
}

#[test]
fn names_that_differ_in_case_alone_are_two_names() {
    let lab = Lab::new(4);
    lab.write("Readme", "1");
    lab.write("Dir/file", "1");
    let first = (lab.keep(), lab.tree());
    fs::rename(lab.path("Readme"), lab.path("README")).unwrap();
    fs::rename(lab.path("Dir"), lab.path("dir")).unwrap();
    let second = (lab.keep(), lab.tree());
    for (to, tree) in [&first, &second] {
        go_with(&lab, to, Rewind::files());
        is_tree(lab.root(), tree, "case");
    }
}

#[test]
fn files_created_while_ignored_are_never_deleted() {
    let lab = Lab::new(5);
    lab.write(".gitignore", "*.log\nbuild/\n");
    lab.write("was-there.log", "there from the start");
    let first = lab.keep();
    lab.write("born.log", "while ignored");
    lab.write("build/out", "in an ignored directory");
    lab.write("made", "not ignored");
    lab.keep();
    // Ignored no longer, and seen by the next.
    lab.write(".gitignore", "");
    lab.write("born.log", "while ignored, and edited since");
    lab.keep();
    let report = go(&lab, &first);
    assert_eq!(lab.read(".gitignore"), "*.log\nbuild/\n");
    assert_eq!(lab.read("born.log"), "while ignored, and edited since");
    assert_eq!(lab.read("build/out"), "in an ignored directory");
    assert!(!lab.has("made"));
    let born = |path: &str| {
        report
            .kept
            .iter()
            .any(|kept| kept.path == Path::new(path) && kept.reason == KeptReason::BornIgnored)
    };
    assert!(born("born.log"), "{:?}", report.kept);
    // What was captured although it was ignored is restored.
    fs::remove_file(lab.path("was-there.log")).unwrap();
    go(&lab, &first);
    assert_eq!(lab.read("was-there.log"), "there from the start");
}

#[test]
fn files_ignored_only_later_are_deleted_and_restored() {
    let lab = Lab::new(6);
    lab.write("file", "1");
    let first = lab.keep();
    lab.write("made.log", "before the rule");
    lab.keep();
    lab.write(".gitignore", "*.log\n");
    lab.keep();
    let before = lab.tree();
    go(&lab, &first);
    assert!(!lab.has("made.log") && !lab.has(".gitignore"));
    undo(&lab);
    is_tree(lab.root(), &before, "undone");
}

#[test]
fn an_ignored_directory_in_the_place_of_a_file_stays() {
    let lab = Lab::new(7);
    lab.write("build", "a file");
    lab.write("other", "1");
    let first = lab.keep();
    fs::remove_file(lab.path("build")).unwrap();
    lab.write(".gitignore", "build/\n");
    lab.write("build/deep/out", "never captured");
    lab.write("other", "2");
    lab.keep();
    let report = go(&lab, &first);
    // It stays, it is named, and the rest is as it was.
    assert_eq!(lab.read("build/deep/out"), "never captured");
    assert_eq!(lab.read("other"), "1");
    let cannot: Vec<_> = report.not_restored.iter().map(|one| &*one.path).collect();
    assert_eq!(cannot, [Path::new("build")]);
    let undone = undo(&lab);
    assert_eq!(lab.read("build/deep/out"), "never captured");
    assert_eq!(lab.read("other"), "2");
    assert!(undone.not_restored.is_empty(), "{:?}", undone.not_restored);
}

#[test]
fn f28_files_over_the_cap_and_odd_ones_stay_and_are_named() {
    let lab = Lab::with(options(8).snapshot_cap(1_000));
    lab.write("small", "1");
    let first = lab.keep();
    lab.write("large", vec![b'.'; 2_000]);
    lab.write("d/large", vec![b'.'; 2_000]);
    lab.write("small", "2");
    let pipe = lab.path("pipe");
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    lab.keep();
    let plan = lab
        .workspace
        .rewind_plan(&Point::checkpoint(first.id()), Rewind::files());
    let plan = plan.unwrap();
    let cannot: Vec<PathBuf> = plan
        .outcome()
        .not_restored
        .iter()
        .map(|one| one.path.clone())
        .collect();
    assert_eq!(names(&cannot), ["d", "d/large", "large", "pipe"]);
    plan.apply().unwrap();
    assert_eq!(lab.read("small"), "1");
    assert_eq!(fs::read(lab.path("d/large")).unwrap().len(), 2_000);
    assert!(lab.has("large") && lab.has("pipe"));
    // A large file in the place of a small one is stored first, whatever the cap.
    fs::write(lab.path("small"), vec![b'!'; 3_000]).unwrap();
    lab.keep();
    go(&lab, &first);
    let small = fs::read(lab.path("small")).unwrap();
    if small == b"1" {
        undo(&lab);
        assert_eq!(fs::read(lab.path("small")).unwrap(), vec![b'!'; 3_000]);
    } else {
        assert_eq!(small, vec![b'!'; 3_000], "it stayed");
    }
}

#[test]
fn a_directory_without_write_permission_is_restored_and_keeps_its_mode() {
    let lab = Lab::new(9);
    lab.write("shut/inner/file", "1");
    lab.write("shut/gone", "1");
    chmod(&lab.path("shut/inner"), 0o500);
    chmod(&lab.path("shut"), 0o555);
    let first = (lab.keep(), lab.tree());
    chmod(&lab.path("shut"), 0o755);
    chmod(&lab.path("shut/inner"), 0o755);
    lab.write("shut/inner/file", "2");
    lab.write("shut/inner/new/file", "2");
    fs::remove_file(lab.path("shut/gone")).unwrap();
    chmod(&lab.path("shut/inner/new"), 0o500);
    chmod(&lab.path("shut/inner"), 0o500);
    chmod(&lab.path("shut"), 0o500);
    let second = (lab.keep(), lab.tree());
    for (to, tree) in [&first, &second, &first] {
        go_with(&lab, to, Rewind::files());
        is_tree(lab.root(), tree, "shut directories");
    }
    undo(&lab);
    is_tree(lab.root(), &second.1, "undone");
    // Or nobody could remove it.
    for dir in ["shut", "shut/inner", "shut/inner/new"] {
        chmod(&lab.path(dir), 0o755);
    }
}

#[test]
fn f29_ten_thousand_files_of_which_some_changed() {
    let lab = Lab::new(10);
    for n in 0..10_000 {
        let dir = lab.path(&format!("d{:02}", n % 100));
        if n < 100 {
            fs::create_dir(&dir).unwrap();
        }
        fs::write(dir.join(format!("f{n:05}")), n.to_string()).unwrap();
    }
    let options = CheckpointOptions::new().unlimited();
    let first = lab.workspace.checkpoint(options).unwrap();
    let old = lab.tree();
    for n in (0..10_000).step_by(7) {
        let path = lab.path(&format!("d{:02}/f{n:05}", n % 100));
        match n % 3 {
            0 => fs::write(path, "changed").unwrap(),
            1 => fs::remove_file(path).unwrap(),
            _ => fs::write(path.with_extension("new"), "new").unwrap(),
        }
    }
    lab.keep();
    let new = lab.tree();
    let stood = stamps(lab.root(), &new);
    let report = go_with(&lab, &first, Rewind::files());
    is_tree(lab.root(), &old, "ten thousand");
    untouched((&new, &stood), (&old, &stamps(lab.root(), &old))).unwrap();
    assert_eq!(report.restored().len() + report.deleted().len(), 1_429);
    // All that were there, less those that were replaced or removed.
    assert_eq!(report.unchanged, 10_000 - 953);
    undo(&lab);
    is_tree(lab.root(), &new, "undone");
    lab.verify();
}

#[test]
fn a_program_with_an_open_file_keeps_its_version() {
    let lab = Lab::new(11);
    lab.write("file", "old and long");
    let first = lab.keep();
    lab.write("file", "new");
    lab.keep();
    let mut held = File::options()
        .read(true)
        .write(true)
        .open(lab.path("file"))
        .unwrap();
    go_with(&lab, &first, Rewind::files());
    let mut bytes = String::new();
    held.read_to_string(&mut bytes).unwrap();
    assert_eq!(bytes, "new", "nothing is written in place");
    held.seek(SeekFrom::Start(0)).unwrap();
    held.write_all(b"its own").unwrap();
    assert_eq!(lab.read("file"), "old and long");
}

#[test]
fn f16_links_are_not_followed_and_the_exec_bit_is_restored() {
    let lab = Lab::new(12);
    let outside = lab.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "outside").unwrap();
    lab.write("run.sh", "#!/bin/sh");
    chmod(&lab.path("run.sh"), 0o755);
    lab.write("dir/file", "inside");
    lab.write("file", "inside");
    symlink("file", lab.path("link")).unwrap();
    let first = (lab.keep(), lab.tree());
    chmod(&lab.path("run.sh"), 0o644);
    fs::remove_dir_all(lab.path("dir")).unwrap();
    symlink(&outside, lab.path("dir")).unwrap();
    fs::remove_file(lab.path("file")).unwrap();
    symlink(outside.join("file"), lab.path("file")).unwrap();
    fs::remove_file(lab.path("link")).unwrap();
    symlink(outside.join("none"), lab.path("link")).unwrap();
    lab.keep();
    let plan = lab
        .workspace
        .rewind_plan(&Point::checkpoint(first.0.id()), Rewind::files());
    let plan = plan.unwrap();
    let exec = plan
        .outcome()
        .changes
        .iter()
        .find(|change| change.path == Path::new("run.sh"));
    assert_eq!(exec.map(|change| change.kind), Some(PathOutcomeKind::Mode));
    plan.apply().unwrap();
    is_tree(lab.root(), &first.1, "links");
    assert_eq!(mode(&lab.path("run.sh")), 0o755);
    assert_eq!(fs::read(outside.join("file")).unwrap(), b"outside");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    undo(&lab);
    assert_eq!(fs::read(outside.join("file")).unwrap(), b"outside");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
}

#[test]
fn a_workspace_that_was_deleted_and_created_again_is_restored() {
    let lab = Lab::new(13);
    lab.write("file", "1");
    lab.write("d/file", "1");
    let first = (lab.keep(), lab.tree());
    fs::remove_dir_all(lab.root()).unwrap();
    fs::create_dir(lab.root()).unwrap();
    chmod(lab.root(), mode(lab.root()));
    lab.write("other", "2");
    let attempt = lab
        .workspace
        .rewind(&Point::checkpoint(first.0.id()), Rewind::files());
    let paths = stopped(attempt.unwrap());
    assert!(names(&paths).contains(&"other"), "{paths:?}");
    go(&lab, &first.0);
    is_tree(lab.root(), &first.1, "made again");
    undo(&lab);
    assert!(lab.has("other") && !lab.has("file"));
}

#[test]
fn a_run_that_deleted_its_directory_is_undone() {
    let lab = Lab::new(14);
    lab.write("file", "1");
    lab.write("d/file", "1");
    chmod(lab.root(), 0o750);
    lab.keep();
    let before = lab.tree();
    run(&lab, None, || fs::remove_dir_all(lab.root()).unwrap());
    let store = &lab.store;
    let workspace = store.find_workspace(lab.root()).unwrap().unwrap();
    done(workspace.undo(Rewind::files()).unwrap().unwrap());
    is_tree(lab.root(), &before, "it came back");
    lab.verify();
}

#[test]
fn f29_files_that_need_no_change_are_not_touched() {
    let lab = Lab::new(17);
    for name in ["same", "d/same", "d/changed"] {
        lab.write(name, "1");
    }
    symlink("same", lab.path("link")).unwrap();
    let first = (lab.keep(), lab.tree());
    lab.write("d/changed", "2");
    lab.keep();
    let (tree, stood) = (lab.tree(), stamps(lab.root(), &lab.tree()));
    let report = go_with(&lab, &first.0, Rewind::files());
    assert_eq!(
        (names(&report.restored()), report.unchanged),
        (vec!["d/changed"], 3)
    );
    let now = lab.tree();
    untouched((&tree, &stood), (&now, &stamps(lab.root(), &now))).unwrap();
}

#[test]
fn a_restore_of_paths_leaves_all_others_and_refuses_unknown_paths() {
    let lab = Lab::new(18);
    lab.write("d/a", "1");
    lab.write("d/b", "1");
    lab.write("e", "1");
    let first = lab.keep();
    lab.write("d/a", "2");
    lab.write("e", "2");
    lab.write("d/new", "2");
    fs::remove_file(lab.path("d/b")).unwrap();
    lab.keep();
    let to = Point::checkpoint(first.id());
    let report = done(
        lab.workspace
            .rewind(&to, Rewind::files().paths(["d"]))
            .unwrap(),
    );
    assert_eq!(report.verb, Verb::Restore);
    assert_eq!(
        (lab.read("d/a"), lab.read("d/b")),
        ("1".to_owned(), "1".to_owned())
    );
    assert!(!lab.has("d/new"));
    assert_eq!(lab.read("e"), "2");
    let never = lab
        .workspace
        .rewind(&to, Rewind::files().paths(["never/was"]));
    assert_eq!(never.unwrap_err().kind(), ErrorKind::NotFound);
    for outside in ["../outside", "/etc/passwd", "d/../../x"] {
        let refused = lab.workspace.rewind(&to, Rewind::files().paths([outside]));
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid, "{outside}");
    }
    undo(&lab);
    assert_eq!(lab.read("d/a"), "2");
}

/// Only root reads and changes what belongs to others; the rest holds for everybody.
#[test]
fn files_of_another_owner_keep_their_owner() {
    if !is_root() {
        eprintln!("SKIPPED: needs root; only root gives files to others");
        return;
    }
    let lab = Lab::new(19);
    lab.write("file", "1");
    let first = lab.keep();
    lab.write("file", "2");
    std::os::unix::fs::chown(lab.path("file"), Some(65_534), Some(65_534)).unwrap();
    lab.keep();
    go_with(&lab, &first, Rewind::files());
    let meta = fs::metadata(lab.path("file")).unwrap();
    assert_eq!((meta.uid(), meta.gid()), (65_534, 65_534));
    assert_eq!(lab.read("file"), "1");
}

#[test]
fn a_workspace_without_any_checkpoint_says_so() {
    let lab = Lab::with(StoreOptions::new());
    let refused = lab.workspace.rewind(&Point::last(), Rewind::files());
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::NotFound);
    assert!(lab.workspace.undo(Rewind::files()).unwrap().is_none());
    assert!(lab.workspace.redo(Rewind::files()).unwrap().is_none());
}

/// What undo says of an unfinished run is what is there.
#[test]
fn undo_of_a_run_whose_process_died_undoes_what_was_captured() {
    let lab = Lab::new(20);
    lab.write("file", "1");
    let start = run_start(&lab, None);
    lab.write("file", "2");
    let why = CheckpointOptions::new()
        .reason(CheckpointReason::ToolEnd)
        .begun_by(start.id());
    lab.workspace.checkpoint(why).unwrap();
    undo(&lab);
    assert_eq!(lab.read("file"), "1");
    let ended = run_end(&lab, None, &start);
    assert_eq!(ended.changes().unwrap().changes().len(), 0);
}
