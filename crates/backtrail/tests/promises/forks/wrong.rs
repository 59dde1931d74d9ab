//! Directories that a fork does not go into: each is refused by name, and nothing
//! is made or changed anywhere.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use backtrail::rewind::ForkInto;
use backtrail::{CheckpointOptions, Error, ErrorKind, Point, Store, Workspace};
use tempfile::TempDir;

use crate::rewind::kit::is_root;
use crate::snapshots::tree::{read_tree, same};

/// A store on the disk, a workspace, and room beside them.
struct Desk {
    dir: TempDir,
    store: Store,
    workspace: Workspace,
}

impl Desk {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(dir.path().join("home/store")).unwrap();
        let root = dir.path().join("src/work");
        fs::create_dir_all(&root).unwrap();
        fs::write(root.join("a"), "one\n").unwrap();
        let workspace = store.workspace(&root).unwrap();
        workspace.checkpoint(CheckpointOptions::new()).unwrap();
        fs::create_dir(dir.path().join("room")).unwrap();
        Self {
            dir,
            store,
            workspace,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Forks into a directory that must be refused, and returns why it was.
    fn refused(&self, into: impl AsRef<Path>) -> Error {
        let into = into.as_ref();
        let before = [self.path("src"), self.path("room")].map(|dir| read_tree(&dir));
        let known = self.known();
        let point = Point::last();
        let planned = self.workspace.fork_into_plan(&point, into, ForkInto::new());
        let planned = planned.map(drop);
        let error = self.workspace.fork_into(&point, into, ForkInto::new());
        let error = error.map(drop).expect_err(&format!("{into:?} is refused"));
        if let Err(planned) = planned {
            assert_eq!(planned.to_string(), error.to_string());
        }
        let after = [self.path("src"), self.path("room")].map(|dir| read_tree(&dir));
        for (before, after) in before.iter().zip(&after) {
            same(after, before).unwrap();
        }
        assert_eq!(self.known(), known, "{into:?}");
        error
    }

    fn known(&self) -> (usize, usize) {
        let store = &self.store;
        (
            store.sessions().unwrap().len(),
            store.workspaces().unwrap().len(),
        )
    }

    fn says(&self, into: impl AsRef<Path>, what: &str) {
        let error = self.refused(into);
        let text = error.to_string();
        assert!(text.contains(what), "{text}");
        assert!(error.path().is_some(), "{text}");
    }
}

#[test]
fn anything_but_an_empty_directory_is_refused() {
    let desk = Desk::new();
    let room = desk.path("room");
    fs::write(room.join("file"), "x").unwrap();
    desk.says(room.join("file"), "is not a directory");
    desk.says(
        room.join("file/below"),
        "has a parent that is not a directory",
    );
    fs::create_dir(room.join("empty")).unwrap();
    symlink("empty", room.join("link")).unwrap();
    desk.says(room.join("link"), "is a link; name the directory itself");
    desk.says(room.join("link/"), "is a link; name the directory itself");
    symlink("nowhere", room.join("dangling")).unwrap();
    desk.says(room.join("dangling"), "is a link");
    fs::create_dir(room.join("full")).unwrap();
    for name in ["a", "b", "c", "d"] {
        fs::write(room.join("full").join(name), "x").unwrap();
    }
    desk.says(room.join("full"), "is not empty: it has a, b, c and 1 more");
    let error = desk.refused(room.join("not/there"));
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("create it first"), "{error}");
    desk.says("/", "");
    let error = desk.refused("");
    assert!(error.to_string().contains("name one"), "{error}");
}

