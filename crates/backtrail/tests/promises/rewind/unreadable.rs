//! What became unreadable during a run is restored where its owner may, and named where not.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use backtrail::rewind::Stage;
use backtrail::{Outcome, Point, Rewind};

use super::kit::{Lab, done, is_root, is_tree, run, stopped};

fn close(lab: &Lab, path: &str) {
    set_mode(lab, path, 0o000);
}

fn set_mode(lab: &Lab, path: &str, mode: u32) {
    fs::set_permissions(lab.path(path), Permissions::from_mode(mode)).unwrap();
}

fn mode(lab: &Lab, path: &str) -> u32 {
    let meta = fs::symlink_metadata(lab.path(path)).unwrap();
    meta.permissions().mode() & 0o7777
}

/// A workspace with nested directories.
fn lab() -> Option<Lab> {
    if is_root() {
        eprintln!("SKIPPED: needs a user other than root; no mode stops root");
        return None;
    }
    let lab = Lab::new(17);
    lab.write("src/a", "as it was\n");
    lab.write("src/deep/b", "as it was, too\n");
    lab.write("other", "other\n");
    set_mode(&lab, "src", 0o755);
    set_mode(&lab, "src/deep", 0o700);
    lab.keep();
    Some(lab)
}

fn undo(lab: &Lab) -> Outcome {
    done(lab.workspace.undo(Rewind::files()).unwrap().unwrap())
}

/// F12: whatever the owner closed and changed in it, an undo restores mode and content.
#[test]
fn an_undo_by_the_owner_restores_what_a_run_closed() {
    type Work = fn(&Lab);
    let cases: [Work; 8] = [
        |lab| close(lab, "src"),
        |lab| close(lab, "src/deep"),
        |lab| close(lab, "src/a"),
        |lab| {
            lab.write("src/a", "edited\n");
            close(lab, "src");
        },
        |lab| {
            fs::remove_file(lab.path("src/deep/b")).unwrap();
            lab.write("src/deep/new", "made by the run\n");
            close(lab, "src/deep");
            close(lab, "src");
        },
        |lab| {
            lab.write("src/a", "edited\n");
            close(lab, "src/a");
            lab.write("other", "edited\n");
        },
        // Listed, but nothing in it can be looked at.
        |lab| set_mode(lab, "src", 0o600),
        // Searched, but not listed.
        |lab| set_mode(lab, "src", 0o300),
    ];
    for (n, work) in cases.into_iter().enumerate() {
        let Some(lab) = lab() else { return };
        let before = lab.tree();
        run(&lab, None, || work(&lab));
        let outcome = undo(&lab);
        assert!(
            !outcome.is_partial(),
            "case {n}: {:?}",
            outcome.not_restored
        );
        assert!(outcome.moves_files(), "case {n}");
        is_tree(lab.root(), &before, &format!("case {n}"));
        lab.verify();
    }
}

/// A mode that is already what reading needs is restored as well.
#[test]
fn a_closed_directory_that_was_only_its_owners_is_restored() {
    for was in [0o700, 0o500] {
        let Some(lab) = lab() else { return };
        set_mode(&lab, "src/deep", was);
        lab.keep();
        run(&lab, None, || close(&lab, "src/deep"));
        let outcome = undo(&lab);
        assert_eq!(outcome.restored(), [Path::new("src/deep")]);
        assert_eq!(mode(&lab, "src/deep"), was);
    }
}

/// A rewind to a point and a restore of a path do the same.
#[test]
fn a_rewind_and_a_restore_open_what_was_closed() {
    let options = [
        Rewind::files(),
        Rewind::files().paths(&[PathBuf::from("src")]),
    ];
    for options in options {
        let Some(lab) = lab() else { return };
        let before = lab.tree();
        let point = Point::checkpoint(lab.keep().id());
        run(&lab, None, || {
            lab.write("src/a", "edited\n");
            close(&lab, "src");
        });
        let plan = lab.workspace.rewind_plan(&point, options.clone()).unwrap();
        assert!(!plan.outcome().is_partial() && plan.outcome().moves_files());
        assert_eq!(mode(&lab, "src"), 0o000, "a plan touches nothing");
        let outcome = done(lab.workspace.rewind(&point, options).unwrap());
        assert!(!outcome.is_partial(), "{:?}", outcome.not_restored);
        is_tree(lab.root(), &before, "after the rewind");
    }
}

