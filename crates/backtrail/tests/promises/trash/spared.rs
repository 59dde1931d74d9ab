//! What a purge must not touch, must not miss, and must wait for.

#![expect(
    clippy::disallowed_methods,
    reason = "the files are looked at from outside"
)]

use std::fs;
use std::path::Path;

use backtrail::gc::GcOptions;
use backtrail::trash::{DeleteScope, EmptyOptions};
use backtrail::workspace::CheckpointReason;
use backtrail::{
    Checkpoint, CheckpointOptions, ErrorKind, ForkOptions, Note, SessionId, Workspace,
};

use super::purge::{Desk, SECRET};
use super::{delete, session};

/// A command of a session that writes a file; returns its end.
fn ran(workspace: &Workspace, id: &SessionId, about: &str, name: &str) -> Checkpoint {
    let start = CheckpointOptions::new()
        .session(id)
        .reason(CheckpointReason::RunStart);
    let start = workspace.checkpoint(start.about(about)).unwrap();
    fs::write(workspace.root().join(name), format!("{SECRET} of {name}")).unwrap();
    let end = CheckpointOptions::new()
        .session(id)
        .reason(CheckpointReason::RunEnd);
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
    let start = CheckpointOptions::new()
        .session(&id)
        .reason(CheckpointReason::RunStart);
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
fn text_of_other_sessions_stays_even_if_it_is_the_same() {
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
        now.about().map(|about| about.to_string())
    };
    assert_eq!(about(&short).as_deref(), Some("make --version"));
    let said = about(&long);
    assert_eq!(said.as_deref(), Some("sh -c 'make --release --now'"));
    // Only text that is not there by chance is named.
    assert!(report.still_quoted.contains(&long.id()), "{report:?}");
    assert!(!report.still_quoted.contains(&short.id()), "{report:?}");
    let all = desk.workspace.checkpoints().unwrap().map(Result::unwrap);
    let mut own = all.filter(|it| it.session().is_some_and(|place| place.id == id));
    assert!(own.all(|checkpoint| {
        checkpoint
            .about()
            .is_none_or(|about| about.text().is_none())
    }));
}

#[test]
fn files_of_the_session_in_another_workspace_are_named() {
    let desk = Desk::new();
    let other = elsewhere(&desk);
    // A file that was there before did not come from the session.
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
    let [held] = plan.remaining_files() else {
        panic!("{:?}", plan.remaining_files());
    };
    assert_eq!(
        (held.checkpoint, held.root.as_path()),
        (holds.id(), other.root())
    );
    assert_eq!(held.paths, [Path::new("copy-key.txt")]);
}

#[test]
fn a_purge_is_done_to_its_end_when_it_is_asked_for_again() {
    let desk = Desk::new();
    let id = session(&desk.store, &[SECRET]);
    let fork = desk.store.fork_session(&id, &ForkOptions::new()).unwrap();
    let child = fork.id().clone();
    let report = desk.purge(&id);
    assert_eq!(
        report.still_named,
        std::slice::from_ref(&child),
        "a process is writing to it"
    );
    fork.close().unwrap();
    let report = desk.purge(&id);
    assert_eq!(report.renamed, std::slice::from_ref(&child));
    assert!(report.still_named.is_empty());
    assert_eq!(desk.files_with_secret(), Vec::<String>::new());
    let info = desk.store.read_session(&child).unwrap().info().unwrap();
    assert_eq!(info.title, None);
    // Nothing is left to do.
    let ids = std::slice::from_ref(&id);
    let plan = desk.store.purge_plan(ids, DeleteScope::Named).unwrap();
    assert!(plan.deletions().is_empty() && plan.again() == ids);
    assert!(plan.apply().unwrap().renamed.is_empty());
    let said = desk.dir.path().join(format!("store/trash/{id}.purged"));
    assert!(!fs::read_to_string(said).unwrap().contains("names"));
}

#[test]
fn a_title_and_tags_that_a_fork_set_itself_stay() {
    let desk = Desk::new();
    let id = session(&desk.store, &["leaked"]);
    desk.store
        .note(&id, &Note::new().tags(["work", "kept", "leak"]))
        .unwrap();
    let child = super::fork(&desk.store, &id, "x");
    let notes = [
        Note::new().remove_tag("work").title("other"),
        Note::new().add_tag("work").add_tag("mine").title("leaked"),
        Note::new().pinned(true),
    ];
    for note in notes {
        desk.store.note(&child, &note).unwrap();
    }
    assert_eq!(desk.purge(&id).renamed, std::slice::from_ref(&child));
    let reader = desk.store.read_session(&child).unwrap();
    let info = reader.info().unwrap();
    // The fork removed these and set them again.
    assert_eq!(info.tags, ["work", "mine"]);
    assert_eq!(info.title.as_deref(), Some("leaked"));
    assert!(reader.verify().unwrap().is_ok());
}

#[test]
fn f7_foreign_files_in_a_purged_session_are_set_aside_once() {
    let desk = Desk::new();
    let id = desk.leak();
    let home = desk.store.read_session(&id).unwrap().dir();
    fs::write(home.join("notes.txt"), "a person's").unwrap();
    let report = desk.purge(&id);
    let left = desk.dir.path().join(format!("store/trash/{id}.left"));
    assert_eq!(report.left, [left.join("notes.txt")]);
    assert_eq!(fs::read(left.join("notes.txt")).unwrap(), b"a person's");
    let names = || -> Vec<_> {
        let dir = desk.store.workspaces().unwrap()[0].id().to_string();
        let dir = desk.dir.path().join("store/workspaces").join(dir);
        let names = fs::read_dir(dir).unwrap().map(|it| it.unwrap().file_name());
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        names
    };
    let before = names();
    let contents = desk.store.trash().unwrap();
    assert!(contents.leftovers.is_empty(), "{contents:?}");
    assert_eq!(contents.unknown, std::slice::from_ref(&left));
    desk.store.gc(&GcOptions::new()).unwrap();
    assert_eq!(names(), before, "no trail is rewritten again");
    assert!(left.join("notes.txt").exists());
}

#[test]
fn f7_links_with_the_names_of_leftovers_are_foreign() {
    let desk = Desk::new();
    delete(&desk.store, &session(&desk.store, &["one"])).unwrap();
    let trash = desk.dir.path().join("store/trash");
    let id = "00000000-0000-4000-8000-000000000000";
    let links = ["emptying", "purging"].map(|end| trash.join(format!("{id}.{end}")));
    for link in &links {
        std::os::unix::fs::symlink(desk.dir.path(), link).unwrap();
    }
    let contents = desk.store.trash().unwrap();
    assert!(contents.leftovers.is_empty(), "{contents:?}");
    assert_eq!(contents.unknown, links);
    let plan = desk.store.empty_plan(&EmptyOptions::new()).unwrap();
    assert!(plan.leftovers().is_empty());
    assert_eq!(plan.apply().unwrap().left, links);
}