#[test]
fn a_directory_in_a_workspace_or_around_one_is_refused() {
    let desk = Desk::new();
    let root = desk.workspace.root().to_owned();
    desk.says(root.join("below"), "is in the workspace");
    fs::create_dir(root.join("there")).unwrap();
    desk.says(root.join("there"), "is in the workspace");
    desk.says(&root, "");
    // By another way.
    symlink(&root, desk.path("room/way")).unwrap();
    desk.says(desk.path("room/way/below"), "is in the workspace");
    desk.says(desk.path("room/../src/work/below"), "is in the workspace");
    // Another workspace is in the way as well, also one whose directory is gone.
    let other = desk.path("src/other");
    fs::create_dir(&other).unwrap();
    let known = desk.store.workspace(&other).unwrap();
    known.checkpoint(CheckpointOptions::new()).unwrap();
    desk.says(other.join("below"), "is in the workspace");
    desk.says(&other, "is already a workspace");
    fs::remove_dir(&other).unwrap();
    desk.says(&other, "is already a workspace");
    let deep = desk.path("src/deep/down");
    fs::create_dir_all(&deep).unwrap();
    let known = desk.store.workspace(&deep).unwrap();
    known.checkpoint(CheckpointOptions::new()).unwrap();
    fs::remove_dir(&deep).unwrap();
    desk.says(desk.path("src/deep"), "contains the workspace");
    // One that was moved is the same one.
    let moved = desk.path("room/moved");
    fs::rename(&root, &moved).unwrap();
    let born = fs::metadata(&moved).unwrap().created();
    match born {
        Ok(_) => desk.says(moved.join("below"), "is in the workspace"),
        Err(_) => eprintln!("SKIPPED: needs birth times of directories"),
    }
}

#[test]
fn a_workspace_without_checkpoints_is_no_obstacle() {
    let desk = Desk::new();
    desk.store.workspace(&desk.path("room")).unwrap();
    let into = desk.path("room/fork");
    let forked = desk
        .workspace
        .fork_into(&Point::last(), &into, ForkInto::new());
    forked.unwrap();
    assert!(into.join("a").exists());
}

#[test]
fn a_directory_in_the_store_or_around_it_is_refused() {
    let desk = Desk::new();
    let home = desk.path("home/store");
    desk.says(home.join("sessions/x"), "is in the store");
    desk.says(home.join("new"), "is in the store");
    desk.says(&home, "is in the store");
    symlink(&home, desk.path("room/way")).unwrap();
    desk.says(desk.path("room/way/new"), "is in the store");
    desk.says(desk.path("home"), "contains the store");
}

#[test]
fn a_directory_without_write_permission_is_named_and_nothing_is_left() {
    if is_root() {
        eprintln!("SKIPPED: needs a user other than root; no mode stops root");
        return;
    }
    let desk = Desk::new();
    let room = desk.path("room");
    let set = |mode| fs::set_permissions(&room, fs::Permissions::from_mode(mode)).unwrap();
    set(0o555);
    let error = desk.refused(room.join("fork"));
    set(0o755);
    assert_eq!(error.kind(), ErrorKind::Io);
    assert_eq!(error.path(), Some(room.canonicalize().unwrap().as_path()));
}

#[test]
fn a_name_too_long_for_a_record_is_refused_before_anything_is_written() {
    let desk = Desk::new();
    let into = desk.path("room/fork");
    let options = ForkInto::new().name("x".repeat(20 << 20));
    let error = desk.workspace.fork_into(&Point::last(), &into, options);
    assert_eq!(error.map(drop).unwrap_err().kind(), ErrorKind::Invalid);
    assert!(!into.exists());
    assert_eq!(fs::read_dir(desk.path("room")).unwrap().count(), 0);
}

#[test]
fn a_point_that_does_not_exist_creates_nothing() {
    let desk = Desk::new();
    let into = desk.path("room/fork");
    let point = "no-such".parse().unwrap();
    let error = desk.workspace.fork_into(&point, &into, ForkInto::new());
    assert_eq!(error.map(drop).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(fs::read_dir(desk.path("room")).unwrap().count(), 0);
}

/// An object that is lost stops it, and what was written goes again.
#[test]
fn a_damaged_snapshot_leaves_nothing_behind() {
    let desk = Desk::new();
    let objects = desk.path("home/store/objects");
    let mut damaged = 0;
    for entry in fs::read_dir(&objects).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        if let Some(at) = bytes.windows(4).position(|piece| piece == b"one\n") {
            bytes[at] ^= 1;
            fs::write(&path, bytes).unwrap();
            damaged += 1;
        }
    }
    assert_eq!(damaged, 1, "the content stands in one pack as it is");
    let store = Store::open(desk.path("home/store")).unwrap();
    let workspace = store.workspace(desk.workspace.root()).unwrap();
    let into = desk.path("room/fork");
    let error = workspace.fork_into(&Point::last(), &into, ForkInto::new());
    assert_eq!(error.map(drop).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(fs::read_dir(desk.path("room")).unwrap().count(), 0);
}