/// If a conflict stops it, nothing is touched: not even a mode.
#[test]
fn what_was_opened_is_closed_again_if_a_conflict_stops_it() {
    let Some(lab) = lab() else { return };
    run(&lab, None, || {
        lab.write("other", "edited\n");
        close(&lab, "src");
    });
    lab.write("other", "yours\n");
    let outcome = lab.workspace.undo(Rewind::files()).unwrap().unwrap();
    assert_eq!(outcome.stage, Stage::Stopped);
    assert_eq!(stopped(outcome), [PathBuf::from("other")]);
    assert_eq!(mode(&lab, "src"), 0o000);
    let outcome = lab.workspace.undo(Rewind::files().keep()).unwrap().unwrap();
    assert_eq!(mode(&lab, "src"), 0o755);
    assert_eq!(lab.read("other"), "yours\n");
    assert!(!done(outcome).is_partial());
}

/// F15: what its owner opened and edited after the run is not the run's.
#[test]
fn edits_after_a_directory_was_opened_again_stop_an_undo() {
    let Some(lab) = lab() else { return };
    run(&lab, None, || close(&lab, "src"));
    set_mode(&lab, "src", 0o755);
    lab.write("src/a", "yours\n");
    let outcome = lab.workspace.undo(Rewind::files()).unwrap().unwrap();
    assert_eq!(stopped(outcome), [PathBuf::from("src/a")]);
    assert_eq!(lab.read("src/a"), "yours\n");
}

/// What cannot be made readable is named, and the rest is restored.
#[test]
fn what_cannot_be_made_readable_is_named_and_the_rest_is_restored() {
    if !is_root() {
        eprintln!("SKIPPED: needs root; only root gives files to others");
        return;
    }
    // Root reads everything, so that something else must stand in for it: a directory that
    // became a file system's or a socket's.
    let lab = Lab::new(17);
    lab.write("src/a", "as it was\n");
    lab.write("other", "other\n");
    lab.keep();
    run(&lab, None, || {
        fs::remove_dir_all(lab.path("src")).unwrap();
        let socket = std::os::unix::net::UnixListener::bind(lab.path("src")).unwrap();
        drop(socket);
        lab.write("other", "edited\n");
    });
    let outcome = undo(&lab);
    assert!(outcome.is_partial());
    let named = outcome
        .not_restored
        .iter()
        .any(|it| it.path == Path::new("src"));
    assert!(named, "{:?}", outcome.not_restored);
    assert_eq!(lab.read("other"), "other\n");
}

/// A sparse file comes back with its holes, and its bytes are the same.
#[test]
fn a_sparse_file_is_restored_sparse() {
    use std::os::unix::fs::{FileExt, MetadataExt};

    const MIB: u64 = 1 << 20;
    let lab = Lab::new(19);
    let make = |name: &str, data: &[(u64, &[u8])], len: u64| {
        let file = fs::File::create(lab.path(name)).unwrap();
        for (at, bytes) in data {
            file.write_all_at(bytes, *at).unwrap();
        }
        file.set_len(len).unwrap();
    };
    make("middle", &[(0, b"begin"), (20 * MIB - 3, b"end")], 20 * MIB);
    make("trailing", &[(0, b"begin")], 20 * MIB);
    make("only", &[], 3 * MIB + 17);
    make("odd", &[(7 * MIB + 12_345, b"in the middle")], 9 * MIB + 1);
    let blocks = |name: &str| fs::metadata(lab.path(name)).unwrap().blocks() * 512;
    let names = ["middle", "trailing", "only", "odd"];
    if names.iter().any(|name| blocks(name) > MIB) {
        eprintln!("SKIPPED: needs a file system with sparse files");
        return;
    }
    let before = names.map(|name| fs::read(lab.path(name)).unwrap());
    lab.keep();
    run(&lab, None, || {
        for name in names {
            lab.write(name, "overwritten");
        }
        fs::remove_file(lab.path("only")).unwrap();
    });
    undo(&lab);
    for (name, bytes) in names.into_iter().zip(before) {
        assert!(fs::read(lab.path(name)).unwrap() == bytes, "{name} differs");
        assert!(blocks(name) <= MIB, "{name} takes {} bytes", blocks(name));
    }
}
