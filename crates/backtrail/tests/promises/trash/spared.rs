//! What a purge must not touch, must not overlook, and must wait for.

#![expect(
    clippy::disallowed_methods,
    reason = "the files are looked at from outside"
)]

use std::fs;
use std::path::Path;

use backtrail::{Checkpoint, CheckpointOptions, DeleteScope, ErrorKind, SessionId, Why, Workspace};

use super::purge::{Desk, SECRET};
use super::{delete, session};

/// A command of a session that writes a file; returns its end.
fn ran(workspace: &Workspace, id: &SessionId, about: &str, name: &str) -> Checkpoint {
    let start = CheckpointOptions::new().session(id).why(Why::RunStart);
    let start = workspace.checkpoint(start.about(about)).unwrap();
    fs::write(workspace.root().join(name), format!("{SECRET} of {name}")).unwrap();
    let end = CheckpointOptions::new().session(id).why(Why::RunEnd);
    let end = end.about(about).begun_by(start.id());
    workspace.checkpoint(end).unwrap()
}

fn elsewhere(desk: &Desk) -> Workspace {
    let other = desk.dir.path().join("elsewhere");
    fs::create_dir(&other).unwrap();
    desk.store.workspace(&other).unwrap()
}

#[test]
fn a_session_at_work_in_any_workspace_is_neither_deleted_nor_purged() {
    let desk = Desk::new();
    let id = session(&desk.store, &["one"]);
    ran(&desk.workspace, &id, "first", "a.txt");
    let other = elsewhere(&desk);
    let start = CheckpointOptions::new().session(&id).why(Why::RunStart);
    let start = other.checkpoint(start.about("make")).unwrap();
    let active = other.activate(&start).unwrap();
    let ids = std::slice::from_ref(&id);
    let error = delete(&desk.store, &id).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
    let plan = desk.store.purge_plan(ids, DeleteScope::Named).unwrap();
    let error = plan.apply().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
    assert!(desk.store.read_session(&id).is_ok());
    drop(active);
    delete(&desk.store, &id).unwrap();
    assert_eq!(desk.purge(&id).purged, ids);
}

#[test]
fn words_of_others_stay_though_they_are_the_same() {
    let desk = Desk::new();
    let id = session(&desk.store, &["one"]);
    let other = session(&desk.store, &["two"]);
    ran(&desk.workspace, &id, "make", "a.txt");
    ran(&desk.workspace, &id, "make --release --now", "a.txt");
    let short = ran(&desk.workspace, &other, "make --version", "b.txt");
    let long = ran(
        &desk.workspace,
        &other,
        "sh -c 'make --release --now'",
        "b.txt",
    );
    let report = desk.purge(&id);
    let about = |of: &Checkpoint| {
        let now = desk.workspace.checkpoint_by_id(of.id()).unwrap().unwrap();
        now.about().map(ToOwned::to_owned)
    };
    assert_eq!(about(&short).as_deref(), Some("make --version"));
    let said = about(&long);
    assert_eq!(said.as_deref(), Some("sh -c 'make --release --now'"));
    // Only what nobody says by chance is named.
    assert!(report.still_quoted.contains(&long.id()), "{report:?}");
    assert!(!report.still_quoted.contains(&short.id()), "{report:?}");
    let all = desk.workspace.checkpoints().unwrap().map(Result::unwrap);
    let mut own = all.filter(|it| it.session().is_some_and(|place| place.id == id));
    assert!(own.all(|checkpoint| checkpoint.about().is_none()));
}

#[test]
fn what_another_workspace_holds_of_its_files_is_named() {
    let desk = Desk::new();
    let other = elsewhere(&desk);
    // What lay there before was not brought there.
    fs::write(other.root().join("old.txt"), format!("{SECRET} of old.txt")).unwrap();
    other.checkpoint(CheckpointOptions::new()).unwrap();
    let id = session(&desk.store, &["one"]);
    desk.workspace.checkpoint(CheckpointOptions::new()).unwrap();
    ran(&desk.workspace, &id, "first", "key.txt");
    ran(&desk.workspace, &id, "second", "old.txt");
    for name in ["key.txt", "old.txt"] {
        let from = desk.workspace.root().join(name);
        fs::copy(&from, other.root().join(format!("copy-{name}"))).unwrap();
        fs::remove_file(from).unwrap();
    }
    let holds = other.checkpoint(CheckpointOptions::new()).unwrap();
    desk.workspace.checkpoint(CheckpointOptions::new()).unwrap();
    let ids = std::slice::from_ref(&id);
    let plan = desk.store.purge_plan(ids, DeleteScope::Named).unwrap();
    let [held] = plan.still_held() else {
        panic!("{:?}", plan.still_held());
    };
    assert_eq!(
        (held.checkpoint, held.root.as_path()),
        (holds.id(), other.root())
    );
    assert_eq!(held.paths, [Path::new("copy-key.txt")]);
}
