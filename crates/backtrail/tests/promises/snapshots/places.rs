//! Which directory is which workspace, whatever happens to directories; and what is
//! said when the store lost something.

use std::fs;
use std::os::unix::fs::symlink;

use backtrail::workspace::CheckpointReason;
use backtrail::{CheckpointOptions, ErrorKind, Message, Point, SessionOptions, Store};

use super::desk::Desk;

fn labels(desk: &Desk, dir: &str) -> Option<Vec<String>> {
    let store = Store::open(desk.store.root()).unwrap();
    let found = store.find_workspace(&desk.dir.path().join(dir)).unwrap()?;
    let all = found.checkpoints().unwrap().map(Result::unwrap);
    Some(all.map(|kept| kept.label().unwrap().to_owned()).collect())
}

fn keep(desk: &Desk, dir: &str, label: &str) {
    let path = desk.dir.path().join(dir);
    let workspace = desk.store.workspace(&path).unwrap();
    let options = CheckpointOptions::new().label(label);
    workspace.checkpoint(options).unwrap();
}

#[test]
fn a_new_directory_with_the_inode_of_a_deleted_one_is_a_new_workspace() {
    let desk = Desk::new();
    keep(&desk, "work", "old");
    // Whether the file system uses the inode again or not, nothing is inherited.
    for n in 0..20 {
        fs::remove_dir_all(desk.root()).unwrap();
        let fresh = format!("fresh{n}");
        fs::create_dir(desk.dir.path().join(&fresh)).unwrap();
        assert_eq!(labels(&desk, &fresh), None);
        keep(&desk, &fresh, "new");
        assert_eq!(labels(&desk, &fresh), Some(vec!["new".to_owned()]));
        fs::create_dir(desk.root()).unwrap();
    }
}

#[test]
fn a_directory_at_the_old_path_is_the_workspace_and_a_link_is_not() {
    let desk = Desk::new();
    keep(&desk, "work", "x");
    let at = |name: &str| desk.dir.path().join(name);
    // Moved, and something new at the old path: that has the past.
    fs::rename(at("work"), at("away")).unwrap();
    fs::create_dir(at("work")).unwrap();
    assert_eq!(labels(&desk, "away"), None);
    assert!(labels(&desk, "work").is_some());
    fs::remove_dir(at("work")).unwrap();
    // Moved, and a link to it at the old path: both lead to the past.
    symlink(at("away"), at("work")).unwrap();
    assert!(labels(&desk, "away").is_some());
    assert!(labels(&desk, "work").is_some());
}

#[test]
fn a_workspace_that_is_gone_can_still_be_looked_at() {
    let desk = Desk::new();
    desk.write("a", "1");
    keep(&desk, "work", "x");
    fs::remove_dir_all(desk.root()).unwrap();
    let store = Store::open(desk.store.root()).unwrap();
    let found = store.find_workspace(desk.root()).unwrap().unwrap();
    let before = found.snapshot(&Point::last()).unwrap();
    assert_eq!(before.read("a").unwrap().unwrap(), b"1");
    let changes = found.changes_since(&before).unwrap();
    assert_eq!(changes.changes()[0].to_string(), "deleted a");
    let nowhere = desk.dir.path().join("nowhere");
    let error = store.find_workspace(&nowhere).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn files_of_a_moved_workspace_are_not_recorded_as_deleted() {
    let desk = Desk::new();
    desk.write("a", "1");
    let options = SessionOptions::new().workspace(&desk.workspace);
    let session = desk.store.create_session(options).unwrap();
    session.append(Message::user_text("hello")).unwrap();
    session.checkpoint(CheckpointOptions::new()).unwrap();
    let moved = desk.dir.path().join("moved");
    fs::rename(desk.root(), &moved).unwrap();
    let error = session.checkpoint(CheckpointOptions::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("if it was moved"), "{error}");
    // Once its new place is known, the session finds it there, too.
    let workspace = desk.store.workspace(&moved).unwrap();
    assert_eq!(workspace.id(), desk.workspace.id());
    let kept = session.checkpoint(CheckpointOptions::new()).unwrap();
    assert_eq!(kept.files(), 1);
    assert_eq!(
        workspace.latest_session().unwrap().as_ref(),
        Some(session.id())
    );
}

#[test]
fn a_run_that_deletes_its_directory_leaves_an_empty_state() {
    let desk = Desk::new();
    desk.write("a", "1");
    let why = |reason| CheckpointOptions::new().reason(reason);
    let start = desk
        .workspace
        .checkpoint(why(CheckpointReason::RunStart))
        .unwrap();
    fs::remove_dir_all(desk.root()).unwrap();
    let end = why(CheckpointReason::RunEnd).begun_by(start.id());
    let end = desk.workspace.checkpoint(end).unwrap();
    assert_eq!((end.files(), end.changed()), (0, 1));
    assert_eq!(end.changes().unwrap().counts().deleted, 1);
}

#[test]
fn a_first_snapshot_that_was_refused_claims_nothing() {
    let desk = Desk::new();
    let project = desk.path("project");
    fs::create_dir(&project).unwrap();
    // The workspace was made, and nothing was ever kept of it.
    assert_eq!(desk.store.workspace_root(&project).unwrap(), project);
    assert_eq!(labels(&desk, "work"), None);
    keep(&desk, "work", "x");
    assert_eq!(desk.store.workspace_root(&project).unwrap(), desk.root());
}

#[test]
fn a_damaged_opener_does_not_orphan_the_records_after_it() {
    let desk = Desk::new();
    keep(&desk, "work", "x");
    let trail = desk.store.root().join("workspaces");
    let trail = trail.join(desk.workspace.id().as_str()).join("0000.jsonl");
    let mut bytes = fs::read(&trail).unwrap();
    bytes[10] ^= 1;
    fs::write(&trail, &bytes).unwrap();
    assert_eq!(labels(&desk, "work"), Some(vec!["x".to_owned()]));
    assert!(!desk.store.verify_snapshots().unwrap().is_ok());
    // Where nothing says which directory it was, that is damage, too.
    fs::write(&trail, b"garbage\n").unwrap();
    let report = desk.store.verify_snapshots().unwrap();
    assert!(!report.is_ok(), "{report:#?}");
}

#[test]
fn a_checkpoint_after_objects_were_lost_is_whole() {
    let desk = Desk::new();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs");
    // A file old enough for the cache to be trusted.
    fs::hard_link(source, desk.path("old"))
        .or_else(|_| fs::copy(source, desk.path("old")).map(drop))
        .unwrap();
    desk.write("a", "1");
    keep(&desk, "work", "x");
    let objects = desk.store.root().join("objects");
    let packs = || {
        fs::read_dir(&objects)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|end| end != "lock"))
    };
    for pack in packs() {
        let bytes = fs::read(&pack).unwrap();
        fs::write(&pack, &bytes[..bytes.len() / 2]).unwrap();
    }
    let again = || {
        let store = Store::open(desk.store.root()).unwrap();
        let workspace = store.workspace(desk.root()).unwrap();
        let kept = workspace.checkpoint(CheckpointOptions::new()).unwrap();
        let snapshot = kept.snapshot().unwrap();
        assert_eq!(
            snapshot.read("old").unwrap().unwrap(),
            fs::read(source).unwrap()
        );
        assert_eq!(snapshot.read("a").unwrap().unwrap(), b"1");
    };
    again();
    packs().for_each(|pack| fs::remove_file(pack).unwrap());
    again();
}
